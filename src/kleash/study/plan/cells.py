"""Every cell a study needs, and its state as the run folders tell it.

A cell is one measurement: arm, seed, checkpoint, split, shots, items. Its state is read from the
scores that are there, never from a note that somebody made about them; only `running` and `failed`
come from whoever runs the study.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from math import fsum
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal, NamedTuple

from kleash.config import dotted
from kleash.models.embed import BLIND
from kleash.runs.run import Run
from kleash.study.plan.arms import Arm, Told, arm_recipe, base_recipe, own_selector, seeded
from kleash.study.plan.file import StudyFile
from kleash.tasks.data import FROM_FILES
from kleash.train.recipe import Recipe, SelectorRecipe
from kleash.types import BROKEN_SHARE

State = Literal["done", "missing", "running", "failed", "void"]
STATES: tuple[State, ...] = ("done", "missing", "running", "failed", "void")
CHOSEN = "chosen"
BASELINE = "baseline:"
FAMILIES = {
    "random": tuple(f"random-{draw}" for draw in range(5)),
    "similar": ("similar-image", "similar-text", "similar-both"),
}

KNOWS_THE_TRUTH = {"planted", "best-greedy"}
"""What nobody can use who does not know the answers: ceilings, not something to beat."""


class Cell(NamedTuple):
    """One measurement. Of a baseline the arm is its name; `chosen` is the best on validation."""

    arm: str
    seed: int
    checkpoint: str
    split: str
    shots: int
    items: int


@dataclass
class Column:
    """The scores of one checkpoint at one number of shots, in the order they were measured."""

    items: list[str] = field(default_factory=list)
    scores: list[float | None] = field(default_factory=list)
    pointers: list[tuple[str, ...]] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    """Where in `scores.jsonl` each stands."""
    weights: str = ""
    """The hash of the weights that made the first of them."""

    def mean(self, items: int) -> float | None:
        """Of the first so many; None where fewer were measured or all broke."""
        known = [score for score in self.scores[:items] if score is not None]
        # Exact, so that equal means are equal by every Python: the earliest of them is chosen.
        return fsum(known) / len(known) if known and len(self.scores) >= items else None

    def broken(self, items: int) -> int:
        """How many of the first so many answers broke."""
        return self.scores[:items].count(None)


Columns = dict[tuple[str, str, int], Column]
"""By checkpoint, split and shots."""


@dataclass(frozen=True)
class Place:
    """Where a run of the study lies: its name, its folder, and whether it is the one asked for."""

    arm: str
    seed: int
    path: Path
    recipe: Recipe
    run: Run | None = None
    """The run there, as it was opened to see whose it is."""


def base_checkpoint(file: StudyFile, seed: int) -> str:
    """The name of the base's last checkpoint."""
    recipe = base_recipe(file, seed)
    if recipe.start:
        return "start"
    made = [(phase, epochs) for phase, epochs in recipe.phases() if epochs and phase != "grpo"]
    return "{}-{}".format(*made[-1]) if made else "start"


def base_name(seed: int, selector: str = "") -> str:
    """What the shared start of a seed is called; that of an arm's own preset has its name in it."""
    return f"base-{selector}-s{seed}" if selector else f"base-s{seed}"


def base_folder(folder: Path, file: StudyFile, seed: int, selector: str = "") -> Path:
    """Where the shared start of a seed lies, or would."""
    recipe = base_recipe(file, seed, selector)
    return current(folder / base_name(seed, selector), Told.of(recipe))[0]


def start_of(folder: Path, file: StudyFile, seed: int, selector: str = "") -> Path:
    """The checkpoint that all arms of a seed start from, those of one preset together."""
    name = base_checkpoint(file, seed)
    return (base_folder(folder, file, seed, selector) / "checkpoints" / name).resolve()


def run_place(
    folder: Path,
    file: StudyFile,
    arm: Arm,
    seed: int,
    start: Path | None = None,
    other: Told | None = None,
) -> Place:
    """Where the run of an arm and a seed lies, or would.

    `start` where it is known already, and the recipe of another seed, which was checked.
    """
    start = start or start_of(folder, file, seed, own_selector(file, arm))
    if other is None:
        told = Told.of(arm_recipe(file, arm, seed, start))
    else:
        recipe = seeded(other.recipe, arm, seed, start)
        told = Told(recipe, other.resolved | {"seed": seed, "from": recipe.start})
    path, run = current(folder / f"runs/{arm.name}-s{seed}", told)
    return Place(arm.name, seed, path, told.recipe, run)


def current(path: Path, told: Told) -> tuple[Path, Run | None]:
    """The folder of this recipe: the plain name, or the one with digits that a change made.

    Where only other recipes have the name, it is a folder that nobody has made yet.
    """
    for found in _of_name(path):
        if (found / "config.json").is_file() and same_recipe(run := Run.open(found), told):
            return found, run
    return path.with_name(f"{path.name}-not-yet") if path.exists() else path, None


def _of_name(path: Path) -> Iterator[Path]:
    yield path  # nearly always the one: only else is the whole folder looked through
    yield from sorted(path.parent.glob(f"{path.name}-" + "[0-9a-f]" * 8))


def same_recipe(run: Run, told: Told) -> bool:
    """Whether a run was asked for the same, however long and wherever its start lies."""
    asked, apart = told.resolved, {"from", *told.recipe.length_keys()}
    if asked | dict.fromkeys(apart) == run.config | dict.fromkeys(apart):
        return True  # as it mostly is; else it may be told with other keys
    ours, theirs = dict(dotted(asked)), dict(dotted(run.config))
    return all(ours.get(key) == theirs.get(key) for key in (ours.keys() | theirs.keys()) - apart)


