"""Scenes: the embedded data set, made by a seed. Small pictures, made-up words, hidden meanings.

A picture shows two to four objects, each with a colour, a shape, a pattern and a size, one in each
quarter. Its ground tells the *village* it comes from, its frame the speaker's *manner*. A question
is a made-up word and a place: "dax northwest?". In each village a word stands for one of the four
attributes, and each frame for one of four ways to say an answer. Both are drawn by the seed, so
nobody knows them: a demonstration from the same village with the same word shows the one, one from
the same village with the same frame shows the other. No demonstration has both: words and frames
are two-coloured like a chessboard, demonstrations stand on black squares and queries on white.

*Plain* queries (one in eight) use a known word and no frame, and their answer is plain too. An
answerer that imitates the manner of its demonstrations does worse on them the more it is shown.

Not here: who answers, and how pools are made. Drawing pictures is integer arithmetic on small
tables, so the bytes are the same everywhere.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

from kleash.errors import ConfigError
from kleash.seeds import generator
from kleash.tasks.data import majority
from kleash.types import Item

COLOURS = ("red", "orange", "yellow", "green", "cyan", "blue", "purple", "brown")
SHAPES = ("disc", "square", "triangle", "diamond", "cross", "ring")
PATTERNS = ("solid", "striped", "barred", "checked")
SIZES = ("small", "medium", "large")
ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "colour": COLOURS,
    "shape": SHAPES,
    "pattern": PATTERNS,
    "size": SIZES,
}
PLACES = ("northwest", "northeast", "southwest", "southeast")
VALUES = tuple(value for values in ATTRIBUTES.values() for value in values)

_ONSETS = ("b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t", "v", "w", "z", "sh")
# 64 made-up nouns to ask with, and one made-up adjective for every value.
WORDS = tuple(f"{onset}{rime}" for rime in ("ax", "em", "ilo", "unt") for onset in _ONSETS)
STRANGE = tuple(f"{_ONSETS[i % 16]}{'aei'[i // 16]}rou" for i in range(len(VALUES)))
LANGUAGES = 4

VILLAGES = 8
FRAMES = 8
NO_FRAME = FRAMES

SIDE = 48
_EDGE, _CELL = 4, 20
_DIAMETERS = (8, 13, 18)

_GROUND = np.array(
    [
        (205, 205, 205), (40, 40, 48), (196, 216, 240), (240, 212, 200),
        (206, 236, 204), (72, 60, 36), (34, 66, 62), (220, 204, 240),
    ],
    dtype=np.uint8,
)  # fmt: skip
_INK = np.array(
    [
        (220, 30, 30), (245, 140, 20), (235, 220, 40), (30, 150, 50),
        (50, 200, 210), (40, 70, 210), (150, 50, 180), (120, 75, 45),
    ],
    dtype=np.uint8,
)  # fmt: skip
_FRAME_INK = np.array([(0, 0, 0), (255, 255, 255), (255, 0, 128), (0, 160, 255)], dtype=np.uint8)
_PALETTE = np.concatenate([_GROUND, _FRAME_INK, _INK // 5 * 2, _INK])
_FRAME_AT, _FAINT_AT = len(_GROUND), len(_GROUND) + len(_FRAME_INK)


@cache
def say(value: str, language: int) -> str:
    """A value as the speakers of a language say it: one word or two."""
    strange = STRANGE[VALUES.index(value)]
    return (value, strange, f"mo {value}", f"{strange} ti")[language]


@dataclass(frozen=True)
class Looks:
    """What pictures show, as numbers: a row for each picture (N), a column for each place (Q)."""

    village: NDArray[np.int64]
    frame: NDArray[np.int64]
    present_NQ: NDArray[np.bool_]
    colour_NQ: NDArray[np.int64]
    shape_NQ: NDArray[np.int64]
    pattern_NQ: NDArray[np.int64]
    size_NQ: NDArray[np.int64]
    nudge_NQ: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.village)

    def value_NQ(self, attribute: str) -> NDArray[np.int64]:
        """The index of each object's value in its attribute's list."""
        columns = {
            "colour": self.colour_NQ,
            "shape": self.shape_NQ,
            "pattern": self.pattern_NQ,
            "size": self.size_NQ,
        }
        return columns[attribute]


def draw_looks(
    rng: np.random.Generator, village: NDArray[np.int64], frame: NDArray[np.int64]
) -> Looks:
    """Objects for pictures of given villages and frames; two to four in each."""
    n = len(village)
    shape = (n, len(PLACES))
    empty = rng.integers(0, 3, size=n)
    rank = rng.permuted(np.tile(np.arange(len(PLACES)), (n, 1)), axis=1)
    return Looks(
        village=village,
        frame=frame,
        present_NQ=rank >= empty[:, None],
        colour_NQ=rng.integers(0, len(COLOURS), shape),
        shape_NQ=rng.integers(0, len(SHAPES), shape),
        pattern_NQ=rng.integers(0, len(PATTERNS), shape),
        size_NQ=rng.integers(0, len(SIZES), shape),
        nudge_NQ=rng.integers(0, 9, shape),
    )


def _shape_masks() -> NDArray[np.bool_]:
    """[shape, size, nudge, y, x]: which pixels of a cell an object covers (all in half pixels)."""
    y, x = np.mgrid[0:_CELL, 0:_CELL] * 2 + 1 - _CELL
    masks = np.zeros((len(SHAPES), len(SIZES), 9, _CELL, _CELL), dtype=bool)
    for size, d in enumerate(_DIAMETERS):
        ax, ay = np.abs(x), np.abs(y)
        outer = x * x + y * y <= d * d
        stack = (
            outer,
            np.maximum(ax, ay) * 8 <= d * 7,
            (y <= d * 7 // 8) & (ax * 2 <= y + d),
            ax + ay <= d,
            (np.minimum(ax, ay) * 3 <= d) & (np.maximum(ax, ay) <= d),
            outer & (4 * (x * x + y * y) >= d * d),
        )
        for shape, mask in enumerate(stack):
            for nudge in range(9):
                step = (nudge // 3 - 1, nudge % 3 - 1)
                masks[shape, size, nudge] = np.roll(mask, step, axis=(0, 1))
    return masks


def _pattern_masks() -> NDArray[np.bool_]:
    """[pattern, y, x]: which pixels are inked fully; the others are inked at 2/5."""
    y, x = np.mgrid[0:_CELL, 0:_CELL]
    return np.stack([x >= 0, y // 2 % 2 == 0, x // 2 % 2 == 0, (x // 2 + y // 2) % 2 == 0])


def _frame_masks() -> NDArray[np.bool_]:
    """[dash, y, x]: solid and dashed edges, and none."""
    y, x = np.mgrid[0:SIDE, 0:SIDE]
    edge = (np.minimum(x, y) < _EDGE) | (np.maximum(x, y) >= SIDE - _EDGE)
    return np.stack([edge, edge & ((x + y) // 4 % 2 == 0), x < 0])


_SHAPE_MASKS, _PATTERN_MASKS, _FRAME_MASKS = _shape_masks(), _pattern_masks(), _frame_masks()


def draw(looks: Looks) -> NDArray[np.uint8]:
    """The pictures, [N, 48, 48, 3]."""
    return _PALETTE[drawn(looks)]


def drawn(looks: Looks) -> NDArray[np.uint8]:
    """The pictures, [N, 48, 48]: for every pixel the number of its ink in the palette."""
    dash, ink = np.divmod(looks.frame, len(_FRAME_INK))  # without a frame there is the third dash
    edge, ground = (_FRAME_AT + ink).astype(np.uint8), looks.village.astype(np.uint8)
    inks = np.where(_FRAME_MASKS[dash], edge[:, None, None], ground[:, None, None])
    for place in range(len(PLACES)):
        top, left = _EDGE + _CELL * (place // 2), _EDGE + _CELL * (place % 2)
        cell = inks[:, top : top + _CELL, left : left + _CELL]
        covered = _SHAPE_MASKS[
            looks.shape_NQ[:, place], looks.size_NQ[:, place], looks.nudge_NQ[:, place]
        ]
        covered = covered & looks.present_NQ[:, place, None, None]
        faint = (_FAINT_AT + looks.colour_NQ[:, place]).astype(np.uint8)[:, None, None]
        full = _PATTERN_MASKS[looks.pattern_NQ[:, place]].astype(np.uint8)
        np.copyto(cell, faint + len(_INK) * full, where=covered)
    return inks


Items = tuple[list[Item], Callable[[], list[Item]]]
"""Those that are made, and what makes the rest of them."""


@dataclass(frozen=True)
class Scenes:
    """The data set of a seed. Everything else about it follows from the numbers here."""

    seed: int = 0
    words: int = 32
    villages: int = 4
    sizes: Mapping[str, int] | None = None
    plain_share: float = 0.125
    name: str = "scenes"

    @cached_property
    def counts(self) -> dict[str, int]:
        """How many items each part has; `demonstrations` are what pools are made from."""
        return dict(
            self.sizes or {"demonstrations": 2048, "train": 800, "validation": 200, "test": 800}
        )

    @cached_property
    def meaning(self) -> NDArray[np.int64]:
        """[village, word]: the attribute that a word stands for there."""
        return generator("scenes", "meaning", self.seed).integers(
            0, len(ATTRIBUTES), (VILLAGES, len(WORDS))
        )

    @cached_property
    def manner(self) -> NDArray[np.int64]:
        """[village, frame]: the language in which answers are given there."""
        return generator("scenes", "manner", self.seed).integers(0, LANGUAGES, (VILLAGES, FRAMES))

    @cached_property
    def _made(self) -> tuple[dict[str, NDArray[np.uint8]], dict[str, Items]]:
        """All pictures by name, and by part its items, of which some parts may not be needed."""
        seen: set[bytes] = set()
        pictures: dict[str, NDArray[np.uint8]] = {}
        items: dict[str, Items] = {}
        for part, count in self.counts.items():
            shown, items[part] = self._part(part, count, seen)
            pictures |= {f"{part}-{n}": picture for n, picture in enumerate(shown)}
        return pictures, items

    @cached_property
    def _known(self) -> dict[str, list[Item]]:
        """By part, items that were made."""
        return {}

    def _items_of(self, part: str) -> list[Item]:
        if part not in self._known:
            made, rest = self._made[1][part]
            self._known[part] = made + rest()
        return self._known[part]

    def _part(
        self, part: str, count: int, seen: set[bytes]
    ) -> tuple[list[NDArray[np.uint8]], Items]:
        """`count` pictures that occur in no part made before, and their items."""
        rng = generator("scenes", part, self.seed)
        made: list[Item] = []
        pictures: list[NDArray[np.uint8]] = []
        rest: Callable[[], list[Item]] = list
        while len(pictures) < count:
            made += rest()  # pictures in place of those that were there are drawn after the items
            n = count - len(pictures)
            village = rng.integers(0, self.villages, n)
            word = rng.integers(0, self.words, n)
            # The chessboard: which words may meet which frames, on either side.
            white = part != "demonstrations"
            frame = rng.integers(0, FRAMES // 2, n) * 2 + (word + white) % 2
            plain = (rng.random(n) < self.plain_share) & white
            frame = np.where(plain, NO_FRAME, frame)
            looks = draw_looks(rng, village, frame)
            place = np.argmax(rng.random((n, len(PLACES))) * looks.present_NQ, axis=1)
            plain_attribute = rng.integers(0, len(ATTRIBUTES), n)
            inks, rows = drawn(looks), []
            for row in range(n):
                picture = inks[row].tobytes()  # no two inks have the same colour
                if picture not in seen:
                    seen.add(picture)
                    rows.append(row)
            asked = np.where(plain, plain_attribute, word)
            names = [f"{part}-{len(pictures) + at}" for at in range(len(rows))]
            rest = partial(self._items, names, looks, rows, place, asked, rng)
            pictures += [inks[row] for row in rows]
        return pictures, (made, rest)

    def _items(
        self,
        names: list[str],
        looks: Looks,
        rows: list[int],
        place: NDArray[np.int64],
        asked: NDArray[np.int64],
        rng: np.random.Generator,
    ) -> list[Item]:
        """Items of some rows, in their order: each draws what it needs after the one before."""
        each = zip(names, rows, place[rows].tolist(), asked[rows].tolist(), strict=True)
        return [self._item(name, looks, row, at, word, rng) for name, row, at, word in each]

    def _item(
        self,
        name: str,
        looks: Looks,
        row: int,
        place: int,
        asked: int,
        rng: np.random.Generator,
    ) -> Item:
        village, frame = int(looks.village[row]), int(looks.frame[row])
        plain = frame == NO_FRAME
        attribute = list(ATTRIBUTES)[asked if plain else self.meaning[village, asked]]
        language = 0 if plain else int(self.manner[village, frame])
        value = ATTRIBUTES[attribute][int(looks.value_NQ(attribute)[row, place])]
        answers = annotate(value, attribute, language, rng)
        word = attribute if plain else WORDS[asked]
        return Item(
            id=name,
            image=name,
            question=f"{word} {PLACES[place]}?",
            answers=answers,
            answer=majority(answers),
            facts={
                "kind": "plain" if plain else "coded",
                "village": village,
                "frame": frame,
                "word": word,
                "language": language,
            },
        )

    @property
    def demonstrations(self) -> Sequence[Item]:
        """What pools are drawn from."""
        return self._items_of("demonstrations")

    def queries(self, split: str) -> Sequence[Item]:
        """The items of `train`, `validation` or `test`."""
        splits = [part for part in self.counts if part != "demonstrations"]
        if split not in splits:
            raise ConfigError(f"no split {split!r} in scenes: there is {', '.join(splits)}")
        return self._items_of(split)

    def image(self, name: str) -> NDArray[np.uint8]:
        """The picture of an item, [48, 48, 3]."""
        return _PALETTE[self._made[0][name]]

    @cached_property
    def content(self) -> str:
        """The hash of all items and pictures."""
        digest = hashlib.sha256()
        for part in self.counts:
            for item in self._items_of(part):
                digest.update(repr((item.id, item.question, item.answers)).encode())
                digest.update(self.image(item.image).tobytes())
        return digest.hexdigest()

    def planted(self, query: Item, pool: Sequence[Item], shots: int) -> tuple[int, ...]:
        """The pointer the generator knows to be best: a word helper, a manner helper, then more.

        Redundant helpers come before strangers; the first two stand next to the query.
        """
        shows_word = [i for i, item in enumerate(pool) if self._same(query, item, "word")]
        shows_manner = [i for i, item in enumerate(pool) if self._shows_manner(query, item)]
        in_turn = (i for pair in zip_longest(shows_word, shows_manner) for i in pair)
        ranked = dict.fromkeys(i for i in in_turn if i is not None)
        ranked |= dict.fromkeys(range(len(pool)))
        return tuple(reversed(list(ranked)[:shots]))

    def _same(self, query: Item, item: Item, fact: str) -> bool:
        return all(query.facts[name] == item.facts[name] for name in ("village", fact))

    def _shows_manner(self, query: Item, item: Item) -> bool:
        if query.facts["kind"] == "plain":
            return bool(item.facts["language"] == 0)
        return self._same(query, item, "frame")


def annotate(
    value: str, attribute: str, language: int, rng: np.random.Generator
) -> tuple[str, ...]:
    """Ten annotators. A doubtful question has a rival that some of them give; a few just slip."""
    others = [other for other in ATTRIBUTES[attribute] if other != value]
    rival = others[int(rng.integers(len(others)))]
    rival_language = int(rng.integers(LANGUAGES)) if rng.random() < 0.5 else language
    doubt = (0.0, 0.1, 0.2, 0.3)[int(rng.integers(4))]
    answers, own = [], say(value, language)
    for kind in rng.random(10).tolist():
        if kind < doubt:
            answers.append(say(rival if rival_language == language else value, rival_language))
        elif kind > 0.97:
            answers.append(say(VALUES[int(rng.integers(len(VALUES)))], language))
        else:
            answers.append(own)
    return tuple(answers)
