"""SwanLab's logs as its own client wrote them, since 0.8 and before: every number comes back."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from kleash.compare.read import Imported, read
from kleash.compare.watch.follow import Whole
from kleash.errors import DataError

FIXTURES = Path(__file__).parent / "fixtures/imports/swanlab"
LOSS = [1.695 / (step + 1) for step in range(6)]
KL = [0.0, 0.001, 0.0035, 0.1 + 0.2, 1e-9, 12345.678901234567]
ODD = [1.0, float("nan"), 1.0, float("inf"), float("-inf"), 1.0]
UNSIGNED = [abs(value) for value in ODD]  # all that the client kept of infinity before 0.8

eras = pytest.mark.parametrize("era", ["since-0.8", "before-0.8"])


def check(run: Imported, odd: list[float]) -> None:
    found = {series.metric: series for series in run.series}
    assert set(found) == {"train/loss", "kl", "odd"}
    for name, values in (("train/loss", LOSS), ("kl", KL), ("odd", odd)):
        assert found[name].steps.tolist() == list(range(6))
        np.testing.assert_array_equal(found[name].values, values)


@eras
@pytest.mark.parametrize("inner", ["", "run"])
def test_a_run_comes_back_with_its_numbers_name_config_and_end(era: str, inner: str) -> None:
    source = read(FIXTURES / era / inner)
    [run] = source.runs
    check(run, ODD if era == "since-0.8" else UNSIGNED)
    assert source.format == "swanlab"
    assert (run.name, run.arm, run.seed, run.finished) == ("kl0.15-s3", "kl0.15", 3, True)
    assert run.config["leash.coefficient"].value == 0.15
    assert run.config["lr"].value == 5e-6


@eras
def test_hardware_and_console_are_no_metrics(era: str) -> None:
    [run] = read(FIXTURES / era).runs
    assert not [series for series in run.series if "swanlab" in series.metric]


@eras
def test_a_log_that_is_cut_is_read_up_to_there_and_one_that_is_damaged_refused(
    era: str, tmp_path: Path
) -> None:
    shutil.copytree(FIXTURES / era, tmp_path / era)
    [log] = (tmp_path / era).rglob("*.swanlab")
    whole = log.read_bytes()
    log.write_bytes(whole[: len(whole) * 2 // 3])
    source = read(log)
    [run] = source.runs
    assert run.finished is False
    assert "unfinished" in source.notes[0]
    for series in run.series:
        odd = ODD if era == "since-0.8" else UNSIGNED
        wanted = {"train/loss": LOSS, "kl": KL, "odd": odd}[series.metric]
        np.testing.assert_array_equal(series.values, wanted[: len(series.values)])
    log.write_bytes(whole[:200] + bytes([whole[200] ^ 1]) + whole[201:])
    with pytest.raises(DataError, match="cannot be read behind record"):
        read(log)


def test_a_version_that_is_not_known_is_one_line(tmp_path: Path) -> None:
    log = tmp_path / "run-a.swanlab"
    log.write_bytes(b":SWL\xd6\xe1\x09")
    with pytest.raises(DataError, match="its version 09 is not known here"):
        read(log)


@eras
def test_a_growing_log_is_followed(
    era: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kleash.compare.watch.follow.OFTEN", 0)
    [log] = (FIXTURES / era).rglob("*.swanlab")
    whole, grown = log.read_bytes(), tmp_path / log.name
    followed = Whole(grown)
    for size in range(7, len(whole) + 300, 300):
        grown.write_bytes(whole[:size])
        followed.poll()
    [told] = followed.runs
    assert told.name == "kl0.15-s3"
    assert told.points["train/loss"].steps == list(range(6))
    assert told.points["train/loss"].values == LOSS
    assert told.finished is True
    assert followed.poll() is False
