"""What `import kleash` offers: each name does what its verb does, also while an event loop runs."""

import asyncio
import inspect
import os
import pickle
import pydoc
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import cloudpickle
import numpy as np
import polars as pl
import pytest
import tomli_w

import kleash
import study_tools
from agent_tools import SHORT
from kleash.algo.policy import fingerprint
from kleash.config import merge
from kleash.study.plan.file import as_written
from kleash.tasks.envs.intention import Intention
from made_study import made_study
from plain_sources import HANDMADE
from test_imports import FIXTURES, own_run, write
from tiny import contents, given

NAMES = {
    *("train", "evaluate", "study", "read", "compare", "report", "load", "keys", "envs", "algo"),
    *("stats", "Run", "Runs", "Study", "Comparison", "Page", "KleashError"),
}
ROOMS = ("train", "study", "compare", "report")
LOGS = (FIXTURES / "trl/kl0.15-s3", HANDMADE / "verl/exp-s1")


def in_a_loop(call, *args, **named):
    """What a call gives where an event loop runs, as in a notebook."""

    async def cell():
        return call(*args, **named)

    return asyncio.run(cell())


@pytest.fixture(scope="module")
def agent_run(tmp_path_factory, one_thread):
    folder = tmp_path_factory.mktemp("api") / "agent-s0"
    return in_a_loop(kleash.train, "agent", out=folder, **SHORT)


@pytest.fixture
def study(tmp_path):
    made_study(tmp_path / "study")
    return kleash.load(tmp_path / "study")


# --- the names


def test_the_names_are_these_and_each_is_there():
    assert set(kleash.__all__) == NAMES <= {*dir(kleash)}
    for name in NAMES:
        assert (getattr(kleash, name).__doc__ or "").strip(), name


@pytest.mark.parametrize("first", ["kleash.train.recipe", "kleash.report.words", "kleash.api"])
def test_a_room_is_one_object_however_it_was_imported(first):
    code = f"""
import {first}
import kleash, kleash.train.recipe, kleash.compare.read, kleash.study.plan, kleash.report.words
from kleash import compare, report, study, train
import kleash.train as again
assert [kleash.train, kleash.study] == [train, study] and train is again
assert kleash.train.recipe.Recipe and report.words.say and report.short_page
assert all(map(callable, (train, study, compare, report)))
assert kleash.algo.kl.k3 and kleash.stats.holm and kleash.envs.register
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ROOMS)
def test_a_room_says_what_it_takes_and_travels(name):
    room = getattr(kleash, name)
    function = getattr(sys.modules["kleash.api"], name)
    assert inspect.signature(room) == inspect.signature(function)
    page = pydoc.plain(pydoc.render_doc(room))
    assert inspect.getdoc(function).splitlines()[0] in page and "PACKAGE CONTENTS" in page
    assert pickle.loads(pickle.dumps(room)) is room
    assert pickle.loads(cloudpickle.dumps(room)) is room


def test_a_process_takes_a_room_as_a_function():
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        assert pool.submit(kleash.compare, *LOGS).result().baseline


def test_a_wrong_name_is_none():
    with pytest.raises(AttributeError, match="no attribute 'k4'"):
        _ = kleash.algo.k4


CORE = Path(sys.prefix) / "core/bin/python"


def test_without_torch_logs_are_compared_and_training_says_what_it_needs(tmp_path):
    assert CORE.is_file(), "there is none yet: make core-env"
    code = f"""
