"""TRL's own loss, run on the same tensors, gives the same numbers. Skipped where TRL is absent."""

from __future__ import annotations

import warnings
from collections import defaultdict
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor

from kleash.algo.grpo import WEIGHTS, Choices, Clip, grpo_loss

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("trl")
    from trl import GRPOTrainer

CLIP = Clip(0.2, 0.28)
BETA = 0.3
LENGTHS = torch.tensor([5, 2, 4, 1])


def tensors() -> dict[str, Tensor]:
    """Four completions of up to five tokens, padded as TRL pads them; some ratios are clipped."""
    rng = torch.Generator().manual_seed(0)
    drawn = -torch.rand(3, 4, 5, generator=rng, dtype=torch.float64) * 2
    return {
        "logp": drawn[0],
        "logp_old": drawn[0] + 0.5 * (drawn[1] + 1),
        "logp_ref": drawn[2],
        "advantage": torch.tensor([1.0, -0.5, 0.25, -0.75], dtype=torch.float64),
        "mask": (torch.arange(5) < LENGTHS[:, None]).long(),
    }


def theirs(loss_type: str, *, corrected: bool) -> tuple[Tensor, Tensor, float, float]:
    """(loss, its gradient at every token, KL, share clipped) from the trainer's own method."""
    given = tensors()
    logp = given["logp"].clone().requires_grad_()
    metrics: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    trainer = SimpleNamespace(
        _get_per_token_logps_and_entropies=lambda *a, **k: (logp, torch.zeros_like(logp), None),
        _metrics=metrics,
        _entropy_bonus_enabled=False,
        accelerator=SimpleNamespace(
            num_processes=1, reduce=lambda x, reduction: x, gather=lambda x: x
        ),
        args=SimpleNamespace(use_bias_correction_kl=corrected, delta=None, steps_per_generation=1),
        aux_loss_enabled=False,
        beta=BETA,
        current_gradient_accumulation_steps=1,
        epsilon_high=CLIP.high,
        epsilon_low=CLIP.low,
        importance_sampling_level="token",
        loss_type=loss_type,
        max_completion_length=5,
        model=SimpleNamespace(training=True),
        off_policy_mask_threshold=None,
        top_entropy_quantile=1.0,
        use_vllm=False,
    )
    inputs = {
        "prompt_ids": torch.zeros(4, 1, dtype=torch.long),
        "prompt_mask": torch.ones(4, 1, dtype=torch.long),
        "completion_ids": torch.zeros(4, 5, dtype=torch.long),
        "completion_mask": given["mask"],
        "advantages": given["advantage"],
        "old_per_token_logps": given["logp_old"],
        "ref_per_token_logps": given["logp_ref"],
        "num_items_in_batch": given["mask"].sum(),
    }
    loss = GRPOTrainer._compute_loss(trainer, None, inputs)
    gradient = torch.autograd.grad(loss, logp)[0]
    kept = metrics["train"]
    return loss, gradient, kept["kl"][0], kept["clip_ratio/region_mean"][0]


def ours(weight: Tensor, form: str) -> tuple[Tensor, Tensor, dict[str, float]]:
    """(loss, its gradient at every token, metrics) on the same tensors, flat."""
    given = tensors()
    mask = given["mask"].bool()
    logp = given["logp"].clone().requires_grad_()
    episode = torch.arange(4).repeat_interleave(LENGTHS)
    choices = Choices(
        logp=logp[mask],
        logp_old=given["logp_old"][mask],
        logp_ref=given["logp_ref"][mask],
        advantage=given["advantage"][episode],
        weight=weight,
        episode=episode,
    )
    loss = grpo_loss(choices, CLIP, form=form, coefficient=BETA)
    return loss.total, torch.autograd.grad(loss.total, logp)[0], loss.metrics


@pytest.mark.parametrize(("form", "corrected"), [("k3", False), ("k3_ratio", True)])
@pytest.mark.parametrize(
    ("loss_type", "weighting"),
    [("grpo", "by_episode"), ("bnpo", "by_choice"), ("dapo", "by_choice"), ("dr_grpo", "")],
)
def test_loss_and_gradient_are_those_of_trl(form, corrected, loss_type, weighting):
    episode = torch.arange(4).repeat_interleave(LENGTHS)
    group = torch.zeros(4, dtype=torch.long)
    # Dr. GRPO divides by a constant: by_choice, but for a factor that no optimum depends on.
    constant = torch.full((len(episode),), 1 / (4 * 5), dtype=torch.float64)
    weight = WEIGHTS[weighting](episode, group) if weighting else constant
    total, gradient, _ = ours(weight, form)
    their_total, their_gradient, _, _ = theirs(loss_type, corrected=corrected)
    assert total.item() == pytest.approx(their_total.item(), rel=1e-12)
    assert (gradient - their_gradient).abs().max().item() <= 1e-14


@pytest.mark.parametrize(("form", "corrected"), [("k3", False), ("k3_ratio", True)])
def test_kl_and_the_share_clipped_are_those_of_trl(form, corrected):
    episode = torch.arange(4).repeat_interleave(LENGTHS)
    weight = WEIGHTS["by_choice"](episode, torch.zeros(4, dtype=torch.long))
    _, _, metrics = ours(weight, form)
    _, _, kl, clipped = theirs("dapo", corrected=corrected)
    assert 0 < clipped < 1
    assert metrics["leash/value"] == pytest.approx(kl, rel=1e-6)  # TRL counts tokens in float32
    assert metrics["clip_fraction"] == pytest.approx(clipped, rel=1e-6)
