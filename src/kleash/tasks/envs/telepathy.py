"""Telepathy: name what the user thinks of, after questions that it answers with yes or no.

The embedded user matches the words of a question with one of the attributes it knows of. What it
does not know it says so; it never guesses.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from pydantic import Field

from kleash.config import Config
from kleash.runs.ledger import Ledger
from kleash.seeds import key
from kleash.tasks.envs.contract import Step, TurnEnv, ended, split_of
from kleash.tasks.envs.matching import Matcher, identity, stem, tokens
from kleash.tasks.envs.surfaces import Action, TextSurface

SHARES = {"train": 0.6, "validation": 0.2, "test": 0.2}
NEGATIONS = {"not", "never", "isn", "doesn", "don", "cannot", "without", "no"}
GOAL = "The user thinks of a thing, an animal or a plant. Find out which, and name it."


class TelepathyOptions(Config):
    """What a telepathy gym is made of."""

    limit: int = Field(20, ge=1)
    """The most turns of an episode."""


@dataclass(frozen=True)
class Thought:
    """A task: what the user thinks of."""

    id: str
    split: str
    entity: str


@cache
def _world() -> dict[str, Any]:
    text = files("kleash.tasks.envs").joinpath("telepathy.json").read_text("utf8")
    held: dict[str, Any] = json.loads(text)
    return held


@cache
def _matcher() -> Matcher:
    described = [(a["description"], (), ()) for a in _world()["attributes"].values()]
    return Matcher("", described)


@cache
def _names() -> dict[str, str]:
    return {stem(entity): entity for entity in _world()["entities"]}


class TelepathyEnv(TurnEnv):
    """One game. A right name earns 1, a wrong one nothing, and either ends it."""

    def __init__(self, task: Thought, surface: TextSurface, limit: int) -> None:
        super().__init__(surface, limit)
        self._entity = task.entity

    def opening(self) -> str:
        """That there is something to find."""
        return "I am thinking of something. Ask me what can be answered with yes or no."

    async def play(self, action: Action) -> Step:
        """A question, or the name."""
        named = {_names()[word] for word in map(stem, tokens(action.content)) if word in _names()}
        if action.choice == "answer":
            right = named == {self._entity}
            said = "Yes, that is it." if right else "No, that is not it."
            return ended(Step(said, 1.0 if right else 0.0), "finished")
        if named:  # a name in a question would be a guess that costs nothing
            return Step("Name it with [answer] if you think you know it.", 0.0)
        if NEGATIONS & set(tokens(action.content)):
            return Step("Please ask without a negation.", 0.0)
        meant = _matcher().covered(action.content)
        if len(meant) != 1:
            return Step("I cannot say." if not meant else "Please ask one thing at a time.", 0.0)
        attribute = list(_world()["attributes"])[meant[0]]
        holds = attribute in _world()["entities"][self._entity]
        return Step("Yes." if holds else "No.", 0.0)


class Telepathy:
    """Things to think of. No model is asked, so the ledger stays unused."""

    def __init__(
        self, ledger: Ledger | None = None, options: TelepathyOptions | None = None
    ) -> None:
        self.options = options or TelepathyOptions()
        self.surface = TextSurface(
            GOAL, ("action", "answer"), frozenset(), "ask one question with the answer yes or no"
        )
        self._tasks = [
            Thought(
                f"telepathy-{key('thought', entity):032x}"[:22], split_of((entity,), SHARES), entity
            )
            for entity in _world()["entities"]
        ]

    @property
    def content(self) -> str:
        """The hash of the world and the options."""
        world = json.dumps(_world(), sort_keys=True)
        return f"{key('telepathy', world, identity(), self.options.model_dump_json()):032x}"

    def tasks(self, split: str) -> list[Thought]:
        """The things of a split."""
        return [task for task in self._tasks if task.split == split]

    def make(self, task: Thought, *, seed: int, rollout: int) -> TelepathyEnv:
        """A fresh game; nothing in it is drawn."""
        return TelepathyEnv(task, self.surface, self.options.limit)
