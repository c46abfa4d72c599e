"""What names tell beside what they name: of an arm its leash and settings, of a metric its data.

`kl0.01-lr2e-6-g8-sync`, `7b-nokl`, `val/okvqa/n200/shot1/acc`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from kleash.compare.read.names import LONGEST, key, pointed, with_at

_NAMED = re.compile(
    r"(?<![a-z])(?P<key>kl(?:[ _-]?(?:beta|loss[ _-]?coeff?|coeff?|weight))?|beta|β|b)"
    r"[ _=-]?(?P<number>\d+(?:[.p]\d+)?(?:e-?\d{1,3})?)(?![\d.a-z])"
)
_FREE = r"(?:无|没有|不带|不加|(?<![a-z])(?:no|without|w/o))[\s_-]{0,2}kl(?![a-z])"
_OFF = re.compile(rf"{_FREE}|(?<![a-z])kl[ _-]?off(?![a-z])")


def leash(arm: str) -> bool | None:
    """Whether the name of an arm says that it has a leash: "无KL约束" has none; None if unsaid."""
    plain = unicodedata.normalize("NFKC", arm[:LONGEST]).casefold()
    if re.search(_FREE, plain):
        return False
    if re.search(
        r"(?:有|带|加|(?<![a-z])(?:with|w/))[\s_-]{0,2}kl(?![a-z])|kl\s?(?:版本|约束)", plain
    ):
        return True
    return None


@dataclass(frozen=True)
class Within:
    """What a metric's name says beside the quantity: the data it is of, shots, how many items."""

    split: str = ""
    shots: int | None = None
    items: int | None = None


_WHOLE = {"all", "overall", "avg", "average", "total", "macro", "mean"}
_PLAIN = re.compile(
    r"val-?core|val-?aux|val|eval|test|validation|mean@\d+|vqa|acc|accuracy|success|rate|"
    r"pass@?1|em|exact|match|win|winrate|solve|rewards?|score|results?|categories|benchmarks?|"
    r"tasks|domains"
)
_SHOTS = re.compile(r"shots?-?(\d{1,3})|(\d{1,3})-?shots?")
_ITEMS = re.compile(r"n-?(\d{1,7})")


@lru_cache(maxsize=65_536)
def within(name: str) -> Within:
    """What is told in a name like `val/okvqa/n200/shot1/acc`; of all data the split is ''."""
    split, shots, items = [], None, None
    for part in re.split(r"[/\s_.]+", with_at(name[:LONGEST]).casefold()):
        if shot := _SHOTS.fullmatch(part):
            shots = int(shot[1] or shot[2])
        elif size := _ITEMS.fullmatch(part):
            items = int(size[1])
        elif part and part not in _WHOLE and not _PLAIN.fullmatch(part):
            split.append(part)
    return Within(" ".join(split), shots, items)


def coefficient(name: str) -> tuple[float | None, str]:
    """The coefficient that a name gives, and the rest of it: 0.1 of `kl010`, `beta_0.1`, `kl1e-1`.

    A whole number above 0 is something else: a budget of KL, a batch.
    """
    plain = unicodedata.normalize("NFKC", name[:LONGEST]).casefold()
    for match in _NAMED.finditer(plain):
        number = float(pointed(match["number"].replace("p", ".")))
        if 0 < number < 1 or (not number and (match["key"] != "b" or "." in match["number"])):
            return number, f"{plain[: match.start()]} {plain[match.end() :]}"
    off = _OFF.search(plain)
    return (0.0, f"{plain[: off.start()]} {plain[off.end() :]}") if off else (None, plain)


# --- settings

SIZE = "model size"
_SHORT = {"g": "group", "n": "group", "bs": "batch", "ep": "epochs", "t": "temperature"}
_PIECE = re.compile(
    r"(?P<size>(?<![a-z\d.])\d+(?:\.\d+)?[bm])(?![a-z\d])"
    r"|(?P<word>k[123](?![a-z\d.])|[a-z]+\d+[a-z]+(?!-?\d)|[a-z]+[_-](?:on|off)(?![a-z\d])"
    r"|(?:[a-z]+_)*[a-z]+(?==)|[a-z]+|[\u4e00-\u9fff]+)"
    r"(?:[=_-]?(?P<number>\d+(?:\.\d+)?(?:e-?\d{1,3})?)(?![a-z\d.]))?"
)
_USUAL = frozenset(("base", "baseline", "default", "vanilla", "control"))  # as all are but for one
SHOWN = 4  # words in the name of a setting

Value = float | str | bool
Named = dict[str, Value]


def settings(arms: Sequence[str]) -> list[Named]:
    """What each name of an arm tells; only what they differ in, and the coefficient does not say.

    A word with a number is a setting of that name. Words by which names differ are the levels of a
    setting that has no name: it is called after them.
    """
    leashes, every, words = [], [], []
    for name in arms:
        value, rest = coefficient(name)
        numbers, said = _pieces(rest)
        leashes.append(value)
        every.append(numbers)
        words.append(said)
    shared = set.intersection(*map(set, words)) if words else set()
    own = [[word for word in each if word not in shared] for each in words]
    own = [[] if len(each) == 1 and each[0] in _USUAL else each for each in own]
    for called, level in _levels(own).items():
        for named, word in zip(every, level, strict=True):
            if word is not None:
                named[called] = word
    for called in {one for named in every for one in named}:
        told = [named.get(called) for named in every]
        if len(set(told)) == 1 or _follows(told, leashes):
            for named in every:
                named.pop(called, None)
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
            known = key(word)
            numbers[known.name if known else word] = float(match["number"])
        else:
            words.append(match["word"])
    return numbers, words


def _levels(words: Sequence[Sequence[str]]) -> dict[str, list[Value | None]]:
    """The words at each place of the names, under a name made of them; None where there is none.

    A single word that only some have is there or not. Where some names have fewer words than
    others ("rce", "grpo hard", "grpo soft"), places depend on each other and are one.
    """
    count = max(map(len, words), default=0)
    places = [[each[at] if at < len(each) else None for each in words] for at in range(count)]
    flags = [level for level in places if len({*level} - {None}) == 1]
    several = [level for level in places if level not in flags]
    if len(several) > 1 and any(None in level for level in several):
        joined = [" ".join(word for word in each if word) for each in zip(*several, strict=True)]
        several = [[each or None for each in joined]]
    found: dict[str, list[Value | None]] = {_called(one): [*one] for one in several}
    return found | {_called(one): [word is not None for word in one] for one in flags}


def _called(level: Sequence[str | None]) -> str:
    different = list(dict.fromkeys(word for word in level if word is not None))
    return "/".join(different[:SHOWN]) + ("/…" if len(different) > SHOWN else "")


def _follows(told: Sequence[object], leashes: Sequence[float | None]) -> bool:
    """Whether a setting says again what the coefficient says."""
    if len(set(leashes)) < 2 or None in leashes:
        return False
    by_leash: Mapping[float | None, set[object]] = {leash: set() for leash in leashes}
    for value, leash in zip(told, leashes, strict=True):
        by_leash[leash].add(value)
    return all(len(values) == 1 for values in by_leash.values())
