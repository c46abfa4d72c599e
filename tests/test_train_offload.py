"""Moments on the host: the same weights to the last bit, and none of them beside the weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest
import torch
from torch import nn

from agent_tools import agent_world, trained
from kleash.algo.policy import Reference
from kleash.errors import ConfigError
from kleash.models.language.models import adapted, fresh
from kleash.models.language.policy import Batch, LanguagePolicy
from kleash.seeds import torch_generator
from kleash.train.optimizer import Optimizer, RoundedAdamW
from kleash.types import Turn
from memory_tools import peak_bytes

pytestmark = pytest.mark.usefixtures("one_thread")


def stepped(moments: Literal["device", "host"], steps: int = 4) -> tuple[nn.Module, RoundedAdamW]:
    drawn = torch_generator("offload")
    net = nn.Sequential(nn.Linear(64, 96), nn.Tanh(), nn.Linear(96, 8)).to(torch.bfloat16)
    with torch.no_grad():
        for weight in net.parameters():
            weight.copy_(torch.randn(weight.shape, generator=drawn) / 8)
    adam = RoundedAdamW(net.parameters(), 1e-3, moments=moments)
    for _ in range(steps):
        adam.zero_grad()
        given = torch.randn(16, 64, generator=drawn).to(torch.bfloat16)
        net(given).float().square().mean().backward()
        adam.clip(1.0)
        adam.step()
    return net, adam


def test_the_weights_and_moments_are_the_same_bytes() -> None:
    (near, ours), (far, theirs) = stepped("device"), stepped("host")
    for one, other in zip(near.parameters(), far.parameters(), strict=True):
        assert torch.equal(one, other)
        for name in ("exp_avg", "exp_avg_sq", "step"):
            assert torch.equal(ours.state[one][name], theirs.state[other][name])
            assert bool(theirs.state[other][name].any())  # they came home
    assert any(
        not torch.equal(a, b)
        for a, b in zip(near.parameters(), stepped("device", 3)[0].parameters(), strict=True)
    )


def test_a_step_holds_the_moments_of_one_tensor_at_a_time() -> None:
    """What a step makes beyond what stands: with moments on the host, two copies of the largest."""
    peaks = {}
    for moments in ("device", "host"):
        _, adam = stepped(moments)  # type: ignore[arg-type]
        peaks[moments] = peak_bytes(adam.step)
    largest, all_of_them = 2 * 2 * 64 * 96, 2 * 2 * (64 * 96 + 96 + 96 * 8 + 8)
    assert peaks["host"] - peaks["device"] == largest < all_of_them


def test_the_next_optimiser_gets_the_gradients() -> None:
    net = nn.Linear(4, 4).to(torch.bfloat16)
    optimizer = Optimizer(net, 1e-3, 1.0, str)
    optimizer.reset()
    assert optimizer.step([net(torch.ones(2, 4, dtype=torch.bfloat16)).float().sum()], None) > 0


@pytest.mark.slow
def test_a_run_on_the_host_is_the_run_on_the_device(tmp_path: Path) -> None:
    short: dict[str, Any] = {
        "supervised": {"epochs": 1, "dialogues": 32},
        "epochs": 1,
        "steps": 2,
        "batch": 2,
        "group": 4,
        "validation": {"tasks": 4, "training": 0},
    }
    weights = {}
    for moments in ("device", "host"):
        scale = {"precision": "bfloat16", "moments": moments}
        run, _ = trained(tmp_path, moments, scale=scale, **short)
        weights[moments] = run.load(run.checkpoints()[-1], trainer=False).weights
    for name, tensor in weights["device"].items():
        assert torch.equal(tensor, weights["host"][name]), name


@pytest.mark.parametrize("changes", [{}, {"lora": {"rank": 4}, "precision": "bfloat16"}])
def test_few_or_wide_moments_stay_where_they_are(tmp_path: Path, changes: dict[str, Any]) -> None:
    scale = {"moments": "host", "precision": changes.pop("precision", "float32")}
    with pytest.raises(ConfigError, match="all weights in bfloat16"):
        agent_world(tmp_path, scale=scale, **changes)


def layer_by_layer(base: str) -> tuple[LanguagePolicy, Batch]:
    pytest.importorskip("peft")
    made = fresh(40, torch_generator("weights", 3), width=64, layers=4, heads=2, inner=128)
    policy = LanguagePolicy(adapted(made, torch_generator("lora"), rank=4, base=base))
    return policy, policy.gather([[Turn((1, 2), tuple(range(3, 19)), (0.0,) * 16)]])


def test_a_base_on_the_host_trains_the_same_adapter_and_is_the_same_reference() -> None:
    kept, bases = [], []
    for base in ("plain", "host"):
        policy, batch = layer_by_layer(base)
        reference = Reference(policy, "adapter_off")
        judged = policy.judge(batch, reference.policy)
        assert judged.exact_kl is not None and judged.exact_kl.abs().max() == 0
        adam = torch.optim.AdamW([p for p in policy.parameters() if p.requires_grad], lr=0.1)
        for _ in range(3):
            adam.zero_grad()
            (-policy.judge(batch).logp.mean()).backward()  # type: ignore[no-untyped-call]
            adam.step()
        kept.append(policy.state_dict())
        assert reference.fingerprint() == reference.declared
        bases.append(reference.declared)
    assert all(torch.equal(tensor, kept[1][name]) for name, tensor in kept[0].items())
    assert bases[0] == bases[1]


def test_a_base_on_the_host_stays_there_when_the_model_is_moved() -> None:
    policy, _ = layer_by_layer("host")
    policy.to("meta")  # a device where nothing is kept: what was moved there has lost its numbers
    away = {name for name, weight in policy.named_parameters() if weight.device.type == "cpu"}
    assert len(away) == 4 * 7 and all(name.endswith("base_layer.weight") for name in away)


def test_what_was_brought_goes_at_once_where_nothing_waits_for_the_way_back() -> None:
    """Without gradient one product's weight is there at a time; with it, all until the way back."""
    (plain, batch), (away, _) = layer_by_layer("plain"), layer_by_layer("host")
    largest, body = 4 * 64 * 128, 4 * 4 * (4 * 64 * 64 + 3 * 64 * 128)
    with torch.no_grad():
        more = peak_bytes(lambda: away.judge(batch)) - peak_bytes(lambda: plain.judge(batch))
    assert 0 < more <= largest
    more = peak_bytes(lambda: away.judge(batch)) - peak_bytes(lambda: plain.judge(batch))
    assert more == pytest.approx(body, rel=0.1)
