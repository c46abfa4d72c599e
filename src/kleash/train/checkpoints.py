"""Checkpoints of several ranks: each writes its pieces of the trainer, any number of them reads it.

The format is torch's distributed checkpoint. Weights are not in it: they are kept whole, beside it,
for whoever measures or exports a checkpoint. Rank 0 alone reads and writes everything else of a
run's folder, and tells the others what it found.
"""

from __future__ import annotations

import contextlib
import hashlib
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from kleash.errors import CheckpointError
from kleash.runs.run import Checkpoint, Run
from kleash.train.ranks import all_gather, count, first, first_place, is_first, local, rank

PIECES = "trainer"
"""The folder in a checkpoint that every rank writes its pieces of the trainer's tensors to."""


def save(folder: Path, tensors: Mapping[str, Tensor]) -> dict[str, str]:
    """Every rank writes its pieces; the hash of every file, for `load`."""
    from torch.distributed.checkpoint.state_dict_saver import save as write

    with maybe_alone() as alone:
        write(dict(tensors), checkpoint_id=folder, no_dist=alone)
    return hashes(folder)


def load(folder: Path, into: Mapping[str, Tensor]) -> None:
    """Fill tensors in place, whole or pieces: what lies in the folder is cut as these need it.

    It does not matter how it was cut when it was written.
    """
    from torch.distributed.checkpoint.state_dict_loader import load as read

    with maybe_alone() as alone:
        read(dict(into), checkpoint_id=folder, no_dist=alone)


class TrainerState:
    """What a checkpoint keeps for going on, however many ranks wrote it; nobody has changed it."""

    def __init__(self, run: Run, name: str) -> None:
        self.folder = run.path / "checkpoints" / name / PIECES
        self.whole: dict[str, Tensor] = {}
        self.pieces: Mapping[str, Any] = {}
        if not self.folder.is_dir():
            self.whole = run.load(name).trainer
            return
        from torch.distributed.checkpoint.filesystem import FileSystemReader

        if hashes(self.folder) != run.state(name)["trainer_files"]:
            raise CheckpointError(
                f"{self.folder} does not hold the tensors that were saved: train again"
            )
        self.pieces = FileSystemReader(self.folder).read_metadata().state_dict_metadata

    @property
    def names(self) -> set[str]:
        """Of all tensors."""
        return {*self.whole, *self.pieces}

    def tensors(self) -> dict[str, Tensor]:
        """All of them, whole."""
        made = {k: torch.empty(v.size, dtype=v.properties.dtype) for k, v in self.pieces.items()}
        if made:
            load(self.folder, made)
        return self.whole | made

    def fill(self, into: Mapping[str, Tensor]) -> None:
        """Put them into the pieces of this rank."""
        if self.pieces:
            load(self.folder, into)
        for name, tensor in into.items() if self.whole else ():
            own = local(tensor)
            piece = self.whole[name].flatten()[first_place(tensor) :][: own.numel()]
            own.copy_(piece.view(own.shape))


def hashes(folder: Path) -> dict[str, str]:
    """SHA-256 of every file, each read by one of the ranks."""
    own = {}
    for path in sorted(folder.iterdir())[rank() :: count()]:
        with path.open("rb") as handle:
            own[path.name] = hashlib.file_digest(handle, "sha256").hexdigest()
    return {name: found for each in all_gather(own) for name, found in each.items()}


@contextlib.contextmanager
def maybe_alone() -> Iterator[bool]:
    """Whether there is but one process, which torch would warn of though it is meant."""
    alone = not dist.is_initialized()
    with warnings.catch_warnings():
        if alone:
            warnings.filterwarnings("ignore", "torch.distributed is disabled", UserWarning)
        yield alone


def empty_moments(optimiser: torch.optim.Optimizer) -> None:
    """Give an optimiser that never stepped its moments, without moving a weight."""
    if optimiser.state:
        return
    rates = [group["lr"] for group in optimiser.param_groups]
    for group in optimiser.param_groups:
        group["lr"] = torch.zeros_like(torch.as_tensor(group["lr"])).item()
        for weight in group["params"]:
            weight.grad = torch.zeros_like(weight)
    optimiser.step()
    optimiser.zero_grad()
    for group, rate in zip(optimiser.param_groups, rates, strict=True):
        group["lr"] = rate


# --- the run's folder


def shared(run: Run) -> Run:
    """The run as all ranks may use it."""
    return SharedRun(run) if count() > 1 else run


def everyone(name: str) -> Any:
    """The method of that name, made by rank 0; all have what it found."""

    def call(run: SharedRun, *given: Any) -> Any:
        return first(lambda: getattr(run.plain, name)(*given))

    return call


class SharedRun(Run):
    """A run that several ranks train. All call the same methods in the same order."""

    def __init__(self, plain: Run) -> None:
        super().__init__(plain.path, plain.config, plain.given, plain.meta)
        self.plain = plain

    checkpoints = everyone("checkpoints")
    state = everyone("state")
    slim = everyone("slim")
    drop = everyone("drop")
    rewind = everyone("rewind")
    finish = everyone("finish")

    @property
    def finished(self) -> bool:
        """Whether all that was asked of the run has been done."""
        return first(lambda: self.plain.finished)

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Rank 0 holds it."""
        with contextlib.ExitStack() as held:
            first(lambda: held.enter_context(self.plain.lock()))
            yield

    def reopen(
        self, config: Mapping[str, Any], given: Mapping[str, Any], meta: Mapping[str, Any]
    ) -> None:
        """Go on with a run; all hold what its folder then says."""
        first(lambda: self.plain.reopen(config, given, meta))
        mine = self.plain
        told = first(lambda: (mine.config, mine.given, mine.meta))
        self.config, self.given, self.meta = mine.config, mine.given, mine.meta = told

    def log(self, record: Mapping[str, Any]) -> None:
        """Rank 0 writes the line, which all have."""
        if is_first():
            self.plain.log(record)

    def time(self, record: Mapping[str, Any]) -> None:
        """Rank 0's time."""
        if is_first():
            self.plain.time(record)

    def metrics(self) -> Iterator[dict[str, Any]]:
        """The lines that are there now."""
        return iter(first(lambda: list(self.plain.metrics())))

    def save(
        self,
        name: str,
        weights: Mapping[str, Tensor],
        trainer: Mapping[str, Tensor],
        state: Mapping[str, Any],
    ) -> None:
        """Weights, which every rank has whole, are written once, and the trainer's in pieces."""
        passing = first(lambda: self.plain.begin_checkpoint(name))
        told = {**state, "trainer_files": save(passing / PIECES, trainer)}
        first(lambda: self.plain.end_checkpoint(passing, weights, told))

    def load(self, name: str, *, trainer: bool = True) -> Checkpoint:
        """Every rank reads what it needs by itself."""
        return self.plain.load(name, trainer=trainer)
