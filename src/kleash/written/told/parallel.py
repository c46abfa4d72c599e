"""Numbers that a sentence gives for several things alike: what most of them are, all are.

"A 1.244, B 1.614, C 1.759" may be a column, a mean over the last steps, or the gap of two columns:
whatever it is, it is the same for A, B and C. If one way of working them out fits all but one of
three or more, that one is wrong; if it fits all but two, and these in each other's place, they were
exchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations

from kleash.written.fitting import is_typo
from kleash.written.marks import Mark, printed_as
from kleash.written.printed import Figure, Sheet
from kleash.written.prose import Said, Sentence
from kleash.written.told.subjects import Records
from kleash.written.told.things import Mention, column_keys, having, keys_of, mentions, row_keys
from kleash.written.told.tracks import Course
from kleash.written.whose import said_mark

LEAST = 3  # things that are told alike
TELLING = 6  # digits of the numbers that a way of working them out fits, all together
WINDOWS = range(2, 11)  # last steps that people take the mean of
NEAR = 10  # times its rounding that a number may be off by a slip
COARSE = 4  # times its own rounding that of what a number is worked out of may be
WIDEST = 14  # columns of which all pairs are tried
_APART = re.compile(r"[;。]")
_BARE = re.compile(r"\s?%?\s?(?:[,、/]|→|->|(?<![a-z])and(?![a-z])|[和与及])+\s?(?:and\s)?")
_TURN = re.compile(r"分别[为是有]?|依次[为是]?|各[为是]|respectively")
_JOINED = re.compile(r"\s?(?:[,、/]|(?<![a-z])and(?![a-z])|[和与及])+\s?(?:and\s)?")
CLOSE = 4  # letters between such a word and the first number


@dataclass(frozen=True)
class Slot:
    """A number, and the row or column that it is said of in a table."""

    said: Said
    line: int


@dataclass(frozen=True)
class Way:
    """What comes out for each row or column of a table, and by how much rounding may shift it."""

    kind: str
    values: Mapping[int, float]
    rooms: Mapping[int, float]

    def suits(self, said: Said) -> bool:
        """Whether a number may be of this kind, by what it is counted in."""
        if said.kind == "times":
            return self.kind == "ratio"
        if said.kind == "points":
            return self.kind in ("gap", "plain")
        return self.kind != "ratio" and (self.kind != "change" or said.kind == "share")

    def fits(self, slot: Slot, scale: float) -> bool:
        """Whether a number is what comes out for its row or column."""
        value = self.values.get(slot.line)
        half = slot.said.figure.half
        if value is None or scale * self.rooms[slot.line] > COARSE * half:
            return False
        room = half + scale * self.rooms[slot.line]
        return abs(abs(slot.said.figure.value) - abs(scale * value)) <= room * (1 + 1e-6)


def false_in_parallel(records: Records, every: Sequence[Sentence]) -> Iterator[Mark]:
    """Numbers that are not what all others that are told alike are."""
    for sentence in every:
        named = [*_named(sentence, records.sheets), *_in_turn(sentence, records.sheets)]
        for run in (*named, *_bare(sentence)):
            if len(run) >= LEAST:
                yield from _odd(records, sentence, run)
        for run in named:
            yield from _exchanged(records, sentence, run)


# --- numbers that are told alike

Run = Sequence[tuple[Mention | None, Said]]


def _named(sentence: Sentence, sheets: Sequence[Sheet]) -> Iterator[Run]:
    """Numbers each of which has its own name, or count of shots, right before it."""
    every = sorted(
        [*mentions(sentence, sheets), *_shots(sentence, sheets)], key=lambda one: one.start
    )
    run: list[tuple[Mention | None, Said]] = []
    start = 0
    for said in sentence.numbers:
        own = [one for one in every if start <= one.start and one.end <= said.start]
        last = run[-1] if run else None
        broken = bool(_APART.search(sentence.plain[start : said.start]))
        if last and own and last[0] and _alike(last[1], said) and not broken:
            same = [one for one in own if one.sides & last[0].sides]
            if len(same) == 1 and len(own) == 1:
                run.append((same[0], said))
                start = said.end
                continue
        if len(run) > 1:
            yield run
        run = [(own[-1], said)] if own else []
        start = said.end
    if len(run) > 1:
        yield run


def _shots(sentence: Sentence, sheets: Sequence[Sheet]) -> Iterator[Mention]:
    """The counts of shots of a sentence as the tables call them: "2-shot", "Shot 2"."""
    for place in sentence.places:
        if place.axis == "shot":
            keys = frozenset((f"{place.at:g}shot", f"shot{place.at:g}"))
            sides = frozenset(side for key in keys for side, _ in having(sheets, key))
            text = sentence.plain[place.start : place.end]
            yield Mention(place.start, place.end, keys, text, sides)


def _in_turn(sentence: Sentence, sheets: Sequence[Sheet]) -> Iterator[Run]:
    """Several names, and behind them as many numbers in their order: "A and B are 1 and 2"."""
    plain, every = sentence.plain, mentions(sentence, sheets)
    for match in _TURN.finditer(plain):
        told = [one for one in sentence.numbers if one.start >= match.end()]
        numbers = told[:1]
        for said in told[1:] if told and told[0].start - match.end() <= CLOSE else ():
            if not _BARE.fullmatch(plain[numbers[-1].end : said.start]):
                break
            numbers.append(said)
        names = [one for one in every if one.end <= match.start()][-len(numbers) :]
        joined = all(
            _JOINED.fullmatch(plain[one.end : other.start]) for one, other in pairwise(names)
        )
        if 1 < len(numbers) == len(names) and joined:
            yield list(zip(names, numbers, strict=True))


def _bare(sentence: Sentence) -> Iterator[Run]:
    """Numbers in a row without names, which are in the order of a table."""
    run: list[tuple[Mention | None, Said]] = []
    for one, other in pairwise([*sentence.numbers, None]):
        if one is None:
            break
        run.append((None, one))
        joined = other is not None and _BARE.fullmatch(sentence.plain[one.end : other.start])
        if not joined or other is None or not _alike(one, other):
            if len(run) >= LEAST:
                yield run
            run = []


def _alike(one: Said, other: Said) -> bool:
    """Whether two numbers are printed alike."""
    kinds = {one.kind, other.kind} - {"unit"}
    same = len(kinds) <= 1 or kinds == {"points", ""}
    return same and one.figure.decimals == other.figure.decimals


# --- what they are


def _odd(records: Records, sentence: Sentence, run: Run) -> Iterator[Mark]:
    """The one number of a run that the ways which fit all others do not give."""
    best, blamed = 0, set[tuple[Said, str]]()
    said = run[0][1]
    scales = (1.0, 100.0) if said.figure.unit == "%" else (1.0,)
    for slots, way, scale in product_of(records, run, scales):
        fits = [slot for slot in slots if way.fits(slot, scale)]
        if len(fits) < max(best, len(slots) - 1, LEAST - 1):
            continue
        missed = list(_missed(slots, fits, way, scale))
        named = run[0][0] is not None and way.kind == "plain"
        near = named and all(_is_near(*one) for one in missed)
        if not _is_telling(fits, TELLING - 2 if near else TELLING):
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


def _exchanged(records: Records, sentence: Sentence, run: Run) -> Iterator[Mark]:
    """Two numbers of a run that are each other's, where all the rest is what comes out."""
    scales = (1.0, 100.0) if run[0][1].figure.unit == "%" else (1.0,)
    found: list[Slot] = []
    for slots, way, scale in product_of(records, run, scales):
        off = [slot for slot in slots if not way.fits(slot, scale)]
        if not off:
            return
        rest = len(slots) - len(off)
        if len(off) != 2 or not (rest or way.kind == "plain") or not _is_telling(off, TELLING):
            continue
        one, other = off
        turned = (Slot(one.said, other.line), Slot(other.said, one.line))
        if all(way.fits(slot, scale) for slot in turned):
            found.append(one)
    if found:
        yield said_mark(sentence, found[0].said, "wrong", "check.crosswise", {})


