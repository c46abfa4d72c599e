"""Many questions at once: what is decided alone and not among all is undone. By hand."""

from dataclasses import replace

import pytest
from scipy.special import ndtri

from kleash.compare.records import Judged
from kleash.compare.verdicts import adjust, settled
from kleash.stats import NORMAL, Width


def reason(judged, code):
    [found] = [each for each in judged.because if each.code == code]
    return found.facts


def answer(p, word="better", question="level", margin=None):
    """A line with that p: a normal error of 1, and the gap that has it."""
    sign = 1 if word == "better" else -1
    gap = sign * -float(ndtri(p / 2)) if p else 0.0
    blank = Judged(
        question, "eval_reward", "", ("b", "a"), "undecided", "L1", estimate=gap, margin=margin
    )
    if p is None:
        return replace(blank, verdict=word)
    return settled(replace(blank, n=9, width=Width(gap, ((1.0, NORMAL),))))


def test_holm_by_hand():
    """0.01 of three is 0.03, 0.02 of two is 0.04, and nothing falls below the one before."""
    found = adjust([answer(0.02), answer(0.01), answer(0.03)])
    assert [each.adjusted_p for each in found] == pytest.approx([0.04, 0.03, 0.04])
    assert {each.verdict for each in found} == {"better"}


@pytest.mark.parametrize("word", ["better", "worse"])
def test_what_does_not_hold_among_many_is_undone(word):
    found = adjust([answer(0.03, word), answer(0.04, word)])
    for each in found:
        assert (each.verdict, each.beyond_margin) == ("undecided", False)
        assert reason(each, "undone_by_many") == {"count": 2, "p": pytest.approx(0.06)}
        assert each.low < 0 < each.high
    [alone] = adjust([answer(0.04, word)])
    assert (alone.verdict, alone.beyond_margin) == (word, True)
    assert alone.adjusted_p == pytest.approx(0.04)


def test_no_correction_undoes_an_equivalence_that_was_shown():
    """A gap of 2.1 errors, inside a margin of 4: with one question a gap, with nine none."""
    lone = answer(0.036, margin=4.0)
    assert lone.verdict == "better_within_margin"
    for each in adjust([lone] * 9):
        assert each.verdict == "equivalent"
        assert each.narrow == (each.low, each.high) and each.high < 4.0
    same = replace(answer(0.5), verdict="identical")
    assert [each.verdict for each in adjust([same] * 3)] == ["identical"] * 3


def test_the_main_question_is_its_own_family():
    """Other questions cost the main one nothing, and answers without a p are in no family."""
    others = [answer(0.04, question="steadier") for _ in range(5)]
    without = [answer(None, question="faster"), answer(None)]
    found = adjust([*others, answer(0.03), *without])
    assert [each.adjusted_p for each in found[:5]] == pytest.approx([0.2] * 5)
    assert found[5].adjusted_p == pytest.approx(0.03)
    assert [(each.adjusted_p, each.verdict) for each in found[6:]] == [(None, "better")] * 2


def test_the_interval_over_seeds_leaves_out_0_exactly_when_the_adjusted_p_is_small():
    from scipy import stats as oracle

    def gap(t):  # of 5 seeds, with a standard error of 1
        blank = Judged(
            "level",
            "accuracy",
            "fraction",
            ("a", "b"),
            "undecided",
            "L3",
            estimate=t,
            n=5,
            counted="seeds",
            width=Width(t, ((1.0, 4),)),
        )
        return settled(blank)

    found = adjust([gap(9.0), gap(3.3), gap(2.9), gap(0.5)])
    for each in found:
        assert (each.low > 0) == (each.adjusted_p < 0.05) == (each.verdict == "better")
    assert [each.verdict for each in found] == ["better"] + ["undecided"] * 3
    # Holm's first step has a quarter of alpha, the first that does not reject a third.
    assert found[0].low == pytest.approx(9.0 - oracle.t.ppf(1 - 0.05 / 8, 4))
    assert found[1].low == pytest.approx(3.3 - oracle.t.ppf(1 - 0.05 / 6, 4))
    assert found[3].low == pytest.approx(0.5 - oracle.t.ppf(1 - 0.05 / 6, 4))
