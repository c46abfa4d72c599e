"""Engines: what lets a language policy talk. Token ids go in; sampled ids and log-probabilities
come out.

Nothing here knows an environment, a reward or a text; who talks to whom is the caller's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from kleash.errors import ConfigError


@dataclass(frozen=True)
class Said:
    """One turn of a policy, its last id the one that stopped it; `stopped` is False if it was cut.

    The log-probabilities are those of the full distribution at the talk's temperature.
    """

    ids: tuple[int, ...]
    logp: tuple[float, ...]
    stopped: bool


@dataclass(eq=False)
class Talk:
    """One conversation. Its draws are named by `key` and the turn; without a key it is greedy."""

    key: tuple[object, ...] | None
    temperature: float = 1.0
    top_p: float = 1.0
    most: int = 256  # ids of a turn, then it is cut
    turns: int = 0

    def __post_init__(self) -> None:
        if not (self.temperature > 0 and 0 < self.top_p <= 1 and self.most > 0):
            raise ValueError(
                "a talk needs a temperature above 0, a top_p above 0 and at most 1, and room for a"
                f" token: {self.temperature}, {self.top_p}, {self.most}"
            )


class Engine(Protocol):
    """Whatever samples from a policy, many conversations at a time."""

    name: str

    def talk(self, key: tuple[object, ...] | None, **options: Any) -> Talk:
        """A conversation that has not begun; its options are those of a `Talk`."""

    async def say(self, talk: Talk, heard: Sequence[int]) -> Said:
        """Hear these ids, then sample until an id that ends a turn, or `most` of them."""

    def forget(self, talk: Talk) -> None:
        """The conversation is over, and what was kept for it may go."""

    def refresh(self, policy: Any) -> None:
        """To be called after each update of the policy: what is said next is said by it."""

    def release(self) -> None:
        """Give back what memory talks alone need, until somebody speaks again; nobody may be
        speaking. Nothing where the engine has none of ours."""


def engine_of(name: str, policy: Any, speech: Any, places: int = 0) -> Engine:
    """The engine of that name for a policy and the way it is spoken to.

    `places` is how many tokens our own one keeps on a GPU; without it, half of what is free.
    """
    kind, _, url = name.partition(":")
    if kind == "own" and not url:
        from kleash.models.engine.decoder import fits
        from kleash.models.engine.own import OwnEngine
        from kleash.models.engine.paged import PagedEngine

        if fits(policy.model):
            return PagedEngine(policy.model, speech.stops, places=places or None)
        return OwnEngine(policy.model, speech.stops)
    if kind in ("vllm", "sglang") and url:
        from kleash.models.engine import servers

        made = servers.VllmEngine if kind == "vllm" else servers.SglangEngine
        return made(servers.ServerOptions(url=url.rstrip("/")), speech.stops)
    raise ConfigError(f"no engine {name!r}: there is own, vllm:URL and sglang:URL")
