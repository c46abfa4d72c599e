"""A model with a chat template, from a folder: trained, measured and exported by the verbs."""

import hashlib
import json
from collections import Counter

import pytest
import torch
from typer.testing import CliRunner

from kleash.cli import app
from kleash.models.language import models
from kleash.seeds import torch_generator
from kleash.train.optimizer import Optimizer
from kleash.train.rollout.agent import AgentWorld
from test_language_chat import QWEN, chat

transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.usefixtures("one_thread")
# Untrained, it says bytes at random: every episode is well played and earns nothing.
KEYS = (
    "gym.surface=text", "gym.limit=2", "gym.world.train=8", "gym.world.validation=4",
    "gym.world.test=4", "epochs=1", "steps=1", "batch=2", "group=2", "turn_tokens=4",
    "validation.tasks=4", "validation.training=0", "lr=1e-3",
)  # fmt: skip


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    tokenizer = chat(QWEN).tokenizer
    tokenizer.save_pretrained(folder)
    config = transformers.Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=8,
        max_position_embeddings=4096,
        eos_token_id=tokenizer.eos_token_id,
    )
    made = transformers.Qwen3ForCausalLM(config)
    drawn = torch_generator("test", "a model in a folder")
    for weight in made.parameters():
        if weight.dim() > 1:
            torch.nn.init.normal_(weight, std=0.2, generator=drawn)
    made.save_pretrained(folder)
    return folder


def run(*words):
    done = CliRunner().invoke(app, list(map(str, words)))
    if done.exception:
        raise done.exception
    return done.stdout


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("lora", [(), ("lora.rank=2", "leash.reference=adapter_off")])
def test_trained_measured_and_exported(model, tmp_path, monkeypatch, lora):
    if lora:
        pytest.importorskip("peft")
    monkeypatch.chdir(tmp_path)
    run("train", "agent", "--out", "run", f"model={model}", *KEYS, *lora)
    steps = lines(tmp_path / "run/metrics.jsonl")
    assert any(each.get("kind") == "step" and each["tokens"] > 0 for each in steps)
    run("eval", "run", "--items", "4", "--shots", "0")
    scores = lines(tmp_path / "run/scores.jsonl")
    assert [each["split"] for each in scores] == ["test"] * 4
    run("export", "run", "--out", "left")
    loaded = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "left")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "left")
    assert loaded.config.vocab_size == len(tokenizer)
    said = [{"role": "user", "content": "Hello"}]
    ours, theirs = chat(QWEN).tokenizer, tokenizer
    assert ours.apply_chat_template(said, tokenize=False) == theirs.apply_chat_template(
        said, tokenize=False
    )


def test_files_are_hashed_once_and_the_model_is_built_once(model, tmp_path, monkeypatch):
    counted = Counter()

    def counting(owner, name, key):
        call = getattr(owner, name)

        def wrapped(*given, **options):
            counted[key(*given)] += 1
            return call(*given, **options)

        monkeypatch.setattr(owner, name, wrapped)

    counting(hashlib, "file_digest", lambda handle, *_: handle.name)
    counting(AgentWorld, "fresh_policy", lambda *_: "built")
    counting(models, "load", lambda *_: "loaded")
    before = []
    step = Optimizer.step

    def first(self, *given, **options):
        if not before:
            before.append(dict(counted))
        return step(self, *given, **options)

    monkeypatch.setattr(Optimizer, "step", first)
    run("train", "agent", "--out", tmp_path / "run", f"model={model}", *KEYS)
    files = {str(file): 1 for file in model.glob("*")}
    assert before == [{**files, "built": 1, "loaded": 1}]
