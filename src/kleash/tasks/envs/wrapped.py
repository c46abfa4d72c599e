"""Our environments as Gymnasium environments, for tools that expect those.

Observations and actions are texts. Nothing in Kleash uses this: it is for others, and needs the
extra `gymnasium`.
"""

from __future__ import annotations

import asyncio
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Space

from kleash.tasks.envs.contract import Env, Gym

LONGEST = 100_000  # characters of an observation or action


class AnyText(Space[str]):
    """Every text. Samples are short lines of letters, most of which no environment can read."""

    def __init__(self, seed: int | np.random.Generator | None = None) -> None:
        super().__init__(dtype=None, seed=seed)

    def sample(self, mask: Any | None = None, probability: Any | None = None) -> str:
        """A short text, now and then with the tag of an action before it."""
        drawn = self.np_random.integers(97, 123, size=int(self.np_random.integers(1, 20)))
        tag = ("", "[action] ", "[answer] ", "[finish]")[self.np_random.integers(4)]
        return tag + "".join(map(chr, drawn))

    def contains(self, x: Any) -> bool:
        """Whether it is a text of a sane length."""
        return isinstance(x, str) and len(x) <= LONGEST

    @property
    def is_np_flattenable(self) -> bool:
        """A text is no array."""
        return False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AnyText)

    __hash__ = None  # type: ignore[assignment]  # spaces can be compared and not hashed

    def __repr__(self) -> str:
        return "AnyText()"


class WrappedEnv(gymnasium.Env[str, str]):
    """A gym's tasks of one split, one after the other as its seed draws them."""

    metadata = {"render_modes": []}  # noqa: RUF012 - Gymnasium's name for it

    def __init__(self, gym: Gym, split: str = "train", *, seed: int = 0) -> None:
        self.observation_space = AnyText()
        self.action_space = AnyText()
        self._gym = gym
        self._tasks = list(gym.tasks(split))
        self._seed = seed
        self._rollout = 0
        self._env: Env | None = None
        self._runner: asyncio.Runner | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """The next task, or the one whose id is `options["task"]`."""
        super().reset(seed=seed)
        if seed is not None:
            self._seed, self._rollout = seed, 0
        wanted = (options or {}).get("task")
        drawn = self._tasks[self.np_random.integers(len(self._tasks))]
        task = next((t for t in self._tasks if t.id == wanted), None) if wanted else drawn
        if task is None:
            raise ValueError(f"no task {wanted!r} in this split")
        self._env = self._gym.make(task, seed=self._seed, rollout=self._rollout)
        self._rollout += 1
        return self._env.start(), {"task": task.id}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """One action; running out of turns is a truncation, every other end a termination."""
        if self._env is None:
            raise RuntimeError("reset it first")
        if self._runner is None:
            self._runner = asyncio.Runner()
        step = self._runner.run(self._env.step(action))
        truncated = step.stop_reason == "limit"
        info = self._env.metrics() | {"stop_reason": step.stop_reason}
        return step.observation, step.reward, step.done and not truncated, truncated, info

    def close(self) -> None:
        """Let go of the event loop."""
        if self._runner is not None:
            self._runner.close()
            self._runner = None
