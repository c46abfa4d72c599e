import torch

from kleash.language.models import fresh
from kleash.train.work_done import FORWARD, UPDATE, flops, peak, weights_used


def test_weights_and_arithmetic_by_hand() -> None:
    model = fresh(20, torch.Generator(), width=16, layers=2, heads=2, inner=32)
    block = 4 * 16 * 16 + 3 * 16 * 32 + 2 * 16 + 2 * 8  # attention, MLP, norms, norms of heads
    assert weights_used(model) == 2 * block + 16 + 20 * 16  # the head is tied, and multiplied with
    attention = 2 * 2 * 16 * 10
    assert flops(model, 100, 10, passes=FORWARD) == 2 * 100 * (weights_used(model) + attention)
    assert flops(model, 100, 10, passes=UPDATE) == 3 * flops(model, 100, 10, passes=FORWARD)


def test_a_processor_has_no_peak_that_is_known() -> None:
    assert peak("cpu") is None
