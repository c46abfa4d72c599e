"""Questions with soft labels, in the form that LXMERT's files have: answers with their VQA scores.

One file is split by image, by the seed, into what may be shown, a validation part and a test part.
Scores that were written with three digits become the thirds they were.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kleash.errors import DataError
from kleash.tasks.data.files import (
    Parts,
    Pictures,
    image_number,
    needed,
    records,
    split_by_image,
    with_images,
)
from kleash.tasks.data.vqa import captions_of, field
from kleash.types import Item

WHERE = "https://github.com/airsplay/lxmert, or made from the official files"


class Lxmert(Parts):
    """Questions with soft labels; demonstrations and training queries are the same part."""

    lemmatised = True

    def __init__(
        self,
        seed: int,
        *,
        file: str,
        images: str = "",
        captions: str = "",
        validation: int = 500,
        test: int = 1500,
    ) -> None:
        path, left = Path(file).expanduser(), Counter[str]()
        needed(path, "questions with soft labels", WHERE)
        pictures = Pictures([Path(images).expanduser()] if images else [])
        read = self.read(path, captions_of(captions), left)
        items = with_images(read, pictures, left) if images else list(read)
        sizes = {"test": test, "validation": validation}
        parts = split_by_image(items, sizes, "lxmert", seed)
        shown = parts.pop("rest")
        super().__init__(
            "lxmert", {"demonstrations": shown, "train": shown, **parts}, pictures, left
        )

    def read(self, path: Path, captions: dict[int, str], left: Counter[str]) -> Iterator[Item]:
        """The questions that can be scored; the others are counted."""
        seen: set[str] = set()
        for one in records(path, ""):
            number, image, question = field(one, path, "question_id", "img_id", "sent")
            scores = soft_labels(one.get("label"), path)
            name, image_id = str(number), image_number(image)
            if not scores:
                left["without answers"] += 1
            elif name in seen:
                left["question id met before"] += 1
            elif captions and image_id not in captions:
                left["without caption"] += 1
            else:
                seen.add(name)
                best = max(scores, key=lambda pair: pair[1])[0]
                answers = tuple(answer for answer, _ in scores)
                caption = captions.get(image_id or -1, "")
                shown = str(image if image_id is None else image_id)
                yield Item(name, shown, question, answers, best, scores=scores, caption=caption)


def soft_labels(label: Any, path: Path) -> tuple[tuple[str, float], ...]:
    """Answers that say something, with scores above 0, in the file's order."""
    if label is None:
        return ()
    if not isinstance(label, dict):
        raise DataError(f"{path}: a label {str(label)[:40]!r} that is no table of answers")
    found = []
    for answer, score in label.items():
        if not isinstance(score, int | float) or not 0 <= score <= 1:
            raise DataError(f"{path}: {answer!r} is worth {score!r}, which is not from 0 to 1")
        if score and answer.strip():
            found.append((answer, mended(float(score))))
    return tuple(found)


def mended(score: float) -> float:
    """0.667 is two thirds."""
    thirds = round(3 * score) / 3
    return thirds if abs(score - thirds) < 5e-4 else score
