"""Prompts as text and as ids: which words stand between images, questions and answers.

A preset is one line in `PRESETS`. Where an image stands the text has `IMAGE`, which whoever looks
replaces by what his model wants there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from kleash.errors import ConfigError, DataError
from kleash.seeds import key
from kleash.types import Item, Prompt

IMAGE = "\ufffc"  # Unicode's own sign for an object between letters
INSTRUCTION = "Answer each question about its image with a single word or a short phrase."


@dataclass(frozen=True)
class Written:
    """A prompt as a model reads it, and the true answer as it would go on."""

    text: str
    truth: str
    images: tuple[str, ...] = ()
    """The names of the images, in the order in which `IMAGE` stands in the text."""
    ready: bool = False
    """Whether the text has all special tokens, so that a tokenizer must add none."""


@dataclass(frozen=True)
class Preset:
    """How items become text, and how an answer is cut out of what a model says."""

    name: str
    shown: Callable[[Item], str]
    """What is said of an item before its answer."""
    cut: Callable[[str], str]
    before: str = " "
    """What stands between that and the answer."""
    between: str = "\n"
    """What follows a demonstration."""
    chat: bool = False
    """Whether items are turns of a conversation, written by the model's own template."""
    looks: bool = True
    """Whether images are in it, or captions instead."""


def documents_cut(text: str) -> str:
    """Up to the next `Question`, `Answer` or `Short`, then up to the first comma."""
    return re.split("Question|Answer|Short", text, maxsplit=1)[0].split(", ")[0].strip()


def first_line(text: str) -> str:
    """The first line that says something, without a full stop at its end."""
    return text.strip().split("\n")[0].strip().removesuffix(".")


def captioned(item: Item) -> str:
    """The caption in place of the image (PICa, 2109.05014)."""
    return f"Context: {caption(item)}\nQ: {question(item)}\nA:"


def caption(item: Item) -> str:
    """What the image shows, in words."""
    if not item.caption:
        raise DataError(
            f"item {item.id} has no caption: prompts with captions need one for every item"
        )
    return item.caption.strip()


def question(item: Item) -> str:
    """The question without what would look like an image."""
    return item.question.strip().replace(IMAGE, " ")


PRESETS = {
    preset.name: preset
    for preset in (
        Preset(
            "documents",
            lambda item: f"{IMAGE}Question: {question(item)} Short answer:",
            documents_cut,
        ),
        Preset("chat", lambda item: f"{IMAGE}{question(item)}", first_line, before="", chat=True),
        Preset("captions", captioned, first_line, between="\n\n", looks=False),
        Preset(
            "captions-chat",
            lambda item: f"Context: {caption(item)}\n{question(item)}",
            first_line,
            before="",
            chat=True,
            looks=False,
        ),
    )
}


def preset_of(name: str) -> Preset:
    """The preset of that name."""
    if name not in PRESETS:
        raise ConfigError(f"no prompt preset {name!r}: there is {', '.join(PRESETS)}")
    return PRESETS[name]


def written(prompt: Prompt, preset: Preset, template: Callable[[Any], str] | None) -> Written:
    """The prompt as text; a chat is written by the model's `template`."""
    items = (*prompt.demonstrations, prompt.query)
    for item in items:
        if not item.answer.strip():
            raise DataError(f"item {item.id} has an empty answer: nothing could be shown or judged")
    images = tuple(item.image for item in items) if preset.looks else ()
    truth = preset.before + prompt.query.answer.strip()
    if not preset.chat:
        shown = "".join(
            f"{preset.shown(item)}{preset.before}{item.answer.strip()}{preset.between}"
            for item in prompt.demonstrations
        )
        return Written(shown + preset.shown(prompt.query), truth, images)
    if template is None:
        raise ConfigError(
            f"the preset {preset.name!r} needs a chat template, and this model has none:"
            f" take {'documents' if preset.looks else 'captions'!r}"
        )
    return Written(template(turns(prompt, preset)), truth, images, ready=True)


