"""TRL's GRPO trainer, kept as a run of ours: the second of two lines is `keep(trainer, FOLDER)`.

Per-item scores come from every evaluation, before TRL averages them. Where `beta` is 0 TRL loads no
reference and logs no KL: then a copy of the start is held, as the other arms hold one, and KL is
measured by TRL's own passes and logged under TRL's own name. Nothing that trains is changed.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kleash.compare.read.gather import item_id
from kleash.compare.recorders import Keeper, hash_rows
from kleash.errors import ConfigError, DataError

LENGTH = ("max_steps", "num_train_epochs")
NEEDED = ("_calculate_rewards", "_compute_loss", "_get_per_token_logps_and_entropies", "_metrics")


def keep(trainer: Any, folder: Path | str, *, hash_weights: bool = True, kl: bool = True) -> Any:
    """Keep what a GRPO trainer trains as the run in `folder`; call it before `trainer.train()`.

    `hash_weights=False` saves reading all weights at every evaluation, `kl=False` the copy of the
    start that an arm without a leash otherwise holds. Returns the trainer.
    """
    lacking = [name for name in NEEDED if not hasattr(trainer, name)]
    if lacking:
        raise ConfigError(
            f"{type(trainer).__name__} has no {', '.join(lacking)}: keep() knows GRPOTrainer of TRL"
            " 1.16; take one of these, or compare the trainer's own output folder"
        )
    from transformers import TrainerCallback

    kept = Kept(trainer, Path(folder), hash_weights=hash_weights)
    trainer.add_callback(type("KleashCallback", (Callback, TrainerCallback), {})(kept))
    trainer._calculate_rewards = kept.scoring(trainer._calculate_rewards)
    if kl and trainer.args.beta == 0.0:
        trainer._compute_loss = kept.measuring(trainer._compute_loss)
    return trainer


class Callback:
    """What the trainer calls; only the first process keeps anything."""

    def __init__(self, kept: Kept) -> None:
        self.kept = kept

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """The run's folder appears, or the run goes on."""
        if state.is_world_process_zero:
            self.kept.open(state.global_step)

    def on_log(
        self, args: Any, state: Any, control: Any, logs: Mapping[str, Any] | None = None, **_: Any
    ) -> None:
        """A line of metrics."""
        if self.kept.keeper is not None and logs:
            self.kept.keeper.log(state.global_step, logs)

    def on_evaluate(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """The scores of an evaluation."""
        self.kept.flush(state.global_step)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """The run is done, if it got as far as it was asked to."""
        if self.kept.keeper is not None:
            self.kept.keeper.end(finished=state.global_step >= state.max_steps)
            self.kept.keeper = None


class Kept:
    """What is gathered from a trainer between two lines."""

    def __init__(self, trainer: Any, folder: Path, *, hash_weights: bool) -> None:
        self.trainer, self.folder, self.hash_weights = trainer, folder, hash_weights
        self.keeper: Keeper | None = None
        self.scores: list[tuple[str, float | None]] = []
        self.reference: Any = None
        self.measured = -1

    def open(self, step: int) -> None:
        """The run, with hashes of what goes into it."""
        trainer = self.trainer
        hashes = {
            "data": rows_hash(trainer.train_dataset),
            "eval_data": rows_hash(trainer.eval_dataset),
            "start": self.weights() if step == 0 else self.known_start(),
        }
        schedule = trainer.args.lr_scheduler_type
        steady = getattr(schedule, "value", schedule) == "constant"
        length = LENGTH if steady else ()  # else the length is in every step
        self.keeper = Keeper(self.folder, config_of(trainer), hashes, length=length)
        self.keeper.begin(step)
        if trainer.eval_dataset is None:
            self.keeper.note(
                "no-items",
                "the trainer has no eval_dataset: no scores of items are kept, and comparisons stay"
                " at level L1; give it one, and eval_strategy='steps'",
            )

    def known_start(self) -> str | None:
        """Of a run that goes on: the start that it had."""
        from kleash.runs.run import Run

        try:
            hashes: dict[str, str | None] = Run.open(self.folder).meta.get("hashes", {})
        except DataError:
            return None
        return hashes.get("start")

    def weights(self) -> str | None:
        """The hash of the weights as they are now; None where they are spread over processes."""
        from kleash.algo.policy import fingerprint

        model = self.trainer.accelerator.unwrap_model(self.trainer.model)
        tensors = dict(model.state_dict())
        if any(not tensor.numel() or hasattr(tensor, "device_mesh") for tensor in tensors.values()):
            return None
        return fingerprint(tensors)

    # --- scores

    def scoring(self, calculate: Any) -> Any:
        """`_calculate_rewards` that also keeps what an evaluation scored, item by item."""
        from accelerate.utils import gather_object

        def calculated(inputs: Any, prompts: Any, completions: Any, ids: Any) -> Any:
            rewards_NF = calculate(inputs, prompts, completions, ids)
            if not self.trainer.model.training:
                everyone = gather_object([item_of(prompt) for prompt in prompts])
                weights = self.trainer.reward_weights.tolist()
                self.scores += zip(everyone, map(total(weights), rewards_NF.tolist()), strict=True)
            return rewards_NF

        return calculated

    def flush(self, step: int) -> None:
        """Write the scores of an evaluation that has ended."""
        scores, self.scores = self.scores, []
        if self.keeper is not None and scores:
            weights = self.weights() if self.hash_weights else None
            self.keeper.score(step, "validation", scores, weights)

    # --- KL where nothing is leashed

    def measuring(self, compute: Any) -> Any:
        """`_compute_loss` that also measures KL to the start, at the steps that are logged."""
        import torch

        trainer = self.trainer
        start = trainer.accelerator.unwrap_model(trainer.model)
        self.reference = copy.deepcopy(start).eval().requires_grad_(False)

        def computed(model: Any, inputs: Any) -> Any:
            step = trainer.state.global_step
            every = max(1, int(trainer.args.logging_steps))
            if model.training and step != self.measured and (step + 1) % every == 0:
                self.measured = step
                with torch.no_grad():
                    trainer._metrics["train"]["kl"].append(self.divergence(model, inputs))
            return compute(model, inputs)

        return computed

    def divergence(self, model: Any, inputs: Any) -> float:
        """Mean KL over the tokens of a batch, k3, as TRL logs it where it has a reference."""
        import torch

        keep = inputs["completion_ids"].size(1)
        ids = torch.cat([inputs["prompt_ids"], inputs["completion_ids"]], dim=1)
        mask = torch.cat([inputs["prompt_mask"], inputs["completion_mask"]], dim=1)
        self.reference.to(ids.device)
        passes = [
            self.trainer._get_per_token_logps_and_entropies(each, ids, mask, keep)[0]
            for each in (model, self.reference)
        ]
        log_ratio = passes[1] - passes[0]
        weight = inputs["completion_mask"]
        k3 = log_ratio.exp() - log_ratio - 1
        return float((k3 * weight).sum() / weight.sum().clamp(min=1))


def config_of(trainer: Any) -> dict[str, Any]:
    """The settings of a trainer, with what its arguments do not say."""
    model = trainer.accelerator.unwrap_model(trainer.model)
    return {
        **trainer.args.to_dict(),
        "trainer": "trl",
        "model": getattr(model.config, "_name_or_path", "") or type(model).__name__,
        "reward": list(trainer.reward_func_names),
        "reward_weights": trainer.reward_weights.tolist(),
    }


def rows_hash(data: Any) -> str | None:
    """The hash of a data set, or of several under their names; None of one that has no length."""
    if isinstance(data, Mapping):
        return hash_rows(sorted((name, rows_hash(rows)) for name, rows in data.items()))
    return hash_rows(_rows(data)) if data is not None and hasattr(data, "__len__") else None


def _rows(data: Any) -> Iterable[Any]:
    return (data[at] for at in range(len(data)))


def item_of(prompt: Any) -> str:
    """An item by its prompt, as the reader of TRL's completions names it."""
    return item_id(prompt if isinstance(prompt, str) else repr(prompt))


def total(weights: list[float]) -> Any:
    """The weighted sum of what the reward functions gave; None where none gave anything."""

    def summed(rewards: list[float]) -> float | None:
        known = [(w, r) for w, r in zip(weights, rewards, strict=True) if r == r]  # not NaN
        return sum(w * r for w, r in known) if known else None

    return summed
