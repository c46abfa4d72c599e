"""Jobs on a real Ray cluster of this machine, with two workers. Ray takes seconds to start.

Where Ray is not installed this file is skipped: `make test-all` runs it where it is.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kleash.errors import ConfigError
from kleash.runs.jobs import Job, Outcome, on_ray, run_jobs

ray = on_ray.ray
if ray is None:
    pytest.skip("Ray is not installed: make test-all has it", allow_module_level=True)
pytestmark = [
    pytest.mark.slow,
    # Ray leaves sockets and files to the garbage collector.
    pytest.mark.filterwarnings(
        "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
    ),
]


@pytest.fixture(scope="class")
def cluster():
    """A cluster that is there already, and is still there afterwards."""
    quiet = {"log_to_driver": False, "logging_level": "ERROR"}
    ray.init("local", num_cpus=2, include_dashboard=False, **quiet)
    yield
    assert ray.is_initialized()
    ray.shutdown()


def job(name, call="double", *, after=(), cpus=1.0, ranks=0, **given):
    return Job(name, f"calls:{call}", given, tuple(after), cpus=cpus, ranks=ranks)


def run(jobs, *, hear=None, on="ray", **keys):
    heard = []

    def listen(told):
        heard.append(told)
        return hear(told) if hear else None

    return heard, run_jobs(jobs, workers=2, hear=listen, on=on, **keys)


@pytest.mark.usefixtures("cluster")
class TestOneCluster:
    def test_jobs_run_in_order_are_heard_and_may_be_followed_by_others(self):
        def plan(told):
            return (
                [job("late", x=5, after=["b"])] if told.kind == "done" and told.job == "a" else None
            )

        jobs = [job("b", "talk", steps=20, after=["a"]), job("a", "who")]
        heard, outcomes = run(jobs, hear=plan)
        assert outcomes["late"].result == 10
        assert outcomes["a"].result["threads"] == "1"
        steps = [told.record for told in heard if told.kind == "told"]
        assert steps == [{"step": n} for n in range(20)]
        kinds = [told.kind for told in heard if told.job == "b"]
        assert kinds == ["started", *["told"] * 20, "done"]

    def test_an_exception_fails_its_own_job_and_those_that_need_it(self):
        jobs = [
            job("bad", "boom"),
            job("next", after=["bad"]),
            job("torn", "user_error"),
            job("ok"),
        ]
        _, outcomes = run(jobs)
        states = {name: each.state for name, each in outcomes.items()}
        assert states == {"bad": "failed", "next": "skipped", "torn": "failed", "ok": "done"}
        assert outcomes["bad"].error.startswith("ValueError: boom\n")
        assert "calls.py" in outcomes["bad"].error
        assert outcomes["torn"].error == "scores.jsonl is torn: run it again"
        assert outcomes["bad"].attempts == 1

    def test_one_of_two_workers_killed_in_the_middle_loses_nothing(self, tmp_path):
        killed = []

        def kill(told):
            if told.kind == "told":
                killed.append(told.record["pid"])
                os.kill(told.record["pid"], signal.SIGKILL)

        slow = job("slow", "once_slow", marker=str(tmp_path / "marker"))
        jobs = [slow, *(job(f"quick-{n}", x=n) for n in range(10)), job("last", after=["slow"])]
        heard, outcomes = run(jobs, hear=kill)
        assert len(killed) == 1
        assert {each.state for each in outcomes.values()} == {"done"}
        assert [outcomes[f"quick-{n}"].result for n in range(10)] == [2 * n for n in range(10)]
        assert outcomes["slow"].attempts == 2
        assert outcomes["slow"].result["pid"] != killed[0]
        kinds = [told.kind for told in heard if told.job == "slow"]
        assert kinds == ["started", "told", "retried", "started", "done"]

    def test_a_job_that_kills_every_worker_fails_and_the_others_do_not(self, tmp_path, capfd):
        jobs = [job("a", "die", tries=str(tmp_path / "tries"), deaths=9), job("b", x=1)]
        _, outcomes = run(jobs)
        assert outcomes["a"].error.startswith(
            "its worker died 2 times, at last (WorkerCrashedError)"
        )
        assert len((tmp_path / "tries").read_text()) == 2
        assert outcomes["b"].result == 2
        time.sleep(3)  # Ray hears of dead workers in a thread of its own, and would print it
        assert capfd.readouterr() == ("", "")

    def test_what_is_stopped_is_interrupted_and_gone(self, tmp_path):
        waiting = []

        def note(told):
            if told.kind == "told":
                waiting.append(told.record["waiting"])

        jobs = [job("a", "wait", note=str(tmp_path / "note")), job("b", after=["a"])]
        _, outcomes = run(jobs, hear=note, stop=lambda: bool(waiting))
        assert {each.state for each in outcomes.values()} == {"stopped"}
        assert (tmp_path / "note").read_text() == "tidied up"

    def test_several_processes_make_one_call_together(self):
        heard, outcomes = run([job("a", "sum_of_ranks", cpus=2, ranks=2)])
        assert outcomes["a"].result == {"rank": 0, "total": 3.0, "size": 2}
        assert [(told.kind, told.job) for told in heard] == [
            ("started", "a"),
            ("told", "a"),
            ("done", "a"),
        ]

    def test_when_one_of_several_processes_fails_the_others_do_not_wait_for_it(self):
        _, outcomes = run([job("a", "sum_of_ranks", cpus=2, ranks=2, fails=1)])
        assert outcomes["a"].state == "failed"
        assert outcomes["a"].error.startswith("ValueError: rank 1 is broken\n")
        assert outcomes["a"].attempts == 1

    def test_when_one_of_several_processes_is_killed_all_are_started_again(self, tmp_path):
        def kill(told):
            if told.kind == "told":
                os.kill(told.record["pid"], signal.SIGKILL)

        given = {"marker": str(tmp_path / "marker")}
        _, outcomes = run([job("a", "once_slow_together", cpus=2, ranks=2, **given)], hear=kill)
        assert outcomes["a"] == Outcome("done", "together", attempts=2)


def test_a_job_larger_than_the_cluster_is_refused_at_once():
    with pytest.raises(ConfigError, match="'a' wants 3 CPUs of 2"):
        run([job("a", cpus=3)])


def test_a_cluster_that_is_not_there_is_a_line(monkeypatch):
    monkeypatch.setenv("RAY_TMPDIR", "/nowhere")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with pytest.raises(ConfigError, match="no Ray cluster runs on this machine: start one"):
        run([job("a")], on="auto")


DRIVER = """
import sys
sys.path.insert(0, sys.argv[1])
from kleash.runs.jobs import Job, run_jobs
def hear(told):
    if told.kind == "told":
        print(told.record["waiting"], flush=True)
run_jobs([Job(n, "calls:wait", {}) for n in "ab"], workers=2, hear=hear, on="ray")
"""


def test_a_cluster_started_for_the_jobs_ends_with_a_killed_driver():
    command = [sys.executable, "-c", DRIVER, str(Path(__file__).parent)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as driver:
        pids = [int(driver.stdout.readline()) for _ in range(2)]
        driver.kill()
        end = time.monotonic() + 300
        while time.monotonic() < end and any(Path(f"/proc/{pid}").exists() for pid in pids):
            time.sleep(0.1)
        assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
