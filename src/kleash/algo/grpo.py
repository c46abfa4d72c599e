"""Advantages, weights, the leash and the loss: GRPO and its relatives as functions of flat arrays.

Weights are fixed over the whole batch and sum to 1, so that the loss of a batch is the sum of the
losses of its parts, however it is split. No padding, no mask, no batch shape; no optimiser either.
Rewards are compared in double, whatever they come in, and given back in what they came in.

Shapes: no suffix is one number per choice, E one per episode.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

from kleash.algo.kl import CLAMPED, episode_sum, form_named, k1, k2, k3, k3_up_to, return_to_go

SPREAD_FLOOR = 1e-6  # what GRPO adds to a group's spread before dividing by it
ROUNDING = (
    1e-12  # of the largest reward of a group, or of 1: what adding up leaves, as .1 + .2 - .3
)


@dataclass(frozen=True)
class Choices:
    """A batch, or a part of one: what the loss needs to know of every choice.

    `unit` is how many units of advantage one unit of reward is (see `reward_unit`); none means 1.
    """

    logp: Tensor
    logp_old: Tensor
    logp_ref: Tensor
    advantage: Tensor
    weight: Tensor
    episode: Tensor
    entropy: Tensor | None = None
    exact_kl: Tensor | None = None
    unit: Tensor | None = None

    def take(self, index: slice | Tensor) -> Choices:
        """Some of the choices, with the weights they have in the whole batch."""
        whole = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(self, **{n: v[index] for n, v in whole.items() if v is not None})


@dataclass(frozen=True)
class Clip:
    """How far a ratio may fall below and rise above 1 before it earns nothing more.

    `dual`: the ratio beyond which a bad choice costs no more (dual clip, 1912.09729); 0 has none.
    """

    low: float = 0.2
    high: float = 0.2
    dual: float = 0.0


@dataclass(frozen=True)
class Loss:
    """What to minimise, and the batch's numbers: those of its parts add up to its own."""

    total: Tensor
    metrics: dict[str, float]


def group_sizes(group: Tensor) -> Tensor:
    """How many episodes are in the group of each episode; a group of one is refused."""
    size = group.bincount()[group]
    if bool((size < 2).any()):
        raise ValueError("a group of one has no average to beat: set group_size to 2 or more")
    return size


def group_mean(values: Tensor, group: Tensor) -> Tensor:
    """The mean of each episode's group, one number per episode."""
    size = group_sizes(group)
    total = values.new_zeros(int(group.max()) + 1).index_add(0, group, values)
    return total[group] / size


def over_lowest(reward: Tensor, group: Tensor) -> Tensor:
    """How far each reward is above the lowest of its group, in double; equal ones are at exactly 0.

    Rewards of a group that differ by rounding alone are one number: else a flat group would teach.
    """
    reward = reward.double()
    order = reward.argsort(stable=True)
    order = order[group[order].argsort(stable=True)]
    value, owner = reward[order], group[order]
    scale = reward.new_ones(int(group.max()) + 1).scatter_reduce(0, group, reward.abs(), "amax")
    apart = value.diff() > ROUNDING * scale[owner[1:]]
    begins = torch.cat([apart.new_ones(1), apart | (owner.diff() > 0)])
    level = value[begins][begins.cumsum(0) - 1]
    lowest = value[torch.searchsorted(owner, owner)]
    return torch.empty_like(value).index_copy(0, order, level - lowest)


def centred(reward: Tensor, group: Tensor) -> Tensor:
    """`centre` in double."""
    above = over_lowest(reward, group)
    return above - group_mean(above, group)


def group_spread(reward: Tensor, group: Tensor) -> Tensor:
    """The standard deviation (n - 1) of each episode's group, one number per episode, in double."""
    size = group_sizes(group)
    return (group_mean(centred(reward, group).square(), group) * size / (size - 1)).sqrt()


def centre(reward: Tensor, group: Tensor) -> Tensor:
    """How much better each episode did than its group (Dr. GRPO, 2503.20783)."""
    return centred(reward, group).to(reward.dtype)


def leave_one_out(reward: Tensor, group: Tensor) -> Tensor:
    """How much better each episode did than the others of its group (RLOO, 2402.14740).

    The only one here whose mean gradient is that of the reward itself, with no factor.
    """
    size = group_sizes(group)
    return (centred(reward, group) * size / (size - 1)).to(reward.dtype)


def standardise(reward: Tensor, group: Tensor) -> Tensor:
    """`centre`, divided by the spread within the group (GRPO, 2402.03300)."""
    spread = group_spread(reward, group) + SPREAD_FLOOR
    return (centred(reward, group) / spread).to(reward.dtype)


