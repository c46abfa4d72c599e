"""Who sampled beside who learns: measured in every step, weighed where asked for, else refused."""

from __future__ import annotations

import gc
import math
import weakref
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from agent_tools import SHORT, Agents, bytes_of
from kleash.algo import guard
from kleash.algo.policy import Reference
from kleash.config import merge
from kleash.errors import ConfigError, DataError, GuardError
from kleash.models.engine.paged import PagedEngine
from kleash.models.language.packed import Packing
from kleash.runs.ledger import Ledger
from kleash.seeds import torch_generator
from kleash.train.optimizer import Optimizer
from kleash.train.recipe import recipe_from
from kleash.train.rollout import Groups
from kleash.train.rollout.agent import AgentWorld, play_groups
from kleash.train.update import LeashedPolicy

SMALL = Agents(
    merge(
        SHORT,
        {
            "gym": {"world": {"train": 20, "validation": 8, "test": 8}},
            "supervised": {"epochs": 0},
            "group": 3,
            "validation": {"tasks": 6, "training": 2},
        },
    )
)
agent = SMALL.recipe
WIDE, PACKED = None, Packing(tokens=64, step=8)

pytestmark = pytest.mark.usefixtures("one_thread")


class Held:
    """A policy with its leash, and groups for it."""

    def __init__(self, ledger: Ledger, packing: Packing | None, *keys: str) -> None:
        recipe = agent(*keys)
        self.world = AgentWorld(recipe, ledger)
        self.policy = self.world.fresh_policy()
        if not recipe.lora.rank:
            self.policy = self.policy.double()
        self.policy.packing = packing
        optimizer = Optimizer(self.policy, 1e-3, 1.0, str)
        reference = Reference(self.policy, recipe.leash.reference)
        self.leashed = LeashedPolicy(recipe, self.policy, reference, optimizer, 10)
        self.leashed.split = partial(self.policy.parts, tokens=10**6)

    def played(self, step: int) -> Groups:
        engine = self.world.engine(self.policy)
        return play_groups(
            engine, self.policy, self.world, self.world.tasks("train")[:3], ("a", step)
        )

    def weights(self) -> torch.Tensor:
        return torch.cat([each.detach().flatten() for each in self.policy.parameters()])


def askew(groups: Groups) -> Groups:
    """As an engine would report that differs from the trainer by up to half a nat."""
    assert groups.logp is not None
    noise = torch.rand(len(groups.logp), generator=torch_generator("askew"))
    return replace(groups, logp=groups.logp + noise - 0.5)


@pytest.mark.parametrize(
    ("packing", "keys"),
    [(WIDE, ()), (PACKED, ("lora.rank=4", "leash.reference=adapter_off"))],
)
def test_every_step_says_how_far_the_sampler_was(
    ledger: Ledger, packing: Packing | None, keys: tuple[str, ...]
) -> None:
    held = Held(ledger, packing, *keys, "leash.form=k3")
    for step in range(2):
        groups = held.played(step)
        record, judged = held.leashed.update_on_batch(groups)
        assert abs(record["kl/sampler/k1/choice/mean"]) < 1e-5
        assert record["kl/sampler/k1/choice/p99"] < 1e-4
        assert "sampler/weight" not in record
    held.leashed.recipe = agent(*keys, "leash.form=k3", "sampler.cap=9")
    groups = askew(held.played(2))
    assert groups.logp is not None
    record, judged = held.leashed.update_on_batch(groups)
    off = groups.logp - judged.logp.detach()
    assert record["kl/sampler/k1/choice/mean"] == pytest.approx(off.mean().item(), abs=1e-6)
    assert record["kl/sampler/k1/choice/p99"] == pytest.approx(off.quantile(0.99).item(), abs=1e-4)


def test_a_sampler_that_differs_stops_the_run_and_the_key_is_named(ledger: Ledger) -> None:
    held = Held(ledger, WIDE)
    with pytest.raises(GuardError, match=r"between sampling and training.*sampler\.cap=2"):
        held.leashed.update_on_batch(askew(held.played(0)))


