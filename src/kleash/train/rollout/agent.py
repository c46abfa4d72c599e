"""Where a language agent acts: a gym, a way to speak, an engine; groups of played episodes.

Episodes advance independently. One that breaks is in no group; while nobody answers at an endpoint,
playing waits and then plays again what was lost. The file is long because a world, what is played
in it and what is made of that belong together.
"""

from __future__ import annotations

import asyncio
import copy
import hashlib
import math
import weakref
from collections.abc import Callable, Collection, Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch

from kleash.algo.credit import CREDITS, SCORES, to_go
from kleash.algo.grpo import ADVANTAGES, ROUNDING
from kleash.errors import ConfigError, DataError
from kleash.models.engine import Engine, engine_of
from kleash.models.language.models import CONTEXT, adapted, context_of, fresh, narrowed
from kleash.models.language.policy import LanguagePolicy
from kleash.models.language.words import Speech, Words
from kleash.runs.ledger import Ledger
from kleash.seeds import generator, torch_generator
from kleash.tasks.envs import gym
from kleash.tasks.envs.contract import EndpointDown, EpisodeBroken, beside
from kleash.tasks.envs.line import Line
from kleash.train.recipe import AgentRecipe
from kleash.train.rollout import Groups
from kleash.types import Episode, Turn

T = TypeVar("T")
SPLITS = ("train", "validation", "test")
WAIT = 5.0  # seconds between two looks at an endpoint that is down


