"""What follows from a study's folder, by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kleash.runs.run import Run
from kleash.study.plan.folder import Seen
from kleash.study.results import KL, realised_kl


def test_realised_kl_is_that_of_the_last_epoch_of_grpo(tmp_path: Path) -> None:
    lines: list[dict[str, Any]] = [
        {"kind": "epoch", "phase": "rce", "epoch": 1, "step": 3, KL: 9.0},
        {"kind": "epoch", "phase": "grpo", "epoch": 1, "step": 3, "loss": 1.0, KL: 0.25},
        {"kind": "step", "step": 4, "loss": 1.0},
    ]
    facts = {"identity": "a", "base": "w"}
    run = Run.create(tmp_path / "none-s0", {"seed": 0}, {}, facts)
    seen = Seen("none-s0", run, {})
    assert realised_kl(Seen("none-s1", None, {}), {}) is None
    assert realised_kl(seen, {}) is None
    for line in lines:
        run.log(line)
    assert realised_kl(seen, {}) == 0.25
    run.log({"kind": "epoch", "phase": "grpo", "epoch": 2, "step": 6, "loss": 1.0})
    assert realised_kl(seen, {}) is None  # the last epoch told none
