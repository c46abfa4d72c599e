"""What can be found: every code with the facts that its sentence is made of.

The sentences are the catalogue's, in both languages; docs/findings.md says what each code means.
"""

from __future__ import annotations

CODES: dict[str, tuple[str, ...]] = {
    # noticed by the run itself
    "run-collapse": ("arms", "count", "of", "at"),
    "run-no-signal": ("arms", "count", "of", "at"),
    "run-little-signal": ("arms", "count", "of", "at"),
    "run-near-uniform": ("arms", "count", "of", "at"),
    "run-no-choice": ("arms", "count", "of", "at"),
    "run-coefficient-unit": ("arms", "count", "of", "at"),
    "run-few-tasks": ("arms", "count", "of", "at"),
    "run-far-sampler": ("arms", "count", "of", "at"),
    # sums that do not come out
    "loss-identity": ("arm", "at", "loss", "policy_loss", "kl", "coefficient", "expected"),
    "kl-loss-identity": ("arm", "at", "kl_loss", "kl", "coefficient", "expected"),
    "derived-from-missing": ("text", "kind", "metric", "arms"),
    "derived-from-rounded": ("text", "kind", "low", "high", "metric", "arms"),
    "printed-twice": ("text", "low", "high", "metric", "arms"),
    "spread-identity": ("arm", "metric", "spread", "expected", "seeds"),
    # reports that people wrote
    "report-misread": ("report", "count"),
    "report-unchecked": ("report",),
    # guesses
    "estimated-values": ("arm", "metric", "estimated", "of"),
    "derived-from-estimate": ("metric", "count", "of", "texts"),
    "estimate-contradicted": ("arm", "metric", "count", "largest", "wrong_signs", "signs"),
    # too much alike
    "identical-results": ("arms", "metric", "cells", "items", "values"),
    "identical-over-training": ("arm", "metric", "at", "cells", "of"),
    "copied-row": ("arms", "at", "metrics", "values"),
    "same-in-all-arms": ("arms", "metric", "points"),
    "constant-by-construction": ("arms", "metric", "constant", "value"),
    # what a mean over n items can be
    "off-lattice": ("arm", "metric", "at", "text", "items", "step"),
    "scores-off-lattice": ("arm", "metric", "count", "of", "step", "value"),
    "nested-samples": ("arm", "metric", "at", "sizes", "means", "blocks"),
    "order-effect": ("arm", "metric", "at", "sizes", "means", "blocks", "p"),
    "samples-differ": ("arm", "metric", "at", "sizes", "means"),
    # the best of many
    "best-of-several": ("arm", "metric", "best", "at", "points", "optimism", "ties"),
    "best-against-best": ("arms", "metric", "steps", "gap", "noise"),
    "unequal-steps": ("arms", "metric", "steps"),
    # the leash
    "kl-at-start": ("arm", "value", "at"),
    "kl-falls": ("arm", "first", "last", "change"),
    "loss-across-coefficients": ("arms", "metric", "coefficients"),
    # whether anything was learnt
    "near-uniform": ("arm", "metric", "value", "uniform", "shots", "pool"),
    "barely-moved": ("arm", "metric", "first", "last", "change"),
    "little-signal": ("arm", "spread", "at"),
    "lr-below-print": ("arm", "printed", "configured"),
    "inside-warmup": ("arm", "metric", "last", "warmup"),
    # which run is meant
    "same-run": ("arms", "by"),
    "two-histories": ("arm", "differs"),
    "config-clash": ("arm", "key", "values"),
    "stale-weights": ("arm", "checkpoint", "steps"),
    "step-restart": ("arm", "metric", "at", "back", "dropped"),
    "diverged": ("arm", "metric", "at", "last", "count"),
    "duplicate-step": ("arm", "metric", "at", "values"),
    # plans and limits
    "fewer-than-planned": ("arm", "axis", "last", "planned"),
    "beyond-plan": ("arm", "axis", "last", "planned"),
    "evaluations-missing": ("arm", "metric", "shown", "expected", "every", "steps"),
    "too-long-for-dates": ("arm", "steps", "hours_low", "hours_high", "started", "until", "hours"),
    "started-after-report": ("arm", "started", "until"),
    "runs-overlap": ("arms", "hours", "between"),
    "gpu-hours": ("arm", "hours", "expected", "steps", "seconds", "gpus"),
    "beyond-limit": ("arm", "metric", "value", "limit", "key"),
    # at which step
    "best-step-false": ("arm", "metric", "said", "step", "value", "at"),
    "stray-step": ("arm", "metric", "at", "value", "other"),
}
