"""What works on this machine, what is missing, and how to get it; what fits which GPU."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import sqlite3
from dataclasses import dataclass
from importlib.util import find_spec

from kleash.errors import KleashError
from kleash.models.language.memory import CARDS, LEAST, WAYS, Fit, fitting, plan, shape_at
from kleash.models.language.shape import QWEN3, Shape
from kleash.report.words import Language, say, term


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
    from kleash.models.answer.embedded import Embedded
    from kleash.tasks.data.scenes import Scenes
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


# --- what fits


@dataclass(frozen=True)
class Sheet:
    """A table that is printed."""

    title: str
    head: list[str]
    rows: list[list[str]]
    note: str = ""


def what_fits(language: Language) -> Sheet:
    """For every size of Qwen3 and every card, the most demanding way of training that fits."""
    rows = []
    for size, shape in QWEN3.items():
        by_card = zip(*fitting(shape), strict=True)
        rows.append([size, *(_best(ways, shape, language) for ways in by_card)])
    facts = {name: getattr(LEAST, name) for name in ("tokens", "conversations", "context")}
    note = say("memory.note", facts, language)
    head = [_word("model", language), *(card.name for card in CARDS)]
    return Sheet(say("memory.fits", {}, language), head, rows, note)


def _best(ways: tuple[Fit, ...], shape: Shape, language: Language) -> str:
    found = next((each for each in ways if each.fits), None)
    if found is None:
        return _word("nothing", language)
    return f"{_word(found.way, language)}\n{_told(found, shape, language)}"


def _told(found: Fit, shape: Shape, language: Language) -> str:
    """What it takes, and how many layers are worked out again; or that it does not fit."""
    gib = _gib(found.memory.total)
    if not found.fits:
        return say("memory.no", {"gib": gib}, language)
    facts = {"again": found.recompute, "layers": shape.layers}
    return f"{gib} GiB" + (f", {say('memory.again', facts, language)}" if found.recompute else "")


def parts_of(model: str, language: Language) -> Sheet:
    """Every way of training a model: GiB by part with nothing recomputed, and what fits a card."""
    shape = shape_at(model)
    names = [*plan(shape, LEAST).device, "host", *(card.name for card in CARDS)]
    columns = []
    for fits in fitting(shape):
        memory = plan(shape, WAYS[fits[0].way])
        parts = [*memory.device.values(), sum(memory.host.values())]
        cards = [_told(each, shape, language) for each in fits]
        columns.append([*map(_gib, parts), *cards])
    ways = [_word(way, language) for way in WAYS]
    rows = [[_word(name, language), *row] for name, *row in zip(names, *columns, strict=True)]
    title = say("memory.model", {"model": model}, language)
    return Sheet(title, [_word("part", language), *ways], rows)


def _word(name: str, language: Language) -> str:
    return term(f"memory.column.{name}", language, name)


def _gib(number: float) -> str:
    return f"{number / 2**30:.1f}"
