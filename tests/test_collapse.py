from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kleash.train.agent import Collapse

Lines = list[dict[str, Any]]


def lines(steps: int, **of: Callable[[int], float]) -> Lines:
    names = {"dead": "dead_groups", "valid": "episode/valid_actions"}
    found: Lines = []
    for step in range(steps):
        values = {names[name]: value(step) for name, value in of.items() if name in names}
        found.append({"kind": "step", "dead_groups": 0.1, "episode/valid_actions": 1.0} | values)
        if step % 10 == 9 and "reward" in of:
            scored = {"validation/reward": of["reward"](step), "validation/reward_se": 0.05}
            number = {"kind": "epoch", "phase": "grpo", "epoch": step // 10 + 1}
            found.append(number | scored)
    return found


def signs(found: Lines) -> list[str]:
    return [sign.message.split(":")[0] for sign in Collapse.of(found).signs()]


def test_a_healthy_run_shows_no_sign() -> None:
    assert signs(lines(60, reward=lambda step: 1 + step / 100)) == []


@pytest.mark.parametrize("steps", range(0, 20, 4))
def test_nothing_is_said_before_a_run_has_settled(steps: int) -> None:
    assert signs(lines(steps, dead=lambda step: 1.0, valid=lambda step: 1 / (step + 1))) == []


def test_dead_groups_are_a_sign_where_they_grow() -> None:
    grown = lines(60, dead=lambda step: 0.1 if step < 40 else 0.7)
    assert signs(grown) == ["signs of collapse in dead groups"]
    assert signs(lines(60, dead=lambda step: 0.7)) == []  # that is how it has always been


def test_actions_that_cannot_be_read_are_a_sign() -> None:
    fallen = lines(60, valid=lambda step: 0.95 if step < 40 else 0.7)
    assert signs(fallen) == ["signs of collapse in valid actions"]
    assert signs(lines(60, valid=lambda step: 0.95 if step < 40 else 0.8)) == []


def test_validation_far_below_its_best_twice_is_a_sign() -> None:
    once = [1.0, 1.8, 1.9, 1.6]
    assert signs(lines(40, reward=lambda step: once[step // 10])) == []
    twice = lines(50, reward=lambda step: [*once, 1.65][step // 10])
    assert signs(twice) == ["signs of collapse in validation"]
    assert Collapse.of(twice).best() == 3


def flat(run: int) -> Lines:
    """A run that goes nowhere, with the noise of 200 validation tasks."""
    rng = np.random.default_rng(run)
    return lines(
        150,
        dead=lambda step: float(rng.binomial(16, 0.2)) / 16,
        valid=lambda step: 1 - float(rng.binomial(800, 0.05)) / 800,
        reward=lambda step: 1.5 + 0.05 * float(rng.standard_normal()),
    )


def test_noise_alone_is_seldom_a_sign() -> None:
    runs = [flat(run) for run in range(200)]
    alarms = sum(any(signs(run[:end]) for end in range(11, len(run) + 1, 11)) for run in runs)
    assert alarms <= 4
