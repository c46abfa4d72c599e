"""Proofs: on problems whose every episode can be listed, each form does what is said of it."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from enumerable import SEEDS, Outcome, Tables, batch, outcome, tables, total, train, uneven
from kleash.algo import grpo, kl
from kleash.algo.kl import episode_sum

FORMS_THAT_ACT = [name for name in kl.FORMS if name != "none"]
SEQUENCE_LEVEL = ["return_to_go", "exact", "reward_k1"]

# (mean KL, mean gap to the optimum) at coefficient 0.1 over the three problems.
FIXED_POINTS = {
    "reward_k1": (1.18308, 0.000020),
    "k2": (1.46601, 0.016061),
    "k3_ratio": (1.46601, 0.016061),
    "k3": (1.09829, 0.025474),
}


def trained(form: str, coefficient: float, **settings: object) -> Outcome:
    """Where the three problems end."""
    return trained_on(tables(), form, coefficient, **settings)


def trained_on(problem: Tables, form: str, coefficient: float, **settings: object) -> Outcome:
    """Where some problems end."""
    return train(
        problem.policy,
        problem.judge,
        problem.listed,
        form=form,
        coefficient=coefficient,
        **settings,  # type: ignore[arg-type]
    )


def at_optimum(found: Outcome, *, share: float) -> None:
    """KL within a share of the optimum's on every problem, and the objective within 1e-3."""
    assert found.kl.tolist() == pytest.approx(found.best_kl.tolist(), rel=share)
    assert found.gap.max().item() <= 1e-3
    assert found.gap.min().item() >= -1e-12


def test_the_problems_have_the_optimum_that_is_written_down():
    problem = tables()
    for coefficient, best in ((0.3, 0.30648), (0.1, 1.18519), (0.03, 3.00821)):
        with torch.no_grad():
            found = outcome(problem.judge(), problem.listed, coefficient)
        assert found.best_kl.mean().item() == pytest.approx(best, abs=1e-5)


@pytest.mark.parametrize(
    ("form", "coefficient", "steps"),
    [("return_to_go", 0.3, 600), ("exact", 0.3, 600)],
)
def test_the_unbiased_forms_reach_the_analytic_optimum(form, coefficient, steps):
    at_optimum(trained(form, coefficient, steps=steps), share=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["return_to_go", "exact"])
@pytest.mark.parametrize(
    ("coefficient", "steps", "share"), [(0.3, 1500, 0.01), (0.1, 1500, 0.01), (0.03, 6000, 0.02)]
)
def test_the_unbiased_forms_reach_the_optimum_at_every_coefficient(form, coefficient, steps, share):
    at_optimum(trained(form, coefficient, steps=steps), share=share)


