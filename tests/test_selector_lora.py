"""Adapters on the encoder's towers: they train with the selector, and they alone are kept."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import tiny
from kleash.algo.kl import episode_sum
from kleash.algo.policy import frozen
from kleash.errors import ConfigError, DataError
from kleash.models.embed.towers import folder_hash
from kleash.models.selector import Queries, towers
from kleash.study.plan import arms_of, own_selector
from kleash.train.evaluate import Wanted, evaluate, table
from kleash.train.evaluate.selector import loaded
from kleash.train.export import export_selector
from kleash.train.rollout.proposed import best_pointers, buy_proposals
from kleash.train.rollout.selector import SelectorWorld, selector_at
from kleash.train.training import facts
from made_encoders import clip_folder, siglip_folder
from study_tools import small


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return clip_folder(tmp_path_factory.mktemp("clip"))


def keys(folder: Path, *more: str) -> tuple[str, ...]:
    """A run of two queries a batch on tiny towers."""
    return (
        *("encoder=clip", f"encoder_options.model={folder}", "selector=v3+lora2"),
        *("queries=8", "batch=4", "pool.size=4", "epochs=1", "group=2", "lr=1e-3", *more),
    )


@pytest.fixture
def world(clip, ledger) -> SelectorWorld:
    return SelectorWorld(tiny.tiny_recipe(*keys(clip)), ledger)


def adapters(weights: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The adapters among the weights."""
    return {name: each for name, each in weights.items() if name.startswith("towers.")}


@pytest.mark.parametrize("kind", ["clip", "siglip"])
def test_at_the_start_adapters_add_nothing(kind, clip, ledger, tmp_path):
    folder = clip if kind == "clip" else siglip_folder(tmp_path / "siglip")
    world = SelectorWorld(tiny.tiny_recipe(*keys(folder, f"encoder={kind}")), ledger)
    policy, queries = world.fresh_policy(), world.queries("train")
    seen = policy.seen(queries)
    assert seen.query_BD.detach() == pytest.approx(queries.query_BD, abs=1e-5)
    assert seen.pool_BKD.detach() == pytest.approx(queries.pool_BKD, abs=1e-5)
    plain = world.with_recipe(tiny.tiny_recipe(*keys(folder, f"encoder={kind}", "selector=v3")))
    others = plain.fresh_policy().state_dict()
    assert all(torch.equal(policy.state_dict()[name], each) for name, each in others.items())


@pytest.mark.slow
def test_all_phases_train_the_adapters_and_checkpoints_hold_nothing_else_of_the_towers(
    clip, ledger, tmp_path
):
    before = folder_hash(clip)
    run = tiny.train_tiny(tmp_path / "run", ledger, *keys(clip))
    names = run.checkpoints()
    assert names == ["supervised-1", "rce-1", "epoch-1"]
    held = [load_file(run.path / "checkpoints" / each / "weights.safetensors") for each in names]
    for one, other in pairwise(map(adapters, held)):
        still = [name for name, each in one.items() if torch.equal(each, other[name])]
        assert still == [], "every adapter trains in every phase"
    assert all("lora_" in name for name in adapters(held[0]))
    plain = [name for name in held[0] if not name.startswith("towers.")]
    own = tiny.train_tiny(tmp_path / "plain", ledger, *keys(clip, "selector=v3", "epochs=0"))
    assert plain == list(load_file(own.path / "checkpoints/rce-1/weights.safetensors"))
    assert folder_hash(clip) == before
    world = SelectorWorld(tiny.tiny_recipe(*keys(clip)), ledger)
    wanted = Wanted(["rce-1", "epoch-1"], [1, 2], "test", 20)
    evaluate(run, world, wanted)
    assert [cell["n"] for cell in table(run, wanted)] == [20] * 4