@pytest.mark.parametrize(
    ("packing", "form"), [(WIDE, "return_to_go"), (PACKED, "exact"), (WIDE, "reward_k1")]
)
def test_with_a_cap_every_advantage_is_weighed_by_hand_too(
    ledger: Ledger, packing: Packing | None, form: str
) -> None:
    held = Held(ledger, packing, "sampler.cap=1.25", f"leash.form={form}")
    groups = askew(held.played(0))
    before = held.policy.judge(groups.batch)
    held.leashed.recipe = agent(f"leash.form={form}")
    judged = held.policy.judge(groups.batch, held.leashed.reference.policy)
    plain = held.leashed.with_leash(groups, judged, judged.logp.detach())
    held.leashed.recipe = agent("sampler.cap=1.25", f"leash.form={form}")
    weighed = held.leashed.with_leash(groups, judged, judged.logp.detach())
    ratio = (before.logp.detach() - groups.logp).exp()  # type: ignore[operator]
    assert (ratio > 1.25).any() and (ratio < 1).any()
    torch.testing.assert_close(weighed.advantage, plain.advantage * ratio.clamp(max=1.25))
    record, _ = held.leashed.update_on_batch(groups)
    assert record["sampler/weight"] == pytest.approx(ratio.clamp(max=1.25).mean().item())
    assert record["sampler/truncated"] == pytest.approx((ratio > 1.25).double().mean().item())
    assert record["max_advantage"] == pytest.approx(weighed.advantage.max().item())


def test_packs_are_weighed_as_the_whole_batch_is(ledger: Ledger) -> None:
    weights, records = [], []
    for packing in (WIDE, PACKED):
        held = Held(ledger, packing, "sampler.cap=1.25", "leash.form=exact")
        for step in range(2):
            records.append(held.leashed.update_on_batch(askew(held.played(step)))[0])
        weights.append(held.weights())
    torch.testing.assert_close(weights[0], weights[1], rtol=1e-6, atol=1e-9)
    for name, value in records[1].items():
        assert records[3][name] == pytest.approx(value, rel=1e-6, abs=1e-9), name


def test_a_cap_has_its_limits(ledger: Ledger) -> None:
    with pytest.raises(ConfigError, match="set it to 1 or more"):
        agent("sampler.cap=0.5")
    held = Held(ledger, WIDE, "sampler.cap=2")
    groups = held.played(0)
    assert groups.logp is not None
    with pytest.raises(DataError, match="the engine gave none"):
        held.leashed.update_on_batch(replace(groups, logp=None))
    with pytest.raises(GuardError, match=r"is 2\.5 nats for each choice.*another policy"):
        held.leashed.update_on_batch(replace(groups, logp=groups.logp + 2.5))
    guard.same_sampler(guard.OTHER_SAMPLER)
    with pytest.raises(GuardError, match="is nan nats"):
        guard.same_sampler(math.nan)


def test_an_epoch_with_a_far_sampler_is_marked() -> None:
    assert guard.sampler_near(guard.FAR_SAMPLER) is None
    found = guard.sampler_near(0.25)
    assert found is not None and "61% of a batch's worth" in found.message


def test_a_recipe_that_asks_for_no_weights_is_what_it_was() -> None:
    assert "sampler" not in agent().resolved()
    made = agent("sampler.cap=2")
    assert recipe_from(made.resolved()) == made


# --- memory


def test_an_engine_gives_its_pages_back_before_updates_and_says_the_same(
    tmp_path: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoders: list[Any] = []
    real = PagedEngine.release

    def release(self: PagedEngine) -> None:
        decoders.append(weakref.ref(self.decoder))
        real(self)

    def paged(self: AgentWorld, policy: Any) -> PagedEngine:
        return PagedEngine(policy.model, self.speech.stops, slots=16)

    monkeypatch.setattr(AgentWorld, "engine", paged)
    monkeypatch.setattr(PagedEngine, "release", release)
    found = []
    gc.disable()  # what is given back must be gone at once
    try:
        for again in (0, 1):  # layers, beside the pages; none were planned
            monkeypatch.setattr("kleash.train.player.recomputed", lambda *given, again=again: again)
            keys = ("epochs=1", "scale.packed=on", "scale.recompute=0")
            found.append(bytes_of(SMALL.trained(tmp_path / str(again), ledger, *keys)))
    finally:
        gc.enable()
    assert found[0] == found[1]
    assert len(decoders) == 2 and all(made() is None for made in decoders)
