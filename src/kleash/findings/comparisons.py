"""Sentences that rank arms, held against the tables: highest, higher than, the same, within.

A sentence rarely says at which step or over which items it holds, so it is contradicted only where
it holds at no place that it may mean. What is expected, asked or denied is let pass.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from kleash.findings.record import Found, apart, bounds
from kleash.findings.spoken import (
    MANY,
    clauses,
    direction,
    facts_said,
    meant,
    metric_in,
    metric_said,
    named,
    told,
)
from kleash.imports import Claim, Number, Source, names

_MOST = {
    1: re.compile(r"最高|最大|最长|highest|largest|greatest|longest", re.I),
    -1: re.compile(r"最低|最小|最短|lowest|smallest|shortest", re.I),
}
# "Its best reward is only 1.387" is the best of its own.
_OWN_BEST = (
    r"(?!\s?[A-Za-z\u4e00-\u9fff]{1,12}\s?"
    r"(?:只有|只到|仅有?|才|为|是|达到?|(?:is|was)(?: only)?|of)?\s?\d+\.\d)"
)
_BEST = {
    1: re.compile(rf"(?:最好|最佳|最优|(?<![a-z])best(?![a-z])){_OWN_BEST}", re.I),
    -1: re.compile(r"最差|(?<![a-z])worst(?![a-z])", re.I),
}
_MORE = {
    1: re.compile(
        r"更高|略高|较高|高于|更长|略长|更大|大于|higher|greater|longer|larger|above",
        re.I,
    ),
    -1: re.compile(r"更低|略低|较低|低于|更短|略短|更小|小于|lower|shorter|smaller|below", re.I),
}
_BETTER = {
    1: re.compile(r"更好|优于|略好|更优|(?<![a-z])better|outperform|wins|beats", re.I),
    -1: re.compile(r"更差|劣于|略差|(?<![a-z])worse|underperform|loses to", re.I),
}
_THAN = re.compile(r"比.{0,40}?(高|低|长|短|大|小|好|差)")
_SIDES = {"高": 1, "长": 1, "大": 1, "低": -1, "短": -1, "小": -1}
_UNSURE = re.compile(
    r"trade-?off|balance|平衡|折中|权衡|probabl|perhaps|maybe|likely|可能|也许|大概|"
    r"如果|若|是否|能否|应该|不是|没有|并非|并不|未必|不一定|第二|次|之一|变化|趋势|增幅|降幅|"
    r"\?|(?<![a-z])(?:if|whether|not|no|n't|should|would|could|second|one of|trend|change)"
    r"(?![a-z])",
    re.I,
)
_ALONG = re.compile(r"达到|到达|峰值|reach|peak|at step|上升|下降|rose|fell|from", re.I)
_ALIKE = re.compile(
    r"完全相同|完全一致|都相同|也相同|毫无差异|"
    r"(?:is|are|was|were) (?:exactly )?(?:identical|equal)|"
    r"(?:is|are|was|were) (?:exactly )?the same(?=\s*(?:[.,;()]|$|for|in|across|to the))|"
    r"exactly the same(?=\s*(?:[.,;()]|$|for|in|across|to the))|identical (?:accurac|result|score)",
    re.I,
)
_UNLIKE = re.compile(r"不同|不一样|不完全|differ|other than|except|除了", re.I)
_SCORES = re.compile(r"推理(?:结果|准确率)|accurac|准确率|正确率", re.I)
_BETWEEN = re.compile(r"之间|范围内|between|within the range|in the range", re.I)


def _one_sign(clause: str, words: dict[int, re.Pattern[str]]) -> int:
    """1 or -1 if a clause has words of one side only, else 0."""
    signs = [sign for sign, pattern in words.items() if pattern.search(clause)]
    return signs[0] if len(signs) == 1 else 0


# --- rules


def extreme_false(sources: Sequence[Source]) -> Iterator[Found]:
    """ "B has the lowest loss", where at every place some other arm has a lower one."""
    return _first_of_each(sources, _not_extreme)


def _first_of_each(
    sources: Sequence[Source], held: Callable[[Source, Claim, str], Found | None]
) -> Iterator[Found]:
    """Of each claim the first clause that is found wrong, held against its source."""
    for source in sources:
        for claim in facts_said(source):
            found = (held(source, claim, clause) for clause in clauses(claim))
            yield from islice(filter(None, found), 1)


def _not_extreme(source: Source, claim: Claim, clause: str) -> Found | None:
    arms = named(claim, clause)
    sign, by_quality = _one_sign(clause, _MOST), _one_sign(clause, _BEST)
    if len(arms) != 1 or bool(sign) == bool(by_quality) or _UNSURE.search(clause):
        return None
    if _ALONG.search(clause) or (by_quality and re.search(r"step|epoch|步|轮", clause, re.I)):
        return None
    if sign and not metric_said(source, claim.text):
        return None
    metric = metric_in(source, claim, clause)
    sign = sign or by_quality * direction(metric)
    groups = meant(source, claim, clause, metric) if metric and sign else {}
    groups = {at: told for at, told in groups.items() if arms[0] in told}
    beaten: list[tuple[str, str]] = []
    for at, told_ in groups.items():
        # "The largest fall" is the most negative.
        falls = all((one.value or 0.0) <= 0 for one in told_.values())
        way = -sign if falls else sign
        ours = told_[arms[0]].value or 0.0
        ahead = [arm for arm, one in told_.items() if way * ((one.value or 0.0) - ours) > 0]
        ahead = [arm for arm in ahead if apart(bounds(told_[arm]), bounds(told_[arms[0]]))]
        if not ahead:
            return None
        best = max(ahead, key=lambda arm: way * (told_[arm].value or 0.0))
        beaten.append((at, best))
    if not beaten:
        return None
    at, other = beaten[0]
    return _found("extreme-false", source, claim, metric, groups[at], (arms[0], other))


def comparison_false(sources: Sequence[Source]) -> Iterator[Found]:
    """ "A has a higher KL than B", where at every place A's is lower."""
    return _first_of_each(sources, _not_so)


