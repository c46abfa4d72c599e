"""One turn of a language model, judged and trained as TRL does it. Skipped where TRL is absent."""

from __future__ import annotations

import copy
import warnings
from collections import defaultdict
from contextlib import nullcontext
from functools import partial
from types import SimpleNamespace

import pytest
import torch

from kleash.algo.grpo import Choices, Clip, by_choice, grpo_loss
from kleash.algo.policy import frozen
from kleash.models.language.models import fresh
from kleash.models.language.policy import LanguagePolicy
from kleash.seeds import generator, torch_generator
from kleash.types import Turn

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("trl")
    from trl import GRPOTrainer
    from trl.trainer.utils import add_fused_lm_head

SIZE, BETA, CLIP, TEMPERATURE = 13, 0.3, Clip(0.2, 0.28), 0.8
PROMPTS, ANSWERS = (3, 1, 4, 2), (5, 2, 4, 1)
ADVANTAGE = torch.tensor([1.0, -0.5, 0.25, -0.75])


def setting():
    """A policy, a reference that is not it, four answers, and what the policy said of them once."""
    model = fresh(SIZE, torch_generator("trl"), width=16, heads=2, inner=24)
    policy = LanguagePolicy(model, temperature=TEMPERATURE)
    reference = frozen(policy)
    rng = torch_generator("trl", "noise")
    with torch.no_grad():
        for module, size in ((policy, 0.3), (reference, 0.2)):
            for parameter in module.parameters():
                parameter += size * torch.randn(parameter.shape, generator=rng)
    ids = generator("trl", "ids")
    draw = lambda count: tuple(ids.integers(0, SIZE, count).tolist())  # noqa: E731
    turns = [Turn(draw(p), draw(a), ()) for p, a in zip(PROMPTS, ANSWERS, strict=True)]
    old = [torch.rand(len(turn.choices), generator=rng) - 0.5 for turn in turns]
    return policy, reference, turns, old


def ours(form: str):
    """Loss, what was judged, and the gradient of every parameter."""
    policy, reference, turns, shift = setting()
    batch = policy.gather([[turn] for turn in turns])
    judged = policy.judge(batch, reference)
    choices = Choices(
        logp=judged.logp,
        logp_old=judged.logp.detach() + 1.5 * torch.cat(shift),
        logp_ref=judged.logp_ref,
        advantage=ADVANTAGE[batch.episode],
        weight=by_choice(batch.episode, torch.zeros(4, dtype=torch.long)),
        episode=batch.episode,
    )
    loss = grpo_loss(choices, CLIP, form=form, coefficient=BETA)
    loss.total.backward()
    return loss, judged, {name: p.grad for name, p in policy.model.named_parameters()}


def padded(rows, *, left: bool):
    """Rows to one length as TRL has them, and where they are."""
    side = [torch.tensor(row).flip(0) if left else torch.tensor(row) for row in rows]
    filled = torch.nn.utils.rnn.pad_sequence(side, batch_first=True)
    mask = torch.nn.utils.rnn.pad_sequence([torch.ones(len(r)) for r in rows], batch_first=True)
    return (filled.flip(1), mask.flip(1).long()) if left else (filled, mask.long())


def theirs(*, corrected: bool):
    """The same from TRL's trainer: its own passes over the model, its own loss."""
    policy, reference, turns, shift = setting()
    model, other = copy.deepcopy(policy.model), copy.deepcopy(reference.model)
    for each in (model, other):
        add_fused_lm_head(each, temperature=TEMPERATURE, outputs=("log_probs", "entropy"))
    prompt, prompt_mask = padded([turn.observation for turn in turns], left=True)
    answer, answer_mask = padded([turn.choices for turn in turns], left=False)
    trainer = SimpleNamespace(
        _metrics=defaultdict(lambda: defaultdict(list)),
        _entropy_bonus_enabled=False,
        accelerator=SimpleNamespace(
            is_main_process=True,
            num_processes=1,
            reduce=lambda x, reduction: x,
            gather=lambda x: x,
            autocast=nullcontext,
        ),
        args=SimpleNamespace(use_bias_correction_kl=corrected, delta=None, steps_per_generation=1),
        aux_loss_enabled=False,
        beta=BETA,
        current_gradient_accumulation_steps=1,
        epsilon_high=CLIP.high,
        epsilon_low=CLIP.low,
        importance_sampling_level="token",
        loss_type="dapo",
        max_completion_length=5,
        model=SimpleNamespace(training=True),
        off_policy_mask_threshold=None,
        top_entropy_quantile=1.0,
        use_vllm=False,
    )
    logps = partial(GRPOTrainer._get_per_token_logps_and_entropies, trainer)
    trainer._get_per_token_logps_and_entropies = logps
    whole, mask = torch.cat([prompt, answer], 1), torch.cat([prompt_mask, answer_mask], 1)
    with torch.no_grad():
        now, entropy, _ = logps(model, whole, mask, 5, compute_entropy=True)
        tied, _, _ = logps(other, whole, mask, 5)
    moved = torch.nn.utils.rnn.pad_sequence(shift, batch_first=True)
    inputs = {
        "prompt_ids": prompt,
        "prompt_mask": prompt_mask,
        "completion_ids": answer,
        "completion_mask": answer_mask,
        "advantages": ADVANTAGE,
        "old_per_token_logps": now + 1.5 * moved,
        "ref_per_token_logps": tied,
        "num_items_in_batch": answer_mask.sum(),
    }
    loss = GRPOTrainer._compute_loss(trainer, model, inputs)
    loss.backward()
    said = answer_mask.bool()
    judged = {"logp": now[said], "entropy": entropy[said], "logp_ref": tied[said]}
    clipped = trainer._metrics["train"]["clip_ratio/region_mean"][0]
    return loss, judged, {name: p.grad for name, p in model.named_parameters()}, clipped


@pytest.mark.parametrize(("form", "corrected"), [("k3", False), ("k3_ratio", True)])
def test_one_turn_is_judged_and_trained_as_trl_does_it(form, corrected):
    loss, judged, gradient = ours(form)
    their_loss, their_judged, their_gradient, clipped = theirs(corrected=corrected)
    for name, value in their_judged.items():
        torch.testing.assert_close(getattr(judged, name).detach(), value, rtol=1e-4, atol=1e-5)
    assert loss.total.item() == pytest.approx(their_loss.item(), rel=1e-5)
    assert 0 < clipped < 1 and loss.metrics["clip_fraction"] == pytest.approx(clipped, rel=1e-6)
    assert gradient.keys() == their_gradient.keys()
    for name, slope in their_gradient.items():
        assert (gradient[name] - slope).abs().max() <= 1e-4 * slope.abs().max(), name
