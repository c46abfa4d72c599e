"""The way down: an optimiser, its clipped gradient, and moments that can be kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn

from kleash import guard
from kleash.train.rounded import RoundedAdamW


class Descent:
    """An optimiser over what trains in a policy, with a clipped gradient; NaN stops it."""

    def __init__(
        self,
        policy: nn.Module,
        lr: float,
        clip_norm: float,
        keep: Callable[[Any], str],
        *,
        moments: Literal["device", "host"] = "device",
    ) -> None:
        self.policy, self.lr, self.clip_norm, self.keep = policy, lr, clip_norm, keep
        self.step, self.moments = 0, moments
        self.renew()

    def renew(self) -> None:
        """Start with empty moments."""
        self.close()
        self.trained = [p for p in self.policy.parameters() if p.requires_grad]
        self.optimiser = optimiser_of(self.trained, self.lr, self.moments)
        guard.optimiser_complete(self.optimiser, self.policy)

    def close(self) -> None:
        """Let go of the gradients, so that the next optimiser gets them."""
        held = getattr(self, "optimiser", None)
        if isinstance(held, RoundedAdamW):
            held.gradients.close()

    def down(self, losses: Iterable[Tensor], batch: Any, rate: float | None = None) -> float:
        """One update on the sum of the losses, one after the other; the norm before clipping."""
        self.optimiser.zero_grad()
        checked = []
        for number, loss in enumerate(losses):
            loss.backward()
            checked.append((f"the loss of part {number}" if number else "the loss", loss.detach()))
        norm = self.clip()
        guard.finite([*checked, ("the gradient", norm)], lambda: self.keep(batch))
        for group in self.optimiser.param_groups:
            group["lr"] = self.lr if rate is None else rate
        self.optimiser.step()
        self.step += 1
        return norm.item()

    def clip(self) -> Tensor:
        """The norm of the gradient; what is stepped by has at most the largest."""
        if isinstance(self.optimiser, RoundedAdamW):
            return self.optimiser.clip(self.clip_norm)
        return torch.nn.utils.clip_grad_norm_(self.trained, self.clip_norm)

    def tensors(self) -> dict[str, Tensor]:
        """The moments, to be kept."""
        return {
            f"optimiser.{index}.{key}": value
            for index, state in self.optimiser.state_dict()["state"].items()
            for key, value in state.items()
        }

    def load(self, tensors: Mapping[str, Tensor], step: int) -> None:
        """Go on from kept moments."""
        state: dict[int, dict[str, Tensor]] = {}
        for key, tensor in tensors.items():
            kind, _, rest = key.partition(".")
            if kind == "optimiser":
                index, _, field = rest.partition(".")
                state.setdefault(int(index), {})[field] = tensor
        groups = self.optimiser.state_dict()["param_groups"]
        self.optimiser.load_state_dict({"state": state, "param_groups": groups})
        self.step = step


def optimiser_of(
    trained: Sequence[nn.Parameter], lr: float, moments: Literal["device", "host"] = "device"
) -> torch.optim.Optimizer:
    """AdamW; of weights in bfloat16 the one that loses no small updates."""
    if all(weight.dtype == torch.bfloat16 for weight in trained):
        return RoundedAdamW(trained, lr, moments=moments)
    return torch.optim.AdamW(trained, lr=lr, fused=True)
