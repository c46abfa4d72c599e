"""How alike the arms of a study are: what they choose, how far apart they are, their weights."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import count
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kleash.plan import Arm, StudyFile, arm_recipe
from kleash.plan.folder import Overview, Seen
from kleash.recipe import Recipe
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


@dataclass(frozen=True)
class Agreements:
    """Every pair of arms that shares a seed; weights are compared where one is the baseline.

    They are made when they are asked for: 200 arms have 19,900 pairs, and a report shows 500.
    """

    found: Overview
    file: StudyFile
    arms: Sequence[Arm]
    compared: Mapping[str, str]

    @cached_property
    def places(self) -> int:
        """How many choices make a pointer."""
        return self._recipe.places()

    @cached_property
    def _recipe(self) -> Recipe:
        return arm_recipe(self.file, Arm("", {}), self.file.seeds[0], "BASE")

    @cached_property
    def _runs(self) -> dict[str, dict[int, Chosen]]:
        """What each run chose, by arm and seed."""
        shots = self._recipe.validated_at()
        numbers: dict[tuple[str, ...], int] = defaultdict(count().__next__)
        runs: dict[str, dict[int, Chosen]] = {arm.name: {} for arm in self.arms}
        for name, by_seed in runs.items():
            for seed in self.file.seeds:
                seen = self.found.seen.get((name, seed))
                made = None if seen is None else chosen(seen, shots, self.places, numbers)
                if made is not None:
                    by_seed[seed] = made
        return runs

    @cached_property
    def _tables(self) -> list[Tabled]:
        seeds = enumerate(self.file.seeds)
        return [table for at, seed in seeds for table in tabled(self._runs, seed, at)]

    def __len__(self) -> int:
        held = [[arm in each.rows for each in self._tables] for arm in self._runs]
        held_AG = np.array(held, dtype=np.intp).reshape(len(self._runs), len(self._tables))
        shared_AA = held_AG @ held_AG.T > 0
        return int(np.triu(shared_AA, 1).sum())

    def __iter__(self) -> Iterator[Agreement]:
        load = lru_cache(maxsize=HELD)(np.load)
        keep = {arm for arm, by_seed in self._runs.items() if any(e.kept for e in by_seed.values())}
        names = list(self._runs)
        for at, one in enumerate(names):
            yield from self._of(one, names[at + 1 :], keep, load)

    def _of(
        self, one: str, others: Sequence[str], keep: Set[str], load: Load
    ) -> Iterator[Agreement]:
        """An arm with each of some others; those in `keep` have kept distributions."""
        every, runs = self.file.seeds, self._runs
        whole_OS, equal_OST = shares(self._tables, one, others, (len(every), self.places))
        means, by_place = over_known(whole_OS), over_known(equal_OST)
        for other, whole_S, mean, places in zip(
            others, whole_OS.tolist(), means, by_place, strict=True
        ):
            seeds = [s for s, share in zip(every, whole_S, strict=True) if not isnan(share)]
            if not seeds:
                continue
            near = self.compared.get(other) == one or self.compared.get(one) == other
            looked = near or (one in keep and other in keep)
            pairs = [(runs[one][seed], runs[other][seed]) for seed in seeds] if looked else []
            sizes = differing(pairs) if near else None
            yield Agreement(
                arms=(one, other),
                equal_choices=tuple(places),
                equal_pointers=mean,
                kl=kl_over(pairs, load),
                identical_outputs=whole_S.count(1.0),
                seeds=len(seeds),
                parameters=None if sizes is None else sizes[0],
                differ=None if sizes is None else sizes[1],
            )


@dataclass(frozen=True)
class Tabled:
    """What the arms of one seed chose on the same items, an arm a row."""

    seed: int
    """By its place among the seeds."""
    rows: dict[str, int]
    pointers_AN: NDArray[np.intp]
    choices_ATN: NDArray[np.intp]


def tabled(runs: Mapping[str, Mapping[int, Chosen]], seed: int, at: int) -> Iterator[Tabled]:
    """The runs of a seed by their items; mostly all have the same."""
    groups: dict[tuple[str, ...], dict[str, Chosen]] = {}
    for arm, by_seed in runs.items():
        if seed in by_seed:
            groups.setdefault(tuple(by_seed[seed].items), {})[arm] = by_seed[seed]
    for group in groups.values():
        rows = {arm: row for row, arm in enumerate(group)}
        pointers = np.array([each.pointers_N for each in group.values()])
        yield Tabled(at, rows, pointers, np.array([each.choices_TN for each in group.values()]))


def shares(
    tables: Sequence[Tabled], one: str, others: Sequence[str], shape: tuple[int, int]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Of equal pointers and of equal choices by place, by other arm and seed; NaN: not shared."""
    seeds, places = shape
    whole_OS = np.full((len(others), seeds), np.nan)
    equal_OST = np.full((len(others), seeds, places), np.nan)
    for table in tables:
        row = table.rows.get(one)
        found = [(at, table.rows[arm]) for at, arm in enumerate(others) if arm in table.rows]
        if row is None or not found:
            continue
        at, theirs = map(list, zip(*found, strict=True))
        same = table.pointers_AN[theirs] == table.pointers_AN[row]
        whole_OS[at, table.seed] = same.mean(axis=1)
        chosen_same = table.choices_ATN[theirs] == table.choices_ATN[row]
        equal_OST[at, table.seed] = chosen_same.mean(axis=2)
    return whole_OS, equal_OST


