"""What lies in the served folder: studies, runs, plans. Nothing outside it is ever opened.

What was read is kept until the file has another size or time; whoever asks first pays for it.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from stat import S_ISREG
from typing import Any, NamedTuple, TypeVar

from kleash.algo.control import Leash, describe
from kleash.errors import DataError, KleashError
from kleash.runs.run import Run, holder, read_json
from kleash.study.plan import (
    BASELINE,
    Arm,
    Columns,
    StudyFile,
    arm_recipe,
    arms_of,
    columns,
    read_study,
)
from kleash.study.plan.cells import STATES, Cell
from kleash.study.plan.folder import job_of, placed

Value = TypeVar("Value")
DEEPEST, MOST_FOLDERS = 4, 20_000  # folders that are looked into for studies and runs
MOST_FILES = 200_000  # of one study, each of which is looked at before a verdict is worked out
LARGEST = 64 << 20  # bytes of a plan; one of a million cells has as many
LARGEST_LINE = 1 << 20
# What a file that is not what it should be makes readers raise.
TORN = (
    *(KleashError, OSError, ValueError, TypeError, KeyError, IndexError, AttributeError),
    *(RecursionError, AssertionError),
)
UNREAD = (KleashError, OSError)  # what the store itself raises
KINDS = (str, int, str, str, int, int, str)  # of a cell and its state
MARKS = {"done": "✓", "missing": "·", "running": "▶", "failed": "✗", "void": "∅"}
WORST = ("failed", "void", "running", "missing", "done")
EPOCH = b'"phase": "grpo"'  # as every run spells it
VALIDATED = ("validation/accuracy", "validation/reward")  # of the two families
TAGS = ("data", "env", "selector", "model")


class Nowhere(Exception):
    """An address of nothing that is here."""


@dataclass(frozen=True)
class Plan:
    """The cells of a study with their states, as its folder has them."""

    cells: list[tuple[Cell, str]]
    chosen: dict[str, str]
    failures: dict[str, str]
    who: str = ""
    """The process that runs the study, '' if none does."""

    @cached_property
    def counts(self) -> dict[str, int]:
        """How many cells are in each state."""
        found: dict[str, int] = {}
        for _, state in self.cells:
            found[state] = found.get(state, 0) + 1
        return found

    @cached_property
    def jobs(self) -> dict[tuple[str, int], list[int]]:
        """The places of the cells of each arm and seed."""
        found: dict[tuple[str, int], list[int]] = {}
        for place, (cell, _) in enumerate(self.cells):
            found.setdefault((cell.arm, cell.seed), []).append(place)
        return found

    @cached_property
    def todo(self) -> set[str]:
        """The jobs whose cells are not all there."""
        return {job_of(cell) for cell, state in self.cells if state not in ("done", "void")}

    @property
    def state(self) -> str:
        """Of the study as a whole."""
        return "running" if self.who else "unfinished" if self.todo or not self.cells else "done"

    def job_state(self, places: list[int]) -> tuple[str, int]:
        """The state of a run as a whole, and how many of its cells are done."""
        states = [self.cells[place][1] for place in places]
        return min(states, key=WORST.index), states.count("done")


class Facts(NamedTuple):
    """A run's leash in words, its tags, and its family."""

    leash: str
    tags: list[str]
    of_agents: bool


@dataclass(frozen=True)
class Study:
    """A study as it was asked for."""

    file: StudyFile
    arms: list[Arm]
    tags: list[str]
    """Its data or environment, and what it trains."""


