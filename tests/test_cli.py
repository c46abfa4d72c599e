"""The command line: one call per verb, JSON on stdout, and mistakes in one line."""

import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from kleash import cli
from kleash.algo import guard
from kleash.cli.teller import Teller, validated
from kleash.report.words import Language
from kleash.runs.run import Run
from kleash.types import Heard
from made_agents import made_agents
from tiny import KEYS, contents

VERBS = [
    command.name or getattr(command.callback, "__name__", "")
    for command in cli.app.registered_commands
]
ENV = os.environ | {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}

pytestmark = pytest.mark.usefixtures("one_thread")

# Of (words): exit status, stdout, stderr.
Called = Callable[..., tuple[int, str, str]]


@pytest.fixture
def kleash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Called:
    """The program in an empty folder, without the seconds that a new process takes."""
    monkeypatch.chdir(tmp_path)
    for name in ("COLUMNS", "NO_COLOR", "TERM"):
        monkeypatch.setenv(name, ENV[name])

    def call(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["kleash", *map(str, words)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as caught:
            cli.main()
        out, err = capsys.readouterr()
        code = caught.value.code
        return (0 if code is None else int(code)), out, err

    return call


@pytest.fixture
def here(tiny_run: Run, tmp_path: Path) -> Run:
    """A finished run in the folder where the program is called."""
    shutil.copytree(tiny_run.path, tmp_path / "runs" / "tiny-s0")
    return Run.open(tmp_path / "runs" / "tiny-s0")


# --- each verb


def test_train_tells_its_epochs_and_leaves_a_finished_run(kleash: Called, tiny_run: Run) -> None:
    code, out, err = kleash("train", "default", *KEYS, "--json")
    assert code == 0
    told = json.loads(out)
    assert told["run"] == "runs/default-s0"
    assert [(line["phase"], line["epoch"]) for line in told["epochs"]] == [
        ("supervised", 1),
        ("rce", 1),
        ("grpo", 1),
        ("grpo", 2),
    ]
    assert told["answers"]["asked"] == told["answers"]["bought"] + told["answers"]["saved"] > 0
    assert "return_to_go 0.1 (constant, reference start)" in err
    run = Run.open(Path("runs/default-s0"))
    assert run.finished
    assert contents(run) == contents(tiny_run)


def test_train_reads_a_file_and_shows_a_table(kleash: Called, tmp_path: Path) -> None:
    short = [key for key in KEYS if not key.startswith("epochs")]
    (tmp_path / "mine.toml").write_text('epochs = 1\nlike = "verl"\n')
    code, out, err = kleash("train", "mine.toml", *short, "seed=4", "--out", "there/run")
    assert code == 0
    assert "k3 0.001" in err
    assert "grpo" in out
    run = Run.open(Path("there/run"))
    assert (run.config["epochs"], run.config["seed"]) == (1, 4)
    assert run.given["like"] == "verl"


def test_eval_measures_and_compares(kleash: Called, here: Run) -> None:
    words = ("eval", here.path, "--checkpoint", "rce-1,epoch-2", "--shots", "1,2", "--items", 10)
    code, out, _ = kleash(*words, "--baselines", "--json")
    assert code == 0
    told = json.loads(out)
    cells = {(cell["checkpoint"], cell["shots"]): cell for cell in told["cells"]}
    assert {("epoch-2", 1), ("epoch-2", 2), ("rce-1", 2), ("baseline:planted", 2)} <= set(cells)
    assert all(cell["n"] == 10 for cell in cells.values())
    assert {gap["against"] for gap in told["gaps"]} >= {"rce-1", "baseline:random-0"}
    code, out, _ = kleash(*words)
    assert code == 0
    assert "epoch-2 against the others" in out
    assert "baseline" not in out


def test_runs_lists_them(kleash: Called, here: Run) -> None:
    code, out, _ = kleash("runs", "--json")
    [row] = json.loads(out)
    assert code == 0
    assert (row["run"], row["at"], row["finished"]) == ("tiny-s0", "grpo 2", True)
    assert row["leash"] == "return_to_go 0.1 (constant, reference start)"
    assert "tiny-s0" in kleash("runs")[1]
    assert "no runs in elsewhere" in kleash("runs", "elsewhere")[1]
    assert json.loads(kleash("runs", "elsewhere", "--json")[1]) == []


def test_runs_of_selectors_and_agents_stand_in_one_list(kleash: Called, here: Run) -> None:
    made_agents(Path("talking"))
    shutil.copytree("talking/runs/tight-s0", "runs/agent-s0")
    with Path("runs/agent-s0/metrics.jsonl").open("a") as lines:
        lines.write('{"kind": "epoch", "phase": "grpo", "epoch": 3, "validation/reward": 1.25}\n')
    code, out, _ = kleash("runs", "--json")
    assert code == 0
    agent, selector = json.loads(out)
    assert (agent["run"], agent["policy"], agent["reward"]) == ("agent-s0", "tiny", 1.25)
    assert (selector["policy"], selector["reward"]) == ("v3", None)
    code, out, _ = kleash("runs")
    assert code == 0
    assert "reward 1.250" in out
    assert f"accuracy {selector['accuracy']:.3f}" in out


def test_doctor_tells_what_works(kleash: Called) -> None:
    code, out, _ = kleash("doctor", "--json")
    assert code == 0
    assert {"python", "torch", "embedded answerer"} <= {row["what"] for row in json.loads(out)}
    assert "loads and answers" in kleash("doctor")[1]


def test_keys_lists_every_key_with_its_sentence(kleash: Called) -> None:
    code, out, _ = kleash("train", "default", "--keys")
    assert code == 0
    for word in ("leash.coefficient", "clip.low", "propose.beams", "early_stop"):
        assert word in out


@pytest.mark.parametrize("verb", VERBS)
def test_the_help_of_every_verb_shows_an_example(kleash: Called, verb: str) -> None:
    code, out, _ = kleash(verb, "--help")
    assert code == 0
    assert f"kleash {verb}" in out.split("Usage", 1)[1].split("\n", 1)[1]


def test_the_help_lists_every_verb(kleash: Called) -> None:
    code, out, _ = kleash("--help")
    assert code == 0
    assert {"train", "eval", "study", "stop", "compare", "report"} <= set(VERBS)
    assert all(verb in out for verb in VERBS)


def test_the_help_groups_verbs_by_what_a_user_has(kleash: Called) -> None:
    code, out, _ = kleash("-h")
    assert (code, out) == (0, kleash("--help")[1])
    of_logs, of_reports = out.index("You have runs or logs"), out.index("You have a report")
    assert of_logs < out.index("compare") < of_reports < out.index("fill")
    assert kleash("coef", "-h")[:2] == (0, kleash("coef", "--help")[1])
    assert set(VERBS) == {name for each in cli.VERBS.values() for name in each}


def test_the_version_is_one_line(kleash: Called) -> None:
    assert kleash("--version")[:2] == (0, f"kleash {version('kleash')}\n")


# --- going on


def test_a_run_is_extended_by_its_folder(kleash: Called, here: Run) -> None:
    before = {name: here.state(name)["weights_hash"] for name in here.checkpoints()}
    code, out, _ = kleash("train", here.path, "epochs=3", "--json")
    assert code == 0
    assert json.loads(out)["run"] == str(here.path)
    extended = Run.open(here.path)
    assert extended.checkpoints() == [*before, "epoch-3"]
    assert {name: extended.state(name)["weights_hash"] for name in before} == before
    assert extended.config["epochs"] == 3


def test_a_run_whose_schedule_spans_it_is_not_extended_without_new(kleash: Called) -> None:
    quick = [*KEYS, "supervised.epochs=0", "rce.epochs=0", "schedule=cosine"]
    assert kleash("train", "default", *quick)[0] == 0
    folder = Path("runs/default-s0")
    before = contents(Run.open(folder))
    code, out, err = kleash("train", folder, "epochs=3")
    assert (code, out) == (2, "")
    assert "cosine schedule over 2 epochs" in err
    assert "add --new" in err
    assert contents(Run.open(folder)) == before
    code, out, _ = kleash("train", folder, "epochs=3", "--new", "--json")
    assert code == 0
    made = Run.open(Path(json.loads(out)["run"]))
    assert made.path.name.startswith("default-s0-")
    assert made.checkpoints() == ["epoch-1", "epoch-2", "epoch-3"]
    assert contents(Run.open(folder)) == before


# --- mistakes


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["train", "default", "kl_coef=0.1"], "did you mean 'leash.coefficient'"),
        (["train", "default", "zzz=1"], "keys are freeze, pool.size, weight; kleash train default"),
        (["train", "agent", "zzz=1"], "; kleash train agent --keys lists all"),
        (["train", "default", "pool.size=1"], "a pool of 1 cannot fill 2 shots"),
        (["train", "default", "lr=fast"], "bad value for 'lr'"),
        (["train", "default", "lr"], "'lr' is not key=value"),
        (["train", "nothing.toml"], "no such config file: nothing.toml"),
        (["train", "default", "phase=grpo"], "give from=RUN/checkpoints/NAME"),
        (
            ["train", "default", *KEYS, "phase=grpo", "from=nowhere/checkpoints/a"],
            "no such run: nowhere",
        ),
        (["train", "default", "data=mars"], "no data set 'mars'"),
        (["train", "default", *KEYS, 'freeze=["head"]'], "cannot freeze 'head'"),
        (["train", "default", *KEYS, "pool.size=300"], "make pool.size smaller"),
        (["train", "."], ". is not a run"),
        (["eval", "nowhere"], "no such run: nowhere"),
        (["eval", "."], ". is not a run"),
        (["train", "default", *KEYS, "--device", "cuda:999"], "--device cuda:999 is not there"),
        (["train", "default", *KEYS, "--device", "gpu"], "no device 'gpu': there is cpu, cuda"),
        (["study", "--device", "cuda:99"], "--device cuda:99 is not there"),
        (["eval", "nowhere", "--device", "cuda:999"], "--device cuda:999 is not there"),
        (["train", "default", "--out", f"{__file__}/run"], "test_cli.py is a file, not a folder"),
        (["train", "default", "--out", __file__], "it is a file, not a folder"),
        (["study", "--out", f"{__file__}/study"], "test_cli.py is a file, not a folder"),
        (["study", "--out", __file__], "it is a file, not a folder"),
        (["compare", "a", "b", "--html", f"{__file__}/a.html"], "is a file, not a folder"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_no_run(
    kleash: Called, words: list[str], expected: str
) -> None:
    code, out, err = kleash(*words)
    assert (code, out) == (2, "")
    lines = [line for line in err.splitlines() if line.startswith("kleash: ")]
    assert len(lines) == 1
    assert expected in lines[0]
    assert err.endswith(lines[0] + "\n")
    assert "Traceback" not in err
    assert {path.name for path in Path().rglob("*")} <= {"runs", "ledger.sqlite"}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--shots", "9"], "9 shots from pools of 8: ask for 1 to 8"),
        (["--shots", "two"], "give numbers with commas"),
        (["--items", "61"], "ask for 1 to 60"),
        (["--items", "0"], "ask for 1 to 60"),
        (["--split", "exam"], "no split 'exam'"),
        (["--checkpoint", "epoch-9"], "no checkpoint 'epoch-9'"),
    ],
)
def test_a_mistake_in_measuring_leaves_no_score(
    kleash: Called, here: Run, words: list[str], expected: str
) -> None:
    code, out, err = kleash("eval", here.path, *words)
    assert (code, out) == (2, "")
    assert expected in err.splitlines()[-1]
    assert not (here.path / "scores.jsonl").exists()


