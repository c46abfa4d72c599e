"""AdamW on bfloat16 weights: what rounding to the nearest loses, and random rounding does not."""

import pytest
import torch
from torch import nn

from kleash.seeds import torch_generator
from kleash.train.optimizer import CHUNK, RoundedAdamW, mixed, rounded, seed

COUNT, STEPS, LR = 4096, 120, 1e-5


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


def gradients(count=COUNT):
    """Noisy, with a mean that differs from place to place."""
    rng = torch_generator("gradients")
    mean = torch.randn(count, generator=rng)
    while True:
        yield mean + 0.5 * torch.randn(count, generator=rng)


def trained(dtype, kind, start=1.0, steps=STEPS, lr=LR):
    weight = nn.Parameter(torch.full((COUNT,), start, dtype=dtype))
    adam = kind([weight], lr=lr)
    for _, gradient in zip(range(steps), gradients(), strict=False):
        adam.zero_grad()
        (weight.float() * gradient).sum().backward()
        adam.step()
    return weight.detach().float() - start


def test_small_updates_are_lost_to_the_nearest_and_not_at_random():
    """120 updates of 1e-5 are a sixth of the way to the next number below 1."""
    oracle = trained(torch.float32, torch.optim.AdamW)
    lost = trained(torch.bfloat16, torch.optim.AdamW)
    ours = trained(torch.bfloat16, RoundedAdamW)
    assert oracle.abs().mean() > 5e-4
    assert torch.equal(lost, torch.zeros(COUNT))
    up, down = oracle > 0, oracle < 0
    for side in (up, down):
        assert ours[side].mean() == pytest.approx(oracle[side].mean().item(), rel=0.15)


def test_where_steps_are_large_it_is_adamw():
    oracle = trained(torch.float32, torch.optim.AdamW, lr=1e-2)
    ours = trained(torch.bfloat16, RoundedAdamW, lr=1e-2)
    # A weight between 1 and 2 is rounded 120 times by 2^-8 or so, up as often as down.
    assert (ours - oracle).norm() / oracle.norm() < 0.05
    assert (ours - oracle).mean().abs() / oracle.abs().mean() < 0.002
    wide = trained(torch.float32, RoundedAdamW, lr=1e-2)
    assert (wide - oracle).norm() / oracle.norm() < 1e-5


def test_rounding_is_right_on_average_and_to_a_neighbour():
    value = torch.tensor([1.001, -1.001, 3e-8, -5.03e7, 0.0])
    draws = mixed(torch.arange(1 << 16, dtype=torch.int32))
    found = rounded(value.expand(len(draws), 5), draws[:, None], torch.bfloat16).float()
    assert torch.allclose(found.mean(0), value, rtol=2e-5)
    assert all(len(column.unique()) <= 2 for column in found.T)
    exact = rounded(torch.full((len(draws),), 1.5), draws, torch.bfloat16)
    assert exact.unique().tolist() == [1.5]


def test_draws_are_spread_and_differ_by_step_and_tensor():
    draws = mixed(torch.arange(1 << 14, dtype=torch.int32) + seed(3, 1))
    low, high = (draws & 0xFFFF).float() / 65536, ((draws >> 16) & 0xFFFF).float() / 65536
    for part in (low, high):
        assert abs(part.mean() - 0.5) < 0.01 and abs(part.var() - 1 / 12) < 0.002
    both = torch.corrcoef(torch.stack([low, high, low.roll(1)]))
    assert (both - torch.eye(3)).abs().max() < 0.04
    assert len({seed(step, index) for step in range(50) for index in range(50)}) == 2500


def test_parts_are_summed_wide():
    """1500 times a thousandth: in bfloat16 the sum stands still at a half."""
    weight = nn.Parameter(torch.ones(2, dtype=torch.bfloat16))
    adam = RoundedAdamW([weight], lr=1e-3)
    plain = nn.Parameter(torch.ones(2, dtype=torch.bfloat16))
    for _ in range(1500):
        for each in (weight, plain):
            (each * torch.tensor(1e-3, dtype=torch.bfloat16)).sum().backward()
    assert weight.grad is None
    assert adam.gradients.sums[weight].tolist() == pytest.approx([1.5, 1.5], rel=2e-3)
    assert plain.grad.tolist() == [0.5, 0.5]
    adam.zero_grad()
    assert adam.clip(1.0) == 0  # what came before is forgotten


def test_the_norm_is_clipped_as_torch_does():
    weights = [nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(2))]
    theirs = [nn.Parameter(weight.detach().clone()) for weight in weights]
    ours, adam = RoundedAdamW(weights, lr=0.1), torch.optim.AdamW(theirs, lr=0.1)
    for held in (weights, theirs):
        sum((5 * each * torch.arange(len(each))).sum() for each in held).backward()
    norm = torch.nn.utils.clip_grad_norm_(theirs, 0.01)
    assert ours.clip(0.01) == pytest.approx(norm.item())
    ours.step()
    adam.step()
    for ours_, theirs_ in zip(weights, theirs, strict=True):
        assert torch.allclose(ours_, theirs_)


def test_it_goes_on_where_it_stopped_and_chunks_change_nothing(monkeypatch):
    def run(stop_at=None):
        weight = nn.Parameter(torch.full((40,), 1.0, dtype=torch.bfloat16))
        adam = RoundedAdamW([weight], lr=1e-3)
        for step, gradient in zip(range(6), gradients(40), strict=False):
            if step == stop_at:
                kept, weight = adam.state_dict(), nn.Parameter(weight.detach().clone())
                adam = RoundedAdamW([weight], lr=1e-3)
                adam.load_state_dict(kept)
            adam.zero_grad()
            (weight.float() * gradient).sum().backward()
            adam.step()
        return weight.detach()

    whole = run()
    assert torch.equal(run(stop_at=3), whole)
    assert CHUNK > 40
    monkeypatch.setattr("kleash.train.optimizer.CHUNK", 7)
    assert torch.equal(run(), whole)


@pytest.mark.slow
def test_compiled_it_does_the_same():
    found = []
    for backend in ("", "aot_eager"):
        weights = [nn.Parameter(torch.ones(size, dtype=torch.bfloat16)) for size in (5, 64, 7)]
        adam = RoundedAdamW(weights, lr=1e-2, backend=backend)
        for _ in range(3):
            adam.zero_grad()
            sum((each.float() * torch.arange(len(each))).sum() for each in weights).backward()
            adam.clip(1.0)
            adam.step()
        found.append(torch.cat([each.detach() for each in weights]))
    assert torch.equal(*found)
