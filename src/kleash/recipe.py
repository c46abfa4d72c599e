"""The recipe of a run: all that it is asked to do, as one config. No torch: anybody can read it.

Which keys only say how long (`length_keys`) is known here, because identity leaves them out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from kleash.config import Config, build, merge
from kleash.control import LEASHES, SCHEDULES, Leash
from kleash.demos.pool import Pooling
from kleash.demos.presets import Blocks, preset
from kleash.demos.propose import Proposing
from kleash.demos.reward import REWARDS
from kleash.errors import ConfigError

Phase = Literal["supervised", "rce", "grpo"]
PHASES: tuple[Phase, ...] = ("supervised", "rce", "grpo")


class Supervised(Config):
    """Phase one: imitate the pointer that made the true answer likeliest."""

    epochs: int = Field(4, ge=0)
    """Passes over the training queries."""
    lr: float = Field(3e-4, gt=0, allow_inf_nan=False)
    """Learning rate of AdamW."""


class Rce(Config):
    """Phase two: reward-weighted cross-entropy over all proposals of a query."""

    epochs: int = Field(5, ge=0)
    """Passes over the training queries."""
    lr: float = Field(1e-4, gt=0, allow_inf_nan=False)
    """Learning rate of AdamW."""
    hot: float = Field(2.0, gt=0, allow_inf_nan=False)
    """Temperature of the weights in the first epoch."""
    cold: float = Field(0.5, gt=0, allow_inf_nan=False)
    """Temperature in the last epoch."""


class Clipping(Config):
    """What keeps one update small."""

    low: float = Field(0.2, ge=0, lt=1)
    """How far a ratio may fall below 1."""
    high: float = Field(0.2, ge=0)
    """How far a ratio may rise above 1."""
    norm: float = Field(1.0, gt=0)
    """The gradient's largest norm, in every phase."""


class Recipe(Config):
    """One run: what is learnt from, by which selector, in which phases, on which leash."""

    data: str = "scenes"
    """The data set."""
    data_seed: int = 0
    """The seed that makes it, where a generator does."""
    answerer: str = "embedded"
    """The model that sees the demonstrations and answers."""
    seed: int = 0
    """Names every draw of the run: initial weights, order, proposals, rollouts."""
    queries: int = Field(800, ge=1)
    """Training queries used, at most as many as there are."""
    selector: str = "v4-2"
    """The preset of the selector's blocks."""
    shots: int = Field(2, ge=1)
    """Demonstrations chosen in training."""
    freeze: tuple[str, ...] = ()
    """Blocks that do not train in the GRPO phase, for example ["projections"]."""
    pool: Pooling = Pooling()
    propose: Proposing = Proposing()
    reward: str = "hard_plus_soft"
    """How an answer is rewarded."""
    phase: Literal["all", "supervised", "rce", "grpo"] = "all"
    """The one phase to run, or all of them in order."""
    start: str = Field("", alias="from")
    """The checkpoint to start from, as RUN/checkpoints/NAME; fresh weights if empty."""
    supervised: Supervised = Supervised()
    rce: Rce = Rce()
    epochs: int = Field(3, ge=0)
    """Passes over the training queries in the GRPO phase; a finished run can be given more."""
    source: Literal["online", "offline"] = "online"
    """Whether GRPO's groups are sampled and answered as it goes, or are the proposals."""
    group: int = Field(8, ge=2)
    """Pointers sampled for each query when online."""
    batch: int = Field(32, ge=1)
    """Queries in an update; 1 is one update per query."""
    updates: int = Field(1, ge=1)
    """Updates on each batch; from the second on the ratio is no longer 1."""
    lr: float = Field(3e-4, gt=0, allow_inf_nan=False)
    """Learning rate of AdamW in the GRPO phase, before its schedule."""
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    """What the learning rate does over the GRPO phase."""
    warmup: int = Field(0, ge=0)
    """Updates over which it first rises."""
    advantage: Literal["leave_one_out", "centre", "standardise", "rank"] = "leave_one_out"
    """How a reward is compared with its group."""
    weight: Literal["by_choice", "by_episode", "by_group"] = "by_choice"
    """What counts the same in the loss."""
    clip: Clipping = Clipping()
    entropy_bonus: float = Field(0.0, ge=0, allow_inf_nan=False)
    """What a nat of entropy is worth, in units of advantage."""
    leash: Leash = Leash()
    early_stop: Literal["off", "on"] = "off"
    """Stop when validation no longer improves, and keep the best window and the last epoch."""

    @model_validator(mode="after")
    def consistent(self) -> Self:
        """Refuse what cannot be run, before anything is written."""
        self.blocks()
        if self.reward not in REWARDS:
            raise ConfigError(f"no reward {self.reward!r}: there is {', '.join(REWARDS)}")
        if self.pool.size < self.shots:
            raise ConfigError(
                f"a pool of {self.pool.size} cannot fill {self.shots} shots:"
                " enlarge pool.size or ask for fewer shots"
            )
        if self.source == "offline" and self.leash.controller in ("adaptive", "target"):
            raise ConfigError(
                f"leash.controller {self.leash.controller!r} steers by the KL of fresh samples,"
                " and offline pointers are none: set source=online or another controller"
            )
        if self.phase in ("rce", "grpo") and not self.start:
            raise ConfigError(
                f"phase {self.phase!r} starts from what came before:"
                " give from=RUN/checkpoints/NAME, or phase=all"
            )
        return self

    def blocks(self) -> Blocks:
        """What the selector is made of."""
        return preset(self.selector, shots=self.shots)

    def phases(self) -> list[tuple[Phase, int]]:
        """The phases to run and their epochs, in order."""
        length: dict[Phase, int] = {
            "supervised": self.supervised.epochs,
            "rce": self.rce.epochs,
            "grpo": self.epochs,
        }
        return [(phase, length[phase]) for phase in PHASES if self.phase in ("all", phase)]

    def length_keys(self) -> tuple[str, ...]:
        """The keys that only say how long; with a schedule over all epochs there are none."""
        return () if SCHEDULES[self.schedule].needs_length else ("epochs",)

    def resolved(self) -> dict[str, Any]:
        """The recipe as plain values, as `config.json` keeps it."""
        return self.model_dump(mode="json", by_alias=True)


def recipe_from(*layers: Mapping[str, Any]) -> Recipe:
    """A recipe from mappings laid over each other; `like` names a leash that users know."""
    given = merge(*layers)
    like = given.pop("like", None)
    if like is not None:
        if like not in LEASHES:
            raise ConfigError(f"no leash is known as {like!r}: there is {', '.join(LEASHES)}")
        given = merge(LEASHES[like], given)
    return build(Recipe, given)
