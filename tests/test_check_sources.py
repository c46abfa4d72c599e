"""Where numbers of sentences come from: named cells weigh more, and guesses give way to them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kleash.cli import app
from kleash.imports.markdown.document import drafted
from kleash.written.book import Book
from kleash.written.grids import grids
from kleash.written.page import read_page
from kleash.written.printed import sheets
from kleash.written.prose import sentences
from kleash.written.sources.asks import Ask
from kleash.written.sources.judge import verdicts
from kleash.written.sources.named import letters

TABLE = """# Sweep

## Results

| arm | reward | entropy |
|---|---|---|
| K1 | 0.6123 | 1.204 |
| K3 | 0.6487 | 1.117 |
| K9 | 0.5934 | 1.381 |

{}
"""
BEST = """# Curves

## Proxy reward

| Step | k1 | k2 | k3 | free | Best with penalty | free - best |
|---|---|---|---|---|---|---|
| 200 | 0.382 | 0.354 | 0.365 | 0.402 | k1 | +0.020 |
| 400 | 0.478 | 0.447 | 0.463 | 0.519 | k1 | +0.041 |
| 600 | 0.538 | 0.506 | 0.534 | 0.603 | k1 | +0.065 |
| 800 | 0.574 | 0.551 | 0.578 | 0.649 | k3 | +0.071 |
| 1000 | 0.566 | 0.573 | 0.602 | 0.685 | k3 | +0.083 |
| 1200 | 0.586 | 0.584 | 0.609 | 0.716 | k3 | +0.107 |
"""
FALLS = """# Falls

| arm | peak (%) | last (%) | fall (pp) | relative fall (%) |
|---|---|---|---|---|
| K0 | 52.2 | 37.8 | 14.4 | 27.6 |
| K1 | 54.6 | 50.6 | 4.0 | 7.3 |
| K3 | 56.0 | 55.0 | 1.0 | 1.8 |
| K10 | 53.2 | 53.2 | 0.0 | 0.0 |
| K30 | 47.2 | 47.2 | 0.0 | 0.0 |
"""


def marked(folder: Path, text: str) -> set[tuple[int, str]]:
    path = folder / "report.md"
    path.write_text(text, encoding="utf-8")
    told = CliRunner().invoke(app, ["check", str(path), "--json"])
    every = json.loads(told.output)["marks"]
    return {(m["line"], m["text"]) for m in every if m["state"] in ("wrong", "unsupported")}


def read(folder: Path, text: str):
    path = folder / "report.md"
    path.write_text(text, encoding="utf-8")
    page = read_page(path)
    book = Book.of(sheets(grids(drafted(path))), page)
    return book, page, sentences(page, book.sheets)


def test_a_number_that_its_names_have_is_right_and_a_slip_of_it_is_one(tmp_path):
    said = "The reward of K3 is {}."
    right, slip = (
        next(iter(verdicts(*read(tmp_path, TABLE.format(said.format(number))))))
        for number in ("0.6487", "0.6478")
    )
    assert right.odds < 0 < slip.odds
    assert slip.value == pytest.approx(0.6487)


def test_letters_tell_what_is_named_last_before_a_number(tmp_path):
    _, _, (sentence,) = read(tmp_path, TABLE.format("K9 and K1 differ, K3 has 0.6487."))
    ask = Ask.of(sentence, sentence.numbers[0])
    spans = {(name.start, name.end): {name.row} for name in sentence.names}
    assert list(letters(ask, spans, {}, {}, 3)) == ["S", "L", "S"]
    assert list(letters(ask, {}, {(0, 1): {0}}, {}, 3)) == ["P", "p", "p"]
    assert list(letters(ask, {}, {}, {}, 3)) == ["-"] * 3


def test_a_column_may_be_of_the_best_of_others(tmp_path):
    assert marked(tmp_path, BEST) == set()
    assert marked(tmp_path, BEST.replace("+0.065", "+0.056"))


def test_zeros_tell_no_factor(tmp_path):
    assert marked(tmp_path, FALLS) == set()


def test_ranks_are_made_of_nothing(tmp_path):
    rows = ["| Gold | 3 | 2 | 1 | 4 |", "| Mean | 3 | 2 | 1 | 4 |", "| Std | 3 | 1 | 2 | 4 |"]
    rows += ["| Spikes | 3 | 1 | 2 | 4 |", "| Votes | 3 | 2 | 1 | 4 |", "| Cost | 2 | 3 | 4 | 1 |"]
    head = ["# Ranks", "", "| Criterion | k1 | k2 | k3 | free |", "|---|---|---|---|---|"]
    assert marked(tmp_path, "\n".join([*head, *rows, ""])) == set()


def test_numbers_of_two_tables_that_are_mostly_far_apart_are_of_two_things(tmp_path):
    first = ["| Step | k1 | free |", "|---|---|---|", "| 400 | 0.478 | 0.519 |"]
    first += ["| 600 | 0.538 | 0.603 |", "| 800 | 0.574 | 0.649 |"]
    other = ["| Step | k1 | free |", "|---|---|---|", "| 400 | 0.0486 | 0.1174 |"]
    other += ["| 600 | 0.0779 | 0.2969 |", "| 800 | 0.1022 | 0.6408 |"]
    text = "\n".join(["# Run", "", "## Reward", "", *first, "", "## Distance", "", *other, ""])
    assert marked(tmp_path, text) == set()


def test_numbers_of_samples_are_places(tmp_path):
    _, _, (sentence,) = read(tmp_path, TABLE.format("At 100, 200 and 800 samples it is 0.6487."))
    assert [(one.axis, one.at) for one in sentence.places] == [
        ("sample", 100.0),
        ("sample", 200.0),
        ("sample", 800.0),
    ]
    assert not any(one.is_of_training for one in sentence.places)
