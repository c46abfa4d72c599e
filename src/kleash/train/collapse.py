"""Signs of collapse in the lines of a run that trains, as findings: the rules are `collapse`'s."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kleash import collapse
from kleash.guard import Finding

UNKNOWN = collapse.Reward(np.zeros(0, dtype=bool), np.zeros(0, dtype=bool))  # not asked for here


@dataclass(frozen=True)
class Collapse:
    """The lines of a run that tell of it: steps and epochs of GRPO, oldest first."""

    steps: Sequence[Mapping[str, Any]]
    epochs: Sequence[Mapping[str, Any]]

    @classmethod
    def of(cls, lines: Sequence[Mapping[str, Any]]) -> Collapse:
        """From all lines of a run."""
        return cls(
            [line for line in lines if line["kind"] == "step"],
            [line for line in lines if line["kind"] == "epoch" and line["phase"] == "grpo"],
        )

    def signs(self) -> list[Finding]:
        """Every sign there is now."""
        found = [self.dead_groups(), self.unreadable(), self.fallen()]
        return [sign for sign in found if sign is not None]

    def best(self) -> int:
        """The epoch with the highest validation reward."""
        rewards = [line["validation/reward"] for line in self.epochs]
        return int(self.epochs[int(np.argmax(rewards))]["epoch"])

    def values(self, name: str) -> collapse.Floats:
        """A quantity of the steps."""
        return np.array([line[name] for line in self.steps if name in line], dtype=np.float64)

    def dead_groups(self) -> Finding | None:
        """Most groups no longer differ in reward, and not because all is reached."""
        level = last(collapse.dead_groups(self.values("dead_groups"), UNKNOWN))
        if level is None:
            return None
        return sign(
            "dead groups", f"{level[0]:.0%} of groups have equal rewards", level[1], "{:.0%}"
        )

    def unreadable(self) -> Finding | None:
        """Fewer actions can be read than at first."""
        level = last(collapse.unreadable(self.values("episode/valid_actions"), UNKNOWN))
        if level is None:
            return None
        return sign("valid actions", f"{level[0]:.0%} of actions can be read", level[1], "{:.0%}")

    def fallen(self) -> Finding | None:
        """Validation is far below its best, twice in a row."""
        scores, errors = (
            np.array([line[f"validation/{name}"] for line in self.epochs], dtype=np.float64)
            for name in ("reward", "reward_se")
        )
        level = last(collapse.fallen_by_errors(scores, errors)) if len(scores) else None
        if level is None:
            return None
        return sign("validation", f"reward {level[0]:.2f}, twice below", level[1], "{:.2f}")


def last(seen: collapse.Seen) -> tuple[float, float] | None:
    """The level now and before, where the sign is there now."""
    there, now, before = seen
    return (float(now[-1]), float(before[-1])) if len(there) and there[-1] else None


def sign(what: str, now: str, before: float, form: str) -> Finding:
    """A sign of collapse in one line."""
    return Finding(
        "collapse",
        "warning",
        f"signs of collapse in {what}: {now}, from {form.format(before)};"
        " lower lr, raise leash.coefficient, or go on from an earlier checkpoint",
    )
