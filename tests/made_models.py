"""Tiny models of the real config classes, with drawn weights and a tokenizer of our own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from kleash.seeds import generator, torch_generator
from kleash.types import Item, Prompt

WORDS = ("pony", "umbrella", "bathroom sink", "two dogs", "motorcycle", "frisbee", "teddy bear")
SENTENCES = ("What is this?", "Which animal is in the picture?", "What would you use it for?")
SPECIAL = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|image_pad|>",
    "<|video_pad|>",
    "<image>",
    "<fake_token_around_image>",
    "<end_of_utterance>",
    "<global-img>",
    *(f"<row_{row}_col_{column}>" for row in range(1, 5) for column in range(1, 5)),
)
TURNS = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n"
    "{% if message.content is string %}{{ message.content }}{% else %}"
    "{% for part in message.content %}{% if part.type == 'image' %}IMAGE"
    "{% else %}{{ part.text }}{% endif %}{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def made_tokenizer(image: str = "<image>") -> PreTrainedTokenizerFast:
    """Byte-level BPE with a few merges, learnt from the words of these tests."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=360, initial_alphabet=alphabet, special_tokens=[*SPECIAL], show_progress=False
    )
    made.train_from_iterator([*WORDS, *SENTENCES, "Context: Question: Short answer:"], trainer)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=made, eos_token="<|im_end|>", pad_token="<|endoftext|>"
    )
    tokenizer.chat_template = TURNS.replace("IMAGE", image)
    return tokenizer


def drawn(model: Any, name: str, scale: float = 0.3) -> Any:
    """The model with all its weights drawn from a generator of that name, in evaluation."""
    rng = torch_generator("made", name)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.normal_(0, scale, generator=rng)
            else:
                parameter.normal_(0.5, 0.2, generator=rng)
    return model.eval()


def made_llama(**changes: Any) -> Any:
    """A Llama for the tokenizer above, with fewer keys than queries."""
    from transformers import LlamaConfig, LlamaForCausalLM

    options = {
        "vocab_size": len(made_tokenizer()),
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 2048,
        "eos_token_id": 2,
        "bos_token_id": None,
        "pad_token_id": 0,
    }
    return drawn(LlamaForCausalLM(LlamaConfig(**options | changes)), "llama")


def made_gpt2() -> Any:
    """A GPT-2: a shape that is read through its own forward."""
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        vocab_size=len(made_tokenizer()),
        n_embd=32,
        n_layer=2,
        n_head=4,
        n_positions=2048,
        eos_token_id=2,
        bos_token_id=None,
        pad_token_id=0,
    )
    return drawn(GPT2LMHeadModel(config), "gpt2")


def saved(folder: Path, model: Any, *beside: Any) -> Path:
    """The model and what belongs to it, as a user would have them."""
    model.save_pretrained(folder)
    for each in beside or (made_tokenizer(),):
        each.save_pretrained(folder)
    return folder


def made_items(count: int) -> list[Item]:
    """Items with captions of different lengths."""
    rng = generator("made", "items")
    items = []
    for number in range(count):
        answer = str(rng.choice(WORDS))
        words = " ".join(rng.choice(["a", "dog", "on", "the", "beach"], size=rng.integers(2, 9)))
        items.append(
            Item(
                id=str(number),
                image=f"{number}.png",
                question=str(rng.choice(SENTENCES)),
                answers=(answer,) * 10,
                answer=answer,
                caption=words,
            )
        )
    return items


def made_prompts(count: int, shots: int = 2) -> list[Prompt]:
    """Prompts with zero up to `shots` demonstrations."""
    items = made_items(40)
    rng = generator("made", "prompts")
    prompts = []
    for number in range(count):
        chosen = [items[at] for at in rng.permutation(len(items))[: 1 + number % (shots + 1)]]
        prompts.append(Prompt(tuple(chosen[1:]), chosen[0]))
    return prompts


def made_images(height: int = 56, width: int = 84) -> Callable[[str], NDArray[Any]]:
    """A picture of noise for every name; those of even length are a bit taller."""

    def image(name: str) -> NDArray[Any]:
        rng = generator("made", "image", name)
        tall = height + (28 if len(name) % 2 else 0)
        return rng.integers(0, 256, (tall, width, 3), dtype=np.uint8)

    return image


