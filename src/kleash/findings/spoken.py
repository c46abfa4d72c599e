"""Which numbers a sentence speaks of: its arms, its metric, its place, the table it stands under.

A sentence is read no further than that. What it says of them is for the rules.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from kleash.findings.record import canonical, points
from kleash.imports import Claim, Number, Source, Table, names
from kleash.imports.markdown.numbers import places

NEAR = 12  # lines between a table and a sentence on it
MANY = 100  # runs of a source that sentences are held against
Groups = dict[str, dict[str, Number]]
_CLAUSE = re.compile(r"[,;。、]\s?|(?:^|\s)(?:but|while|whereas|and|but)\s|但|而(?!且)")
_REWARDS = ("performance", "reward", "eval_reward")
# "judge score" is a score of its own; "best score" is the one that was measured.
_KIND_OF_SCORE = re.compile(
    r"(?<![a-z])(?!the |a |best |final |mean |average |highest |lowest |higher |lower |better |"
    r"validation |eval |test |its |their |same |of |in |on |by |and )"
    r"[a-z]+ (?:scores?|performance)",
    re.I,
)
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
        for point in points(run, metric):
            if point.known:
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
    found = value and re.search(rf"(?<![\w.]){re.escape(value[1])}0*(?![\w%]|\.\d)", text)
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
    # A column under a name of its own ("win rate") is meant before any word in it.
    own = [name for name in metrics_told(source) if names.metric(name) is None and len(name) > 2]
    for name in sorted(own, key=len, reverse=True):
        if name.casefold() in text.casefold():
            return name
    written = names.mention(text)
    other = _KIND_OF_SCORE.search(text) if canonical(written) == "performance" else None
    return "" if other else canonical(written)


def metrics_told(source: Source) -> set[str]:
    """The metrics of which a source has numbers, or means of numbers."""
    found = {point.metric for run in source.runs[:MANY] for point in points(run)}
    return found | {canonical(one.metric) for one in source.derived if one.kind == "mean"}


def metric_in(source: Source, claim: Claim, clause: str) -> str:
    """The metric that a clause names; without one, the only outcome of the document."""
    written = metric_said(source, clause) or metric_said(source, claim.text)
    if written and written not in _REWARDS:
        return written
    unknown = any(names.metric(metric) is None for metric in metrics_told(source))
    if not written and unknown and not _STATISTICS["mean"].search(clause):
        return ""  # which of them is the outcome only the writer knows
    outcomes = {
        metric
        for metric in metrics_told(source)
        if direction(metric) == 1 and metric not in ("throughput", "mfu")
    }
    # 性能, "score" and "reward" are whatever of the kind the document has.
    if written in outcomes and written != "performance":
        return written
    outcomes = outcomes & set(_REWARDS) if written in _REWARDS[1:] else outcomes
    return outcomes.pop() if len(outcomes) == 1 else ""


def direction(metric: str) -> int:
    known = names.metric(metric)
    return 0 if known is None else known.direction
