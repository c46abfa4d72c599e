"""Signs that a policy is collapsing, by a run's own lines: relative to where it stood at first.

In a documented run dead groups, actions that cannot be read and short responses announced the
collapse 27 steps ahead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kleash.guard import Finding

SETTLED = 10  # steps after which a run's own level is taken
DEAD = 0.5  # share of groups without a difference, those at the ceiling not counted
FALLEN = 0.2  # of the valid actions at first
ERRORS = 3 * 2**0.5  # of one mean: three of a difference, below the best validation, twice in a row


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

    def recent(self, name: str) -> tuple[float, float] | None:
        """The mean of a quantity when the run had settled, and over its last steps."""
        values = [line[name] for line in self.steps if name in line]
        if len(values) < 2 * SETTLED:
            return None
        first = float(np.mean(values[SETTLED // 2 : SETTLED + SETTLED // 2]))
        return first, float(np.mean(values[-SETTLED // 2 :]))

    def dead_groups(self) -> Finding | None:
        """Most groups no longer differ in reward, and not because all is reached."""
        level = self.recent("dead_groups")
        if level is None or level[1] <= max(DEAD, level[0]):
            return None
        return sign(
            "dead groups", f"{level[1]:.0%} of groups have equal rewards", level[0], "{:.0%}"
        )

    def unreadable(self) -> Finding | None:
        """Fewer actions can be read than at first."""
        level = self.recent("episode/valid_actions")
        if level is None or level[1] >= (1 - FALLEN) * level[0]:
            return None
        return sign("valid actions", f"{level[1]:.0%} of actions can be read", level[0], "{:.0%}")

    def fallen(self) -> Finding | None:
        """Validation is far below its best, twice in a row."""
        scores = [(e["validation/reward"], e["validation/reward_se"]) for e in self.epochs]
        if len(scores) < 3:
            return None
        best, error = max(scores)
        if not all(score < best - ERRORS * error for score, _ in scores[-2:]):
            return None
        return sign("validation", f"reward {scores[-1][0]:.2f}, twice below", best, "{:.2f}")


def sign(what: str, now: str, before: float, form: str) -> Finding:
    """A sign of collapse in one line."""
    return Finding(
        "collapse",
        "warning",
        f"signs of collapse in {what}: {now}, from {form.format(before)};"
        " lower lr, raise leash.coefficient, or go on from an earlier checkpoint",
    )
