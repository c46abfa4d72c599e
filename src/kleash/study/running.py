"""Whole studies: plans all cells, has them filled, compares, reports. One file, one command.

`work` is what a worker does, `looks` adds seeds until something is decided, `calibrate` places arms
by how far they go, `estimate` says what it will cost, `servers` hold one model per GPU. Its file
and its folder are `plan`'s, what came out is in `results`. Killed at any moment and started again,
a study goes on and ends with the same scores; what is there is never made again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from kleash.errors import ConfigError, DataError, NoSpace
from kleash.models.answer.serving import Model
from kleash.runs.jobs import NO_SPACE, Job, Outcome, Told, run_jobs
from kleash.runs.ledger import Ledger
from kleash.study.calibrate import calibrated, keep_calibration, trials_file, tuning_asked
from kleash.study.plan import (
    Arm,
    State,
    StudyFile,
    against,
    arm_recipe,
    arms_of,
    base_name,
    base_recipe,
    check_expected,
    own_selector,
    ranks_of,
    start_of,
)
from kleash.study.plan.folder import (
    Overview,
    held,
    job_of,
    mixtures,
    overview,
    placed,
    spend,
    spent,
    write_asked,
    write_plan,
)
from kleash.study.servers import at_servers
from kleash.tasks.data import dataset
from kleash.tasks.envs import gym
from kleash.train.recipe import AgentRecipe, SelectorRecipe

__all__ = ["Asked", "Ran", "check_data", "jobs_for", "run_study"]
WRITE_EVERY = 3.0  # seconds between two plans on the disk while it runs


@dataclass(frozen=True)
class Asked:
    """A study to run, and how."""

    file: StudyFile
    folder: Path
    jobs: int = 1
    on: str = "local"
    device: str = "cpu"
    sinks: tuple[str, ...] = ()
    """Where runs are logged live besides their folders."""
    ledger: Path | None = None
    """Where answers are kept; in the study's folder if not given."""
    gpus: tuple[str, ...] = ()
    """Devices with one answerer each, which serve all jobs; if none, every worker has its own."""


@dataclass
class Ran:
    """How running ended: the cells now, and what failed and why."""

    overview: Overview
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    stopped: bool = False
    spent: bool = False
    """Whether it was stopped because the study has cost what it may."""

    @property
    def failures(self) -> dict[str, str]:
        """By job, why it failed."""
        return {
            name: each.error or each.state
            for name, each in self.outcomes.items()
            if each.state in ("failed", "skipped")
        }


def check_data(file: StudyFile) -> str:
    """The hash of the data the study is about; it and its pools are large enough to measure."""
    recipe = base_recipe(file, file.seeds[0])
    if isinstance(recipe, AgentRecipe):
        # A user behind an endpoint has a ledger; only the tasks are looked at here.
        with TemporaryDirectory() as spare, Ledger(Path(spare) / "ledger.sqlite") as ledger:
            played = gym(recipe.env, recipe.gym, ledger=ledger)
            sizes_fit(file, recipe.env, lambda split: len(played.tasks(split)))
            return played.content
    assert isinstance(recipe, SelectorRecipe)
    data = dataset(recipe.data, recipe.data_seed, recipe.data_options)
    if recipe.pool.size <= max(file.measure.shots):
        raise ConfigError(
            f"a pool of {recipe.pool.size} leaves nothing to choose at"
            f" {max(file.measure.shots)} shots: every arm would show the same demonstrations;"
            " enlarge base.pool.size or lower measure.shots"
        )
    sizes_fit(file, recipe.data, lambda split: len(data.queries(split)))
    return data.content


def sizes_fit(file: StudyFile, name: str, size: Callable[[str], int]) -> None:
    """There is as much of each split as will be measured."""
    sizes = {"validation": file.measure.validation, "test": file.measure.items[-1]}
    for split, wanted in sizes.items():
        if wanted > (have := size(split)):
            raise ConfigError(
                f"{wanted} items of {split!r} were asked for and {name} has {have}:"
                f" lower measure.{'items' if split == 'test' else 'validation'}"
            )


