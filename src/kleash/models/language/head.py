"""The last product of a language model, judged in chunks: all logits are never there at once.

Log-probability, entropy and both KLs come out of one pass; the way back makes the logits again.

Shapes: N choices, V ids, D width.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from kleash.algo.policy import Judged

CHUNK = {"cpu": 1 << 24}
"""Logits that are there at once, by kind of device: 64 MiB of them in float32."""
LARGER_CHUNK = 1 << 26
"""The same for any other kind: on an H200 a fifth faster than 2^24, and 2^28 is hardly more so."""
COMPILED_ROWS = 512
"""Choices in a chunk where chunks are compiled: all have one shape, filled up with nothing."""
ROWS_BACK = 8192
"""Choices whose gradients of logits are there at once, where chunks are compiled."""


@dataclass(frozen=True)
class Head:
    """Hidden states and what turns them into logits; both may be a reference's."""

    hidden_ND: Tensor
    weight_VD: Tensor
    bias_V: Tensor | None = None

    def take(self, rows: slice | Tensor) -> Head:
        """The head at some of the choices."""
        return Head(self.hidden_ND[rows], self.weight_VD, self.bias_V)

    def logp(self, temperature: float) -> Tensor:
        """Log-probabilities of every id at every choice, in float32 or better."""
        logits_NV = self.hidden_ND @ self.weight_VD.T
        if self.bias_V is not None:
            logits_NV = logits_NV + self.bias_V
        if logits_NV.dtype not in (torch.float32, torch.float64):
            logits_NV = logits_NV.float()
        return (logits_NV if temperature == 1 else logits_NV / temperature).log_softmax(-1)


