"""How alike the arms of a study are: what they choose, how far apart they are, their weights."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kleash.plan import Arm, StudyFile, arm_recipe
from kleash.plan.folder import Overview, Seen
from kleash.runs import Run

HELD = 256  # files of distributions that are kept in memory at once


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


@dataclass(frozen=True)
class Chosen:
    """What a run chose on the test, as numbers: equal ones stand for equal choices."""

    seen: Seen
    items: list[str]
    pointers_N: NDArray[np.intp]
    choices_TN: NDArray[np.intp]
    """By position in the pointer; a pointer that ends before it has one number of its own there."""
    base: str
    kept: Path | None
    """The distributions of its last checkpoint."""


Load = Callable[[Path], Any]


def agreements(
    found: Overview, file: StudyFile, arms: Sequence[Arm], compared: Mapping[str, str]
) -> Iterator[Agreement]:
    """Every pair of arms; weights are compared where one is the other's baseline."""
    recipe = arm_recipe(file, Arm("", {}), file.seeds[0], "BASE")
    shots = recipe.validated_at()
    numbers: dict[tuple[str, ...], int] = {}
    runs: dict[str, dict[int, Chosen]] = {arm.name: {} for arm in arms}
    for name, by_seed in runs.items():
        for seed in file.seeds:
            seen = found.seen.get((name, seed))
            made = None if seen is None else chosen(seen, shots, recipe.places(), numbers)
            if made is not None:
                by_seed[seed] = made
    load = lru_cache(maxsize=HELD)(np.load)
    for one, other in combinations(runs, 2):
        near = compared.get(other) == one or compared.get(one) == other
        pair = agreement((one, other), (runs[one], runs[other]), load, weights=near)
        if pair is not None:
            yield pair


def chosen(
    seen: Seen, shots: int, places: int, numbers: dict[tuple[str, ...], int]
) -> Chosen | None:
    """A run's choices on the test at some shots; `numbers` are those given out so far."""
    column = seen.scored.get((seen.chosen, "test", shots))
    if seen.run is None or column is None:
        return None

    def of(pointers: Iterable[tuple[str, ...]]) -> list[int]:
        return [numbers.setdefault(pointer, len(numbers)) for pointer in pointers]

    by_place = [of(p[at : at + 1] for p in column.pointers) for at in range(places)]
    pointers = np.array(of(column.pointers))
    base, kept = str(seen.run.meta["base"]), last_choices(seen.run)
    return Chosen(seen, column.items, pointers, np.array(by_place), base, kept)


def agreement(
    names: tuple[str, str],
    runs: tuple[Mapping[int, Chosen], Mapping[int, Chosen]],
    load: Load,
    *,
    weights: bool,
) -> Agreement | None:
    """How alike two arms are over the seeds that both have."""
    equal: list[NDArray[np.float64]] = []
    whole: list[float] = []
    kls: list[float] = []
    sizes: tuple[int, int] | None = None
    for seed, left in runs[0].items():
        right = runs[1].get(seed)
        if right is None or left.items != right.items:
            continue
        whole.append(float((left.pointers_N == right.pointers_N).mean()))
        equal.append((left.choices_TN == right.choices_TN).mean(axis=1))
        kl = kl_of(left, right, load)
        if kl is not None:
            kls.append(kl)
        if weights and sizes is None:
            sizes = differing_parameters(left.seen, right.seen)
    if not whole:
        return None
    return Agreement(
        arms=names,
        equal_choices=tuple(np.mean(equal, axis=0).tolist()),
        equal_pointers=float(np.mean(whole)),
        kl=float(np.mean(kls)) if kls else None,
        identical_outputs=sum(share == 1.0 for share in whole),
        seeds=len(whole),
        parameters=None if sizes is None else sizes[0],
        differ=None if sizes is None else sizes[1],
    )


def kl_of(ours: Chosen, theirs: Chosen, load: Load) -> float | None:
    """KL between two runs along the base's choices, from their kept distributions."""
    if ours.base != theirs.base or ours.kept is None or theirs.kept is None:
        return None  # none are kept, or along other choices
    left, right = load(ours.kept), load(theirs.kept)
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
