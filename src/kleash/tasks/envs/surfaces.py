"""How a policy's text is read, and how it is told to write: as text, or as few fixed tokens.

The text surface takes `[action] …` and the same as a tool call; the token surface is for tiny
models with a vocabulary of words. Nothing here knows a task.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from kleash.errors import ConfigError

TOOL = "interact_with_env"
BRACKET = re.compile(r"[\[{]")
STOPS, PAIRS = 0.1, 0.1  # of the examples of the token surface: ends, and questions for two slots
STRAY = 100  # so that no text takes long to read, whatever a policy writes


@dataclass(frozen=True)
class Action:
    """What a policy chose to do: one of the surface's choices, and what goes with it."""

    choice: str
    content: str = ""


class Surface(Protocol):
    """A way of speaking."""

    @property
    def instructions(self) -> str:
        """What a policy is told before the first observation."""

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The same as a tool, for chat templates that take one; empty if there is none."""

    @property
    def unreadable(self) -> str:
        """The observation after a text that cannot be read."""

    def read(self, text: str) -> Action | None:
        """The action in a text, or none if there is none."""

    def example(self, rng: np.random.Generator) -> str:
        """A well-formed action drawn at random: what a policy imitates before it learns."""


@dataclass(frozen=True)
class TextSurface:
    """`[action] <question>`, `[finish]`; or a tool call with a choice and a content."""

    goal: str
    choices: tuple[str, ...] = ("action", "finish")
    bare: frozenset[str] = field(default=frozenset({"finish"}))  # those that need no content
    meaning: str = "ask the user one question"

    @property
    def instructions(self) -> str:
        """What a policy is told before the first observation."""
        ways = [f"`[{c}]`" if c in self.bare else f"`[{c}] …`" for c in self.choices]
        return (
            f"{self.goal} In each turn write exactly one line: {' or '.join(ways)}."
            f" `[action] …` means: {self.meaning}."
        )

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The choices as one function, in the form that chat templates take."""
        parameters = {
            "type": "object",
            "properties": {
                "choice": {"type": "string", "enum": list(self.choices)},
                "content": {"type": "string", "description": self.meaning},
            },
            "required": ["choice", "content"],
        }
        described = {"name": TOOL, "description": self.goal, "parameters": parameters}
        return [{"type": "function", "function": described}]

    @property
    def unreadable(self) -> str:
        """What the user says to a text without an action."""
        return "I could not read that. Write one line that begins with " + " or ".join(
            f"[{choice}]" for choice in self.choices
        )

    def read(self, text: str) -> Action | None:
        """The one action in the text; two different ones are none."""
        text = without_thoughts(text)
        call = _tool_call(text)
        if call is not None:
            choice, content = call
            # Some models repeat the tag inside the content of the call.
            content = re.sub(rf"^\[{re.escape(choice)}\]\s*", "", content.strip(), flags=re.I)
            return self._checked(choice, content)
        tag = re.match(r"\[(\w+)\]", text)
        if tag is None:
            return None
        rest = text[tag.end() :]
        if any(re.match(r"\[\w+\]", line.lstrip()) for line in rest.split("\n")[1:]):
            return None
        return self._checked(tag[1], rest)

    def example(self, rng: np.random.Generator) -> str:
        """None: nobody can ask a sensible question at random."""
        raise ConfigError(
            "the text surface has no examples to imitate: start from a model that can talk,"
            " or set gym.surface=tokens"
        )

    def _checked(self, choice: str, content: str) -> Action | None:
        choice, content = choice.lower(), " ".join(content.split())
        if choice not in self.choices or not (content or choice in self.bare):
            return None
        return Action(choice, content)


@dataclass(frozen=True)
class TokenSurface:
    """`ASK slot {slot} ;` and `STOP ;`: every action is a few words of a small vocabulary."""

    slots: tuple[str, ...]
    instructions: str = ""
    unreadable: str = "USER HUH ;"

    @property
    def tools(self) -> list[dict[str, Any]]:
        """None: a tiny model calls nothing."""
        return []

    def read(self, text: str) -> Action | None:
        """An action whose content is the slots asked for."""
        words = text.split()
        if words == ["STOP", ";"]:
            return Action("finish")
        if len(words) < 3 or words[0] != "ASK" or words[-1] != ";":
            return None
        asked = words[1:-1]
        return Action("action", " ".join(asked)) if set(asked) <= set(self.slots) else None

    def example(self, rng: np.random.Generator) -> str:
        """A question for one slot, now and then for two, seldom the end."""
        drawn = rng.random()
        if drawn < STOPS:
            return "STOP ;"
        asked = rng.choice(len(self.slots), size=2 if drawn > 1 - PAIRS else 1, replace=False)
        return " ".join(["ASK", *(self.slots[place] for place in asked), ";"])


def without_thoughts(text: str) -> str:
    """The text without think blocks: closed, never closed, or opened by the prompt."""
    kept, thinking, at = [], False, 0
    for tag in re.finditer(r"<(/?)think>", text, flags=re.I):
        if not thinking:
            kept.append(text[at : tag.start()])
        if tag[1] and not thinking:  # closed without having been opened: all before were thoughts
            kept = []
        thinking, at = not tag[1], tag.end()
    return "".join([*kept, "" if thinking else text[at:]]).strip()


def _tool_call(text: str) -> tuple[str, str] | None:
    """Choice and content of the one call of our tool, wherever in the text it stands."""
    calls = [call for call in json_values(text) if isinstance(call, dict) and "name" in call]
    if len(calls) != 1 or calls[0]["name"] != TOOL:
        return None
    arguments = calls[0].get("arguments", calls[0].get("parameters"))
    if isinstance(arguments, str):  # OpenAI's servers give the arguments as a text of JSON
        arguments = next(iter(json_values(arguments)), None)
    if not isinstance(arguments, dict):
        return None
    choice, content = arguments.get("choice"), arguments.get("content", "")
    return (choice, content) if isinstance(choice, str) and isinstance(content, str) else None


def json_values(text: str) -> list[Any]:
    """Every JSON object or list in a text, outermost ones, in order.

    After as many brackets as `STRAY` that begin none, the rest is not looked at.
    """
    decoder, found, at, stray = json.JSONDecoder(), [], 0, 0
    while stray < STRAY and (start := BRACKET.search(text, at)):
        try:
            value, at = decoder.raw_decode(text, start.start())
            found.append(value)
        except (ValueError, RecursionError):
            at = start.end()
            stray += 1
    return found
