"""Two arms of a tiny Qwen3 with TRL itself, with and without a leash, kept by two lines each.

A program of its own for tests/test_callbacks.py: trainers leave warnings and threads behind.
"""

import os
import sys
from pathlib import Path

os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}

import torch
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast
from trl import GRPOConfig, GRPOTrainer

from kleash.compare.recorders.trl import keep
from kleash.models.language.models import fresh
from kleash.seeds import torch_generator

WORDS = ["<pad>", "<eos>", "<unk>", *"abcdefghijklmnop "]
ITEMS = [f"{one} {two}" for one in "abcd" for two in "efgh"]


def count_a(completions: list[str], **_: object) -> list[float | None]:
    """The reward; of one kind of completion it knows nothing."""
    return [None if text == "never" else float(text.count("a")) for text in completions]


def short(completions: list[str], **_: object) -> list[float]:
    """A second one, with a weight of its own."""
    return [-float(len(text)) for text in completions]


def tokenizer() -> PreTrainedTokenizerFast:
    """A letter is a token."""
    letters = Tokenizer(models.WordLevel({w: n for n, w in enumerate(WORDS)}, unk_token="<unk>"))
    letters.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    special = {"pad_token": "<pad>", "eos_token": "<eos>", "unk_token": "<unk>"}
    return PreTrainedTokenizerFast(tokenizer_object=letters, **special)


def train(folder: Path, name: str, beta: float, *, steps: int = 4, resume: bool = False) -> None:
    """One arm."""
    trainer = GRPOTrainer(
        model=str(folder / "tiny"),
        reward_funcs=[count_a, short],
        args=GRPOConfig(
            output_dir=str(folder / "trl" / name), max_steps=steps, per_device_train_batch_size=8,
            per_device_eval_batch_size=8, num_generations=4, num_generations_eval=2,
            max_completion_length=6, logging_steps=1, save_steps=2, report_to=[], beta=beta, seed=3,
            use_cpu=True, learning_rate=3e-2, bf16=False, eval_strategy="steps", eval_steps=2,
            reward_weights=[1.0, 0.1], lr_scheduler_type="constant",
        ),
        train_dataset=Dataset.from_dict({"prompt": ITEMS}),
        eval_dataset=Dataset.from_dict({"prompt": ITEMS}),
        processing_class=tokenizer(),
    )  # fmt: skip
    keep(trainer, folder / "runs" / name)
    trainer.train(resume_from_checkpoint=resume)


def main() -> None:
    """Both arms, from one base; then the first goes on."""
    folder = Path(sys.argv[1])
    model = fresh(len(WORDS), torch_generator("callbacks"), width=16, heads=2, inner=24)
    model.config.pad_token_id, model.config.eos_token_id = 0, 1
    model.generation_config.pad_token_id, model.generation_config.eos_token_id = 0, 1
    model.save_pretrained(folder / "tiny")
    tokenizer().save_pretrained(folder / "tiny")
    torch.set_num_threads(1)
    for name, beta in (("kl0-s3", 0.0), ("kl0.15-s3", 0.15)):
        train(folder, name, beta)
    train(folder, "kl0-s3", 0.0, steps=6, resume=True)


if __name__ == "__main__":
    main()
