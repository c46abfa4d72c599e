"""An answerer behind an OpenAI-compatible endpoint: vLLM, SGLang and others, with images or not.

Each prompt is two requests: one for words, one for the true answer's log-probability, which is that
of the answer's own tokens at the end of what was asked. A server that does not tell it is refused:
no number stands in for it. The weights behind an endpoint cannot be seen from here, so its answers
are kept under the name of the model and its `revision`: give another when they change.
"""

from __future__ import annotations

import asyncio
import base64
import functools
import io
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from kleash.errors import ConfigError, KleashError
from kleash.models.answer import Images
from kleash.models.answer.prompting import preset_of, turns, written
from kleash.tasks.envs.contract import EndpointDown, EpisodeBroken, beside
from kleash.tasks.envs.line import Line, LineOptions, Outcome, found_in, text_in
from kleash.types import Answer, Prompt

Value = TypeVar("Value")
NOT_TOLD = (
    "does not tell the log-probability of the prompt's own tokens ({}), and nothing can stand in"
    " for it: serve the model with vLLM, or take answerer = 'transformers'"
)


class Remote:
    """Asks a server, many prompts at a time; greedy."""

    def __init__(  # noqa: PLR0913  # its options, by their names in a recipe
        self,
        images: Images,
        model: str,
        *,
        url: str = "http://127.0.0.1:8000/v1",
        key: str = "OPENAI_API_KEY",
        revision: str = "",
        prompt: str = "chat",
        tokens: int = 5,
        timeout: float = 60.0,
        retries: int = 4,
        pause: float = 0.5,
        concurrency: int = 16,
    ) -> None:
        self.preset = preset_of(prompt)
        if self.preset.looks and not self.preset.chat:
            raise ConfigError(
                f"an endpoint takes images in turns of a conversation only, not in {prompt!r}: set"
                " prompt = 'chat'"
            )
        self.images, self.model, self.tokens = images, model, tokens
        self.looks = self.preset.looks
        self.line = Line(
            LineOptions(
                url=url,
                key=key,
                timeout=timeout,
                retries=retries,
                pause=pause,
                concurrency=concurrency,
            )
        )
        self.identity = f"{model}@{revision or 'served'} {prompt}, greedy, {tokens} tokens, remote"
        self.shown = functools.cache(self.as_part)

    def answer(self, prompts: Sequence[Prompt]) -> list[Answer]:
        """An answer for every prompt; one that the server cannot answer breaks alone."""
        return beside(lambda: asyncio.run(self.answer_all(prompts)))

    async def answer_all(self, prompts: Sequence[Prompt]) -> list[Answer]:
        """All at once, as many requests under way as the line allows."""
        self.line.up()
        try:
            return await asyncio.gather(*(self.answer_one(prompt) for prompt in prompts))
        finally:
            await self.line.close()

    async def answer_one(self, prompt: Prompt) -> Answer:
        """Words, and the truth's log-probability."""
        ask = Chatted(self, prompt) if self.preset.chat else Completed(self, prompt)
        try:
            text = await self.asked(ask.path, ask.words(), ask.said)
            logp = await self.asked(ask.path, ask.judged(), ask.truth_logp)
        except EndpointDown as error:
            raise KleashError(str(error)) from None
        except EpisodeBroken as error:
            return Answer("", math.nan, error=str(error))
        return Answer(self.preset.cut(text), logp)

    async def asked(
        self, path: str, body: Mapping[str, Any], read: Callable[[Any], Value]
    ) -> Value:
        """What `read` finds in the server's answer, after as many tries as are allowed."""

        async def one_try() -> Outcome[Value]:
            response = await self.line.post(path, body)
            if isinstance(response, Outcome):
                return response
            if response.status_code != 200:
                return self.line.refusal(response)
            return found_in(response, read)

        return await self.line.patiently(body, one_try)

    def as_part(self, name: str) -> str:
        """An image as part of a message."""
        from PIL import Image

        file = io.BytesIO()
        Image.fromarray(self.images(name)).save(file, format="PNG")
        return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"


