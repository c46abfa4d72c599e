"""Curves over steps: their level, phases and collapse.

Steps of one run are not replicates of anything: what is found here is about these two curves. How
much a curve swings is in `swings`, how soon it gets somewhere in `pace`. T is evaluations.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from kleash.stats.intervals import Floats, Interval, Width, checked, gaps
from kleash.stats.resampling import block_interval, block_length, moving_blocks, widening

SHORT_CURVE = 20
FEWEST_STEPS = 8
END = 10  # the end of a curve is one in so many of its points
PHASES: tuple[Literal["early", "middle", "late"], ...] = ("early", "middle", "late")
SMOOTHED_BEST = 5
ALIKE = 0.4  # a correlation of neighbours beyond which no interval here is wide enough

Caution = Literal[
    "steps_are_not_replicates", "too_few_steps", "neighbours_alike", "noise_from_bends"
]


def curve(steps: ArrayLike, values: ArrayLike) -> tuple[Floats, Floats]:
    """Steps that rise and a value for each."""
    at, y = checked(steps), checked(values)
    if at.shape != y.shape:
        raise ValueError(f"need a step for each value: {at.shape} {y.shape}")
    if (np.diff(at) <= 0).any():
        raise ValueError("steps must rise: sort them, and keep one value for each")
    return at, y


@dataclass(frozen=True)
class Line:
    """A straight line through a curve by least squares, and what it leaves."""

    slope: float
    """Per step."""
    error: float
    """The slope's standard error."""
    fitted: Floats
    residuals: Floats
    sd: float
    """Σr²/(T - 2), the square root of it: the detrended SD."""


def line(steps: ArrayLike, values: ArrayLike) -> Line:
    """The trend of a curve; its residuals are what swings about it."""
    at, y = curve(steps, values)
    if len(y) < 3:
        raise ValueError(f"a line through {len(y)} points leaves nothing over: give 3 or more")
    x = at - at.mean()
    squares = float(x @ x)
    slope = float(x @ y) / squares
    fitted = y.mean() + slope * x
    residuals = y - fitted
    sd = math.sqrt(float(residuals @ residuals) / (len(y) - 2))
    return Line(slope, sd / math.sqrt(squares), fitted, residuals, sd)


@dataclass(frozen=True)
class CurveGap:
    """The mean gap of two curves over the same steps."""

    interval: Interval
    p: float | None
    """None for blocks, which give an interval only."""
    method: Literal["t", "newey_west", "blocks", "second_differences"]
    lag: int
    """Of Newey and West, or the length of a block; 0 else."""
    warnings: tuple[Caution, ...]
    """`neighbours_alike`: so much so that the interval is too narrow."""
    width: Width | None = None
    """The interval at every level; None for blocks."""

    @staticmethod
    def of_error(
        mean: float,
        error: float,
        df: float,
        n: int,
        method: Literal["t", "newey_west", "second_differences"],
        warnings: tuple[Caution, ...],
        *,
        level: float,
    ) -> CurveGap:
        """By t from a standard error."""
        width = Width(mean, ((error, df),))
        interval = Interval(mean, *width.at(level), level, n)
        return CurveGap(interval, width.p, method, 0, warnings, width)


def curve_gap(
    ours: ArrayLike,
    theirs: ArrayLike,
    rng: np.random.Generator | None = None,
    *,
    level: float = 0.95,
    draws: int = 2_000,
) -> CurveGap:
    """Newey-West's interval for the mean gap; with a generator, moving blocks instead.

    Below 20 steps there is too little to learn the dependence from: plain t, with a warning.
    """
    gap = gaps(ours, theirs)
    n = len(gap)
    if n < 2:
        raise ValueError("one step has no spread: give two or more that both curves have")
    mean = float(gap.mean())
    if n < SHORT_CURVE:
        error = float(gap.std(ddof=1)) / math.sqrt(n)
        warnings: tuple[Caution, ...] = ("steps_are_not_replicates",)
        if n < FEWEST_STEPS:
            warnings = ("too_few_steps", *warnings)
        return CurveGap.of_error(mean, error, n - 1, n, "t", warnings, level=level)
    alike = neighbours_correlation(gap) > ALIKE
    warnings = ("neighbours_alike",) if alike else ()
    if rng is None:
        lag = newey_west_lag(n)
        error = newey_west_error(gap, lag) * widening((lag + 1) / n)
        found = CurveGap.of_error(mean, error, n - 1, n, "newey_west", warnings, level=level)
        return replace(found, lag=lag)
    means = gap[moving_blocks(n, draws, rng)].mean(axis=1)
    interval = block_interval(mean, means, level=level, n=n)
    return CurveGap(interval, None, "blocks", block_length(n), warnings)


