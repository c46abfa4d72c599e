"""transformers' continuous batching as an engine: its scheduler and paged cache, our talks.

It runs on a thread of its own, on CPU and GPU. It draws with torch's global generator, so a key
names nothing here but "not greedy": two runs differ, and arms are not paired. Its log-probabilities
are its own, after temperature; what it would report for a truncated distribution is refused.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Collection, Sequence
from typing import Any

from kleash.engine import Said, SoFar, Talk
from kleash.errors import ConfigError
from kleash.language.policy import causal

PAGE = 32  # places that are given out together


class ContinuousEngine:
    """Conversations of one policy; `places` is how many tokens the cache holds at a time."""

    name = "continuous"

    def __init__(self, model: Any, stops: Collection[int], *, places: int = 2**16) -> None:
        self.model = causal(model)
        self.stops = frozenset(stops)
        self.places = places
        self._talks = SoFar()
        self._managers: dict[tuple[bool, float], Any] = {}
        self._number = itertools.count()

    def talk(
        self,
        key: tuple[object, ...] | None,
        *,
        temperature: float = 1.0,
        top_p: float = 1.0,
        most: int = 256,
    ) -> Talk:
        """A conversation that has not begun."""
        made = Talk(key, temperature, top_p, most)
        if top_p < 1 or (key is None and temperature != 1):
            raise ConfigError(
                "continuous batching tells log-probabilities of what it draws from: leave top_p at"
                " 1 and, when greedy, temperature at 1; or use the engine own"
            )
        return self._talks.begin(made)

    async def say(self, talk: Talk, heard: Sequence[int]) -> Said:
        """Hear these ids, then have a turn sampled; all ids go in, and known pages are found."""
        sent = self._talks.heard(talk, heard)
        found = await self._generated(talk, sent)
        if found.error is not None:
            raise RuntimeError(f"continuous batching failed: {found.error}")
        made = tuple(found.generated_tokens)
        self._talks.said(talk, sent, made)
        return Said(made, tuple(found.logprobs), made[-1] in self.stops)

    def forget(self, talk: Talk) -> None:
        """Its ids go; pages are free as soon as a turn ends."""
        self._talks.forget(talk)

    def refresh(self, policy: Any) -> None:
        """Stop the threads: what they keep was computed with the old weights."""
        for manager in self._managers.values():
            manager.stop(block=True)
            manager.destroy()
        self._managers.clear()

    def release(self) -> None:
        """Stop the threads: with them goes their cache, which an update would drop anyway."""
        self.refresh(None)

    async def close(self) -> None:
        """Stop the threads."""
        self.refresh(None)

    async def _generated(self, talk: Talk, sent: list[int]) -> Any:
        """What the manager gives for these ids."""
        manager = self._manager(talk)
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        name = f"talk-{next(self._number)}"

        def arrived(found: Any) -> None:
            if not answer.done():
                answer.set_result(found)

        manager.register_result_handler(name, arrived)
        manager.add_request(sent, name, max_new_tokens=talk.most, eos_token_id=sorted(self.stops))
        try:
            return await answer
        except asyncio.CancelledError:
            manager.cancel_request(name)
            raise

    def _manager(self, talk: Talk) -> Any:
        """The running one for talks of this temperature."""
        kind = (talk.key is None, talk.temperature)
        if kind not in self._managers:
            from transformers import ContinuousBatchingConfig, GenerationConfig

            greedy, temperature = kind
            drawing = {} if greedy else {"temperature": temperature, "top_k": 0, "top_p": 1.0}
            made = self.model.init_continuous_batching(
                generation_config=GenerationConfig(
                    do_sample=not greedy, eos_token_id=sorted(self.stops), **drawing
                ),
                continuous_batching_config=ContinuousBatchingConfig(
                    return_logprobs=True,
                    page_size=PAGE,
                    num_blocks=-(-self.places // PAGE),
                    max_batch_tokens=self.places // 4,
                    # What is sampled must be what is judged again: by the same attention.
                    auto_switch_to_flash=False,
                ),
            )
            made.start()
            self._managers[kind] = made
        return self._managers[kind]
