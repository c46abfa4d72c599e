"""The recipe of a run: all that it is asked to do, as one config. No torch: anybody can read it.

Which keys only say how long (`length_keys`) is known here, because identity leaves them out. The
file is long because every key of both families stands in it with its sentence.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from kleash.algo.control import LEASHES, SCHEDULES, Leash
from kleash.config import Config, build, merge
from kleash.errors import ConfigError
from kleash.runs.run import Run
from kleash.tasks.demos.pool import Pooling
from kleash.tasks.demos.presets import Blocks, preset
from kleash.tasks.demos.propose import Proposing
from kleash.tasks.demos.reward import OVER, REWARDS
from kleash.tasks.demos.views import View
from kleash.tasks.envs import options_of

Phase = Literal["supervised", "rce", "grpo"]
PHASES: tuple[Phase, ...] = ("supervised", "rce", "grpo")
PROBE_TASKS = 64
"""Validation tasks of an agent on which KL is measured after every epoch."""
TRANSCRIPTS = 40
"""Test tasks of an agent that a study keeps word by word, at every checkpoint."""
UNSAID = (
    *("clip.dual", "leash.clamp", "lora.base", "scale", "sampler"),
    *("data_options", "answerer_options", "encoder", "encoder_options", "view"),
)
"""Keys that stand in `config.json` only where they are not the default: a recipe that names none of
them is the same recipe as before there were any."""


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
    dual: float = Field(0.0, ge=0, allow_inf_nan=False)
    """The ratio above which a bad choice costs no more and is let go; 0 has no such bound."""

    @model_validator(mode="after")
    def dual_beyond_high(self) -> Self:
        """A dual clip below the other one would let go of what has hardly moved."""
        if self.dual and self.dual <= 1 + self.high:
            raise ConfigError(
                f"clip.dual {self.dual:g} is not above 1 + clip.high = {1 + self.high:g}: verl has"
                " 3; set it to that, or to 0 for none"
            )
        return self


class Recipe(Config):
    """What the runs of both families have in common: GRPO on a leash, from a start, by a seed."""

    seed: int = 0
    """Names every draw of the run: initial weights, order, proposals, rollouts."""
    start: str = Field("", alias="from")
    """The checkpoint to start from, as RUN/checkpoints/NAME; fresh weights if empty."""
    epochs: int = Field(3, ge=0)
    """Epochs of the GRPO phase, each with its checkpoint; a finished run can be given more."""
    group: int = Field(8, ge=2)
    """Episodes sampled for each query or task when online."""
    batch: int = Field(32, ge=1)
    """Queries or tasks in an update; 1 is one update for each of them."""
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

    def phases(self) -> list[tuple[Phase, int]]:
        """The phases to run and their epochs, in order."""
        raise NotImplementedError

    def validated_at(self) -> int:
        """The number of shots that validation scores are kept under."""
        raise NotImplementedError

    def places(self) -> int:
        """How many choices of an episode are compared, one by one."""
        raise NotImplementedError

    def batches(self, used: int) -> int:
        """How many batches an epoch has, where so many queries or tasks are used."""
        raise NotImplementedError

    def model_name(self) -> str:
        """What is trained, in a word: arms that differ in it cannot share a start."""
        raise NotImplementedError

    def length_keys(self) -> tuple[str, ...]:
        """The keys that only say how long; with a schedule over all epochs there are none."""
        return () if SCHEDULES[self.schedule].needs_length else ("epochs",)

    def length(self) -> int:
        """How many batches GRPO has in all, where as many are used as were asked for."""
        raise NotImplementedError

    def resolved(self) -> dict[str, Any]:
        """The recipe as plain values, as `config.json` keeps it, without what is `UNSAID`."""
        whole = self.model_dump(mode="json", by_alias=True)
        for part, _, key in (name.partition(".") for name in UNSAID):
            if part not in whole:
                continue
            usual = type(self).model_fields[part].default
            usual = usual.model_dump(mode="json") if isinstance(usual, Config) else usual
            if not key and whole[part] == usual:
                del whole[part]
            elif key and whole[part][key] == usual[key]:
                del whole[part][key]
        return whole


def needs_start(phase: str, start: str) -> None:
    """A phase that goes on from another one has a checkpoint to go on from."""
    if phase not in ("all", "supervised") and not start:
        raise ConfigError(
            f"phase {phase!r} starts from what came before:"
            " give from=RUN/checkpoints/NAME, or phase=all"
        )


@cache
def blocks_of(selector: str, shots: int) -> Blocks:
    """The blocks of a preset trained with so many shots: asked for with every prompt."""
    return preset(selector, shots=shots)


class SelectorRecipe(Recipe):
    """A run that trains a selector: which data, whose answers, which pools and proposals."""

    listed = "kleash train default --keys"

    data: str = "scenes"
    """The data set; one of your own is package.module:Class."""
    data_seed: int = 0
    """The seed that makes it, where a generator does; else the one that splits it."""
    data_options: dict[str, Any] = Field({})
    """What else the data set asks for, for example data_options.folder=PATH."""
    answerer: str = "embedded"
    """The model that sees the demonstrations and answers."""
    answerer_options: dict[str, Any] = Field({})
    """What else the answerer asks for, for example answerer_options.model=PATH."""
    encoder: str = "answerer"
    """Who makes vectors of items: the answerer itself, clip, siglip or sentences."""
    encoder_options: dict[str, Any] = Field({})
    """What else the encoder asks for, for example encoder_options.model=PATH."""
    queries: int = Field(800, ge=1)
    """Training queries used, at most as many as there are."""
    selector: str = "v4-2"
    """The preset of the selector's blocks; v3+lora trains adapters on the encoder's towers too."""
    shots: int = Field(2, ge=1)
    """Demonstrations chosen in training."""
    freeze: tuple[str, ...] = ()
    """Blocks that do not train in the GRPO phase, for example ["projections"]."""
    pool: Pooling = Pooling()
    propose: Proposing = Proposing()
    view: View = View()
    reward: str = "hard_plus_soft"
    """How an answer is rewarded; with `-retrieval` behind it, by what is above retrieval's."""
    phase: Literal["all", "supervised", "rce", "grpo"] = "all"
    """The one phase to run, or all of them in order."""
    supervised: Supervised = Supervised()
    rce: Rce = Rce()
    source: Literal["online", "offline"] = "online"
    """Whether GRPO's groups are sampled and answered as it goes, or are the proposals."""

    @model_validator(mode="after")
    def consistent(self) -> Self:
        """Refuse what cannot be run, before anything is written."""
        self.blocks()
        if self.reward.removesuffix(OVER) not in REWARDS:
            raise ConfigError(f"no reward {self.reward!r}: there is {', '.join(REWARDS)}")
        if self.pool.size < self.shots:
            raise ConfigError(
                f"a pool of {self.pool.size} cannot fill {self.shots} shots:"
                " enlarge pool.size or ask for fewer shots"
            )
        if self.leash.reference == "adapter_off":
            raise ConfigError(
                "leash.reference 'adapter_off' is an agent's: a selector is more than its adapters"
            )
        if self.source == "offline" and self.leash.controller in ("adaptive", "target"):
            raise ConfigError(
                f"leash.controller {self.leash.controller!r} steers by the KL of fresh samples,"
                " and offline pointers are none: set source=online or another controller"
            )
        if self.reward.endswith(OVER) and self.propose.facts:
            raise ConfigError(
                f"reward {self.reward!r} asks what the most similar demonstrations are worth, and"
                f" propose.facts asks for no answers: leave {OVER!r} out"
            )
        needs_start(self.phase, self.start)
        return self

    def validated_at(self) -> int:
        """The number of shots in training."""
        return self.shots

    def places(self) -> int:
        """Each demonstration."""
        return self.shots

    def batches(self, used: int) -> int:
        """Until every query was met."""
        return math.ceil(used / self.batch)

    def length(self) -> int:
        """Every epoch meets all queries."""
        return self.batches(self.queries) * self.epochs

    def model_name(self) -> str:
        """The preset."""
        return self.selector

    def blocks(self) -> Blocks:
        """What the selector is made of."""
        return blocks_of(self.selector, self.shots)

    def phases(self) -> list[tuple[Phase, int]]:
        """The phases to run and their epochs, in order."""
        length: dict[Phase, int] = {
            "supervised": self.supervised.epochs,
            "rce": self.rce.epochs,
            "grpo": self.epochs,
        }
        return [(phase, length[phase]) for phase in PHASES if self.phase in ("all", phase)]


