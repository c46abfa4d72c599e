"""What a selector's project left behind becomes a run: checkpoints, curves, accuracies, data.

Strict throughout: weights fit a preset to the last tensor, or the file is refused with the reason.
What no file says is assumed, and told as assumed. Nothing in any file is run.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kleash.config import dotted, merge
from kleash.errors import DataError
from kleash.models.answer import ANSWERERS
from kleash.models.embed import ENCODERS
from kleash.runs.run import Run, identity, machine_facts, now, revision_facts
from kleash.tasks.data import DATASETS, imported
from kleash.tasks.demos.rl_checks import check, counts
from kleash.tasks.demos.rl_data import read_beams, read_pools, read_rl_data, read_whole
from kleash.train.adopt.files import CONVERTED, Found, Trained, look, trained
from kleash.train.adopt.weights import lost
from kleash.train.recipe import SelectorRecipe, recipe_from

if TYPE_CHECKING:
    from torch import Tensor

ASSUMED: dict[str, Any] = {
    "like": "lever-plus",
    "data": "okvqa",
    "data_options": {"folder": "data/okvqa", "images": "data/coco"},
    "encoder": "clip",
    "encoder_options": {"model": "models/clip-vit-base-patch32"},
    "answerer": "transformers",
    "answerer_options": {
        "model": "models/Qwen2.5-VL-3B-Instruct",
        "prompt": "documents",
        "beams": 3,
        "tokens": 5,
    },
    "selector": "v3",
    "shots": 2,
    "pool": {"kind": "random", "size": 64},
    "source": "offline",
    "batch": 1,
    "lr": 5e-6,
}
"""What Lever-Plus's own scripts use, for what no file says; docs/selector.md has the places."""
TABLES = {"data": DATASETS, "encoder": ENCODERS, "answerer": ANSWERERS}
KEPT = "adopted"
"""The folder of a run that holds the files it came from, other than weights."""


@dataclass(frozen=True)
class Said:
    """A sentence about what was adopted: a code and its facts."""

    code: str
    facts: Mapping[str, Any]


@dataclass
class Adopted:
    """The run, and all there is to say of it."""

    run: Run
    said: list[Said] = field(default_factory=list)


def adopt(path: Path, keys: Mapping[str, Any], out: Path) -> Adopted:
    """A file or a folder of them as a run in the folder `out`; `keys` say what no file says."""
    files, left = found_in(path)
    points, said = checkpoints([each for each in files if each.kind == "checkpoint"])
    told, data_says = look_at_data(files, points)
    told_by_files = merge(data_says, recipe_of(points))
    usual = assumed_beside(keys)
    layers = merge(usual, told_by_files, keys)
    recipe = recipe_from(layers)
    if not isinstance(recipe, SelectorRecipe):
        raise DataError("what is adopted is a selector's: leave `env` out")
    known = {name for name, _ in dotted(merge(told_by_files, keys))}
    assumed = {name: value for name, value in dotted(usual) if name not in known}
    said += told
    said.append(Said("adopt.assumed", {"assumed": assumed}))
    if left:
        said.append(Said("adopt.left", {"names": [each.name for each in left][:8]}))
    called = path.resolve()
    name = called.name if path.is_dir() else called.stem  # a folder may be called kl0.12
    run = place(out / name, recipe, layers, files, said)
    if run.finished:
        return Adopted(run, [Said("adopt.again", {"run": str(run.path)})])
    with run.lock():
        run.rewind(None)
        fill(run, recipe, points, files)
        run.finish()
    names = run.checkpoints()
    facts = {"run": str(run.path), "preset": recipe.selector, "names": names or ["—"]}
    return Adopted(run, [Said("adopt.run", facts), *said])


def assumed_beside(keys: Mapping[str, Any]) -> dict[str, Any]:
    """What is assumed where these keys are given: options go with the name they are options of."""
    for name, table in TABLES.items():
        imported(table, str(keys.get(name, ASSUMED[name])), name)
    others = {
        f"{name}_options" for name in TABLES if keys.get(name, ASSUMED[name]) != ASSUMED[name]
    }
    return {name: value for name, value in ASSUMED.items() if name not in others}


def found_in(path: Path) -> tuple[list[Found], list[Path]]:
    """The files that are known for what they are, and those that are not."""
    if not path.exists():
        raise DataError(f"no such file or folder: {path}")
    files = [path] if path.is_file() else sorted(each for each in path.iterdir() if each.is_file())
    looked = [(each, look(each)) for each in files]
    known = [found for _, found in looked if found is not None]
    if not known:
        raise DataError(
            f"{path} holds nothing to adopt: no checkpoint, curves, accuracies, RL data, beams,"
            " pools or embeddings"
        )
    return known, [each for each, found in looked if found is None]


