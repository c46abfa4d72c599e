"""Files of data sets: JSON read record by record, images read when they are looked at.

A training set's annotations are hundreds of megabytes: only one record of them is in memory at a
time, and of the images only a few.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kleash.errors import ConfigError, DataError
from kleash.seeds import generator
from kleash.types import Item

CHUNK = 1 << 20  # characters read at a time
PICTURES_KEPT = 64  # decoded images in memory
# How files begin that hold images: JPEG, PNG, GIF, WebP's RIFF, BMP.
MAGIC = (b"\xff\xd8\xff", b"\x89PNG", b"GIF8", b"RIFF", b"BM")
NUMBER = re.compile(r"(\d+)$")


def needed(path: Path, what: str, where: str) -> Path:
    """A file that must be there; if not, what it is and where it can be had."""
    if not path.is_file():
        raise ConfigError(f"no {path}: {what}, to be had at {where}")
    return path


def whole_json(path: Path) -> Any:
    """A small JSON file."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{path} is no whole JSON file ({error}): fetch it again") from None


def records(path: Path, key: str) -> Iterator[dict[str, Any]]:
    """The records of the list under a key of a JSON object, or of a file that is one list."""
    opening = re.compile(rf'"{key}"\s*:\s*\[' if key else r"^\s*\[")
    decoder, text, at = json.JSONDecoder(), "", 0
    with path.open(encoding="utf-8") as file:
        try:
            while (begun := opening.search(text)) is None:
                text += (more := file.read(CHUNK))
                if not more:
                    raise DataError(f"{path} has no list {key!r}: is it the right file?")
            at = begun.end()
            while True:
                at = _past(text, at)
                if text[at : at + 1] == "]":
                    return
                try:
                    found, at = decoder.raw_decode(text, at)
                except json.JSONDecodeError:
                    text, at = text[at:] + (more := file.read(CHUNK)), 0
                    if not more:
                        raise DataError(f"{path} breaks off: fetch it again") from None
                    continue
                if not isinstance(found, dict):
                    raise DataError(f"{path} holds {str(found)[:40]!r} where a record should be")
                yield found
        except UnicodeDecodeError as error:
            raise DataError(f"{path} is no text ({error}): fetch it again") from None


def _past(text: str, at: int) -> int:
    """Past spaces and the comma between two records."""
    while text[at : at + 1] in {" ", "\n", "\r", "\t", ","}:
        at += 1
    return at


def image_number(name: str | int) -> int | None:
    """COCO's number of an image, from 42, "42", "000000000042" or "COCO_val2014_000000000042"."""
    found = NUMBER.search(str(name))
    return int(found.group(1)) if found else None


