"""Numbers of tables that a log has: found by their labels, their neighbours and themselves.

People and trainers name things differently: "A (no KL)" is `alf_nokl`, "success" is
`val-core/alfworld/success_rate`. A line whose numbers are nearly all those of one reading of the
logs is that, and the few that are not are slips, unless another reading that is as likely has them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from kleash.documents.marks import Mark, State, number_mark
from kleash.documents.page import Page
from kleash.imports.markdown.draft import Draft
from kleash.written.book import Book
from kleash.written.curves import Thread, threads_of
from kleash.written.filed.found import on_file, opened
from kleash.written.grids import grids
from kleash.written.logs import Held, Logs
from kleash.written.printed import Cell, Sheet, sheets
from kleash.written.relations import Node, node
from kleash.written.sought.joined import joined
from kleash.written.sought.lines import Labelled, Line, labelled, lines_of
from kleash.written.sought.measures import Measures, Place, measures
from kleash.written.sought.naming import Items, Namer, items, places_in
from kleash.written.sought.readings import Reading, Search
from kleash.written.sought.settled import LEARNT, RIVAL, SURE, Kept, Spot, accepted, settled


@dataclass(frozen=True)
class Sought:
    """The lines of tables, and by its number the readings of each, best first."""

    lines: Sequence[Line]
    found: Mapping[int, list[Reading]]
    known: Measures
    namer: Namer

    def kept(self) -> dict[Spot, Kept]:
        """What curves have for the numbers of tables."""
        return settled(self.lines, self.found, self.known)


def sought_in(
    every: Sequence[Sheet], threads: Sequence[Thread], page: Page | None = None
) -> Sought | None:
    """The readings of all lines of tables."""
    tables = [labelled(sheet, page) for sheet in every]
    known = measures(threads, list(dict.fromkeys(_asked(tables))))
    if known is None:
        return None
    namer = Namer(known.groups)
    search = Search(known, namer)
    lines = [line for table in tables for line in lines_of(table)]
    found = {nth: search.readings(line) for nth, line in enumerate(lines)}
    namer.learn(_votes(lines, found, known))
    for nth, one in found.items():
        search.learn(lines[nth], [r for r in one[:1] if r.score >= SURE and accepted(r)])
    for nth in sorted(found, key=lambda nth: lines[nth].whole):  # steps after the bests there
        if not any(accepted(one) and not one.slips for one in found[nth][:1]):
            found[nth] = search.readings(lines[nth])
            best = [r for r in found[nth][:1] if r.score >= SURE and accepted(r)]
            search.learn(lines[nth], best)
    return Sought(lines, found, known, namer)


def _asked(tables: Iterable[Labelled]) -> Iterable[Place]:
    """The places that labels name."""
    for table in tables:
        for text in (*table.columns, *(one for row in table.rows for one in row), table.heads):
            yield from places_in(text)
        for at in table.counters:
            for row in table.sheet.table.rows:
                yield from places_in(f"{table.columns[at]} {row[at]}")


def _votes(
    lines: Sequence[Line], found: Mapping[int, list[Reading]], known: Measures
) -> dict[str, set[Items]]:
    """Labels of lines that are surely of one group."""
    votes: dict[str, set[Items]] = defaultdict(set)
    for nth, readings in found.items():
        best = readings[0] if readings else None
        if best is None or best.score < LEARNT:
            continue
        near = [one for one in readings if one.score > best.score - RIVAL]
        groups = {known.units[unit].group for one in near for unit in {*one.units.tolist()} - {-1}}
        if len(groups) == 1:
            votes[groups.pop()].add(items(lines[nth].shared))
    return votes


def held_for(draft: Draft, logs: Logs, page: Page) -> dict[tuple[int, int], Held]:
    """What logs have for cells, those that are still open too."""
    tables = sheets(grids(draft))
    found = opened(tables, on_file(logs, tables), page)
    sought = sought_in(tables, joined(threads_of(logs)))
    kept = sought.kept() if sought else {}
    twice = _twice(kept, tables)
    for (line, column, nth), one in kept.items():
        if not nth and one.right and (line, column, nth) not in twice:
            own = Held(one.value, one.runs, one.file, printed=True)
            found.setdefault((line, column), own)
    return found


def _twice(kept: Mapping[Spot, Kept], tables: Sequence[Sheet]) -> set[Spot]:
    """Spots whose measurement is that of another in their row, or their column, too.

    One of the two is something else, and an open one is not to be guessed.
    """
    table = {line: at for at, sheet in enumerate(tables) for line in sheet.table.lines}
    told: dict[tuple[object, ...], set[Spot]] = defaultdict(set)
    for spot, one in kept.items():
        line, column, _ = spot
        for place in (("row", line), ("column", table[line], column)):
            told[*place, one.at].add(spot)
    return {spot for same in told.values() if len(same) > 1 for spot in same}


def traced(sought: Sought) -> dict[Node, Mark]:
    """The marks of all numbers of tables that a log has, by the number."""
    found = {}
    for one in sought.kept().values():
        number = one.token.number
        if number is not None and one.token.figure is not None:
            figure = one.token.figure
            shown = f"{one.value:.{max(0, figure.decimals)}f}" + figure.unit
            facts: dict[str, object] = {
                "value": shown, "true": one.value, "file": one.file, "runs": one.runs,
                "arm": one.arm,
            }  # fmt: skip
            state: State = "right" if one.right else "wrong"
            code = "check.log" if one.right else "check.not-log"
            found[node(number)] = number_mark(number, state, code, facts)
    return found


def corrected(book: Book, seen: Mapping[Node, Mark]) -> Book:
    """The tables with what the log has: sentences are held against that."""
    if not seen:
        return book
    made = []
    for sheet in book.sheets:
        cells = [_right(cell, seen.get(node(cell.number))) for cell in sheet.cells]
        made.append(replace(sheet, cells=cells))
    return Book(made, book.heads)


def _right(cell: Cell, mark: Mark | None) -> Cell:
    if mark is None:
        return cell
    wrong = mark.state == "wrong"  # 73.85 may be printed as 73.8 or 73.9
    value = float(str(mark.facts["value"]).strip("%")) if wrong else cell.figure.value
    return replace(cell, figure=replace(cell.figure, value=value, true=mark.facts["true"]))