def _not_so(source: Source, claim: Claim, clause: str) -> Found | None:
    arms = named(claim, clause)
    every = list(dict.fromkeys(run.arm for run in source.runs[:MANY]))
    if len(arms) == 1 and len(every) == 2:
        arms = [*arms, *(arm for arm in every if arm != arms[0])]
    if len(arms) != 2 or _UNSURE.search(clause) or _ALONG.search(clause):
        return None
    if any(_one_sign(clause, words) for words in (_MOST, _BEST)):
        return None
    if not metric_said(source, claim.text) and not _one_sign(clause, _BETTER):
        return None
    metric = metric_in(source, claim, clause)
    sign = _sign_said(clause, metric)
    groups = meant(source, claim, clause, metric) if metric and sign else {}
    pairs = [told for told in groups.values() if set(arms) <= told.keys()]
    wrong = [
        told
        for told in pairs
        if sign * ((told[arms[0]].value or 0.0) - (told[arms[1]].value or 0.0)) < 0
        and apart(bounds(told[arms[0]]), bounds(told[arms[1]]))
    ]
    if not wrong or len(wrong) < len(pairs):
        return None
    return _found("comparison-false", source, claim, metric, wrong[0], (arms[0], arms[1]))


def _sign_said(clause: str, metric: str) -> int:
    """Whether a clause says that its first arm has more (1) or less (-1) of a metric."""
    than = _THAN.search(clause)
    signs = {
        _one_sign(clause, _MORE),
        _one_sign(clause, _BETTER) * direction(metric),
        _SIDES.get(than[1], 0) if than else 0,
    } - {0}
    return signs.pop() if len(signs) == 1 else 0


