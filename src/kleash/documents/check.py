"""Every number and claim of a report: right, wrong, not supported, or not to be checked.

Formulas are proposed by numbers (what most of a line holds to) and, of sentences, by a model; all
are worked out by one judge. A number that a model has a formula for is judged by that alone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence

import numpy as np

from kleash.documents.across import proposals_across
from kleash.documents.blame import acquitted, blamed, numbers_of
from kleash.documents.boards import Array, Table, bare, tables_of
from kleash.documents.faults import at_another_step, copied, false_winners
from kleash.documents.judge import Judged, settled, worked_out
from kleash.documents.marks import Mark, State
from kleash.documents.numbered import Addresses, Numbered
from kleash.documents.page import Page
from kleash.documents.search import proposals
from kleash.documents.trace import Tracer, log_marks
from kleash.documents.words import strong_words
from kleash.imports import Source

OF_WORDS = ("check.word", "check.not-best")
LONG = 60  # letters of a row that is shown
SHOWN = 3  # sources that a mark names
COEFFICIENTS = 12  # small numbers of a report that may be a loss's coefficient
RANK: dict[State, int] = {"wrong": 0, "unsupported": 1, "right": 2, "unknown": 3}
_SETTINGS = re.compile(
    r"^(?:配置|参数|设置|超参|实验设置|config|settings?|parameters?|hyper|option|item)", re.I
)


def check(page: Page, sources: Sequence[Source] = (), told: Sequence[Judged] = ()) -> list[Mark]:
    """Every mark, line by line; of several on one number the gravest.

    `sources` are logs, `told` is what a model's formulas gave, if one was asked.
    """
    addresses = Addresses(page)
    tables = tables_of(addresses)
    every = accounts(addresses, tables)
    failing = {x.address for one in every if one.holds == "no" for x in numbers_of(one)}
    logged = list(log_marks(list(Tracer(sources).traced(tables)), failing)) if sources else []
    has = {state: {m.spot for m in logged if m.state == state} for state in ("right", "wrong")}
    # What a log has otherwise explains what rests on it.
    rest = [one for one in every if not has["wrong"] & {x.address for x in numbers_of(one)}]
    marks = [*_of_accounts(addresses, tables, rest, has["right"]), *false_winners(tables)]
    marks += [*at_another_step(addresses, tables), *strong_words(page)]
    spoken = has["right"] | {one.number.address for one in told if one.number is not None}
    # Words stand where all that is said of their line holds, and some of it was worked out.
    denied = {one.line for one in told if one.holds != "yes"}
    borne = {one.line for one in told if one.holds == "yes" and not one.is_quote} - denied
    marks = [
        mark
        for mark in marks
        if mark.spot not in spoken and not (mark.code in OF_WORDS and mark.line in borne)
    ]
    return _sorted([*marks, *logged, *_marks(told)], addresses)


def accounts(addresses: Addresses, tables: Sequence[Table]) -> list[Judged]:
    """What tables are made of, by their numbers alone, and whether each number comes out."""
    boards = [
        board
        for table in tables
        if not _SETTINGS.search(bare(table.titles[0]))
        for board in table.boards
    ]
    constants = _constants(addresses)
    found = [one for board in boards for one in proposals(board, constants)]
    found += proposals_across(boards)
    worked = worked_out(addresses, (claim for one in found for claim in one.claims))
    return acquitted(settled(list(worked)), tables)


def _of_accounts(
    addresses: Addresses, tables: Sequence[Table], every: Sequence[Judged], right: Collection[str]
) -> Iterator[Mark]:
    """Numbers that come out, those that are to blame for what does not, and copied rows."""
    failing = [one for one in every if one.holds == "no"]
    fails = Counter(at for one in failing for at in {x.line for x in numbers_of(one)})
    doubtful = set[int]()
    for pair in copied(tables):
        most = max(fails[line] for line in pair)
        for line in (line for line in pair if fails[line] == most):
            doubtful.add(line)
            text = addresses.page.line(line).strip()[:LONG]
            yield Mark(line, text, "wrong", "check.copied", {"lines": list(pair)})
    yield from (_mark(one, "right") for one in every if one.holds == "yes" and one.number)
    for number, one in blamed(every, doubtful, right):
        if number is one.number:
            yield _mark(one, "wrong")
            continue
        facts = _facts(one) | {"formula": _equation(one), "lines": [one.line]}
        yield Mark(number.line, number.text, "wrong", "check.source", facts, number.address)


def _constants(addresses: Addresses) -> Array:
    """The small numbers that a report tells outside of its tables: coefficients of a loss."""
    told = {
        one.value
        for line in range(1, addresses.count + 1)
        if line not in addresses.rows
        for one in addresses.on(line)
    }
    return np.array(sorted(one for one in told if 0 < one < 0.5)[:COEFFICIENTS])


def _marks(told: Sequence[Judged]) -> Iterator[Mark]:
    """What came of a model's claims."""
    for one in told:
        spot = one.number.address if one.number else f"said {one.text}"
        if one.holds == "unsaid":
            yield Mark(
                one.line, one.text, "unsupported", "check.unsaid", {"why": one.claim.why}, spot
            )
        elif one.number is not None and (one.holds == "yes" or one.value):
            yield _mark(one, "right" if one.holds == "yes" else "wrong")
        elif one.holds == "no":
            state: State = "unsupported" if one.has_limit else "wrong"
            yield Mark(one.line, one.text, state, "check.not-so", _facts(one), spot)


def _mark(one: Judged, state: State) -> Mark:
    assert one.number is not None
    code = "check.formula" if state == "right" else "check.not-formula"
    facts = _facts(one) | ({} if state == "right" else {"value": one.value})
    return Mark(one.line, one.text, state, code, facts, one.number.address)


def _facts(one: Judged) -> dict[str, object]:
    lines = sorted({source.line for source in one.sources})
    return {"formula": one.claim.formula, "sources": _sources(one), "lines": lines}


def _equation(one: Judged) -> str:
    assert one.number is not None
    return f"{one.number.address} = {one.claim.formula}"


def _sources(one: Judged) -> str:
    """The first numbers that a formula is of, each with its address."""
    named = [f"{source.address} = {source.text}" for source in one.sources[:SHOWN]]
    return ", ".join([*named, *["…"] * (len(one.sources) > SHOWN)])


def _sorted(marks: Sequence[Mark], addresses: Addresses) -> list[Mark]:
    """By line, of one thing only the gravest; and every number that nothing speaks of."""
    best = dict[tuple[int, str], Mark]()
    for mark in marks:
        key = mark.line, mark.spot or mark.text
        if key not in best or RANK[mark.state] < RANK[best[key].state]:
            best[key] = mark
    rest = (one for one in addresses.numbers.values() if (one.line, one.address) not in best)
    every = [*best.values(), *map(_unknown, rest)]
    return sorted(every, key=lambda mark: (mark.line, RANK[mark.state], mark.text))


def _unknown(one: Numbered) -> Mark:
    code = "check.estimate" if one.is_rough else "check.nothing"
    return Mark(one.line, one.text, "unknown", code, {}, one.address)
