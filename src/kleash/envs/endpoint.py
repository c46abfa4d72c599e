"""A model behind an OpenAI-compatible endpoint: asked once, remembered in the ledger.

Every request ends: with a text, or with an error that says whether one episode is broken or the
endpoint is down. Nothing that goes wrong here becomes an answer. What is asked, and how an answer
is read, is the caller's.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import httpx
from pydantic import Field

from kleash.config import Config
from kleash.envs.contract import EndpointDown, EpisodeBroken
from kleash.errors import ConfigError
from kleash.ledger import Fact, Ledger, prompt_key
from kleash.runs import canonical
from kleash.seeds import generator

RETRIED = {408, 409, 425, 429}  # and whatever is 500 or more
REFUSED = {401, 403, 404}  # the user's to mend: a key, a path, a name
LONGEST_WAIT = 30.0  # seconds between two tries, whatever the server asks for

Messages = Sequence[Mapping[str, str]]


class EndpointOptions(Config):
    """Where the model is, and how patient to be with it."""

    url: str = "http://127.0.0.1:8000/v1"
    """The address up to and with /v1."""
    model: str = "default"
    """The name under which the server knows the model; answers are remembered under it."""
    key: str = "OPENAI_API_KEY"
    """The environment variable that holds the key, if one is needed."""
    timeout: float = Field(60.0, gt=0)
    """Seconds for one try, from the first byte sent to the last one received."""
    retries: int = Field(4, ge=0)
    """Further tries after a failure."""
    pause: float = Field(0.5, ge=0)
    """Seconds before the first further try; they double from try to try."""
    concurrency: int = Field(16, ge=1)
    """Requests under way at once."""
    down_after: int = Field(3, ge=1)
    """Requests in a row that fail for good before the endpoint counts as down."""


@dataclass(frozen=True)
class Traffic:
    """What was asked, what of it was remembered, and how often a try or a request failed."""

    asked: int = 0
    remembered: int = 0
    failed_tries: int = 0
    failed: int = 0


class Endpoint:
    """One endpoint for all episodes of a process; without `live` it only remembers."""

    def __init__(self, options: EndpointOptions, ledger: Ledger, *, live: bool = True) -> None:
        self.options = options
        self.traffic = Traffic()
        self._ledger = ledger
        self._live = live
        self._schemas = True  # until a server refuses them
        self._in_a_row = 0
        self._down: str | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

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
            text = await self._bought(body, schema)
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
        if (await self._one_try(body, None)).text is None:
            return False
        self._down, self._in_a_row = None, 0
        return True

    async def close(self) -> None:
        """Let go of the connections, if they are this event loop's."""
        if self._loop is asyncio.get_running_loop():
            await self._client.aclose()
        self._loop = None

    def _connections(self) -> tuple[httpx.AsyncClient, asyncio.Semaphore]:
        """The client and the places of the running event loop."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            secret = os.environ.get(self.options.key)
            self._client = httpx.AsyncClient(
                headers={"authorization": f"Bearer {secret}"} if secret else {},
                timeout=httpx.Timeout(self.options.timeout),
                limits=httpx.Limits(max_connections=self.options.concurrency),
            )
            self._places = asyncio.Semaphore(self.options.concurrency)
            self._loop = loop
        return self._client, self._places

    async def _bought(self, body: Mapping[str, Any], schema: Mapping[str, Any] | None) -> str:
        """The text, after as many tries as are allowed."""
        jitter = generator("retry", canonical(dict(body)))
        outcome = _Outcome()
        for attempt in range(self.options.retries + 1):
            if attempt:
                wait = max(self.options.pause * 2 ** (attempt - 1), outcome.wait)
                await asyncio.sleep(min(wait * (1 + jitter.random()), LONGEST_WAIT))
            if self._down is not None:
                raise EndpointDown(self._down)
            outcome = await self._one_try(body, schema)
            if outcome.refused_schema:  # no fault of anybody: ask again at once, without it
                self._schemas = False
                outcome = await self._one_try(body, None)
            if outcome.text is not None:
                self._in_a_row = 0
                return outcome.text
            self._count(failed_tries=1)
            if outcome.final:
                break
        self._count(failed=1)
        if outcome.final:
            raise EpisodeBroken(f"{self.options.url}: {outcome.problem}")
        self._in_a_row += 1
        said = f"{self.options.url}: {outcome.problem} ({self.options.retries + 1} tries)"
        if outcome.unreachable or self._in_a_row >= self.options.down_after:
            self._down = said
            raise EndpointDown(said)
        raise EpisodeBroken(said)

    async def _one_try(self, body: Mapping[str, Any], schema: Mapping[str, Any] | None) -> _Outcome:
        client, places = self._connections()
        sent = dict(body) | {"stream": False}  # some servers stream unless they are told
        if schema is not None and self._schemas:
            wrapped = {"name": "answer", "strict": True, "schema": schema}
            sent["response_format"] = {"type": "json_schema", "json_schema": wrapped}
        try:
            async with places, asyncio.timeout(self.options.timeout):
                response = await client.post(f"{self.options.url}/chat/completions", json=sent)
        except TimeoutError:
            return _Outcome(problem=f"no whole answer within {self.options.timeout:g} s")
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            return _Outcome(problem=f"cannot be reached: {error}", unreachable=True)
        except httpx.RequestError as error:
            return _Outcome(problem=f"{type(error).__name__} {error}".strip())
        return self._read(response, asked_schema="response_format" in sent)

    def _read(self, response: httpx.Response, *, asked_schema: bool) -> _Outcome:
        status = response.status_code
        if status == 200:
            return _text_of(response)
        said = f"answered {status}: {' '.join(response.text.split())[:200]}"
        if status in REFUSED:
            raise ConfigError(
                f"{self.options.url} {said}: check its url and model, and ${self.options.key}"
            )
        if status in (400, 422) and asked_schema:
            return _Outcome(problem=said, refused_schema=True)
        if status in RETRIED or status >= 500:
            return _Outcome(problem=said, wait=_seconds(response.headers.get("retry-after")))
        return _Outcome(problem=said, final=True)

    def _count(self, **more: int) -> None:
        now = {name: getattr(self.traffic, name) + n for name, n in more.items()}
        self.traffic = replace(self.traffic, **now)


@dataclass(frozen=True)
class _Outcome:
    """What one try led to: a text, or a problem and what it asks for."""

    text: str | None = None
    problem: str = ""
    wait: float = 0.0
    unreachable: bool = False
    refused_schema: bool = False
    final: bool = False


def _text_of(response: httpx.Response) -> _Outcome:
    """The text in a body that should be a chat completion."""
    try:
        content = response.json()["choices"][0]["message"]["content"]
    except (json.JSONDecodeError, UnicodeDecodeError, LookupError, TypeError):
        return _Outcome(problem=f"no chat completion in the answer: {response.text[:100]!r}")
    if content is None:  # a model that only thought, or only called a tool
        return _Outcome(text="")
    if not isinstance(content, str):
        return _Outcome(problem=f"the content of the answer is no text: {str(content)[:100]!r}")
    return _Outcome(text=content)


def _seconds(header: str | None) -> float:
    """What a Retry-After asks for; a date is not understood, and the usual wait is used."""
    try:
        return max(0.0, float(header or 0))
    except ValueError:
        return 0.0
