"""What a run reports reaches other tools: every number, under our names, at steps that count on."""

import contextlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from kleash import cli
from kleash.compare.read import Imported, read
from kleash.errors import KleashError
from kleash.runs.ledger import Ledger
from kleash.runs.run import Run
from kleash.runs.sinks import SINKS, About, Sink, sink_names
from kleash.train.rollout.selector import SelectorWorld
from kleash.train.training import train
from kleash.types import Heard, Listener
from tiny import KEYS, contents, given, tiny_recipe

ROOT = Path(__file__).parent.parent
Points = dict[str, list[tuple[float, float]]]

pytestmark = pytest.mark.usefixtures("one_thread")


class StoppedError(Exception):
    """Ends a run from within, as a user's Ctrl-C would."""


@dataclass
class Kept:
    """A sink that remembers."""

    needs = ""
    breaks_at: int | None = None
    refuses: bool = False
    about: About | None = None
    rows: list[tuple[int, dict[str, float | str]]] = field(default_factory=list)
    closed: list[bool] = field(default_factory=list)

    def start(self, about: About) -> None:
        sys.stdout.write("a tool that talks\n")
        if self.refuses:
            raise ConnectionError("no key\n in sight")
        self.about = about

    def log(self, record: Mapping[str, float | str], step: int) -> None:
        sys.stdout.write("and talks\n")
        if step == self.breaks_at:
            raise TimeoutError("the network\nis away")
        self.rows.append((step, dict(record)))

    def close(self, *, failed: bool) -> None:
        self.closed.append(failed)


@pytest.fixture
def sink(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Kept]:
    """Put a sink that remembers into the table."""

    def made(name: str, **how: Any) -> Kept:
        kept = Kept(**how)
        returned: Sink = kept
        monkeypatch.setitem(SINKS, name, lambda: returned)
        return kept

    return made


def train_heard(
    folder: Path, ledger: Ledger, listen: Listener, *keys: str, sinks: tuple[str, ...] = ()
) -> Run:
    recipe = tiny_recipe(*keys)
    world = SelectorWorld(recipe, ledger)
    return train(folder, recipe, given(*keys), world, listen=listen, sinks=sinks)


def points(rows: list[tuple[int, dict[str, float | str]]]) -> Points:
    """Numbers by name, with their steps."""
    found: Points = {}
    for step, record in rows:
        for name, value in record.items():
            if not isinstance(value, str):
                found.setdefault(name, []).append((step, value))
    return found


def written(run: Run) -> Points:
    """The numbers in a run's own files, under the names that sinks give them."""
    lines = [line for line in run.metrics() if line["kind"] != "finding"]
    phases = ("supervised", "rce", "grpo")
    ends = {line["phase"]: line["step"] for line in lines if line["kind"] == "epoch"}
    before = {phase: sum(ends.get(p, 0) for p in phases[:i]) for i, phase in enumerate(phases)}
    clocks = {(line["phase"], line["epoch"]): line for line in run.timings() if "phase" in line}
    stepwise = {name for line in lines if line["kind"] == "step" for name in line}
    found: Points = {}
    for line in lines:
        phase, step = line.get("phase", "grpo"), line["step"]
        clock = clocks[phase, line["epoch"]] if line["kind"] == "epoch" else {}
        for name, value in (line | clock).items():
            if name in ("kind", "phase", "epoch", "step") or isinstance(value, str):
                continue
            if phase != "grpo":
                name = f"{phase}/{name}"
            elif line["kind"] == "epoch" and name in stepwise:
                name = f"epoch/{name}"
            found.setdefault(name, []).append((before[phase] + step, value))
    return found


# --- what listeners hear


def test_steps_count_over_the_phases_whether_a_run_was_stopped_or_not(
    tmp_path: Path, ledger: Ledger
) -> None:
    whole: list[Heard] = []
    train_heard(tmp_path / "whole", ledger, whole.append)
    places = [(heard.record["kind"], heard.step) for heard in whole if heard.phase != "finding"]
    epoch_of_grpo = [("step", 7), ("step", 8), ("step", 9), ("epoch", 9)]
    assert places[:6] == [("epoch", 3), ("epoch", 6), *epoch_of_grpo]
    assert places[6:] == [(kind, step + 3) for kind, step in epoch_of_grpo]

    parts: list[Heard] = []

    def stop(heard: Heard) -> None:
        parts.append(heard)
        if heard.step == 11:  # in the second epoch of GRPO
            raise StoppedError

    with pytest.raises(StoppedError):
        train_heard(tmp_path / "parts", ledger, stop)
    again: list[Heard] = []
    train_heard(tmp_path / "parts", ledger, again.append)
    lasting = [heard for heard in parts if heard.step <= 9] + again
    assert [(heard.phase, heard.step) for heard in lasting] == [(h.phase, h.step) for h in whole]


