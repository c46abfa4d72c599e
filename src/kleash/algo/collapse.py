"""Signs that a policy is collapsing, by a run's own curves: relative to where the run stood.

One set of rules for runs that we train and for logs of others that are watched. A rule sees the
values of one quantity in the order of training (and the reward beside them) and says at which of
them its sign is there, using nothing that came later: what it says of a log that is replayed is
what it would have said live. `docs/watch.md` has how often rules err. In a documented run dead
groups, actions that cannot be read and short responses announced the collapse 27 steps ahead.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SETTLED = 10  # steps after which a run's own level is taken
DEAD = 0.5  # share of groups without a difference, those at the ceiling not counted
FALLEN = 0.2  # of the valid actions at first
ERRORS = 3 * 2**0.5  # of one mean: three of a difference, below the best validation, twice in a row

SHORT, LONG = 5, 20  # steps that are now, and those before them
HISTORY, LEAST = 150, 10  # values that tell how far a quantity wanders anyway: at most, at least
SIZE = 5.5  # such wanderings are an excursion
SHORTER, LONGER = math.log(1 / 0.9), math.log(2)  # responses, in logs: a tenth off, twice as long
LESS_ENTROPY, MORE_ENTROPY = math.log(2), math.log(2)
MORE_KL = math.log(3)
LEAST_LENGTH, LEAST_NATS, TOLD_KL, SMALL = 1.0, 1e-3, 5e-3, 1e-12
RISING = 2.0  # wanderings, that the reward is above what it was
LOST, LOWER = 0.1, 6.0  # of the best level, wanderings: what makes dead groups suspect
DRAWDOWN = 0.25  # of the best level, that the reward lies below it
FEW, MOST = 4, 0.4  # bends that tell the noise of few validations; how far below the best these lie


@dataclass(frozen=True)
class Curve:
    """One quantity over training: no step twice, none back."""

    steps: Floats
    values: Floats


@dataclass(frozen=True)
class Sign:
    """That a quantity left its level: at which step, where it is now, where it stood before."""

    code: str
    metric: str
    step: float
    now: float
    before: float


@dataclass(frozen=True)
class Reward:
    """What the reward was doing at each value of another curve."""

    rising: NDArray[np.bool_]
    """The last 10 steps lie above the 30 before them."""
    fallen: NDArray[np.bool_]
    """The last 5 lie clearly below the best level it had held."""


Course = Mapping[str, Curve]
"""The quantities of a run by the names that `read.names` gives them."""
Seen = tuple[NDArray[np.bool_], Floats, Floats]
"""For each value of a curve: is the sign there, the level now, the level before."""


# --- how far a quantity is from where it was ------------------------------------------------------


def _mean(values: Floats, size: int) -> Floats:
    """The mean of each value and those before it, `size` in all; NaN where there are fewer."""
    found = np.full(len(values), np.nan)
    if len(values) >= size:
        found[size - 1 :] = sliding_window_view(values, size).mean(axis=1)
    return found


def _median(values: Floats, size: int) -> Floats:
    """The same of the median."""
    found = np.full(len(values), np.nan)
    if len(values) >= size:
        found[size - 1 :] = np.median(sliding_window_view(values, size), axis=1)
    return found


def _earlier(values: Floats, by: int) -> Floats:
    """The values so many steps before; NaN where there were none."""
    return np.concatenate(
        [np.full(min(by, len(values)), np.nan), values[: max(0, len(values) - by)]]
    )


def _spread(values: Floats, least: int = LEAST) -> Floats:
    """The standard deviation about 0 of the values so far, of the last 150 where there are more.

    From mean sizes, as of a normal: a few values far off weigh less. NaN where fewer than `least`
    are known.
    """
    known = np.isfinite(values)
    sums = np.cumsum(np.append(0.0, np.where(known, np.abs(values), 0.0)))
    counts = np.cumsum(np.append(0, known))
    first = np.maximum(np.arange(len(values)) + 1 - HISTORY, 0)
    n = counts[1:] - counts[first]
    total = sums[1:] - sums[first]
    return np.where(n >= least, total / np.maximum(n, 1) * math.sqrt(math.pi / 2), np.nan)


@dataclass(frozen=True)
class Contrast:
    """The last few values against those before them, and how far they wander apart anyway."""

    now: Floats
    before: Floats
    white: Floats
    """What noise from step to step makes of it."""
    past: Floats
    """What it has been so far; NaN while there is too little of that."""

    @property
    def wandering(self) -> Floats:
        """The larger of the two."""
        return np.maximum(self.white, self.past)

    @property
    def sizes(self) -> Floats:
        """The contrast in units of its wandering; 0 where nothing can be said yet."""
        found = (self.now - self.before) / np.maximum(self.wandering, SMALL)
        return np.nan_to_num(found, nan=0.0)


def contrast(values: Floats, short: int = SHORT, long: int = LONG) -> Contrast:
    """The mean of the last `short` values against the median of the `long` before them.

    It wanders as its own past contrasts did, or as the differences from step to step would make
    it, whichever is more: noise that hangs together is in the former, noise that does not in the
    latter. The highest and the lowest of the last values are left out: one step far off is none.
    """
    jumps = np.diff(values, prepend=np.nan)
    noise = _earlier(_spread(jumps), short) / math.sqrt(2)
    before = _earlier(_median(values, long), short)
    recent = np.array([_earlier(values, by) for by in range(short)])
    now = (recent.sum(axis=0) - recent.max(axis=0) - recent.min(axis=0)) / (short - 2)
    past = _earlier(_spread(now - before), 2 * short)
    white = noise * math.sqrt(1.15 / short + math.pi / 2 / long)  # of the two, if white
    return Contrast(now, before, white, past)


def _logs(values: Floats, least: float) -> Floats:
    """Logarithms, of nothing less than `least`: below it a quantity may do what it likes."""
    return np.log(np.maximum(values, least))


# --- rules ----------------------------------------------------------------------------------------


def _since_settled(values: Floats) -> tuple[Floats, Floats]:
    """The mean of the last steps, and the level when the run had settled, once that is past."""
    half = SETTLED // 2
    now = _mean(values, half)
    level = values[half : SETTLED + half].mean() if len(values) >= 2 * SETTLED else np.nan
    before = np.full(len(values), np.nan)
    before[2 * SETTLED - 1 :] = level
    return now, before


def dead_groups(values: Floats, _: Reward) -> Seen:
    """Most groups no longer differ in reward, and not because all is reached."""
    now, before = _since_settled(values)
    return now > np.maximum(DEAD, before), now, before


def dead_or_done(values: Floats, reward: Reward) -> Seen:
    """The same where groups at the ceiling are counted too: only where reward has fallen."""
    there, now, before = dead_groups(values, reward)
    return there & reward.fallen, now, before


def unreadable(values: Floats, _: Reward) -> Seen:
    """Fewer actions can be read than at first."""
    now, before = _since_settled(values)
    return now < (1 - FALLEN) * before, now, before


def shorter(values: Floats, reward: Reward) -> Seen:
    """Responses get shorter, faster than they ever did, and the reward does not rise with it."""
    found = contrast(_logs(values, LEAST_LENGTH))
    fallen = found.before - found.now
    there = (fallen > SHORTER) & (found.sizes < -SIZE) & ~reward.rising
    return there, np.exp(found.now), np.exp(found.before)


def longer(values: Floats, reward: Reward) -> Seen:
    """Responses get twice as long within a few steps, and the reward does not rise with it."""
    found = contrast(_logs(values, LEAST_LENGTH))
    there = (found.now - found.before > LONGER) & (found.sizes > SIZE) & ~reward.rising
    return there, np.exp(found.now), np.exp(found.before)


def less_entropy(values: Floats, _: Reward) -> Seen:
    """Entropy halves within a few steps."""
    found = contrast(_logs(values, LEAST_NATS))
    there = (found.before - found.now > LESS_ENTROPY) & (found.sizes < -SIZE)
    return there, np.exp(found.now), np.exp(found.before)


def more_entropy(values: Floats, _: Reward) -> Seen:
    """Entropy doubles within a few steps."""
    found = contrast(_logs(values, LEAST_NATS))
    there = (found.now - found.before > MORE_ENTROPY) & (found.sizes > SIZE)
    return there, np.exp(found.now), np.exp(found.before)


def more_kl(values: Floats, _: Reward) -> Seen:
    """KL to the reference trebles within a few steps."""
    found = contrast(_logs(values, LEAST_NATS))
    there = (found.now - found.before > MORE_KL) & (found.sizes > SIZE)
    there &= found.now > math.log(TOLD_KL)
    return there, np.exp(found.now), np.exp(found.before)


def drawdown(values: Floats, _: Reward) -> Seen:
    """The reward lies far below the best level that it had held.

    That it had risen before is no wandering: contrasts are taken against their own level.
    """
    found = contrast(values)
    raw = found.now - found.before
    past = _earlier(_spread(raw - _level(raw)), 2 * SHORT)
    best = np.fmax.accumulate(found.before)
    lost = best - found.now
    there = (lost > DRAWDOWN * np.abs(best)) & (lost > SIZE * np.fmax(found.white, past))
    return there, found.now, best


def _level(values: Floats) -> Floats:
    """The median of each value and those before it, at most `LONG`; NaN where few are known."""
    padded = np.append(np.full(LONG - 1, np.nan), values)
    found = np.full(len(values), np.nan)
    known = np.isfinite(values)
    enough = np.cumsum(known) >= SHORT
    if enough.any():
        found[enough] = np.nanmedian(sliding_window_view(padded, LONG)[enough], axis=1)
    return found


def _below_best(values: Floats) -> tuple[Floats, Floats, Floats]:
    """How far the last values lie below the best level held before; that level; the wandering."""
    found = contrast(values)
    best = np.fmax.accumulate(found.before)
    return best - found.now, best, found.wandering


def fallen(values: Floats, _: Reward) -> Seen:
    """Validation lies far below the best it has held, twice in a row; its bends tell its noise.

    The best is the best mean of five in a row: a single highest point is luck. While there are few
    it is one of three, and the fall must be larger.
    """
    bends = np.diff(values, 2, prepend=[np.nan, np.nan]) / math.sqrt(6)
    there, level = np.zeros(len(values), dtype=bool), np.full(len(values), np.nan)
    for size, least, errors, share in (
        (3, FEW, 1.5 * ERRORS, MOST),
        (SHORT, LEAST, ERRORS, DRAWDOWN),
    ):
        best = _earlier(np.fmax.accumulate(_mean(values, size)), 2)
        limit = np.maximum(errors * _earlier(_spread(bends, least), 2), share * np.abs(best))
        low = (best - values > limit) & (best - _earlier(values, 1) > limit)
        level = np.where(low & ~there, best, level)
        there |= low
    return there, _mean(values, 2), level


def fallen_by_errors(values: Floats, errors: Floats) -> Seen:
    """The same where the standard error of each validation is known: below the highest so far."""
    best = np.maximum.accumulate(values)
    at = np.maximum.accumulate(np.where(values == best, np.arange(len(values)), 0))
    limit = best - ERRORS * errors[at]
    there = (values < limit) & (_earlier(values, 1) < limit)
    there[:2] = False
    return there, values, best


Rule = Callable[[Floats, Reward], Seen]
RULES: dict[str, tuple[tuple[str, ...], Rule]] = {
    "dead-groups": (("dead_groups",), dead_groups),
    "dead-groups-no-gain": (("dead_or_done",), dead_or_done),
    "valid-actions": (("valid_actions",), unreadable),
    "response-shorter": (("response_length",), shorter),
    "response-longer": (("response_length",), longer),
    "entropy-falls": (("entropy",), less_entropy),
    "entropy-rises": (("entropy",), more_entropy),
    "kl-excursion": (("kl", "kl_loss"), more_kl),
    "reward-drawdown": (("reward",), drawdown),
    "validation-drawdown": (("eval_reward", "accuracy"), fallen),
}
"""By code: the quantities it may look at, the first that a run has; and the rule."""


def first_signs(course: Course) -> Iterator[Sign]:
    """Of each rule the first sign, if any, as it would have been seen while the run went on."""
    reward = _reward(course)
    for code, (metrics, rule) in RULES.items():
        metric = next((name for name in metrics if name in course), None)
        if metric is None:
            continue
        curve = course[metric]
        known = np.isfinite(curve.values)
        steps, values = curve.steps[known], curve.values[known]
        there, now, before = rule(values, reward(steps))
        errors = course.get(f"{metric}_se")
        if rule is fallen and errors is not None and len(errors.values) == len(values):
            there, now, before = fallen_by_errors(values, errors.values)
        if there.any():
            at = int(np.argmax(there))
            yield Sign(code, metric, float(steps[at]), float(now[at]), float(before[at]))
    yield from _not_finite(course)


def _not_finite(course: Course) -> Iterator[Sign]:
    """The first value that is NaN or infinite, of each quantity that has one."""
    for metric, curve in course.items():
        bad = np.flatnonzero(~np.isfinite(curve.values))
        if len(bad):
            at = int(bad[0])
            before = float(curve.values[at - 1]) if at else math.nan
            now = float(curve.values[at])
            yield Sign("not-finite", metric, float(curve.steps[at]), now, before)


def _reward(course: Course) -> Callable[[Floats], Reward]:
    """What the reward was doing at given steps. Where it is not known, it was not rising."""
    curve = course.get("reward")
    known = np.isfinite(curve.values) if curve else np.zeros(0, dtype=bool)
    if curve is None or known.sum() < 2 * SETTLED:
        return lambda steps: Reward(*np.zeros((2, len(steps)), dtype=bool))
    at, values = curve.steps[known], curve.values[known]
    found = contrast(values, 2 * SHORT, LONG + 2 * SHORT)
    lost, best, wandering = _below_best(values)
    rising = found.now - found.before > RISING * np.fmax(found.white, found.past)
    fallen = lost > np.maximum(LOST * np.abs(best), LOWER * wandering)

    def seen(steps: Floats) -> Reward:
        place = np.searchsorted(at, steps, side="right") - 1
        there = place >= 0
        return Reward(there & rising[place], there & fallen[place])

    return seen
