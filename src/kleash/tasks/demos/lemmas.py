"""Answers by their lemmas: VQA accuracy in which "horses" and "horse" are one answer.

OK-VQA's results are often given so. Papers take a parser's lemmas for it (a model of its own); here
a few rules of English endings do, with the words that break them. Both sides of a comparison go
through the same rules, so a rule that is wrong for a word is wrong alike for both. It stands beside
the official accuracy and never in its place.
"""

from __future__ import annotations

from functools import lru_cache

from kleash.tasks.demos.score import normalise, vqa_accuracy
from kleash.types import Item

IRREGULAR = {
    "men": "man", "women": "woman", "children": "child", "people": "person", "feet": "foot",
    "teeth": "tooth", "mice": "mouse", "geese": "goose", "leaves": "leaf", "knives": "knife",
    "wolves": "wolf", "halves": "half", "lives": "life", "loaves": "loaf", "shelves": "shelf",
    "wives": "wife", "buses": "bus", "scarves": "scarf", "calves": "calf", "oxen": "ox",
    "cookies": "cookie",
    "movies": "movie", "pies": "pie", "ties": "tie", "shoes": "shoe", "is": "be", "are": "be",
    "was": "be", "were": "be", "been": "be", "has": "have", "had": "have", "does": "do",
    "did": "do", "done": "do", "goes": "go", "went": "go", "gone": "go", "ran": "run",
    "running": "run", "ate": "eat", "eaten": "eat", "sat": "sit", "flew": "fly", "flown": "fly",
    "rode": "ride", "ridden": "ride", "swam": "swim", "caught": "catch", "thrown": "throw",
    "threw": "throw", "drank": "drink", "driven": "drive", "drove": "drive", "slept": "sleep",
    "stood": "stand", "made": "make", "held": "hold", "wore": "wear", "worn": "wear",
    "using": "use", "used": "use", "skiing": "ski", "dying": "die", "lying": "lie",
}  # fmt: skip
# Words that end like a plural or a verb's form and are none.
WHOLE_WORDS = """
    bus gas glass grass dress boss cross moss bass brass class mass pass plus this us yes his its
    lens chess tennis species series news glasses pants jeans scissors shorts sunglasses clothes
    always perhaps thanks ring king wing sing spring string thing bring swing sling sting wedding
    morning evening ceiling pudding nothing something anything everything building painting
    clothing red bed shed sled seed weed feed need speed breed bleed hundred virus cactus octopus
    hippopotamus rhinoceros asparagus hummus citrus campus circus christmas texas paris kansas
    james louis physics athletics economics mathematics asbestos ibis iris pelvis basis oasis
    crisis gymnastics aerobics politics electronics canvas atlas pancreas bias alias molasses
    bluegrass seaweed
"""
WHOLE = frozenset(WHOLE_WORDS.split())
VOWELS = set("aeiouy")


@lru_cache(maxsize=65_536)
def lemma(word: str) -> str:
    """One word without the endings that only inflect it."""
    if word in IRREGULAR:
        return IRREGULAR[word]
    if word in WHOLE or len(word) < 4 or not word.isalpha():
        return word
    for ending, mend in (("ing", verb), ("ed", verb), ("s", plural)):
        if word.endswith(ending) and (found := mend(word, ending)) is not None:
            return found
    return word


def plural(word: str, ending: str) -> str | None:
    """Without a plural's ending."""
    if word.endswith(("ss", "us", "is")):
        return None
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith(("ches", "shes", "sses", "xes", "zzes", "oes")):
        return word[:-2]
    return word[:-1]


def verb(word: str, ending: str) -> str | None:
    """Without -ing or -ed: a doubled letter goes, a silent e comes back."""
    stem = word[: -len(ending)]
    if len(stem) < 2 or not VOWELS & set(stem):
        return None
    if ending == "ed" and word.endswith("ied"):
        return word[:-3] + "y"
    doubled = len(stem) > 2 and stem[-1] == stem[-2] and stem[-1] not in "lsz"
    if doubled:
        return stem[:-1]
    return stem + "e" if wants_e(stem) else stem


def wants_e(stem: str) -> bool:
    """Whether a stem is what a silent e leaves behind, as in mak-, danc-, surf does not."""
    if stem.endswith(("c", "v", "dg", "rs", "ns", "bl", "tl", "dl", "gl", "pl", "cl", "fl", "z")):
        return not stem.endswith("zz")
    if len(stem) < 3 or stem[-1] in "wxyaeiouh" or stem[-2] not in "aiou":
        return False
    # One vowel before one consonant after one consonant: rid-, mak-, bik-; but visit-, open-.
    return stem[-3] not in VOWELS and len(stem) <= 4


def lemmatise(answer: str) -> str:
    """An answer as the evaluator sees it, every word by its lemma."""
    return " ".join(map(lemma, normalise(answer).split()))


def lemmatised_score(answer: str, item: Item) -> float:
    """What an answer is worth when it and the truths are taken by their lemmas."""
    said = lemmatise(answer)
    if item.scores:
        worth = [score for truth, score in item.scores if lemmatise(truth) == said]
        return max(worth, default=0.0)
    return vqa_accuracy(said, [lemmatise(truth) for truth in item.answers])
