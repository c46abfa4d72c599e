"""What an environment is: made for one task, played once, thrown away.

A `Gym` has tasks and makes environments; training and evaluation call the same `make`. What a
policy does wrong is scored here, with a stop reason; what breaks around it is raised as
`EpisodeBroken`, and whoever plays keeps the episode with its error and without a reward. No policy
is known here.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

from kleash.seeds import key
from kleash.tasks.envs.surfaces import Action, Surface

T = TypeVar("T")

# Why an episode ended. `length` and `broken` are given by whoever plays: it alone knows of them.
STOP_REASONS = ("covered", "finished", "limit", "length", "malformed", "broken")
UNREADABLE_IN_A_ROW = 3  # actions that cannot be read, after which an episode ends


class EpisodeBroken(Exception):
    """Something around the policy failed, so this episode has no reward."""


class EndpointDown(EpisodeBroken):
    """The endpoint behind a user does not answer at all: pause, wait until it is back, go on."""


@dataclass(frozen=True)
class Step:
    """What came of one action. `stop_reason` is given when the episode is done."""

    observation: str
    reward: float
    done: bool = False
    stop_reason: str | None = None
    covered: tuple[str, ...] = ()
    """What this action uncovered, in words; never anything that is still hidden."""


class Task(Protocol):
    """A problem, known by its id; whatever else it holds is for its own gym."""

    @property
    def id(self) -> str:
        """The same on every machine."""


class Env(Protocol):
    """One try at one task."""

    def start(self) -> str:
        """The first observation; to be called once."""

    async def step(self, text: str) -> Step:
        """What the policy's text led to."""

    def cut(self) -> None:
        """The policy's turn did not come to an end, and the episode is over."""

    def metrics(self) -> dict[str, float]:
        """What is logged of the episode beside its reward; holds no secret."""


class Gym(Protocol):
    """Tasks of one kind, and the environments for them."""

    @property
    def content(self) -> str:
        """The hash of all tasks and of every option that changes what a policy sees or earns."""

    @property
    def surface(self) -> Surface:
        """How its environments are spoken to."""

    def tasks(self, split: str) -> Sequence[Any]:
        """The tasks of a split: `train`, `validation` or `test`."""

    def make(self, task: Any, *, seed: int, rollout: int) -> Env:
        """A fresh environment whose draws are named by study seed, task id and rollout."""


class TurnEnv(ABC):
    """The rules that all environments share: single use, a limit of turns, unreadable actions."""

    def __init__(self, surface: Surface, limit: int) -> None:
        self.surface = surface
        self.limit = limit
        self.turns = 0
        self.unreadable = 0
        self._in_a_row = 0
        self._state = "new"

    def start(self) -> str:
        """The first observation."""
        if self._state != "new":
            raise RuntimeError("an environment is played once: make another one")
        self._state = "playing"
        return self.opening()

    async def step(self, text: str) -> Step:
        """Play one action. An environment whose step was broken or cancelled cannot go on."""
        if self._state != "playing":
            raise RuntimeError(f"no step can be taken: the environment is {self._state}")
        self._state = "broken"
        action = self.surface.read(text)
        self.turns += 1
        if action is None:
            self.unreadable += 1
            self._in_a_row += 1
            step = Step(self.surface.unreadable, self.wasted())
            if self._in_a_row == UNREADABLE_IN_A_ROW:
                step = ended(step, "malformed")
        else:
            self._in_a_row = 0
            step = await self.play(action)
        if not step.done and self.turns >= self.limit:
            step = ended(step, "limit")
        self._state = "over" if step.done else "playing"
        return step

    @abstractmethod
    def opening(self) -> str:
        """The first observation."""

    @abstractmethod
    async def play(self, action: Action) -> Step:
        """What an action that could be read leads to."""

    def wasted(self) -> float:
        """The reward of a turn that could not be read."""
        return 0.0

    def cut(self) -> None:
        """A turn without an end is one that could not be read."""
        self.turns += 1
        self.unreadable += 1
        self._state = "over"

    def metrics(self) -> dict[str, float]:
        """Turns taken, and the share of them that could be read."""
        return {
            "turns": float(self.turns),
            "valid_actions": 1 - self.unreadable / self.turns if self.turns else 1.0,
        }


def ended(step: Step, reason: str) -> Step:
    """The same step as the last one."""
    return replace(step, done=True, stop_reason=reason)


def at_once(step: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that waits for nothing, without an event loop.

    Rule users never wait; stepping them this way costs a microsecond.
    """
    try:
        step.send(None)
    except StopIteration as result:
        value: T = result.value
        return value
    step.close()
    raise RuntimeError("this user waits for an endpoint: await the step in an event loop")


def beside(
    call: Callable[[], T],
    begin: Callable[[], object] | None = None,
    end: Callable[[], None] | None = None,
) -> T:
    """What a call gives that runs an event loop of its own.

    Where one runs here already, as in a notebook, the call is made in a thread. `begin` makes the
    thread ready; `end` has the call end early, when whoever waits here is interrupted.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return call()
    thread = ThreadPoolExecutor(1, initializer=begin)
    begun = thread.submit(call)
    try:
        return begun.result()
    finally:
        if end is not None and not begun.done():
            end()
        thread.shutdown(wait=end is not None)


def split_of(names: Sequence[object], shares: Mapping[str, float]) -> str:
    """The split that the names fall in, by their hash: the same names never fall in two."""
    place = key("split", *names) / 2**128
    for split, share in shares.items():
        place -= share
        if place < 0:
            return split
    return list(shares)[-1]