def turns(prompt: Prompt, preset: Preset) -> list[dict[str, Any]]:
    """A turn of the user and one of the assistant for each demonstration, then the query.

    The instruction is in the first turn: not every template takes one of the system.
    """
    said: list[dict[str, Any]] = []
    for item in (*prompt.demonstrations, prompt.query):
        text = preset.shown(item).removeprefix(IMAGE)
        text = text if said else f"{INSTRUCTION}\n{text}"
        answer = item.answer.strip()
        if preset.looks:
            parts = [{"type": "image"}, {"type": "text", "text": text}]
            said.append({"role": "user", "content": parts})
            said.append({"role": "assistant", "content": [{"type": "text", "text": answer}]})
        else:
            said.append({"role": "user", "content": text})
            said.append({"role": "assistant", "content": answer})
    return said[:-1]


# --- prompts as ids
#
# Prompt and true answer are spelt together, as the model would read them, and parted where the
# answer's first letter is. A tokenizer that melts the two into one token is refused for that
# prompt: no log-probability would be the answer's own.


@dataclass(frozen=True)
class Spelt:
    """The ids of a prompt, and those of the true answer, which would follow."""

    prompt: list[int]
    truth: list[int]


class Speller:
    """A tokenizer that says which letters each of its ids stands for."""

    def __init__(self, tokenizer: Any, name: str, image: str = "") -> None:
        if not getattr(tokenizer, "is_fast", False):
            raise ConfigError(
                f"the tokenizer of {name} cannot say where an answer's tokens begin: it needs a"
                " tokenizer.json"
            )
        self.tokenizer, self.name, self.image = tokenizer, name, image
        self.backend = tokenizer.backend_tokenizer
        self.identity = f"{key('spelling', self.backend.to_str(), self.template_text()):032x}"

    def template_text(self) -> str:
        """The chat template, if there is one."""
        return str(getattr(self.tokenizer, "chat_template", None) or "")

    def template(self) -> Callable[[Any], str] | None:
        """What writes a conversation up to where the model speaks."""
        if not self.template_text():
            return None

        def render(messages: Any) -> str:
            text: str = self.tokenizer.apply_chat_template(
                messages, tokenize=False, add_generation_prompt=True, enable_thinking=False
            )
            return text

        return render

    def spelt(self, prompts: Sequence[Written]) -> list[Spelt | DataError]:
        """Ids of prompts and true answers; one that cannot be parted is an error, alone."""
        texts = [prompt.text.replace(IMAGE, self.image) for prompt in prompts]
        whole = [text + prompt.truth for text, prompt in zip(texts, prompts, strict=True)]
        encodings: dict[int, Any] = {}
        for ready in (False, True):
            places = [i for i, prompt in enumerate(prompts) if prompt.ready is ready]
            found = self.backend.encode_batch(
                [whole[place] for place in places], add_special_tokens=not ready
            )
            encodings.update(zip(places, found, strict=True))
        return [
            self.parted(encodings[place], texts[place], prompts[place].truth)
            for place in range(len(prompts))
        ]

    def parted(self, encoding: Any, text: str, truth: str) -> Spelt | DataError:
        """The ids before the answer's first letter, and those from there on."""
        letters = range(len(text), len(text) + len(truth))
        first = next((t for at in letters if (t := encoding.char_to_token(at)) is not None), None)
        if first is None:
            return DataError(f"the tokenizer of {self.name} has no token for the answer {truth!r}")
        begins, _ = encoding.token_to_chars(first)
        if begins < len(text):
            return DataError(
                f"the tokenizer of {self.name} melts the end of the prompt ({text[-10:]!r}) and"
                f" the answer {truth!r} into one token"
            )
        last = encoding.char_to_token(letters[-1])
        end = len(encoding.ids) if last is None else last + 1
        ids = encoding.ids
        while end < len(ids) and encoding.token_to_chars(end) == encoding.token_to_chars(end - 1):
            end += 1  # bytes of one letter
        return Spelt(ids[:first], ids[first:end])

    def text(self, ids: Sequence[int]) -> str:
        """What ids say, without special tokens."""
        decoded: str = self.tokenizer.decode(
            ids, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        return decoded
