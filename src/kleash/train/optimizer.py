"""The optimizer of a policy: AdamW, its clipped gradient, and moments that can be kept.

Weights in bfloat16 have one of their own. A weight of 1 in bfloat16 has its neighbour at 1.0078, so
that updates of a usual size are lost when they are rounded to the nearest, and so are those of the
second moment. There weight and moments are worked out in float32 and rounded up or down with the
odds of how near each side is (stochastic rounding, 2010.06192), gradients are summed in float32,
and what is stored is right on average, at 2 bytes each. The draws are named by step, tensor and
place, so that a run that goes on is the run that was stopped. A weight may be in pieces on several
ranks (FSDP2): each rounds its own, with the draws that the whole would have had.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn

from kleash.algo import guard
from kleash.train import ranks
from kleash.train.ranks import first_place, local

CHUNK = 1 << 24
"""Values updated at once where nothing is compiled."""
BETAS, EPSILON, DECAY = (0.9, 0.999), 1e-8, 0.01
"""As torch.optim.AdamW has them."""


class Optimizer:
    """AdamW over what trains in a policy, with a clipped gradient; NaN stops it.

    Where the policy is in pieces on several ranks, the loss is the sum of all ranks' losses, and
    `whole` is the policy that gets the new weights after each step.
    """

    def __init__(
        self,
        policy: nn.Module,
        lr: float,
        clip_norm: float,
        save_batch: Callable[[Any], str],
        *,
        moments: Literal["device", "host"] = "device",
        whole: nn.Module | None = None,
    ) -> None:
        self.policy, self.lr, self.clip_norm = policy, lr, clip_norm
        self.save_batch, self.moments, self.whole = save_batch, moments, whole
        self.updates = 0
        self.reset()

    def reset(self) -> None:
        """Start with empty moments."""
        self.close()
        self.weights = [p for p in self.policy.parameters() if p.requires_grad]
        self.adamw = adamw_of(self.weights, self.lr, self.moments)
        guard.optimiser_complete(self.adamw, self.policy)

    def close(self) -> None:
        """Let go of the gradients, so that the next optimizer gets them."""
        before = getattr(self, "adamw", None)
        if isinstance(before, RoundedAdamW):
            before.gradients.close()

    def step(self, losses: Iterable[Tensor], batch: Any, lr: float | None = None) -> float:
        """One update on the sum of the losses, one after the other; the norm before clipping."""
        self.adamw.zero_grad()
        checked = []
        for number, loss in enumerate(losses):
            if self.whole is not None:  # FSDP takes means of gradients, where sums are meant
                loss = loss * ranks.count()
            loss.backward()
            checked.append((f"the loss of part {number}" if number else "the loss", loss.detach()))
        norm = self.clip()
        guard.finite([*checked, ("the gradient", norm)], lambda: self.save_batch(batch))
        for group in self.adamw.param_groups:
            group["lr"] = self.lr if lr is None else lr
        self.adamw.step()
        self.updates += 1
        if self.whole is not None:
            gather_weights(self.policy, self.whole)
        return norm.item()

    def clip(self) -> Tensor:
        """The norm of the whole gradient; what is stepped by has at most the largest."""
        if isinstance(self.adamw, RoundedAdamW):
            return self.adamw.clip(self.clip_norm)
        norm = torch.nn.utils.clip_grad_norm_(self.weights, self.clip_norm)
        return norm.full_tensor() if hasattr(norm, "full_tensor") else norm

    def tensors(self) -> dict[str, Tensor]:
        """The moments, to be kept."""
        return {
            f"optimiser.{index}.{key}": value
            for index, state in self.adamw.state_dict()["state"].items()
            for key, value in state.items()
        }


def adamw_of(
    weights: Sequence[nn.Parameter], lr: float, moments: Literal["device", "host"] = "device"
) -> torch.optim.Optimizer:
    """AdamW; of weights in bfloat16 the one that loses no small updates."""
    if all(weight.dtype == torch.bfloat16 for weight in weights):
        return RoundedAdamW(weights, lr, moments=moments)
    return torch.optim.AdamW(weights, lr=lr, fused=True)


@torch.no_grad()
def gather_weights(pieces: nn.Module, whole: nn.Module) -> None:
    """Put the weights of all ranks into a policy that is whole, one tensor after the other."""
    held = pieces.state_dict()
    for name, tensor in whole.state_dict().items():
        tensor.copy_(held[name].full_tensor())


# --- in bfloat16


class WideGradients:
    """The gradients of weights, summed in float32 as each is ready; none is kept in bfloat16.

    Sums of many parts in bfloat16 would lose what is below a 256th of them.
    """

    def __init__(self, weights: Iterable[nn.Parameter]) -> None:
        self.sums: dict[nn.Parameter, Tensor] = {}
        self.fresh: set[nn.Parameter] = set()
        self.hooks = []
        for weight in weights:
            self.sums[weight] = torch.zeros_like(local(weight), dtype=torch.float32)
            self.hooks.append(weight.register_post_accumulate_grad_hook(self.take))

    @torch.no_grad()
    def take(self, weight: Tensor) -> None:
        """Add what the last backward pass brought, and forget it."""
        assert isinstance(weight, nn.Parameter)
        assert weight.grad is not None
        if weight in self.fresh:
            self.sums[weight].copy_(local(weight.grad))
            self.fresh.remove(weight)
        else:
            self.sums[weight].add_(local(weight.grad))
        weight.grad = None

    def forget(self) -> None:
        """Begin anew: the first to come is stored as it is."""
        self.fresh = set(self.sums)

    def settle(self) -> None:
        """Weights that no gradient came for have none."""
        for weight in self.fresh:
            self.sums[weight].zero_()
        self.fresh = set()

    def close(self) -> None:
        """Take nothing any more."""
        for hook in self.hooks:
            hook.remove()


class RoundedAdamW(torch.optim.Optimizer):
    """AdamW whose weights and moments stay in the weights' precision, rounded at random.

    It keeps the gradients itself (`gradients`); `clip` and `step` go over them once each. With
    `moments` on the `host` they lie in the machine's memory, and come to the weights' device one
    tensor at a time: the same numbers, for four bytes a weight that travel twice in every step.
    """

    def __init__(
        self,
        weights: Iterable[nn.Parameter],
        lr: float,
        *,
        backend: str | None = None,
        moments: Literal["device", "host"] = "device",
    ) -> None:
        held = list(weights)
        super().__init__(held, {"lr": lr})
        self.gradients = WideGradients(held)
        self.gradients.forget()
        self.away = moments == "host"
        self.scale = torch.ones((), device=held[0].device)
        large = held[0].device.type == "cuda"
        self.backend = ("inductor" if large else "") if backend is None else backend
        for weight in held:  # at once, so that what is left of the memory is known
            self.state[weight] = {
                "step": torch.zeros((), dtype=torch.float32),
                "exp_avg": empty_moment(weight, moments),
                "exp_avg_sq": empty_moment(weight, moments),
            }

    def zero_grad(self, set_to_none: bool = True) -> None:  # noqa: FBT001 (torch's own signature)
        """Begin a new sum."""
        self.gradients.forget()
        self.scale.fill_(1.0)

    @torch.no_grad()
    def clip(self, most: float) -> Tensor:
        """The norm of all gradients; the next step takes them as if it were at most `most`."""
        self.gradients.settle()
        norms = torch._foreach_norm(list(self.gradients.sums.values()))
        norm: Tensor = torch.stack(norms).norm()
        if hasattr(self.param_groups[0]["params"][0], "full_tensor"):
            squares = norm.square()
            torch.distributed.all_reduce(squares)
            norm = squares.sqrt()
        self.scale = (most / (norm + 1e-6)).clamp(max=1.0)
        return norm

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """One update of every weight."""
        self.gradients.settle()
        group = self.param_groups[0]
        number = int(self.state[group["params"][0]]["step"]) + 1
        fixes = [1 - beta**number for beta in BETAS]
        numbers = torch.tensor([group["lr"], *fixes, 0.0], device=self.scale.device)
        numbers[3] = self.scale
        seeds = [seed(number, index) for index in range(len(group["params"]))]
        starts = torch.tensor(seeds, dtype=torch.int32, device=self.scale.device)
        for weight, start in zip(group["params"], starts, strict=True):
            state, named = self.state[weight], start + first_place(weight)
            state["step"].fill_(number)
            kept = [state["exp_avg"], state["exp_avg_sq"]]
            here = kept
            if self.away:
                here = [each.to(weight.device, non_blocking=True, copy=True) for each in kept]
            flat = [local(each).view(-1) for each in (weight, self.gradients.sums[weight], *here)]
            if self.backend:
                compiled(self.backend)(*flat, numbers, named)
            else:
                for first in range(0, len(flat[0]), CHUNK):
                    some = [each[first : first + CHUNK] for each in flat]
                    update(some[0], some[1], some[2], some[3], numbers, named + first)
            if self.away:
                for home, moved in zip(kept, here, strict=True):
                    home.copy_(moved)

    @torch.no_grad()
    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from kept moments; those of bfloat16 weights stay in bfloat16."""
        for index, weight in enumerate(self.param_groups[0]["params"]):
            for name, kept in state_dict["state"][index].items():
                self.state[weight][name].copy_(kept)


