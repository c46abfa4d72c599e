"""Problems so small that every episode can be listed: training without sampling noise.

`train` takes any module and a function that judges all listed episodes in flat form.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import torch
from torch import Tensor, nn

from kleash.algo import grpo
from kleash.algo.kl import episode_sum
from kleash.algo.policy import Judged
from kleash.types import Turn
from table_policy import TablePolicy

VOCABULARY, LENGTH = 4, 4
SEEDS = (100, 101, 102)


@dataclass(frozen=True)
class Listed:
    """Every episode of some problems, end to end: the episode of each choice, then per episode."""

    episode: Tensor
    problem: Tensor
    reward: Tensor


@dataclass(frozen=True)
class Outcome:
    """Where training ended, beside the optimum π* ∝ π_ref·exp(r/β), for each problem."""

    kl: Tensor
    gap: Tensor
    best_kl: Tensor


def total(values: Tensor, listed: Listed) -> Tensor:
    """The sum over the episodes of each problem."""
    return episode_sum(values, listed.problem)


@dataclass(frozen=True)
class Tables:
    """The problems of some seeds side by side in one table, which Adam trains independently."""

    policy: TablePolicy
    reference: TablePolicy
    listed: Listed
    pair: Tensor

    def judge(self) -> Judged:
        """Every choice of every episode; each row is judged once and looked up."""
        rows = len(self.policy.logits)
        pairs = (torch.arange(rows).repeat_interleave(VOCABULARY), torch.arange(4).repeat(rows))
        of = self.policy.judge(pairs, self.reference)
        assert of.logp_ref is not None and of.exact_kl is not None and of.forward_kl is not None
        return Judged(
            of.logp[self.pair],
            of.entropy[self.pair],
            of.logp_ref[self.pair],
            of.exact_kl[self.pair],
            of.forward_kl[self.pair],
        )


def tables(seeds: tuple[int, ...] = SEEDS) -> Tables:
    """Reference logits `randn(85, 4)`, then rewards `rand(256)`, in float64, of each seed."""
    logits, rewards = [], []
    for seed in seeds:
        rng = torch.Generator().manual_seed(seed)
        logits.append(torch.randn(85, VOCABULARY, generator=rng, dtype=torch.float64))
        rewards.append(torch.rand(VOCABULARY**LENGTH, generator=rng, dtype=torch.float64))
    every = [Turn(None, chosen, ()) for chosen in product(range(VOCABULARY), repeat=LENGTH)]
    rows, chosen = TablePolicy(VOCABULARY, LENGTH).gather(every)
    pair = rows * VOCABULARY + chosen
    return Tables(
        TablePolicy(VOCABULARY, LENGTH, torch.cat(logits)),
        TablePolicy(VOCABULARY, LENGTH, torch.cat(logits)).requires_grad_(False),
        Listed(
            episode=torch.arange(len(seeds) * len(every)).repeat_interleave(LENGTH),
            problem=torch.arange(len(seeds)).repeat_interleave(len(every)),
            reward=torch.cat(rewards),
        ),
        torch.cat([pair + 85 * VOCABULARY * index for index in range(len(seeds))]),
    )


def uneven(seeds: tuple[int, ...] = SEEDS) -> Tables:
    """The same, but choosing 0 ends an episode: 121 episodes of one to four choices."""
    plain = tables(seeds)
    every = [
        chosen
        for length in range(1, LENGTH + 1)
        for chosen in product(range(VOCABULARY), repeat=length)
        if 0 not in chosen[:-1] and (chosen[-1] == 0 or length == LENGTH)
    ]
    rows, choice = plain.policy.gather([Turn(None, chosen, ()) for chosen in every])
    size, rewards = torch.tensor([len(chosen) for chosen in every]), []
    for seed in seeds:
        rng = torch.Generator().manual_seed(seed)
        rewards.append(torch.rand(len(every), generator=rng, dtype=torch.float64))
    pair = rows * VOCABULARY + choice
    listed = Listed(
        episode=torch.arange(len(seeds) * len(every)).repeat_interleave(size.repeat(len(seeds))),
        problem=torch.arange(len(seeds)).repeat_interleave(len(every)),
        reward=torch.cat(rewards),
    )
    pairs = torch.cat([pair + 85 * VOCABULARY * index for index in range(len(seeds))])
    return Tables(plain.policy, plain.reference, listed, pairs)


def batch(
    judged: Judged,
    listed: Listed,
    *,
    form: str,
    coefficient: float,
    standardised: bool = False,
    scaled: bool = False,
    by_episode: bool = False,
) -> grpo.Choices:
    """The batch that stands for infinitely many draws: each episode weighs its own probability."""
    assert judged.logp_ref is not None
    logp_old = judged.logp.detach()
    probability = episode_sum(logp_old, listed.episode).exp()
    reward = grpo.leash_reward(
        listed.reward, logp_old, judged.logp_ref, listed.episode, form=form, coefficient=coefficient
    )
    advantage = reward - total(probability * reward, listed)[listed.problem]
    unit = torch.ones_like(advantage)
    if standardised:
        variance = total(probability * advantage.square(), listed)[listed.problem]
        unit = 1 / (variance.sqrt() + grpo.SPREAD_FLOOR)
    length = listed.episode.bincount() if by_episode else torch.ones_like(probability)
    whole = grpo.Choices(
        logp=judged.logp,
        logp_old=logp_old,
        logp_ref=judged.logp_ref,
        advantage=(advantage * unit)[listed.episode],
        weight=(probability / length)[listed.episode],
        episode=listed.episode,
        exact_kl=judged.exact_kl,
        unit=unit[listed.episode] if scaled else None,
    )
    return grpo.leash_advantage(whole, form=form, coefficient=coefficient)


def train(
    module: nn.Module,
    judge: Callable[[], Judged],
    listed: Listed,
    *,
    form: str,
    coefficient: float,
    steps: int = 1500,
    clamp: float = 0.0,
    **settings: bool,
) -> Outcome:
    """Exact on-policy training: Adam at 0.05, decayed in a line to 0."""
    adam = torch.optim.Adam(module.parameters(), lr=0.05, fused=True)
    for step in range(steps):
        adam.param_groups[0]["lr"] = 0.05 * (1 - step / steps)
        choices = batch(judge(), listed, form=form, coefficient=coefficient, **settings)
        how = {"form": form, "coefficient": coefficient, "clamp": clamp}
        loss = grpo.grpo_loss(choices, grpo.Clip(), **how)  # type: ignore[arg-type]
        adam.zero_grad()
        loss.total.backward()
        adam.step()
    with torch.no_grad():
        return outcome(judge(), listed, coefficient)


def outcome(judged: Judged, listed: Listed, coefficient: float) -> Outcome:
    """KL, and how far the objective E[r] - coefficient × KL is below its greatest value."""
    assert judged.logp_ref is not None
    logp = episode_sum(judged.logp, listed.episode)
    logp_ref = episode_sum(judged.logp_ref, listed.episode)
    kl = total(logp.exp() * (logp - logp_ref), listed)
    reached = total(logp.exp() * listed.reward, listed) - coefficient * kl
    partition = total((logp_ref + listed.reward / coefficient).exp(), listed).log()
    best = logp_ref + listed.reward / coefficient - partition[listed.problem]
    return Outcome(
        kl=kl,
        gap=coefficient * partition - reached,
        best_kl=total(best.exp() * (best - logp_ref), listed),
    )
