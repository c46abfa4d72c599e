"""Where the tokens of a pass stand, as both kinds of small operations (`kernels`, `plain`) read it.

Shapes: N tokens, B blocks; S seats, M most pages of one.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Spots:
    """Of every token, its talk's seat and its place there; a place below 0 is nobody's."""

    seat_N: Tensor
    place_N: Tensor
    table_SM: Tensor


@dataclass(frozen=True)
class Blocks:
    """Tokens that lie end to end and follow one another in one talk, at most `longest` a block."""

    seat_B: Tensor
    place_B: Tensor
    """Of its first token."""
    first_B: Tensor
    """Which of the tokens that is."""
    count_B: Tensor
    table_SM: Tensor
    longest: int = 1


@dataclass(frozen=True)
class Config:
    """How attention is cut up: keys at a time, warps, loads under way, parts of what is seen."""

    columns: int = 64
    warps: int = 4
    stages: int = 3
    splits: int = 1
