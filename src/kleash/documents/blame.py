"""Which numbers of a report are to blame, where accounts do not come out: as few as explain it.

A number that follows in one way is not accused in another, and rows that are copies of others are
blamed before anything that they give.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence

from kleash.documents.boards import Table
from kleash.documents.judge import Judged
from kleash.documents.numbered import Numbered
from kleash.documents.search import EPS

FEW = 5  # numbers of a row of which one may be the difference of the first two


def acquitted(every: Sequence[Judged], tables: Sequence[Table]) -> list[Judged]:
    """Without failures of numbers that follow in another way."""
    right = {
        x.address
        for one in every
        if one.holds == "yes" and not one.is_quote and len(one.sources) <= 2
        for x in numbers_of(one)
    }
    beside = _Beside(tables)
    return [
        one
        for one in every
        if one.holds != "no" or one.is_quote or not _follows(one, right, beside)
    ]


class _Beside:
    """What stands in the cell of a number, and in its row."""

    def __init__(self, tables: Sequence[Table]) -> None:
        self.cells, self.rows = dict[str, list[Numbered]](), dict[str, list[Numbered]]()
        for table in tables:
            cells = defaultdict[tuple[int, int], list[Numbered]](list)
            rows = defaultdict[int, list[Numbered]](list)
            for (r, c, _), one in sorted(table.at.items()):
                cells[r, c].append(one)
                if c:
                    rows[r].append(one)
            for at, step in table.steps.items():
                cells[at].append(step)
            for (r, _), own in cells.items():
                self.cells |= {one.address: own for one in own}
                self.rows |= {one.address: rows[r] for one in own}


def numbers_of(one: Judged) -> set[Numbered]:
    """A number and what it is made of."""
    return {*one.sources} | ({one.number} if one.number else set())


def _follows(one: Judged, right: Collection[str], beside: _Beside) -> bool:
    number = one.number
    assert number is not None
    if number.address in right and one.sources[0].line != number.line:
        return True
    return _of_its_row(one, number, beside) or _of_its_cells(one, number, beside)


def _of_its_cells(one: Judged, number: Numbered, beside: _Beside) -> bool:
    """Whether other numbers of the same cells differ by it: "57.6 (−0.4)"."""
    if len(one.sources) != 2 or " - " not in one.claim.formula or "100" in one.claim.formula:
        return False
    cells = (beside.cells.get(x.address, [x]) for x in (number, *one.sources))
    told, first, second = cells
    return any(
        _is_gap(t, x, y)
        for t in told
        for x in first
        for y in second
        if (t, x, y) != (number, *one.sources)
    )


def _of_its_row(one: Judged, number: Numbered, beside: _Beside) -> bool:
    """Whether it is the difference of its row, where its column was read otherwise."""
    row = beside.rows.get(number.address, [])
    elsewhere = any(x.line != number.line for x in one.sources)
    if not elsewhere or not 2 < len(row) <= FEW or number not in row[2:]:
        return False
    if not number.is_signed and number is not row[-1]:
        return False
    first, second = row[:2]
    alike = {(x.decimals, x.is_share) for x in (number, first, second)}
    return len(alike) == 1 and _is_gap(number, first, second)


def _is_gap(number: Numbered, one: Numbered, other: Numbered) -> bool:
    off = abs(abs(one.value - other.value) - abs(number.value))
    return off <= number.half + one.half + other.half + EPS


def blamed(
    every: Sequence[Judged], doubtful: Collection[int], right: Collection[str] = ()
) -> Iterator[tuple[Numbered, Judged]]:
    """The fewest numbers that explain what fails, each with an account that it breaks.

    What a log has is right, and blamed last.
    """
    fine = Counter(x.address for one in every if one.holds == "yes" for x in numbers_of(one))
    left = [one for one in every if one.holds == "no" and one.number is not None]
    while left:
        failing = Counter(x.address for one in left for x in numbers_of(one))
        numbers = {x.address: x for one in left for x in numbers_of(one)}
        results = {one.number.address for one in left if one.number}
        weights = {
            at: (
                at not in right,
                numbers[at].line in doubtful,
                bad > fine[at],
                bad - fine[at],
                at in results,
                at,
            )
            for at, bad in failing.items()
        }
        worst = max(weights, key=lambda at: weights[at])
        about = [one for one in left if worst in {x.address for x in numbers_of(one)}]
        own = [one for one in about if one.number and one.number.address == worst]
        yield numbers[worst], (own or about)[0]
        left = [one for one in left if one not in about]
