"""`kleash study` and `kleash stop`, as a user calls them."""

from __future__ import annotations

import errno
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import tomli_w
from typer.testing import CliRunner

from kleash.cli import app, main
from kleash.cli.study import Display
from kleash.runs.jobs import Told
from kleash.runs.run import holder
from kleash.study.plan.folder import Overview, read_plan
from study_tools import HERE, SMALL, inline, small_study

__all__ = ["inline", "small_study"]


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """The small study as a user's file."""
    path = tmp_path / "mine.toml"
    written = {key: value for key, value in SMALL.items() if key != "name"}
    path.write_text(tomli_w.dumps(written), encoding="utf-8")
    return path


def kleash(*words: str | Path) -> str:
    """What a verb prints."""
    result = CliRunner().invoke(app, [str(word) for word in words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def test_dry_run_lists_every_cell_and_runs_nothing(mine: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    text = kleash("study", mine, "--out", out, "--dry-run")
    assert "mine: 78 cells" in text
    assert "78 missing" in text
    assert "the ledger knows 0" in text
    plan = json.loads(kleash("study", mine, "--out", out, "--dry-run", "--json"))
    assert len(plan["cells"]) == 78
    assert plan["jobs"][0] == "base-s0"
    assert not out.exists()


def test_dry_run_of_a_finished_study_says_what_is_there(small_study: Path) -> None:
    text = kleash("study", small_study, "--dry-run", "measure.shots=[1,2,3]")
    assert "78 done" in text
    assert "missing" in text
    assert "minutes of one core" in text


def test_finished_study_is_shown_again_without_work(
    small_study: Path, tmp_path: Path, inline: None
) -> None:
    folder = Path(shutil.copytree(small_study, tmp_path / "small"))
    text = kleash("study", folder)
    assert "tight" in text
    assert "answers:" in text
    assert (folder / "report.md").is_file()
    assert (folder / "report.html").is_file()
    found = json.loads(kleash("study", folder, "--json"))
    assert found["counts"] == {"done": 78}
    assert [row["arm"] for row in found["arms"]] == ["none", "tight"]
    assert found["arms"][1]["gap"]["level"] == "L1"


def test_stop_of_an_idle_study_says_so(small_study: Path) -> None:
    assert "nobody is running" in kleash("stop", small_study)


@pytest.mark.parametrize("by", [pytest.param("stop", marks=pytest.mark.slow), "interrupt"])
def test_running_study_is_stopped_cleanly_and_goes_on(
    mine: Path, tmp_path: Path, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[Display.__module__], "PATIENCE", 600.0)
    out = tmp_path / "out"
    paths = os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])
    env = os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    verb = [sys.executable, "-c", "from kleash.cli import main; main()", "study"]
    with subprocess.Popen(
        [*verb, str(mine), "--out", str(out), "--jobs", "1"],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as driver:
        try:
            while not (out / "base-s0").exists() and driver.poll() is None:
                time.sleep(0.05)
            if by == "stop":
                assert "is stopped" in kleash("stop", out)
            else:
                driver.send_signal(signal.SIGINT)
            printed, errors = driver.communicate(timeout=600)
        finally:
            driver.kill()
    assert driver.returncode == 130, errors
    assert b"the same command goes on" in printed
    assert not list(out.glob("re*"))  # nothing was measured: there is no report, nothing to use
    assert len(printed.splitlines()) == 1  # and no tables of nothing
    assert holder(out) == ""
    states = {row[-1] for row in read_plan(out)["cells"]}
    assert "running" not in states
    assert "missing" in states


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of its own, too small for the study."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("nothing may be mounted here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.slow
def test_a_full_disk_stops_a_study_with_one_line_and_room_lets_it_go_on(
    mine: Path, disk: Path, small_study: Path
) -> None:
    out = disk / "small"
    paths = os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])
    env = os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    verb = [sys.executable, "-c", "from kleash.cli import main; main()", "study", str(mine)]
    verb += ["name=small", "--out", str(out), "--jobs", "2"]
    full = subprocess.run(verb, env=env, capture_output=True, text=True, check=False)
    assert full.returncode == 2 and full.stdout == ""  # no tables
    line = full.stderr.splitlines()[-1]
    assert line.startswith(f"kleash: No space left on device: {out}: free some")
    assert full.stderr.count("No space left") == 1 and "Traceback" not in full.stderr
    assert not list(out.glob("re*"))  # no report of what is there
    assert holder(out) == ""
    assert "running" not in {row[-1] for row in read_plan(out)["cells"]}
    subprocess.run(["mount", "-o", "remount,size=200m", str(disk)], check=True)
    free = subprocess.run(verb, env=env, capture_output=True, text=True, check=False)
    assert free.returncode == 0, free.stderr
    for run in (
        "base-s0",
        "base-s1",
        *(f"runs/{arm}-s{s}" for arm in ("none", "tight") for s in (0, 1)),
    ):
        for name in ("metrics.jsonl", "scores.jsonl"):
            assert (out / run / name).read_bytes() == (small_study / run / name).read_bytes()


