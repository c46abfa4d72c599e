"""COCO captions from the official files: an item is an image, its answers are its captions.

Scored by CIDEr-D, divided by ten so that it lies between 0 and 1 like every other score.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from kleash.errors import ConfigError
from kleash.tasks.data.cider import Cider
from kleash.tasks.data.files import (
    Parts,
    Pictures,
    by_number,
    needed,
    records,
    split_by_image,
    with_images,
)
from kleash.tasks.data.vqa import field, image_folders
from kleash.types import Item

WHERE = "http://images.cocodataset.org/annotations/annotations_trainval2014.zip"
ASKED = "What does the image show?"


class Captions(Parts):
    """COCO captions; demonstrations show the first caption of their image."""

    def __init__(self, seed: int, *, folder: str, images: str, validation: int = 1000) -> None:
        root, left, found = Path(folder).expanduser(), Counter[str](), {}
        if not root.is_dir():
            raise ConfigError(f"no folder {root}: data_options.folder holds the files of {WHERE}")
        every = Pictures(())
        for split in ("train", "val"):
            path = needed(root / f"captions_{split}2014.json", "COCO captions", WHERE)
            pictures = Pictures(image_folders(images, split))
            every.paths |= pictures.paths
            items = with_images(iter(captioned(path, left)), pictures, left)
            found[split] = sorted(items, key=by_number)
        parts = split_by_image(found["val"], {"validation": validation}, "captions", seed)
        train = found["train"]
        named = {"demonstrations": train, "train": train, "validation": parts["validation"]}
        super().__init__("captions", named | {"test": parts["rest"]}, every, left)
        self._cider: Cider | None = None

    def score(self, answer: str, item: Item) -> float:
        """CIDEr-D over ten; how rare words are is counted over all images of the official split."""
        if self._cider is None:
            asked = (*self.parts["validation"], *self.parts["test"])
            self._cider = Cider([each.answers for each in asked])
        return self._cider(answer, item.answers)


def captioned(path: Path, left: Counter[str]) -> list[Item]:
    """One item for each image, with all its captions in the order of their ids."""
    said: dict[int, list[tuple[int, str]]] = {}
    for one in records(path, "annotations"):
        image, number, text = field(one, path, "image_id", "id", "caption")
        if text.strip():
            said.setdefault(image, []).append((number, " ".join(text.split())))
        else:
            left["empty caption"] += 1
    items = []
    for image, numbered in said.items():
        answers = tuple(text for _, text in sorted(numbered))
        items.append(Item(str(image), str(image), ASKED, answers, answers[0]))
    return items
