"""The phases of a run, epoch by epoch, batch by batch: rollout, update, log, validate, save.

Every draw is named by seed, phase and epoch, and a checkpoint is written after each epoch: a run
that was killed goes on from the last one and ends with the same bytes. Whatever is read from a
clock goes to `timings.jsonl` alone. What differs between the families is asked of them by name
(`rollouts`, `validate` …); a family never changes the order of things. The file is long because the
whole order of a run can be read in it from top to bottom.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from kleash.algo import guard
from kleash.algo.kl import measure
from kleash.algo.policy import Judged, Reference
from kleash.runs.run import Run
from kleash.stats import StopDecision, early_stop
from kleash.train.checkpoints import TrainerState, empty_moments
from kleash.train.optimizer import Optimizer
from kleash.train.recipe import PHASES, Phase
from kleash.train.rollout import Groups, load_checkpoint
from kleash.train.update import LeashedPolicy
from kleash.types import Heard, Listener


def checkpoint_name(phase: Phase, epoch: int) -> str:
    """`supervised-2`, `rce-5`, and plain `epoch-3` in the phase that is compared."""
    return f"{'epoch' if phase == 'grpo' else phase}-{epoch}"


def epochs_done(last: Mapping[str, Any] | None, phase: Phase) -> int:
    """How many epochs of a phase came before the last checkpoint, itself included."""
    if last is None or PHASES.index(last["phase"]) < PHASES.index(phase):
        return 0
    return int(last["epoch"]) if last["phase"] == phase else 10**9


@dataclass
class Rollout:
    """Groups to learn from; of groups met again also what was said of them when they were new."""

    groups: Groups
    logp_old: Tensor | None = None
    ref_logits: Tensor | None = None
    record: Mapping[str, float] = field(default_factory=dict)
    update_seconds: float = 0.0
    """Set once the update is made."""


class Trainer:
    """What one run holds while it trains, and the order in which it goes on."""

    SCORE = ""
    """What validation is about."""
    MARGIN = 0.0
    """The improvement of it that early stopping looks for."""

    def __init__(self, run: Run, recipe: Any, world: Any, policy: Any, listen: Listener) -> None:
        self.run, self.recipe, self.world, self.listen = run, recipe, world, listen
        self.policy = policy.to(world.device)
        self.optimizer: Optimizer
        self.before = 0  # steps of the phases that are done
        self.leashed: LeashedPolicy | None = None
        self.pinned = False  # whether the reference lies in the machine's memory
        self.moments: Literal["device", "host"] = "device"  # and where the optimizer's do

    # --- what a family fills in

    def lr(self, phase: Phase) -> float:
        """The learning rate of a phase."""
        raise NotImplementedError

    def steps_in_epoch(self) -> int:
        """How many batches an epoch of GRPO has."""
        raise NotImplementedError

    def prepare(self, phase: Phase) -> None:
        """What is done to the policy before a phase has its optimizer."""

    def ready(self, phase: Phase) -> None:
        """What else is made when a phase has its optimizer and its leash."""

    def teach(self, phase: Phase, epoch: int, epochs: int) -> dict[str, Any]:
        """An epoch of a phase before GRPO; its numbers."""
        raise NotImplementedError

    def rollouts(self, leashed: LeashedPolicy, epoch: int) -> Iterator[Rollout]:
        """The batches of an epoch of GRPO; when the next is asked for, this one was learnt."""
        raise NotImplementedError

    def epoch_facts(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """What else is told of an epoch of GRPO."""
        return {}

    def probe(self, reference: Reference) -> dict[str, float]:
        """KL on what every arm shares."""
        raise NotImplementedError

    def validate(self) -> dict[str, float]:
        """What the policy now reaches on the validation split."""
        raise NotImplementedError

    def why_broken(self) -> str:
        """The error of one of the answers or episodes that broke when it was last validated."""
        raise NotImplementedError

    def speed(self, trained: float) -> dict[str, float]:
        """How fast an epoch was, from the seconds its training took."""
        raise NotImplementedError

    def collapsed(self) -> bool:
        """Whether signs of collapse end the run."""
        return False

    def tensors_of(self, batch: Any) -> dict[str, Tensor]:
        """What is saved of a batch that broke."""
        raise NotImplementedError

    def close(self) -> None:
        """End what goes on beside training, however it ended."""

    def drop_collapsed(self) -> None:
        """Drop checkpoints from after the policy collapsed."""

    # --- the order of a run

    def run_phases(self) -> None:
        """Every epoch that is not done yet."""
        saved = self.run.checkpoints()
        self.run.rewind(saved[-1] if saved else None)
        self.run.slim()
        last = self.run.state(saved[-1]) if saved else None
        if saved:
            weights = self.run.load(saved[-1], trainer=False).weights
            guard.load_strictly(self.policy, weights, source=saved[-1])
        try:
            for phase, epochs in self.recipe.phases():
                done = epochs_done(last, phase)
                if done >= epochs:
                    continue
                self.begin(phase, epochs)
                if done:
                    self.restore(saved[-1])
                for epoch in range(done + 1, epochs + 1):
                    if phase == "grpo" and (self.collapsed() or self.no_longer_better()):
                        break
                    self.one_epoch(phase, epoch, epochs)
            if self.recipe.early_stop == "on":
                self.keep_best()
        finally:
            self.close()
        self.drop_collapsed()

    def begin(self, phase: Phase, epochs: int) -> None:
        """A fresh optimizer; for GRPO also the reference, taken after warm-up and never before."""
        self.prepare(phase)
        self.before = self.steps_before(phase)
        if hasattr(self, "optimizer"):
            self.optimizer.close()
        learner = self.learner()
        self.optimizer = Optimizer(
            learner,
            self.lr(phase),
            self.recipe.clip.norm,
            self.save_batch,
            moments=self.moments,
            whole=None if learner is self.policy else self.policy,
        )
        if phase == "grpo":
            total = self.steps_in_epoch() * epochs * self.recipe.updates
            self.leashed = LeashedPolicy(
                self.recipe, learner, self.reference(), self.optimizer, total
            )
        self.ready(phase)

    def one_epoch(self, phase: Phase, epoch: int, epochs: int) -> None:
        """All batches of an epoch, its line, its checkpoint."""
        began, worked = time.monotonic(), time.process_time()
        if phase == "grpo":
            assert self.leashed is not None
            record = self.grpo_epoch(self.leashed, epoch)
            record |= self.probe(self.leashed.reference)
        else:
            record = self.teach(phase, epoch, epochs)
        trained = time.monotonic() - began
        record |= self.validate()
        broken, answered = record["validation/broken"], record["validation/n"]
        self.note(guard.few_broken(broken, broken + answered, why=self.why_broken()))
        line = {"kind": "epoch", "phase": phase, "epoch": epoch, "step": self.optimizer.updates}
        self.run.log(line | record)
        times = {"seconds": time.monotonic() - began} | self.speed(trained)
        times |= {"cpu_seconds": time.process_time() - worked}  # the same on a busy machine
        self.run.time({"phase": phase, "epoch": epoch} | times)
        self.save(phase, epoch)
        self.tell(phase, epoch, epochs, line | record | times)

    def grpo_epoch(self, leashed: LeashedPolicy, epoch: int) -> dict[str, Any]:
        """Every batch sampled, learnt and logged; the epoch's numbers over all of them."""
        totals, seen, leash = Totals(), KlSeen(), self.recipe.leash
        for rollout in self.rollouts(leashed, epoch):
            groups, began = rollout.groups, time.monotonic()
            record, judged = leashed.update_on_batch(groups, rollout.logp_old, rollout.ref_logits)
            rollout.update_seconds = time.monotonic() - began
            record |= rollout.record
            if rollout.logp_old is None:
                seen.add(judged, groups)
            totals.add(groups.size, **record)
            line = {"kind": "step", "epoch": epoch, "step": self.optimizer.updates} | record
            self.run.log(line)
            self.tell("grpo", epoch, self.recipe.epochs, line)
        means = totals.means() | {"leash/coefficient": leashed.controller.coefficient}
        self.note(guard.enough_signal(means["groups_with_signal"], totals.weight))
        if epoch == 1:
            self.note(
                guard.coefficient_unit(self.recipe.advantage, leash.form, scaled=leash.scaled)
            )
        guard.reference_held(leashed.reference.declared, leashed.reference.fingerprint())
        record = {"leash/form": leash.form, **means, **seen.measured()}
        return record | self.epoch_facts(record)

    def learner(self) -> Any:
        """What the optimizer moves."""
        return self.policy

    def reference(self) -> Reference:
        """What the leash is tied to from here on."""
        leash, tied = self.recipe.leash, self.policy
        if leash.reference == "path":
            tied = self.world.empty_policy().to(self.world.device)
            weights = load_checkpoint(Path(leash.reference_path))[0].weights
            guard.load_strictly(tied, weights, source=leash.reference_path)
        return Reference(
            tied,
            leash.reference,
            every=leash.reference_every,
            decay=leash.reference_decay,
            pinned=self.pinned,
        )

    # --- what is logged

    def note(self, finding: guard.Finding | None) -> None:
        """Put a finding among the metrics."""
        if finding is not None:
            record = {"kind": "finding", "step": self.optimizer.updates} | asdict(finding)
            self.run.log(record)
            self.tell("finding", 0, 0, record)

    def tell(self, phase: str, epoch: int, epochs: int, record: Mapping[str, Any]) -> None:
        """Let the listener hear a line."""
        self.listen(Heard(phase, epoch, epochs, record, self.before + self.optimizer.updates))

    def epoch_lines(self) -> list[dict[str, Any]]:
        """The lines of all epochs so far."""
        return [line for line in self.run.metrics() if line["kind"] == "epoch"]

    def steps_before(self, phase: Phase) -> int:
        """How many steps the other phases took: each counts its own, a listener counts on."""
        lines = [line for line in self.epoch_lines() if line["phase"] != phase]
        return sum({line["phase"]: int(line["step"]) for line in lines}.values())

    # --- what is saved

    def save(self, phase: Phase, epoch: int) -> None:
        """A checkpoint after an epoch."""
        state: dict[str, Any] = {
            "phase": phase,
            "epoch": epoch,
            "step": self.optimizer.updates,
            **self.world.state(),
        }
        if self.leashed is not None:
            state["controller"] = self.leashed.controller.state()
        weights, trainer = self.policy.state_dict(), self.trainer_tensors()
        self.run.save(checkpoint_name(phase, epoch), weights, trainer, state)
        self.run.slim()

    def trainer_tensors(self) -> dict[str, Tensor]:
        """What must be kept besides weights: the optimizer's moments and the reference."""
        held = {} if self.leashed is None else self.leashed.reference.state_dict()
        return self.optimizer.tensors() | {f"reference.{name}": held[name] for name in held}

    def restore(self, name: str) -> None:
        """Optimizer, reference and controller as they were in the middle of this phase."""
        found, state = TrainerState(self.run, name), self.run.state(name)
        if any(key.startswith("optimiser.") for key in found.names):
            empty_moments(self.optimizer.adamw)
        found.fill(self.trainer_tensors())
        self.optimizer.updates = state["step"]
        if self.leashed is not None:
            reference = self.leashed.reference
            reference.load_state_dict(reference.state_dict())
            self.leashed.controller.load(state["controller"])

    def save_batch(self, batch: Any) -> str:
        """Write the batch that broke, and the weights it broke, beside the run; where."""
        from safetensors.torch import save_file

        path = self.run.path / f"broken-step-{self.optimizer.updates}.safetensors"
        weights = {f"weights.{name}": t for name, t in self.policy.state_dict().items()}
        tensors = self.tensors_of(batch) | weights
        save_file(
            {name: t.detach().cpu().contiguous().clone() for name, t in tensors.items()}, path
        )
        return str(path)

    # --- early stopping

    def early_stop(self) -> StopDecision | None:
        """The rule of docs/method.md on GRPO's validation accuracies so far."""
        lines = [line for line in self.epoch_lines() if line["phase"] == "grpo"]
        if self.recipe.early_stop == "off" or not lines:
            return None
        scored = f"validation/{self.SCORE}"
        noise = float(np.mean([line[f"{scored}_se"] for line in lines]))
        return early_stop([line[scored] for line in lines], noise, self.MARGIN)

    def no_longer_better(self) -> bool:
        """Whether early stopping ends the run now."""
        decision = self.early_stop()
        return decision is not None and decision.verdict == "stop"

    def keep_best(self) -> None:
        """Keep GRPO's last checkpoint and the centre of the best window; drop the others."""
        decision = self.early_stop()
        if decision is None or decision.checkpoint is None:
            return
        own = [name for name in self.run.checkpoints() if name.startswith("epoch-")]
        for name in own[:-1]:
            if name != f"epoch-{decision.checkpoint + 1}":
                self.run.drop(name)


