"""How an id is drawn from logits: the argmax of log-probability and Gumbel noise, keyed by name.

Each turn of a talk has a generator of its own, so a draw depends neither on who else is in the
batch nor on how many draws others made, and two arms that share a seed share their noise.

Shapes: N rows, V words.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from kleash.engine import Talk
from kleash.seeds import generator


def turn_noise(talk: Talk) -> np.random.Generator | None:
    """The generator of a talk's present turn; none where it is greedy."""
    return None if talk.key is None else generator("gumbel", *talk.key, talk.turns)


def drawn(
    logits_NV: Tensor, talks: Sequence[Talk], noise: Sequence[np.random.Generator | None]
) -> tuple[list[int], list[float]]:
    """An id for each row, and its log-probability among all words at the row's temperature."""
    temperature = [talk.temperature for talk in talks]
    logits_NV = logits_NV.float()
    if any(each != 1 for each in temperature):
        logits_NV = logits_NV / torch.tensor(temperature, device=logits_NV.device)[:, None]
    logp_NV = logits_NV.log_softmax(-1)
    wanted_NV = logp_NV
    if any(talk.top_p < 1 for talk in talks):
        wanted_NV = within(logp_NV, torch.tensor([talk.top_p for talk in talks]))
    words = logp_NV.shape[-1]
    gumbel_NV = np.zeros((len(talks), words))
    for row, rng in zip(gumbel_NV, noise, strict=True):
        if rng is not None:
            # Minus the logarithm of an exponential draw is a Gumbel draw, and far cheaper.
            rng.standard_exponential(out=row)
            np.log(row, out=row)
    choice_N = (wanted_NV - torch.from_numpy(gumbel_NV).to(logp_NV.device)).argmax(-1)
    logp_N = logp_NV.gather(-1, choice_N[:, None])[:, 0]
    return choice_N.tolist(), logp_N.tolist()


def within(logp_NV: Tensor, top_p_N: Tensor) -> Tensor:
    """The log-probabilities of the likeliest words that together reach top_p; -inf elsewhere."""
    ordered_NV, order_NV = logp_NV.sort(-1, descending=True)
    before_NV = ordered_NV.exp().cumsum(-1) - ordered_NV.exp()
    out_NV = before_NV >= top_p_N.to(logp_NV.device)[:, None]
    out_NV[:, 0] = False
    return logp_NV.masked_fill(out_NV.scatter(-1, order_NV, out_NV), -torch.inf)
