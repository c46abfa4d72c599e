"""Packs in training: one pass over a batch gives the update of two, and what the recipe asks."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from agent_tools import SHORT, Agents, steps_of
from kleash.algo.policy import Reference
from kleash.config import merge
from kleash.errors import ConfigError
from kleash.models.language.packed import SPARE, Packing, layers_again
from kleash.models.language.policy import LanguagePolicy
from kleash.runs.ledger import Ledger
from kleash.train.optimizer import Optimizer, RoundedAdamW
from kleash.train.player import packing_of
from kleash.train.rollout.agent import AgentWorld, play_groups
from kleash.train.update import LeashedPolicy

SMALL = Agents(merge(SHORT, {"epochs": 1, "validation": {"tasks": 6, "training": 2}}))
agent = SMALL.recipe
PACKING = Packing(tokens=64, step=8)

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize(
    ("form", "where"),
    [("return_to_go", "device"), ("exact", "pinned"), ("k3", "device"), ("reward_k1", "pinned")],
)
def test_one_pass_over_packs_is_the_update_of_the_whole_batch(
    ledger: Ledger, form: str, where: str
) -> None:
    weights, records, seen = [], [], []
    recipe = agent(f"leash.form={form}", "entropy_bonus=0.01")
    world = AgentWorld(recipe, ledger)
    for packing in (None, PACKING):
        policy = world.fresh_policy().double()
        policy.packing = packing
        optimizer = Optimizer(policy, 1e-3, 1.0, str)
        reference = Reference(policy, pinned=where == "pinned" and packing is not None)
        held = LeashedPolicy(recipe, policy, reference, optimizer, 10)
        held.split = partial(policy.parts, tokens=10**6)
        for step in range(2):  # in the second one KL is at work
            engine = world.engine(policy)
            groups = play_groups(engine, policy, world, world.tasks("train")[:3], ("a", step))
            assert packing is None or len(held.split(groups.batch)) > 1
            record, judged = held.update_on_batch(groups)
            records.append(record)
            seen.append(judged)
        weights.append(torch.cat([p.detach().flatten() for p in policy.parameters()]))
    torch.testing.assert_close(weights[0], weights[1], rtol=1e-6, atol=1e-9)
    for name, value in records[1].items():
        assert records[3][name] == pytest.approx(value, rel=1e-6, abs=1e-9), name
    torch.testing.assert_close(seen[1].exact_kl, seen[3].exact_kl, rtol=1e-6, atol=1e-9)


@pytest.mark.slow
def test_weights_in_bfloat16_are_trained_packed(tmp_path: Path, ledger: Ledger) -> None:
    keys = ("scale.precision=bfloat16", "scale.packed=on", "scale.pack_tokens=64", "lr=1e-5")
    run = SMALL.trained(tmp_path / "run", ledger, *keys, "leash.form=k3", "supervised.epochs=0")
    steps = steps_of(run)
    assert len(steps) == 2 and steps[0]["loss"] != steps[1]["loss"]
    kept = run.load(run.checkpoints()[-1])
    assert {t.dtype for t in kept.weights.values()} == {torch.bfloat16}
    moments = [t for name, t in kept.trainer.items() if name.endswith("exp_avg_sq")]
    assert moments and all(t.dtype == torch.bfloat16 and t.any() for t in moments)


def test_bfloat16_takes_the_optimiser_that_rounds_at_random(ledger: Ledger) -> None:
    narrow = AgentWorld(agent("scale.precision=bfloat16"), ledger).fresh_policy()
    wide = AgentWorld(agent(), ledger).fresh_policy()
    assert isinstance(Optimizer(narrow, 1e-3, 1.0, str).adamw, RoundedAdamW)
    assert isinstance(Optimizer(wide, 1e-3, 1.0, str).adamw, torch.optim.AdamW)
    assert narrow.model.model.rotary_emb.inv_freq.dtype == torch.float32


def test_a_recipe_that_asks_for_nothing_large_is_what_it_was() -> None:
    assert "scale" not in agent().resolved()
    assert agent("scale.packed=on").resolved()["scale"]["packed"] == "on"


def test_packs_are_for_gpus_unless_asked_for(ledger: Ledger) -> None:
    policy = AgentWorld(agent(), ledger).fresh_policy()
    assert packing_of(agent().scale, policy) is None
    found = packing_of(agent("scale.packed=on", "scale.recompute=3").scale, policy)
    assert found == Packing(tokens=8192, step=512, compile="off", recompute=3)
    with pytest.raises(ConfigError, match=r"pinned needs packs: set scale\.packed=on"):
        packing_of(agent("scale.reference=pinned").scale, policy)
    with pytest.raises(ConfigError, match="moves with the policy"):
        agent("scale.reference=pinned", "leash.reference=ema")


def test_on_a_gpu_what_is_narrow_and_of_a_known_shape_is_packed(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the device's name is made up: nothing is computed on it."""
    narrow = AgentWorld(agent("scale.precision=bfloat16"), ledger).fresh_policy()
    wide = AgentWorld(agent(), ledger).fresh_policy()
    small = {"n_embd": 8, "n_head": 2, "n_layer": 1, "vocab_size": 20}
    other = LanguagePolicy(GPT2LMHeadModel(GPT2Config(**small)).bfloat16())
    assert packing_of(agent().scale, narrow) is None  # on a CPU
    monkeypatch.setattr(LanguagePolicy, "device", torch.device("cuda"))
    packed = Packing(tokens=8192, step=512, compile="fixed", recompute=0)
    assert packing_of(agent().scale, narrow) == packed
    assert packing_of(agent("scale.packed=off").scale, narrow) is None
    assert packing_of(agent().scale, wide) is None
    assert packing_of(agent().scale, other) is None
    assert packing_of(agent("scale.packed=on").scale, other) == packed
    assert packing_of(agent("scale.packed=on").scale, wide) == replace(packed, compile="off")
    for keys, changes in {
        ("scale.compile=dynamic",): {"compile": "dynamic", "step": 128},
        ("scale.compile=off",): {"compile": "off"},
        ("scale.pack_tokens=64", "scale.reference=pinned"): {"tokens": 64, "step": 64},
    }.items():
        assert packing_of(agent(*keys).scale, narrow) == replace(packed, **changes), keys


