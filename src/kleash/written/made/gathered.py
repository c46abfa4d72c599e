"""Lines that are the mean, sum, spread, best or place of the best of lines side by side."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from kleash.imports.markdown import labels
from kleash.imports.markdown.text import bare
from kleash.written.made.bench import (
    HINTED,
    HINTS,
    OTHER,
    SAID,
    SHAPED,
    WHOLE,
    Array,
    Batch,
    Bench,
    Cell,
)
from kleash.written.made.boards import SUMMARY
from kleash.written.printed import differ_in_number, is_total

STATISTICS: dict[str, Callable[[Array, Array], tuple[Array, Array]]] = {
    "mean": lambda x, d: (x.mean(0), d.mean(0)),
    "sum": lambda x, d: (x.sum(0), d.sum(0)),
    "max": lambda x, d: (x.max(0), d.max(0)),
    "min": lambda x, d: (x.min(0), d.max(0)),
    "range": lambda x, d: (x.max(0) - x.min(0), 2 * d.max(0)),
    "spread": lambda x, d: (x.std(0, ddof=1), d.max(0)),
    "spread of all": lambda x, d: (x.std(0), d.max(0)),
    "first": lambda x, d: (x[0], d[0] * 0),
    "last": lambda x, d: (x[-1], d[-1] * 0),
    "last - first": lambda x, d: (x[-1] - x[0], d[0] + d[-1]),
    "best - last": lambda x, d: (x.max(0) - x[-1], 2 * d.max(0)),
    "last - best": lambda x, d: (x[-1] - x.max(0), 2 * d.max(0)),
}


_KIND = {
    "mean": "mean", "sum": "sum", "range": "difference", "spread": "spread",
    "spread of all": "spread", "max": "max", "min": "min", "best - last": "difference",
    "last - best": "difference",
}  # fmt: skip


_WORD = {"mean": "mean", "sum": "sum", "range": "range", "spread": "spread",
         "spread of all": "spread", "max": "best", "min": "best", "best - last": "best",
         "last - best": "best"}  # fmt: skip


def _groups(on: Bench) -> list[tuple[list[int], bool]]:
    """Lines of one part side by side, and whether they are a group by their titles."""
    found: dict[tuple[int, ...], bool] = {}
    names = None if on.board.turned else (0, "")  # a coefficient is no part
    plain = [nth for nth, line in enumerate(on.others) if not line[1] and line != names]
    kinds = {line[1] for line in on.others}
    for kind in kinds:
        same = [nth for nth, line in enumerate(on.others) if line[1] == kind]
        runs = [same[a:b] for a, b in combinations(range(len(same) + 1), 2) if b - a > 1]
        for run in runs:
            columns = [on.others[nth][0] for nth in run]
            if columns[-1] - columns[0] - (columns[0] < on.line[0] < columns[-1]) != len(run) - 1:
                continue
            found[tuple(run)] = False
    axis = on.board.title_axis
    whole = tuple(nth for nth in plain if on.others[nth][0] in axis)
    if len(whole) > 1:
        found[whole] = True
    by_plain = tuple(
        nth for nth in plain if not SUMMARY.search(bare(on.board.titles[on.others[nth][0]]))
    )
    for group in (by_plain, alike_before(on), _like_before(on)):
        if len(group) > 1:
            found[group] = True
    siblings = {nth for nth in range(len(on.others)) if _is_sibling(on, nth)}
    return [
        (list(run), natural and _one_kind(on, run)) for run, natural in found.items()
        if siblings.isdisjoint(run) and len({on.gap_L[nth] for nth in run}) == 1
    ]  # fmt: skip


def _is_sibling(on: Bench, nth: int) -> bool:
    """Whether a line goes by the same words with another number: "seed 1" sums up no "seed 2"."""
    other = on.board.titles[on.others[nth][0]]
    return bool(re.search(r"[^\W\d]", on.title)) and differ_in_number(on.title, other)


def _one_kind(on: Bench, run: Sequence[int]) -> bool:
    """Whether lines are printed alike at each position, so that they may be of one thing."""
    with np.errstate(all="ignore"):
        halves = on.half_LN[list(run)]
        apart = np.nanmax(halves, 0) / np.nanmin(halves, 0)
    return len({on.units[nth] for nth in run}) == 1 and bool(np.nanmedian(apart) < 11)


def is_summary(title: str) -> bool:
    """Whether a title says nothing but that it sums up: "Mean", "合计"."""
    return bool(
        re.fullmatch(
            r"(?:平均|均值|合计|总计|总和|极差|mean|average|avg\.?|total|sum|range|"
            r"max\s?-\s?min|最高\s?-\s?最低|最大\s?-\s?最小)[\s:()]*",
            title,
            re.I,
        )
    )


def alike_before(on: Bench) -> tuple[int, ...]:
    """The lines right before a line that are printed alike."""
    run: list[int] = []
    at = on.line[0]
    for nth in reversed(range(len(on.others))):
        line = on.others[nth]
        if line[1] or line[0] >= on.line[0] or (line[0] == 0 and not on.board.turned):
            continue
        last = run[-1] if run else nth
        counts = [on.middle_L[one] >= WHOLE for one in (nth, last)]
        if line[0] != at - 1 or not on.even_L[nth] or on.units[nth] != on.units[last]:
            break
        if counts[0] and not counts[1]:  # how many there were, before what came of them
            break
        run.append(nth)
        at = line[0]
    return tuple(reversed(run))


def _like_before(on: Bench) -> tuple[int, ...]:
    """The lines before a total that are printed as it is, whatever stands between them."""
    if not is_total(on.title):
        return ()
    half = np.nanmedian(on.half_N)
    return tuple(
        nth
        for nth, line in enumerate(on.others)
        if 0 < line[0] < on.line[0]
        and line[1] == on.line[1]
        and on.units[nth] == on.unit
        and on.middle_L[nth] == half
    )


def of_many(on: Bench) -> Iterator[Batch]:
    every = _groups(on)
    for name, kind in _KIND.items():
        hinted = bool(HINTS[_WORD[name]].search(on.title)) or (
            kind == "spread" and on.line[1] == "±"
        )
        if name == "range" and on.signed:
            continue  # a change has its sign
        least = 3 if kind in ("spread", "max", "min") or "best" in name else 0
        runs = [run for run, _ in every if len(run) >= least]
        if not runs:
            continue
        natural = np.array([natural for run, natural in every if len(run) >= least])
        given, within = _statistic(on, name, runs)
        if kind in ("max", "min"):
            # A course may have been higher between the points that are printed.
            beyond = on.value_N > given if kind == "max" else on.value_N < given
            given = np.where(beyond & (np.abs(on.value_N - given) > within), np.nan, given)
            given = np.where(natural[:, None] & hinted, given, np.nan)
            within = np.where(within > on.half_N, within, 0.0)
        shaped = SAID if is_summary(on.title) else SHAPED
        cost = np.where(natural, shaped, HINTED) if hinted else np.full(len(runs), OTHER)
        yield _batch_of_runs(on, kind, given, within, cost, runs)
    yield from _places(on, every)


def _statistic(on: Bench, name: str, runs: Sequence[list[int]]) -> tuple[Array, Array]:
    """A statistic of each run, and what rounding allows: of all that are equally long at once."""
    given, within = (np.empty((len(runs), len(on.value_N))) for _ in range(2))
    for count in {len(run) for run in runs}:
        own = [nth for nth, run in enumerate(runs) if len(run) == count]
        lines = np.array([runs[nth] for nth in own]).T
        given[own], within[own] = STATISTICS[name](on.value_LN[lines], on.half_LN[lines])
    return given, within


def _batch_of_runs(
    on: Bench, kind: str, given: Array, within: Array, cost: NDArray[np.int64],
    runs: Sequence[list[int]], odds: float | None = None,
) -> Batch:  # fmt: skip
    def cells(nth: int, at: int) -> tuple[Cell, ...]:
        run = runs[nth]
        if kind in ("max", "min", "argmax", "argmin"):
            pick = np.argmax if kind.endswith("max") else np.argmin
            run = [run[int(pick(on.value_LN[run, at]))]]
        return tuple((at, on.others[one]) for one in run)

    return Batch(kind, given, within, cost, cells, odds=odds)


def _places(on: Bench, every: Sequence[tuple[list[int], bool]]) -> Iterator[Batch]:
    """At which of its columns a row is highest, or lowest, where these are counted or numbered."""
    axis = {nth: _in_title(on.board.titles[line[0]]) for nth, line in enumerate(on.others)}
    for name in ("argmax", "argmin"):
        given, cost, runs, widths = list[Array](), list[int](), list[list[int]](), list[int]()
        for run, natural in every:
            steps = [axis[nth] for nth in run]
            if not natural or None in steps or len(set(steps)) < len(steps) or len(steps) < 3:
                continue
            x = on.value_LN[run]
            whole = np.isfinite(x).all(0)
            best = x.max(0) if name == "argmax" else x.min(0)
            given.append(np.where(whole, _told_step(on, np.array(steps, float), x == best), np.nan))
            hinted = bool(HINTS["best"].search(on.title))
            told_so = labels.is_best_step(on.title)
            cost.append(SAID if told_so else SHAPED if hinted else OTHER)
            runs.append(run)
            widths.append(len(run))
        if runs:
            told, odds = np.array(given), 1 / min(widths)
            yield _batch_of_runs(on, name, told, told * 0, np.array(cost), runs, odds=odds)


def _told_step(on: Bench, steps: Array, best_LN: NDArray[np.bool_]) -> Array:
    """Where a line is best: where it is said to be, if it is there too."""
    first = steps[np.argmax(best_LN, 0)]
    there = steps[:, None] == on.value_N[None, :]
    told = (best_LN & there).any(0)
    return np.where(told, on.value_N, np.where(there.any(0), first, np.nan))


def _in_title(title: str) -> float | None:
    numbers = re.findall(r"(?<![\d.])\d+(?:\.\d+)?", bare(title))
    return float(numbers[0]) if len(numbers) == 1 else None
