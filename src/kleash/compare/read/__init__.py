"""Runs made elsewhere, whatever wrote them down. One line in `READERS` for each format.

A reader turns a file or folder into `Imported` records and decides nothing: names stay as written
(`compare` knows which mean the same), a missing number is missing and never 0, an estimate is
marked, and every number says where it stands. Reading is streaming: a series is two arrays, not a
list of objects. Vendor libraries are not needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kleash.compare.read.names import Resolved, resolve
from kleash.errors import DataError

State = Literal["known", "missing", "estimated"]
Role = Literal["", "start", "untrained"]  # '' is a trained run


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
    `low` and `high` are the ends of a range that was written as one (`value` is then None: nobody
    wrote a middle). `text` is the number as printed, `unit` what
    stood beside it ("%" where a fraction was printed as a percentage), and `about` that it was
    called rough, as in "~59,839 tokens".
    """

    value: float | None
    state: State
    where: Where
    decimals: int | None = None
    low: float | None = None
    high: float | None = None
    unit: str = ""
    about: bool = False
    text: str = ""


@dataclass(eq=False)
class Series:
    """One metric of one run over steps: arrays of equal length, in the order of the file.

    Steps may repeat or fall back where a run was resumed: that is for findings to say. `lines` are
    line numbers (or record numbers) in the file; `estimated` marks points that were guessed;
    `times` are seconds since 1970. A series that goes on in another file says from which point.
    Arrays may be shared between series and cannot be written to. Nothing writes to a series or a
    setting; they are not frozen because logs have many, and those take three times as long to make.
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
    times: NDArray[np.float64] | None = None
    parts: tuple[tuple[int, str], ...] = ()

    @cached_property
    def rises(self) -> bool:
        """Whether every step is above the one before."""
        return bool((self.steps[1:] > self.steps[:-1]).all())

    @cached_property
    def last(self) -> float:
        """Its greatest step."""
        return float(self.steps[-1] if self.rises else self.steps.max())

    @cached_property
    def finite(self) -> bool:
        """Whether every value is a number."""
        return bool(np.isfinite(self.values).all())

    def place(self, point: int) -> Where:
        """Where one of its points stands."""
        file = self.where.file
        for first, other in self.parts:
            if first <= point:
                file = other
        line = None if self.lines is None else int(self.lines[point])
        return Where(file, line, self.where.spot if line == self.where.line else "")


@dataclass(frozen=True)
class Scores:
    """Scores of single items at one checkpoint: what paired comparisons need.

    An item that was tried several times stands several times; `repeats` counts its tries from 0.
    A score that is not there is NaN: the item was tried and something around it broke.
    """

    metric: str
    items: Sequence[str]
    values: NDArray[np.float64]
    where: Where
    step: float | None = None
    shots: int | None = None
    split: str = ""
    clusters: Sequence[str] | None = None
    checkpoint: str = ""
    repeats: NDArray[np.int64] | None = None
    lines: NDArray[np.int64] | None = None
    weights: str = ""
    """The hash of the weights that made them, where that was kept."""


@dataclass(frozen=True)
class Cell:
    """One measurement of a matrix, known or missing, with the command that would fill it.

    `statistic` says what of a whole run was measured where it is not one point of it: mean, first,
    last, min, max, best, change, spread, median, or "best step" (the number is then a step).
    """

    metric: str
    number: Number
    epoch: float | None = None
    step: float | None = None
    shots: int | None = None
    items: int | None = None
    split: str = ""
    command: str = ""
    statistic: str = ""


@dataclass(slots=True)
class Setting:
    """A value of a config, and where it stands; `others` are different values given elsewhere."""

    value: Any
    where: Where
    others: tuple[Setting, ...] = ()


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
    seconds: float | None = None
    noticed: list[tuple[str, int, Where]] = field(default_factory=list)  # its guards: code, step
    percents: dict[str, float] = field(default_factory=dict)  # fractions now: greatest as written
    role: Role = ""
    start: str = ""  # of a study's run, the arms it began from
    against: str = ""  # and is compared with

    @cached_property
    def resolved(self) -> Resolved:
        """Its config under known names, once it is read; neither is written to after that."""
        return resolve({key: setting.value for key, setting in self.config.items()})


@dataclass(frozen=True)
class Derived:
    """A number that a document worked out from others of its own, to be worked out again.

    `mean` is the mean of `of`; `difference` is mean of `of` minus mean of `minus`; `relative` is
    that over the mean of `minus`. With `unsigned` only the size was written ("差 3.6 % ⬇").
    """

    kind: Literal["mean", "difference", "relative"]
    number: Number
    of: tuple[Number, ...]
    minus: tuple[Number, ...] = ()
    metric: str = ""
    arms: tuple[str, ...] = ()
    unsigned: bool = False


@dataclass(frozen=True)
class Fact:
    """Where a document says that its numbers come from, and how they were made."""

    kind: Literal["path", "wandb", "command"]
    text: str
    arm: str = ""


@dataclass(frozen=True)
class Table:
    """A table as printed, for whatever looks at its text: copied rows, counts of "?"."""

    where: Where
    headings: tuple[str, ...]
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    lines: tuple[int, ...]


@dataclass
class Source:
    """What one file or folder holds: runs, what a document says of them, what a study compares."""

    path: str
    format: str
    runs: list[Imported] = field(default_factory=list)
    language: Literal["zh", "en", ""] = ""
    notes: list[str] = field(default_factory=list)
    derived: list[Derived] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    name: str = ""  # as the user calls it
    on: str = ""  # these two as a study's file asks
    margin: float | None = None


class Reader(NamedTuple):
    """What knows a format: `fits` is cheap, it looks at names and first bytes."""

    fits: Callable[[Path], bool]
    read: Callable[[Path], Source]


# Name → module with `fits` and `read`, or the `Reader` in it. The first that fits reads, so the
# particular come before the general.
READERS: dict[str, str] = {
    "kleash": "kleash.compare.read.run_folder",
    "swanlab": "kleash.compare.read.swanlab",  # before wandb: it has files/config.yaml too
    "wandb": "kleash.compare.read.wandb",
    "wandb export": "kleash.compare.read.csv_rows:EXPORT",
    "tensorboard": "kleash.compare.read.tensorboard",
    "mlflow": "kleash.compare.read.trackers:MLFLOW",
    "trackio": "kleash.compare.read.trackers:TRACKIO",
    "trl": "kleash.compare.read.trl",
    "prime-rl": "kleash.compare.read.folders:PRIME_RL",
    "tinker-cookbook": "kleash.compare.read.folders:TINKER_COOKBOOK",
    "nemo-rl": "kleash.compare.read.folders:NEMO_RL",
    "lm-eval": "kleash.compare.read.evaluations:LM_EVAL",
    "inspect": "kleash.compare.read.evaluations:INSPECT",
    "markdown": "kleash.compare.read.markdown",  # before logs: a report may quote some
    "selector": "kleash.compare.read.selector_files",
    "verl": "kleash.compare.read.verl",
    "jsonl": "kleash.compare.read.json_rows",
    "csv": "kleash.compare.read.csv_rows",
}
# What needs no reader to be told: formats that are folders, and how the files of others begin.
FOLDERS = {"kleash"}
LINE = 1_000  # characters of an error that are shown
BEGINNINGS = {
    "swanlab": b":SWL\xd6\xe1",
    "wandb": b":W&B\xe1\xbe",
    **dict.fromkeys(("mlflow", "trackio"), b"SQLite format 3\0"),
}
REMOTE = ("mlflow:/", "wandb:/")  # a Path has one slash of two
DEPTH = 8  # folders within folders that are looked into
ENTRIES = 100_000  # files and folders looked at for one source


def read(path: Path) -> Source:
    """The runs in a file or folder, by the first reader that knows its format.

    A folder that is no format's own is looked through: what is in it makes one source.
    """
    if not str(path).startswith(REMOTE) and not path.exists():
        raise DataError(f"no such file or folder: {path}")
    try:
        source = _known(path)
        if source is None and path.is_dir():
            source = _inside(path)
    except OSError as error:
        raise DataError(f"cannot read {error.filename or path}: {error.strerror}") from None
    except DataError as error:
        raise DataError(_line(error)) from None
    if source is None:
        raise DataError(f"{path}: none of the known formats ({', '.join(READERS)})")
    import_module("kleash.compare.read.given").settle(source)
    return source


def _line(error: DataError) -> str:
    """One line that can be read, whatever a damaged file had it quote."""
    line = " ".join(str(error).split())
    return line if len(line) <= LINE else f"{line[:LINE]} …"


def fitting(path: Path) -> Iterator[tuple[str, Any]]:
    """The readers that know a file or folder, each loaded when it is its turn."""
    is_file = path.is_file()
    start = _beginning(path) if is_file else b""
    for name, where in READERS.items():
        if is_file and (name in FOLDERS or not start.startswith(BEGINNINGS.get(name, b""))):
            continue
        module, _, own = where.partition(":")
        reader: Any = import_module(module)
        reader = getattr(reader, own) if own else reader
        if reader.fits(path):
            yield name, reader


def _beginning(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(16)
    except OSError:  # whoever reads the file says why it cannot
        return b""


def _known(path: Path) -> Source | None:
    if str(path).startswith(REMOTE):
        remote: Source = import_module("kleash.compare.read.trackers").read(path)
        return remote
    if not path.is_file() and not path.is_dir():
        return None
    # Of a folder all that it could be is asked for, to say what was not read.
    known = fitting(path)
    first = next(known, None)
    if first is None:
        return None
    source: Source = first[1].read(path)
    others = [name for name, _ in known] if path.is_dir() else []
    if others:
        source.notes.append(
            f"{path} also holds files of {', '.join(others)}: not read, so that no run counts "
            "twice; name those files to read them"
        )
    if path.is_dir() and len(source.runs) == 1:
        beside = import_module("kleash.compare.read.beside").evaluations(
            path, source.format, _known
        )
        source.runs += beside.runs
        source.notes += beside.notes
    return source


def _inside(folder: Path) -> Source | None:
    """All that the readers know below a folder, and one note for each thing they refuse."""
    whole = Source(str(folder), "")
    refused: list[DataError] = []
    seen: set[str] = set()
    for path in _candidates(folder, DEPTH, [ENTRIES]):
        try:
            source = _known(path)
        except DataError as error:
            refused.append(error)
            continue
        if source is not None:
            for held in ("runs", "notes", "derived", "facts", "tables"):
                getattr(whole, held).extend(getattr(source, held))
            seen.add(source.format)
    if not whole.runs:
        if refused:
            raise refused[0]
        return None
    whole.format = " + ".join(sorted(seen))
    whole.notes += [f"left out: {_line(error)}" for error in refused]
    return whole


def _candidates(folder: Path, depth: int, budget: list[int]) -> Iterator[Path]:
    """What lies in a folder, by name; a folder that no reader knows is entered in its place."""
    for path in sorted(folder.iterdir()):
        budget[0] -= 1
        if budget[0] < 0:
            raise DataError(f"{folder} and above: more than {ENTRIES:,} files; name a folder in it")
        if path.name.startswith((".", "__")) or path.is_symlink():
            continue
        folder_of_one = path.is_dir() and next(fitting(path), None) is not None
        if path.is_file() or folder_of_one:
            yield path
        elif path.is_dir() and depth:
            yield from _candidates(path, depth - 1, budget)