def product_of(
    records: Records, run: Run, scales: Sequence[float]
) -> Iterator[tuple[list[Slot], Way, float]]:
    """A run's numbers with every way in which they may have been worked out."""
    few = run[0][0] is None and len(run) <= LEAST
    for board in boards(records):
        for slots in _slots(board, run):
            for way in board.ways:
                if way.suits(run[0][1]) and not (few and way.kind != "plain"):
                    yield from ((slots, way, scale) for scale in scales)


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


@dataclass
class Board:
    """Things with their numbers: rows with those of every column, or courses with their steps."""

    keys: Sequence[frozenset[str]]
    ways: list[Way]


def boards(records: Records) -> list[Board]:
    """All tables, by row and by column, and the courses of several arms."""
    if not records.boards:
        records.boards.extend(_boards(records))
    return records.boards


def _boards(records: Records) -> Iterator[Board]:
    for sheet in records.sheets:
        for side in ("row", "column"):
            lines: dict[int, dict[int, Figure]] = {}
            for cell in sheet.cells:
                own, other = (cell.row, cell.column) if side == "row" else (cell.column, cell.row)
                if not cell.part:
                    lines.setdefault(other, {})[own] = cell.figure
            counted = sheet.across if side == "row" else sheet.counts
            keys = row_keys if side == "row" else column_keys
            count = len(sheet.rows) if side == "row" else len(sheet.columns)
            yield Board([keys(sheet, nth) for nth in range(count)], list(_made(lines, counted)))
    groups: dict[str, list[Course]] = {}
    for course in records.courses:
        if course.arm:
            groups.setdefault(course.quantity, []).append(course)
    for every in groups.values():
        lines = {}
        for nth, course in enumerate(every):
            for at, figure in course.points.items():
                lines.setdefault(int(at), {})[nth] = figure
        made = list(_made(lines, {at: float(at) for at in lines}))
        yield Board([keys_of([course.arm], "") for course in every], made)


