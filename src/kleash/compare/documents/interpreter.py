"""Who answers: a model behind an OpenAI-compatible endpoint, a file with answers, or both.

The file keeps every question with its answer, a line each, so that a check costs nothing again, can
stand in a CI, and can be answered by whatever model is at hand: what nobody answered yet is there
with an empty answer. It is a file of its own and not the ledger, because it goes where the report
goes, and whoever answers by hand writes into it.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kleash.compare.documents.formula import Formula, FormulaError
from kleash.compare.documents.judge import Claim, Judged, judged, worked_out
from kleash.compare.documents.questions import FRAME, Question, once_more, questions, version_of
from kleash.compare.read.markdown.page import Addresses, Page
from kleash.errors import DataError, KleashError
from kleash.tasks.envs.contract import EndpointDown, EpisodeBroken
from kleash.tasks.envs.endpoint import Chat, EndpointOptions

SCHEMA = Path(__file__).with_name("claim.schema.json")
_THOUGHT = re.compile(r"<think>.*?(?:</think>|\Z)", re.S)
_ADDRESS = r"(?:n\d{1,7}\.\d{1,4}|[A-Z]{1,2}\d{1,7}(?:\.\d{1,4})?)"
_AT = re.compile(rf"{_ADDRESS}(?:\s*:\s*{_ADDRESS})?", re.ASCII)
_WRAPPING = re.compile(r'\s*(?:```\w*|\{\s*"claims"\s*:)?[\[\]{},\s]*')
_STABILITY = re.compile(r"stead|stabl|stabil|smooth|fluctuat|swing|平稳|稳定|平滑|波动|震荡", re.I)
_CURVE = r"\((?:changes\()?([^(),]+)\)?\)"
_SPREADS = re.compile(rf"\b(std|spread){_CURVE}\s*([<>])=?\s*\1{_CURVE}")
CONTEXT = 8192  # tokens that a model can hold, if nobody says otherwise
TOKENS = 16_000  # of an answer: a line for each claim
PATIENCE = 900.0  # seconds for one answer
Ask = Callable[[Sequence[Question]], Sequence[str]]
"""Whatever answers questions: a model behind an endpoint, or a file with answers."""
Begin = Callable[[Sequence[Question], int], AbstractContextManager[Callable[[], None]]]
"""Tells what is asked, and how much was answered before; then of each answer."""
Trouble = Literal["silent", "no-json", "no-claim", "no-number", "no-formula", "no-truth"]
_SENTENCE = re.compile(r"[。！？；!?;]|\.(?=\s|$)")
_TAG = re.compile(r"⟨(n\d+\.\d+)⟩")


class Kept:
    """Questions with answers, in a file of JSON lines."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.records = dict[tuple[str, str], dict[str, str]]()
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        for nth, line in enumerate(lines, 1):
            try:
                one = json.loads(line)
                told = {"question": one["question"] + "", "answer": one["answer"] + ""}
                self._put(
                    told | {key: str(one.get(key, "")) for key in ("model", "brief", "about")}
                )
            except (ValueError, TypeError, KeyError, AttributeError):
                raise DataError(
                    f"{path}:{nth}: no question with its answer; a line is"
                    ' {"question": "…", "answer": "…"}'
                ) from None

    def _put(self, record: dict[str, str]) -> None:
        self.records[record["about"] or record["question"], record["model"]] = record

    def answer(self, question: Question, model: str) -> str:
        """What that model said, or somebody by hand; whoever did, where none is named."""
        names = {question.about, question.text}
        own = [
            one["answer"]
            for (about, by), one in self.records.items()
            if about in names and by in (model or by, "")
        ]
        return next(filter(None, reversed(own)), "")

    def keep(self, answers: Sequence[tuple[Question, str]], model: str, brief: str) -> None:
        """Answers for good; the file whole or not at all."""
        for one, answer in answers:
            said = {"question": one.text, "answer": answer, "model": model}
            self._put(said | {"brief": brief, "about": one.about})
            if answer:
                self.records.pop((one.about, ""), None)
        lines = (json.dumps(one, ensure_ascii=False) + "\n" for one in self.records.values())
        beside = self.path.with_name(f".{self.path.name}.part")
        try:
            beside.write_text("".join(lines), encoding="utf-8", errors="replace")
            beside.replace(self.path)
        except OSError as error:
            raise DataError(f"cannot write {self.path}: {error.strerror}") from None


class Interpreter:
    """Answers what the file has not from an endpoint, if there is one."""

    def __init__(
        self, kept: Kept, options: EndpointOptions | None, begin: Begin, context: int = CONTEXT
    ) -> None:
        self.kept, self.options, self.begin, self.context = kept, options, begin, context
        self.model = options.model if options else ""
        self.brief = ""

    def __call__(self, questions: Sequence[Question]) -> list[str]:
        """An answer for each, asked at once; one that cannot be had is empty."""
        open_ = [one for one in questions if not self.kept.answer(one, self.model)]
        if open_ and self.options is None:
            self.kept.keep([(one, "") for one in open_], "", self.brief)
            raise KleashError(
                f"{self.kept.path}: {len(open_)} question(s) are open: have a language model answer"
                ' each (its text as "answer"), or give --interpreter URL, then run this again'
            )
        if open_ and self.options is not None:
            with self.begin(open_, len(questions) - len(open_)) as advance:
                asyncio.run(self._asked(Chat(self.options), open_, advance))
        return [self.kept.answer(one, self.model) for one in questions]

    async def _asked(
        self, chat: Chat, questions: Sequence[Question], advance: Callable[[], None]
    ) -> None:
        schema = {
            key: part for key, part in json.loads(SCHEMA.read_text()).items() if key[0] != "$"
        }

        async def one_asked(question: Question) -> None:
            room = max(FRAME, min(TOKENS, self.context - question.tokens))
            messages = [{"role": "user", "content": question.text}]
            body = {"model": self.model, "messages": messages}
            text = await chat.said({**body, "temperature": 0.0, "max_tokens": room}, schema)
            self.kept.keep([(question, text)], self.model, self.brief)
            advance()

        try:
            told = await asyncio.gather(*map(one_asked, questions), return_exceptions=True)
        finally:
            await chat.close()
        failed = [one for one in told if one is not None]
        for one in failed:
            if not isinstance(one, EndpointDown | EpisodeBroken):
                raise one
        if len(failed) == len(told) or any(isinstance(one, EndpointDown) for one in failed):
            raise KleashError(str(failed[0])) from None


