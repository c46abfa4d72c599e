"""Numbers that a sentence gives for several things alike: what most of them are, all are.

"A 1.244, B 1.614, C 1.759" may be a column, a mean over the last steps, or the gap of two columns:
whatever it is, it is the same for A, B and C. If one way of working them out fits all but one of
three or more, that one is wrong; if it fits all but two, and these in each other's place, they were
exchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from kleash.written.fitting import is_typo
from kleash.written.marks import Mark, printed_as
from kleash.written.printed import Sheet
from kleash.written.prose import END, Said, Sentence
from kleash.written.told.lineups import Lineup, Way, lineups
from kleash.written.told.subjects import Records
from kleash.written.told.things import Mention, having, mentions
from kleash.written.whose import said_mark

LEAST = 3  # things that are told alike
TELLING = 6  # digits of the numbers that a way of working them out fits, all together
TURNED = 5  # the same for two numbers in each other's place
NEAR = 10  # times its rounding that a number may be off by a slip
_APART = re.compile(r"[;。]")
_BARE = re.compile(r"\s?%?\s?(?:[,、/]|→|->|(?<![a-z])and(?![a-z])|[和与及])+\s?(?:and\s)?")
_TURN = re.compile(r"分别[为是有]?|依次[为是]?|各[为是]|respectively")
_JOINED = re.compile(r"\s?(?:[,、/>]|(?<![a-z])and(?![a-z])|[和与及])+\s?(?:and\s)?")
_BEHIND = re.compile(
    r"\s?(?:points?|pts?|tokens?|s|h|of (?:the|its) [a-z]+)?\s?"
    r"(?:(?:for|in|at|on|with|under|by|of)\s|[(])(?:the\s)?"
    r"(?:run|arm)?\s?[`*\"]*\s?"
)
AFTER = 24  # letters between a name and the next number


@dataclass(frozen=True)
class Slot:
    """A number, and the row or column that it is said of in a table."""

    said: Said
    line: int


def false_in_parallel(records: Records, every: Sequence[Sentence]) -> Iterator[Mark]:
    """Numbers that are not what all others that are told alike are."""
    for sentence in every:
        named = [
            *_named(sentence, records.sheets),
            *_named_behind(sentence, records.sheets),
            *in_turn(sentence, records.sheets),
        ]
        odd = [
            mark for run in (*named, *_bare(sentence)) if len(run) >= LEAST
            for mark in _odd(records, sentence, run)
        ]  # fmt: skip
        yield from odd
        fine = [run for run in named if _comes_out(records, run)]
        bare = [run for run in _bare(sentence) if _is_in_turn(sentence, run)]
        for part in (*(part for run in named for part in _ends(run)), *bare):
            if not odd and not any(_has_more(run, part) for run in fine):
                yield from _exchanged(records, sentence, part)


# --- numbers that are told alike

Run = Sequence[tuple[Mention | None, Said]]


def _ends(run: Run) -> Iterator[Run]:
    """A run, and what is left of it without its first and without its last number."""
    yield run
    if len(run) >= LEAST:
        yield from (run[1:], run[:-1])


def _named(sentence: Sentence, sheets: Sequence[Sheet]) -> Iterator[Run]:
    """Numbers each of which has its own name, shot, epoch or step right before it."""
    every = sorted(
        [*mentions(sentence, sheets), *_counted(sentence, sheets)], key=lambda one: one.start
    )
    run: list[tuple[Mention | None, Said]] = []
    before: list[Mention] = []
    start = 0
    for said in sentence.numbers:
        own = [one for one in every if start <= one.start and one.end <= said.start]
        last = run[-1] if run else None
        broken = bool(_APART.search(sentence.plain[start : said.start]))
        if last and own and last[0] and _alike(last[1], said) and not broken:
            same = [one for one in own if one.sides & last[0].sides]
            if not same and len(run) == 1:  # the name before another one may be meant
                firsts = [one for one in before if one.sides & own[-1].sides]
                if firsts:
                    run[0], same = (firsts[-1], last[1]), own
            if len(same) == 1 and len(own) == 1:
                run.append((same[0], said))
                start = said.end
                continue
        if len(run) > 1:
            yield run
        run, before = [(own[-1], said)] if own else [], own
        start = said.end
    if len(run) > 1:
        yield run


def _named_behind(sentence: Sentence, sheets: Sequence[Sheet]) -> Iterator[Run]:
    """Numbers each of which has its own name right behind it: "0.1 for A, 0.2 for B"."""
    every = [*mentions(sentence, sheets), *_counted(sentence, sheets)]
    run: list[tuple[Mention | None, Said]] = []
    for said in sentence.numbers:
        own = [
            one for one in every
            if one.start >= said.end and _BEHIND.fullmatch(sentence.plain[said.end : one.start])
        ]  # fmt: skip
        last = run[-1] if run else None
        if last and last[0] and own and own[0].sides & last[0].sides and _alike(last[1], said):
            between = sentence.plain[last[0].end : said.start]
            if len(between) <= AFTER and not _APART.search(between):
                run.append((own[0], said))
                continue
        if len(run) > 1:
            yield run
        run = [(own[0], said)] if own else []
    if len(run) > 1:
        yield run


def _counted(sentence: Sentence, sheets: Sequence[Sheet]) -> Iterator[Mention]:
    """Shots, epochs and the like of a sentence as tables call them: "2-shot", "Shot 2"."""
    for place in sentence.places:
        if place.axis not in ("", END):
            keys = frozenset((f"{place.at:g}{place.axis}", f"{place.axis}{place.at:g}"))
            sides = frozenset(side for key in keys for side, _ in having(sheets, key))
            text = sentence.plain[place.start : place.end]
            yield Mention(place.start, place.end, keys, text, sides)


def in_turn(sentence: Sentence, sheets: Sequence[Sheet]) -> Iterator[Run]:
    """Several names, and behind them as many numbers in their order: "A and B are 1 and 2"."""
    every = mentions(sentence, sheets)
    for numbers in _listed(sentence):
        names = [one for one in every if one.end <= numbers[0].start][-len(numbers) :]
        joined = all(
            _JOINED.fullmatch(sentence.plain[one.end : other.start])
            for one, other in pairwise(names)
        )
        if len(names) == len(numbers) and joined:
            between = sentence.plain[names[-1].end : numbers[0].start]
            near = len(between) <= AFTER and not re.search(r"[\d;。]", between)
            if near or _TURN.search(between):
                yield list(zip(names, numbers, strict=True))


def _listed(sentence: Sentence) -> Iterator[list[Said]]:
    """Two or more numbers that are printed alike, right behind each other."""
    run: list[Said] = []
    for one in sentence.numbers:
        joined = run and _BARE.fullmatch(sentence.plain[run[-1].end : one.start])
        if joined and _alike(run[-1], one):
            run.append(one)
            continue
        if len(run) > 1:
            yield run
        run = [one]
    if len(run) > 1:
        yield run


def _bare(sentence: Sentence) -> Iterator[Run]:
    """Numbers in a row without names, which are in the order of a table."""
    yield from ([(None, said) for said in one] for one in _listed(sentence) if len(one) >= LEAST)


def _is_in_turn(sentence: Sentence, run: Run) -> bool:
    """Whether numbers without names are said to be in the order of their table."""
    start, plain = run[0][1].start, sentence.plain
    arrow = re.match(r"\s?%?\s?(?:→|->)", plain[run[0][1].end :])
    return bool(arrow or re.search(rf"(?:{_TURN.pattern})\s?$", plain[:start]))


def _alike(one: Said, other: Said) -> bool:
    """Whether two numbers are printed alike."""
    kinds = {one.kind, other.kind} - {"unit"}
    same = len(kinds) <= 1 or kinds == {"points", ""}
    return same and one.figure.decimals == other.figure.decimals


# --- what they are


def _odd(records: Records, sentence: Sentence, run: Run) -> Iterator[Mark]:
    """The one number of a run that the ways which fit all others do not give."""
    best, blamed = 0, set[tuple[Said, str]]()
    for slots, way, scale in product_of(records, run, most=1):
        fits = [slot for slot in slots if way.fits(slot.said, slot.line, scale)]
        if len(fits) < max(best, LEAST - 1):
            continue
        missed = list(_missed(slots, fits, way, scale))
        near = run[0][0] is not None and all(_is_near(*one) for one in missed)
        fewer = (2 if way.kind == "plain" else 1) if near else 0
        if not _is_telling(fits, TELLING - fewer):
            continue
        blamed = blamed if len(fits) == best else set()
        best = len(fits)
        blamed |= set(missed)
    if best < len(run) and len({said for said, _ in blamed}) == 1:
        said, value = sorted(blamed, key=lambda one: one[1])[0]
        if run[0][0] is None and not _is_near(said, value):
            return
        share = "%" * (said.kind == "share")
        yield said_mark(sentence, said, "wrong", "check.slip", {"value": value + share})


def _has_more(run: Run, part: Run) -> bool:
    """Whether a run has numbers of another, and no fewer."""
    return len(run) >= len(part) and any(one[1] == other[1] for one in run for other in part)


def _comes_out(records: Records, run: Run) -> bool:
    """Whether there is a way that gives all numbers of a run."""
    return any(product_of(records, run, most=0))


def _exchanged(records: Records, sentence: Sentence, run: Run) -> Iterator[Mark]:
    """Two numbers of a run that are each other's, where all the rest is what comes out."""
    found: list[Slot] = []
    for slots, way, scale in product_of(records, run, most=2):
        off = [slot for slot in slots if not way.fits(slot.said, slot.line, scale)]
        if not off:
            return
        if len(off) != 2 or not _is_telling(off, TURNED):
            continue
        one, other = off
        if way.fits(one.said, other.line, scale) and way.fits(other.said, one.line, scale):
            found.append(one)
    if found:
        yield said_mark(sentence, found[0].said, "wrong", "check.crosswise", {})


