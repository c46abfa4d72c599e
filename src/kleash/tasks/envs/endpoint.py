"""A model behind an OpenAI-compatible endpoint: asked once, remembered in the ledger.

Nothing that goes wrong here becomes an answer. What is asked, and how an answer is read, is the
caller's; how often it is tried, and when the endpoint is down, is `line`'s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kleash.runs.ledger import Fact, Ledger, prompt_key
from kleash.runs.run import canonical
from kleash.tasks.envs.contract import EpisodeBroken
from kleash.tasks.envs.line import Line, LineOptions, Outcome, found_in, text_in

Messages = Sequence[Mapping[str, str]]


class EndpointOptions(LineOptions):
    """Where the model is, and how patient to be with it."""

    url: str = "http://127.0.0.1:8000/v1"
    """The address up to and with /v1."""
    model: str = "default"
    """The name under which the server knows the model; answers are remembered under it."""


@dataclass(frozen=True)
class Traffic:
    """What was asked, what of it was remembered, and how often a try or a request failed."""

    asked: int = 0
    remembered: int = 0
    failed_tries: int = 0
    failed: int = 0


class Chat(Line):
    """One model that is asked for the next message; nothing is remembered."""

    def __init__(self, options: EndpointOptions) -> None:
        super().__init__(options)
        self.options = options
        self._schemas = True  # until a server refuses them

    async def said(self, body: Mapping[str, Any], schema: Mapping[str, Any] | None = None) -> str:
        """The model's text, after as many tries as are allowed."""
        return await self.patiently(body, lambda: self._one_try(body, schema))

    async def _one_try(
        self, body: Mapping[str, Any], schema: Mapping[str, Any] | None
    ) -> Outcome[str]:
        sent = dict(body) | {"stream": False}  # some servers stream unless they are told
        if schema is not None and self._schemas:
            wrapped = {"name": "answer", "strict": True, "schema": schema}
            sent["response_format"] = {"type": "json_schema", "json_schema": wrapped}
        response = await self.post("/chat/completions", sent)
        if isinstance(response, Outcome):
            return response
        if response.status_code == 200:
            return found_in(
                response, lambda said: text_in(said["choices"][0]["message"]["content"])
            )
        if response.status_code in (400, 422) and "response_format" in sent:
            self._schemas = False  # no fault of anybody: ask again at once, without it
            return await self._one_try(body, None)
        return self.refusal(response)


class Endpoint(Chat):
    """One endpoint for all episodes of a process; without `live` it only remembers."""

    def __init__(self, options: EndpointOptions, ledger: Ledger, *, live: bool = True) -> None:
        super().__init__(options)
        self.traffic = Traffic()
        self._ledger = ledger
        self._live = live

    async def complete(
        self,
        messages: Messages,
        *,
        seed: int,
        temperature: float,
        max_tokens: int,
        schema: Mapping[str, Any] | None = None,
    ) -> str:
        """The model's text; the same request has the same text for ever.

        The schema is left out of what is remembered: not every server takes one.
        """
        body = {
            "model": self.options.model,
            "messages": [dict(message) for message in messages],
            "seed": seed,
            "temperature": temperature,
            "max_tokens": max_tokens,
        }
        asked = prompt_key("chat", canonical(body))
        self._count(asked=1)
        known = self._ledger.lookup(self.options.model, [asked])
        if asked in known:
            self._count(remembered=1)
        elif not self._live:
            raise EpisodeBroken("the recording does not hold this request: nobody made it before")
        else:
            text = await self.patiently(body, lambda: self._counted(body, schema))
            self._ledger.record(self.options.model, {asked: Fact(text)})
            # Read back: of two who asked at once, both get what was recorded first.
            known = self._ledger.lookup(self.options.model, [asked])
        found = known[asked].text
        if found is None:
            raise EpisodeBroken(f"the recording holds an error: {known[asked].error}")
        return found

    async def back(self) -> bool:
        """Whether the endpoint answers a short request again; if so, requests are made again.

        The list of models says little: `transformers serve` without a cache fails to give it.
        """
        messages = [{"role": "user", "content": "Are you there?"}]
        body = {"model": self.options.model, "messages": messages, "max_tokens": 1}
        if (await self._one_try(body, None)).value is None:
            return False
        self.up()
        return True

    def gave_up(self) -> None:
        """Count it."""
        self._count(failed=1)

    async def _counted(
        self, body: Mapping[str, Any], schema: Mapping[str, Any] | None
    ) -> Outcome[str]:
        outcome = await self._one_try(body, schema)
        if outcome.value is None:
            self._count(failed_tries=1)
        return outcome

    def _count(self, **more: int) -> None:
        now = {name: getattr(self.traffic, name) + n for name, n in more.items()}
        self.traffic = replace(self.traffic, **now)
