"""Who answers: a model behind an OpenAI-compatible endpoint, a file with answers, or both.

The file keeps every question with its answer, a line each, so that a check costs nothing again, can
stand in a CI, and can be answered by whatever model is at hand: what nobody answered yet is there
with an empty answer.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from kleash.documents.claims import claims_in
from kleash.documents.judge import Judged, judged
from kleash.documents.numbered import Addresses
from kleash.documents.page import Page
from kleash.documents.questions import once_more, questions
from kleash.envs.contract import EndpointDown, EpisodeBroken
from kleash.envs.endpoint import Chat, EndpointOptions
from kleash.errors import DataError, KleashError

TOKENS = 16_000  # of an answer: a line for each claim
Ask = Callable[[Sequence[str]], Sequence[str]]
"""Whatever answers questions: a model behind an endpoint, or a file with answers."""
PATIENCE = 900.0  # seconds for one answer


class Kept:
    """Questions with answers, in a file of JSON lines."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.answers = dict[str, str]()
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        for nth, line in enumerate(lines, 1):
            try:
                told = json.loads(line)
                self.answers[told["question"]] = told["answer"]
            except (ValueError, TypeError, KeyError):
                raise DataError(
                    f"{path}:{nth}: no question with its answer; a line is"
                    ' {"question": "…", "answer": "…"}'
                ) from None

    def keep(self, more: dict[str, str]) -> None:
        """Answers for good; the file whole or not at all."""
        self.answers |= more
        lines = (
            json.dumps({"question": question, "answer": answer}, ensure_ascii=False) + "\n"
            for question, answer in self.answers.items()
        )
        beside = self.path.with_name(f".{self.path.name}.part")
        try:
            beside.write_text("".join(lines), encoding="utf-8")
            beside.replace(self.path)
        except OSError as error:
            raise DataError(f"cannot write {self.path}: {error.strerror}") from None


class Interpreter:
    """Answers what the file has not from an endpoint, if there is one."""

    def __init__(
        self,
        kept: Kept,
        options: EndpointOptions | None,
        bar: Callable[[int], AbstractContextManager[Callable[[], None]]],
    ) -> None:
        self.kept, self.options, self.bar = kept, options, bar

    def __call__(self, questions: Sequence[str]) -> list[str]:
        """An answer for each, asked at once; what came before an error is kept."""
        open_ = [one for one in dict.fromkeys(questions) if not self.kept.answers.get(one)]
        if open_ and self.options is None:
            self.kept.keep(dict.fromkeys(open_, ""))
            raise KleashError(
                f"{self.kept.path}: {len(open_)} question(s) are open: have a language model answer"
                ' each (its text as "answer"), or give --interpreter URL, then run this again'
            )
        if open_ and self.options is not None:
            with self.bar(len(open_)) as advance:
                asyncio.run(self._asked(self.options, open_, advance))
        return [self.kept.answers[one] for one in questions]

    async def _asked(
        self, options: EndpointOptions, questions: Sequence[str], advance: Callable[[], None]
    ) -> None:
        chat = Chat(options)
        try:
            told = await asyncio.gather(
                *(_asked(chat, one, advance) for one in questions), return_exceptions=True
            )
        finally:
            await chat.close()
        answers = {q: one for q, one in zip(questions, told, strict=True) if isinstance(one, str)}
        self.kept.keep(answers)
        for one in told:
            if isinstance(one, EndpointDown | EpisodeBroken):
                raise KleashError(str(one)) from None
            if isinstance(one, BaseException):
                raise one


async def _asked(chat: Chat, question: str, advance: Callable[[], None]) -> str:
    messages = [{"role": "user", "content": question}]
    body = {"model": chat.options.model, "messages": messages}
    text = await chat.said({**body, "temperature": 0.0, "max_tokens": TOKENS})
    advance()
    return text


def interpreted(page: Page, ask: Ask) -> list[Judged]:
    """Every claim of a report that an interpreter could put into a formula, worked out."""
    addresses = Addresses(page)
    claims = [one for answer in ask(list(questions(addresses))) for one in claims_in(answer)]
    first = judged(addresses, claims)
    failed = [one for one in first if one.holds == "no"]
    if not failed:
        return first
    (answer,) = ask([once_more(addresses, failed)])
    again = list(claims_in(answer))
    asked, told = {one.claim.key for one in failed}, {one.key for one in again}
    # What it does not stand by is dropped; what it reads anew comes first, and so counts.
    kept = [one for one in claims if one.key not in asked]
    return judged(addresses, [*(one for one in again if one.key in asked & told), *kept])
