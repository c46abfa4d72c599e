"""Users that need no model: one that matches words, and one that is asked for slots by name.

A user says which details a question covers and what it replies. It is told the uncovered details in
order to judge, and never speaks of one that the question does not cover.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from kleash.tasks.envs.intents import Detail, IntentTask
from kleash.tasks.envs.matching import Matcher
from kleash.tasks.envs.world import one_of, token

UNKNOWN = (
    "I have no preference about that.",
    "That does not matter to me.",
    "I leave that to you.",
)
NEW = ("{said}.", "I would say: {said}.", "Sure: {said}.")
AGAIN = ("As I said: {said}.", "I mentioned that: {said}.")


@dataclass(frozen=True)
class Heard:
    """What a user made of a question: ids of details that it newly covers, as the user lists them,
    and the reply."""

    covered: tuple[str, ...]
    reply: str


class User(Protocol):
    """Whoever left something out."""

    async def hear(
        self, question: str, task: IntentTask, known: Collection[str], rng: np.random.Generator
    ) -> Heard:
        """Judge and answer a question; `known` holds the ids that are covered already."""


class RuleUser:
    """Matches the words of the question with those of the details; needs nothing else."""

    def __init__(self, task: IntentTask) -> None:
        details = [(d.description, d.options, d.terms) for d in task.missing_details]
        self._matcher = Matcher(task.task, details)

    async def hear(
        self, question: str, task: IntentTask, known: Collection[str], rng: np.random.Generator
    ) -> Heard:
        """Cover what the words fit best; say again what was covered before."""
        # Matched against all details: what was said before draws its questions still.
        meant = [task.missing_details[place] for place in self._matcher.covered(question)]
        fresh = [detail for detail in meant if detail.id not in known]
        if fresh:
            return Heard(tuple(d.id for d in fresh), one_of(NEW, rng).format(said=_said(fresh)))
        if meant:
            return Heard((), one_of(AGAIN, rng).format(said=_said(meant)))
        return Heard((), one_of(UNKNOWN, rng))


class SlotUser:
    """The user of the token surface: asked for slots by name."""

    async def hear(
        self, question: str, task: IntentTask, known: Collection[str], rng: np.random.Generator
    ) -> Heard:
        """`USER slot value …`: KNOWN for what is covered or given, NOPREF for what is neither."""
        missing = {detail.id: detail for detail in task.missing_details}
        covered: list[str] = []
        reply = ["USER"]
        for slot in dict.fromkeys(question.split()):
            if slot in known or slot in task.given:
                reply += [slot, "KNOWN"]
            elif slot in missing:
                reply += [slot, token(missing[slot].value)]
                covered.append(slot)
            else:
                reply += [slot, "NOPREF"]
        return Heard(tuple(covered), " ".join([*reply, ";"]))


def _said(details: Sequence[Detail]) -> str:
    return "; ".join(f"{d.description.lower()}: {d.value}" for d in details)