class Pictures:
    """The images of folders by COCO's number; each is read when it is looked at."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self.paths: dict[str, Path] = {}
        for folder in folders:
            if not folder.is_dir():
                raise ConfigError(
                    f"no folder {folder}: COCO's images are at"
                    " http://images.cocodataset.org/zips/train2014.zip and val2014.zip"
                )
            for path in folder.iterdir():
                number = image_number(path.stem)
                if number is not None:
                    self.paths[str(number)] = path
        self._seen: OrderedDict[str, NDArray[np.uint8]] = OrderedDict()
        self._digests: dict[str, bytes] = {}

    def wrong(self, name: str) -> str | None:
        """What is wrong with an image, by the looks of its file."""
        path = self.paths.get(name)
        if path is None:
            return "without image"
        with path.open("rb") as file:
            return None if file.read(8).startswith(MAGIC) else "image that is none"

    def size(self, name: str) -> int:
        """How many bytes its file has."""
        return self.paths[name].stat().st_size

    def digest(self, name: str) -> bytes:
        """The hash of its file."""
        if name not in self._digests:
            self._digests[name] = hashlib.sha256(self.paths[name].read_bytes()).digest()
        return self._digests[name]

    def __call__(self, name: str) -> NDArray[np.uint8]:
        """The image, [height, width, 3]; the last few are kept."""
        if name in self._seen:
            self._seen.move_to_end(name)
            return self._seen[name]
        from PIL import Image, UnidentifiedImageError

        if name not in self.paths:
            raise DataError(f"no image {name}: give data_options.images, the folder that holds it")
        path = self.paths[name]
        try:
            with Image.open(path) as opened:
                seen = np.array(opened.convert("RGB"))  # a copy: some would write on it
        except (
            UnidentifiedImageError,
            Image.DecompressionBombError,
            OSError,
            SyntaxError,
        ) as error:
            raise DataError(f"{path} is not an image ({error}): fetch it again") from None
        self._seen[name] = seen
        if len(self._seen) > PICTURES_KEPT:
            self._seen.popitem(last=False)
        return seen


def split_by_image(
    items: Sequence[Item], sizes: Mapping[str, int], name: str, seed: int
) -> dict[str, list[Item]]:
    """Items in parts that share no image, drawn by the seed; `rest` is what no part needs.

    A part has at least as many items as asked for: an image brings all its questions.
    """
    by_image: dict[str, list[Item]] = {}
    for item in items:
        by_image.setdefault(item.image, []).append(item)
    names = sorted(by_image)
    order = generator("split", name, seed).permutation(len(names)).tolist()
    parts: dict[str, list[Item]] = {part: [] for part in (*sizes, "rest")}
    wanted = iter(order)
    for part, size in sizes.items():
        while len(parts[part]) < size:
            place = next(wanted, None)
            if place is None:
                raise ConfigError(
                    f"{name} has {len(items)} items, too few for"
                    f" {' and '.join(f'{n} of {each}' for each, n in sizes.items())}"
                )
            parts[part] += by_image[names[place]]
    parts["rest"] = [item for place in wanted for item in by_image[names[place]]]
    return {part: sorted(some, key=by_number) for part, some in parts.items()}


def by_number(item: Item) -> tuple[int, str]:
    """Items in the order of their ids, as numbers where they are."""
    return (int(item.id), "") if item.id.isdigit() else (0, item.id)


class Parts:
    """A data set that was read: its parts, its images, and what was left out and why."""

    def __init__(
        self,
        name: str,
        parts: Mapping[str, Sequence[Item]],
        pictures: Pictures,
        excluded: Mapping[str, int],
    ) -> None:
        self.name, self.parts, self.image = name, parts, pictures
        self.excluded = {reason: count for reason, count in excluded.items() if count}
        for part, items in parts.items():
            if not items:
                left = ", ".join(f"{n} {why}" for why, n in self.excluded.items()) or "nothing"
                raise DataError(f"{name} has no items for {part!r}; left out: {left}")
        self._content = ""

    @property
    def content(self) -> str:
        """The hash of all items, and of the sizes of their image files.

        Not of the images themselves: reading all of them would take minutes at every start. Answers
        and vectors are kept under the hash of the very image they are about.
        """
        if not self._content:
            digest = hashlib.sha256()
            for part, items in self.parts.items():
                digest.update(part.encode())
                for item in items:
                    size = self.image.size(item.image) if item.image in self.image.paths else 0
                    words = (item.id, item.image, item.question, item.answers, item.answer)
                    digest.update(repr((*words, item.scores, item.caption, size)).encode())
            self._content = digest.hexdigest()
        return self._content

    @property
    def demonstrations(self) -> Sequence[Item]:
        """What pools are drawn from."""
        return self.parts["demonstrations"]

    def queries(self, split: str) -> Sequence[Item]:
        """The items of a split."""
        if split not in ("train", "validation", "test"):
            raise ConfigError(f"no split {split!r} in {self.name}: train, validation, test")
        return self.parts[split]

    def planted(self, query: Item, pool: Sequence[Item], shots: int) -> tuple[int, ...] | None:
        """Nobody knows the best pointer."""
        return None


def with_images(items: Iterator[Item], pictures: Pictures, left: Counter[str]) -> list[Item]:
    """The items whose images are there; the others are counted."""
    kept, wrong = [], dict[str, str | None]()
    for item in items:
        if item.image not in wrong:
            wrong[item.image] = pictures.wrong(item.image)
        reason = wrong[item.image]
        if reason is None:
            kept.append(item)
        else:
            left[reason] += 1
    return kept
