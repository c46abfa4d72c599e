"""`kleash.read`, as in a notebook: what was read is three frames that a person can filter."""

import subprocess
import sys

import polars as pl
import pytest

import kleash
from made_study import made_study
from plain_sources import HANDMADE
from test_imports import FIXTURES, own_run, write

SCORES = [
    "arm", "seed", "metric", "checkpoint", "split", "shots", "item", "cluster", "score", "weights",
    "n", "state", "decimals", "file", "line",
]  # fmt: skip
CURVES = ["arm", "seed", "metric", "axis", "at", "value", "state", "decimals", "file", "line"]
SETTINGS = ["arm", "key", "name", "value", "file", "line"]


def test_importing_kleash_imports_nothing_else():
    heavy = {"torch", "polars", "numpy", "kleash.compare.read"}
    code = f"import sys, kleash; print({heavy} & {{*sys.modules}} or set())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "set()\n", done.stderr
    assert "read" in dir(kleash)
    with pytest.raises(AttributeError, match="no attribute 'raed'"):
        _ = kleash.raed


def test_a_study_is_filtered_by_hand(tmp_path):
    made_study(tmp_path / "study")
    runs = kleash.read(tmp_path / "study")
    assert isinstance(runs, kleash.Runs)
    assert runs.scores.columns == SCORES
    arms = runs.scores.filter(pl.col("shots") == 2).group_by("arm").agg(pl.col("score").mean())
    assert {"start", "random"} < {*arms["arm"]}
    best = kleash.compare(runs).baseline
    assert best in {*arms["arm"]}
    assert len(repr(runs)) <= 300


def test_curves_have_known_names_their_places_and_only_the_last_branch(tmp_path):
    rows = ["step,Train Loss,zorp", "1,0.50,1", "2,0.40,", "3,9.00,3", "2,0.30,4", "3,nan,5"]
    file = write(tmp_path / "kl0.1-s2.csv", "\n".join(rows) + "\n")
    curves = kleash.read(file).curves
    assert curves.columns == CURVES
    loss = curves.filter(pl.col("metric") == "loss")
    assert loss.select("arm", "seed", "axis", "file").unique().rows() == [
        ("kl0.1", 2, "step", str(file))
    ]
    assert [(at, line) for at, line in loss.select("at", "line").rows()] == [(1, 2), (2, 5), (3, 6)]
    assert loss["value"].to_list()[:2] == [0.5, 0.3] and loss["value"].is_nan().to_list()[2]
    assert curves.filter(pl.col("metric") == "zorp")["at"].to_list() == [1, 2, 3]


def test_scores_that_broke_are_null_and_cells_are_rows_without_an_item(tmp_path):
    own_run(tmp_path / "kl0.15-s3")
    cells = write(tmp_path / "results.csv", "arm,seed,accuracy\nkl0,1,57.0%\nkl0,2,?\n")
    scores = kleash.read(tmp_path / "kl0.15-s3", cells).scores
    broken = scores.filter(pl.col("item") == "q2", pl.col("metric") != "truth_logp")
    assert broken.select("score", "state", "checkpoint").rows() == [(None, "missing", "epoch-1")]
    measured = scores.filter(pl.col("item").is_null())
    assert measured.select("arm", "seed", "score", "state", "decimals", "line").rows() == [
        ("kl0", 1, 0.57, "known", 3, 2),
        ("kl0", 2, None, "missing", None, 3),
    ]


def test_settings_have_their_known_name_and_the_one_that_was_written():
    settings = kleash.read(HANDMADE / "verl/exp-s1").settings
    assert settings.columns == SETTINGS
    row = settings.filter(pl.col("name") == "actor_rollout_ref.actor.kl_loss_coef").row(0)
    assert row[:4] == ("exp", "leash.coefficient", "actor_rollout_ref.actor.kl_loss_coef", "0.01")


def test_a_unit_that_the_numbers_leave_open_is_asked_for(tmp_path):
    first = write(tmp_path / "a.csv", "step,accuracy\n1,57.3\n2,58.1\n")
    second = write(tmp_path / "b.csv", "step,accuracy\n1,0.8\n2,0.9\n")
    assert "--unit accuracy=percent" in kleash.read(first, second).notes[0]
    runs = kleash.read(first, second, unit=["accuracy=percent"])
    assert runs.curves["value"].to_list() == pytest.approx([0.573, 0.581, 0.008, 0.009])


def test_a_curve_in_two_files_says_where_each_point_stands(tmp_path):
    found = kleash.read(FIXTURES / "tensorboard", FIXTURES / "wandb")
    curves = found.curves
    assert sum(len(s.steps) for run in found.runs for s in run.series) == curves.height
    assert curves["line"].null_count() == 0
    assert {run.arm for run in found.runs} == {*curves["arm"]}


def test_frames_convert_to_pandas(tmp_path):
    pytest.importorskip("pandas")
    own_run(tmp_path / "kl0.15-s3")
    found = kleash.read(tmp_path / "kl0.15-s3", HANDMADE / "verl/exp-s1")
    made = [found.scores, found.curves, found.settings, kleash.load(tmp_path / "kl0.15-s3").frame()]
    for frame in (*made, *map(kleash.compare(found).frame, ("verdicts", "arms", "confounds"))):
        table = frame.to_pandas()
        assert list(table.columns) == frame.columns and len(table) == frame.height