@pytest.mark.slow
def test_a_checkpoint_comes_back_as_it_was_and_a_killed_run_ends_with_the_same_bytes(
    clip, ledger, tmp_path
):
    run = tiny.train_tiny(tmp_path / "run", ledger, *keys(clip, "epochs=2"))
    world = SelectorWorld(tiny.tiny_recipe(*keys(clip)), ledger)
    queries = world.queries("validation").take(range(5))
    policy, _ = loaded(run, world, "epoch-2", 2)
    other = world.fresh_policy()
    chosen, _ = policy.choose(queries, 2)
    assert not torch.equal(policy.judge(chosen).logp, other.judge(chosen).logp)
    other.load_state_dict(run.load("epoch-2", trainer=False).weights)
    assert torch.equal(policy.judge(chosen).logp, other.judge(chosen).logp)
    short = tiny.train_tiny(tmp_path / "short", ledger, *keys(clip, "epochs=1"))
    longer = tiny.train_tiny(short.path, ledger, *keys(clip, "epochs=2"))
    assert tiny.contents(longer, "config.json", "given.json") == tiny.contents(
        run, "config.json", "given.json"
    )


def test_a_reference_has_adapters_of_its_own_on_the_same_towers(world):
    policy = world.fresh_policy()
    tied = frozen(policy)
    ours, theirs = policy.towers.by.network, tied.towers.by.network
    mine = dict(ours.named_parameters())
    for name, each in theirs.named_parameters():
        assert (each is mine[name]) == (".lora_" not in name)
        assert not each.requires_grad
    queries = world.queries("train")
    before = tied.seen(queries).query_BD
    with torch.no_grad():
        for parameter in policy.towers.parameters():
            parameter += 0.1
    assert torch.equal(tied.seen(queries).query_BD, before)
    assert not torch.equal(policy.seen(queries).query_BD, before)


@pytest.mark.slow
def test_gradients_do_not_depend_on_how_many_are_in_memory_at_once(world, monkeypatch):
    policy, queries = world.fresh_policy(), world.queries("train").take(range(3))
    with torch.no_grad():
        for name, parameter in policy.towers.named_parameters():
            parameter += 0.1 * ("lora_B" in name)

    def gradients(at_once):
        monkeypatch.setattr(towers, "AT_ONCE", at_once)
        policy.zero_grad()
        chosen, _ = policy.choose(queries, 2)
        policy.judge(chosen).logp.sum().backward()
        return {name: each.grad.clone() for name, each in policy.towers.named_parameters()}

    whole, parts = gradients(100), gradients(2)
    for name, each in whole.items():
        assert each.abs().max() > 0
        assert parts[name] == pytest.approx(each, abs=1e-5, rel=1e-3)


@pytest.mark.slow
def test_adapters_alone_learn_what_is_asked_of_them(world):
    policy = world.fresh_policy()
    policy.freeze(["projections", "query_encoder"])
    queries, bought = world.queries("train"), buy_proposals(world, "train", 8)
    batch = best_pointers(queries, bought, range(8))
    optimiser = torch.optim.AdamW([p for p in policy.parameters() if p.requires_grad], lr=0.02)
    losses = []
    for _ in range(30):
        loss = -episode_sum(policy.judge(batch).logp, batch.episode).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.7 * losses[0]


def test_an_arm_with_adapters_has_a_base_of_its_own():
    file = small(arms={"adapted": {"selector": "v3+lora"}})
    assert [own_selector(file, arm) for arm in arms_of(file)] == ["", "", "v3+lora"]


@pytest.mark.slow
def test_where_there_are_no_towers_it_is_refused_in_a_line(clip, ledger, tmp_path, world):
    blind = tiny.tiny_recipe("selector=v3+lora")
    with pytest.raises(ConfigError, match="encoder 'answerer' has no two towers"):
        facts(blind, SelectorWorld(blind, ledger))
    with pytest.raises(ConfigError, match="is an agent's"):
        tiny.tiny_recipe(*keys(clip, "leash.reference=adapter_off"))
    with pytest.raises(ConfigError, match="did you mean 'v3'"):
        tiny.tiny_recipe("selector=v33+lora")
    run = tiny.train_tiny(tmp_path / "run", ledger, *keys(clip, "epochs=0", "rce.epochs=0"))
    place = str(run.path / "checkpoints/supervised-1")
    with pytest.raises(ConfigError, match="without \\+lora"):
        selector_at(place, world.width)
    with pytest.raises(ConfigError, match="exported without towers"):
        export_selector(run, tiny.tiny_recipe(*keys(clip)), "supervised-1", tmp_path)
    bare = world.queries("train")
    rows = Queries.of(bare.tasks, bare.query_BD, bare.pool_BKD, bare.mask_BK)
    with pytest.raises(DataError, match="vectors alone"):
        world.fresh_policy().encode(rows)
