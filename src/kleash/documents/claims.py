"""What an interpreter says of a report: claims, each with the formula that it states."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SCHEMA = Path(__file__).with_name("claim.schema.json")
_THOUGHT = re.compile(r"<think>.*?(?:</think>|\Z)", re.S)
_ADDRESS = r"(?:n\d{1,7}\.\d{1,4}|[A-Z]{1,2}\d{1,7}(?:\.\d{1,4})?)"
_AT = re.compile(rf"{_ADDRESS}(?:\s*:\s*{_ADDRESS})?", re.ASCII)
_WRAPPING = re.compile(r'\s*(?:```\w*|\{\s*"claims"\s*:)?[\[\]{},\s]*')
_STABILITY = re.compile(r"stead|stabl|stabil|smooth|fluctuat|swing|平稳|稳定|平滑|波动|震荡", re.I)
_CURVE = r"\((?:changes\()?([^(),]+)\)?\)"
_SPREADS = re.compile(rf"\b(std|spread){_CURVE}\s*([<>])=?\s*\1{_CURVE}")


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


def claims_in(answer: str) -> Iterator[Claim | str]:
    """The claims of an answer, as one object with all or an object a line; as text what is none.

    An answer that breaks off has the claims before that.
    """
    text, at = _THOUGHT.sub("", answer), 0
    decoder, rest = json.JSONDecoder(), list[str]()
    while (begin := text.find("{", at)) >= 0:
        try:
            told, end = decoder.raw_decode(text, begin)
        except (ValueError, RecursionError):
            told, end = None, begin + 1
        rest.append(text[at : begin if told is not None else end])
        every = told.get("claims") if isinstance(told, dict) else []
        for one in every if isinstance(every, list) else [told]:
            yield _claim(one) or json.dumps(one, ensure_ascii=False)
        at = end
    lines = "".join([*rest, text[at:]]).splitlines()
    yield from (line.strip() for line in lines if not _WRAPPING.fullmatch(line))


def _claim(told: object) -> Claim | None:
    if not isinstance(told, dict):
        return None
    at, words, formula, why = (
        str(told.get(key) or "").strip() for key in ("at", "words", "formula", "why")
    )
    line = str(told.get("line"))
    number = int(line) if line.isascii() and line.isdigit() and len(line) < 10 else 0
    if _AT.fullmatch(at) and formula:
        return Claim(at=at, formula=formula)
    if words and number and (formula or why):
        if _STABILITY.search(words):
            formula = _SPREADS.sub(_tested, formula)
        return Claim(line=number, words=words, formula=formula, why=why)
    return None


def _tested(spreads: re.Match[str]) -> str:
    """A comparison of two spreads as the test of it: one of two is always the smaller."""
    _, one, sign, other = spreads.groups()
    return f"steadier({one}, {other})" if sign == "<" else f"steadier({other}, {one})"
