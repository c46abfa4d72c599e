"""A line to a server that may be slow, busy, broken or gone: tries, waits, and when it is down.

Every request ends: with a value, or with an error that says whether one episode is broken or the
server is down. What is asked, and how an answer is read, is the caller's.
"""

from __future__ import annotations

import asyncio
import json
import os
import zlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import httpx
from pydantic import Field

from kleash.config import Config
from kleash.errors import ConfigError
from kleash.runs.run import canonical
from kleash.seeds import generator
from kleash.tasks.envs.contract import EndpointDown, EpisodeBroken

RETRIED = {408, 409, 425, 429}  # and whatever is 500 or more
REFUSED = {401, 403, 404}  # the user's to mend: a key, a path, a name
LONGEST_WAIT = 30.0  # seconds between two tries, whatever the server asks for
LONGEST_BODY = 16 * 2**20  # bytes of an answer, packed or not: 100,000 tokens told one by one are 8
TOO_LONG = f"its answer is longer than {LONGEST_BODY // 2**20} MiB"
# All that reading what should be JSON of a known shape may raise.
UNREADABLE = (
    *(LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError),
)

Value = TypeVar("Value")


class LineOptions(Config):
    """Where the server is, and how patient to be with it."""

    url: str = "http://127.0.0.1:8000"
    """Its address, without a path."""
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
    """Requests in a row that fail for good before the server counts as down."""


@dataclass(frozen=True)
class Outcome(Generic[Value]):
    """What one try led to: a value, or a problem and what it asks for."""

    value: Value | None = None
    problem: str = ""
    wait: float = 0.0
    unreachable: bool = False
    final: bool = False


class Line:
    """The connections of one process to one server."""

    def __init__(self, options: LineOptions) -> None:
        self.where = options
        self._in_a_row = 0
        self._down: str | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def headers(self) -> dict[str, str]:
        """The key, if there is one."""
        secret = os.environ.get(self.where.key)
        packing = {"accept-encoding": "gzip, deflate"}  # what `unpacked` can stop in time
        return packing | ({"authorization": f"Bearer {secret}"} if secret else {})

    def connections(self) -> tuple[httpx.AsyncClient, asyncio.Semaphore]:
        """The client and the places of the running event loop."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._client = httpx.AsyncClient(
                headers=self.headers(),
                timeout=httpx.Timeout(self.where.timeout),
                limits=httpx.Limits(max_connections=self.where.concurrency),
            )
            self._places = asyncio.Semaphore(self.where.concurrency)
            self._loop = loop
        return self._client, self._places

    async def close(self) -> None:
        """Let go of the connections, if they are this event loop's."""
        if self._loop is asyncio.get_running_loop():
            await self._client.aclose()
        self._loop = None

    @property
    def down(self) -> bool:
        """Whether it counts as down: then nothing is asked until it is `back`."""
        return self._down is not None

    async def back(self) -> bool:
        """Whether the server answers again; if so, requests are made again."""
        raise NotImplementedError

    def up(self) -> None:
        """Requests are made again."""
        self._down, self._in_a_row = None, 0

    def gave_up(self) -> None:
        """Called when a request has failed for good."""

    async def patiently(
        self, body: Mapping[str, Any], one_try: Callable[[], Awaitable[Outcome[Value]]]
    ) -> Value:
        """The value, after as many tries as are allowed."""
        jitter = generator("retry", canonical(dict(body)))
        outcome: Outcome[Value] = Outcome()
        for attempt in range(self.where.retries + 1):
            if attempt:
                wait = max(self.where.pause * 2 ** (attempt - 1), outcome.wait)
                await asyncio.sleep(min(wait * (1 + jitter.random()), LONGEST_WAIT))
            if self._down is not None:
                raise EndpointDown(self._down)
            outcome = await one_try()
            if outcome.value is not None:
                self._in_a_row = 0
                return outcome.value
            if outcome.final:
                break
        self.gave_up()
        if outcome.final:
            raise EpisodeBroken(f"{self.where.url}: {outcome.problem}")
        self._in_a_row += 1
        said = f"{self.where.url}: {outcome.problem} ({self.where.retries + 1} tries)"
        if outcome.unreachable or self._in_a_row >= self.where.down_after:
            self._down = said
            raise EndpointDown(said)
        raise EpisodeBroken(said)

    async def post(self, path: str, body: Mapping[str, Any]) -> httpx.Response | Outcome[Any]:
        """What the server answers, or why it did not."""
        client, places = self.connections()
        sent = json.dumps(dict(body)).encode()  # ASCII: half a character cannot be sent otherwise
        how = {"content-type": "application/json"}
        url = self.where.url + path
        try:
            async with (
                places,
                asyncio.timeout(self.where.timeout),
                client.stream("POST", url, content=sent, headers=how) as response,
            ):
                return await read_whole(response)
        except TimeoutError:
            return Outcome(problem=f"no whole answer within {self.where.timeout:g} s")
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            return Outcome(problem=f"cannot be reached: {error}", unreachable=True)
        except httpx.RequestError as error:
            return Outcome(problem=f"{type(error).__name__} {error}".strip())

    def refusal(self, response: httpx.Response) -> Outcome[Any]:
        """What an answer that is no success asks for; what the user must mend is raised."""
        status = response.status_code
        said = f"answered {status}: {' '.join(response.text.split())[:200]}"
        if status in REFUSED:
            raise ConfigError(
                f"{self.where.url} {said}: check its url and model, and ${self.where.key}"
            )
        if status in RETRIED or status >= 500:
            return Outcome(problem=said, wait=seconds(response.headers.get("retry-after")))
        return Outcome(problem=said, final=True)


