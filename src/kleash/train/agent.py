"""How a language agent is trained: well-formed dialogues imitated, then GRPO on played groups."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from kleash import guard
from kleash.engine.paged import SHARE
from kleash.errors import DataError
from kleash.kl import by_label, measure
from kleash.language.flops import Work, forward, peak, update
from kleash.language.policy import Batch, LanguagePolicy, causal
from kleash.language.shape import KINDS, Shape
from kleash.policy import Judged
from kleash.recipe import PROBE_TASKS, AgentRecipe, Phase
from kleash.rollout import Groups
from kleash.rollout.agent import AgentWorld, Asked, episode_means, grouped
from kleash.rollout.dialogue import example_dialogue
from kleash.seeds import generator
from kleash.train.collapse import Collapse
from kleash.train.loop import Trainer
from kleash.train.packs import PackedLeash, make_room, packing_of, recomputed
from kleash.train.player import Player
from kleash.train.totals import Totals
from kleash.train.update import Leashed
from kleash.types import Episode, Heard, Turn

FEW_TASKS = 200  # below, the noise of validation is as large as most effects
IMITATED = 32  # dialogues in an update of the supervised phase


class AgentTrainer(Trainer):
    """An agent's phases."""

    broke = ""
    """The error of an episode that broke when it was last validated."""
    SCORE, MARGIN = "reward", 0.02
    LEASHED = PackedLeash
    recipe: AgentRecipe
    world: AgentWorld
    policy: LanguagePolicy

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.policy.packing = packing_of(self.recipe.scale, self.policy)
        self.pinned = self.recipe.scale.reference == "pinned"
        self.moments = self.recipe.scale.moments
        self.player = Player(self.world, self.policy, self.recipe.sampler.staleness)
        self.seconds: dict[str, float] = {}
        self.waited = 0.0
        self.tokens: dict[str, float] = {}
        self.work: dict[str, Work] = {}
        self.world.notice = self.say

    def begin(self, phase: Phase, epochs: int) -> None:
        """Batches are judged in parts; what memory is left then says what is worked out again."""
        super().begin(phase, epochs)
        if self.policy.packing is not None and self.recipe.scale.recompute < 0:
            share = 1 - SHARE if self.player.staleness else 1.0  # who plays meanwhile keeps pages
            again = recomputed(self.policy, self.policy.packing, share)
            self.policy.packing = replace(self.policy.packing, recompute=again)
        if self.leashed is not None:
            most = self.recipe.part_tokens
            self.leashed.split = lambda batch: self.policy.parts(batch, most)
            self.player.follow()  # a server knows nothing of a checkpoint yet

    def rate(self, phase: Phase) -> float:
        """Each phase has its own."""
        return self.recipe.lr if phase == "grpo" else self.recipe.supervised.lr

    def steps_in_epoch(self) -> int:
        """As many as were asked for."""
        return self.recipe.steps

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
        self.player.follow()
        return totals.means()

    def imitate(self, batch: Batch) -> tuple[float, float]:
        """One update towards saying these dialogues; its loss and the gradient's norm."""
        loss = -self.policy.judge(batch).logp.mean()
        return loss.item(), self.descent.down([loss], batch)

    # --- GRPO

    def learnt(
        self, leashed: Leashed, epoch: int
    ) -> Iterator[tuple[Groups, dict[str, float], Judged | None]]:
        """Have a group played for every task of a batch, and learn from it."""
        if epoch == 1:
            self.note(few_tasks(self.recipe.validation.tasks))
        self.seconds, self.waited = {"rollout": 0.0, "update": 0.0}, 0.0
        self.tokens = {"rollout": 0.0, "update": 0.0}
        self.work = {"rollout": Work(0, 0), "update": Work(0, 0)}
        forget_peak(self.world.device)
        steps, before = self.recipe.steps, (epoch - 1) * self.recipe.steps
        wanted = [(self.batch_of(before + step), ("grpo", epoch, step)) for step in range(steps)]
        asked = time.monotonic()
        for played in self.player.batches(wanted):
            groups = grouped(self.policy, self.recipe, played.members)
            began = time.monotonic()
            if not self.player.staleness:  # or somebody speaks
                make_room(self.player.engine, self.policy)
            record, judged = leashed.learn(groups)
            self.player.learnt()
            record["staleness"] = played.staleness
            self.waited += began - asked
            self.seconds["rollout"] += played.seconds
            self.seconds["update"] += time.monotonic() - began
            self.tokens["rollout"] += float(len(groups.episode))
            self.tokens["update"] += groups.measured["tokens"]
            for phase, work in self.work_on(groups.batch).items():
                self.work[phase] += work
            yield groups, record, judged
            asked = time.monotonic()

    def grpo_epoch(self, leashed: Leashed, epoch: int) -> dict[str, Any]:
        """Also whether who sampled was far from who learnt."""
        record = super().grpo_epoch(leashed, epoch)
        if self.recipe.sampler.cap:
            self.note(guard.sampler_near(record["kl/sampler/k1/choice/mean"]))
        return record

    def batch_of(self, step: int) -> list[Any]:
        """The tasks of a step: all are met once before any is met again."""
        tasks = self.world.tasks("train")
        size = min(self.recipe.batch, len(tasks))
        per_pass = len(tasks) // size
        order = generator("order", self.recipe.seed, "grpo", step // per_pass)
        first = (step % per_pass) * size
        return [tasks[at] for at in order.permutation(len(tasks))[first : first + size]]

    # --- what is measured

    @torch.no_grad()
    def probe(self, leashed: Leashed) -> dict[str, float]:
        """KL and entropy of fresh samples on tasks and noise that every arm shares; by turn too."""
        seed = self.recipe.seed
        asked = [
            Asked(task, seed, 0, (seed, "probe", task.id, 0))
            for task in self.world.tasks("validation")[:PROBE_TASKS]
        ]
        played = [e for e in self.player.play(asked) if e.reward is not None]
        if not played:
            raise DataError(f"all of {len(asked)} probe episodes broke")
        batch = self.policy.gather([episode.turns for episode in played])
        judged = self.policy.judge(batch, leashed.reference.policy)
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
        asked = self.recipe.validation
        scored = self.scored("validation", asked.tasks)
        found = {f"validation/{name}": value for name, value in scored.items()}
        if asked.training:
            beside = self.scored("train", asked.training)
            found |= {f"training_tasks/{name}": beside[name] for name in ("reward", "reward_se")}
            found["overfit"] = beside["reward"] - scored["reward"]
        return found

    def why_broken(self) -> str:
        """As whoever was asked says it."""
        return self.broke

    def scored(self, split: str, count: int) -> dict[str, float]:
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
        if not self.seconds:
            return {}
        found = {f"{phase}_seconds": seconds for phase, seconds in self.seconds.items()}
        for phase, seconds in self.seconds.items():
            found[f"{phase}_share"] = seconds / trained
            found[f"{phase}_tokens_per_second"] = self.tokens[phase] / seconds
        if self.player.staleness:
            found |= {"waiting_seconds": self.waited, "waiting_share": self.waited / trained}
        most = peak(self.world.device)
        if most is not None and self.work["update"].usual:
            whole = self.work["rollout"] + self.work["update"]
            spent = {**self.seconds, "step": trained}
            for phase, work in {**self.work, "step": whole}.items():
                for formula, share in work.mfu(spent[phase], most).items():
                    found[f"speed/mfu/{phase}/{formula}"] = share
        return found | peak_memory(self.world.device)

    # --- collapse

    def stop_decision(self) -> str:
        """Early stopping's, or that the run shows signs of collapse and was told to stop then."""
        lines = list(self.run.metrics())
        found = Collapse.of(lines).signs()
        for sign in found:
            if sign.message not in {line.get("message") for line in lines}:
                self.note(sign)
        if found and self.recipe.collapse != "warn":
            return "stop"
        return super().stop_decision()

    def run_phases(self) -> None:
        """After the last epoch, what came after the best one is dropped if that was asked for."""
        try:
            super().run_phases()
        finally:
            self.player.close()
        if self.recipe.collapse == "roll_back":
            seen = Collapse.of(list(self.run.metrics()))
            if seen.signs():
                best = seen.best()
                for name in self.run.checkpoints():
                    if name.startswith("epoch-") and int(name.removeprefix("epoch-")) > best:
                        self.run.drop(name)

    # --- what is kept

    def say(self, line: str) -> None:
        """Tell whoever listens; nothing is written, because when it happens is not the run's."""
        record = {"kind": "finding", "code": "endpoint", "severity": "warning", "message": line}
        self.listen(Heard("finding", 0, 0, record, self.before + self.descent.step))

    def keep_batch(self, batch: Batch) -> str:
        """Write the batch that broke, and the weights it broke, beside the run."""
        from safetensors.torch import save_file

        path = self.run.path / f"broken-step-{self.descent.step}.safetensors"
        tensors = {
            "ids": batch.ids,
            "lengths": torch.tensor(batch.lengths),
            "place": batch.place,
            "chosen": batch.chosen,
            "episode": batch.episode,
            **{f"weights.{name}": t for name, t in self.policy.state_dict().items()},
        }
        save_file({name: t.detach().cpu().clone() for name, t in tensors.items()}, path)
        return str(path)


def read_whole(turns: Sequence[Turn]) -> list[Turn]:
    """A dialogue as one turn, every id but the first a choice."""
    first, *rest = [number for turn in turns for number in (*turn.observation, *turn.choices)]
    return [Turn((first,), tuple(rest), (0.0,) * len(rest))]


def passes_of(tasks: Sequence[Any], seed: int, passes: int) -> list[Asked]:
    """Each task once and greedily, or as many sampled passes as asked for."""
    if not passes:
        return [Asked(task, seed, 0, None) for task in tasks]
    return [
        Asked(task, seed, each, (seed, "validation", task.id, each))
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
