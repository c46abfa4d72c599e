"""The bench of rollouts on a GPU, on a CPU with a tiny shape: every row, and rows that fail."""

import subprocess
import sys

import pytest
import torch

from benchmarks import gpu_rollouts

ROWS = ["machine", "model", "pages", *["step"] * 4]
PROFILE = ["profile"] if torch.cuda.is_available() else []  # of kernels: a CPU has none
ROWS += ["generate", "talks", "log-probabilities", "users", "users", *PROFILE]


@pytest.mark.slow
def test_every_row_is_measured_and_none_hides_a_failure(one_thread, monkeypatch):
    rows = list(gpu_rollouts.measure(300, "tiny"))
    assert [row["row"] for row in rows] == ROWS
    assert not [row for row in rows if "error" in row or "skipped" in row]
    assert rows[9]["sampled - trainer: largest"] < 1e-4
    found = gpu_rollouts.verdict(rows)
    assert found["times generate (10)"] == rows[8]["times generate"]

    monkeypatch.setattr("kleash.models.engine.decoder.Decoder.step", lambda *a, **k: 1 / 0)
    rows = list(gpu_rollouts.measure(300, "tiny"))
    assert [row["row"] for row in rows] == ROWS
    failed = [row for row in rows if "error" in row]
    broken = [*["step"] * 4, "talks", "log-probabilities", "users", "users", *PROFILE]
    assert [row["row"] for row in failed] == broken
    assert failed[0]["error"] == "ZeroDivisionError: division by zero" and failed[0]["where"]
    assert gpu_rollouts.verdict(rows)["smallest share of the bound (0.5)"] is None


def test_without_time_nothing_is_begun(one_thread):
    bench = gpu_rollouts.Bench(gpu_rollouts.SHAPES["tiny"], 0.0)
    assert "left" in bench.row("step", 3, lambda: 1 / 0)["skipped"]


@pytest.mark.slow
def test_it_needs_no_pydantic():
    """The machine that is measured has torch and transformers, and not all of our dependencies."""
    script = "import sys; sys.modules['pydantic'] = None; import benchmarks.gpu_rollouts"
    script += ", kleash.models.engine.paged, kleash.models.language.policy"
    subprocess.run([sys.executable, "-c", script], check=True)
