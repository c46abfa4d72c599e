"""Opens checkpoints for their tensors alone: nothing in a file is run.

What is around the weights (optimizers, counters, wrappers' names) is left out.
"""

from __future__ import annotations

import pickle
import pickletools
import struct
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from kleash.errors import CheckpointError, DataError, KleashError

if TYPE_CHECKING:
    from torch import Tensor

SUFFIXES = (".safetensors", ".pt", ".pth", ".ckpt", ".bin")
# What trainers put in a folder beside the weights.
NOT_WEIGHTS = ("trainer.", "optimizer.", "scheduler.", "rng_state", "scaler.", "training_args.")
# Where a `.pt` that holds more than weights has them.
WEIGHTS_UNDER = ("model_state_dict", "state_dict", "model", "module", "policy", "weights")
WRAPPERS = ("module.", "_orig_mod.")  # of DistributedDataParallel and torch.compile
DEEPEST = 32  # containers within containers
LONGEST_NAME = 1_000
LEGACY_PARTS = 5  # pickles one after the other, before the numbers
# What torch.load raises on bytes that are no checkpoint, besides refusing to run code.
TORN = (RuntimeError, OSError, EOFError, ValueError, LookupError, TypeError, AttributeError)
ODD = (AssertionError, ArithmeticError, MemoryError, struct.error, zipfile.BadZipFile)

Tensors = dict[str, Callable[[], "Tensor"]]


def weight_files(folder: Path) -> list[Path]:
    """The files with a folder's weights: all of the first kind there is."""
    try:
        files = [each for each in sorted(folder.iterdir()) if each.is_file()]
    except OSError as error:
        raise DataError(f"cannot read {folder}: {error.strerror}") from None
    for suffix in SUFFIXES:
        found = [each for each in files if each.suffix.lower() == suffix]
        found = [each for each in found if not each.name.startswith(NOT_WEIGHTS)]
        if found:
            return found
    return []


def need_tensors() -> None:
    """One line where torch or safetensors is not installed."""
    for name in ("torch", "safetensors"):
        if find_spec(name) is None:
            raise KleashError(f"comparing checkpoints needs {name}: pip install 'kleash[train]'")


def tensors_of(path: Path) -> Tensors:
    """The tensors of a file or folder by name, each read when it is asked for."""
    if not path.exists():
        raise DataError(f"no such file or folder: {path}")
    found: Tensors = {}
    for file in [path] if path.is_file() else weight_files(path):
        opened = _safetensors(file) if file.suffix == ".safetensors" else _torch_file(file)
        if twice := sorted(found.keys() & opened.keys()):
            raise CheckpointError(f"{path} holds {twice[0]!r} in two files: name one of them")
        found |= opened
    if not found:
        raise CheckpointError(f"{path} holds no tensors")
    for wrapper in WRAPPERS:
        if all(name.startswith(wrapper) for name in found):
            found = {name.removeprefix(wrapper): tensor for name, tensor in found.items()}
    return found


def _safetensors(file: Path) -> Tensors:
    from safetensors import SafetensorError, safe_open

    try:
        handle: Any = safe_open(file, framework="pt")
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"cannot read {file}: {one_line(error)}") from None
    return {name: partial(handle.get_tensor, name) for name in handle.keys()}  # noqa: SIM118  # no mapping


def _torch_file(file: Path) -> Tensors:
    import torch

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about how a file was made: nothing a user can change
            bound_names(file)
            held = torch.load(
                file, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(file)
            )
    except (pickle.UnpicklingError, UnicodeDecodeError):
        raise CheckpointError(
            f"{file} is no checkpoint, or holds more than tensors, and opening it could run code:"
            " save its state_dict alone"
        ) from None
    except (*TORN, *ODD) as error:
        raise CheckpointError(f"cannot read {file}: {one_line(error)}") from None
    if isinstance(held, Mapping):
        inner = [held[key] for key in WEIGHTS_UNDER if isinstance(held.get(key), Mapping)]
        held = inner[0] if inner else held
    return {name: partial(itself, tensor) for name, tensor in _named(held, "", set(), file)}


def bound_names(file: Path) -> None:
    """Refuse a class with an endless name: torch's search in its own message would not end."""
    with file.open("rb") as handle, suppress(zipfile.BadZipFile):  # torch may leave checksums out
        if not zipfile.is_zipfile(file):
            return _bound_pickles([handle] * LEGACY_PARTS)
        with zipfile.ZipFile(file) as archive:
            held = [name for name in archive.namelist() if name.endswith("data.pkl")]
            _bound_pickles([archive.open(name) for name in held])


def _bound_pickles(parts: Sequence[IO[bytes]]) -> None:
    try:
        for part in parts:
            for code, name, _ in pickletools.genops(part):
                if code.name == "GLOBAL" and len(str(name)) > LONGEST_NAME:
                    raise pickle.UnpicklingError
    except UnicodeDecodeError:
        raise
    except ValueError:
        return  # no pickle: torch says so


def itself(tensor: Tensor) -> Tensor:
    """A tensor that is there already."""
    return tensor


def one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:160] or type(error).__name__


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
