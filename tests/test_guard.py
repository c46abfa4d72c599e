"""Every guard: once tripped, once passed."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from kleash.algo import grpo, guard, kl
from kleash.algo.policy import Judged, Reference, fingerprint
from kleash.errors import CheckpointError, GuardError
from kleash.train.update import LeashedPolicy
from table_policy import TablePolicy

LOGP = torch.tensor([-1.0, -2.0])


class TwoLayers(nn.Module):
    """Two layers, one of which may be left out of the output."""

    def __init__(self, *, uses_second: bool = True) -> None:
        super().__init__()
        self.first = nn.Parameter(torch.tensor([1.0, 2.0]))
        self.second = nn.Parameter(torch.tensor([0.0, 0.0]))
        self.uses_second = uses_second

    def forward(self) -> torch.Tensor:
        return self.first * self.second if self.uses_second else self.first * 2


def test_ratios_are_one_at_the_start():
    guard.ratio_one_at_start(LOGP, LOGP + 5e-5)
    with pytest.raises(GuardError, match="turn dropout off"):
        guard.ratio_one_at_start(LOGP, LOGP + 2e-4)
    with pytest.raises(GuardError):
        guard.ratio_one_at_start(LOGP, LOGP * math.nan)


def test_kl_is_zero_at_the_start():
    kl = torch.tensor([0.0, 9e-6])
    guard.zero_kl_at_start(LOGP, LOGP, kl, reference="start")
    guard.zero_kl_at_start(LOGP, LOGP + 1e-3, None, reference="adapter_off")
    guard.zero_kl_at_start(LOGP, LOGP + 1, None, reference="path")
    with pytest.raises(GuardError, match=r"is 0\.5 nats before any update"):
        guard.zero_kl_at_start(LOGP, LOGP, torch.tensor([0.0, 0.5]), reference="start")
    with pytest.raises(GuardError, match="take the reference after warm-up"):
        guard.zero_kl_at_start(LOGP, LOGP + 0.1, None, reference="adapter_off")


@pytest.mark.parametrize(("kind", "fine"), [(torch.float32, 9e-6), (torch.bfloat16, 0.003)])
def test_kl_at_the_start_may_be_what_rounding_leaves_and_no_more(kind, fine):
    """An 8B shape in bfloat16 was seen at 0.003 nats, each side being rounded its own way."""
    leashed = object.__new__(LeashedPolicy)
    leashed.policy, leashed.optimizer = nn.Linear(2, 2).to(kind), SimpleNamespace(updates=0)
    leashed.recipe = SimpleNamespace(leash=SimpleNamespace(reference="start"))
    leashed.check_judged(Judged(LOGP, LOGP, LOGP, torch.tensor([0.0, fine])), LOGP, None)
    with pytest.raises(GuardError, match="before any update"):
        leashed.check_judged(Judged(LOGP, LOGP, LOGP, torch.tensor([0.0, 10 * fine])), LOGP, None)


def test_a_policy_that_drops_out_is_caught_before_its_first_update():
    policy = nn.Sequential(nn.Dropout(0.5), nn.Linear(64, 4))
    reference = Reference(policy)
    inputs = torch.ones(3, 64)
    dropped, whole = policy(inputs).log_softmax(-1)[:, 0], reference.policy(inputs)
    with pytest.raises(GuardError, match="same mode"):
        guard.zero_kl_at_start(dropped, whole.log_softmax(-1)[:, 0], None, reference="start")


def test_sampled_log_probabilities_are_the_recomputed_ones():
    guard.sampled_as_recomputed(LOGP, LOGP + 5e-5)
    guard.sampled_as_recomputed(LOGP, LOGP + 0.01, tolerance=0.02)
    with pytest.raises(GuardError, match=r"differs by 0\.01 nats"):
        guard.sampled_as_recomputed(LOGP, LOGP + torch.tensor([0.0, 0.01]))
    with pytest.raises(GuardError, match="2 choices were sampled and 1 judged"):
        guard.sampled_as_recomputed(LOGP, LOGP[:1])


def test_weights_that_fit_are_loaded():
    model, tensors = TwoLayers(), {"first": torch.ones(2), "second": torch.ones(2)}
    guard.load_strictly(model, tensors)
    assert model.first.tolist() == [1, 1]


def test_renamed_tensors_are_not_dropped_silently():
    model = TwoLayers()
    renamed = {"first": torch.ones(2), "head.second": torch.ones(2)}
    with pytest.raises(CheckpointError) as caught:
        guard.load_strictly(model, renamed, source="epoch-2")
    assert str(caught.value) == (
        "epoch-2 do not fit a model of 4 values: tensors 1 missing (2 values: second), 1 unexpected"
        " (2 values: head.second); load a checkpoint of this very model, or rename its tensors"
    )
    assert model.first.tolist() == [1, 2]


def test_tensors_of_another_shape_are_named():
    with pytest.raises(CheckpointError, match=r"1 of another shape \(2 values: second\)"):
        guard.load_strictly(TwoLayers(), {"first": torch.ones(2), "second": torch.ones(3)})


def test_many_names_are_cut_short():
    assert guard.listed(list("abcdef")) == "a, b, c, d and 2 more"
    assert guard.listed(list("abcd")) == "a, b, c, d"


def test_the_weights_evaluated_are_the_weights_trained():
    policy = TablePolicy(2, 1)
    trained = fingerprint(policy.state_dict())
    guard.same_weights(trained, fingerprint(policy.state_dict()))
    with torch.no_grad():
        policy.logits[0, 0] = 1e-7
    with pytest.raises(CheckpointError, match="are not those that were trained"):
        guard.same_weights(trained, fingerprint(policy.state_dict()))


def test_every_trainable_tensor_changes_the_output_even_beside_one_of_zeros():
    model = TwoLayers()
    before = guard.snapshot(model)
    guard.every_tensor_matters(model, model)
    assert guard.snapshot(model) == before


def test_a_trainable_tensor_that_does_nothing_is_named_and_nothing_is_left_disturbed():
    model = TwoLayers(uses_second=False)
    before = guard.snapshot(model)
    with pytest.raises(GuardError, match=r"1 of 2 trainable tensors .* \(second\)"):
        guard.every_tensor_matters(model, model)
    assert guard.snapshot(model) == before
    model.second.requires_grad_(False)
    guard.every_tensor_matters(model, model)


def test_a_large_tensor_is_disturbed_everywhere_by_few_draws(monkeypatch):
    drawn = []
    randn = torch.randn

    def counted(shape, **given):
        drawn.append(torch.Size([shape] if isinstance(shape, int) else shape).numel())
        return randn(shape, **given)

    monkeypatch.setattr(torch, "randn", counted)
    model = nn.Module()
    model.table = nn.Parameter(torch.zeros(5000, 1024))
    model.matrix = nn.Parameter(torch.ones(700, 300))
    model.small = nn.Parameter(torch.ones(3))
    model.unused = nn.Parameter(torch.ones(70_000))
    last = lambda: torch.cat([model.table[-1, -2:], model.matrix[-1, -2:], model.small])  # noqa: E731
    with pytest.raises(GuardError, match=r"1 of 4 trainable tensors .* \(unused\)"):
        guard.every_tensor_matters(model, last)
    assert max(drawn) <= 65_521
    assert sum(drawn) <= 2 * (3 * 65_521 + 3)
    assert not model.table.any() and (model.matrix == 1).all()
    guard.disturb(model.table.data, "table")
    rows = model.table.data[:300]
    assert model.table.data.all() and len(rows.unique(dim=0)) == len(rows)
    assert model.table.data.std().item() == pytest.approx(0.1, rel=0.01)


def test_the_optimiser_holds_exactly_what_trains():
    model = TwoLayers()
    guard.optimiser_complete(torch.optim.SGD(model.parameters()), model)
    with pytest.raises(GuardError, match=r"misses 1 trainable tensors \(second\)"):
        guard.optimiser_complete(torch.optim.SGD([model.first]), model)
    stranger = nn.Parameter(torch.ones(1))
    with pytest.raises(GuardError, match="and 1 that are not the model's"):
        guard.optimiser_complete(torch.optim.SGD([*model.parameters(), stranger]), model)
    both = torch.optim.SGD(model.parameters())
    model.second.requires_grad_(False)
    with pytest.raises(GuardError, match=r"holds 1 frozen ones \(second\)"):
        guard.optimiser_complete(both, model)


def test_trained_tensors_move_and_frozen_ones_do_not():
    model = TwoLayers()
    model.second.requires_grad_(False)
    before = guard.snapshot(model)
    with pytest.raises(GuardError, match=r"1 of 1 trained tensors did not move \(first\)"):
        guard.moved_as_meant(before, model)
    with torch.no_grad():
        model.first.add_(1)
    guard.moved_as_meant(before, model)
    with torch.no_grad():
        model.second.add_(1)
    with pytest.raises(GuardError, match=r"1 frozen tensors moved \(second\)"):
        guard.moved_as_meant(before, model)


def test_what_an_update_is_too_small_to_show_in_may_stand_still():
    model = TwoLayers()
    with torch.no_grad():
        model.first.fill_(1.0)
        model.second.fill_(1.0)
    before = guard.snapshot(model)
    guard.moved_as_meant(before, model, rate=1e-9)  # 1 + 1e-9 is 1 in float32
    with pytest.raises(GuardError, match="2 of 2 trained tensors did not move"):
        guard.moved_as_meant(before, model, rate=1e-5)
    with torch.no_grad():
        model.first[0] = 0.0  # here 1e-9 would be seen
    with pytest.raises(GuardError, match=r"1 of 2 trained tensors did not move \(first\)"):
        guard.moved_as_meant(guard.snapshot(model), model, rate=1e-9)


def test_a_reference_that_moves_unasked_is_caught():
    policy = TablePolicy(2, 1)
    reference = Reference(policy)
    guard.reference_held(reference.declared, reference.fingerprint())
    with torch.no_grad():
        reference.module.logits.add_(1)
    with pytest.raises(GuardError, match="without a declared reset"):
        guard.reference_held(reference.declared, reference.fingerprint())
    guard.reference_held(None, reference.fingerprint())


def test_groups_with_signal_are_counted():
    reward = torch.tensor([1.0, 1.0, 0.0, 1.0, 0.1, 0.1, 0.1])
    group = torch.tensor([0, 0, 1, 1, 4, 4, 4])
    assert guard.share_with_signal(reward, group) == pytest.approx(1 / 3)
    assert guard.enough_signal(1 / 3, 3) is None


def test_a_run_with_little_or_no_signal_says_so():
    few = guard.enough_signal(5 / 800, 800)
    none = guard.enough_signal(0.0, 800, least=0.0)
    assert few is not None and none is not None
    assert few.code == "little-signal"
    assert few.message.startswith("5 of 800 groups have any signal (0.6%")
    assert none.code == "no-signal"


def test_a_loss_near_that_of_a_blind_choice_is_marked():
    assert guard.uniform_loss(64, 2) == pytest.approx(8.302, abs=1e-3)
    found = guard.loss_beside_uniform(8.00, 64, 2)
    assert found is not None and "loss 8.00 beside 8.30" in found.message
    assert guard.loss_beside_uniform(7.0, 64, 2) is None
    assert guard.loss_beside_uniform(0.0, 1, 1) is not None


def test_a_pool_must_be_made_as_in_training_and_hold_enough():
    assert guard.pool_fits(64, 4, made_by="mixed", trained_with="mixed") is None
    with pytest.raises(GuardError, match="a pool of 3 cannot fill 4 shots"):
        guard.pool_fits(3, 4, made_by="mixed", trained_with="mixed")
    with pytest.raises(GuardError, match="made by 'random', in training by 'mixed'"):
        guard.pool_fits(64, 4, made_by="random", trained_with="mixed")
    found = guard.pool_fits(2, 2, made_by="mixed", trained_with="mixed")
    assert found is not None and found.code == "no-choice"


def test_the_coefficient_applied_is_the_one_asked_for():
    guard.leash_as_asked(0.15 * 0.4, 0.15, 0.4, where="loss")
    guard.leash_as_asked(0.0, 0.0, 3.0, where="loss")
    with pytest.raises(GuardError, match=r"changed the advantage by 0\.04"):
        guard.leash_as_asked(0.04, 0.15, 0.4, where="advantage")
    with pytest.raises(GuardError):
        guard.leash_as_asked(math.nan, 0.15, 0.4, where="loss")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("form", list(kl.FORMS))
def test_every_form_applies_the_coefficient_that_is_asked_for(form, dtype):
    rng = torch.Generator().manual_seed(0)
    logp, logp_old, logp_ref = -torch.rand(3, 12, generator=rng, dtype=dtype)
    episode, group = torch.arange(4).repeat_interleave(3), torch.tensor([0, 0, 1, 1])
    reward = torch.rand(4, generator=rng, dtype=dtype)
    held = {"form": form, "coefficient": 0.15}

    leashed = grpo.leash_reward(reward, logp_old, logp_ref, episode, **held)
    summed = kl.measure(episode, logp=logp_old, logp_ref=logp_ref)["kl/ref/k1_seq/episode/mean"]
    in_reward = summed if form == "reward_k1" else 0.0
    change = (reward - leashed).mean().item()
    guard.leash_as_asked(change, 0.15, in_reward, where="reward")

    before = grpo.Choices(
        logp=logp,
        logp_old=logp_old,
        logp_ref=logp_ref,
        advantage=grpo.leave_one_out(leashed, group)[episode],
        weight=grpo.by_choice(episode, group).to(dtype),
        episode=episode,
        exact_kl=torch.rand(12, generator=rng, dtype=dtype),
    )
    after = grpo.leash_advantage(before, **held)
    change = (before.weight @ (before.advantage - after.advantage)).item()
    value = (before.weight @ grpo.leash_value(before, form)).item()
    guard.leash_as_asked(change, 0.15, value, where="advantage")

    loss = grpo.grpo_loss(after, grpo.Clip(), **held)
    free = grpo.grpo_loss(after, grpo.Clip(), form="none", coefficient=0.0)
    change = loss.metrics["loss"] - free.metrics["loss"]
    guard.leash_as_asked(change, 0.15, loss.metrics["leash/value"], where="loss")


def test_a_coefficient_that_is_not_in_units_of_reward_is_marked():
    assert guard.coefficient_unit("leave_one_out", "return_to_go", scaled=False) is None
    found = guard.coefficient_unit("standardise", "k3", scaled=False)
    assert found is not None
    assert found.message.startswith("coefficient not in reward units")


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_stops_the_run_with_the_batch_kept(bad):
    kept = []
    guard.finite([("loss", 1.0), ("logp", LOGP)], lambda: kept.append("batch"))
    assert kept == []

    def save() -> str:
        kept.append("batch")
        return "batch-7.safetensors"

    with pytest.raises(GuardError, match=r"1 of 2 values of logp .* \(batch-7.safetensors\)"):
        guard.finite([("loss", 1.0), ("logp", torch.tensor([0.0, bad]))], save)
    assert kept == ["batch"]


def test_too_many_broken_episodes_void_the_cell():
    assert guard.few_broken(2, 100) is None
    found = guard.few_broken(3, 100)
    assert found is not None
    assert (found.code, found.severity) == ("broken", "void")
    assert "3 of 100 broke (3.0%, at most 2%)" in found.message
    with pytest.raises(GuardError, match="nothing was measured"):
        guard.few_broken(0, 0)
