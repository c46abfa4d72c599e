"""How alike the arms of a study are: what they choose, how far apart they are, their weights."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kleash.runs.run import Run
from kleash.study.plan import Arm, StudyFile, arm_recipe
from kleash.study.plan.folder import Overview

HELD = 256  # files of distributions that are kept in memory at once


@dataclass(frozen=True)
class Agreement:
    """How alike two arms are: chosen checkpoints of the same seeds on the test, one number each."""

    arms: tuple[str, str]
    equal_pointers: float
    """The share of test items on which both chose the same."""
    kl: float | None
    """Nats per episode between them along the base's choices, last checkpoints."""
    identical_outputs: int
    """Seeds in which every pointer is the same."""
    seeds: int
    parameters: int | None = None
    """How many numbers the policy has, where one arm is the other's baseline."""
    differ: int | None = None
    """How many of them differ, in the first seed whose weights can be read."""


@dataclass(frozen=True)
class Chosen:
    """What a run chose on the test, as numbers: equal ones stand for equal pointers."""

    run: Run
    weights: str
    items: list[str]
    pointers_N: NDArray[np.intp]
    kept: Path | None
    """The distributions of its last checkpoint."""


def agreements(
    found: Overview, file: StudyFile, arms: Sequence[Arm], compared: Mapping[str, str]
) -> Iterator[Agreement]:
    """Every pair of arms that shares a seed; 200 arms have 19,900, so they are made when asked."""
    shots = arm_recipe(file, Arm("", {}), file.seeds[0], "BASE").validated_at()
    numbers: dict[tuple[str, ...], int] = defaultdict(count().__next__)
    runs: dict[str, dict[int, Chosen]] = {arm.name: {} for arm in arms}
    for name, by_seed in runs.items():
        for seed, seen in found.of_arm(name, file.seeds).items():
            column = seen.scored.get((seen.chosen, "test", shots))
            if seen.run is not None and column is not None:
                pointers = np.array([numbers[pointer] for pointer in column.pointers])
                weights = f"checkpoints/{seen.chosen}/weights.safetensors"
                kept = last_choices(seen.run)
                by_seed[seed] = Chosen(seen.run, weights, column.items, pointers, kept)
    load = lru_cache(maxsize=HELD)(np.load)
    for one, other in combinations(runs, 2):
        both = [seed for seed in runs[one] if seed in runs[other]]
        pairs = [(runs[one][seed], runs[other][seed]) for seed in both]
        pairs = [(ours, theirs) for ours, theirs in pairs if ours.items == theirs.items]
        if not pairs:
            continue
        equal = [float((ours.pointers_N == theirs.pointers_N).mean()) for ours, theirs in pairs]
        kls = [kl for pair in pairs if (kl := kl_of(*pair, load)) is not None]
        near = compared.get(other) == one or compared.get(one) == other
        sizes = (differing(*pair) for pair in pairs if near)
        yield Agreement(
            (one, other),
            float(np.mean(equal)),
            float(np.mean(kls)) if kls else None,
            equal.count(1.0),
            len(pairs),
            *next((size for size in sizes if size is not None), (None, None)),
        )


def kl_of(ours: Chosen, theirs: Chosen, load: Callable[[Path], Any]) -> float | None:
    """KL between two runs along the base's choices, from their kept distributions."""
    if ours.kept is None or theirs.kept is None or ours.run.meta["base"] != theirs.run.meta["base"]:
        return None  # none are kept, or along other choices
    left, right = load(ours.kept), load(theirs.kept)
    return kl_between(left, right) if left.shape == right.shape else None


def last_choices(run: Run) -> Path | None:
    """The distributions that a run kept of its last checkpoint, if it kept any."""
    files = run.path.glob("choices/epoch-*.npy") if run.has("choices") else ()
    return max(files, key=lambda path: (len(path.name), path.name), default=None)


def kl_between(ours: Any, theirs: Any) -> float:
    """KL(ours‖theirs) of log-probabilities [query, step, candidate]: nats per episode."""
    one, other = ours.astype(np.float64), theirs.astype(np.float64)
    both = np.isfinite(one) & np.isfinite(other)
    gap = np.subtract(one, other, where=both, out=np.zeros_like(one))
    return float((np.exp(one) * gap).sum(axis=(1, 2)).mean())


def differing(ours: Chosen, theirs: Chosen) -> tuple[int, int] | None:
    """How many parameters the chosen checkpoints have, and in how many they differ."""
    if not all(each.run.has(each.weights) for each in (ours, theirs)):
        return None
    try:
        from safetensors.numpy import load_file
    except ImportError:
        return None
    left, right = (load_file(each.run.file(each.weights)) for each in (ours, theirs))
    if left.keys() != right.keys():
        return None
    size = sum(tensor.size for tensor in left.values())
    return size, sum(int((left[name] != right[name]).sum()) for name in left)
