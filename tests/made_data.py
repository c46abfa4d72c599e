"""Miniature data sets in their official formats, images included, made in a moment.

A picture is one colour with a shape in another; questions ask for either. So what is asked can be
seen, and nothing is downloaded.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw

from kleash.seeds import generator

COLOURS = {"red": (220, 40, 40), "green": (40, 170, 60), "blue": (50, 70, 210), "white": (240,) * 3}
SHAPES = ("circle", "square", "triangle")
IMAGES = {"train": range(100, 140), "val": range(500, 540)}
SIDE = 28


def picture(path: Path, ground: str, ink: str, shape: str) -> None:
    """One image of a shape."""
    image = Image.new("RGB", (SIDE, SIDE), COLOURS[ground])
    draw, box = ImageDraw.Draw(image), (6, 6, SIDE - 7, SIDE - 7)
    if shape == "circle":
        draw.ellipse(box, fill=COLOURS[ink])
    elif shape == "square":
        draw.rectangle(box, fill=COLOURS[ink])
    else:
        draw.polygon([(6, SIDE - 7), (SIDE - 7, SIDE - 7), (SIDE // 2, 6)], fill=COLOURS[ink])
    image.save(path, "JPEG")


def write(path: Path, what: Any) -> None:
    """A JSON file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(what), encoding="utf-8")


def official_vqa(folder: Path, prefix: str = "") -> dict[str, Any]:
    """Questions and annotations of both official splits and COCO's folders; the options to read it.

    Questions stand in no order, as in the official files.
    """
    captions = {}
    for split, numbers in IMAGES.items():
        questions, annotations = [], []
        (folder / "images" / f"{split}2014").mkdir(parents=True)
        for number in numbers:
            rng = generator("made data", split, number)
            ground, ink = (list(COLOURS)[int(at)] for at in rng.permutation(len(COLOURS))[:2])
            shape = SHAPES[int(rng.integers(len(SHAPES)))]
            name = f"COCO_{split}2014_{number:012d}.jpg"
            picture(folder / "images" / f"{split}2014" / name, ground, ink, shape)
            captions[str(number)] = f"a {ink} {shape} on a {ground} ground"
            asked = (("What shape is it?", shape), ("What colour is the ground?", ground))
            for at, (question, truth) in enumerate(asked[: 1 + number % 2]):
                ident = {"image_id": number, "question_id": 10 * number + at}
                agreed = int(rng.integers(4, 10))
                said = [truth] * agreed + ["something"] * (10 - agreed)
                questions.append(ident | {"question": question})
                answers = [
                    {"answer": each, "answer_confidence": "yes", "answer_id": n + 1}
                    for n, each in enumerate(said)
                ]
                annotations.append(ident | {"answers": answers, "multiple_choice_answer": truth})
        info = {"info": {"description": "made"}, "data_type": "mscoco", "license": {}}
        write(
            folder / f"{prefix}OpenEnded_mscoco_{split}2014_questions.json",
            info | {"questions": questions[::-1]},
        )
        write(
            folder / f"{prefix}mscoco_{split}2014_annotations.json",
            info | {"annotations": annotations},
        )
    write(folder / "captions.json", captions)
    return {"folder": str(folder), "images": str(folder / "images"), "validation": 12}


def soft_vqa(folder: Path, count: int = 60) -> dict[str, Any]:
    """Questions with soft labels, two on every third image, and captions."""
    made = []
    for number in range(count):
        image = number - (number % 3 == 2)
        label = {"red": 1, "rose": 0.667} if number % 2 else {"blue": 1}
        made.append(
            {
                "sent": f"what colour is thing {number}?",
                "question_id": 7000 - number,
                "img_id": f"COCO_val2014_{image:012d}",
                "label": label,
            }
        )
    write(folder / "soft.json", made)
    write(folder / "captions.json", {str(n): f"thing number {n}" for n in range(count)})
    return {
        "file": str(folder / "soft.json"),
        "captions": str(folder / "captions.json"),
        "validation": 10,
        "test": 20,
    }


def coco_captions(folder: Path) -> dict[str, Any]:
    """COCO captions, five of each image."""
    options = official_vqa(folder)
    said = json.loads((folder / "captions.json").read_text())
    for split, numbers in IMAGES.items():
        annotations = [
            {"image_id": n, "id": 5 * n + at, "caption": f"{said[str(n)]} {'indeed ' * at}"}
            for n in numbers
            for at in range(5)
        ]
        images = [{"id": n, "file_name": f"COCO_{split}2014_{n:012d}.jpg"} for n in numbers]
        write(folder / f"captions_{split}2014.json", {"images": images, "annotations": annotations})
    return options


def glue_sst2(folder: Path) -> dict[str, Any]:
    """SST-2's two files."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, count in (("train", 40), ("dev", 30)):
        lines = [f'a {"fine" if n % 2 else "dull"} "film {n} \t{n % 2}' for n in range(count)]
        (folder / f"{name}.tsv").write_text("\n".join(["sentence\tlabel", *lines]) + "\n")
    return {"folder": str(folder), "validation": 10}


def options_for(name: str, folder: Path) -> dict[str, Any]:
    """The files of a data set and the options that name them; nothing for one that is made."""
    makers = {
        "okvqa": official_vqa,
        "vqav2": lambda where: official_vqa(where, "v2_"),
        "lxmert": soft_vqa,
        "captions": coco_captions,
        "sst2": glue_sst2,
    }
    return makers[name](folder) if name in makers else {}
