"""A study small enough for tests: real training and measuring in real workers, on tiny data."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kleash.config import build, merge
from kleash.errors import KleashError
from kleash.runs.jobs import Job, Outcome, Told
from kleash.study.plan import StudyFile
from kleash.study.plan.folder import read_plan
from kleash.study.running import Asked, Ran, run_study
from made_once import made_once

HERE = Path(__file__).parent
SMALL: dict[str, Any] = {
    "name": "small",
    "seeds": 2,
    "base": {
        "data": "tiny:Topics",
        "answerer": "tiny:Reader",
        "selector": "v3",
        "queries": 24,
        "batch": 8,
        "pool": {"size": 8, "kind": "random"},
        "propose": {"random": 3, "retrieval": 1, "beams": 1, "width": 3},
        "supervised": {"epochs": 1},
        "rce": {"epochs": 1},
    },
    "grpo": {"group": 4, "epochs": 2, "lr": 1e-3},
    "arms": {
        "none": {"leash": {"coefficient": 0.0}},
        "tight": {"leash": {"coefficient": 1.0}},
    },
    "measure": {"shots": [1, 2], "items": [20, 60], "validation": 40, "greedy_items": 4},
}


def small(**changes: Any) -> StudyFile:
    """The small study with some of it changed."""
    return build(StudyFile, merge(SMALL, changes))


@contextmanager
def tests_importable() -> Iterator[None]:
    """Let workers find the tiny world."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = str(HERE) if before is None else f"{HERE}:{before}"
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


def run_small(folder: Path, jobs: int = 1, **changes: Any) -> tuple[Ran, list[str]]:
    """Run it; and the names of the jobs that were started."""
    started: list[str] = []
    with tests_importable():
        ran = run_study(
            Asked(small(**changes), folder, jobs),
            lambda told, found: started.append(told.job) if told.kind == "started" else None,
        )
    return ran, started


def run_seen(folder: Path) -> None:
    """Run it for somebody who looks on: once a cell is shown to run, wait for the end of input."""
    waiting = iter([sys.stdin.read])

    def hear(told: Told, found: Any) -> None:
        if any(cell[-1] == "running" for cell in read_plan(folder)["cells"]):
            next(waiting, str)()

    with tests_importable():
        run_study(Asked(small(), folder), hear)


def lasting(folder: Path) -> dict[str, bytes]:
    """What two equal studies share byte by byte: scores, metrics, choices, checkpoints."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and (
            path.name in ("scores.jsonl", "metrics.jsonl", "weights.safetensors", "plan.json")
            or path.suffix == ".npy"
        )
    }


def kill_and_go_on(
    whole: Path, folder: Path, kills: int, run: Any = run_small, jobs: int = 2
) -> None:
    """Kill the driver and its workers at random moments, then let it finish."""
    code = (
        f"import sys; from pathlib import Path; from {run.__module__} import {run.__name__}\n"
        f"if __name__ == '__main__': {run.__name__}(Path(sys.argv[1]), jobs={jobs})"
    )
    script = folder.with_name("driver.py")
    script.write_text(code, encoding="utf-8")
    env = os.environ | {"PYTHONPATH": str(HERE), "OMP_NUM_THREADS": "1"}
    moments = np.random.default_rng().uniform(0, 5, size=kills)  # any moment must do
    for moment in moments:
        driver = subprocess.Popen(
            [sys.executable, str(script), str(folder)],
            env=env,
            start_new_session=True,
            stdout=subprocess.DEVNULL,
        )
        wait_for_work(driver, folder)
        time.sleep(moment)
        if driver.poll() is None:
            os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
    ran, _ = run(folder, jobs=jobs)
    assert not ran.failures
    ours, theirs = lasting(folder), lasting(whole)
    assert ours.keys() == theirs.keys(), f"killed after {moments}"
    changed = [name for name in ours if ours[name] != theirs[name]]
    assert changed == [], f"killed after {moments}"


def wait_for_work(driver: subprocess.Popen[bytes], folder: Path) -> None:
    """Until a worker has begun to write: starting is not what is to be interrupted."""
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*.jsonl")}
    while driver.poll() is None:
        written = [*folder.glob("base-s*/*.jsonl"), *folder.glob("runs/*/*.jsonl")]
        now = {path: path.stat().st_mtime_ns for path in written}
        if any(before.get(path) != at for path, at in now.items()):
            return
        time.sleep(0.02)


@pytest.fixture(scope="session")
def small_study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished study. Copy it to change it."""

    def make(folder: Path) -> None:
        ran, _ = run_small(folder, jobs=2)
        assert not ran.failures

    return made_once(tmp_path_factory, "small", make)


@pytest.fixture
def inline(monkeypatch: pytest.MonkeyPatch, one_thread: None) -> None:
    """Jobs one after the other in this process: starting workers is what takes time."""
    monkeypatch.setattr("kleash.study.running.run_jobs", run_inline)


def run_inline(jobs: list[Job], *, hear: Any, stop: Any, **_: Any) -> dict[str, Outcome]:
    """What `run_jobs` does, without processes; what goes in and out is JSON all the same."""
    outcomes: dict[str, Outcome] = {}
    for job in jobs:
        if stop():
            outcomes[job.name] = Outcome("stopped")
            continue
        hear(Told("started", job.name))
        module, _, name = job.call.partition(":")
        try:
            given = json.loads(json.dumps(job.given))
            call = getattr(import_module(module), name)
            result = json.loads(json.dumps(call(given, lambda record: None)))
        except KleashError as error:
            outcomes[job.name] = Outcome("failed", error=str(error))
            hear(Told("failed", job.name, error=str(error)))
        else:
            outcomes[job.name] = Outcome("done", result)
            hear(Told("done", job.name, result))
    return outcomes
