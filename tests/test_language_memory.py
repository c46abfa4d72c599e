"""The plan of memory against what tensors take: on a CPU, and where a GPU was measured."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from kleash.algo.policy import frozen
from kleash.errors import ConfigError, DataError
from kleash.models.language.memory import (
    CARDS,
    WAYS,
    Training,
    activations,
    fit,
    fitting,
    plan,
    shape_at,
    weight_bytes,
)
from kleash.models.language.models import fresh
from kleash.models.language.policy import LanguagePolicy
from kleash.models.language.shape import QWEN3, Shape
from kleash.seeds import torch_generator
from kleash.types import Turn
from memory_tools import peak_bytes, saved_bytes

pytestmark = pytest.mark.usefixtures("one_thread")
GIB = 2**30


def test_an_update_on_a_cpu_takes_what_the_plan_says() -> None:
    """3 % less is planned than is kept for the way back; with the head 2 % more than the peak."""
    policy = LanguagePolicy(
        fresh(300, torch_generator("weights", 0), width=128, layers=4, heads=4, inner=384)
    )
    shape = Shape.of(policy.model.config)
    batch = policy.gather([[Turn((1,), tuple(range(2, 130)), (0.0,) * 128)] for _ in range(4)])
    how = Training(
        weights="float32",
        reference="copy",
        compiled=False,
        tokens=sum(batch.lengths),
        choices=len(batch),
        conversations=0,
    )
    own = {weight.untyped_storage().data_ptr() for weight in policy.parameters()}
    kept = saved_bytes(lambda: policy.hidden(batch), own)
    assert 0.95 * kept < activations(shape, how) <= kept

    adam, reference = torch.optim.AdamW(policy.parameters(), lr=1e-3, fused=True), frozen(policy)

    def back() -> None:
        judged = policy.judge(batch, reference)
        assert judged.exact_kl is not None
        (judged.logp.mean() + judged.exact_kl.mean()).backward()  # type: ignore[no-untyped-call]

    back()
    adam.step()
    part = plan(shape, how).device
    # The gradients of the pack before stand, as with all packs of a batch but the first.
    assert part["activations"] + part["head"] == pytest.approx(peak_bytes(back), rel=0.04)
    # What stands was not counted there; it is exactly what was planned.
    moments = sum(
        value.nbytes
        for state in adam.state.values()
        for name, value in state.items()
        if name != "step"
    )
    assert part["moments"] == moments
    assert part["gradients"] == part["weights"]
    assert part["weights"] == part["reference"] == sum(w.nbytes for w in policy.parameters())


def test_tokens_cost_what_was_measured_on_a_gpu() -> None:
    """8B, compiled, nothing recomputed, no optimiser: 63 GiB with 8,192 tokens, 101 with 16,384."""
    how = Training(conversations=0)
    more, less = (
        activations(QWEN3["8B"], replace(how, tokens=tokens)) / GIB for tokens in (16384, 8192)
    )
    assert more - less == pytest.approx(101 - 63, rel=0.02)


def test_a_plan_by_hand() -> None:
    shape = Shape(100, 8, 16, layers=2, heads=2, kv_heads=1, head=4, tied=False)
    how = Training(tokens=10, choices=4, conversations=3, context=5, recompute=1, chunk=1000)
    part = plan(shape, how).device
    count = shape.parameters
    assert (part["weights"], part["gradients"], part["moments"]) == (
        2 * count,
        4 * count,
        4 * count,
    )
    assert part["keys and values"] == 2 * (2 * 2 * 1 * 4) * 3 * 5
    layer = 2 * (4 * 8 + 3 * 8 + 3 * 4 + 3 * 16)
    assert part["activations"] == 10 * (layer + 2 * 8 + layer)
    assert part["head"] == 32 * 400 + 3 * 2 * 4 * 8 + 6 * 100 * 8
    assert plan(shape, how).host == {"reference": 2 * count}


def test_what_lies_on_the_host_does_not_lie_on_the_device() -> None:
    shape = QWEN3["8B"]
    here, there = (plan(shape, Training(moments=where)) for where in ("device", "host"))
    assert there.host["moments"] == here.device["moments"] == 4 * shape.parameters
    assert there.device["moments"] == 4 * shape.table  # the largest tensor's
    lora = WAYS["LoRA, weights on host"]
    away = plan(shape, replace(lora, recompute=shape.layers))
    assert away.host["weights"] == 2 * shape.body
    kept = 2 * (shape.parameters - shape.body) + 2 * 2 * 4096 * 12288
    assert away.device["weights"] == kept
    half = plan(shape, replace(lora, recompute=shape.layers // 2))
    assert half.device["weights"] == kept + shape.body  # half of the layers, two bytes each


def test_four_bits_are_a_good_quarter() -> None:
    shape = QWEN3["8B"]
    plain, packed = (weight_bytes(shape, kind) for kind in ("bf16", "nf4"))
    assert plain - packed == pytest.approx(shape.body * (2 - 0.51587), rel=1e-5)


def test_the_table_asks_for_as_little_recomputing_as_fits() -> None:
    shape = QWEN3["8B"]
    by_way = {row[0].way: row for row in fitting(shape)}
    assert [each.fits for each in by_way["full"]] == [False, False, False, True]
    assert [each.fits for each in by_way["LoRA"]] == [False, True, True, True]
    assert all(each.fits for each in by_way["LoRA on nf4"])
    tight = fit(shape, "LoRA", CARDS[1])
    assert 0 < tight.recompute < shape.layers and tight.memory.total <= CARDS[1].room
    one_less = plan(shape, replace(WAYS["LoRA"], recompute=tight.recompute - 1))
    assert one_less.total > CARDS[1].room


def test_what_has_no_adapter_cannot_be_frozen() -> None:
    for keys in ({"weights": "nf4"}, {"frozen": "host"}, {"reference": "adapter_off"}):
        with pytest.raises(ConfigError, match="set a rank"):
            Training(**keys)  # type: ignore[arg-type]


def test_a_folder_is_planned_from_its_config_alone(tmp_path: Path) -> None:
    model = fresh(20, torch.Generator(), width=16, layers=2, heads=2, inner=32)
    model.config.save_pretrained(tmp_path)
    assert shape_at(str(tmp_path)) == Shape.of(model.config)
    assert shape_at("8B") is QWEN3["8B"]
    with pytest.raises(DataError, match="no model at nowhere: give 0"):
        shape_at("nowhere")
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama"}))
    with pytest.raises(DataError, match="does not say how large"):
        shape_at(str(tmp_path))


def test_an_adapter_takes_what_was_measured_on_a_gpu():
    """Qwen3-8B's shape, rank 16, packs of 8,192 tokens, compiled: 71.1 GiB on an H200."""
    how = Training(rank=16, reference="adapter_off", choices=4128, conversations=0)
    assert plan(QWEN3["8B"], how).total / 2**30 == pytest.approx(71.1, rel=0.03)
    for shape, measured in (
        ("8B", 132.9),
        ("1.7B", 36.7),
    ):  # all weights, a second copy beside them
        whole = plan(QWEN3[shape], Training(reference="copy", choices=4128, conversations=0))
        assert whole.total / 2**30 == pytest.approx(measured, rel=0.05)
