"""How a conversation becomes token ids and back; here for a vocabulary of whole words.

Real tokenizers and their chat templates are in `chat`. What is trained on are ids as they were
sampled: a text is never turned into ids again once a policy has said it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from kleash.errors import DataError
from kleash.seeds import key
from kleash.tasks.envs.world import vocabulary

WORDS_TEMPLATE = "BOS{% for message in messages %} {{ message['content'] }}{% endfor %}"
"""How a tokenizer of whole words is exported: it is told by it when it comes back."""


class Speech(Protocol):
    """Ids of what is said to a policy, texts of what it says."""

    @property
    def identity(self) -> str:
        """The hash of vocabulary and template: the same ids mean the same texts."""

    @property
    def size(self) -> int:
        """How many ids there are."""

    @property
    def stops(self) -> frozenset[int]:
        """The ids that end a turn."""

    @property
    def pad(self) -> int:
        """An id for places that nobody looks at."""

    def opening(
        self, instructions: str, tools: list[dict[str, Any]], observation: str
    ) -> list[int]:
        """The ids up to where the policy speaks for the first time."""

    def reply(self, observation: str) -> list[int]:
        """The ids from after the policy's stop id to where it speaks again."""

    def text(self, ids: Sequence[int]) -> str:
        """What a turn says, as an environment reads it."""

    def ids(self, text: str) -> list[int]:
        """A turn as the policy would say it, with its stop id."""


class Words:
    """One id for each word; the first id is where every conversation begins.

    The word `;` ends a turn and is part of its text, as the token surface wants it.
    """

    def __init__(self, words: Sequence[str] | None = None) -> None:
        self.words = ["BOS", *(vocabulary() if words is None else words)]
        self.number = {word: index for index, word in enumerate(self.words)}
        if len(self.number) < len(self.words) or ";" not in self.number:
            raise DataError("a vocabulary needs every word once, `;` among them, and not BOS")
        self.identity = f"{key('words', *self.words):032x}"
        self.size = len(self.words)
        self.stops = frozenset({self.number[";"]})
        self.pad = 0

    def opening(
        self, instructions: str, tools: list[dict[str, Any]], observation: str
    ) -> list[int]:
        """BOS, then every word of the instructions and the observation."""
        if tools:
            raise DataError("a vocabulary of words has no tools: play the token surface")
        return [0, *self._numbers(instructions), *self._numbers(observation)]

    def reply(self, observation: str) -> list[int]:
        """Every word of the observation."""
        return self._numbers(observation)

    def text(self, ids: Sequence[int]) -> str:
        """The words with spaces between them."""
        return " ".join(self.words[number] for number in ids)

    def ids(self, text: str) -> list[int]:
        """The numbers of the words; the last one ends the turn."""
        numbers = self._numbers(text)
        if numbers[-1:] != [self.number[";"]]:
            numbers.append(self.number[";"])
        return numbers

    def _numbers(self, text: str) -> list[int]:
        words = text.split()
        if unknown := [word for word in words if word not in self.number]:
            raise DataError(
                f"not in the vocabulary of {self.size} words: {', '.join(sorted({*unknown}))};"
                " words play the token surface of the embedded world"
            )
        return [self.number[word] for word in words]
