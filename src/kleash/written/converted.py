"""Times that are told in two units: "25,200 s (7.00 h)"."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kleash.documents.marks import Mark
from kleash.documents.page import Page
from kleash.imports.markdown.text import fold

SECONDS = {
    1.0: "s|secs?|seconds?|秒",
    60.0: "mins?|minutes?|分钟",
    3600.0: "h|hrs?|hours?|小时",
    86400.0: "days?|天",
}
_UNIT = "|".join(SECONDS.values())
_NUMBER = r"(?<![\d.,~≈±-])\d{1,3}(?:,\d{3})+(?:\.\d+)?|(?<![\d.,~≈±-])\d+(?:\.\d+)?"
_TWICE = re.compile(
    rf"(?P<ours>{_NUMBER})\s?(?P<unit>{_UNIT})\s?\(\s?(?:=|即|合|or )?\s?"
    rf"(?P<theirs>{_NUMBER})\s?(?P<other>{_UNIT})\s?\)"
)
_ROUGH = re.compile(r"(?:约|大约|近|不到|about|roughly|nearly|almost|over|under)\s?$")


def false_conversions(page: Page) -> Iterator[Mark]:
    """The number in brackets where it is not what stands before it, in its own unit."""
    for nth, (start, end) in enumerate(page.lines, 1):
        text = fold(page.text[start:end]).casefold()
        for match in _TWICE.finditer(text):
            ours, theirs = (float(match[one].replace(",", "")) for one in ("ours", "theirs"))
            by, into = _seconds(match["unit"]), _seconds(match["other"])
            # Whole seconds were counted; of all else the last digit is rounded.
            room = 0.0 if by == 1 and "." not in match["ours"] else _half(match["ours"]) * by
            off = abs(ours * by - theirs * into)
            if by == into or _ROUGH.search(text, 0, match.start()):
                continue
            if off > (room + _half(match["theirs"]) * into) * (1 + 1e-6):
                decimals = len(match["theirs"].partition(".")[2])
                value = f"{ours * by / into:.{decimals}f} {match['other']}"
                facts = {"value": value, "lines": [nth]}
                said = f"{match['theirs']} {match['other']}"
                yield Mark(nth, said, "wrong", "check.not-product", facts, f"converted {said}")


def _seconds(unit: str) -> float:
    return next(by for by, words in SECONDS.items() if re.fullmatch(words, unit))


def _half(text: str) -> float:
    """Half a unit of the last digit of a number as printed."""
    return 0.5 * 10.0 ** -len(text.partition(".")[2])
