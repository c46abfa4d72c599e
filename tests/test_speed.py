"""What a user waits for: the verb on two small logs, and columns read as fast as they may be."""

import json
import os
import resource
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kleash.compare.checks import evidence, find
from kleash.compare.read import Imported, Series, Source, Where, csv_rows, gather, read
from kleash.compare.read.tables import one_by_one
from kleash.stats.intervals import drawn_means, resample
from pace import soon

LOADED = """
import sys
from kleash.cli import main
try:
    main()
except SystemExit as stop:
    if stop.code:
        raise
loaded = {"torch", "scipy.stats", "kleash.compare.read.markdown.document"} & set(sys.modules)
sys.stderr.write("LOADED " + " ".join(sorted(loaded)))
"""


def small_logs(folder):
    rng = np.random.default_rng(0)
    for name in ("kl0", "kl0.1"):
        rows = rng.random((100, 3)).round(4).tolist()
        lines = [f"{step},{','.join(map(str, row))}" for step, row in enumerate(rows)]
        (folder / f"{name}.csv").write_text("step,eval/reward,kl,loss\n" + "\n".join(lines) + "\n")
    return [str(folder / "kl0.csv"), str(folder / "kl0.1.csv")]


def verb(*words, **env):
    """A process of its own: CPU seconds of all its threads, and what it wrote."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-c", LOADED, "compare", *words]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | env)
    assert done.returncode == 0, done.stderr[-2000:]
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return spent, done.stdout, done.stderr


def test_two_small_logs_are_compared_in_a_second_of_cpu_and_load_nothing_large(tmp_path):
    logs = small_logs(tmp_path)
    compiled = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(tmp_path / "compiled")}
    verb(*logs, **compiled)  # the first call compiles the sources
    for _ in range(3):  # the least of three: no other one is needed once there is one
        spent, out, err = verb(*logs, "--json", **compiled)
        assert err.endswith("LOADED ")
        assert {arm["name"] for arm in json.loads(out)["arms"]} == {"kl0", "kl0.1"}
        if spent <= 1.0:
            break
    assert soon(spent, 1.0)


def test_checks_ask_for_the_points_of_a_metric_and_they_are_made_once(monkeypatch):
    made = []
    real = evidence._points

    def spied(metric, origin, most):
        made.append((origin.where.file, metric))
        return real(metric, origin, most)

    monkeypatch.setattr(evidence, "_points", spied)
    steps = np.arange(5.0)
    sources = []
    for name in "ab":
        series = [
            Series(m, "step", steps, steps / 10, Where(f"{name}.csv", 2)) for m in ("kl", "x")
        ]
        runs = [Imported(name, name, "csv", Where("x"), series=series)]
        sources.append(Source(f"{name}.csv", "csv", runs))
    find(sources)
    assert sorted(made) == [("a.csv", "kl"), ("b.csv", "kl")]
    find(sources)
    assert len(made) == 4, "nothing is kept from one look to the next"


ENTRIES = st.one_of(
    st.floats().map(repr),
    st.integers(-(10**20), 10**20).map(str),
    st.decimals(-1000, 1000, places=4).map(str),
    st.sampled_from(
        ["", " ", "?", " 1.5", "1e999", "57%", "1_0", "１", ".5", "5.", "+3", "-0", "9e-06"]
    ),
    st.text("0123456789.eE+-, %\n", max_size=8),
)


@given(st.lists(ENTRIES, min_size=1, max_size=20))
def test_a_column_taken_at_once_is_what_its_entries_are_one_by_one(entries):
    ours, theirs = csv_rows.numbers(entries), one_by_one(entries, csv_rows.value)
    np.testing.assert_array_equal(ours.rows, theirs.rows)
    np.testing.assert_array_equal(ours.values, theirs.values)
    assert ours.coarse == theirs.coarse
    if ours.coarse:
        assert ours.decimals == theirs.decimals


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(['"', '\\"']),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=4)
    ),
)


@given(JSON)
def test_json_read_the_short_way_is_what_was_written(value):
    text = json.dumps(value)
    assert gather.parsed(text) == gather.parsed(f" {text}\n".encode()) == value


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1, "a": 2}',
        '{"a": 1, "a": "b"}',
        '{"a": "b", "a": 1}',
        '{"x": {"a": 1, "a": 1}}',
        '[{"a": null, "a": ""}]',
    ],
)
def test_a_key_twice_is_never_passed_over(text):
    with pytest.raises(ValueError, match="stands twice"):
        gather.parsed(text)


def test_blocks_end_with_lines_and_count_them(tmp_path, monkeypatch):
    monkeypatch.setattr(gather, "BLOCK", 7)
    file = tmp_path / "log.csv"
    file.write_bytes("step,奖励\n0,0.5\r\n\n1,0.25\n2,0.125".encode())
    lines = list(gather.raw_lines(file))
    assert b"".join(raw for _, raw in lines) == file.read_bytes()
    assert [number for number, _ in lines] == [1, 2, 3, 4, 5]
    (series,) = read(file).runs[0].series
    assert (series.metric, series.values.tolist()) == ("奖励", [0.5, 0.25, 0.125])
    assert series.lines.tolist() == [2, 4, 5]
    monkeypatch.setattr(gather, "LINE", 8)
    with pytest.raises(gather.DataError, match="line 1 is longer"):
        list(gather.raw_lines(file))


def test_weights_drawn_by_indices_are_those_of_draws_with_replacement():
    n, draws = 7, 40_000
    weights = resample(n, draws, np.random.default_rng(0))
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    counts = np.rint(n * weights)
    np.testing.assert_allclose(n * weights, counts, atol=1e-12)
    # Multinomial: mean 1, variance 1 - 1/n, covariance -1/n; four standard errors.
    assert np.abs(counts.mean(axis=0) - 1).max() < 4 * np.sqrt((1 - 1 / n) / draws)
    covariance = np.cov(counts.T)
    expected = np.eye(n) - 1 / n
    assert np.abs(covariance - expected).max() < 4 * np.sqrt(2.5 / draws)


def test_means_of_draws_need_not_hold_all_weights_at_once(monkeypatch):
    values = np.random.default_rng(1).random((50, 3))
    whole = resample(50, 200, np.random.default_rng(2)) @ values
    for held in (2**22, 50, 1500):
        monkeypatch.setattr("kleash.stats.intervals.HELD", held)
        parts = drawn_means(values, 200, np.random.default_rng(2))
        np.testing.assert_allclose(parts, whole, rtol=1e-12)
