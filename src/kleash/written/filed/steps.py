"""Steps and epochs that tables give, against the records that their numbers are.

Where a column has the best of each run, the step beside it is that at which the run has it. Where
the numbers of a row are all those of one step, its label names no other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from kleash.written.filed.aligned import Reading
from kleash.written.filed.columns import COURSES
from kleash.written.sought.lines import Labelled, Line, Token

LEAST = 3  # numbers of a row that are of another step than its label
Reached = tuple[Token, str, str]
"""A step of a table, the one that records have, and in which file."""


def false_bests(
    table: Labelled, right: Mapping[tuple[int, int, int], tuple[Reading, Token, int]]
) -> Iterator[Reached]:
    """Steps of bests that are others, where most of their column are not."""
    for at in table.counters:
        off, fine = list[Reached](), 0
        for (row, column), tokens in table.tokens.items():
            if column != at or len(tokens) != 1 or (figure := tokens[0].figure) is None:
                continue
            steps, file = _reached(row, right)
            if f"{figure.value:g}" in steps:
                fine += 1
            elif steps:
                off.append((tokens[0], sorted(steps)[0], file))
        if fine >= max(1, len(off)):
            yield from off


def _reached(
    row: int, right: Mapping[tuple[int, int, int], tuple[Reading, Token, int]]
) -> tuple[set[str], str]:
    """Where the bests in a row are reached; none where they are of several courses."""
    found = []
    for spot, (reading, token, entry) in right.items():
        if spot[0] == row and token.figure is not None:
            steps = reading.column.reached(entry, token.figure.half / reading.scale)[1]
            found += [(steps, reading.column.files[entry])] if steps else []
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
