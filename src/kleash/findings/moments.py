"""At which step: values that a list or a sentence puts at another step than the curve does.

A value of three digits and more names its point, so a second telling of it can be held against
the first. Sentences are read only where a step and a value stand side by side.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from kleash.findings.peaks import EXTREMES, curve_of, judged, measured
from kleash.findings.record import Found, digits, number_of, points, shown
from kleash.imports import Claim, Imported, Number, Series, Source, Where, names
from kleash.imports.markdown.numbers import numbers_in

DIGITS = 3
FEWEST = 4  # points that show at which steps a curve was measured
STEADY = 0.1  # a change beyond which nothing "stays stable"
MANY = 100
_AFTER = re.compile(
    r"(\d+\.\d+)\s*(?:\(\s*|at |@\s?|in |,\s?)(?:step|第)\s*(\d+)(?!\s*[-~\d])", re.I
)
_BEFORE = re.compile(
    r"(?:step|第)\s*(\d+)(?!\s*[-~\d])\s*步?(?:时|的|:|\(|达到|出现|为|是|性能|最[佳终高低优]|"
    r"第一个|峰值|大幅|略有|下降|恢复|was|is|reaches|reached|had|has|with|\s){0,8}\s*\(?(\d+\.\d+)"
    r"(?![\d.]|\s?%?\s?(?:→|->))",  # where a change began stands at the step before
    re.I,
)
_SPAN = re.compile(
    r"step\s*(\d+)\s*[-~]\s*(\d+)\D{0,12}?(\d+\.\d+)\s?(?:→|->)\s?(\d+\.\d+)(?!\s?(?:→|->|\d))",
    re.I,
)
_ARROWS = re.compile(r"\d+(?:\.\d+)?%?(?:\s?(?:→|->)\s?\d+(?:\.\d+)?%?)+")
_AHEAD = re.compile(
    r"(?:快|提前|早|少|慢|晚)了?\s?(\d+)\s?步|(\d+)\s?steps?\s?(?:earlier|sooner|faster|later|fewer)",
    re.I,
)
_STEADY = re.compile(
    r"(?:保持|维持|一直)\S{0,4}稳定|(?:stays?|stayed|remains?|remained) (?:\w+ )?stable", re.I
)
_DONE = re.compile(
    r"(?:已训练|训练了|已完成|训练已完成|完成了|共训练)\s?(\d+)\s?步|"
    r"(?:trained for|ran for|completed|finished)(?: all)? (\d+) steps",
    re.I,
)


_LATER = re.compile(r"will|would|next|plan|should|将|计划|下一|准备", re.I)


def _whole(step: float) -> float:
    """A step as it is written: 40, not 40.0."""
    return int(step) if float(step).is_integer() else step


def _curves(source: Source) -> list[tuple[Imported, Series]]:
    return [
        (run, series)
        for run in source.runs[:MANY]
        for series in run.series
        if series.axis == "step" and len(measured(series)[1]) > 1
    ]


def _steps_of(value: float, curves: Sequence[tuple[Imported, Series]]) -> list[tuple[str, float]]:
    """The arms and steps at which a value stands, to the digit."""
    found = []
    for run, series in curves:
        steps, values = measured(series)
        found += [(run.arm, float(step)) for step in steps[np.isclose(values, value, 1e-9, 1e-12)]]
    return found


def value_elsewhere(sources: Sequence[Source]) -> Iterator[Found]:
    """ "2.123 at step 45", where the curve has 2.123 at step 40 only."""
    for source in sources:
        curves = _curves(source)
        for claim in source.claims if curves else ():
            for step, text in _placed(claim.text):
                value = float(text)
                at = _steps_of(value, curves)
                own = [one for one in at if one[0] in claim.arms] if len(claim.arms) == 1 else at
                known = any(step in measured(series)[0] for _, series in curves)
                enough = DIGITS - 1 if known and len(at) == 1 else DIGITS
                if not own or len(text.replace(".", "").lstrip("0")) < enough:
                    continue
                if step not in {each for _, each in at}:
                    facts = {
                        "text": claim.text,
                        "value": value,
                        "said": _whole(step),
                        "at": [_whole(each) for each in sorted({each for _, each in own})],
                    }
                    yield Found("value-elsewhere", "error", (claim.where,), facts)


def _placed(text: str) -> list[tuple[float, str]]:
    """Steps with the values beside them."""
    found = [(float(match[2]), match[1]) for match in _AFTER.finditer(text)]
    rest = _AFTER.sub(" ", text)
    for match in _SPAN.finditer(rest):
        found += [(float(match[1]), match[3]), (float(match[2]), match[4])]
    return found + [(float(match[1]), match[2]) for match in _BEFORE.finditer(rest)]


def best_step_false(sources: Sequence[Source]) -> Iterator[Found]:
    """A best that is said to be at one step, and stands at another, or is none."""
    for source in sources:
        for run in source.runs[:MANY]:
            for cell in run.cells:
                series = curve_of(run, cell.metric)
                series = series or _like(run, cell.metric)
                if cell.statistic not in EXTREMES or series is None or cell.number.value is None:
                    continue
                found = _not_best(run, series, cell.metric, cell.number, cell.step, cell.statistic)
                if found is not None:
                    yield found


def _like(run: Imported, metric: str) -> Series | None:
    """The only curve of results of a run, where a best is named by another word for it."""
    fit = [s for s in run.series if judged(s.metric) == 1 and judged(metric) == 1]
    return fit[0] if len(fit) == 1 and len(measured(fit[0])[1]) >= FEWEST else None


def _not_best(
    run: Imported, series: Series, metric: str, best: Number, step: float | None, kind: str
) -> Found | None:
    steps, values = measured(series)
    sign = {"max": 1, "min": -1}.get(kind, judged(metric))
    whole = series.estimated is None or not series.estimated.any()
    if series.axis != "step" or not len(values) or not sign or digits(best) < DIGITS:
        return None
    half = 0.5 * 10.0 ** -(best.decimals or 0) * (1 + 1e-9)
    at = steps[np.abs(values - (best.value or 0.0)) <= half]
    top = float(steps[np.argmax(sign * values)])
    beyond = (
        whole
        and len(values) >= FEWEST
        and (sign * values).max() > sign * (best.value or 0.0) + half
    )
    elsewhere = step is not None and len(at) > 0 and step not in at
    if not (beyond and len(at)) and not elsewhere:
        return None
    facts = {
        "arm": run.arm,
        "metric": metric,
        "said": best.value,
        "step": None if step is None else _whole(step),
        "value": float(values[np.argmax(sign * values)]),
        "at": _whole(top if beyond else float(at[0])),
    }
    return Found("best-step-false", "error", (best.where, series.where), facts)


def stray_steps(sources: Sequence[Source]) -> Iterator[Found]:
    """A step off the grid of all others, with the value of a step that is on it."""
    for source in sources:
        for run, series in _curves(source):
            if run.format != "markdown":
                continue
            steps, values = measured(series)
            every = _grid(steps)
            # The first may be any: 10, 40, 80, 120.
            off = [at for at, step in enumerate(steps) if at and every and step % every]
            for at in off:
                twins = [n for n in range(len(steps)) if n != at and values[n] == values[at]]
                number = Number(float(values[at]), "known", series.place(at), series.decimals)
                if twins and len(off) * 3 <= len(steps) and digits(number) >= DIGITS:
                    facts = {
                        "arm": run.arm,
                        "metric": series.metric,
                        "at": _whole(float(steps[at])),
                        "value": float(values[at]),
                        "other": _whole(float(steps[twins[0]])),
                    }
                    where = (_place(series, steps[at]), _place(series, steps[twins[0]]))
                    yield Found("stray-step", "error", where, facts)


def _place(series: Series, step: float) -> Where:
    return series.place(int(np.flatnonzero(series.steps == step)[0]))


def _grid(steps: np.ndarray) -> float:
    """How far apart a curve was measured, if nearly all of its steps are multiples of that."""
    gaps = Counter(np.diff(np.unique(steps)).tolist())
    if len(steps) < FEWEST or not gaps:
        return 0.0
    every = float(gaps.most_common(1)[0][0])
    return every if every > 1 and np.mean(steps % every == 0) >= 2 / 3 else 0.0


def course_false(sources: Sequence[Source]) -> Iterator[Found]:
    """ "0.216 → 0.256 → 0.281", where the curve that has the others lacks one of them."""
    for source in sources:
        held: dict[str, list[tuple[Imported, list[float]]]] = defaultdict(list)
        for run in source.runs[:MANY] if source.claims else ():
            by_metric: dict[str, list[float]] = defaultdict(list)
            for point in points(run):
                by_metric[point.metric].append(point.value)
            for metric, values in by_metric.items():
                held[metric].append((run, values))
        for claim in source.claims:
            yield from _off_course(claim, held)


def _off_course(
    claim: Claim, held: dict[str, list[tuple[Imported, list[float]]]]
) -> Iterator[Found]:
    for match in _ARROWS.finditer(claim.text):
        numbers = [one for one, _, _ in numbers_in(match.group(), claim.where)]
        if len(numbers) < 2 or any(one.value is None or not one.decimals for one in numbers):
            continue
        best: tuple[int, Imported, str, list[Number]] | None = None
        for metric, tellings in held.items():
            for run, values in tellings:
                lacking = [one for one in numbers if not _holds(one, values)]
                kept = sum(digits(one) >= DIGITS for one in numbers if one not in lacking)
                if kept and (best is None or len(lacking) < best[0]):
                    best = (len(lacking), run, metric, lacking)
        # "2.31 → 1.61" may go from one arm to another.
        elsewhere = best is not None and any(
            _holds(one, values)
            for one in best[3]
            for tellings in held.values()
            for _, values in tellings
        )
        if best is not None and best[0] == 1 and not elsewhere:
            facts = {
                "text": claim.text,
                "number": best[3][0].text,
                "metric": best[2],
                "arm": best[1].arm,
            }
            yield Found("course-false", "error", (claim.where,), facts)


def _holds(one: Number, values: Sequence[float]) -> bool:
    half = 0.5 * 10.0 ** -(one.decimals or 0) * (1 + 1e-9)
    return any(abs(value - (one.value or 0.0)) <= half for value in values)


def steps_ahead_false(sources: Sequence[Source]) -> Iterator[Found]:
    """ "5 steps earlier", where the two bests are not 5 steps apart."""
    for source in sources:
        bests: dict[str, set[float]] = defaultdict(set)
        for run in source.runs[:MANY]:
            for cell in run.cells:
                if cell.statistic in EXTREMES and cell.step is not None:
                    bests[run.arm].add(float(cell.step))
                if cell.statistic == "best step" and cell.number.value is not None:
                    bests[run.arm].add(float(cell.number.value))
        if len(bests) != 2:
            continue
        ours, theirs = bests.values()
        gaps = {abs(a - b) for a in ours for b in theirs}
        for claim in source.claims:
            match = _AHEAD.search(claim.text)
            if match is None or len(re.findall(r"step\s*\d|第\s*\d", claim.text, re.I)) > 1:
                continue
            said = float(match[1] or match[2])
            if said not in gaps:
                facts = {
                    "text": claim.text,
                    "said": _whole(said),
                    "steps": [*map(_whole, sorted(gaps))],
                }
                yield Found("steps-ahead-false", "error", (claim.where,), facts)


def steps_denied(sources: Sequence[Source]) -> Iterator[Found]:
    """ "463 steps were trained", where the configuration has 465."""
    for source in sources:
        planned = {steps for run in source.runs[:MANY] if (steps := number_of(run, "steps"))}
        last = {float(s.steps.max()) for _, s in _curves(source)}
        for claim in source.claims if planned else ():
            match = _DONE.search(claim.text)
            if match is None or _LATER.search(claim.text):
                continue
            said = float(match[1] or match[2])
            if said not in planned | last:
                facts = {
                    "text": claim.text,
                    "said": _whole(said),
                    "configured": [*map(_whole, sorted(planned))],
                }
                yield Found("steps-denied", "error", (claim.where,), facts)


def not_steady(sources: Sequence[Source]) -> Iterator[Found]:
    """ "Entropy stays stable (0.216 → 0.281)": a change of that size is none."""
    for source in sources:
        for claim in source.claims:
            course = _ARROWS.search(claim.text)
            if course is None or not _STEADY.search(claim.text):
                continue
            numbers = [one.value for one, _, _ in numbers_in(course.group(), claim.where)]
            known = [value for value in numbers if value is not None]
            if len(known) < 2 or known[0] == 0 or not names.mention(claim.text):
                continue
            change = (known[-1] - known[0]) / abs(known[0])
            if abs(change) > STEADY:
                facts = {
                    "text": claim.text,
                    "first": known[0],
                    "last": known[-1],
                    "change": shown(change),
                }
                yield Found("not-steady", "warning", (claim.where,), facts)


RULES = (
    value_elsewhere,
    best_step_false,
    stray_steps,
    course_false,
    steps_ahead_false,
    steps_denied,
    not_steady,
)
