"""Advantages, weights, the leash and the loss: by hand, and what must not change them."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from kleash.algo import grpo, kl
from kleash.algo.grpo import Choices, Clip, grpo_loss
from kleash.errors import ConfigError

HALF, QUARTER = math.log(0.5), math.log(0.25)
GROUP = torch.tensor([0, 0, 0, 0, 2, 2, 2, 1, 1])
REWARD = torch.tensor([1.0, 2.0, 2.0, 5.0, 0.5, 0.0, 0.0, 3.0, 3.0], dtype=torch.float64)


def two_choices(advantage: float) -> Choices:
    """The first has become twice as likely, the second has not moved."""
    return Choices(
        logp=torch.tensor([HALF, QUARTER]),
        logp_old=torch.tensor([QUARTER, QUARTER]),
        logp_ref=torch.tensor([QUARTER, HALF]),
        advantage=torch.tensor([advantage, advantage]),
        weight=torch.tensor([0.5, 0.5]),
        episode=torch.tensor([0, 0]),
        entropy=torch.tensor([1.0, 3.0]),
    )


def free(choices: Choices) -> grpo.Loss:
    """The loss without a leash."""
    return grpo_loss(choices, Clip(0.2, 0.2), form="none", coefficient=0.0)


def test_a_doubled_probability_is_clipped_when_the_episode_was_good():
    loss = free(two_choices(1.0))
    assert loss.total.item() == pytest.approx(-(1.2 + 1.0) / 2)
    assert loss.metrics["clip_fraction"] == 0.5
    assert loss.metrics["mean_ratio"] == pytest.approx(1.5)


def test_a_doubled_probability_is_not_clipped_when_the_episode_was_bad():
    loss = free(two_choices(-1.0))
    assert loss.total.item() == pytest.approx((2.0 + 1.0) / 2)
    assert loss.metrics["clip_fraction"] == 0


@pytest.mark.parametrize(
    ("form", "value"),
    [
        ("k2", (math.log(2) ** 2 / 2 + math.log(2) ** 2 / 2) / 2),
        ("k3", ((0.5 - 1 + math.log(2)) + (2 - 1 - math.log(2))) / 2),
        ("k3_ratio", (2 * (0.5 - 1 + math.log(2)) + (2 - 1 - math.log(2))) / 2),
        ("return_to_go", 0.0),
        ("none", 0.0),
    ],
)
def test_the_leash_in_the_loss_by_hand(form, value):
    loss = grpo_loss(two_choices(1.0), Clip(), form=form, coefficient=0.3)
    assert loss.metrics["leash/value"] == pytest.approx(value)
    assert loss.metrics["leash/penalty"] == pytest.approx(0.3 * value)
    assert loss.total.item() == pytest.approx(-1.1 + 0.3 * value)


def test_the_leash_in_the_loss_is_scaled_with_the_advantages():
    scaled = replace(two_choices(1.0), unit=torch.tensor([4.0, 0.5]))
    loss = grpo_loss(scaled, Clip(), form="k2", coefficient=0.3)
    value = (4.0 + 0.5) / 2 * math.log(2) ** 2 / 2
    assert loss.metrics["leash/value"] == pytest.approx(value)
    assert loss.total.item() == pytest.approx(-1.1 + 0.3 * value)


def far_choice(advantage: float, ratio: float, over: float) -> Choices:
    """One choice whose probability has grown `ratio`-fold, π/π_ref being e^over."""
    logp = torch.tensor([-1.0], dtype=torch.float64, requires_grad=True)
    return Choices(
        logp=logp,
        logp_old=logp.detach() - math.log(ratio),
        logp_ref=logp.detach() - over,
        advantage=torch.tensor([advantage], dtype=torch.float64),
        weight=torch.ones(1, dtype=torch.float64),
        episode=torch.tensor([0]),
    )


@pytest.mark.parametrize("form", ["k3", "k3_ratio"])
@pytest.mark.parametrize("over", [-3.0, 12.0, -1000.0, 1000.0])
def test_a_clamped_leash_lets_go_beyond_the_clamp_and_says_so(form, over):
    choices = far_choice(0.0, 1.0, over)
    loss = grpo_loss(choices, Clip(), form=form, coefficient=1.0, clamp=10.0)
    assert loss.metrics["leash/value"] == 10 and loss.metrics["leash/clamped"] == 1
    pull = torch.autograd.grad(loss.total, choices.logp)[0].item()
    assert pull == (0 if form == "k3" else 10)  # only through the ratio


def test_a_clamp_that_is_not_reached_changes_nothing_but_the_count():
    choices = far_choice(0.0, 1.0, -2.0)
    free = grpo_loss(choices, Clip(), form="k3", coefficient=1.0)
    bound = grpo_loss(choices, Clip(), form="k3", coefficient=1.0, clamp=10.0)
    assert bound.metrics == free.metrics | {"leash/clamped": 0}
    assert torch.equal(
        torch.autograd.grad(free.total, choices.logp)[0],
        torch.autograd.grad(bound.total, choices.logp)[0],
    )


@pytest.mark.parametrize(
    ("advantage", "ratio", "gain", "pull", "let_go"),
    [(-2.0, 5.0, -6.0, 0.0, 1), (-2.0, 2.5, -5.0, 5.0, 0), (2.0, 5.0, 2.4, 0.0, 0)],
)
def test_the_dual_clip_lets_go_of_a_bad_choice_that_grew_beyond_it(
    advantage, ratio, gain, pull, let_go
):
    choices = far_choice(advantage, ratio, 0.0)
    loss = grpo_loss(choices, Clip(dual=3.0), form="none", coefficient=0)
    assert loss.total.item() == pytest.approx(-gain)
    assert torch.autograd.grad(loss.total, choices.logp)[0].item() == pytest.approx(pull)
    assert loss.metrics["dual_clip_fraction"] == let_go
    assert loss.metrics["clip_fraction"] == (pull == 0)


def test_the_gradient_runs_through_the_ratio_of_k3_ratio_by_hand():
    logp = torch.tensor([HALF], dtype=torch.float64, requires_grad=True)
    choices = Choices(
        logp=logp,
        logp_old=logp.detach(),
        logp_ref=torch.tensor([QUARTER], dtype=torch.float64),
        advantage=torch.zeros(1, dtype=torch.float64),
        weight=torch.ones(1, dtype=torch.float64),
        episode=torch.tensor([0]),
    )
    loss = grpo_loss(choices, Clip(), form="k3_ratio", coefficient=1.0)
    # d k3 is 1 - r = 1/2, and the ratio brings k3 itself.
    expected = 0.5 + (0.5 - 1 + math.log(2))
    assert torch.autograd.grad(loss.total, logp)[0].item() == pytest.approx(expected)


def test_entropy_is_paid_for_by_hand():
    loss = grpo_loss(two_choices(1.0), Clip(), form="none", coefficient=0, entropy_bonus=0.01)
    assert loss.metrics["entropy"] == 2
    assert loss.total.item() == pytest.approx(-1.1 - 0.02)


def test_what_a_policy_cannot_give_is_asked_for_by_name():
    blind = replace(two_choices(1.0), entropy=None)
    with pytest.raises(ValueError, match="set entropy_bonus to 0"):
        grpo_loss(blind, Clip(), form="none", coefficient=0, entropy_bonus=0.1)
    with pytest.raises(ValueError, match="return_to_go"):
        grpo_loss(blind, Clip(), form="exact", coefficient=0.1)


@pytest.mark.parametrize("act", ["grpo_loss", "leash_advantage", "leash_reward"])
def test_a_refused_form_is_refused_wherever_it_is_named(act):
    choices = two_choices(1.0)
    with pytest.raises(ConfigError, match="refused"):
        if act == "grpo_loss":
            grpo_loss(choices, Clip(), form="k1", coefficient=0.1)
        elif act == "leash_advantage":
            grpo.leash_advantage(choices, form="k1", coefficient=0.1)
        else:
            grpo.leash_reward(
                torch.tensor([1.0]),
                choices.logp_old,
                choices.logp_ref,
                choices.episode,
                form="k1",
                coefficient=0.1,
            )


def test_advantages_by_hand():
    reward, group = torch.tensor([0.0, 1.0, 2.0]), torch.tensor([0, 0, 0])
    assert grpo.centre(reward, group).tolist() == [-1, 0, 1]
    assert grpo.leave_one_out(reward, group).tolist() == [-1.5, 0, 1.5]
    assert grpo.standardise(reward, group).tolist() == pytest.approx([-1, 0, 1], rel=2e-6)
    assert grpo.rank(REWARD, GROUP).tolist() == pytest.approx([-1, 0, 0, 1, 1, -0.5, -0.5, 0, 0])


@pytest.mark.parametrize("name", list(grpo.ADVANTAGES))
def test_advantages_of_a_group_sum_to_zero_and_ignore_a_shift(name):
    advantage = grpo.ADVANTAGES[name](REWARD, GROUP)
    sums = torch.zeros(3, dtype=torch.float64).index_add(0, GROUP, advantage)
    assert sums.tolist() == pytest.approx([0, 0, 0], abs=1e-12)
    shifted = grpo.ADVANTAGES[name](REWARD + torch.tensor([7.0, -3.0, 2.0])[GROUP], GROUP)
    assert shifted.tolist() == pytest.approx(advantage.tolist(), abs=1e-9)


@pytest.mark.parametrize("name", list(grpo.ADVANTAGES))
def test_a_group_does_not_see_the_others_nor_their_order(name):
    whole = grpo.ADVANTAGES[name](REWARD, GROUP)
    alone = grpo.ADVANTAGES[name](REWARD[4:7], torch.tensor([0, 0, 0]))
    assert whole[4:7].tolist() == pytest.approx(alone.tolist(), rel=1e-12)
    order = torch.tensor([8, 2, 5, 0, 7, 1, 6, 3, 4])
    mixed = grpo.ADVANTAGES[name](REWARD[order], GROUP[order])
    assert mixed.tolist() == pytest.approx(whole[order].tolist(), abs=1e-12)


@pytest.mark.parametrize("name", list(grpo.ADVANTAGES))
def test_a_group_of_one_is_refused(name):
    with pytest.raises(ValueError, match="a group of one has no average to beat: set group_size"):
        grpo.ADVANTAGES[name](torch.tensor([1.0, 2.0, 3.0]), torch.tensor([0, 0, 1]))


@pytest.mark.parametrize("name", list(grpo.UNITS))
def test_an_advantage_is_its_unit_times_leave_one_out(name):
    unit = grpo.reward_unit(name, REWARD, GROUP)
    assert unit is not None
    assert grpo.ADVANTAGES[name](REWARD, GROUP).tolist() == pytest.approx(
        (unit * grpo.leave_one_out(REWARD, GROUP)).tolist(), rel=1e-12
    )


def test_a_group_without_spread_is_leashed_as_if_only_centred():
    unit = grpo.reward_unit("standardise", REWARD, GROUP)
    assert unit is not None
    assert unit[7:].tolist() == [0.5, 0.5]
    assert grpo.reward_unit("rank", REWARD, GROUP) is None


FLAT = [0.1, 0.3, 1.3, 1.9, 97.3, 99.99, -0.7, 1e6 / 3, 1e-3, 0.0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", list(grpo.ADVANTAGES))
def test_a_flat_group_teaches_exactly_nothing(name, dtype):
    for value in FLAT:
        for size in range(2, 33):
            reward = torch.tensor([value] * size + [0.0, 1.0], dtype=dtype)
            group = torch.tensor([0] * size + [1, 1])
            assert not grpo.ADVANTAGES[name](reward, group)[:size].any(), (value, size)
            unit = grpo.reward_unit(name, reward, group)
            if unit is not None:
                assert unit[:size].max().item() <= 1
            pull = grpo.effective_coefficient(0.1, name, reward[:size], group[:size], scaled=False)
            assert pull in (None, 0.1)  # leave_one_out has no spread to lose


@pytest.mark.parametrize("name", list(grpo.ADVANTAGES))
def test_rewards_that_differ_by_rounding_alone_are_equal(name):
    reward = torch.tensor([0.1 + 0.2, 0.3, 0.3, 0.7 - 0.4, 0.3 + 1e-9, 0.3], dtype=torch.float64)
    group = torch.tensor([0, 0, 0, 0, 1, 1])
    assert len(set(reward[:4].tolist())) == 3
    found = grpo.ADVANTAGES[name](reward, group)
    assert found[:4].tolist() == [0, 0, 0, 0]
    assert found[4] > 0 > found[5]  # what is small and no rounding still counts


def test_ties_by_rounding_share_their_rank():
    reward = torch.tensor([0.3, 5.0, 0.1 + 0.2, -1.0], dtype=torch.float64)
    found = grpo.rank(reward, torch.zeros(4, dtype=torch.int64))
    assert found.tolist() == pytest.approx([0, 1, 0, -1])


def test_the_unit_of_a_standardised_group_is_never_that_of_rounding():
    for value in FLAT:
        reward = torch.tensor([value] * 7)
        unit = grpo.reward_unit("standardise", reward, torch.zeros(7, dtype=torch.int64))
        assert unit is not None and unit.tolist() == pytest.approx([6 / 7] * 7)


@pytest.mark.parametrize(
    ("advantage", "form", "scaled", "is_so"),
    [
        ("leave_one_out", "k3", False, True),
        ("standardise", "k3", False, False),
        ("standardise", "k3", True, True),
        ("centre", "return_to_go", False, False),
        ("centre", "return_to_go", True, True),
        ("standardise", "reward_k1", False, True),
        ("rank", "reward_k1", False, False),
        ("rank", "return_to_go", True, False),
        ("rank", "none", False, True),
    ],
)
def test_whether_a_coefficient_is_in_units_of_reward(advantage, form, scaled, is_so):
    assert grpo.in_reward_units(advantage, form, scaled=scaled) is is_so


def test_the_coefficient_that_acts_by_hand():
    reward, group = torch.tensor([0.0, 1.0, 5.0, 5.0]), torch.tensor([0, 0, 1, 1])
    found = {
        (name, scaled): grpo.effective_coefficient(0.1, name, reward, group, scaled=scaled)
        for name in grpo.ADVANTAGES
        for scaled in (False, True)
    }
    assert found["leave_one_out", False] == pytest.approx(0.1)
    assert found["centre", False] == pytest.approx(0.2)
    assert found["standardise", False] == pytest.approx(0.2 * math.sqrt(0.5), rel=1e-5)
    assert found["standardise", True] == 0.1
    assert found["rank", True] is None
    flat = torch.ones(4)
    assert grpo.effective_coefficient(0.1, "standardise", flat, group, scaled=False) is None


def test_weights_by_hand():
    episode, group = torch.tensor([0, 0, 0, 1, 2, 2]), torch.tensor([0, 0, 1])
    assert grpo.by_choice(episode, group).tolist() == pytest.approx([1 / 6] * 6)
    assert grpo.by_episode(episode, group).tolist() == pytest.approx(
        [1 / 9, 1 / 9, 1 / 9, 1 / 3, 1 / 6, 1 / 6]
    )
    assert grpo.by_group(episode, group).tolist() == pytest.approx([1 / 8] * 4 + [1 / 4] * 2)


@pytest.mark.parametrize("name", list(grpo.WEIGHTS))
def test_weights_sum_to_one_even_if_an_episode_was_left_out(name):
    episode, group = torch.tensor([0, 0, 2, 2, 2, 3]), torch.tensor([0, 0, 2, 2])
    assert grpo.WEIGHTS[name](episode, group).sum().item() == pytest.approx(1, rel=1e-12)


def test_the_leash_in_the_reward_by_hand():
    choices = two_choices(0.0)
    settings = {"coefficient": 0.5}
    args = (torch.tensor([1.0]), choices.logp, torch.tensor([QUARTER, QUARTER]), choices.episode)
    assert grpo.leash_reward(*args, form="reward_k1", **settings).tolist() == pytest.approx(
        [1 - 0.5 * math.log(2)]
    )
    assert grpo.leash_reward(*args, form="k3", **settings).tolist() == [1.0]


def test_the_leash_in_the_advantage_by_hand():
    choices = replace(
        two_choices(1.0),
        logp_old=torch.tensor([-1.0, -1.0]),
        logp_ref=torch.tensor([-1.5, -1.25]),
        exact_kl=torch.tensor([0.5, 0.25]),
    )
    for form, expected in (
        ("return_to_go", [1 - 0.075, 1 - 0.025]),
        ("exact", [1 - 0.025, 1.0]),
        ("k3", [1.0, 1.0]),
    ):
        leashed = grpo.leash_advantage(choices, form=form, coefficient=0.1)
        assert leashed.advantage.tolist() == pytest.approx(expected)
    halved = replace(choices, unit=torch.tensor([0.5, 0.5]))
    leashed = grpo.leash_advantage(halved, form="return_to_go", coefficient=0.1)
    assert leashed.advantage.tolist() == pytest.approx([1 - 0.0375, 1 - 0.0125])


def test_no_gradient_runs_through_the_leash_in_the_advantage():
    choices = replace(two_choices(1.0), logp_old=torch.tensor([-1.0, -1.0], requires_grad=True))
    leashed = grpo.leash_advantage(choices, form="return_to_go", coefficient=0.1)
    assert not leashed.advantage.requires_grad


def test_a_far_reference_still_pulls():
    logp = torch.tensor([-40.0], dtype=torch.float64, requires_grad=True)
    choices = Choices(
        logp=logp,
        logp_old=logp.detach(),
        logp_ref=torch.tensor([-1.0], dtype=torch.float64),
        advantage=torch.zeros(1, dtype=torch.float64),
        weight=torch.ones(1, dtype=torch.float64),
        episode=torch.tensor([0]),
    )
    for form in ("k2", "k3", "k3_ratio"):
        loss = grpo_loss(choices, Clip(), form=form, coefficient=1.0)
        assert torch.autograd.grad(loss.total, logp)[0].item() < -1


def random_batch(form: str, weight: str) -> tuple[Tensor, Choices]:
    """Seven episodes of unlike lengths in three groups, judged by a table, with every field."""
    rng = torch.Generator().manual_seed(3)
    length = torch.tensor([3, 1, 4, 2, 5, 2, 3])
    group = torch.tensor([0, 0, 1, 1, 1, 2, 2])
    episode = torch.arange(7).repeat_interleave(length)
    count = len(episode)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=rng, dtype=torch.float64)

    logits = draw(count, 6).requires_grad_()
    logp_NA, ref_NA = logits.log_softmax(-1), draw(count, 6).log_softmax(-1)
    reward = draw(7)
    unit = grpo.reward_unit("standardise", reward, group)
    assert unit is not None
    choices = Choices(
        logp=logp_NA[:, 0],
        logp_old=logp_NA[:, 0].detach() + 0.2 * draw(count),
        logp_ref=ref_NA[:, 0],
        advantage=grpo.standardise(reward, group)[episode],
        weight=grpo.WEIGHTS[weight](episode, group),
        episode=episode,
        entropy=kl.entropy(logp_NA),
        exact_kl=kl.exact(logp_NA, ref_NA),
        unit=unit[episode],
    )
    return logits, grpo.leash_advantage(choices, form=form, coefficient=0.3)


def parts_of(choices: Choices, parts: list[Tensor], form: str) -> list[grpo.Loss]:
    """The loss of each part."""
    return [
        grpo_loss(choices.take(part), Clip(), form=form, coefficient=0.3, entropy_bonus=0.01)
        for part in parts
    ]


@pytest.mark.parametrize("weight", list(grpo.WEIGHTS))
@pytest.mark.parametrize("form", list(kl.FORMS))
def test_splitting_and_reordering_leave_gradient_and_metrics_alone(form, weight):
    logits, choices = random_batch(form, weight)
    count = len(choices.episode)
    shuffled = torch.randperm(count, generator=torch.Generator().manual_seed(1))
    (whole,) = parts_of(choices, [torch.arange(count)], form)
    truth = torch.autograd.grad(whole.total, logits, retain_graph=True)[0]
    for parts in (list(torch.arange(count).split(3)), list(shuffled.split(7)), [shuffled]):
        losses = parts_of(choices, parts, form)
        total = sum(loss.total for loss in losses)
        assert isinstance(total, Tensor)
        gradient = torch.autograd.grad(total, logits, retain_graph=True)[0]
        assert (gradient - truth).abs().max() <= 1e-12 * truth.abs().max()
        for name, value in whole.metrics.items():
            assert sum(loss.metrics[name] for loss in losses) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("form", list(kl.FORMS))
def test_episodes_in_another_order_are_leashed_the_same(form):
    _, choices = random_batch("none", "by_choice")
    before = grpo.leash_advantage(choices, form=form, coefficient=0.3).advantage
    order = torch.cat([(choices.episode == e).nonzero()[:, 0] for e in (4, 0, 6, 2, 1, 5, 3)])
    turned = choices.take(order)
    new_names = torch.cat([torch.full((1,), 0), (turned.episode.diff() != 0).long().cumsum(0)])
    after = grpo.leash_advantage(replace(turned, episode=new_names), form=form, coefficient=0.3)
    assert after.advantage.tolist() == pytest.approx(before[order].tolist(), rel=1e-12)


def test_k3_times_the_ratio_has_the_exact_value_off_policy():
    logits, _ = random_batch("none", "by_choice")
    logp_NA = logits.detach().log_softmax(-1)
    old_NA = (logp_NA * 0.7).log_softmax(-1)
    ref_NA = (logp_NA * 0.2).log_softmax(-1)
    row = torch.arange(6)
    drawn = Choices(
        logp=logp_NA[0, row],
        logp_old=old_NA[0, row],
        logp_ref=ref_NA[0, row],
        advantage=torch.zeros(6, dtype=torch.float64),
        weight=old_NA[0].exp(),
        episode=row,
    )
    loss = grpo_loss(drawn, Clip(), form="k3_ratio", coefficient=1.0)
    assert loss.metrics["leash/value"] == pytest.approx(
        kl.exact(logp_NA, ref_NA)[0].item(), rel=1e-12
    )
