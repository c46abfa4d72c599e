"""The official VQA accuracy: what an answer is worth beside its annotators' answers.

It follows the published evaluator to the letter, slips included, so that scores compare with
published ones (github.com/GT-Vision-Lab/VQA, revision a013f00). Cutting a model's output down to
an answer is not done here, and neither is the lemmatised variant of OK-VQA.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from kleash.errors import DataError
from kleash.tasks.data import Dataset
from kleash.types import Item

Scorer = Callable[[str, Item], float]

PUNCTUATION = ';/[]"{}()=+\\_-><@`,?!'
COMMA_IN_NUMBER = re.compile(r"\d,\d")
# The evaluator means "not between digits", but its look-behind `(?!<=\d)` is misspelt and always
# holds: only the digit after a period protects it. Hence "3." is "3", and ".5" stays.
LOOSE_PERIOD = re.compile(r"\.(?!\d)")
# The evaluator passes a flag where `re.sub` takes a count: no more than 32 periods go.
MOST_PERIODS = 32

NUMBER_WORDS = "zero one two three four five six seven eight nine ten"
NUMBERS = {word: str(number) for number, word in enumerate(NUMBER_WORDS.split())} | {"none": "0"}
ARTICLES = {"a", "an", "the"}

# Contractions as they should be; the evaluator mends those with one apostrophe missing. Its table
# also has "Im" and others with a capital, which nothing can match once letters are small.
CONTRACTIONS = """
    ain't aren't can't couldn't didn't doesn't don't hadn't hasn't haven't isn't mightn't mustn't
    needn't oughtn't shan't shouldn't wasn't weren't won't wouldn't
    could've might've must've not've should've they've we've what've where've who've would've you've
    he'd how'd it'd someone'd something'd there'd they'd where'd who'd you'd
    how'll it'll somebody'll someone'll something'll they'll what'll who'll why'll you'll
    he's how's somebody's someone's that's there's what's when's where's who's why's
    there're they're what're why're you're ma'am o'clock 'twas y'all y'all'll y'all'd've 'ow's'at
    couldn't've hadn't've mightn't've shouldn't've wouldn't've he'd've it'd've she'd've
    somebody'd've someone'd've something'd've there'd've they'd've we'd've who'd've you'd've
"""
MENDED = {
    word[:at] + word[at + 1 :]: word
    for word in CONTRACTIONS.split()
    for at, letter in enumerate(word)
    if letter == "'"
} | {"somebody'd": "somebodyd"}  # the wrong way round in the evaluator's table too


@lru_cache(maxsize=65_536)
def normalise(answer: str) -> str:
    """An answer without case, punctuation, articles and number words, as the evaluator sees it."""
    words = (NUMBERS.get(word, word) for word in without_punctuation(trim(answer)).lower().split())
    return " ".join(MENDED.get(word, word) for word in words if word not in ARTICLES)


def trim(answer: str) -> str:
    """An answer on one line, without space around it."""
    return answer.replace("\n", " ").replace("\t", " ").strip()


def without_punctuation(text: str) -> str:
    """Marks beside a space go, others become a space; a comma in a number makes all marks go."""
    kept = text
    for mark in PUNCTUATION:
        goes = f"{mark} " in text or f" {mark}" in text or COMMA_IN_NUMBER.search(text)
        kept = kept.replace(mark, "" if goes else " ")
    return LOOSE_PERIOD.sub("", kept, count=MOST_PERIODS)


def vqa_accuracy(answer: str, truths: Sequence[str]) -> float:
    """The mean of min(1, matches / 3) over leaving out each annotator; 0, .3, .6, .9 or 1 of ten.

    The trap: where all annotators wrote the same, the evaluator normalises neither side (it spares
    text read off images), so "Black." is wrong beside ten times "black".
    """
    if len(truths) < 4:
        raise DataError(
            f"{len(truths)} annotators' answers: VQA accuracy leaves one out and needs three that"
            " match, so give 4 or more (the data sets have 10)"
        )
    answer, truths = trim(answer), [trim(truth) for truth in truths]
    if len(set(truths)) > 1:
        answer, truths = normalise(answer), [normalise(truth) for truth in truths]
    n, matches = len(truths), truths.count(answer)
    # In thirds, so that the values are the nearest floats to the lattice.
    thirds = matches * min(3, matches - 1) + (n - matches) * min(3, matches)
    return thirds / (3 * n)


def item_score(answer: str, item: Item) -> float:
    """What an answer to an item is worth: by its soft labels where it has them, else official."""
    if not item.scores:
        return vqa_accuracy(answer, item.answers)
    said = normalise(answer)
    return max((score for truth, score in item.scores if normalise(truth) == said), default=0.0)


def scorer(data: Dataset) -> Scorer:
    """How answers are scored on a data set."""
    found: Scorer = getattr(data, "score", item_score)
    return found
