"""Every number and claim of a report: right, wrong, not supported, or not to be checked.

Formulas are proposed by numbers (what most of a line holds to) and, of sentences, by a model; all
are worked out by one judge. A number that a model has a formula for is judged by that alone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence

import numpy as np

from kleash.compare.documents.accounts import proposals
from kleash.compare.documents.boards import Table, bare, tables_of
from kleash.compare.documents.faults import at_another_step, copied, false_winners
from kleash.compare.documents.judge import (
    Judged,
    Mark,
    State,
    acquitted,
    blamed,
    numbers_of,
    settled,
    worked_out,
)
from kleash.compare.documents.trace import Tracer, log_marks
from kleash.compare.read import Source
from kleash.compare.read.markdown.page import Addresses, Page

OF_WORDS = ("check.word", "check.not-best")
LONG = 60  # letters of a row that is shown
SHOWN = 3  # sources that a mark names
COEFFICIENTS = 12  # small numbers of a report that may be a loss's coefficient
RANK: dict[State, int] = {"wrong": 0, "unsupported": 1, "right": 2, "unknown": 3}
_SETTINGS = re.compile(
    r"^(?:配置|参数|设置|超参|实验设置|config|settings?|parameters?|hyper|option|item)", re.I
)
_STRONG = re.compile(
    r"(?<![不未无])显著(?!性)|(?<![未没不])(?:证明|证实)了?|必然|毫无疑问|保证了|已(?:经)?得到验证|与?种子无关|无关种子|"
    r"(?<!not )(?<!no )\bsignificant(?:ly)?\b(?! digit)|\bproves?d?\b|confirms? that|"
    r"\bguarantees?\b|undoubtedly",
    re.I,
)
_DOUBTED = re.compile(
    r"p\s?[=<>]|p\s?值|95\s?%|置信|区间|检验|\b(?:test|interval|CI|bootstrap)\b|±|是否|需要|建议|whether|"
    r"not\s+\w*\s*significan|[没未不].{0,8}显著",
    re.I,
)
_TEST = re.compile(r"p\s?[=<]\s?0?\.|95\s?%|置信区间|检验|confidence interval", re.I)


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
    marks += [*at_another_step(addresses, tables), *_strong_words(page)]
    spoken = has["right"] | {one.number.address for one in told if one.number is not None}
    # Words stand where all that is said of their line holds, and some of it was worked out.
    denied = {one.line for one in told if one.holds != "yes"}
    borne = {one.line for one in told if one.holds == "yes" and not one.is_quote} - denied
    marks = [
        mark
        for mark in marks
        if mark.spot not in spoken and not (mark.code in OF_WORDS and mark.line in borne)
    ]
    return _sorted([*marks, *logged, *_of_claims(told)], addresses)


def accounts(addresses: Addresses, tables: Sequence[Table]) -> list[Judged]:
    """What tables are made of, by their numbers alone, and whether each number comes out."""
    boards = [b for t in tables if not _SETTINGS.search(bare(t.titles[0])) for b in t.boards]
    # Small numbers outside of tables may be the coefficient of a loss.
    beside = {n.value for n in addresses.numbers.values() if n.line not in addresses.rows}
    constants = np.array(sorted(one for one in beside if 0 < one < 0.5)[:COEFFICIENTS])
    worked = worked_out(addresses, proposals(boards, constants))
    return acquitted(settled(list(worked)), addresses)


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
    holding = [one for one in every if one.holds == "yes"]
    yield from (_mark(one, one.number.address) for one in holding if one.number)
    for number, one in blamed(every, doubtful, right):
        if one.number is None or number is one.number:
            yield _mark(one, number.address)
            continue
        formula = f"{one.number.address} = {one.claim.formula}"
        facts = _facts(one) | {"formula": formula, "lines": [one.line]}
        yield Mark(number.line, number.text, "wrong", "check.source", facts, number.address)


def _strong_words(page: Page) -> Iterator[Mark]:
    """Words that need a test, where neither their line nor their section tells of one before."""
    tested = False
    for nth in range(1, len(page.lines) + 1):
        line = page.line(nth)
        if line.startswith("#"):
            tested = False
            continue
        tested = tested or bool(_TEST.search(line))
        word = _STRONG.search(line)
        if word and not tested and not _DOUBTED.search(line):
            yield Mark(nth, word[0], "unsupported", "check.word", {"word": word[0]})


def _of_claims(told: Sequence[Judged]) -> Iterator[Mark]:
    """What came of a model's claims."""
    for one in told:
        spot = one.number.address if one.number else f"said {one.text}"
        if one.holds == "unsaid":
            code = "check.undecided" if one.claim.formula else "check.unsaid"
            yield Mark(one.line, one.text, "unsupported", code, {"why": one.claim.why}, spot)
        elif one.holds == "yes" or (one.number is not None and one.value):
            yield _mark(one, spot)
        elif one.holds == "no":
            state: State = "unsupported" if one.has_limit else "wrong"
            yield Mark(one.line, one.text, state, "check.not-so", _facts(one), spot)


def _mark(one: Judged, spot: str) -> Mark:
    if one.holds == "yes":
        return Mark(one.line, one.text, "right", "check.formula", _facts(one), spot)
    facts = _facts(one) | {"value": one.value}
    return Mark(one.line, one.text, "wrong", "check.not-formula", facts, spot)


def _facts(one: Judged) -> dict[str, object]:
    """A formula, and the first numbers that it is of, each with its address."""
    named = [f"{source.address} = {source.text}" for source in one.sources[:SHOWN]]
    sources = ", ".join([*named, *["…"] * (len(one.sources) > SHOWN)])
    lines = sorted({source.line for source in one.sources})
    return {"formula": one.claim.formula, "sources": sources, "lines": lines}


def _sorted(marks: Sequence[Mark], addresses: Addresses) -> list[Mark]:
    """By line, of one thing only the gravest; and every number that nothing speaks of."""
    best = dict[tuple[int, str], Mark]()
    for mark in marks:
        key = mark.line, mark.spot or mark.text
        if key not in best or RANK[mark.state] < RANK[best[key].state]:
            best[key] = mark
    for one in addresses.numbers.values():
        code = "check.estimate" if one.is_rough else "check.nothing"
        unknown = Mark(one.line, one.text, "unknown", code, {}, one.address)
        best.setdefault((one.line, one.address), unknown)
    return sorted(best.values(), key=lambda mark: (mark.line, RANK[mark.state], mark.text))
