"""Teach a model that can talk how turns of the text surface look, before GRPO.

    python scripts/teach_text.py MODEL FOLDER [UPDATES] [DEVICE]

It imitates dialogues about training tasks whose questions are drawn at random among the reference
questions of tasks of the same category: after that it writes lines that can be read and knows
nothing about what matters. All weights train; FOLDER is a Hugging Face folder for `model=FOLDER`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from kleash.models.language.chat import Chat, load_chat
from kleash.models.language.models import load
from kleash.models.language.policy import LanguagePolicy
from kleash.seeds import generator
from kleash.tasks.envs import gym
from kleash.tasks.envs.contract import at_once
from kleash.types import Turn

DIALOGUES, ENDS, RATE = 16, 0.1, 5e-5  # of an update, share of turns that finish, learning rate


def dialogue(
    world: Any, task: Any, asked: dict[str, list[str]], speech: Chat, rng: Any
) -> list[Turn]:
    """One conversation with random questions."""
    env, surface = world.make(task, seed=0, rollout=0), world.surface
    heard, turns = speech.opening(surface.instructions, surface.tools, env.start()), []
    while True:
        said = "[finish]" if rng.random() < ENDS else f"[action] {rng.choice(asked[task.category])}"
        ids = tuple(speech.ids(said))
        turns.append(Turn(tuple(heard), ids, (0.0,) * len(ids)))
        step = at_once(env.step(said))
        if step.done:
            return turns
        heard = speech.reply(step.observation)


def main(model: str, folder: str, updates: str = "100", device: str = "cpu") -> None:
    """Imitate, say the loss now and then, save."""
    import torch

    world, speech = gym("intention", {"limit": 6}), load_chat(model)
    policy = LanguagePolicy(load(model).to(device))
    tasks, rng = world.tasks("train"), generator("teach text")
    asked: dict[str, list[str]] = {}
    for task in tasks:
        asked.setdefault(task.category, []).extend(d.inquiry for d in task.missing_details)
    asked = {name: sorted(set(texts)) for name, texts in asked.items()}
    adam = torch.optim.AdamW(policy.parameters(), lr=RATE)
    for update in range(int(updates)):
        some = [tasks[at] for at in rng.choice(len(tasks), DIALOGUES, replace=False)]
        batch = policy.gather([dialogue(world, task, asked, speech, rng) for task in some])
        loss = -policy.judge(batch).logp.mean()
        adam.zero_grad()
        torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        adam.step()
        if update % 10 == 0 or update == int(updates) - 1:
            sys.stdout.write(f"update {update}: {loss.item():.3f} nats per token\n")
    Path(folder).mkdir(parents=True, exist_ok=True)
    policy.model.save_pretrained(folder)
    speech.tokenizer.save_pretrained(folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