def rank(reward: Tensor, group: Tensor) -> Tensor:
    """The share of the others in its group that each episode beat, less the share that beat it."""
    size = group_sizes(group)
    _, order = torch.unique(over_lowest(reward, group), return_inverse=True)
    levels, level, ties = torch.unique(
        torch.stack([group, order]), dim=1, return_inverse=True, return_counts=True
    )
    first = group.bincount().cumsum(0) - group.bincount()
    below = ((ties.cumsum(0) - ties) - first[levels[0]])[level]
    above = size - below - ties[level]
    lead: Tensor = (below - above).to(reward.dtype)
    return lead / (size - 1)


ADVANTAGES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "leave_one_out": leave_one_out,
    "centre": centre,
    "standardise": standardise,
    "rank": rank,
}


def centre_unit(reward: Tensor, group: Tensor) -> Tensor:
    """(G - 1)/G: comparing with a mean that holds oneself takes 1/G of the signal away."""
    size = group_sizes(group).double()
    return (size - 1) / size


def spread_unit(reward: Tensor, group: Tensor) -> Tensor:
    """`centre_unit`/spread; a group without spread keeps the first: only the leash acts there."""
    spread = group_spread(reward, group)
    flat = spread <= SPREAD_FLOOR
    return centre_unit(reward, group) / torch.where(flat, 1.0, spread + SPREAD_FLOOR)


UNITS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "leave_one_out": lambda reward, group: torch.ones_like(reward),
    "centre": centre_unit,
    "standardise": spread_unit,
}


def reward_unit(advantage: str, reward: Tensor, group: Tensor) -> Tensor | None:
    """How many units of advantage one unit of reward is, per episode; a rank has no such unit.

    The leash is multiplied by it, so that the coefficient stays in units of reward.
    """
    return UNITS[advantage](reward, group).to(reward.dtype) if advantage in UNITS else None


def in_reward_units(advantage: str, form: str, *, scaled: bool) -> bool:
    """Whether the coefficient is in units of reward; if not, the run is marked.

    `scaled` says that the leash was multiplied by `reward_unit`.
    """
    if form == "none" or advantage == "leave_one_out":
        return True
    if form == "reward_k1":
        return advantage in UNITS  # both are divided by the same spread
    return advantage in UNITS and scaled


def effective_coefficient(
    coefficient: float, advantage: str, reward: Tensor, group: Tensor, *, scaled: bool
) -> float | None:
    """The coefficient that acts, in units of reward: its mean over groups with signal, or none.

    A leash that is not scaled with its advantages pulls as hard as this one on the plain reward.
    """
    if advantage not in UNITS:
        return None
    taught = group_spread(reward, group) > SPREAD_FLOOR
    if scaled or not bool(taught.any()):
        return coefficient if scaled else None
    return coefficient * float((1 / UNITS[advantage](reward, group)[taught]).mean())


def by_choice(episode: Tensor, group: Tensor) -> Tensor:
    """Every choice weighs the same (DAPO, 2503.14476): the objective of whole episodes."""
    return torch.full(episode.shape, 1 / len(episode), dtype=torch.float64, device=episode.device)


def by_episode(episode: Tensor, group: Tensor) -> Tensor:
    """Every episode weighs the same, however long (GRPO): choices of long ones count for less."""
    length = episode.bincount()
    return 1 / (length[episode].double() * (length > 0).sum())


def by_group(episode: Tensor, group: Tensor) -> Tensor:
    """Every group weighs the same, and within it every choice."""
    owner = group[episode]
    length = owner.bincount()
    return 1 / (length[owner].double() * (length > 0).sum())


# Of (episode of each choice, group of each episode), over the whole batch, before it is split.
WEIGHTS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "by_choice": by_choice,
    "by_episode": by_episode,
    "by_group": by_group,
}


def leash_reward(
    reward: Tensor,
    logp_old: Tensor,
    logp_ref: Tensor,
    episode: Tensor,
    *,
    form: str,
    coefficient: float,
) -> Tensor:
    """The reward of each episode less coefficient × its KL, if the form is `reward_k1`."""
    if form_named(form).where != "reward":
        return reward
    kl = episode_sum(k1(logp_old, logp_ref).detach(), episode)
    return reward - coefficient * kl.to(reward.dtype)


def leash_value(choices: Choices, form: str) -> Tensor:
    """What the coefficient takes off each advantage: fixed when sampled, without gradient.

    In units of advantage; 0 for forms that act elsewhere.
    """
    if form == "return_to_go":
        value = return_to_go(k1(choices.logp_old, choices.logp_ref), choices.episode)
    elif form == "exact":
        value = return_to_go(needed_kl(choices), choices.episode, strictly_future=True)
    else:
        return torch.zeros_like(choices.advantage)
    return (value.detach() * one_or(choices.unit)).to(choices.advantage.dtype)


def leash_advantage(choices: Choices, *, form: str, coefficient: float) -> Choices:
    """The batch with the leash in its advantages, for the forms that act there.

    Once per batch, before it is split: an episode must be whole.
    """
    form_named(form)
    return replace(choices, advantage=choices.advantage - coefficient * leash_value(choices, form))


