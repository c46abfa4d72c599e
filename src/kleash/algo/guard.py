"""What stops a run or marks it. Each guard is a function, and says what is wrong, why, what to do.

A guard that stops raises; one that marks returns a finding, or none. When they are called is the
business of training and evaluation, not known here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from kleash.algo.grpo import group_spread, in_reward_units
from kleash.algo.kl import k3
from kleash.algo.policy import fingerprint
from kleash.errors import CheckpointError, GuardError
from kleash.seeds import torch_generator
from kleash.types import BROKEN_SHARE

KL_AT_START = 1e-5  # nats, in float32
HALF_KL_AT_START = 0.025  # the same in bfloat16, where both are rounded, each in its own way
RATIO_AT_START = 1e-4
SAMPLED_TOLERANCE = 1e-4  # nats per choice; an engine in another precision states its own
GPU_TOLERANCE = 1e-3  # the same in float32 on a GPU, whose kernels add up in another order
HALF_TOLERANCE = 0.5  # the same in bfloat16, where an unlikely id's log-probability is coarse
# KL of a sampler whose gap is weighed, nats per choice. Where log-ratios are normal, weights leave
# exp(-2·KL) of a batch's worth: 82 % at the first, 2 % at the second.
FAR_SAMPLER, OTHER_SAMPLER = 0.1, 2.0
SIGNAL_SHARE = 0.1
LEARNT_SHARE = 0.05
DRAWN = 65_521  # draws for a tensor; a prime, so that the rows of a matrix do not get equal noise


@dataclass(frozen=True)
class Finding:
    """Something a guard noticed that does not stop the run. A `void` cell is in no comparison."""

    code: str
    severity: Literal["note", "warning", "void"]
    message: str


def ratio_one_at_start(logp: Tensor, logp_old: Tensor) -> None:
    """Before the first update every ratio to the policy that sampled is 1."""
    off = ((logp - logp_old).exp() - 1).abs().max().item()
    if not off <= RATIO_AT_START:
        raise GuardError(
            f"a ratio is {off:.3g} away from 1 before any update (at most {RATIO_AT_START:g}):"
            " the policy is judged in another mode than it sampled in; turn dropout off"
        )


def zero_kl_at_start(
    logp: Tensor,
    logp_ref: Tensor,
    exact_kl: Tensor | None,
    *,
    reference: str,
    tolerance: float = KL_AT_START,
) -> None:
    """Before the first update KL to the reference is 0, if the reference is the policy itself."""
    if reference not in ("start", "adapter_off"):
        return
    values = k3(logp, logp_ref) if exact_kl is None else exact_kl
    most = values.detach().abs().max().item()
    if not most <= tolerance:
        raise GuardError(
            f"KL to the reference {reference!r} is {most:.3g} nats before any update"
            f" (at most {tolerance:g}): reference and policy are not the same model in the same"
            " mode; turn dropout off and take the reference after warm-up"
        )


def sampled_as_recomputed(
    sampled: Tensor,
    recomputed: Tensor,
    *,
    tolerance: float = SAMPLED_TOLERANCE,
    otherwise: str = "",
) -> None:
    """Log-probabilities reported when sampling are those recomputed for training.

    `otherwise` is what else can be done about it than to make them so.
    """
    if sampled.shape != recomputed.shape:
        raise GuardError(
            f"{len(sampled)} choices were sampled and {len(recomputed)} judged:"
            " gather the same turns that were sampled"
        )
    off = (sampled - recomputed).detach().abs().max().item()
    if not off <= tolerance:
        raise GuardError(
            f"a log-probability differs by {off:.3g} nats between sampling and training (at most"
            f" {tolerance:g}): use the same weights, temperature, masks and precision in both"
            f"{otherwise}"
        )


def same_sampler(kl: float) -> None:
    """Where a sampler may differ, it is still the policy that learns, a little otherwise."""
    if not kl <= OTHER_SAMPLER:
        raise GuardError(
            f"KL of the sampler to the policy that learns is {kl:.3g} nats for each choice (at most"
            f" {OTHER_SAMPLER:g}): another policy sampled, and no weights mend that; look whether"
            " the engine has the policy's weights and temperature, or lower lr"
        )


def sampler_near(kl: float) -> Finding | None:
    """Marks an epoch whose sampler was so far from the policy that weights of it are noise."""
    if kl <= FAR_SAMPLER:
        return None
    return Finding(
        "far-sampler",
        "warning",
        f"KL of the sampler to the policy that learns is {kl:.3g} nats for each choice: weights for"
        f" that gap leave {math.exp(-2 * kl):.0%} of a batch's worth; lower sampler.staleness or"
        " lr, or have the engine compute as the trainer does",
    )


def load_strictly(module: nn.Module, tensors: Mapping[str, Tensor], *, source: str = "") -> None:
    """Load weights only if every tensor fits: none missing, none left over, none reshaped."""
    fits_strictly(module, tensors, source=source)
    module.load_state_dict(dict(tensors), strict=True)


def fits_strictly(module: nn.Module, tensors: Mapping[str, Tensor], *, source: str = "") -> None:
    """Whether they could be loaded so: else an error that names the tensors."""
    own = module.state_dict()
    missing = [name for name in own if name not in tensors]
    unexpected = [name for name in tensors if name not in own]
    reshaped = [n for n in own if n in tensors and own[n].shape != tensors[n].shape]
    if not (missing or unexpected or reshaped):
        return
    total = sum(tensor.numel() for tensor in own.values())
    parts = [
        f"{len(names)} {what} ({sum(t[n].numel() for n in names):,} values: {listed(names)})"
        for what, names, t in (
            ("missing", missing, own),
            ("unexpected", unexpected, tensors),
            ("of another shape", reshaped, own),
        )
        if names
    ]
    raise CheckpointError(
        f"{source or 'these weights'} do not fit a model of {total:,} values:"
        f" tensors {', '.join(parts)}; load a checkpoint of this very model, or rename its tensors"
    )


def listed(names: Sequence[str], *, most: int = 4) -> str:
    """The first few names, and how many more there are."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def same_weights(trained: str, evaluated: str) -> None:
    """The weights being evaluated are those that were trained, by hash of the loaded tensors."""
    if trained != evaluated:
        raise CheckpointError(
            f"the weights loaded for evaluation ({evaluated[:12]}) are not those that were trained"
            f" ({trained[:12]}): every score would be another model's; load the run's checkpoint"
        )