def test_a_full_disk_is_one_line_wherever_it_is_met(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full() -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "somewhere/file")

    monkeypatch.setattr("kleash.cli.app", full)
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    assert capsys.readouterr().err.startswith(
        "kleash: No space left on device: somewhere/file: free some"
    )


def test_progress_tells_of_jobs_that_end(capsys: pytest.CaptureFixture[str]) -> None:
    from rich.console import Console

    file = io.StringIO()
    with Display(Console(file=file, width=100, force_terminal=True)) as display:
        found = Overview()
        display(Told("started", "a-s0"), found)
        display(Told("told", "a-s0", {"at": "grpo 1/3", "accuracy": 0.5, "asked": 9}), found)
        assert "grpo 1/3" in drawn(display)
        display(Told("done", "a-s0", {"seconds": 1.5, "asked": 10, "bought": 4}), found)
        display(Told("failed", "b-s0", error="it broke\nthere"), found)
        assert "10 asked, 4 bought, 6 saved" in drawn(display)
    assert "a-s0: done in 1.5 s" in file.getvalue()
    assert "b-s0: failed, it broke" in file.getvalue()


def drawn(display: Display) -> str:
    """The live picture as text."""
    from rich.console import Console

    file = io.StringIO()
    Console(file=file, width=160).print(display.picture())
    return file.getvalue()


def test_progress_speaks_chinese(capsys: pytest.CaptureFixture[str]) -> None:
    from rich.console import Console

    file = io.StringIO()
    with Display(Console(file=file, width=160), "zh") as display:
        found = Overview()
        display(Told("started", "a-s0"), found)
        display(Told("told", "a-s0", {"at": "supervised 1/3", "validation": 0.5}), found)
        assert "监督 1/3" in drawn(display)
        assert "验证 0.500" in drawn(display)
        display(Told("told", "a-s0", {"at": "test: epoch-1"}), found)
        assert "测试集： epoch-1" in drawn(display)
        unknown = {"code": "not-in-the-table", "severity": "warning", "message": "as it says"}
        known = {"code": "no-signal", "severity": "warning", "message": "not this", "step": 7}
        display(Told("told", "a-s0", {"finding": unknown}), found)
        display(Told("told", "a-s0", {"finding": known}), found)
        display(Told("done", "a-s0", {"seconds": 1.5, "asked": 10, "bought": 4}), found)
        display(Told("failed", "b-s0", error="it broke\nthere"), found)
        assert "请求 10 个，实际调用 4 个，节省 6 个" in drawn(display)
        assert "0/0 个单元" in drawn(display)
    said = file.getvalue()
    assert "a-s0：as it says" in said
    assert "整轮没有信号，最早到第 7 步" in said and "not this" not in said
    assert "a-s0：完成，用时 1.5 秒" in said
    assert "b-s0：失败，it broke" in said


def test_the_end_of_a_study_is_told_in_the_language_asked_for_or_the_locale(
    small_study: Path, tmp_path: Path, inline: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(shutil.copytree(small_study, tmp_path / "small"))
    asked = kleash("study", folder, "--lang", "zh")
    for words in ("验证集选出的检查点", "结论", "未定", "相同题目上的基线", "应答：请求"):
        assert words in asked.replace("\n", "")
    assert not any(words in asked for words in ("verdict", "undecided", "asked for", "shots"))
    assert "结论" in (folder / "report.md").read_text(encoding="utf-8")
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    by_locale = kleash("study", folder)
    assert by_locale == asked
    assert "Verdict" in (folder / "report.md").read_text(encoding="utf-8"), "the study's own"
    assert "没有正在运行的" in kleash("stop", folder)
    assert "nobody is running" in kleash("stop", folder, "--lang", "en")
