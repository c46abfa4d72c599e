"""Which numbers of a report are to blame, where accounts do not come out: as few as explain it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import combinations

from kleash.documents.judge import Judged
from kleash.documents.numbered import Addresses, Numbered

FEW = 5  # numbers of a row of which one may be the difference of two


def acquitted(every: Sequence[Judged], addresses: Addresses) -> list[Judged]:
    """Without failures of numbers that follow in another way, of others than their own line."""
    right = {
        x
        for one in every
        if one.holds == "yes" and not one.is_quote and len(one.sources) <= 2
        for x in numbers_of(one)
    }

    def follows(one: Judged) -> bool:
        number, row = one.number, addresses.on(one.line)
        if number is None or (number in right and one.sources[0].line != one.line):
            return number is not None
        like = [x for x in row if x != number and x.printed == number.printed]
        pairs = [(x, y) for x, y in combinations(like, 2) if {x, y} != {*one.sources}]
        gaps = [abs(abs(x.value - y.value) - abs(number.value)) for x, y in pairs]
        return len(row) <= FEW and any(gap <= number.half for gap in gaps)

    return [one for one in every if one.holds != "no" or one.is_quote or not follows(one)]


def numbers_of(one: Judged) -> set[Numbered]:
    """A number and what it is made of."""
    return {*one.sources} | ({one.number} if one.number else set())


def blamed(
    every: Sequence[Judged], doubtful: Collection[int], right: Collection[str] = ()
) -> Iterator[tuple[Numbered, Judged]]:
    """The fewest numbers that explain what fails, each with an account that it breaks.

    Rows that are copies come first; what a log has is right, and blamed last.
    """
    fine = Counter(x.address for one in every if one.holds == "yes" for x in numbers_of(one))
    left = [one for one in every if one.holds == "no" and one.number is not None]
    while left:
        results = {one.number for one in left}
        failing = Counter(x for one in left for x in numbers_of(one))
        excess = {x: bad - fine[x.address] for x, bad in failing.items()}
        doubts = {x: (x.address not in right, x.line in doubtful, excess[x] > 0) for x in failing}
        worst = max(failing, key=lambda x: (doubts[x], excess[x], x in results, x.address))
        about = [one for one in left if worst in numbers_of(one)]
        yield worst, next((one for one in about if one.number == worst), about[0])
        left = [one for one in left if one not in about]
