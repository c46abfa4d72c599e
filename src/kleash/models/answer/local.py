"""Answerers from files: a vision-language model, or a causal LM that reads captions.

transformers is imported when a model is made: it takes seconds.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from kleash.algo.policy import fingerprint
from kleash.errors import ConfigError, DataError
from kleash.models.answer import Images
from kleash.models.answer.decoding import Decoder, Decoding, Row
from kleash.models.answer.prompting import Preset, Speller, Spelt, Written, preset_of, written
from kleash.models.answer.reading import reader_of
from kleash.models.answer.vision import FAMILIES, Eyes, Seen
from kleash.models.language.chat import load_tokenizer
from kleash.models.language.models import context_of, load, located
from kleash.types import Answer, Prompt

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
PLACES = 1 << 11
"""Places of prompts read at once on a CPU."""
NUMBERS = 1 << 26
"""Elsewhere places times the width of the model: 32,768 places of Qwen2.5-VL-3B."""
WITH_IMAGES = 256  # prompts with images that are got ready together
FEWEST = 4  # prompts that must begin alike


@dataclass(frozen=True)
class Parts:
    """A model with what reads and looks for it; `pictures` is none for one that has no eyes."""

    model: Any
    tokenizer: Any
    pictures: Any = None
    name: str = "the model"


class Local:
    """Answers with a model that is there already."""

    def __init__(
        self,
        parts: Parts,
        images: Images,
        preset: Preset,
        decoding: Decoding,
        places: int,
        room: int,
    ) -> None:
        self.model = parts.model.eval().requires_grad_(False)
        self.device: torch.device = self.model.device
        self.preset, self.decoding, self.looks = preset, decoding, preset.looks
        if decoding.beams < 1 or decoding.tokens < 1:
            raise ConfigError(f"an answer needs a beam and a token, not {decoding.describe()}")
        self.eyes = None
        if self.looks:
            if parts.pictures is None:
                raise ConfigError(
                    f"{parts.name} sees no images, and the prompt {preset.name!r} shows them: set"
                    " prompt = 'captions'"
                )
            self.eyes = Eyes(self.model, parts.tokenizer, parts.pictures, images, room)
        self.speller = Speller(
            parts.tokenizer, parts.name, self.eyes.family.text if self.eyes else ""
        )
        self.context = context_of(self.model)
        width = self.model.config.get_text_config().hidden_size
        self.places = places or (PLACES if self.device.type == "cpu" else NUMBERS // width)
        self.decoder = Decoder(
            reader_of(self.model.get_decoder()),
            self.model.get_input_embeddings(),
            self.model.get_output_embeddings(),
            stops_of(self.model, parts.tokenizer),
            decoding,
        )

    @cached_property
    def identity(self) -> str:
        """Weights, tokenizer, image processor, prompt, decoding, number format and device."""
        seeing = self.eyes.identity[:8] if self.eyes else "blind"
        kind = str(self.model.dtype).removeprefix("torch.")
        return (
            f"{fingerprint(self.model.state_dict())} {self.speller.identity[:8]} {seeing}"
            f" {self.preset.name}, {self.decoding.describe()}, {kind} on {self.device.type}"
        )

    def answer(self, prompts: Sequence[Prompt]) -> list[Answer]:
        """An answer for every prompt, in order; one that cannot be put breaks alone."""
        at_once = WITH_IMAGES if self.looks else max(1, len(prompts))
        answers: list[Answer] = []
        for start in range(0, len(prompts), at_once):
            answers += self.answer_some(prompts[start : start + at_once])
        return answers

    def answer_some(self, prompts: Sequence[Prompt]) -> list[Answer]:
        """Answers to prompts that are got ready together."""
        answers: dict[int, Answer] = {}
        rows: dict[int, Row] = {}
        for place, found in enumerate(self.rows(prompts)):
            if isinstance(found, DataError):
                answers[place] = Answer("", float("nan"), error=str(found))
            else:
                rows[place] = found
        begins = [tuple(item.id for item in prompts[place].demonstrations) for place in rows]
        answers.update(zip(rows, self.read(list(rows.values()), begins), strict=True))
        return [answers[place] for place in range(len(prompts))]

    def read(self, rows: Sequence[Row], begins: Sequence[tuple[object, ...]]) -> list[Answer]:
        """Answers to rows; what several begin with is read once where that pays."""
        answers: dict[int, Answer] = {}
        for group in alike(rows, begins, self.places // 8):
            begun, shared = None, group.shared
            if shared:
                begun = self.decoder.begin(rows[group.rows[0]].part(0, shared), self.device)
            own = [rows[number].part(shared, None) for number in group.rows]
            for batch in of_one_length([len(row.ids) + shared for row in own], self.places):
                found = self.decoder.decode([own[n] for n in batch], self.device, begun)
                for number, ids, logp in zip(batch, *found, strict=True):
                    text = self.preset.cut(self.speller.text(ids))
                    answers[group.rows[number]] = Answer(text, logp)
        return [answers[number] for number in range(len(rows))]

    def rows(self, prompts: Sequence[Prompt]) -> list[Row | DataError]:
        """Prompts as ids with their places."""
        texts = [self.spaced(written(p, self.preset, self.speller.template())) for p in prompts]
        spelt = self.speller.spelt(texts)
        seen = {}
        if self.eyes:
            seen = self.eyes.see([name for text in texts for name in text.images])
        rows: list[Row | DataError] = []
        for text, found in zip(texts, spelt, strict=True):
            looked = [seen[name] for name in text.images]
            wrong = next((each for each in (found, *looked) if isinstance(each, DataError)), None)
            if wrong is None and isinstance(found, Spelt):
                row = self.row(found, [each for each in looked if isinstance(each, Seen)])
                wrong = self.too_long(len(row.ids) + len(row.truth))
            rows.append(row if wrong is None else wrong)
        return rows

    def spaced(self, text: Written) -> Written:
        """The text as the model's processor would write it around images."""
        if self.eyes is None or not self.eyes.family.spaced:
            return text
        token = re.escape(self.eyes.family.token)
        words = text.text.replace("\ufffc", self.eyes.family.text)
        words = re.sub(f"{token}(?=[^\\s<])", f"{self.eyes.family.token} ", words)
        return Written(words, text.truth, text.images, text.ready)

    def row(self, spelt: Spelt, seen: Sequence[Seen]) -> Row:
        """A prompt with the ids of its images in their places."""
        if self.eyes is None:
            ids = spelt.prompt
            places = torch.arange(len(ids))
            return Row(torch.tensor(ids), places, len(ids), spelt.truth, key=tuple(ids))
        token, laid = self.eyes.token, Laid(grid=self.eyes.family.grid)
        waiting, start = iter(seen), 0
        for at, one in enumerate(spelt.prompt):
            if one == token:
                laid.words(spelt.prompt[start:at])
                laid.image(next(waiting))
                start = at + 1
        laid.words(spelt.prompt[start:])
        return laid.row(spelt.truth)

    def too_long(self, length: int) -> DataError | None:
        """Why a prompt and its answer do not fit."""
        if self.context is None or length + self.decoding.tokens <= self.context:
            return None
        return DataError(f"a prompt of {length} tokens does not fit into {self.context}")