# --- Ctrl-C


def interrupted(kleash: Called, monkeypatch: pytest.MonkeyPatch, *words: object, at: str) -> str:
    """What it says when Ctrl-C is pressed at the first line of that phase."""
    from kleash.train.loop import Trainer

    tell = Trainer.tell

    def press(self: Trainer, phase: str, *given: Any) -> None:
        tell(self, phase, *given)
        if phase == at:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Trainer, "tell", press)
        code, out, err = kleash(*words)
    assert (code, out) == (130, "")
    assert "Traceback" not in err
    return err.rstrip().splitlines()[-1]


def test_a_run_that_is_interrupted_says_where_and_how_to_go_on(
    kleash: Called, monkeypatch: pytest.MonkeyPatch, tiny_run: Run
) -> None:
    words = ("train", "default", *KEYS)
    said = interrupted(kleash, monkeypatch, *words, at="grpo")
    assert said.startswith("stopped in grpo 1/2; the last checkpoint is rce-1: ")
    assert said.endswith("the same command goes on from it, or kleash train runs/default-s0")
    assert kleash(*said[said.index("train ") :].split())[0] == 0
    assert contents(Run.open(Path("runs/default-s0"))) == contents(tiny_run)
    other = interrupted(kleash, monkeypatch, *words, "seed=5", "--lang", "zh", at="rce")
    assert other.startswith("停止于 RCE 1/1；最近的检查点是 rce-1")


