"""The matrix: what is known, missing and estimated, and which command fills a gap."""

from dataclasses import replace

import numpy as np
import pytest

from kleash.compare.matrix import matrix
from kleash.compare.read import Cell, Imported, Number, Scores, Series, Source, Table, Where

HERE = Where("report.md", 1)


def number(value, state="known"):
    return Number(value, state, HERE, 3)


def run(arm, *cells, series=(), scores=(), seed=None):
    return Imported(
        arm,
        arm,
        "markdown",
        HERE,
        cells=list(cells),
        series=list(series),
        scores=list(scores),
        seed=seed,
    )


def source(*runs, path="report.md", tables=()):
    return Source(path, "markdown", list(runs), tables=list(tables))


KNOWN = Cell("accuracy", number(0.57), epoch=1, shots=1, items=200)
GAP = Cell("accuracy", number(None, "missing"), epoch=2, shots=1, items=200, command="bash eval.sh")
GUESS = Cell("accuracy", number(0.6, "estimated"), epoch=3, shots=1, items=200)


def counts(made):
    return made.known, made.missing, made.estimated


def test_cells_are_counted_by_what_is_known_of_them():
    made = matrix([source(run("a", KNOWN, GAP, GUESS))])
    assert counts(made) == (1, 1, 1)
    assert [cell.state for cell in made.cells] == ["known", "missing", "estimated"]


def test_a_gap_says_which_command_fills_it_and_has_no_number():
    (gap,) = matrix([source(run("a", GAP))]).cells
    assert (gap.arm, gap.metric, gap.epoch, gap.shots, gap.items) == ("a", "accuracy", 2, 1, 200)
    assert (gap.number, gap.command, gap.where) == (None, "bash eval.sh", HERE)


@pytest.mark.parametrize(
    "other", [replace(GAP, number=number(0.58)), replace(GAP, metric="准确率", number=number(0.58))]
)
def test_what_one_source_leaves_open_another_may_fill(other):
    for order in ((GAP, other), (other, GAP)):
        made = matrix([source(run("a", order[0])), source(run("A", order[1]), path="other.md")])
        assert counts(made) == (1, 0, 0)
        assert made.cells[0].number == 0.58


def test_an_estimate_does_not_displace_a_measurement():
    measured = replace(GUESS, number=number(0.55))
    for order in ((GUESS, measured), (measured, GUESS)):
        made = matrix([source(run("a", *order))])
        assert (counts(made), made.cells[0].number) == ((1, 0, 0), 0.55)


def test_a_command_for_a_gap_is_kept_from_whichever_source_has_it():
    silent = replace(GAP, command="")
    made = matrix([source(run("a", silent)), source(run("a", GAP))])
    assert made.cells[0].command == "bash eval.sh"


def test_arms_and_seeds_have_their_own_cells():
    assert matrix([source(run("a", KNOWN), run("b", KNOWN), run("a", KNOWN, seed=1))]).known == 3


def test_outcomes_of_a_log_are_cells_and_its_other_metrics_are_not():
    steps = np.array([5.0, 10.0])
    guessed = np.array([False, True])
    reward = Series("eval/reward", "step", steps, np.array([1.8, 1.9]), HERE, estimated=guessed)
    loss = Series("loss", "epoch", steps, np.array([0.1, 0.2]), HERE)
    log = source(run("a", series=[reward, loss]))
    made = matrix([log])
    assert counts(made) == (1, 0, 1)
    assert [cell.step for cell in made.cells] == [5, 10]
    log.tables.append(Table(HERE, (), ("Epoch", "loss"), (("5", "0.1"),), (3,)))
    assert [cell.epoch for cell in matrix([log]).cells] == [None, None, 5, 10]


def test_scores_of_items_are_one_cell_with_their_mean():
    values = np.array([1.0, 0.0, 1.0, np.nan])
    again = np.array([0, 0, 0, 1])
    scores = Scores("accuracy", ["x", "y", "z", "x"], values, HERE, step=3, shots=2, repeats=again)
    (cell,) = matrix([source(run("a", scores=[scores]))]).cells
    assert (cell.items, cell.step, cell.shots) == (3, 3, 2)
    assert cell.number == pytest.approx(2 / 3)


def test_scores_that_all_broke_are_no_number():
    broken = Scores("accuracy", ["x"], np.array([np.nan]), HERE, step=3)
    (cell,) = matrix([source(run("a", scores=[broken]))]).cells
    assert (cell.state, cell.number) == ("missing", None)


def test_no_sources_make_an_empty_matrix():
    assert counts(matrix([])) == (0, 0, 0)


def test_points_that_several_tell_of_are_counted_once():
    def curve(metric, steps, estimated=None):
        guessed = None if estimated is None else np.array(estimated)
        steps = np.array(steps, dtype=float)
        return Series(metric, "step", steps, steps / 9, HERE, estimated=guessed)

    told = [
        source(
            run("alone", series=[curve("reward", [1, 2, 3]), curve("loss", [1, 2])]),
            run("again", series=[curve("reward", [1, 2, 2])]),
            run("twice", series=[curve("accuracy", [1, 2]), curve("acc", [2, 3])]),
            run("guessed", series=[curve("reward", [1, 2], [False, True])]),
            run("celled", KNOWN, GAP, series=[curve("accuracy", [1, 2])]),
        ),
        source(run("told", series=[curve("reward", [1, 2])])),
        source(run("Told", series=[curve("reward", [2, 3])])),
    ]
    assert counts(matrix(told)) == (15, 1, 1)
