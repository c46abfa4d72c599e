"""Cells that say who won their row, or who is higher in it, held against the numbers beside them.

Which way is better the table itself tells: what nearly all rows that name a winner follow, or what
their quantities mean. A row that alone does not is a slip.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kleash.imports.markdown.text import bare
from kleash.written.book import Book
from kleash.written.claimed.mentions import FREE, LEASHED, words_of
from kleash.written.claimed.readings import Shelf, single
from kleash.written.marks import Mark
from kleash.written.picks import LESS
from kleash.written.printed import is_total, squeezed
from kleash.written.prose import Sentence

LEAST = 3  # rows that show which way is better
LONGEST = 24  # letters of a cell that names a winner
_B, _E = r"(?<![a-z])", r"(?![a-z])"
_HIGHER = re.compile(
    rf"(?P<up>[更略稍较偏]高|{_B}higher{_E}|领先|占优)|(?P<down>[更略稍较偏]低|{_B}lower{_E}|落后)"
)
_DENIED = re.compile(rf"不|没|未|曾|比|于|{_B}(?:not|no|than){_E}")
_WINNER = re.compile(
    rf"胜者|胜出|赢家|更[好优高低]|领先|最[高低佳优好]|谁|{_B}(?:winner|best|wins|better|higher|lower|leader)"
)
_PRAISE = {
    1: re.compile(rf"[更略稍较]?[高好优](?!$^)|{_B}(?:higher|better|good|high){_E}"),
    -1: re.compile(rf"[更略稍较]?[低差]|{_B}(?:lower|worse|bad|low){_E}"),
}
_EITHER = re.compile(
    rf"变化|波动|标准差|回落|时间|耗时|步数|{_B}(?:change|std|drop|time|steps?){_E}"
)
_UP = frozenset(("accuracy", "success", "win", "reward", "throughput", "retention"))
_DOWN = frozenset(("loss", "time", "step time", "gpu", "cost", "memory", "spread", "range"))
_STEPS = re.compile(rf"步|轮|{_B}(?:steps?|epochs?)(?![a-z ]*\s?\d)")
_SCORE = re.compile(rf"性能|得分|分数|成绩|{_B}(?:performance|score|pass@)")


@dataclass(frozen=True)
class Row:
    """A row that names a winner: its line, the winner, and the grade of each label."""

    line: int
    text: str
    winner: int
    grades: Mapping[int, float]
    way: int
    """1 if more is better by what the row is called, -1 if less, 0 if that is not known."""


def false_verdicts(
    book: Book, every: Sequence[Shelf], spoken: Sequence[Sentence]
) -> Iterator[Mark]:
    """Winners that lost their row, and arms called higher that are lower in it."""
    for shelf in every:
        if shelf.side.is_rows:
            continue
        for column in range(1, len(shelf.sheet.table.header)):
            if _is_named(shelf, column):
                yield from _slips(list(_rows(shelf, column)), shelf.sheet.table.header[column])
                yield from _remarks(shelf, column)


def _is_named(shelf: Shelf, column: int) -> bool:
    """Whether a column holds words or names, not numbers of its own: 0.15 may be an arm."""
    table = shelf.sheet.table
    if not any(one.column == column and not one.part for one in shelf.sheet.cells):
        return True
    texts = [bare(row[column]) for row in table.rows if column < len(row)]
    others = [words for label, words in shelf.side.labels.items() if label != column]
    return bool(_WINNER.search(squeezed(table.header[column]))) and all(
        any(words_of(text) <= words for words in others) for text in texts
    )


def _mark(line: int, text: str, label: str) -> Mark:
    facts: dict[str, object] = {"value": label}
    return Mark(line, text, "wrong", "check.not-winner", facts, "winner")


def arms_named(shelf: Shelf, text: str, line: int) -> set[int]:
    """The labels that a cell names; of two arms with and without KL, "KL" is the one with it."""
    sentence = Sentence(text, [line] * (len(text) + 1))
    found = {
        label for _, label in single(shelf.side.named(sentence, 0, len(sentence.plain), arms=True))
    }
    if not found and re.match(r"[\W_]*kl(?![a-z=\d])", sentence.plain):
        sides = shelf.side.labels.items()
        free = [label for label, words in sides if FREE in words]
        leashed = [label for label, words in sides if LEASHED in words]
        if len(free) == len(leashed) == 1:
            return set(leashed)
    return found


def _rows(shelf: Shelf, column: int) -> Iterator[Row]:
    """The rows of which a column names the winner."""
    table = shelf.sheet.table
    told = _WINNER.search(squeezed(table.header[column]))
    for nth, row in enumerate(table.rows):
        text = bare(row[column]) if column < len(row) else ""
        if not text or len(text) > LONGEST or is_total(row[0]) or _STEPS.search(squeezed(row[0])):
            continue
        named = arms_named(shelf, text, table.lines[nth])
        grades = _grades(shelf, nth)
        grades.pop(column, None)
        if len(named) != 1 or len(grades) < 2 or not named <= grades.keys():
            continue
        winner = named.pop()
        if told or words_of(text) <= shelf.side.labels[winner]:
            way = _way(row[0])
            if way or not (_EITHER.search(squeezed(row[0])) or LESS.search(squeezed(row[0]))):
                yield Row(table.lines[nth], text, winner, grades, way)


def _grades(shelf: Shelf, row: int) -> dict[int, float]:
    """What each label has in a row: numbers, or else words of praise."""
    line = shelf.line(row)
    if len(line.cells) > 1:
        label = next(iter(line.cells))
        return {
            one: line.value(one) for one in shelf.scope(line, label) if not line.cells[one].part
        }
    cells = {
        label: squeezed(bare(shelf.sheet.table.rows[row][label]))
        for label in shelf.side.labels
        if label < len(shelf.sheet.table.rows[row])
    }
    found = {}
    for label, text in cells.items():
        ways = [way for way, words in _PRAISE.items() if words.search(text)]
        if len(ways) == 1 and not _DENIED.search(text):
            found[label] = float(ways[0])
    return found


def _way(label: str) -> int:
    words = words_of(label)
    up = words & _UP or _SCORE.search(squeezed(label))
    down = words & _DOWN
    return 0 if bool(up) == bool(down) else 1 if up else -1


def _slips(rows: Sequence[Row], title: str) -> Iterator[Mark]:
    """The rows whose winner is not the one that the others' rule gives."""
    known = [(row, row.way) for row in rows if row.way]
    ways = [
        way for way in (1, -1) if sum(_won(row, way) for row in rows) >= max(LEAST, len(rows) - 1)
    ]
    if len(rows) > LEAST and len(ways) == 1 and {row.way for row in rows} <= {0, ways[0]}:
        known = [(row, ways[0]) for row in rows]
    lost = [row for row, way in known if not _won(row, way)]
    if (
        len(lost) == 1
        and len(known) > 1
        and (_WINNER.search(squeezed(title)) or len(known) > LEAST)
    ):
        yield _mark(lost[0].line, lost[0].text, title)


def _won(row: Row, way: int) -> bool:
    return way * row.grades[row.winner] == max(way * one for one in row.grades.values())


def _remarks(shelf: Shelf, column: int) -> Iterator[Mark]:
    """Remarks that one of two arms is higher in a row of which it is lower."""
    table = shelf.sheet.table
    for nth, row in enumerate(table.rows):
        text = bare(row[column]) if column < len(row) else ""
        words = list(_HIGHER.finditer(squeezed(text)))
        if len(words) != 1 or _DENIED.search(squeezed(text)):
            continue
        named, line = arms_named(shelf, text, table.lines[nth]), shelf.line(nth)
        label = named.pop() if len(named) == 1 else -1
        scope = shelf.scope(line, label) if label in line.cells else []
        if len(scope) != 2 or any(line.cells[one].part for one in scope):
            continue
        ours, theirs = (line.value(label), *(line.value(one) for one in scope if one != label))
        if ours != theirs and (ours > theirs) != (words[0].lastgroup == "up"):
            yield _mark(table.lines[nth], text, table.header[column])
