"""Divergences by hand, against enumeration, and by their names."""

from __future__ import annotations

import math
from typing import get_args

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kleash.algo import kl
from kleash.algo.control import FormName
from kleash.errors import ConfigError

HALF, QUARTER = math.log(0.5), math.log(0.25)
INF = math.inf


def distributions(
    count: int = 5, size: int = 6, seed: int = 0
) -> tuple[torch.Tensor, torch.Tensor]:
    """Two rows of log-probabilities for each state."""
    rng = torch.Generator().manual_seed(seed)
    drawn = torch.randn(2, count, size, generator=rng, dtype=torch.float64).log_softmax(-1)
    return drawn[0], drawn[1]


def test_a_probability_that_doubled_from_a_quarter_by_hand():
    logp, logp_ref = torch.tensor([HALF]), torch.tensor([QUARTER])
    assert kl.k1(logp, logp_ref).item() == pytest.approx(math.log(2))
    assert kl.k2(logp, logp_ref).item() == pytest.approx(math.log(2) ** 2 / 2)
    assert kl.k3(logp, logp_ref).item() == pytest.approx(0.5 - 1 + math.log(2))


def test_k3_keeps_its_digits_next_to_zero():
    logp = torch.tensor([-1.0, -1.0], dtype=torch.float64)
    near = kl.k3(logp, logp + torch.tensor([1e-6, -1e-6], dtype=torch.float64))
    assert near.tolist() == pytest.approx([5e-13, 5e-13], rel=1e-3)


@pytest.mark.parametrize("estimator", [kl.k1, kl.k3])
def test_the_mean_of_an_estimator_over_all_alternatives_is_the_exact_kl(estimator):
    logp, logp_ref = distributions()
    mean = (logp.exp() * estimator(logp, logp_ref)).sum(-1)
    assert mean.tolist() == pytest.approx(kl.exact(logp, logp_ref).tolist(), rel=1e-12)


def test_exact_forward_and_entropy_by_hand():
    logp = torch.tensor([[0.5, 0.5]], dtype=torch.float64).log()
    logp_ref = torch.tensor([[0.25, 0.75]], dtype=torch.float64).log()
    reverse = 0.5 * math.log(2) + 0.5 * math.log(2 / 3)
    forward = 0.25 * math.log(0.5) + 0.75 * math.log(1.5)
    assert kl.exact(logp, logp_ref).item() == pytest.approx(reverse)
    assert kl.forward(logp, logp_ref).item() == pytest.approx(forward)
    assert kl.entropy(logp).item() == pytest.approx(math.log(2))


def test_masked_alternatives_leave_no_nan_in_values_or_gradients():
    logits = torch.tensor([[0.3, -INF, 1.0], [0.0, 2.0, -INF]], dtype=torch.float64)
    logits.requires_grad_()
    logp = logits.log_softmax(-1)
    logp_ref = torch.tensor([[0.0, -INF, 0.0], [1.0, 0.0, -INF]], dtype=torch.float64).log_softmax(
        -1
    )
    for value in (kl.exact(logp, logp_ref), kl.forward(logp, logp_ref), kl.entropy(logp)):
        (gradient,) = torch.autograd.grad(value.sum(), logits, retain_graph=True)
        assert value.isfinite().all()
        assert gradient.isfinite().all()
        assert gradient.abs().sum() > 0
    allowed = kl.exact(logp[:1, ::2], logp_ref[:1, ::2])
    assert kl.exact(logp, logp_ref)[0].item() == pytest.approx(allowed.item(), rel=1e-12)


def test_what_only_the_reference_masks_is_infinitely_far():
    logp = torch.tensor([[0.5, 0.5]]).log()
    logp_ref = torch.tensor([[1.0, 0.0]]).log()
    assert kl.exact(logp, logp_ref).item() == INF
    assert kl.forward(logp, logp_ref).item() == pytest.approx(math.log(2))


def test_return_to_go_by_hand():
    values = torch.tensor([1.0, 2.0, 4.0, 10.0, 20.0])
    episode = torch.tensor([0, 0, 0, 2, 2])
    assert kl.return_to_go(values, episode).tolist() == [7, 6, 4, 30, 20]
    future = kl.return_to_go(values, episode, strictly_future=True)
    assert future.tolist() == [6, 4, 0, 20, 0]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=8), st.integers(0, 2**32))