@dataclass(frozen=True)
class Unread:
    """What of an answer says nothing, and why."""

    trouble: Trouble
    claim: Claim
    why: str = ""


@dataclass(frozen=True)
class Reading:
    """What an interpreter made of a report."""

    judged: Sequence[Judged]
    unread: Sequence[Unread]
    sentences: int
    """How many have numbers."""
    formulas: int
    """How many of these have a number or words in a formula."""


def interpreted(page: Page, ask: Ask, context: int = CONTEXT) -> Reading:
    """Every claim of a report that an interpreter could put into a formula, worked out."""
    addresses = Addresses(page)
    if isinstance(ask, Interpreter):
        ask.brief = version_of(addresses)
    answers = ask(questions(addresses, context))
    claims = [one for answer in answers for one in claims_in(answer)]
    every, again = [one for one in claims if isinstance(one, Claim)], list[Claim | str]()
    first = judged(addresses, every)
    failed = [one for one in first if one.holds == "no"]
    if failed:
        second = ask(once_more(addresses, failed, context))
        again = [one for answer in second for one in claims_in(answer)]
        asked = {one.claim.key for one in failed}
        anew = [one for one in again if isinstance(one, Claim) and one.key in asked]
        # What it does not stand by is dropped; what it reads anew comes first, and so counts.
        first = judged(addresses, [*anew, *(one for one in every if one.key not in asked)])
    unread = [Unread("silent", Claim()) for answer in answers if not answer]
    unread += [one for claim in [*claims, *again] for one in _troubles(addresses, claim)]
    return Reading(first, unread, *_count(addresses, first))


def _troubles(addresses: Addresses, claim: Claim | str) -> Iterator[Unread]:
    """Why a claim says nothing, if it does not."""
    if isinstance(claim, str):
        yield Unread("no-claim" if claim.startswith("{") else "no-json", Claim(), claim)
    elif not list(worked_out(addresses, [claim])):
        try:
            Formula.of(claim.formula or "0", addresses.between).value(addresses.values)
        except FormulaError as error:
            yield Unread("no-formula", claim, str(error))
        else:
            yield Unread("no-number" if claim.at else "no-truth", claim)


def _count(addresses: Addresses, every: Sequence[Judged]) -> tuple[int, int]:
    """How many sentences outside of tables have numbers, and how many of these a formula."""
    known = {one.number.address for one in every if one.number is not None}
    words = {(one.line, one.claim.words) for one in every if one.number is None}
    loose = {one.line for one in addresses.numbers.values()} - addresses.rows.keys()
    own = [(line, text) for line in loose for text in _SENTENCE.split(addresses.shown(line))]
    told = [(line, _TAG.sub("", text), tags) for line, text in own if (tags := _TAG.findall(text))]
    count = sum(
        not known.isdisjoint(tags) or any(at == line and said in text for at, said in words)
        for line, text, tags in told
    )
    return len(told), count


# --- what an answer says


def claims_in(answer: str) -> Iterator[Claim | str]:
    """The claims of an answer, as one object with all or an object a line; as text what is none.

    An answer that breaks off has the claims before that.
    """
    text, at = _THOUGHT.sub("", answer), 0
    decoder, rest = json.JSONDecoder(), list[str]()
    while (begin := text.find("{", at)) >= 0:
        try:
            told, end = decoder.raw_decode(text, begin)
        except (ValueError, RecursionError):
            told, end = None, begin + 1
        rest.append(text[at : begin if told is not None else end])
        every = told.get("claims") if isinstance(told, dict) else []
        for one in every if isinstance(every, list) else [told]:
            yield _claim(one) or json.dumps(one, ensure_ascii=False)
        at = end
    lines = "".join([*rest, text[at:]]).splitlines()
    yield from (line.strip() for line in lines if not _WRAPPING.fullmatch(line))


def _claim(told: object) -> Claim | None:
    if not isinstance(told, dict):
        return None
    at, words, formula, why = (
        str(told.get(key) or "").strip() for key in ("at", "words", "formula", "why")
    )
    line = str(told.get("line"))
    number = int(line) if line.isascii() and line.isdigit() and len(line) < 10 else 0
    if _AT.fullmatch(at) and formula:
        return Claim(at=at, formula=formula)
    if words and number and (formula or why):
        if _STABILITY.search(words):
            formula = _SPREADS.sub(_tested, formula)
        return Claim(line=number, words=words, formula=formula, why=why)
    return None


def _tested(spreads: re.Match[str]) -> str:
    """A comparison of two spreads as the test of it: one of two is always the smaller."""
    _, one, sign, other = spreads.groups()
    return f"steadier({one}, {other})" if sign == "<" else f"steadier({other}, {one})"
