"""One agent trained by several processes: the numbers of one process, one folder, one voice.

The runs that are compared are in float64. In float32 Adam makes what rounding leaves of a gradient
that should be 0 as large as any other, and one process that packs its episodes is then about as far
from one that pads them as two ranks are from either.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from agent_tools import AGENT
from kleash.cli.study import in_words
from kleash.config import build, merge
from kleash.errors import ConfigError
from kleash.runs.ledger import Ledger, Usage
from kleash.runs.run import Run
from kleash.study.estimate import estimate
from kleash.study.plan import StudyFile, arms_of, base_recipe, most_ranks
from kleash.study.plan.folder import overview
from kleash.study.running import Asked as AskedStudy
from kleash.study.running import jobs_for
from kleash.train import ranks
from kleash.train.ranked import deal
from kleash.train.recipe import recipe_from
from kleash.train.rollout.agent import Attempt
from made_agents import ASKED

CLOSE = {"rel": 1e-9, "abs": 1e-12}
TIMEOUT = 900


# --- what needs no second process


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_ranks_play_whole_groups_and_about_as_many(count):
    asked = [
        Attempt(SimpleNamespace(id=f"task-{task}"), 0, member, (0, task, member))
        for task in range(16)
        for member in range(8)
    ]
    shares = deal(asked, count)
    assert sorted(place for share in shares for place in share) == list(range(128))
    assert max(map(len, shares)) - min(map(len, shares)) <= 8
    for share in shares:
        tasks = [asked[place].task.id for place in share]
        assert all(tasks.count(task) == 8 for task in tasks)
    uneven = [*asked[:8], *asked[8:64:8]]  # a group as large as seven others together
    assert max(map(len, deal(uneven, count))) == (8 if count > 1 else 15)
    few = deal(asked[:8], count)  # one group: the other ranks play nothing
    assert sorted(map(len, few)) == [0] * (count - 1) + [8]


def test_how_many_ranks_is_no_part_of_what_a_run_is():
    alone, shared = recipe_from(AGENT), recipe_from(merge(AGENT, {"scale": {"ranks": 2}}))
    assert shared.resolved() == alone.resolved()
    packed = {"scale": {"packed": "on"}}
    both = recipe_from(merge(AGENT, packed, {"scale": {"ranks": 2}}))
    assert both.resolved() == recipe_from(merge(AGENT, packed)).resolved() != alone.resolved()


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"scale": {"moments": "host", "precision": "bfloat16"}}, "set scale.moments=device"),
        ({"scale": {"reference": "pinned"}}, "set scale.reference=device"),
        ({"scale": {"packed": "off"}}, "set scale.packed=on"),
        ({"lora": {"rank": 4, "base": "host"}}, "set lora.base=plain"),
        ({"engine": "vllm:http://127.0.0.1:1"}, "set engine=own"),
        ({"scale": {"ranks": 3}}, "asks for 3 processes and there are 2"),
    ],
)
def test_what_only_one_process_can_do_is_refused(monkeypatch, keys, said):
    recipe = recipe_from(merge(AGENT, keys))
    if "ranks" not in keys.get("scale", {}):
        ranks.check(recipe)
    monkeypatch.setattr(ranks, "count", lambda: 2)
    with pytest.raises(ConfigError, match=said):
        ranks.check(recipe)
    with pytest.raises(ConfigError, match="a selector trains in one process"):
        ranks.check(recipe_from({}))


def test_what_other_ranks_paid_for_is_counted(tmp_path):
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        ledger.count(Usage(asked=5, bought=3, broken=1))
        ledger.count(Usage(asked=2, bought=1))
        assert ledger.usage() == Usage(asked=7, bought=4, broken=1)


def test_one_process_says_how_to_start_two():
    with pytest.raises(ConfigError, match="there is 1: start it with torchrun --nproc-per-node=2"):
        ranks.check(recipe_from(merge(AGENT, {"scale": {"ranks": 2}})))


def test_a_study_asks_for_as_many_processes_as_its_runs_have(tmp_path):
    scale = {"base": {"scale": {"ranks": 2}}, "arms": {"wide": {"scale": {"ranks": 3}}}}
    file = build(StudyFile, merge(ASKED, scale))
    arms = arms_of(file)
    asked = AskedStudy(file, tmp_path, on="auto", device="cuda")
    jobs = {job.name: job for job in jobs_for(asked, arms, overview(tmp_path, file, arms))}
    assert {name: (job.processes, job.gpus) for name, job in jobs.items() if "s0" in name} == {
        "base-s0": (1, 1),
        "none-s0": (2, 2),
        "tight-s0": (2, 2),
        "wide-s0": (3, 3),
    }
    assert most_ranks(file, arms) == 3
    assert base_recipe(file, 0).scale.ranks == 0
    plan = estimate(tmp_path, file)
    assert plan["ranks"] == 3
    assert "a run is trained by 3 processes at once" in in_words(plan, "en")["lines"][-1]
    here = AskedStudy(file, tmp_path, on="local", device="cuda")
    assert {job.gpus for job in jobs_for(here, arms, overview(tmp_path, file, arms))} == {0}


# --- whole runs

WIDE = {"scale": {"precision": "float64"}}


def flat(given, above=""):
    """A recipe as `key=value`."""
    for key, value in given.items():
        if isinstance(value, dict):
            yield from flat(value, f"{above}{key}.")
        else:
            yield f"{above}{key}={value}"


def started(processes, *words, script=("-m", "kleash"), check=True):
    """A command of Kleash in so many processes that torchrun starts, or in one."""
    env = os.environ | {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    torchrun = ["-m", "torch.distributed.run", f"--nproc-per-node={processes}"]
    command = [sys.executable, *(torchrun if processes > 1 else []), *script, *words]
    return subprocess.run(
        command, env=env, capture_output=True, text=True, check=check, timeout=TIMEOUT
    )


def run_of(folder, processes, **changes):
    """The small agent in a folder, trained by so many processes; what was printed."""
    keys = flat(merge(AGENT, WIDE, changes))
    done = started(processes, "train", "agent", *keys, "--out", str(folder), "--json")
    return Run.open(folder), json.loads(done.stdout)


def same_lines(ours, theirs, **close):
    """Both runs say the same, to the last digits of float64."""
    one, other = list(ours), list(theirs)
    assert len(one) == len(other) > 0
    for line, beside in zip(one, other, strict=True):
        assert line.keys() == beside.keys()
        for name, value in line.items():
            if isinstance(value, float):
                assert beside[name] == pytest.approx(value, **close), (line, name)
            else:
                assert beside[name] == value, (line, name)


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    """The checkpoint that all begin GRPO from."""
    run, _ = run_of(tmp_path_factory.mktemp("start") / "agent-s0", 1, phase="supervised")
    return {"phase": "grpo", "from": str(run.path / "checkpoints/supervised-3")}


@pytest.fixture(scope="module")
def alone(tmp_path_factory, start):
    """Three epochs in one process that was never stopped."""
    return run_of(tmp_path_factory.mktemp("alone") / "agent-s0", 1, **start, epochs=3)[0]


def until(run, epoch):
    """The lines of a run as far as the end of an epoch."""
    lines = list(run.metrics())
    ends = [at for at, line in enumerate(lines) if line["kind"] == "epoch"]
    return lines[: ends[epoch - 1] + 1]


@pytest.mark.slow
@pytest.mark.parametrize("processes", [2, 3])
def test_several_ranks_train_what_one_process_does(tmp_path, start, alone, processes):
    run, printed = run_of(tmp_path / "agent-s0", processes, **start, epochs=2)
    same_lines(run.metrics(), until(alone, 2), **CLOSE)
    assert len(printed["epochs"]) == 2  # one voice: what was printed is one JSON
    assert run.meta["identity"] == alone.meta["identity"]
    names = {path.name for path in run.path.iterdir()}
    assert names == {path.name for path in alone.path.iterdir()}
    pieces = run.path / "checkpoints/epoch-2/trainer"
    assert len(list(pieces.glob("*.distcp"))) == processes
    assert not (run.path / "checkpoints/epoch-1/trainer").exists()
    assert [line["ranks"] for line in run.timings() if "epoch" in line] == [processes] * 2


@pytest.mark.slow
def test_a_run_of_two_ranks_goes_on_in_one_process_and_again_in_two(tmp_path, start, alone):
    folder = tmp_path / "agent-s0"
    run, _ = run_of(folder, 2, **start, epochs=1)
    started(1, "train", str(folder), "epochs=2")
    assert (folder / "checkpoints/epoch-2/trainer.safetensors").is_file()
    started(2, "train", str(folder), "epochs=3")
    same_lines(run.metrics(), alone.metrics(), **CLOSE)


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        {"updates": 2, "entropy_bonus": 0.01, "leash": {"form": "k3", "reference": "ema"}},
        {"batch": 3, "group": 3, "scale": {"pack_tokens": 8}},  # one rank has a pack more
        {"leash": {"form": "reward_k1", "reference": "reset_every", "reference_every": 2}},
        {"lora": {"rank": 4}, "entropy_bonus": 0.1, "leash": {"reference": "adapter_off"}},
    ],
    ids=["updates", "uneven", "reward", "adapter"],
)
def test_other_ways_to_learn_are_shared_out_too(tmp_path, start, changes):
    begin = {"supervised": {"epochs": 0}} if "lora" in changes else start
    given = merge(begin, changes, {"epochs": 1})
    one, _ = run_of(tmp_path / "one", 1, **given)
    two, _ = run_of(tmp_path / "two", 2, **given)
    same_lines(two.metrics(), one.metrics(), **CLOSE)


@pytest.mark.slow
def test_imitated_dialogues_are_shared_out(tmp_path):
    """Thirty updates at a high rate make 1e-16 grow: 1.4e-8 was seen."""
    given = {"phase": "supervised", "supervised": {"epochs": 1}}
    one, _ = run_of(tmp_path / "one", 1, **given)
    two, _ = run_of(tmp_path / "two", 2, **given)
    same_lines(two.metrics(), one.metrics(), rel=1e-6)


# --- what goes wrong


@pytest.mark.slow
def test_an_error_of_one_rank_ends_all_with_one_line(tmp_path, start):
    keys = flat(merge(AGENT, WIDE, start))
    words = ["train", "agent", *keys, "--out", str(tmp_path / "agent-s0")]
    script = str(Path(__file__).parent / "failing_rank.py")
    done = started(2, *words, script=[script], check=False)
    assert done.returncode != 0
    told = [line for line in done.stderr.splitlines() if line.startswith("kleash: ")]
    assert told == ["kleash: rank 1 has seen enough"]
    assert "rank 0" not in done.stdout
    started(1, "train", str(tmp_path / "agent-s0"), "epochs=1")  # its lock is free, and it goes on


@pytest.mark.slow
def test_what_is_refused_is_refused_in_one_line_and_nothing_is_written(tmp_path):
    keys = flat(merge(AGENT, {"scale": {"moments": "host", "precision": "bfloat16"}}))
    done = started(2, "train", "agent", *keys, "--out", str(tmp_path / "agent-s0"), check=False)
    told = [line for line in done.stderr.splitlines() if line.startswith("kleash: ")]
    assert len(told) == 1
    assert told[0].endswith("each rank holds a share, so set scale.moments=device")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_pieces_that_were_changed_are_not_gone_on_from(tmp_path, start):
    folder = tmp_path / "agent-s0"
    run_of(folder, 2, **start, epochs=1)
    [piece, *_] = (folder / "checkpoints/epoch-1/trainer").glob("*.distcp")
    content = bytearray(piece.read_bytes())
    content[len(content) // 2] ^= 1
    piece.write_bytes(bytes(content))
    for processes in (1, 2):
        done = started(processes, "train", str(folder), "epochs=2", check=False)
        told = [line for line in done.stderr.splitlines() if line.startswith("kleash: ")]
        assert len(told) == 1
        assert "does not hold the tensors that were saved" in told[0]
