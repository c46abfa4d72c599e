"""Views leave groups and pointers out, say how many, and change nothing that was bought."""

import json

import pytest

from kleash.errors import ConfigError, DataError
from kleash.runs.run import canonical
from kleash.tasks.demos.views import View, see
from kleash.train.recipe import recipe_from
from kleash.train.rollout.proposed import buy_proposals, through_view
from kleash.train.rollout.selector import SelectorWorld
from tiny import given, tiny_recipe

pytestmark = pytest.mark.usefixtures("one_thread")

GROUPS = [
    [0.0, 0.0, 0.0],  # all zero
    [2.0, 2.0],  # all one
    [0.0, 2.0, 0.0, 0.0],  # a quarter
    [0.0, 1.6, None],  # half, and one that broke
    [None, None],  # nothing answered
    [2.0, 2.0, 2.0, 1.6, 0.0],  # four fifths
]
NAMES = [f"q{n}" for n in range(len(GROUPS))]


def through(**keys):
    return see(View(**keys), GROUPS, NAMES, 0)


def test_without_a_view_all_that_was_answered_stays():
    left = through()
    assert left.groups == [0, 1, 2, 3, 5]
    assert left.members[3] == [0, 1]
    assert left.counts["kept_pointers"] == left.counts["pointers"] == 16
    assert not View().is_set


def test_mixed_groups_have_a_positive_and_a_negative():
    left = through(keep="mixed")
    assert left.groups == [2, 3, 5]
    assert (left.counts["groups"], left.counts["kept_groups"]) == (5, 3)


def test_a_range_of_shares_keeps_what_lies_in_it():
    assert through(low=0.4, high=0.6).groups == [3]
    assert through(low=0.25, high=0.8).groups == [2, 3, 5]
    with pytest.raises(ConfigError, match="no share is at least"):
        recipe_from({"view": {"low": 0.6, "high": 0.4}})


def test_balancing_keeps_as_many_of_both_and_draws_by_name():
    left = through(balance="equal")
    assert [len(members) for members in left.members] == [3, 2, 2, 2, 0, 2]
    for group, members in zip(GROUPS, left.members, strict=True):
        known = [group[at] > 0 for at in members]
        assert not known or sum(known) * 2 == len(known) or len(set(known)) == 1
    assert through(balance="equal").members == left.members
    drawn = {tuple(see(View(balance="equal"), GROUPS, NAMES, n).members[5]) for n in range(12)}
    assert len(drawn) > 1, "another seed draws others"
    reordered = see(View(balance="equal"), GROUPS[::-1], NAMES[::-1], 0)
    assert reordered.members[::-1] == left.members


def test_a_recipe_without_a_view_is_the_recipe_from_before_there_were_any():
    plain = tiny_recipe().resolved()
    assert "view" not in plain
    assert set(plain["propose"]) == {"random", "retrieval", "beams", "width"}
    said = tiny_recipe("view.keep=mixed", "propose.samples=2").resolved()
    assert said["view"] == {"keep": "mixed"}
    assert said["propose"]["samples"] == 2
    assert recipe_from(said) == tiny_recipe("view.keep=mixed", "propose.samples=2")
    assert canonical(recipe_from(given()).resolved()) == canonical(plain)


@pytest.fixture(scope="module")
def world(ledger):
    return SelectorWorld(tiny_recipe("queries=24"), ledger)


def test_what_was_bought_stays_and_the_view_says_what_it_left(world):
    bought = buy_proposals(world, "train", 24)
    before = json.dumps([bought.pointers, bought.rewards])
    names = world.item_ids("train")
    left = through_view(bought, View(keep="mixed"), names, 0)
    assert json.dumps([bought.pointers, bought.rewards]) == before
    mixed = bought.health()["mixed"]
    assert len(left.kept) == left.counts["kept_groups"] <= mixed
    assert all(left.pointers[at] == bought.pointers[at] for at in left.kept)
    assert through_view(bought, View(), names, 0) is bought
    with pytest.raises(DataError, match="leaves none of 24 groups"):
        through_view(bought, View(keep="mixed", low=1.0), names, 0)


def test_more_pointers_are_asked_for_where_there_was_no_signal(world):
    bought = buy_proposals(world, "train", 24)
    more = buy_proposals(world.with_recipe(tiny_recipe("view.more=5")), "train", 24)
    flat = [at for at, rewards in enumerate(bought.rewards) if len({*rewards}) == 1]
    assert flat
    for at in range(24):
        ours, theirs = bought.pointers[at], more.pointers[at]
        assert theirs[: len(ours)] == ours
        assert len({*theirs}) == len(theirs), "none is asked twice"
        assert len(theirs) - len(ours) == (5 if at in flat else 0)
    assert more.added == 5 * len(flat)
    assert more.health()["mixed"] > bought.health()["mixed"]


def test_rce_and_offline_groups_are_the_view_s_and_every_epoch_says_so(trained):
    keys = ("source=offline", "view.keep=mixed", "view.balance=equal", "queries=24")
    run = trained("viewed-s0", *keys)
    epochs = [line for line in run.metrics() if line["kind"] == "epoch"]
    told = [line for line in epochs if line["phase"] in ("rce", "grpo")]
    assert told and all(line["view/groups"] == 24 for line in told)
    kept = run.meta["view"]["kept_groups"]
    assert 0 < kept < 24
    assert {line["view/kept_groups"] for line in told} == {kept}
    assert {line["positive_share"] for line in told} == {0.5}
    assert not any(key.startswith("view/") for line in epochs[:1] for key in line)
    steps = [line for line in run.metrics() if line["kind"] == "step" and line["epoch"] == 1]
    assert len(steps) == -(-int(kept) // 8), "as many batches as the groups that are left fill"
    assert all(line["groups_with_signal"] == 1.0 for line in told if line["phase"] == "grpo")
