"""A world small enough for tests, through the same doors as a real one.

Every item has a word and a manner, and shows them more or less clearly; its vector tells all three
under noise. A query is answered rightly when the demonstrations show both its word and its manner
clearly enough: one kind of demonstration is not enough.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from functools import cache, cached_property
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kleash.config import merge, parse_overrides
from kleash.errors import ConfigError
from kleash.models.answer import ANSWERERS, Images
from kleash.runs.ledger import Ledger
from kleash.runs.run import Run
from kleash.seeds import generator
from kleash.tasks.data import DATASETS
from kleash.tasks.data.scenes import Scenes
from kleash.tasks.demos.embeddings import Embeddings, unit_rows
from kleash.train.recipe import SelectorRecipe, recipe_from
from kleash.types import Answer, Item, Prompt

SIZES = {"demonstrations": 200, "train": 200, "validation": 60, "test": 60}
WORDS, MANNERS, NOISE = 6, 4, 0.1
KEYS = (
    "data=tiny",
    "answerer=tiny",
    "selector=v3",
    "queries=24",
    "pool.size=8",
    "pool.kind=random",
    "propose.random=3",
    "propose.retrieval=1",
    "propose.beams=1",
    "propose.width=3",
    "supervised.epochs=1",
    "rce.epochs=1",
    "epochs=2",
    "group=4",
    "batch=8",
)


@cache  # every run of every test has the same few items
def made_item(seed: int, part: str, index: int) -> Item:
    """One item; its annotators do not all agree."""
    rng = generator("tiny", seed, part, index)
    word, manner = int(rng.integers(WORDS)), int(rng.integers(MANNERS))
    name, truth = f"{part}-{index}", f"word{word} manner{manner}"
    agreed = int(rng.integers(3, 11))
    answers = (truth,) * agreed + ("nothing",) * (10 - agreed)
    shows = {"word": word, "manner": manner, "clarity": float(rng.random())}
    return Item(name, name, f"{name}?", answers, truth, shows)


@cache
def noise_of(name: str) -> NDArray[np.float64]:
    """What blurs the vector of an item of that name."""
    return NOISE * generator("tiny", "noise", name).normal(size=WORDS + MANNERS + 2)


class Topics:
    """The data set: items of a word and a manner, in the splits that every data set has."""

    name = "tiny"

    def __init__(self, seed: int) -> None:
        self.seed = seed

    @property
    def content(self) -> str:
        """The hash of everything in it."""
        return hashlib.sha256(f"{self.seed} {SIZES} {WORDS} {MANNERS}".encode()).hexdigest()

    @cached_property
    def items(self) -> dict[str, list[Item]]:
        """All items by part."""
        return {
            part: [made_item(self.seed, part, i) for i in range(size)]
            for part, size in SIZES.items()
        }

    @property
    def demonstrations(self) -> Sequence[Item]:
        """What pools are drawn from."""
        return self.items["demonstrations"]

    def queries(self, split: str) -> Sequence[Item]:
        """The items of a split."""
        if split not in SIZES or split == "demonstrations":
            raise ConfigError(f"no split {split!r} in tiny: there is train, validation, test")
        return self.items[split]

    def image(self, name: str) -> NDArray[np.uint8]:
        """An image that is told from every other."""
        return np.frombuffer(hashlib.sha256(name.encode()).digest()[:12], np.uint8).reshape(2, 2, 3)

    def planted(self, query: Item, pool: Sequence[Item], shots: int) -> tuple[int, ...] | None:
        """The clearest demonstration of the word, that of the manner, then any."""
        found: dict[int, None] = {}
        for fact in ("word", "manner"):
            shows = [i for i, item in enumerate(pool) if item.facts[fact] == query.facts[fact]]
            shows.sort(key=lambda i: -float(pool[i].facts["clarity"]))
            found |= dict.fromkeys(shows[:1])
        found |= dict.fromkeys(range(len(pool)))
        return tuple(list(found)[:shots])


class Reader:
    """The answerer: it knows what the demonstrations show."""

    made = count()

    def __init__(self, images: Images) -> None:
        self.breaks: Callable[[Prompt], bool] | None = None
        self.identity = "tiny"
        self.asked = 0

    def break_on(self, breaks: Callable[[Prompt], bool]) -> None:
        """Break on some prompts from now on, as another model: a ledger must not mix them."""
        self.breaks, self.identity = breaks, f"tiny that breaks {next(self.made)}"

    def answer(self, prompts: Sequence[Prompt]) -> list[Answer]:
        """Right if both word and manner were shown; NaN, which no ledger takes, if it broke."""
        self.asked += len(prompts)
        return [self.one(prompt) for prompt in prompts]

    def one(self, prompt: Prompt) -> Answer:
        """One answer."""
        if self.breaks is not None and self.breaks(prompt):
            return Answer("", math.nan)
        word, manner = (
            max(
                (
                    item.facts["clarity"]
                    for item in prompt.demonstrations
                    if item.facts[fact] == prompt.query.facts[fact]
                ),
                default=0.0,
            )
            for fact in ("word", "manner")
        )
        text = prompt.query.answer if min(word, manner) > 0.2 else "something"
        return Answer(text, math.log(0.05 + 0.45 * (word + manner)))

    def embed(self, items: Sequence[Item]) -> Embeddings:
        """Images show words, texts show manners."""
        rows = [self.row(item) for item in items]
        image, text = zip(*rows, strict=True)
        return Embeddings(unit_rows(np.stack(image)), unit_rows(np.stack(text)))

    def row(self, item: Item) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Word, manner and clarity as directions, under noise; a query's are turned by one.

        So similarity misleads, and an untrained selector with it.
        """
        turn = 0 if item.id.startswith("demonstrations") else 1
        image, text = np.split(noise_of(item.id).astype(np.float32), [WORDS + 1])
        for row, fact in ((image, "word"), (text, "manner")):
            row[(item.facts[fact] + turn) % (len(row) - 1)] += 1
            row[-1] += item.facts["clarity"]
        return image, text


def few_scenes(seed: int) -> Scenes:
    """The embedded data set, small: for what only the real answerer can show."""
    return Scenes(seed, sizes=SIZES | {"demonstrations": 400})


DATASETS["tiny"] = "tiny:Topics"
DATASETS["few-scenes"] = "tiny:few_scenes"
ANSWERERS["tiny"] = "tiny:Reader"


def tiny_recipe(*keys: str) -> SelectorRecipe:
    """The recipe of a run of about a second, with some keys changed."""
    made = recipe_from(given(*keys))
    assert isinstance(made, SelectorRecipe)
    return made


def train_tiny(folder: Path, ledger: Ledger, *keys: str) -> Run:
    """A run of that recipe, trained to its end."""
    from kleash.train.rollout.selector import SelectorWorld
    from kleash.train.training import train

    recipe = tiny_recipe(*keys)
    return train(folder, recipe, given(*keys), SelectorWorld(recipe, ledger))


def given(*keys: str) -> dict[str, Any]:
    """What a user would have written."""
    return merge(parse_overrides(KEYS), parse_overrides(keys))


def contents(run: Run, *without: str) -> dict[str, bytes]:
    """Every file of a run that two equal runs share byte by byte, by name."""
    apart = {"timings.jsonl", "meta.json", "lock", *without}
    return {
        str(path.relative_to(run.path)): path.read_bytes()
        for path in sorted(run.path.rglob("*"))
        if path.is_file() and path.name not in apart
    }
