"""Titles of two columns that were exchanged: each holds what other tables have under the other's.

A title out of its count ("shot 1, 2, 4, 3") is enough where all others follow it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from kleash.imports.markdown.text import bare
from kleash.written.marks import Mark
from kleash.written.printed import Cell, Sheet
from kleash.written.scripts import arms_said
from kleash.written.told.things import column_keys, row_keys

TELLING = 3  # digits of a number that is not another's by chance
FOUND = 2  # numbers of each column that stand under the other's title elsewhere
RARELY = 3  # times as many as stand under their own
COUNTED = 4  # titles that count
_COUNT = re.compile(r"([A-Za-z\u4e00-\u9fff]+)\s?(\d+)")


def exchanged_titles(sheets: Sequence[Sheet]) -> Iterator[Mark]:
    """The headers of tables in which two titles stand in each other's place."""
    owners = _owners(sheets)
    for sheet in sheets:
        yield from _out_of_count(sheet)
        columns: dict[int, list[Cell]] = defaultdict(list)
        for cell in sheet.cells:
            if not cell.part and _tells(cell):
                columns[cell.column].append(cell)
        for left, right in combinations(sorted(columns), 2):
            if _exchanged(sheet, columns[left], columns[right], owners):
                yield _mark(sheet, left, right)


def _mark(sheet: Sheet, left: int, right: int) -> Mark:
    one, other = (bare(sheet.table.header[at]) for at in (left, right))
    line = sheet.table.where.line or sheet.line
    facts = {"one": one, "other": other}
    return Mark(line, f"{one} | {other}", "wrong", "check.titles", facts, "header")


def _tells(cell: Cell) -> bool:
    return cell.figure.decimals > 0 and cell.figure.digits >= TELLING


def _owners(sheets: Sequence[Sheet]) -> dict[float, list[tuple[int, frozenset[str]]]]:
    """By number, the tables that have it and the names of its row and column there."""
    found: dict[float, list[tuple[int, frozenset[str]]]] = defaultdict(list)
    for sheet in sheets:
        arms = arms_said(" ".join(sheet.table.headings[-1:]))
        above = {f"#{arm}" for arm in arms} if len(arms) == 1 else set()
        for cell in sheet.cells:
            if not cell.part and _tells(cell):
                keys = row_keys(sheet, cell.row) | column_keys(sheet, cell.column) | above
                found[abs(cell.figure.value)].append((sheet.nth, keys))
    return found


def _exchanged(
    sheet: Sheet, left: Sequence[Cell], right: Sequence[Cell],
    owners: Mapping[float, Sequence[tuple[int, frozenset[str]]]],
) -> bool:  # fmt: skip
    """Whether the numbers of two columns stand elsewhere under each other's title, and only so."""
    ours, theirs = (column_keys(sheet, cells[0].column) for cells in (left, right))
    ours, theirs = ours - theirs, theirs - ours
    if not ours or not theirs:
        return False
    for cells, own, other in ((left, ours, theirs), (right, theirs, ours)):
        here, away = set[float](), set[float]()
        for value in {abs(cell.figure.value) for cell in cells}:
            keys = [one for nth, one in owners[value] if nth != sheet.nth]
            mine, its = (any(side & one for one in keys) for side in (own, other))
            if mine != its:  # a number of both tells nothing
                (here if mine else away).add(value)
        if len(away) < FOUND or RARELY * len(here) > len(away):
            return False
    return True


def _out_of_count(sheet: Sheet) -> Iterator[Mark]:
    """Titles that count, all in order but two that stand in each other's place."""
    matches = [_COUNT.fullmatch(bare(title)) for title in sheet.table.header]
    found = [(at, match[1], int(match[2])) for at, match in enumerate(matches) if match]
    numbers = [number for *_, number in found]
    odd = [
        at
        for at, pair in enumerate(zip(numbers, sorted(numbers), strict=True))
        if pair[0] != pair[1]
    ]
    one_word = len({word for _, word, _ in found}) == 1 and len(set(numbers)) == len(numbers)
    if len(found) >= COUNTED and one_word and len(odd) == 2:
        yield _mark(sheet, found[odd[0]][0], found[odd[1]][0])
