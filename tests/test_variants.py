"""Arms of another preset: each has a base of its own, and is still controlled."""

from __future__ import annotations

from pathlib import Path

import pytest

from kleash.runs.run import Run
from kleash.study.plan import arms_of, own_selector, read_study
from kleash.study.results import results
from kleash.tasks.demos.presets import PRESETS
from study_tools import inline, run_small

__all__ = ["inline"]


def test_every_preset_is_an_arm_of_the_bundled_study() -> None:
    file = read_study("demos-variants")
    arms = arms_of(file)
    assert {arm.keys["selector"] for arm in arms} == set(PRESETS)
    assert [own_selector(file, arm) for arm in arms[:2]] == ["", "v0-gpt2"]


@pytest.mark.slow
def test_another_preset_starts_from_its_own_base(tmp_path: Path, inline: None) -> None:
    folder = tmp_path / "variants"
    arms = {"other": {"selector": "v1"}, "held": {"selector": "v1", "leash": {"coefficient": 1.0}}}
    ran, started = run_small(folder, seeds=1, arms=arms, measure={"baselines": ["base"]})
    assert not ran.failures
    assert sorted(started) == [
        *("base-s0", "base-v1-s0", "held-s0", "none-s0", "other-s0", "tight-s0"),
    ]
    base, own = Run.open(folder / "base-s0"), Run.open(folder / "base-v1-s0")
    assert (base.config["selector"], own.config["selector"]) == ("v3", "v1")
    starts = {
        arm: Run.open(folder / f"runs/{arm}-s0").meta["base"]
        for arm in ("none", "tight", "other", "held")
    }
    assert starts["none"] == starts["tight"] == base.state("rce-1")["weights_hash"]
    assert starts["other"] == starts["held"] == own.state("rce-1")["weights_hash"]
    # Each has the base of its preset, so nothing is mixed; a distance needs a common start.
    found = results(folder)
    assert [entry for entry in found.mixed if entry["what"] == "base"] == []
    distances = {pair.arms: pair.kl for pair in found.agreements}
    assert distances["none", "other"] is None
    assert distances["other", "held"] is not None
    _, again = run_small(folder, seeds=1, arms=arms, measure={"baselines": ["base"]})
    assert again == []
