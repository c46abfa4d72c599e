"""Errors planted in reports by a seed: seven kinds, one to a line, knowing nothing of the checker.

It works on the lines of a text with a few patterns of its own, so that what is found is not what
the reader of reports happens to understand.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass

NUMBER = re.compile(r"(?<![\w.~\-/])[+-]?\d+\.\d+%?(?![\w.\-/])")
DASHES = re.compile(r"\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)+\|?\s*")
DERIVED = re.compile(r"差|vs|平均|变化|mean|avg|average|diff|delta|Δ|gap|change|gain|提升", re.I)
PLACE = re.compile(r"((?:step|epoch)\s*[(（]?\s*|第\s*)(\d+)", re.I)
BEST = re.compile(r"最佳|最小|最优|峰值|达到|best|peak|lowest|minimum|highest", re.I)
CHINESE = re.compile(r"[\u4e00-\u9fff]")
WORDS = {
    "zh": ("显著", "明显", "大幅", "稳定地", "始终"),
    "en": ("significantly", "clearly", "substantially", "consistently", "dramatically"),
}
ENDS = {
    "zh": (
        "，差异在统计上显著",
        "，说明训练明显更稳定",
        "，证明该配置最优",
        "（p < 0.01）",
        "，收敛更快",
    ),
    "en": (
        ", a statistically significant difference",
        ", which clearly shows better stability",
        ", which proves that it is optimal",
        " (p < 0.01)",
        ", and it converges faster",
    ),
}


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

    def put(self, at: int, text: str, kind: str) -> Plant | None:
        """Change a line, if it was not touched and does change."""
        if at in self.touched or text == self.lines[at]:
            return None
        plant = Plant(kind, at + 1, self.lines[at], text)
        self.lines[at] = text
        self.touched.add(at)
        return plant


def cells(line: str) -> list[str]:
    return line.strip().strip("|").split("|")


def with_cell(line: str, nth: int, text: str) -> str:
    parts = line.split("|")
    first = 1 if line.lstrip().startswith("|") else 0
    parts[nth + first] = text
    return "|".join(parts)


def digit_changed(number: str, rng: random.Random, *, last: bool = False) -> str:
    """One digit of a number changed: the last by one, or any of the first three that tell."""
    at = [i for i, letter in enumerate(number) if letter.isdigit()]
    leading = next((k for k, i in enumerate(at) if number[i] != "0"), 0)
    spot = at[-1] if last else rng.choice(at[leading : leading + 3])
    old = int(number[spot])
    new = (
        (old + rng.choice((1, -1))) % 10
        if last
        else rng.choice([d for d in range(1, 10) if d != old])
    )
    if last and abs(new - old) != 1:
        new = old - 1 if old else 1
    return number[:spot] + str(new) + number[spot + 1 :]


def changed_in(text: str, rng: random.Random, *, last: bool) -> str:
    found = [m for m in NUMBER.finditer(text) if len(re.sub(r"\D", "", m.group()).lstrip("0")) > 1]
    if not found:
        return text
    match = rng.choice(found)
    return (
        text[: match.start()] + digit_changed(match.group(), rng, last=last) + text[match.end() :]
    )


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


def arithmetic(field: Field) -> Plant | None:
    every = derived_cells(field)
    if not every:
        return None
    row, nth = field.rng.choice(every)
    part = cells(field.lines[row])[nth]
    signed = re.search(r"[+-](?=\d)", part)
    if signed and field.rng.random() < 0.3 and re.search(r"[1-9]", part):
        turned = part.replace(signed.group(), "+" if signed.group() == "-" else "-", 1)
        return field.put(row, with_cell(field.lines[row], nth, turned), "arithmetic")
    return field.put(
        row, with_cell(field.lines[row], nth, changed_in(part, field.rng, last=False)), "arithmetic"
    )


def rounding(field: Field) -> Plant | None:
    """The last digit of a number that was worked out, or is quoted in a sentence."""
    quotes = [at for at in field.prose() if re.search(r"\d\.\d{2,}", field.lines[at])]
    every = derived_cells(field)
    if quotes and (not every or field.rng.random() < 0.5):
        at = field.rng.choice(quotes)
        found = list(re.finditer(r"(?<![\w.])\d+\.\d{2,}%?(?![\w.])", field.lines[at]))
        if not found:
            return None
        match = field.rng.choice(found)
        text = field.lines[at]
        new = digit_changed(match.group(), field.rng, last=True)
        return field.put(at, text[: match.start()] + new + text[match.end() :], "rounding")
    if not every:
        return None
    row, nth = field.rng.choice(every)
    part = cells(field.lines[row])[nth]
    return field.put(
        row, with_cell(field.lines[row], nth, changed_in(part, field.rng, last=True)), "rounding"
    )


def numeric(line: str) -> list[int]:
    """The cells of a row, but the first, that hold a number with decimals."""
    return [nth for nth, part in enumerate(cells(line)) if nth and NUMBER.search(part)]


def copied(field: Field) -> Plant | None:
    """A row's numbers put over those of another row of its table."""
    tables = [
        rows
        for _, rows in field.tables()
        if sum(len(numeric(field.lines[r])) > 1 for r in rows) > 1
    ]
    if not tables:
        return None
    rows = [row for row in field.rng.choice(tables) if len(numeric(field.lines[row])) > 1]
    source, target = field.rng.sample(rows, 2)
    if target in field.touched or source in field.touched:
        return None
    if numeric(field.lines[source]) != numeric(field.lines[target]):
        return None
    label = cells(field.lines[target])[0]
    return field.put(target, with_cell(field.lines[source], 0, label), "copied")


