"""What lies in the served folder: studies, runs, plans. Nothing outside it is ever opened.

What was read is kept until the file has another size or time; whoever asks first pays for it.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from glob import escape
from pathlib import Path
from stat import S_ISDIR, S_ISLNK, S_ISREG
from threading import RLock
from typing import Any, TypeVar
from zlib import crc32

from kleash.control import Leash, describe
from kleash.errors import DataError, KleashError
from kleash.plan import (
    Arm,
    Columns,
    StudyFile,
    arms_of,
    base_name,
    columns,
    own_selector,
    read_study,
    run_place,
)
from kleash.plan.cells import STATES, Cell
from kleash.plan.folder import job_of, placed
from kleash.runs import FACTS, Run, holder, read_json

Value = TypeVar("Value")
Stamp = tuple[int, int, int]
DEEPEST, MOST_FOLDERS = 4, 20_000  # folders that are looked into for studies and runs
LARGEST = 64 << 20  # bytes of a plan; one of a million cells has as many
# What a file that is not what it should be makes readers raise.
TORN = (
    *(KleashError, OSError, ValueError, TypeError, KeyError, IndexError, AttributeError),
    *(RecursionError, AssertionError),
)
KINDS = (str, int, str, str, int, int, str)  # of a cell and its state
UNREAD = (KleashError, OSError)  # what the shelf itself raises
WORST = ("failed", "void", "running", "missing", "done")


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Whatever a torn or foreign file makes readers raise becomes one line about it."""
    try:
        yield
    except KleashError:
        raise
    except TORN as error:
        raise DataError(f"{path.name} cannot be read: {type(error).__name__}: {error}") from None


class Nowhere(Exception):
    """An address of nothing that is here."""


@dataclass(frozen=True)
class Plan:
    """The cells of a study with their states, as its folder has them."""

    cells: list[tuple[Cell, str]]
    chosen: dict[str, str]
    failures: dict[str, str]
    who: str
    """The process that runs the study, '' if none does."""
    stamp: str

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
    def layout(self) -> str:
        """Another one where other cells are planned: places mean something else then."""
        return f"{crc32(repr([cell for cell, _ in self.cells]).encode('utf-8', 'replace')):08x}"

    @cached_property
    def todo(self) -> set[str]:
        """The jobs whose cells are not all there."""
        return {job_of(cell) for cell, state in self.cells if state not in ("done", "void")}

    @cached_property
    def at_work(self) -> int:
        """How many jobs are running."""
        return len({job_of(cell) for cell, state in self.cells if state == "running"})

    def job_state(self, places: list[int]) -> tuple[str, int]:
        """The state of a run as a whole, and how many of its cells are done."""
        states = [self.cells[place][1] for place in places]
        return min(states, key=WORST.index), states.count("done")


