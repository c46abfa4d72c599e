"""How a language agent is trained: well-formed dialogues imitated, then GRPO on played groups.

The file is long because all that is told of an agent while it trains (validation, speed, signs of
collapse) stands beside what it is told of.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kleash.algo import collapse, guard
from kleash.algo.guard import Finding
from kleash.algo.kl import by_label, measure
from kleash.algo.policy import Reference
from kleash.errors import DataError
from kleash.models.engine.paged import SHARE
from kleash.models.language.flops import Work, forward, peak, update
from kleash.models.language.policy import Batch, LanguagePolicy, causal
from kleash.models.language.shape import KINDS, Shape
from kleash.seeds import generator
from kleash.train import ranks
from kleash.train.loop import Rollout, Totals, Trainer
from kleash.train.player import Player, make_room, packing_of, recomputed
from kleash.train.recipe import PROBE_TASKS, AgentRecipe, Phase
from kleash.train.rollout.agent import (
    AgentWorld,
    Attempt,
    episode_means,
    example_dialogue,
    make_groups,
)
from kleash.train.update import LeashedPolicy
from kleash.types import Episode, Heard, Turn

FEW_TASKS = 200  # below, the noise of validation is as large as most effects
IMITATED = 32  # dialogues in an update of the supervised phase


class AgentTrainer(Trainer):
    """An agent's phases."""

    broke = ""
    """The error of an episode that broke when it was last validated."""
    SCORE, MARGIN = "reward", 0.02
    recipe: AgentRecipe
    world: AgentWorld
    policy: LanguagePolicy

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.policy.packing = packing_of(self.recipe.scale, self.policy)
        self.pinned = self.recipe.scale.reference == "pinned"
        self.moments = self.recipe.scale.moments
        self.player = Player(self.world, self.policy, self.recipe.sampler.staleness)
        self.spent: dict[str, Spent] = {}
        self.waited = 0.0
        self.world.notice = self.say

    def lr(self, phase: Phase) -> float:
        """Each phase has its own."""
        return self.recipe.lr if phase == "grpo" else self.recipe.supervised.lr

    def steps_in_epoch(self) -> int:
        """As many as were asked for."""
        return self.recipe.steps

    def ready(self, phase: Phase) -> None:
        """Batches are judged in micro-batches; what memory is left says what is worked out again.

        All ranks work out as many layers again: they meet in each.
        """
        packing = self.policy.packing
        if packing is not None:
            again = packing.recompute
            if self.recipe.scale.recompute < 0:
                share = 1 - SHARE if self.player.staleness else 1.0  # who plays meanwhile has pages
                again = recomputed(self.policy, packing, share)
            packing = replace(packing, recompute=max(ranks.all_gather(again)))
            self.policy.packing = self.optimizer.policy.packing = packing  # type: ignore[assignment]
        if self.leashed is not None:
            self.leashed.split = self.micro_batches
            self.player.sync_weights()  # a server knows nothing of a checkpoint yet

    def micro_batches(self, batch: Batch) -> Sequence[tuple[Any, ...]]:
        """A batch in parts, and which choices each holds."""
        return self.policy.parts(batch, self.recipe.part_tokens)

    # --- supervised

    def teach(self, phase: Phase, epoch: int, epochs: int) -> dict[str, Any]:
        """Cross-entropy of dialogues whose actions are drawn at random, token by token.

        What the user says is learnt too: a model that has read such dialogues knows what matters
        where, and GRPO can find it.
        """
        recipe, tasks = self.recipe, self.world.tasks("train")
        rng, totals = generator("order", recipe.seed, phase, epoch), Totals()
        count = recipe.supervised.dialogues
        order = rng.permutation(np.resize(np.arange(len(tasks)), count)).tolist()
        speech = self.world.speech
        for start in range(0, count, IMITATED):
            some = [
                example_dialogue(self.world, speech, tasks[at], (recipe.seed, epoch, start + nth))
                for nth, at in enumerate(order[start : start + IMITATED])
            ]
            batch = self.policy.gather([read_whole(turns) for turns in some])
            loss, norm = self.imitate(batch)
            totals.add(len(some), loss=loss, grad_norm=norm)
        self.player.sync_weights()
        return totals.means()

    def imitate(self, batch: Batch) -> tuple[float, float]:
        """One update towards saying these dialogues; its loss and the gradient's norm."""
        loss = -self.policy.judge(batch).logp.mean()
        return loss.item(), self.optimizer.step([loss], batch)

    # --- GRPO

    def rollouts(self, leashed: LeashedPolicy, epoch: int) -> Iterator[Rollout]:
        """A group played for every task of a batch."""
        if epoch == 1:
            self.note(few_tasks(self.recipe.validation.tasks))
        self.spent, self.waited = {"rollout": Spent(), "update": Spent()}, 0.0
        forget_peak(self.world.device)
        steps, before = self.recipe.steps, (epoch - 1) * self.recipe.steps
        wanted = [(self.tasks_of(before + step), ("grpo", epoch, step)) for step in range(steps)]
        waiting_since = time.monotonic()
        for played in self.player.batches(wanted):
            groups = make_groups(self.policy, self.recipe, played.members)
            began = time.monotonic()
            self.waited += began - waiting_since
            if not self.player.staleness:  # or somebody speaks
                make_room(self.player.engine, self.policy)
            made_room = time.monotonic() - began
            rollout = Rollout(groups, record={"staleness": played.staleness})
            yield rollout
            learnt = time.monotonic()
            self.player.after_update()
            told = time.monotonic() - learnt
            seconds = made_room + rollout.update_seconds + told
            work = self.work_on(groups.batch)
            self.spent["rollout"].add(played.seconds, len(groups.episode), work.get("rollout"))
            self.spent["update"].add(seconds, groups.measured["tokens"], work.get("update"))
            waiting_since = time.monotonic()

    def epoch_facts(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """Nothing more; but whether who sampled was far from who learnt is noted."""
        if self.recipe.sampler.cap:
            self.note(guard.sampler_near(record["kl/sampler/k1/choice/mean"]))
        return {}

    def tasks_of(self, step: int) -> list[Any]:
        """The tasks of a step: all are met once before any is met again."""
        tasks = self.world.tasks("train")
        size = min(self.recipe.batch, len(tasks))
        per_pass = len(tasks) // size
        order = generator("order", self.recipe.seed, "grpo", step // per_pass)
        first = (step % per_pass) * size
        return [tasks[at] for at in order.permutation(len(tasks))[first : first + size]]

    # --- what is measured

    @torch.no_grad()
    def probe(self, reference: Reference) -> dict[str, float]:
        """KL and entropy of fresh samples on tasks and noise that every arm shares; by turn too."""
        seed = self.recipe.seed
        attempts = [
            Attempt(task, seed, 0, (seed, "probe", task.id, 0))
            for task in self.world.tasks("validation")[:PROBE_TASKS]
        ]
        played = [e for e in self.player.play(attempts) if e.reward is not None]
        if not played:
            raise DataError(f"all of {len(attempts)} probe episodes broke")
        batch = self.policy.gather([episode.turns for episode in played])
        judged = self.policy.judge(batch, reference.policy)
        assert judged.exact_kl is not None
        found = measure(
            batch.episode,
            logp=judged.logp,
            logp_ref=judged.logp_ref,
            exact_kl=judged.exact_kl,
            forward_kl=judged.forward_kl,
        )
        found |= by_label({"kl/ref/exact": judged.exact_kl}, batch.turn, "turn")
        found["entropy"] = judged.entropy.mean().item()
        first = [episode.turns[0].choices for episode in played]
        found["distinct"] = len(set(first)) / len(first)
        return {f"probe/{name}": value for name, value in found.items()}

    def validate(self) -> dict[str, float]:
        """Greedy play, or sampled passes, on validation tasks and on as fixed training tasks."""
        wanted = self.recipe.validation
        scored = self.score_split("validation", wanted.tasks)
        found = {f"validation/{name}": value for name, value in scored.items()}
        if wanted.training:
            beside = self.score_split("train", wanted.training)
            found |= {f"training_tasks/{name}": beside[name] for name in ("reward", "reward_se")}
            found["overfit"] = beside["reward"] - scored["reward"]
        return found

    def why_broken(self) -> str:
        """As whoever was asked says it."""
        return self.broke

    def score_split(self, split: str, count: int) -> dict[str, float]:
        """Means over the first tasks of a split."""
        passes = self.recipe.validation.passes
        tasks = self.world.tasks(split)[:count]
        episodes = self.player.play(passes_of(tasks, self.recipe.seed, passes))
        whole = [episode for episode in episodes if episode.reward is not None]
        self.broke = next((episode.error for episode in episodes if episode.error), "")
        by_task = task_means(whole)
        if len(by_task) < 2:
            why = f": {self.broke}" if self.broke else ""
            raise DataError(f"{len(episodes) - len(whole)} of {len(episodes)} episodes broke{why}")
        spread = float(np.std(list(by_task.values()), ddof=1))
        return episode_means(whole) | {
            "reward": float(np.mean(list(by_task.values()))),
            "reward_se": spread / math.sqrt(len(by_task)),
            "n": len(by_task),
            "broken": len(episodes) - len(whole),
        }

    def work_on(self, batch: Batch) -> dict[str, Work]:
        """The arithmetic of playing a batch, and of learning from it with its reference."""
        config = causal(self.policy.model).config
        if config.model_type not in KINDS:
            return {}
        shape, said = Shape.of(config), len(batch)
        once = forward(shape, batch.lengths, said)
        learnt = update(shape, batch.lengths, said, rank=self.recipe.lora.rank)
        return {"rollout": once, "update": learnt * self.recipe.updates + once}

    def speed(self, trained: float) -> dict[str, float]:
        """By phase of a step its seconds, share and tokens in a second; then MFU and memory.

        MFU by both formulas of `language.flops`, where the device's peak is known. What is neither
        playing nor updating (logging, the probe of KL) is the rest of the shares. Where a copy
        plays meanwhile the shares overlap, and waiting is what updates waited for it.
        """
        if not self.spent:
            return {}
        found = {}
        for phase, spent in self.spent.items():
            found[f"{phase}_seconds"] = spent.seconds
            found[f"{phase}_share"] = spent.seconds / trained
            found[f"{phase}_tokens_per_second"] = spent.tokens / spent.seconds
        if self.player.staleness:
            found |= {"waiting_seconds": self.waited, "waiting_share": self.waited / trained}
        most = peak(self.world.device)
        if most is not None and self.spent["update"].work.usual:
            whole = self.spent["rollout"].work + self.spent["update"].work
            for phase, spent in {**self.spent, "step": Spent(trained, 0.0, whole)}.items():
                for formula, share in spent.work.mfu(spent.seconds, most).items():
                    found[f"speed/mfu/{phase}/{formula}"] = share
        return found | peak_memory(self.world.device)

    # --- collapse

    def collapsed(self) -> bool:
        """Signs of collapse are noted, each once; they end the run where that was asked for."""
        lines = list(self.run.metrics())
        found = Collapse.of(lines).signs()
        for sign in found:
            if sign.message not in {line.get("message") for line in lines}:
                self.note(sign)
        return bool(found) and self.recipe.collapse != "warn"

    def drop_collapsed(self) -> None:
        """What came after the best epoch is dropped if that was asked for."""
        seen = Collapse.of(list(self.run.metrics()))
        if self.recipe.collapse != "roll_back" or not seen.signs():
            return
        best = seen.best()
        for name in self.run.checkpoints():
            if name.startswith("epoch-") and int(name.removeprefix("epoch-")) > best:
                self.run.drop(name)

    # --- what is told and saved

    def say(self, line: str) -> None:
        """Tell whoever listens; nothing is written, because when it happens is not the run's."""
        record = {"kind": "finding", "code": "endpoint", "severity": "warning", "message": line}
        self.listen(Heard("finding", 0, 0, record, self.before + self.optimizer.updates))

    def tensors_of(self, batch: Batch) -> dict[str, Tensor]:
        """Its ids and choices."""
        return {
            "ids": batch.ids,
            "lengths": torch.tensor(batch.lengths),
            "place": batch.place,
            "chosen": batch.chosen,
            "episode": batch.episode,
        }

    def close(self) -> None:
        """Nobody plays any more."""
        self.player.close()


@dataclass
class Spent:
    """What a part of an epoch's steps took."""

    seconds: float = 0.0
    tokens: float = 0.0
    work: Work = field(default_factory=lambda: Work(0, 0))

    def add(self, seconds: float, tokens: float, work: Work | None) -> None:
        """One batch more."""
        self.seconds += seconds
        self.tokens += float(tokens)
        if work is not None:
            self.work += work


def read_whole(turns: Sequence[Turn]) -> list[Turn]:
    """A dialogue as one turn, every id but the first a choice."""
    first, *rest = [number for turn in turns for number in (*turn.observation, *turn.choices)]
    return [Turn((first,), tuple(rest), (0.0,) * len(rest))]


def passes_of(tasks: Sequence[Any], seed: int, passes: int) -> list[Attempt]:
    """Each task once and greedily, or as many sampled passes as asked for."""
    if not passes:
        return [Attempt(task, seed, 0, None) for task in tasks]
    return [
        Attempt(task, seed, each, (seed, "validation", task.id, each))
        for task in tasks
        for each in range(passes)
    ]


def task_means(episodes: Sequence[Episode]) -> dict[str, float]:
    """By task, the mean reward of its episodes."""
    found: dict[str, list[float]] = {}
    for episode in episodes:
        if episode.reward is not None:
            found.setdefault(episode.task, []).append(episode.reward)
    return {task: float(np.mean(rewards)) for task, rewards in found.items()}


def few_tasks(tasks: int) -> guard.Finding | None:
    """Says what few validation tasks cannot tell."""
    if tasks >= FEW_TASKS:
        return None
    return guard.Finding(
        "few-tasks",
        "warning",
        f"{tasks} validation tasks: with rewards that spread by 0.8 their mean is known to"
        f" ±{1.96 * 0.8 / math.sqrt(tasks):.2f} only; {FEW_TASKS} or more are advised",
    )


def forget_peak(device: str) -> None:
    """From here on the largest use of a GPU's memory is counted anew."""
    if device.startswith("cuda"):
        torch.cuda.reset_peak_memory_stats(device)


def peak_memory(device: str) -> dict[str, float]:
    """The most GiB that tensors held on a GPU since the epoch began, and what was reserved."""
    if not device.startswith("cuda"):
        return {}
    return {
        "peak_memory": torch.cuda.max_memory_allocated(device) / 2**30,
        "reserved_memory": torch.cuda.max_memory_reserved(device) / 2**30,
    }


# --- signs of collapse: the rules are `kleash.algo.collapse`'s

UNKNOWN = collapse.Reward(np.zeros(0, dtype=bool), np.zeros(0, dtype=bool))  # not asked for here
NOTHING: collapse.Seen = (np.zeros(0, dtype=bool), np.zeros(0), np.zeros(0))


@dataclass(frozen=True)
class Collapse:
    """Signs of collapse in a run's lines: steps and epochs of GRPO, oldest first."""

    steps: Sequence[Mapping[str, Any]]
    epochs: Sequence[Mapping[str, Any]]

    @classmethod
    def of(cls, lines: Sequence[Mapping[str, Any]]) -> Collapse:
        """From all lines of a run."""
        return cls(
            [line for line in lines if line["kind"] == "step"],
            [line for line in lines if line["kind"] == "epoch" and line["phase"] == "grpo"],
        )

    def signs(self) -> list[Finding]:
        """Every sign there is now."""
        rewards, errors = (
            self.values(self.epochs, f"validation/{name}") for name in ("reward", "reward_se")
        )
        dead, valid = "dead_groups", "episode/valid_actions"
        rules = {
            ("dead groups", "{:.0%} of groups have equal rewards", "{:.0%}"): (
                collapse.dead_groups(self.values(self.steps, dead), UNKNOWN)
            ),
            ("valid actions", "{:.0%} of actions can be read", "{:.0%}"): (
                collapse.unreadable(self.values(self.steps, valid), UNKNOWN)
            ),
            ("validation", "reward {:.2f}, twice below", "{:.2f}"): (
                collapse.fallen_by_errors(rewards, errors) if len(rewards) else NOTHING
            ),
        }
        return [
            Finding(
                "collapse",
                "warning",
                f"signs of collapse in {what}: {now.format(level[-1])}, from"
                f" {was.format(before[-1])}; lower lr, raise leash.coefficient, or go on from an"
                " earlier checkpoint",
            )
            for (what, now, was), (there, level, before) in rules.items()
            if len(there) and there[-1]
        ]

    def best(self) -> int:
        """The epoch with the highest validation reward."""
        rewards = self.values(self.epochs, "validation/reward")
        return int(self.epochs[int(np.argmax(rewards))]["epoch"])

    @staticmethod
    def values(lines: Sequence[Mapping[str, Any]], name: str) -> collapse.Floats:
        """A quantity of the steps or epochs."""
        return np.array([line[name] for line in lines if name in line], dtype=np.float64)