def jobs_for(asked: Asked, arms: Sequence[Arm], found: Overview) -> list[Job]:
    """The jobs whose cells are not all there, bases first; none is made twice."""
    file, folder = asked.file, asked.folder
    todo = {job_of(cell) for cell, state in found.cells if state not in ("done", "void")}
    shared = {
        "folder": str(folder.resolve()),
        "file": file.model_dump(mode="json"),
        "device": asked.device,
        "sinks": list(asked.sinks),
        "ledger": str((asked.ledger or folder / "ledger.sqlite").resolve()),
        "machines": asked.on not in ("local", "ray"),
    }
    selectors = {arm.name: own_selector(file, arm) for arm in arms}
    one = wanted(asked, 1)
    needed = [
        (seed, selector)
        for seed in file.seeds
        for selector in dict.fromkeys(["", *selectors.values()])
        if base_name(seed, selector) in todo
        or (
            not base_finished(file, folder, seed, selector)
            and any(f"{n}-s{seed}" in todo for n, theirs in selectors.items() if theirs == selector)
        )
    ]
    work = "kleash.study.work"
    jobs = [
        Job(
            base_name(seed, selector),
            f"{work}:make_base",
            shared | {"seed": seed, "selector": selector},
            **one,
        )
        for seed, selector in needed
    ]
    made = {job.name for job in jobs}

    def after(seed: int, selector: str = "") -> tuple[str, ...]:
        name = base_name(seed, selector)
        return (name,) if name in made else ()

    if "baselines" in todo:
        jobs.append(Job("baselines", f"{work}:make_baselines", shared, after(file.seeds[0]), **one))
    for seed in file.seeds:
        for arm in arms:
            name = f"{arm.name}-s{seed}"
            if name in todo:
                given = shared | {"seed": seed, "arm": arm.name, "keys": dict(arm.keys)}
                start = after(seed, selectors[arm.name])
                ranks = ranks_of(arm_recipe(file, arm, seed, "BASE"))
                jobs.append(Job(name, f"{work}:make_run", given, start, **wanted(asked, ranks)))
    return jobs


def wanted(asked: Asked, ranks: int) -> dict[str, Any]:
    """What a job of so many processes wants: a core each and, where it trains on GPUs, one each.

    Only Ray looks at them; without it the jobs of a machine share its GPUs as they find them.
    """
    on_gpus = asked.device.startswith("cuda") and asked.on != "local"
    return {"cpus": ranks, "gpus": ranks if on_gpus else 0, "ranks": ranks}


def model_of(file: StudyFile) -> Model | None:
    """Who answers in this study; an agent asks nobody."""
    recipe = base_recipe(file, file.seeds[0])
    if not isinstance(recipe, SelectorRecipe):
        return None
    return Model(
        recipe.answerer,
        recipe.data,
        recipe.data_seed,
        recipe.answerer_options,
        recipe.data_options,
    )


def base_finished(file: StudyFile, folder: Path, seed: int, selector: str) -> bool:
    """Whether the shared start of a seed is there."""
    return (start_of(folder, file, seed, selector) / "state.json").is_file()


def run_study(
    asked: Asked,
    hear: Callable[[Told, Overview], None] = lambda told, found: None,
    stop: Callable[[], bool] = lambda: False,
) -> Ran:
    """Fill every cell that is missing; the folder then holds all that a report needs."""
    folder, file = asked.folder, asked.file
    folder.mkdir(parents=True, exist_ok=True)
    data = check_data(file)
    with held(folder):
        tried = calibrate(asked, hear, stop) if file.calibrate.arms else None
        if tried is not None and (tried.stopped or tried.failures):
            return tried
        arms = arms_of(file, placed(folder))
        check_expected(file, arms)
        against(file, arms)
        found = overview(folder, file, arms)
        refuse_mixed(mixtures(folder, file, found, data))
        tested = any(s == "done" and c.split == "test" for c, s in found.cells)
        write_asked(folder, file, arms, seen=tested)
        write_plan(folder, found, failures={})
        jobs = jobs_for(asked, arms, found)
        if not jobs:
            return Ran(found)
        keeper = Keeper(asked, arms, found, hear)
        with at_servers(jobs, model_of(file), asked.gpus, asked.on) as jobs:
            outcomes = run_jobs(
                jobs,
                workers=asked.jobs,
                hear=keeper,
                on=asked.on,
                stop=lambda: stop() or (folder / "stop").exists() or keeper.over_budget(),
            )
        ran = Ran(overview(folder, file, arms, keeper.failed(outcomes)), outcomes)
        ran.stopped = any(each.state == "stopped" for each in outcomes.values())
        ran.spent = ran.stopped and keeper.over_budget()
        write_plan(folder, ran.overview, failures=ran.failures)
    return ran


