"""A study that begins with what another project trained: all arms start from its checkpoint."""

from __future__ import annotations

import pytest

from kleash.report import markdown_of, short_page, study_material
from kleash.runs.run import Run
from kleash.study.results import results
from kleash.train.adopt import adopt
from study_tools import inline, run_small
from test_adopt import TINY, Theirs, save

__all__ = ["inline"]

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.slow
def test_a_study_starts_from_an_adopted_checkpoint(tmp_path, inline):
    theirs = save(tmp_path / "kl012/rce_epoch5.pt", Theirs(), epoch=5, phase="rce").parent
    adopted = adopt(theirs, TINY, tmp_path / "runs").run
    start = adopted.path / "checkpoints/rce-5"
    folder, asked = tmp_path / "study", {"from": str(start)}
    ran, _ = run_small(folder, seeds=2, base=asked)
    assert not ran.failures
    assert ran.overview.counts()["done"] == len(ran.overview.cells)
    weights = adopted.state("rce-5")["weights_hash"]
    for seed in (0, 1):
        base = Run.open(folder / f"base-s{seed}")
        assert base.checkpoints() == ["start"], "nothing of the warm-up is done again"
        assert base.meta["base"] == base.state("start")["weights_hash"] == weights
        for arm in ("none", "tight"):
            run = Run.open(folder / f"runs/{arm}-s{seed}")
            assert run.meta["base"] == weights
            assert run.state("epoch-1")["weights_hash"] != weights
    measured = list(Run.open(folder / "base-s0").scores())
    assert {line["weights"] for line in measured if line["checkpoint"] == "start"} == {weights}
    for language in ("en", "zh"):
        assert "tight" in markdown_of(short_page(study_material(results(folder), language)))
    _, again = run_small(folder, seeds=2, base=asked)
    assert again == []


def test_an_adopted_checkpoint_that_does_not_fit_is_one_line(tmp_path, inline):
    """CLIP's vectors have 512 numbers, those of this world 12."""
    adopted = adopt(save(tmp_path / "kl/rce_epoch1.pt", Theirs(512)), TINY, tmp_path / "runs").run
    ran, _ = run_small(
        tmp_path / "study", seeds=1, base={"from": str(adopted.path / "checkpoints/rce-1")}
    )
    assert "projections.input.weight" in str(ran.failures["base-s0"])
