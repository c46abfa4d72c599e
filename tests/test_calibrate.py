"""Arms placed by realised KL: the placing by hand, and a calibration of a small study."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from kleash.errors import ConfigError, KleashError
from kleash.runs.run import Run
from kleash.study.calibrate import falling, place
from kleash.study.plan import arms_of
from kleash.study.plan.folder import placed, spent
from kleash.study.results import realised_kl, results
from study_tools import inline, lasting, run_small, small

__all__ = ["inline"]
CALIBRATE = {"arms": 3, "trials": [0.0, 0.01, 1.0, 30.0], "epochs": 1}


def test_places_lie_evenly_in_the_logarithm_of_kl() -> None:
    # KL is 1 / coefficient here, so even steps of log KL are even steps of log coefficient.
    coefficients, kls = place([0.01, 0.1, 1.0, 10.0], [100.0, 10.0, 1.0, 0.1], 4)
    assert coefficients == pytest.approx([0.01, 0.1, 1.0, 10.0])
    assert kls == pytest.approx([100.0, 10.0, 1.0, 0.1])
    # Half as steep up to 1: the middle in log KL (100 to 1) is 10, which is reached at 1.
    coefficients, kls = place([0.01, 1.0, 10.0], [100.0, 10.0, 1.0], 3)
    assert coefficients == pytest.approx([0.01, 1.0, 10.0])
    assert kls == pytest.approx([100.0, 10.0, 1.0])


def test_noise_that_rises_is_pooled() -> None:
    points = falling([0.0, 1.0, 2.0, 3.0], [5.0, 2.0, 4.0, 1.0])
    assert points == [(0.0, 5.0), (1.5, 3.0), (3.0, 1.0)]
    coefficients, kls = place([0.01, 0.1, 1.0, 10.0], [5.0, 2.0, 4.0, 1.0], 5)
    assert coefficients == sorted(coefficients)
    assert (np.diff(np.log(kls)) < 0).all()


def test_nothing_to_place_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(KleashError, match=r"all went about 0\.3 nats"):
        place([0.1, 1.0], [0.3, 0.3], 3)
    with pytest.raises(KleashError, match=r"raise grpo\.lr"):
        place([0.1, 1.0], [0.3, 0.0], 3)
    with pytest.raises(ConfigError, match="fewer than two coefficients"):
        run_small(tmp_path / "x", calibrate={"arms": 2, "trials": [0.0, 1.0]})


def test_arm_without_leash_is_always_there() -> None:
    file = small(calibrate=CALIBRATE)
    assert [arm.name for arm in arms_of(file)] == ["none", "tight"]
    bare = file.but(arms={})
    assert [(arm.name, arm.keys) for arm in arms_of(bare)] == [("none", {"leash.coefficient": 0.0})]


@pytest.mark.slow
def test_small_study_is_calibrated_once_and_goes_on_where_it_stopped(
    tmp_path: Path, inline: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "wide"
    changes = {"calibrate": CALIBRATE, "seeds": 1, "measure": {"baselines": [], "shots": [2]}}
    # Ended in the middle of the trials: what is there stays, and no arm is known yet.
    stopped, begun = run_small(folder, **changes, budget={"answers": 700})
    assert stopped.stopped
    assert 0 < len(begun) < 5
    assert placed(folder) == []
    ran, started = run_small(folder, **changes)
    assert not ran.failures
    assert set(started) & set(begun[:-1]) == set()
    assert not [name for name in started if name == "base-s1000" and name in begun]

    kept = json.loads((folder / "calibration.json").read_text(encoding="utf-8"))
    reached = {row["coefficient"]: row["kl"] for row in kept["trials"]}
    assert kept["without_leash"] == reached[0.0]
    assert len(kept["coefficients"]) == 3
    assert kept["coefficients"][0] == 0.01
    assert kept["coefficients"][-1] == 30.0
    assert kept["expected_kl"] == sorted(kept["expected_kl"], reverse=True)
    # The trials saw no test item, and paid from the study's own ledger.
    for path in (folder / "calibration/runs").iterdir():
        assert {line["split"] for line in Run.open(path).scores()} == {"validation"}
    assert not (folder / "calibration/ledger.sqlite").exists()
    # The arms that were placed are real arms, in the order of their KL.
    names = [f"kl-{value:.3g}" for value in kept["coefficients"]]
    found = results(folder)
    assert [arm.name for arm in found.arms] == ["none", "tight", *names]
    kls = [realised_kl(ran.overview.seen[name, 0], {}) for name in names]
    assert kls == sorted(kls, reverse=True)  # type: ignore[type-var]

    before, paid = lasting(folder), spent(folder)
    _, again = run_small(folder, **changes)
    assert again == []
    assert lasting(folder) == before
    assert spent(folder) == paid
    assert paid["jobs"] > len(list((folder / "runs").iterdir()))
