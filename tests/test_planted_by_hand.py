"""`kleash check` on reports with 20 errors each that were planted by hand, not by a program.

They were written before the check was tried on them, by somebody who had not read it: every number
of a right report follows from made data, every error contradicts a line of the report or its log.
What an interpreter answered of them is on record. Left out: how each error is worded, and which of
several lines a mark stands at.
"""

import json
import re
from pathlib import Path

import pytest

from kleash.compare.documents.check import check
from kleash.compare.documents.interpreter import interpreted
from kleash.compare.read.markdown.page import Addresses, Page
from score_check import folders, score

HERE = Path(__file__).parent / "planted_by_hand"
RECORDED = ("unseen16", "unseen17", "unseen18")


def scores(archive, room, *, answers=False, logs=False):
    """Found, of how many, right figures marked: of every report of an archive."""
    every = folders([str(HERE / f"{archive}.tar.xz")], room)
    kept = [one for one in every if not answers or (one / "answers.json").is_file()]
    return [score(one, one / "logs" if logs else None, answers=answers) for one in kept]


@pytest.mark.slow
@pytest.mark.parametrize("archive", RECORDED)
def test_numbers_alone_find_seven_of_twenty_and_mark_next_to_no_right_figure(archive, tmp_path):
    found = scores(archive, tmp_path)
    count = sum(one for one, _, _ in found)
    assert count >= 7 / 20 * sum(one for _, one, _ in found), found
    assert sum(one for _, _, one in found) <= len(found) / 4, found


@pytest.mark.slow
@pytest.mark.parametrize("archive", RECORDED)
def test_with_an_interpreter_eighteen_of_twenty_are_found(archive, tmp_path):
    """What it answered is on record; its formulas are worked out anew."""
    for found, count, marked in scores(archive, tmp_path, answers=True):
        assert (count, found >= 19, marked <= 1) == (20, True, True)


@pytest.mark.slow
def test_logs_mark_no_right_figure(tmp_path):
    found = scores("unseen8", tmp_path, logs=True)
    assert sum(one for one, _, _ in found) >= 22, found
    assert not sum(one for _, _, one in found), found


# --- the five documents that Kleash was made for

SEEDS = Path(__file__).parents[2] / "shared/seeds"
ANSWERED = json.loads((Path(__file__).parent / "answers/five_documents.json").read_text("utf-8"))
FOUND = {"000": 15, "001": 19, "002": 16, "003": 18, "004": 20}  # of 20, on the line itself


def answered(text, claims):
    """What is wrong or not supported, with an interpreter's answers on record, of any line."""
    page, answer = Page(Path("r.md"), text, "utf-8"), "\n".join(claims)
    made = interpreted(page, lambda asked: [answer, *[""] * (len(asked) - 1)], 1_000_000)
    return page, [m for m in check(page, (), made.judged) if m.state in ("wrong", "unsupported")]


def document(name):
    if not (SEEDS / name).is_file():
        pytest.skip("the five documents are not beside this tree")
    return (SEEDS / name).read_text("utf-8")


@pytest.mark.parametrize("name", ANSWERED)
def test_no_figure_in_a_table_of_the_five_documents_is_marked(name):
    page, marks = answered(document(name), ANSWERED[name]["answers"])
    rows = Addresses(page).rows
    assert not [mark for mark in marks if mark.line in rows and re.search(r"\d", mark.text)]


@pytest.mark.slow
@pytest.mark.parametrize("name", ANSWERED)
def test_what_a_program_planted_in_them_is_found(name):
    """Formulas of lines that were left alone are those of before; the others were read anew."""
    text, own = document(name), ANSWERED[name]
    lines = text.split("\n")
    for line, first, last, put in own["plants"]:
        lines[line - 1] = lines[line - 1][:first] + put + lines[line - 1][last:]
    had = {(mark.line, mark.code, mark.text) for mark in answered(text, own["answers"])[1]}
    _, marks = answered("\n".join(lines), own["answers"] + own["more"])
    at = {mark.line for mark in marks if (mark.line, mark.code, mark.text) not in had}
    assert len(own["plants"]) == 20
    assert len(at & {line for line, *_ in own["plants"]}) >= FOUND[name[:3]]