# --- cells


def baseline_names(file: StudyFile) -> list[str]:
    """Every baseline that is measured by choosing without learning, of those that there can be."""
    wanted = [name for name in file.measure.baselines if name != "base"]
    recipe, none = base_recipe(file, file.seeds[0]), set[str]()
    if isinstance(recipe, SelectorRecipe):
        none |= {"similar-image", "similar-both"} if recipe.encoder in BLIND else set()
        none |= {"planted"} if recipe.data in FROM_FILES else set()
    every = (each for name in wanted for each in FAMILIES.get(name, (name,)))
    return [name for name in every if name not in none]


def cells_of(
    file: StudyFile, arms: Iterable[Arm], told: Mapping[str, Told] | None = None
) -> Iterator[Cell]:
    """Every cell, one at a time: a plan of any size needs no room.

    `told` are the recipes of the arms, where they were made already.
    """
    measure = file.measure
    first = file.seeds[0]
    for name in baseline_names(file):
        sizes: tuple[int, ...] = measure.items
        if name == "best-greedy":
            sizes = (min(measure.greedy_items, measure.items[-1]),)
        for shots in measure.shots:
            yield from (Cell(BASELINE + name, first, "", "test", shots, n) for n in sizes)
    if "base" in measure.baselines:
        name = base_checkpoint(file, first)
        for seed in file.seeds:
            for shots in measure.shots:
                yield from (Cell("base", seed, name, "test", shots, n) for n in measure.items)
    for arm in arms:
        recipe = told[arm.name].recipe if told else arm_recipe(file, arm, first, "BASE")
        for seed in file.seeds:
            yield from run_cells(file, arm, seed, recipe)


def checkpoint_names(recipe: Recipe) -> list[str]:
    """The checkpoints of the phase that is compared."""
    return [f"epoch-{epoch}" for epoch in range(1, recipe.epochs + 1)]


def run_cells(file: StudyFile, arm: Arm, seed: int, recipe: Recipe) -> Iterator[Cell]:
    """The cells of one run: its checkpoints on validation, and the test."""
    measure, names = file.measure, checkpoint_names(recipe)
    for name in names:
        yield Cell(arm.name, seed, name, "validation", recipe.validated_at(), measure.validation)
    tested = {"all": names, "chosen": [CHOSEN], "none": []}[measure.test]
    for name in tested:
        for shots in measure.shots:
            for items in measure.items:
                yield Cell(arm.name, seed, name, "test", shots, items)


def columns(run: Run) -> Columns:
    """All scores of a run, read once."""
    found: Columns = {}
    number = 1
    for key, group in groupby(run.scores(), key=itemgetter("checkpoint", "split", "shots")):
        lines = list(group)
        column = found.setdefault(key, Column(weights=str(lines[0].get("weights", ""))))
        column.items += [line["item"] for line in lines]
        column.scores += [line.get("score") for line in lines]
        column.pointers += [tuple(line["pointer"]) for line in lines]
        column.lines += range(number, number + len(lines))
        number += len(lines)
    return found


def state_of(cell: Cell, scored: Columns, chosen: str) -> State:
    """The state of a cell by the scores of its run."""
    column = scored.get(column_key(cell, chosen))
    if column is None or len(column.scores) < cell.items:
        return "missing"
    return "void" if column.broken(cell.items) > BROKEN_SHARE * cell.items else "done"


def column_key(cell: Cell, chosen: str) -> tuple[str, str, int]:
    """Under what a cell's scores are kept."""
    if cell.arm.startswith(BASELINE):
        return cell.arm, cell.split, cell.shots
    return (chosen if cell.checkpoint == CHOSEN else cell.checkpoint), cell.split, cell.shots


def chosen_of(
    scored: Columns, shots: int, items: int, names: Iterable[str], choose: str = "validation"
) -> str:
    """The checkpoint with the highest mean on validation, the earliest of equals; or the last.

    '' while one of them has not been measured.
    """
    means: dict[str, float] = {}
    for name in names:
        column = scored.get((name, "validation", shots))
        mean = None if column is None else column.mean(items)
        if mean is None:
            return ""
        means[name] = mean
    if choose == "last":
        return list(means)[-1] if means else ""
    return max(means, key=lambda name: means[name], default="")


def mixed(
    runs: Mapping[str, Run], bases: Sequence[Run], start: str, data: str | None
) -> list[dict[str, Any]]:
    """What the runs of a study do not share though they should, by content; nothing if all is well.

    Each entry names what differs, the run, what it has and what it should have. `start` is the
    checkpoint of the bases that arms go on from.
    """
    found: list[dict[str, Any]] = []
    firsts: dict[str, Any] = {} if data is None else {"data": data}
    everyone = {run.name: run for run in bases} | dict(runs)
    for name, run in everyone.items():
        for key in ("data", "pool", "answerer", "revision", "diff"):
            have = run.meta.get(key)
            want = firsts.setdefault(key, have)
            if have != want:
                found.append({"what": key, "run": name, "have": have, "want": want})
    tied = {
        (model_of(run), run.meta["seeds"]["run"]): run.state(start)["weights_hash"]
        for run in bases
        if start in run.checkpoints()
    }
    for name, run in runs.items():
        have = run.meta.get("base")
        want = tied.get((model_of(run), run.meta["seeds"]["run"]))
        if run.name not in {base.name for base in bases} and have != want:
            found.append({"what": "base", "run": name, "have": have, "want": want})
    return found


def model_of(run: Run) -> str:
    """What a run trains: a selector's preset, or an agent's model."""
    return str(run.config.get("selector") or run.config["model"])
