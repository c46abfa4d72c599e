"""Tiny encoders of the real config classes, with drawn weights, saved as a user would have them."""

from __future__ import annotations

from pathlib import Path

from made_models import drawn, made_tokenizer, saved

TEXT = {
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "max_position_embeddings": 24,
}
EYES = {
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "image_size": 28,
    "patch_size": 14,
}


def clip_folder(folder: Path) -> Path:
    """A CLIP."""
    from transformers import CLIPConfig, CLIPModel
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    tokenizer = made_tokenizer()
    # Its vector is that of the first place behind the text, which must be told.
    ends = {"eos_token_id": tokenizer.pad_token_id}
    text = TEXT | {"vocab_size": len(tokenizer), "projection_dim": 8} | ends
    config = CLIPConfig(
        text_config=text, vision_config=EYES | {"projection_dim": 8}, projection_dim=8
    )
    pictures = CLIPImageProcessorPil(
        size={"shortest_edge": 28}, crop_size={"height": 28, "width": 28}
    )
    return saved(folder, drawn(CLIPModel(config), "clip"), tokenizer, pictures)


def siglip_folder(folder: Path) -> Path:
    """A SigLIP."""
    from transformers import SiglipConfig, SiglipModel
    from transformers.models.siglip.image_processing_pil_siglip import SiglipImageProcessorPil

    tokenizer = made_tokenizer()
    config = SiglipConfig(text_config=TEXT | {"vocab_size": len(tokenizer)}, vision_config=EYES)
    pictures = SiglipImageProcessorPil(size={"height": 28, "width": 28})
    return saved(folder, drawn(SiglipModel(config), "siglip"), tokenizer, pictures)


def sentence_folder(folder: Path) -> Path:
    """A BERT that was never trained on sentences."""
    from transformers import BertConfig, BertModel

    tokenizer = made_tokenizer()
    config = BertConfig(**TEXT | {"vocab_size": len(tokenizer), "max_position_embeddings": 64})
    made = saved(folder, drawn(BertModel(config), "bert"), tokenizer)
    (made / "sentence_bert_config.json").write_text('{"max_seq_length": 48}')
    return made