def end_of(steps: Floats) -> Floats:
    """The last tenth of the steps, one at least: where a training ended."""
    return steps[-max(1, len(steps) // END) :]


def neighbours_correlation(values: Floats) -> float:
    """The correlation of each value with the next; 0 where there is nothing to correlate."""
    if min(values[1:].std(), values[:-1].std()) < 1e-12:
        return 0.0
    return float(np.corrcoef(values[1:], values[:-1])[0, 1])


def newey_west_lag(n: int) -> int:
    """floor(4·(T/100) ** (2/9)), as Newey and West 1994."""
    return math.floor(4 * math.pow(n / 100, 2 / 9))


def newey_west_error(values: ArrayLike, lag: int) -> float:
    """The standard error of a mean whose terms depend on those up to `lag` before them.

    Bartlett weights 1 - j/(lag + 1) (Newey and West 1987), and T/(T - 1) for the mean taken out.
    """
    data = checked(values)
    n = len(data)
    rest = data - data.mean()
    total = float(rest @ rest)
    for j in range(1, min(lag, n - 1) + 1):
        total += 2 * (1 - j / (lag + 1)) * float(rest[j:] @ rest[:-j])
    return math.sqrt(max(0.0, total) / (n * (n - 1)))


@dataclass(frozen=True)
class Phase:
    """A third of two curves: their gap, and each one's spread and slope in it."""

    name: Literal["early", "middle", "late"]
    first: float
    last: float
    gap: float
    error: float | None
    """The gap's standard error over the phase's steps; None for a single step."""
    spread: tuple[float | None, float | None]
    """SD about the phase's own line, ours and theirs; None below 3 steps."""
    slope: tuple[float | None, float | None]
    """Per step, ours and theirs; None below 3 steps."""
    n: int


def phases(steps: ArrayLike, ours: ArrayLike, theirs: ArrayLike) -> tuple[Phase, ...]:
    """Early, middle and late: thirds by count, the first ones larger where they cannot be equal."""
    at, left = curve(steps, ours)
    gap = gaps(left, theirs)
    right = left - gap
    if len(at) < 3:
        raise ValueError(f"{len(at)} steps have no early, middle and late: give 3 or more")
    found = []
    for name, where in zip(PHASES, np.array_split(np.arange(len(at)), 3), strict=True):
        n = len(where)
        lines = [line(at[where], side[where]) for side in (left, right)] if n >= 3 else None
        found.append(
            Phase(
                name=name,
                first=float(at[where[0]]),
                last=float(at[where[-1]]),
                gap=float(gap[where].mean()),
                error=float(gap[where].std(ddof=1)) / math.sqrt(n) if n > 1 else None,
                spread=(lines[0].sd, lines[1].sd) if lines else (None, None),
                slope=(lines[0].slope, lines[1].slope) if lines else (None, None),
                n=n,
            )
        )
    return tuple(found)


@dataclass(frozen=True)
class Collapse:
    """Where a curve fell far below its best and stayed there for two evaluations, if it did."""

    step: float | None
    """The second of the two evaluations."""
    best: float
    """The best the curve had been by then (by its end, if nothing fell)."""
    drop: float | None
    """How far below, on average of the two."""
    deepest: float | None
    """How far below two in a row lay in the end, at the most."""
    n: int


def collapse(
    steps: ArrayLike, values: ArrayLike, noise_floor: float, *, errors: float = 3.0
) -> Collapse:
    """Three standard errors below the running best, twice in a row.

    The running best is the best mean of five evaluations in a row (of all, while there are fewer):
    a single highest point is luck, and every long curve lies three errors below it in places. From
    100 evaluations on it is ten in a row, from 200 on twenty, and so on, for the same reason.
    """
    at, y = curve(steps, values)
    if noise_floor <= 0:
        raise ValueError(f"a noise floor of {noise_floor} calls any drop a collapse: set it > 0")
    sums, seen = np.cumsum(np.append(0.0, y)).tolist(), y.tolist()  # one number is quicker so
    best, size, below = seen[0], 1, 0
    for now in range(1, len(y)):
        limit = best - errors * noise_floor * math.sqrt(1 + 1 / size)
        below = below + 1 if seen[now] < limit else 0
        if below == 2:
            drops = best - (y[now - 1 : -1] + y[now:]) / 2
            return Collapse(float(at[now]), best, float(drops[0]), float(drops.max()), len(y))
        wide = min(now + 1, SMOOTHED_BEST * 2 ** max(0, ((now + 1) // 50).bit_length() - 1))
        if wide > size:
            size = wide
            best = float(
                np.lib.stride_tricks.sliding_window_view(y[: now + 1], wide).mean(axis=1).max()
            )
        best = max(best, (sums[now + 1] - sums[now + 1 - wide]) / wide)
    return Collapse(None, best, None, None, len(y))