class SupervisedDialogues(Config):
    """Phase one of an agent: well-formed dialogues with questions drawn at random are imitated."""

    epochs: int = Field(4, ge=0)
    """Passes; each plays new dialogues."""
    dialogues: int = Field(1500, ge=1)
    """Dialogues in an epoch."""
    lr: float = Field(3e-3, gt=0, allow_inf_nan=False)
    """Learning rate of AdamW."""


class Tiny(Config):
    """The embedded model: Qwen3's shape, made small, over a vocabulary of words."""

    width: int = Field(64, ge=8)
    """Width of a token's vector."""
    layers: int = Field(2, ge=1)
    """Blocks of attention and feed-forward."""
    heads: int = Field(2, ge=1)
    """Heads of attention."""
    inner: int = Field(128, ge=8)
    """Width inside the feed-forward part."""


class Lora(Config):
    """Adapters in place of full training; needs the extra `lora`."""

    rank: int = Field(0, ge=0)
    """Their rank; 0 trains every weight."""
    alpha: int = Field(32, ge=1)
    """What their product is scaled by, over the rank."""
    targets: str = "all-linear"
    """Which products have one, with commas; all but the head if not said."""
    base: Literal["plain", "nf4", "host"] = "plain"
    """What they are put on: weights as they are, in four bits (extra `nf4`), or on the host."""