def _slots(board: Board, run: Run) -> Iterator[list[Slot]]:
    """A run's numbers with the things of a board that they are of."""
    if run[0][0] is None:
        for start in range(len(board.keys) - len(run) + 1):
            for step in (1, -1):
                lines = [*range(start, start + len(run))][::step]
                told = zip(run, lines, strict=True)
                yield [Slot(said, line) for (_, said), line in told]
        return
    found = []
    for mention, said in run:
        own = [nth for nth, keys in enumerate(board.keys) if mention and mention.keys & keys]
        if len(own) != 1:
            return
        found.append(Slot(said, own[0]))
    if len({slot.line for slot in found}) == len(found):
        yield found


def _made(lines: Mapping[int, Mapping[int, Figure]], counted: Mapping[int, float]) -> Iterator[Way]:
    """All that may be worked out of the lines of a board."""
    for line in lines.values():
        values = {nth: one.value for nth, one in line.items()}
        yield Way("plain", values, dict.fromkeys(line, 0.0))
    for one, other in permutations(lines, 2) if len(lines) <= WIDEST else ():
        yield from _gaps(lines[one], lines[other])
    course = [lines[nth] for nth in sorted(counted, key=lambda at: counted[at]) if nth in lines]
    for count in (*WINDOWS, len(course)):
        if len(course) >= LEAST and count <= len(course):
            yield _mean(course[-count:])


def _gaps(one: Mapping[int, Figure], other: Mapping[int, Figure]) -> Iterator[Way]:
    """The difference, the change in percent and the ratio of two lines."""
    both = [nth for nth in one if nth in other]
    ours, theirs = ({nth: line[nth].value for nth in both} for line in (one, other))
    halves = {nth: one[nth].half + other[nth].half for nth in both}
    yield Way("gap", {nth: ours[nth] - theirs[nth] for nth in both}, halves)
    some = [nth for nth in both if theirs[nth] and abs(theirs[nth]) > other[nth].half]
    ratios = {nth: ours[nth] / theirs[nth] for nth in some}
    rooms = {
        nth: (one[nth].half + abs(ratios[nth]) * other[nth].half) / abs(theirs[nth]) for nth in some
    }
    yield Way("ratio", ratios, rooms)
    yield Way(
        "change",
        {nth: 100 * (ratios[nth] - 1) for nth in some},
        {nth: 100 * rooms[nth] for nth in some},
    )


def _mean(lines: Sequence[Mapping[int, Figure]]) -> Way:
    both = set.intersection(*(set(line) for line in lines))
    values = {nth: sum(line[nth].value for line in lines) / len(lines) for nth in both}
    rooms = {nth: sum(line[nth].half for line in lines) / len(lines) for nth in both}
    return Way("mean", values, rooms)