class Laid:
    """Words and images laid one after the other, each with its place.

    With a `grid` the vectors of an image stand on height and width (Qwen2-VL, 2409.12191): what
    follows stands behind the longer of the two.
    """

    def __init__(self, *, grid: bool) -> None:
        self.grid, self.next = grid, 0
        self.ids: list[int] = []
        self.key: list[object] = []
        self.places: list[Tensor] = []
        self.seen: list[tuple[int, Tensor]] = []

    def words(self, ids: Sequence[int]) -> None:
        """Each one place further."""
        self.ids += ids
        self.key += ids
        self.onwards(len(ids))

    def image(self, seen: Seen) -> None:
        """The ids that stand for it."""
        self.seen += [(len(self.ids) + at, vectors) for at, vectors in seen.spans]
        self.ids += seen.ids
        self.key += [seen.content] * len(seen.ids)
        if seen.grid is None:
            self.onwards(len(seen.ids))
            return
        height, width = seen.grid
        rows, columns = torch.arange(height), torch.arange(width)
        flat = torch.zeros(height * width, dtype=torch.long)
        on = torch.stack([flat, rows.repeat_interleave(width), columns.repeat(height)])
        self.places.append(on + self.next)
        self.next += max(height, width)

    def onwards(self, count: int) -> None:
        """So many places, one after the other."""
        made = torch.arange(self.next, self.next + count)
        self.places.append(made.expand(3, -1) if self.grid else made)
        self.next += count

    def row(self, truth: list[int]) -> Row:
        """All that was laid."""
        place = torch.cat(self.places, -1)
        return Row(
            torch.tensor(self.ids), place, self.next, truth, tuple(self.seen), tuple(self.key)
        )


