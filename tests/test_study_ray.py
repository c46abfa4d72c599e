"""A whole study on a real Ray cluster of two workers, one of them killed in the middle.

What is promised when a worker dies: the study completes without being started again, with the bytes
of one that was left in peace. Its job is done again from its last checkpoint and the ledger; what
was answered but not yet recorded, at most one asking (`asking.AT_ONCE` prompts) of that worker, is
put to the model a second time and stands in the ledger once.
"""

import os
import signal
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest
import tomli_w

from kleash.models.answer.asking import AT_ONCE
from kleash.runs.jobs import on_ray
from kleash.study.running import Asked, run_study
from ray_tools import cluster
from served_models import TRACES
from study_tools import SMALL, lasting, small, small_study

ray = on_ray.ray
if ray is None:
    pytest.skip("Ray is not installed: make test-all has it", allow_module_level=True)
__all__ = ["cluster", "small_study"]
pytestmark = [
    pytest.mark.slow,
    # Ray leaves sockets and files to the garbage collector.
    pytest.mark.filterwarnings(
        "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
    ),
]


class Killer:
    """Hears a study, and kills the worker of one job when that job first says how far it is."""

    def __init__(self, job: str, folder: Path) -> None:
        self.job, self.folder = job, folder
        self.pids: list[int] = []
        self.paid: list[int] = []
        self.kinds: list[str] = []
        self.recorded: set[str] = set()

    def __call__(self, told, found) -> None:
        if told.job != self.job:
            return
        self.kinds.append(told.kind)
        if told.kind == "started":
            self.pids.append(told.record["pid"])
            self.paid.append(len(paid(self.folder.with_name("traces"))))
        elif told.kind == "told" and "at" in told.record and not self.recorded:
            os.kill(self.pids[0], signal.SIGKILL)
            while Path(f"/proc/{self.pids[0]}").exists():
                time.sleep(0.01)
            self.recorded = set(prompts_of(self.folder))


def prompts_of(folder: Path) -> list[str]:
    """What the ledger holds."""
    with closing(sqlite3.connect(folder / "ledger.sqlite")) as db:
        return [prompt for (prompt,) in db.execute("SELECT prompt FROM facts ORDER BY prompt")]


def paid(traces: Path) -> list[tuple[int, str]]:
    """Every prompt that was put to a model, with the process that had to think about it."""
    text = traces.read_text(encoding="utf-8") if traces.exists() else ""
    lines = [line.split() for line in text.splitlines()]
    return [(int(line[0]), key) for line in lines if line[1] == "answered" for key in line[3:]]


def run_and_kill(folder: Path, job: str, **keys) -> Killer:
    """The small study on two workers of Ray, one of them killed while it does a certain job."""
    killer = Killer(job, folder)
    file = small(base={"answerer": "served_models:Traced"})
    ran = run_study(Asked(file, folder, jobs=2, on="ray", **keys), killer)
    assert not ran.failures
    assert ran.overview.counts() == {"done": 78}
    assert ran.outcomes[job].attempts == 2
    assert killer.kinds.count("retried") == 1
    assert killer.pids[0] not in killer.pids[1:]
    assert killer.recorded
    return killer


def same_as(folder: Path, other: Path) -> None:
    """Every score, metric, choice and weight, and every answer."""
    ours, theirs = lasting(folder), lasting(other)
    assert ours.keys() == theirs.keys()
    assert [name for name in ours if ours[name] != theirs[name]] == []
    assert prompts_of(folder) == prompts_of(other)


@pytest.mark.parametrize("job", ["base-s0", "none-s1"])
def test_one_of_two_workers_killed_the_study_completes_and_nothing_is_lost(
    job, small_study, tmp_path, monkeypatch
):
    traces, folder = tmp_path / "traces", tmp_path / "small"
    monkeypatch.setenv(TRACES, str(traces))
    killer = run_and_kill(folder, job)
    same_as(folder, small_study)
    found = paid(traces)
    assert len(found) == len(set(found))  # no worker pays twice
    # What the ledger had when the worker died is not paid for by the one in its place.
    again = {key for pid, key in found[killer.paid[1] :] if pid == killer.pids[1]}
    assert not again & killer.recorded
    # What it had not, and may be paid for again, is what the dead one asked for at that moment.
    assert len({key for pid, key in found if pid == killer.pids[0]} - killer.recorded) <= AT_ONCE


def test_with_servers_nothing_at_all_is_paid_twice(small_study, tmp_path, monkeypatch):
    traces, folder = tmp_path / "traces", tmp_path / "small"
    monkeypatch.setenv(TRACES, str(traces))
    run_and_kill(folder, "none-s0", gpus=("cpu", "cpu"))
    same_as(folder, small_study)
    assert sorted(key for _, key in paid(traces)) == prompts_of(folder)
    assert len({pid for pid, _ in paid(traces)}) == 2


@pytest.mark.parametrize("way", ["auto", "ray"])
def test_a_study_joins_a_cluster_that_is_there_by_one_command(way, cluster, small_study, tmp_path):
    folder, file = tmp_path / "small", tmp_path / "small.toml"
    file.write_text(tomli_w.dumps(SMALL), encoding="utf-8")
    on, env = (cluster.client, {}) if way == "ray" else ("auto", {"RAY_TMPDIR": cluster.folder})
    words = ("study", str(file), "--on", on, "--out", str(folder), "--jobs", "2")
    driver = cluster.driver("from kleash.cli import main; main()", *words, **env)
    out, errors = driver.communicate(timeout=900)
    assert driver.returncode == 0, errors
    assert str(folder / "report.html") in out.replace("\n", "")
    same_as(folder, small_study)
    with closing(sqlite3.connect(folder / "ledger.sqlite")) as db:
        # Not WAL, which several machines cannot share.
        assert db.execute("PRAGMA journal_mode").fetchone() == ("delete",)
