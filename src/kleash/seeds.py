"""Every random draw in Kleash comes from a generator made here, named by what it is for.

Names, not call order, decide the stream: adding a draw somewhere cannot change one elsewhere, and
two arms of a study that share a seed share every draw (common random numbers).
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray


def key(*names: object) -> int:
    """A 128-bit number that stands for the names, the same on every machine."""
    text = "\x1f".join(f"{type(name).__name__}:{name}" for name in names)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=16).digest(), "big")


def generator(*names: object) -> np.random.Generator:
    """A NumPy generator for the draws that the names describe."""
    return np.random.Generator(np.random.Philox(key=key(*names)))


def torch_generator(*names: object, device: str = "cpu") -> Any:
    """A torch generator for the draws that the names describe."""
    import torch

    made = torch.Generator(device=device)
    made.manual_seed(key(*names) % 2**63)
    return made


def gumbel(size: int, *names: object) -> NDArray[np.float64]:
    """Gumbel noise for one choice among `size`: argmax(logits + noise) is a draw.

    Keyed by seed, task, rollout and step, so that arms whose policies differ stay paired.
    """
    return generator("gumbel", *names).gumbel(size=size)
