"""Sentences that rank arms, held against the tables: highest, higher than, the same, within.

A sentence rarely says at which step or over which items it holds, so it is contradicted only where
it holds at no place that it may mean. What is expected, asked or denied is let pass.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from kleash.findings.record import Found, apart, bounds, canonical, points
from kleash.imports import Claim, Number, Source, Table, names
from kleash.imports.markdown.numbers import places

NEAR = 12  # lines between a table and a sentence on it
MANY = 100  # runs of a source that sentences are held against
Groups = dict[str, dict[str, Number]]

_CLAUSE = re.compile(r"[,;。、]\s?|(?:^|\s)(?:but|while|whereas|and|but)\s|但|而(?!且)")
_MOST = {
    1: re.compile(r"最高|最大|最长|highest|largest|greatest|longest", re.I),
    -1: re.compile(r"最低|最小|最短|lowest|smallest|shortest", re.I),
}
_BEST = {
    1: re.compile(r"最好|最佳|最优|(?<![a-z])best(?![a-z])", re.I),
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
_REWARDS = ("performance", "reward", "eval_reward")
_STATISTICS = {
    "mean": re.compile(r"平均|均值|(?<![a-z])(?:mean|average|avg)(?![a-z])", re.I),
    "last": re.compile(r"最终|(?<![a-z])(?:final|last)(?![a-z])", re.I),
    "first": re.compile(r"初始|(?<![a-z])initial(?![a-z])", re.I),
}


# --- what the tables say


def table_of(source: Source, claim: Claim) -> Table | None:
    """The table that a sentence stands in, or comments on: the last one before it, if near."""
    line = claim.where.line or 0
    inside = [table for table in source.tables if line in table.lines]
    before = [table for table in source.tables if table.lines and table.lines[-1] < line]
    nearest = max(before, key=lambda table: table.lines[-1], default=None)
    if inside:
        return inside[0]
    return nearest if nearest and line - nearest.lines[-1] <= NEAR else None


def told(source: Source, metric: str, *, means: bool = True) -> Groups:
    """The known numbers of a metric by place, arm by arm; the mean of a table is a place too."""
    found: Groups = defaultdict(dict)
    for run in source.runs[:MANY]:
        seed = "" if run.seed is None else f" seed {run.seed}"
        for point in points(run):
            if point.metric == metric and point.known:
                found[f"{point.at}{seed}"].setdefault(run.arm, point.number)
    for derived in source.derived if means else ():
        if (
            derived.kind == "mean"
            and len(derived.arms) == 1
            and canonical(derived.metric) == metric
        ):
            lines = f"mean {derived.number.where.line and _first_line(source, derived.number)}"
            found[lines].setdefault(derived.arms[0], derived.number)
    return {at: arms for at, arms in found.items() if len(arms) > 1}


def _first_line(source: Source, number: Number) -> int:
    """The first line of the table in which a number stands, so that its means go together."""
    inside = [table for table in source.tables if number.where.line in table.lines]
    return inside[0].lines[0] if inside else 0


def meant(source: Source, claim: Claim, clause: str, metric: str) -> Groups:
    """The places that a clause may mean: those it names, in the table near it if that has any."""
    every = told(source, metric)
    table = table_of(source, claim)
    if table is not None:
        lines = set(table.lines)
        near = {
            at: {arm: one for arm, one in arms.items() if one.where.line in lines}
            for at, arms in every.items()
        }
        near = {at: arms for at, arms in near.items() if len(arms) > 1}
        every = near or every
    place = places(clause)[0]
    if not place:
        place = places(claim.text)[0]
    for name in ("epoch", "step", "shots"):
        wanted = getattr(place, name)
        if wanted is not None:
            at_place = re.compile(rf"(?<![a-z]){name} {wanted}(?!\d)")
            every = {at: arms for at, arms in every.items() if at_place.search(at)}
    if place.span is not None:
        every = {at: arms for at, arms in every.items() if _inside(at, place.span)}
    for statistic, words in _STATISTICS.items():
        if words.search(clause) and any(at.startswith(statistic) for at in every):
            every = {at: arms for at, arms in every.items() if at.startswith(statistic)}
    return every


def _inside(at: str, span: tuple[int, int]) -> bool:
    match = re.search(r"step (\d+)", at)
    return match is not None and span[0] <= int(match[1]) <= span[1]


# --- what a sentence says


def facts_said(source: Source) -> Iterator[Claim]:
    """The sentences that state something, of sources whose arms have numbers."""
    for claim in source.claims:
        if not {"expected", "recommended"} & set(claim.judgements):
            yield claim


def clauses(claim: Claim) -> list[str]:
    """The parts of a sentence; numbers and brackets stay with what they belong to."""
    text = re.sub(r"\([^()]*\)", lambda match: match.group().replace(",", " "), claim.text)
    return [part for part in _CLAUSE.split(text) if part and part.strip()]


def position(arm: str, text: str) -> int:
    """Where a text names an arm, whole or by the value of its setting; -1 if nowhere."""
    whole = re.search(rf"{re.escape(arm)}(?!\d|\.\d)", text, re.I)
    if whole:
        return whole.start()
    value = re.search(r"[=\s](\d+\.\d+)$", arm)
    found = value and re.search(rf"(?<![\w.]){re.escape(value[1])}0*(?![\w.%])", text)
    return found.start() if found else -1


def named(claim: Claim, clause: str) -> list[str]:
    """The arms that a clause names, in their order; the only one of its sentence otherwise."""
    found = sorted((at, arm) for arm in claim.arms if (at := position(arm, clause)) >= 0)
    return [arm for _, arm in found] or (list(claim.arms) if len(claim.arms) == 1 else [])


def metric_said(source: Source, text: str) -> str:
    """The metric that a text names, outside the names of arms: "KL 0.01" measures nothing."""
    for arm in sorted({run.arm for run in source.runs[:MANY]}, key=len, reverse=True):
        if len(arm) > 1:
            text = re.sub(rf"{re.escape(arm)}(?!\d)", " ", text, flags=re.I)
    return canonical(names.mention(text))


def metrics_told(source: Source) -> set[str]:
    """The metrics of which a source has numbers, or means of numbers."""
    found = {point.metric for run in source.runs[:MANY] for point in points(run)}
    return found | {canonical(one.metric) for one in source.derived if one.kind == "mean"}


def metric_in(source: Source, claim: Claim, clause: str) -> str:
    """The metric that a clause names; without one, the only outcome of the document."""
    written = metric_said(source, clause) or metric_said(source, claim.text)
    if written and written not in _REWARDS:
        return written
    outcomes = {
        metric
        for metric in metrics_told(source)
        if _direction(metric) == 1 and metric not in ("throughput", "mfu")
    }
    # 性能, "score" and "reward" are whatever of the kind the document has.
    if written in outcomes and written != "performance":
        return written
    outcomes = outcomes & set(_REWARDS) if written in _REWARDS[1:] else outcomes
    return outcomes.pop() if len(outcomes) == 1 else ""


def _direction(metric: str) -> int:
    known = names.metric(metric)
    return 0 if known is None else known.direction


def _one_sign(clause: str, words: dict[int, re.Pattern[str]]) -> int:
    """1 or -1 if a clause has words of one side only, else 0."""
    signs = [sign for sign, pattern in words.items() if pattern.search(clause)]
    return signs[0] if len(signs) == 1 else 0


# --- rules


def extreme_false(sources: Sequence[Source]) -> Iterator[Found]:
    """ "B has the lowest loss", where at every place some other arm has a lower one."""
    for source in sources:
        for claim in facts_said(source):
            for clause in clauses(claim):
                found = _not_extreme(source, claim, clause)
                if found is not None:
                    yield found
                    break


def _not_extreme(source: Source, claim: Claim, clause: str) -> Found | None:
    arms = named(claim, clause)
    sign, by_quality = _one_sign(clause, _MOST), _one_sign(clause, _BEST)
    if len(arms) != 1 or bool(sign) == bool(by_quality) or _UNSURE.search(clause):
        return None
    if _ALONG.search(clause) or (by_quality and re.search(r"step|epoch|步|轮", clause, re.I)):
        return None
    metric = metric_in(source, claim, clause)
    sign = sign or by_quality * _direction(metric)
    groups = meant(source, claim, clause, metric) if metric and sign else {}
    groups = {at: told for at, told in groups.items() if arms[0] in told}
    beaten: list[tuple[str, str]] = []
    for at, told_ in groups.items():
        ours = told_[arms[0]].value or 0.0
        ahead = [arm for arm, one in told_.items() if sign * ((one.value or 0.0) - ours) > 0]
        ahead = [arm for arm in ahead if apart(bounds(told_[arm]), bounds(told_[arms[0]]))]
        if not ahead:
            return None
        best = max(ahead, key=lambda arm: sign * (told_[arm].value or 0.0))
        beaten.append((at, best))
    if not beaten:
        return None
    at, other = beaten[0]
    return _found("extreme-false", source, claim, metric, groups[at], (arms[0], other))


def comparison_false(sources: Sequence[Source]) -> Iterator[Found]:
    """ "A has a higher KL than B", where at every place A's is lower."""
    for source in sources:
        for claim in facts_said(source):
            for clause in clauses(claim):
                found = _not_so(source, claim, clause)
                if found is not None:
                    yield found
                    break


def _not_so(source: Source, claim: Claim, clause: str) -> Found | None:
    arms = named(claim, clause)
    every = list(dict.fromkeys(run.arm for run in source.runs[:MANY]))
    if len(arms) == 1 and len(every) == 2:
        arms = [*arms, *(arm for arm in every if arm != arms[0])]
    if len(arms) != 2 or _UNSURE.search(clause) or _ALONG.search(clause):
        return None
    if any(_one_sign(clause, words) for words in (_MOST, _BEST)):
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
        _one_sign(clause, _BETTER) * _direction(metric),
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


def range_false(sources: Sequence[Source]) -> Iterator[Found]:
    """ "All losses lie between 0.017 and 0.022", and one of the table does not."""
    for source in sources:
        for claim in facts_said(source):
            ranges = [one for one in claim.numbers if one.low is not None and one.high is not None]
            ranges = ranges or _between(claim)
            metric = metric_said(source, claim.text) and metric_in(source, claim, claim.text)
            if len(ranges) != 1 or not metric or not _BETWEEN.search(claim.text):
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
