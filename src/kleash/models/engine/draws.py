"""How an id is drawn from logits: the argmax of log-probability and Gumbel noise, keyed by name.

It is computed as the argmax of probability over exponential noise, whose -log is the Gumbel noise.

Each turn of a talk has a stream of its own, so a draw depends neither on who else is in the batch
nor on how many draws others made, and two arms that share a seed share their noise. The streams
are SplitMix64 (Steele, Lea and Flood 2014), whose n-th number needs none before it: the noise of
all rows is one computation, on any device.

Shapes: N rows, V words.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from kleash.models.engine import Talk
from kleash.seeds import key


def signed(number: int) -> int:
    """The lowest 64 bits, as the integers of torch write them."""
    return (number + 2**63) % 2**64 - 2**63


GAMMA, FIRST, SECOND = map(signed, (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


def stream(talk: Talk) -> int | None:
    """The first turn's stream of a talk; none where it is greedy."""
    return None if talk.key is None else signed(key("gumbel", *talk.key))


def of_turn(first: int | None, turn: int) -> int | None:
    """The stream of a turn, as far from the others as any two are."""
    return None if first is None else signed(first + turn * FIRST)


def exponential(streams: Tensor, steps: Tensor, words: int) -> Tensor:
    """Exponential noise [N, V] for the step of each stream."""
    start = streams + steps * signed(words * GAMMA)
    number = torch.arange(1, words + 1, device=streams.device)
    bits = start[:, None] + number * GAMMA
    for shift, factor in ((30, FIRST), (27, SECOND)):
        bits.bitwise_xor_(shifted(bits, shift)).mul_(factor)
    bits.bitwise_xor_(shifted(bits, 31))
    # Above 0, and in float32 small numbers are as exact as any: it is they that win the argmax.
    uniform = bits.double().mul_(2.0**-64).add_(0.5 + 2.0**-53).float()
    return uniform.neg_().log1p_().neg_()


def shifted(bits: Tensor, by: int) -> Tensor:
    """The bits shifted to the right, zeros coming in."""
    return (bits >> by).bitwise_and_((1 << (64 - by)) - 1)


def draw(
    logits_NV: Tensor,
    talks: Sequence[Talk],
    streams: Sequence[int | None],
    steps: Sequence[int],
) -> tuple[list[int], list[float]]:
    """An id for each row, and its log-probability among all words at the row's temperature."""
    device, words = logits_NV.device, logits_NV.shape[-1]
    logits_NV = logits_NV.float()
    if {talk.temperature for talk in talks} != {1.0}:
        temperature = torch.tensor([talk.temperature for talk in talks], device=device)
        logits_NV = logits_NV / temperature[:, None]
    chance_NV = logits_NV.softmax(-1)
    wanted_NV = chance_NV
    if {talk.top_p for talk in talks} != {1.0}:
        wanted_NV = within(chance_NV, torch.tensor([talk.top_p for talk in talks], device=device))
    if set(streams) != {None}:
        keys = torch.tensor([0 if each is None else each for each in streams], device=device)
        noise_NV = exponential(keys, torch.tensor(steps, device=device), words)
        if None in streams:
            noise_NV[[each is None for each in streams]] = 1
        wanted_NV = wanted_NV / noise_NV
    choice_N = wanted_NV.max(-1).indices  # twice as fast as argmax
    logp_N = chance_NV.gather(-1, choice_N[:, None])[:, 0].log()
    return choice_N.tolist(), logp_N.tolist()


def within(chance_NV: Tensor, top_p_N: Tensor) -> Tensor:
    """The probabilities of the likeliest words that together reach top_p; 0 elsewhere."""
    ordered_NV, order_NV = chance_NV.sort(-1, descending=True)
    out_NV = ordered_NV.cumsum(-1) - ordered_NV >= top_p_N[:, None]
    out_NV[:, 0] = False
    return chance_NV.masked_fill(out_NV.scatter(-1, order_NV, out_NV), 0)


def sample(
    logits_NV: Tensor,
    temperature_N: Tensor,
    top_p_N: Tensor | None,
    stream_N: Tensor,
    step_N: Tensor,
    keyed_N: Tensor,
) -> tuple[Tensor, Tensor]:
    """The same from tensors and as tensors, so that nothing waits for the host.

    Rows that are not keyed are greedy. Where all top-p are 1 none is given.
    """
    chance_NV = (logits_NV.float() / temperature_N.float()[:, None]).softmax(-1)
    wanted_NV = chance_NV if top_p_N is None else within(chance_NV, top_p_N.float())
    noise_NV = exponential(stream_N, step_N, logits_NV.shape[-1])
    wanted_NV = wanted_NV / noise_NV.masked_fill_(keyed_N[:, None] == 0, 1)
    choice_N = wanted_NV.max(-1).indices
    return choice_N, chance_NV.gather(-1, choice_N[:, None])[:, 0].log()
