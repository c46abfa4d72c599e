"""Runs made elsewhere, whatever wrote them down. One line in `READERS` for each format.

A reader turns a file or folder into `Imported` records and decides nothing: names stay as written
(`compare` knows which mean the same), a missing number is missing and never 0, an estimate is
marked, and every number says where it stands. Reading is streaming: a series is two arrays, not a
list of objects. Vendor libraries are not needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from kleash.errors import DataError

State = Literal["known", "missing", "estimated"]


@dataclass(frozen=True, slots=True)
class Where:
    """The place of a number: a file, a line of it where it has lines, and what helps to find it."""

    file: str
    line: int | None = None
    spot: str = ""


@dataclass(frozen=True, slots=True)
class Number:
    """A number as it was written. Fractions are fractions: 57.0 % is 0.57 with 3 decimals.

    `decimals` is what was printed (None: all there is), so that a check can allow for rounding;
    `low` and `high` are the ends of a range that was written as one.
    """

    value: float | None
    state: State
    where: Where
    decimals: int | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Series:
    """One metric of one run over steps: arrays of equal length, in the order of the file.

    Steps may repeat or fall back where a run was resumed: that is for findings to say. `lines` are
    line numbers (or record numbers) in the file; `estimated` marks points that were guessed.
    """

    metric: str
    axis: Literal["step", "epoch", "time"]
    steps: NDArray[np.float64]
    values: NDArray[np.float64]
    where: Where
    decimals: int | None = None
    float32: bool = False
    lines: NDArray[np.int64] | None = None
    estimated: NDArray[np.bool_] | None = None


@dataclass(frozen=True)
class Scores:
    """Scores of single items at one checkpoint: what paired comparisons need."""

    metric: str
    items: Sequence[str]
    values: NDArray[np.float64]
    where: Where
    step: float | None = None
    shots: int | None = None
    split: str = ""
    clusters: Sequence[str] | None = None


@dataclass(frozen=True)
class Cell:
    """One measurement of a matrix, known or missing, with the command that would fill it."""

    metric: str
    number: Number
    epoch: float | None = None
    step: float | None = None
    shots: int | None = None
    items: int | None = None
    split: str = ""
    command: str = ""


@dataclass(frozen=True)
class Setting:
    """A value of a config, and where it stands."""

    value: Any
    where: Where


@dataclass
class Imported:
    """One run as its source tells it. `arm` is what the source calls the setting under study."""

    name: str
    arm: str
    format: str
    where: Where
    config: dict[str, Setting] = field(default_factory=dict)
    series: list[Series] = field(default_factory=list)
    scores: list[Scores] = field(default_factory=list)
    cells: list[Cell] = field(default_factory=list)
    seed: int | None = None
    finished: bool | None = None
    started: str | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class Claim:
    """A sentence of a document that holds a number or a judgement, to be checked."""

    text: str
    where: Where
    numbers: tuple[Number, ...] = ()


@dataclass
class Source:
    """All that one file or folder holds: runs, and for a document its claims."""

    path: str
    format: str
    runs: list[Imported] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    language: Literal["zh", "en", ""] = ""
    notes: list[str] = field(default_factory=list)


# Name → module. Each has `fits(path) -> bool` (cheap: names and first bytes) and
# `read(path) -> Source`. The first that fits reads, so the particular come before the general.
READERS: dict[str, str] = {}


def read(path: Path) -> Source:
    """The runs in a file or folder, by the first reader that knows its format."""
    if not path.exists():
        raise DataError(f"no such file or folder: {path}")
    for _, module in readers():
        if module.fits(path):
            found: Source = module.read(path)
            return found
    raise DataError(f"{path}: none of the known formats ({', '.join(READERS)})")


def readers() -> Iterator[tuple[str, Any]]:
    """Every reader, loaded when it is its turn."""
    for name, where in READERS.items():
        yield name, import_module(where)


Reader = Callable[[Path], Source]
