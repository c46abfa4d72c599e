"""What a policy is: something that makes choices, and can say again how likely they were.

A policy has three methods. `act(observations, noise)` is one turn for each observation: at each
choice the argmax of logp + noise. `gather(turns)` is the turns as a batch to judge, made once and
judged as often as there are updates. `judge(batch, reference)` is what it says of every choice of
the batch, in the order of the turns, with gradients. How a checkpoint lies on disk is not known
here.

Shapes: N choices, A alternatives at each of them.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from kleash.algo import kl
from kleash.seeds import gumbel

# Noise for one choice: of (which observation, its how-manieth choice, among how many), Gumbel.
Noise = Callable[[int, int, int], NDArray[np.float64]]


def keyed_noise(keys: Sequence[tuple[object, ...]], *, first: int = 0) -> Noise:
    """Gumbel noise keyed by (seed, task, rollout) of each observation and by the step.

    `first` is the step of the turn's first choice, where an episode has several turns.
    """
    return lambda index, step, size: gumbel(size, *keys[index], first + step)


def no_noise(index: int, step: int, size: int) -> NDArray[np.float64]:
    """The likeliest alternative is chosen."""
    return np.zeros(size)


@dataclass(frozen=True)
class Judged:
    """What a policy says of each choice of a batch and, where asked for, its reference too."""

    logp: Tensor
    entropy: Tensor
    logp_ref: Tensor | None = None
    exact_kl: Tensor | None = None
    forward_kl: Tensor | None = None


def judge_logits(logits_NA: Tensor, chosen: Tensor, ref_logits_NA: Tensor | None = None) -> Judged:
    """Judge choices from logits over all alternatives; masked ones are -inf on both sides."""
    logp_NA = logits_NA.log_softmax(-1)
    logp = logp_NA.gather(-1, chosen[:, None])[:, 0]
    if ref_logits_NA is None:
        return Judged(logp, kl.entropy(logp_NA))
    logp_ref_NA = ref_logits_NA.detach().log_softmax(-1)
    return Judged(
        logp=logp,
        entropy=kl.entropy(logp_NA),
        logp_ref=logp_ref_NA.gather(-1, chosen[:, None])[:, 0],
        exact_kl=kl.exact(logp_NA, logp_ref_NA),
        forward_kl=kl.forward(logp_NA, logp_ref_NA),
    )


def fingerprint(tensors: Mapping[str, Tensor]) -> str:
    """SHA-256 over `name\\0dtype\\0shape\\0bytes` of every tensor, in the order of their names."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name].detach()
        if hasattr(tensor, "full_tensor"):  # in pieces on several ranks, which all ask at once
            tensor = tensor.full_tensor()
        tensor = tensor.cpu().contiguous()
        kind = str(tensor.dtype).removeprefix("torch.")
        shape = ",".join(map(str, tensor.shape))
        digest.update(f"{name}\0{kind}\0{shape}\0".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


class AdapterOff:
    """The policy without its adapter: whatever is called on it runs with the adapter off."""

    def __init__(self, policy: Any) -> None:
        self.policy = policy

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.policy, name)
        if not callable(found):
            return found

        def without(*args: Any, **kwargs: Any) -> Any:
            with self.policy.adapter_off(), torch.no_grad():
                return found(*args, **kwargs)

        return without


class Reference:
    """What the leash is tied to: a frozen copy, or the policy with its adapter off.

    For kind `path` the policy given is the one loaded from that path; for the others it is the
    policy at the start of the phase. An `ema` in bfloat16 stands still: keep it in float32. A
    `pinned` one lies in the machine's memory, which only some policies can be judged from.
    """

    def __init__(
        self,
        policy: nn.Module,
        kind: str = "start",
        *,
        every: int = 0,
        decay: float = 0.99,
        pinned: bool = False,
    ) -> None:
        self.kind = kind
        self.every = every
        self.decay = decay
        self.module = policy if kind == "adapter_off" else frozen(policy)
        self.device = next(policy.parameters()).device if pinned else None
        if pinned:
            self.module = self.module.pinned()  # type: ignore[operator]
        self.declared: str | None = self.fingerprint()

    @property
    def policy(self) -> Any:
        """What to hand to a policy's `judge`."""
        if self.device is not None:
            return self.module.streamed(self.device)  # type: ignore[operator]
        return AdapterOff(self.module) if self.kind == "adapter_off" else self.module

    @property
    def stands(self) -> bool:
        """Whether it never moves."""
        return self.kind in ("start", "path")

    def tensors(self) -> dict[str, Tensor]:
        """The tensors that make the reference; without the adapter, those that do not train."""
        if self.kind != "adapter_off":
            return dict(self.module.state_dict())
        # Not from its state_dict, which holds the adapter alone where a policy is large.
        held = [*self.module.named_parameters(), *self.module.named_buffers()]
        return {name: tensor for name, tensor in held if not tensor.requires_grad} | {
            f"{name}.{key}": tensor  # what packed weights are multiplied with
            for name, packed in held
            if hasattr(packed, "quant_state")
            for key, tensor in packed.quant_state.as_dict(packed=True).items()
        }

    def fingerprint(self) -> str:
        """The hash of the reference as it is now; the last declared one is `declared`."""
        return fingerprint(self.tensors())

    @torch.no_grad()
    def after_update(self, policy: nn.Module, step: int) -> bool:
        """Follow the policy after update `step`, counted from 1; whether a reset happened.

        A reset calls for a fresh optimiser (ProRL, 2505.24864).
        """
        if self.kind == "ema":
            theirs = policy.state_dict()
            for name, ours in self.module.state_dict().items():
                if ours.is_floating_point():
                    ours.lerp_(theirs[name].to(ours.dtype), 1 - self.decay)
                else:
                    ours.copy_(theirs[name])
            self.declared = None
        elif self.kind == "reset_every" and step % self.every == 0:
            self.module.load_state_dict(policy.state_dict())
            self.declared = self.fingerprint()
            return True
        return False

    def state_dict(self) -> dict[str, Tensor]:
        """What must be kept to go on exactly; nothing where the policy itself holds it."""
        return {} if self.kind == "adapter_off" else self.tensors()

    def load_state_dict(self, tensors: Mapping[str, Tensor]) -> None:
        """Go on from kept tensors."""
        if self.kind != "adapter_off":
            self.module.load_state_dict(dict(tensors), strict=True)
        self.declared = None if self.kind == "ema" else self.fingerprint()


def frozen(module: nn.Module) -> nn.Module:
    """A copy that does not train and does not drop out."""
    return copy.deepcopy(module).eval().requires_grad_(False)
