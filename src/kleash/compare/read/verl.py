"""Runs of verl: its JSON lines, its console log, its dumps of generations; a folder is one source.

A resumed run overwrites its JSON lines, so steps that only the console still has are kept, with
the decimals it printed. Dumps are the source for paired tests: an item is known by its input, and
tries of one item count in their order.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import inf
from pathlib import Path

import numpy as np

from kleash.compare.read import Imported, Scores, Series, Setting, Source, Where
from kleash.compare.read.gather import (
    Items,
    Points,
    below,
    first_object,
    item_id,
    json_lines,
    number,
    printed,
    raw_lines,
    score,
    settings,
    some_points,
    yaml_settings,
)
from kleash.errors import DataError

NOISE = re.compile(r"\x1b\[[0-9;]*m|^\s*\((?:\w+ )*pid=[^)]*\)\s?")
STEP = re.compile(r"(?:^|\s)step:(-?\d{1,15}) - (?=\S+?:)")
WRAPPED = re.compile(r"(?:np\.)?(?:float|int)\d+\((.*)\)$|tensor\(([^,)]*).*\)$")
LOGS = {".log", ".out", ".txt", ".err"}
DUMP = re.compile(r"\d{1,12}\.jsonl")
PART = re.compile(r"[-_. ]?[a-z]*[-_. ]?\d+$", re.I)  # of a name: which part of a run it is
CONFIG = 2**20
BELOW = 3  # folders that a run's own folder may hold its parts in


def fits(path: Path) -> bool:
    """One of verl's files, or a folder that holds some."""
    if path.is_file():
        return kind(path) is not None
    kinds = {kind(file) for file in path.iterdir() if file.is_file()}
    if kinds - {None}:
        return True
    below = {kind(file) for file in path.glob("*/*") if file.is_file()} - {None}
    return "dump" in below and bool(below & {"rows", "console"})


def kind(path: Path) -> str | None:
    """What a file is, by its name and its beginning."""
    if path.suffix == ".jsonl":
        first = first_object(path)
        if first is None:
            return None
        if DUMP.fullmatch(path.name) and {"input", "output", "score"} <= first.keys():
            return "dump"
        return "rows" if isinstance(first.get("data"), dict) and "step" in first else None
    if path.suffix in LOGS and STEP.search(NOISE.sub("", _ends(path))):
        return "console"
    return None


def _ends(path: Path) -> str:
    """The first and last part of a log, to see what it is: it may begin with pages of settings."""
    with path.open("rb") as handle:
        start = handle.read(2**18)
        handle.seek(max(len(start), path.stat().st_size - 2**16))
        lines = (start + handle.read()).decode("utf-8", "replace").split("\n")
    return "\n".join(NOISE.sub("", line) for line in lines)


def read(path: Path) -> Source:
    """Everything that is there, put together run by run."""
    source = Source(str(path), "verl")
    whole = _Whole(path)
    parts: dict[str, list[Path]] = {"rows": [], "console": [], "dump": [], "config": []}
    for file in [path] if path.is_file() else below(path, BELOW):
        what = "config" if file.match(".hydra/config.yaml") else kind(file)
        if what:
            parts[what].append(file)
    for file in parts["rows"]:
        run = whole.add(file, file.stem)
        run.series = _rows(file, source.notes)
    consoles = list(_resumed(parts["console"], source.notes))
    for files in consoles:
        first, one = files[0][0], len(consoles) == 1
        name = first.stem if len(files) == 1 else PART.sub("", first.stem) or first.parent.name
        run = whole.owner(first, sole=one) or whole.add(first, "" if one else name)
        for file, until in files:
            _add_console(run, file, source.notes, until)
    groups: dict[Path, list[Path]] = {}
    for file in parts["dump"]:
        groups.setdefault(file.parent, []).append(file)
    for place, dumps in groups.items():
        run = whole.owner(place) or whole.add(place, "" if len(groups) == 1 else place.name)
        for file in sorted(dumps, key=lambda dump: int(dump.stem)):
            run.scores += read_dump(file, source.notes)
    for file in parts["config"]:
        whole.configure(file, source.notes)
    source.runs = whole.runs
    return source


class _Whole:
    """The runs of a source, and which of them a part belongs to."""

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()
        self.runs: list[Imported] = []

    def add(self, place: Path, name: str) -> Imported:
        """A new run; without a name of its own it has the name of what was pointed at."""
        named = name or (self.path.stem if self.path.is_file() else self.path.name)
        self.runs.append(Imported(named, "", "verl", Where(str(place))))
        return self.runs[-1]

    def owner(self, place: Path, *, sole: bool = True) -> Imported | None:
        """The run whose name is in a path, the longest name first; or the only one there is."""
        inner = [run for run in self.runs if run.name in {*place.parts, place.stem}]
        if inner:
            return max(inner, key=lambda run: len(run.name))
        return self.runs[0] if sole and len(self.runs) == 1 else None

    def configure(self, file: Path, notes: list[str]) -> None:
        """Hydra's record of the settings, for the run it lies beside."""
        run = self.owner(file)
        try:
            made = yaml_settings(file)
        except DataError as error:
            notes.append(f"not read: {error}")
            return
        if run is None:
            notes.append(f"{file}: no saying which run's settings these are")
        else:
            run.config = made | run.config


# --- JSON lines --------------------------------------------------------------------------------