class Store:
    """A folder of studies and runs, or one study."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        # By path and stamp: of what has changed the old value is not found any more.
        self._studies = lru_cache(256)(lambda path, stamps: read_asked(path))
        self._plans = lru_cache(256)(lambda path, stamp, who: read_plan(path, who))
        self._facts = lru_cache(4096)(lambda path, stamp: read_facts(path))
        self._validation = lru_cache(4096)(lambda path, stamp: read_validation(path))
        self._columns = lru_cache(48)(lambda path, stamp: read_columns(path.parent))

    def guard(self, folder: Path, depth: int = 2) -> Path:
        """The folder, if all in it so far down is a file or folder that lies in what is served."""
        level, count = [folder], 0
        if not folder.resolve().is_relative_to(self.folder):
            raise DataError(f"{folder.name} leads out of the folder that is served")
        for _ in range(depth + 1):
            deeper: list[Path] = []
            for entry in (each for above in level for each in entries(above)):
                count += 1
                if entry.is_symlink():
                    target = Path(entry.path).resolve()
                    if not target.is_relative_to(self.folder) or target.is_dir():
                        raise DataError(f"{entry.name} leads out of the folder that is served")
                elif entry.is_dir():
                    deeper.append(Path(entry.path))
                elif not entry.is_file() or count > MOST_FILES:
                    raise DataError(f"{entry.name} is no file, or one of too many")
            level = deeper
        return folder

    # studies and runs

    def find_study(self, name: str) -> Path:
        """The folder of a study."""
        near = [self.folder] if name == self.folder.name else []
        for path in (*near, self.folder / name):
            if within(name) and size(path / "study.toml") is not None:
                return self.guard(path)
        raise Nowhere

    def find_run(self, name: str) -> Path:
        """A run by its path below the folder."""
        if not within(name) or size(self.folder / name / "meta.json") is None:
            raise Nowhere
        return self.guard(self.folder / name, 1)

    def name(self, path: Path) -> str:
        """A study or run by its path below the folder."""
        return str(path).removeprefix(f"{self.folder}/") if path != self.folder else path.name

    def runs(self, study: Path) -> dict[str, Path]:
        """The runs of a study by their names, those of its starts too."""
        folders = inner(study)
        folders += [path for each in folders if each.name == "runs" for path in inner(each)]
        return {path.name: path for path in folders if size(path / "meta.json") is not None}

    def folders(self, study: Path, plan: Plan) -> dict[tuple[str, int], Path]:
        """By arm and seed, the run of a job that has begun; of baselines that of the start."""
        named: dict[str, list[Path]] = {}
        for name, path in self.runs(study).items():
            named.setdefault(re.sub("-[0-9a-f]{8}$", "", name), []).append(path)
        found: dict[tuple[str, int], Path] = {}
        for (arm, seed), places in plan.jobs.items():
            near = named.get(f"base-s{seed}" if arm.startswith(BASELINE) else f"{arm}-s{seed}", [])
            if near and plan.job_state(places) != ("missing", 0):
                # Of several the last is asked for now: a changed recipe begins a folder of its own.
                found[arm, seed] = max(near, key=lambda path: stamp(path / "meta.json")[1])
        return found

    def below(self) -> tuple[list[Path], list[Path]]:
        """The studies in the folder and in folders of it, and runs that are in none.

        No deeper than a few folders: it may be a home with everything in it.
        """
        studies: list[Path] = []
        runs: list[Path] = []
        level, seen = [self.folder], 0
        for _ in range(DEEPEST + 1):
            deeper: list[Path] = []
            for path in level:
                seen += 1
                if size(path / "study.toml") is not None:
                    studies.append(path)
                elif size(path / "meta.json") is not None:
                    runs.append(path)
                else:
                    deeper += inner(path)
            level = deeper if seen < MOST_FOLDERS else []
        return sorted(studies), sorted(runs)

    # what they hold

    def study(self, folder: Path) -> Study:
        """The study as asked, and its arms."""
        paths = [folder / name for name in ("study.toml", "calibration.json", "search.json")]
        stamps = tuple(stamp(each) for each in paths if each.exists())
        return reading(paths[0], self._studies, folder, stamps)

    def plan(self, study: Path) -> Plan:
        """Every cell with its state; nobody's `running` is missing."""
        path = study / "plan.json"
        if (length := size(path)) is None:
            return Plan([], {}, {})
        if length > LARGEST:
            raise DataError(f"{path} has {length:,} bytes, which no plan has")
        return reading(path, self._plans, path, stamp(path), who(study))

    def home(self, run: Path) -> Path | None:
        """The study that a run is of."""
        above = (run.parent, run.parent.parent)
        own = (each for each in above if each.is_relative_to(self.folder))
        return next((each for each in own if size(each / "study.toml") is not None), None)

    def facts(self, run: Path) -> Facts:
        """What lists say of a run."""
        path = run / "config.json"
        if size(path) is None:
            raise DataError(f"{path.name} is no file")
        return reading(path, self._facts, path, stamp(path))

    def validation(self, runs: Iterable[Path]) -> list[float]:
        """The validation score by epoch, the mean over runs; one that cannot be read is in none."""
        found: dict[int, list[float]] = {}
        for path in (run / "metrics.jsonl" for run in runs):
            if size(path) is not None:
                for epoch, value in self._validation(path, stamp(path)).items():
                    found.setdefault(epoch, []).append(value)
        return [sum(found[epoch]) / len(found[epoch]) for epoch in sorted(found)]

    def columns(self, run: Path) -> Columns:
        """All scores of a run."""
        path = run / "scores.jsonl"
        return {} if size(path) is None else reading(path, self._columns, path, stamp(path))


def within(name: str) -> bool:
    """Whether a path leads down, and to nothing hidden."""
    return all(part and not part.startswith(".") for part in name.split("/"))


