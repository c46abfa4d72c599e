"""Batches played ahead: by which weights is fixed, resuming is exact, and both really go on."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch

from agent_tools import SHORT, Agents, Cut, bytes_of, cut_after, steps_of, watch_learning
from kleash.config import merge
from kleash.errors import ConfigError, GuardError
from kleash.runs.ledger import Fact, Ledger
from kleash.train.player import Player, twin
from kleash.train.rollout import Groups
from kleash.train.rollout.agent import AgentWorld, Attempt
from kleash.train.training import train
from kleash.train.update import LeashedPolicy
from kleash.types import Episode

SMALL = Agents(
    merge(
        SHORT,
        {
            "lr": 3e-3,
            "entropy_bonus": 0.1,  # so that every update moves the weights
            "gym": {"limit": 2, "world": {"train": 20, "validation": 8, "test": 8}},
            "supervised": {"epochs": 0},
            "steps": 3,
            "batch": 2,
            "group": 3,
            "validation": {"tasks": 4, "training": 2},
            "turn_tokens": 6,
        },
    )
)
agent, asked, trained = SMALL.recipe, SMALL.asked, SMALL.trained
STALE = ("sampler.cap=2", "sampler.staleness=1")

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize(
    "staleness",
    [pytest.param(0, marks=pytest.mark.slow), pytest.param(1, marks=pytest.mark.slow), 2],
)
def test_a_batch_is_played_by_the_weights_of_its_number(
    tmp_path: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, staleness: int
) -> None:
    seen = watch_learning(monkeypatch)
    keys = ("sampler.cap=2", f"sampler.staleness={staleness}")
    run = trained(tmp_path / "run", ledger, *keys)
    policy = AgentWorld(agent(*keys), ledger).empty_policy()
    for number, (groups, line) in enumerate(zip(seen.batches, steps_of(run), strict=True)):
        behind = min(staleness, number % 3)  # every epoch begins anew
        assert line["staleness"] == behind
        apart = []
        for age in range(min(3, number + 1)):
            policy.load_state_dict(seen.weights[number - age])
            logp = policy.judge(groups.batch).logp.detach()
            apart.append((groups.logp - logp).abs().max().item())  # type: ignore[operator]
        assert apart[behind] < 1e-5
        assert all(each > 1e-3 for age, each in enumerate(apart) if age != behind)
        assert (abs(line["kl/sampler/k1/choice/p99"]) > 1e-3) == (behind > 0)


LORA = ("lora.rank=2", "leash.reference=adapter_off", "scale.packed=on", "scale.pack_tokens=64")


def test_who_waits_to_play_has_the_weights_of_its_number_and_the_last_has_the_policy_s(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether a batch has begun when the policy learns is up to the clock, its weights are not."""
    world = AgentWorld(agent("sampler.cap=2", "sampler.staleness=2"), ledger)
    policy = world.fresh_policy()
    player, real = Player(world, policy, 2), Player.sync_weights
    learnt = threading.Event()
    spoken: list[dict[str, torch.Tensor]] = []

    def sync_weights(self: Player, *given: Any) -> None:
        assert not spoken or learnt.wait(10)
        real(self, *given)
        spoken.append(copied(self.speaker))

    monkeypatch.setattr(Player, "sync_weights", sync_weights)
    before = copied(policy)
    played = player.batches([(world.tasks("train")[:1], ("grpo", 1, n)) for n in range(3)])
    assert next(played).staleness == 0
    with torch.no_grad():
        for weight in policy.parameters():
            weight.add_(1.0)
    learnt.set()
    assert [batch.staleness for batch in played] == [1, 2]
    player.close()
    assert len(spoken) == 4
    for found, meant in zip(spoken, (before, before, before, copied(policy)), strict=True):
        assert all(torch.equal(found[name], tensor) for name, tensor in meant.items())
    again = [Attempt(world.tasks("train")[0], 0, 0, None)]  # nothing is left that would end it
    assert world.play(world.engine(policy), again)[0].reward is not None


def copied(policy: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in policy.state_dict().items()}


