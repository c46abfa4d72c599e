"""What a study will cost before it runs: cells by state, answers at most, time by what it took."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from contextlib import closing
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from kleash.runs.ledger import Ledger
from kleash.runs.run import read_lines
from kleash.study.plan import (
    Arm,
    StudyFile,
    arm_recipe,
    arms_of,
    base_recipe,
    check_expected,
    most_ranks,
)
from kleash.study.plan.folder import Overview, job_of, overview, placed
from kleash.study.price import CARD, Price, price
from kleash.tasks.envs import gym
from kleash.train.recipe import PROBE_TASKS, TRANSCRIPTS, AgentRecipe, Recipe, SelectorRecipe

Fact = tuple[str, dict[str, Any]]
"""A sentence by its code, and what stands in it: whoever shows it has the words."""


def estimate(folder: Path, file: StudyFile) -> dict[str, Any]:
    """The plan with its states, and what is still to be paid."""
    arms = arms_of(file, placed(folder))
    check_expected(file, arms)
    found = overview(folder, file, arms)
    todo = {job_of(cell) for cell, state in found.cells if state not in ("done", "void")}
    answers = answers_at_most(file, arms, todo, found)
    seconds, guessed = seconds_left(folder, todo), answering(file, answers)
    known = facts_known(folder)
    counts = found.counts()
    to_pay = {"jobs": f"{len(todo):,}", "answers": f"{answers:,}", "known": f"{known:,}"}
    facts: list[Fact] = [
        ("study.jobs_agents" if file.of_agents else "study.jobs", to_pay),
        time_left(seconds, guessed),
        *tuning_first(folder, file),
    ]
    ranks = most_ranks(file, arms)
    if ranks > 1:
        facts.append(("study.ranks", {"ranks": str(ranks)}))
    return {
        "cells": [[*cell, state] for cell, state in found.cells],
        "rows": rows(found),
        "counts": counts,
        "jobs": sorted(todo),
        "ranks": ranks,
        "episodes" if file.of_agents else "answers": answers,
        "ledger": known,
        "seconds": guessed[0] if seconds is None and guessed else seconds,
        "facts": facts,
    }


def answering(file: StudyFile, answers: int) -> tuple[float, Price] | None:
    """Seconds that the answers of a model will take at most, where its size is known."""
    recipe = base_recipe(file, file.seeds[0])
    found = price(recipe) if isinstance(recipe, SelectorRecipe) else None
    return None if found is None else (answers * found.seconds, found)


def time_left(seconds: float | None, guessed: tuple[float, Price] | None) -> Fact:
    """What is known of the time: what jobs took, else what the model's size says."""
    if seconds is not None:
        return "study.time", {"minutes": f"{seconds / 60:,.1f}"}
    if guessed is None:
        return "study.time_unknown", {}
    whole, each = guessed
    facts = {
        "hours": f"{whole / 3600:,.1f}",
        "card": CARD,
        "seconds": f"{each.seconds:.3f}",
        "weights": f"{each.parameters / 1e9:.1f}",
        "tokens": f"{each.tokens:,}",
    }
    return "study.time_guessed", facts


def tuning_first(folder: Path, file: StudyFile) -> list[Fact]:
    """What is run before all arms are known, and is in no count above."""
    found: list[Fact] = []
    calibrate, search = file.calibrate, file.search
    if calibrate.arms and not (folder / "calibration.json").is_file():
        runs = len(calibrate.trials) * len(calibrate.seeds)
        found.append(("study.first_calibrate", {"runs": runs, "arms": calibrate.arms}))
    if search.trials and not (folder / "search.json").is_file():
        runs = search.trials * len(search.seeds)
        found.append(("study.first_search", {"runs": runs, "trials": search.trials}))
    return found


def rows(found: Overview) -> list[tuple[Any, ...]]:
    """Cells that differ in seed, checkpoint, shots and items only, as one row; its end is
    their count and state.
    """
    groups: dict[tuple[str, str, str], list[Any]] = defaultdict(list)
    for cell, state in found.cells:
        groups[cell.arm, cell.split, state].append(cell)
    made: list[tuple[Any, ...]] = []
    for (arm, split, where), cells in groups.items():
        seen = [
            ",".join(str(value) for value in dict.fromkeys(getattr(cell, name) for cell in cells))
            for name in ("seed", "checkpoint", "shots", "items")
        ]
        made.append((arm, seen[0], seen[1], split, seen[2], seen[3], len(cells), where))
    return made


