"""Numbers in prose: each of two digits and more stands in a table, or follows from one.

A sentence that quotes a number which nothing in the document prints was written for other data,
or is a slip; so is one that gives an arm the number of another. Numbers of one digit are let pass:
too much rounds to them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from kleash.findings.record import SLACK, Found, apart, bounds, canonical, digits, points, shown
from kleash.findings.spoken import (
    MANY,
    facts_said,
    metric_in,
    metric_said,
    metrics_told,
    position,
    table_of,
    told,
)
from kleash.imports import Claim, Derived, Number, Source, names
from kleash.imports.markdown.derived import allowed, follows
from kleash.imports.markdown.numbers import numbers_in, places

DIGITS = 2
NAMING = 3  # digits of a number that names its cell
FEW = 6  # arms of a document whose every pair may be meant
_NUMBER = re.compile(r"(?<![\w.])\d{1,9}(?:\.\d{1,9})?(?:e-?\d{1,3})?(?![\w])")
_VERSUS = re.compile(r"(?<![a-z])(?:vs\.?|versus|than|against|from)(?![a-z])|比|→|->|相对", re.I)
_BESIDE = re.compile(r"^[^\d()<>≈=,;:]{0,4}\((\d+\.\d+)\s?(%?)\)")
_WINS = re.compile(
    r"(\d{1,4}) (?:out )?of (?:the |all )?(\d{1,4}) "
    r"(?:seed|step|checkpoint|evaluation|point|epoch)s?",
    re.I,
)
_WINS_ZH = re.compile(
    r"(\d{1,4})\s?个?(?:评估点|步|种子|检查点|评估|点|epoch|轮)中的?有?\s?(\d{1,4})\s?[个次]"
)
_AHEAD = re.compile(r"更好|更高|领先|胜|优于|better|higher|ahead|wins?|beats?", re.I)
_BEHIND = re.compile(r"更差|更低|落后|worse|lower|behind|loses?", re.I)
_ABOUT = re.compile(
    r"(?:差异|差别|相差|differ\w*)[^\d<>,。;]{0,12}?(?:约|大约|about|~|≈)\s?(\d{1,3}(?:\.\d{1,4})?)\s?%",
    re.I,
)
_CHANGES = re.compile(
    r"上升|下降|提升|增加|减少|降低|变化|rose|fell|grew|drop|increas|decreas", re.I
)


@dataclass(frozen=True)
class Gap:
    """How far two arms lie apart, or one from its own start; `only` if no other may be meant."""

    arms: tuple[str, ...]
    metric: str
    at: str
    sizes: set[float]
    only: bool
    points: float | None = None  # of percentages


def number_without_source(sources: Sequence[Source]) -> Iterator[Found]:
    """A number that is quoted in a sentence and printed nowhere else."""
    for source in sources:
        if not source.tables:
            continue
        printed, shares = _printed(source)
        gaps = _gaps(source)
        for claim in source.claims:
            for number in claim.numbers:
                if not is_quoted(number, claim):
                    continue
                fit = printed | shares if number.unit == "%" else printed
                meant = _meant_gaps(source, gaps, claim)
                near = set().union(*(gap.sizes for gap in meant)) | _beside(claim, number)
                if _supported(number, fit | near) or _in_points(number, claim, meant):
                    continue
                value = abs(number.value or 0.0)
                facts = {
                    "text": claim.text,
                    "number": number.text,
                    "nearest": min(
                        sorted(fit | near), key=lambda one: abs(one - value), default=None
                    ),
                }
                yield Found("number-without-source", "warning", (claim.where,), facts)


def is_quoted(number: Number, claim: Claim) -> bool:
    """Whether a number claims to be a measurement: decimals, enough digits, no mere plan."""
    return (
        number.value is not None
        and bool(number.decimals)
        and digits(number) >= DIGITS
        and not (number.unit == "%" and number.value == 1)
        and not {"recommended", "expected"} & set(claim.judgements)
    )


def _supported(number: Number, printed: set[float]) -> bool:
    low, high = bounds(number)
    low, high = sorted((abs(low), abs(high)))
    slack = SLACK * max(1e-6, high)
    return any(low - slack <= one <= high + slack for one in printed)


def _printed(source: Source) -> tuple[set[float], set[float]]:
    """The sizes of all numbers that stand in tables, lists and configs; apart, derived shares."""
    found = set()
    for run in source.runs:
        found |= {abs(point.value) for point in points(run)}
        spreads = [cell.number.spread for cell in run.cells if cell.number.value is not None]
        found |= {spread for spread in spreads if spread is not None}
        ends = [end for cell in run.cells for end in (cell.number.low, cell.number.high)]
        found |= {abs(end) for end in ends if end is not None}
        for setting in run.config.values():
            numbers = [float(text) for text in _NUMBER.findall(str(setting.value))]
            found |= {*numbers, *(number / 100 for number in numbers)}
    shares: set[float] = set()
    for one in source.derived:
        # A sentence supports itself only if it worked its number out rightly.
        if one.number.value is not None and (one.metric or follows(one)):
            share = one.number.unit == "%" and one.kind in ("relative", "largest")
            (shares if share else found).add(abs(one.number.value))
    return found, shares


def _gaps(source: Source) -> list[Gap]:
    """Differences of every two arms at the same place, and of each arm over its training."""
    gaps: list[Gap] = []
    arms = list(dict.fromkeys(run.arm for run in source.runs))
    if len(arms) > FEW:
        return gaps
    for metric in sorted(metrics_told(source)):
        for at, numbers in told(source, metric).items():
            for one, other in combinations(numbers, 2):
                ours, theirs = numbers[one].value or 0.0, numbers[other].value or 0.0
                share = 100 * abs(ours - theirs) if numbers[one].unit == "%" else None
                pair = (one, other)
                gaps.append(Gap(pair, metric, at, _apart(ours, theirs), len(arms) == 2, share))
    tops = [
        (run.arm, canonical(series.metric), float(series.values.max()))
        for run in source.runs
        for series in run.series
        if len(series.values)
    ]
    for (arm, metric, top), (other, same, theirs) in combinations(tops, 2):
        if metric == same and arm != other:
            gaps.append(Gap((arm, other), metric, "", _apart(top, theirs), len(arms) == 2))
    for run in source.runs:
        for series in run.series:
            if 1 < len(series.values) <= MANY:
                first, last = float(series.values[0]), float(series.values[-1])
                sizes = _apart(first, last) | _apart(first, float(series.values.max()))
                gaps.append(Gap((run.arm,), canonical(series.metric), "", sizes, len(arms) == 1))
    return gaps


def _apart(ours: float, theirs: float) -> set[float]:
    gap = abs(ours - theirs)
    return {gap, *(gap / abs(each) for each in (ours, theirs) if each)}


def _meant_gaps(source: Source, gaps: Sequence[Gap], claim: Claim) -> list[Gap]:
    """The differences that a sentence may speak of, by the arms, metric and place it names."""
    written, place = metric_said(source, claim.text), places(claim.text)[0]
    found: list[Gap] = []
    for gap in gaps:
        if written and written != "performance" and written not in gap.metric:
            continue
        # Arms by a single letter are not found in sentences: any of several may be meant.
        unnamed = not claim.arms and not gap.only and len(gap.arms) == 2
        if not set(gap.arms) <= set(claim.arms) and not gap.only and not unnamed:
            continue
        if len(gap.arms) == 1 and not _CHANGES.search(claim.text):
            continue
        at = [(name, getattr(place, name)) for name in ("step", "epoch", "shots")]
        named = [f"{name} {value}" for name, value in at if value is not None]
        placed = bool(re.search(r"step|epoch", gap.at))
        if any(each in gap.at for each in named) or (not placed and not named) or unnamed:
            found.append(gap)
    return found


def _in_points(number: Number, claim: Claim, gaps: Sequence[Gap]) -> bool:
    """Whether a number is a difference of percentages: "3.6 points"."""
    said = re.search(rf"{re.escape(number.text)}\s?(?:points?|个?点|分)", claim.text, re.I)
    points_ = {gap.points for gap in gaps if gap.points is not None}
    return bool(said and not number.unit) and _supported(number, points_)


def _beside(claim: Claim, number: Number) -> set[float]:
    """What a share or a factor may be of: any two other numbers of its sentence."""
    if number.unit not in ("%", "x", "倍"):
        return set()
    others = [one.value for one in claim.numbers if one is not number and one.value]
    found: set[float] = set()
    for ours, theirs in combinations(others, 2):
        ratios = {abs(ours / theirs), abs(theirs / ours)}
        found |= _apart(ours, theirs) if number.unit == "%" else ratios
    return found


# --- whose number it is


def other_arms_number(sources: Sequence[Source]) -> Iterator[Found]:
    """ "B (0.081)", where 0.081 is the number of A and B has another."""
    for source in sources:
        claims = list(facts_said(source))
        values: dict[str, list[float]] = defaultdict(list)
        for run in source.runs[:MANY] if claims else ():
            values[run.arm] += [point.value for point in points(run)]
        for one in source.derived:
            if one.number.value is not None and one.kind != "same":
                for arm in one.arms:
                    values[arm].append(one.number.value)
        for claim in claims:
            for arm, number in _given(claim):
                mine = _supported(number, {abs(value) for value in values[arm]})
                owners = [
                    other
                    for other, held in values.items()
                    if other != arm and _supported(number, {abs(value) for value in held})
                ]
                if not mine and owners and digits(number) >= NAMING:
                    facts = {
                        "text": claim.text,
                        "number": number.text,
                        "arm": arm,
                        "owners": owners[:4],
                    }
                    yield Found("other-arms-number", "error", (claim.where,), facts)


def _given(claim: Claim) -> Iterator[tuple[str, Number]]:
    """Arms with the number in the bracket right after their name; or one arm with one number."""
    beside = False
    for arm in claim.arms:
        at = position(arm, claim.text)
        if at < 0:
            continue
        rest = re.sub(r"^[\w.=\s-]*?(?=\s?\()", "", claim.text[at:], count=1)
        match = _BESIDE.match(rest)
        if match and re.match(r"[\w.=]*\s?\(", claim.text[at:]):
            beside = True
            yield from ((arm, one) for one, _, _ in numbers_in(match[1] + match[2], claim.where))
    single = len(claim.arms) == len(claim.numbers) == 1 and not _VERSUS.search(claim.text)
    if single and not beside and names.mention(claim.text) and claim.numbers[0].value is not None:
        yield claim.arms[0], claim.numbers[0]


# --- percentages and counts


def percent_reversed(sources: Sequence[Source]) -> Iterator[Found]:
    """ "B is +3.6 % above A", taken from "A is -3.6 % below B": the base is another."""
    for source in sources:
        right = [one for one in source.derived if one.kind == "relative" and follows(one)]
        worked_out = {(one.number.where.line, one.number.value) for one in source.derived}
        for claim in source.claims:
            for number in claim.numbers:
                if (claim.where.line, number.value) in worked_out:
                    continue  # its own numbers stand beside it: see `derived_numbers`
                if number.unit != "%" or number.text[:1] not in "+-" or not number.value:
                    continue
                if any(_same_share(one, number, 1) for one in right):
                    continue
                turned = [one for one in right if _same_share(one, number, -1)]
                back = [Derived("relative", number, one.minus, one.of) for one in turned]
                if back and not any(follows(one) for one in back):
                    low, high = allowed(back[0]) or (0.0, 0.0)
                    facts = {
                        "text": claim.text,
                        "number": number.text,
                        "low": shown(low),
                        "high": shown(high),
                    }
                    where = (claim.where, turned[0].number.where)
                    yield Found("percent-reversed", "error", where, facts)


def _same_share(derived: Derived, number: Number, sign: int) -> bool:
    value = derived.number.value
    return value is not None and not derived.unsigned and value == sign * (number.value or 0.0)


def count_false(sources: Sequence[Source]) -> Iterator[Found]:
    """ "Better on 4 of 5 seeds", where the table has it better on 3."""
    for source in sources:
        arms = list(dict.fromkeys(run.arm for run in source.runs[:MANY]))
        for claim in facts_said(source) if len(arms) == 2 else ():
            match, chinese = _WINS.search(claim.text), _WINS_ZH.search(claim.text)
            sign = bool(_AHEAD.search(claim.text)) - bool(_BEHIND.search(claim.text))
            if not (match or chinese) or not sign or not claim.arms:
                continue
            if match:
                said, of = int(match[1]), int(match[2])
            elif chinese:
                of, said = int(chinese[1]), int(chinese[2])
            first = min(claim.arms, key=lambda arm: position(arm, claim.text) % 10_000)
            metric = metric_in(source, claim, claim.text)
            groups = told(source, metric, means=False) if metric else {}
            places = [
                one
                for at, one in groups.items()
                if re.search(r"step|epoch|seed", at) and len(one) == 2
            ]
            other = next(arm for arm in arms if arm != first)
            gaps = [(one[first].value or 0.0) - (one[other].value or 0.0) for one in places]
            wins = sum(sign * gap > 0 for gap in gaps)
            if len(places) == of and wins != said:
                facts = {"text": claim.text, "arm": first, "metric": metric, "wins": wins, "of": of}
                where = (claim.where, *(one[first].where for one in places))
                yield Found("count-false", "error", where, facts)


def difference_false(sources: Sequence[Source]) -> Iterator[Found]:
    """ "They differ by about 3 %", under a table of two arms in which nothing does."""
    for source in sources:
        for claim in facts_said(source):
            match, table = _ABOUT.search(claim.text), table_of(source, claim)
            if match is None or table is None:
                continue
            written = metric_said(source, claim.text)
            metrics = {written} if written else metrics_told(source)
            pairs = [
                near
                for metric in metrics
                for numbers in told(source, metric).values()
                if len(near := [n for n in numbers.values() if n.where.line in table.lines]) == 2
            ]
            said = numbers_in(match[1] + "%", claim.where)[0][0]
            unit = 10.0 ** -(said.decimals or 0)
            shares = {share for a, b in pairs for share in _apart(a.value or 0.0, b.value or 0.0)}
            near_ = ((said.value or 0.0) - unit, (said.value or 0.0) + unit)
            if shares and all(apart((share, share), near_) for share in shares):
                facts = {
                    "text": claim.text,
                    "said": said.value,
                    "shares": [shown(share) for share in sorted(shares)[:6]],
                }
                yield Found("difference-false", "error", (claim.where,), facts)


def range_gap_false(sources: Sequence[Source]) -> Iterator[Found]:
    """ "+15-20 s", where the ends of the two ranges are 12 and 15 s apart."""
    for source in sources:
        arms = list(dict.fromkeys(run.arm for run in source.runs[:MANY]))
        cells = [(run.arm, cell) for run in source.runs[:MANY] for cell in run.cells]
        for claim in facts_said(source) if len(arms) == 2 else ():
            metric = metric_said(source, claim.text)
            for number in claim.numbers:
                if number.low is None or number.high is None or not metric:
                    continue
                if not re.search(rf"[+-]\s?{number.low:g}\s?[-~]", claim.text):
                    continue
                ends = [
                    (cell.number.low, cell.number.high, cell.number.where)
                    for _, cell in cells
                    if canonical(cell.metric) == metric and cell.number.low is not None
                ]
                if len(ends) != 2:
                    continue
                (low, high, _), (other_low, other_high, _) = ends
                gaps = sorted(
                    (abs((other_low or 0) - (low or 0)), abs((other_high or 0) - (high or 0)))
                )
                if apart((number.low, number.low), (gaps[0], gaps[1])) or apart(
                    (number.high, number.high), (gaps[0], gaps[1])
                ):
                    facts = {
                        "text": claim.text,
                        "metric": metric,
                        "low": shown(gaps[0]),
                        "high": shown(gaps[1]),
                    }
                    where = (claim.where, ends[0][2], ends[1][2])
                    yield Found("range-gap-false", "warning", where, facts)


RULES = (
    number_without_source,
    other_arms_number,
    percent_reversed,
    count_false,
    difference_false,
    range_gap_false,
)
