"""Intention tasks out of an embedded world: domains, the slots that matter in each, their values.

Which slots a request leaves out, and with what values, is drawn per task; how important a slot is
in a domain is drawn once for the world, so that it can be learnt. The split is a hash of what the
task means.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from pydantic import Field

from kleash.config import Config
from kleash.errors import ConfigError
from kleash.seeds import generator, key
from kleash.tasks.envs.contract import split_of
from kleash.tasks.envs.intents import SHARES, Detail, IntentTask

IMPORTANCES = {3: 0.17, 2: 0.68, 1: 0.15}
MISSING = (0.05, 0.16, 0.30, 0.28, 0.14, 0.07)  # shares of 1, 2, … 6 missing details: mean 3.5


class World(Config):
    """What tasks are drawn from, and how hard they are."""

    seed: int = 0
    """Names every draw of the world: importances and tasks."""
    domains: int = Field(6, ge=1, le=6)
    """How many domains requests come from; fewer are easier."""
    relevant: int = Field(6, ge=1, le=6)
    """How many slots matter in a domain; the others are asked for in vain."""
    fewest: int = Field(1, ge=1, le=6)
    """The least number of details that a request leaves out."""
    train: int = Field(2000, ge=1)
    """Tasks to train on."""
    validation: int = Field(400, ge=1)
    """Tasks that choose checkpoints."""
    test: int = Field(400, ge=1)
    """Tasks that are touched once."""


@cache
def texts() -> dict[str, Any]:
    """Domains and slots with what is said of them."""
    held: dict[str, Any] = json.loads(
        files("kleash.tasks.envs").joinpath("world.json").read_text("utf8")
    )
    return held


def token(value: str) -> str:
    """A value as one word, for the token surface."""
    return value.lower().replace(" ", "_")


def vocabulary() -> list[str]:
    """Every word that the token surface uses, always in the same order."""
    slots = texts()["slots"]
    words = ["TASK", "GIVEN", "ASK", "STOP", "USER", "KNOWN", "NOPREF", "HUH", ";"]
    values = [token(value) for slot in slots.values() for value in slot["options"]]
    return [*words, *texts()["domains"], *slots, *dict.fromkeys(values)]


def importances(world: World) -> dict[tuple[str, str], int]:
    """How important each relevant slot is in its domain."""
    drawn = generator("intention world", world.seed)
    ranks = list(IMPORTANCES)
    return {
        (name, slot): ranks[drawn.choice(len(ranks), p=list(IMPORTANCES.values()))]
        for name, domain in texts()["domains"].items()
        for slot in domain["slots"]
    }


def world_tasks(world: World) -> list[IntentTask]:
    """As many different tasks for each split as the world asks for."""
    wanted = {"train": world.train, "validation": world.validation, "test": world.test}
    ranks = importances(world)
    found: dict[tuple[str, ...], IntentTask] = {}
    for number in range(20 * sum(wanted.values()) + 1000):
        if not any(wanted.values()):
            return list(found.values())
        task = _drawn(world, ranks, generator("intention task", world.seed, number))
        if meaning(task) not in found and wanted[task.split]:
            found[meaning(task)] = task
            wanted[task.split] -= 1
    raise ConfigError(
        f"the world is too small: {wanted} tasks are still missing; ask for fewer or widen it"
    )


def meaning(task: IntentTask) -> tuple[str, ...]:
    """What is asked for and answered, without its wording: a reworded task is no new one."""
    hidden = [f"{detail.id}?{detail.value}" for detail in task.missing_details]
    return (task.category, *(f"{slot}={value}" for slot, value in task.given.items()), *hidden)


def _drawn(world: World, ranks: dict[tuple[str, str], int], rng: np.random.Generator) -> IntentTask:
    names = list(texts()["domains"])[: world.domains]
    name = names[rng.integers(len(names))]
    domain = texts()["domains"][name]
    slots: list[str] = domain["slots"][: world.relevant]
    values = {slot: one_of(texts()["slots"][slot]["options"], rng) for slot in slots}
    shares = np.array(MISSING[: len(slots)])
    shares[: min(world.fewest, len(slots)) - 1] = 0
    count = 1 + rng.choice(len(shares), p=shares / shares.sum())
    hidden = sorted(rng.choice(len(slots), size=count, replace=False))
    missing = [slots[place] for place in hidden]
    given = {slot: values[slot] for slot in slots if slot not in missing}
    said = [f"{texts()['slots'][s]['said'].format(value=value)}." for s, value in given.items()]
    details = [
        _detail(slot, values[slot], ranks[name, slot], domain["noun"], rng) for slot in missing
    ]
    visible = " ".join([one_of(domain["requests"], rng), *said])
    fixed = {"category": name, "task": visible, "given": given, "missing_details": details}
    made = IntentTask.model_validate({"id": "new", "split": "train", **fixed})
    split = split_of(meaning(made), SHARES)
    return made.model_copy(update={"id": f"{name}-{made.content[:12]}", "split": split})


def _detail(slot: str, value: str, importance: int, noun: str, rng: np.random.Generator) -> Detail:
    held = texts()["slots"][slot]
    return Detail(
        id=slot,
        description=one_of(held["descriptions"], rng).format(noun=noun),
        importance=importance,
        inquiry=one_of(held["inquiries"], rng).format(noun=noun),
        options=tuple(held["options"]),
        value=value,
        terms=tuple(held["terms"]),
    )


def one_of(choices: Sequence[str], rng: np.random.Generator) -> str:
    """One of the choices, each as likely."""
    return choices[int(rng.integers(len(choices)))]


def world_content(tasks: Sequence[IntentTask]) -> str:
    """The hash of all tasks in their order."""
    return f"{key('tasks', *(f'{t.id} {t.split} {t.content}' for t in tasks)):032x}"