# --- any sink


def test_a_sink_gets_every_number_and_finding_and_leaves_no_trace_in_the_run(
    tmp_path: Path, ledger: Ledger, tiny_run: Run, sink: Callable[..., Kept]
) -> None:
    kept = sink("kept")
    run = train_heard(tmp_path / "kl0.1-s0", ledger, lambda heard: None, sinks=("kept",))
    assert kept.about is not None
    assert (kept.about.name, kept.about.arm) == ("kl0.1-s0", "kl0.1")
    assert kept.about.folder == tmp_path
    assert kept.about.config == run.config
    assert run.meta["identity"].startswith(kept.about.id)
    assert points(kept.rows) == written(run)
    said = {name: row[name] for _, row in kept.rows for name in row if "finding" in name}
    noted = [line for line in run.metrics() if line["kind"] == "finding"]
    assert said == {f"finding/{line['code']}": line["message"] for line in noted}
    assert len(said) > 0
    assert kept.closed == [False]
    assert contents(run) == contents(tiny_run)
    assert run.meta["identity"] == tiny_run.meta["identity"]

    train_heard(tmp_path / "kl0.1-s0", ledger, lambda heard: None, sinks=("kept",))
    assert kept.closed == [False], "a finished run was opened again"


def test_a_sink_that_breaks_is_let_go_with_one_finding_and_the_run_is_as_ever(
    tmp_path: Path, ledger: Ledger, tiny_run: Run, sink: Callable[..., Kept]
) -> None:
    weak, strong = sink("weak", breaks_at=8), sink("strong")
    heard: list[Heard] = []
    run = train_heard(tmp_path / "tiny-s0", ledger, heard.append, sinks=("weak", "strong"))
    [finding] = [h for h in heard if h.record.get("code") == "sink-weak"]
    assert finding.step == 8
    assert finding.record["severity"] == "warning"
    assert "broke at step 8" in finding.record["message"]
    assert finding.record["message"].endswith("TimeoutError: the network is away")
    assert {step for step, _ in weak.rows} == {3, 6, 7}
    assert weak.closed == []
    assert points(strong.rows) == written(run)
    assert contents(run) == contents(tiny_run)


def test_a_run_that_is_stopped_has_failed_and_goes_on_under_its_id(
    tmp_path: Path, ledger: Ledger, sink: Callable[..., Kept]
) -> None:
    def stop(heard: Heard) -> None:
        if heard.step == 11:
            raise StoppedError

    first = sink("kept")
    with pytest.raises(StoppedError):
        train_heard(tmp_path / "tiny-s0", ledger, stop, sinks=("kept",))
    assert first.closed == [True]
    again = sink("kept")
    train_heard(tmp_path / "tiny-s0", ledger, lambda heard: None, sinks=("kept",))
    assert again.closed == [False]
    assert first.about is not None and again.about is not None
    assert first.about.id == again.about.id
    overlap = [row for row in first.rows if row[0] > 9]
    assert overlap == again.rows[: len(overlap)]


def test_a_sink_that_cannot_start_is_said_before_training_and_closes_the_others(
    tmp_path: Path, ledger: Ledger, sink: Callable[..., Kept]
) -> None:
    open_one = sink("open")
    sink("shut", refuses=True)
    heard: list[Heard] = []
    with pytest.raises(KleashError, match="the sink shut cannot start: ConnectionError: no key in"):
        train_heard(tmp_path / "tiny-s0", ledger, heard.append, sinks=("open", "shut"))
    assert heard == []
    assert open_one.closed == [True]


def test_names_of_sinks_are_checked_with_their_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    class Missing(Kept):
        needs = "not_installed_here"

    monkeypatch.setitem(SINKS, "missing", Missing)
    monkeypatch.setitem(SINKS, "kept", Kept)
    assert sink_names("") == ()
    assert sink_names(" kept,kept ,") == ("kept",)
    with pytest.raises(KleashError, match="no sink 'wandbb': did you mean 'wandb'"):
        sink_names("kept,wandbb")
    with pytest.raises(KleashError, match=r"pip install 'kleash\[not_installed_here\]'"):
        sink_names("kept,missing")


def test_every_sink_has_an_extra_of_the_name_that_its_error_tells() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for name, make in SINKS.items():
        assert make().needs in project["optional-dependencies"], name


