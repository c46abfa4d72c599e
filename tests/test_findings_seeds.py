"""What the five reports imply, found by rules that know none of them."""

from pathlib import Path

import pytest

from kleash.compare.checks import find
from kleash.compare.matrix import matrix
from kleash.compare.read import markdown

SEEDS = Path(__file__).parent.parent.parent / "shared/seeds"
pytestmark = pytest.mark.skipif(not SEEDS.is_dir(), reason="the reports are not here")


@pytest.fixture(scope="module")
def reports():
    return {path.name[:3]: markdown.read(path) for path in sorted(SEEDS.glob("0*.txt"))}


@pytest.fixture(scope="module")
def sweep(reports):
    return find([reports["000"], reports["002"]])


@pytest.fixture(scope="module")
def curves(reports):
    return find([reports["001"]])


@pytest.fixture(scope="module")
def leash(reports):
    return find([reports["003"], reports["004"]])


def of(found, code):
    return [one.facts for one in found if one.code == code]


def only(found, code):
    (facts,) = of(found, code)
    return facts


def test_every_finding_says_on_which_line(reports):
    for one in find(list(reports.values())):
        assert one.where and all(place.line for place in one.where)


# --- the sweep of coefficients


def test_four_arms_gave_identical_outputs(sweep):
    facts = only(sweep, "identical-results")
    assert facts["arms"] == [f"KL_BETA={beta}" for beta in (0.12, 0.145, 0.155, 0.18)]
    assert facts["cells"] == 4


def test_they_do_not_change_between_epochs_either(sweep):
    found = of(sweep, "identical-over-training")
    assert {one["arm"] for one in found} == {"KL_BETA=0.12", "KL_BETA=0.15", "KL_BETA=0.18"}


def test_one_coefficient_started_from_another_checkpoint(sweep):
    histories = {one["arm"]: one["differs"] for one in of(sweep, "two-histories")}
    assert [row[0] for row in histories["KL_BETA=0.15"]] == ["start"]
    assert "data" in [row[0] for row in histories["KL_BETA=0.12"]]


def test_a_row_was_copied_and_its_loss_does_not_add_up(sweep):
    copied = only(sweep, "copied-row")
    assert (copied["arms"], copied["at"]) == (["KL_BETA=0.145", "KL_BETA=0.18"], "epoch 2")
    broken = only(sweep, "loss-identity")
    assert (broken["arm"], broken["at"]) == ("KL_BETA=0.18", "epoch 2")
    assert broken["expected"] == pytest.approx(0.01164 + 0.18 * 0.07002)


def test_differences_to_numbers_that_are_missing(sweep):
    assert [one["arms"] for one in of(sweep, "derived-from-missing")] == [
        ["KL_BETA=0.12"],
        ["KL_BETA=0.18"],
    ]


def test_almost_no_group_had_a_signal(sweep):
    assert only(sweep, "little-signal")["spread"] == 0.0063


def test_the_first_items_are_easier(sweep):
    first, second = of(sweep, "order-effect")
    assert len(first["blocks"]) == len(second["blocks"]) == 4
    assert first["blocks"] == sorted(first["blocks"], reverse=True)
    assert max(first["p"], second["p"]) < 0.05


def test_kl_is_not_zero_at_the_start_and_falls(sweep, curves):
    for found in (sweep, curves):
        assert {one["arm"] for one in of(found, "kl-at-start")} == {
            one["arm"] for one in of(found, "kl-falls")
        }
    assert {round(one["change"], 4) for one in of(curves, "kl-falls")} == {-0.3224, -0.3201}


# --- the two training curves


def test_the_validation_loss_is_that_of_a_uniform_choice(reports, curves):
    assert len(of(curves, "barely-moved")) == 2
    named = only(find([reports["000"], reports["001"]]), "near-uniform")
    assert (named["shots"], named["pool"], named["uniform"]) == (2, 64, 8.302)


def test_the_sums_of_the_curves_come_out(curves):
    wrong = {"loss-identity", "kl-loss-identity", "duplicate-step"}
    assert not wrong & {one.code for one in curves}


# --- with and without KL


def test_seven_values_are_estimates_and_five_differences_have_the_wrong_sign(leash):
    facts = only(leash, "estimated-values")
    assert (facts["estimated"], facts["of"]) == (7, 9)
    facts = only(leash, "estimate-contradicted")
    assert (facts["count"], facts["wrong_signs"], facts["signs"]) == (7, 5, 7)


def test_both_reports_tell_of_the_same_two_runs(leash):
    assert [one["by"] for one in of(leash, "same-run")] == ["path", "path"]
    assert not of(leash, "identical-results")


def test_the_curves_end_long_before_the_plan(leash):
    ends = [(one["last"], one["planned"]) for one in of(leash, "fewer-than-planned")]
    assert ends == [(45, 485), (45, 465)]


# --- the matrix


def test_the_matrix_of_the_sweep(reports):
    made = matrix([reports["000"], reports["002"]])
    gaps = [cell for cell in made.cells if cell.state == "missing"]
    assert made.missing == len(gaps) > 90
    assert {cell.number for cell in gaps} == {None}
    wanted = [c for c in gaps if (c.arm, c.epoch, c.items) == ("KL_BETA=0.145", 2, 200)]
    assert {cell.command for cell in wanted} == {"bash scripts/eval_grpo_kl0145.sh 2 0 200"}


def test_the_matrix_keeps_estimates_apart(reports):
    assert matrix([reports["003"]]).estimated == 7
    assert matrix([reports["004"]]).estimated == 0