async def read_whole(response: httpx.Response) -> httpx.Response | Outcome[Any]:
    """An answer with its body, of which no more is held than is allowed."""
    packed = bytearray()
    async for part in response.aiter_raw():
        packed += part
        if len(packed) > LONGEST_BODY:
            return Outcome(problem=TOO_LONG)
    packing = response.headers.get("content-encoding", "identity").strip().lower()
    try:
        body = unpacked(bytes(packed), packing)
    except (zlib.error, ValueError) as error:
        return Outcome(problem=f"its answer cannot be unpacked: {error}")
    if len(body) > LONGEST_BODY:
        return Outcome(problem=TOO_LONG)
    asked = response.headers.get("retry-after")
    headers = {} if asked is None else {"retry-after": asked}
    return httpx.Response(response.status_code, headers=headers, content=body)


def unpacked(body: bytes, packing: str) -> bytes:
    """The body as it was before it was packed; of one that is too long, one byte too many."""
    if packing == "identity":
        return body
    if packing not in ("gzip", "x-gzip", "deflate"):
        raise ValueError(f"it is packed as {packing!r}, which was not asked for")
    return zlib.decompressobj(zlib.MAX_WBITS | 32).decompress(body, LONGEST_BODY + 1)


def found_in(response: httpx.Response, read: Callable[[Any], Value]) -> Outcome[Value]:
    """What `read` makes of a body; one that is not as it should be asks for another try."""
    try:
        return Outcome(value=read(json.loads(response.content)))
    except UNREADABLE as error:
        said = f"{type(error).__name__} {error}"[:300]
        return Outcome(problem=f"an answer that cannot be read ({said}): {response.text[:100]!r}")


def text_in(content: object) -> str:
    """The content of a message as text: none is empty, and half a character is a missing one."""
    if content is None:  # a model that only thought, or only called a tool
        return ""
    if not isinstance(content, str):
        raise TypeError(f"its content is a {type(content).__name__}, no text")
    return content.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def seconds(header: str | None) -> float:
    """What a Retry-After asks for; a date is not understood, and the usual wait is used."""
    try:
        return max(0.0, float(header or 0))
    except ValueError:
        return 0.0
