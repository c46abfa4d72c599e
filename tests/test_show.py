"""`kleash show`: verdict, matrix and sparklines of a study in the terminal."""

import json
import re
import shutil

import pytest
from typer.testing import CliRunner

from kleash.cli import app
from kleash.errors import DataError
from kleash.plan.folder import read_plan
from kleash.results import results
from kleash.results.summary import scored
from kleash.runs import write_json
from kleash.stats import mean_interval
from made_study import made_study


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shown") / "made"
    made_study(folder)
    return folder


def shown(*words):
    done = CliRunner(env={"LANG": "C", "COLUMNS": "160"}).invoke(app, ["show", *map(str, words)])
    if done.exception:
        raise done.exception
    return done.stdout


def test_verdict_matrix_and_sparklines(study):
    text = shown(study)
    flat = " ".join(text.split())
    assert "Use kl0.15: accuracy +50.000" in flat
    row = next(line for line in text.splitlines() if re.match(r".\s*kl0\.15 ", line))
    assert re.search("▁[▄▅]█", row)  # three epochs that rise alike
    # 0.8 of 40 items are right, one more with an odd seed.
    cells = re.findall(r"✓ ([\d.]+)%", text)
    assert cells.count("80.0") == 4
    assert cells.count("82.5") == 4
    assert "cells are done" in text


def test_it_speaks_chinese(study):
    text = shown(study, "--lang", "zh")
    assert "结论" in text
    assert "用 kl0.15" in text
    assert "随机种子 0" in text


def test_states_that_are_not_done_are_counted(study, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(study, copy)
    plan = read_plan(copy)
    mine = [cell for cell in plan["cells"] if (cell[0], cell[1]) == ("none", 3)]
    mine[0][-1] = "failed"
    write_json(copy / "plan.json", plan)
    text = shown(copy)
    assert f"✗ {len(mine) - 1}/{len(mine)}" in text
    assert "failed 1" in text


def test_machines_get_json(study):
    assert json.loads(shown(study, "--json"))["study"] == "made"


def test_what_is_no_study_is_one_line(tmp_path):
    with pytest.raises(DataError, match=r"holds no study\.toml"):
        shown(tmp_path)


def test_an_accuracy_in_the_terminal_is_never_above_one(study):
    wide = mean_interval([1.0] * 8, bounds=(0, 1))
    assert wide.high > 1
    assert re.fullmatch(r"1\.000 \[0\.\d+, 1\.000\]", scored(results(study), wide))
