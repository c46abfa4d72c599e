"""What an interpreter says of a report: claims, each with the formula that it states."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

_THOUGHT = re.compile(r"<think>.*?(?:</think>|\Z)", re.S)


@dataclass(frozen=True)
class Claim:
    """A number and what gives it; or words and what must hold for them; or what nothing shows."""

    at: str = ""
    """The address of the number, or the range of addresses."""
    line: int = 0
    words: str = ""
    formula: str = ""
    why: str = ""
    by: str = "model"
    """Who proposes it: a model, or numbers: of columns, of rows, of another table."""
    line_of: str = ""
    """Which line of which table it is one formula of, and of what kind."""

    @property
    def key(self) -> tuple[str, int, str]:
        """What it is about."""
        return self.at, self.line, self.words


def claims_in(answer: str) -> Iterator[Claim]:
    """The claims of an answer, an object a line; lines that are none are passed over."""
    for line in _THOUGHT.sub("", answer).splitlines():
        begin, end = line.find("{"), line.rfind("}")
        try:
            told = json.loads(line[begin : end + 1])
        except ValueError:
            continue
        claim = _claim(told) if isinstance(told, dict) else None
        if claim is not None:
            yield claim


def _claim(told: dict[str, object]) -> Claim | None:
    at, words, formula, why = (
        str(told.get(key) or "").strip() for key in ("at", "words", "formula", "why")
    )
    line = told.get("line")
    number = int(line) if isinstance(line, int | float | str) and f"{line}".isdigit() else 0
    if at and formula:
        return Claim(at=at, formula=formula)
    if words and number and (formula or why):
        return Claim(line=number, words=words, formula=formula, why=why)
    return None
