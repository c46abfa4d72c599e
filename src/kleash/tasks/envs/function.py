"""Function: find out f(a, b, c, d) by asking for its values, then say its value at a given place.

Whole numbers only, so every value is exact. Asking for the place itself, or for one so near that it
gives the value away, is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pydantic import Field

from kleash.config import Config
from kleash.errors import ConfigError
from kleash.runs.ledger import Ledger
from kleash.seeds import generator, key
from kleash.tasks.envs.contract import Step, TurnEnv, ended, split_of
from kleash.tasks.envs.surfaces import Action, TextSurface

SHARES = {"train": 0.6, "validation": 0.2, "test": 0.2}
LARGEST = 1000  # of an argument in a question, without its sign
Numbers = Sequence[int]

# Each takes the arguments and four coefficients.
KINDS: dict[str, Callable[[Numbers, Numbers], int]] = {
    "linear": lambda x, k: k[0] * x[0] + k[1] * x[1] + k[2] * x[2] + k[3] * x[3],
    "product": lambda x, k: k[0] * x[0] * x[1] + k[1] * x[2] + k[2] * x[3] + k[3],
    "squares": lambda x, k: k[0] * x[0] ** 2 + k[1] * x[1] + k[2] * x[2] ** 2 + k[3] * x[3],
    "extremes": lambda x, k: k[0] * max(x[0], x[1]) + k[1] * min(x[2], x[3]) + k[2],
    "factors": lambda x, k: (x[0] + k[0] * x[1]) * (x[2] - k[1] * x[3]) + k[2],
}


class FunctionOptions(Config):
    """What a function gym is made of."""

    seed: int = 0
    """Names the draws of all tasks."""
    limit: int = Field(10, ge=1)
    """The most turns of an episode."""
    train: int = Field(600, ge=1)
    """Tasks to train on."""
    validation: int = Field(200, ge=1)
    """Tasks that choose checkpoints."""
    test: int = Field(200, ge=1)
    """Tasks that are touched once."""


@dataclass(frozen=True)
class Hidden:
    """A task: a function, and the place at which its value is asked for."""

    id: str
    split: str
    kind: str
    coefficients: tuple[int, ...]
    place: tuple[int, ...]

    def value(self, arguments: Numbers) -> int:
        """f of the arguments."""
        return KINDS[self.kind](arguments, self.coefficients)


def is_near(arguments: Numbers, place: Numbers) -> bool:
    """Whether the value at the arguments would give away the one at the place."""
    same = sum(a == p for a, p in zip(arguments, place, strict=True))
    apart = max(abs(a - p) for a, p in zip(arguments, place, strict=True))
    return same >= 3 or apart <= 1 or sorted(arguments) == sorted(place)


class FunctionEnv(TurnEnv):
    """One game. The right value earns 1, a wrong one nothing, and either ends it."""

    def __init__(self, task: Hidden, surface: TextSurface, limit: int) -> None:
        super().__init__(surface, limit)
        self._task = task

    def opening(self) -> str:
        """The place at which the value is asked for."""
        where = ", ".join(map(str, self._task.place))
        return f"There is a function f(a, b, c, d) of whole numbers. What is f({where})?"

    async def play(self, action: Action) -> Step:
        """A question for a value, or the answer."""
        numbers = [
            int(found) for found in re.findall(r"(?<![\d.])-?\d{1,9}(?![\d.])", action.content)
        ]
        if action.choice == "answer":
            if len(numbers) != 1:
                return Step("Answer with one whole number.", 0.0)
            right = numbers[0] == self._task.value(self._task.place)
            said = "That is right." if right else "That is wrong."
            return ended(Step(said, 1.0 if right else 0.0), "finished")
        if len(numbers) != 4 or max(map(abs, numbers)) > LARGEST:
            return Step(f"Ask with four whole numbers, none beyond {LARGEST}.", 0.0)
        if is_near(numbers, self._task.place):
            return Step("That is too near to what you are asked for.", 0.0)
        shown = ", ".join(map(str, numbers))
        return Step(f"f({shown}) = {self._task.value(numbers)}", 0.0)


class Functions:
    """Functions to find out. No model is asked, so the ledger stays unused."""

    def __init__(
        self, ledger: Ledger | None = None, options: FunctionOptions | None = None
    ) -> None:
        self.options = options or FunctionOptions()
        self.surface = TextSurface(
            "Find out a hidden function by asking for its values, then answer what you are asked.",
            ("action", "answer"),
            frozenset(),
            "ask for the value at four whole numbers, for example `[action] 1 0 -2 5`",
        )
        self._tasks = _drawn(self.options)

    @property
    def content(self) -> str:
        """The hash of the options, which name every task."""
        return f"{key('function', self.options.model_dump_json(), *KINDS):032x}"

    def tasks(self, split: str) -> list[Hidden]:
        """The functions of a split."""
        return [task for task in self._tasks if task.split == split]

    def make(self, task: Hidden, *, seed: int, rollout: int) -> FunctionEnv:
        """A fresh game; nothing in it is drawn."""
        return FunctionEnv(task, self.surface, self.options.limit)


def _drawn(options: FunctionOptions) -> list[Hidden]:
    """As many different functions for each split as are asked for; the place makes no new one."""
    wanted = {"train": options.train, "validation": options.validation, "test": options.test}
    found: dict[tuple[object, ...], Hidden] = {}
    for number in range(20 * sum(wanted.values()) + 1000):
        if not any(wanted.values()):
            return list(found.values())
        rng = generator("function", options.seed, number)
        kind = list(KINDS)[rng.integers(len(KINDS))]
        signs = rng.choice([-1, 1], size=4)
        coefficients = tuple(int(k) for k in signs * rng.integers(1, 10, size=4))
        place = tuple(int(x) for x in rng.integers(-9, 10, size=4))
        named = (kind, *coefficients)
        split = split_of(named, SHARES)
        if named not in found and wanted[split]:
            name = f"function-{key('function', *named, *place):032x}"[:21]
            found[named] = Hidden(name, split, kind, coefficients, place)
            wanted[split] -= 1
    raise ConfigError(f"there are not so many functions: {wanted} are still missing; ask for fewer")