class Transformers(Local):
    """A model of transformers: a folder with its weights and its processor, or a GGUF file.

    On another device or in another number format the last bits are others, so it goes by another
    identity there.
    """

    def __init__(  # noqa: PLR0913  # its options, by their names in a recipe
        self,
        images: Images,
        model: str | Path,
        *,
        device: str = "cpu",
        prompt: str = "auto",
        dtype: str = "auto",
        beams: int = 3,
        tokens: int = 5,
        length_penalty: float = 1.0,
        places: int = 0,
        image_gigabytes: float = 4.0,
    ) -> None:
        parts = loaded(model, device, number_format(dtype, device))
        if prompt == "auto":
            prompt = "captions" if parts.pictures is None else "documents"
        decoding = Decoding(beams, tokens, length_penalty)
        room = int(image_gigabytes * 1e9)
        super().__init__(parts, images, preset_of(prompt), decoding, places, room)


def loaded(path: Path | str, device: str, dtype: torch.dtype) -> Parts:
    """The model in a folder or a GGUF file, with its eyes if it has some."""
    folder, options = located(path)
    kind = "" if options else json.loads((folder / "config.json").read_text()).get("model_type")
    tokenizer = load_tokenizer(path)
    if kind not in FAMILIES:
        return Parts(load(path, dtype=dtype).to(device), tokenizer, name=str(path))
    from transformers import AutoImageProcessor, AutoModelForImageTextToText

    try:
        model: Any = AutoModelForImageTextToText.from_pretrained(
            folder, dtype=dtype, local_files_only=True
        )
        # By Pillow: the same bytes whether torchvision is installed or not.
        pictures = AutoImageProcessor.from_pretrained(folder, local_files_only=True, backend="pil")
    except (OSError, ValueError, KeyError, ImportError) as error:
        raise DataError(f"{path} cannot be loaded as a vision-language model: {error}") from error
    if not tokenizer.chat_template:
        tokenizer.chat_template = template_beside(folder)
    return Parts(model.to(device), tokenizer, pictures, str(path))


def template_beside(folder: Path) -> str | None:
    """The chat template that belongs to a model's processor, where its tokenizer has none."""
    plain, wrapped = folder / "chat_template.jinja", folder / "chat_template.json"
    if plain.is_file():
        return plain.read_text(encoding="utf-8")
    if wrapped.is_file():
        found: str = json.loads(wrapped.read_text(encoding="utf-8"))["chat_template"]
        return found
    return None


def number_format(name: str, device: str) -> torch.dtype:
    """The format of that name; on a GPU bfloat16 if not said, elsewhere float32."""
    if name == "auto":
        return torch.float32 if device == "cpu" else torch.bfloat16
    if name not in DTYPES:
        raise ConfigError(f"no number format {name!r}: there is auto, {', '.join(DTYPES)}")
    return DTYPES[name]


def stops_of(model: Any, tokenizer: Any) -> list[int]:
    """The ids that end what a model says."""
    said = getattr(model.generation_config, "eos_token_id", None)
    found = said if isinstance(said, list) else [said]
    return sorted({int(each) for each in (*found, tokenizer.eos_token_id) if each is not None})


# --- which prompts are read together: those that begin alike, then those of about one length


@dataclass(frozen=True)
class Alike:
    """Rows, by their numbers, and how many ids all of them begin with that are read only once."""

    rows: list[int]
    shared: int = 0


def alike(rows: Sequence[Row], begins: Sequence[tuple[object, ...]], worth: int) -> list[Alike]:
    """Rows grouped by what they begin with, where that saves `worth` ids or more.

    `begins` are the demonstrations of each row. The longest beginning that pays is taken.
    """
    counts = Counter(begin[:end] for begin in begins for end in range(1, len(begin) + 1))
    groups: dict[tuple[object, ...], list[int]] = {}
    for number, begin in enumerate(begins):
        paying = (
            begin[:end]
            for end in range(len(begin), 0, -1)
            if (many := counts[begin[:end]]) >= FEWEST
            and (many - 1) * len(rows[number].ids) * end >= worth * (len(begin) + 1)
        )
        groups.setdefault(next(paying, ()), []).append(number)
    found = [Alike(groups.pop((), []))]
    for some in groups.values():
        # Of each at least the last id is read by itself: something must say what comes next.
        common = in_common([rows[number].key[:-1] for number in some])
        pays = (len(some) - 1) * common >= worth
        found.append(Alike(some, common if pays else 0))
    return [group for group in found if group.rows]


def in_common(keys: Sequence[tuple[object, ...]]) -> int:
    """How many places from the first on are the same in all."""
    columns = zip(*keys, strict=False)
    return next(
        (at for at, each in enumerate(columns) if len({*each}) > 1), min(len(key) for key in keys)
    )


def of_one_length(lengths: Sequence[int], most: int) -> Iterator[list[int]]:
    """Numbers of rows in batches of at most `most` places, padding included, longest first."""
    batch: list[int] = []
    for number in sorted(range(len(lengths)), key=lambda each: -lengths[each]):
        if batch and (len(batch) + 1) * lengths[batch[0]] > most:
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch
