"""Encoders that are models of their own: CLIP, SigLIP and sentence encoders, from a local folder.

A folder is what `save_pretrained` writes or a hub's snapshot holds: a config, safetensors, a
tokenizer and, to see, how images are prepared. Batches always have the same size, and a text is
padded to a length that only itself decides, so no row depends on what else was asked for.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kleash.errors import ConfigError
from kleash.tasks.demos.embeddings import Rows, unit_rows
from kleash.types import Item

BATCH = 32
BUCKET = 16  # lengths of texts are rounded up to this
LONGEST = 256  # tokens of a sentence, where the folder says nothing
READ = ("*.json", "*.safetensors", "*.txt", "*.model")


def folder_hash(folder: Path) -> str:
    """The hash of all files in a folder that a model's output depends on."""
    digest = hashlib.sha256()
    files = sorted({path for pattern in READ for path in folder.glob(pattern)})
    for path in files:
        with path.open("rb") as file:
            own = hashlib.file_digest(file, "sha256").digest()
        digest.update(path.name.encode() + b"\x1f" + own)
    return digest.hexdigest()


def model_folder(model: str, what: str) -> Path:
    """The folder of a model, which is there and holds what is needed."""
    folder = Path(model).expanduser()
    if not (folder / "config.json").is_file():
        raise ConfigError(
            f"no model in {folder}: encoder_options.model is the folder of {what}, with a"
            " config.json, safetensors and a tokenizer, as `hf download` fetches it"
        )
    if not list(folder.glob("*.safetensors")):
        raise ConfigError(f"no *.safetensors in {folder}: other weights may hold code, and are not")
    return folder


class Model:
    """What the encoders share: the folder, its hash, and the network when it is needed."""

    sees = False
    joint: Literal["beside", "mean"] = "beside"
    what = "a model"

    def __init__(self, model: str, device: str = "cpu") -> None:
        self.folder, self.device = model_folder(model, self.what), torch.device(device)
        self.identity = f"{type(self).__name__.lower()} {folder_hash(self.folder)}"
        if self.device.type != "cpu":  # there the last bits are others
            self.identity += f", on {self.device.type}"

    @cached_property
    def network(self) -> Any:
        """The network, ready to read and see."""
        return self.load().to(self.device)

    def load(self) -> Any:
        """The network anew, as its folder has it."""
        from transformers import AutoModel

        loaded = AutoModel.from_pretrained(self.folder, local_files_only=True, dtype=torch.float32)
        return loaded.eval()

    @cached_property
    def tokenizer(self) -> Any:
        """Text as tokens."""
        from transformers import AutoTokenizer

        return AutoTokenizer.from_pretrained(self.folder, local_files_only=True)

    def text(self, item: Item) -> str:
        """The question."""
        return item.question

    @torch.inference_mode()
    def read(self, texts: Sequence[str]) -> Rows:
        """A row for each text."""
        lengths: dict[int, list[int]] = defaultdict(list)
        for place, text in enumerate(texts):
            lengths[self.padded_length(text)].append(place)
        rows: dict[int, NDArray[np.float32]] = {}
        for length, places in sorted(lengths.items()):
            for start in range(0, len(places), BATCH):
                some = places[start : start + BATCH]
                full = [texts[place] for place in some] + [""] * (BATCH - len(some))
                made = self.tokens(full, length).to(self.device)
                rows |= dict(zip(some, as_rows(self.read_batch(made)), strict=False))
        return np.stack([rows[place] for place in range(len(texts))])

    def tokens(self, texts: Sequence[str], length: int) -> Any:
        """Texts as tokens, all of one length."""
        return self.tokenizer(
            list(texts),
            padding="max_length",
            truncation=True,
            max_length=length,
            return_tensors="pt",
        )

    def padded_length(self, text: str) -> int:
        """How many tokens a text is padded to, by itself alone."""
        raise NotImplementedError

    def read_batch(self, tokens: Any) -> Tensor:
        """Texts as vectors [B, D]."""
        raise NotImplementedError

    def see(self, pictures: Sequence[NDArray[Any]]) -> Rows:
        """A row for each picture."""
        raise NotImplementedError


