"""Which blocks a selector is made of, and the names users know for common choices of them.

The networks are in `selector`, one table per block; a new preset is an entry here, never a file.
Which number stands for which blocks, and the sizes that go with it, users know from Lever-Plus
(github.com/yunsoft2019/Lever-Plus), whose ancestor is Lever-LM (2312.10104): `docs/presets.md`.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from kleash.config import Config, build
from kleash.errors import ConfigError


class Blocks(Config):
    """What a selector is made of."""

    towers: Literal["fixed", "lora"] = "fixed"
    """Whether the encoder's towers stay as they are, or adapters on them train with the rest."""
    lora_rank: int = Field(8, ge=1)
    """The rank of these adapters; their product is scaled by 2."""
    hidden: int = Field(256, ge=1)
    """Width of every vector inside the selector."""
    projection: Literal["shared", "separate"] = "shared"
    """Whether query and pool share the first projection; each has its own second one."""
    set_encoder: Literal["none", "transformer"] = "none"
    """How the candidates of a pool see each other before the query sees them."""
    query_layers: int = Field(1, ge=0)
    """Layers of cross-attention from the query to its pool."""
    heads: int = Field(1, ge=1)
    """Attention heads; they divide the hidden width."""
    state: Literal["static", "blend", "gate", "gru", "gpt2", "lstm"] = "static"
    """How a chosen demonstration changes what is looked for next; gpt2 and lstm read them all."""
    score: Literal["cosine", "additive", "bilinear"] = "cosine"
    """How well a candidate fits the state."""
    retrieval: Literal["off", "text", "image", "both", "words"] = "off"
    """The similarity that choices begin as (words is BM25); what is learnt is added to it."""
    temperature: float = Field(0.1, gt=0)
    """Every score is divided by this."""
    bonus: Literal["none", "mmr", "coverage", "dpp"] = "none"
    """What is added to a score for going well with the demonstrations chosen before."""
    topics: int = Field(16, ge=2)
    """Topics that bonus=coverage knows."""
    rank: int = Field(32, ge=1)
    """Features that bonus=dpp tells demonstrations apart by."""
    decoder: Literal["steps", "slots", "two-stage"] = "steps"
    """Choose one after the other, by parallel slots, or in two stages: a few, then among them."""
    shortlist: int = Field(8, ge=2)
    """Candidates that decoder=two-stage looks at again."""
    layers: int = Field(2, ge=1)
    """Layers of the sequence model, or of attention among slots."""
    stop: Literal["off", "on"] = "off"
    """Whether the selector may stop before it has chosen all its shots."""
    dropout: float = Field(0.0, ge=0, lt=1)
    """Fraction dropped before the second projection; never when choices are judged."""
    shots: int = Field(2, ge=1)
    """Demonstrations chosen in training; later steps reuse what the last one learnt."""

    @model_validator(mode="after")
    def check(self) -> Self:
        """Refuse widths that do not divide, and parameters that training could never reach."""
        if self.hidden % self.heads:
            raise ValueError(f"{self.heads} heads do not divide a hidden width of {self.hidden}")
        if self.decoder == "slots" and self.state != "static":
            raise ValueError(
                f'slots choose in parallel, so nothing would read state "{self.state}": set state'
                ' to "static", or decoder to "steps"'
            )
        follows = self.state in ("blend", "gate", "gru")
        if self.shots == 1 and (follows or self.bonus != "none"):
            raise ValueError(
                "with one shot nothing is chosen before, so state and bonus would never be "
                'trained: set shots to 2 or more, or state to "static" and bonus to "none"'
            )
        if self.retrieval != "off" and (self.score != "bilinear" or self.decoder == "two-stage"):
            raise ValueError(
                "what is learnt beside retrieval is a bilinear score that begins at 0: set score to"
                ' "bilinear" and decoder to "steps" or "slots", or retrieval to "off"'
            )
        return self


V3: dict[str, Any] = {"query_layers": 1, "heads": 1}
V4_2: dict[str, Any] = {**V3, "state": "gru"}

PRESETS: dict[str, dict[str, Any]] = {
    "v0-gpt2": {"hidden": 512, "heads": 8, "query_layers": 0, "state": "gpt2"},
    "v0-lstm": {"hidden": 128, "query_layers": 0, "state": "lstm"},
    "v1": {"query_layers": 0, "state": "blend"},
    "v2": {"query_layers": 3, "heads": 1},
    "v3": V3,
    "v4-1": {**V3, "state": "gate"},
    "v4-2": V4_2,
    "v4-3": {**V4_2, "bonus": "mmr"},
    "v4-4": {**V4_2, "bonus": "mmr", "set_encoder": "transformer"},
    "v4-5": {**V4_2, "score": "additive"},
    "v4-6": {**V4_2, "bonus": "coverage"},
    "v4-7": {**V4_2, "bonus": "dpp"},
    "v4-8": {**V3, "decoder": "slots"},
    "v4-9": {**V4_2, "decoder": "two-stage"},
    "v4-10": {**V4_2, "stop": "on"},
    "retrieval-plus": {**V3, "score": "bilinear", "retrieval": "both"},
}


ADAPTED = re.compile(r"(?P<preset>.+)\+lora(?P<rank>\d*)")
"""`v3+lora`: preset v3 on towers with adapters; a number behind it is their rank."""


def preset(name: str, **changes: Any) -> Blocks:
    """The blocks behind a name, with some of them changed."""
    plain, found = name, ADAPTED.fullmatch(name)
    if found:
        plain, rank = found["preset"], found["rank"]
        changes = {"towers": "lora", **({"lora_rank": int(rank)} if rank else {}), **changes}
    if plain not in PRESETS:
        near = get_close_matches(plain, PRESETS, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"the presets are: {', '.join(PRESETS)}"
        raise ConfigError(f"unknown preset {name!r}: {hint}")
    return build(Blocks, PRESETS[plain] | changes)
