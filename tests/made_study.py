"""A study's folder as its files, written without training: every number in it is known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from kleash.config import build
from kleash.runs.run import write_json
from kleash.study.plan import (
    Arm,
    StudyFile,
    arm_recipe,
    arms_of,
    base_recipe,
    baseline_names,
    start_of,
)
from kleash.study.plan.folder import overview, write_asked, write_plan

EMBEDDED = {"supervised": {"epochs": 1}, "rce": {"epochs": 1}, "queries": 24}
# No more items than are looked at: a report makes the data set anew for their pictures.
SIZES = {"demonstrations": 24, "train": 24, "validation": 20, "test": 40}
ASKED: dict[str, Any] = {
    "name": "made",
    "about": "a study made by hand",
    "seeds": 8,
    "base": EMBEDDED | {"data_options": {"sizes": SIZES}},
    "grpo": {"epochs": 3, "lr": 1e-3},
    "arms": {
        "none": {"leash": {"coefficient": 0.0}},
        "kl0.15": {"leash": {"coefficient": 0.15}},
        "kl1.5": {"leash": {"coefficient": 1.5}},
    },
    "measure": {"shots": [1, 2], "items": [20, 40], "validation": 20, "greedy_items": 5},
    "compare": {"baselines": ["none"], "margin": 0.01},
    "expect": [
        {"arm": "kl0.15", "metric": "accuracy", "direction": "better", "why": "less drift"},
        {"arm": "kl1.5", "metric": "accuracy", "direction": "worse", "why": ""},
    ],
}
SHARES = {"none": 0.4, "kl0.15": 0.8, "kl1.5": 0.42}
FAR = {"none": 1.2, "kl0.15": 0.5, "kl1.5": 0.05}


def made_study(folder: Path, *, leave_out: tuple[str, ...] = (), **keys: Any) -> StudyFile:
    """The folder of a finished study; runs named in `leave_out` were never made."""
    file = build(StudyFile, ASKED | keys)
    arms = arms_of(file)
    folder.mkdir(parents=True)
    for seed in file.seeds:
        _base(folder, file, seed)
    for number, arm in enumerate(arms):
        for seed in file.seeds:
            if f"{arm.name}-s{seed}" not in leave_out:
                _arm(folder, file, arm, seed, number)
    write_asked(folder, file, arms, seen=False)
    write_plan(folder, overview(folder, file, arms), failures={})
    spent = {"job": "all", "asked": 1000, "bought": 400, "seconds": 10.0}
    _lines(folder / "spent.jsonl", [spent])
    return file


def _base(folder: Path, file: StudyFile, seed: int) -> None:
    path = folder / f"base-s{seed}"
    _facts(path, base_recipe(file, seed).resolved(), seed)
    _checkpoint(path, "rce-1", 1)
    scores = []
    for shots in file.measure.shots:
        scores += _scores(file, "rce-1", "test", shots, 0.3, seed, ("d0", "d1"))
        if seed == file.seeds[0]:
            for name in baseline_names(file):
                scores += _scores(file, f"baseline:{name}", "test", shots, 0.2, 0, ("d2", "d3"))
    _lines(path / "scores.jsonl", scores)
    _lines(path / "metrics.jsonl", [])


def _arm(folder: Path, file: StudyFile, arm: Arm, seed: int, number: int) -> None:
    path = folder / "runs" / f"{arm.name}-s{seed}"
    recipe = arm_recipe(file, arm, seed, start_of(folder, file, seed))
    _facts(path, recipe.resolved(), seed)
    share, far = SHARES.get(arm.name, 0.5), FAR.get(arm.name, 0.3)
    metrics: list[dict[str, Any]] = []
    scores: list[dict[str, Any]] = []
    rng = np.random.default_rng([seed, number])
    for epoch in range(1, recipe.epochs + 1):
        for step in range(3 * epoch - 2, 3 * epoch + 1):
            metrics.append(_step(step, epoch, far, float(rng.normal())))
        metrics.append(_epoch(epoch, far, share, float(rng.normal())))
        _checkpoint(path, f"epoch-{epoch}", epoch)
        shots, rising = recipe.shots, share - 0.05 * (recipe.epochs - epoch)
        own = (f"d{number}", "d9")
        scores += _scores(file, f"epoch-{epoch}", "validation", shots, rising, seed, own)
    for shots in file.measure.shots:
        last = f"epoch-{recipe.epochs}"
        scores += _scores(file, last, "test", shots, share, seed, (f"d{number}", "d9"))
    _lines(path / "metrics.jsonl", metrics)
    _lines(path / "scores.jsonl", scores)
    times = [{"phase": "grpo", "epoch": e, "seconds": 3.0 + number} for e in (1, 2, 3)]
    _lines(path / "timings.jsonl", times)
    (path / "done").touch()


def _step(step: int, epoch: int, far: float, noise: float) -> dict[str, Any]:
    return {
        "kind": "step",
        "step": step,
        "epoch": epoch,
        "loss": 0.1 / step + 0.001 * noise,
        "policy_loss": 0.05 / step,
        "entropy": 2.0 - 0.05 * step,
        "grad_norm": 1.0 + 0.1 * noise,
        "reward": 0.3 + 0.02 * step + 0.01 * noise,
        "mean_advantage": 0.0,
        "leash/value": far * step / 9,
    }


def _epoch(epoch: int, far: float, share: float, noise: float) -> dict[str, Any]:
    return {
        "kind": "epoch",
        "phase": "grpo",
        "epoch": epoch,
        "step": 3 * epoch,
        "entropy": 2.0 - 0.15 * epoch,
        "mean_advantage": 0.0,
        "loss": 0.05 / epoch + 0.001 * noise,
        "validation/accuracy": share - 0.05 * (3 - epoch),
        "probe/kl/ref/exact/episode/mean": far * epoch / 3 * (1 + 0.05 * noise),
    }


def _scores(  # every fact of a column of scores
    file: StudyFile,
    checkpoint: str,
    split: str,
    shots: int,
    share: float,
    seed: int,
    pointer: tuple[str, ...],
) -> list[dict[str, Any]]:
    count = file.measure.items[-1] if split == "test" else file.measure.validation
    ranks = np.random.default_rng([7, len(split)]).permutation(count)
    good = round(share * count) + seed % 2
    return [
        {
            "checkpoint": checkpoint,
            "split": split,
            "shots": shots,
            "item": f"{split}-{n}",
            "pointer": [f"demonstrations-{each[1:]}" for each in pointer[:shots]],
            "answer": "red" if ranks[n] < good else "blue",
            "score": 1.0 if ranks[n] < good else 0.0,
            "truth_logp": -1.0,
            "weights": "w",
        }
        for n in range(count)
    ]


def _facts(path: Path, config: dict[str, Any], seed: int) -> None:
    path.mkdir(parents=True)
    shared = {"data": "d" * 64, "pool": "random-8", "answerer": "a", "revision": "r" * 40}
    meta = {
        "identity": path.name,
        "diff": None,
        "base": "w",
        "counts": {"used": 24},
        "seeds": {"run": seed, "data": 0},
        **shared,
    }
    for name, value in (("config", config), ("given", {}), ("meta", meta)):
        write_json(path / f"{name}.json", value)


def _checkpoint(path: Path, name: str, epoch: int) -> None:
    folder = path / "checkpoints" / name
    folder.mkdir(parents=True)
    state = {"metrics_bytes": epoch, "step": 3 * epoch, "epoch": epoch, "weights_hash": "w"}
    write_json(folder / "state.json", state)


def _lines(path: Path, records: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(each) + "\n" for each in records), encoding="utf-8")