class Chatted:
    """A conversation; the truth is its last turn, which the server is asked to read, not to end."""

    path = "/chat/completions"

    def __init__(self, remote: Remote, prompt: Prompt) -> None:
        self.remote, self.truth = remote, prompt.query.answer.strip()
        self.messages = turns(prompt, remote.preset)
        names = iter([item.image for item in (*prompt.demonstrations, prompt.query)])
        for message in self.messages:
            for at, part in enumerate(message["content"]) if remote.looks else ():
                if part["type"] == "image":
                    url = {"url": remote.shown(next(names))}
                    message["content"][at] = {"type": "image_url", "image_url": url}

    def words(self) -> dict[str, Any]:
        """The request for words."""
        how = {"temperature": 0.0, "max_tokens": self.remote.tokens, "stream": False}
        return {"model": self.remote.model, "messages": self.messages, **how}

    def judged(self) -> dict[str, Any]:
        """The request for the truth's log-probability."""
        last = {"role": "assistant", "content": self.truth}
        return self.words() | {
            "messages": [*self.messages, last],
            "add_generation_prompt": False,
            "continue_final_message": True,
            "prompt_logprobs": 0,
            "max_tokens": 1,
        }

    def said(self, body: Any) -> str:
        """The words in an answer."""
        return text_in(body["choices"][0]["message"]["content"])

    def truth_logp(self, body: Any) -> float:
        """The sum over the last tokens of the prompt, which must spell the truth."""
        told = body.get("prompt_logprobs")
        if not told:
            raise ConfigError(f"{self.remote.line.where.url} {NOT_TOLD.format('prompt_logprobs')}")
        spelt, total = "", 0.0
        for place in reversed(told):
            if spelt == self.truth or place is None:
                break
            (one,) = place.values()
            spelt, total = one["decoded_token"] + spelt, total + float(one["logprob"])
        if spelt != self.truth:
            raise ValueError(f"its prompt ends with {spelt!r}, not with {self.truth!r}")
        return likely(total)


class Completed:
    """Running text, echoed with log-probabilities; where each token begins is told too."""

    path = "/completions"

    def __init__(self, remote: Remote, prompt: Prompt) -> None:
        self.remote, self.text = remote, written(prompt, remote.preset, None)

    def words(self) -> dict[str, Any]:
        """The request for words."""
        how = {"temperature": 0.0, "max_tokens": self.remote.tokens, "stream": False}
        return {"model": self.remote.model, "prompt": self.text.text, **how}

    def judged(self) -> dict[str, Any]:
        """The request for the truth's log-probability."""
        whole = self.text.text + self.text.truth
        return self.words() | {"prompt": whole, "echo": True, "logprobs": 1, "max_tokens": 1}

    def said(self, body: Any) -> str:
        """The words in an answer."""
        return text_in(body["choices"][0]["text"])

    def truth_logp(self, body: Any) -> float:
        """The sum over the tokens that begin where the truth does, or later, and lie in it."""
        told = body["choices"][0].get("logprobs")
        if not told or not told.get("text_offset"):
            raise ConfigError(
                f"{self.remote.line.where.url} {NOT_TOLD.format('echo with logprobs')}"
            )
        start = len(self.text.text)
        end = start + len(self.text.truth)
        offsets, logps = told["text_offset"], told["token_logprobs"]
        if start not in offsets:
            raise ValueError("no token of its prompt begins where the truth does")
        return likely(
            sum(float(logp) for at, logp in zip(offsets, logps, strict=True) if start <= at < end)
        )


def likely(logp: float) -> float:
    """A log-probability, which NaN and +infinity are not."""
    if not logp < math.inf:
        raise ValueError(f"the log-probability of the truth is {logp}")
    return logp