import kleash
assert kleash.compare({str(LOGS[0])!r}, {str(LOGS[1])!r}).frame().height
kleash.train()
"""
    env = os.environ | {"PYTHONPATH": str(Path(kleash.__file__).parents[1])}
    done = subprocess.run([CORE, "-c", code], capture_output=True, text=True, cwd=tmp_path, env=env)
    assert "KleashError: this verb needs torch: pip install 'kleash[train]'" in done.stderr


# --- train, evaluate, load


def test_a_run_has_the_bytes_that_it_has_elsewhere(tiny_run, tmp_path, one_thread):
    run = in_a_loop(kleash.train, "default", out=tmp_path / tiny_run.name, **given())
    assert contents(run) == contents(tiny_run)


def test_an_agent_trains_while_an_event_loop_runs(agent_run):
    again = kleash.load(agent_run.path)
    assert isinstance(again, kleash.Run) and again.finished
    steps, epochs = agent_run.frame("step"), agent_run.frame("epoch")
    assert steps["step"].to_list() == [*range(1, steps.height + 1)]
    assert epochs.filter(pl.col("phase") == "grpo")["epoch"].to_list() == [1, 2]
    assert steps["reward"].dtype == pl.Float64
    with pytest.raises(kleash.KleashError, match="there is step, epoch, finding, score, timing"):
        agent_run.frame("steps")


def test_a_policy_is_the_one_that_was_trained(agent_run):
    policy = in_a_loop(agent_run.policy, "epoch-1")
    assert fingerprint(policy.state_dict()) == agent_run.state("epoch-1")["weights_hash"]
    with pytest.raises(kleash.KleashError, match="no checkpoint 'epoch-9'"):
        agent_run.policy("epoch-9")


def test_checkpoints_are_measured(agent_run):
    means = in_a_loop(kleash.evaluate, agent_run, "all", items=10)
    assert means["checkpoint"].to_list() == agent_run.checkpoints()
    scores = agent_run.frame("score").filter(pl.col("checkpoint") == "epoch-2")
    assert scores["score"].mean() == pytest.approx(means["mean"].to_list()[-1])


def test_keys_are_given_as_python_has_them(tmp_path):
    keys = {"leash.form": "k3", "leash": {"coefficient": np.float32(0.5)}, "seed": np.int64(3)}
    made = as_written(keys | {"from_": tmp_path, "env": Intention, "freeze": ("a",)})
    assert made == {
        "leash": {"form": "k3", "coefficient": 0.5},
        "seed": 3,
        "from": str(tmp_path),
        "env": "kleash.tasks.envs.intention:Intention",
        "freeze": ["a"],
    }
    with pytest.raises(kleash.KleashError, match="unknown key 'leash"):
        kleash.train(leash={"coefficent": 0.1}, out=tmp_path / "x")
    assert not (tmp_path / "x").exists()
    assert {"leash.coefficient", "gym.surface (intention)"} <= {*kleash.keys("agent")["key"]}


def test_an_environment_is_registered_by_name(monkeypatch):
    table = kleash.envs.ENVS
    monkeypatch.setattr(kleash.envs, "ENVS", dict(table))
    kleash.envs.register("mine", Intention)
    options = SHORT["gym"]
    assert kleash.envs.gym("mine", options).content == kleash.envs.gym("intention", options).content
    kleash.envs.register("mine", Intention)  # a cell that is run twice
    with pytest.raises(kleash.KleashError, match="there is an environment 'function' already"):
        kleash.envs.register("function", Intention)
    with pytest.raises(kleash.KleashError, match="cannot load the environment"):
        kleash.envs.register("yours", "nowhere:Gym")


# --- study


def test_a_study_runs_in_processes_while_an_event_loop_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    small = {
        "arms": {"tight": {"leash": {"coefficient": 1.0}}},
        "grpo": {"epochs": 1},
        "measure": {"shots": [1], "items": [20], "validation": 10, "greedy_items": 1},
    }
    Path("mine.toml").write_text(tomli_w.dumps(merge(study_tools.SMALL, {"seeds": 2}) | small))
    with study_tools.tests_importable():
        made = in_a_loop(kleash.study, "mine.toml", seeds=[4], jobs=1)
    assert made.path == Path("studies/small") and (made.path / "report.html").is_file()
    assert [run.name for run in made.runs] == ["tight-s4"]
    assert made.results()["arm"].to_list() == ["tight"]
    assert set(made.cells()["state"]) == {"done"}


def test_a_study_says_what_it_found(study):
    arms = study.results()
    assert arms.filter(pl.col("arm") == "kl0.15")["score.estimate"][0] > 0.6
    assert {"score.low", "gap.verdict", "keys.leash.coefficient"} <= {*arms.columns}
    assert study.cells().filter(pl.col("state") == "done").height > 100
    page = kleash.report(study, to=study.path / "page.html")
    assert (study.path / "page.html").stat().st_size > 10_000
    assert page._repr_markdown_().startswith("# ") and str(page)
    with pytest.raises(kleash.KleashError, match=r"ends in \.html or \.md"):
        page.write("page.pdf")


# --- compare


def test_a_comparison_is_frames_that_a_person_can_filter(study):
    found = kleash.compare(study, baseline="none")
    levels = found.frame("verdicts").filter(pl.col("question") == "level", arm="kl0.15")
    assert levels.select("against", "verdict").row(0) == ("none", "better")
    assert levels["estimate"][0] > 0 and levels["narrow.low"][0] > levels["low"][0]
    assert {"start", "none"} <= {*found.frame("arms")["name"]}
    assert found.frame("next").columns == ["what", "cost", "why"]
    assert found.frame("confounds").filter(pl.col("key").str.contains("lr")).height == 0
    assert found.answer in " ".join(str(found).split())
    assert found.answer in found._repr_markdown_()
    assert kleash.compare(kleash.read(study), baseline="none").frame().equals(found.frame())
    with pytest.raises(kleash.KleashError, match="there is verdicts, arms, checks"):
        found.frame("gaps")


def test_logs_have_the_names_that_a_user_gives_them():
    named = dict(zip(("no KL", "KL"), LOGS, strict=True))
    assert {*kleash.read(names=named).curves["arm"]} == {*named}
    assert {*kleash.compare(names=named, lang="zh").frame("arms")["name"]} == {*named}
    page = kleash.report(names=named)._repr_markdown_()
    assert all(name in page for name in named)


def test_a_folder_that_is_nothing_is_no_run(tmp_path):
    with pytest.raises(kleash.KleashError, match="is not a run"):
        kleash.load(tmp_path)
    with pytest.raises(kleash.KleashError, match="no path is given"):
        kleash.compare()


# --- in a notebook


def test_what_a_notebook_prints_unasked_is_short(study, agent_run, tmp_path):
    far = tmp_path / "/".join(["a" * 90] * 8)
    own_run(far / "kl0.15-s3")
    rows = "".join(f"arm-{'b' * 60}-{n},1,0.{n}\n" for n in range(10, 50))
    many = write(tmp_path / "many.csv", f"arm,seed,accuracy\n{rows}")
    shown = {
        "Run": kleash.load(far / "kl0.15-s3"),
        "Runs": kleash.read(study, many),
        "Study": study,
        "Comparison": kleash.compare(many),
        "Page": kleash.report(many),
        "KleashError": kleash.KleashError("one line"),
    }
    classes = {name for name in NAMES if name[0].isupper()}
    assert classes == {*shown}
    functions = [getattr(kleash, name) for name in NAMES]
    policies = [agent_run.policy()]
    for each in [*shown.values(), *functions, *policies]:
        assert len(repr(each)) <= 300 and "\n" not in repr(each), type(each)
