"""Divergences between a policy and its reference, as pure functions of flat arrays, in nats.

One number per choice, episodes end to end. How a form enters training is in `grpo`; this file asks
nothing of torch but its tensors, so that a name can be refused on a machine without it.

Shapes: N choices, A alternatives at each of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from kleash.errors import ConfigError

if TYPE_CHECKING:
    from torch import Tensor


def k1(logp: Tensor, logp_ref: Tensor) -> Tensor:
    """log(π/π_ref): its mean over draws from π is KL(π‖π_ref); one draw can be negative."""
    return logp - logp_ref


def k2(logp: Tensor, logp_ref: Tensor) -> Tensor:
    """½·log²(π/π_ref): biased in value; its gradient is that of KL(π‖π_ref) at the state."""
    return (logp - logp_ref).square() / 2


def k3(logp: Tensor, logp_ref: Tensor) -> Tensor:
    """r - 1 - log r with r = π_ref/π: never negative (Schulman 2020; GRPO, 2402.03300 eq. 4).

    Its mean is KL(π‖π_ref), its gradient that of KL(π_ref‖π).
    """
    log_r = logp_ref - logp
    return log_r.expm1() - log_r


def k3_up_to(logp: Tensor, logp_ref: Tensor, most: float) -> Tensor:
    """k3, at most `most`: from there on the leash lets go, for the clamp takes the gradient too.

    As verl and NeMo-RL have it. 0 is no clamp.
    """
    if not most:
        return k3(logp, logp_ref)
    # Beyond these k3 is clamped in any case; so that what is let go of does not overflow.
    log_r = (logp_ref - logp).clamp(-most - 1, min(most + 1, 80.0))
    return (log_r.expm1() - log_r).clamp(max=most)


def exact(logp_NA: Tensor, logp_ref_NA: Tensor) -> Tensor:
    """Σ_a π(a)·log(π(a)/π_ref(a)) at every state (2504.10637): k1 without its noise.

    What π masks (-inf) adds nothing. What only π_ref masks makes it infinite, as it is.
    """
    masked_NA = logp_NA.isneginf()
    gap_NA = logp_NA.masked_fill(masked_NA, 0) - logp_ref_NA.masked_fill(masked_NA, 0)
    return (logp_NA.exp().masked_fill(masked_NA, 0) * gap_NA).sum(-1)


def forward(logp_NA: Tensor, logp_ref_NA: Tensor) -> Tensor:
    """KL(π_ref‖π) at every state: what the policy has forgotten of its reference."""
    return exact(logp_ref_NA, logp_NA)


def entropy(logp_NA: Tensor) -> Tensor:
    """-Σ_a π(a)·log π(a) at every state; masked alternatives add nothing."""
    masked_NA = logp_NA.isneginf()
    return -(logp_NA.exp() * logp_NA.masked_fill(masked_NA, 0)).sum(-1)


def episode_sum(values: Tensor, episode: Tensor) -> Tensor:
    """The sum over each episode, in float64: one number per episode, 0 for one without choices."""
    count = int(episode.max()) + 1 if len(episode) else 0
    return values.double().new_zeros(count).index_add(0, episode, values.double())


def return_to_go(values: Tensor, episode: Tensor, *, strictly_future: bool = False) -> Tensor:
    """The sum from each choice to the end of its episode, summed in float64.

    Without the choice's own value if `strictly_future`. Episodes lie end to end.
    """
    if bool((episode.diff() < 0).any()):
        raise ValueError("the choices of an episode do not lie together: sort them by episode")
    past = values.double().cumsum(0)
    last = episode.bincount().cumsum(0) - 1
    future = past[last[episode]] - past
    return (future if strictly_future else future + values.double()).to(values.dtype)


@dataclass(frozen=True)
class Form:
    """One way in which KL enters training."""

    name: str
    where: Literal["advantage", "loss", "reward", "nowhere"]
    source: str
    sentence: str


FORMS = {
    form.name: form
    for form in (
        Form(
            "return_to_go",
            "advantage",
            "FRPO, 2601.10201",
            "The sum of log(π_old/π_ref) from each choice on is taken off its advantage:"
            " the gradient is that of reward - coefficient × KL of the whole episode.",
        ),
        Form(
            "exact",
            "loss",
            "Rao-Blackwell, 2504.10637",
            "KL summed over all alternatives is added to the loss and its strictly future sum taken"
            " off the advantage: the same optimum as return_to_go, with less noise.",
        ),
        Form(
            "k2",
            "loss",
            "Schulman 2020, joschu.net/blog/kl-approx.html; verl mse",
            "½·log² is added to the loss: the gradient of KL at each state, blind to which states"
            " come next.",
        ),
        Form(
            "k3",
            "loss",
            "GRPO, 2402.03300 eq. 4; verl low_var_kl",
            "r - 1 - log r is added to the loss: the gradient is that of the forward KL, kept"
            " because everybody compares with it.",
        ),
        Form(
            "k3_ratio",
            "loss",
            "DeepSeek-V3.2, 2512.02556; TRL 1.16",
            "k3 × π/π_old is added to the loss, with gradient through both: that of k2 in"
            " expectation.",
        ),
        Form(
            "reward_k1",
            "reward",
            "Ziegler 2019, 1909.08593 eq. 2",
            "The sum of log(π_old/π_ref) over the episode is taken off its reward, before the group"
            " is compared.",
        ),
        Form(
            "none",
            "nowhere",
            "the control arm",
            "Nothing is added; the reference is loaded and KL measured all the same.",
        ),
    )
}

CLAMPED = ("k3", "k3_ratio")  # the forms that `leash.clamp` is about

NO_LEASH = "the mean of its gradient over draws is 0, so it is no leash"
WRONG_WAY = (
    "the mean of its gradient is that of KL(π‖π_ref) less that of KL(π_ref‖π), so it pays for"
    " forgetting"
)
REFUSED = {
    "k1": f"k1 in the loss: {NO_LEASH}",
    "k3_reward": f"k3 in the reward: {WRONG_WAY}",
    "reward_k3": f"k3 in the reward: {WRONG_WAY}",
}

# What other projects call the forms, and what they mean by it.
FOREIGN_FORMS = {
    "kl": "k1",
    "low_var_kl": "k3",
    "mse": "k2",
    "k3+": "k2",
}


def form_named(name: str) -> Form:
    """The form of that name; a refused or unknown one is an error that says why."""
    if name in FORMS:
        return FORMS[name]
    ours = FOREIGN_FORMS.get(name, name)
    if ours in REFUSED:
        raise ConfigError(
            f"leash.form {name!r} is refused: {REFUSED[ours]}; use 'return_to_go' or 'reward_k1'"
        )
    if ours in FORMS:
        raise ConfigError(f"unknown leash.form {name!r}: did you mean {ours!r}?")
    raise ConfigError(f"unknown leash.form {name!r}: the forms are {', '.join(FORMS)}")


def measure(
    episode: Tensor,
    *,
    logp: Tensor,
    logp_ref: Tensor | None = None,
    logp_old: Tensor | None = None,
    logp_sampler: Tensor | None = None,
    exact_kl: Tensor | None = None,
    forward_kl: Tensor | None = None,
) -> dict[str, float]:
    """Every KL there are inputs for, by choice and by episode (sum), as mean and 99th percentile.

    `logp` is the policy's now; sampled forms (k1, k3) mean what they say only on its own draws.
    """
    values: dict[str, Tensor] = {}
    if exact_kl is not None:
        values["kl/ref/exact"] = exact_kl
    if logp_ref is not None:
        values["kl/ref/k1_seq"] = k1(logp, logp_ref)
        values["kl/ref/k3"] = k3(logp, logp_ref)
    if forward_kl is not None:
        values["kl/ref/forward"] = forward_kl
    if logp_old is not None:
        values["kl/old/k1"] = k1(logp_old, logp)
    if logp_sampler is not None:
        values["kl/sampler/k1"] = k1(logp_sampler, logp if logp_old is None else logp_old)
    return summary(values, episode)


def summary(values: Mapping[str, Tensor], episode: Tensor) -> dict[str, float]:
    """Mean and 99th percentile of each value, by choice and summed by episode."""
    found = {}
    present = episode.bincount() > 0
    for name, value in values.items():
        by_choice = value.detach().double()
        for per, numbers in (
            ("choice", by_choice),
            ("episode", episode_sum(by_choice, episode)[present]),
        ):
            if not len(numbers):
                raise ValueError(f"no choices to measure {name} on: the batch is empty")
            found[f"{name}/{per}/mean"] = numbers.mean().item()
            found[f"{name}/{per}/p99"] = percentile(numbers, 0.99)
    return found


def by_label(values: Mapping[str, Tensor], label: Tensor, per: str) -> dict[str, float]:
    """The mean of each value over the choices of each label: `per` is `position`, `turn`, …"""
    count = label.bincount()
    present = [index for index, many in enumerate(count.tolist()) if many]
    found: dict[str, float] = {}
    for name, value in values.items():
        means = (episode_sum(value.detach(), label) / count).tolist()
        found |= {f"{name}/{per}/{index}/mean": means[index] for index in present}
    return found


def percentile(values: Tensor, fraction: float) -> float:
    """The value that a fraction of them lie below, between neighbours in proportion.

    By sorting: torch's own quantile refuses more than 2^24 values.
    """
    ordered = values.sort().values
    spot = fraction * (len(ordered) - 1)
    low = int(spot)
    high = min(low + 1, len(ordered) - 1)
    return (ordered[low] + (spot - low) * (ordered[high] - ordered[low])).item()
