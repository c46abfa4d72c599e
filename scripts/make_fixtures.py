"""Makes tests/fixtures/imports with the tools themselves: small real runs with known numbers.

`make fixtures` calls it in the environment that has the tools (`make tools-env`). What was logged
is written to `expected/<tool>.json` from the numbers that went in, never from what an import gave
back. Names, times and paths of the machine are kept out.
"""

from __future__ import annotations

import gzip
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FIXTURES = ROOT / "tests/fixtures/imports"
STEPS = list(range(6))
LOSS = [1.695 / (step + 1) for step in STEPS]
KL = [0.0, 0.001, 0.0035, 0.1 + 0.2, 1e-9, 12345.678901234567]
ODD = [1.0, math.nan, 1.0, math.inf, -math.inf, 1.0]
CONFIG = {"seed": 3, "lr": 5e-6, "form": "k3", "leash": {"coefficient": 0.15}}
NAME = "kl0.15-s3"


def run_of(**more: Any) -> dict[str, Any]:
    """What a run with the numbers above must come back as."""
    series = {"train/loss": LOSS, "kl": KL, "odd": ODD}
    return {
        "name": NAME,
        "arm": "kl0.15",
        "seed": 3,
        "config": {"lr": 5e-6, "form": "k3"},
        "series": {name: [STEPS, values] for name, values in series.items()},
    } | more


def make_wandb(place: Path) -> list[dict[str, Any]]:
    """An offline run; what it leaves in an online run's folder is written out as it would be."""
    import wandb

    settings = wandb.Settings(
        disable_git=True, save_code=False, console="off", host="host", x_disable_stats=True,
        x_disable_meta=True, x_disable_machine_info=True, x_save_requirements=False, silent=True,
        program="train.py", username="user",
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as passing:
        run = wandb.init(
            mode="offline", project="leash", name=NAME, id="leash0001", config=CONFIG,
            dir=passing, settings=settings,
        )  # fmt: skip
        run.define_metric("val/*", step_metric="epoch")
        for step, loss, kl, odd in zip(STEPS, LOSS, KL, ODD, strict=True):
            run.log({"train/loss": loss, "kl": kl, "odd": odd, "nested": {"n": step}, "word": "x"})
        run.log({"essay": "long " * 9_000})  # goes over the end of a block
        run.log({"epoch": 1, "val/acc": 0.57, "shape": wandb.Histogram([1.0, 2.0])})
        run.summary["best"] = 0.6
        run.finish()
        wandb.teardown()  # the last block is written when the service ends, not before
        [log] = Path(passing).rglob("run-*.wandb")
        folder = place / "offline-run-20240101_000000-leash0001"
        folder.mkdir(parents=True)
        shutil.copy(log, folder / log.name)
    made = run_of(cells={"best": 0.6}, finished=True)
    made["series"] |= {"nested.n": [STEPS, STEPS], "val/acc": [[1], [0.57]]}
    return [{"path": f"{place.name}/{folder.name}", "runs": [made]}]


def make_tensorboardx(place: Path) -> list[dict[str, Any]]:
    """tensorboardX: scalars, and settings in a folder of their own."""
    from tensorboardX import SummaryWriter

    return _events(place, SummaryWriter, "name")


def make_tensorboard(place: Path) -> list[dict[str, Any]]:
    """TensorBoard through torch."""
    from torch.utils.tensorboard import SummaryWriter

    return _events(place, SummaryWriter, "run_name")


def _events(place: Path, writer: Any, named: str) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as passing:
        log = writer(f"{passing}/{NAME}")
        for step, loss, kl, odd in zip(STEPS, LOSS, KL, ODD, strict=True):
            log.add_scalar("train/loss", loss, step, walltime=1.7e9 + step)
            log.add_scalar("kl", kl, step, walltime=1.7e9 + step)
            log.add_scalar("odd", odd, step, walltime=1.7e9 + step)
        flat = {"seed": 3, "lr": 5e-6, "form": "k3"}
        log.add_hparams(flat, {"hp/acc": 0.57}, **{named: "1700000000.5"})
        log.close()
        for file in sorted(Path(passing).rglob("*tfevents*")):
            folder = place / file.parent.relative_to(passing)
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, folder / "events.out.tfevents.1700000000.host.0")
    made = run_of(float32=True)
    made["series"]["hp/acc"] = [[0], [0.57]]
    return [{"path": f"{place.name}/{NAME}", "runs": [made]}]


