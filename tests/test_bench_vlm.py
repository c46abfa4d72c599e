"""The benches of models of real size, at a tiny size: both ways agree, and figures are there."""

import pytest

from benchmarks.vlm import LOGP_GAP, Plain, captions_bench, vlm_bench


def test_both_ways_of_the_vision_bench_agree_and_images_are_known_again():
    found = vlm_bench(queries=2, pointers=3, plain=2)
    assert found["same words"] == "2 of 2"
    gap = found["log-probability of the truth, largest gap between the ways (nats)"]
    assert gap < 1e-3
    assert found["prompts"] == 6 and found["image uses"] == 18
    assert 0.2 < found["share of image uses that were known"] < 1
    rate = found["seconds per prompt"]
    assert found["minutes for 9,600 proposals"] == pytest.approx(9600 * rate / 60)
    plainly = found["seconds per prompt, one at a time"]
    assert found["times the plain way"] == pytest.approx(plainly / rate)


def test_ways_that_disagree_are_not_timed(monkeypatch):
    monkeypatch.setattr(Plain, "__call__", lambda self, prompt: ("", -1e3 * LOGP_GAP))
    with pytest.raises(RuntimeError, match="both ways must agree"):
        vlm_bench(queries=1, pointers=2, plain=1)


def test_captions_are_counted():
    found = captions_bench(prompts=24)
    assert found["prompts"] == 24 and found["prompts per second"] > 0
    assert 150 < found["tokens per prompt"] < 400
