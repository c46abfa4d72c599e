"""The bench of rollouts: both ways say the same, or nothing is timed."""

import pytest


@pytest.mark.slow
def test_both_ways_say_the_same_and_are_timed(one_thread):
    from benchmarks.rollouts import rollouts_bench

    found = rollouts_bench(tasks=3, group=2, limits=(2, 4), updates=2, rounds=1)
    for limit in (2, 4):
        assert found[f"{limit} turns: largest gap of log-probabilities, nats"] < 1e-4
        assert found[f"{limit} turns: turns per conversation"] <= limit
        assert found[f"{limit} turns: ratio"] > 0


@pytest.mark.slow
def test_a_way_that_says_something_else_is_not_timed(one_thread, monkeypatch):
    from benchmarks import rollouts

    honest = rollouts.Play.by_generate

    def lying(self, *, greedy):
        said = honest(self, greedy=greedy)
        ids, logp = said[0][0]
        said[0][0] = ((*ids[:-1], ids[-1] + 1), logp)
        return said

    monkeypatch.setattr(rollouts.Play, "by_generate", lying)
    with pytest.raises(RuntimeError, match="say different things"):
        rollouts.rollouts_bench(tasks=2, group=1, limits=(2,), updates=0, rounds=1)
