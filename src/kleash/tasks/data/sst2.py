"""SST-2 from GLUE's files: is a sentence about a film positive or negative? There is no image."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

from kleash.errors import DataError
from kleash.tasks.data.files import Parts, Pictures, needed, split_by_image
from kleash.types import Item

WHERE = "https://dl.fbaipublicfiles.com/glue/data/SST-2.zip"
LABELS = {"0": "negative", "1": "positive"}


class Sst2(Parts):
    """SST-2: demonstrations and training queries are train.tsv; dev.tsv is split by the seed."""

    def __init__(self, seed: int, *, folder: str, validation: int = 200) -> None:
        root, left = Path(folder).expanduser(), Counter[str]()
        train, dev = (sentences(root / f"{name}.tsv", name, left) for name in ("train", "dev"))
        parts = split_by_image(dev, {"validation": validation}, "sst2", seed)
        named = {"demonstrations": train, "train": train, "validation": parts["validation"]}
        super().__init__("sst2", named | {"test": parts["rest"]}, Pictures(()), left)


def sentences(path: Path, part: str, left: Counter[str]) -> list[Item]:
    """The sentences of a file; a score of 1 is the right word."""
    needed(path, "sentences of SST-2 with their labels", WHERE)
    items = []
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
            for number, row in enumerate(rows):
                label = LABELS.get(row.get("label") or "")
                if label is None:
                    left["without label"] += 1
                    continue
                name = f"{part}-{number}"
                text = (row.get("sentence") or "").strip()
                items.append(Item(name, name, text, (label,), label, scores=((label, 1.0),)))
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path} is no table of sentences ({error}): fetch it again") from None
    return items
