"""How a report reads runs: each file once, by the column, with what every line says."""

import json
from collections import Counter
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import kleash.runs.run
from kleash import report
from kleash.compare.read import run_folder
from kleash.compare.read.gather import number
from kleash.compare.read.run_folder import FIXED, read_run
from kleash.errors import DataError
from kleash.runs.run import Run
from kleash.study.results import results
from made_study import made_study

LINES = [
    {"kind": "step", "phase": "supervised", "step": 1, "loss": 2.5},
    {"kind": "step", "step": 1, "loss": 0.5, "count": 3, "note": "first", "flag": True},
    {"kind": "step", "step": 2, "loss": 0.25, "count": 4, "note": "second", "flag": False},
    {"kind": "step", "step": 3, "loss": 0.125, "count": 5},
    {"kind": "step", "step": 4, "loss": 0.0625, "count": 6},
    {"kind": "epoch", "epoch": 1, "step": 4, "loss": 1, "score": None},
    {"kind": "stop", "step": 4, "loss": 9.0},
    {"kind": "step", "step": 5, "count": 7, "loss": "NaN"},
    {"kind": "step", "step": 3, "count": 8, "loss": 0.5},
    {"kind": "epoch", "epoch": 2, "step": 5, "loss": 2, "score": 0.5},
]


def a_run(folder, lines):
    folder.mkdir()
    for name, value in (("config", {"seed": 3}), ("given", {}), ("meta", {"identity": "x"})):
        (folder / f"{name}.json").write_text(json.dumps(value))
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / "metrics.jsonl").write_text(text)
    return Run.open(folder)


def test_points_taken_by_the_column_are_those_of_every_line(tmp_path):
    wanted = {}
    for at, line in enumerate(LINES, 1):
        if line["kind"] in ("step", "epoch"):
            prefix = f"{line['phase']}/" if "phase" in line else ""
            for name, value in line.items():
                if name not in FIXED and number(value) is not None:
                    key = (prefix + name, line["kind"])
                    point = (float(line[line["kind"]]), number(value), at)
                    wanted.setdefault(key, []).append(point)
    found = {
        (each.metric, each.axis): list(
            zip(each.steps.tolist(), each.values.tolist(), each.lines.tolist(), strict=True)
        )
        for each in read_run(a_run(tmp_path / "mixed-s3", LINES)).series
    }
    assert repr(found) == repr(dict(sorted(wanted.items(), key=lambda pair: pair[0][1] == "epoch")))


def test_a_record_without_its_step_is_named_by_its_line(tmp_path):
    lines = [{"kind": "step", "step": n if n < 3 else None, "loss": 0.1} for n in range(5)]
    with pytest.raises(DataError, match=r"metrics.jsonl line 4 has no step"):
        read_run(a_run(tmp_path / "stepless", lines))


def test_a_number_that_no_float_holds_is_refused(tmp_path):
    lines = [{"kind": "step", "step": n, "loss": 10**400 if n == 2 else 0.5} for n in range(4)]
    with pytest.raises(DataError, match="too large"):
        read_run(a_run(tmp_path / "huge", lines))


def test_a_report_parses_no_line_of_a_run_twice(tmp_path, monkeypatch):
    made_study(tmp_path / "made")
    opened = Counter()
    plain = kleash.runs.run.read_lines

    def counted(path, **keys):
        opened[Path(path)] += 1
        return plain(path, **keys)

    for module in (kleash.runs.run, run_folder):
        monkeypatch.setattr(module, "read_lines", counted)
    report.write(results(tmp_path / "made"), language="en")
    runs = {path: n for path, n in opened.items() if path.parent.parent.name == "runs"}
    assert {path.name for path in runs} >= {"metrics.jsonl", "scores.jsonl"}
    assert len(runs) >= 2 * 24
    assert {path for path, n in runs.items() if n > 1 and path.name != "timings.jsonl"} == set()


def test_agreement_is_that_of_every_pair(tmp_path):
    made_study(tmp_path / "made", leave_out=("kl0.15-s3", "kl1.5-s0", "kl1.5-s1"))
    found = results(tmp_path / "made")
    told = {each.arms: each for each in found.agreements}
    shots = 2
    for ours, theirs in combinations([arm.name for arm in found.arms], 2):
        whole = []
        for seed in found.file.seeds:
            seen = [found.overview.seen.get((arm, seed)) for arm in (ours, theirs)]
            if any(each is None or each.run is None for each in seen):
                continue
            one, other = (each.scored[each.chosen, "test", shots].pointers for each in seen)
            whole.append(np.mean([a == b for a, b in zip(one, other, strict=True)]))
        each = told[ours, theirs]
        assert each.seeds == len(whole) and each.equal_pointers == float(np.mean(whole))
        assert each.identical_outputs == sum(share == 1.0 for share in whole)
    assert {each.seeds for each in told.values()} == {7, 6, 5}
