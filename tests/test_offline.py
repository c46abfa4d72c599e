"""Offline groups: what is worked out for many queries at once is what one query alone would say."""

import pytest
import torch

from kleash.runs.ledger import Ledger
from kleash.train.rollout.proposed import buy_proposals, proposal_groups
from kleash.train.rollout.selector import SelectorWorld
from kleash.train.selector import Offline, values_of_batch
from tiny import tiny_recipe

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("freeze", [(), ("projections",)])
@pytest.mark.parametrize("places", [[5], [7, 2, 11]])
def test_a_batch_gets_what_a_policy_says_of_it(
    ledger: Ledger, freeze: tuple[str, ...], places: list[int]
) -> None:
    world = SelectorWorld(tiny_recipe(), ledger)
    bought = buy_proposals(world, "train", len(world.queries("train")))
    policy = world.fresh_policy()
    policy.freeze(freeze)
    offline = Offline(world, bought, policy)
    groups = offline.groups(places)
    plain = proposal_groups(world.queries("train"), bought, places)
    assert groups.batch.lists() == plain.batch.lists()
    assert torch.equal(groups.reward, plain.reward)
    logp, logits = (
        values_of_batch(made(policy), groups) for made in (offline.logp, offline.logits)
    )
    torch.testing.assert_close(logp, policy.judge(plain.batch).logp.detach())
    torch.testing.assert_close(logits, policy.logits(plain.batch).detach())
    torch.testing.assert_close(logp, policy.judge(groups.batch).logp.detach())


def test_a_lone_query_is_laid_out_once(ledger: Ledger) -> None:
    world = SelectorWorld(tiny_recipe(), ledger)
    bought = buy_proposals(world, "train", len(world.queries("train")))
    offline = Offline(world, bought, world.fresh_policy())
    assert offline.groups([3]) is offline.groups([3])
    assert offline.groups([3]) is not offline.groups([4])
    assert values_of_batch({}, offline.groups([3])) is None
