"""The leash as it is configured, what its coefficient does over time, and learning-rate schedules.

No torch here: the command line reads these configs without it. What a form does is in `kl`, `grpo`.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self, get_args

from pydantic import Field, field_validator, model_validator

from kleash.algo.kl import CLAMPED
from kleash.config import Config
from kleash.errors import ConfigError, GuardError

FormName = Literal["return_to_go", "exact", "k2", "k3", "k3_ratio", "reward_k1", "none"]
ControllerName = Literal["constant", "linear", "cosine", "piecewise", "adaptive", "target"]
ReferenceName = Literal["start", "adapter_off", "ema", "reset_every", "path"]


class Leash(Config):
    """How KL to the reference enters training."""

    form: FormName = "return_to_go"
    """Where and as what KL enters: return_to_go, exact, k2, k3, k3_ratio, reward_k1 or none."""
    coefficient: float = Field(0.1, ge=0, allow_inf_nan=False)
    """What one nat of KL of a whole episode costs, in units of reward; the start of a schedule."""
    scaled: bool = True
    """Whether it is scaled with advantages to keep its unit (standardise: large groups only)."""
    clamp: float = Field(0.0, ge=0, allow_inf_nan=False)
    """The most that k3 of one choice is taken for; beyond it the leash lets go. 0 has no clamp."""
    controller: ControllerName = "constant"
    """What moves the coefficient: constant, linear, cosine, piecewise, adaptive or target."""
    end: float = Field(0.0, ge=0, allow_inf_nan=False)
    """The coefficient that linear and cosine arrive at."""
    steps: int = Field(0, ge=0)
    """After how many batches linear and cosine arrive."""
    points: tuple[tuple[int, float], ...] = ()
    """For piecewise, pairs of a batch and the coefficient from there on, earliest first."""
    target: float = Field(0.0, ge=0, allow_inf_nan=False)
    """The KL, in nats per episode, that adaptive and target steer to."""
    rate: float = Field(0.1, gt=0, allow_inf_nan=False)
    """How fast adaptive and target steer: the gain K of Ziegler 2019, or the dual step size."""
    reference: ReferenceName = "start"
    """What the leash is tied to: start, adapter_off, ema, reset_every or path."""
    reference_path: str = ""
    """For path, the checkpoint that is the reference."""
    reference_every: int = Field(0, ge=0)
    """For reset_every, after how many updates the reference becomes the policy."""
    reference_decay: float = Field(0.99, ge=0, lt=1)
    """For ema, how much of the reference stays at each update."""

    @field_validator("form", mode="before")
    @classmethod
    def refuse_by_name(cls, form: Any) -> Any:
        """A form that is refused, or known elsewhere by another name, is answered with why."""
        if isinstance(form, str) and form not in get_args(FormName):
            from kleash.algo.kl import (
                form_named,  # the reasons; not needed for a name that is known
            )

            form_named(form)
        return form

    @model_validator(mode="after")
    def complete(self) -> Self:
        """What the controller and the reference need is there."""
        for given, complaint in self.needs():
            if not given:
                raise ConfigError(complaint)
        return self

    def needs(self) -> list[tuple[bool, str]]:
        """What must hold for this controller and reference, and the line to say if it does not."""
        name = f"leash.controller {self.controller!r}"
        ordered = [step for step, _ in self.points]
        by_controller = {
            "linear": [(self.steps > 0, f"{name} has no end: set leash.steps to 1 or more")],
            "cosine": [(self.steps > 0, f"{name} has no end: set leash.steps to 1 or more")],
            "piecewise": [
                (bool(self.points), f"{name} has no points: set leash.points = [[100, 0.2]]"),
                (
                    ordered == sorted(set(ordered)) and all(c >= 0 for _, c in self.points),
                    f"leash.points {list(self.points)} must rise in steps, coefficients 0 or more",
                ),
            ],
            "adaptive": [
                (self.target > 0, f"{name} has no goal: set leash.target in nats per episode"),
                (
                    self.coefficient > 0,
                    f"{name} multiplies the coefficient, and 0 stays 0:"
                    " set leash.coefficient above 0",
                ),
            ],
            "target": [
                (self.target > 0, f"{name} has no goal: set leash.target in nats per episode")
            ],
        }
        clamp = (
            not self.clamp or self.form in (*CLAMPED, "none"),
            f"leash.clamp {self.clamp:g} is for k3 and k3_ratio, the form is {self.form!r}: set"
            " leash.clamp to 0",
        )
        by_reference = {
            "path": [
                (
                    bool(self.reference_path),
                    "leash.reference 'path' has no path: set leash.reference_path",
                )
            ],
            "reset_every": [
                (
                    self.reference_every > 0,
                    "leash.reference 'reset_every' never resets: set leash.reference_every",
                )
            ],
        }
        needs = by_controller.get(self.controller, []) + by_reference.get(self.reference, [])
        return [*needs, clamp]


# What other projects do, as settings to lay under one's own. Their leash is not scaled with the
# advantages, so their coefficients are in units of each group's spread; see docs/method.md.
LEASHES: dict[str, dict[str, Any]] = {
    "kleash": {
        "advantage": "leave_one_out",
        "weight": "by_choice",
        "leash": {"form": "return_to_go", "coefficient": 0.1},
    },
    "lever-plus": {
        "advantage": "standardise",
        "weight": "by_episode",
        "leash": {"form": "k3", "coefficient": 0.15, "scaled": False},
    },
    "verl": {
        "advantage": "standardise",
        "weight": "by_choice",
        "leash": {"form": "k3", "coefficient": 0.001, "scaled": False, "clamp": 10.0},
        "clip": {"dual": 3.0},
    },
    "trl": {
        "advantage": "standardise",
        "weight": "by_choice",
        "leash": {"form": "k3_ratio", "coefficient": 0.001, "scaled": False},
    },
}


def describe(leash: Leash) -> str:
    """The leash in a few words, such as `k3 0.15 (constant, reference start)`."""
    reference = {
        "reset_every": f"reset every {leash.reference_every}",
        "ema": f"ema {leash.reference_decay:g}",
        "path": f"path {leash.reference_path}",
    }.get(leash.reference, leash.reference)
    if leash.form == "none":
        return f"none (reference {reference})"
    course = {
        "linear": f"linear to {leash.end:g} in {leash.steps}",
        "cosine": f"cosine to {leash.end:g} in {leash.steps}",
        "piecewise": "piecewise " + ", ".join(f"{c:g} from {s}" for s, c in leash.points),
        "adaptive": f"adaptive to KL {leash.target:g}",
        "target": f"target KL {leash.target:g}",
    }.get(leash.controller, leash.controller)
    unit = "" if leash.scaled else ", unscaled"
    unit += f", clamp {leash.clamp:g}" if leash.clamp else ""
    return f"{leash.form} {leash.coefficient:g} ({course}, reference {reference}{unit})"


def constant(leash: Leash, step: int, now: float, kl: float) -> float:
    """The coefficient asked for."""
    return leash.coefficient


def linear(leash: Leash, step: int, now: float, kl: float) -> float:
    """A straight line to the end."""
    done = min(step / leash.steps, 1.0)
    return leash.coefficient + (leash.end - leash.coefficient) * done


def cosine(leash: Leash, step: int, now: float, kl: float) -> float:
    """Half a cosine to the end."""
    done = min(step / leash.steps, 1.0)
    return leash.end + (leash.coefficient - leash.end) * (1 + math.cos(math.pi * done)) / 2


def piecewise(leash: Leash, step: int, now: float, kl: float) -> float:
    """The coefficient of the last point that has been reached."""
    reached = bisect_right([at for at, _ in leash.points], step)
    return leash.points[reached - 1][1] if reached else leash.coefficient


def adaptive(leash: Leash, step: int, now: float, kl: float) -> float:
    """A proportional controller on the logarithm (Ziegler 2019, 1909.08593, section 2.2)."""
    error = min(max(kl / leash.target - 1, -0.2), 0.2)
    return now * (1 + leash.rate * error)


def target(leash: Leash, step: int, now: float, kl: float) -> float:
    """Dual ascent: the coefficient is the price of a nat, and rises while KL is above target."""
    return max(0.0, now + leash.rate * (kl - leash.target))


CONTROLLERS: dict[str, Callable[[Leash, int, float, float], float]] = {
    "constant": constant,
    "linear": linear,
    "cosine": cosine,
    "piecewise": piecewise,
    "adaptive": adaptive,
    "target": target,
}


@dataclass
class Controller:
    """The coefficient of a run now, and the rule that moves it after every batch."""

    leash: Leash
    step: int = 0
    coefficient: float = field(init=False)

    def __post_init__(self) -> None:
        """Scheduled ones may start elsewhere than at leash.coefficient: a point at update 0."""
        start = self.leash.coefficient
        measured = {"adaptive", "target"}
        rule = constant if self.leash.controller in measured else CONTROLLERS[self.leash.controller]
        self.coefficient = rule(self.leash, self.step, start, 0.0)

    def update(self, measured_kl: float) -> None:
        """Move on by one batch, having measured so many nats of KL per episode."""
        if not math.isfinite(measured_kl):
            raise GuardError(
                f"KL is {measured_kl} after batch {self.step}: a controller cannot steer by it;"
                " look at the batch that was saved"
            )
        self.step += 1
        rule = CONTROLLERS[self.leash.controller]
        self.coefficient = rule(self.leash, self.step, self.coefficient, measured_kl)

    def state(self) -> dict[str, Any]:
        """What must be kept to go on exactly."""
        return {"step": self.step, "coefficient": self.coefficient}

    def load(self, state: Mapping[str, Any]) -> None:
        """Go on from a kept state."""
        self.step, self.coefficient = int(state["step"]), float(state["coefficient"])


@dataclass(frozen=True)
class Schedule:
    """A learning-rate factor after warm-up, given how much of the way (0 to 1) is done.

    With `needs_length`, a longer run has another rate at the same step: stopping it early is not
    the same as planning a shorter one.
    """

    factor: Callable[[float], float]
    needs_length: bool

    def __call__(self, step: int, warmup: int, total: int) -> float:
        """The factor for update `step`, counted from 0, of `total`."""
        if step < warmup:
            return (step + 1) / warmup
        return self.factor(min((step - warmup) / max(total - warmup, 1), 1.0))


SCHEDULES = {
    "constant": Schedule(lambda done: 1.0, needs_length=False),
    "linear": Schedule(lambda done: 1 - done, needs_length=True),
    "cosine": Schedule(lambda done: (1 + math.cos(math.pi * done)) / 2, needs_length=True),
}
