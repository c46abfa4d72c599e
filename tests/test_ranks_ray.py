"""A study whose runs have two ranks each, on a real Ray cluster: the scores of one process."""

import os

import pytest

from kleash.config import build, merge
from kleash.runs.jobs import on_ray
from kleash.runs.run import Run
from kleash.study.plan import StudyFile
from kleash.study.running import Asked, run_study

if on_ray.ray is None:
    pytest.skip("Ray is not installed: make test-all has it", allow_module_level=True)
pytestmark = [
    pytest.mark.slow,
    # Ray leaves sockets and files to the garbage collector.
    pytest.mark.filterwarnings(
        "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
    ),
]
SMALL = {
    "name": "ranked",
    "seeds": 1,
    "base": {
        "env": "intention",
        "gym": {
            "surface": "tokens",
            "limit": 5,
            "world": {"train": 60, "validation": 20, "test": 50},
        },
        "tiny": {"width": 32, "layers": 1, "heads": 2},
        "supervised": {"epochs": 1, "dialogues": 200, "lr": 0.01},
        "validation": {"tasks": 20, "training": 4},
        "scale": {"precision": "float64"},
    },
    "grpo": {"epochs": 1, "steps": 2, "batch": 4, "group": 4, "lr": 3e-3, "turn_tokens": 4},
    "arms": {"tight": {"leash": {"coefficient": 1.0}, "entropy_bonus": 0.1}},
    "measure": {"shots": [0], "items": [6], "validation": 6},
}


def studied(folder, ranks, on):
    file = build(StudyFile, merge(SMALL, {"base": {"scale": {"ranks": ranks}}}))
    ran = run_study(Asked(file, folder, jobs=2, on=on))
    assert not ran.failures
    assert ran.overview.counts() == {"done": 3}
    return Run.open(folder / "runs/tight-s0")


def test_ray_train_starts_the_ranks_of_a_run(tmp_path, monkeypatch):
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", os.environ.get("GLOO_SOCKET_IFNAME", "lo"))
    one = studied(tmp_path / "one", 0, "local")
    two = studied(tmp_path / "two", 2, "ray")
    assert [line["ranks"] for line in two.timings() if "epoch" in line] == [2]
    for ours, theirs in zip(two.metrics(), one.metrics(), strict=True):
        numbers = {name: value for name, value in theirs.items() if isinstance(value, float)}
        assert {name: ours[name] for name in numbers} == pytest.approx(numbers, rel=1e-9, abs=1e-12)
    scores = [line["score"] for line in one.scores()]
    assert [line["score"] for line in two.scores()] == pytest.approx(scores)