@torch.no_grad()
def every_tensor_matters(module: nn.Module, output: Callable[[], Tensor]) -> None:
    """Disturbing any one trainable tensor changes the output, so none was forgotten on the way."""
    trained = {name: p for name, p in module.named_parameters() if p.requires_grad}
    kept = {name: p.clone() for name, p in trained.items()}
    silent = []
    try:
        # From a disturbed point: next to a LoRA matrix of zeros, its twin has no effect.
        for name, parameter in trained.items():
            disturb(parameter, name, "all")
        before = output().clone()
        for name, parameter in trained.items():
            here = parameter.clone()
            disturb(parameter, name, "one")
            if torch.equal(before, output()):
                silent.append(name)
            parameter.copy_(here)
    finally:
        for name, parameter in trained.items():
            parameter.copy_(kept[name])
    if silent:
        raise GuardError(
            f"{len(silent)} of {len(trained)} trainable tensors do not change the output"
            f" ({listed(silent)}): training them does nothing; freeze them or mend the model"
        )


def disturb(parameter: Tensor, *names: object) -> None:
    """Add noise as large as a tenth of the tensor's own size, or of 1 if it is all zero.

    A large tensor gets the same few draws again and again: 8 billion take minutes of one core.
    """
    count = parameter.numel()
    noise = torch.randn(min(count, DRAWN), generator=torch_generator("guard", *names))
    norm = torch.linalg.vector_norm(parameter.detach(), dtype=torch.float64).item()
    size = norm / math.sqrt(count) or 1.0
    whole = (0.1 * size * noise.to(parameter)).repeat(-(-count // DRAWN))[:count]
    parameter.add_(whole.view(parameter.shape))


def optimiser_complete(optimiser: torch.optim.Optimizer, module: nn.Module) -> None:
    """The optimiser holds exactly the parameters that train."""
    held = {id(p) for group in optimiser.param_groups for p in group["params"]}
    named = dict(module.named_parameters())
    missing = [n for n, p in named.items() if p.requires_grad and id(p) not in held]
    frozen = [n for n, p in named.items() if not p.requires_grad and id(p) in held]
    strangers = len(held - {id(p) for p in named.values()})
    if missing or frozen or strangers:
        raise GuardError(
            f"the optimiser misses {len(missing)} trainable tensors ({listed(missing) or 'none'}),"
            f" holds {len(frozen)} frozen ones ({listed(frozen) or 'none'}) and {strangers} that"
            " are not the model's: make it from the model's trainable parameters, after freezing"
        )


def snapshot(module: nn.Module) -> dict[str, str]:
    """The hash of every parameter, to compare with later."""
    return {name: fingerprint({name: p}) for name, p in module.named_parameters()}


def moved_as_meant(before: Mapping[str, str], module: nn.Module, *, rate: float = math.inf) -> None:
    """Since the snapshot every trained tensor has moved and no frozen one has.

    Ask only after an update that had a signal: without one nothing should move. What an update at
    this learning rate is too small to be seen in may stand still.
    """
    now = snapshot(module)
    named = dict(module.named_parameters())
    training = {name: p.requires_grad for name, p in named.items()}
    still = [n for n in now if training[n] and now[n] == before[n] and seen_to_move(named[n], rate)]
    drifted = [n for n in now if not training[n] and now[n] != before[n]]
    if still:
        raise GuardError(
            f"{len(still)} of {sum(training.values())} trained tensors did not move"
            f" ({listed(still)}): no gradient reaches them; freeze them or mend the loss"
        )
    if drifted:
        raise GuardError(
            f"{len(drifted)} frozen tensors moved ({listed(drifted)}): something writes to them;"
            " look for buffers that train in train mode, or a second optimiser"
        )


def seen_to_move(parameter: Tensor, rate: float) -> bool:
    """Whether a tenth of AdamW's largest update is not lost in rounding everywhere."""
    finest = parameter.detach().abs().min().item() * torch.finfo(parameter.dtype).eps / 2
    return 0.1 * rate >= finest


def reference_held(declared: str | None, now: str) -> None:
    """The reference's hash is the one last declared; one that always follows declares none."""
    if declared is not None and declared != now:
        raise GuardError(
            f"the reference changed from {declared[:12]} to {now[:12]} without a declared reset:"
            " KL would be measured from a moving point; keep it out of the optimiser"
        )


def share_with_signal(reward: Tensor, group: Tensor) -> float:
    """The share of groups whose episodes differ in reward; only these teach anything."""
    differs = group_spread(reward, group) > 0
    return int((group[differs].bincount() > 0).sum()) / int((group.bincount() > 0).sum())


def enough_signal(share: float, groups: int, *, least: float = SIGNAL_SHARE) -> Finding | None:
    """Marks a run in which few groups have any signal."""
    if share >= least and share > 0:
        return None
    with_signal = round(share * groups)
    return Finding(
        "no-signal" if with_signal == 0 else "little-signal",
        "warning",
        f"{with_signal} of {groups} groups have any signal ({share:.1%}, should be {least:.0%} or"
        " more): every episode of the others had the same reward; use larger groups, harder or"
        " easier tasks, or a finer reward",
    )


def uniform_loss(candidates: int, shots: int) -> float:
    """What choosing blindly costs: ln K + ln(K-1) + … nats, one term per shot."""
    return sum(math.log(candidates - chosen) for chosen in range(shots))


def loss_beside_uniform(
    loss: float, candidates: int, shots: int, *, least: float = LEARNT_SHARE
) -> Finding | None:
    """Marks a loss that is hardly below that of a blind choice."""
    blind = uniform_loss(candidates, shots)
    if blind > 0 and loss <= (1 - least) * blind:
        return None
    return Finding(
        "near-uniform",
        "warning",
        f"loss {loss:.2f} beside {blind:.2f} for a blind choice of {shots} from {candidates}:"
        " the policy has learnt almost nothing; train longer, or look at the targets",
    )


def pool_fits(size: int, shots: int, *, made_by: str, trained_with: str) -> Finding | None:
    """The pool at evaluation is made as in training and holds at least as many as are to be chosen.

    One that holds no more leaves only their order to choose, and is marked.
    """
    if made_by != trained_with:
        raise GuardError(
            f"the pool was made by {made_by!r}, in training by {trained_with!r}: the policy would"
            " choose from what it never saw; evaluate with the pools of training"
        )
    if size < shots:
        raise GuardError(
            f"a pool of {size} cannot fill {shots} shots: enlarge the pool or ask for fewer shots"
        )
    if size > shots:
        return None
    return Finding(
        "no-choice",
        "warning",
        f"a pool of {size} for {shots} shots: only their order is left to choose, so policies can"
        " hardly differ; enlarge the pool",
    )


def leash_as_asked(
    change: float, coefficient: float, value: float, *, where: str, size: float = 1.0
) -> None:
    """What the leash changed is coefficient × the value that is logged, to one part in a million.

    `change` is what it added to the loss, or took off the mean advantage or reward; `size` is how
    large these are themselves, since a difference of two float32 numbers is no finer than they are.
    """
    asked = coefficient * value
    if not abs(change - asked) <= 1e-6 * max(abs(asked), size):
        raise GuardError(
            f"the leash changed the {where} by {change:.6g}, but coefficient {coefficient:g} ×"
            f" value {value:.6g} is {asked:.6g}: the coefficient asked for is not the one applied;"
            " look where the leash is scaled or clamped"
        )


def coefficient_unit(advantage: str, form: str, *, scaled: bool) -> Finding | None:
    """Marks a run whose coefficient is not in units of reward, so that it cannot be compared."""
    if in_reward_units(advantage, form, scaled=scaled):
        return None
    return Finding(
        "coefficient-unit",
        "warning",
        f"coefficient not in reward units: advantage {advantage!r} rescales the reward and not the"
        f" leash {form!r}, so the same number pulls differently in every group; use"
        " 'leave_one_out', or multiply the leash by the same unit",
    )


def finite(values: Iterable[tuple[str, Tensor | float]], save: Callable[[], object]) -> None:
    """NaN or infinity stops the run at its step, after `save` has kept the batch."""
    for name, value in values:
        tensor = torch.as_tensor(value).detach()
        bad = int((~tensor.isfinite()).sum())
        if bad:
            kept = save()
            raise GuardError(
                f"{bad} of {tensor.numel()} values of {name} are NaN or infinite: going on would"
                f" spread them; the batch was kept ({kept}), look at it or lower the learning rate"
            )


def few_broken(
    broken: int, count: int, *, most: float = BROKEN_SHARE, why: str = ""
) -> Finding | None:
    """Voids a cell with too many broken episodes or answers; `why` is the error of one of them."""
    if count == 0:
        raise GuardError(
            "nothing was measured: a cell without items has no score; look at its data"
        )
    if broken <= most * count:
        return None
    return Finding(
        "broken",
        "void",
        f"{broken} of {count} broke ({broken / count:.1%}, at most {most:.0%}): the mean of the"
        " rest could flatter the arm; mend what broke and measure again"
        + (f" (one of them: {why})" if why else ""),
    )