def _found(
    code: str,
    source: Source,
    claim: Claim,
    metric: str,
    told_: dict[str, Number],
    arms: tuple[str, str],
) -> Found:
    ours, theirs = (told_[arm] for arm in arms)
    facts = {
        "text": claim.text,
        "metric": metric,
        "arm": arms[0],
        "value": ours.value,
        "other": arms[1],
        "other_value": theirs.value,
    }
    return Found(code, "error", (claim.where, ours.where, theirs.where), facts)


def same_false(sources: Sequence[Source]) -> Iterator[Found]:
    """ "Accuracy is identical", and somewhere, also in another source, it is not."""
    for source in sources:
        for claim in facts_said(source):
            if not _ALIKE.search(claim.text) or _UNLIKE.search(claim.text):
                continue
            if any(_one_sign(claim.text, words) for words in (_MORE, _BETTER)):
                continue
            metric = metric_said(source, claim.text)
            metric = "accuracy" if not metric and _SCORES.search(claim.text) else metric
            found = _unlike(sources, source, claim, metric) if metric else None
            if found is not None:
                yield found


def _unlike(sources: Sequence[Source], source: Source, claim: Claim, metric: str) -> Found | None:
    wanted = {names.spelling(arm) for arm in claim.arms}
    wanted = wanted or {names.spelling(run.arm) for run in source.runs[:MANY]}
    # A document without numbers of its own is held against the others.
    own = meant(source, claim, claim.text, metric)
    held = [own] if told(source, metric) else [told(each, metric) for each in sources]
    for groups in held:
        for at, arms in groups.items():
            kept = {arm: one for arm, one in arms.items() if names.spelling(arm) in wanted}
            values = {one.value for one in kept.values()}
            numbers = sorted(kept.values(), key=lambda one: one.value or 0.0)
            if len(values) > 1 and apart(bounds(numbers[0]), bounds(numbers[-1])):
                facts = {
                    "text": claim.text,
                    "metric": metric,
                    "at": at,
                    "values": [f"{arm}: {one.value:g}" for arm, one in kept.items()],
                }
                where = (claim.where, *(one.where for one in kept.values()))
                return Found("same-false", "error", where, facts)
    return None


_CHANGE = re.compile(
    r"[降升增涨跌变]幅|(?<![a-z])(?:falls?|rises?|drops?|gains?) by(?![a-z])", re.I
)


def range_false(sources: Sequence[Source]) -> Iterator[Found]:
    """ "All losses lie between 0.017 and 0.022", and one of the table does not."""
    for source in sources:
        for claim in facts_said(source):
            ranges = [one for one in claim.numbers if one.low is not None and one.high is not None]
            ranges = ranges or _between(claim)
            metric = metric_said(source, claim.text) and metric_in(source, claim, claim.text)
            if len(ranges) != 1 or not metric or not _BETWEEN.search(claim.text):
                continue
            if _CHANGE.search(claim.text):  # "they fall, by 15.9 to 17.5 %"
                continue
            half = 0.5 * 10.0 ** -(ranges[0].decimals or 0)
            low, high = (ranges[0].low or 0.0) - half, (ranges[0].high or 0.0) + half
            groups = meant(source, claim, claim.text, metric)
            for arm, one in ((arm, one) for told_ in groups.values() for arm, one in told_.items()):
                named_ = not claim.arms or arm in claim.arms
                if named_ and apart(bounds(one), (low, high)):
                    facts = {
                        "text": claim.text,
                        "metric": metric,
                        "arm": arm,
                        "value": one.value,
                        "low": ranges[0].low,
                        "high": ranges[0].high,
                    }
                    yield Found("range-false", "error", (claim.where, one.where), facts)
                    break


def _between(claim: Claim) -> list[Number]:
    """The range of "between 0.017 and 0.022"."""
    match = re.search(r"between (\d+\.(\d+)) and (\d+\.\d+)", claim.text, re.I)
    if match is None:
        return []
    ends = float(match[1]), float(match[3])
    return [Number(None, "known", claim.where, len(match[2]), ends[0], ends[1])]


RULES = (extreme_false, comparison_false, same_false, range_false)