def test_memory_says_how_many_layers_are_worked_out_again(ledger: Ledger) -> None:
    model = AgentWorld(agent("tiny.layers=4"), ledger).fresh_policy().model
    config, tokens = model.config, 1000
    width = config.hidden_size
    kept = 4 * (4 * width + 6 * width + 3 * config.intermediate_size) * tokens
    assert layers_again(model, tokens, SPARE + 4 * kept) == 0
    assert layers_again(model, tokens, SPARE + 3.9 * kept) == 1
    assert layers_again(model, tokens, 0) == 4


def test_a_broken_pack_is_kept_and_stops_the_run(ledger: Ledger) -> None:
    recipe = agent("leash.form=k3")
    world = AgentWorld(recipe, ledger)
    policy = world.fresh_policy()
    policy.packing = PACKING
    engine = world.engine(policy)
    groups = play_groups(engine, policy, world, world.tasks("train")[:3], ("a", 0))
    asked: list[Any] = []
    optimizer = Optimizer(policy, 1e-3, 1.0, lambda batch: str(asked.append(batch)))
    held = LeashedPolicy(recipe, policy, Reference(policy), optimizer, 10)
    held.split = partial(policy.parts, tokens=10**6)
    with pytest.raises(Exception, match="the rewards"):
        held.update_on_batch(replace(groups, reward=groups.reward * float("nan")))
    with torch.no_grad():
        policy.model.model.norm.weight.fill_(float("nan"))
    with pytest.raises(Exception, match="the log-probabilities"):
        held.update_on_batch(groups)
    assert asked == [groups.batch] * 2
