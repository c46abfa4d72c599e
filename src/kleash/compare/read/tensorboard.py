"""Event files of TensorBoard: scalars, and the settings that were logged beside them.

A folder with event files is a run; several files in it are one run that was resumed, in the order
of their names (which begin with a time). Most writers keep scalars as 32-bit floats: 1.695 comes
back as 1.6950000524520874, and the series says so. Images, histograms and graphs are not read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from kleash.compare.read import Imported, Setting, Source, Where
from kleash.compare.read.gather import Points, parsed, settings
from kleash.compare.read.wire import (
    TornError,
    chosen,
    double,
    fields,
    repeated,
    signed,
    single,
    text,
    tf_records,
)
from kleash.errors import DataError

FLOAT, DOUBLE, STRING = 1, 2, 7
HELD: dict[int, Callable[[int | bytes], Any]] = {2: double, 3: text, 4: bool}  # by field, hparams


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
        every = list(fields(data))
        held = {kind: value for kind, _, value in every}
        time, step = double(held[1]) if 1 in held else 0.0, signed(held.get(2, 0))
        if math.isfinite(time) and time > 0:
            self.first = time if self.first is None else self.first
            self.last = time
        for summary in (value for kind, _, value in every if kind == 5):
            for value in repeated(summary, 1):
                self.value(value, step, time, Where(str(path), record, "record"))

    def value(self, data: bytes, step: int, time: float, where: Where) -> None:
        """One value: a scalar, settings, or something that is passed over."""
        found = {number: value for number, _, value in fields(data)}
        tag, line = text(found.get(1)), where.line or 0
        if 2 in found:
            self.narrow.add(tag)
            self.points.add(tag, step, single(found[2]), line, time=time)
        elif isinstance(tensor := found.get(8), bytes):
            kind, held = _tensor(tensor)
            if kind == STRING and tag == "args/text_summary":
                self.run.config |= _arguments(held, where)
            elif isinstance(held, float):
                if kind == FLOAT:
                    self.narrow.add(tag)
                self.points.add(tag, step, held, line, time=time)
        if tag == "_hparams_/session_start_info":
            self.run.config |= dict(_hparams(found.get(9), where))

    def finish(self, notes: list[str]) -> None:
        """Make the series."""
        self.run.series = self.points.series(float32=self.narrow, spot="record")
        if self.first is not None:
            self.run.seconds = self.last - self.first
        if self.long:
            notes.append(
                f"{self.run.where.file}: {self.long} records of more than 64 KiB passed over"
            )


def _tensor(data: bytes) -> tuple[int, float | str | None]:
    """Kind and content of a tensor that holds one number or text; None for any other."""
    found: dict[int, Any] = {number: value for number, _, value in fields(data)}
    kind = found.get(1, 0)
    if kind == STRING:
        return STRING, text(found.get(8))
    dims = [signed(chosen(dim, 1).get(1, 0)) for dim in repeated(found.get(2), 2)]
    content = found.get(4) or found.get(5 if kind == FLOAT else 6)
    if math.prod(dims) != 1 or not isinstance(content, bytes) or kind not in (FLOAT, DOUBLE):
        return kind, None
    return kind, single(content) if kind == FLOAT else double(content)


def _arguments(written: Any, where: Where) -> dict[str, Setting]:
    """The arguments that a Hugging Face trainer logs as text; nothing where they are not JSON."""
    try:
        values = parsed(str(written))
    except ValueError:
        return {}
    return settings(values, where) if isinstance(values, dict) else {}


def _hparams(metadata: int | bytes | None, where: Where) -> Iterator[tuple[str, Setting]]:
    """The settings that `add_hparams` keeps in the metadata of an empty summary."""
    for plugin in repeated(metadata, 1):
        for start in (start for data in repeated(plugin, 2) for start in repeated(data, 3)):
            for entry in repeated(start, 1):
                name = text(chosen(entry, 1).get(1))
                for kind, _, value in (one for held in repeated(entry, 2) for one in fields(held)):
                    if kind in HELD:
                        yield name, Setting(HELD[kind](value), where)
