"""Whole steps of a large agent at a tiny size: lengths, phases, an engine that gives way."""

import itertools

import pytest
import torch

from benchmarks.gpu import gpu_bench
from benchmarks.gpu_step import COLD, WARM, StepBench
from benchmarks.shapes import GROUP, TOKENS, lengths_of_turns
from benchmarks.slow_users import alike_in_groups
from kleash.models.engine.paged import PagedEngine
from kleash.train import player

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("tokens", [TOKENS, 2400])
def test_a_group_opens_alike_and_no_token_is_lost(tokens):
    before = lengths_of_turns(tokens)
    turns = alike_in_groups(before)
    assert sum(sum(map(sum, each)) for each in turns) == tokens
    assert [sum(map(sum, each)) for each in turns] == [sum(map(sum, each)) for each in before]
    for first in range(0, len(turns), GROUP):
        assert len({each[0][0] for each in turns[first : first + GROUP]}) == 1
    assert all(heard > 0 and said > 0 for each in turns for heard, said in each)


@pytest.mark.slow
@pytest.mark.parametrize("reference", ["pinned", "device"])
def test_a_step_plays_learns_and_goes_on_when_the_engine_had_to_give_way(
    monkeypatch, capsys, reference
):
    """Released or not, the next step plays with the weights that the one before left."""
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    found, steps = [], (WARM, f"second {WARM}")
    for again in (0, 3):
        asked = itertools.chain([0], itertools.repeat(again))  # when planned, then beside the pages
        monkeypatch.setattr(player, "recomputed", lambda *given, asked=asked: next(asked))
        found.append(gpu_bench("cpu", part="step", seconds=1e4, tokens=2400, reference=reference))
    for figures in found:
        assert not [name for name in figures if "failed" in name or "not measured" in name]
        assert figures["KL before any update, mean and largest"][1] < 1e-6
        assert set(figures[f"{COLD}, sizes of packs"]) <= {64, 96, 112, 120, 128}
        for name in steps:
            assert figures[f"{name}, tokens"] == 2400 and figures[f"{name}, tokens said"] == 1200
            assert figures[f"{name}, kl/sampler: largest"] < 1e-4
            assert figures[f"{name}, guards that would have stopped a run"] == []
            assert figures[f"{name}, gradient norm"] > 0
            shares = [v for k, v in figures.items() if k.startswith(name) and ", share" in k]
            assert 0 < shares.pop(0) <= 1  # of the device's time
            assert sum(shares) == pytest.approx(1)
    kept = [each[f"{name}, pages kept beside the update"] for each in found for name in steps]
    assert kept == [True, True, False, False]
    norms = [each[f"second {WARM}, gradient norm"] for each in found]
    assert norms[0] == pytest.approx(norms[1], rel=1e-4)


@pytest.mark.slow
def test_without_time_a_step_ends_with_its_reason(capsys):
    bench = StepBench("tiny", "cpu", 0.0, 2400)
    with pytest.raises(TimeoutError, match="no time is left"):
        bench.step("step", 0)
    bench.world.loop.close()


def test_pages_go_only_where_an_update_does_not_fit_beside_them(monkeypatch):
    class Policy:
        packing = player.Packing(recompute=2)

    class Engine(PagedEngine):
        def __init__(self):
            self.released = 0

        def release(self):
            self.released += 1

    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    engine = Engine()
    for again, released in ((0, 0), (2, 0), (3, 1)):
        monkeypatch.setattr(player, "recomputed", lambda policy, packing, again=again: again)
        player.make_room(engine, Policy())
        assert engine.released == released
