"""Conversations for real tokenizers: a chat template, tools where it takes them, think blocks.

A template is asked only for what is said to the policy. What the policy said stays as the ids it
sampled, thoughts included, although many templates would leave old thoughts out. That is sound
only where a longer conversation begins with the shorter one: checked once, when a `Chat` is made.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2.exceptions import TemplateError

from kleash.errors import DataError
from kleash.models.language.models import located
from kleash.models.language.words import WORDS_TEMPLATE, Speech, Words
from kleash.seeds import key

THOUGHTS = re.compile(r"<think>\s*(</think>\s*)?$")
"""What a prompt may end with so that the policy thinks first, or does not."""
LAST = "epsilon"
"""What is answered last in the conversation that a template is checked with."""
TOOL = {
    "type": "function",
    "function": {
        "name": "probe",
        "description": "Whether a template takes tools.",
        "parameters": {"type": "object", "properties": {}},
    },
}


class Chat:
    """A tokenizer with its chat template. `thinking` is passed on to templates that know it."""

    def __init__(self, tokenizer: Any, *, name: str = "", thinking: bool = False) -> None:
        self.tokenizer, self.thinking = tokenizer, thinking
        self.name = name or tokenizer.name_or_path or type(tokenizer).__name__
        if not tokenizer.chat_template:
            raise DataError(f"{self.name} has no chat template: take an instruction-tuned model")
        self.takes_system = self._renders([{"role": "system", "content": "Be."}, *_talk("hi")])
        self.takes_tools = "probe" in self._rendered(_talk("hi"), tools=[TOOL])
        end = self._checked_end(tools=[])
        if self.takes_tools:
            end = self._checked_end(tools=[TOOL])
        first, *_ = self._ids(end)
        self.stop = tokenizer.decode([first])
        if not end.startswith(self.stop) or first not in _special(tokenizer):
            raise DataError(
                f"the chat template of {self.name} ends a turn with {end[:20]!r}, which is no"
                " special token: nothing tells where a turn ends"
            )
        self._first = first
        self._before, self._after = end.split(LAST)
        self.stops = frozenset({first, tokenizer.eos_token_id} - {None})
        self.pad = first if tokenizer.pad_token_id is None else int(tokenizer.pad_token_id)
        self.size = len(tokenizer)
        backend = getattr(tokenizer, "backend_tokenizer", None)
        vocabulary = sorted(tokenizer.get_vocab().items()) if backend is None else backend.to_str()
        how = (str(tokenizer.chat_template), thinking)
        self.identity = f"{key('chat', str(vocabulary), *how):032x}"

    def opening(
        self, instructions: str, tools: list[dict[str, Any]], observation: str
    ) -> list[int]:
        """The template's own prompt; tools only where it takes them, as the text tells them too."""
        said = self._first_messages(instructions, observation)
        return self._ids(self._rendered(said, tools=tools if self.takes_tools else []))

    def reply(self, observation: str) -> list[int]:
        """What the template puts between two turns of the policy."""
        return self._ids(self._before + observation + self._after)[1:]

    def text(self, ids: Sequence[int]) -> str:
        """The decoded turn without the id that ended it."""
        said = list(ids[:-1] if ids and ids[-1] in self.stops else ids)
        decoded: str = self.tokenizer.decode(said, clean_up_tokenization_spaces=False)
        return decoded

    def ids(self, text: str) -> list[int]:
        """The text's ids as they stand after a special token, and the stop id."""
        return [*self._ids(self.stop + text)[1:], self._first]

    def _first_messages(self, instructions: str, observation: str) -> list[dict[str, str]]:
        if not instructions:
            return _talk(observation)
        if self.takes_system:
            return [{"role": "system", "content": instructions}, *_talk(observation)]
        return _talk(f"{instructions}\n\n{observation}")

    def _ids(self, text: str) -> list[int]:
        ids: list[int] = self.tokenizer.encode(text, add_special_tokens=False)
        return ids

    def _rendered(self, messages: list[dict[str, str]], *, tools: Sequence[Any] = ()) -> str:
        """The conversation up to where the policy speaks."""
        text: str = self.tokenizer.apply_chat_template(
            messages,
            tools=list(tools) or None,
            tokenize=False,
            add_generation_prompt=True,
            enable_thinking=self.thinking,
        )
        return text

    def _renders(self, messages: list[dict[str, str]]) -> bool:
        """Whether the template takes these messages and shows the first of them."""
        try:
            return messages[0]["content"] in self._rendered(messages)
        except TemplateError:
            return False

    def _checked_end(self, tools: list[dict[str, Any]]) -> str:
        """What follows a turn, if a longer conversation begins with every shorter one."""
        said = self._first_messages("Be brief.", "alpha")
        text, end = self._rendered(said, tools=tools), ""
        for turn, answer in (("beta", "gamma"), ("delta", LAST)):
            said += [{"role": "assistant", "content": turn}, {"role": "user", "content": answer}]
            longer = self._rendered(said, tools=tools)
            start = next(
                (s for s in (text, THOUGHTS.sub("", text)) if longer.startswith(s + turn)), None
            )
            here = "" if start is None else longer[len(start + turn) :]
            if start is None or (end and here != end.replace("gamma", LAST)):
                raise DataError(
                    f"the chat template of {self.name} is refused: a longer conversation does not"
                    f" begin with the shorter one, which ended {text[-60:]!r} and became"
                    f" {longer[max(0, len(text) - 60) : len(text) + 60]!r}; what was said would"
                    " change after it was said. Mend or replace the template"
                )
            text, end = longer, here
        return end


def load_chat(path: Path | str, *, thinking: bool = False) -> Chat:
    """The tokenizer that lies beside a model, or in its GGUF file, with its chat template."""
    return Chat(load_tokenizer(path), name=str(path), thinking=thinking)


def load_speech(path: Path | str) -> Speech:
    """How a model in a folder is spoken to: by its chat template; ours of words, word by word."""
    tokenizer = load_tokenizer(path)
    if tokenizer.chat_template != WORDS_TEMPLATE:
        return Chat(tokenizer, name=str(path))
    vocabulary = tokenizer.get_vocab()
    return Words(sorted(vocabulary, key=lambda word: int(vocabulary[word]))[1:])


def load_tokenizer(path: Path | str) -> Any:
    """The tokenizer that lies beside a model, or in its GGUF file."""
    from transformers import AutoTokenizer

    folder, options = located(path)
    try:
        return AutoTokenizer.from_pretrained(folder, local_files_only=True, **options)
    except (OSError, ValueError, KeyError, ImportError) as error:
        raise DataError(f"{path} has no tokenizer that can be loaded: {error}") from error


def _talk(observation: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": observation}]


def _special(tokenizer: Any) -> set[int]:
    """The ids that no ordinary text is turned into."""
    added: dict[int, Any] = tokenizer.added_tokens_decoder
    return {*tokenizer.all_special_ids, *(i for i, token in added.items() if token.special)}
