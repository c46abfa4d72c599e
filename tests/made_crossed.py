"""Runs of arms that share seeds and items, made of known parts: no file, no training."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from kleash.compare.read import Imported, Scores, Series, Setting, Source, Where
from kleash.stats import GapSpread

HERE = Where("made.jsonl", 1)
SHARE = ("accuracy=fraction",)  # made scores are normal, so that some lie beyond 0 and 1


def crossed_gaps(
    rng: np.random.Generator, spread: GapSpread, gaps: Mapping[str, float], seeds: int, items: int
) -> dict[str, np.ndarray]:
    """Scores [seed, item] of a baseline and of arms with these gaps to it.

    An arm's parts have half the variance of a gap's, so that the gap of any two has all of it.
    """
    half = spread.times(np.sqrt(0.5))
    shared = rng.normal(0.5, 0.05, (seeds, 1)) + rng.normal(0, 0.3, (1, items))
    made = {}
    for name, gap in {"none": 0.0, **gaps}.items():
        own = rng.normal(0, half.seeds, (seeds, 1)) + rng.normal(0, half.items, (1, items))
        made[name] = shared + gap + own + rng.normal(0, half.rest, (seeds, items))
    return made


def crossed_source(
    scores: Mapping[str, np.ndarray], seconds: float = 3600.0, kl: Mapping[str, float] | None = None
) -> Source:
    """The same as runs that `compare` reads; arms are called by their coefficient."""
    source = Source("made", "jsonl")
    for name, table in scores.items():
        value = 0.0 if name == "none" else float(name)
        for seed, row in enumerate(table):
            run = Imported(f"kl-{name}-s{seed}", f"kl-{name}", "jsonl", HERE, seed=seed)
            config = {"leash.coefficient": value, "lr": 1e-6, "steps": 100, "batch": 8}
            run.config = {key: Setting(each, HERE) for key, each in config.items()}
            run.seconds = seconds
            ids = [f"item-{n}" for n in range(len(row))]
            run.scores = [Scores("accuracy", ids, row, HERE, step=1.0, split="test")]
            if kl:
                far = np.linspace(0, kl[name], 9)[1:]
                run.series = [Series("kl", "step", np.arange(1.0, 9.0), far, HERE)]
            source.runs.append(run)
    return source
