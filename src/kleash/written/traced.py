"""Columns of tables that a log has, known by their numbers: whatever report and log call them.

A column over steps whose numbers are nearly all those of one curve of a log is that curve, and the
few that are not are slips. So is a line over arms whose names lead to runs, and whose numbers are
nearly all the last, best or mean ones of one metric.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kleash.compare.arms import SEED, Replicate
from kleash.imports import names
from kleash.imports.markdown.labels import seed_of
from kleash.written.book import Book
from kleash.written.logs import Logs, coefficient_in
from kleash.written.marks import Mark, number_mark, printed_as
from kleash.written.printed import Cell, Figure, Sheet
from kleash.written.relations import Node, node

LEAST = 3  # numbers of a column that must be a curve's
SHARE = 0.6  # of its numbers
TELLING = 2  # digits
Marked = tuple[Cell, Mark]
STATISTICS = ("last", "max", "min", "first", "mean")


@dataclass(frozen=True)
class Thread:
    """A curve of a run, or the mean of those of several seeds."""

    group: str
    seed: int | None
    metric: str
    axis: str
    points: Mapping[float, float]
    file: str
    runs: int = 1

    def statistic(self, kind: str) -> float:
        """One number for the whole curve."""
        values = [self.points[at] for at in sorted(self.points)]
        made = {"last": values[-1], "first": values[0], "max": max(values), "min": min(values)}
        return made.get(kind, sum(values) / len(values))


def traced(book: Book, logs: Logs) -> dict[Node, Mark]:
    """The marks of all numbers of tables that a log has, by the number."""
    threads = _threads(logs)
    found: dict[Node, Mark] = {}
    for sheet in book.sheets:
        for cell, mark in (*_over_steps(sheet, threads), *_over_runs(sheet, threads)):
            found.setdefault(node(cell.number), mark)
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
    value = float(str(mark.facts["value"]).strip("%"))
    return replace(cell, figure=replace(cell.figure, value=value, true=mark.facts["true"]))


def _threads(logs: Logs) -> list[Thread]:
    """Every curve of every run, and the means over seeds."""
    found = []
    for arm in logs.arms:
        for run in arm.replicates:
            name, seed, file = _named(run, arm.name)
            for (metric, axis), curve in run.curves.items():
                points = dict(zip(curve.steps.tolist(), curve.values.tolist(), strict=True))
                if points:
                    found.append(Thread(name, seed, metric, axis, points, file))
    by_group: dict[tuple[str, str, str], list[Thread]] = defaultdict(list)
    for one in found:
        by_group[one.group, one.metric, one.axis].append(one)
    for (group, metric, axis), several in by_group.items():
        if len(several) > 1:
            steps = set.intersection(*(set(one.points) for one in several))
            points = {
                at: sum(one.points[at] for one in several) / len(several) for at in sorted(steps)
            }
            if points:
                made = Thread(group, None, metric, axis, points, several[0].file, len(several))
                found.append(made)
    return found


def _named(run: Replicate, arm: str) -> tuple[str, int | None, str]:
    """The name of a run without its seed, its seed, and its file: files have folders as names."""
    file = run.runs[0].where.file
    path = Path(file)
    name = (
        arm if names.spelling(path.stem) == names.spelling(arm) and not _general(path) else run.name
    )
    name = path.parent.name if _general(path) else name
    seed = SEED.search(name)
    return SEED.sub("", name) or name, int(seed[1]) if seed else run.seed, file


def _general(path: Path) -> bool:
    """Whether a file is called as many are, so that its folder is its name."""
    return bool(
        re.fullmatch(r"(?:metrics|train|log|history|results|progress|output)\d*", path.stem)
    )


# --- over steps


def _over_steps(sheet: Sheet, threads: Sequence[Thread]) -> Iterator[Marked]:
    if not sheet.counts:
        return
    for column in sorted({cell.column for cell in sheet.cells}):
        cells = {
            sheet.counts[cell.row]: cell
            for cell in sheet.cells
            if cell.column == column and not cell.part and cell.row in sheet.counts
        }
        best: tuple[int, dict[Cell, float], Thread] | None = None
        for thread in threads:
            if (thread.axis == "epoch") != (sheet.axis == "epoch"):
                continue
            known = {cell: thread.points[at] for at, cell in cells.items() if at in thread.points}
            scaled = _fitting(known)
            fits = sum(_is(cell.figure, value) for cell, value in scaled.items())
            if fits and (best is None or fits > best[0]):
                best = (fits, scaled, thread)
        if best is not None and _enough(best[0], list(best[1])):
            yield from ((cell, _mark(cell, value, best[2])) for cell, value in best[1].items())


def _fitting(known: Mapping[Cell, float]) -> dict[Cell, float]:
    """Values in the scale of a table: fractions as percentages, if more of them fit so."""
    ways = [{cell: scale * value for cell, value in known.items()} for scale in (1.0, 100.0)]
    return max(ways, key=lambda way: sum(_is(cell.figure, value) for cell, value in way.items()))


def _is(figure: Figure, value: float) -> bool:
    return abs(figure.value - value) <= figure.half * (1 + 1e-6) + 1e-12


def _enough(fits: int, cells: Sequence[Cell]) -> bool:
    """Whether so many numbers are not a curve's by chance."""
    telling = [cell for cell in cells if cell.figure.digits >= TELLING]
    distinct = {cell.figure.value for cell in telling}
    return fits >= max(LEAST, SHARE * len(cells)) and len(distinct) >= LEAST


