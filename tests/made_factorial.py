"""A study of agents as its files, written without training: what each setting does is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from kleash.config import build
from kleash.study.plan import Arm, StudyFile, arm_recipe, arms_of, base_recipe, start_of
from kleash.study.plan.folder import overview, write_asked, write_plan
from made_study import _checkpoint, _facts, _lines

ASKED: dict[str, Any] = {
    "name": "made-agents",
    "about": "a study made by hand",
    "seeds": 6,
    "base": {
        "env": "intention",
        "gym": {"surface": "tokens", "limit": 4},
        "supervised": {"epochs": 1},
    },
    "grpo": {"epochs": 10},
    "grid": {
        "leash.coefficient": [0.0, 0.01],
        "entropy_bonus": [0.0, 0.01],
        "schedule": ["constant", "cosine"],
    },
    "measure": {"items": [20, 40], "validation": 20},
}
Keys = Mapping[str, Any]


def made_factorial(folder: Path, worth: Callable[[Keys], float], **keys: Any) -> StudyFile:
    """The folder of a finished study: an arm's reward is its `worth`, give or take some luck."""
    file = build(StudyFile, ASKED | keys)
    arms = arms_of(file)
    folder.mkdir(parents=True)
    for seed in file.seeds:
        path = folder / f"base-s{seed}"
        _facts(path, base_recipe(file, seed).resolved(), seed)
        _checkpoint(path, "supervised-1", 1)
        scores = [
            s for n in file.measure.shots for s in _scores(file, "supervised-1", n, 0.5, seed)
        ]
        _lines(path / "scores.jsonl", scores)
        _lines(path / "metrics.jsonl", [])
    for number, arm in enumerate(arms):
        for seed in file.seeds:
            _arm(folder, file, arm, (seed, number), worth(arm.keys))
    write_asked(folder, file, arms, seen=False)
    write_plan(folder, overview(folder, file, arms), failures={})
    _lines(folder / "spent.jsonl", [{"job": "all", "asked": 0, "bought": 0, "seconds": 10.0}])
    return file


def _arm(folder: Path, file: StudyFile, arm: Arm, which: tuple[int, int], worth: float) -> None:
    seed, number = which
    path = folder / "runs" / f"{arm.name}-s{seed}"
    recipe = arm_recipe(file, arm, seed, start_of(folder, file, seed))
    _facts(path, recipe.resolved(), seed)
    rng = np.random.default_rng([seed, number])
    level = worth + 0.05 * float(rng.normal())
    metrics, scores = [], []
    for epoch in range(1, recipe.epochs + 1):
        reached = level * epoch / recipe.epochs
        metrics.append(
            {
                "kind": "epoch",
                "phase": "grpo",
                "epoch": epoch,
                "step": 10 * epoch,
                "validation/reward": reached + 0.02 * float(rng.normal()),
                "validation/reward_se": 0.05,
                "probe/kl/ref/exact/episode/mean": 0.1 * epoch,
            }
        )
        _checkpoint(path, f"epoch-{epoch}", epoch)
        scores += _scores(file, f"epoch-{epoch}", 0, reached, seed, "validation")
    for passes in file.measure.shots:
        scores += _scores(file, f"epoch-{recipe.epochs}", passes, level, seed)
    _lines(path / "metrics.jsonl", metrics)
    _lines(path / "scores.jsonl", scores)
    _lines(
        path / "timings.jsonl",
        [
            {"phase": "grpo", "epoch": e, "seconds": 3.0, "rollout_tokens_per_second": 900.0 + e}
            for e in range(1, recipe.epochs + 1)
        ],
    )
    (path / "done").touch()


def _scores(
    file: StudyFile, checkpoint: str, passes: int, mean: float, seed: int, split: str = "test"
) -> list[dict[str, Any]]:
    """Rewards around a mean, the same spread of tasks for all."""
    count = file.measure.items[-1] if split == "test" else file.measure.validation
    spread = np.random.default_rng([3, len(split)]).normal(size=count)
    spread -= spread.mean()
    return [
        {
            "checkpoint": checkpoint,
            "split": split,
            "shots": passes,
            "item": f"{split}-{n}",
            "pointer": ["ASK date ;", f"ASK {'budget' if seed % 2 else 'level'} ;", "STOP ;"],
            "answer": "finished",
            "score": mean + 0.3 * float(spread[n]),
            "heard": ["TASK ;", "USER ;", "USER ;"],
            "rewards": [0.0, mean, 0.0],
            "facts": {},
            "weights": "w",
        }
        for n in range(count)
    ]
