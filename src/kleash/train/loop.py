"""The phases of a run, epoch by epoch.

Every draw is named by seed, phase and epoch, and a checkpoint is written after each epoch: a run
that was killed goes on from the last one and ends with the same bytes. Whatever is read from a
clock goes to `timings.jsonl` alone.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from kleash import guard
from kleash.grpo import group_mean
from kleash.kl import episode_sum
from kleash.policy import Reference
from kleash.recipe import Phase, Recipe
from kleash.rollout import (
    Bought,
    World,
    best_pointers,
    buy_proposals,
    empty_selector,
    fresh_selector,
    load_checkpoint,
    proposal_groups,
    sample_groups,
)
from kleash.runs import Run
from kleash.seeds import generator
from kleash.selector import Pointers
from kleash.stats import StopDecision, early_stop
from kleash.train.offline import Offline, joined
from kleash.train.totals import KlSeen, Totals
from kleash.train.update import Descent, Leashed
from kleash.train.watch import probe, validation
from kleash.types import Heard, Listener

VALIDATION_PROPOSALS = 100
MARGIN = 0.01  # the improvement in validation accuracy that early stopping looks for


def checkpoint_name(phase: Phase, epoch: int) -> str:
    """`supervised-2`, `rce-5`, and plain `epoch-3` in the phase that is compared."""
    return f"{'epoch' if phase == 'grpo' else phase}-{epoch}"


class Trainer:
    """What one run holds while it trains."""

    def __init__(
        self,
        run: Run,
        recipe: Recipe,
        world: World,
        base: Mapping[str, Tensor] | None,
        listen: Listener,
    ) -> None:
        self.run, self.recipe, self.world, self.listen = run, recipe, world, listen
        if base is None:
            self.policy = fresh_selector(recipe, world.width)
        else:
            self.policy = empty_selector(recipe, world.width)
            guard.load_strictly(self.policy, base, source=recipe.start)
        self.policy.to(world.device)
        self.bought: dict[str, Bought] = {}
        self.descent: Descent
        self.before = 0  # steps of the phases that are done
        self.leashed: Leashed | None = None
        self.offline: Offline | None = None
        self.tied: dict[str, Tensor] = {}

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
        rates = {"supervised": self.recipe.supervised.lr, "rce": self.recipe.rce.lr}
        if phase == "grpo":
            self.policy.freeze(self.recipe.freeze)
        self.descent = Descent(
            self.policy, rates.get(phase, self.recipe.lr), self.recipe.clip.norm, self.keep_batch
        )
        if phase == "grpo":
            batches = math.ceil(len(self.world.queries("train")) / self.recipe.batch)
            self.leashed = Leashed(
                self.recipe,
                self.policy,
                self.reference(),
                self.descent,
                total=batches * epochs * self.recipe.updates,
            )
            if self.recipe.source == "offline":
                self.offline = Offline(self.world, self.proposed("train"), self.policy)

    def reference(self) -> Reference:
        """What the leash is tied to from here on."""
        leash, tied = self.recipe.leash, self.policy
        if leash.reference == "path":
            tied = empty_selector(self.recipe, self.world.width).to(self.world.device)
            weights = load_checkpoint(Path(leash.reference_path))[0].weights
            guard.load_strictly(tied, weights, source=leash.reference_path)
        return Reference(
            tied, leash.reference, every=leash.reference_every, decay=leash.reference_decay
        )

    def one_epoch(self, phase: Phase, epoch: int, epochs: int) -> None:
        """All batches of an epoch, its line, its checkpoint."""
        began = time.monotonic()
        if phase == "supervised":
            record = self.supervised_epoch(epoch)
        elif phase == "rce":
            record = self.rce_epoch(epoch, epochs)
        else:
            assert self.leashed is not None
            record = self.grpo_epoch(self.leashed, epoch)
            record |= probe(self.policy, self.leashed.reference.policy, self.world)
        trained = time.monotonic() - began
        record |= validation(self.policy, self.world, self.proposed("validation"))
        broken, answered = record["validation/broken"], record["validation/n"]
        self.note(guard.few_broken(broken, broken + answered))
        line = {"kind": "epoch", "phase": phase, "epoch": epoch, "step": self.descent.step}
        self.run.log(line | record)
        rate = len(self.world.queries("train")) / trained
        times = {"seconds": time.monotonic() - began, "queries_per_second": rate}
        self.run.time({"phase": phase, "epoch": epoch} | times)
        self.save(phase, epoch)
        self.tell(phase, epoch, epochs, line | record | times)

    def batches(self, phase: Phase, epoch: int) -> Iterator[list[int]]:
        """The training queries in this epoch's order, some at a time."""
        count = len(self.world.queries("train"))
        order = generator("order", self.recipe.seed, phase, epoch).permutation(count).tolist()
        for start in range(0, count, self.recipe.batch):
            yield order[start : start + self.recipe.batch]

    def proposed(self, split: str) -> Bought:
        """The proposals of a split, answered; asked for once."""
        if split not in self.bought:
            count = len(self.world.queries(split))
            most = count if split == "train" else min(count, VALIDATION_PROPOSALS)
            bought = self.bought[split] = buy_proposals(self.world, split, most)
            if split == "train":
                self.run.learn(positive_share=bought.positive_share(), health=bought.health())
        return self.bought[split]

    # --- the three kinds of epoch

    def supervised_epoch(self, epoch: int) -> dict[str, Any]:
        """Cross-entropy of the pointer that made the true answer likeliest."""
        bought, queries, totals = self.proposed("train"), self.world.queries("train"), Totals()
        for places in self.batches("supervised", epoch):
            batch = best_pointers(queries, bought, places)
            loss = -episode_sum(self.policy.judge(batch).logp, batch.episode).mean()
            norm, used = self.descent.down(loss, batch), len(batch.queries)
            dropped = float(len(places) - used)
            totals.add(used, loss=loss.item(), grad_norm=norm, dropped_groups=dropped)
        record = totals.means() | {"positive_share": bought.positive_share()}
        size, shots = self.recipe.pool.size, self.recipe.shots
        self.note(guard.loss_beside_uniform(record["loss"], size, shots))
        return record | {"uniform_loss": guard.uniform_loss(size, shots)}

    def rce_epoch(self, epoch: int, epochs: int) -> dict[str, Any]:
        """Σ softmax(R/τ) × cross-entropy over the proposals of a query; τ falls linearly."""
        bought, rce, totals = self.proposed("train"), self.recipe.rce, Totals()
        queries = self.world.queries("train")
        tau = rce.hot + (rce.cold - rce.hot) * (epoch - 1) / max(epochs - 1, 1)
        for places in self.batches("rce", epoch):
            groups = proposal_groups(queries, bought, places)
            judged = self.policy.judge(groups.pointers)
            cost = -episode_sum(judged.logp, groups.pointers.episode)
            heat = (groups.reward.double() / tau).exp()
            size = groups.group.bincount()[groups.group]
            share = heat / (group_mean(heat, groups.group) * size)
            loss = (share * cost).sum() / groups.size
            norm = self.descent.down(loss, groups.pointers)
            broken = {"broken": float(groups.broken), "dropped_groups": float(groups.dropped)}
            totals.add(groups.size, loss=loss.item(), grad_norm=norm, **broken)
        return {"tau": tau, "positive_share": bought.positive_share(), **totals.means()}

    def grpo_epoch(self, leashed: Leashed, epoch: int) -> dict[str, Any]:
        """Groups, advantages, the leash, clipped updates."""
        offline = self.offline
        past = {} if offline is None else offline.logp(self.policy)
        tied = self.tied_logits(leashed)
        totals, seen = Totals(), KlSeen()
        for places in self.batches("grpo", epoch):
            if offline is not None:
                groups = offline.groups(places)
                record, _ = leashed.learn(groups, joined(past, groups), joined(tied, groups))
            else:
                groups = sample_groups(self.policy, self.world, "train", places, ("grpo", epoch))
                record, judged = leashed.learn(groups)
                seen.add(judged, groups)
            totals.add(groups.size, **record)
            line = {"kind": "step", "epoch": epoch, "step": self.descent.step} | record
            self.run.log(line)
            self.tell("grpo", epoch, self.recipe.epochs, line)
        record = totals.means() | {"leash/coefficient": leashed.controller.coefficient}
        if offline is not None:
            record["positive_share"] = self.proposed("train").positive_share()
        self.note(guard.enough_signal(record["groups_with_signal"], totals.weight))
        if epoch == 1:
            leash = self.recipe.leash
            self.note(
                guard.coefficient_unit(self.recipe.advantage, leash.form, scaled=leash.scaled)
            )
        reference = leashed.reference
        guard.reference_held(reference.declared, reference.fingerprint())
        return {"leash/form": self.recipe.leash.form, **record, **seen.measured()}

    def tied_logits(self, leashed: Leashed) -> dict[str, Tensor]:
        """The reference's logits on offline groups, worked out once if it never moves."""
        if self.offline is not None and not self.tied and leashed.reference.stands:
            self.tied = self.offline.logits(leashed.reference.policy)
        return self.tied

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

    def keep_batch(self, batch: Pointers) -> str:
        """Write the batch that broke, and the weights it broke, beside the run."""
        from safetensors.torch import save_file

        path = self.run.path / f"broken-step-{self.descent.step}.safetensors"
        tensors = {
            "query": batch.queries.query_BD,
            "pool": batch.queries.pool_BKD,
            "pointer_query": batch.query_P,
            "pointer": batch.chosen_PT,
            **{f"weights.{name}": t for name, t in self.policy.state_dict().items()},
        }
        save_file({name: t.detach().cpu().contiguous() for name, t in tensors.items()}, path)
        return str(path)

    def save(self, phase: Phase, epoch: int) -> None:
        """A checkpoint after an epoch."""
        trainer = self.descent.tensors()
        state: dict[str, Any] = {
            "phase": phase,
            "epoch": epoch,
            "step": self.descent.step,
            "shots": self.recipe.shots,
            "pool": self.recipe.pool.maker,
        }
        if self.leashed is not None:
            held = self.leashed.reference.state_dict()
            trainer |= {f"reference.{name}": tensor for name, tensor in held.items()}
            state["controller"] = self.leashed.controller.state()
        self.run.save(checkpoint_name(phase, epoch), self.policy.state_dict(), trainer, state)
        self.run.slim()

    def restore(self, name: str) -> None:
        """Optimiser, reference and controller as they were in the middle of this phase."""
        kept = self.run.load(name)
        self.descent.load(kept.trainer, kept.state["step"])
        if self.leashed is not None:
            names = [key for key in kept.trainer if key.startswith("reference.")]
            self.leashed.reference.load_state_dict(
                {key.removeprefix("reference."): kept.trainer[key] for key in names}
            )
            self.leashed.controller.load(kept.state["controller"])

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
        noise = float(np.mean([line["validation/accuracy_se"] for line in lines]))
        return early_stop([line["validation/accuracy"] for line in lines], noise, MARGIN)

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
