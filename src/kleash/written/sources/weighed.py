"""What verdicts make of marks: guesses that they do not bear out go, slips beyond doubt come."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from kleash.written.fitting import NAMING
from kleash.written.marks import Mark
from kleash.written.prose import other_end
from kleash.written.sources.judge import Verdict
from kleash.written.whose import said_mark

FAIR = -1.0  # odds below which a guess does not stand
SURE = 8.0  # odds from which a number is a slip, whatever no rule says
MEANT = 0.5  # how likely one value has to be, to be called the right one
# Rules that guess what a number of a sentence should be.
GUESSES = (
    "check.slip",
    "check.anothers",
    "check.not-same",
    "check.elsewhere",
    "number-without-source",
)


def weighed(
    marks: Sequence[Mark], every: Sequence[Verdict], logged: Collection[tuple[int, str]]
) -> list[Mark]:
    """Marks with what verdicts say; `logged` are numbers that logs have, by line and digits."""
    odds = {_place(one): one.odds for one in every}
    kept = [
        mark
        for mark in marks
        if mark.code not in GUESSES
        or mark.state == "right"
        or odds.get((mark.line, mark.spot), FAIR) >= FAIR
    ]
    told = {(mark.line, mark.spot) for mark in kept if mark.state in ("wrong", "unsupported")}
    known = {(mark.line, mark.text.strip("+-±% ")) for mark in marks if mark.code == "check.log"}
    return [*kept, *_slips([one for one in every if _place(one) not in told], {*known, *logged})]


def _place(one: Verdict) -> tuple[int, str]:
    return one.sentence.line(one.said.start), f"said {one.said.text}"


def _slips(every: Sequence[Verdict], known: Collection[tuple[int, str]]) -> Iterator[Mark]:
    for one in every:
        line, said = one.sentence.line(one.said.start), one.said
        ranged = other_end(one.sentence, said) is not None
        if one.odds < SURE or ranged or (line, said.text.lstrip("+-±")) in known:
            continue
        if one.share >= MEANT and said.figure.digits >= NAMING - 1:
            value = f"{one.value:.{said.figure.decimals}f}" + "%" * (said.kind == "share")
            yield said_mark(one.sentence, said, "wrong", "check.slip", {"value": value})
