"""The optimizer by hand: which rate, which gradient, and going on from kept moments."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from kleash.errors import GuardError
from kleash.train.checkpoints import empty_moments
from kleash.train.optimizer import Optimizer

LR, CLIP = 0.1, 0.5


class Weight(nn.Module):
    """One number; its gradient is what the loss multiplies it with."""

    def __init__(self) -> None:
        super().__init__()
        self.own = nn.Parameter(torch.tensor([0.5], dtype=torch.float64))

    def loss(self, slope: float) -> Tensor:
        return (slope * self.own).sum()


@pytest.fixture
def way() -> Optimizer:
    return Optimizer(Weight(), LR, CLIP, str)


def down(way: Optimizer, *slopes: float, rate: float | None = None) -> tuple[float, float]:
    """The norm that was told, and how far the weight went."""
    policy: Any = way.policy
    before = policy.own.item()
    norm = way.step([policy.loss(slope) for slope in slopes], "batch", rate)
    return norm, before - policy.own.item()


def adam(slopes: list[float], rates: list[float]) -> list[float]:
    """How far AdamW goes, by its formula: decay 0.01, betas 0.9 and 0.999."""
    own, first, second, gone = 0.5, 0.0, 0.0, []
    for step, (slope, rate) in enumerate(zip(slopes, rates, strict=True), 1):
        first, second = 0.9 * first + 0.1 * slope, 0.999 * second + 0.001 * slope**2
        mean, size = first / (1 - 0.9**step), second / (1 - 0.999**step)
        gone.append(rate * 0.01 * own + rate * mean / (size**0.5 + 1e-8))
        own -= gone[-1]
    return gone


def test_the_rate_of_an_update_is_the_one_given_and_else_its_own(way: Optimizer) -> None:
    rates = [None, 0.03, 0.0, None]
    found = [down(way, 0.4, rate=rate)[1] for rate in rates]
    asked = [LR if rate is None else rate for rate in rates]
    assert found == pytest.approx(adam([0.4] * 4, asked), rel=1e-6)
    assert way.updates == 4


def test_losses_add_up_the_norm_is_told_before_it_is_clipped_and_nothing_stays(
    way: Optimizer,
) -> None:
    norms, gone = zip(*(down(way, *each) for each in ((0.1, 0.2), (3.0, 1.0), (0.2,))), strict=True)
    assert norms == pytest.approx((0.3, 4.0, 0.2))
    assert gone == pytest.approx(adam([0.3, CLIP, 0.2], [LR] * 3), rel=1e-5)


def test_it_goes_on_from_kept_moments(way: Optimizer) -> None:
    down(way, 0.3)
    again = Optimizer(Weight(), LR, CLIP, str)
    again.policy.load_state_dict(way.policy.state_dict())
    kept = {name: tensor.clone() for name, tensor in way.tensors().items()}
    empty_moments(again.adamw)
    for name, tensor in again.tensors().items():
        tensor.copy_(kept[name])
    again.updates = way.updates
    assert down(again, 0.1) == down(way, 0.1)
    assert again.updates == way.updates == 2
    again.reset()
    assert down(again, 0.1) != down(way, 0.1)  # it has forgotten what it went before


@pytest.mark.parametrize(
    ("slopes", "said"),
    [
        ((float("nan"),), "the loss are"),
        ((0.1, float("inf")), "the loss of part 1"),
        ((1e308, 1e308), "the gradient"),  # of two losses that are finite
    ],
)
def test_what_is_no_number_moves_nothing_and_the_batch_is_kept(
    slopes: tuple[float, ...], said: str
) -> None:
    kept: list[Any] = []
    way = Optimizer(Weight(), LR, CLIP, lambda batch: str(kept.append(batch)))
    with pytest.raises(GuardError, match=said):
        down(way, *slopes)
    assert kept == ["batch"] and way.updates == 0
    assert next(way.policy.parameters()).item() == 0.5