# --- checkpoints


def checkpoints(found: Sequence[Found]) -> tuple[list[Trained], list[Said]]:
    """Checkpoints in the order of training; a conversion only beside nothing better."""
    every = sorted((trained(each) for each in found), key=lambda each: each.order)
    sources = {each.file.stem: each for each in every if not each.converted}
    kept, said = [], []
    for each in every:
        said += about(each)
        source = sources.get(each.file.stem.removesuffix(CONVERTED))
        if each.converted and source is not None:
            said += beside_source(each, source)
        else:
            kept.append(each)
            facts = {"file": each.file.name, "parameters": each.weights.parameters}
            said.append(Said("adopt.checkpoint", facts | {"name": each.name}))
    for one, other in pairwise(kept):
        if one.name == other.name:
            raise DataError(f"{one.file} and {other.file} are both {one.name}: adopt them apart")
    networks = {(each.weights.preset, each.weights.width) for each in kept}
    if len(networks) > 1:
        told = ", ".join(f"{name} for embeddings of {width}" for name, width in sorted(networks))
        raise DataError(f"a run has one network, and these are {told}: adopt them apart")
    return kept, said + alike(kept)


def about(each: Trained) -> list[Said]:
    """What a file's names give away: what evaluation never saw, and what is not the selector's."""
    weights, name = each.weights, {"file": each.file.name}
    said = []
    if weights.renamed:
        share = weights.never_loaded / weights.parameters
        facts: dict[str, Any] = {
            "count": len(weights.renamed),
            "parameters": weights.never_loaded,
        }
        facts |= {"total": weights.parameters, "share": share, "names": list(weights.renamed)}
        said.append(Said("adopt.renamed", name | facts))
    if weights.others:
        facts = {"parameters": sum(weights.others.values()), "names": sorted(weights.others)}
        said.append(Said("adopt.towers", name | facts))
    return said


def beside_source(each: Trained, source: Trained) -> list[Said]:
    """What a conversion no longer has, or has otherwise."""
    gone = lost(source.weights, each.weights)
    names = {"file": each.file.name, "source": source.file.name}
    if gone:
        facts = {"count": len(gone), "parameters": sum(gone.values()), "names": list(gone)}
        return [Said("adopt.lost", names | facts)]
    other = [name for name in differing(each, source) if name in source.weights.tensors]
    if other:
        return [Said("adopt.other", names | {"names": other})]
    return [Said("adopt.same", names)]


def differing(one: Trained, other: Trained) -> list[str]:
    """The tensors of both that are not equal."""
    ours, theirs = one.weights.tensors, other.weights.tensors
    return [name for name in ours if name in theirs and not _equal(ours[name], theirs[name])]


