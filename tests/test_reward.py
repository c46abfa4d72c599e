import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kleash.tasks.demos.reward import (
    REWARDS,
    Facts,
    Health,
    edit_similarity,
    facts,
    query_health,
    relevance,
    token_f1,
)
from kleash.types import Answer, Item

ITEM = Item("1", "1.png", "what colour?", ("red",) * 2 + ("dark red",) * 8, "dark red")
RIGHT = Facts(accuracy=0.6, truth_probability=0.25, relevance=1.0)
WRONG = Facts(accuracy=0.0, truth_probability=0.25, relevance=0.5)

repeatable = settings(deadline=None, derandomize=True, database=None)
rewards = st.lists(st.sampled_from([0.0, 0.1, 1.3, 1.6, 1.9, 2.0]), min_size=1, max_size=12)


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("hard_plus_soft", 1.6, 0.0),
        ("hard", 1.0, 0.0),
        ("soft", 0.6, 0.0),
        ("separated", 2.6, 0.0),
        ("hard_plus_gtprob", 1.25, 0.25),
        ("separated_gtprob", 2.25, 0.25),
        ("hard_plus_gtprob_plus_rel", 1.25, 0.30),
        ("soft_plus_gtlogp", 1.6 + math.log(0.25) / 10, 1 + math.log(0.25) / 10),
        ("wordy", 0.6, 0.0),
    ],
)
def test_rewards_by_hand(name, right, wrong):
    assert REWARDS[name](RIGHT) == pytest.approx(right)
    assert REWARDS[name](WRONG) == pytest.approx(wrong)


def test_every_reward_has_its_numbers_above():
    table = test_rewards_by_hand.pytestmark[0].args[1]
    assert list(REWARDS) == [row[0] for row in table]


@pytest.mark.parametrize("name", REWARDS)
def test_any_agreement_is_worth_more_than_none(name):
    least = Facts(accuracy=0.3, truth_probability=0.0, relevance=0.0)
    assert REWARDS[name](least) > REWARDS[name](Facts(0.0, 0.0, 1.0))


def test_the_proxy_pays_for_words_whether_they_are_right_or_not():
    said = facts(Answer("mo blue", truth_logp=-1.0), ITEM)
    assert (said.accuracy, said.words) == (0.0, 2)
    assert REWARDS["wordy"](said) == 1.0 > REWARDS["wordy"](RIGHT)
    assert facts(Answer("", truth_logp=-1.0), ITEM).words == 0


def test_facts_come_from_the_answer_and_the_item():
    found = facts(Answer("Red.", truth_logp=math.log(0.25)), ITEM)
    assert found == Facts(accuracy=0.6, truth_probability=pytest.approx(0.25), relevance=1.0)
    assert found.hit == 1.0
    missed = facts(Answer("blue", truth_logp=-math.inf), ITEM)
    assert (missed.accuracy, missed.hit, missed.truth_probability) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("logp", [0.5, math.nan, math.inf])
def test_a_log_probability_above_zero_is_refused(logp):
    with pytest.raises(ValueError, match="at most 0"):
        facts(Answer("red", truth_logp=logp), ITEM)


def test_a_log_probability_a_rounding_above_zero_is_one():
    assert facts(Answer("red", truth_logp=1e-6), ITEM).truth_probability == 1.0


def test_token_f1_by_hand():
    assert token_f1("red car", "car") == pytest.approx(2 / 3)
    assert token_f1("red red car", "red car car") == pytest.approx(4 / 6)
    assert token_f1("red", "blue") == 0.0
    assert (token_f1("", ""), token_f1("", "red")) == (1.0, 0.0)


def test_edit_similarity_by_hand():
    assert edit_similarity("kitten", "sitting") == pytest.approx(1 - 3 / 7)
    assert edit_similarity("red car", "car") == pytest.approx(3 / 7)
    assert edit_similarity("abc", "abc") == 1.0
    assert edit_similarity("abc", "xyz") == 0.0
    assert (edit_similarity("", ""), edit_similarity("", "red")) == (1.0, 0.0)


def test_relevance_is_to_the_nearest_truth():
    assert relevance("The red car", ["bus", "car"]) == pytest.approx((2 / 3 + 3 / 7) / 2)
    assert relevance("two", ["2", "many"]) == 1.0


@repeatable
@given(st.text(max_size=12), st.text(max_size=12))
def test_similarities_are_fractions_and_know_no_side(left, right):
    for similarity in (token_f1, edit_similarity):
        assert 0 <= similarity(left, right) <= 1
        assert similarity(left, right) == similarity(right, left)
        assert similarity(left, left) == 1


def test_health_by_hand():
    groups = [[0.0, 0.0], [2.0, 2.0], [1.6, 1.6], [0.0, 2.0], [1.3, 1.6]]
    health = query_health(groups)
    assert health == Health(all_zero=1, all_one=1, all_equal=1, mixed=2)
    assert health.groups == 5


def test_the_top_can_be_one_that_nobody_reached():
    assert query_health([[1.0, 1.0], [0.0, 1.0]], top=2.0) == Health(0, 0, 1, 1)
    assert query_health([[1.0, 1.0], [0.0, 1.0]]) == Health(0, 1, 0, 1)
    assert query_health([[0.0, 0.0]]) == Health(1, 0, 0, 0)


@pytest.mark.parametrize("groups", [[], [[1.0], []]])
def test_health_of_nothing_is_refused(groups):
    with pytest.raises(ValueError, match="without rewards"):
        query_health(groups)
