"""How fast prompts are answered by models of real size, beside one prompt at a time.

Weights are drawn, so answers mean nothing; sizes, pictures and prompts are as in real use. On a
CPU, where a model of real size is no use, tiny ones of the same classes are measured.
"""

from __future__ import annotations

import platform
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kleash.seeds import generator
from kleash.types import Item, Prompt

if TYPE_CHECKING:
    import torch

    from kleash.models.answer.local import Local

QUERIES, POINTERS, SHOTS = 16, 12, 2
DEMONSTRATIONS = 180
"""As many for 16 queries as OK-VQA's 9,009 are for 800, so that images come again as often."""
WHOLE = 800 * 12  # prompts of a round of proposals
SIZE = (480, 640)
WORDS = ("man", "bicycle", "market", "dogs", "umbrellas", "old", "red", "two", "under", "beside")
SPECIAL = ("<|endoftext|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|image_pad|>")
PLAIN = 6  # prompts of the plain way
LOGP_GAP = 0.5  # nats between the two ways in bfloat16; with drawn weights a byte has about 12

TEXT_3B: dict[str, Any] = {
    "vocab_size": 151_936,
    "hidden_size": 2048,
    "intermediate_size": 11_008,
    "num_hidden_layers": 36,
    "num_attention_heads": 16,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128_000,
    "rms_norm_eps": 1e-6,
    "rope_parameters": {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [16, 24, 24]},
    "tie_word_embeddings": True,
}
EYES_3B: dict[str, Any] = {
    "depth": 32,
    "hidden_size": 1280,
    "intermediate_size": 3420,
    "num_heads": 16,
    "patch_size": 14,
    "spatial_merge_size": 2,
    "window_size": 112,
    "out_hidden_size": 2048,
    "fullatt_block_indexes": [7, 15, 23, 31],
}
TINY_TEXT: dict[str, Any] = {
    "vocab_size": 400,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "rope_parameters": {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [1, 1, 2]},
}
TINY_EYES: dict[str, Any] = {
    "depth": 2,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_heads": 2,
    "window_size": 56,
    "out_hidden_size": 32,
    "fullatt_block_indexes": [1],
}
SMOLLM2: dict[str, Any] = {
    "vocab_size": 49_152,
    "hidden_size": 576,
    "intermediate_size": 1536,
    "num_hidden_layers": 30,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "max_position_embeddings": 8192,
    "rope_parameters": {"rope_type": "default", "rope_theta": 1e5},
    "tie_word_embeddings": True,
}


def bytes_tokenizer() -> Any:
    """A token for each byte: prompts are somewhat longer than a learnt vocabulary makes them."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    made = Tokenizer(models.BPE({letter: n for n, letter in enumerate(alphabet)}, []))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<|im_end|>")
    tokenizer.add_special_tokens({"additional_special_tokens": [*SPECIAL]})
    return tokenizer


def drawn_eyed(tokenizer: Any, device: str) -> Any:
    """A Qwen2.5-VL with drawn weights: the 3B's shape in bfloat16, or a tiny one on a CPU."""
    import torch
    from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration

    large = device != "cpu"
    number = tokenizer.convert_tokens_to_ids
    config = Qwen2_5_VLConfig(
        text_config=TEXT_3B if large else TEXT_3B | TINY_TEXT,
        vision_config=EYES_3B if large else EYES_3B | TINY_EYES,
        image_token_id=number("<|image_pad|>"),
        vision_start_token_id=number("<|vision_start|>"),
        vision_end_token_id=number("<|vision_end|>"),
        tie_word_embeddings=True,
    )
    dtype = torch.bfloat16 if large else torch.float32
    with torch.random.fork_rng(), torch.device(device):
        model: Any = Qwen2_5_VLForConditionalGeneration._from_config(config, dtype=dtype)
    model.generation_config.eos_token_id = number("<|im_end|>")
    model.generation_config.pad_token_id = number("<|endoftext|>")
    return model.eval()


