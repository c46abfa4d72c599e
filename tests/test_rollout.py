"""Groups: what was sampled is what was rewarded, arms are paired, broken answers are no numbers."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from agent_tools import SHORT
from kleash.algo.policy import Noise, keyed_noise
from kleash.errors import CheckpointError, ConfigError, DataError
from kleash.models.selector import STOP, Selector
from kleash.runs.ledger import Ledger
from kleash.tasks.demos.propose import similar
from kleash.train.evaluate import Wanted, evaluate
from kleash.train.recipe import recipe_from
from kleash.train.rollout import Groups, load_checkpoint, world_of
from kleash.train.rollout import selector as rollout
from kleash.train.rollout.proposed import best_pointers, buy_proposals, proposal_groups
from kleash.train.rollout.selector import SelectorWorld, sample_groups
from kleash.train.training import train
from kleash.types import Prompt
from tiny import Reader, given, tiny_recipe

PLACES = [0, 3, 5]

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def world(ledger: Ledger) -> SelectorWorld:
    return SelectorWorld(tiny_recipe(), ledger)


def breaking(world: SelectorWorld, breaks: Callable[[Prompt], bool]) -> SelectorWorld:
    """The same world with an answerer that breaks on some prompts."""
    assert isinstance(world.answerer, Reader)
    world.answerer.break_on(breaks)
    return world


def policy_of(world: SelectorWorld) -> Selector:
    return world.fresh_policy()


def sampled(world: SelectorWorld, policy: Selector | None = None, draw: int = 1) -> Groups:
    return sample_groups(policy or policy_of(world), world, "train", PLACES, ("grpo", draw))


def members(groups: Groups) -> list[tuple[str, tuple[int, ...]]]:
    """The task and the pointer of every episode."""
    tasks = groups.batch.queries.tasks
    return [
        (tasks[query], pointer)
        for query, pointer in zip(groups.group.tolist(), groups.batch.lists(), strict=True)
    ]


@pytest.mark.parametrize("preset", ["v3", "v4-10"])
def test_a_group_holds_the_pointers_that_were_rewarded_with_their_logp(
    ledger: Ledger, preset: str
) -> None:
    keys = ("reward=hard_plus_gtprob", f"selector={preset}", "shots=4")
    world = SelectorWorld(tiny_recipe(*keys), ledger)
    policy, groups = policy_of(world), sampled(world)
    assert groups.size == len(PLACES)
    assert groups.group.bincount().tolist() == [4, 4, 4]
    place_of = {item.id: i for i, item in enumerate(world.pooled("train").queries)}
    asked = [(place_of[task], pointer) for task, pointer in members(groups)]
    assert {place for place, _ in asked} == set(PLACES)
    rewards, _ = world.rewards("train", asked)
    assert groups.reward.tolist() == pytest.approx(rewards)
    assert len(set(rewards)) > 1
    assert groups.logp is not None
    torch.testing.assert_close(groups.logp, policy.judge(groups.batch).logp.detach())
    assert (groups.broken, groups.dropped) == (0, 0)
    early = [pointer for _, pointer in members(groups) if len(pointer) < 4]
    assert bool(early) == (preset == "v4-10") and all(each[-1] == STOP for each in early)


def test_no_pointer_of_an_episode_names_a_place_twice(world: SelectorWorld) -> None:
    for _, pointer in members(sampled(world)):
        assert len(set(pointer)) == world.recipe.shots


def test_arms_of_a_seed_draw_the_same_pointers_from_equal_weights(ledger: Ledger) -> None:
    ours = SelectorWorld(tiny_recipe("leash.coefficient=0.0", "lr=1e-5", "advantage=rank"), ledger)
    theirs = SelectorWorld(tiny_recipe("leash.form=k3", "entropy_bonus=0.1", "reward=soft"), ledger)
    policy = policy_of(ours)
    assert members(sampled(ours, policy)) == members(sampled(theirs, policy))


def test_another_seed_or_another_epoch_draws_other_pointers(ledger: Ledger) -> None:
    first, other = (SelectorWorld(tiny_recipe(f"seed={seed}"), ledger) for seed in (0, 1))
    policy = policy_of(first)
    assert members(sampled(first, policy)) == members(sampled(first, policy))
    assert members(sampled(first, policy)) != members(sampled(other, policy))
    assert members(sampled(first, policy)) != members(sampled(first, policy, draw=2))


def test_every_rollout_of_every_query_has_noise_of_its_own(
    world: SelectorWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[object, ...]] = []

    def spied(keys: list[tuple[object, ...]]) -> Noise:
        seen.extend(keys)
        return keyed_noise(keys)

    monkeypatch.setattr(rollout, "keyed_noise", spied)
    sampled(world)
    assert len(seen) == len(set(seen)) == 12


def test_a_query_draws_the_same_pointers_in_any_company(world: SelectorWorld) -> None:
    policy = policy_of(world)
    alone = sample_groups(policy, world, "train", [5], ("grpo", 1))
    assert members(alone) == members(sampled(world, policy))[8:]


def test_an_answer_that_broke_is_in_no_group_and_is_counted(world: SelectorWorld) -> None:
    whole = members(sampled(world))
    gone = next(member for member in whole if whole.count(member) == 1)
    place = world.queries("train").tasks.index(gone[0])
    prompt = world.pooled("train").prompt(place, gone[1])
    groups = sampled(breaking(world, lambda asked: asked == prompt))
    assert (groups.broken, groups.dropped) == (1, 0)
    assert members(groups) == [member for member in whole if member != gone]
    assert len(groups.reward) == len(whole) - 1
    assert bool(groups.reward.isfinite().all())
    assert groups.logp is not None
    torch.testing.assert_close(groups.logp, policy_of(world).judge(groups.batch).logp.detach())


def test_a_group_with_fewer_than_two_answers_is_dropped_and_counted(world: SelectorWorld) -> None:
    whole = members(sampled(world))
    task, pointer = next(member for member in whole if whole.count(member) == 1)
    place = world.queries("train").tasks.index(task)
    left = world.pooled("train").prompt(place, pointer)
    groups = sampled(breaking(world, lambda prompt: prompt.query.id == task and prompt != left))
    assert (groups.size, groups.dropped, groups.broken) == (2, 1, 3)
    assert members(groups) == [member for member in whole if member[0] != task]
    assert groups.group.tolist() == [0] * 4 + [1] * 4


def test_where_every_answer_broke_there_is_nothing_to_learn_from(world: SelectorWorld) -> None:
    breaking(world, lambda prompt: True)
    with pytest.raises(DataError, match="none of 3 groups has two answered pointers"):
        sampled(world)
    bought = buy_proposals(world, "train", 4)
    with pytest.raises(DataError, match="none of 4 queries has an answered pointer"):
        best_pointers(world.queries("train"), bought, range(4))


def test_a_broken_answer_is_no_reward(world: SelectorWorld) -> None:
    breaking(world, lambda prompt: len(prompt.demonstrations) == 1)
    rewards, answers = world.rewards("train", [(0, (1,)), (0, (1, 2))])
    assert (rewards[0], answers[0]) == (None, None)
    assert rewards[1] is not None


def test_only_what_beats_retrieval_earns_where_that_is_asked_for(ledger: Ledger) -> None:
    ours = SelectorWorld(tiny_recipe("reward=soft_plus_gtlogp"), ledger)
    above = ours.with_recipe(tiny_recipe("reward=soft_plus_gtlogp-retrieval", "selector=v4-10"))
    near = [(q, similar(ours.pooled("train"), q, "both", 2)) for q in range(24)]
    assert above.rewards("train", near)[0] == [0.0] * 24
    asked = [(q, pointer) for q in range(24) for pointer in ((0, 1), (2, 3))]
    plain, floor = ours.rewards("train", asked)[0], ours.rewards("train", near)[0]
    gains = [max(0.0, plain[n] - floor[q]) for n, (q, _) in enumerate(asked)]
    assert above.rewards("train", asked)[0] == gains
    assert 0 < sum(gain > 0 for gain in gains) < len(gains)
    nearest = ours.pooled("train").prompt(*near[0]).demonstrations
    breaking(above, lambda prompt: prompt.demonstrations == nearest)
    assert above.rewards("train", [(0, (4, 5))])[0] == [None]
    with pytest.raises(ConfigError, match="asks for no answers"):
        tiny_recipe("reward=soft-retrieval", "propose.facts=x.json")


def test_proposals_are_bought_with_their_rewards(world: SelectorWorld) -> None:
    bought = buy_proposals(world, "train", 6)
    assert [len(pointers) for pointers in bought.pointers] == [
        len(rewards) for rewards in bought.rewards
    ]
    known = [reward for rewards in bought.rewards for reward in rewards if reward is not None]
    assert bought.positive_share() == sum(reward > 0 for reward in known) / len(known)
    assert 0 < bought.positive_share() < 1
    groups = proposal_groups(world.queries("train"), bought, [2, 0])
    assert members(groups) == [
        (world.queries("train").tasks[place], pointer)
        for place in (2, 0)
        for pointer in bought.pointers[place]
    ]
    assert groups.reward.tolist() == pytest.approx(bought.rewards[2] + bought.rewards[0])


def test_the_best_proposal_made_the_truth_likeliest(world: SelectorWorld) -> None:
    bought = buy_proposals(world, "train", 6)
    for query in range(6):
        best = bought.best(query)
        assert best is not None
        assert bought.truth_logp[query][bought.pointers[query].index(best)] == max(
            bought.truth_logp[query]
        )


def test_a_query_whose_answers_all_broke_is_imitated_by_nobody(world: SelectorWorld) -> None:
    lost = world.queries("train").tasks[1]

    def breaks(prompt: Prompt) -> bool:
        return prompt.query.id == lost

    bought = buy_proposals(breaking(world, breaks), "train", 4)
    assert bought.best(1) is None
    batch = best_pointers(world.queries("train"), bought, [0, 1, 3])
    assert batch.queries.tasks == tuple(world.queries("train").tasks[i] for i in (0, 3))


def test_a_checkpoint_is_named_by_its_place_in_a_run(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="give RUN/checkpoints/NAME"):
        load_checkpoint(tmp_path / "weights.safetensors")


def test_worlds_of_one_data_set_share_what_they_have_in_common(world: SelectorWorld) -> None:
    other = world.with_recipe(tiny_recipe("lr=0.5", "queries=12"))
    assert other.queries("test") is world.queries("test")
    assert len(other.queries("train")) == 12
    assert other.queries("train").tasks == world.queries("train").tasks[:12]
    assert world.with_recipe(tiny_recipe("pool.size=5")).queries("test").mask_BK.shape[1] == 5
    assert world.with_recipe(tiny_recipe("data_seed=1")).data.content != world.data.content


def test_proposals_asked_for_again_are_counted_and_not_bought(world: SelectorWorld) -> None:
    ledger = world.ask.ledger
    start = ledger.usage()
    first = buy_proposals(world, "train", 6)
    once = ledger.usage()
    again = buy_proposals(world.with_recipe(tiny_recipe("lr=0.5")), "train", 6)
    assert again == first
    assert ledger.usage().since(once).asked == once.since(start).asked > 6
    assert ledger.usage().since(once).bought == 0
    other = buy_proposals(world.with_recipe(tiny_recipe("seed=1")), "train", 6)
    assert other.pointers != first.pointers
    rewarded = buy_proposals(world.with_recipe(tiny_recipe("reward=hard")), "train", 6)
    assert rewarded.pointers == first.pointers and rewarded.rewards != first.rewards


def test_validation_has_the_same_proposals_whatever_the_seed(world: SelectorWorld) -> None:
    other = world.with_recipe(tiny_recipe("seed=1"))
    assert other.proposals("validation", 5) == world.proposals("validation", 5)
    assert other.proposals("train", 5) != world.proposals("train", 5)


@pytest.mark.parametrize("family", ["agent", "selector"])
def test_a_world_and_a_run_leave_the_callers_torch_as_it_was(
    family: str, tmp_path: Path, ledger: Ledger
) -> None:
    keys = (
        SHORT | {"epochs": 1, "steps": 1} if family == "agent" else given("epochs=1", "queries=8")
    )
    recipe = recipe_from(keys)
    seen: list[tuple[int, bool]] = []
    before = torch.get_num_threads(), torch.backends.mkldnn.enabled
    torch.set_num_threads(3)
    torch.backends.mkldnn.enabled = True
    try:
        world = world_of(recipe, ledger)
        assert (torch.get_num_threads(), torch.backends.mkldnn.enabled) == (3, True)
        run = train(
            tmp_path / "run",
            recipe,
            keys,
            world,
            listen=lambda heard: seen.append(
                (torch.get_num_threads(), torch.backends.mkldnn.enabled)
            ),
        )
        shots = recipe.validated_at()
        evaluate(run, world, Wanted(run.checkpoints()[-1:], [shots], "test", 3))
        assert (torch.get_num_threads(), torch.backends.mkldnn.enabled) == (3, True)
        assert set(seen) == {(1, False)}  # and the run is what every run is
    finally:
        torch.set_num_threads(before[0])
        torch.backends.mkldnn.enabled = before[1]
