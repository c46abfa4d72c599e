"""Remarks beside the rows of a table of steps: "only A falls", "both rise", "B is at its best".

What a remark says of rising and falling is said of its row and the one above it, or the first. It
is false if neither bears it out; what it says of later rows is let pass.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kleash.imports.markdown.text import bare
from kleash.written.book import Book
from kleash.written.claimed.contrasts import TURN
from kleash.written.claimed.mentions import APART, KINDS
from kleash.written.claimed.readings import Shelf
from kleash.written.claimed.verdicts import arms_named
from kleash.written.marks import Mark
from kleash.written.printed import squeezed
from kleash.written.prose import Sentence

LEAST = 2  # arms
_B, _E = r"(?<![a-z])", r"(?![a-z])"
_ONLY = re.compile(rf"只有?|仅有?|唯有?|唯独|{_B}(?:only|alone){_E}")
_ALL = re.compile(
    rf"[都均]|双双|同[时步样]|一[起同]|[两二三四五]者|全部|所有|各[组个臂]|{_B}(?:both|all|every|each){_E}"
)
_TOP = re.compile(
    rf"(?:达到?|取得)(?:了|其)?(?:全程|历史)?(?:最[佳高好优]|峰值)|(?:最[佳高好优]|峰值)(?:点|步)?$|"
    rf"{_B}(?:(?:reaches|at|hits|is) (?:its|their) (?:best|peak|highest|maximum)|peaks){_E}"
)
_LIMITED = re.compile(
    rf"不|没|未|非|除|随后|之后|此后|接着|开始|继续|比|于|幅|预|可能|起|前|后|差|仍|"
    rf"{_B}(?:not|no|never|except|then|after|before|from|than|starts?|begins?|may|might|still|"
    rf"until|by|about|less|more|so far){_E}|n't|\d"
)
_PARTS = re.compile(r"[,;。，；、]|(?<![a-z])(?:but|and|while)(?![a-z])|而|但")


@dataclass(frozen=True)
class _Row:
    """A row of a table of steps: what each arm has there, above it, and in the first row."""

    shelf: Shelf
    at: int
    own: dict[int, float]
    earlier: tuple[dict[int, float], ...]
    whole: dict[int, list[float]]


def false_remarks(book: Book, every: Sequence[Shelf], spoken: Sequence[Sentence]) -> Iterator[Mark]:
    """Remarks on their own row that its numbers, and those above them, deny."""
    for shelf in every:
        if shelf.side.is_rows or not shelf.steps or shelf.side.is_metrics:
            continue
        table, filled = shelf.sheet.table, {one.column for one in shelf.sheet.cells}
        for column in range(1, len(table.header)):
            for row in _rows(shelf) if column not in filled else ():
                cells = table.rows[row.at]
                text = bare(cells[column]) if column < len(cells) else ""
                line = table.lines[row.at]
                for start, end in _spans(squeezed(text)):
                    if _is_false(row, text[start:end], line):
                        shown, title = text[start:end].strip(), table.header[column]
                        facts: dict[str, object] = {"value": title}
                        yield Mark(line, shown, "wrong", "check.not-winner", facts, "remark")


def _rows(shelf: Shelf) -> Iterator[_Row]:
    order = sorted(shelf.steps, key=shelf.steps.__getitem__)
    arms = {
        label
        for label, words in shelf.side.labels.items()
        if not words & KINDS and not APART.search(shelf.side.texts[label])
    }
    found = [
        {label: cell.figure.value for label, cell in shelf.line(at).cells.items() if label in arms}
        for at in order
    ]
    units = {cell.figure.unit for at in order for cell in shelf.line(at).cells.values()
             if cell.column in arms}  # fmt: skip
    whole = {label: [one[label] for one in found if label in one] for label in arms}
    for nth, (at, own) in enumerate(zip(order, found, strict=True)):
        if len(own) >= LEAST and len(units) == 1:
            yield _Row(shelf, at, own, (*found[nth - 1 : nth], *found[: min(nth, 1)]), whole)


def _spans(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for match in _PARTS.finditer(text):
        yield start, match.start()
        start = match.end()
    yield start, len(text)


def _is_false(row: _Row, text: str, line: int) -> bool:
    """Whether no reading of a remark holds for its row."""
    plain = squeezed(text)
    if _LIMITED.search(plain):
        return False
    named = arms_named(row.shelf, text, line) & row.own.keys()
    turns = {match.lastgroup for match in TURN.finditer(plain)}
    if _TOP.search(plain) and not turns and len(named) == 1:
        label = next(iter(named))
        return row.own[label] not in (max(row.whole[label]), min(row.whole[label]))
    if len(turns) != 1 or not row.earlier:
        return False
    way = 1 if turns == {"up"} else -1
    went = [_went(row, before, way) for before in row.earlier]
    if _ONLY.search(plain):
        return bool(named) and all(one != named for one in went)
    if _ALL.search(plain) and (not named or len(named) == len(row.own)):
        return all(one < row.own.keys() for one in went)
    return len(named) == 1 and not any(named <= one for one in went)


def _went(row: _Row, before: dict[int, float], way: int) -> set[int]:
    """The arms that went a way since another row."""
    return {
        label for label, v in row.own.items() if label in before and way * (v - before[label]) > 0
    }