@pytest.mark.parametrize(
    "form",
    [
        "k3",
        pytest.param("k2", marks=pytest.mark.slow),
        pytest.param("k3_ratio", marks=pytest.mark.slow),
        pytest.param("reward_k1", marks=pytest.mark.slow),
    ],
)
def test_the_other_forms_reach_their_known_fixed_points(form):
    found = trained(form, 0.1)
    mean_kl, mean_gap = FIXED_POINTS[form]
    assert found.kl.mean().item() == pytest.approx(mean_kl, abs=1e-4)
    assert found.gap.mean().item() == pytest.approx(mean_gap, abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("coefficient", [0.3, 0.1, 0.03])
def test_under_standardised_advantages_the_coefficient_means_nothing(coefficient):
    found = trained("return_to_go", coefficient, standardised=True)
    assert found.kl.mean().item() == pytest.approx(5.0, abs=0.01)


def test_a_leash_in_the_same_unit_as_the_standardised_reward_keeps_its_meaning():
    at_optimum(trained("return_to_go", 0.3, standardised=True, scaled=True, steps=600), share=0.01)


@pytest.mark.slow
def test_inside_the_reward_the_leash_is_standardised_with_it_and_keeps_its_meaning():
    at_optimum(trained("reward_k1", 0.1, standardised=True), share=0.01)


@pytest.mark.parametrize(
    "form",
    ["return_to_go", *(pytest.param(f, marks=pytest.mark.slow) for f in ("exact", "reward_k1"))],
)
def test_with_episodes_of_unequal_length_the_optimum_is_reached_too(form):
    problem = uneven()
    assert set(problem.listed.episode.bincount().tolist()) == {1, 2, 3, 4}
    at_optimum(trained_on(problem, form, 0.3, steps=600), share=0.01)


def test_an_episode_that_weighs_the_same_however_long_has_another_optimum():
    found = trained_on(uneven(), "return_to_go", 0.3, steps=600, by_episode=True)
    whole = trained_on(uneven(), "return_to_go", 0.3, steps=600)
    assert found.gap.min().item() >= 5e-4 >= 20 * whole.gap.max().item()


@pytest.mark.slow
@pytest.mark.parametrize(("clamp", "mean_kl"), [(0.0, 2.530), (10.0, 3.019)])
def test_a_clamp_at_ten_lengthens_a_weak_leash_as_verls_does(clamp, mean_kl):
    found = trained("k3", 0.03, clamp=clamp)
    assert found.kl.mean().item() == pytest.approx(mean_kl, abs=2e-3)


def sampled_in_groups(seed: int, form: str, *, size: int, groups: int, steps: int) -> Outcome:
    """Standardised and scaled, coefficient 0.3, the groups drawn from all episodes of a problem.

    An episode that is drawn often counts once, with the means of its advantages and units.
    """
    problem, coefficient = tables((seed,)), 0.3
    listed, group = problem.listed, torch.arange(groups).repeat_interleave(size)
    rng = torch.Generator().manual_seed(1)
    adam = torch.optim.Adam(problem.policy.parameters(), lr=0.05)
    for step in range(steps):
        adam.param_groups[0]["lr"] = 0.05 * (1 - step / steps)
        judged = problem.judge()
        old, how = judged.logp.detach(), {"form": form, "coefficient": coefficient}
        chance = episode_sum(old, listed.episode).exp()
        drawn = torch.multinomial(chance, groups * size, replacement=True, generator=rng)
        reward = grpo.leash_reward(listed.reward, old, judged.logp_ref, listed.episode, **how)
        often = drawn.bincount(minlength=len(chance)).clamp(min=1)

        def mean(values, drawn=drawn, often=often):
            return often.new_zeros(len(often)).double().index_add(0, drawn, values) / often

        choices = grpo.Choices(
            logp=judged.logp,
            logp_old=old,
            logp_ref=judged.logp_ref,
            advantage=mean(grpo.standardise(reward[drawn], group))[listed.episode],
            weight=(drawn.bincount(minlength=len(chance)) / len(drawn))[listed.episode],
            episode=listed.episode,
            exact_kl=judged.exact_kl,
            unit=mean(grpo.reward_unit("standardise", reward[drawn], group))[listed.episode],
        )
        loss = grpo.grpo_loss(grpo.leash_advantage(choices, **how), grpo.Clip(), **how)
        adam.zero_grad()
        loss.total.backward()
        adam.step()
    with torch.no_grad():
        return outcome(problem.judge(), listed, coefficient)


@pytest.mark.slow
@pytest.mark.parametrize(("size", "mean_kl"), [(2, 0.015), (4, 0.165), (8, 0.251)])
def test_a_scaled_standardised_leash_is_longer_in_name_than_in_small_groups(size, mean_kl):
    every = [
        sampled_in_groups(seed, "return_to_go", size=size, groups=4096 // size, steps=600)
        for seed in SEEDS
    ]
    found = sum(each.kl.item() for each in every) / len(every)
    assert found == pytest.approx(mean_kl, abs=0.01)


def disturbed(seed: int = 0):
    """The first problem with a policy away from its reference."""
    problem = tables((100,))
    rng = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        problem.policy.logits += torch.randn(85, 4, generator=rng, dtype=torch.float64)
    return problem


def gradient(value: Tensor, parameter: Tensor) -> Tensor:
    """The gradient alone."""
    return torch.autograd.grad(value, parameter, retain_graph=True)[0]


@pytest.mark.parametrize("form", FORMS_THAT_ACT)
def test_the_gradient_of_every_form_is_that_of_its_enumerated_objective(form):
    problem, coefficient = disturbed(), 0.37
    listed, judged = problem.listed, problem.judge()
    choices = batch(judged, listed, form=form, coefficient=coefficient)
    loss = grpo.grpo_loss(choices, grpo.Clip(), form=form, coefficient=coefficient)

    logp = episode_sum(judged.logp, listed.episode)
    logp_ref = episode_sum(judged.logp_ref, listed.episode)
    visits = logp.exp().detach()[listed.episode]
    whole = total(logp.exp() * (logp - logp_ref), listed)[0]
    at_state = {
        "k2": judged.exact_kl,
        "k3_ratio": judged.exact_kl,
        "k3": judged.forward_kl,
    }
    leash = whole if form in SEQUENCE_LEVEL else visits @ at_state[form]
    objective = total(logp.exp() * listed.reward, listed)[0] - coefficient * leash
    ours = gradient(loss.total, problem.policy.logits)
    truth = -gradient(objective, problem.policy.logits)
    assert (ours - truth).abs().max().item() <= 1e-12 * truth.abs().max().item() + 1e-14


@pytest.mark.parametrize(("refused", "by"), [("k1", "loss"), ("k3", "reward")])
def test_the_refused_forms_are_refused_for_what_they_do(refused, by):
    problem = disturbed()
    listed, judged = problem.listed, problem.judge()
    probability = episode_sum(judged.logp, listed.episode).exp().detach()
    visits = probability[listed.episode]
    if by == "loss":
        ours = visits @ kl.k1(judged.logp, judged.logp_ref)
        truth = torch.zeros_like(problem.policy.logits)
    else:
        togo = kl.return_to_go(kl.k3(judged.logp, judged.logp_ref).detach(), listed.episode)
        ours = (visits * togo) @ judged.logp
        weight = episode_sum(judged.logp, listed.episode).exp()[listed.episode]
        # All of the gradient of E[k3] but what runs through k3 itself, which is the forward KL's.
        truth = gradient(weight @ judged.exact_kl, problem.policy.logits) - gradient(
            visits @ judged.forward_kl, problem.policy.logits
        )
    assert (gradient(ours, problem.policy.logits) - truth).abs().max().item() <= 1e-13


@pytest.mark.parametrize("form", list(kl.FORMS))
def test_at_the_start_kl_is_zero_and_the_leash_pulls_nowhere(form):
    problem = tables((100,))
    judged = problem.judge()
    leashed = grpo.grpo_loss(
        batch(judged, problem.listed, form=form, coefficient=0.5),
        grpo.Clip(),
        form=form,
        coefficient=0.5,
    )
    free = grpo.grpo_loss(
        batch(judged, problem.listed, form="none", coefficient=0.0),
        grpo.Clip(),
        form="none",
        coefficient=0.0,
    )
    pull = gradient(leashed.total, problem.policy.logits) - gradient(
        free.total, problem.policy.logits
    )
    assert pull.abs().max().item() <= 1e-15
    assert leashed.metrics["leash/penalty"] == pytest.approx(0, abs=1e-15)
    assert leashed.metrics["mean_ratio"] == pytest.approx(4, rel=1e-12)  # 4 choices, weights of 1
    assert leashed.metrics["clip_fraction"] == 0


def sampled_training(form: str, *, seed: int, steps: int, groups: int) -> Outcome:
    """Groups of 8 drawn from the policy, leave-one-out, coefficient 0.3, on the first problem."""
    problem, coefficient = tables((100,)), 0.3
    rng = torch.Generator().manual_seed(seed)
    adam = torch.optim.Adam(problem.policy.parameters(), lr=0.05)
    group = torch.arange(groups).repeat_interleave(8)
    episode = torch.arange(groups * 8).repeat_interleave(4)
    for step in range(steps):
        adam.param_groups[0]["lr"] = 0.05 * (1 - step / steps)
        judged = problem.judge()
        probability = episode_sum(judged.logp.detach(), problem.listed.episode).exp()
        drawn = torch.multinomial(probability, groups * 8, replacement=True, generator=rng)
        spots = (drawn[:, None] * 4 + torch.arange(4)).reshape(-1)
        logp, logp_ref = judged.logp[spots], judged.logp_ref[spots]
        reward = grpo.leash_reward(
            problem.listed.reward[drawn],
            logp.detach(),
            logp_ref,
            episode,
            form=form,
            coefficient=coefficient,
        )
        choices = grpo.leash_advantage(
            grpo.Choices(
                logp=logp,
                logp_old=logp.detach(),
                logp_ref=logp_ref,
                advantage=grpo.leave_one_out(reward, group)[episode],
                weight=grpo.by_choice(episode, group),
                episode=episode,
                exact_kl=judged.exact_kl[spots],
            ),
            form=form,
            coefficient=coefficient,
        )
        loss = grpo.grpo_loss(choices, grpo.Clip(), form=form, coefficient=coefficient)
        adam.zero_grad()
        loss.total.backward()
        adam.step()
    with torch.no_grad():
        return outcome(problem.judge(), problem.listed, coefficient)


# Over four seeds the gap was 0.0004 to 0.0009 and KL -2 % to +4 % of the optimum's for every form
# here (standard deviations 0.0001 and 2.5 %), so these bounds are four deviations away or more. The
# gap of k3 is 0.008 to 0.009, four times what is allowed.
@pytest.mark.parametrize(
    "form",
    ["return_to_go", *(pytest.param(f, marks=pytest.mark.slow) for f in ("exact", "reward_k1"))],
)
def test_sampled_groups_of_eight_end_near_the_optimum_too(form):
    found = sampled_training(form, seed=0, steps=600, groups=16)
    assert found.gap.item() <= 2e-3
    assert found.kl.item() == pytest.approx(found.best_kl.item(), rel=0.1)


@pytest.mark.slow
def test_the_sampled_proof_can_tell_a_biased_form():
    assert sampled_training("k3", seed=0, steps=600, groups=16).gap.item() >= 5e-3
