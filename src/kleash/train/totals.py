"""Numbers of batches gathered into numbers of an epoch."""

from __future__ import annotations

import math
from collections import defaultdict

import torch
from torch import Tensor

from kleash.kl import measure
from kleash.policy import Judged
from kleash.rollout import Groups


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
