"""How long pages and reports take with 1,000 runs of 1,000 points: `python -m benchmarks report`.

The runs are written, not trained: what their numbers are does not matter to the clock. A point is
one number of one metric at one step. Times are of one core, and the first time counts: every page
is asked of a server that has just started, every report is made by a process of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kleash.config import build
from kleash.seeds import generator

if TYPE_CHECKING:
    from kleash.study.plan import StudyFile

ARMS, SEEDS = 200, 5
STEPS, EPOCHS = 95, 5
LOGGED = (
    *("loss", "policy_loss", "entropy", "grad_norm", "reward", "mean_advantage"),
    *("std_advantage", "leash/value", "clip_fraction", "ratio"),
)
MEASURED = (
    *("loss", "entropy", "validation/accuracy", "probe/kl/ref/exact/episode/mean"),
    *(f"probe/{n}" for n in range(6)),
)
POINTS = STEPS * len(LOGGED) + EPOCHS * len(MEASURED)
LIMITS = {"index": 0.3, "study page": 0.5, "report of a study": 5.0, "report of logs": 5.0}
STUDY, LOGS = "large", "logs"
TIMES = 3  # that a report is made: other programs on the machine only add to its CPU time
VERB = "from kleash.cli import main; main()"


def write_folder(folder: Path, arms: int = ARMS, seeds: int = SEEDS) -> None:
    """A finished study, as many runs that lie loose beside it, and as many logs of no project."""
    from kleash.study.plan import StudyFile, arms_of
    from kleash.study.plan.folder import overview, write_asked, write_plan

    asked = {
        "name": STUDY,
        "seeds": seeds,
        "base": {"supervised": {"epochs": 1}, "rce": {"epochs": 1}},
        "grpo": {"epochs": EPOCHS},
        "grid": {"leash.coefficient": [n / 1000 for n in range(arms)]},
        "measure": {
            "shots": [1, 2],
            "items": [25],
            "validation": 10,
            "greedy_items": 5,
            "choose": "last",
        },
    }
    file, study = build(StudyFile, asked), folder / STUDY
    _write_runs(folder, study, file)
    write_asked(study, file, arms_of(file), seen=False)
    write_plan(study, overview(study, file, arms_of(file)), failures={})
    _write_logs(folder / LOGS, arms * seeds)


def _write_runs(folder: Path, study: Path, file: StudyFile) -> None:
    from kleash.study.plan import arm_recipe, arms_of, base_recipe, baseline_names, start_of

    rng = generator("bench", "runs")
    for seed in file.seeds:
        base = study / f"base-s{seed}"
        _write_facts(base, base_recipe(file, seed).resolved(), seed)
        _write_checkpoint(base, "rce-1", 1)
        names = ["rce-1"]
        if seed == file.seeds[0]:
            names += [f"baseline:{name}" for name in baseline_names(file)]
        lines = [line for name in names for line in _scores(file, name, "test", rng)]
        _write_lines(base / "scores.jsonl", lines)
        _write_lines(base / "metrics.jsonl", [])
    for arm in arms_of(file):
        for seed in file.seeds:
            name = f"{arm.name}-s{seed}"
            config = arm_recipe(file, arm, seed, start_of(study, file, seed)).resolved()
            run = study / "runs" / name
            _write_facts(folder / name, config, seed)
            _write_facts(run, config, seed)
            _write_lines(run / "metrics.jsonl", _metrics(rng))
            scores = []
            for epoch in range(1, EPOCHS + 1):
                _write_checkpoint(run, f"epoch-{epoch}", epoch)
                scores += _scores(file, f"epoch-{epoch}", "validation", rng)
            scores += _scores(file, f"epoch-{EPOCHS}", "test", rng)
            _write_lines(run / "scores.jsonl", scores)
            (run / "done").touch()


def _write_facts(path: Path, config: dict[str, Any], seed: int) -> None:
    path.mkdir(parents=True)
    shared = {"data": "d" * 64, "pool": "random-8", "answerer": "a", "revision": "r" * 40}
    meta = {"identity": path.name, "diff": None, "base": "w", "counts": {"used": 24}}
    meta |= {"seeds": {"run": seed, "data": 0}, **shared}
    for name, value in (("config", config), ("given", {}), ("meta", meta)):
        (path / f"{name}.json").write_text(json.dumps(value, indent=2), encoding="utf-8")


def _write_checkpoint(path: Path, name: str, epoch: int) -> None:
    folder = path / "checkpoints" / name
    folder.mkdir(parents=True)
    state = {"metrics_bytes": epoch, "step": epoch, "epoch": epoch, "weights_hash": "w"}
    (folder / "state.json").write_text(json.dumps(state), encoding="utf-8")


def _metrics(rng: Any) -> list[dict[str, Any]]:
    values = rng.random((STEPS, len(LOGGED))).round(6).tolist()
    lines: list[dict[str, Any]] = [
        {"kind": "step", "step": step, **dict(zip(LOGGED, row, strict=True))}
        for step, row in enumerate(values, 1)
    ]
    for epoch, row in enumerate(rng.random((EPOCHS, len(MEASURED))).tolist(), 1):
        place = {"kind": "epoch", "phase": "grpo", "epoch": epoch, "step": epoch * STEPS // EPOCHS}
        lines.append(place | dict(zip(MEASURED, row, strict=True)))
    return lines


def _scores(file: StudyFile, checkpoint: str, split: str, rng: Any) -> list[dict[str, Any]]:
    measure = file.measure
    count, shots = (measure.items[-1], measure.shots) if split == "test" else (10, (2,))
    return [
        {
            "checkpoint": checkpoint,
            "split": split,
            "shots": each,
            "item": f"{split}-{n}",
            "pointer": [f"demonstrations-{d}" for d in rng.integers(0, 8, size=each)],
            "answer": "red",
            "score": float(rng.random() < 0.5),
            "truth_logp": -1.0,
            "weights": "w",
        }
        for each in shots
        for n in range(count)
    ]


def _write_lines(path: Path, records: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(each) + "\n" for each in records), encoding="utf-8")


def _write_logs(folder: Path, runs: int) -> None:
    """CSV logs of five arms: as many points each, ten metrics."""
    folder.mkdir()
    rng = generator("bench", "logs")
    names = ("eval/reward", "kl", "loss", *(f"group/metric_{n}" for n in range(7)))
    rows = POINTS // len(names)
    for run in range(runs):
        values = rng.random((rows, len(names))).round(6).tolist()
        lines = [",".join(map(str, (step, *row))) for step, row in enumerate(values)]
        text = "\n".join([",".join(("step", *names)), *lines, ""])
        (folder / f"kl{run % 5 / 10}-s{run // 5}.csv").write_text(text, encoding="utf-8")


def page_seconds(folder: Path, address: str) -> float:
    """CPU of this process for a page of a server that has just started; then it is shut down."""
    from starlette.testclient import TestClient

    from kleash.report.serve import dashboard

    with TestClient(dashboard(folder), base_url="http://127.0.0.1") as client:
        client.get("/page.css")  # whoever looks has a connection
        began = time.process_time()
        answer = client.get(address)
        taken = time.process_time() - began
    if answer.status_code != 200:
        raise RuntimeError(f"{address} was answered with {answer.status_code}")
    return taken


def report_seconds(source: Path, out: Path | None = None) -> float:
    """CPU, user's and system's, of a process that makes a report, Markdown and page, from nothing.

    Of a study they are written to its folder, of logs to `out`. The modules' bytecode is kept, as
    after an installation: the first of several processes may have to write it.
    """
    command = [sys.executable, "-c", VERB, "report", str(source), "--lang", "en"]
    if out is not None:
        command += ["--md", str(out / "report.md"), "--html", str(out / "report.html")]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    before = os.times()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
    after = os.times()
    spent = after.children_user - before.children_user
    return spent + after.children_system - before.children_system


def report_bench(*, arms: int = ARMS, seeds: int = SEEDS) -> dict[str, Any]:
    """CPU seconds of the pages and reports, each beside what it may take."""
    with tempfile.TemporaryDirectory() as name:
        folder, out = Path(name) / "served", Path(name) / "out"
        folder.mkdir()
        out.mkdir()
        write_folder(folder, arms, seeds)
        seconds = {
            "index": page_seconds(folder, "/"),
            "study page": page_seconds(folder, f"/study/{STUDY}"),
            "report of a study": min(report_seconds(folder / STUDY) for _ in range(TIMES)),
            "report of logs": min(report_seconds(folder / LOGS, out) for _ in range(TIMES)),
        }
    found: dict[str, Any] = {"setting": f"{arms * seeds:,} runs of {POINTS:,} points, one core"}
    for what, taken in seconds.items():
        found[f"{what}, CPU seconds"] = taken
        found[f"{what}, at most"] = LIMITS[what]
    return found
