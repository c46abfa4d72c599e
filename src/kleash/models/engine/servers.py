"""vLLM and SGLang as engines: token ids in, token ids and log-probabilities out, over HTTP.

A server keeps what it likes of a conversation (its prefix cache); here its ids are kept, and sent
anew in each turn. Every request ends: with a turn, or with an error that says whether one episode
is broken or the server is down. Draws are named by a seed, but a server need not draw the same in
other company. What these servers need to be started with is in docs/language.md.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import shutil
import tempfile
import weakref
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx
from pydantic import Field

from kleash.errors import ConfigError
from kleash.models.engine import Said, Talk
from kleash.models.language.models import merged
from kleash.seeds import key
from kleash.tasks.envs.line import UNREADABLE, Line, LineOptions, Outcome


class ServerOptions(LineOptions):
    """Where the server is, and how patient to be with it."""

    model: str = ""
    """The name under which it knows the policy; empty for the one it was started with."""
    concurrency: int = Field(256, ge=1)
    """Requests under way at once."""
    timeout: float = Field(600.0, gt=0)
    """Seconds for one try: a turn of thousands of ids, among hundreds that are under way."""
    processed: bool = False
    """Whether vLLM runs with --logprobs-mode processed_logprobs, as other temperatures need."""
    folder: str = ""
    """Where updated weights are written for it to read; empty for a temporary folder."""


class Unreadable(Exception):
    """A reply that is no turn."""


class Server(Line, ABC):
    """Conversations of one policy with a server in one event loop."""

    name: str

    def __init__(self, options: ServerOptions, stops: Collection[int]) -> None:
        super().__init__(options)
        self.options = options
        self.stops = frozenset(stops)
        self._ids: dict[Talk, list[int]] = {}  # all that was heard and said so far
        self._weights: Path | None = None

    def talk(self, key: tuple[object, ...] | None, **options: Any) -> Talk:
        """A conversation that has not begun; refused where its log-probabilities are not told."""
        made = Talk(key, **options)
        self.check(made)
        self._ids[made] = []
        return made

    async def say(self, talk: Talk, heard: Sequence[int]) -> Said:
        """Hear these ids, then have the server sample a turn."""
        so_far = self._ids.get(talk)
        if so_far is None:
            raise RuntimeError("this talk is forgotten, or another engine's")
        if not so_far and not heard:
            raise ValueError("a talk cannot begin with nothing heard")
        sent = [*so_far, *map(int, heard)]
        body = self.body(talk, sent)
        said = await self.patiently(body, lambda: self._one_try(body, sent))
        if talk in self._ids:  # it may be forgotten by now
            self._ids[talk] = [*sent, *said.ids]
        talk.turns += 1
        return said

    def forget(self, talk: Talk) -> None:
        """Its ids go; the server forgets by itself."""
        self._ids.pop(talk, None)

    def refresh(self, policy: Any) -> None:
        """Write the policy's weights to the folder and have the server read them.

        One that cannot be reached counts as down, and reads them when it is back.
        """
        if self._weights is None:
            if self.options.folder:
                self._weights = Path(self.options.folder) / f"kleash-{os.getpid()}"
            else:
                self._weights = Path(tempfile.mkdtemp(prefix="kleash-"))
                weakref.finalize(self, shutil.rmtree, self._weights, ignore_errors=True)
        merged(policy.model).save_pretrained(self._weights)
        try:
            self._read_weights()
        except httpx.RequestError as error:
            self._down = f"{self.options.url}: {error}"

    def _read_weights(self) -> None:
        """Have the server read what was written last."""
        headers = self.headers()
        with httpx.Client(timeout=self.options.timeout, headers=headers) as client:
            for path, body in self.reloading(str(self._weights)):
                response = client.post(self.options.url + path, json=body)
                said = " ".join(response.text.split())[:200]
                if response.status_code != 200 or '"success":false' in said.replace(" ", ""):
                    raise ConfigError(
                        f"{self.options.url}{path} answered {response.status_code}: {said}: the"
                        " server still has the old weights; docs/language.md says how to start it"
                    )

    def release(self) -> None:
        """Nothing: what the server keeps is on its own device."""

    async def back(self) -> bool:
        """Whether the server is healthy; if so, requests are made again.

        It may have been started again, with other weights: it is given the policy's once more.
        """
        client, _ = self.connections()
        try:
            healthy = (await client.get(f"{self.options.url}/health")).status_code == 200
            if healthy and self._weights is not None:
                await asyncio.to_thread(self._read_weights)
        except httpx.RequestError:
            healthy = False
        if healthy:
            self.up()
        return healthy

    # What the two differ in

    path: str

    @abstractmethod
    def check(self, talk: Talk) -> None:
        """Refuse a talk whose log-probabilities the server would report for another law."""

    @abstractmethod
    def body(self, talk: Talk, ids: Sequence[int]) -> dict[str, Any]:
        """The request for a turn."""

    @abstractmethod
    def read(self, reply: Any, sent: Sequence[int]) -> tuple[list[int], list[float], bool]:
        """Ids, log-probabilities and whether the server says it was stopped."""

    @abstractmethod
    def reloading(self, folder: str) -> list[tuple[str, dict[str, Any]]]:
        """The requests that make the server read its weights from a folder."""

    async def _one_try(self, body: Mapping[str, Any], sent: Sequence[int]) -> Outcome[Said]:
        response = await self.post(self.path, body)
        if isinstance(response, Outcome):
            return response
        if response.status_code != 200:
            return self.refusal(response)
        try:
            return Outcome(value=self._turn(response, sent))
        except (*UNREADABLE, Unreadable) as error:
            return Outcome(problem=f"no turn in {response.text[:100]!r}: {error}")

    def _turn(self, response: httpx.Response, sent: Sequence[int]) -> Said:
        """The turn in a reply, if it is one that could have been sampled here."""
        ids, logp, stopped = self.read(json.loads(response.content), sent)
        if not ids or len(ids) != len(logp):
            raise Unreadable(f"{len(ids)} ids and {len(logp)} log-probabilities")
        if not all(type(each) is int for each in ids):
            raise Unreadable("an id that is no number")
        if not all(math.isfinite(each) and each <= 1e-6 for each in logp):
            raise Unreadable("a log-probability that is none")
        if stopped and ids[-1] not in self.stops:
            raise Unreadable("what stopped the turn must be its last id")
        return Said(tuple(ids), tuple(map(float, logp)), ids[-1] in self.stops)


class VllmEngine(Server):
    """vLLM's `/v1/completions`, asked with ids and for ids."""

    name = "vllm"
    path = "/v1/completions"

    def check(self, talk: Talk) -> None:
        """Its log-probabilities are before temperature and top-p, or after both."""
        cold = talk.temperature == 1
        if self.options.processed:
            told = (talk.key is not None and talk.top_p == 1) or (talk.key is None and cold)
        else:
            told = cold
        if not told:
            raise ConfigError(
                "vLLM does not tell the log-probabilities of the whole distribution at temperature"
                f" {talk.temperature:g} with top_p {talk.top_p:g}: use temperature 1, or start it"
                " with --logprobs-mode processed_logprobs, say so (processed), and leave top_p at 1"
            )

    def body(self, talk: Talk, ids: Sequence[int]) -> dict[str, Any]:
        """A completion of ids. The model's own end of text is no end here unless it is a stop."""
        made = {
            "prompt": list(ids),
            "max_tokens": talk.most,
            "temperature": 0.0 if talk.key is None else talk.temperature,
            "top_p": talk.top_p,
            "logprobs": 1,
            "stop_token_ids": sorted(self.stops),
            "ignore_eos": True,
            "return_token_ids": True,
            "skip_special_tokens": False,
            "stream": False,
        }
        if talk.key is not None:
            made["seed"] = key("gumbel", *talk.key, talk.turns) % 2**63
        return made | ({"model": self.options.model} if self.options.model else {})

    def read(self, reply: Any, sent: Sequence[int]) -> tuple[list[int], list[float], bool]:
        """The one choice of a completion."""
        choice = reply["choices"][0]
        read = choice.get("prompt_token_ids")
        if read is not None and list(read) != list(sent):
            raise Unreadable("the server read other ids than were sent")
        if choice["finish_reason"] not in ("stop", "length"):
            raise Unreadable(f"it ended with {choice['finish_reason']!r}")
        return (
            choice["token_ids"],
            choice["logprobs"]["token_logprobs"],
            (choice["finish_reason"] == "stop"),
        )

    def reloading(self, folder: str) -> list[tuple[str, dict[str, Any]]]:
        """All workers read the folder, then what was computed with old weights is dropped."""
        return [
            # By name: what comes first there is an iterator of weights.
            ("/collective_rpc", {"method": "reload_weights", "kwargs": {"weights_path": folder}}),
            ("/reset_prefix_cache", {}),
        ]