class Credit(Config):
    """How the rewards of turns become the advantage of their tokens."""

    turn: Literal["equal", "reward_to_go", "em", "turn_baseline"] = "equal"
    """What multiplies a turn's share of the advantage; turn_baseline compares turn with turn."""
    score: Literal["sum", "reward_to_go", "mean_per_turn"] = "sum"
    """What an episode is worth in its group; mean_per_turn pays for ending early."""
    gamma: float = Field(0.8, gt=0, le=1)
    """What a turn later is worth, in reward_to_go and turn_baseline."""


class Validating(Config):
    """What is played after every epoch."""

    tasks: int = Field(200, ge=2)
    """Validation tasks, always the same; below 200 the noise is as large as most effects."""
    training: int = Field(100, ge=0)
    """Training tasks played beside them, always the same, so that over-fitting is a number."""
    passes: int = Field(0, ge=0)
    """Sampled passes over the validation tasks; 0 plays them once and greedily."""

    @model_validator(mode="after")
    def spread(self) -> Self:
        """One task has no spread."""
        if self.training == 1:
            raise ConfigError("validation.training 1 gives no standard error: set it to 2, or to 0")
        return self


class Scale(Config):
    """How a large model is gone through; what it is worth to a small one, nothing."""

    precision: Literal["float32", "bfloat16", "float64"] = "float32"
    """Of the weights; in bfloat16 AdamW rounds at random, float64 is to compare ways to compute."""
    packed: Literal["auto", "on", "off"] = "auto"
    """Episodes end to end without padding; auto does so on a GPU in bfloat16."""
    compile: Literal["auto", "off", "fixed", "dynamic"] = "auto"
    """Layers compiled, for packs of a size or two (auto on a GPU in bfloat16), or of any size."""
    pack_tokens: int = Field(8192, ge=1)
    """The most tokens of a pack."""
    recompute: int = Field(-1, ge=-1)
    """Layers worked out again on the way back; -1 as many as memory asks for."""
    reference: Literal["device", "pinned"] = "device"
    """Where the reference's weights lie: beside the policy's, or in the machine's memory."""
    moments: Literal["device", "host"] = "device"
    """Where AdamW's moments lie between steps; on the host they need precision=bfloat16."""
    places: int = Field(0, ge=0)
    """Tokens of conversations that `own` keeps on a GPU at once; 0 takes half of what is free."""
    ranks: int = Field(0, ge=0, exclude=True)
    """Processes that train a run together; 0 is as many as torchrun starts, and one in a study."""


class Sampling(Config):
    """What is done where the one who sampled is not quite the policy that learns."""

    cap: float = Field(0.0, ge=0, allow_inf_nan=False)
    """The largest weight π_old/π_sampler of an advantage, 2 say; 0 has none, and a gap stops."""

    staleness: int = Field(0, ge=0)
    """Batches by which who plays may be behind who learns, so that both go on at once; 0 waits."""

    @model_validator(mode="after")
    def honest(self) -> Self:
        """A cap below 1 would make every update smaller; what is stale must be weighed."""
        if 0 < self.cap < 1:
            raise ConfigError(
                f"sampler.cap {self.cap:g} lowers also the weight of what was sampled as it should"
                " be, which is 1: set it to 1 or more, or to 0 for no weights"
            )
        if self.staleness and not self.cap:
            raise ConfigError(
                f"sampler.staleness {self.staleness} lets older weights play, and what they said is"
                " not what the policy would say: set sampler.cap=2 too, which weighs it"
            )
        return self


