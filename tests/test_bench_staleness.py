"""The bench of playing ahead: real steps, and what overlaps is seen."""

import pytest

from benchmarks import staleness


@pytest.mark.slow
def test_a_slow_user_is_hidden_behind_the_update(monkeypatch, one_thread):
    small = {"supervised": {"epochs": 1, "dialogues": 32}, "batch": 2, "group": 2, "turn_tokens": 8}
    gym = {"surface": "tokens", "limit": 1}
    monkeypatch.setattr(staleness, "RECIPE", staleness.RECIPE | small | {"gym": gym})
    monkeypatch.setattr(staleness, "STALENESS", (0, 1))
    found = staleness.staleness_bench(steps=3, rounds=1, latency=0.02)
    assert found["staleness 0: seconds, playing"] >= 0.02  # the user was really waited for
    whole = found["staleness 0: seconds, step"]
    assert whole >= found["staleness 0: seconds, playing"] + found["staleness 0: seconds, update"]
    assert found["staleness 1: seconds, playing"] >= 0.02
    assert found["most that overlap can give, times"] > 1
    assert abs(found["staleness 0: KL of the sampler, nats a choice"]) < 1e-5