def truncated(
    choices: Choices, logp_sampler: Tensor, cap: float
) -> tuple[Choices, dict[str, float]]:
    """The batch with each advantage times min(π_old/π_sampler, cap): as if π_old had sampled it.

    An engine that rounds otherwise than the trainer draws from another law; the ratio mends that,
    and the cap bounds what one choice can weigh (truncated importance sampling). Once per batch,
    after what the leash does to advantages; mean of the weights, and share that the cap took.
    """
    ratio = (choices.logp_old - logp_sampler).exp()
    weight = ratio.clamp(max=cap)
    found = {
        "sampler/weight": weight.double().mean().item(),
        "sampler/truncated": (ratio > cap).double().mean().item(),
    }
    return replace(choices, advantage=choices.advantage * weight), found


def k3_ratio(choices: Choices, clamp: float = 0.0) -> Tensor:
    """k3 × π/π_old, the ratio differentiated too: unbiased in value and gradient at each state."""
    value = k3_up_to(choices.logp, choices.logp_ref, clamp)
    return value * (choices.logp - choices.logp_old).exp()


def needed_kl(choices: Choices) -> Tensor:
    """The exact KL at each choice, which not every policy can give."""
    if choices.exact_kl is None:
        raise ValueError("this policy gives no exact KL: set leash.form to 'return_to_go'")
    return choices.exact_kl


# What the coefficient multiplies in the loss, with gradient; of choices and the clamp on k3.
PENALTIES: dict[str, Callable[[Choices, float], Tensor]] = {
    "exact": lambda choices, clamp: needed_kl(choices),
    "k2": lambda choices, clamp: k2(choices.logp, choices.logp_ref),
    "k3": lambda choices, clamp: k3_up_to(choices.logp, choices.logp_ref, clamp),
    "k3_ratio": k3_ratio,
}


def gains(choices: Choices, ratio: Tensor, clip: Clip) -> tuple[Tensor, Tensor, Tensor]:
    """What each choice earns; whether a clip took its gradient, and whether the dual one did."""
    plain = ratio * choices.advantage
    gain = torch.minimum(plain, ratio.clamp(1 - clip.low, 1 + clip.high) * choices.advantage)
    # A clipped ratio counts where the clip took the gradient away, not wherever it is outside.
    stopped, dual = plain > gain, torch.zeros_like(plain, dtype=torch.bool)
    if clip.dual:
        least = clip.dual * choices.advantage
        dual = (choices.advantage < 0) & (gain < least)
        gain, stopped = torch.where(dual, least, gain), stopped | dual
    return gain, stopped, dual


def grpo_loss(
    choices: Choices,
    clip: Clip,
    *,
    form: str,
    coefficient: float,
    entropy_bonus: float = 0.0,
    clamp: float = 0.0,
) -> Loss:
    """Clipped policy gradient (PPO, 1707.06347 eq. 7), the leash in the loss, an entropy bonus.

    Every metric is Σ weight × value, so metrics of parts add up to those of the batch. `clamp` is
    the most that k3 is taken for, 0 for all of it; what a clamp or the dual clip let go is counted.
    """
    form_named(form)
    weight = choices.weight.to(choices.logp.dtype)
    ratio = (choices.logp - choices.logp_old).exp()
    gain, stopped, dual = gains(choices, ratio, clip)
    policy_loss = -(weight @ gain)
    nothing = torch.zeros_like(policy_loss)

    kl_loss = nothing
    if form in PENALTIES:
        kl_loss = weight @ (PENALTIES[form](choices, clamp) * one_or(choices.unit))
    entropy = nothing if choices.entropy is None else weight @ choices.entropy
    if entropy_bonus and choices.entropy is None:
        raise ValueError("this policy gives no entropy: set entropy_bonus to 0")

    total = policy_loss + coefficient * kl_loss - entropy_bonus * entropy
    numbers = {
        "loss": total,
        "policy_loss": policy_loss,
        "leash/penalty": coefficient * kl_loss,
        "leash/value": kl_loss,
        "mean_ratio": weight @ ratio,
        "clip_fraction": weight @ stopped.to(weight.dtype),
        "entropy": entropy,
        "kl/old/k1": weight @ k1(choices.logp_old, choices.logp),
    }
    if clip.dual:
        numbers["dual_clip_fraction"] = weight @ dual.to(weight.dtype)
    if clamp and form in CLAMPED:
        beyond = k3(choices.logp, choices.logp_ref) >= clamp
        numbers["leash/clamped"] = weight @ beyond.to(weight.dtype)
    # Read together: each reading alone would wait for the device.
    read = torch.stack(list(numbers.values())).tolist()
    return Loss(total, dict(zip(numbers, read, strict=True)))


def one_or(unit: Tensor | None) -> Tensor | float:
    """The unit, or 1 where none is given."""
    return 1.0 if unit is None else unit
