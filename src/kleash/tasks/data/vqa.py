"""OK-VQA and VQAv2 from their official files: questions, annotations, and folders of COCO images.

Demonstrations and training queries are the official training set, sorted by question id; the
official validation set is split by image, by the seed, into a validation and a test part. A query's
own image is never in its pool. Without images the items can be had too, for answerers that read
captions: give `captions` and no `images`.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kleash.errors import ConfigError, DataError
from kleash.tasks.data import majority
from kleash.tasks.data.files import (
    Parts,
    Pictures,
    by_number,
    image_number,
    needed,
    records,
    split_by_image,
    whole_json,
    with_images,
)
from kleash.types import Item

ANNOTATORS = 4  # fewer answers than this cannot be scored


class Vqa(Parts):
    """A data set in the format of the VQA challenges."""

    NAME, PREFIX, WHERE = "", "", ""
    VALIDATION = 1000

    def __init__(
        self,
        seed: int,
        *,
        folder: str,
        images: str = "",
        captions: str = "",
        validation: int = 0,
        test: int = 0,
    ) -> None:
        root, left = Path(folder).expanduser(), Counter[str]()
        if not root.is_dir():
            raise ConfigError(
                f"no folder {root}: data_options.folder holds the questions and annotations of"
                f" {self.NAME}, to be had at {self.WHERE}"
            )
        if not images and not captions:
            raise ConfigError(
                f"{self.NAME} has neither: give data_options.images, a folder with train2014/ and"
                " val2014/, or data_options.captions, a JSON file of image ids and captions"
            )
        said = captions_of(captions)
        found = {}
        for split in ("train", "val"):
            pictures = Pictures(image_folders(images, split))
            read = self.read(root, split, said, left)
            items = with_images(read, pictures, left) if images else list(read)
            found[split] = sorted(items, key=by_number), pictures
        every = Pictures(())
        every.paths = found["train"][1].paths | found["val"][1].paths
        sizes = {"validation": validation or self.VALIDATION}
        parts = split_by_image(found["val"][0], sizes, self.NAME, seed)
        rest = parts["rest"]
        train = found["train"][0]
        shared = {item.image for item in found["val"][0]}
        if any(item.image in shared for item in train):
            raise DataError(f"{self.NAME}: training and validation questions share images")
        super().__init__(
            self.NAME,
            {
                "demonstrations": train,
                "train": train,
                "validation": parts["validation"],
                "test": rest[:test] if test else rest,
            },
            every,
            left,
        )

    def read(
        self, root: Path, split: str, captions: dict[int, str], left: Counter[str]
    ) -> Iterator[Item]:
        """Questions joined with their annotations; what cannot be is counted."""
        names = (
            f"{self.PREFIX}OpenEnded_mscoco_{split}2014_questions.json",
            f"{self.PREFIX}mscoco_{split}2014_annotations.json",
        )
        asked_in, answered_in = (
            needed(root / name, f"{what} of {self.NAME}", self.WHERE)
            for name, what in zip(names, ("questions", "annotations"), strict=True)
        )
        questions: dict[int, tuple[int, str]] = {}
        for one in records(asked_in, "questions"):
            number, image, text = field(one, asked_in, "question_id", "image_id", "question")
            if number in questions:
                left["question id met before"] += 1
            else:
                questions[number] = (image, text)
        for one in records(answered_in, "annotations"):
            number, given = field(one, answered_in, "question_id", "answers")
            asked = questions.pop(number, None)
            if asked is None:
                left["annotation without question"] += 1
                continue
            answers = tuple(
                sys.intern(str(each["answer"]))
                for each in given
                if str(each.get("answer", "")).strip()
            )
            if len(answers) < ANNOTATORS:
                left["without answers"] += 1
                continue
            caption = captions.get(image_number(asked[0]) or -1, "")
            yield Item(
                str(number), str(asked[0]), asked[1], answers, majority(answers), caption=caption
            )
        left["question without annotation"] += len(questions)


class OkVqa(Vqa):
    """OK-VQA: 9,009 and 5,046 questions that need outside knowledge (arXiv 1906.00067)."""

    NAME, PREFIX = "okvqa", ""
    WHERE = "https://okvqa.allenai.org/download.html"
    lemmatised = True


class VqaV2(Vqa):
    """VQAv2: 443,757 and 214,354 questions (arXiv 1612.00837)."""

    NAME, PREFIX = "vqav2", "v2_"
    WHERE = "https://visualqa.org/download.html"
    VALIDATION = 5000


def field(record: dict[str, Any], path: Path, *names: str) -> list[Any]:
    """Values that a record must have."""
    for name in names:
        if name not in record:
            raise DataError(f"{path}: a record without {name!r}: {str(record)[:80]}")
    return [record[name] for name in names]


def image_folders(images: str, split: str) -> list[Path]:
    """Where the images of a split lie: in its own folder, or all in one."""
    if not images:
        return []
    root = Path(images).expanduser()
    own = root / f"{split}2014"
    return [own] if own.is_dir() else [root]


def captions_of(path: str) -> dict[int, str]:
    """Captions by COCO's number of the image, from a file {image id: caption}."""
    if not path:
        return {}
    found = whole_json(needed(Path(path).expanduser(), "captions by image id", "your captioner"))
    if not isinstance(found, dict):
        raise DataError(f"{path} is no table of captions: it should be {{image id: caption}}")
    numbered = ((image_number(name), text) for name, text in found.items())
    return {number: str(text) for number, text in numbered if number is not None}