def made_qwen(kind: str = "qwen2_5_vl", **changes: Any) -> tuple[Any, Any, Any]:
    """A Qwen2.5-VL or Qwen2-VL, whose images have height and width, with what reads for it."""
    from transformers import (
        Qwen2_5_VLConfig,
        Qwen2_5_VLForConditionalGeneration,
        Qwen2VLConfig,
        Qwen2VLForConditionalGeneration,
    )
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

    tokenizer = made_tokenizer("<|vision_start|><|image_pad|><|vision_end|>")
    number = tokenizer.convert_tokens_to_ids
    text = {
        "vocab_size": len(tokenizer),
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 2048,
        "rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [1, 1, 2]},
        "eos_token_id": number("<|im_end|>"),
        "bos_token_id": None,
        "pad_token_id": 0,
    }
    eyes = {"depth": 2, "num_heads": 2, "patch_size": 14, "spatial_merge_size": 2}
    newer = kind == "qwen2_5_vl"
    if newer:
        eyes |= {"hidden_size": 16, "intermediate_size": 24, "out_hidden_size": 32}
        eyes |= {"window_size": 56, "fullatt_block_indexes": [1]}
    else:
        eyes |= {"embed_dim": 16, "hidden_size": 32, "mlp_ratio": 2}
    config = (Qwen2_5_VLConfig if newer else Qwen2VLConfig)(
        text_config=text | changes,
        vision_config=eyes,
        image_token_id=number("<|image_pad|>"),
        video_token_id=number("<|video_pad|>"),
        vision_start_token_id=number("<|vision_start|>"),
        vision_end_token_id=number("<|vision_end|>"),
        tie_word_embeddings=False,
    )
    made = (Qwen2_5_VLForConditionalGeneration if newer else Qwen2VLForConditionalGeneration)(
        config
    )
    made.generation_config.eos_token_id = number("<|im_end|>")
    pictures = Qwen2VLImageProcessorPil(
        size={"shortest_edge": 28 * 28, "longest_edge": 28 * 28 * 20}
    )
    return drawn(made, kind), tokenizer, pictures


def text_options(tokenizer: Any) -> dict[str, Any]:
    """The decoder of the models below."""
    return {
        "vocab_size": len(tokenizer),
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 2048,
        "eos_token_id": 2,
        "bos_token_id": None,
        "pad_token_id": 0,
    }


EYES = {
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "image_size": 28,
    "patch_size": 14,
}


def made_llava() -> tuple[Any, Any, Any]:
    """CLIP's eyes before a Llama."""
    from transformers import LlavaConfig, LlavaForConditionalGeneration
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    tokenizer = made_tokenizer()
    config = LlavaConfig(
        text_config={"model_type": "llama"} | text_options(tokenizer),
        vision_config={"model_type": "clip_vision_model", "projection_dim": 16} | EYES,
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
    )
    pictures = CLIPImageProcessorPil(
        size={"shortest_edge": 28}, crop_size={"height": 28, "width": 28}
    )
    return drawn(LlavaForConditionalGeneration(config), "llava"), tokenizer, pictures


def made_idefics2() -> tuple[Any, Any, Any]:
    """Crops resampled to three vectors each, before a Mistral."""
    from transformers import Idefics2Config, Idefics2ForConditionalGeneration
    from transformers.models.idefics2.image_processing_pil_idefics2 import Idefics2ImageProcessorPil

    tokenizer = made_tokenizer()
    resampled = {"resampler_n_latents": 3, "resampler_depth": 1, "resampler_n_heads": 2}
    config = Idefics2Config(
        text_config={"model_type": "mistral", "sliding_window": None} | text_options(tokenizer),
        vision_config=EYES,
        perceiver_config=resampled
        | {"resampler_head_dim": 8, "num_key_value_heads": 1, "hidden_size": 32},
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
    )
    pictures = Idefics2ImageProcessorPil(
        size={"shortest_edge": 14, "longest_edge": 28}, do_image_splitting=True
    )
    return drawn(Idefics2ForConditionalGeneration(config), "idefics2"), tokenizer, pictures


def made_idefics3() -> tuple[Any, Any, Any]:
    """Rows and columns of crops before a Llama."""
    from transformers import Idefics3Config, Idefics3ForConditionalGeneration
    from transformers.models.idefics3.image_processing_pil_idefics3 import Idefics3ImageProcessorPil

    tokenizer = made_tokenizer()
    config = Idefics3Config(
        text_config={"model_type": "llama"} | text_options(tokenizer),
        vision_config=EYES,
        scale_factor=2,
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
        pad_token_id=0,
    )
    pictures = Idefics3ImageProcessorPil(
        size={"longest_edge": 56}, max_image_size={"longest_edge": 28}
    )
    return drawn(Idefics3ForConditionalGeneration(config), "idefics3"), tokenizer, pictures


EYED: dict[str, Callable[[], tuple[Any, Any, Any]]] = {
    "qwen2_5_vl": made_qwen,
    "qwen2_vl": lambda: made_qwen("qwen2_vl"),
    "llava": made_llava,
    "idefics2": made_idefics2,
    "idefics3": made_idefics3,
}
