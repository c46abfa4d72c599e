"""Who is best of each of several lines: "the best is A at 100 questions, B at 200, B at 400".

Names of lines and of what is compared stand in turn. Where all but one are the best of their
lines, that one is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from kleash.imports.markdown.text import bare
from kleash.written.book import Book
from kleash.written.claimed.mentions import QUANTITIES, concepts
from kleash.written.claimed.readings import Shelf, outside
from kleash.written.marks import Mark
from kleash.written.printed import squeezed
from kleash.written.prose import Sentence

LEAST = 3  # lines whose best is told
FAR = 16  # letters between two names
_B, _E = r"(?<![a-z])", r"(?![a-z])"
_WORD = re.compile(
    rf"(?P<high>最[高大]|{_B}(?:highest|largest){_E})|(?P<low>最[低小]|{_B}(?:lowest|smallest){_E})|"
    rf"(?P<best>最[好佳优]|{_B}(?:best|winner|leader){_E})"
)
_DENIED = re.compile(rf"(?:不是|并非|不再|第二|次|{_B}(?:not|no longer|second|next)(?: the)?)\s?$")
_ENDS = re.compile(r"[;。]|但|而(?!且)|(?<![a-z])(?:but|while|whereas)(?![a-z])")


@dataclass(frozen=True)
class Spot:
    """A label of one side of a table in a sentence."""

    start: int
    end: int
    label: int
    is_line: bool


@dataclass(frozen=True)
class Odd:
    """A name that is not the best of its line, and what is."""

    spot: Spot
    best: str
    value: str


def false_winners(book: Book, every: Sequence[Shelf], spoken: Sequence[Sentence]) -> Iterator[Mark]:
    """The one name of several that is not the best of its line, as all others are."""
    for sentence in spoken:
        word = _WORD.search(sentence.plain)
        if word is None or _DENIED.search(sentence.plain[: word.start()]):
            continue
        end = _ENDS.search(sentence.plain, word.end())
        last = end.start() if end else len(sentence.plain)
        need = concepts(outside(sentence.plain[:last])) & QUANTITIES - {"step", "turns"}
        near = book.section(sentence.line(word.start()))
        odd = list[Odd | None]()
        for shelf in every:
            if shelf.sheet in near and need <= shelf.about | _common(shelf):
                told = _pairs(_spots(shelf, sentence, word.end(), last))
                odd += _odd(shelf, told, word.lastgroup or "") if len(told) >= LEAST else []
        if odd and None not in odd and odd[0] is not None:
            yield _mark(sentence, odd[0])


def _common(shelf: Shelf) -> frozenset[str]:
    """The words that all lines of a table share."""
    labels = shelf.other.labels.values()
    return frozenset.intersection(*labels) if labels else frozenset()


def _mark(sentence: Sentence, odd: Odd) -> Mark:
    text, line = sentence.text[odd.spot.start : odd.spot.end], sentence.line(odd.spot.start)
    facts: dict[str, object] = {"best": odd.best, "value": odd.value}
    return Mark(line, text, "wrong", "check.not-pick", facts, f"winner {odd.spot.start}")


def _spots(shelf: Shelf, sentence: Sentence, start: int, end: int) -> list[Spot]:
    """Where a part of a sentence has labels of either side as they are written, or by number."""
    found = list[Spot]()
    for texts, is_line in ((shelf.side.texts, False), (shelf.other.texts, True)):
        for label, text in texts.items():
            for name in _names(text):
                bound = rf"(?<![\w.]){re.escape(name)}(?![a-z\d]|\.\d|\s?%)"
                found += [
                    Spot(*match.span(), label, is_line)
                    for match in re.compile(bound).finditer(sentence.plain, start, end)
                    if not (name.isdigit() and _is_counted(sentence, match, shelf, is_line=is_line))
                ]
    whole = [
        one
        for one in found
        if not any(
            other.start <= one.start and one.end <= other.end and other != one for other in found
        )
    ]
    return sorted(whole, key=lambda one: one.start)


def _is_counted(sentence: Sentence, match: re.Match[str], shelf: Shelf, *, is_line: bool) -> bool:
    """Whether a number is a step, an epoch or the like, and its table counts something else."""
    own = {shelf.sheet.axis if is_line != shelf.side.is_rows else shelf.sheet.across_axis}
    return any(
        place.start <= match.start() < place.end and place.axis not in own
        for place in sentence.places
    )


def _names(text: str) -> set[str]:
    """What a label may be called: as it is written, or by its only setting."""
    plain = squeezed(bare(text)).strip(" :*↑↓⭐")
    numbers = re.findall(r"(?<![\d.a-z])\d+\.\d+(?![\d.])", plain)
    return {one for one in (plain, *(numbers if len(numbers) == 1 else ())) if one}


def _pairs(spots: Sequence[Spot]) -> list[tuple[Spot, Spot]]:
    """Lines with the name that each has, where both stand in turn all along; else nothing."""
    if len(spots) < 2 * LEAST or len(spots) % 2:
        return []
    turns = [one.is_line for one in spots]
    if any(one == other for one, other in pairwise(turns)):
        return []
    two = list(zip(spots[::2], spots[1::2], strict=True))
    if any(other.start - one.end > FAR for one, other in two):
        return []
    return [(one, other) if one.is_line else (other, one) for one, other in two]


def _odd(shelf: Shelf, told: Sequence[tuple[Spot, Spot]], sense: str) -> list[Odd | None]:
    """The one that is not the best of its line; None where all are; nothing where it is unsure."""
    ways = {"high": (1,), "low": (-1,)}.get(sense, (1, -1))
    found = list[Odd | None]()
    for way in ways:
        off = list[Odd]()
        for line, name in told:
            cells = shelf.line(line.label).cells
            if name.label not in cells:
                return []
            scope = shelf.scope(shelf.line(line.label), name.label)
            values: Mapping[int, float] = {one: way * cells[one].figure.value for one in scope}
            best = max(values, key=lambda one: values[one])
            if values[name.label] < values[best]:
                off.append(Odd(name, bare(shelf.side.texts[best]), cells[best].number.text))
        if not off:
            return [None]
        found += off if len(off) == 1 else []
    return found if len(found) == 1 else []