class SglangEngine(Server):
    """SGLang's own `/generate`."""

    name = "sglang"
    path = "/generate"

    def check(self, talk: Talk) -> None:
        """Its log-probabilities are after temperature and before top-p; greedy ones at 1."""
        if talk.key is None and talk.temperature != 1:
            raise ConfigError("SGLang tells greedy log-probabilities at temperature 1 only")

    def body(self, talk: Talk, ids: Sequence[int]) -> dict[str, Any]:
        """A generation from ids."""
        sampling = {
            "max_new_tokens": talk.most,
            "temperature": 0.0 if talk.key is None else talk.temperature,
            "top_p": talk.top_p,
            "stop_token_ids": sorted(self.stops),
            "ignore_eos": True,
            "skip_special_tokens": False,
        }
        if talk.key is not None:
            sampling["sampling_seed"] = key("gumbel", *talk.key, talk.turns) % 2**31
        return {
            "input_ids": list(ids),
            "sampling_params": sampling,
            "return_logprob": True,
            "stream": False,
        }

    def read(self, reply: Any, sent: Sequence[int]) -> tuple[list[int], list[float], bool]:
        """Pairs of log-probability and id, and why it ended."""
        told = reply["meta_info"]
        if told["prompt_tokens"] != len(sent):
            raise Unreadable(f"it read {told['prompt_tokens']} ids of {len(sent)}")
        kind = told["finish_reason"]["type"]
        if kind not in ("stop", "length"):
            raise Unreadable(f"it ended with {told['finish_reason']}")
        pairs = told["output_token_logprobs"]
        return [pair[1] for pair in pairs], [pair[0] for pair in pairs], kind == "stop"

    def reloading(self, folder: str) -> list[tuple[str, dict[str, Any]]]:
        """Read the folder and drop what was computed with old weights."""
        return [("/update_weights_from_disk", {"model_path": folder, "flush_cache": True})]
