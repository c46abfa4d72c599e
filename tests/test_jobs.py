import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from kleash.errors import ConfigError, GuardError
from kleash.runs.jobs import NO_SPACE, Job, Outcome, run_jobs
from kleash.runs.jobs.worker import perform
from pace import cpu_within
from scaling import busy_seconds, scaling

HERE = Path(__file__).parent


def job(name, call="double", *, after=(), **given):
    return Job(name, f"calls:{call}", given, tuple(after))


def run(jobs, *, workers=1, hear=None, **keys):
    """Run jobs; what was heard, in order, and how each ended."""
    heard = []

    def listen(told):
        heard.append(told)
        return hear(told) if hear else None

    return heard, run_jobs(jobs, workers=workers, hear=listen, **keys)


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # A process that nobody has waited for is dead all the same.
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"


def gone(pid, seconds=300.0):
    """Whether a process ends, long before it would by itself."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not alive(pid):
            return True
        time.sleep(0.05)
    return False


def children():
    """Processes whose parent is this one."""
    found = subprocess.run(
        ["ps", "--ppid", str(os.getpid()), "-o", "pid=,args="], capture_output=True, text=True
    )
    return [line for line in found.stdout.splitlines() if "serve(" in line]


# --- order


def test_a_job_gets_what_it_was_given_and_its_result_comes_back():
    heard, outcomes = run([job("a", x=21)])
    assert outcomes == {"a": Outcome("done", 42, attempts=1)}
    assert [told.kind for told in heard] == ["started", "done"]
    assert heard[0].record["pid"] != os.getpid()


def test_jobs_come_in_the_given_order_as_soon_as_those_before_them_are_done():
    jobs = [job("c", after=["b"]), job("x"), job("b", after=["a"]), job("a"), job("y")]
    heard, _ = run(jobs)
    assert [told.job for told in heard if told.kind == "started"] == ["x", "a", "b", "c", "y"]


def test_what_a_job_tells_is_heard_in_order_between_its_start_and_its_end():
    heard, _ = run([job("a", "talk", steps=50)])
    assert [told.record for told in heard if told.kind == "told"] == [
        {"step": n} for n in range(50)
    ]
    assert (heard[0].kind, heard[-1].kind) == ("started", "done")


def test_a_worker_does_one_job_after_the_other_and_imports_once():
    _, outcomes = run([job(str(n), "who") for n in range(20)], workers=2)
    seen = {(each.result["pid"], each.result["imported"]) for each in outcomes.values()}
    assert 1 <= len(seen) <= 2
    assert {each.result["threads"] for each in outcomes.values()} == {"1"}


def test_no_jobs_start_no_worker():
    assert run([], workers=2) == ([], {})


@pytest.mark.parametrize(
    ("jobs", "says"),
    [
        (
            [job("a", after=["b"]), job("b", after=["c"]), job("c", after=["b"])],
            "circle: b → c → b",
        ),
        ([job("a", after=["a"])], "circle: a → a"),
        ([job("a", after=["nobody"])], "'a' waits for 'nobody', which is no job"),
        ([job("a"), job("a")], "two jobs are called 'a'"),
        ([Job("a", "calls:double", {}, gpus=2)], "'a' wants 2 processes at once"),
    ],
)
def test_jobs_that_could_never_run_are_refused_before_any_starts(jobs, says):
    heard = []
    with pytest.raises(ConfigError, match=re.escape(says)):
        run_jobs(jobs, workers=1, hear=heard.append)
    assert not heard


def test_a_place_that_is_none_is_refused():
    with pytest.raises(ConfigError, match="do not run on 'slurm'"):
        run([job("a")], on="slurm")
    with pytest.raises(ConfigError, match="at least one"):
        run([job("a")], workers=0)


@pytest.mark.slow
def test_a_hundred_thousand_jobs_are_ordered_in_seconds():
    jobs = [job(str(n), after=[str(n - 1)] if n % 10 else ()) for n in range(100_000)]
    with cpu_within(10):
        _, outcomes = run(jobs, stop=lambda: True)
    assert len(outcomes) == 100_000


# --- more jobs while it runs


def test_who_hears_may_add_jobs_that_wait_for_any_that_are_known():
    def plan(told):
        if told.kind == "done" and told.job == "measure":
            return [job("test", x=told.record, after=["measure", "chosen"]), job("chosen", x=5)]
        return None

    _, outcomes = run([job("measure", x=1), job("other")], hear=plan)
    assert {name: each.result for name, each in outcomes.items()} == {
        "measure": 2,
        "other": 0,
        "chosen": 10,
        "test": 4,
    }


def test_a_job_added_after_one_that_failed_is_skipped():
    def plan(told):
        return [job("late", after=["bad"])] if told.kind == "failed" else None

    _, outcomes = run([job("bad", "boom")], hear=plan)
    assert outcomes["late"] == Outcome("skipped", error="bad failed")


def test_an_error_of_who_hears_leaves_no_worker_behind():
    def broken(told):
        raise RuntimeError("the disk is full")

    with pytest.raises(RuntimeError, match="disk is full"):
        run([job("a", "wait"), job("b", "wait")], workers=2, hear=broken)
    assert not children()


# --- errors of a job


def test_an_exception_fails_its_own_job_and_those_that_need_it():
    jobs = [
        job("bad", "boom"),
        job("next", after=["bad"]),
        job("last", after=["next"]),
        job("good"),
    ]
    heard, outcomes = run(jobs)
    states = {name: each.state for name, each in outcomes.items()}
    assert states == {"bad": "failed", "next": "skipped", "last": "skipped", "good": "done"}
    assert outcomes["last"].error == "bad failed"
    assert [told.job for told in heard if told.kind == "skipped"] == ["next", "last"]
    first, *rest = outcomes["bad"].error.split("\n")
    assert first == "ValueError: boom"
    assert any("calls.py" in line for line in rest)
    assert rest[-2:] == ["last lines it printed:", "about to fall"]
    assert outcomes["bad"].attempts == 1, "an error is not tried again"


@pytest.mark.parametrize(
    ("call", "line"),
    [
        ("calls:user_error", "scores.jsonl is torn: run it again"),
        ("calls:leave", "SystemExit: enough"),
        ("calls:unspeakable", "TypeError: Object of type set is not JSON serializable"),
        ("calls:nothing", "AttributeError: module 'calls' has no attribute 'nothing'"),
        ("no_such_module:x", "ModuleNotFoundError: No module named 'no_such_module'"),
    ],
)
def test_the_first_line_of_an_error_says_what_happened(call, line):
    _, outcomes = run([Job("a", call, {}), job("b", x=1)])
    assert outcomes["a"].state == "failed"
    assert outcomes["a"].error.split("\n")[0] == line
    assert outcomes["b"].result == 2


def test_what_a_job_prints_goes_to_a_file_of_its_worker(tmp_path, capfd):
    run([job("bad", "boom"), job("again", "boom")], logs=tmp_path / "logs")
    text = (tmp_path / "logs/worker-1.log").read_text()
    assert text == "--- bad\nabout to fall\n--- again\nabout to fall\n"
    assert capfd.readouterr() == ("", "")


# --- workers that die


def test_a_job_whose_worker_is_killed_is_tried_again_by_another(tmp_path):
    jobs = [job("a", "die", tries=str(tmp_path / "tries"), deaths=1), job("b", after=["a"])]
    heard, outcomes = run(jobs)
    assert outcomes["a"] == Outcome("done", "lived", attempts=2)
    assert outcomes["b"].state == "done"
    kinds = [told.kind for told in heard if told.job == "a"]
    assert kinds == ["started", "retried", "started", "done"]
    assert len({told.record["pid"] for told in heard if told.kind == "started"}) == 2


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "its worker died 2 times, at last of SIGKILL (out of memory, or killed by hand)"),
        ({"signal": signal.SIGABRT}, "its worker died 2 times, at last of SIGABRT"),
        ({"exit": 3}, "its worker died 2 times, at last with exit code 3"),
    ],
)
def test_a_job_that_kills_its_workers_fails_with_the_name_of_the_signal(tmp_path, given, says):
    jobs = [job("a", "die", tries=str(tmp_path / "tries"), deaths=9, **given), job("b")]
    _, outcomes = run(jobs)
    assert outcomes["a"].error.split("\n")[0] == says
    assert "last words" in outcomes["a"].error
    assert outcomes["a"].attempts == 2
    assert outcomes["b"].state == "done"


def test_a_segmentation_fault_is_told_with_where_it_happened():
    _, outcomes = run([job("a", "segfault")], retries=0)
    assert outcomes["a"].error.startswith("its worker died once of SIGSEGV\n")
    assert re.search(r'calls.py", line \d+ in segfault', outcomes["a"].error)


def test_a_worker_is_known_to_be_dead_though_a_child_of_its_holds_the_pipe():
    heard, outcomes = run([job("a", "child_holds_the_pipe")], retries=0)
    assert outcomes["a"].error.startswith("its worker died once with exit code 7")
    (told,) = [told for told in heard if told.kind == "told"]
    assert gone(told.record["child"])


def test_a_worker_that_dies_idle_costs_no_job_an_attempt():
    def kill(told):
        if told.kind == "done" and told.job == "a":
            os.kill(told.record["pid"], signal.SIGKILL)
            os.waitid(os.P_PID, told.record["pid"], os.WEXITED | os.WNOWAIT)

    _, outcomes = run([job("a", "who"), job("b", "who")], hear=kill)
    assert outcomes["b"].attempts == 1
    assert outcomes["b"].result["pid"] != outcomes["a"].result["pid"]


DRIVER = """
import sys
sys.path.insert(0, sys.argv[1])
from kleash.runs import jobs
from kleash.runs.jobs import Job, run_jobs
jobs.GRACE = 300  # on a machine that does much else, tidying up takes a while too
given = {"child": True, "note": sys.argv[2]}
waiting = [Job(name, "calls:wait", given) for name in "ab"]
def hear(told):
    for pid in (told.record or {}).values() if told.kind == "told" else ():
        print(pid, flush=True)