def over_known(values: NDArray[np.float64]) -> list[Any]:
    """The mean over the second axis of what is not NaN."""
    if not np.isnan(values).any():
        made: list[Any] = values.mean(axis=1).tolist()
        return made
    known = np.asarray(~np.isnan(values).reshape(*values.shape[:2], -1).any(axis=2))
    nothing = np.full(values.shape[2:], np.nan)
    return [
        (row[have].mean(axis=0) if have.any() else nothing).tolist()
        for row, have in zip(values, known, strict=True)
    ]


def chosen(
    seen: Seen, shots: int, places: int, numbers: Mapping[tuple[str, ...], int]
) -> Chosen | None:
    """A run's choices on the test at some shots; `numbers` gives each pointer one of its own."""
    column = seen.scored.get((seen.chosen, "test", shots))
    if seen.run is None or column is None:
        return None

    def of(pointers: Iterable[tuple[str, ...]]) -> list[int]:
        return [numbers[pointer] for pointer in pointers]

    by_place = [of(p[at : at + 1] for p in column.pointers) for at in range(places)]
    pointers = np.array(of(column.pointers))
    base, kept = str(seen.run.meta["base"]), last_choices(seen.run)
    return Chosen(seen, column.items, pointers, np.array(by_place), base, kept)


def kl_over(pairs: Sequence[tuple[Chosen, Chosen]], load: Load) -> float | None:
    """The mean KL between two arms over the seeds whose distributions were kept."""
    kls = [kl for pair in pairs if (kl := kl_of(*pair, load)) is not None]
    return float(np.mean(kls)) if kls else None


def differing(pairs: Sequence[tuple[Chosen, Chosen]]) -> tuple[int, int] | None:
    """Parameters, and how many differ, in the first seed whose weights can be read."""
    sizes = (differing_parameters(ours.seen, theirs.seen) for ours, theirs in pairs)
    return next((size for size in sizes if size is not None), None)


def kl_of(ours: Chosen, theirs: Chosen, load: Load) -> float | None:
    """KL between two runs along the base's choices, from their kept distributions."""
    if ours.base != theirs.base or ours.kept is None or theirs.kept is None:
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


def differing_parameters(ours: Seen, theirs: Seen) -> tuple[int, int] | None:
    """How many parameters the chosen checkpoints have, and in how many they differ."""
    name = "checkpoints/{}/weights.safetensors"
    held = [(seen.run, name.format(seen.chosen)) for seen in (ours, theirs) if seen.run is not None]
    if len(held) < 2 or not all(run.has(weights) for run, weights in held):
        return None
    try:
        from safetensors.numpy import load_file
    except ImportError:
        return None
    left, right = (load_file(run.file(weights)) for run, weights in held)
    if left.keys() != right.keys():
        return None
    size = sum(tensor.size for tensor in left.values())
    return size, sum(int((left[name] != right[name]).sum()) for name in left)
