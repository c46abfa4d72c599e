"""A study of language agents as its files, written without training: every word is known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kleash.config import build
from kleash.runs.run import canonical, write_json
from kleash.study.plan import StudyFile, arm_recipe, arms_of, base_recipe, start_of
from kleash.study.plan.folder import overview, write_asked, write_plan

ASKED: dict[str, Any] = {
    "name": "talking",
    "seeds": 2,
    "base": {"env": "intention", "gym": {"surface": "tokens", "limit": 4}},
    "grpo": {"epochs": 2, "steps": 2},
    "arms": {
        "none": {"leash": {"coefficient": 0.0}},
        "tight": {"leash": {"coefficient": 1.0}},
    },
    "measure": {"shots": [0], "items": [6], "validation": 6},
    "compare": {"baselines": ["none"]},
}
TASKS = 6
KEPT = 4  # of them have a transcript
CHOSEN = "epoch-2"


def made_agents(folder: Path) -> StudyFile:
    """The folder of a finished study: the arms disagree on tasks 1, 3 and 5."""
    file = build(StudyFile, ASKED)
    arms = arms_of(file)
    folder.mkdir(parents=True)
    for seed in file.seeds:
        _run(folder / f"base-s{seed}", base_recipe(file, seed).resolved(), "supervised-3", "none")
    for arm in arms:
        for seed in file.seeds:
            recipe = arm_recipe(file, arm, seed, start_of(folder, file, seed))
            _run(folder / "runs" / f"{arm.name}-s{seed}", recipe.resolved(), CHOSEN, arm.name)
    write_asked(folder, file, arms, seen=False)
    write_plan(folder, overview(folder, file, arms), failures={})
    (folder / "spent.jsonl").touch()
    return file


def said_by(arm: str, task: int) -> list[dict[str, Any]]:
    """What an arm says in a task: on odd ones the tight arm gives up after one question."""
    budget = {
        "heard": "TASK party ;",
        "said": "ASK budget ;",
        "reward": 0.7,
        "covered": ["Price range"],
        "tokens": [["ASK", -0.01, 0.004], ["budget", -1.2, 0.25], [";", -0.1, 2.5]],
    }
    date = {
        "heard": "USER budget any_sum ;",
        "said": "ASK date ;",
        "reward": 1.0,
        "covered": ["Date or deadline"],
        "tokens": [["ASK", -0.02, 0.02], ["date", -0.9, 0.6], [";", -0.1, 0.0]],
    }
    stop = {
        "heard": "USER budget any_sum ;",
        "said": "STOP ;",
        "reward": 0.0,
        "covered": [],
        "tokens": [["STOP", -0.4, 0.3], [";", -0.1, 0.0]],
    }
    return [budget, stop if arm == "tight" and task % 2 else date]


def lines(arm: str, checkpoint: str, split: str) -> tuple[list[Any], list[Any]]:
    """The scores of a checkpoint and its transcripts."""
    scores, kept = [], []
    for n in range(TASKS):
        turns = said_by(arm, n)
        reason = "finished" if turns[-1]["said"] == "STOP ;" else "covered"
        facts = {"coverage": len([t for t in turns if t["covered"]]) / 2, "turns": 2.0}
        line = {
            "checkpoint": checkpoint,
            "split": split,
            "shots": 0,
            "item": f"{split}-{n}",
            "pointer": [turn["said"] for turn in turns],
            "heard": [turn["heard"] for turn in turns],
            "rewards": [turn["reward"] for turn in turns],
            "score": sum(turn["reward"] for turn in turns),
            "answer": reason,
            "facts": facts,
            "weights": "w",
        }
        scores.append(line)
        transcript = {"item": line["item"], "turns": turns, "answer": reason, "facts": facts}
        kept.append(transcript | {"checkpoint": checkpoint, "weights": "w"})
    return scores, kept[:KEPT]


def _run(path: Path, config: dict[str, Any], checkpoint: str, arm: str) -> None:
    path.mkdir(parents=True)
    meta = {
        "identity": path.name,
        "base": None if checkpoint.startswith("supervised") else "w",
        "data": "d" * 32,
        "model": "tiny",
        "speech": "s" * 32,
        "revision": "r" * 40,
        "diff": None,
        "counts": {"used": 24},
        "seeds": {"run": config["seed"]},
    }
    for name, value in (("config", config), ("given", {}), ("meta", meta)):
        write_json(path / f"{name}.json", value)
    names = [checkpoint] if checkpoint != CHOSEN else ["epoch-1", "epoch-2"]
    scores: list[Any] = []
    metrics: list[Any] = []
    for at, name in enumerate(names, 1):
        folder = path / "checkpoints" / name
        folder.mkdir(parents=True)
        state = {"metrics_bytes": at, "step": 2 * at, "epoch": at, "weights_hash": "w"}
        write_json(folder / "state.json", state)
        if checkpoint == CHOSEN:
            found, _ = lines(arm, name, "validation")
            worse = [line | {"score": 0.5 * line["score"]} for line in found]
            scores += found if name == CHOSEN else worse
            metrics.append(_epoch(at, arm))
    found, kept = lines(arm, checkpoint, "test")
    _lines(path / "scores.jsonl", scores + found)
    _lines(path / "metrics.jsonl", metrics)
    (path / "transcripts").mkdir()
    (path / "transcripts" / f"{checkpoint}.jsonl").write_bytes(b"".join(map(canonical, kept)))
    (path / "done").touch()


def _epoch(epoch: int, arm: str) -> dict[str, Any]:
    return {
        "kind": "epoch",
        "phase": "grpo",
        "epoch": epoch,
        "step": 2 * epoch,
        "entropy": 1.0,
        "loss": 0.1,
        "validation/reward": 0.5 * epoch,
        "probe/kl/ref/exact/episode/mean": 0.2 if arm == "tight" else 0.9,
    }


def _lines(path: Path, records: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(each) + "\n" for each in records), encoding="utf-8")
