"""Event files of TensorBoard: scalars, and the settings that were logged beside them.

A folder with event files is a run; several files in it are one run that was resumed, in the order
of their names (which begin with a time). Most writers keep scalars as 32-bit floats: 1.695 comes
back as 1.6950000524520874, and the series says so. Images, histograms and graphs are not read.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

from kleash.compare.read import Imported, Setting, Source, Where
from kleash.compare.read.gather import Points, moment, parsed, settings
from kleash.compare.read.wire import (
    TornError,
    chosen,
    double,
    fields,
    signed,
    single,
    text,
    tf_records,
)
from kleash.errors import DataError

FLOAT, DOUBLE, STRING = 1, 2, 7


def fits(path: Path) -> bool:
    """An event file, or a folder that holds some itself."""
    return "tfevents" in path.name if path.is_file() else bool(_events(path))


def read(path: Path) -> Source:
    """The run in the folder and those below it, or what one file says of a run."""
    source = Source(str(path), "tensorboard")
    if path.is_file():
        runs = {path.parent: [path]}
    else:
        runs = {path: _events(path)}
        for file in sorted(path.glob("*/**/*tfevents*")):
            folder = file.parent
            # `add_hparams` puts its settings into a folder of its own that is named by the time.
            owner = folder.parent if TIME.fullmatch(folder.name) else folder
            runs.setdefault(owner, []).append(file)
    for folder, files in runs.items():
        name = folder.resolve().name
        run = Imported(name, "", "tensorboard", Where(str(files[0] if files else folder)))
        reading = _Reading(run)
        for file in files:
            reading.file(file, source.notes)
        reading.finish(source.notes)
        source.runs.append(run)
    return source


TIME = re.compile(r"\d{9,}\.\d+")


def _events(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.glob("*tfevents*")) if path.is_file()]


class _Reading:
    """One run, file after file."""

    def __init__(self, run: Imported) -> None:
        self.run = run
        self.points = Points(run.where.file)
        self.narrow: set[str] = set()
        self.long = 0
        self.first: float | None = None
        self.last = 0.0

    def file(self, path: Path, notes: list[str]) -> None:
        """All events of a file."""
        self.points.enter(path)
        record = 0
        try:
            with path.open("rb") as handle:
                for record, data in tf_records(handle):
                    if data is None:
                        self.long += 1
                    else:
                        self.event(data, record, path)
        except TornError as error:
            notes.append(f"{path}: unfinished, read up to record {record} ({error})")
        except OSError as error:
            raise DataError(f"cannot read {path}: {error.strerror}") from None
        except ValueError as error:
            raise DataError(f"{path} cannot be read behind record {record}: {error}") from None

    def event(self, data: bytes, record: int, path: Path) -> None:
        """One event: a time, a step, and values under tags."""
        time, step, summaries = 0.0, 0, []
        for kind, _, value in fields(data):
            if kind == 1:
                time = double(value)
            elif kind == 2:
                step = signed(value)
            elif kind == 5 and isinstance(value, bytes):
                summaries.append(value)
        if math.isfinite(time) and time > 0:
            self.first = time if self.first is None else self.first
            self.last = time
        for summary in summaries:
            for kind, _, value in fields(summary):
                if kind == 1 and isinstance(value, bytes):
                    self.value(value, step, time, Where(str(path), record, "record"))

    def value(self, data: bytes, step: int, time: float, where: Where) -> None:
        """One value: a scalar, settings, or something that is passed over."""
        found = {number: (wire, value) for number, wire, value in fields(data)}
        tag = text(found.get(1, (2, b""))[1])
        line = where.line or 0
        if 2 in found:
            self.narrow.add(tag)
            self.points.add(tag, step, single(found[2][1]), line, time=time)
        elif 8 in found and isinstance(found[8][1], bytes):
            kind, held = _tensor(found[8][1])
            if kind == STRING and tag == "args/text_summary":
                self.run.config |= _arguments(held, where)
            elif isinstance(held, float):
                if kind == FLOAT:
                    self.narrow.add(tag)
                self.points.add(tag, step, held, line, time=time)
        if tag == "_hparams_/session_start_info" and isinstance(found.get(9, (0, 0))[1], bytes):
            self.run.config |= _hparams(found[9][1], where)  # type: ignore[arg-type]

    def finish(self, notes: list[str]) -> None:
        """Make the series."""
        self.run.series = self.points.series(float32=self.narrow, spot="record")
        if self.first is not None:
            self.run.seconds = self.last - self.first
            self.run.started = moment(self.first)
        if self.long:
            notes.append(
                f"{self.run.where.file}: {self.long} records of more than 64 KiB passed over"
            )


def _tensor(data: bytes) -> tuple[int, float | str | None]:
    """Kind and content of a tensor that holds one number or text; None for any other."""
    found: dict[int, Any] = {}
    dims = []
    for number, _, value in fields(data):
        if number == 2 and isinstance(value, bytes):
            for inner, _, dim in fields(value):
                if inner == 2 and isinstance(dim, bytes):
                    dims.append(signed(chosen(dim, 1).get(1, 0)))
        found[number] = value
    kind = found.get(1, 0)
    if kind == STRING:
        return STRING, text(found.get(8))
    if math.prod(dims) != 1:
        return kind, None
    content = found.get(4) or found.get(5 if kind == FLOAT else 6)
    if not isinstance(content, bytes) or kind not in (FLOAT, DOUBLE):
        return kind, None
    return kind, single(content) if kind == FLOAT else double(content)


def _arguments(written: Any, where: Where) -> dict[str, Setting]:
    """The arguments that a Hugging Face trainer logs as text; nothing where they are not JSON."""
    try:
        values = parsed(str(written))
    except ValueError:
        return {}
    return settings(values, where) if isinstance(values, dict) else {}


def _hparams(metadata: bytes, where: Where) -> dict[str, Setting]:
    """The settings that `add_hparams` keeps in the metadata of an empty summary."""
    made: dict[str, Setting] = {}
    plugin = chosen(metadata, 1).get(1)
    start = _within(_within(plugin, 2), 3)
    for number, _, entry in fields(start):
        if number != 1 or not isinstance(entry, bytes):
            continue
        pair = chosen(entry, 1, 2)
        for kind, _, value in fields(_within(entry, 2)):
            if kind == 2:
                made[text(pair.get(1))] = Setting(double(value), where)
            elif kind == 3:
                made[text(pair.get(1))] = Setting(text(value), where)
            elif kind == 4:
                made[text(pair.get(1))] = Setting(bool(value), where)
    return made


def _within(data: int | bytes | None, number: int) -> bytes:
    inner = chosen(data, number).get(number) if isinstance(data, bytes) else None
    return inner if isinstance(inner, bytes) else b""