# --- numbers of batches gathered into numbers of an epoch


class Totals:
    """Means over an epoch, each batch weighing as many queries as it has."""

    SUMMED = ("broken", "dropped_groups")
    LARGEST = ("max_advantage",)

    def __init__(self) -> None:
        self.rows: list[tuple[int, dict[str, float]]] = []

    def add(self, weight: int, **values: float) -> None:
        """One batch."""
        self.rows.append((weight, values))

    @property
    def weight(self) -> int:
        """How many queries there were."""
        return sum(weight for weight, _ in self.rows)

    def means(self) -> dict[str, float]:
        """Every number over all batches: a mean, except what is counted or is a maximum."""
        columns: dict[str, list[tuple[int, float]]] = defaultdict(list)
        for weight, values in self.rows:
            for name, value in values.items():
                columns[name].append((weight, value))
        return {name: self.overall(name, column) for name, column in columns.items()}

    def overall(self, name: str, column: list[tuple[int, float]]) -> float:
        """One number from the batches' numbers."""
        if name in self.SUMMED:
            return sum(value for _, value in column)
        if name in self.LARGEST:
            return max(value for _, value in column)
        total = sum(weight for weight, _ in column)
        return math.fsum(weight * value for weight, value in column) / total


class KlSeen:
    """What was measured on fresh samples, choice by choice, before each batch's first update."""

    def __init__(self) -> None:
        self.parts: list[dict[str, Tensor]] = []
        self.episodes = 0

    def add(self, judged: Judged, groups: Groups) -> None:
        """One batch of fresh samples."""
        assert judged.logp_ref is not None
        assert judged.exact_kl is not None
        assert judged.forward_kl is not None
        self.parts.append(
            {
                "episode": groups.episode + self.episodes,
                "logp": judged.logp.detach(),
                "logp_ref": judged.logp_ref,
                "exact_kl": judged.exact_kl.detach(),
                "forward_kl": judged.forward_kl.detach(),
            }
        )
        self.episodes += len(groups.reward)

    def measured(self) -> dict[str, float]:
        """Every KL of the epoch's samples; nothing where none were fresh."""
        if not self.parts:
            return {}
        whole = {name: torch.cat([part[name] for part in self.parts]) for name in self.parts[0]}
        return measure(whole.pop("episode"), **whole)
