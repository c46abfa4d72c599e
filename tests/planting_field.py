"""A report as lines that errors can be planted in: its tables, its prose, and what shows an error.

An error shows if another line prints what stood there, or if a number that the row worked out came
out of the printed ones and no longer does.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

NUMBER = re.compile(r"(?<![\w.~\-/])[+-]?\d+\.\d+%?(?![\w.\-/])")
DASHES = re.compile(r"\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)+\|?\s*")
DERIVED = re.compile(r"差|vs|平均|变化|mean|avg|average|diff|delta|Δ|gap|change|gain|提升", re.I)
PURE = re.compile(r"[\s*]*([+-]?\d+\.\d+%?)[\s*]*(?:±[^|]*)?(?:\([^)]*\)\s*)?[^\w|]*$")


@dataclass(frozen=True)
class Plant:
    """An error: its kind, its line (from 1), and what stood there before and stands there now."""

    kind: str
    line: int
    before: str
    after: str


@dataclass
class Field:
    """A text as lines, and which of them were touched."""

    lines: list[str]
    language: str
    rng: random.Random
    touched: set[int]
    """Lines with an error, and lines that show one."""

    def tables(self) -> list[tuple[int, list[int]]]:
        """The line of each table's header, and those of its rows."""
        found, at = [], 0
        while at + 1 < len(self.lines):
            if "|" in self.lines[at] and DASHES.fullmatch(self.lines[at + 1]):
                rows = []
                last = at + 2
                while last < len(self.lines) and "|" in self.lines[last]:
                    rows.append(last)
                    last += 1
                found.append((at, rows))
                at = last
            else:
                at += 1
        return found

    def prose(self) -> list[int]:
        """Lines that say something: no tables, headings, code, blanks, and nothing expected."""
        inside, found = False, []
        rows = {line for head, rows in self.tables() for line in (head, head + 1, *rows)}
        supposed = re.compile(
            r"可能|预期|如果|建议|待|should|may|expect|next|would|\[ \]|bash|下一步"
        )
        for at, line in enumerate(self.lines):
            if line.strip().startswith("```"):
                inside = not inside
            elif not inside and at not in rows and line.strip() and not line.startswith("#"):
                long = len(re.findall(r"[A-Za-z\u4e00-\u9fff]", line)) > 8
                if long and not supposed.search(line) and "`" not in line:
                    found.append(at)
        return found

    def put(self, at: int, text: str, kind: str, *witnesses: int) -> Plant | None:
        """Change a line, if it was not touched and does change; its witnesses stay as they are."""
        if at in self.touched or text == self.lines[at]:
            return None
        table = next((rows for _, rows in self.tables() if at in rows), [])
        if 2 * len(self.planted & set(table)) + 2 > max(4, len(table)):
            return None  # a table that is mostly wrong has nothing to be held against
        plant = Plant(kind, at + 1, self.lines[at], text)
        self.lines[at] = text
        self.touched |= {at, *witnesses}
        return plant

    def witnesses(self, at: int, *numbers: str) -> list[int]:
        """A line outside its table that prints one of the numbers and is as it was; or none.

        Three digits may be the same by chance: then its line has to name the row, or be one of two.
        """
        table = next((rows for _, rows in self.tables() if at in rows), [at])
        name = cells(self.lines[at])[0].strip("* ") if len(table) > 1 else ""
        for number in (one.strip("+-%") for one in numbers):
            digits = len(number.replace(".", "").lstrip("0"))
            free = [one for one in range(len(self.lines)) if one not in (*table, *self.planted)]
            seen = [one for one in free if prints(self.lines[one], number)]
            if len(seen) <= sum(prints(self.first[one], number) for one in self.planted):
                continue  # as many tell it wrongly by now
            named = [one for one in seen if name and name in self.lines[one]]
            if digits > 3 or (digits == 3 and len(seen) > 1):
                return seen[:1]
            if digits == 3 and named:
                return named[:1]
        return []

    @property
    def planted(self) -> set[int]:
        """Lines that are no longer what they were."""
        return {at for at, line in enumerate(self.lines) if line != self.first[at]}

    def __post_init__(self) -> None:
        self.first = list(self.lines)


def prints(line: str, number: str) -> bool:
    return number in [one.strip("+-%") for one in NUMBER.findall(line)]


def cells(line: str) -> list[str]:
    return line.strip().strip("|").split("|")


def with_cell(line: str, nth: int, text: str) -> str:
    parts = line.split("|")
    first = 1 if line.lstrip().startswith("|") else 0
    parts[nth + first] = text
    return "|".join(parts)


def derived_cells(field: Field) -> list[tuple[int, int]]:
    """Rows and columns of cells that a table worked out."""
    found = []
    for head, rows in field.tables():
        titles = cells(field.lines[head])
        for row in rows:
            parts = cells(field.lines[row])
            for nth, part in enumerate(parts[1:], 1):
                derived = nth < len(titles) and DERIVED.search(titles[nth])
                if (derived or DERIVED.search(parts[0])) and NUMBER.search(part):
                    found.append((row, nth))
    return found


def value(text: str) -> float:
    return float(text.strip("*+% ").replace("+", ""))


def numbers(line: str) -> list[float]:
    return [value(text) for text in NUMBER.findall(line)]


def decimals(line: str, nth: int) -> int | None:
    match = PURE.match(cells(line)[nth])
    return len(match[1].strip("%").partition(".")[2]) if match else None


def base_of(field: Field, row: int, nth: int) -> int | None:
    """The row that the others of its table are compared with: it has no number in that column."""
    rows = next(rows for _, rows in field.tables() if row in rows)
    found = [one for one in rows if len(cells(field.lines[one])) > nth]
    bare = [one for one in found if not NUMBER.search(cells(field.lines[one])[nth])]
    return bare[0] if bare else None


def comes_out(field: Field, row: int, nth: int, off: float = 0.5, line: str = "") -> bool:
    """Whether a cell is, to so many last digits, what the numbers of its row and base row give."""
    line = line or field.lines[row]
    match = NUMBER.search(cells(line)[nth])
    if match is None:
        return False
    base = base_of(field, row, nth)
    ours = numbers(line)
    theirs = numbers(field.lines[base]) if base is not None else []
    made = {a - b for a in ours for b in (*ours, *theirs)}
    made |= {100 * (a - b) / b for a in ours for b in (*ours, *theirs) if b}
    made |= {sum(ours[:n]) / n for n in range(2, len(ours))}
    near = off * 10.0 ** -len(match.group().strip("%").partition(".")[2])
    near *= 1 + 1e-6
    return any(abs(abs(value(match.group())) - abs(one)) <= near for one in made)


def shows(field: Field, row: int, line: str) -> bool:
    """Whether a number that the row works out came out, and no longer does in its new line."""
    made = [nth for at, nth in derived_cells(field) if at == row]
    return any(comes_out(field, row, n) and not comes_out(field, row, n, 2.5, line) for n in made)
