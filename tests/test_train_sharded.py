"""Weights and episodes over ranks: the gradients of one process, checkpoints for any number."""

import pytest
import torch
import torch.multiprocessing as processes

from kleash.seeds import generator
from kleash.train import checkpoints, ranked
from sharded_ranks import (
    HOW,
    alone,
    episodes,
    load,
    narrow_policy,
    optimiser_of,
    policy_and_reference,
    rank_main,
    rounded_main,
    rounded_steps,
    save,
    whole,
)

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("ranks", [1, 2, 3, 8])
def test_ranks_have_about_as_many_tokens(ranks):
    lengths = generator("lengths", ranks).integers(200, 6000, 48).tolist()
    shares = ranked.balance(lengths, ranks)
    assert sorted(at for share in shares for at in share) == list(range(48))
    held = [sum(lengths[at] for at in share) for share in shares]
    assert max(held) <= 1.03 * sum(held) / ranks


@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks_go_through_equally_many_packs_and_count_each_choice_once(ranks):
    policy, _ = policy_and_reference()
    batch = policy.gather(episodes())
    packs = [ranked.packs_of_rank(batch, rank, ranks, HOW) for rank in range(ranks)]
    assert len({len(each) for each in packs}) == 1
    counted = [index for each in packs for _, index, counts in each if counts]
    assert torch.cat(counted).sort().values.tolist() == list(range(len(batch)))


def test_a_rank_without_episodes_goes_through_another_s_and_counts_nothing():
    policy, _ = policy_and_reference()
    batch = policy.gather(episodes())
    packs = [ranked.packs_of_rank(batch, rank, 50, HOW) for rank in range(50)]
    assert all(len(each) == 1 for each in packs)
    assert sum(counts for [(_, _, counts)] in packs) == len(batch.lengths)
    counted = torch.cat([index for [(_, index, counts)] in packs if counts])
    assert counted.sort().values.tolist() == list(range(len(batch)))


def test_what_is_not_packed_is_not_shared_out():
    policy, _ = policy_and_reference()
    policy.packing = None
    with pytest.raises(ValueError, match="only a packed policy"):
        ranked.shard(policy)


def test_an_optimiser_gets_its_moments_without_moving_a_weight():
    policy, reference = policy_and_reference()
    before, optimiser = whole(policy.named_parameters()), optimiser_of(policy)
    checkpoints.empty_moments(optimiser)
    assert all(torch.equal(each, before[name]) for name, each in policy.named_parameters())
    assert [group["lr"] for group in optimiser.param_groups] == [1e-2]
    assert len(optimiser.state) == len(before)
    alone(policy, reference)
    optimiser.step()
    moved = {id(weight): state["exp_avg"].clone() for weight, state in optimiser.state.items()}
    checkpoints.empty_moments(optimiser)  # of one that has them already nothing is changed
    assert any(each.any() for each in moved.values())
    for weight, state in optimiser.state.items():
        assert torch.equal(state["exp_avg"], moved[id(weight)])


def same(ours, theirs):
    assert ours.keys() == theirs.keys()
    for name, each in theirs.items():
        assert torch.allclose(ours[name], each, rtol=1e-9, atol=1e-12), name


def one_process(folder=None):
    """Two steps in one process, or the second one from a checkpoint."""
    policy, reference = policy_and_reference()
    optimiser, found = optimiser_of(policy), {}
    if folder is not None:
        load(folder, policy, optimiser)
    else:
        alone(policy, reference)
        found["gradients"] = whole((n, p.grad) for n, p in policy.named_parameters())
        optimiser.step()
        found["kept"] = policy, optimiser
    after = found | {"saved": lambda at: save(at, policy, optimiser)}

    def go_on():
        alone(policy, reference)
        optimiser.step()
        return whole(policy.named_parameters())

    return after | {"go_on": go_on}


@pytest.mark.slow
def test_two_ranks_give_one_process_s_gradients_and_checkpoints_go_both_ways(tmp_path):
    processes.spawn(rank_main, (2, str(tmp_path), ""), nprocs=2)
    ranks = torch.load(tmp_path / "found-new.pt")
    one = one_process()
    same(ranks["gradients"], one["gradients"])
    assert sum(ranks["pieces"].values()) < 0.6 * sum(g.numel() for g in one["gradients"].values())
    one["saved"](tmp_path / "from-one")
    expected = one["go_on"]()
    same(ranks["weights"], expected)
    same(one_process(tmp_path / "from-ranks")["go_on"](), expected)
    processes.spawn(rank_main, (2, str(tmp_path), "from-one"), nprocs=2)
    same(torch.load(tmp_path / "found-from-one.pt")["weights"], expected)


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, 3])
def test_weights_in_bfloat16_are_rounded_by_the_draws_of_one_process(tmp_path, ranks):
    processes.spawn(rounded_main, (ranks, str(tmp_path)), nprocs=ranks)
    theirs = torch.load(tmp_path / f"rounded-{ranks}.pt")
    ours = rounded_steps(narrow_policy(), lambda weight, drawn: drawn)
    assert theirs["norms"] == pytest.approx(ours["norms"], rel=1e-6)
    # Each norm is a sum in another order, so that the clip may differ in its last bit.
    for name, each in ours["kept"].items():
        apart = (theirs["kept"][name].float() - each.float()).abs()
        assert (apart > 0).float().mean() < 0.01, name