@pytest.mark.parametrize(
    ("at", "keys"), [pytest.param(8, (*STALE, *LORA), marks=pytest.mark.slow), (27, STALE)]
)
def test_stopped_while_a_batch_is_played_ahead_it_goes_on_bit_exactly(
    tmp_path: Path,
    ledger: Ledger,
    at: int,
    keys: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = trained(tmp_path / "whole", ledger, *keys)
    with monkeypatch.context() as patch:
        cut_after(patch, at)
        with pytest.raises(Cut):
            trained(tmp_path / "cut", ledger, *keys)
    assert bytes_of(trained(tmp_path / "cut", ledger, *keys)) == bytes_of(whole)
    far = [line for line in whole.metrics() if line.get("code") == "far-sampler"]
    epochs = [line for line in whole.metrics() if line["kind"] == "epoch"]
    assert len(far) == sum(line["kl/sampler/k1/choice/mean"] > 0.1 for line in epochs)


def test_the_next_batch_is_played_while_the_policy_learns(
    tmp_path: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    playing, learning = threading.Event(), threading.Event()
    met: list[bool] = []
    play, learn = AgentWorld.play_one, LeashedPolicy.update_on_batch

    async def noticed(self: AgentWorld, engine: Any, one: Attempt) -> Episode | None:
        if one.key is not None and one.key[1:4] == ("grpo", 1, 1) and not playing.is_set():
            playing.set()
            met.append(learning.wait(300))  # the second batch waits for the first one's update
        return await play(self, engine, one)

    def patient(self: LeashedPolicy, groups: Groups, *given: Any) -> Any:
        learning.set()
        met.append(playing.wait(300))  # and that update for the second batch
        return learn(self, groups, *given)

    monkeypatch.setattr(AgentWorld, "play_one", noticed)
    monkeypatch.setattr(LeashedPolicy, "update_on_batch", patient)
    trained(tmp_path / "run", ledger, *STALE, "epochs=1", "steps=2")
    assert met == [True, True, True]


def test_when_learning_fails_nobody_waits_for_who_plays(
    tmp_path: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = threading.Event()
    play, keys = AgentWorld.play_one, ("sampler.cap=2", "sampler.staleness=2")
    asked_for: list[tuple[object, ...]] = []

    async def stuck(self: AgentWorld, engine: Any, one: Attempt) -> Episode | None:
        asked_for.append((one.key or ())[1:4])
        if one.key is not None and one.key[1:4] == ("grpo", 1, 1):
            begun.set()
            await asyncio.sleep(3600)
        return await play(self, engine, one)

    def learn(self: LeashedPolicy, groups: Groups, *given: Any) -> Any:
        begun.wait(300)
        raise GuardError("broken")

    world = AgentWorld(agent(*keys), ledger)
    with monkeypatch.context() as patch:
        patch.setattr(AgentWorld, "play_one", stuck)
        patch.setattr(LeashedPolicy, "update_on_batch", learn)
        with pytest.raises(GuardError, match="broken"):
            train(tmp_path / "run", world.recipe, asked(*keys), world)
    assert not [each for each in threading.enumerate() if each.name.startswith("player")]
    assert ("grpo", 1, 2) not in asked_for  # which waited behind the one under way
    policy = world.fresh_policy()  # and the world can be played in again
    wanted = [Attempt(world.tasks("train")[0], 0, 0, None)]
    assert world.play(world.engine(policy), wanted)[0].reward is not None


@pytest.mark.parametrize("staleness", [0, 1])
def test_an_engine_is_told_of_every_update_unless_it_may_be_stale(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, staleness: int
) -> None:
    """Our own engines would notice; a server has to be told."""
    world = AgentWorld(agent(), ledger)
    player = Player(world, world.fresh_policy(), staleness)
    told: list[object] = []
    monkeypatch.setattr(player.engine, "refresh", told.append)
    player.after_update()
    assert told == ([] if staleness else [player.policy])
    player.sync_weights()
    assert len(told) == 2 - staleness and told[-1] is player.speaker


def test_a_ledger_is_used_by_threads_in_turns(ledger: Ledger) -> None:
    """A user's answers are looked up and kept by whoever plays."""
    with ThreadPoolExecutor(1) as player:
        player.submit(ledger.record, "user", {"asked": Fact("answered")}).result()
    assert ledger.lookup("user", ["asked"])["asked"].text == "answered"


def test_a_copy_shares_what_does_not_train(ledger: Ledger) -> None:
    world = AgentWorld(agent("lora.rank=2", "leash.reference=adapter_off"), ledger)
    policy = world.fresh_policy()
    copied = dict(twin(policy).named_parameters())
    for name, weight in policy.named_parameters():
        assert (copied[name] is weight) == (not weight.requires_grad), name
        assert not copied[name].requires_grad
    assert any(weight.requires_grad for weight in policy.parameters())


def test_several_ranks_do_not_play_ahead(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    world = AgentWorld(agent(*STALE), ledger)
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 2)
    with pytest.raises(ConfigError, match="needs a run of one process"):
        Player(world, world.fresh_policy(), 1)
    Player(world, world.fresh_policy(), 0)


def test_what_is_stale_must_be_weighed() -> None:
    with pytest.raises(ConfigError, match=r"set sampler\.cap=2 too"):
        agent("sampler.staleness=1")
