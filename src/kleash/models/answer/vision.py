"""Images as a vision-language model takes them in: once for each, whatever asks for them.

An image is known by its content. Its pixels go through the model's own image processor, and what
the model's eyes make of them is kept. In a prompt stand the ids that the model's own processor
would write for it.

Shapes: N patches, S stretches of them that attend to themselves, M patches of the longest, H heads,
D width of a head, W width of the decoder.
"""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from kleash.errors import ConfigError, DataError
from kleash.models.answer.caching import LruCache
from kleash.models.answer.reading import plain_attention
from kleash.tasks.data import Images, image_content

AT_ONCE = 16  # images that go through the eyes together
AROUND = "<fake_token_around_image>"


@dataclass(frozen=True)
class Seen:
    """What stands for an image in a prompt."""

    content: str
    ids: tuple[int, ...]
    spans: tuple[tuple[int, Tensor], ...]
    """Where among the ids vectors of the image go, and the vectors [n, W]."""
    grid: tuple[int, int] | None
    """Height and width in vectors, for models whose places have them."""

    @property
    def size(self) -> int:
        """Bytes of its vectors."""
        return sum(vectors.nbytes for _, vectors in self.spans)


def repeated(token: str, inputs: Mapping[str, Any], vectors: int) -> str:
    """The token for every vector."""
    return token * vectors