def _mark(cell: Cell, value: float, thread: Thread) -> Mark:
    right = _is(cell.figure, value)
    shown = printed_as(value, "", cell.figure.decimals) + "%" * (cell.figure.unit == "%")
    facts: dict[str, object] = {
        "value": shown,
        "true": value, "file": thread.file, "runs": thread.runs, "arm": thread.group,
    }  # fmt: skip
    code = "check.log" if right else "check.not-log"
    return number_mark(cell.number, "right" if right else "wrong", code, facts)


# --- over runs


def _over_runs(sheet: Sheet, threads: Sequence[Thread]) -> Iterator[Marked]:
    """Lines whose rows or columns are runs: each cell is a statistic of one metric of its run."""
    groups = sorted({one.group for one in threads})
    for across in (False, True):
        aliases = sheet.columns if across else sheet.rows
        owners = {nth: group for nth, one in enumerate(aliases) if (group := _owner(one, groups))}
        twice = [group for group, count in Counter(owners.values()).items() if count > 1]
        owners = {nth: group for nth, group in owners.items() if group not in twice}
        if len(owners) < 2:
            continue
        lines: dict[int, list[Cell]] = defaultdict(list)
        for cell in sheet.cells:
            if not cell.part and (cell.column if across else cell.row) in owners:
                lines[cell.row if across else cell.column].append(cell)
        others = sheet.rows if across else sheet.columns
        seeds = {nth: seed_of(" ".join(others[nth])) for nth in lines}
        parts: dict[object, list[Cell]] = defaultdict(list)
        for nth, cells in lines.items():
            parts["seeds" if seeds[nth] is not None else nth] += cells
        for cells in parts.values():
            whose = {
                cell: (
                    owners[cell.column if across else cell.row],
                    seeds[cell.row if across else cell.column],
                )
                for cell in cells
            }
            yield from _told(whose, threads)


def _owner(aliases: Sequence[str], groups: Sequence[str]) -> str:
    """The group of runs that a row or column is of, by its name or by its coefficient."""
    for alias in aliases:
        same = [group for group in groups if names.spelling(group) == names.spelling(alias)]
        if same:
            return same[0]
    values = [float(m[1]) for one in aliases if (m := re.search(r"=\s*(\d+(?:\.\d+)?)$", one))]
    fit = [group for group in groups if values and coefficient_in(group) == values[0]]
    return fit[0] if len(fit) == 1 else ""


def _told(
    whose: Mapping[Cell, tuple[str, int | None]], threads: Sequence[Thread]
) -> Iterator[Marked]:
    best: tuple[int, dict[Cell, float], dict[Cell, Thread]] | None = None
    for metric in sorted({one.metric for one in threads}):
        mine = {(one.group, one.seed): one for one in threads if one.metric == metric}
        held = {cell: mine[key] for cell, key in whose.items() if key in mine}
        for kind in STATISTICS if held else ():
            scaled = _fitting({cell: one.statistic(kind) for cell, one in held.items()})
            fits = sum(_is(cell.figure, value) for cell, value in scaled.items())
            if fits and (best is None or fits > best[0]):
                best = (fits, scaled, held)
    if best is not None and _enough(best[0], list(best[1])):
        for cell, value in best[1].items():
            yield cell, _mark(cell, value, best[2][cell])
