"""Logs that grow: what is new in them since the last look, and nothing is ever written to them.

Lines (our runs, verl's JSON lines and console) are read on from where the last whole one ended;
whatever else `read` reads is read anew when it has changed, the longer it takes the more seldom.
A torn end is waited for, a line that cannot be read is counted and passed over, and a file that got
shorter is begun again: the run was rewound.
"""

from __future__ import annotations

import json
import math
import time
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from kleash.compare.read import read
from kleash.compare.read.gather import number
from kleash.compare.read.run_names import whole_name
from kleash.compare.read.verl import NOISE, STEP, console_values
from kleash.errors import DataError

AT_ONCE = 2**24  # bytes of a log read in one look
OFTEN = 20  # times as long as reading took, before a whole file is read again
FILES = 5_000  # below a folder that are looked at for changes


@dataclass
class Points:
    """One quantity as it was logged, growing; a step that comes again replaces what followed."""

    axis: str = "step"
    steps: list[float] = field(default_factory=list)
    values: list[float] = field(default_factory=list)

    def add(self, step: float, value: float) -> None:
        """One more point, or the same steps again after a resumed run fell back."""
        if self.steps and step <= self.steps[-1]:
            first = bisect_left(self.steps, step)
            del self.steps[first:], self.values[first:]
        self.steps.append(step)
        self.values.append(value)


@dataclass
class Told:
    """What a log has told of one run so far, under the names it uses."""

    name: str
    format: str
    path: Path
    points: dict[str, Points] = field(default_factory=dict)
    findings: dict[str, str] = field(default_factory=dict)
    """Code and message of what the run itself has found."""
    finished: bool | None = None
    unread: int = 0
    """Lines that could not be read."""
    own: str = ""
    """What it calls itself, where it is shown by another name."""

    def __post_init__(self) -> None:
        """Until others are called so, too, it is shown by its own name."""
        self.own = self.own or self.name

    def add(self, name: str, step: float, value: float, axis: str = "step") -> None:
        """One number."""
        if name not in self.points:
            self.points[name] = Points(axis)
        self.points[name].add(step, value)

    @property
    def count(self) -> int:
        """All points there are."""
        return sum(len(points.steps) for points in self.points.values())

    @property
    def step(self) -> float | None:
        """The last step of any quantity."""
        ends = [points.steps[-1] for points in self.points.values() if points.axis == "step"]
        return max(ends, default=None)


class Follower(Protocol):
    """Whoever follows a log."""

    def poll(self) -> bool:
        """Take in what is new; whether there was anything."""

    @property
    def runs(self) -> list[Told]:
        """What was told so far."""


# --- lines ---------------------------------------------------------------------------------------

Take = Callable[[Told, bytes], None]


class Lines:
    """A text file that gets longer, line by line."""

    def __init__(self, path: Path, name: str, form: str, take: Take) -> None:
        self.path, self.name, self.form, self.take = path, name, form, take
        self.begin()

    def begin(self) -> None:
        """At the first byte, knowing nothing."""
        self.at = 0
        self.told = Told(self.name, self.form, self.path)

    @property
    def runs(self) -> list[Told]:
        """The one run."""
        return [self.told]

    def poll(self) -> bool:
        """Every whole line since the last look."""
        try:
            with self.path.open("rb") as handle:
                size = handle.seek(0, 2)
                if size < self.at:
                    self.begin()
                handle.seek(self.at)
                chunk = handle.read(AT_ONCE)
        except OSError:  # being moved or made anew: the next look will see
            return False
        whole = chunk[: chunk.rfind(b"\n") + 1]
        self.at += len(whole)
        for line in whole.splitlines():
            try:
                self.take(self.told, line)
            except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
                self.told.unread += 1
        return bool(whole)


def take_own(told: Told, line: bytes) -> None:
    """A line of one of our runs: a step, an epoch or a finding."""
    record = json.loads(line)
    kind, phase = record.get("kind", "step"), record.get("phase", "grpo")
    if kind == "finding":
        told.findings.setdefault(str(record["code"]), str(record["message"]))
    elif phase == "grpo":
        _numbers(told, record, float(record[kind]), "epoch" if kind == "epoch" else "step")


def take_verl(told: Told, line: bytes) -> None:
    """A line of verl's JSON lines."""
    record = json.loads(line)
    _numbers(told, record["data"], float(record["step"]))


def _numbers(told: Told, row: Mapping[str, Any], step: float, axis: str = "step") -> None:
    for name, value in row.items():
        taken = number(value)
        if taken is not None and name not in ("step", "epoch"):
            told.add(name, step, taken, axis)


def take_console(told: Told, line: bytes) -> None:
    """A line of verl's console, if it is one about a step."""
    if b"step:" not in line:
        return
    written = NOISE.sub("", line.decode("utf-8", "replace"))
    match = STEP.search(written)
    if match is not None:
        for name, (value, _) in console_values(written[match.end() :]):
            told.add(name, float(match[1]), value)


# --- anything else that can be read --------------------------------------------------------------


class Whole:
    """A file or folder of any format that `read` knows, read anew when it has changed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.known: list[Told] = []
        self.state: object = None
        self.took = self.read_at = -math.inf

    @property
    def runs(self) -> list[Told]:
        """Those of the last reading."""
        return self.known

    def poll(self) -> bool:
        """Read it, if it has changed and the last reading is long enough ago."""
        now = time.monotonic()
        if now - self.read_at < OFTEN * self.took:
            return False
        state = self.changed()
        if state == self.state:
            return False
        try:
            source = read(self.path)
        except DataError:  # half-written, or not there yet
            return False
        finally:
            self.state, self.read_at = state, now
            self.took = time.monotonic() - now
        self.known = []
        for run in source.runs:
            name = whole_name(run.name, run.where.file)
            told = Told(name, run.format, self.path, finished=run.finished)
            for series in run.series:
                for step, value in zip(series.steps.tolist(), series.values.tolist(), strict=True):
                    told.add(series.metric, step, value, series.axis)
            self.known.append(told)
        return True

    def changed(self) -> object:
        """Sizes and times of the files, to see whether any changed."""
        files = [self.path] if self.path.is_file() else sorted(self.path.rglob("*"))[:FILES]
        found = []
        for file in files:
            try:
                seen = file.stat()
            except OSError:
                continue
            found.append((str(file), seen.st_size, seen.st_mtime_ns))
        return found
