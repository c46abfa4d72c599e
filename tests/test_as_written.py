"""Logs are taken as they are written: items by their names, numbers in their unit, runs to their
true end."""

import json

import numpy as np
import pytest

from kleash.compare import Wish, compare
from kleash.errors import DataError
from kleash.imports import read

ALIKE = ["1", "01", "1.0", "1e0", "NA", "none", "null", "?", "-", "12345678901234567"]
ALIKE += ["12345678901234568"]


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def items_of(path):
    [run] = read(path).runs
    return list(run.scores[0].items)


def level(*paths, **wish):
    found = compare([read(path) for path in paths], Wish(**wish))
    return next(each for each in found.verdicts if each.question == "level")


# --- items are called what their file calls them


def test_items_of_a_table_keep_their_text(tmp_path):
    rows = "".join(f"{name},1\n" for name in ALIKE)
    assert items_of(write(tmp_path / "a.csv", "item,score\n" + rows)) == ALIKE


def test_items_of_json_lines_keep_their_digits(tmp_path):
    names = [*ALIKE, 1, 12345678901234567, 1.5, True]
    path = write(tmp_path / "a.jsonl", lines({"item": name, "score": 1} for name in names))
    assert items_of(path) == [*ALIKE, "1", "12345678901234567", "1.5", "True"]
    # Rows with little in common are taken one by one.
    sparse = [{"item": name, "score": 1, f"x{at}": 0} for at, name in enumerate(names)]
    assert items_of(write(tmp_path / "b.jsonl", lines(sparse))) == items_of(path)


def test_a_decimal_that_has_lost_the_digits_of_a_name_is_refused(tmp_path):
    rows = [{"item": 12345678901234567.0, "score": 1}]
    with pytest.raises(DataError, match=r"1\.2345678901234568e\+16.* as text"):
        read(write(tmp_path / "a.jsonl", lines(rows)))


def test_items_with_a_column_for_each_run_keep_their_names(tmp_path):
    rows = [{"id": 12345678901234560 + at, "kl0": 0.5, "kl0.1": at / 50} for at in range(40)]
    for path in (
        write(tmp_path / "a.json", json.dumps(rows)),
        write(
            tmp_path / "b.csv",
            "\n".join(["id,kl0,kl0.1", *(",".join(map(str, row.values())) for row in rows)]),
        ),
    ):
        first, _ = read(path).runs
        assert list(first.scores[0].items) == [str(row["id"]) for row in rows]


def test_rows_that_name_no_item_are_told_and_are_none(tmp_path):
    source = read(write(tmp_path / "a.csv", "item,score\nq1,1\n,0\nq2,0\n,1\n"))
    assert list(source.runs[0].scores[0].items) == ["q1", "q2"]
    assert any("2 rows name no item" in note for note in source.notes)


def test_neighbours_among_long_ids_are_compared_as_the_items_they_are(tmp_path):
    paths = []
    for arm in range(2):
        rows = "".join(f"{12345678901234560 + at},{(at + arm) % 2}\n" for at in range(100))
        paths.append(write(tmp_path / f"kl{arm}.csv", "item,score\n" + rows))
    assert level(*paths).n == 100


def test_an_arm_may_be_called_none(tmp_path):
    rows = "".join(f"{arm},{step},0.{step}\n" for arm in ("none", "NA", "kl") for step in (1, 2, 3))
    for column in ("arm", "method"):
        source = read(write(tmp_path / f"{column}.csv", f"{column},step,reward\n" + rows))
        assert [run.name for run in source.runs] == ["none", "NA", "kl"]


@pytest.mark.parametrize("metric", ["val_loss", "eval_loss", "validation loss"])
def test_a_row_for_each_item_is_a_score_of_it_whatever_the_metric(tmp_path, metric):
    rng = np.random.default_rng(0)
    rows = [
        {"arm": arm, "item": item, metric: round(2.0 + 0.3 * (arm == "kl") + rng.normal() / 5, 3)}
        for arm in ("none", "kl")
        for item in range(60)
    ]
    table = f"arm,item,{metric}\n" + "".join(",".join(map(str, r.values())) + "\n" for r in rows)
    for path in (write(tmp_path / "a.csv", table), write(tmp_path / "b.jsonl", lines(rows))):
        found = level(path, baseline="none")
        assert (found.n, found.counted, found.verdict) == (60, "items", "worse")
        means = [np.mean([r[metric] for r in rows if r["arm"] == arm]) for arm in ("kl", "none")]
        assert found.estimate == pytest.approx(means[0] - means[1])


def test_a_row_for_each_run_is_no_item_though_it_has_an_id(tmp_path):
    path = write(tmp_path / "a.csv", "id,arm,val_loss\n1,kl0,2.1\n2,kl0.1,2.3\n")
    assert [len(run.cells) for run in read(path).runs if not run.scores] == [2, 2]