class Last:
    """Shared by the worlds of one event loop: with the last of them the loop is closed."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        weakref.finalize(self, loop.close)


class AgentWorld:
    """The tasks, the user and the way to speak, for a recipe."""

    def __init__(
        self,
        recipe: AgentRecipe,
        ledger: Ledger,
        *,
        device: str = "cpu",
        progress: Callable[[int], None] = lambda count: None,
    ) -> None:
        self.recipe, self.ledger, self.device, self.progress = recipe, ledger, device, progress
        self.notice: Callable[[str], None] = lambda line: None
        self.gym = gym(recipe.env, recipe.gym, ledger=ledger)
        self.loop = asyncio.new_event_loop()
        weakref.finalize(self.gym, self.loop.close)  # worlds that share a gym share the loop
        self._last = Last(self.loop)
        self._loaded: tuple[Any, Speech] | None = None
        self._words = Words()
        self._hashes: dict[tuple[tuple[str, int, int], ...], str] = {}

    def with_recipe(self, recipe: AgentRecipe) -> AgentWorld:
        """The world of another recipe; tasks and a loaded model are shared where they are equal."""
        ours, theirs = ((r.env, r.gym, r.model) for r in (self.recipe, recipe))
        if ours != theirs:
            return AgentWorld(recipe, self.ledger, device=self.device, progress=self.progress)
        other = copy.copy(self)
        other.recipe = recipe
        return other

    @property
    def content(self) -> str:
        """The hash of the tasks and of what changes what a policy sees or earns."""
        return self.gym.content

    def by_content(self) -> dict[str, Any]:
        """The model's path as what lies there."""
        return {"model": self.model_content()}

    def model_content(self) -> str:
        """`tiny`, or the hash of a model's files."""
        if self.recipe.model == "tiny":
            return "tiny"
        path = Path(self.recipe.model)
        files = sorted(path.glob("*")) if path.is_dir() else [path]
        facts = [(str(f), f.stat().st_size, f.stat().st_mtime_ns) for f in files if f.is_file()]
        if (known := tuple(facts)) in self._hashes:
            return self._hashes[known]
        digest = hashlib.sha256()
        for file in files:
            if file.is_file():
                digest.update(f"{file.name}\0{file.stat().st_size}\0".encode())
                with file.open("rb") as handle:
                    digest.update(hashlib.file_digest(handle, "sha256").digest())
        return self._hashes.setdefault(known, digest.hexdigest())

    def facts(self) -> dict[str, Any]:
        """How many tasks there are and how they are spoken about."""
        return {
            "counts": {split: len(self.gym.tasks(split)) for split in SPLITS}
            | {"used": len(self.gym.tasks("train"))},
            "seeds": {"run": self.recipe.seed},
            "speech": self.speech.identity,
            "model": self.model_content(),
        }

    def state(self) -> dict[str, Any]:
        """What a checkpoint tells of how it was trained."""
        return {"speech": self.speech.identity}

    def tasks(self, split: str) -> list[Any]:
        """The tasks of a split in an order drawn once: the first N are a random N, and nested."""
        found = self.gym.tasks(split)
        order = generator("tasks", self.recipe.env, split).permutation(len(found))
        return [found[place] for place in order]

    def item_ids(self, split: str) -> list[str]:
        """The tasks of a split by their names, in the order they are measured."""
        return [task.id for task in self.tasks(split)]

    # --- the policy

    @property
    def speech(self) -> Speech:
        """How the model is spoken to."""
        return self._words if self.recipe.model == "tiny" else self.loaded()[1]

    def loaded(self) -> tuple[Any, Speech]:
        """The model at the recipe's path, read once."""
        if self._loaded is None:
            from kleash.models.language.chat import load_speech
            from kleash.models.language.models import load

            path = Path(self.recipe.model)
            self._loaded = load(path), load_speech(path)
        return self._loaded

    @property
    def context(self) -> int | None:
        """How many ids a conversation may have; none where the model does not say."""
        return CONTEXT if self.recipe.model == "tiny" else context_of(self.loaded()[0])

    def fits(self, ids: int) -> bool:
        """Whether the longest turn still fits behind so many ids."""
        return self.context is None or ids + self.recipe.turn_tokens <= self.context

    def fresh_policy(self) -> LanguagePolicy:
        """The embedded model with weights drawn by the seed, or the given one; with its adapter."""
        recipe, drawn = self.recipe, torch_generator("weights", self.recipe.seed)
        if recipe.model == "tiny":
            model = fresh(self.speech.size, drawn, **recipe.tiny.model_dump())
        else:
            model = copy.deepcopy(self.loaded()[0])
        narrowed(model, getattr(torch, recipe.scale.precision))
        if recipe.lora.rank:
            model = adapted(model, drawn, **recipe.lora.model_dump())
        return LanguagePolicy(model, temperature=recipe.temperature)

    def empty_policy(self) -> LanguagePolicy:
        """A policy to load weights into: an adapter's base is the given model's."""
        return self.fresh_policy()

    def engine(self, policy: LanguagePolicy) -> Engine:
        """Who samples from a policy."""
        return engine_of(self.recipe.engine, policy, self.speech, self.recipe.scale.places)

    # --- playing

    def play(self, engine: Engine, attempts: Sequence[Attempt]) -> list[Episode]:
        """Every episode that was asked for, in that order; whatever ends it early ends them all."""
        try:
            return self.wait(self.play_all(engine, attempts))
        except BaseException:
            self.wait(ended(asyncio.all_tasks(self.loop)))
            raise

    def wait(self, what: Coroutine[Any, Any, T]) -> T:
        """What comes of a coroutine in this world's loop."""
        gpu = self.device.startswith("cuda")
        stream = torch.cuda.current_stream(torch.device(self.device)) if gpu else None
        return beside(
            lambda: self.loop.run_until_complete(what),
            begin=None if stream is None else lambda: torch.cuda.set_stream(stream),
            end=self.stop,
        )

    def stop(self) -> None:
        """End what another thread plays here."""
        self.loop.call_soon_threadsafe(lambda: [t.cancel() for t in asyncio.all_tasks(self.loop)])

    async def play_all(self, engine: Engine, attempts: Sequence[Attempt]) -> list[Episode]:
        """All at once; those lost to an endpoint that is down are played again when it is back."""
        episodes: dict[int, Episode] = {}
        while missing := [place for place in range(len(attempts)) if place not in episodes]:
            played = await asyncio.gather(*(self.play_one(engine, attempts[at]) for at in missing))
            for place, episode in zip(missing, played, strict=True):
                if episode is not None:
                    episodes[place] = episode
            if len(episodes) < len(attempts):
                await self.until_back(engine, len(attempts) - len(episodes))
        return [episodes[place] for place in range(len(attempts))]

    async def until_back(self, engine: Engine, lost: int) -> None:
        """Wait for the user's endpoint, or for the server that samples, and say so."""
        for line in (getattr(self.gym, "endpoint", None), engine):
            if not isinstance(line, Line) or not line.down:
                continue
            where = line.where.url
            self.notice(f"nobody answers at {where}: {lost} episodes wait until it is back")
            while not await line.back():
                await asyncio.sleep(WAIT)
            self.notice(f"{where} is back: going on")

    async def play_one(self, engine: Engine, attempt: Attempt) -> Episode | None:
        """One conversation; None where nobody answers at all."""
        env = self.gym.make(attempt.task, seed=attempt.seed, rollout=attempt.rollout)
        surface, speech = self.gym.surface, self.speech
        talk = engine.talk(
            attempt.key, temperature=self.recipe.temperature, most=self.recipe.turn_tokens
        )
        turns: list[Turn] = []
        rewards: list[float] = []
        covered: list[tuple[str, ...]] = []
        texts = [env.start()]
        heard = speech.opening(surface.instructions, surface.tools, texts[0])
        held = len(heard)
        if not self.fits(held):
            raise ConfigError(
                f"{self.recipe.model} has room for {self.context} ids, and a conversation opens"
                f" with {held}: no turn of {self.recipe.turn_tokens} fits; lower turn_tokens"
            )
        try:
            while True:
                said = await engine.say(talk, heard)
                turns.append(Turn(tuple(heard), said.ids, said.logp))
                if not said.stopped:
                    env.cut()
                    rewards, covered = [*rewards, 0.0], [*covered, ()]
                    reason = "length"
                    break
                step = await env.step(speech.text(said.ids))
                rewards.append(step.reward)
                covered.append(step.covered)
                if step.done:
                    reason = str(step.stop_reason)
                    break
                texts.append(step.observation)
                heard = speech.reply(step.observation)
                held += len(said.ids) + len(heard)
                if not self.fits(held):
                    reason = "length"
                    break
        except EndpointDown:
            return None
        except EpisodeBroken as error:
            return Episode(attempt.task.id, tuple(turns), None, "broken", str(error))
        finally:
            engine.forget(talk)
        self.progress(1)
        return Episode(
            task=attempt.task.id,
            turns=tuple(turns),
            reward=math.fsum(rewards),
            stop_reason=reason,
            rewards=tuple(rewards),
            facts=env.metrics(),
            heard=tuple(texts),
            covered=tuple(covered),
        )


