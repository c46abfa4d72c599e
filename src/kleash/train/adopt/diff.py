"""Two checkpoints: which tensors differ, and by how much. Files are opened for their tensors alone.

What is around the weights (optimizers, counters, wrappers' names) is left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from kleash.errors import CheckpointError, DataError
from kleash.train.adopt.files import one_line, torch_object

if TYPE_CHECKING:
    from torch import Tensor

SUFFIXES = (".safetensors", ".pt", ".pth", ".ckpt", ".bin")
# What trainers put in a folder beside the weights.
NOT_WEIGHTS = ("trainer.", "optimizer.", "scheduler.", "rng_state", "scaler.", "training_args.")
# Where a `.pt` that holds more than weights has them.
WEIGHTS_UNDER = ("model_state_dict", "state_dict", "model", "module", "policy", "weights")
WRAPPERS = ("module.", "_orig_mod.")  # of DistributedDataParallel and torch.compile
DEEPEST = 32  # containers within containers
AT_ONCE = 1 << 24  # values compared at a time


@dataclass(frozen=True)
class Change:
    """A tensor that is not the same, bit for bit, on both sides.

    `relative` is |second - first| over |first|, as norms; None where the first is all zeros.
    Values that are not finite are in no size; across types values count as they differ.
    """

    name: str
    kind: Literal["changed", "retyped", "reshaped", "only_first", "only_second"]
    parameters: int
    differ: int = 0
    largest: float | None = None
    relative: float | None = None


def differences(first: Path, second: Path) -> tuple[list[str], int, list[Change]]:
    """The tensors of one name and shape on both sides, their size, and what is not the same."""
    ours, theirs = dict(tensors_of(first)), dict(tensors_of(second))
    changes, shared, size = [], [], 0
    for name in dict.fromkeys([*ours, *theirs]):
        left, right = ours.get(name), theirs.get(name)
        if left is None or right is None:
            held = right if left is None else left
            kind: Any = "only_second" if left is None else "only_first"
            changes.append(Change(name, kind, 0 if held is None else held.numel()))
        elif left.shape != right.shape:
            changes.append(Change(name, "reshaped", left.numel()))
        else:
            shared.append(name)
            size += left.numel()
            changes += filter(None, [change(name, left, right)])
    return shared, size, sorted(changes, key=lambda each: -(each.relative or 0.0))


def change(name: str, left: Tensor, right: Tensor) -> Change | None:
    """How one tensor differs from another of its shape; None where type and every bit agree."""
    import torch

    size, same_type = left.numel(), left.dtype == right.dtype
    differ, largest, moved, length = 0, 0.0, 0.0, 0.0
    if same_type and not size:
        return None
    for one, other in zip(_plain(left).split(AT_ONCE), _plain(right).split(AT_ONCE), strict=True):
        a, b = (t.double().reshape(len(t), -1) for t in map(_real, (one, other)))
        if same_type:
            bits = [t.view(torch.uint8).view(len(t), -1) for t in (one, other)]
            differ += int((bits[0] != bits[1]).any(1).sum())
        else:
            differ += int(((a != b) & ~(a.isnan() & b.isnan())).any(1).sum())
        finite = a.isfinite() & b.isfinite()
        gap = (b - a)[finite]
        largest = max(largest, float(gap.abs().max())) if len(gap) else largest
        moved, length = moved + float(gap @ gap), length + float(a[finite] @ a[finite])
    if same_type and not differ:
        return None
    relative = math.sqrt(moved / length) if length else None
    return Change(name, "changed" if same_type else "retyped", size, differ, largest, relative)


def _plain(tensor: Tensor) -> Tensor:
    tensor = tensor.detach()
    tensor = tensor.dequantize() if tensor.is_quantized else tensor.to_dense()
    return tensor.contiguous().reshape(-1)


def _real(tensor: Tensor) -> Tensor:
    import torch

    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


def block(name: str) -> str:
    """The part of a network that a tensor belongs to: its layer, else its module."""
    parts = name.split(".")
    numbered = next((at for at, part in enumerate(parts[:-1]) if part.isdigit()), None)
    return ".".join(parts[:-1] if numbered is None else parts[: numbered + 1]) or name


def tensors_of(path: Path) -> dict[str, Tensor]:
    """The tensors of a file, or of all files of a folder that hold its weights, by name."""
    if not path.exists():
        raise DataError(f"no such file or folder: {path}")
    found: dict[str, Tensor] = {}
    for file in [path] if path.is_file() else weight_files(path):
        held = _opened(file)
        if twice := sorted(found.keys() & held.keys()):
            raise CheckpointError(f"{path} holds {twice[0]!r} in two files: name one of them")
        found |= held
    if not found:
        raise CheckpointError(f"{path} holds no tensors")
    for wrapper in WRAPPERS:
        if all(name.startswith(wrapper) for name in found):
            found = {name.removeprefix(wrapper): tensor for name, tensor in found.items()}
    return found


def weight_files(folder: Path) -> list[Path]:
    """The files with a folder's weights: all of the first kind there is."""
    files = [each for each in sorted(folder.iterdir()) if each.is_file()]
    files = [each for each in files if not each.name.startswith(NOT_WEIGHTS)]
    kinds = ([each for each in files if each.suffix.lower() == suffix] for suffix in SUFFIXES)
    return next(filter(None, kinds), [])


def _opened(file: Path) -> dict[str, Tensor]:
    if file.suffix == ".safetensors":
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        try:
            return load_file(file)
        except (OSError, SafetensorError) as error:
            raise CheckpointError(f"cannot read {file}: {one_line(error)}") from None
    held = torch_object(file)
    if isinstance(held, Mapping):
        held = next(
            (held[key] for key in WEIGHTS_UNDER if isinstance(held.get(key), Mapping)), held
        )
    return dict(_named(held, "", set(), file))


def _named(held: Any, name: str, seen: set[int], file: Path) -> Iterator[tuple[str, Tensor]]:
    """Every tensor in nested containers; one that stands twice, or in itself, is entered once."""
    import torch

    if isinstance(held, torch.Tensor):
        yield name, held
        return
    if not isinstance(held, Mapping | list | tuple) or id(held) in seen:
        return
    if name.count(".") > DEEPEST:
        raise CheckpointError(f"{file} has containers more than {DEEPEST} deep: no checkpoint")
    seen.add(id(held))
    for key, value in held.items() if isinstance(held, Mapping) else enumerate(held):
        yield from _named(value, f"{name}.{key}" if name else str(key), seen, file)