def empty_moment(weight: Tensor, place: str) -> Tensor:
    """Zeros like a weight, beside it or on the host, pinned where a GPU is to fetch them."""
    if place == "device":
        return torch.zeros_like(weight)
    pinned = weight.device.type == "cuda"
    return torch.zeros(weight.shape, dtype=weight.dtype, device="cpu", pin_memory=pinned)


def update(
    weight: Tensor, gradient: Tensor, mean: Tensor, square: Tensor, numbers: Tensor, named: Tensor
) -> None:
    """One step of AdamW (1711.05101) in place, worked out in float32; all are flat."""
    lr, fix_mean, fix_square, scale = numbers.unbind()
    g = gradient.float() * scale
    m = mean.float() * BETAS[0] + (1 - BETAS[0]) * g
    v = square.float() * BETAS[1] + (1 - BETAS[1]) * g * g
    towards = (m / fix_mean) / ((v / fix_square).sqrt() + EPSILON)
    w = weight.float() * (1 - lr * DECAY) - lr * towards
    places = torch.arange(weight.shape[0], dtype=torch.int32, device=weight.device)
    first = mixed(places + named)
    second = mixed(first ^ 0x2545F491)
    weight.copy_(rounded(w, first, weight.dtype))
    mean.copy_(rounded(m, first >> 16, mean.dtype))
    square.copy_(rounded(v, second, square.dtype))


