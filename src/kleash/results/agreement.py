"""How alike the arms of a study are: what they choose, how far apart they are, their weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from kleash.plan import Arm, StudyFile, arm_recipe
from kleash.plan.folder import Overview, Seen
from kleash.runs import Run


@dataclass(frozen=True)
class Agreement:
    """How alike two arms are: chosen checkpoints of the same seeds on the test, one number each."""

    arms: tuple[str, str]
    equal_choices: tuple[float, ...]
    """By position in the pointer, the share of test items on which both chose the same."""
    equal_pointers: float
    kl: float | None
    """Nats per episode between them along the base's choices, last checkpoints."""
    identical_outputs: int
    """Seeds in which every pointer is the same."""
    seeds: int
    parameters: int | None = None
    """How many numbers the policy has, where weights could be read."""
    differ: int | None = None
    """How many of them differ, first seed."""


def agreements(
    found: Overview, file: StudyFile, arms: Sequence[Arm], compared: Mapping[str, str]
) -> Iterator[Agreement]:
    """Every pair of arms; weights are compared where one is the other's baseline."""
    for one, other in combinations([arm.name for arm in arms], 2):
        near = compared.get(other) == one or compared.get(one) == other
        pair = agreement(found, file, one, other, weights=near)
        if pair is not None:
            yield pair


def agreement(
    found: Overview, file: StudyFile, one: str, other: str, *, weights: bool
) -> Agreement | None:
    """How alike two arms are over the seeds that both have."""
    recipe = arm_recipe(file, Arm("", {}), file.seeds[0], "BASE")
    shots = recipe.validated_at()
    equal: list[list[float]] = []
    whole: list[float] = []
    kls: list[float] = []
    sizes: tuple[int, int] | None = None
    for seed in file.seeds:
        ours, theirs = found.seen.get((one, seed)), found.seen.get((other, seed))
        if ours is None or theirs is None or ours.run is None or theirs.run is None:
            continue
        left = ours.scored.get((ours.chosen, "test", shots))
        right = theirs.scored.get((theirs.chosen, "test", shots))
        if left is None or right is None or left.items != right.items:
            continue
        pairs = list(zip(left.pointers, right.pointers, strict=True))
        whole.append(float(np.mean([a == b for a, b in pairs])))
        equal.append([_same_at(pairs, place) for place in range(recipe.places())])
        alike = ours.run.meta["base"] == theirs.run.meta["base"]  # else along other choices
        kl = kl_of(ours, theirs) if alike else None
        if kl is not None:
            kls.append(kl)
        if weights and sizes is None:
            sizes = differing_parameters(ours, theirs)
    if not whole:
        return None
    return Agreement(
        arms=(one, other),
        equal_choices=tuple(np.mean(equal, axis=0).tolist()),
        equal_pointers=float(np.mean(whole)),
        kl=float(np.mean(kls)) if kls else None,
        identical_outputs=sum(share == 1.0 for share in whole),
        seeds=len(whole),
        parameters=None if sizes is None else sizes[0],
        differ=None if sizes is None else sizes[1],
    )


def _same_at(pairs: Sequence[tuple[tuple[str, ...], tuple[str, ...]]], place: int) -> float:
    same = [a[place : place + 1] == b[place : place + 1] for a, b in pairs]
    return float(np.mean(same))


def kl_of(ours: Seen, theirs: Seen) -> float | None:
    """KL between two runs along the base's choices, from their kept distributions."""
    assert ours.run is not None
    assert theirs.run is not None
    files = [last_choices(seen.run) for seen in (ours, theirs) if seen.run is not None]
    if files[0] is None or files[1] is None:
        return None
    left, right = np.load(files[0]), np.load(files[1])
    return kl_between(left, right) if left.shape == right.shape else None


def last_choices(run: Run) -> Path | None:
    """The distributions that a run kept of its last checkpoint, if it kept any."""
    files = (run.path / "choices").glob("epoch-*.npy")
    return max(files, key=lambda path: (len(path.name), path.name), default=None)


def kl_between(ours: Any, theirs: Any) -> float:
    """KL(ours‖theirs) of log-probabilities [query, step, candidate]: nats per episode."""
    one, other = ours.astype(np.float64), theirs.astype(np.float64)
    both = np.isfinite(one) & np.isfinite(other)
    gap = np.subtract(one, other, where=both, out=np.zeros_like(one))
    return float((np.exp(one) * gap).sum(axis=(1, 2)).mean())


def differing_parameters(ours: Seen, theirs: Seen) -> tuple[int, int] | None:
    """How many parameters the chosen checkpoints have, and in how many they differ."""
    try:
        from safetensors.numpy import load_file
    except ImportError:
        return None
    files = [
        seen.run.path / "checkpoints" / seen.chosen / "weights.safetensors"
        for seen in (ours, theirs)
        if seen.run is not None
    ]
    if len(files) < 2 or not all(file.is_file() for file in files):
        return None
    left, right = map(load_file, files)
    if left.keys() != right.keys():
        return None
    size = sum(tensor.size for tensor in left.values())
    return size, sum(int((left[name] != right[name]).sum()) for name in left)
