"""What an interpreter is asked: which formula each claim of some lines states; and once more, of
those that do not hold, whether it read them right.

It never says whether a claim is true. A question fits the room that a model has, with its answer:
few questions, each with the whole report if that makes not many more of them, else with all tables,
else with the rows of tables that hold a number of its lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path

from kleash.compare.documents.judge import Judged
from kleash.compare.read.markdown.page import Addresses, Page
from kleash.config import read_toml

BRIEFS = Path(__file__).with_name("brief.toml")
CLAIM = 40  # tokens of a claim in an answer
FRAME = 128  # tokens around the lines that are shown
LEAST = 512  # tokens for lines and their answer, beside the brief
MORE = 2  # times as many questions may be asked so that each shows more of the report
_TOKEN = re.compile(r"[A-Za-z]+|[^ A-Za-z]")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_PARTS = re.compile(r"\s*(?:$|#|[-*+]\s|\d{1,3}[.)、]\s|```)")  # what a line that goes on is not


@dataclass(frozen=True)
class Question:
    """A question, and by what its answer is known again."""

    text: str
    about: str
    """What its answer rests on: the lines it asks of, and where which number stands in others."""

    @cached_property
    def tokens(self) -> int:
        """About how long it is; rather too many, in whatever language."""
        return tokens_in(self.text)


@dataclass(frozen=True)
class Part:
    """Lines that are asked of together, with others that they rest on."""

    lines: tuple[int, ...]
    beside: frozenset[int] = frozenset()
    told: str = ""
    claims: int = 0


def tokens_in(text: str) -> int:
    """About how many tokens a text has: digits are one each, and Chinese letters may be two."""
    every = _TOKEN.findall(text)
    return sum(1 + len(one) // 5 if one.isascii() else 2 for one in every)


def questions(addresses: Addresses, room: int) -> list[Question]:
    """What is asked first: of every line, in as few questions as fit `room` tokens each."""
    brief = read_toml(BRIEFS)[addresses.page.language]
    made = list[Question]()
    for own, shown in _packed(addresses, list(_parts(addresses)), room - tokens_in(brief["brief"])):
        lines = [line for part in own for line in part.lines]
        asked = brief["lines"].format(first=lines[0], last=lines[-1])
        text = _text(addresses, brief["brief"], shown, asked)
        shape = [_shape(addresses, nth) for nth in sorted({*shown} - {*lines})]
        made.append(Question(text, _hashed([*map(addresses.shown, lines), *shape])))
    return made


def once_more(addresses: Addresses, failed: Sequence[Judged], room: int) -> list[Question]:
    """The questions about claims that do not hold."""
    brief = read_toml(BRIEFS)[addresses.page.language]
    parts = [
        Part(
            (one.line,),
            frozenset(source.line for source in one.sources),
            f"{addresses.shown(one.line)}\n  {one.again}",
            1,
        )
        for one in failed
    ]
    made = list[Question]()
    for own, shown in _packed(addresses, parts, room - tokens_in(brief["brief"] + brief["again"])):
        told = "\n".join(part.told for part in own)
        text = _text(addresses, brief["brief"], shown, f"{brief['again']}\n{told}")
        made.append(Question(text, _hashed([text])))
    return made


def least_context(page: Page) -> int:
    """The fewest tokens that hold a question about a report, with its answer."""
    brief = read_toml(BRIEFS)[page.language]
    return tokens_in(brief["brief"] + brief["again"]) + FRAME + LEAST


def version_of(addresses: Addresses) -> str:
    """Which brief is given with questions about a report: its language, and what it says."""
    language = addresses.page.language
    return f"{language}-{_hashed(map(str, read_toml(BRIEFS)[language].values()))[:8]}"


def _parts(addresses: Addresses) -> Iterator[Part]:
    """Rows of tables, and lines of prose with those that go on; no sentence in two."""
    own, tables = list[int](), addresses.rows.keys() | addresses.rules
    for nth in range(1, addresses.count + 2):
        line = addresses.page.line(nth) if nth <= addresses.count else ""
        goes_on = own and nth not in tables and own[-1] not in addresses.rows
        if own and (not goes_on or _PARTS.match(line)):
            # Of a row few numbers are claims, and those in columns: its titles stand for them.
            loose = sum(len(addresses.on(one)) for one in own)
            title = own[0] in addresses.rows.values()
            yield Part(tuple(own), claims=title if own[0] in addresses.rows else loose)
            own = []
        own.append(nth)


def _packed(
    addresses: Addresses, parts: Sequence[Part], room: int
) -> list[tuple[list[Part], set[int]]]:
    """The parts of each question, and the lines that it shows."""
    heads = {n for n in range(1, addresses.count + 1) if addresses.page.line(n).startswith("#")}
    rows = {line: {one.value for one in addresses.on(line)} for line in addresses.rows}

    def titled(lines: Collection[int]) -> set[int]:
        return {*lines} | {addresses.rows[line] for line in lines if line in rows}

    def touched(part: Part) -> set[int]:
        told = {one.value for line in part.lines for one in addresses.on(line)}
        return titled([*part.lines, *(row for row, values in rows.items() if told & values)])

    def alone(part: Part) -> set[int]:
        return titled(part.lines)

    room -= FRAME
    whole = {*range(1, addresses.count + 1)} - addresses.rules
    ways = [(whole, alone), (heads | {*rows}, alone), (heads, touched), (set[int](), alone)]
    cost = {nth: 1 + tokens_in(addresses.shown(nth)) for nth in whole}
    small = [way for way in ways if sum(cost[line] for line in way[0]) < room] or ways[-1:]
    every = [_filled(parts, cost, room, *way) for way in small]
    least = min(over for over, _ in every)
    fitting = [found for over, found in every if over == least]
    fewest = min(map(len, fitting))
    return next(found for found in fitting if len(found) <= MORE * fewest)


def _filled(
    parts: Sequence[Part],
    cost: Mapping[int, int],
    room: int,
    shown: Collection[int],
    near: Callable[[Part], set[int]],
) -> tuple[int, list[tuple[list[Part], set[int]]]]:
    """One part after another, a new question where the next does not fit; and how much one is over.

    A part that fits nowhere has a question to itself.
    """
    base = sum(cost[line] for line in shown)
    found, taken, over = list[tuple[list[Part], set[int]]](), 0, 0
    for part in parts:
        need = ({*part.lines, *part.beside} | near(part)) & cost.keys()
        own = tokens_in(part.told) + CLAIM * part.claims
        more = sum(cost[line] for line in need - found[-1][1]) + own if found else 0
        if not found or taken + more > room:
            found.append(([], set(shown)))
            taken, more = base, sum(cost[line] for line in need - {*shown}) + own
        found[-1][0].append(part)
        found[-1][1].update(need)
        taken += more
        over = max(over, taken - room)
    return over, found


def _text(addresses: Addresses, brief: str, shown: Collection[int], asked: str) -> str:
    lines, last = list[str](), 0
    for nth in sorted(shown):
        if {*range(last + 1, nth)} - addresses.rules:
            lines.append("…")
        lines.append(addresses.shown(nth))
        last = nth
    report = "\n".join(lines)
    return f"{brief}\nREPORT\n{report}\n\n{asked}"


def _shape(addresses: Addresses, line: int) -> str:
    """Which numbers a line has, whatever they are."""
    if line in addresses.rows:
        return f"{line} {_NUMBER.sub('#', addresses.shown(line))}"
    return f"{line} {len(addresses.on(line))}"


def _hashed(lines: Collection[str] | Iterator[str]) -> str:
    return sha256("\n".join(lines).encode(errors="surrogatepass")).hexdigest()[:16]