outcomes = run_jobs(waiting, workers=2, hear=hear)
print(sorted({each.state for each in outcomes.values()}), flush=True)
"""


def drive(note):
    """A driver with two workers that wait, each with a process of its own; and those four."""
    command = [sys.executable, "-c", DRIVER, str(HERE), str(note)]
    driver = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    return driver, [int(driver.stdout.readline()) for _ in range(4)]


def test_when_the_driver_is_killed_its_workers_go_and_what_they_started_too(tmp_path):
    driver, pids = drive(tmp_path / "note")
    with driver:
        assert all(alive(pid) for pid in pids)
        driver.kill()
        assert all(gone(pid) for pid in pids)


# --- stopping


def test_after_an_interrupt_jobs_tidy_up_and_nothing_is_left(tmp_path):
    driver, pids = drive(tmp_path / "note")
    with driver:
        driver.send_signal(signal.SIGINT)
        assert driver.stdout.read() == "['stopped']\n"
        assert driver.wait() == 0
    assert (tmp_path / "note").read_text() == "tidied up"
    assert all(gone(pid) for pid in pids)


def test_a_job_that_is_deaf_to_interrupts_is_killed(monkeypatch):
    monkeypatch.setattr("kleash.runs.jobs.GRACE", 0.5)
    running = []

    def note(told):
        if told.kind == "told":
            running.append(told.record["waiting"])

    jobs = [job("quick"), job("deaf", "wait", deaf=True), job("never", after=["deaf"])]
    start = time.monotonic()
    heard, outcomes = run(jobs, hear=note, stop=lambda: bool(running))
    assert time.monotonic() - start < 300  # of the ten minutes that it would take
    states = {name: each.state for name, each in outcomes.items()}
    assert states == {"quick": "done", "deaf": "stopped", "never": "stopped"}
    assert [told.job for told in heard if told.kind == "stopped"] == ["deaf", "never"]
    assert gone(running[0])


def test_jobs_can_be_run_from_any_thread():
    result = {}
    thread = threading.Thread(target=lambda: result.update(run([job("a", x=4)])[1]))
    thread.start()
    thread.join()
    assert result["a"].result == 8


# --- speed


def test_five_hundred_tiny_jobs_cost_little_each():
    ended = []

    def hear(told):
        if told.kind == "done":
            ended.append(time.monotonic())

    _, outcomes = run([job(str(n), x=n) for n in range(500)], workers=2, hear=hear)
    seconds = ended[-1] - ended[0]  # what a worker imports before its first job is not the jobs'
    assert [outcomes[str(n)].result for n in range(500)] == [2 * n for n in range(500)]
    assert seconds < 15, f"{500 / seconds:.0f} jobs per second"


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one core cannot do two things at once")
@pytest.mark.slow
def test_two_workers_do_nearly_twice_as_many_jobs_per_second():
    try:
        found = scaling([job(str(n), "spin", seconds=0.25) for n in range(24)])
    except GuardError as refused:
        pytest.skip(str(refused))
    assert found.ratio >= 1.7, found


def test_scaling_is_not_measured_beside_a_busy_program(monkeypatch):
    clock = iter(range(0, 10**9, 1000))
    monkeypatch.setattr("scaling.busy_seconds", lambda: busy_seconds() + next(clock))
    with pytest.raises(GuardError, match="other programs took"):
        scaling([job("a")], pairs=1)


def test_scaling_of_jobs_that_fail_is_no_number():
    with pytest.raises(GuardError, match="1 jobs did not end well, bad first"):
        scaling([job("bad", "boom")], pairs=1)


def test_without_ray_a_line_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr("kleash.runs.jobs.on_ray.ray", None)
    with pytest.raises(ConfigError, match=r"pip install 'kleash\[ray\]'"):
        run([job("a")], on="ray")


@pytest.mark.parametrize("says", ["os", "ledger", "behind another", "tensors"])
def test_a_job_that_meets_a_full_disk_says_so(says):
    kind, record, error = json.loads(perform("calls:full", {"says": says}, lambda text: None))
    assert (kind, record) == ("failed", NO_SPACE) and error


def test_a_job_that_fails_otherwise_does_not_say_that_a_disk_is_full():
    kind, record, _ = json.loads(perform("calls:boom", {}, lambda text: None))
    assert (kind, record) == ("failed", None)