def swapped(field: Field) -> Plant | None:
    """Two measured numbers of a row, each in the other's column."""
    rows = [
        (head, row)
        for head, rows in field.tables()
        for row in rows
        if len(numeric(field.lines[row])) > 1
    ]
    if not rows:
        return None
    head, row = field.rng.choice(rows)
    titles = cells(field.lines[head])
    nths = [
        n for n in numeric(field.lines[row]) if n < len(titles) and not DERIVED.search(titles[n])
    ]
    if len(nths) < 2:
        return None
    one, other = field.rng.sample(nths, 2)
    parts = cells(field.lines[row])
    if parts[one].strip() == parts[other].strip():
        return None
    line = with_cell(field.lines[row], one, parts[other])
    return field.put(row, with_cell(line, other, parts[one]), "swapped")


def word(field: Field) -> Plant | None:
    """A word or half a sentence for which nothing in the report speaks."""
    prose = [at for at in field.prose() if not field.lines[at].rstrip().endswith((":", "：", "**"))]
    if not prose:
        return None
    at = field.rng.choice(prose)
    line = field.lines[at].rstrip()
    end = field.rng.choice(ENDS[field.language])
    stop = line[-1] if line[-1] in "。.；;！!" else ""
    return field.put(at, line[: len(line) - len(stop)] + end + stop, "word")


def best_step(field: Field) -> Plant | None:
    """Another step or epoch beside a best, or in a sentence on one."""
    lines = [
        at
        for at, line in enumerate(field.lines)
        if BEST.search(line) and PLACE.search(line) and not line.startswith("#")
    ]
    lines = [at for at in lines if re.search(r"\d\.\d", field.lines[at])]
    if not lines:
        return None
    at = field.rng.choice(lines)
    match = field.rng.choice(list(PLACE.finditer(field.lines[at])))
    old = int(match[2])
    step = 5 if "step" in match[1].casefold() and old % 5 == 0 else 1
    new = old + step * field.rng.choice((-3, -2, -1, 1, 2))
    text = field.lines[at]
    if new <= 0:
        return None
    return field.put(at, f"{text[: match.start(2)]}{new}{text[match.end(2) :]}", "best step")


def typo(field: Field) -> Plant | None:
    """A digit of a measured number."""
    rows = [
        (head, row) for head, rows in field.tables() for row in rows if numeric(field.lines[row])
    ]
    if not rows:
        return None
    head, row = field.rng.choice(rows)
    titles = cells(field.lines[head])
    nths = [
        n for n in numeric(field.lines[row]) if n < len(titles) and not DERIVED.search(titles[n])
    ]
    if not nths:
        return None
    nth = field.rng.choice(nths)
    part = cells(field.lines[row])[nth]
    return field.put(
        row, with_cell(field.lines[row], nth, changed_in(part, field.rng, last=False)), "typo"
    )


KINDS: dict[str, Callable[[Field], Plant | None]] = {
    "arithmetic": arithmetic,
    "rounding": rounding,
    "copied": copied,
    "swapped": swapped,
    "word": word,
    "best step": best_step,
    "typo": typo,
}


def planted(
    text: str, seed: int, count: int = 20, kinds: tuple[str, ...] = ()
) -> tuple[str, list[Plant]]:
    """A text with so many errors, of all kinds in turn as far as it has places for them."""
    language = "zh" if len(CHINESE.findall(text)) > 50 else "en"
    field = Field(text.split("\n"), language, random.Random(seed), set())
    plants: list[Plant] = []
    every = list(kinds or KINDS)
    tries = 0
    while len(plants) < count and tries < 60 * count:
        kind = every[(len(plants) + tries // 20) % len(every)]
        plant = KINDS[kind](field)
        tries += 1
        if plant is not None:
            plants.append(plant)
    return "\n".join(field.lines), plants
