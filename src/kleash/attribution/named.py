"""Settings that only the names of arms tell: `kl0.01-lr2e-6-g8-sync`, `7b-nokl`.

A word with a number is a setting of that name. Words by which names differ are the levels of a
setting that has no name: it is called after them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from kleash.imports import names

COEFFICIENT = "leash.coefficient"
SIZE = "model size"
_SHORT = {"g": "group", "n": "group", "bs": "batch", "ep": "epochs", "t": "temperature"}
_PIECE = re.compile(
    r"(?P<size>(?<![a-z\d.])\d+(?:\.\d+)?[bm])(?![a-z\d])"
    r"|(?P<word>k[123](?![a-z\d.])|[a-z]+\d+[a-z]+(?!-?\d)|[a-z]+[_-](?:on|off)(?![a-z\d])"
    r"|(?:[a-z]+_)*[a-z]+(?==)|[a-z]+|[\u4e00-\u9fff]+)"
    r"(?:[=_-]?(?P<number>\d+(?:\.\d+)?(?:e-?\d{1,3})?)(?![a-z\d.]))?"
)
SHOWN = 4  # words in the name of a setting

Value = float | str | bool
Named = dict[str, Value]


def settings_in(arms: Sequence[str]) -> list[Named]:
    """What each name tells; only what the names differ in, and the coefficient does not say."""
    leashes, every, words = [], [], []
    for name in arms:
        leash, rest = names.coefficient_in_name(name)
        numbers, said = _pieces(rest)
        leashes.append(leash)
        every.append(numbers)
        words.append(said)
    shared = set.intersection(*map(set, words)) if words else set()
    own = [[word for word in each if word not in shared] for each in words]
    for key, level in _levels(own).items():
        for named, word in zip(every, level, strict=True):
            if word is not None:
                named[key] = word
    for key in {key for named in every for key in named}:
        told = [named.get(key) for named in every]
        if len(set(told)) == 1 or _follows(told, leashes):
            for named in every:
                named.pop(key, None)
    return every


def _pieces(text: str) -> tuple[Named, list[str]]:
    """Settings with a number, and the words without one."""
    numbers: Named = {}
    words = []
    for match in _PIECE.finditer(text):
        if match["size"]:
            numbers[SIZE] = match["size"]
        elif match["number"]:
            word = _SHORT.get(match["word"], match["word"])
            known = names.key(word)
            numbers[known.name if known else word] = float(match["number"])
        else:
            words.append(match["word"])
    return numbers, words


def _levels(words: Sequence[Sequence[str]]) -> dict[str, list[Value | None]]:
    """The words at each place of the names, under a name made of them; None where there is none.

    A single word that only some have is there or not.
    """
    found: dict[str, list[Value | None]] = {}
    for at in range(max(map(len, words), default=0)):
        level = [each[at] if at < len(each) else None for each in words]
        different = list(dict.fromkeys(word for word in level if word is not None))
        more = "/…" if len(different) > SHOWN else ""
        alone = len(different) == 1
        found["/".join(different[:SHOWN]) + more] = [bool(w) if alone else w for w in level]
    return found


def _follows(told: Sequence[object], leashes: Sequence[float | None]) -> bool:
    """Whether a setting says again what the coefficient says."""
    if len(set(leashes)) < 2 or None in leashes:
        return False
    by_leash: Mapping[float | None, set[object]] = {leash: set() for leash in leashes}
    for value, leash in zip(told, leashes, strict=True):
        by_leash[leash].add(value)
    return all(len(values) == 1 for values in by_leash.values())