class TwoTowers(Model):
    """Images and texts in one space; together they are the mean of both."""

    sees = True
    joint = "mean"
    masked = True
    """Whether the text tower is told what is padding."""

    @cached_property
    def prepare(self) -> Any:
        """How the folder says that images are made ready."""
        from transformers import AutoImageProcessor

        return AutoImageProcessor.from_pretrained(
            self.folder, local_files_only=True, use_fast=False
        )

    def padded_length(self, text: str) -> int:
        """Always as in training: the text tower's length."""
        return int(self.config.text_config.max_position_embeddings)

    @cached_property
    def config(self) -> Any:
        """What the folder says of the network's shape."""
        from transformers import AutoConfig

        return AutoConfig.from_pretrained(self.folder, local_files_only=True)

    def read_batch(self, tokens: Any) -> Tensor:
        """The text tower's vector."""
        return self.of_texts(self.network, tokens)

    def of_texts(self, network: Any, tokens: Any) -> Tensor:
        """What the text tower of a network makes of tokens [B, D]."""
        mask = {"attention_mask": tokens.get("attention_mask")} if self.masked else {}
        return pooled(network.get_text_features(input_ids=tokens["input_ids"], **mask))

    def of_images(self, network: Any, pixels: Tensor) -> Tensor:
        """What the image tower of a network makes of pixels [B, D]."""
        return pooled(network.get_image_features(pixel_values=pixels))

    @torch.inference_mode()
    def see(self, pictures: Sequence[NDArray[Any]]) -> Rows:
        """A row for each picture."""
        made = []
        for start in range(0, len(pictures), BATCH):
            some = list(pictures[start : start + BATCH])
            full = some + some[-1:] * (BATCH - len(some))
            features = self.of_images(self.network, self.pixels(full).to(self.device))
            made.append(as_rows(features)[: len(some)])
        return np.concatenate(made)

    def pixels(self, pictures: Sequence[NDArray[Any]]) -> Tensor:
        """Pictures as the image tower takes them."""
        made: Tensor = self.prepare(images=list(pictures), return_tensors="pt")["pixel_values"]
        return made


class Clip(TwoTowers):
    """CLIP: images and questions in one space (arXiv 2103.00020)."""

    what = "a CLIP model"


class Siglip(TwoTowers):
    """SigLIP, the same with another loss (arXiv 2303.15343); it was trained to read padding too."""

    what = "a SigLIP model"
    masked = False


class Sentences(Model):
    """A sentence encoder over question and caption: the mean over tokens, as they are trained."""

    what = "a sentence encoder"

    @cached_property
    def longest(self) -> int:
        """The most tokens of a sentence, as the folder says."""
        path = self.folder / "sentence_bert_config.json"
        said = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        return min(int(said.get("max_seq_length") or LONGEST), LONGEST)

    def text(self, item: Item) -> str:
        """Question and caption."""
        return f"{item.question} {item.caption}".strip()

    def padded_length(self, text: str) -> int:
        """Its own length, rounded up."""
        length = len(self.tokenizer(text, truncation=True, max_length=self.longest)["input_ids"])
        return min(-(-length // BUCKET) * BUCKET, self.longest)

    def read_batch(self, tokens: Any) -> Tensor:
        """The mean of the last layer over the tokens that are no padding."""
        hidden: Tensor = self.network(**tokens).last_hidden_state
        mask = tokens["attention_mask"][..., None].to(hidden.dtype)
        mean: Tensor = (hidden * mask).sum(1) / mask.sum(1).clamp(min=1)
        return mean


def pooled(output: Any) -> Tensor:
    """A tower's vector, whether it comes alone or with all that led to it."""
    found: Tensor = getattr(output, "pooler_output", output)
    return found


def as_rows(vectors: Tensor) -> Rows:
    """Vectors at length one."""
    return unit_rows(vectors.float().cpu().numpy())