def test_a_run_that_is_interrupted_before_it_has_a_checkpoint_begins_again(
    kleash: Called, monkeypatch: pytest.MonkeyPatch
) -> None:
    def press(*given: Any, **named: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("kleash.train.rollout.world_of", press)
    code, out, err = kleash("train", "default", *KEYS)
    assert (code, out) == (130, "")
    said = "stopped before its first step, with no checkpoint yet: the same command begins again"
    assert err.rstrip().splitlines()[-1] == said


# --- a process of its own


PROGRAM = "from kleash.cli import main; main()"


def python(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, env=ENV, check=False
    )


@pytest.mark.parametrize("words", [["--help"], ["runs"], ["runs", "--json"], ["train", "--help"]])
def test_looking_imports_no_torch(words: list[str], here: Run) -> None:
    code = (
        "import sys\n"
        "from kleash import cli\n"
        f"sys.argv = ['kleash', *{words}, *{[str(here.path.parent)] if 'runs' in words else []}]\n"
        "try:\n    cli.main()\n"
        "finally:\n    assert 'torch' not in sys.modules, 'torch was imported'\n"
    )
    done = python("-c", code)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_a_mistake_is_one_line_of_the_program_itself() -> None:
    done = python("-c", PROGRAM, "train", "default", "kl_coef=0.1")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("kleash: unknown key 'kl_coef'")
    assert done.stderr.count("\n") == 1


def test_numbers_in_json_are_numbers(kleash: Called, here: Run) -> None:
    def refuse(constant: str) -> Any:
        raise AssertionError(f"{constant} is not JSON")

    words = ("eval", here.path, "--shots", "2", "--items", 5, "--baselines", "--json")
    assert json.loads(kleash(*words)[1], parse_constant=refuse)["cells"]


# --- in both languages


def test_eval_speaks_chinese(kleash: Called, here: Run) -> None:
    words = ("eval", here.path, "--checkpoint", "rce-1,epoch-2", "--shots", "1,2", "--items", 4)
    code, out, _ = kleash(*words, "--lang", "zh")
    assert code == 0
    for said in (
        "测试集 4 道题目上的准确率",
        "1 个范例",
        "epoch-2 与其他检查点相比",
        "只有一次运行",
    ):
        assert said in out.replace("\n", "")
    assert not any(said in out for said in ("accuracy", "against", "One run", "items"))
    assert "no language 'fr'" in kleash(*words, "--lang", "fr")[2]


def test_a_finding_is_told_once_and_who_does_not_answer_each_time() -> None:
    from rich.console import Console

    file = io.StringIO()
    teller = Teller(Console(file=file, width=300), "en")
    for code in ("few-tasks", "endpoint"):
        for message in ("one", "two"):
            record = {"kind": "finding", "code": code, "severity": "warning", "message": message}
            teller(Heard("finding", 0, 0, record, 9))
    assert [line.split()[-1] for line in file.getvalue().splitlines()] == ["one", "one", "two"]


@pytest.mark.parametrize(("language", "word"), [("en", "void"), ("zh", "作废")])
def test_too_many_broken_answers_are_told_with_the_error_of_one(
    language: Language, word: str
) -> None:
    from rich.console import Console

    found = guard.few_broken(3, 10, why="the judge said NaN")
    assert found is not None
    file = io.StringIO()
    record = {"kind": "finding", "step": 0} | asdict(found)
    Teller(Console(file=file, width=300), language)(Heard("finding", 0, 0, record, 9))
    line = file.getvalue()
    assert word in line and "3 of 10 broke" in line and "(one of them: the judge said NaN)" in line


@pytest.mark.parametrize(
    ("language", "line"),
    [
        (
            "en",
            "grpo 2/3, loss 0.1250, reward 0.500, KL 0.010 nats/episode, signal in 40% of groups,"
            " validation loss 8.00 (blind 8.30), accuracy 0.250, 90 queries/s\n",
        ),
        (
            "zh",
            "GRPO 2/3，损失 0.1250，奖励 0.500，KL 0.010 nats/回合，40% 的组有信号，"
            "验证损失 8.00（盲选 8.30），准确率 0.250，90 查询/秒\n",
        ),
    ],
)
def test_an_epoch_is_told_in_one_line(language: Language, line: str) -> None:
    from rich.console import Console

    file = io.StringIO()
    record = {
        "kind": "epoch",
        "loss": 0.125,
        "reward": 0.5,
        "groups_with_signal": 0.4,
        "probe/kl/ref/exact/episode/mean": 0.01,
        "queries_per_second": 90.0,
        "validation/loss": 8.0,
        "validation/uniform_loss": 8.3,
        "validation/accuracy": 0.25,
    }
    Teller(Console(file=file, width=300), language)(Heard("grpo", 2, 3, record, 9))
    assert file.getvalue() == line


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("en", "validation reward 1.500, coverage 50%, 120 rollout tokens/s, 60 update tokens/s"),
        ("zh", "验证奖励 1.500，细节覆盖 50%，对话 120 token/秒，更新 60 token/秒"),
    ],
)
def test_an_epoch_of_an_agent_is_told_too(language: Language, words: str) -> None:
    record = {
        "validation/reward": 1.5,
        "validation/episode/coverage": 0.5,
        "rollout_tokens_per_second": 120.0,
        "update_tokens_per_second": 60.0,
    }
    comma = "，" if language == "zh" else ", "
    assert comma.join(validated(record, language)) == words
