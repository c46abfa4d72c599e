"""Sizes of models without making them, and arithmetic by hand."""

from typing import Any

import pytest
import torch
from transformers import (
    GemmaConfig,
    LlamaConfig,
    MistralConfig,
    Qwen2Config,
    Qwen3Config,
)
from transformers.models.auto.modeling_auto import AutoModelForCausalLM

from kleash.errors import ConfigError
from kleash.models.language.flops import (
    BANDWIDTHS,
    PEAKS,
    Work,
    bandwidth,
    forward,
    headless,
    of_name,
    peak,
    said_at_most,
    update,
)
from kleash.models.language.models import adapted, fresh
from kleash.models.language.shape import QWEN3, Shape

SMALL = {
    "vocab_size": 20,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}


def on_paper(config: Any) -> Any:
    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(config)


def counted(model: Any) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize(
    "config",
    [
        LlamaConfig(**SMALL, tie_word_embeddings=True),
        LlamaConfig(**SMALL, attention_bias=True, mlp_bias=True),
        MistralConfig(**SMALL, head_dim=8),
        Qwen2Config(**SMALL),
        Qwen3Config(**SMALL, head_dim=8, attention_bias=True),
    ],
    ids=lambda config: config.model_type,
)
def test_parameters_are_those_of_the_model(config: Any) -> None:
    assert Shape.of(config).parameters == counted(on_paper(config))


def qwen3_config(shape: Shape) -> Qwen3Config:
    return Qwen3Config(
        vocab_size=shape.vocabulary,
        hidden_size=shape.width,
        intermediate_size=shape.inner,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        head_dim=shape.head,
        tie_word_embeddings=shape.tied,
    )


@pytest.mark.parametrize(
    ("size", "published"),
    [
        ("0.6B", 596_049_920),
        ("1.7B", 1_720_574_976),
        ("4B", 4_022_468_096),
        ("8B", 8_190_735_360),
        ("14B", 14_768_307_200),
        ("32B", 32_762_123_264),
    ],
)
def test_qwen3_has_as_many_parameters_as_its_weights_on_the_hub(size: str, published: int) -> None:
    shape = QWEN3[size]
    assert shape.parameters == published
    config = qwen3_config(shape)
    assert Shape.of(config) == shape
    if size in ("0.6B", "1.7B", "4B", "8B"):  # the larger ones take seconds to be put on paper
        assert counted(on_paper(config)) == published


def test_an_adapter_is_as_large_as_the_one_that_peft_makes() -> None:
    pytest.importorskip("peft")
    model = on_paper(Qwen3Config(**SMALL, head_dim=8)).to_empty(device="cpu")
    shape = Shape.of(model.config)
    made = adapted(model, torch.Generator(), rank=3)
    assert shape.adapter(3) == sum(p.numel() for p in made.parameters() if p.requires_grad)


def test_another_shape_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="no plan for a 'gemma'"):
        Shape.of(GemmaConfig())


TINY = Shape(20, 16, 32, layers=2, heads=4, kv_heads=2, head=4, tied=True)
BODY = 2 * (16 * 16 + 2 * 16 * 8 + 16 * 16 + 3 * 16 * 32)


def test_a_forward_pass_by_hand() -> None:
    assert TINY.body == BODY
    found = forward(TINY, [3, 1], choices=2)
    # Three tokens see 1, 2 and 3, one sees itself: 7 pairs; the usual count has 9 + 1.
    each = 2 * 2 * 2 * 16  # two products, two operations, two layers, four heads of four
    assert found == Work(
        2 * (BODY * 4 + 20 * 16 * 2) + each * 7,
        2 * (BODY + 20 * 16) * 4 + each * 10,
    )


def test_a_pass_without_its_head_by_hand() -> None:
    each = 2 * 2 * 2 * 16
    assert headless(TINY, [3, 1]) == Work(2 * BODY * 4 + each * 7, 2 * BODY * 4 + each * 10)


def test_an_update_is_three_passes_and_less_under_lora() -> None:
    once = forward(TINY, [3, 1], choices=2)
    assert update(TINY, [3, 1], choices=2) == once * 3
    # Attention 3 ×, the frozen products 2 ×, the adapter's own 3 ×.
    each, adapter = 2 * 2 * 2 * 16, TINY.adapter(5)
    causal = 4 * (BODY * 4 + 20 * 16 * 2) + 3 * each * 7 + 6 * adapter * 4
    assert update(TINY, [3, 1], choices=2, rank=5).causal == causal


def test_the_count_is_that_of_torch() -> None:
    """It counts products, and attention as if there were no mask: the usual formula."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode

    model = fresh(20, torch.Generator(), width=16, layers=2, heads=2, inner=32)
    ids = torch.zeros(3, 7, dtype=torch.long)
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        model(ids, use_cache=False)
    assert counter.get_total_flops() == forward(Shape.of(model.config), [7] * 3).usual


def test_the_8b_shape_on_the_lengths_of_the_documents() -> None:
    """4 × 4,096 tokens: the figures that a page quotes."""
    found = update(QWEN3["8B"], [4096] * 4)
    weights = 7_568_097_280  # of layers and head
    assert QWEN3["8B"].body + QWEN3["8B"].table == weights
    attention = 12 * 36 * 32 * 128 * 4096 * 4 * 4096
    assert found.usual == 6 * weights * 16_384 + attention
    assert found.causal == pytest.approx(6 * weights * 16_384 + attention / 2, rel=1e-4)
    assert found.mfu(2.0, 1e15)["usual"] == found.usual / 2e15


def test_what_memory_allows_to_be_said() -> None:
    # 7.57 GB of weights twice, and 576 tokens of 147,456 bytes for each of 64 conversations.
    bytes_read = 2 * 7_568_405_504 + 64 * 576 * 147_456
    assert said_at_most(QWEN3["8B"], 64, 576, 4.3e12) == pytest.approx(64 * 4.3e12 / bytes_read)


def test_a_device_is_known_by_its_name_or_not_at_all() -> None:
    assert peak("cpu") is None and bandwidth("cpu") is None
    assert of_name(PEAKS, "NVIDIA H100 80GB HBM3") == 989e12
    assert of_name(PEAKS, "NVIDIA H100 PCIe") == 756e12
    assert of_name(BANDWIDTHS, "NVIDIA A100-SXM4-40GB") == 1.555e12
    assert of_name(PEAKS, "Another") is None
    assert PEAKS.keys() >= {kind.partition("-")[0] for kind in BANDWIDTHS}
