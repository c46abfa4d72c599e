"""One model for many clients: batches, one payment, errors that stay alone, deaths, studies."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kleash.errors import ConfigError, DataError, KleashError
from kleash.models.answer import answerer
from kleash.models.answer.serving import Desk, Model, Request, Served, whose
from kleash.runs.ledger import Ledger
from kleash.study.running import Asked, run_study
from kleash.study.servers import at_servers, device_names, served
from kleash.tasks.data import dataset
from kleash.types import Answer, Prompt
from served_models import TRACES
from study_tools import HERE, lasting, small, small_study
from tiny import Reader, Topics, tiny_recipe

__all__ = ["small_study"]
TRACED = Model("served_models:Traced", "tiny:Topics", 0)
TOPICS = Topics(0)


def prompts(count: int, first: int = 0) -> list[Prompt]:
    """Distinct prompts of one and two shots."""
    shown, asked = TOPICS.demonstrations, TOPICS.queries("test")
    return [
        Prompt(tuple(shown[n : n + 1 + n % 2]), asked[n % len(asked)])
        for n in range(first, first + count)
    ]


def strange(question: str) -> Prompt:
    """A prompt that the traced answerer takes badly."""
    (prompt,) = prompts(1)
    return replace(prompt, query=replace(prompt.query, question=question))


@pytest.fixture
def traces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "traces"
    monkeypatch.setenv(TRACES, str(path))
    return path


def loaded(traces: Path) -> list[int]:
    """The processes that loaded a model, in order."""
    lines = [line.split() for line in traces.read_text(encoding="utf-8").splitlines()]
    return [int(line[0]) for line in lines if line[1] == "loaded"]


def there(pid: int) -> bool:
    """Whether a process runs (one that waits to be reaped does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def wait_until(true, seconds: float = 300) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


# --- the desk


class Recorder(Reader):
    """Notes its batches, and refuses prompts by their query."""

    def __init__(self) -> None:
        super().__init__(TOPICS.image)
        self.batches: list[list[Prompt]] = []

    def answer(self, prompts: Sequence[Prompt]) -> list[Answer]:
        self.batches.append(list(prompts))
        if any(prompt.query.question == "refuse me" for prompt in prompts):
            raise DataError("refused")
        return super().answer(prompts)


def request(desk: Desk, some: list[Prompt]) -> Request:
    """Prompts as they reach the desk."""
    rows = [(*prompt.demonstrations, prompt.query) for prompt in some]
    return Request("answer", [tuple(map(desk.number, row)) for row in rows])


def at_desk(model: Reader, *asked: list[Prompt], clients: int = 0, **keys: float) -> list[Request]:
    """What becomes of requests that wait together."""
    desk = Desk(model, **keys)
    desk.present = clients or len(asked)
    requests = [request(desk, some) for some in asked]
    for each in requests:
        desk.requests.put(each)
    while not desk.requests.empty():
        desk.work()
    return requests


def test_what_waits_from_all_clients_is_one_batch_and_each_prompt_is_in_it_once():
    model, reader = Recorder(), Reader(TOPICS.image)
    asked = [prompts(5), prompts(5, first=3), prompts(1, first=20)]
    requests = at_desk(model, *asked)
    assert len(model.batches) == 1
    assert len(model.batches[0]) == 5 + 3 + 1
    assert [each.said.result() for each in requests] == [reader.answer(a) for a in asked]


def test_a_batch_has_a_largest_size_and_waits_for_others_only_a_moment():
    model = Recorder()
    at_desk(model, prompts(7), prompts(6, first=7), largest=4, wait=60.0)
    assert [len(batch) for batch in model.batches] == [4, 3, 4, 2]
    began = time.monotonic()
    at_desk(Recorder(), prompts(1), clients=2, wait=0.2)
    assert 0.2 <= time.monotonic() - began < 10
    began = time.monotonic()
    at_desk(Recorder(), prompts(1), prompts(1), wait=60.0)
    assert time.monotonic() - began < 30


def test_what_was_answered_lately_is_not_put_to_the_model_again(monkeypatch):
    monkeypatch.setattr("kleash.models.answer.serving.KEPT", 4)
    model = Recorder()
    desk = Desk(model)
    for some in (prompts(4), prompts(4), prompts(2, first=4), prompts(1)):
        desk.requests.put(request(desk, some))
        desk.work()
    assert [len(batch) for batch in model.batches] == [4, 2, 1]
    assert desk.counts == {"asked": 11, "paid": 7, "batches": 3}
    assert len(desk.lately) == 4


def test_a_broken_answer_is_asked_for_again():
    model = Recorder()
    model.break_on(lambda prompt: True)
    desk = Desk(model)
    for _ in range(2):
        desk.requests.put(request(desk, prompts(1)))
        desk.work()
    assert len(model.batches) == 2


def test_a_prompt_that_is_refused_fails_its_own_request_only():
    model, reader = Recorder(), Reader(TOPICS.image)
    good, bad, other = at_desk(
        model, prompts(5), [*prompts(2, first=5), strange("refuse me")], prompts(9, first=7)
    )
    assert good.said.result() == reader.answer(prompts(5))
    assert other.said.result() == reader.answer(prompts(9, first=7))
    with pytest.raises(DataError, match="refused"):
        bad.said.result()


# --- servers and clients


def test_a_client_cannot_be_told_from_the_model():
    model = Model("embedded", "tiny:few_scenes", 0)
    data = dataset(model.data, model.data_seed)
    own = answerer("embedded", data.image)
    queries = data.queries("test")[:30]
    asked = [
        Prompt(tuple(data.demonstrations[n : n + n % 5]), query) for n, query in enumerate(queries)
    ]
    with served(model, ["cpu", "cpu"]) as folder:
        ours = Served(folder, model)
        assert ours.identity == own.identity
        assert ours.answer(asked) == own.answer(asked)
        assert ours.answer([]) == []
        for kind in ("image", "text", "both"):
            ours_ND, own_ND = (each.embed(queries).part(kind) for each in (ours, own))
            assert np.array_equal(ours_ND, own_ND)
            assert ours_ND.dtype == own_ND.dtype
        with pytest.raises(DataError, match="9 shots are too many"):
            ours.answer([*asked, Prompt(tuple(data.demonstrations[:9]), queries[0])])
        assert ours.answer(asked[:3]) == own.answer(asked[:3])
        paid = [counts["paid"] for counts in ours.counts()]
        shares = [sum(whose(prompt, 2) == number for prompt in asked) for number in (0, 1)]
        assert paid == shares
        assert min(shares) > 5
        with pytest.raises(ConfigError, match="the server answers for"):
            Served(folder, replace(model, data_seed=1))


def test_many_clients_at_once_get_their_own_answers_and_pay_once(traces: Path):
    reader = Reader(TOPICS.image)
    with served(TRACED, ["cpu", "cpu"]) as folder:
        clients = [Served(folder, TRACED) for _ in range(8)]
        heard: dict[int, list[list[Answer]]] = {n: [] for n in range(8)}

        def ask(n: int) -> None:
            for part in range(10):
                heard[n].append(clients[n].answer(prompts(10, first=10 * part + n)))

        threads = [threading.Thread(target=ask, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        counts = clients[0].counts()
    assert len(loaded(traces)) == 2
    for n, answers in heard.items():
        assert answers == [reader.answer(prompts(10, first=10 * part + n)) for part in range(10)]
    assert sum(each["asked"] for each in counts) == 800
    assert sum(each["paid"] for each in counts) == 107  # prompts 0 to 106


def test_errors_travel_by_name_and_the_next_question_is_not_answered_with_the_last(traces: Path):
    reader = Reader(TOPICS.image)
    with served(TRACED, ["cpu", "cpu"]) as folder:
        client = Served(folder, TRACED)
        for question, kind, says in (
            ("refuse me", DataError, "test-0 is refused"),
            ("trip over me", RuntimeError, "the answerer broke: ValueError: a bug"),
        ):
            with pytest.raises(kind, match=says):
                client.answer([strange(question), *prompts(20)])
            assert client.answer(prompts(20, first=20)) == reader.answer(prompts(20, first=20))


def test_a_server_that_is_killed_comes_back_and_its_clients_ask_again(traces: Path):
    reader = Reader(TOPICS.image)
    with served(TRACED, ["cpu"]) as folder:
        client = Served(folder, TRACED)
        client.answer(prompts(3))
        (first,) = loaded(traces)
        os.kill(first, signal.SIGKILL)
        assert client.answer(prompts(5)) == reader.answer(prompts(5))
        assert len(loaded(traces)) == 2
        with pytest.raises(KleashError, match="on cpu died 3 times, at last of SIGKILL"):
            client.answer([strange("kill me")])
        with pytest.raises(KleashError, match="died 3 times"):
            Served(folder, TRACED)
        pids = loaded(traces)
        assert len(pids) == 3
        assert not any(map(there, pids))
    assert not folder.exists()


def test_a_stranger_without_the_secret_is_not_heard(traces: Path):
    from multiprocessing import AuthenticationError
    from multiprocessing.connection import Client

    with served(TRACED, ["cpu"]) as folder:
        assert folder.stat().st_mode & 0o077 == 0
        with pytest.raises((AuthenticationError, EOFError, OSError)):
            Client(str(folder / "0.socket"), "AF_UNIX", authkey=b"guessed")
        assert len(Served(folder, TRACED).answer(prompts(2))) == 2


def test_a_model_that_cannot_be_loaded_is_one_line_before_any_job():
    with (
        pytest.raises(KleashError, match="no answerer on cpu: no answerer 'nobody': there is"),
        served(Model("nobody", "tiny:Topics", 0), ["cpu"]),
    ):
        pass
    with (
        pytest.raises(KleashError, match="on cuda:0: the answerer 'tiny:Reader' takes no `device`"),
        served(Model("tiny:Reader", "tiny:Topics", 0), ["cuda:0"]),
    ):
        pass


DRIVER = """
import sys, time
sys.path.insert(0, sys.argv[1])
from kleash.study.servers import served
from test_serving import TRACED
with served(TRACED, ["cpu", "cpu"]) as folder:
    print(folder, flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_servers_leave_with_their_driver(traces: Path, number: int):
    command = [sys.executable, "-c", DRIVER, str(HERE)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as driver:
        assert driver.stdout is not None
        folder = Path(driver.stdout.readline().strip())
        assert (folder / "1.socket").exists()
        pids = loaded(traces)
        assert len(pids) == 2
        assert all(map(there, pids))
        driver.send_signal(number)
    wait_until(lambda: not any(map(there, pids)))
    assert not folder.exists()


def test_devices_are_numbers_or_names():
    assert device_names("") == ()
    assert device_names("0, 1") == ("cuda:0", "cuda:1")
    assert device_names("cpu,cpu") == ("cpu", "cpu")
    for wrong in ("gpu", "0,", "-1"):
        with pytest.raises(ConfigError, match="give numbers of GPUs"):
            device_names(wrong)


def test_a_cluster_of_other_machines_is_refused():
    with pytest.raises(ConfigError, match="may use others"), at_servers([], TRACED, ["0"], "auto"):
        pass


# --- whole studies


def run_served(folder: Path, kill: str = "") -> list[int]:
    """The small study with two servers; the first one is killed when a job starts, if asked."""
    killed: list[int] = []
    traces = Path(os.environ[TRACES])

    def hear(told, found) -> None:
        if told.job == kill and told.kind == "told" and not killed:
            killed.append(loaded(traces)[0])
            os.kill(killed[0], signal.SIGKILL)

    file = small(base={"answerer": TRACED.answerer})
    ran = run_study(Asked(file, folder, jobs=2, gpus=("cpu", "cpu")), hear)
    assert not ran.failures
    assert ran.overview.counts() == {"done": 78}
    return killed


def same_as(folder: Path, other: Path) -> None:
    """Every score, metric, choice and weight."""
    ours, theirs = lasting(folder), lasting(other)
    assert ours.keys() == theirs.keys()
    assert [name for name in ours if ours[name] != theirs[name]] == []


def rows(folder: Path) -> list[tuple[str, str]]:
    """What the ledger holds: models and prompts."""
    with closing(sqlite3.connect(folder / "ledger.sqlite")) as db:
        return db.execute("SELECT model, prompt FROM facts ORDER BY model, prompt").fetchall()


@pytest.mark.slow
def test_a_served_study_has_the_same_bytes_and_one_model_per_device(
    small_study: Path, tmp_path: Path, traces: Path
):
    folder = tmp_path / "small"
    run_served(folder)
    same_as(folder, small_study)
    pids = loaded(traces)
    assert len(pids) == 2
    assert not any(map(there, pids))
    assert rows(folder) == rows(small_study)
    lines = traces.read_text(encoding="utf-8").splitlines()
    paid = sum(int(line.split()[2]) for line in lines if "answered" in line)
    assert paid == len(rows(folder))  # every prompt was put to a model exactly once


@pytest.mark.slow
def test_a_server_killed_in_the_middle_of_a_study_changes_nothing(
    small_study: Path, tmp_path: Path, traces: Path
):
    folder = tmp_path / "small"
    killed = run_served(folder, kill="none-s0")
    assert len(killed) == 1
    assert len(loaded(traces)) == 3
    same_as(folder, small_study)


def test_a_world_of_other_data_finds_nobody_to_ask(tmp_path: Path, traces: Path):
    from kleash.train.rollout.selector import SelectorWorld

    recipe = tiny_recipe("answerer=served_models:Traced", "data=tiny:Topics")
    with served(TRACED, ["cpu"]) as folder, Ledger(tmp_path / "ledger.sqlite") as ledger:
        world = SelectorWorld(recipe, ledger, served=str(folder))
        assert (
            world.width == Reader(TOPICS.image).embed(TOPICS.demonstrations).part("both").shape[1]
        )
        with pytest.raises(ConfigError, match="the server answers for"):
            world.with_recipe(tiny_recipe("answerer=tiny", "data=tiny:Topics"))
