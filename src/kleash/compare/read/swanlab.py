"""Runs of SwanLab as its client leaves them: `run-<id>.swanlab`, before 0.8 `backup.swanlab`.

Both are framed as W&B's log is; the records are protobuf now and were JSON then. The config lies
beside the log in `files/config.yaml`. Media, hardware and console are passed over, and so are the
`logs/` of mode `local`, which repeat the record. The client does not flush: what a running job
has logged may stand in the file only later.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from kleash.compare.read import Source, Where, wire
from kleash.compare.read.gather import head, number, parsed, read_yaml, settings
from kleash.compare.read.wire import chosen, double, read_log, signed, text

MAGIC = b":SWL\xd6\xe1"
JSON, PROTOBUF = b"\1", b"\2"  # versions of the file
START, FINISH, SCALAR = 10, 11, 13
FINISHED = 1
HARDWARE = "__swanlab__"  # how its names begin


def fits(path: Path) -> bool:
    """A `.swanlab` log, the folder of one run, or `swanlog` with several."""
    if path.is_file():
        return head(path, 6) == MAGIC
    return bool(logs(path))


def logs(folder: Path) -> list[Path]:
    """The logs in a run's folder, or of all runs in the folder above."""
    found = [*folder.glob("*.swanlab"), *folder.glob("run-*/*.swanlab")]
    return sorted(path for path in found if head(path, 6) == MAGIC)


def read(path: Path) -> Source:
    """Every run that is there."""
    source = Source(str(path), "swanlab")
    for log in [path] if path.is_file() else logs(path):
        source.runs.append(read_log(Log, log, source.notes))
    return source


class Log(wire.Log):
    """A log of SwanLab."""

    form, mark, versions = "swanlab", MAGIC, (JSON, PROTOBUF)

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        if path.name == "backup.swanlab":
            self.run.name = path.parent.name.removeprefix("run-")
        file = path.parent / "files/config.yaml"
        values = read_yaml(file)[0] if file.is_file() else None
        if isinstance(values, dict):
            every = (
                (n, v["value"] if isinstance(v, dict) and "value" in v else v)
                for n, v in values.items()
            )
            self.run.config = settings(dict(every), Where(str(file)))

    def take(self, record: int, data: bytes) -> None:
        """One record."""
        take = self.take_json if self.version == JSON else self.take_protobuf
        take(record, data)

    def take_protobuf(self, record: int, data: bytes) -> None:
        """One record since 0.8."""
        found = chosen(data, START, FINISH, SCALAR)
        if isinstance(body := found.get(SCALAR), bytes):
            self.scalar(record, body)
        elif isinstance(body := found.get(START), bytes):
            named = chosen(body, 4, 7, 10)
            self.describe(text(named.get(4)) or text(named.get(10)), text(named.get(7)))
        elif isinstance(body := found.get(FINISH), bytes):
            self.run.finished = chosen(body, 1).get(1) == FINISHED

    def scalar(self, record: int, body: bytes) -> None:
        """One number; a value of 0 is not written, as protobuf has it."""
        held = chosen(body, 1, 2, 4, 5)
        value = held.get(5)
        if not isinstance(value, bytes):
            raise ValueError("a point without a value")
        taken = chosen(value, 1).get(1)
        step = signed(held.get(2, 0))
        self.add(text(held.get(1)), step, 0.0 if taken is None else double(taken), record)

    def take_json(self, record: int, data: bytes) -> None:
        """One record before 0.8."""
        row = parsed(data)
        kind = row.get("model_type") if isinstance(row, dict) else None
        held = row.get("data") if kind else None
        if not isinstance(held, dict):
            raise ValueError("a record that says not what it is")
        if kind == "Scalar":
            metric = held.get("metric")
            value = _old_number(metric.get("data")) if isinstance(metric, dict) else None
            step = number(held.get("step"))
            if value is not None and step is not None:
                self.add(str(held.get("key")), step, value, record)
        elif kind == "Experiment":
            self.describe(str(held.get("name") or held.get("id") or ""), "")
        elif kind == "Footer":
            self.run.finished = held.get("success") is True

    def describe(self, name: str, group: str) -> None:
        """What the run is called."""
        self.run.name, self.run.arm = name or self.run.name, group

    def add(self, name: str, step: float, value: float, record: int) -> None:
        """A point, unless it is about the machine."""
        if not name.startswith(HARDWARE):
            self.points.add(name, step, value, record)


def _old_number(written: Any) -> float | None:
    """A number as JSON had it: "INF" stood for both infinities, whose sign is lost."""
    return math.inf if written == "INF" else number(written)
