"""Prompts as ids: where the true answer begins and ends among them is known, never guessed.

Prompt and true answer are spelt together, as the model would read them, and parted where the
answer's first letter is. A tokenizer that melts the two into one token is refused for that prompt:
no log-probability would be the answer's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from kleash.errors import ConfigError, DataError
from kleash.models.answer.prompting import IMAGE, Written
from kleash.seeds import key


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