def judge_hidden(
    own: Head,
    chosen: Tensor,
    reference: Head | None = None,
    *,
    temperature: float = 1.0,
    chunk: int | None = None,
    backend: str = "",
) -> Judged:
    """What `policy.judge_logits` says of the same logits, at most `chunk` of them at a time.

    With a backend chunks are compiled, and have `COMPILED_ROWS` choices.
    """
    count = len(chosen)
    if backend:
        more = -count % COMPILED_ROWS
        own, chosen = filled(own, more), F.pad(chosen, (0, more))
        reference = None if reference is None else filled(reference, more)
        rows = COMPILED_ROWS
    else:
        chunk = chunk or CHUNK.get(chosen.device.type, LARGER_CHUNK)
        rows = max(1, chunk // len(own.weight_VD))
    found = _Judge.apply(  # type: ignore[no-untyped-call]
        own.hidden_ND, own.weight_VD, own.bias_V, chosen, reference, (temperature, rows, backend)
    )
    return Judged(*(each[:count] for each in found) if backend else found)


def filled(head: Head, more: int) -> Head:
    """With so many choices more, of which nothing will be asked."""
    return Head(F.pad(head.hidden_ND, (0, 0, 0, more)), head.weight_VD, head.bias_V)


def told(
    own: Head, chosen: Tensor, reference: Head | None, temperature: float
) -> tuple[Tensor, ...]:
    """All that is said of a chunk."""
    logp_NV = own.logp(temperature)
    p_NV = logp_NV.exp()
    at_N1 = chosen[:, None]
    found = [logp_NV.gather(1, at_N1)[:, 0], -(p_NV * logp_NV).sum(-1)]
    if reference is not None:
        ref_NV = reference.logp(temperature)
        gap_NV = logp_NV - ref_NV
        exact, forward = (p_NV * gap_NV).sum(-1), -(ref_NV.exp() * gap_NV).sum(-1)
        found += [ref_NV.gather(1, at_N1)[:, 0], exact, forward]
    return tuple(found)


@functools.cache
def ways(backend: str) -> tuple[Callable[..., tuple[Tensor, ...]], Callable[..., Tensor]]:
    """Both ways through a chunk, compiled where there is a backend."""
    if not backend:
        return told, to_logits
    return (
        torch.compile(told, dynamic=False, backend=backend),
        torch.compile(narrow_to_logits, dynamic=False, backend=backend),
    )


class _Judge(torch.autograd.Function):
    """Both ways of `judge_hidden`: with p = π, q = π_ref and z a logit after the temperature,

    d log p(a)/dz = 1[a] - p, dH/dz = -p(log p + H), dKL(p‖q)/dz = p(log p - log q - KL),
    dKL(q‖p)/dz = p - q.
    """

    @staticmethod
    def forward(
        ctx: Any,
        hidden_ND: Tensor,
        weight_VD: Tensor,
        bias_V: Tensor | None,
        chosen: Tensor,
        reference: Head | None,
        how: tuple[float, int, str],
    ) -> tuple[Tensor, ...]:
        temperature, rows, backend = how
        own, tell = Head(hidden_ND, weight_VD, bias_V), ways(backend)[0]
        parts = []
        for part in chunks(len(chosen), rows):
            theirs = None if reference is None else reference.take(part)
            parts.append(tell(own.take(part), chosen[part], theirs, temperature))
        values = tuple(torch.cat(column) for column in zip(*parts, strict=True))
        if reference is not None:
            ctx.mark_non_differentiable(values[2])
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(hidden_ND, weight_VD, bias_V, chosen, *values)
        # The reference's tensors take no gradient, so that nothing is lost by keeping them so.
        ctx.reference, ctx.how = reference, how
        return values

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        hidden_ND, weight_VD, bias_V, chosen, _, *values = ctx.saved_tensors
        chunk = Chunk(ctx, Head(hidden_ND, weight_VD, bias_V), chosen, values, grads)
        hidden, weight, bias = ctx.needs_input_grad[:3]
        d_hidden_ND = torch.empty_like(hidden_ND) if hidden else None
        d_weight_VD: Tensor | None = None
        d_bias_V: Tensor | None = None
        for part in chunks(len(chosen), ROWS_BACK if ctx.how[2] else ctx.how[1]):
            d_NV = chunk.all_of(part)
            narrow_NV = d_NV.to(hidden_ND.dtype)
            if d_hidden_ND is not None:
                torch.mm(narrow_NV, weight_VD, out=d_hidden_ND[part])
            if weight:
                d_weight_VD = summed(d_weight_VD, narrow_NV.T @ hidden_ND[part])
            if bias:
                d_bias_V = summed(d_bias_V, d_NV.sum(0))
        return (
            d_hidden_ND,
            None if d_weight_VD is None else d_weight_VD.to(weight_VD.dtype),
            None if d_bias_V is None else d_bias_V.to(weight_VD.dtype),
            *(None,) * 3,
        )


@dataclass(frozen=True)
class Chunk:
    """What the way back needs of a chunk."""

    ctx: Any
    own: Head
    chosen: Tensor
    values: list[Tensor]
    grads: tuple[Tensor | None, ...]

    def all_of(self, part: slice) -> Tensor:
        """The gradient with respect to the logits of several chunks, narrow if compiled."""
        _, rows, backend = self.ctx.how
        if not backend:
            return self.of(part)
        d_NV = self.own.hidden_ND.new_empty(part.stop - part.start, len(self.own.weight_VD))
        for at in range(part.start, part.stop, rows):
            d_NV[at - part.start : at - part.start + rows] = self.of(slice(at, at + rows))
        return d_NV

    def of(self, part: slice) -> Tensor:
        """The same of one chunk."""
        temperature, _, backend = self.ctx.how
        g_logp, g_entropy, _, g_exact, g_forward = (
            None if grad is None else grad[part, None]
            for grad in (*self.grads, None, None, None)[:5]
        )
        tied = g_exact is not None or g_forward is not None
        return ways(backend)[1](
            self.own.take(part),
            self.chosen[part, None],
            self.ctx.reference.take(part) if tied else None,
            (g_logp, g_entropy, g_exact, g_forward),
            (self.values[0][part, None], self.values[2 if tied else 0][part, None]),
            temperature,
        )


def summed(so_far: Tensor | None, more: Tensor) -> Tensor:
    """The sum of several, in float32 or better."""
    if so_far is None:
        return more
    return so_far.to(torch.promote_types(so_far.dtype, torch.float32)).add_(more)


def to_logits(
    own: Head,
    chosen_N1: Tensor,
    reference: Head | None,
    grads: tuple[Tensor | None, ...],
    values: tuple[Tensor, Tensor],
    temperature: float,
) -> Tensor:
    """The gradient with respect to a chunk of the logits, from entropy and exact KL as known."""
    g_logp, g_entropy, g_exact, g_forward = grads
    entropy, exact = values
    logp_NV = own.logp(temperature)
    p_NV = logp_NV.exp()
    d_NV = torch.zeros_like(p_NV)
    if g_logp is not None:
        d_NV.addcmul_(p_NV, g_logp, value=-1).scatter_add_(1, chosen_N1, g_logp)
    if g_entropy is not None:
        d_NV.addcmul_(p_NV, g_entropy * (logp_NV + entropy), value=-1)
    if reference is not None:
        ref_NV = reference.logp(temperature)
        if g_exact is not None:
            d_NV.addcmul_(p_NV, g_exact * (logp_NV - ref_NV - exact))
        if g_forward is not None:
            d_NV.addcmul_(p_NV - ref_NV.exp(), g_forward)
    return d_NV if temperature == 1 else d_NV.div_(temperature)


def narrow_to_logits(own: Head, chosen_N1: Tensor, reference: Head | None, *given: Any) -> Tensor:
    """The same for a compiler: one pass over the chunk, in the precision of what it multiplies."""
    (g_logp, g_entropy, g_exact, g_forward), (entropy, exact), temperature = given
    logp_NV = own.logp(temperature)
    p_NV = logp_NV.exp()
    d_NV = torch.zeros_like(p_NV)
    if g_logp is not None:
        ids = torch.arange(p_NV.shape[1], device=p_NV.device)
        d_NV = d_NV + g_logp * ((ids == chosen_N1).to(p_NV.dtype) - p_NV)
    if g_entropy is not None:
        d_NV = d_NV - p_NV * g_entropy * (logp_NV + entropy)
    if reference is not None:
        ref_NV = reference.logp(temperature)
        if g_exact is not None:
            d_NV = d_NV + p_NV * g_exact * (logp_NV - ref_NV - exact)
        if g_forward is not None:
            d_NV = d_NV + (p_NV - ref_NV.exp()) * g_forward
    return (d_NV if temperature == 1 else d_NV / temperature).to(own.hidden_ND.dtype)


def chunks(count: int, rows: int) -> list[slice]:
    """Slices of at most that many rows; of nothing, one that is empty."""
    return [slice(at, min(at + rows, count)) for at in range(0, max(count, 1), rows)]