def test_return_to_go_is_the_sum_to_the_end_of_the_episode(lengths, seed):
    episode = torch.arange(len(lengths)).repeat_interleave(torch.tensor(lengths))
    rng = torch.Generator().manual_seed(seed)
    values = torch.randn(len(episode), generator=rng, dtype=torch.float64)
    slow = [
        sum(values[j].item() for j in range(i, len(values)) if episode[j] == episode[i])
        for i in range(len(values))
    ]
    assert kl.return_to_go(values, episode).tolist() == pytest.approx(slow, abs=1e-12)


def test_return_to_go_of_a_long_float32_batch_keeps_its_digits():
    values = torch.full((200_000,), 0.1)
    episode = torch.arange(50_000).repeat_interleave(4)
    assert kl.return_to_go(values, episode)[-4:].tolist() == pytest.approx(
        [0.4, 0.3, 0.2, 0.1], rel=1e-6
    )


def test_scattered_episodes_are_refused():
    with pytest.raises(ValueError, match="sort them by episode"):
        kl.return_to_go(torch.ones(3), torch.tensor([0, 1, 0]))


def test_the_forms_of_the_config_are_those_of_the_table():
    assert list(get_args(FormName)) == list(kl.FORMS)
    assert all(form.source and form.sentence.endswith(".") for form in kl.FORMS.values())


def test_a_known_form_is_found():
    assert kl.form_named("k3").where == "loss"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("k1", "the mean of its gradient over draws is 0"),
        ("kl", "the mean of its gradient over draws is 0"),
        ("k3_reward", "pays for forgetting"),
        ("reward_k3", "pays for forgetting"),
        ("low_var_kl", "did you mean 'k3'"),
        ("leach", "the forms are return_to_go, exact"),
    ],
)
def test_a_refused_or_unknown_form_is_answered_with_why(name, reason):
    with pytest.raises(ConfigError, match=reason) as caught:
        kl.form_named(name)
    assert name in str(caught.value)


def test_measured_kl_by_hand():
    episode = torch.tensor([0, 0, 1])
    found = kl.measure(
        episode,
        logp=torch.tensor([-1.0, -1.0, -1.0]),
        logp_ref=torch.tensor([-2.0, -1.0, -1.5]),
        logp_old=torch.tensor([-1.0, -0.5, -1.0]),
        logp_sampler=torch.tensor([-0.9, -0.5, -1.0]),
        exact_kl=torch.tensor([0.3, 0.0, 0.6]),
        forward_kl=torch.tensor([0.0, 0.0, 3.0]),
    )
    assert found["kl/ref/exact/choice/mean"] == pytest.approx(0.3)
    assert found["kl/ref/exact/episode/mean"] == pytest.approx(0.45)
    assert found["kl/ref/k1_seq/choice/mean"] == pytest.approx(0.5)
    assert found["kl/ref/k1_seq/episode/mean"] == pytest.approx(0.75)
    assert found["kl/ref/k1_seq/episode/p99"] == pytest.approx(0.995)
    assert found["kl/ref/k3/choice/p99"] == pytest.approx(
        0.98 * math.exp(-1) + 0.02 * (math.exp(-0.5) - 0.5)
    )
    assert found["kl/ref/forward/episode/mean"] == pytest.approx(1.5)
    assert found["kl/old/k1/choice/mean"] == pytest.approx(0.5 / 3)
    assert found["kl/sampler/k1/choice/mean"] == pytest.approx(0.1 / 3)
    assert len(found) == 6 * 4


def test_only_what_has_inputs_is_measured():
    found = kl.measure(torch.tensor([0]), logp=torch.tensor([-1.0]), logp_ref=torch.tensor([-1.0]))
    assert {name.rsplit("/", 2)[0] for name in found} == {"kl/ref/k1_seq", "kl/ref/k3"}
    sampler = kl.measure(
        torch.tensor([0]), logp=torch.tensor([-1.0]), logp_sampler=torch.tensor([-0.5])
    )
    assert sampler["kl/sampler/k1/choice/mean"] == 0.5


def test_kl_by_position_by_hand():
    position = torch.tensor([0, 2, 0, 2, 2])
    found = kl.by_label(
        {"kl/ref/k3": torch.tensor([1.0, 2.0, 3.0, 5.0, 8.0])}, position, "position"
    )
    assert found == {"kl/ref/k3/position/0/mean": 2.0, "kl/ref/k3/position/2/mean": 5.0}


def test_an_empty_batch_has_no_kl():
    empty = torch.tensor([])
    with pytest.raises(ValueError, match="the batch is empty"):
        kl.measure(empty.long(), logp=empty, logp_ref=empty)


def test_the_percentile_is_that_of_torch():
    values = torch.randn(137, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert kl.percentile(values, 0.99) == pytest.approx(values.quantile(0.99).item(), rel=1e-12)
