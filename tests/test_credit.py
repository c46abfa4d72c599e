import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kleash.algo.credit import CREDITS, SCORES, em, to_go

REWARDS = st.lists(st.floats(0, 1), min_size=1, max_size=7)


def test_what_is_still_to_come_by_hand() -> None:
    assert to_go([1.0, 0.0, 0.5], 0.8) == pytest.approx([1.32, 0.4, 0.5])
    assert to_go([], 0.8) == []


def test_scores_by_hand() -> None:
    rewards = [1.0, 0.0, 0.5]
    assert SCORES["sum"](rewards, 0.8) == 1.5
    assert SCORES["reward_to_go"](rewards, 0.8) == pytest.approx(1.32)
    assert SCORES["mean_per_turn"](rewards, 0.8) == 0.5
    assert [score([], 0.8) for score in SCORES.values()] == [0, 0, 0]


def test_credits_by_hand() -> None:
    assert CREDITS["equal"]([1.0, 0.0], 0.8) == [1, 1]
    assert CREDITS["reward_to_go"]([1.0, 0.5], 0.8) == pytest.approx([1.4, 0.5])
    assert CREDITS["em"]([0.0, 1.0], 0.8) == pytest.approx([0.5, 1.0])
    assert em(0.7) == pytest.approx(0.5 + 0.5 * (1 - math.exp(-1.4)) / (1 - math.exp(-2)))


@given(REWARDS)
def test_mean_per_turn_pays_for_ending_early_and_the_sum_does_not(rewards: list[float]) -> None:
    longer = [*rewards, 0.0]  # one more question in vain
    assert SCORES["sum"](longer, 1.0) == SCORES["sum"](rewards, 1.0)
    assert SCORES["mean_per_turn"](longer, 1.0) <= SCORES["mean_per_turn"](rewards, 1.0)


@given(REWARDS, st.floats(0.1, 1.0))
def test_every_turn_has_a_credit(rewards: list[float], gamma: float) -> None:
    for credit in CREDITS.values():
        assert len(credit(rewards, gamma)) == len(rewards)
