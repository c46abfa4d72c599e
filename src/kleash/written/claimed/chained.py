"""Superlatives held against an order beside them: "A (0.17) < B (0.57) < C (0.76)", "B is lowest".

Who is at an end of an order that the same sentence, or another item of the same list, writes out is
known without a table. Orders of another quantity, or of another step, are none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kleash.written.claimed.mentions import QUANTITIES, concepts
from kleash.written.claimed.outline import Item, above, outline
from kleash.written.claimed.readings import clauses, outside
from kleash.written.claimed.stated import head
from kleash.written.claimed.superlatives import Called, called_in, is_limited
from kleash.written.marks import Mark
from kleash.written.page import Page
from kleash.written.prose import Sentence

LEAST = 3  # names in an order
_ITEM = r"[^<>≈=,;。:()→]{1,24}?\s?(?:\([^()]*\))?"
_CHAIN = re.compile(rf"(?:^|[,;。:])\s*({_ITEM}(?:\s?[<>≈=]\s?{_ITEM}){{2,}})\s*(?=[,;。]|\.?\s*$)")
_WORD = re.compile(r"[a-z]+|[\u4e00-\u9fff]+|\d+(?:\.\d+)?")
_IDLE = re.compile(
    r"[的是为有则也仍都均则最]+|is|are|has|was|had|the|of|with|and|it|its|so|also|then"
)


@dataclass(frozen=True)
class _Order:
    """Names from the least to the most, those that are called equal together, and of what."""

    ranks: tuple[frozenset[str], ...]
    quantities: frozenset[str]
    steps: frozenset[float]
    words: frozenset[str]
    """Those of the text before it, and of what it stands under."""


def false_in_chains(page: Page, spoken: Sequence[Sentence]) -> Iterator[Mark]:
    """Superlatives of which every order beside them says otherwise."""
    items = outline(page)
    orders = {id(one): list(_orders(items, one)) for one in spoken}
    lists = dict[tuple[int, int, int], list[_Order]]()
    for sentence in spoken:
        lists.setdefault(_list(items, sentence), []).extend(orders[id(sentence)])
    for sentence in spoken:
        known = lists[_list(items, sentence)]
        parts = clauses(sentence) if known else []
        for nth, clause in enumerate(parts):
            for called in called_in(clause) if not is_limited(parts[: nth + 1]) else ():
                near = known if not nth else orders[id(sentence)]  # else it goes on with another
                ends = [end for one in near if (end := _end(items, one, called)) is not None]
                names = frozenset().union(*map(_names, known))
                subject = _subject(called, names)
                if subject and ends and not any(subject in end for end in ends):
                    start, stop = called.word.span()
                    facts: dict[str, object] = {"one": sorted(ends[0])[0], "other": subject}
                    text, line = sentence.text[start:stop], sentence.line(start)
                    yield Mark(line, text, "wrong", "check.not-order", facts, "order")


def _list(items: Mapping[int, Item], sentence: Sentence) -> tuple[int, int, int]:
    """The list of a sentence, or the sentence itself where it is no item of one."""
    item = items.get(sentence.line(0))
    if item is None or item.indent < 0 or not item.under:
        return sentence.line(0), -1, -1
    return 0, item.under, item.indent


def _orders(items: Mapping[int, Item], sentence: Sentence) -> Iterator[_Order]:
    for match in _CHAIN.finditer(sentence.plain):
        pieces = re.split(r"\s?([<>≈=])\s?", re.sub(r"\([^()]*\)", "", match[1]))
        names, signs = [one.strip() for one in pieces[::2]], set(pieces[1::2])
        if len(signs & {"<", ">"}) != 1 or len(set(names)) < LEAST or len(set(names)) < len(names):
            continue
        ranks = [{names[0]}]
        for sign, name in zip(pieces[1::2], names[1:], strict=True):
            if sign in "<>":
                ranks.append(set())
            ranks[-1].add(name)
        order = tuple(map(frozenset, ranks if "<" in signs else reversed(ranks)))
        steps = frozenset(one.at for one in sentence.places if one.start < match.start(1))
        before = sentence.plain[: match.start(1)]
        heads = [head(one).sentence.plain for one in above(items, sentence.line(0))]
        words = frozenset(_WORD.findall(" ".join((before, *heads))))
        yield _Order(order, _quantities(items, sentence, before), steps, words)


def _quantities(items: Mapping[int, Item], sentence: Sentence, text: str) -> frozenset[str]:
    """The quantities of a text, else of what its item stands under."""
    for one in (text, *(head(each).text for each in above(items, sentence.line(0)))):
        found = concepts(one) & QUANTITIES - {"step"}
        if found:
            return found
    return frozenset()


def _names(order: _Order) -> frozenset[str]:
    return frozenset().union(*order.ranks)


def _end(items: Mapping[int, Item], order: _Order, called: Called) -> frozenset[str] | None:
    """Who is the most of an order by a word, if the word is said of what the order is of."""
    clause = called.clause
    if called.sense not in ("high", "low"):
        return None
    steps = {one.at for one in clause.sentence.places if clause.start <= one.start < clause.end}
    if steps and order.steps and not steps & order.steps:
        return None
    own = _quantities(items, clause.sentence, clause.text)
    if own and own != order.quantities:
        return None
    subject = _subject(called, _names(order))
    if not subject or not _is_plain(order, called, subject):
        return None
    return order.ranks[-1 if called.sense == "high" else 0]


def _is_plain(order: _Order, called: Called, subject: str) -> bool:
    """Whether a clause says nothing but who is the most of what the order is of."""
    clause, word = called.clause, called.word
    text = (
        clause.text[: word.start() - clause.start] + " " + clause.text[word.end() - clause.start :]
    )
    text = outside(text).replace(subject, " ", 1)
    rest = [one for one in _WORD.findall(text) if one not in order.words]
    return all(_IDLE.fullmatch(one) for one in rest)


def _subject(called: Called, names: frozenset[str]) -> str:
    """The one name of an order that stands before a word, or right behind it."""
    word = called.word
    for start, end in ((called.first, word.start()), (word.end(), called.last)):
        found = {name for name in names if _has(called, name, start, end)}
        longest = {one for one in found if not any(one != two and one in two for two in found)}
        if longest:
            return longest.pop() if len(longest) == 1 else ""
    return ""


def _has(called: Called, name: str, start: int, end: int) -> bool:
    """Whether a part of a sentence has a name; a letter alone is a capital."""
    sentence = called.clause.sentence
    pattern = re.compile(rf"(?<![a-z\d.]){re.escape(name)}(?![a-z\d]|\.\d)")
    every = pattern.finditer(sentence.plain, start, end)
    return any(len(name) > 1 or not sentence.text[one.start()].islower() for one in every)