def between_marks(token: str, inputs: Mapping[str, Any], vectors: int) -> str:
    """The vectors of every crop between marks, as Idefics2 has them."""
    crops: int = inputs["pixel_values"].shape[1]
    return AROUND + (token * (vectors // crops) + AROUND) * crops


def in_rows(token: str, inputs: Mapping[str, Any], vectors: int) -> str:
    """Rows and columns of crops, then the whole image, as Idefics3 has them."""
    rows, columns = (int(inputs[name][0][0]) for name in ("rows", "cols"))
    each = token * (vectors // (rows * columns + 1))
    made = ""
    for row in range(rows):
        made += "".join(f"{AROUND}<row_{row + 1}_col_{c + 1}>{each}" for c in range(columns)) + "\n"
    return f"{made}{chr(10) if made else ''}{AROUND}<global-img>{each}{AROUND}"


@dataclass(frozen=True)
class Family:
    """How models of one kind write an image."""

    token: str
    """The token whose places its vectors take."""
    text: str
    """What stands for an image in running text."""
    written: Callable[[str, Mapping[str, Any], int], str] = repeated
    """What is written in place of one token."""
    asked: tuple[str, ...] = ()
    """What else the image processor must tell."""
    grid: bool = False
    """Whether places have height and width, and images of any size are looked at together."""
    spaced: bool = False
    """Whether words never touch the end of an image."""


QWEN = Family("<|image_pad|>", "<|vision_start|><|image_pad|><|vision_end|>", grid=True)
FAMILIES = {
    "qwen2_5_vl": QWEN,
    "qwen2_vl": QWEN,
    "llava": Family("<image>", "<image>"),
    "idefics2": Family("<image>", "<image>", between_marks, spaced=True),
    "idefics3": Family("<image>", "<image>", in_rows, asked=("return_row_col_info",)),
}


class Eyes:
    """The part of a model that looks, with its image processor and what it has seen."""

    def __init__(
        self, model: Any, tokenizer: Any, pictures: Any, images: Images, room: int
    ) -> None:
        kind = model.config.model_type
        if kind not in FAMILIES:
            raise ConfigError(f"no images for a {kind}: there is {', '.join(FAMILIES)}")
        self.family, self.pictures = FAMILIES[kind], pictures
        self.model, self.tokenizer, self.images = model, tokenizer, images
        self.token: int = tokenizer.convert_tokens_to_ids(self.family.token)
        how = f"{type(self.pictures).__name__} {self.pictures.to_json_string()}"
        self.identity = hashlib.sha256(how.encode()).hexdigest()
        self.kept: LruCache[Seen] = LruCache(room)
        self.uses = 0
        self.looks = 0
        self.content = functools.cache(self.content_of)
        self.attentions = [
            part
            for part in model.modules()
            if type(part).__name__ in ("Qwen2_5_VLVisionAttention", "VisionAttention")
        ]

    def see(self, names: Sequence[str]) -> dict[str, Seen | DataError]:
        """What stands for each image; one that cannot be looked at is an error, alone."""
        self.uses += len(names)
        found: dict[str, Seen | DataError] = {}
        new: dict[str, list[str]] = {}
        for name in dict.fromkeys(names):
            try:
                content = self.content(name)
            except (DataError, OSError, ValueError) as error:
                found[name] = DataError(f"the image {name} cannot be read: {error}")
                continue
            known = self.kept.find(content)
            if known is None:
                new.setdefault(content, []).append(name)
            else:
                found[name] = known
        waiting = list(new)
        for start in range(0, len(waiting), AT_ONCE):
            some = {content: new[content][0] for content in waiting[start : start + AT_ONCE]}
            for content, seen in self.look(some).items():
                found |= dict.fromkeys(new[content], seen)
        return found

    def content_of(self, name: str) -> str:
        """The hash of an image."""
        return hashlib.sha256(image_content(self.images, name)).hexdigest()

    @torch.inference_mode()
    @plain_attention()
    def look(self, names: Mapping[str, str]) -> dict[str, Seen | DataError]:
        """Look at images that are new, by content."""
        found: dict[str, Seen | DataError] = {}
        inputs: dict[str, Mapping[str, Any]] = {}
        for (content, name), made in zip(names.items(), self.prepared(names.values()), strict=True):
            if isinstance(made, Exception):
                found[content] = DataError(f"the image {name} cannot be looked at: {made}")
            else:
                inputs[content] = made
        for content, vectors in self.vectors(inputs).items():
            seen = self.written(content, inputs[content], vectors)
            self.kept.keep(content, seen, seen.size)
            found[content] = seen
        self.looks += len(inputs)
        return found

    def prepared(self, names: Iterable[str]) -> list[Mapping[str, Any] | Exception]:
        """Images as the processor prepares them; beside a GPU several threads do."""
        if self.model.device.type == "cpu":
            return [self.pixels(name) for name in names]
        with ThreadPoolExecutor(min(AT_ONCE, os.cpu_count() or 1)) as threads:
            return list(threads.map(self.pixels, names))

    def pixels(self, name: str) -> Mapping[str, Any] | Exception:
        """An image as its processor prepares it, or why it cannot."""
        more = dict.fromkeys(self.family.asked, True)
        try:
            made: Mapping[str, Any] = self.pictures(
                images=[self.images(name)], return_tensors="pt", **more
            )
        except (DataError, OSError, ValueError) as error:
            return error
        return made

    def vectors(self, inputs: Mapping[str, Mapping[str, Any]]) -> dict[str, Tensor]:
        """What the eyes make of prepared images: [n, W] for each."""
        device = self.model.device
        if not inputs:
            return {}
        if self.family.grid:
            pixels = torch.cat([each["pixel_values"] for each in inputs.values()]).to(device)
            grid = torch.cat([each["image_grid_thw"] for each in inputs.values()]).to(device)
            with all_at_once(self.attentions):
                made = found_by(self.model.model.get_image_features(pixels, grid))
            merge = self.model.config.vision_config.spatial_merge_size
            sizes = (grid.prod(-1) // merge**2).tolist()
            # Copies: a view would keep the vectors of all its company.
            return {
                content: vectors.clone()
                for content, vectors in zip(inputs, made.split(sizes), strict=True)
            }
        taken = ("pixel_values", "pixel_attention_mask")
        return {
            content: found_by(
                self.model.model.get_image_features(
                    **{name: each[name].to(device) for name in taken if name in each}
                )
            )
            for content, each in inputs.items()
        }

    def written(self, content: str, inputs: Mapping[str, Any], vectors: Tensor) -> Seen:
        """The ids for an image, with its vectors at the places of its token."""
        text = self.family.written(self.family.token, inputs, len(vectors))
        ids: list[int] = self.tokenizer.encode(text, add_special_tokens=False)
        spans, start, taken = [], 0, 0
        for is_image, run in groupby(ids, key=lambda each: each == self.token):
            length = len(list(run))
            if is_image:
                spans.append((start, vectors[taken : taken + length]))
                taken += length
            start += length
        if taken != len(vectors):
            raise DataError(f"{len(vectors)} vectors of an image have {taken} places in the prompt")
        grid = None
        if self.family.grid:
            merge = self.model.config.vision_config.spatial_merge_size
            _, height, width = inputs["image_grid_thw"][0].tolist()
            grid = (height // merge, width // merge)
        return Seen(content, tuple(ids), tuple(spans), grid)


def found_by(features: Any) -> Tensor:
    """All vectors of images, one after the other, whatever a model wraps them in."""
    found = getattr(features, "pooler_output", features)
    if isinstance(found, (list, tuple)):
        found = torch.cat([each.reshape(-1, each.shape[-1]) for each in found])
    vectors: Tensor = found.reshape(-1, found.shape[-1])
    return vectors


@dataclass(frozen=True)
class Stretches:
    """Where the patches of stretches are: one attention for all, the shorter ones padded."""

    at_SM: Tensor
    mask: Tensor | None
    own_N: Tensor
    """The places of patches among all that are there after padding."""

    @classmethod
    def of(cls, ends: Tensor) -> Stretches:
        """From the ends of stretches, a zero before them."""
        length_S = ends[1:] - ends[:-1]
        places_M = torch.arange(int(length_S.max()), device=ends.device)
        own_SM = places_M < length_S[:, None]
        at_SM = ends[:-1, None] + torch.where(own_SM, places_M, 0)
        mask = None if bool(own_SM.all()) else own_SM[:, None, None]
        return cls(at_SM, mask, own_SM.flatten().nonzero()[:, 0])


@contextmanager
def all_at_once(attentions: Sequence[Any]) -> Iterator[None]:
    """Have Qwen's eyes attend as below; afterwards they are as they were."""
    for part in attentions:
        part.forward = functools.partial(attended, part)
    try:
        yield
    finally:
        for part in attentions:
            del part.forward


def attended(
    part: Any,
    hidden_states: Tensor,
    cu_seqlens: Tensor,
    rotary_pos_emb: Tensor | None = None,
    position_embeddings: tuple[Tensor, Tensor] | None = None,
    **kwargs: Any,
) -> Tensor:
    """The attention of Qwen's eyes, all stretches at once: one by one they are 30 for an image.

    Names are those of transformers, in whose place it stands.
    """
    assert position_embeddings is not None
    ends: Any = cu_seqlens
    stretches = getattr(ends, "stretches", None)  # the same ends come to every layer
    if stretches is None:
        stretches = ends.stretches = Stretches.of(cu_seqlens)
    made = part.qkv(hidden_states).unflatten(-1, (3, part.num_heads, -1))
    cos, sin = (each[:, None].float() for each in position_embeddings)
    turned = made[:, :2].float()
    half = turned.shape[-1] // 2
    swapped = torch.cat([-turned[..., half:], turned[..., :half]], -1)
    turned = (turned * cos[:, None] + swapped * sin[:, None]).to(made.dtype)
    query, key, value = (
        each[stretches.at_SM].transpose(1, 2) for each in (*turned.unbind(1), made[:, 2])
    )
    mixed_SHMD = F.scaled_dot_product_attention(
        query, key, value, attn_mask=stretches.mask, scale=part.scaling
    )
    mixed = mixed_SHMD.transpose(1, 2).flatten(0, 1)[stretches.own_N].flatten(1)
    projected: Tensor = part.proj(mixed)
    return projected
