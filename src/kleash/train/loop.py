"""The phases of a run, epoch by epoch.

Every draw is named by seed, phase and epoch, and a checkpoint is written after each epoch: a run
that was killed goes on from the last one and ends with the same bytes. Whatever is read from a
clock goes to `timings.jsonl` alone.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import numpy as np
from torch import Tensor

from kleash import guard
from kleash.policy import Judged, Reference
from kleash.recipe import Phase
from kleash.rollout import Groups, load_checkpoint
from kleash.runs import Run
from kleash.stats import StopDecision, early_stop
from kleash.train.descent import Descent
from kleash.train.pieces import Kept
from kleash.train.totals import KlSeen, Totals
from kleash.train.update import Leashed
from kleash.types import Heard, Listener


def checkpoint_name(phase: Phase, epoch: int) -> str:
    """`supervised-2`, `rce-5`, and plain `epoch-3` in the phase that is compared."""
    return f"{'epoch' if phase == 'grpo' else phase}-{epoch}"


class Trainer:
    """What one run holds while it trains. How a family does its part is in its own file."""

    SCORE = ""
    """What validation is about."""
    MARGIN = 0.0
    """The improvement of it that early stopping looks for."""
    LEASHED = Leashed
    """Who makes the updates of the GRPO phase."""
    DESCENT = Descent
    """Who makes one."""

    def __init__(
        self,
        run: Run,
        recipe: Any,
        world: Any,
        policy: Any,
        listen: Listener,
    ) -> None:
        self.run, self.recipe, self.world, self.listen = run, recipe, world, listen
        self.policy = policy.to(world.device)
        self.descent: Descent
        self.before = 0  # steps of the phases that are done
        self.leashed: Leashed | None = None
        self.pinned = False  # whether the reference lies in the machine's memory
        self.moments: Literal["device", "host"] = "device"  # and where the optimiser's do

    # --- what a family fills in

    def rate(self, phase: Phase) -> float:
        """The learning rate of a phase."""
        raise NotImplementedError

    def steps_in_epoch(self) -> int:
        """How many batches an epoch of GRPO has."""
        raise NotImplementedError

    def teach(self, phase: Phase, epoch: int, epochs: int) -> dict[str, Any]:
        """An epoch of a phase before GRPO; its numbers."""
        raise NotImplementedError

    def learnt(
        self, leashed: Leashed, epoch: int
    ) -> Iterator[tuple[Groups, dict[str, float], Judged | None]]:
        """The batches of an epoch of GRPO: each with its numbers and, if fresh, its judging."""
        raise NotImplementedError

    def probe(self, leashed: Leashed) -> dict[str, float]:
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

    def keep_batch(self, batch: Any) -> str:
        """Write the batch that broke beside the run; where."""
        raise NotImplementedError

    # --- phases

    def run_phases(self) -> None:
        """Every epoch that is not done yet."""
        saved = self.run.checkpoints()
        self.run.rewind(saved[-1] if saved else None)
        self.run.slim()
        last = self.run.state(saved[-1]) if saved else None
        if saved:
            kept = self.run.load(saved[-1], trainer=False)
            guard.load_strictly(self.policy, kept.weights, source=saved[-1])
        for phase, epochs in self.recipe.phases():
            done = epochs_done(last, phase)
            if done >= epochs:
                continue
            self.begin(phase, epochs)
            if done:
                self.restore(saved[-1])
            for epoch in range(done + 1, epochs + 1):
                if phase == "grpo" and self.stop_decision() == "stop":
                    break
                self.one_epoch(phase, epoch, epochs)
        if self.recipe.early_stop == "on":
            self.keep_best()

    def begin(self, phase: Phase, epochs: int) -> None:
        """A fresh optimiser; for GRPO also the reference, taken after warm-up and never before."""
        self.before = self.steps_before(phase)
        if hasattr(self, "descent"):
            self.descent.close()
        learner = self.learner()
        self.descent = self.DESCENT(
            learner,
            self.rate(phase),
            self.recipe.clip.norm,
            self.keep_batch,
            moments=self.moments,
        )
        if phase == "grpo":
            self.leashed = self.LEASHED(
                self.recipe,
                learner,
                self.reference(),
                self.descent,
                total=self.steps_in_epoch() * epochs * self.recipe.updates,
            )

    def learner(self) -> Any:
        """What the optimiser moves."""
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

    def one_epoch(self, phase: Phase, epoch: int, epochs: int) -> None:
        """All batches of an epoch, its line, its checkpoint."""
        began, worked = time.monotonic(), time.process_time()
        if phase == "grpo":
            assert self.leashed is not None
            record = self.grpo_epoch(self.leashed, epoch) | self.probe(self.leashed)
        else:
            record = self.teach(phase, epoch, epochs)
        trained = time.monotonic() - began
        record |= self.validate()
        broken, answered = record["validation/broken"], record["validation/n"]
        self.note(guard.few_broken(broken, broken + answered, why=self.why_broken()))
        line = {"kind": "epoch", "phase": phase, "epoch": epoch, "step": self.descent.step}
        self.run.log(line | record)
        times = {"seconds": time.monotonic() - began} | self.speed(trained)
        times |= {"cpu_seconds": time.process_time() - worked}  # the same on a busy machine
        self.run.time({"phase": phase, "epoch": epoch} | times)
        self.save(phase, epoch)
        self.tell(phase, epoch, epochs, line | record | times)

    def grpo_epoch(self, leashed: Leashed, epoch: int) -> dict[str, Any]:
        """Every batch learnt and logged; the epoch's numbers over all of them."""
        totals, seen = Totals(), KlSeen()
        for groups, record, judged in self.learnt(leashed, epoch):
            if judged is not None:
                seen.add(judged, groups)
            totals.add(groups.size, **record)
            line = {"kind": "step", "epoch": epoch, "step": self.descent.step} | record
            self.run.log(line)
            self.tell("grpo", epoch, self.recipe.epochs, line)
        means = totals.means() | {"leash/coefficient": leashed.controller.coefficient}
        self.note(guard.enough_signal(means["groups_with_signal"], totals.weight))
        leash = self.recipe.leash
        if epoch == 1:
            self.note(
                guard.coefficient_unit(self.recipe.advantage, leash.form, scaled=leash.scaled)
            )
        reference = leashed.reference
        guard.reference_held(reference.declared, reference.fingerprint())
        return {"leash/form": leash.form, **means, **seen.measured()}

    # --- what is kept

    def note(self, finding: guard.Finding | None) -> None:
        """Put a finding among the metrics."""
        if finding is not None:
            record = {"kind": "finding", "step": self.descent.step} | asdict(finding)
            self.run.log(record)
            self.tell("finding", 0, 0, record)

    def tell(self, phase: str, epoch: int, epochs: int, record: Mapping[str, Any]) -> None:
        """Let the listener hear a line."""
        self.listen(Heard(phase, epoch, epochs, record, self.before + self.descent.step))

    def steps_before(self, phase: Phase) -> int:
        """How many steps the other phases took: each counts its own, a listener counts on."""
        lines = [line for line in self.run.metrics() if line["kind"] == "epoch"]
        ends = {line["phase"]: int(line["step"]) for line in lines if line["phase"] != phase}
        return sum(ends.values())

    def save(self, phase: Phase, epoch: int) -> None:
        """A checkpoint after an epoch."""
        trainer = self.trainer_tensors()
        state: dict[str, Any] = {
            "phase": phase,
            "epoch": epoch,
            "step": self.descent.step,
            **self.world.state(),
        }
        if self.leashed is not None:
            state["controller"] = self.leashed.controller.state()
        self.run.save(checkpoint_name(phase, epoch), self.policy.state_dict(), trainer, state)
        self.run.slim()

    def trainer_tensors(self) -> dict[str, Tensor]:
        """What must be kept besides weights: the optimiser's moments and the reference."""
        held = {} if self.leashed is None else self.leashed.reference.state_dict()
        return self.descent.tensors() | {f"reference.{name}": held[name] for name in held}

    def restore(self, name: str) -> None:
        """Optimiser, reference and controller as they were in the middle of this phase."""
        kept, state = Kept(self.run, name).tensors(), self.run.state(name)
        self.descent.load(kept, state["step"])
        if self.leashed is not None:
            names = [key for key in kept if key.startswith("reference.")]
            self.leashed.reference.load_state_dict(
                {key.removeprefix("reference."): kept[key] for key in names}
            )
            self.leashed.controller.load(state["controller"])

    # --- early stopping

    def early_stop(self) -> StopDecision | None:
        """The rule of docs/method.md on GRPO's validation accuracies so far."""
        lines = [
            line
            for line in self.run.metrics()
            if line["kind"] == "epoch" and line["phase"] == "grpo"
        ]
        if self.recipe.early_stop == "off" or not lines:
            return None
        scored = f"validation/{self.SCORE}"
        noise = float(np.mean([line[f"{scored}_se"] for line in lines]))
        return early_stop([line[scored] for line in lines], noise, self.MARGIN)

    def stop_decision(self) -> str:
        """What early stopping says now."""
        decision = self.early_stop()
        return "go on" if decision is None else decision.verdict

    def keep_best(self) -> None:
        """Keep GRPO's last checkpoint and the centre of the best window; drop the others."""
        decision = self.early_stop()
        if decision is None or decision.checkpoint is None:
            return
        own = [name for name in self.run.checkpoints() if name.startswith("epoch-")]
        for name in own[:-1]:
            if name != f"epoch-{decision.checkpoint + 1}":
                self.run.drop(name)


def epochs_done(last: Mapping[str, Any] | None, phase: Phase) -> int:
    """How many epochs of a phase came before the last checkpoint, itself included."""
    order = ("supervised", "rce", "grpo")
    if last is None or order.index(last["phase"]) < order.index(phase):
        return 0
    return int(last["epoch"]) if last["phase"] == phase else 10**9
