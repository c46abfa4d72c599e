"""The leash as configured, its controllers, and learning-rate schedules."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import pytest

from kleash.algo.control import (
    CONTROLLERS,
    LEASHES,
    SCHEDULES,
    Controller,
    Leash,
    describe,
)
from kleash.config import build, help_lines
from kleash.errors import ConfigError, GuardError

EVERY = {
    "constant": Leash(coefficient=0.2),
    "linear": Leash(coefficient=0.2, controller="linear", end=0.0, steps=4),
    "cosine": Leash(coefficient=0.2, controller="cosine", end=0.1, steps=4),
    "piecewise": Leash(coefficient=0.05, controller="piecewise", points=((2, 0.1), (4, 0.2))),
    "adaptive": Leash(coefficient=0.2, controller="adaptive", target=2.0),
    "target": Leash(coefficient=0.2, controller="target", target=2.0, rate=0.01),
}
MEASURED = [1.0, 4.0, 2.0, 2.1, 9.0, 0.5]


def course(leash: Leash, measured: list[float]) -> list[float]:
    """The coefficient before each update and after the last."""
    controller = Controller(leash)
    values = [controller.coefficient]
    for kl in measured:
        controller.update(kl)
        values.append(controller.coefficient)
    return values


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("constant", [0.2] * 6),
        ("linear", [0.2, 0.15, 0.1, 0.05, 0.0, 0.0]),
        ("cosine", [0.2, 0.15 + 0.05 / math.sqrt(2), 0.15, 0.15 - 0.05 / math.sqrt(2), 0.1, 0.1]),
        ("piecewise", [0.05, 0.05, 0.1, 0.1, 0.2, 0.2]),
        ("adaptive", [0.2, 0.2 * 0.98, 0.2 * 0.98 * 1.02, 0.2 * 0.98 * 1.02]),
        ("target", [0.2, 0.19, 0.21, 0.21, 0.211]),
    ],
)
def test_a_controller_by_hand(name, expected):
    found = course(EVERY[name], MEASURED[: len(expected) - 1])
    assert found == pytest.approx(expected, abs=1e-15)


def test_every_controller_is_tested():
    assert set(EVERY) == set(CONTROLLERS)


@pytest.mark.parametrize("name", list(EVERY))
@pytest.mark.parametrize("stop", range(len(MEASURED) + 1))
def test_a_controller_stopped_anywhere_goes_on_to_the_same_bits(name, stop):
    first = Controller(EVERY[name])
    for kl in MEASURED[:stop]:
        first.update(kl)
    second = Controller(EVERY[name])
    second.load(json.loads(json.dumps(first.state())))
    for kl in MEASURED[stop:]:
        first.update(kl)
        second.update(kl)
    assert first.state() == second.state()


def test_a_piecewise_leash_may_start_at_its_first_point():
    leash = Leash(coefficient=0.5, controller="piecewise", points=((0, 0.1),))
    assert Controller(leash).coefficient == 0.1


def test_dual_ascent_finds_the_price_of_a_target():
    leash = Leash(coefficient=1.0, controller="target", target=0.5, rate=0.1)
    controller = Controller(leash)
    for _ in range(500):
        controller.update(0.2 / max(controller.coefficient, 0.01))
    assert controller.coefficient == pytest.approx(0.4, rel=1e-6)


def test_a_price_never_falls_below_nothing():
    leash = Leash(coefficient=0.01, controller="target", target=5.0, rate=1.0)
    assert course(leash, [0.0]) == [0.01, 0.0]


@pytest.mark.parametrize("kl", [math.nan, math.inf])
def test_a_controller_does_not_steer_by_a_kl_that_is_no_number(kl):
    with pytest.raises(GuardError, match="cannot steer"):
        Controller(EVERY["target"]).update(kl)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"controller": "linear"}, "set leash.steps"),
        ({"controller": "cosine"}, "set leash.steps"),
        ({"controller": "piecewise"}, "set leash.points"),
        ({"controller": "piecewise", "points": [[5, 0.1], [2, 0.2]]}, "must rise"),
        ({"controller": "piecewise", "points": [[5, -0.1]]}, "0 or more"),
        ({"controller": "adaptive"}, "set leash.target"),
        ({"controller": "adaptive", "target": 1, "coefficient": 0}, "0 stays 0"),
        ({"controller": "target"}, "set leash.target"),
        ({"reference": "path"}, "set leash.reference_path"),
        ({"reference": "reset_every"}, "set leash.reference_every"),
        ({"form": "k1"}, "no leash"),
        ({"form": "low_var_kl"}, "did you mean 'k3'"),
        ({"form": 3}, "bad value for 'form'"),
        ({"coefficient": -1}, "bad value for 'coefficient'"),
        ({"coefficient": math.nan}, "bad value for 'coefficient'"),
        ({"coeficient": 1}, "did you mean 'coefficient'"),
    ],
)
def test_a_leash_that_cannot_be_meant_is_refused(settings, complaint):
    with pytest.raises(ConfigError, match=complaint):
        build(Leash, settings)


def test_every_field_of_a_leash_has_its_sentence():
    assert all(sentence.endswith(".") for _, _, sentence in help_lines(Leash))


@pytest.mark.parametrize("name", list(LEASHES))
def test_every_preset_is_a_leash(name):
    assert build(Leash, LEASHES[name]["leash"]).form in describe(Leash(**LEASHES[name]["leash"]))


@pytest.mark.parametrize(
    ("leash", "words"),
    [
        (Leash(form="k3", coefficient=0.15), "k3 0.15 (constant, reference start)"),
        (
            Leash(**LEASHES["lever-plus"]["leash"]),
            "k3 0.15 (constant, reference start, unscaled)",
        ),
        (Leash(form="none"), "none (reference start)"),
        (EVERY["linear"], "return_to_go 0.2 (linear to 0 in 4, reference start)"),
        (
            EVERY["piecewise"],
            "return_to_go 0.05 (piecewise 0.1 from 2, 0.2 from 4, reference start)",
        ),
        (EVERY["target"], "return_to_go 0.2 (target KL 2, reference start)"),
        (
            Leash(reference="reset_every", reference_every=50),
            "return_to_go 0.1 (constant, reference reset every 50)",
        ),
    ],
)
def test_a_coefficient_is_shown_with_its_form(leash, words):
    assert describe(leash) == words


def test_schedules_by_hand():
    assert [SCHEDULES["constant"](step, 2, 6) for step in range(4)] == [0.5, 1, 1, 1]
    assert [SCHEDULES["linear"](step, 2, 6) for step in range(7)] == [0.5, 1, 1, 0.75, 0.5, 0.25, 0]
    assert SCHEDULES["cosine"](4, 2, 6) == pytest.approx(0.5)
    assert [SCHEDULES[name](0, 0, 1) for name in SCHEDULES] == [1, 1, 1]


@pytest.mark.parametrize("name", list(SCHEDULES))
def test_a_schedule_says_whether_it_depends_on_the_length(name):
    differs = any(SCHEDULES[name](s, 1, 10) != SCHEDULES[name](s, 1, 20) for s in range(10))
    assert SCHEDULES[name].needs_length is differs


def test_the_configs_are_read_and_refused_without_torch():
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from kleash.algo.control import Leash\n"
        "from kleash.errors import ConfigError\n"
        "Leash(form='k3')\n"
        "try:\n    Leash(form='k1')\n"
        "except ConfigError:\n    sys.exit(7)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 7