def _equal(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and bool((one == other).all())


def alike(kept: Sequence[Trained]) -> list[Said]:
    """Checkpoints that hold the same weights, one after the other."""
    return [
        Said("adopt.equal", {"names": [one.file.name, other.file.name]})
        for one, other in pairwise(kept)
        if not differing(one, other)
    ]


def recipe_of(points: Sequence[Trained]) -> dict[str, Any]:
    """What checkpoints tell of how they were trained."""
    told: dict[str, Any] = {"supervised": {"epochs": 0}, "rce": {"epochs": 0}, "epochs": 0}
    for each in points:
        told["selector"] = each.weights.preset
        if each.weights.shots:
            told["shots"] = each.weights.shots
        if each.phase == "grpo":
            told["epochs"] = each.epoch
        else:
            told[each.phase] = {"epochs": each.epoch}
        coefficient = (each.weights.facts or {}).get("kl_beta")
        if each.phase == "grpo" and isinstance(coefficient, int | float):
            told["leash"] = {"coefficient": float(coefficient)}
    late = [each for each in points if each.phase == "grpo"]
    first = [each for each in points if each.phase == "rce"][-1:] + late
    if late and len(first) > 1:
        moved = {name for pair in pairwise(first) for name in differing(*pair)}
        frozen = not any(name.startswith("projections.") for name in moved)
        told["freeze"] = ["projections"] if moved and frozen else []
    return told


# --- what is not weights


def look_at_data(
    files: Sequence[Found], points: Sequence[Trained]
) -> tuple[list[Said], dict[str, Any]]:
    """What each file holds, and what it tells of the recipe.

    RL data is checked against the pools beside it, where there is one file of them.
    """
    said: list[Said] = []
    told: dict[str, Any] = {}
    caches = [read_pools(each.file) for each in files if each.kind == "pools"]
    meant = caches[0] if len(caches) == 1 else None
    for each in files:
        name = {"file": each.file.name}
        if each.kind == "embeddings":
            rows, width = shape_of(each.held)
            expected = {point.weights.width for point in points} or {width}
            if expected != {width}:
                raise DataError(
                    f"{each.file} holds rows of {width}, and the checkpoints take {expected.pop()}"
                )
            said.append(Said("adopt.embeddings", name | {"count": rows, "width": width}))
        elif each.kind == "pools":
            pools = read_pools(each.file)
            sizes = sorted({len(pool) for pool in pools.values()})
            told = merge(told, {"pool": {"size": sizes[-1]}})
            said.append(Said("adopt.pools", name | {"queries": len(pools), "sizes": sizes}))
        elif each.kind == "beams":
            beams = read_beams(each.file)
            pointers = sum(map(len, beams.values()))
            said.append(Said("adopt.beams", name | {"queries": len(beams), "pointers": pointers}))
        elif each.kind == "rl data":
            held = counts(read := read_rl_data(each.file))
            wrong = sum(noticed.severity == "wrong" for noticed in check(read, meant))
            told = merge(told, {"shots": held["lengths"][-1]} if held["lengths"] else {})
            if held["sizes"][-1]:
                told = merge(told, {"pool": {"size": held["sizes"][-1]}})
            said.append(Said("adopt.rl", name | held | {"wrong": wrong}))
        elif each.kind in ("curves", "accuracy"):
            said.append(Said(f"adopt.{each.kind}", name))
    return said, told


def shape_of(held: Any) -> tuple[int, int]:
    """How many rows, how wide."""
    if isinstance(held, Mapping):
        return len(held), int(next(iter(held.values())).shape[0])
    return int(held.shape[0]), int(held.shape[1])


# --- the run


def place(
    folder: Path,
    recipe: SelectorRecipe,
    given: Mapping[str, Any],
    files: Sequence[Found],
    said: Sequence[Said],
) -> Run:
    """The folder of the run, known by the content of all that it came from."""
    contents = {each.file.name: each.content for each in files}
    whole = hashlib.sha256(repr(sorted(contents.items())).encode()).hexdigest()
    config = recipe.resolved()
    meta = {
        "identity": identity(config, whole, None, length=()),
        "data": whole,
        "base": None,
        KEPT: {
            "files": contents,
            "said": [{"code": each.code, **each.facts} for each in said],
            "adopted": now(),
        },
        **revision_facts(),
        **machine_facts(),
    }
    folder.parent.mkdir(parents=True, exist_ok=True)
    return Run.create(folder, config, given, meta)


def fill(
    run: Run, recipe: SelectorRecipe, points: Sequence[Trained], files: Sequence[Found]
) -> None:
    """Curves, checkpoints and the other files."""
    curves = [line for each in files if each.kind == "curves" for line in epochs_of(each.file)]
    left = list(curves)
    for each in points:
        due = [line for line in left if each.phase == "grpo" and line["epoch"] <= each.epoch]
        left = [line for line in left if line not in due]
        facts = each.weights.facts or {}
        known = any(line["epoch"] == each.epoch for line in due)
        measured = facts.get("metrics")
        line = {"kind": "epoch", "phase": each.phase, "epoch": each.epoch, "step": each.epoch}
        for one in [*due, *([] if known else [line | plain_numbers(measured)])]:
            run.log(one)
        state = {
            "phase": each.phase,
            "epoch": each.epoch,
            "step": each.epoch,
            "shots": recipe.shots,
            "pool": recipe.pool.maker,
            "adopted_from": each.file.name,
            "facts": facts,
        }
        run.save(each.name, each.weights.tensors, {}, state)
    for one in left:
        run.log(one)
    keep = run.path / KEPT
    keep.mkdir(exist_ok=True)
    for found in files:
        if found.kind != "checkpoint":
            shutil.copyfile(found.file, keep / found.file.name)


def epochs_of(file: Path) -> list[dict[str, Any]]:
    """Training metrics, an epoch a line, under their own names."""
    _, value = read_whole(file)
    made = []
    for entry in value if isinstance(value, list) else []:
        if not isinstance(entry, dict) or type(entry.get("epoch")) is not int:
            raise DataError(f"{file}: an entry has no epoch: {str(entry)[:60]}")
        place = {"kind": "epoch", "phase": "grpo", "epoch": entry["epoch"], "step": entry["epoch"]}
        made.append(place | plain_numbers(entry))
    return sorted(made, key=lambda line: int(line["epoch"]))


def plain_numbers(values: Any) -> dict[str, float]:
    """The finite numbers of an entry, by their own names."""
    if not isinstance(values, Mapping):
        return {}
    return {
        str(name): value
        for name, value in values.items()
        if name not in ("epoch", "step", "kind", "phase")
        and isinstance(value, int | float)
        and abs(value) < float("inf")
    }