def product_of(records: Records, run: Run, *, most: int) -> Iterator[tuple[list[Slot], Way, float]]:
    """A run's numbers with every way to work them out that gives all but so many of them."""
    scales = (1.0, 100.0) if run[0][1].figure.unit == "%" else (1.0,)
    few = run[0][0] is None and len(run) <= LEAST
    for lineup in lineups(records):
        for slots in _slots(lineup, run):
            said, things = [slot.said for slot in slots], [slot.line for slot in slots]
            missed = np.array([lineup.missed(said, things, scale) for scale in scales])
            for nth, at in np.argwhere(most >= missed.T).tolist():
                way = lineup.ways[nth]
                if way.suits(run[0][1]) and not (few and way.kind not in ("plain", "over")):
                    yield slots, way, scales[at]


def _is_telling(fits: Sequence[Slot], least: int) -> bool:
    """Whether numbers are so many digits that they fit by no chance."""
    figures = {slot.said.figure.value: slot.said.figure.digits for slot in fits}
    return len(figures) > 1 and sum(figures.values()) >= least


def _missed(
    slots: Sequence[Slot], fits: Sequence[Slot], way: Way, scale: float
) -> Iterator[tuple[Said, str]]:
    for slot in slots:
        if slot not in fits and slot.line in way.values:
            value = abs(scale * way.values[slot.line])
            yield slot.said, printed_as(value, "", slot.said.figure.decimals)


def _is_near(said: Said, value: str) -> bool:
    """Whether a number is another but for a digit or two."""
    ours, theirs = abs(said.figure.value), float(value)
    return abs(ours - theirs) <= NEAR * said.figure.half or is_typo(
        ours, theirs, said.figure.decimals
    )


def _slots(lineup: Lineup, run: Run) -> Iterator[list[Slot]]:
    """A run's numbers with the things of a lineup that they are of."""
    if run[0][0] is None:
        for start in range(len(lineup.keys) - len(run) + 1):
            for step in (1, -1):
                lines = [*range(start, start + len(run))][::step]
                told = zip(run, lines, strict=True)
                yield [Slot(said, line) for (_, said), line in told]
        return
    found = []
    for mention, said in run:
        own = [nth for nth, keys in enumerate(lineup.keys) if mention and mention.keys & keys]
        if len(own) != 1:
            return
        found.append(Slot(said, own[0]))
    if len({slot.line for slot in found}) == len(found):
        yield found
