"""The last product of a language model, judged in chunks: all logits are never there at once.

Log-probability, entropy and both KLs come out of one pass; the way back makes the logits again.

Shapes: N choices, V ids, D width.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from kleash.policy import Judged

CHUNK = {"cpu": 1 << 24}
"""Logits that are there at once, by kind of device: 64 MiB of them in float32."""
LARGER_CHUNK = 1 << 26
"""The same for any other kind: on an H200 a fifth faster than 2^24, and 2^28 is hardly more so."""


@dataclass(frozen=True)
class Head:
    """Hidden states and what turns them into logits; both may be a reference's."""

    hidden_ND: Tensor
    weight_VD: Tensor
    bias_V: Tensor | None = None

    def logp(self, rows: slice, temperature: float) -> Tensor:
        """Log-probabilities of every id at some of the choices, in float32 or better."""
        logits_NV = self.hidden_ND[rows] @ self.weight_VD.T
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
) -> Judged:
    """What `policy.judge_logits` says of the same logits, at most `chunk` of them at a time."""
    chunk = chunk or CHUNK.get(chosen.device.type, LARGER_CHUNK)
    how = (temperature, max(1, chunk // len(own.weight_VD)))
    return Judged(
        *_Judge.apply(own.hidden_ND, own.weight_VD, own.bias_V, chosen, reference, how)  # type: ignore[no-untyped-call]
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
        how: tuple[float, int],
    ) -> tuple[Tensor, ...]:
        temperature, rows = how
        own = Head(hidden_ND, weight_VD, bias_V)
        parts = []
        for part in chunks(len(chosen), rows):
            logp_NV = own.logp(part, temperature)
            p_NV = logp_NV.exp()
            at_N1 = chosen[part, None]
            found = [logp_NV.gather(1, at_N1)[:, 0], -(p_NV * logp_NV).sum(-1)]
            if reference is not None:
                ref_NV = reference.logp(part, temperature)
                gap_NV = logp_NV - ref_NV
                exact, forward = (p_NV * gap_NV).sum(-1), -(ref_NV.exp() * gap_NV).sum(-1)
                found += [ref_NV.gather(1, at_N1)[:, 0], exact, forward]
            parts.append(found)
        values = tuple(torch.cat(column) for column in zip(*parts, strict=True))
        if reference is not None:
            ctx.mark_non_differentiable(values[2])
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(hidden_ND, weight_VD, bias_V, chosen, *values)
        # The reference's tensors take no gradient, so that nothing is lost by keeping them so.
        ctx.reference, ctx.temperature, ctx.rows = reference, temperature, rows
        return values

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        hidden_ND, weight_VD, bias_V, chosen, _, *values = ctx.saved_tensors
        own = Head(hidden_ND, weight_VD, bias_V)
        hidden, weight, bias = ctx.needs_input_grad[:3]
        d_hidden_ND = torch.empty_like(hidden_ND) if hidden else None
        wide = torch.promote_types(weight_VD.dtype, torch.float32)
        d_weight_VD = torch.zeros_like(weight_VD, dtype=wide) if weight else None
        d_bias_V = torch.zeros_like(bias_V, dtype=wide) if bias and bias_V is not None else None
        for part in chunks(len(chosen), ctx.rows):
            d_NV = _to_logits(ctx, own, chosen, values, grads, part)
            narrow_NV = d_NV.to(hidden_ND.dtype)
            if d_hidden_ND is not None:
                torch.mm(narrow_NV, weight_VD, out=d_hidden_ND[part])
            if d_weight_VD is not None:
                d_weight_VD += narrow_NV.T @ hidden_ND[part]
            if d_bias_V is not None:
                d_bias_V += d_NV.sum(0)
        return (
            d_hidden_ND,
            None if d_weight_VD is None else d_weight_VD.to(weight_VD.dtype),
            None if d_bias_V is None else d_bias_V.to(weight_VD.dtype),
            *(None,) * 3,
        )


def _to_logits(
    ctx: Any,
    own: Head,
    chosen: Tensor,
    values: list[Tensor],
    grads: tuple[Tensor | None, ...],
    part: slice,
) -> Tensor:
    """The gradient with respect to a chunk of the logits."""
    g_logp, g_entropy, _, g_exact, g_forward = (
        None if grad is None else grad[part, None] for grad in (*grads, None, None, None)[:5]
    )
    logp_NV = own.logp(part, ctx.temperature)
    p_NV = logp_NV.exp()
    d_NV = torch.zeros_like(p_NV)
    if g_logp is not None:
        d_NV.addcmul_(p_NV, g_logp, value=-1).scatter_add_(1, chosen[part, None], g_logp)
    if g_entropy is not None:
        d_NV.addcmul_(p_NV, g_entropy * (logp_NV + values[0][part, None]), value=-1)
    if g_exact is not None or g_forward is not None:
        ref_NV = ctx.reference.logp(part, ctx.temperature)
        if g_exact is not None:
            d_NV.addcmul_(p_NV, g_exact * (logp_NV - ref_NV - values[2][part, None]))
        if g_forward is not None:
            d_NV.addcmul_(p_NV - ref_NV.exp(), g_forward)
    return d_NV if ctx.temperature == 1 else d_NV.div_(ctx.temperature)


def chunks(count: int, rows: int) -> list[slice]:
    """Slices of at most that many rows; of nothing, one that is empty."""
    return [slice(at, min(at + rows, count)) for at in range(0, max(count, 1), rows)]
