"""Titles in two parts: "KL (weak)", "entropy (weak)" are two quantities of one arm.

Titles that are every one of some beginnings with every one of some endings, be it in brackets or
written together, are a grid. Its parts are names: sentences say "the entropy of weak KL", and never
"entropy (weak)".
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

LEAST = 2  # of both parts
Parts = tuple[str, str]
_BRACKETED = re.compile(r"\s*([^()（）]+?)\s*[(（]\s*([^()（）]+?)\s*[)）]\s*")
_WITHIN = re.compile(r"[A-Za-z0-9.]{2}")  # no two of these are parted
_GAP = re.compile("[-−→/]")
_BLANK = re.compile(r"\s+")


def in_two(titles: Sequence[str], known: Collection[str]) -> dict[int, Parts]:
    """By column, the two parts of titles that are a grid.

    `known` are names of other tables: a part that one of them begins with is that.
    """
    found: dict[int, Parts] = {}
    for every in (_bracketed(titles), *_together(titles)):
        grid: dict[int, Parts] = {}
        while grid != every:
            grid, every = every, {at: two for at, two in every.items() if _is_in_grid(two, every)}
        found = grid if len(grid) > len(found) else found
    return {at: (_whole(one, known), _whole(other, known)) for at, (one, other) in found.items()}


def _bracketed(titles: Sequence[str]) -> dict[int, Parts]:
    matches = {at: _BRACKETED.fullmatch(title) for at, title in enumerate(titles) if at}
    return {at: (match[1], match[2]) for at, match in matches.items() if match}


def _together(titles: Sequence[str]) -> Iterator[dict[int, Parts]]:
    """All ways to part titles by the beginning of one of them and the ending of another."""
    plain = {at: title.strip() for at, title in enumerate(titles) if at}
    firsts = {title[:cut] for title in plain.values() for cut in _cuts(title)}
    several = {one for one in firsts if sum(title.startswith(one) for title in plain.values()) > 1}
    for first in sorted(several):
        ends = {title.removeprefix(first) for title in plain.values() if title.startswith(first)}
        yield {
            at: (title.removesuffix(end).strip(" -_/·"), end.strip(" -_/·"))
            for at, title in plain.items()
            for end in sorted(ends, key=len)
            if title.endswith(end) and len(title) - len(end) in _cuts(title)
        }


def _cuts(title: str) -> list[int]:
    """Where a title may be parted: in no word and in no number."""
    return [
        at for at in range(1, len(title))
        if not _WITHIN.fullmatch(title[at - 1 : at + 1])
        and re.search(r"\w", title[:at]) and re.search(r"[^\W\d]", title[at:])
        and title.count("(", 0, at) == title.count(")", 0, at)
        and title.count("（", 0, at) == title.count("）", 0, at)
    ]  # fmt: skip


def _is_in_grid(two: Parts, titles: Mapping[int, Parts]) -> bool:
    """Whether a title is of a grid: every beginning with every ending of those beside it."""
    every = set(titles.values())
    firsts = {one for one, other in every if other == two[1]}
    lasts = {other for one, other in every if one == two[0]}
    whole = all((one, other) in every for one in firsts for other in lasts)
    return whole and min(len(firsts), len(lasts)) >= LEAST


def _whole(part: str, known: Collection[str]) -> str:
    """A part as other tables call it, if one name begins with it, and others with that."""
    letters = _BLANK.sub("", part.casefold())
    same = {_BLANK.sub("", one): one for one in known}
    if letters in same:
        return part
    longer = [own for own in same if own.startswith(letters) and not _GAP.search(own)]
    longer.sort(key=len)
    one = longer and all(own.startswith(longer[0]) for own in longer)
    return same[longer[0]] if one else part
