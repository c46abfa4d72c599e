"""How fast a language agent plays, beside the plain way: `model.generate` for one turn after the
other.

The plain way waits in each turn for the slowest conversation, and reads every conversation anew.
Both give ids and log-probabilities, for groups of tries at the same task, as GRPO needs them. Both
must give the same when greedy before anything is timed; what is timed is sampled.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from kleash.seeds import generator, torch_generator

if TYPE_CHECKING:
    from kleash.models.engine import Engine
    from kleash.models.engine.own import OwnEngine

MOST = 8  # ids of a turn
LIMITS = (7, 16)  # turns: the embedded world's studies, and the environment's default
GAP = 1e-4  # nats, float32 summed in another order
Turn = tuple[tuple[int, ...], tuple[float, ...]]  # ids, and their log-probabilities


class Play:
    """A tiny policy, cold-started so that it speaks as it should, and tasks for it."""

    def __init__(self, tasks: int, group: int, updates: int, longest: int) -> None:
        from kleash.models.language.models import fresh
        from kleash.models.language.words import Words

        self.limit(longest)
        self.words = Words()
        self.tasks = self.gym.tasks("train")[:tasks]
        self.tries = [(task, number) for task in self.tasks for number in range(group)]
        self.model: Any = fresh(self.words.size, torch_generator("bench", "policy"))
        self._cold_start(updates)
        self.model.eval()

    def limit(self, turns: int) -> None:
        """Let conversations have at most so many turns."""
        from kleash.tasks.envs import gym

        self.gym = gym("intention", {"surface": "tokens", "limit": turns})
        self.slots = self.gym.surface.slots  # type: ignore[attr-defined]

    def _cold_start(self, updates: int) -> None:
        """Imitate well-formed turns about random slots."""
        import torch
        import torch.nn.functional as F

        rng = generator("bench", "cold start")
        adam = torch.optim.AdamW(self.model.parameters(), lr=5e-3, fused=True)
        for _ in range(updates):
            rows = [self._dialogue(rng) for _ in range(32)]
            longest = max(map(len, rows))
            ids = torch.tensor([row + [self.words.pad] * (longest - len(row)) for row in rows])
            logits = self.model(ids[:, :-1]).logits
            adam.zero_grad()
            torch.autograd.backward(F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten()))
            adam.step()

    def _dialogue(self, rng: Any) -> list[int]:
        """A conversation in which random slots are asked for."""
        from kleash.tasks.envs.contract import at_once

        env = self.gym.make(self.tasks[rng.integers(len(self.tasks))], seed=0, rollout=0)
        ids = self.words.opening("", [], env.start())
        while True:
            said = f"ASK {rng.choice(self.slots)} ;"
            step = at_once(env.step(said))
            ids += self.words.ids(said)
            if step.done:
                break
            ids += self.words.reply(step.observation)
        return ids

    def by_engine(self, engine: Engine, pass_number: int, *, greedy: bool) -> list[list[Turn]]:
        """Every conversation as fast as it goes."""

        async def one(task: Any, number: int) -> list[Turn]:
            env = self.gym.make(task, seed=0, rollout=number)
            key = None if greedy else (0, "bench", pass_number, task.id, number)
            talk = engine.talk(key, most=MOST)
            heard, turns = self.words.opening("", [], env.start()), []
            while True:
                said = await engine.say(talk, heard)
                turns.append((said.ids, said.logp))
                step = await env.step(self.words.text(said.ids))
                if step.done:
                    engine.forget(talk)
                    return turns
                heard = self.words.reply(step.observation)

        async def all_of_them() -> list[list[Turn]]:
            return await asyncio.gather(*(one(*each) for each in self.tries))

        return asyncio.run(all_of_them())

    def by_generate(self, *, greedy: bool) -> list[list[Turn]]:
        """Turn by turn, all conversations that still go on, each read from its beginning."""
        import torch

        from kleash.tasks.envs.contract import at_once

        envs = [self.gym.make(task, seed=0, rollout=number) for task, number in self.tries]
        ids = [self.words.opening("", [], env.start()) for env in envs]
        said: list[list[Turn]] = [[] for _ in envs]
        going = list(range(len(envs)))
        stop = next(iter(self.words.stops))
        while going:
            longest = max(len(ids[i]) for i in going)
            pads = [longest - len(ids[i]) for i in going]
            padded = [[self.words.pad] * n + ids[i] for n, i in zip(pads, going, strict=True)]
            seen = [[0] * n + [1] * (longest - n) for n in pads]
            with torch.no_grad():
                out = self.model.generate(
                    torch.tensor(padded),
                    attention_mask=torch.tensor(seen),
                    max_new_tokens=MOST,
                    do_sample=not greedy,
                    eos_token_id=stop,
                    pad_token_id=self.words.pad,
                    return_dict_in_generate=True,
                    output_logits=True,
                )
            made = out.sequences[:, longest:]
            logp = torch.stack(out.logits, 1).log_softmax(-1).gather(-1, made[:, :, None])
            still = []
            for i, row, likely in zip(going, made.tolist(), logp[:, :, 0].tolist(), strict=True):
                turn = row[: row.index(stop) + 1] if stop in row else row
                said[i].append((tuple(turn), tuple(likely[: len(turn)])))
                step = at_once(envs[i].step(self.words.text(turn)))
                if not step.done:
                    ids[i] += [*turn, *self.words.reply(step.observation)]
                    still.append(i)
            going = still
        return said


def gap(ours: list[list[Turn]], theirs: list[list[Turn]]) -> float:
    """The largest difference of log-probabilities; the ids must be the same."""
    if [[ids for ids, _ in turns] for turns in ours] != [
        [ids for ids, _ in turns] for turns in theirs
    ]:
        raise RuntimeError("the two ways say different things when greedy")
    flat = [[p for turns in way for _, logp in turns for p in logp] for way in (ours, theirs)]
    return float(max(abs(a - b) for a, b in zip(*flat, strict=True)))


def rollouts_bench(
    *,
    tasks: int = 16,
    group: int = 8,
    limits: Sequence[int] = LIMITS,
    updates: int = 150,
    rounds: int = 5,
) -> dict[str, Any]:
    """Tokens said per second of CPU by our engine and by `generate`, at each limit of turns."""
    import torch

    from kleash.models.engine.own import OwnEngine
    from kleash.train.rollout import one_way

    with one_way(), torch.random.fork_rng(devices=[]):
        play = Play(tasks, group, updates, max(limits))
        size = sum(weight.numel() for weight in play.model.parameters())
        found: dict[str, Any] = {
            "setting": f"{tasks} tasks, groups of {group}, {size:,} parameters, float32",
            "rounds": rounds,
        }
        for limit in limits:
            play.limit(limit)
            engine = OwnEngine(play.model, play.words.stops)
            found |= {f"{limit} turns: {k}": v for k, v in compared(play, engine, rounds).items()}
        return found


def compared(play: Play, engine: OwnEngine, rounds: int) -> dict[str, Any]:
    """Both ways in turns, after both said the same."""
    worst = gap(play.by_engine(engine, 0, greedy=True), play.by_generate(greedy=True))
    if not worst < GAP:
        raise RuntimeError(f"the two ways differ by {worst:.3g} nats in a log-probability")
    ways: dict[str, Callable[[int], list[list[Turn]]]] = {
        "engine": lambda number: play.by_engine(engine, number, greedy=False),
        "generate": lambda number: play.by_generate(greedy=False),
    }
    rate: dict[str, list[float]] = {name: [] for name in ways}
    turns: list[int] = []
    engine.ticks = 0
    for number in range(rounds):
        for name, way in ways.items():
            began = time.process_time()
            said = way(number)
            spent = time.process_time() - began
            rate[name].append(sum(len(ids) for each in said for ids, _ in each) / spent)
            turns += [len(each) for each in said]
    ratios = [o / p for o, p in zip(rate["engine"], rate["generate"], strict=True)]
    return {
        "turns per conversation": statistics.fmean(turns),
        "ticks per play": engine.ticks / rounds,
        "largest gap of log-probabilities, nats": worst,
        "engine tokens per second": statistics.median(rate["engine"]),
        "generate tokens per second": statistics.median(rate["generate"]),
        "ratio": statistics.median(ratios),
        "range of ratios": (min(ratios), max(ratios)),
    }
