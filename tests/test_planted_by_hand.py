"""`kleash check` on reports with 20 errors each that were planted by hand, not by a program.

They were written before the check was tried on them, by somebody who had not read it: every number
of a right report follows from made data, every error contradicts a line of the report or its log.
What an interpreter answered of them is on record. Left out: how each error is worded, and which of
several lines a mark stands at.
"""

from pathlib import Path

import pytest

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
