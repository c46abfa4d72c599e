"""Steps and epochs that tables give, against the records that their numbers are.

Where a column has the best of each run, the step beside it is that at which the run has it. Where
the numbers of a row are all those of one step, its label names no other.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kleash.imports import Number
from kleash.imports.markdown.text import bare
from kleash.written.filed.aligned import Reading
from kleash.written.filed.columns import COURSES
from kleash.written.sought.lines import Labelled, Line, Token

LEAST = 3  # numbers of a row that are of another step than its label
# A cell that is a step: "checkpoint-200", "E3", "第 3 轮".
_STEP = re.compile(
    r"(?:[a-z]{0,10}[-_ ])?(?:e|ep|epoch|step|checkpoint|ckpt|第)[\s_=#-]*(\d+)\s?(?:轮|步)?", re.I
)
Reached = tuple[Token, str, str]
"""A step of a table, the one that records have, and in which file."""
_BEST = re.compile(r"best|peak|max|highest|top|最[佳好高优]|峰", re.I)
_TAKEN = re.compile(r"均|合计|mean|avg|average|total|median|中位", re.I)  # rows that are no runs
Tops = Mapping[tuple[int, int, int], tuple[set[str], str]]
"""By number of a table, where its course has it as the highest or lowest, and in which file."""


@dataclass(frozen=True)
class Stated:
    """A step that a table gives in a row, and the columns of whose numbers it may be said.

    `number` is none if the cell is read as a label.
    """

    row: int
    column: int
    step: str
    text: str
    number: Number | None
    of: tuple[int, ...]


def false_bests(
    table: Labelled, every: Iterable[tuple[Line, Sequence[Reading]]]
) -> Iterator[tuple[Stated, str, str]]:
    """Steps of bests that are others, where most of their column are not."""
    tops = _tops(every)
    groups: dict[tuple[int, bool], list[Stated]] = defaultdict(list)
    for one in _stated(table):
        groups[one.column, one.number is None].append(one)
    for stated in groups.values():
        off, fine = list[tuple[Stated, str, str]](), 0
        for one in stated:
            steps, file = _reached(one, tops)
            if one.step in steps:
                fine += 1
            elif steps:
                off.append((one, sorted(steps)[0], file))
        if fine >= max(1, len(off)):
            yield from off


def _stated(table: Labelled) -> Iterator[Stated]:
    """The steps in a table's cells: alone, as "checkpoint-200", or beside a number."""
    counters = [at for at in table.counters if _is_whole(table, at)]
    for nth, row in enumerate(table.sheet.table.rows):
        if _TAKEN.search(row[0]):
            continue
        for at, text in enumerate(row):
            tokens = table.tokens.get((nth, at), [])
            figures = [one.figure for one in tokens if one.figure is not None]
            whole = [one for one in tokens if one.figure and one.figure.decimals <= 0]
            if at in counters and len(figures) == len(whole) == 1:
                number, figure = whole[0].number, figures[0]
                of = _beside(table, at) if len(counters) == 1 else (at + 1 if at == 1 else at - 1,)
                yield Stated(nth, at, f"{figure.value:g}", text, number, of)
            elif len(figures) == 2 and len(whole) == 1 and whole[0].figure is not None:
                yield Stated(nth, at, f"{whole[0].figure.value:g}", text, whole[0].number, (at,))
            elif not tokens and (found := _STEP.fullmatch(bare(text).strip())):
                yield Stated(nth, at, f"{float(found[1]):g}", bare(text), None, _beside(table, at))


def _beside(table: Labelled, at: int) -> tuple[int, ...]:
    """The columns beside one; those of bests alone, if there are any."""
    beside = [one for one in (at - 1, at + 1) if 0 < one < len(table.columns)]
    return tuple(one for one in beside if _BEST.search(table.columns[one])) or tuple(beside)


def _is_whole(table: Labelled, at: int) -> bool:
    """Whether a column has whole numbers only."""
    figures = [one.figure for (_, column), some in table.tokens.items() if column == at
               for one in some]  # fmt: skip
    return all(figure is None or figure.decimals <= 0 for figure in figures)


def _tops(every: Iterable[tuple[Line, Sequence[Reading]]]) -> Tops:
    """The steps of all numbers that are bests in a reading of their line without slips."""
    found = dict[tuple[int, int, int], tuple[set[str], str]]()
    for line, readings in every:
        for one in (one for one in readings if not (one.slips or one.against)):
            for token, entry in zip(line.tokens, one.entries, strict=True):
                if token.figure is None or entry < 0:
                    continue
                steps = one.column.reached(entry, token.figure.half / one.scale)[1]
                spot = token.row, token.column, token.nth
                known = found.get(spot, (set[str](), ""))[0]
                if steps:
                    found[spot] = known | steps, one.column.files[entry]
    return found


def _reached(one: Stated, tops: Tops) -> tuple[set[str], str]:
    """Where the bests in a row are reached; none where they are of several courses."""
    found = [
        top for (row, column, _), top in tops.items()
        if row == one.row and column in one.of
    ]  # fmt: skip
    common = set.intersection(*(steps for steps, _ in found)) if found else set[str]()
    return common, found[0][1] if found else ""


def false_labels(every: Iterable[tuple[Line, Sequence[Reading]]]) -> Iterator[Reached]:
    """Rows whose label names a step at which none of their numbers was measured."""
    for line, readings in every:
        best = readings[0]
        if line.down or best.slips or any(not one.against for one in readings):
            continue
        axes = {best.column.axes[at] for at in best.against}
        entries = {one for one in best.entries if one >= 0}
        steps = {best.column.codes[one, best.against[0]] for one in entries}
        if len(axes) == 1 and axes <= {*COURSES} and len(entries) >= LEAST and min(steps) >= 0:
            step = best.column.texts[best.against[0]][int(steps.pop())]
            yield line.tokens[0], f"{axes.pop()} {step}", best.column.files[min(entries)]
