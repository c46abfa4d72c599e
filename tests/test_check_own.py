"""A report against itself: what tables take of other tables, and lists of things told alike."""

from __future__ import annotations

from pathlib import Path

import pytest

from kleash.imports.markdown import document
from kleash.written.check import check
from kleash.written.page import read_page

REPORT = """# Three arms

## Validation reward

| step | no KL | KL 1e-3 | KL 5e-3 |
|---|---|---|---|
| 20 | 1.211 | 1.195 | 1.187 |
| 40 | 1.562 | 1.433 | 1.309 |
| 60 | 1.618 | 1.547 | 1.422 |
| 80 | 1.574 | 1.689 | 1.511 |
| 100 | 1.493 | 1.702 | 1.486 |

## Best and last

| arm | best | at step | step 100 |
|---|---|---|---|
{rows}

{said}
"""
ROWS = """| no KL | 1.618 | 60 | 1.493 |
| KL 1e-3 | 1.702 | 100 | 1.702 |
| KL 5e-3 | 1.511 | 80 | 1.486 |"""


def wrong(tmp_path: Path, said: str = "", rows: str = ROWS) -> list[tuple[str, str]]:
    path = tmp_path / "report.md"
    path.write_text(REPORT.format(rows=rows, said=said))
    marks = check(document.drafted(path), read_page(path))
    return [(mark.code, mark.text) for mark in marks if mark.state == "wrong"]


def test_a_report_that_agrees_with_itself_has_no_mark(tmp_path: Path) -> None:
    said = "Kept: no KL step 60, 1e-3 step 100, 5e-3 step 80."
    assert wrong(tmp_path, f"{said}\n\nThe best are 1.702 for KL 1e-3 and 1.511 for KL 5e-3.") == []


@pytest.mark.parametrize(
    ("old", "new"), [("| 60 |", "| 80 |"), ("1.511", "1.522"), ("| 1.486 |", "| 1.468 |")]
)
def test_what_a_table_takes_of_another_is_held_against_it(
    tmp_path: Path, old: str, new: str
) -> None:
    found = wrong(tmp_path, rows=ROWS.replace(old, new))
    assert ("check.not-extract", new.strip("| ")) in found


def test_the_step_of_an_equal_best_is_none_too(tmp_path: Path) -> None:
    path = tmp_path / "report.md"
    tied = REPORT.format(rows=ROWS.replace("| 60 |", "| 80 |"), said="").replace("1.574", "1.618")
    path.write_text(tied)
    marks = check(document.drafted(path), read_page(path))
    assert not [mark for mark in marks if mark.code == "check.not-extract"]


def test_one_step_of_a_list_that_is_not_its_best_is_wrong(tmp_path: Path) -> None:
    found = wrong(tmp_path, "Kept: no KL step 60, 1e-3 step 100, 5e-3 step 60.")
    assert ("check.slip", "step 60") in found


def test_two_numbers_in_each_others_place_are_wrong(tmp_path: Path) -> None:
    found = wrong(tmp_path, "The best are 1.511 for KL 1e-3 and 1.702 for KL 5e-3.")
    assert {text for code, text in found if code == "check.crosswise"} == {"1.511", "1.702"}


TITLES = """# Two tables

| arm | early | late | mean |
|---|---|---|---|
| no KL | {} | {} | 1.464 |
| KL 1e-3 | 1.195 | 1.547 | 1.371 |

## And turned

| | {} | {} |
|---|---|---|
| early | 1.562 | 1.195 |
| late | 1.366 | 1.547 |
"""


def crossed(tmp_path: Path, *filled: str) -> list[tuple[int, str]]:
    path = tmp_path / "report.md"
    path.write_text(TITLES.format(*filled))
    marks = check(document.drafted(path), read_page(path))
    return [(mark.line, mark.code) for mark in marks if "cross" in mark.code]


def test_titles_and_cells_in_each_others_place_are_told_by_other_tables(tmp_path: Path) -> None:
    right = ("1.562", "1.366", "no KL", "KL 1e-3")
    assert crossed(tmp_path, *right) == []
    assert (10, "check.crossed-titles") in crossed(tmp_path, *right[:2], *right[:1:-1])
    assert (5, "check.crosswise") in crossed(tmp_path, *right[1::-1], *right[2:])
