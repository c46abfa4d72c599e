"""Titles that say how a column is made: "B − A", "β × KL", "B / A"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from kleash.imports.markdown.text import bare
from kleash.written.printed import squeezed

_FORMULA = re.compile(
    r"(?P<left>[^()/×*÷]{1,40}?)\s*(?P<sign>\s-\s|-(?=[^\d\s])|/|÷|×|\*|\s(?:minus|over|times)\s)\s*"
    r"(?P<right>[^()/×*÷]{1,40}?)\s*(?:\(.*\)|\[.*\])?$"
)
_KINDS: dict[str, Literal["difference", "share", "product"]] = {
    "-": "difference", "minus": "difference", "/": "share", "÷": "share", "over": "share",
    "×": "product", "*": "product", "times": "product",
}  # fmt: skip
Formula = tuple[Literal["difference", "share", "product"], tuple[int, ...], tuple[int, ...]]


def formula(titles: Sequence[str], at: int) -> Formula | None:
    """How the title at a place says that it is made: of which others, less (or by) which."""
    match = _FORMULA.fullmatch(squeezed(bare(titles[at])).strip(" ↑↓"))
    if match is None:
        return None
    ours, theirs = (_meant(titles, at, match[side]) for side in ("left", "right"))
    if ours is None or theirs is None or ours == theirs:
        return None
    kind = _KINDS[match["sign"].strip()]
    return (kind, (ours, theirs), ()) if kind == "product" else (kind, (ours,), (theirs,))


def _meant(titles: Sequence[str], at: int, text: str) -> int | None:
    """The only other title that is a text, or that begins with it."""
    wanted = text.strip(" *")
    plain = [squeezed(bare(title)).strip(" ↑↓") for title in titles]
    for fits in (
        [n for n, title in enumerate(plain) if n != at and title == wanted],
        [
            n
            for n, title in enumerate(plain)
            if n != at and re.match(rf"{re.escape(wanted)}(?![A-Za-z0-9_])", title)
            if not _FORMULA.fullmatch(title)
        ],
    ):
        if len(fits) == 1:
            return fits[0]
    return None