def make_mlflow(place: Path) -> list[dict[str, Any]]:
    """The same run in a database and in a folder of files."""
    os.environ |= {"MLFLOW_ALLOW_FILE_STORE": "true", "LOGNAME": "user"}
    import mlflow

    place.mkdir(parents=True)
    sources = []
    with tempfile.TemporaryDirectory() as passing:
        os.chdir(passing)
        for address in ("sqlite:///mlflow.db", "file:mlruns"):
            mlflow.set_tracking_uri(address)
            experiment = mlflow.create_experiment("leash", artifact_location="artifacts")
            with mlflow.start_run(experiment_id=experiment, run_name=NAME):
                mlflow.log_params({"seed": 3, "lr": 5e-6, "form": "k3"})
                for step, loss, kl, odd in zip(STEPS, LOSS, KL, ODD, strict=True):
                    mlflow.log_metrics({"train/loss": loss, "kl": kl, "odd": odd}, step=step)
        packed(Path("mlflow.db"), place / "mlflow.db.gz", scrub=True)
        for file in sorted(Path("mlruns").rglob("*")):
            if file.is_file() and "tags" not in file.parts:
                target = place / file
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(file.read_text().replace(passing, "").replace("root", "user"))
        os.chdir(ROOT)
    for name in ("mlflow.db.gz", "mlruns"):
        sources.append({"path": f"{place.name}/{name}", "runs": [run_of(finished=True)]})
    return sources


def packed(source: Path, target: Path, *, scrub: bool = False) -> None:
    """A database, compressed: most of its pages are empty. `scrub` takes names of places out."""
    if scrub:
        import sqlite3

        with sqlite3.connect(source) as database:
            database.execute("UPDATE experiments SET artifact_location = 'artifacts'")
            database.execute("UPDATE runs SET artifact_uri = 'artifacts', user_id = 'user'")
            database.execute("DELETE FROM tags WHERE key LIKE 'mlflow.%'")
            database.commit()
            database.execute("VACUUM")
        database.close()
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(gzip.compress(source.read_bytes(), 9, mtime=0))


def make_trackio(place: Path) -> list[dict[str, Any]]:
    """A project with one run."""
    with tempfile.TemporaryDirectory() as passing:
        os.environ |= {"TRACKIO_DIR": passing, "HF_HUB_OFFLINE": "1"}
        import trackio

        trackio.init(project="leash", name=NAME, config=CONFIG)
        for step, loss, kl, odd in zip(STEPS, LOSS, KL, ODD, strict=True):
            trackio.log({"train/loss": loss, "kl": kl, "odd": odd}, step=step)
        trackio.finish()
        packed(Path(passing) / "leash.db", place / "leash.db.gz")
    return [{"path": f"{place.name}/leash.db.gz", "runs": [run_of()]}]


def make_trl(place: Path) -> list[dict[str, Any]]:
    """Four steps of GRPO on a model of one layer, with completions."""
    os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
    import torch
    from datasets import Dataset
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast
    from trl import GRPOConfig, GRPOTrainer

    words = {word: place for place, word in enumerate(["<pad>", "<eos>", "<unk>", *"abcdefgh "])}
    letters = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    letters.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    special = {"pad_token": "<pad>", "eos_token": "<eos>", "unk_token": "<unk>"}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=letters, **special)
    torch.manual_seed(0)  # noqa: TID251, not one of our draws
    shape = {"n_positions": 64, "n_embd": 16, "n_layer": 1, "n_head": 2}
    ends = {"eos_token_id": 1, "bos_token_id": 1, "pad_token_id": 0}
    with tempfile.TemporaryDirectory() as passing:
        os.chdir(passing)
        GPT2LMHeadModel(GPT2Config(vocab_size=len(words), **shape, **ends)).save_pretrained("tiny")
        tokenizer.save_pretrained("tiny")
        rows = Dataset.from_dict({"prompt": ["a b", "c d", "e f", "g h"]})
        trainer = GRPOTrainer(
            model="tiny",
            reward_funcs=_count_a,
            args=GRPOConfig(
                output_dir=NAME, max_steps=4, per_device_train_batch_size=4, num_generations=4,
                max_completion_length=8, logging_steps=1, save_steps=2, report_to=[], beta=0.15,
                seed=3, use_cpu=True, log_completions=True, learning_rate=1e-3, bf16=False,
                eval_strategy="steps", eval_steps=2,
            ),
            train_dataset=rows, eval_dataset=rows, processing_class=tokenizer,
        )  # fmt: skip
        trainer.save_metrics("train", trainer.train().metrics)
        trainer.save_state()
        history = trainer.state.log_history
        for pattern in ("trainer_state.json", "all_results.json", "*.parquet"):
            for file in sorted(Path(NAME).rglob(pattern)):
                (place / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, place / file)
        os.chdir(ROOT)
    series: dict[str, list[list[float]]] = {}
    for row in history:
        for name, value in row.items():
            if name != "step":
                steps, values = series.setdefault(name, [[], []])
                steps.append(row["step"])
                values.append(value)
    made = {"name": NAME, "arm": "kl0.15", "seed": 3, "series": series, "finished": True}
    return [{"path": f"{place.name}/{NAME}", "runs": [made]}]


def _count_a(completions: list[str], **_: Any) -> list[float]:
    return [float(completion.count("a")) for completion in completions]


