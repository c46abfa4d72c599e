"""What works on this machine, what is missing, and how to get it."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import sqlite3
from dataclasses import dataclass
from importlib.util import find_spec

from kleash.errors import KleashError


@dataclass(frozen=True)
class Examined:
    """One thing that was looked at."""

    what: str
    state: str
    remedy: str = ""


# Package, what it is for, how to get it.
EXTRAS = (
    ("torch", "training and evaluating", "pip install 'kleash[train]'"),
    (
        "transformers",
        "answerers and agents beyond the embedded ones",
        "pip install 'kleash[train]'",
    ),
    ("safetensors", "reading and writing checkpoints", "pip install 'kleash[train]'"),
    ("swanlab", "curves in SwanLab", "pip install 'kleash[swanlab]'"),
    ("modelscope", "models from ModelScope", "pip install modelscope"),
    ("trl", "the parity test of the leash", "pip install 'kleash[oracles]'"),
    ("statsmodels", "oracles in the tests of statistics", "pip install 'kleash[oracles]'"),
)


def examine() -> list[Examined]:
    """Everything a user may ask about, in the order of importance."""
    found = [
        Examined("python", platform.python_version()),
        Examined("machine", f"{platform.machine()}, {os.cpu_count()} cores, {free_space()} free"),
        Examined("sqlite", sqlite3.sqlite_version),
        *(package(*row) for row in EXTRAS),
    ]
    found.append(model_hub())
    if find_spec("torch") is not None:
        found += accelerators()
        found.append(embedded_answerer())
    return found


def package(name: str, purpose: str, remedy: str) -> Examined:
    """Whether a package is there, and for what it is needed."""
    try:
        return Examined(name, f"{importlib.metadata.version(name)}, for {purpose}")
    except importlib.metadata.PackageNotFoundError:
        return Examined(name, f"missing, for {purpose}", remedy)


def model_hub() -> Examined:
    """Where models come from: Kleash takes local folders, and never downloads by itself."""
    mirror = os.environ.get("HF_ENDPOINT", "")
    state = f"HF_ENDPOINT is {mirror}" if mirror else "HF_ENDPOINT is not set: huggingface.co"
    return Examined(
        "model hub",
        f"{state}; models are local folders (model=FOLDER)",
        "hf download NAME --local-dir FOLDER; where huggingface.co is not reached, first export"
        " HF_ENDPOINT=https://hf-mirror.com, or take modelscope download --model NAME"
        " --local_dir FOLDER",
    )


def free_space() -> str:
    """What the disk of the current folder still holds."""
    return f"{shutil.disk_usage('.').free / 2**30:.0f} GiB"


def accelerators() -> list[Examined]:
    """What torch can compute on."""
    import torch

    if not torch.cuda.is_available():
        return [
            Examined("gpu", "none: everything embedded runs on the CPU", "a CUDA build of torch")
        ]
    return [
        Examined(
            f"gpu {index}",
            f"{torch.cuda.get_device_name(index)},"
            f" {torch.cuda.get_device_properties(index).total_memory / 2**30:.0f} GiB",
        )
        for index in range(torch.cuda.device_count())
    ]


def embedded_answerer() -> Examined:
    """Whether the shipped weights load and answer one question rightly."""
    from kleash.answer.embedded import Embedded
    from kleash.data.scenes import Scenes
    from kleash.types import Prompt

    sizes = {"demonstrations": 1, "test": 40}
    scenes = Scenes(sizes=sizes)
    plain = [item for item in scenes.queries("test") if item.facts["kind"] == "plain"][:1]
    what, remedy = "embedded answerer", "pip install --force-reinstall kleash"
    try:
        answer = Embedded(scenes.image).answer([Prompt((), plain[0])])[0]
    except KleashError as error:
        return Examined(what, str(error), remedy)
    if answer.text != plain[0].answer:
        return Examined(
            what,
            f"answers {answer.text!r} where {plain[0].answer!r} is right: weights or arithmetic"
            " are not what was shipped",
            remedy,
        )
    return Examined(what, "loads and answers")
