"""Watching jobs that run elsewhere: their logs are followed, signs of trouble are told once, early.

The rules of collapse are `collapse`'s, the guards `checks`'; what a run of ours has found itself
is passed on. Nothing here writes, locks or asks the job anything: it only reads what it logs. The
sentences are the catalogue's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from kleash.algo import collapse
from kleash.compare.checks import Found, find
from kleash.compare.read import Imported, Source, fitting, names, read, swanlab, verl, wandb
from kleash.compare.read.given import below, differing
from kleash.compare.read.run_names import label, whole_name
from kleash.compare.watch.follow import (
    Follower,
    Lines,
    Told,
    Whole,
    take_console,
    take_own,
    take_verl,
)
from kleash.errors import DataError
from kleash.runs.run import FACTS

__all__ = ["Told", "Warned", "Watch", "course"]

GUARDS = (
    "kl-at-start",
    "kl-falls",
    "loss-identity",
    "kl-loss-identity",
    "near-uniform",
    "little-signal",
)
DEPTH = 4  # folders below a source in which runs are sought
AGAIN = 6  # looks, after which new files are sought
QUANTITIES = {
    "episode/reward": "reward",
    "kl/ref/exact": "kl",
    "kl/ref/k3": "kl",
    "dead_groups": "dead_groups",
    "frac_reward_zero_std": "dead_or_done",
    "episode/valid_actions": "valid_actions",
    "episode/valid_action_ratio": "valid_actions",
    "valid_actions": "valid_actions",
    "valid_action_ratio": "valid_actions",
    "有效动作比例": "valid_actions",
    "死组比例": "dead_or_done",
    "validation/reward_se": "eval_reward_se",
    "validation/accuracy": "accuracy",
    "validation/accuracy_se": "accuracy_se",
}
"""What `read.names` does not know, or knows as something that is not compared."""
WATCHED = {name for metrics, _ in collapse.RULES.values() for name in metrics} | {
    *("eval_reward_se", "accuracy_se", "loss", "policy_loss", "grad_norm")
}


def quantity(name: str) -> str | None:
    """The quantity that a logged name stands for, if rules look at it."""
    plain = name.removeprefix("train/").removeprefix("training/")
    if plain in QUANTITIES:
        return QUANTITIES[plain]
    known = names.metric(name)
    return known.name if known is not None and known.name in WATCHED else None


def course(told: Told) -> dict[str, collapse.Curve]:
    """A run's curves under the names of quantities; of several names for one, the usual one."""
    found: dict[str, collapse.Curve] = {}
    for name, points in sorted(told.points.items(), key=lambda one: names.rank(one[0])):
        what = quantity(name)
        if what is not None and what not in found:
            steps = np.array(points.steps, dtype=np.float64)
            found[what] = collapse.Curve(steps, np.array(points.values, dtype=np.float64))
    return found


@dataclass(frozen=True)
class Warned:
    """One warning: which run, what sign, where; its sentence is the catalogue's of `sentence`."""

    run: str
    source: str
    code: str
    step: float | None
    sentence: str
    facts: dict[str, Any]
    also: tuple[str, ...] = ()
    """The runs that it is about, where `run` is the name of their arm."""

    def is_about(self, told: Told) -> bool:
        """Whether it was told of this run."""
        place = Path(self.source)
        return told.name in (self.run, *self.also) and place in (told.path, *told.path.parents)