def calibrate(
    asked: Asked, hear: Callable[[Told, Overview], None], stop: Callable[[], bool]
) -> Ran | None:
    """Place arms by short runs on tuning seeds; None if that was done before."""
    trials = trials_file(asked.file)
    if calibrated(asked, trials):
        return None
    if not (asked.folder / "study.toml").is_file():  # so that it can be stopped and gone on with
        write_asked(asked.folder, asked.file, arms_of(asked.file), seen=False)
    ran = run_study(
        tuning_asked(asked, trials, "calibration"),
        hear,
        lambda: stop() or (asked.folder / "stop").exists(),
    )
    if not (ran.stopped or ran.failures):
        keep_calibration(asked, trials, ran.overview)
    return ran


class Keeper:
    """Hears the jobs: keeps what they cost and the plan on the disk, and passes on what is told."""

    def __init__(
        self,
        asked: Asked,
        arms: Sequence[Arm],
        found: Overview,
        hear: Callable[[Told, Overview], None],
    ) -> None:
        self.asked, self.arms, self.found, self.hear = asked, arms, found, hear
        self.marks: dict[str, State] = {}
        self.failures: dict[str, str] = {}
        self.began, self.wrote, self.stale = time.monotonic(), -WRITE_EVERY, False
        self.before = spent(asked.folder)
        self.bought = 0

    def __call__(self, told: Told) -> None:
        """One thing heard."""
        if told.kind == "started":
            self.marks[told.job] = "running"
        elif told.kind == "done":
            self.marks.pop(told.job, None)
            spend(self.asked.folder, told.job, told.record)
            self.bought += int(told.record.get("bought", 0))
        elif told.record == NO_SPACE:
            self.marks, self.wrote = {}, -WRITE_EVERY  # nothing runs any more
            with suppress(OSError):
                self.write()
            raise NoSpace(self.asked.folder)
        elif told.kind in ("failed", "skipped"):
            self.marks[told.job] = "failed"
            self.failures[told.job] = told.error or told.kind
        self.stale |= told.kind != "told"
        if self.stale:
            self.write()
        self.hear(told, self.found)

    def write(self) -> None:
        """The plan, not too often: reading all scores again takes a moment.

        What is too early now is written with the next thing heard: a job that starts right after
        another has ended would else never be seen to run.
        """
        if time.monotonic() - self.wrote > WRITE_EVERY:
            folder = self.asked.folder
            self.found = overview(folder, self.asked.file, self.arms, self.marks, self.found)
            write_plan(folder, self.found, failures=self.failures)
            self.wrote, self.stale = time.monotonic(), False

    def failed(self, outcomes: dict[str, Outcome]) -> dict[str, State]:
        """The jobs whose cells will not come."""
        return {n: "failed" for n, each in outcomes.items() if each.state in ("failed", "skipped")}

    def over_budget(self) -> bool:
        """Whether the study has cost what it may."""
        budget = self.asked.file.budget
        seconds = self.before["seconds"] + (time.monotonic() - self.began) * self.asked.jobs
        answers = self.before["bought"] + self.bought
        return bool(
            (budget.hours and seconds > 3600 * budget.hours)
            or (budget.answers and answers > budget.answers)
        )


def refuse_mixed(entries: Sequence[Mapping[str, Any]]) -> None:
    """Stop where runs under this study's names were made from other data, pools or answers.

    Another revision of Kleash, or an arm that names its own start, is told of in the results.
    """
    for entry in entries:
        if entry["what"] in ("data", "pool", "answerer"):
            raise DataError(
                f"{entry['run']} was made with another {entry['what']}"
                f" ({str(entry['have'])[:12]}, the study has {str(entry['want'])[:12]}):"
                " give the study a new folder, or move that run away"
            )
