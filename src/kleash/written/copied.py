"""Rows of tables that are copies of others: all their numbers, nearly all, or what is no number.

What chance makes so is none, nor is what a sentence calls the same.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from math import gcd, log10

from kleash.documents.marks import Mark
from kleash.documents.page import Page
from kleash.findings.record import digits
from kleash.imports import Number
from kleash.imports.markdown.draft import Draft, Printed
from kleash.imports.markdown.text import bare
from kleash.written.grids import Grid, Slot, grids
from kleash.written.printed import Sheet
from kleash.written.tables import value_of

DIGITS = 3
COMMON = 3  # different numbers that two rows have in common
COPIED = 6  # digits of a row that chance does not give twice
SHUFFLED = 4  # different numbers of two rows that chance does not mix up
LONG = 9  # digits of two cells that chance does not give twice
CROWD = 5  # units of the last digit within which numbers are nearly the same
ENOUGH = 2  # equal cells of a row that chance does not explain
SAME = 3  # equal cells of rows of which each tells little
_ITEM = re.compile(r"\s*[-*+•]\s+(?P<label>[^:：]{1,60})[:：](?P<rest>.*\d.*)$")
_BEGINS = re.compile(r"起点|起始|初始|首步|(?:first|start|initial)(?![a-z])", re.I)
_EXTREME = re.compile(r"最[佳好优高低大小]|(?:best|peak|max|min|highest|lowest)(?![a-z])", re.I)
UNLIKELY = 3.5  # the log of how many rows there might be, of which two are not the same by chance
CERTAIN = 4.0  # the same for rows that are not quite the same


def copied_rows(draft: Draft) -> Iterator[Mark]:
    """Rows of one table with the same numbers, where nobody says that they are the same."""
    every = grids(draft)
    cells: dict[int, list[Printed]] = defaultdict(list)
    for cell in draft.printed:
        cells[cell.line].append(cell)
    names = {line: name for g in every for line, name in zip(g.table.lines, g.names, strict=True)}
    # Which of the two is the copy nobody can tell: what is blamed for a sum may be the other.
    for line, other in (*copies(every), *sorted(_near_copies(every)), *_from_table_to_table(every)):
        both = [bare(names[at]).strip() for at in (line, other)]
        # What only rises has its least where it begins.
        starts = any(map(_BEGINS.match, both)) and any(map(_EXTREME.match, both))
        if not starts and not _declared(draft, cells[line], cells[other]):
            for copy, original in ((line, other), (other, line)):
                facts = {"other": original}
                yield Mark(copy, names[copy], "unsupported", "check.copied", facts, "row")


def copied_items(page: Page, sheets: Sequence[Sheet]) -> Iterator[Mark]:
    """Items of a list that give other things the same numbers, where no table has them twice."""
    rows = Counter(one for sheet in sheets for line in sheet.table.rows for one in _decimals(line))
    last: tuple[int, str, str] | None = None
    for nth, (start, end) in enumerate(page.lines, 1):
        match = _ITEM.match(bare(page.text[start:end]))
        label, rest = (match["label"].strip("* "), match["rest"].strip("* ")) if match else ("", "")
        told = {one for one in re.findall(r"\d+\.\d+", rest) if len(one) > DIGITS}
        again = last is not None and rest == last[2] and label != last[1] and len(told) >= COMMON
        if last and again and max(rows[one] for one in told) < ENOUGH:
            for at, other, name in ((nth, last[0], label), (last[0], nth, last[1])):
                yield Mark(at, name, "unsupported", "check.copied", {"other": other}, "item")
        last = (nth, label, rest) if match else None


def _decimals(texts: Sequence[str]) -> set[str]:
    """The numbers with decimals of a row."""
    return {one for text in texts for one in re.findall(r"\d+\.\d+", text)}


def _all_equal(
    left: Mapping[Slot, Number], right: Mapping[Slot, Number], least: int, crowded: set[Slot]
) -> list[Number]:
    """The numbers of two rows, if all are equal and enough of them have digits that tell."""
    if left.keys() != right.keys():
        return []
    # So many seconds for each of 60 steps are as many minutes for all: no copy.
    if any((left[at].value, left[at].unit) != (right[at].value, right[at].unit) for at in left):
        return []
    telling = [one for at, one in left.items() if digits(one) > 1]
    own = [one for at, one in left.items() if digits(one) > 1 and at not in crowded]
    telling = telling if len(telling) >= SHUFFLED else own
    enough = len(telling) >= ENOUGH and len({one.value for one in telling}) >= least
    return telling if enough and sum(map(digits, telling)) >= COPIED else []


def _crowded(grid: Grid, line: int) -> set[Slot]:
    """The slots in which a third line has nearly the number of this one: that says nothing."""
    found = set()
    for slot, one in grid.line(line).items():
        room = CROWD * 10.0 ** -(one.decimals or 0)
        values = [each.value or 0.0 for each in grid.column(slot).values()]
        if sum(abs(each - (one.value or 0.0)) <= room for each in values) > ENOUGH:
            found.add(slot)
    return found


def _shuffled(left: Mapping[Slot, Number], right: Mapping[Slot, Number]) -> bool:
    """Whether two rows hold the same numbers in another order: a copy in which two were swapped."""
    ours, theirs = (
        Counter((one.value, one.unit) for one in row.values() if digits(one) >= DIGITS)
        for row in (left, right)
    )
    return left.keys() == right.keys() and ours == theirs and len(ours) >= SHUFFLED


def copies(every: Sequence[Grid], *, few: bool = False) -> Iterator[tuple[int, int]]:
    """Lines of tables that have the same numbers as another line of theirs; `few`: or just one."""
    for grid in every:
        rows = [grid.line(at) for at in range(len(grid.table.lines))]
        for one, two in combinations(range(len(rows)), 2):
            same = _all_equal(rows[one], rows[two], 1 if few else ENOUGH, _crowded(grid, one))
            again = _is_twice(grid, one, two) or _is_unlikely(grid, one, two)
            if same or again or _shuffled(rows[one], rows[two]):
                yield grid.table.lines[one], grid.table.lines[two]


def _from_table_to_table(every: Sequence[Grid]) -> Iterator[tuple[int, int]]:
    """The one row of a label that two tables of one form have alike: under two epochs, say."""
    for one, two in combinations(every, 2):
        if one.titles != two.titles or len(one.names) < SAME:
            continue
        same = []
        if len({*one.names} & {*two.names}) < SAME:
            continue
        for at, name in enumerate(one.names):
            there = [nth for nth, other in enumerate(two.names) if other == name]
            counted = re.fullmatch(r"\d{2,}", bare(name).replace(",", "")) and at
            trained = re.search(r"\d\.\d", bare(name))  # by its coefficient; a start stays as it is
            if (counted or trained) and len(there) == 1:
                ours, theirs = one.line(at), two.line(there[0])
                enough = SHUFFLED if counted else SHUFFLED + 1
                told = _all_equal(ours, theirs, enough, set())
                same += [(at, there[0])] if len(told) >= enough else []
        if len(same) == 1:
            at, there_ = same[0]
            yield one.table.lines[at], two.table.lines[there_]


def _is_twice(grid: Grid, one: int, two: int) -> bool:
    """Whether two rows are the same in all, their labels too."""
    texts = [grid.table.rows[at] for at in (one, two)]
    measured = [number for number in grid.line(one).values() if number.decimals]
    return len(measured) >= ENOUGH and texts[0] == texts[1]


def _is_unlikely(grid: Grid, one: int, two: int) -> bool:
    """Whether two rows are the same but for their labels, and by no chance."""
    ours, theirs = (grid.table.rows[at] for at in (one, two))
    measured = {text: at for at, text in enumerate(ours) if at and re.search(r"\d", text)}
    long = [text for text in measured if len(re.sub(r"\D", "", text).lstrip("0")) > 1]
    if ours[1:] != theirs[1:] or len(long) < ENOUGH:
        return False
    if len(measured) < SAME:  # two long numbers, "~59,839 tokens", tell as much
        return sum(len(re.sub(r"\D", "", text)) for text in long) >= LONG
    return sum(_told(grid, (one, two), at) for at in measured.values()) >= UNLIKELY


def _told(grid: Grid, rows: tuple[int, int], at: int) -> float:
    """How much it tells that two rows have the same in a column: the log of what it may be.

    What a third row has as well tells nothing.
    """
    known = grid.column((at, ""))
    text = grid.table.rows[rows[0]][at]
    if text in [row[at] for nth, row in enumerate(grid.table.rows) if nth not in rows]:
        return 0.0
    if set(rows) <= known.keys():
        scale = 10.0 ** (known[rows[0]].decimals or 0)
        values = [round((one.value or 0.0) * scale) for one in known.values()]
        units = (max(values) - min(values)) / max(1, gcd(*values))  # steps are of every 250th
        return log10(1 + units)
    return min(float(ENOUGH), len(re.findall(r"\d", text)))


def _near_copies(every: Sequence[Grid]) -> set[tuple[int, int]]:
    """Lines that have nearly all their numbers, with all their decimals, from one other line."""
    found = set[tuple[int, int]]()
    for grid in every:
        rows = [grid.line(at) for at in range(len(grid.table.lines))]
        near = [
            (grid.table.lines[one], grid.table.lines[two])
            for one, two in combinations(range(len(rows)), 2)
            if _nearly_equal(rows[one], rows[two], _crowded(grid, one))
            or _is_nearly_unlikely(grid, one, two)
        ]
        often = Counter(line for pair in near for line in pair)
        found |= {pair for pair in near if max(often[line] for line in pair) == 1}
    return found


def _nearly_equal(
    left: Mapping[Slot, Number], right: Mapping[Slot, Number], crowded: set[Slot]
) -> bool:
    same = [at for at in left.keys() & right.keys() if left[at].value == right[at].value]
    own = [left[at] for at in same if at not in crowded]
    telling = {one.value for one in own if one.decimals and digits(one) >= DIGITS}
    enough = len(telling) >= COMMON and 4 * len(same) >= 3 * len(left)
    return enough and left.keys() == right.keys() and len(same) < len(left)


def _is_nearly_unlikely(grid: Grid, one: int, two: int) -> bool:
    """Whether two rows differ in one cell and their label, and by no chance."""
    ours, theirs = (grid.line(at) for at in (one, two))
    same = [at for at in ours if at in theirs and ours[at].value == theirs[at].value]
    texts = {ours[at].text for at in same if digits(ours[at]) > 1}
    if ours.keys() != theirs.keys() or len(texts) < SAME or len(same) != len(ours) - 1:
        return False
    return sum(_told(grid, (one, two), at) for at, part in same if not part) >= CERTAIN


def _declared(draft: Draft, ours: Sequence[Printed], theirs: Sequence[Printed]) -> bool:
    """Whether a sentence says that the arms of two rows are the same."""
    one, other = (
        {cell.sense.arm for cell in row if value_of(cell) is not None} for row in (ours, theirs)
    )
    return len(one) == len(other) == 1 and any(
        "same" in claim.judgements and one | other == set(claim.arms)
        for claim in draft.source.claims
    )
