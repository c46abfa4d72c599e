"""A thousand runs of a thousand points: pages and reports stay within their time on one core.

In CPU time of the server's process, or of the whole process that makes a report, as `python -m
benchmarks report` measures it: other programs on the machine count little. The least of a few, each
new: a page that is asked for first has nothing kept from before.
"""

import pytest
from starlette.testclient import TestClient

from benchmarks.reports import (
    ARMS,
    LIMITS,
    LOGS,
    POINTS,
    SEEDS,
    STUDY,
    TIMES,
    page_seconds,
    report_seconds,
    write_folder,
)
from kleash.report.serve import dashboard
from kleash.study.results import results

PAGES = {"index": "/", "study page": f"/study/{STUDY}"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A study of a thousand runs, and as many runs beside it."""
    folder = tmp_path_factory.mktemp("served")
    write_folder(folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("what", list(PAGES))
def test_the_first_page_of_a_thousand_runs_is_made_in_time(folder, what):
    assert ARMS * SEEDS == POINTS == 1000
    taken = min(page_seconds(folder, PAGES[what]) for _ in range(3))
    assert taken <= LIMITS[what], f"{1000 * taken:.0f} ms"


@pytest.mark.slow
@pytest.mark.alone
def test_a_report_of_a_study_of_a_thousand_runs_is_made_in_time(folder):
    taken = min(report_seconds(folder / STUDY) for _ in range(TIMES))
    assert (folder / STUDY / "report.html").stat().st_size <= 250_000
    assert (folder / STUDY / "report.md").stat().st_size <= 15_000
    assert taken <= LIMITS["report of a study"], f"{taken:.1f} s"


@pytest.mark.slow
@pytest.mark.alone
def test_a_report_of_a_thousand_logs_is_made_in_time(folder, tmp_path):
    taken = min(report_seconds(folder / LOGS, tmp_path) for _ in range(TIMES))
    assert (tmp_path / "report.html").stat().st_size <= 250_000
    assert taken <= LIMITS["report of logs"], f"{taken:.1f} s"


@pytest.mark.slow
@pytest.mark.parametrize("what", list(PAGES))
def test_a_page_shows_every_one_of_a_thousand_runs(folder, what):
    with TestClient(dashboard(folder), base_url="http://127.0.0.1") as client:
        assert client.get(PAGES[what]).text.count('type="checkbox"') == ARMS * SEEDS


def test_the_folder_of_the_bench_is_a_whole_study(tmp_path):
    write_folder(tmp_path, arms=3, seeds=2)
    found = results(tmp_path / STUDY)
    assert set(found.overview.counts()) == {"done"}
    assert [len(row.scores) for row in found.rows] == [2, 2, 2]
    assert len(list(found.agreements)) == 3
    run = found.overview.seen[found.arms[0].name, found.file.seeds[0]].run
    fixed = {"kind", "phase", "epoch", "step"}
    assert sum(len(line.keys() - fixed) for line in run.metrics()) == POINTS
