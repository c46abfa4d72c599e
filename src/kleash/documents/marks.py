"""What a check says of one number or claim of a report."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

State = Literal["right", "wrong", "unsupported", "unknown"]


@dataclass(frozen=True)
class Mark:
    """A number or a claim, where it stands, what came of it, and why: a code and its facts."""

    line: int
    text: str
    state: State
    code: str
    facts: dict[str, Any] = field(default_factory=dict)
    spot: str = ""
