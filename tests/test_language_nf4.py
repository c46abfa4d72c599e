"""A base in four bits under an adapter: the same base for policy and reference, and it stays."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch

from agent_tools import agent_world, trained
from kleash.algo.guard import reference_held
from kleash.algo.policy import Reference
from kleash.errors import ConfigError, GuardError
from kleash.models.language.memory import weight_bytes
from kleash.models.language.models import adapted, fresh, merged, quantised
from kleash.models.language.policy import Batch, LanguagePolicy
from kleash.models.language.shape import Shape
from kleash.seeds import torch_generator
from kleash.types import Turn

pytest.importorskip("bitsandbytes")
pytest.importorskip("peft")
pytestmark = pytest.mark.usefixtures("one_thread")
LORA = {"rank": 4, "alpha": 8, "base": "nf4"}


def tiny() -> Any:
    return fresh(40, torch_generator("weights", 3), width=64, layers=2, heads=2, inner=128)


@pytest.fixture
def policy() -> LanguagePolicy:
    return LanguagePolicy(adapted(quantised(tiny()), torch_generator("lora"), rank=4))


@pytest.fixture
def batch(policy: LanguagePolicy) -> Batch:
    return policy.gather([[Turn((1, 2), (3, 4, 5), (0.0,) * 3)], [Turn((6,), (7, 8), (0.0,) * 2)]])


def update(policy: LanguagePolicy, batch: Batch) -> None:
    adam = torch.optim.AdamW([p for p in policy.parameters() if p.requires_grad], lr=0.1)
    for _ in range(3):
        adam.zero_grad()
        (-policy.judge(batch).logp.mean()).backward()  # type: ignore[no-untyped-call]
        adam.step()


def test_the_reference_is_the_same_base_and_kl_is_0_at_the_start(
    policy: LanguagePolicy, batch: Batch
) -> None:
    for kind in ("adapter_off", "start"):
        reference = Reference(policy, kind)
        judged = policy.judge(batch, reference.policy)
        assert judged.exact_kl is not None and judged.logp_ref is not None
        assert judged.exact_kl.abs().max() == 0
        assert torch.equal(judged.logp.detach(), judged.logp_ref)
    # The base was rounded, so it is another model than the one it was made of.
    plain = LanguagePolicy(tiny()).judge(batch).logp
    assert 1e-4 < (plain - judged.logp).abs().max() < 1


def test_the_base_holds_while_the_adapter_trains(policy: LanguagePolicy, batch: Batch) -> None:
    reference = Reference(policy, "adapter_off")
    before = reference.policy.judge(batch).logp
    update(policy, batch)
    reference_held(reference.declared, reference.fingerprint())
    assert torch.equal(before, reference.policy.judge(batch).logp)
    judged = policy.judge(batch, reference.policy)
    assert judged.exact_kl is not None and judged.exact_kl.max() > 1e-3


def test_a_base_that_changes_is_noticed_in_its_scales_too(policy: LanguagePolicy) -> None:
    for change in ("packed", "scales"):
        moved = copy.deepcopy(policy)
        reference = Reference(moved, "adapter_off")
        weight = next(p for p in moved.parameters() if p.dtype == torch.uint8)
        if change == "packed":
            weight.data[0] ^= 1
        else:
            weight.quant_state.absmax[0] += 1  # type: ignore[attr-defined]
        with pytest.raises(GuardError, match="the reference changed"):
            reference_held(reference.declared, reference.fingerprint())


def test_what_is_merged_computes_what_was_trained(policy: LanguagePolicy, batch: Batch) -> None:
    update(policy, batch)
    folded = LanguagePolicy(merged(policy.model))
    assert all(type(part).__name__ != "Linear4bit" for part in folded.modules())
    assert torch.allclose(folded.judge(batch).logp, policy.judge(batch).logp, atol=1e-5)


def test_it_takes_the_bytes_of_the_plan(policy: LanguagePolicy) -> None:
    """A block of 256 scales is one in a small tensor too, so that small models take more."""
    model = fresh(40, torch_generator("weights"), width=512, layers=1, heads=4, inner=1024)
    shape, small = Shape.of(model.config), 0
    held = 0
    for parameter in quantised(model).parameters():
        held += parameter.nbytes
        if hasattr(parameter, "quant_state"):
            state = parameter.quant_state.as_dict(packed=True)
            tables = ("quant_map", "nested_quant_map")  # the same for all weights
            small += sum(state[name].nbytes for name in tables if name in state)
            held += sum(state[name].nbytes for name in ("absmax", "nested_absmax") if name in state)
    planned = weight_bytes(shape, "nf4")
    planned += 2 * (shape.parameters - shape.body)  # the rest is in float32 here, not in bf16
    assert held == pytest.approx(planned, rel=0.002)
    assert small < 7 * 5000


def test_a_run_on_a_quantised_base_plays_learns_and_resumes(tmp_path: Path) -> None:
    changes = {
        "lora": LORA,
        "leash": {"reference": "adapter_off"},
        "supervised": {"epochs": 0},
        "epochs": 1,
        "tiny": {"width": 64, "layers": 1, "heads": 2},
    }
    run, world = trained(tmp_path, "run", **changes)
    assert run.config["lora"]["base"] == "nf4"
    assert [line["kind"] for line in run.metrics()].count("step") == 2
    kept = run.load(run.checkpoints()[-1], trainer=False).weights
    assert all(".lora_" in name for name in kept)
    other = world.empty_policy()
    other.load_state_dict(kept)
    ours, theirs = (Reference(p, "adapter_off").declared for p in (other, world.fresh_policy()))
    assert ours == theirs


def test_nf4_needs_an_adapter(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="set lora"):
        agent_world(tmp_path, lora={"base": "nf4"})