def test_what_a_sink_prints_is_no_result(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    sink: Callable[..., Kept],
) -> None:
    kept = sink("kept")
    monkeypatch.chdir(tmp_path)

    def call(*words: str) -> int:
        monkeypatch.setattr(sys, "argv", ["kleash", "train", "default", *KEYS, *words])
        with pytest.raises(SystemExit) as caught:
            cli.main()
        return int(caught.value.code or 0)

    assert call("--json", "--log-to", "nowhere") == 2
    assert "no sink 'nowhere'" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
    assert call("--json", "--log-to", "kept") == 0
    out, err = capsys.readouterr()
    assert len(json.loads(out)["epochs"]) == 4
    assert "a tool that talks" in err
    assert points(kept.rows) == written(Run.open(tmp_path / "runs/default-s0"))


# --- the tools themselves, each where it is installed

PROGRAM = "import tiny\nfrom kleash.cli import main\nmain()\n"


def asked(sink: str, *keys: str) -> list[str]:
    """The words of the verb."""
    return ["train", "default", *KEYS, *keys, "--out", "runs/kl0.1-s0", "--log-to", sink]


def train_inside(place: Path, sink: str, *keys: str) -> None:
    """The same verb here, for a tool that lets go of what it opened."""
    with contextlib.chdir(place):
        done = CliRunner().invoke(cli.app, asked(sink, *keys))
    assert done.exit_code == 0, done.output
    assert "broke" not in done.output


def train_outside(place: Path, sink: str, *keys: str) -> None:
    """`kleash train --log-to` in a process of its own: these tools hold on to what they opened."""
    paths = os.pathsep.join(str(ROOT / part) for part in ("src", "tests"))
    env = os.environ | {"PYTHONPATH": paths, "TRACKIO_DIR": str(place / "trackio")}
    env |= {"WANDB_SILENT": "true", "HF_HUB_OFFLINE": "1", "MLFLOW_TRACKING_URI": ""}
    command = [sys.executable, "-c", PROGRAM, *asked(sink, *keys)]
    done = subprocess.run(command, cwd=place, env=env, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "broke" not in done.stderr


def found(run: Imported) -> Points:
    """The numbers that an import gave back."""
    assert not any(series.float32 for series in run.series)
    return {
        series.metric: list(zip(series.steps.tolist(), series.values.tolist(), strict=True))
        for series in run.series
    }


PLACES = {
    "wandb-offline": "runs/wandb",
    "swanlab-offline": "runs/swanlog",
    "tensorboard": "runs/tensorboard/kl0.1-s0",
    "mlflow": "runs/mlflow.db",
    "trackio": "trackio/kleash.db",
}


@pytest.mark.parametrize("name", PLACES)
def test_a_real_tool_holds_every_number_and_setting_and_goes_on_with_the_run(
    name: str, tmp_path: Path
) -> None:
    pytest.importorskip(SINKS[name]().needs)
    train_by = train_inside if name == "tensorboard" else train_outside
    train_by(tmp_path, name, "epochs=1")
    short = written(Run.open(tmp_path / "runs/kl0.1-s0"))
    train_by(tmp_path, name, "epochs=2")
    run = Run.open(tmp_path / "runs/kl0.1-s0")
    runs = read(tmp_path / PLACES[name]).runs
    if name.endswith("offline"):  # a file for each session, of one id; to sync them joins them
        assert len({Path(part.where.file).name for part in runs}) == 1
        first, second = map(found, runs)
        assert first == short
        told = {key: first.get(key, []) + second.get(key, []) for key in first | second}
    else:
        [only] = runs
        told = found(only)
    assert told == written(run)
    last = runs[-1]
    assert (last.arm, last.seed) == ("kl0.1", 0)
    settings = {key: setting.value for key, setting in last.config.items()}
    assert settings["lr"] == run.config["lr"]
    assert settings["leash.coefficient"] == run.config["leash"]["coefficient"]
    if name.endswith("offline") or name == "mlflow":
        assert last.finished is True
    left = sorted(path.name for path in (tmp_path / "runs").iterdir())
    assert set(left) <= {"kl0.1-s0", "ledger.sqlite", Path(PLACES[name]).parts[1]}, left


def test_the_verb_and_the_page_name_every_sink() -> None:
    command: Any = typer.main.get_command(cli.app)
    (option,) = [p for p in command.commands["train"].params if p.name == "log_to"]
    page = (Path(__file__).parent.parent / "docs/watch.md").read_text(encoding="utf-8")
    for name in SINKS:
        assert name in re.findall(r"[a-z-]+", option.help), name
        assert f"| `{name}` |" in page
