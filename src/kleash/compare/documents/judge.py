"""Claims with formulas, worked out: what holds, what does not, and what cannot be said.

What is printed stands for all numbers that would be printed so. A claim that misses what the
printed numbers give, and would be right by digits that were not printed, counts as a slip only in a
report whose other claims nearly all come out of the printed ones. Of what fails, as few numbers
are blamed as explain it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from math import isfinite, log
from typing import Any, Literal

import numpy as np

from kleash.compare.documents.formula import Formula, FormulaError, Undecided
from kleash.compare.read.markdown.page import Addresses, Numbered

NEARLY = 1 + 1e-6
ROUGH, FINE = 0.15, 0.05  # of a number that is said to be about so much; with three digits
MANY = 40  # numbers of a formula whose hidden digits are tried one by one
PLAIN = {0.0, 1.0, 2.0, 100.0}  # what formulas bring without being a limit
# How often a number that was worked out of others is a last digit off: of hidden digits, of printed
# ones by a slip; and the odds from which a report is taken to work with printed ones.
TELLING = 0.5
HIDDEN, SLIP, SURE = 0.2, 0.03, log(7)
COUNTED = log(20)  # that counts are worked with as they are printed
Holds = Literal["yes", "no", "nearly", "unsaid"]
State = Literal["right", "wrong", "unsupported", "unknown"]


@dataclass(frozen=True)
class Claim:
    """A number and what gives it; or words and what must hold for them; or what nothing shows."""

    at: str = ""
    """The address of the number, or the range of addresses."""
    line: int = 0
    words: str = ""
    formula: str = ""
    why: str = ""
    by: str = "model"
    """Who proposes it: a model, or numbers: of columns, of rows, of another table."""
    line_of: str = ""
    """Which line of which table it is one formula of, and of what kind."""

    @property
    def key(self) -> tuple[str, int, str]:
        """What it is about."""
        return self.at, self.line, self.words


@dataclass(frozen=True)
class Judged:
    """A claim about one number, or about words, and what came of it."""

    claim: Claim
    line: int
    text: str
    holds: Holds
    value: str = ""
    """What it should be."""
    sources: tuple[Numbered, ...] = ()
    is_quote: bool = False
    number: Numbered | None = None
    is_telling: bool = True
    """Whether digits that are not printed could well move it past the rounding of its own."""
    has_limit: bool = False
    """Whether its formula holds something against a limit that the line does not tell."""

    @property
    def is_worked_out(self) -> bool:
        """Whether it is a number that others give, and no quote."""
        return self.number is not None and not self.is_quote and len(self.sources) > 1

    @property
    def again(self) -> str:
        """The claim as it was given, and what the formula gives, for whoever is asked again."""
        claim, outcome = self.claim, "the formula is false"
        told: dict[str, object] = {"line": self.line, "words": claim.words}
        if claim.at:
            told = {"at": claim.at}
        if self.number is not None:
            outcome = f"the formula gives {self.value}, {self.number.address} is {self.text}"
        told["formula"] = claim.formula
        return f"you: {json.dumps(told, ensure_ascii=False)}\n  {outcome}"


def judged(addresses: Addresses, claims: Iterable[Claim]) -> list[Judged]:
    """Every claim that can be worked out; of several about one thing the first."""
    found = dict[tuple[object, ...], Judged]()
    for one in worked_out(addresses, claims):
        known = found.setdefault((one.line, one.number or one.claim.words), one)
        if known.holds == "unsaid" and one.holds != "unsaid":
            found[one.line, one.number or one.claim.words] = one
    return settled(list(found.values()))


def worked_out(addresses: Addresses, claims: Iterable[Claim]) -> Iterator[Judged]:
    """What comes of each claim; of those that nobody can work out nothing."""
    for claim in claims:
        try:
            tests = "steadier" in claim.formula
            values = addresses.measured if tests else addresses.values
            yield from list(_judged(addresses, values, claim))
        except Undecided as error:
            if 0 < claim.line <= addresses.count:
                yield Judged(replace(claim, why=str(error)), claim.line, claim.words, "unsaid")
        except FormulaError:
            continue  # an interpreter may err: what it says then says nothing


def _judged(addresses: Addresses, values: dict[str, float], claim: Claim) -> Iterator[Judged]:
    if not claim.formula:
        if 0 < claim.line <= addresses.count:
            yield Judged(claim, claim.line, claim.words, "unsaid")
        return
    formula = Formula.of(claim.formula, addresses.between)
    value = formula.value(values)
    known = addresses.numbers
    sources = tuple(known[one] for one in formula.addresses if one in known)
    if not claim.at:
        if np.ndim(value) == 0 and isinstance(value, bool | np.bool_) and sources:
            told = {one.value for one in known.values() if one.line == claim.line}
            limit = bool(formula.constants - PLAIN - told)
            holds: Holds = "yes" if value else "no"
            yield Judged(claim, claim.line, claim.words, holds, "", sources, has_limit=limit)
        return
    first, _, last = (part.strip() for part in claim.at.partition(":"))
    named = addresses.between(first, last) if last else [first]
    given = np.ma.ravel(value)
    if len(named) != len(given) or {*named} & {*formula.addresses}:
        return
    for nth, (address, one) in enumerate(zip(named, given, strict=True)):
        if address not in known or one is np.ma.masked:
            continue
        number, own = known[address], _own(formula, addresses, nth, len(named))
        if isinstance(one, bool | np.bool_):
            yield Judged(
                claim, number.line, number.text, "yes" if one else "no", "", own, number=number
            )
        elif isfinite(one):
            quote = formula.text in values
            exact = quote and own[0].decimals >= number.decimals
            room = 0.0 if exact else _room(formula, values, own, nth)
            holds, tells = _holds(number, float(one), room), room > TELLING * number.half
            plus = "+" if number.text.startswith(("+", "-", "−")) and one > 0 else ""
            shown = f"{plus}{float(one):.{max(0, number.decimals)}f}" + "%" * number.is_share
            yield Judged(claim, number.line, number.text, holds, shown, own, quote, number, tells)


def _own(formula: Formula, addresses: Addresses, nth: int, count: int) -> tuple[Numbered, ...]:
    """The sources of one element: of each range as long as the whole its own number."""
    return tuple(
        addresses.numbers[one]
        for own in formula.names.values()
        for one in ([own[nth]] if len(own) == count and count > 1 else own)
        if one in addresses.numbers
    )


def _holds(number: Numbered, value: float, room: float) -> Holds:
    said, half = number.value, number.half * NEARLY
    scales = (1.0, 100.0) if number.text.endswith(("%", "％")) else (1.0,)
    off = min(
        abs(scale * value - said) if number.is_signed else abs(abs(scale * value) - abs(said))
        for scale in scales
    )
    about = FINE if len(str(abs(round(said / (2 * number.half))))) > 2 else ROUGH
    if off <= half or (number.is_rough and off <= about * abs(said)):
        return "yes"
    return "nearly" if off <= half + room else "no"


def _room(
    formula: Formula, values: dict[str, float], sources: Sequence[Numbered], nth: int
) -> float:
    """How far hidden digits of what a number is worked out of can move it."""
    if len(sources) > MANY:
        return max(one.half for one in sources)
    total, here = 0.0, float(np.ma.ravel(formula.value(values))[nth])
    for one in sources:
        moved = (
            formula.value({**values, one.address: one.value + sign * one.half})
            for sign in (-1.0, 1.0)
        )
        total += max(abs(float(np.ma.ravel(each)[nth]) - here) for each in moved)
    return total if isfinite(total) else 0.0


def settled(every: Sequence[Judged]) -> list[Judged]:
    """With "nearly" as yes or no, by whether the report works with printed numbers.

    Counts have no hidden digits, and do not follow from numbers that have. Two that are nearly
    right in one line are no slips.
    """

    def of_counts(one: Judged) -> bool:
        return one.claim.by != "model" and all(source.decimals <= 0 for source in one.sources)

    lines = Counter(one.claim.line_of for one in every if one.holds == "nearly")
    odds = dict[bool, float]()
    for counts in (False, True):
        own = [one for one in every if one.is_worked_out and of_counts(one) == counts]
        right = sum(one.holds == "yes" and one.is_telling for one in own)
        nearly = sum(one.holds == "nearly" for one in own)
        odds[counts] = right * log((1 - SLIP) / (1 - HIDDEN)) - nearly * log(HIDDEN / SLIP)
        odds[counts] += COUNTED if counts and right > 3 else 0

    def is_slip(one: Judged) -> bool:
        counts, claim = of_counts(one), one.claim
        turned = one.number and one.number.decimals <= 0 and claim.by != "model" and not counts
        lone = not claim.line_of or lines[claim.line_of] < 2
        return one.is_worked_out and lone and odds[counts] >= SURE and not turned

    return [
        replace(one, holds="no" if is_slip(one) else "yes") if one.holds == "nearly" else one
        for one in every
    ]


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


# --- what a check says of it


@dataclass(frozen=True)
class Mark:
    """A number or a claim, where it stands, what came of it, and why: a code and its facts."""

    line: int
    text: str
    state: State
    code: str
    facts: dict[str, Any] = field(default_factory=dict)
    spot: str = ""
