"""What the embedded answerer does on a GPU: as fast as, as like the CPU's as, served or not.

    PYTHONPATH=src:tests python scripts/bench_gpu.py cuda:0

Prints JSON. On a machine without a GPU, `cpu` shows that it runs.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from kleash.models.answer.embedded import Embedded
from kleash.models.answer.serving import Model, Served
from kleash.seeds import generator
from kleash.study.running import Asked, run_study
from kleash.study.servers import served
from kleash.tasks.data.scenes import Scenes
from kleash.types import Prompt
from study_tools import lasting, small

MODEL = Model("embedded", "scenes", 0)
CLIENTS, EACH = 8, 4_096
ROUNDS = 5


def drawn(count: int, shots: int, name: object) -> list[Prompt]:
    """Prompts at random."""
    scenes, rng = Scenes(), generator("bench", "gpu", shots, name)
    shown, asked = scenes.demonstrations, scenes.queries("test")
    return [
        Prompt(
            tuple(shown[i] for i in rng.integers(len(shown), size=shots)),
            asked[int(rng.integers(len(asked)))],
        )
        for _ in range(count)
    ]


def rate(answerer: Embedded, prompts: list[Prompt]) -> float:
    """Answers per second of wall time, pictures looked at before; median."""
    answerer.answer(prompts)
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        answerer.answer(prompts)
        times.append(len(prompts) / (time.perf_counter() - began))
    return statistics.median(times)


def alone(device: str) -> dict[str, Any]:
    """One process: speed by size of batch, and how far answers are from the CPU's."""
    scenes = Scenes()
    there, here = Embedded(scenes.image, device=device), Embedded(scenes.image)
    prompts = [prompt for shots in (1, 2, 3, 4) for prompt in drawn(1_024, shots, "alone")]
    found: dict[str, Any] = {"cpu, answers/s": rate(here, prompts)}
    for size in (64, 256, 512, 1024):
        there.batch = size
        found[f"{device}, batches of {size}, answers/s"] = rate(there, prompts)
    there = Embedded(scenes.image, device=device)
    ours, theirs = there.answer(prompts), here.answer(prompts)
    pairs = list(zip(ours, theirs, strict=True))
    found["prompts"] = len(prompts)
    found["other texts than on the CPU"] = sum(a.text != b.text for a, b in pairs)
    found["largest gap of truth_logp"] = max(abs(a.truth_logp - b.truth_logp) for a, b in pairs)
    order = generator("bench", "gpu", "order").permutation(len(prompts)).tolist()
    again: dict[int, Any] = {}
    fresh = Embedded(scenes.image, device=device)
    for start in range(0, len(order), 333):
        places = order[start : start + 333]
        answers = fresh.answer([prompts[place] for place in places])
        again.update(zip(places, answers, strict=True))
    same = sum(again[place] == answer for place, answer in enumerate(ours))
    found["same bits in another order and company"] = same
    return found


def ask(folder: str, number: int) -> tuple[float, float]:
    """One client: from its first question to its last answer."""
    prompts = drawn(EACH, 2, number)
    client = Served(Path(folder), MODEL)
    client.answer(drawn(64, 2, "first"))
    began = time.time()
    for start in range(0, EACH, 512):
        client.answer(prompts[start : start + 512])
    return began, time.time()


def together(device: str) -> dict[str, Any]:
    """Many clients of one server."""
    with served(MODEL, [device]) as folder:
        client = Served(folder, MODEL)
        client.embed(Scenes().demonstrations)
        client.embed(Scenes().queries("test"))
        with ProcessPoolExecutor(CLIENTS, get_context("spawn")) as pool:
            times = list(pool.map(ask, [str(folder)] * CLIENTS, range(CLIENTS)))
        (counts,) = client.counts()
    spent = max(end for _, end in times) - min(began for began, _ in times)
    return {
        f"served to {CLIENTS}, answers/s": CLIENTS * EACH / spent,
        "prompts per batch": counts["paid"] / counts["batches"],
    }


def studies(device: str) -> dict[str, Any]:
    """A small study three ways: served with 8 and with 3 workers, and the policy there as well."""
    base = {"data": "tiny:few_scenes", "answerer": "embedded"}
    found: dict[str, Any] = {}
    kept = []
    with tempfile.TemporaryDirectory() as name:
        for way, jobs, policy in (("8 jobs", 8, "cpu"), ("3 jobs", 3, "cpu"), ("all", 8, device)):
            folder = Path(name) / way
            began = time.perf_counter()
            asked = Asked(small(base=base), folder, jobs, device=policy, gpus=(device,))
            ran = run_study(asked)
            found[f"study, {way}"] = {
                "seconds": time.perf_counter() - began,
                "failures": ran.failures,
                "cells": ran.overview.counts(),
            }
            kept.append(lasting(folder))
    found["the same bytes with 8 and with 3 workers"] = kept[0] == kept[1]
    return found


if __name__ == "__main__":
    where = sys.argv[1]
    for part in (alone, together, studies):
        print(json.dumps(part(where), indent=1), flush=True)  # noqa: T201  # its result