def entries(folder: Path) -> list[os.DirEntry[str]]:
    """What is in a folder; nothing of one that may not be looked into."""
    try:
        return list(os.scandir(folder))
    except (PermissionError, FileNotFoundError, NotADirectoryError):
        return []


def inner(folder: Path) -> list[Path]:
    """The folders in one; no links, and none whose name could be in no address."""
    names = [each.name for each in entries(folder) if each.is_dir(follow_symlinks=False)]
    return [folder / n for n in sorted(names) if not n.startswith(".") and n.isprintable()]


def size(path: Path | str) -> int | None:
    """The bytes of a file, None where there is none; a link, a pipe or a device is none."""
    try:
        seen = os.lstat(path)
    except (OSError, ValueError):
        return None
    return seen.st_size if S_ISREG(seen.st_mode) else None


def stamp(path: Path) -> tuple[int, int, int]:
    """What changes when a file or folder does."""
    seen = path.stat()
    return seen.st_size, seen.st_mtime_ns, seen.st_ino


def who(folder: Path) -> str:
    """The process that works on a study or a run, '' if none does."""
    try:
        # Asking takes the lock for a moment, which a driver that starts just then would find
        # taken; but a lock that was given back is empty, and need not be asked about.
        return holder(folder)[:100] if size(folder / "lock") else ""
    except (OSError, ValueError):
        return ""


def lines_about(path: Path, item: str) -> Iterator[dict[str, Any]]:
    """The lines of a file about an item, found without parsing the others."""
    if size(path) is None:
        return
    needle = b'"item": ' + json.dumps(item, ensure_ascii=False).encode("utf-8", "replace")
    with path.open("rb") as handle:
        for line in handle:
            if needle in line and len(line) <= LARGEST_LINE:
                try:
                    record = json.loads(line)
                except (ValueError, RecursionError):
                    continue
                if isinstance(record, dict) and record.get("item") == item:
                    yield record


def reading(path: Path, read: Callable[..., Value], *given: Any) -> Value:
    """Whatever a torn or foreign file makes a reader raise becomes one line about it."""
    try:
        return read(*given)
    except KleashError:
        raise
    except TORN as error:
        raise DataError(f"{path.name} cannot be read: {type(error).__name__}: {error}") from None


def read_asked(folder: Path) -> Study:
    """The file of a study, its arms with those that tuning found, its tags."""
    file = read_study(str(folder / "study.toml"))
    arms = arms_of(file, placed(folder))
    config = arm_recipe(file, arms[0], file.seeds[0], "BASE").resolved() if arms else {}
    return Study(file, arms, tags_of(config))


def read_facts(config: Path) -> Facts:
    """Of a run's config."""
    known = read_json(config)
    leash = describe(Leash.model_validate(known["leash"])) if "leash" in known else ""
    return Facts(leash, tags_of(known), "env" in known)


def read_validation(metrics: Path) -> dict[int, float]:
    """The accuracy or reward after each epoch of GRPO; a step's line is not parsed."""
    found: dict[int, float] = {}
    with metrics.open("rb") as handle:
        for line in handle:
            if EPOCH not in line or len(line) > LARGEST_LINE:
                continue
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if not isinstance(record, dict) or type(epoch := record.get("epoch")) is not int:
                continue
            for value in map(record.get, VALIDATED):
                if isinstance(value, int | float) and math.isfinite(value):
                    found[int(epoch)] = float(value)
    return found


def tags_of(config: dict[str, Any]) -> list[str]:
    """What runs are looked for by: their data or environment, and what is trained."""
    return [str(config[key])[:80] for key in TAGS if config.get(key)]


def read_columns(run: Path) -> Columns:
    """The scores of a run, every one of them a number or nothing."""
    found = columns(Run.open(run))
    for column in found.values():
        if not all(type(item) is str for item in column.items):
            raise DataError(f"{run.name} has scores of an item that is no text")
        if not all(score is None or type(score) in (int, float) for score in column.scores):
            raise DataError(f"{run.name} has a score that is no number")
    return found


def read_plan(path: Path, who: str) -> Plan:
    """A plan, every row of it checked: it may come from anywhere."""
    plan = read_json(path)
    cells = []
    for row in plan["cells"]:
        if tuple(map(type, row)) != KINDS or row[-1] not in STATES:
            raise DataError(f"{path} is no plan: it has a cell {row!s:.80}")
        *place, state = row
        state = "missing" if state == "running" and not who else state
        cells.append((Cell._make(place), state))
    chosen, failures = (
        {str(k): str(v) for k, v in plan[key].items()} for key in ("chosen", "failures")
    )
    return Plan(cells, chosen, failures, who)