async def ended(tasks: Collection[asyncio.Task[Any]]) -> None:
    """Have these tasks end now, whatever they were doing."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@dataclass(frozen=True)
class Attempt:
    """An episode to play: its task, what names the user's draws, and what names the policy's."""

    task: Any
    seed: int
    rollout: int
    key: tuple[object, ...] | None
    """None plays greedily."""


def play_groups(
    engine: Engine,
    policy: LanguagePolicy,
    world: AgentWorld,
    tasks: Sequence[Any],
    draw: tuple[object, ...],
) -> Groups:
    """For each task a group of sampled episodes. Arms that share a seed share every draw."""
    return make_groups(policy, world.recipe, play_tasks(engine, world, tasks, draw))


def play_tasks(
    engine: Engine, world: AgentWorld, tasks: Sequence[Any], draw: tuple[object, ...]
) -> list[list[Episode]]:
    """The episodes of each task, whether they broke or not."""
    recipe = world.recipe
    attempts = [
        Attempt(task, recipe.seed, rollout, (recipe.seed, *draw, task.id, rollout))
        for task in tasks
        for rollout in range(recipe.group)
    ]
    played = world.play(engine, attempts)
    size = recipe.group
    return [played[i : i + size] for i in range(0, len(played), size)]


def make_groups(
    policy: LanguagePolicy, recipe: AgentRecipe, members: Sequence[Sequence[Episode]]
) -> Groups:
    """Groups from the episodes of each task."""
    whole = [[episode for episode in group if episode.reward is not None] for group in members]
    kept = [group for group in whole if len(group) >= 2]
    if not kept:
        why = first_error(members)
        raise DataError(f"none of {len(members)} groups has two episodes that did not break: {why}")
    flat = [episode for group in kept for episode in group]
    batch = policy.gather([episode.turns for episode in flat])
    sizes = torch.tensor([len(group) for group in kept], device=policy.device)
    group = torch.arange(len(kept), device=policy.device).repeat_interleave(sizes)
    gamma, credit = recipe.credit.gamma, recipe.credit.turn
    scores = [SCORES[recipe.credit.score](episode.rewards, gamma) for episode in flat]
    reward = torch.tensor(scores, dtype=torch.float64, device=policy.device)
    shares = CREDITS.get(credit)
    by_turn = [(shares or to_go)(episode.rewards, gamma) for episode in flat]
    value_ET = reward.new_zeros(len(flat), max(map(len, by_turn)))
    for row, values in enumerate(by_turn):
        value_ET[row, : len(values)] = torch.tensor(values, dtype=torch.float64)
    if shares is None:  # each turn against the same turn of the others; one that ended earns 0
        compare = ADVANTAGES[recipe.advantage]
        value_ET = torch.stack([compare(column, group) for column in value_ET.T], dim=1)
    value = value_ET[batch.episode, batch.turn]
    return Groups(
        batch=batch,
        episode=batch.episode,
        reward=reward,
        group=group,
        logp=torch.tensor(
            [logp for episode in flat for turn in episode.turns for logp in turn.logp],
            device=policy.device,
        ),
        broken=sum(map(len, members)) - sum(map(len, whole)),
        dropped=len(members) - len(kept),
        credit=value if shares is not None and credit != "equal" else None,
        own=value if shares is None else None,
        measured=measured(kept),
    )


def first_error(members: Sequence[Sequence[Episode]]) -> str:
    """Why the first broken episode broke."""
    errors = (episode.error for group in members for episode in group if episode.error)
    return next(errors, "all groups have one member")


def measured(groups: Sequence[Sequence[Episode]]) -> dict[str, float]:
    """What is logged of episodes: by name, the mean over all of them."""
    flat = [episode for group in groups for episode in group]
    turns = [turn for episode in flat for turn in episode.turns]
    said = sum(len(turn.choices) for turn in turns)
    whole = said + sum(len(turn.observation) for turn in turns)
    by_group = [[episode.reward or 0.0 for episode in group] for group in groups]
    alike = [math.isclose(min(r), max(r), rel_tol=ROUNDING, abs_tol=ROUNDING) for r in by_group]
    topped = [all(e.facts.get("reward_over_ceiling", 0) >= 1 for e in group) for group in groups]
    dead = [same and not top for same, top in zip(alike, topped, strict=True)]
    return episode_means(flat) | {
        "episode/reward": float(np.mean([episode.reward for episode in flat])),
        "response_length": said / len(flat),
        "sequence_length": whole / len(flat),
        "dead_groups": float(np.mean(dead)),
        "tokens": float(whole),
    }


def episode_means(episodes: Sequence[Episode]) -> dict[str, float]:
    """The mean of everything that environments tell of their episodes, and the share cut short."""
    names: dict[str, list[float]] = {}
    for episode in episodes:
        for name, value in episode.facts.items():
            names.setdefault(f"episode/{name}", []).append(value)
    cut = [episode.stop_reason in ("length", "malformed") for episode in episodes]
    means = {name: float(np.mean(values)) for name, values in names.items()}
    return means | {"episode/cut": float(np.mean(cut))}


# --- dialogues for a model that cannot talk yet


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
