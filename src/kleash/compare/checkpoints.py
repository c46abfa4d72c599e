"""Two checkpoints: which tensors differ and by how much, and whether both choose alike.

Codes and facts, no sentences. Opening files is for `tensor_files`. Torch is imported where tensors
are compared, so that comparing logs does without it.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from kleash.compare.records import Because
from kleash.compare.tensor_files import SUFFIXES, itself, need_tensors, tensors_of, weight_files
from kleash.errors import ConfigError, DataError, KleashError
from kleash.stats import differing_bound

if TYPE_CHECKING:
    from torch import Tensor

    from kleash.recipe import SelectorRecipe
    from kleash.rollout.selector import SelectorWorld
    from kleash.runs import Checkpoint

SAME_WORLD = ("data", "data_seed", "answerer", "pool")
AT_ONCE = 1 << 24  # values compared at a time


@dataclass(frozen=True)
class Change:
    """A tensor that is not the same, bit for bit, on both sides.

    `relative` is |second - first| over |first|, as norms; None where the first is all zeros.
    Values that are not finite count as differing where their bits do, and are in no size.
    """

    name: str
    kind: Literal["changed", "retyped", "reshaped", "only first", "only second"]
    shapes: tuple[tuple[int, ...] | None, ...]
    types: tuple[str | None, ...]
    parameters: int
    differ: int | None = None
    largest: float | None = None
    relative: float | None = None


@dataclass(frozen=True)
class Choices:
    """Greedy choices of two policies on n validation queries: the share equal at each position."""

    n: int
    equal: tuple[float, ...]
    differ: int
    """Queries with another choice anywhere."""
    bound: float
    """On other queries at most this share differs (95 %, Clopper and Pearson)."""


@dataclass(frozen=True)
class Checkpoints:
    """What two checkpoints have in common and what not; `shared` have the same name and shape."""

    names: tuple[str, str]
    shared: int
    parameters: int
    differ: int
    changes: tuple[Change, ...]
    equal_blocks: tuple[str, ...]
    other_blocks: tuple[str, ...]
    choices: Choices | None
    because: tuple[Because, ...] = ()

    def of(self, *kinds: str) -> list[Change]:
        """The changes of some kinds."""
        return [each for each in self.changes if each.kind in kinds]


# --- which paths are checkpoints


def are_checkpoints(paths: Sequence[Path]) -> bool:
    """Whether two checkpoints are meant; one beside anything else is a mistake."""
    found = [is_checkpoint(path) for path in paths]
    if any(found) and not (len(paths) == 2 and all(found)):
        raise ConfigError(
            f"{paths[found.index(True)]} is a checkpoint: checkpoints are compared two at a time,"
            " and not with logs; give two"
        )
    return any(found)


def is_checkpoint(path: Path) -> bool:
    """A file of tensors, RUN/checkpoints/NAME, or a folder of weights in which there are no logs.

    A trainer's folder that also holds its log is the log: its weights can be named by their file.
    """
    if not path.is_dir():
        return path.suffix.lower() in SUFFIXES
    return _of_a_run(path) or (bool(weight_files(path)) and not _tells_of_runs(path))


def _of_a_run(path: Path) -> bool:
    return path.parent.name == "checkpoints" and (path / "state.json").is_file()


def _tells_of_runs(folder: Path) -> bool:
    from kleash.imports import read

    try:
        runs = read(folder).runs
    except DataError:
        return False
    # Numbers in config.json, tokenizer.json and a model's README are about the model.
    return any(
        (run.series or run.scores or run.cells)
        and run.format != "markdown"
        and not (run.format == "jsonl" and run.where.file.endswith(".json"))
        for run in runs
    )


# --- comparing


def compare_checkpoints(first: Path, second: Path) -> Checkpoints:
    """What differs between two checkpoints, and whether they choose alike where that can be seen.

    Checkpoints of runs are proven to hold the tensors that were saved.
    """
    need_tensors()
    kept = [_kept(path) for path in (first, second)]
    ours, theirs = (
        tensors_of(path)
        if found is None
        else {name: partial(itself, tensor) for name, tensor in found.weights.items()}
        for path, found in zip((first, second), kept, strict=True)
    )
    changes, equal, sizes = [], [], 0
    for name in dict.fromkeys([*ours, *theirs]):
        left, right = (side[name]() if name in side else None for side in (ours, theirs))
        change = difference(name, left, right)
        if change is None or change.kind in ("changed", "retyped"):
            sizes += 0 if left is None else left.numel()
        changes += [change] if change else []
        equal += [] if change else [name]
    other_blocks = dict.fromkeys(block(change.name) for change in changes)
    choices, because = choices_of(first, second, kept)
    return Checkpoints(
        names=_labels(first, second),
        shared=len(equal) + sum(each.differ is not None for each in changes),
        parameters=sizes,
        differ=sum(each.differ or 0 for each in changes),
        changes=tuple(sorted(changes, key=lambda each: -(each.relative or 0.0))),
        equal_blocks=tuple(b for b in dict.fromkeys(map(block, equal)) if b not in other_blocks),
        other_blocks=tuple(other_blocks),
        choices=choices,
        because=because,
    )


def _kept(path: Path) -> Checkpoint | None:
    """A run's checkpoint with its state; None for any other file or folder."""
    from kleash.runs import Run

    if not _of_a_run(path):
        return None
    return Run.open(path.parent.parent).load(path.name, trainer=False)


