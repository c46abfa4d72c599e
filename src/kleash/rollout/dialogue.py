"""Dialogues for a model that cannot talk yet: well-formed, and about nothing in particular."""

from __future__ import annotations

from typing import Any

from kleash.language.words import Speech
from kleash.rollout.agent import AgentWorld
from kleash.seeds import generator
from kleash.types import Turn


def example_dialogue(
    world: AgentWorld, speech: Speech, task: Any, draw: tuple[object, ...]
) -> list[Turn]:
    """A well-formed dialogue in which every action is drawn at random."""
    rng = generator("dialogue", *draw, task.id)
    env = world.gym.make(task, seed=world.recipe.seed, rollout=0)
    surface = world.gym.surface
    turns: list[Turn] = []
    heard = speech.opening(surface.instructions, surface.tools, env.start())

    async def talked() -> None:
        nonlocal heard
        while True:
            said = surface.example(rng)
            ids = tuple(speech.ids(said))
            turns.append(Turn(tuple(heard), ids, (0.0,) * len(ids)))
            step = await env.step(said)
            if step.done:
                return
            heard = speech.reply(step.observation)

    world.wait(talked())
    return turns