def make_inspect(place: Path) -> list[dict[str, Any]]:
    """Three samples twice, once as JSON and once as Inspect's own zip."""
    os.environ["INSPECT_DISPLAY"] = "none"
    from inspect_ai import Task, eval
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput
    from inspect_ai.scorer import match
    from inspect_ai.solver import solver

    @solver
    def say() -> Any:
        async def solve(state: Any, generate: Any) -> Any:
            said = "1" if state.epoch == 1 else state.target.text
            state.output = ModelOutput.from_content("mockllm/model", f"ANSWER: {said}")
            return state

        return solve

    rows = [Sample(id=f"q{n}", input=f"Say {n}", target=str(n)) for n in range(3)]
    task = Task(name="leash", dataset=rows, solver=say(), scorer=match(), epochs=2)
    place.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as passing:
        os.chdir(passing)
        for form in ("json", "eval"):
            eval(task, model="mockllm/model", log_dir=form, log_format=form, max_samples=1)
            [log] = Path(form).glob(f"*.{form}")
            shutil.copy(log, place / f"leash.{form}")
        os.chdir(ROOT)
    made = {
        "name": "leash mockllm/model",
        "cells": {"match/accuracy": 2 / 3},
        "scores": {"match": [["q0", "q1", "q2"] * 2, [0.0, 1.0, 0.0, 1.0, 1.0, 1.0]]},
        "finished": True,
    }
    return [{"path": f"{place.name}/leash.{form}", "runs": [made]} for form in ("json", "eval")]


TASK = """\
task: leash_toy
dataset_path: json
dataset_kwargs:
  data_files:
    test: toy.jsonl
test_split: test
output_type: multiple_choice
doc_to_text: "Q: {{q}}\\nA:"
doc_to_target: label
doc_to_choice: ["yes", "no"]
metric_list:
  - metric: acc
    aggregation: mean
    higher_is_better: true
metadata:
  version: 1.0
"""


def make_lm_eval(place: Path) -> list[dict[str, Any]]:
    """A made-up task of six questions, answered at random."""
    with tempfile.TemporaryDirectory() as passing:
        os.environ |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": passing}
        os.chdir(passing)
        Path("toy.yaml").write_text(TASK)
        rows = [{"q": f"is {n} even?", "label": n % 2} for n in range(6)]
        Path("toy.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        program = Path(sys.executable).with_name("lm_eval")
        options = ["--tasks", "leash_toy", "--include_path", ".", "--log_samples"]
        subprocess.run(
            [program, "run", "--model", "dummy", *options, "--output_path", "out"], check=True
        )
        [results] = Path("out").rglob("results_*.json")
        [samples] = Path("out").rglob("samples_*.jsonl")
        values = json.loads(results.read_text())
        values |= {"pretty_env_info": "", "model_name": "dummy", "model_name_sanitized": "dummy"}
        place.mkdir(parents=True)
        (place / results.name).write_text(json.dumps(values, indent=2))
        shutil.copy(samples, place / samples.name)
        kept = [json.loads(line) for line in samples.read_text().splitlines()]
        os.chdir(ROOT)
    accuracy = values["results"]["leash_toy"]["acc,none"]
    made = {
        "name": "dummy",
        "cells": {"leash_toy/acc,none": accuracy},
        "scores": {
            "leash_toy/acc,none": [[row["doc_hash"] for row in kept], [row["acc"] for row in kept]]
        },
    }
    return [{"path": place.name, "runs": [made]}]


# Versions are in constraints-tools.txt.
TOOLS: dict[str, Callable[[Path], list[dict[str, Any]]]] = {
    "wandb": make_wandb,
    "tensorboardx": make_tensorboardx,
    "tensorboard": make_tensorboard,
    "mlflow": make_mlflow,
    "trackio": make_trackio,
    "trl": make_trl,
    "inspect": make_inspect,
    "lm_eval": make_lm_eval,
}


def make(tool: str, target: Path = FIXTURES) -> None:
    """Make one tool's files anew, with what is installed here."""
    place = target / tool
    shutil.rmtree(place, ignore_errors=True)
    sources = TOOLS[tool](place)
    expected = target / "expected" / f"{tool}.json"
    expected.parent.mkdir(parents=True, exist_ok=True)
    expected.write_text(json.dumps(sources, indent=1, ensure_ascii=False) + "\n")


def main() -> None:
    """One tool, into a folder; or those named, or all, over the fixtures."""
    if sys.argv[1:2] == ["--into"]:
        make(sys.argv[3], Path(sys.argv[2]).resolve())
        return
    for tool in sys.argv[1:] or TOOLS:
        if tool not in TOOLS:
            sys.exit(f"no such tool: {tool}; there are {', '.join(TOOLS)}")
        # Each in a process of its own: they change the environment and the folder they are in.
        subprocess.run([sys.executable, __file__, "--into", FIXTURES, tool], check=True)


if __name__ == "__main__":
    main()