def _labels(first: Path, second: Path) -> tuple[str, str]:
    """As short as they can be while they differ."""
    ours, theirs = (
        f"{path.parent.parent.name}/{path.name}" if _of_a_run(path) else path.name
        for path in (first, second)
    )
    return (ours, theirs) if ours != theirs else (str(first), str(second))


def block(name: str) -> str:
    """The part of a network that a tensor belongs to: its layer, else its module."""
    parts = name.split(".")
    numbered = [place for place, part in enumerate(parts[:-1]) if part.isdigit()]
    return ".".join(parts[: numbered[0] + 1] if numbered else parts[:-1]) or name


def difference(name: str, left: Tensor | None, right: Tensor | None) -> Change | None:
    """How one tensor differs; None where type, shape and every bit are the same."""
    sides = (left, right)
    shapes = tuple(None if side is None else tuple(side.shape) for side in sides)
    types = tuple(None if side is None else str(side.dtype).split(".")[-1] for side in sides)
    made = partial(Change, name, shapes=shapes, types=types)
    if left is None or right is None:
        only = right if left is None else left
        count = 0 if only is None else only.numel()
        return made(kind="only second" if left is None else "only first", parameters=count)
    if left.shape != right.shape:
        return made(kind="reshaped", parameters=left.numel())
    differ, largest, moved, length = _sizes(_plain(left), _plain(right))
    if left.dtype == right.dtype and not differ:
        return None
    return made(
        kind="changed" if left.dtype == right.dtype else "retyped",
        parameters=left.numel(),
        differ=differ,
        largest=largest,
        relative=math.sqrt(moved / length) if length else None,
    )


def _plain(tensor: Tensor) -> Tensor:
    import torch

    tensor = tensor.detach()
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    if tensor.layout != torch.strided:
        tensor = tensor.to_dense()
    return tensor.contiguous().reshape(-1)


def _sizes(left: Tensor, right: Tensor) -> tuple[int, float, float, float]:
    """How many values differ, the largest change, and the squares of the change and the first."""
    import torch

    differ, largest, moved, length = 0, 0.0, 0.0, 0.0
    for ours, theirs in zip(left.split(AT_ONCE), right.split(AT_ONCE), strict=True):
        a, b = (
            torch.view_as_real(side).double() if side.is_complex() else side.double()[:, None]
            for side in (ours, theirs)
        )
        if ours.dtype == theirs.dtype:
            bytes_each = (len(ours), ours.element_size())
            bits = [side.view(torch.uint8).view(bytes_each) for side in (ours, theirs)]
            differ += int((bits[0] != bits[1]).any(1).sum())
        else:
            differ += int(((a != b) & ~(a.isnan() & b.isnan())).any(1).sum())
        finite = a.isfinite() & b.isfinite()
        gap = (b - a)[finite]
        largest = max(largest, float(gap.abs().max())) if len(gap) else largest
        moved += float(gap.square().sum())
        length += float(a[finite].square().sum())
    return differ, largest, moved, length


# --- choices


def choices_of(
    first: Path, second: Path, kept: Sequence[Checkpoint | None]
) -> tuple[Choices | None, tuple[Because, ...]]:
    """How often both choose alike, or why that cannot be said."""
    if any(found is None for found in kept):
        return None, (Because("choices_need_runs"),)
    from kleash.ledger import Ledger
    from kleash.recipe import SelectorRecipe
    from kleash.rollout import load_checkpoint, one_way
    from kleash.rollout.selector import SelectorWorld

    try:
        (ours, recipe), (theirs, other) = load_checkpoint(first), load_checkpoint(second)
        if not (isinstance(recipe, SelectorRecipe) and isinstance(other, SelectorRecipe)):
            return None, (Because("choices_need_selectors"),)
        apart = [key for key in SAME_WORLD if getattr(recipe, key) != getattr(other, key)]
        if apart:
            return None, (Because("choices_other_data", {"keys": apart}),)
        # Greedy choices ask nobody, but a world has a ledger.
        with (
            one_way(),
            tempfile.TemporaryDirectory() as folder,
            Ledger(Path(folder) / "ledger.sqlite") as ledger,
        ):
            world = SelectorWorld(recipe, ledger)
            shots = min(recipe.shots, other.shots)
            found = [
                _greedy(world, made_by, checkpoint, shots)
                for made_by, checkpoint in ((recipe, ours), (other, theirs))
            ]
    except KleashError as error:
        return None, (Because("choices_failed", {"error": str(error)}),)
    return agreement(*found, shots=shots), ()


def _greedy(
    world: SelectorWorld, recipe: SelectorRecipe, checkpoint: Checkpoint, shots: int
) -> list[tuple[int, ...]]:
    from kleash import guard
    from kleash.evaluate.selector import greedy

    policy = world.with_recipe(recipe).empty_policy()
    guard.load_strictly(policy, checkpoint.weights)
    places = range(len(world.pooled("validation").queries))
    return list(greedy(policy, world, "validation", places, shots).values())


def agreement(
    ours: Sequence[tuple[int, ...]], theirs: Sequence[tuple[int, ...]], *, shots: int
) -> Choices:
    """Equal choices by position; a position after both have stopped is equal."""
    n = len(ours)
    pairs = list(zip(ours, theirs, strict=True))
    equal = tuple(
        sum(a[at : at + 1] == b[at : at + 1] for a, b in pairs) / n for at in range(shots)
    )
    differ = sum(a != b for a, b in pairs)
    return Choices(n, equal, differ, differing_bound(differ, n))
