"""What a file of a selector's project is: told by its content, never by its name alone.

Nothing in a torch file is run. It is opened first as torch does when only weights are wanted; one
that holds more (the settings of a Lightning run are objects of other packages) is read with a dummy
in the place of every object that is neither a tensor nor plain.
"""

from __future__ import annotations

import hashlib
import pickle
import pickletools
import re
import struct
import types
import warnings
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

from kleash.compare.read.gather import head
from kleash.compare.read.selector_files import kind_of
from kleash.errors import CheckpointError, DataError
from kleash.tasks.demos.rl_data import read_whole
from kleash.train.adopt.weights import ANCHOR, UNDER, Weights, read_weights

Kind = Literal["checkpoint", "embeddings", "rl data", "beams", "pools", "curves", "accuracy"]
TORCH = (".pt", ".pth", ".ckpt", ".bin")
EPOCH = re.compile(r"(?P<phase>rce|grpo)_epoch[_-]?(?P<epoch>\d{1,6})")
LIGHTNING = re.compile(r"epoch=(?P<epoch>\d{1,6})")
CONVERTED = "_v2format"
PHASES = {"rce": "rce", "grpo": "grpo", "sft": "supervised", "supervised": "supervised"}

LONGEST_NAME = 1_000
LEGACY_PARTS = 5  # pickles one after the other, before the numbers
# What torch.load raises on bytes that are no checkpoint, besides refusing to run code.
TORN = (RuntimeError, OSError, EOFError, ValueError, LookupError, TypeError, AttributeError)
ODD = (AssertionError, ArithmeticError, MemoryError, struct.error, zipfile.BadZipFile)


@dataclass(frozen=True)
class Trained:
    """A checkpoint of somebody's run: which phase and epoch, and its weights."""

    file: Path
    phase: str
    epoch: int
    weights: Weights
    converted: bool

    @property
    def name(self) -> str:
        """What it is called in a run of ours."""
        return f"{'epoch' if self.phase == 'grpo' else self.phase}-{self.epoch}"

    @property
    def order(self) -> tuple[int, int]:
        """Its place in training."""
        return (("supervised", "rce", "grpo").index(self.phase), self.epoch)


@dataclass(frozen=True)
class Found:
    """A file, what it is, and what it holds."""

    file: Path
    kind: Kind
    held: Any
    content: str


def look(file: Path) -> Found | None:
    """What a file is, or None for one that is none of these."""
    held: Any = None
    kind: Kind | None = None
    if file.suffix in TORCH:
        held = torch_object(file)
        kind = _torch_kind(held, file)
    elif file.suffix == ".json":
        kind, held = _json_kind(file)
    if kind is None:
        return None
    with file.open("rb") as handle:
        return Found(file, kind, held, hashlib.file_digest(handle, "sha256").hexdigest())


def _torch_kind(held: Any, file: Path) -> Kind | None:
    import torch

    if isinstance(held, torch.Tensor):
        return "embeddings" if held.ndim == 2 else None
    if not isinstance(held, Mapping):
        return None
    under = next((held[key] for key in UNDER if isinstance(held.get(key), Mapping)), held)
    if any(str(name).endswith(ANCHOR) for name in under) or under is not held:
        return "checkpoint"
    rows = [each for each in held.values() if isinstance(each, torch.Tensor)]
    shapes = {tuple(row.shape) for row in rows}
    alike = len(rows) == len(held) > 0 and len(shapes) == 1 and rows[0].ndim == 1
    return "embeddings" if alike else "checkpoint" if EPOCH.search(file.stem) else None


def _json_kind(file: Path) -> tuple[Kind | None, Any]:
    known = kind_of(head(file, 16_384))
    if known is not None:
        return known, None
    _, value = read_whole(file)
    if isinstance(value, dict) and isinstance(value.get("candidate_set"), dict):
        value = value["candidate_set"]
    alike = isinstance(value, dict) and bool(value)
    alike = alike and all(key.isdigit() and isinstance(row, list) for key, row in value.items())
    return ("pools" if alike else None), None


def trained(found: Found) -> Trained:
    """A file as a checkpoint; its name or what it holds must tell phase and epoch."""
    weights = read_weights(found.held, found.file)
    facts, stem = weights.facts or {}, found.file.stem
    named, lightning = EPOCH.search(stem), LIGHTNING.search(stem)
    converted = stem.endswith(CONVERTED) or bool(weights.renamed)
    if named:
        return Trained(found.file, PHASES[named["phase"]], int(named["epoch"]), weights, converted)
    epoch = int(lightning["epoch"]) if lightning else facts.get("epoch")
    if not isinstance(epoch, int):
        raise DataError(
            f"{found.file} does not tell its epoch: call it rce_epochN.pt, grpo_epochN.pt or"
            " epoch=N.ckpt"
        )
    phase = PHASES.get(str(facts.get("phase", "supervised")).lower(), "supervised")
    return Trained(found.file, phase, epoch, weights, converted)


# --- torch files, opened without running anything in them


PLAIN = {
    ("collections", "OrderedDict"),
    ("torch._utils", "_rebuild_tensor_v2"),
    ("torch._utils", "_rebuild_parameter"),
}
"""What may be called: each makes a tensor or a mapping of what it is given, and nothing else."""
STORAGES = "Float Double Half BFloat16 Long Int Short Char Byte Bool Untyped"


class Dummy:
    """Stands where an object was: takes whatever it is given and keeps none of it."""

    def __new__(cls, *given: Any, **named: Any) -> Dummy:
        return super().__new__(cls)

    def __init__(self, *given: Any, **named: Any) -> None:
        pass

    def __setstate__(self, state: Any) -> None:
        pass

    def __setitem__(self, key: Any, value: Any) -> None:
        pass

    def __call__(self, *given: Any, **named: Any) -> Dummy:
        return self

    def append(self, value: Any) -> None:
        """As a list would."""

    def extend(self, values: Any) -> None:
        """As a list would."""


class Unpickler(pickle.Unpickler):
    """Imports tensors, their storages and ordered mappings; a dummy for all else."""

    def find_class(self, module: str, name: str) -> Any:
        storage = module == "torch" and name.removesuffix("Storage") in STORAGES.split()
        if storage or (module, name) in PLAIN:
            return super().find_class(module, name)
        return Dummy


def torch_object(file: Path) -> Any:
    """What a torch file holds: tensors, plain values, and dummies for whatever else."""
    import torch

    if not file.is_file():
        raise CheckpointError(f"no such file: {file}")
    dummies: Any = types.ModuleType("dummies")
    dummies.Unpickler, dummies.load = Unpickler, pickle.load
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about how a file was made: nothing a user can change
            bound_names(file)
            try:
                return torch.load(file, map_location="cpu", weights_only=True)
            except pickle.UnpicklingError:
                if not zipfile.is_zipfile(file):
                    raise
            return torch.load(file, map_location="cpu", weights_only=False, pickle_module=dummies)
    except (pickle.UnpicklingError, UnicodeDecodeError):
        raise CheckpointError(f"{file} is no checkpoint: nothing in it was run") from None
    except (*TORN, *ODD) as error:
        raise CheckpointError(f"cannot read {file}: {one_line(error)}") from None


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


def one_line(error: BaseException) -> str:
    """What went wrong, shortly."""
    return " ".join(str(error).split())[:160] or type(error).__name__