def answers_at_most(file: StudyFile, arms: list[Arm], todo: set[str], found: Overview) -> int:
    """How many answers the jobs will ask for if no two are the same; of agents, episodes."""
    measure = file.measure
    total = 0
    for cell, state in found.cells:
        largest = measure.items[-1] if cell.split == "test" else measure.validation
        sizes = (largest,) if file.of_agents else (largest, measure.greedy_items)
        if state not in ("done", "void") and cell.items in sizes:
            total += cell.items * (max(cell.shots, 1) if file.of_agents else 1)
    for seed in file.seeds:
        base = base_recipe(file, seed)
        if f"base-s{seed}" in todo:
            total += proposals(base)
        for arm in arms:
            if f"{arm.name}-s{seed}" in todo:
                recipe = arm_recipe(file, arm, seed, "BASE")
                total += 0 if proposed_before(recipe, base) else training(recipe)
    return total


def proposals(recipe: Recipe) -> int:
    """Answers to proposals of the training queries: those found by beam search cost more.

    Of an agent, its dialogues and what is played after each epoch of them.
    """
    if isinstance(recipe, AgentRecipe):
        epochs = sum(n for phase, n in recipe.phases() if phase == "supervised")
        return epochs * (recipe.supervised.dialogues + validated(recipe))
    assert isinstance(recipe, SelectorRecipe)
    propose = recipe.propose
    tried = propose.beams * propose.width * recipe.shots
    return recipe.queries * (propose.random + propose.retrieval + propose.beams + tried)


def proposed_before(recipe: Recipe, base: Recipe) -> bool:
    """Whether all that an offline run asks for was asked for by the start of its seed."""
    if not (isinstance(recipe, SelectorRecipe) and isinstance(base, SelectorRecipe)):
        return False
    same = (recipe.propose, recipe.pool, recipe.shots) == (base.propose, base.pool, base.shots)
    return recipe.source == "offline" and same and recipe.queries <= base.queries


def training(recipe: Recipe) -> int:
    """Answers that GRPO asks for; of an agent, what it plays: groups, and at each checkpoint KL's
    probe, validation and transcripts.
    """
    if isinstance(recipe, AgentRecipe):
        there = tasks_in(recipe.env, json.dumps(recipe.gym))
        groups = recipe.length() * min(recipe.batch, there["train"])
        beside = min(PROBE_TASKS, there["validation"]) + min(TRANSCRIPTS, there["test"])
        return groups * recipe.group + recipe.epochs * (beside + validated(recipe))
    assert isinstance(recipe, SelectorRecipe)
    if recipe.source == "offline":
        return proposals(recipe)
    return recipe.queries * recipe.group * recipe.epochs


def validated(recipe: AgentRecipe) -> int:
    """Episodes that an agent plays after an epoch."""
    asked, there = recipe.validation, tasks_in(recipe.env, json.dumps(recipe.gym))
    some = min(asked.tasks, there["validation"]) + min(asked.training, there["train"])
    return some * max(asked.passes, 1)


@cache
def tasks_in(env: str, options: str) -> dict[str, int]:
    """How many tasks each split of an environment has."""
    with TemporaryDirectory() as spare, Ledger(Path(spare) / "ledger.sqlite") as ledger:
        made = gym(env, json.loads(options), ledger=ledger)  # a user behind an endpoint has one
        return {split: len(made.tasks(split)) for split in ("train", "validation", "test")}


def seconds_left(folder: Path, todo: set[str]) -> float | None:
    """By the mean of finished jobs of the same kind; None where there is none of a kind."""
    path = folder / "spent.jsonl"
    times: dict[str, list[float]] = defaultdict(list)
    for line in read_lines(path) if path.is_file() else ():
        times[kind_of(line["job"])].append(line["seconds"])
    total = 0.0
    for job in todo:
        known = times.get(kind_of(job))
        if not known:
            return None
        total += sum(known) / len(known)
    return total


def kind_of(job: str) -> str:
    """A base, the baselines, or a run of an arm."""
    return job.rpartition("-s")[0] or job


def facts_known(folder: Path) -> int:
    """How many answers the study's ledger holds."""
    path = folder / "ledger.sqlite"
    if not path.is_file():
        return 0
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        return int(db.execute("SELECT count(*) FROM facts").fetchone()[0])