class AgentRecipe(Recipe):
    """A run that trains a language agent: in which environment, which model, how it talks."""

    listed = "kleash train agent --keys"

    env: str = "intention"
    """The environment: intention, function, telepathy, or package.module:Class of your own."""
    gym: dict[str, Any] = Field({})
    """Its options: `kleash train agent --keys` lists them as gym.KEY."""
    model: str = "tiny"
    """The model: `tiny`, a Hugging Face folder, or a GGUF file."""
    tiny: Tiny = Tiny()
    lora: Lora = Lora()
    phase: Literal["all", "supervised", "grpo"] = "all"
    """The one phase to run, or all of them; a model that can talk already has no supervised one."""
    supervised: SupervisedDialogues = SupervisedDialogues()
    epochs: int = Field(15, ge=0)
    """Epochs of the GRPO phase, each with validation and a checkpoint; a run can be given more."""
    steps: int = Field(10, ge=1)
    """Batches in an epoch."""
    batch: int = Field(16, ge=1)
    """Tasks in a batch."""
    lr: float = Field(1e-6, gt=0, allow_inf_nan=False)
    """Learning rate of AdamW in the GRPO phase, before its schedule; tiny models take 2e-3."""
    credit: Credit = Credit()
    engine: str = "own"
    """Who samples: own, or the address of a server as vllm:URL or sglang:URL."""
    temperature: float = Field(1.0, gt=0, allow_inf_nan=False)
    """Of sampling; log-probabilities and KL are those of this temperature."""
    turn_tokens: int = Field(256, ge=1)
    """The most tokens of a turn; a longer one is cut and ends the episode."""
    part_tokens: int = Field(32768, ge=1)
    """Tokens judged at once, gradients summed: changes memory and no number."""
    scale: Scale = Scale()
    sampler: Sampling = Sampling()
    validation: Validating = Validating()
    collapse: Literal["warn", "stop", "roll_back"] = "warn"
    """What signs of collapse do: are told, end the run, or end it and drop what came after."""

    @model_validator(mode="after")
    def consistent(self) -> Self:
        """Refuse what cannot be run, before anything is written."""
        build(options_of(self.env), self.gym, "gym.")
        needs_start(self.phase, self.start)
        if self.leash.reference == "adapter_off" and not self.lora.rank:
            raise ConfigError("leash.reference 'adapter_off' needs an adapter: set lora.rank")
        if self.scale.moments == "host" and (self.scale.precision != "bfloat16" or self.lora.rank):
            raise ConfigError(
                "scale.moments 'host' is for all weights in bfloat16: set scale.precision=bfloat16,"
                " or leave an adapter's few moments where they are"
            )
        if self.lora.base != "plain" and not self.lora.rank:
            raise ConfigError(f"lora.base {self.lora.base!r} does not train: set lora.rank")
        if self.leash.reference in ("ema", "adapter_off") and self.scale.reference == "pinned":
            raise ConfigError(
                f"leash.reference {self.leash.reference!r} moves with the policy or is the policy:"
                " set scale.reference=device"
            )
        if self.model == "tiny" and self.gym.get("surface") != "tokens":
            raise ConfigError(
                "the tiny model knows the words of one surface only:"
                " set gym.surface=tokens, or give a model that can talk"
            )
        return self

    def validated_at(self) -> int:
        """An agent is shown nothing: among its scores 0 is greedy play, n is n sampled passes."""
        return self.validation.passes

    def places(self) -> int:
        """Each turn."""
        options = build(options_of(self.env), self.gym, "gym.")
        return int(getattr(options, "limit", 1))

    def batches(self, used: int) -> int:
        """As many as were asked for."""
        return self.steps

    def length(self) -> int:
        """Every epoch has as many."""
        return self.steps * self.epochs

    def model_name(self) -> str:
        """The model."""
        return self.model

    def phases(self) -> list[tuple[Phase, int]]:
        """The phases to run and their epochs, in order."""
        supervised = self.supervised.epochs if self.model == "tiny" else 0
        length: dict[Phase, int] = {"supervised": supervised, "grpo": self.epochs}
        return [(phase, n) for phase, n in length.items() if self.phase in ("all", phase)]


def placed(run: Run) -> dict[str, Any]:
    """The paths among what a run was asked, as they hold where we are now: to be laid over it."""
    asked, leash = run.given, run.given.get("leash", {})
    found = {k: run.placed(asked[k]) for k in ("from", "model") if asked.get(k, "tiny") != "tiny"}
    if not leash.get("reference_path"):
        return found
    return {**found, "leash": {"reference_path": run.placed(leash["reference_path"])}}


def recipe_from(*layers: Mapping[str, Any]) -> Recipe:
    """A recipe from mappings laid over each other: an agent's where there is an `env`.

    `like` names a leash that users know.
    """
    given = merge(*layers)
    like = given.pop("like", None)
    if like is not None:
        if like not in LEASHES:
            raise ConfigError(f"no leash is known as {like!r}: there is {', '.join(LEASHES)}")
        given = merge(LEASHES[like], given)
    return build(AgentRecipe, given) if "env" in given else build(SelectorRecipe, given)
