"""What a document says in words, held against its own numbers."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from kleash.findings.peaks import judged, measured, noise
from kleash.findings.record import Found, canonical, points, shown
from kleash.findings.spoken import table_of
from kleash.imports import Claim, Imported, Series, Source, names

QUOTED = 3
# Words that need a computed statistic beside them.
WORDS = ("significant", "stable", "converged", "faster", "conservative", "overfitting", "similar")
_STATISTIC = re.compile(
    r"(?<![a-z])p\s?[<=≈]|置信|区间|检验|标准差|标准误|bootstrap|interval|(?<![a-z])(?:CI|SE|SD)(?![a-z])|"
    r"std\.? ?err|t-test|±",
    re.I,
)
_SUPPOSED = re.compile(
    r"如果|若要|假如|应该|能否|是否|(?<![a-z])(?:if|should|would|could)(?![a-z])", re.I
)
_BEST = re.compile(
    r"(?:最佳性能|最佳|最好成绩|best(?: (?:performance|score|reward))?)[^\d,;。]{0,4}(\d+\.\d+)",
    re.I,
)
_WITHIN = re.compile(
    r"(?:差异|差别|相差|differ\w*|spread).{0,30}?(?:<|不到|小于|低于|less than|below|within)"
    r"\s?(\d{1,3}(?:\.\d{1,4})?)\s?%",
    re.I,
)
_OUTPUTS = re.compile(r"选择|索引|输出|预测|准确率|choices?|outputs?|predictions?|accurac", re.I)
_WEIGHTS = re.compile(
    r"(?:参数|权重).{0,12}(?:不同|差异|不一样)|(?:param\w*|weights?).{0,20}differ", re.I
)
_PAIR = re.compile(r"\((-?[\d.]{1,20})(%?)\)\s*([<>])(?=[^()<>≈=]{0,40}\((-?[\d.]{1,20})(%?)\))")


def word_without_statistic(sources: Sequence[Source]) -> Iterator[Found]:
    """Words such as "significantly" or "stable", where no statistic was computed."""
    for source in sources:
        said: dict[str, list[Claim]] = defaultdict(list)
        for claim in source.claims:
            if "expected" in claim.judgements or _STATISTIC.search(claim.text):
                continue
            if _SUPPOSED.search(claim.text):
                continue
            for word in claim.judgements:
                if word in WORDS:
                    said[word].append(claim)
        for word in WORDS:
            if word in said:
                facts = {
                    "judgement": word,
                    "count": len(said[word]),
                    "texts": [claim.text for claim in said[word][:QUOTED]],
                }
                where = tuple(claim.where for claim in said[word])
                yield Found("word-without-statistic", "warning", where, facts)


def _curves(source: Source) -> list[tuple[Imported, Series]]:
    """The curve of results of each run that has one, all of one metric."""
    found = []
    for run in source.runs[:100]:
        fit = [s for s in run.series if judged(s.metric) == 1 and len(measured(s)[1]) > 2]
        fit = [s for s in fit if canonical(s.metric) not in ("throughput", "mfu")]
        if fit:
            found.append((run, max(fit, key=lambda series: len(series.steps))))
    metrics = {canonical(series.metric) for _, series in found}
    return found if len(metrics) == 1 and len(found) == 2 else []


_WITHHELD = re.compile(
    r"不能|不宜|无法|不足以|(?<![a-z])(?:cannot|can't|not enough)(?![a-z])", re.I
)


def _named(source: Source, word: str, arm: str) -> list[Claim]:
    """Sentences that say a word of one arm alone, as a fact."""
    return [
        claim
        for claim in source.claims
        if word in claim.judgements and claim.arms == (arm,) and "expected" not in claim.judgements
        if not _WITHHELD.search(claim.text)
    ]


def stable_contradicted(sources: Sequence[Source]) -> Iterator[Found]:
    """An arm is called more stable, and its curve swings at least as much about its trend."""
    for source in sources:
        curves = _curves(source)
        for (run, ours), (other, theirs) in _both(curves):
            said = _named(source, "stable", run.arm)
            swing, calmer = noise(ours), noise(theirs)
            if said and swing is not None and calmer is not None and swing >= calmer:
                facts = {
                    "arm": run.arm,
                    "other": other.arm,
                    "metric": ours.metric,
                    "swing": shown(swing),
                    "other_swing": shown(calmer),
                    "texts": [claim.text for claim in said[:QUOTED]],
                }
                where = (*(claim.where for claim in said), ours.where, theirs.where)
                yield Found("stable-contradicted", "warning", where, facts)


Curve = tuple[Imported, Series]


def _both(curves: Sequence[Curve]) -> list[tuple[Curve, Curve]]:
    return [(curves[0], curves[1]), (curves[1], curves[0])] if len(curves) == 2 else []


def faster_contradicted(sources: Sequence[Source]) -> Iterator[Found]:
    """An arm is called faster, and at a threshold that both reach it comes second."""
    for source in sources:
        for (run, ours), (other, theirs) in _both(_curves(source)):
            said = _named(source, "faster", run.arm)
            threshold = min(float(measured(s)[1].max()) for s in (ours, theirs))
            at, before = _reached(ours, threshold), _reached(theirs, threshold)
            if said and at > before:
                facts = {
                    "arm": run.arm,
                    "other": other.arm,
                    "metric": ours.metric,
                    "threshold": threshold,
                    "at": int(at) if at.is_integer() else at,
                    "other_at": before,
                    "texts": [claim.text for claim in said[:QUOTED]],
                }
                where = (*(claim.where for claim in said), ours.where, theirs.where)
                yield Found("faster-contradicted", "warning", where, facts)


def _reached(series: Series, threshold: float) -> float:
    steps, values = measured(series)
    return float(steps[values >= threshold].min())


def order_false(sources: Sequence[Source]) -> Iterator[Found]:
    """A chain such as "A (0.084) > B (0.081)" whose numbers are in another order."""
    for source in sources:
        for claim in source.claims:
            for left, unit, sign, right, other in _PAIR.findall(claim.text):
                try:
                    ours, theirs = float(left), float(right)
                except ValueError:
                    continue
                holds = ours > theirs if sign == ">" else ours < theirs
                if unit == other and not holds:
                    facts = {"text": claim.text, "left": ours, "sign": sign, "right": theirs}
                    yield Found("order-false", "error", (claim.where,), facts)


def best_false(sources: Sequence[Source]) -> Iterator[Found]:
    """A number that is called the best of a curve that holds a better one."""
    for source in sources:
        curves = [
            (run, series)
            for run in source.runs[:100]
            for series in run.series
            if judged(series.metric) == 1 and len(measured(series)[1]) > 1
        ]
        for claim in source.claims:
            for text in _BEST.findall(claim.text):
                said = float(text)
                better = [
                    (run, float(values.max()), series)
                    for run, series in curves
                    if said in (values := measured(series)[1]) and values.max() > said
                ]
                if better and not any(said == measured(series)[1].max() for _, series in curves):
                    run, best, series = better[0]
                    facts = {
                        "text": claim.text,
                        "arm": run.arm,
                        "metric": series.metric,
                        "said": said,
                        "best": best,
                    }
                    yield Found("best-false", "error", (claim.where, series.where), facts)


def spread_false(sources: Sequence[Source]) -> Iterator[Found]:
    """ "All within 4 %", said under a table whose numbers are further apart."""
    for source in sources:
        for claim in source.claims:
            limit = _WITHIN.search(claim.text)
            metric = canonical(names.mention(claim.text))
            table = table_of(source, claim)
            if limit is None or table is None or not metric:
                continue
            lines = set(table.lines)
            found = [
                point
                for run in source.runs
                for point in points(run, metric)
                if point.known and point.number.where.line in lines
            ]
            values = [abs(point.value) for point in found]
            if len(values) < 2 or max(values) == 0:
                continue
            apart = (max(values) - min(values)) / max(values)
            allowed = float(limit[1]) / 100
            if apart > allowed + 0.0005:
                facts = {
                    "text": claim.text,
                    "metric": found[0].written,
                    "limit": allowed,
                    "spread": shown(apart),
                }
                where = (claim.where, *(point.number.where for point in found))
                yield Found("spread-false", "error", where, facts)


def same_outputs_from_other_weights(sources: Sequence[Source]) -> Iterator[Found]:
    """Weights that differ and yet choose the same: the part that differs may not be loaded."""
    for source in sources:
        same = [c for c in source.claims if "same" in c.judgements and _OUTPUTS.search(c.text)]
        for claim in source.claims if same else ():
            shares = [one for one in claim.numbers if one.unit == "%" and one.value]
            if not shares or not _WEIGHTS.search(claim.text):
                continue
            share = shares[0].value or 0.0
            facts = {"text": claim.text, "share": share, "trained": _trained(sources, share)}
            where = (claim.where, *(each.where for each in same))
            yield Found("same-outputs-other-weights", "error", where, facts)
            break


def _trained(sources: Sequence[Source], share: float) -> float | None:
    """The share of parameters that configs say was trained, where it is the share that differs."""
    for run in (run for source in sources for run in source.runs):
        for setting in run.config.values():
            for text in re.findall(r"([\d.]{1,8})\s?%", str(setting.value)):
                trained = float(text) / 100 if re.fullmatch(r"\d+(?:\.\d+)?", text) else 0.0
                if abs(trained - share) < 0.001:
                    return trained
    return None


RULES = (
    stable_contradicted,
    faster_contradicted,
    best_false,
    order_false,
    spread_false,
    same_outputs_from_other_weights,
    word_without_statistic,
)
