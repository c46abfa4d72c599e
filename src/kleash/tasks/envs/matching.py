"""Which hidden details a question is about: words counted, nothing learnt, the same everywhere.

score(q, d) = Σ_w k(w)·idf(w)·damp(w) / Σ_{w in description} idf(w)·damp(w), over the different
words w of the question: k is 1 for words of the description, 0.8 for synonyms of them and 0.6 for
words of its options; words of the task's text count 0.35. Words about something else lower it a
little, and a heap of keywords scores nothing. Stop words go, suffixes go.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from kleash.seeds import key

THRESHOLD = 0.30  # a score below it is no match
RATIO = 0.85  # of the best score: whatever comes so near is meant too
OPTION = 0.6
SYNONYM = 0.8
VAGUE = 0.85  # for a generic synonym, such as "time" for "duration"
SAID = 0.35  # words that the task's text holds tell little about what it leaves out
GENERIC = 0.4  # words such as "preferred" and "type", which fit every detail
STRANGE = 0.1  # how much words about something else count against a question
STUFFED = 6  # so many content words with hardly a stop word between them are a list, no question
GRAMMAR = 0.25  # the least share of stop words in a question of that size

PHRASES = [
    (re.compile(rf"\bhow\s+{word}\b"), f" how{word} ") for word in ("long", "many", "much", "often")
]
PHRASES.append((re.compile(r"\btakes? place\b|\bin the mood\b|\bin mind\b"), " "))
# Endings, longest first, each with the letters that must be left: "care" is no form of "car".
SUFFIXES = (
    ("ities", 3), ("ments", 4), ("ences", 4), ("ances", 4), ("ment", 4), ("ence", 4), ("ance", 4),
    ("ings", 3), ("ions", 4), ("ness", 4), ("ives", 4), ("ing", 3), ("ion", 4), ("ies", 3),
    ("ied", 3), ("ity", 3), ("ers", 4), ("ive", 4), ("als", 4), ("ed", 3), ("er", 4), ("ly", 4),
    ("al", 4), ("ie", 3), ("s", 3), ("e", 4), ("y", 4),
)  # fmt: skip


@cache
def _lexicon() -> tuple[frozenset[str], frozenset[str], dict[str, tuple[int, ...]]]:
    """Stop words; stems of generic words; the synonym groups that each stem is in."""
    held: dict[str, Any] = json.loads(
        files("kleash.tasks.envs").joinpath("words.json").read_text("utf8")
    )
    groups: dict[str, tuple[int, ...]] = {}
    for number, group in enumerate(held["groups"]):
        for word in dict.fromkeys(stem(word) for word in group.split()):
            groups[word] = (*groups.get(word, ()), number)
    return frozenset(held["stop"]), frozenset(stem(word) for word in held["generic"]), groups


def identity() -> str:
    """The hash of the lists and numbers that decide what a question covers."""
    numbers = (THRESHOLD, RATIO, OPTION, SYNONYM, VAGUE, SAID, GENERIC, STRANGE, STUFFED, GRAMMAR)
    lists = files("kleash.tasks.envs").joinpath("words.json").read_text("utf8")
    return f"{key('matching', lists, *numbers, SUFFIXES):032x}"


def stem(word: str) -> str:
    """The word without its endings, one after the other; at least three letters stay."""
    while True:
        shorter = next(
            (word.removesuffix(end) for end, left in SUFFIXES if _ends(word, end, left)), word
        )
        if len(shorter) > 3 and shorter[-1] == shorter[-2]:
            shorter = shorter[:-1]
        if shorter == word:
            return word
        word = shorter


def _ends(word: str, suffix: str, left: int) -> bool:
    return word.endswith(suffix) and len(word) - len(suffix) >= left


def tokens(text: str) -> list[str]:
    """The words of a text in lower case; "how long" and its like are one word."""
    text = text.lower().replace("’", "'")
    for pattern, one in PHRASES:
        text = pattern.sub(one, text)
    return re.findall(r"[^\W_]+", text)


def content(text: str) -> list[str]:
    """The stems of a text's words, each once, without stop words."""
    stop = _lexicon()[0]
    return list(dict.fromkeys(stem(word) for word in tokens(text) if word not in stop))


class Matcher:
    """The details of one task, ready to be compared with questions."""

    def __init__(self, said: str, details: Iterable[tuple[str, Sequence[str], Sequence[str]]]):
        self._said = set(content(said))
        self._described = [
            (concepts(description), set(content(" ".join(options))), set(terms_of(terms)))
            for description, options, terms in details
        ]

    def scores(self, question: str) -> list[float]:
        """How much the question is about each detail; 1 says its whole description."""
        asked = content(question)
        if is_list(question):
            return [0.0] * len(self._described)
        # Rounded: the last bits of a logarithm differ between machines, and must decide nothing.
        return [round(self._score(asked, *parts), 9) for parts in self._described]

    def covered(self, question: str) -> list[int]:
        """The places of the details that the question is about."""
        scores = self.scores(question)
        least = max(THRESHOLD, RATIO * max(scores, default=0.0))
        return [place for place, score in enumerate(scores) if score >= least]

    def _score(
        self, asked: Sequence[str], described: Sequence[str], options: set[str], terms: set[str]
    ) -> float:
        # A description of stop words alone ("how to get there") is as long as one word.
        whole = sum(map(self._weight, described)) or math.log(1 + len(self._described))
        found: dict[str, float] = {}  # a word of the description is found once, however often said
        beside = strange = 0.0
        for word in asked:
            same = next((d for d in described if synonyms(word, d)), None)
            if word in described:
                found[word] = self._weight(word)
            elif same is not None:
                k = SYNONYM * (VAGUE if word in _lexicon()[1] else 1.0)
                found[same] = max(found.get(same, 0.0), k * self._weight(same))
            elif word in terms:
                found[word] = self._weight(word)
            elif word in options:
                beside += OPTION * self._weight(word)
            else:
                strange += self._weight(word)
        # Options alone may say the detail, but no list of them says it more than once.
        meant = sum(found.values()) + min(beside, whole)
        return meant / whole * meant / (meant + STRANGE * strange) if meant else 0.0

    def _weight(self, word: str) -> float:
        """idf within the task, damped for words that are said already or fit everything."""
        holders = sum(word in d or word in o for d, o, _ in self._described)
        weight = math.log(1 + len(self._described) / max(holders, 1))
        if word in _lexicon()[1]:
            weight *= GENERIC
        return weight * (SAID if word in self._said else 1.0)


def concepts(description: str) -> list[str]:
    """The stems of a description; of synonyms ("date or deadline") the first one stands for all."""
    kept: list[str] = []
    for word in content(description):
        if not any(synonyms(word, other) for other in kept):
            kept.append(word)
    return kept


def terms_of(terms: Sequence[str]) -> list[str]:
    """Stems of a detail's own further words; here a stop word such as "when" may be one."""
    return [stem(word) for term in terms for word in tokens(term)]


def synonyms(one: str, other: str) -> bool:
    """Whether two stems share a group, or one begins with the other ("photo", "photograph")."""
    short, long = sorted((one, other), key=len)
    if len(short) >= 5 and long.startswith(short):
        return True
    groups = _lexicon()[2]
    return not set(groups.get(one, ())).isdisjoint(groups.get(other, ()))


def is_list(question: str) -> bool:
    """Whether it is a heap of keywords: many content words and hardly a stop word among them."""
    words = tokens(question)
    stop = _lexicon()[0]
    filling = sum(word in stop for word in words)
    return len(words) - filling > STUFFED and filling < GRAMMAR * len(words)