class Kept:
    """Values by name and stamp; the oldest go when there are too many."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.values: OrderedDict[Hashable, tuple[Any, Any]] = OrderedDict()
        self.lock = RLock()  # pages are made in threads

    def get(self, name: Hashable, stamp: Any, make: Callable[[], Value]) -> Value:
        """What was made under this name at this stamp, or is made now."""
        with self.lock:
            found = self.values.get(name)
            if found is None or found[0] != stamp:
                found = (stamp, make())
                self.values[name] = found
            self.values.move_to_end(name)
            while len(self.values) > self.most:
                self.values.popitem(last=False)
        value: Value = found[1]
        return value


@dataclass
class Shelf:
    """A folder of studies and runs, or one study."""

    folder: Path
    plans: Kept = field(default_factory=lambda: Kept(256))
    files: Kept = field(default_factory=lambda: Kept(256))
    facts: Kept = field(default_factory=lambda: Kept(4096))
    scored: Kept = field(default_factory=lambda: Kept(48))

    def __post_init__(self) -> None:
        self.folder = self.folder.resolve()

    def inside(self, path: Path) -> Path:
        """The path, if it and all it leads through lie in the folder."""
        if not self.without_links(str(path)) and not path.resolve().is_relative_to(self.folder):
            raise DataError(f"{path.name} leads out of the folder that is served")
        return path

    def without_links(self, path: str) -> bool:
        """Whether a path goes down from the folder through no link: a cheap look, for lists."""
        root = str(self.folder)
        parts = path.removeprefix(root + "/").split("/")
        if not path.startswith(root + "/") or ".." in parts:
            return False
        try:
            for part in parts:
                root = f"{root}/{part}"
                if S_ISLNK(os.lstat(root).st_mode):
                    return False
        except FileNotFoundError:
            return True  # nothing is there, so nothing is a link
        except (OSError, ValueError):
            return False
        return True

    def stamp(self, path: Path) -> Stamp:
        """What changes when a file or folder does; a pipe or a device is never opened."""
        seen = self.inside(path).stat()
        if not (S_ISREG(seen.st_mode) or S_ISDIR(seen.st_mode)):
            raise DataError(f"{path.name} is no file")
        return seen.st_size, seen.st_mtime_ns, seen.st_ino

    # studies and runs

    def study(self, name: str) -> Path:
        """The folder of a study."""
        found = self.folder if name == self.folder.name else self.folder / name
        if any(not part or part.startswith(".") for part in name.split("/")):
            raise Nowhere
        if not (found / "study.toml").exists():
            found = self.folder / name
        if not (found / "study.toml").exists():
            raise Nowhere
        return self.inside(found)

    def runs(self, under: Path) -> list[Path]:
        """The folders of runs in a folder."""
        if not under.is_dir():
            return []
        self.inside(under)
        return self._folders(under, "meta.json")

    def _folders(self, under: Path, holding: str = "") -> list[Path]:
        """The folders in one, those that hold a file of this name if one is given; no links."""
        try:
            entries = list(os.scandir(under))
        except PermissionError:
            return []
        names = [
            entry.name
            for entry in entries
            if entry.is_dir(follow_symlinks=False) and not entry.name.startswith(".")
        ]
        told = [name for name in names if name.isprintable()]  # others have no address
        held = (n for n in told if not holding or size(f"{under}/{n}/{holding}") is not None)
        return [under / n for n in sorted(held)]

    def below(self) -> tuple[dict[str, Path], list[Path]]:
        """The studies in the folder and in folders of it by their path, and runs that are in none.

        No deeper than a few folders: it may be a home with everything in it.
        """
        if size(f"{self.folder}/study.toml") is not None:
            return {self.folder.name: self.folder}, self.runs(self.folder)
        studies: dict[str, Path] = {}
        runs: list[Path] = []
        level, seen = [self.folder], 0
        for _ in range(DEEPEST):
            deeper: list[Path] = []
            for above in level:
                for path in self._folders(above):
                    seen += 1
                    if size(f"{path}/study.toml") is not None:
                        studies[path.relative_to(self.folder).as_posix()] = path
                    elif size(f"{path}/meta.json") is not None:
                        runs.append(path)
                    else:
                        deeper.append(path)
            level = deeper if seen < MOST_FOLDERS else []
        return dict(sorted(studies.items())), sorted(runs)

    def named_run(self, name: str) -> Path:
        """A run by its path below the folder."""
        path = self.folder / name
        parts = Path(name).parts
        if not parts or ".." in parts or Path(name).is_absolute() or not path.is_dir():
            raise Nowhere
        for fact in FACTS:
            self.inside(path / fact)
        return path

    def leash(self, path: Path) -> str:
        """The leash of a run in words, for a list of many."""
        config = path / "config.json"

        def read() -> str:
            return describe(Leash.model_validate(read_json(config)["leash"]))

        with reading(config):
            return self.facts.get(config, self.stamp(config), read)

    # what a study holds

    def file(self, study: Path) -> tuple[StudyFile, list[Arm]]:
        """The study as asked, and its arms."""
        path = self.inside(study / "study.toml")
        tuned = [self.inside(study / f"{name}.json") for name in ("calibration", "search")]
        stamps = [self.stamp(each) for each in (path, *tuned) if each.exists()]

        def read() -> tuple[StudyFile, list[Arm]]:
            file = read_study(str(path.parent))
            return file, arms_of(file, placed(study))

        with reading(path):
            return self.files.get(study, stamps, read)

    def plan(self, study: Path) -> Plan:
        """Every cell with its state; nobody's `running` is missing."""
        path = self.inside(study / "plan.json")
        if not path.is_file():
            return Plan([], {}, {}, "", "none")
        stamp = self.stamp(path)
        if stamp[0] > LARGEST:
            raise DataError(f"{path} has {stamp[0]:,} bytes, which no plan has")
        who = self.who(study)
        return self.plans.get(study, (stamp, who), lambda: read_plan(path, who, stamp))

    def who(self, study: Path) -> str:
        """The process that runs a study, '' if none does."""
        lock = self.inside(study / "lock")
        try:
            # Asking takes the lock for a moment, which a driver that starts just then would find
            # taken; but a lock that was given back is empty, and need not be asked about.
            return holder(study)[:100] if lock.is_file() and lock.stat().st_size else ""
        except (OSError, ValueError):
            return ""

    def place(self, study: Path, arm: str, seed: int) -> Path:
        """Where the run of an arm and a seed lies; of a base or a baseline the base's."""
        file, arms = self.file(study)
        found = next((each for each in arms if each.name == arm), None)
        if found is None:
            return self.inside(study / f"base-s{seed}")
        above = study / "runs"
        stamp = (self.stamp(study / "study.toml"), self.stamp(above) if above.is_dir() else None)

        def find() -> Path:
            # Finding a run opens the configs of all that could be it, and of its base.
            bases = {base_name(seed), base_name(seed, own_selector(file, found))}
            for each in (above / f"{arm}-s{seed}", *(study / name for name in bases)):
                for path in (each, *each.parent.glob(f"{escape(each.name)}-*")):
                    self.inside(path / "config.json")
                    self.inside(path / "meta.json")
                    self.inside(path / "given.json")
            return run_place(study, file, found, seed).path

        with reading(above):
            return self.inside(self.facts.get((study, arm, seed), stamp, find))

    def columns(self, path: Path) -> Columns:
        """All scores of a run."""
        scores = path / "scores.jsonl"
        if not scores.is_file():
            return {}
        for fact in FACTS:
            self.inside(path / fact)
        with reading(scores):
            return self.scored.get(scores, self.stamp(scores), lambda: read_columns(path))