def _rows(path: Path, notes: list[str]) -> list[Series]:
    points = Points(path)
    for line, row in json_lines(path, notes):
        step = number(row.get("step")) if isinstance(row, dict) else None
        if step is None or not isinstance(row.get("data"), dict):
            raise DataError(f"{path} line {line} is not {{step, data}}")
        points.add_row(row["data"], step, line)
    return points.series()


# --- console -----------------------------------------------------------------------------------


def read_console(path: Path, notes: list[str]) -> list[Series]:
    """The series that were printed as `step:5 - actor/kl_loss:0.003 - …`."""
    points = Points(path)
    for line, step, written in _steps(path, notes):
        for name, (value, decimals) in console_values(written):
            points.add(name, step, value, line, decimals=decimals)
    return points.series()


def console_values(written: str) -> Iterator[tuple[str, tuple[float, int | None]]]:
    """The numbers of `actor/kl_loss:0.003 - …` with their names and decimals."""
    for part in written.split(" - "):
        name, colon, text = part.rpartition(":")
        wrapped = WRAPPED.match(text)
        inner = next(filter(None, wrapped.groups()), "") if wrapped else text
        found = printed(inner.strip()) if colon else None
        if found is not None:
            yield name.strip(), found


def _steps(path: Path, notes: list[str]) -> Iterator[tuple[int, float, str]]:
    for line, raw in raw_lines(path):
        if b"step:" not in raw:
            continue
        written = NOISE.sub("", raw.decode("utf-8", "replace")).rstrip("\r\n")
        match = STEP.search(written)
        if match is None:
            continue
        if not raw.endswith(b"\n"):
            notes.append(f"{path} line {line} was cut off: left out")
            return
        yield line, float(match[1]), written[match.end() :]


def _resumed(files: Sequence[Path], notes: list[str]) -> Iterator[list[tuple[Path, float]]]:
    """The consoles of each run, and before which step each of them counts.

    A run that was stopped and resumed has a console for each part, which are called alike but for a
    number at the end. A part begins within the one before it, or right behind it; what that one had
    from there on was thrown away.
    """
    groups: dict[tuple[Path, str], list[Path]] = {}
    for file in files:
        groups.setdefault((file.parent, PART.sub("#", file.stem)), []).append(file)
    for same in groups.values():
        spans = [(file, *_span(file)) for file in same] if len(same) > 1 else []
        spans.sort(key=lambda one: one[1])
        pairs = list(pairwise(spans))
        if pairs and all(a[1] < b[1] <= a[2] + 1 and a[2] < b[2] for a, b in pairs):
            until = [*(one[1] for one in spans[1:]), inf]
            names = ", ".join(file.name for file, *_ in spans)
            notes.append(f"{same[0].parent}: {names} are taken for one run that was resumed")
            yield [(file, end) for (file, *_), end in zip(spans, until, strict=True)]
        else:
            yield from ([(file, inf)] for file in same)


def _span(path: Path) -> tuple[float, float]:
    """The first and the last step of a console."""
    steps = [step for _, step, _ in _steps(path, [])]
    return (min(steps), max(steps)) if steps else (inf, inf)


def _add_console(run: Imported, path: Path, notes: list[str], until: float = inf) -> None:
    """What the console knows and the run does not: its settings, and steps that are lost."""
    known = {series.metric: set(series.steps.tolist()) for series in run.series}
    lost = 0
    for series in read_console(path, notes):
        had = known.get(series.metric, set())
        new = [at for at, step in enumerate(series.steps) if step not in had and step < until]
        lost += len(new) if series.metric in known else 0
        if new:  # whole curves keep the steps that they share
            whole = len(new) == len(series.steps)
            run.series.append(series if whole else some_points(series, np.array(new)))
    if lost and run.where.file.endswith(".jsonl"):
        notes.append(f"{path}: {lost} points that the JSON lines of {run.name} no longer have")
    for name, setting in _printed_config(path, notes).items():
        run.config.setdefault(name, setting)


def _printed_config(path: Path, notes: list[str]) -> dict[str, Setting]:
    """The settings that verl prints as a Python mapping before it begins."""
    lines: list[str] = []
    begun = size = depth = 0
    for line, raw in raw_lines(path):
        size += len(raw)
        written = NOISE.sub("", raw.decode("utf-8", "replace")).rstrip()
        begun = begun or line * written.startswith("{'")
        if size > CONFIG * (2 if begun else 1):
            break
        if begun:
            lines.append(written)
            depth += written.count("{") - written.count("}")
            if written.endswith("}") and not depth:
                break
    if not lines:
        return {}
    try:
        values = ast.literal_eval("\n".join(lines))
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        notes.append(f"{path} line {begun}: settings were printed here but cannot be read")
        return {}
    return settings(values, Where(str(path), begun)) if isinstance(values, dict) else {}


# --- dumps -------------------------------------------------------------------------------------


def read_dump(path: Path, notes: list[str]) -> list[Scores]:
    """The scores in `<step>.jsonl`, and every other column of numbers."""
    items = Items()
    for line, row in json_lines(path, notes):
        if not isinstance(row, dict) or not isinstance(row.get("input"), str):
            raise DataError(f"{path} line {line} has no `input`: it is not a dump of generations")
        found: dict[str, float | None] = {"score": None}
        for name, value in row.items():
            if name != "step" and (taken := score(value)) is not None:
                found[name] = taken
        items.add(item_id(row["input"]), line, found)
    split = "train" if re.search("rollout|train", path.parent.name) else "validation"
    step = float(path.stem) if path.stem.isdigit() else None
    return items.scores(path, step=step, split=split)