def made_items(count: int, what: str, *, caption: int = 0) -> list[Item]:
    """Items about pictures of their own; a caption of so many letters, if any."""
    rng = generator("bench", "items", what)
    made = []
    for number in range(count):
        said = " ".join(rng.choice(WORDS, size=8))
        shown = " ".join(rng.choice(WORDS, size=max(1, caption // 4)))[:caption]
        answer = str(rng.choice(WORDS))
        name = f"{what}-{number}"
        made.append(Item(name, name, f"What is {said}?", (answer,), answer, caption=shown))
    return made


def proposals(queries: int, pointers: int, demonstrations: Sequence[Item]) -> list[Prompt]:
    """Random pointers for every query, as a round of proposals has them."""
    rng = generator("bench", "pointers")
    return [
        Prompt(
            tuple(demonstrations[n] for n in rng.permutation(len(demonstrations))[:SHOTS]), query
        )
        for query in made_items(queries, "query")
        for _ in range(pointers)
    ]


def picture(name: str) -> NDArray[np.uint8]:
    """Noise in the size of a photograph."""
    rng = generator("bench", "picture", name)
    return rng.integers(0, 256, (*SIZE, 3), dtype=np.uint8)


class Plain:
    """One prompt at a time, as scripts do it: everything looked at and read anew, twice."""

    def __init__(self, local: Local, pictures: Any) -> None:
        self.local, self.pictures = local, pictures

    def __call__(self, prompt: Prompt) -> tuple[str, float]:
        """What `generate` says with three beams, and the truth in a second pass."""
        import torch

        local = self.local
        assert local.eyes is not None
        (row,) = local.rows([prompt])
        assert not isinstance(row, Exception)
        shown = [picture(item.image) for item in (*prompt.demonstrations, prompt.query)]
        inputs = self.pictures(images=shown, return_tensors="pt").to(local.device)
        said = self.given(row.ids, inputs)
        with torch.inference_mode():
            out = local.model.generate(
                **said, num_beams=local.decoding.beams, max_new_tokens=local.decoding.tokens
            )
            whole = self.given(torch.cat([row.ids, torch.tensor(row.truth)]), inputs)
            logits = local.model(**whole).logits[0, -len(row.truth) - 1 : -1]
        truth = torch.tensor(row.truth, device=local.device)
        logp = logits.float().log_softmax(-1).gather(1, truth[:, None]).sum().item()
        text = local.preset.cut(local.speller.text(out[0, len(row.ids) :].tolist()))
        return text, logp

    def given(self, ids: torch.Tensor, inputs: Any) -> dict[str, Any]:
        """What the model is called with."""
        import torch

        assert self.local.eyes is not None
        ids = ids[None].to(self.local.device)
        return {
            "input_ids": ids,
            "attention_mask": torch.ones_like(ids),
            "mm_token_type_ids": (ids == self.local.eyes.token).int(),
            **inputs,
        }


def seconds(work: Callable[[], Any], device: str) -> tuple[float, Any]:
    """Wall time of some work, all of it finished."""
    import torch

    def settle() -> None:
        if device != "cpu":
            torch.cuda.synchronize()

    settle()
    began = time.monotonic()
    made = work()
    settle()
    return time.monotonic() - began, made


def vlm_bench(
    device: str = "cpu", *, queries: int = QUERIES, pointers: int = POINTERS, plain: int = PLAIN
) -> dict[str, Any]:
    """Seconds per prompt of a vision-language model, and how often an image was known."""
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

    from kleash.models.answer.decoding import Decoding
    from kleash.models.answer.local import Local, Parts
    from kleash.models.answer.prompting import preset_of

    tokenizer = bytes_tokenizer()
    pictures = Qwen2VLImageProcessorPil(size={"shortest_edge": 3136, "longest_edge": 12_845_056})
    if device == "cpu":
        pictures = Qwen2VLImageProcessorPil(size={"shortest_edge": 784, "longest_edge": 15_680})
    parts = Parts(drawn_eyed(tokenizer, device), tokenizer, pictures)
    local = Local(parts, picture, preset_of("documents"), Decoding(3, 5), 0, 8_000_000_000)
    assert local.eyes is not None
    prompts = proposals(queries, pointers, made_items(DEMONSTRATIONS * queries // QUERIES, "shown"))
    one = Plain(local, pictures)
    spread = prompts[:: max(1, len(prompts) // plain)][:plain]
    warm = proposals(2, pointers, made_items(30, "warm"))
    local.answer(warm)
    one(warm[0])
    local.eyes.uses = local.eyes.looks = 0
    spent, answers = seconds(lambda: local.answer(prompts), device)
    uses, looks = local.eyes.uses, local.eyes.looks
    again, _ = seconds(lambda: local.answer(prompts), device)
    said = dict(zip(prompts, answers, strict=True))
    plain_times, gaps, same = [], [], 0
    for prompt in spread:
        took, (text, logp) = seconds(partial(one, prompt), device)
        plain_times.append(took)
        gaps.append(abs(said[prompt].truth_logp - logp))
        same += said[prompt].text == text
    if max(gaps) > LOGP_GAP:
        raise RuntimeError(f"both ways must agree: log-probabilities differ by {max(gaps):.3g}")
    each, plainly = spent / len(prompts), statistics.median(plain_times)
    return machine(device) | {
        "prompts": len(prompts),
        "tokens per prompt": statistics.mean(len(r.ids) for r in local.rows(prompts[:8])),  # type: ignore[union-attr]
        "seconds per prompt": each,
        "seconds per prompt, one at a time": plainly,
        "times the plain way": plainly / each,
        "seconds per prompt, all images known": again / len(prompts),
        "image uses": uses,
        "share of image uses that were known": 1 - looks / uses,
        f"minutes for {WHOLE:,} proposals": WHOLE * each / 60,
        "log-probability of the truth, largest gap between the ways (nats)": max(gaps),
        "same words": f"{same} of {len(spread)}",
    }


def captions_bench(device: str = "cpu", *, prompts: int = 4096) -> dict[str, Any]:
    """Prompts per second of a small language model that reads captions."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    from kleash.models.answer.decoding import Decoding
    from kleash.models.answer.local import Local, Parts
    from kleash.models.answer.prompting import preset_of

    tiny = TINY_TEXT | {"rope_parameters": SMOLLM2["rope_parameters"], "num_key_value_heads": 2}
    large = device != "cpu"
    config = LlamaConfig(**SMOLLM2 if large else SMOLLM2 | tiny)
    with torch.random.fork_rng(), torch.device(device):
        model: Any = LlamaForCausalLM._from_config(
            config, dtype=torch.bfloat16 if large else torch.float32
        )
    parts = Parts(model, bytes_tokenizer())
    local = Local(parts, picture, preset_of("captions"), Decoding(1, 5), 0, 0)
    items = made_items(300, "shown", caption=24)
    rng = generator("bench", "captions")
    asked = [
        Prompt(tuple(items[n] for n in drawn[1:]), items[drawn[0]])
        for drawn in (rng.permutation(len(items))[: 1 + SHOTS] for _ in range(prompts))
    ]
    local.answer(asked[: prompts // 8])
    spent, _ = seconds(lambda: local.answer(asked), device)
    reading, rows = seconds(lambda: local.rows(asked), "cpu")
    return machine(device) | {
        "prompts": prompts,
        "tokens per prompt": statistics.mean(len(row.ids) for row in rows),
        "prompts per second": prompts / spent,
        "share of the time that text to ids takes": reading / spent,
    }


def machine(device: str) -> dict[str, Any]:
    """Where and with what."""
    import torch
    import transformers

    name = torch.cuda.get_device_name(device) if device != "cpu" else platform.machine()
    versions = f"torch {torch.__version__}, transformers {transformers.__version__}"
    shape = "real size, bfloat16" if device != "cpu" else "tiny, float32"
    return {"device": name, "versions": versions, "shape": shape}
