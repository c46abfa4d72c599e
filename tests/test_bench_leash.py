"""The bench of the leash: both ways make steps, and only one of them looks at a reference."""

import pytest

from benchmarks import leash


@pytest.mark.slow
def test_measuring_costs_something_and_shares_add_up(monkeypatch):
    small = {"supervised": {"epochs": 1, "dialogues": 32}, "batch": 3, "validation": {"tasks": 4}}
    monkeypatch.setattr(leash, "RECIPE", leash.RECIPE | small)
    found = leash.leash_bench(steps=3)
    assert found["share of the step that KL takes"] == pytest.approx(
        1 - 1 / found["whole step, times that without KL"]
    )
    assert found["seconds of CPU, update with KL"] > 0


def test_without_a_reference_none_is_judged(monkeypatch):
    asked = []

    class Policy:
        def judge(self, batch, reference=None):
            import torch

            from kleash.algo.policy import Judged

            asked.append(reference)
            return Judged(torch.zeros(2), torch.zeros(2))

    class Held:
        policy = Policy()

    held = Held()
    leash.without_reference(held)
    judged = held.judged("batch", "reference")
    assert asked == [None]
    assert judged.exact_kl.tolist() == [0, 0] and judged.logp_ref.tolist() == [0, 0]
