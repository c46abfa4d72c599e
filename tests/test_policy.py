"""The contract of a policy at its smallest, fingerprints, and references."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from kleash.algo.policy import (
    Judged,
    Reference,
    fingerprint,
    judge_logits,
    keyed_noise,
    no_noise,
)
from kleash.types import Turn
from table_policy import TablePolicy


def table(seed: int = 0) -> TablePolicy:
    """A policy with drawn logits."""
    rng = torch.Generator().manual_seed(seed)
    return TablePolicy(3, 3, torch.randn(13, 3, generator=rng))


def nudge(policy: nn.Module, size: float = 0.1) -> None:
    """Move every parameter by as much."""
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.add_(size * torch.arange(parameter.numel()).view(parameter.shape))


def test_judged_logits_by_hand():
    logits = torch.tensor([[0.0, 0.0], [3.0, 1.0]])
    judged = judge_logits(logits, torch.tensor([0, 1]), torch.tensor([[1.0, 0.0], [3.0, 1.0]]))
    assert judged.logp.exp().tolist() == pytest.approx([0.5, 1 / (1 + np.e**2)])
    assert judged.entropy[0].item() == pytest.approx(np.log(2))
    assert judged.logp_ref is not None and judged.exact_kl is not None
    assert judged.logp_ref[0].exp().item() == pytest.approx(np.e / (1 + np.e))
    assert judged.exact_kl[1].item() == 0
    assert judge_logits(logits, torch.tensor([0, 1])).logp_ref is None


def test_no_gradient_reaches_the_reference():
    logits = torch.randn(2, 3, generator=torch.Generator().manual_seed(0), requires_grad=True)
    judged = judge_logits(torch.zeros(2, 3, requires_grad=True), torch.tensor([0, 1]), logits)
    assert judged.exact_kl is not None and judged.forward_kl is not None
    (judged.exact_kl + judged.forward_kl).sum().backward()
    assert logits.grad is None


def test_rows_of_a_table_lie_in_order_of_length_then_of_value():
    prefixes = [(), (0,), (1,), (2,), (0, 0), (0, 1), (0, 2), (1, 0), (2, 2)]
    assert [table().row(p) for p in prefixes] == [0, 1, 2, 3, 4, 5, 6, 7, 12]


def test_what_was_reported_when_acting_is_what_is_judged():
    policy = table()
    keys = [(0, f"task-{i}", 0) for i in range(20)]
    turns = policy.act(range(20), keyed_noise(keys))
    judged = policy.judge(policy.gather(turns))
    assert judged.logp.tolist() == [logp for turn in turns for logp in turn.logp]


def test_draws_are_those_of_the_key_whatever_else_is_asked():
    policy = table()
    keys = [(0, f"task-{i}", 0) for i in range(20)]
    together = policy.act(range(20), keyed_noise(keys))
    alone = policy.act([7], keyed_noise(keys[7:8]))
    assert alone == together[7:8]
    other = policy.act(
        [7],
        keyed_noise([(1, "task-7", 0)]),
    ) + policy.act([7], keyed_noise(keys[7:8], first=3))
    assert any(turn.choices != together[7].choices for turn in other)


def test_without_noise_the_likeliest_is_chosen():
    policy = TablePolicy(2, 2, torch.tensor([[0.0, 1.0], [0.0, 0.0], [2.0, 0.0]]))
    (turn,) = policy.act(["x"], no_noise)
    assert (turn.observation, turn.choices) == ("x", (1, 0))


def test_draws_have_the_frequencies_of_the_policy():
    policy = TablePolicy(3, 1, torch.tensor([[0.0, 1.0, -1.0]]))
    count = 4000
    turns = policy.act(range(count), keyed_noise([(0, i) for i in range(count)]))
    seen = np.bincount([turn.choices[0] for turn in turns], minlength=3) / count
    truth = policy.logits.softmax(-1)[0].tolist()
    # Four standard deviations of a share over 4,000 draws are at most 0.032.
    assert seen.tolist() == pytest.approx(truth, abs=0.032)


def test_a_fingerprint_knows_name_type_shape_and_value_but_not_order():
    tensors = {"a": torch.tensor([1.0, 2.0]), "b": torch.tensor(3)}
    prints = {
        fingerprint(tensors),
        fingerprint({"a": torch.tensor([1.0, 2.0]), "c": torch.tensor(3)}),
        fingerprint(tensors | {"a": torch.tensor([1.0, 2.0], dtype=torch.float64)}),
        fingerprint(tensors | {"a": torch.tensor([[1.0], [2.0]])}),
        fingerprint(tensors | {"a": torch.tensor([1.0, 2.0000002])}),
        fingerprint(tensors | {"a": torch.tensor([1.0, 2.0], dtype=torch.bfloat16)}),
    }
    assert len(prints) == 6
    turned = {"b": torch.tensor(3), "a": torch.tensor([[1.0, 9.0], [2.0, 9.0]])[:, 0]}
    assert fingerprint(turned) == fingerprint(tensors)


def test_a_reference_to_the_start_stays_where_it_was():
    policy = table()
    reference = Reference(policy)
    start = reference.declared
    nudge(policy)
    assert reference.after_update(policy, 1) is False
    assert reference.fingerprint() == start != fingerprint(policy.state_dict())
    assert not any(p.requires_grad for p in reference.module.parameters())
    assert not reference.module.training


def test_a_reference_that_is_reset_becomes_the_policy_when_due_and_says_so():
    policy = table()
    reference = Reference(policy, "reset_every", every=2)
    resets = []
    for step in (1, 2, 3, 4):
        nudge(policy)
        resets.append(reference.after_update(policy, step))
    assert resets == [False, True, False, True]
    assert reference.declared == reference.fingerprint() == fingerprint(policy.state_dict())


def test_an_average_follows_the_policy_by_hand():
    policy = TablePolicy(2, 1, torch.tensor([[0.0, 8.0]]))
    reference = Reference(policy, "ema", decay=0.75)
    with torch.no_grad():
        policy.logits.copy_(torch.tensor([[4.0, 0.0]]))
    assert reference.after_update(policy, 1) is False
    assert reference.policy.logits.tolist() == [[1.0, 6.0]]
    assert reference.declared is None


@pytest.mark.parametrize("kind", ["start", "ema", "reset_every", "path"])
def test_a_reference_stopped_and_resumed_is_the_same_to_the_bit(kind):
    policy = table()
    reference = Reference(policy, kind, every=3)
    for step in (1, 2, 3, 4):
        nudge(policy)
        reference.after_update(policy, step)
    kept = {name: tensor.clone() for name, tensor in reference.state_dict().items()}
    resumed = Reference(policy, kind, every=3)
    resumed.load_state_dict(kept)
    for step in (5, 6, 7):
        nudge(policy, 0.3)
        reference.after_update(policy, step)
        resumed.after_update(policy, step)
    assert resumed.fingerprint() == reference.fingerprint()
    assert resumed.declared == reference.declared


class Adapted(nn.Module):
    """Frozen logits and a trained shift that can be turned off."""

    def __init__(self) -> None:
        super().__init__()
        self.frozen = nn.Parameter(torch.tensor([0.0, 1.0]), requires_grad=False)
        self.shift = nn.Parameter(torch.tensor([0.0, 0.0]))
        self.register_buffer("updates", torch.tensor(0))
        self.adapted = True

    @contextmanager
    def adapter_off(self):
        self.adapted = False
        try:
            yield
        finally:
            self.adapted = True

    def scores(self) -> Tensor:
        return (self.frozen + (self.shift if self.adapted else 0.0))[None]

    def judge(self, chosen: Tensor, reference: Adapted | None) -> Judged:
        return judge_logits(
            self.scores(), chosen, None if reference is None else reference.scores()
        )


def test_the_reference_without_adapter_is_the_policy_itself_with_the_adapter_off():
    policy = Adapted()
    reference = Reference(policy, "adapter_off")
    before = policy.judge(torch.tensor([0]), reference.policy)
    assert before.exact_kl is not None and before.exact_kl.item() == 0
    with torch.no_grad():
        policy.shift.add_(torch.tensor([2.0, 0.0]))
    after = policy.judge(torch.tensor([0]), reference.policy)
    assert after.exact_kl is not None and after.exact_kl.item() > 0.1
    assert after.logp_ref is not None and after.logp_ref.equal(before.logp_ref)
    assert after.logp.requires_grad and policy.adapted
    assert reference.fingerprint() == reference.declared
    assert reference.state_dict() == {}
    reference.load_state_dict({})
    assert reference.policy.adapted is True
    with torch.no_grad():
        policy.frozen.add_(1)
    assert reference.fingerprint() != reference.declared


def test_an_average_copies_what_is_no_fraction():
    policy = Adapted()
    reference = Reference(policy, "ema", decay=0.5)
    policy.updates.fill_(3)
    reference.after_update(policy, 1)
    assert reference.module.updates.item() == 3


def test_a_turn_of_any_length_is_gathered():
    rows, chosen = table().gather([Turn(None, (2, 1), ()), Turn(None, (0,), ())])
    assert (rows.tolist(), chosen.tolist()) == ([0, 3, 0], [2, 1, 0])