def size(path: str) -> int | None:
    """The bytes of a file, None where there is none: for lists, where a `Path` each costs more."""
    try:
        seen = os.stat(path)  # noqa: PTH116  # as the sentence above says
    except (OSError, ValueError):
        return None
    return seen.st_size if S_ISREG(seen.st_mode) else None


def read_columns(path: Path) -> Columns:
    """The scores of a run, every one of them a number or nothing."""
    found = columns(Run.open(path))
    for column in found.values():
        if not all(type(item) is str for item in column.items):
            raise DataError(f"{path.name} has scores of an item that is no text")
        if not all(score is None or type(score) in (int, float) for score in column.scores):
            raise DataError(f"{path.name} has a score that is no number")
    return found


def read_plan(path: Path, who: str, stamp: Stamp) -> Plan:
    """A plan, every row of it checked: it may come from anywhere."""
    try:
        plan = read_json(path)
        cells = []
        for row in plan["cells"]:
            if tuple(map(type, row)) != KINDS:
                raise DataError(f"{path} is no plan: it has a cell {row!s:.80}")
            *place, state = row
            if state not in STATES:
                raise DataError(f"{path} is no plan: a cell is {state[:40]!r}")
            state = "missing" if state == "running" and not who else state
            cells.append((Cell._make(place), state))
        chosen = {str(name): str(each) for name, each in plan["chosen"].items()}
        failures = {str(name): str(why) for name, why in plan["failures"].items()}
    except (TypeError, ValueError, KeyError, AttributeError, RecursionError) as error:
        raise DataError(f"{path} is no plan: {type(error).__name__}") from None
    return Plan(cells, chosen, failures, who, f"{'-'.join(map(str, stamp))}-{bool(who)}")
