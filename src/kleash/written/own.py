"""Tables that take something of the courses of other tables of their report: bests, ends, means.

They are searched as if the courses were logs. A number that is not what its line is of a course
stands against another number of the report; which of the two is wrong, nobody can tell.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

from kleash.written.curves import Thread
from kleash.written.fitting import is_typo
from kleash.written.marks import Mark, number_mark
from kleash.written.page import Page
from kleash.written.printed import Sheet, differ_in_number
from kleash.written.relations import Node, node
from kleash.written.sought.settled import RIVAL, Kept, Spot
from kleash.written.told.tracks import Course
from kleash.written.traced import sought_in

LEAST = 2  # arms of which a table has courses
SIZES = 3.0  # times
SLIPS = 3  # numbers that fit for each slip after the first
_OF_TWO = re.compile(r"\s[-−–/]\s|(?<![a-z])(?:vs|against)(?![a-z])|差|Δ|delta|diff")
_SEED = re.compile(r"seed|种子|(?<![a-z])s\d", re.I)
Source = tuple[tuple[int, ...], str]
"""The lines of a table that has courses, and of which quantity."""


def false_extracts(
    courses: Sequence[Course], sheets: Sequence[Sheet], page: Page, right: Collection[Node]
) -> Iterator[Mark]:
    """Numbers of tables that are not what their line is of courses of other tables."""
    sources = _sources(courses)
    for sheet in sheets:
        own = set(sheet.table.lines)
        wrong, fine = dict[Spot, Kept](), dict[Spot, float]()
        for (lines, _), threads in sources.items():
            if own & set(lines):
                continue
            sought = sought_in([sheet], threads, page)
            for spot, one in sought.kept().items() if sought else ():
                score = one.reading.score
                if one.right:
                    fine[spot] = max(score, fine.get(spot, score))
                elif spot not in wrong or score > wrong[spot].reading.score:
                    wrong[spot] = one
        for spot, one in wrong.items():
            number = one.token.number
            if number is None or node(number) in right or _ties(one) or _is_of_another_size(one):
                continue
            rivalled = spot in fine and fine[spot] >= one.reading.score - RIVAL
            if not rivalled and _mostly_fits(one) and not _of_a_sibling(sheet, spot, fine):
                yield _mark(one)


def _of_a_sibling(sheet: Sheet, spot: Spot, fine: Mapping[Spot, float]) -> bool:
    """Whether another column has what is extracted, and this is of another seed, or of a part."""
    titles, columns = sheet.table.header, {at[1] for at in fine}
    own = titles[spot[1]] if spot[1] < len(titles) else ""
    return any(
        ((_SEED.search(own) and differ_in_number(own, titles[at])) or own.endswith(titles[at]))
        and (spot[0], at, spot[2]) in fine
        for at in columns - {spot[1]}
        if at < len(titles)
    )


def _mostly_fits(one: Kept) -> bool:
    """Whether a reading has so few slips that it need not be of something else."""
    fits = sum(fit is True for fit in one.reading.fits)
    return one.reading.slips <= max(1, fits // SLIPS)


def _mark(one: Kept) -> Mark:
    number, figure = one.token.number, one.token.figure
    assert number is not None and figure is not None
    shown = f"{one.value:.{max(0, figure.decimals)}f}{figure.unit}"
    lines = [int(line) for line in one.file.split()]
    return number_mark(number, "wrong", "check.not-extract", {"value": shown, "lines": lines[:4]})


def _ties(one: Kept) -> bool:
    """Whether a step is another at which a course is as good, as it is printed."""
    points, figure = one.thread.points, one.token.figure
    return (
        figure is not None and one.value in points and points.get(figure.value) == points[one.value]
    )


def _is_of_another_size(one: Kept) -> bool:
    """Whether a number is nowhere near what it should be: then it is of something else."""
    figure = one.token.figure
    ours, theirs = abs(figure.value) if figure else 0.0, abs(one.value)
    if figure is None or is_typo(ours, theirs, figure.decimals):
        return False
    return max(ours, theirs) > SIZES * min(ours, theirs)


def _sources(courses: Sequence[Course]) -> dict[Source, list[Thread]]:
    """The courses of each quantity of each table, by arm, as if they came from a log."""
    found: dict[Source, dict[str, Thread]] = defaultdict(dict)
    for one in courses:
        quantity, _, arm = one.label.rpartition("·")
        group = one.arm or arm
        if not group or one.axis == "sample" or _OF_TWO.search(group):
            continue
        points = {at: figure.value for at, figure in one.points.items()}
        half = max(figure.half for figure in one.points.values())
        file = " ".join(map(str, one.lines))
        source = (tuple(sorted(one.lines)), one.quantity or quantity)
        thread = Thread(group, None, one.about or "value", one.axis, points, file, None, half)
        found[source].setdefault(group, thread)
    return {at: list(every.values()) for at, every in found.items() if len(every) >= LEAST}