def rounded(value: Tensor, draws: Tensor, dtype: torch.dtype) -> Tensor:
    """To bfloat16 by the low 16 bits of the draws; wider types need no rounding."""
    if dtype != torch.bfloat16:
        return value.to(dtype)
    # bfloat16 is the upper half of a float32: a carry out of the lower half is the next one up.
    bits = value.view(torch.int32) + (draws & 0xFFFF)
    return (bits & -0x10000).view(torch.float32).to(torch.bfloat16)


def mixed(numbers: Tensor) -> Tensor:
    """Well spread 32-bit numbers from consecutive ones (Wellons's lowbias32); products wrap."""
    numbers = (numbers ^ ((numbers >> 16) & 0xFFFF)) * 0x7FEB352D
    numbers = (numbers ^ ((numbers >> 15) & 0x1FFFF)) * (0x846CA68B - (1 << 32))
    return numbers ^ ((numbers >> 16) & 0xFFFF)


def seed(step: int, index: int) -> int:
    """Where the draws of a tensor in a step begin, as a 32-bit number with its sign."""
    whole = (step * 0x9E3779B1 + index * 0x85EBCA77) & 0xFFFFFFFF
    return whole - (1 << 32) if whole >> 31 else whole


@functools.cache
def compiled(backend: str) -> Callable[..., None]:
    """`update` in one pass over the memory, for tensors of any length."""
    made: Callable[..., None] = torch.compile(update, dynamic=True, backend=backend)
    return made
