"""Early stopping: when a run could have stopped, and how likely that would have been too soon."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from kleash.stats.intervals import Floats, Interval, checked
from kleash.stats.resampling import percentile_interval

FEWEST_EVALUATIONS = 25
NARROWEST_WINDOW = 5


@dataclass(frozen=True)
class StopDecision:
    """Whether training could have stopped, when, and which evaluation's checkpoint to keep."""

    verdict: Literal["stop", "go on", "too few"]
    stop_after: int | None
    """How many evaluations had been seen when the rule stopped."""
    checkpoint: int | None
    """The evaluation, counted from 0, at the centre of the best window."""
    window: int
    patience: int
    n: int


def early_stop(
    values: Sequence[float] | Floats,
    noise_floor: float,
    margin: float,
    *,
    planned: int | None = None,
) -> StopDecision:
    """Stop once the mean of the last w evaluations has not improved for 2w of them.

    `noise_floor` is the SD of evaluating one checkpoint again, `margin` the improvement worth
    having; give `planned` evaluations while training, so that w stays the same as values arrive.
    """
    if noise_floor < 0 or margin <= 0:
        raise ValueError(
            f"the margin must be above 0 and the noise not below: {margin=} {noise_floor=}"
        )
    curve = checked(values)
    n = len(curve)
    if n < FEWEST_EVALUATIONS:
        return StopDecision("too few", None, None, window=0, patience=0, n=n)
    # So wide that twice a window's standard error is within the margin; 1e-9 forgives rounding.
    wanted = math.ceil((2 * noise_floor / margin) ** 2 - 1e-9)
    window = min(max(NARROWEST_WINDOW, wanted), max(n, planned or n) // 5)
    patience = 2 * window
    means = np.lib.stride_tricks.sliding_window_view(curve, window).mean(axis=1)
    step = 0.5 * noise_floor / math.sqrt(window)

    best, best_after, stopped = float(means[0]), window, None
    for seen, mean in enumerate(means[1:], start=window + 1):
        if mean > best + step:
            best, best_after = float(mean), seen
        # The first window ends after w evaluations, so this is never before 3w of them.
        elif seen - best_after >= patience and seen >= FEWEST_EVALUATIONS:
            stopped = seen
            break
    return StopDecision(
        verdict="go on" if stopped is None else "stop",
        stop_after=stopped,
        checkpoint=best_after - window + (window - 1) // 2,
        window=window,
        patience=patience,
        n=n,
    )


@dataclass(frozen=True)
class Premature:
    """How likely stopping gave away more than the margin, if the curve goes on as it went."""

    p: float
    gain: Interval
    """What the planned rest would bring beyond the kept checkpoint, at 90 %."""
    planned: int
    n: int
    """How many evaluations it was learnt from."""


def premature_stop(
    values: Sequence[float] | Floats,
    decision: StopDecision,
    noise_floor: float,
    margin: float,
    rng: np.random.Generator,
    *,
    planned: int,
    draws: int = 2_000,
) -> Premature:
    """P(stop is premature) by parametric bootstrap of a saturating rise a - b·exp(-t/τ).

    The rise is fitted to what had been seen, drawn again with the noise, and fitted again; τ up to
    ten times what was seen, so nearly straight lines are among them. No curve foretells a jump.
    """
    if decision.stop_after is None or decision.checkpoint is None:
        raise ValueError(f"the rule says {decision.verdict!r}: there is no stop to judge")
    if margin <= 0 or noise_floor <= 0 or planned < decision.stop_after:
        raise ValueError(
            "need a margin and a noise floor above 0, and a plan that reaches beyond the stop:"
            f" {margin=} {noise_floor=} {planned=}"
        )
    seen = decision.stop_after
    curve = checked(values)[:seen]
    shapes_CT = rises(seen, planned)
    fit_T = fitted_rises(curve[None], shapes_CT, seen)[0]
    drawn_BT = fit_T[:seen] + noise_floor * rng.normal(size=(draws, seen))
    again_BT = fitted_rises(drawn_BT, shapes_CT, seen)
    gain_B = again_BT[:, seen:].max(axis=1, initial=-math.inf) - again_BT[:, decision.checkpoint]
    if planned == seen:
        gain_B = np.zeros(draws)
    estimate = float(fit_T[seen:].max(initial=fit_T[seen - 1]) - fit_T[decision.checkpoint])
    gain = percentile_interval(estimate, gain_B, level=0.9, n=seen)
    return Premature(float((gain_B > margin).mean()), gain, planned, seen)


def rises(seen: int, planned: int) -> Floats:
    """exp(-t/τ) over the planned evaluations for 40 values of τ from 1 to ten times those seen."""
    taus = np.geomspace(1, 10 * seen, 40)
    shapes: Floats = np.exp(-np.arange(planned) / taus[:, None])
    return shapes


def fitted_rises(curves_BT: Floats, shapes_CT: Floats, seen: int) -> Floats:
    """For every curve the best of the shapes, scaled by least squares on the part seen."""
    centred_BT = curves_BT - curves_BT.mean(axis=1, keepdims=True)
    means_C = shapes_CT[:, :seen].mean(axis=1)
    basis_CT = shapes_CT[:, :seen] - means_C[:, None]
    inner_BC = centred_BT @ basis_CT.T
    squares_C = (basis_CT**2).sum(axis=1)
    chosen_B = (inner_BC**2 / squares_C).argmax(axis=1)
    scale_B = inner_BC[np.arange(len(chosen_B)), chosen_B] / squares_C[chosen_B]
    moved_BT = shapes_CT[chosen_B] - means_C[chosen_B, None]
    fitted: Floats = curves_BT.mean(axis=1, keepdims=True) + scale_B[:, None] * moved_BT
    return fitted
