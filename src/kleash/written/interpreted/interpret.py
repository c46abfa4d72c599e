"""A report interpreted: asked for formulas, asked again of what does not hold, made into marks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from kleash.documents.claims import claims_in
from kleash.documents.judge import Judged, judged
from kleash.documents.marks import OF_PARTS, Mark, State
from kleash.documents.numbered import Addresses
from kleash.documents.page import Page
from kleash.documents.questions import once_more, questions

Ask = Callable[[Sequence[str]], Sequence[str]]
"""Whatever answers questions: a model behind an endpoint, or a file with answers."""
SHOWN = 3  # sources that a mark names
OF_NUMBERS = (*OF_PARTS, "check.no-fit")
# Rules that find out by themselves what words are about.
OF_WORDS = (
    "check.not-all",
    "check.not-most",
    "check.not-order",
    "check.not-trend",
    "check.not-course",
    "check.not-winner",
    "check.not-the-one",
    "extreme-false",
    "best-false",
    "comparison-false",
    "order-false",
)


def interpreted(page: Page, ask: Ask) -> list[Judged]:
    """Every claim of a report that an interpreter could put into a formula, worked out."""
    addresses = Addresses(page)
    claims = [one for answer in ask(list(questions(addresses))) for one in claims_in(answer)]
    first = judged(addresses, claims)
    failed = [one for one in first if one.holds == "no"]
    if not failed:
        return first
    (answer,) = ask([once_more(addresses, failed)])
    again = list(claims_in(answer))
    asked, told = {one.claim.key for one in failed}, {one.key for one in again}
    # What it does not stand by is dropped; what it reads anew comes first, and so counts.
    kept = [one for one in claims if one.key not in asked]
    return judged(addresses, [*(one for one in again if one.key in asked & told), *kept])


def with_interpretation(marks: Sequence[Mark], every: Sequence[Judged]) -> list[Mark]:
    """Marks with what an interpretation denies, and without guesses that it bears out.

    A number that comes out is none that a rule should have; words stand where all that is said of
    their line holds, and some of it was worked out.
    """
    right = {(one.line, _digits(one.text)) for one in every if one.holds == "yes" and one.number}
    denied = {one.line for one in every if one.holds != "yes"}
    borne = {one.line for one in every if one.holds == "yes" and not one.is_quote} - denied
    kept = [
        mark
        for mark in marks
        if not (mark.code in OF_NUMBERS and (mark.line, _digits(mark.text)) in right)
        and not (mark.code in OF_WORDS and mark.line in borne)
    ]
    told = {(mark.line, _digits(mark.text)) for mark in kept if mark.state == "wrong"}
    return [*kept, *(one for one in _marks(every) if (one.line, _digits(one.text)) not in told)]


def _digits(text: str) -> str:
    """A number however it is dressed; words as they are."""
    return re.sub(r"[^\d.,]", "", text) or text


def _marks(every: Sequence[Judged]) -> Iterator[Mark]:
    for one in every:
        spot = f"said {one.text}"
        facts: dict[str, object] = {
            "formula": one.claim.formula,
            "sources": _sources(one),
            "lines": sorted({source.line for source in one.sources}),
        }
        if one.holds == "unsaid":
            yield Mark(one.line, one.text, "unsupported", "check.unsaid", {"why": one.claim.why})
        elif one.holds == "yes" and one.number:
            yield Mark(one.line, one.text, "right", "check.interpreted", facts, spot)
        elif one.holds == "no" and one.value:
            facts["value"] = one.value
            yield Mark(one.line, one.text, "wrong", "check.not-interpreted", facts, spot)
        elif one.holds == "no":
            state: State = "unsupported" if one.has_limit else "wrong"
            yield Mark(one.line, one.text, state, "check.not-so", facts, spot)


def _sources(one: Judged) -> str:
    """The first numbers that a formula is of, each with its address."""
    named = [f"{source.address} = {source.text}" for source in one.sources[:SHOWN]]
    return ", ".join([*named, *["…"] * (len(one.sources) > SHOWN)])
