"""Draws of an engine that rounds otherwise, weighed so that the gradient is the trainer's own."""

import pytest
import torch

from kleash.algo.grpo import Choices, Clip, grpo_loss, truncated
from kleash.algo.kl import measure
from kleash.seeds import torch_generator

WORDS = 6


def laws():
    """A trainer's logits, with gradient, and the law of an engine that is a little off."""
    rng = torch_generator("sampler weights")
    logits = torch.randn(WORDS, generator=rng, dtype=torch.float64)
    engine = (logits + 0.3 * torch.randn(WORDS, generator=rng, dtype=torch.float64)).log_softmax(-1)
    return logits.requires_grad_(), engine, torch.randn(WORDS, generator=rng, dtype=torch.float64)


def gradient(logits, drawn_from, advantage, cap=None):
    """Of the mean loss over draws, each word once and weighed by how often it is drawn."""
    logp = logits.log_softmax(-1)
    choices = Choices(
        logp=logp,
        logp_old=logp.detach(),
        logp_ref=logp.detach(),
        advantage=advantage,
        weight=drawn_from.exp(),
        episode=torch.arange(WORDS),
    )
    if cap is not None:
        choices, _ = truncated(choices, drawn_from, cap)
    loss = grpo_loss(choices, Clip(), form="k3", coefficient=0.0)
    return torch.autograd.grad(loss.total, logits)[0]


def test_without_a_cap_the_gradient_is_that_of_the_trainers_own_draws():
    logits, engine, advantage = laws()
    own = gradient(logits, logits.detach().log_softmax(-1), advantage)
    assert torch.allclose(gradient(logits, engine, advantage, cap=1e9), own, atol=1e-12)
    assert not torch.allclose(gradient(logits, engine, advantage), own, atol=1e-2)


def test_no_choice_weighs_more_than_the_cap_and_the_share_is_told():
    logits, engine, advantage = laws()
    logp = logits.detach().log_softmax(-1)
    choices = Choices(logp, logp, logp, advantage, engine.exp(), torch.arange(WORDS))
    ratio = (logp - engine).exp()
    cap = ratio.sort().values[3].item()
    weighed, told = truncated(choices, engine, cap)
    assert torch.allclose(weighed.advantage, advantage * ratio.clamp(max=cap))
    assert told["sampler/truncated"] == pytest.approx(2 / WORDS)
    assert told["sampler/weight"] == pytest.approx(ratio.clamp(max=cap).mean().item())
    equal, told = truncated(choices, logp, 2.0)
    assert torch.equal(equal.advantage, advantage) and told["sampler/truncated"] == 0


def test_the_gap_between_engine_and_trainer_has_a_name():
    sampled, judged = torch.tensor([-1.0, -2.0]), torch.tensor([-1.1, -2.3])
    found = measure(torch.tensor([0, 0]), logp=judged, logp_sampler=sampled)
    assert found["kl/sampler/k1/choice/mean"] == pytest.approx(0.2)
    assert found["kl/sampler/k1/episode/mean"] == pytest.approx(0.4)
