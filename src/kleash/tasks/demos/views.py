"""Views of groups: which pointers of which queries are trained on. Nothing is ever rewritten.

A view is a few settings over facts that stay as they are, and says how much it left out. It shapes
the groups of RCE and of GRPO offline; what GRPO samples itself, and the supervised phase's best
pointers, it does not touch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from kleash.config import Config
from kleash.seeds import generator
from kleash.tasks.demos.propose import without_defaults

Rewards = Sequence[float | None]


class View(Config):
    """Which groups are trained on, and which of their pointers; as it stands, all of them."""

    more: int = Field(0, ge=0)
    """Further random pointers where all of a query's are worth the same; in no budget."""
    balance: Literal["none", "equal"] = "none"
    """Whether as many positives as negatives are kept of a group that has both."""
    keep: Literal["all", "mixed"] = "all"
    """Which groups: all, or those with at least one positive and one negative."""
    low: float = Field(0.0, ge=0, le=1)
    """The least share of positives that a group may have."""
    high: float = Field(1.0, ge=0, le=1)
    """The largest share of positives that a group may have."""

    @model_validator(mode="after")
    def ordered(self) -> Self:
        """The least is not above the largest."""
        if self.low > self.high:
            raise ValueError(f"no share is at least {self.low} and at most {self.high}")
        return self

    @model_serializer(mode="wrap")
    def modest(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Only what is asked for: no view is written as nothing."""
        return without_defaults(dump(self), DEFAULTS)

    @property
    def is_set(self) -> bool:
        """Whether it leaves anything out or asks for more."""
        return self != View()


DEFAULTS = {"more": 0, "balance": "none", "keep": "all", "low": 0.0, "high": 1.0}


@dataclass(frozen=True)
class Viewed:
    """What is left: of each group the places of its pointers, none of a group that is left out."""

    members: list[list[int]]
    counts: dict[str, float]

    @property
    def groups(self) -> list[int]:
        """The groups that are left."""
        return [at for at, members in enumerate(self.members) if members]


def see(view: View, groups: Sequence[Rewards], names: Sequence[str], seed: int) -> Viewed:
    """The groups through a view; draws are named by seed and query. Positive is above 0."""
    members = [balanced(view, group, name, seed) for group, name in zip(groups, names, strict=True)]
    members = [
        kept if allowed(view, [group[at] for at in kept]) else []
        for kept, group in zip(members, groups, strict=True)
    ]
    known = [sum(reward is not None for reward in group) for group in groups]
    left = [
        reward > 0
        for kept, group in zip(members, groups, strict=True)
        for reward in (group[at] for at in kept)
        if reward is not None
    ]
    counts = {
        "groups": float(sum(size > 0 for size in known)),
        "kept_groups": float(sum(map(bool, members))),
        "pointers": float(sum(known)),
        "kept_pointers": float(len(left)),
        "positive_share": sum(left) / max(len(left), 1),
    }
    return Viewed(members, counts)


def balanced(view: View, group: Rewards, name: str, seed: int) -> list[int]:
    """The places of a group's pointers that are kept, in their order."""
    places = [at for at, reward in enumerate(group) if reward is not None]
    if view.balance == "none":
        return places
    good = [at for at in places if (group[at] or 0) > 0]
    bad = [at for at in places if at not in good]
    few = min(len(good), len(bad))
    if not few:
        return places
    rng = generator("view", "balance", seed, name)
    drawn = [rng.choice(kind, few, replace=False).tolist() for kind in (good, bad)]
    return sorted(int(at) for each in drawn for at in each)


def allowed(view: View, rewards: Rewards) -> bool:
    """Whether a group is kept."""
    known = [reward for reward in rewards if reward is not None]
    if not known:
        return False
    share = sum(reward > 0 for reward in known) / len(known)
    return view.low <= share <= view.high and (view.keep == "all" or 0 < share < 1)


def flat(group: Rewards) -> bool:
    """Whether all pointers of a group that were answered are worth the same."""
    known = {reward for reward in group if reward is not None}
    return len(known) == 1