@dataclass
class Watch:
    """The sources that are watched, and all that was told of them.

    `called` are the user's names of sources, `shown` the names of runs by their paths and their own
    names: no two are alike, and none changes once a warning may have told it.
    """

    sources: Sequence[Path]
    called: Mapping[Path, str] = field(default_factory=dict)
    shown: dict[tuple[Path, str], str] = field(default_factory=dict)
    followed: dict[Path, Follower] = field(default_factory=dict)
    warned: list[Warned] = field(default_factory=list)
    known: set[tuple[str, ...]] = field(default_factory=set)
    looks: int = 0
    guarded: dict[Path, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """A source must be there; what is in it may come later."""
        for path in self.sources:
            if not path.exists():
                raise DataError(f"no such file or folder: {path}")

    @property
    def runs(self) -> list[Told]:
        """Every run that a log has told of."""
        return [told for follower in self.followed.values() for told in follower.runs]

    def look(self) -> list[Warned]:
        """Take in what is new, and say what was not said before."""
        if self.looks % AGAIN == 0:
            for source in self.sources:
                for path, follower in followers(source, DEPTH):
                    self.followed.setdefault(path, follower)
        self.looks += 1
        new: list[Warned] = []
        moved = [follower for follower in self.followed.values() if _poll(follower)]
        self.call_apart()
        for follower in moved:
            for told in follower.runs:
                if told.format == "kleash":
                    told.finished = (told.path.parent / "done").is_file()
                new += [each for each in signs(told) if self.once(each)]
        for source in self.sources:
            new += [each for each in self.guards(source) if self.once(each)]
        self.warned += new
        return new

    def call_apart(self) -> None:
        """Give every run a name that no other has."""
        every = list(dict.fromkeys([*self.shown, *((told.path, told.own) for told in self.runs)]))
        names = {one: self.by_user(one[0]) for one in every}
        for path, own in every[len(self.shown) :]:
            name = names[path, own]
            alike = [e for e in every if names[e] == name and (name or e[1] == own)]
            apart = _apart(alike, path, own) if len(alike) > 1 else ""
            self.shown[path, own] = "/".join(filter(None, (name, apart))) or own
        for told in self.runs:
            told.name = self.shown[told.path, told.own]

    def by_user(self, path: Path) -> str:
        """What the user calls the source of something."""
        found = (name for at, name in self.called.items() if at in (path, *path.parents))
        return next(found, "")

    def once(self, warned: Warned) -> bool:
        """Whether it has not been told before."""
        key = (warned.source, warned.run, warned.code)
        if key in self.known:
            return False
        self.known.add(key)
        return True

    def guards(self, source: Path) -> Iterator[Warned]:
        """What guards find, whenever there is twice as much as when they last looked."""
        held = [path for path in self.followed if path == source or source in path.parents]
        count = sum(told.count for path in held for told in self.followed[path].runs)
        if not count or count < 2 * self.guarded.get(source, 0):
            return
        self.guarded[source] = count
        try:
            imported = read(source)
        except DataError:  # being written: the next time
            return
        for run in imported.runs:
            self.call(run)
        for found in find([imported], GUARDS):
            yield of_finding(found, source, imported)

    def call(self, run: Imported) -> None:
        """A run that was read as it is shown."""
        own, file = whole_name(run.name, run.where.file), Path(run.where.file)
        shown = [name for (path, other), name in self.shown.items()
                 if other == own and (path == file or path in file.parents)]  # fmt: skip
        if shown and shown[0] != own:
            run.name, run.arm = shown[0], ""
            label(run)


def _apart(alike: Sequence[tuple[Path, str]], path: Path, own: str) -> str:
    """A run by its path and its name, as far as others have another."""
    places = list(dict.fromkeys(place for place, _ in alike))
    where = dict(zip(places, differing(places), strict=True))[path]
    return below(where, own) if len(places) > 1 else own


def _poll(follower: Follower) -> bool:
    """Whether there was anything new, all of which was taken in."""
    moved = False
    while follower.poll():
        moved = True
        if not isinstance(follower, Lines):
            break
    return moved


def of_finding(found: Found, source: Path, imported: Source) -> Warned:
    """A finding of a guard as a warning."""
    arm = str(found.facts.get("arm", ""))
    runs = tuple(whole_name(run.name, run.where.file) for run in imported.runs if run.arm == arm)
    return Warned(arm, str(source), found.code, None, found.code, found.facts, runs)


def signs(told: Told) -> Iterator[Warned]:
    """The signs of collapse in a run, and what it has found itself."""
    axes = {quantity(name): points.axis for name, points in reversed(told.points.items())}
    for sign in collapse.first_signs(course(told)):
        axis = axes.get(sign.metric, "step")
        facts = {
            "run": told.name,
            "metric": sign.metric,
            "at": f"{axis} {sign.step:g}",
            "now": sign.now,
            "before": sign.before,
        }
        code = f"{sign.code}:{sign.metric}" if sign.code == "not-finite" else sign.code
        step = sign.step if axis == "step" else None
        yield Warned(told.name, str(told.path), code, step, f"watch.{sign.code}", facts)
    for code, message in told.findings.items():
        facts = {"run": told.name, "message": message}
        yield Warned(told.name, str(told.path), f"run:{code}", None, "watch.run-finding", facts)


# --- what there is to follow ---------------------------------------------------------------------


def followers(path: Path, depth: int) -> Iterator[tuple[Path, Follower]]:
    """Whoever follows a source, by the format it has; a folder of no format is looked into."""
    found = next(fitting(path), None)
    form = found[0] if found else ""
    if form == "kleash":
        for run in [path] if is_run(path) else sorted(filter(is_run, path.iterdir())):
            yield run, Lines(run / "metrics.jsonl", run.name, "kleash", take_own)
    elif form == "verl":
        yield from of_verl(path)
    elif form in ("wandb", "swanlab"):
        logs = swanlab.logs if form == "swanlab" else wandb.logs
        files = [path] if path.is_file() else logs(path)
        yield from ((file, Whole(file)) for file in files or [path])
    elif form:
        yield path, Whole(path)
    elif path.is_dir() and depth:
        for inner in sorted(path.iterdir()):
            if not inner.name.startswith((".", "__")) and not inner.is_symlink():
                yield from followers(inner, depth - 1)


def is_run(path: Path) -> bool:
    """Whether a folder is a run of ours."""
    return path.is_dir() and all((path / name).is_file() for name in FACTS)


def of_verl(path: Path) -> Iterator[tuple[Path, Follower]]:
    """verl's JSON lines; where there are none, its console."""
    files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
    by_kind: dict[str | None, list[Path]] = {}
    for file in files:
        by_kind.setdefault(verl.kind(file), []).append(file)
    for file in by_kind.get("rows", []):
        yield file, Lines(file, whole_name(file.stem, file), "verl", take_verl)
    if not by_kind.get("rows"):
        consoles = by_kind.get("console", [])
        sole = path.name if path.is_dir() and len(consoles) == 1 else ""
        for file in consoles:
            name = whole_name(sole or file.stem, file)
            yield file, Lines(file, name, "verl", take_console)
