"""Of what a part of a sentence speaks: arms and quantities that it names, or that it goes on with.

What its own clause does not name was named before: in the clause before it, or in the sentence
before. Several arms in a row ("A, B and C peak at epoch 3") are each meant.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product
from typing import Any

from kleash.written.book import Book
from kleash.written.curves import Thread, threads_of
from kleash.written.fitting import prints
from kleash.written.gaps import is_gap
from kleash.written.logs import Logs
from kleash.written.marks import Mark
from kleash.written.page import Page
from kleash.written.printed import Figure, Sheet
from kleash.written.prose import At, Said, Sentence
from kleash.written.relations import Node, node
from kleash.written.told.bests import Best, bests_of
from kleash.written.told.things import LEASHED, ZERO, Mention, column_keys, mentions, row_keys
from kleash.written.told.tracks import Course, above_of, courses, families

NEAR = 16  # letters between a step and the value at it
CLAUSE = re.compile(
    r"[,;。:](?!\d{3})|(?<![a-z])(?:but|while|whereas|then)(?![a-z])|而(?!且)|但|则"
)
_JOINED = re.compile(r"[\s、,/和与及]*(?:(?<![a-z])(?:and|both)(?![a-z]))?[\s和与及]*(?:the\s)?")
_OTHER = re.compile(
    r"[;。]|[降升跌涨落]|末|(?<!达)到|至|对|(?<![a-z])(?:and|but|to|from|fall\w*|drop\w*|ends?|vs|against)(?![a-z])"
)
_FROM = re.compile(r"(?:从|由|超过)\s?$")  # what it came from, or is held against
_OF = re.compile(
    r"%?\s?[,(]?\s?(?:from|of|by|for|with|in|由|来自)?\s?[`*\"]*\s?[`*\"]*\s?,?\s?(?:at|@|在|于)?\s?"
)
_FOR = re.compile(r"\s?(?:for|of|in)\s(?:the\s|run\s|arm\s)?")  # "step 220 for C"
UNDER = 4  # lines
FEW = 10  # numbers of an arm of which one at least is of each run that is its own
Arms = tuple[Mention, ...]
AXES = ("step", "update", "iteration")


@dataclass(frozen=True)
class Subject:
    """Whose numbers a claim is about; `listed` if it holds for each of its arms."""

    arms: tuple[Mention, ...]
    text: str
    """Its words without arms, in which quantities are named."""
    listed: bool = False


@dataclass(frozen=True)
class Records:
    """All courses that claims are held against: of tables, and of logs by the arm they are of."""

    courses: Sequence[Course]
    sheets: Sequence[Sheet]
    groups: Mapping[str, set[str]] = field(default_factory=dict)
    """By key of an arm, what logs call the runs that have its numbers."""
    threads: Sequence[Thread] = ()
    bests: Sequence[Best] = ()
    above: Mapping[int, str] = field(default_factory=dict)
    """By table, what it is said to be of."""
    lineups: list[Any] = field(default_factory=list)
    """What `lineups` works numbers out of, once it has looked."""

    def of_tables(self, subject: Subject, arms: Arms, axis: str) -> list[Course]:
        """The courses of tables that may be a subject's; where some are called so, only these."""
        found = [
            one
            for one in self.courses
            if (one.axis == axis or (axis == "checkpoint" and one.axis in AXES))
            and one.is_of(subject.text)
            and all(map(one.answers, arms))
        ]
        wanted = families(subject.text)
        return [one for one in found if wanted & families(one.label)] or found

    def of_logs(self, subject: Subject, arms: Arms, axis: str) -> list[Thread]:
        """The courses of logs that may be a subject's; those of any run where none is known."""
        own: set[str] = set()
        for arm in arms:
            told = set[str]().union(*(self.groups.get(key, ()) for key in arm.keys))
            own = (own & told or own) if told and own else told or own
        wanted = families(subject.text)
        return [
            one
            for one in self.threads
            if (not own or one.group in own)
            and (one.axis == "epoch") == (axis == "epoch")
            and (not wanted or not (kinds := families(_words(one.metric))) or wanted & kinds)
        ]

    def same(
        self, subject: Subject, arms: Arms, axis: str, known: Sequence[Course]
    ) -> list[Mapping[float, float]]:
        """The curves of logs that may be meant: those of known courses, where a quantity is named
        others of that kind too."""
        every = self.of_logs(subject, arms, axis)
        wanted = bool(families(subject.text)) or not known
        return [one.points for one in every if wanted or any(c.is_like(one.points) for c in known)]

    def elsewhere(self, own: Sequence[Course], figure: Figure, line: int) -> bool:
        """Whether a number stands in other lines of tables than in those of some courses.

        What stands right under a table is said of it.
        """
        lines = {line for one in own for line in one.lines}
        if lines and 0 < line - max(one for one in lines if one) <= UNDER:
            return False
        cells = (cell for sheet in self.sheets for cell in sheet.cells)
        return any(prints(figure, one.figure) and one.line not in lines for one in cells)


def records_of(book: Book, page: Page, seen: Mapping[Node, Mark], logs: Logs | None) -> Records:
    """All courses of a page, and of its logs with the arms whose numbers they have."""
    votes: dict[str, Counter[str]] = defaultdict(Counter)
    for cell in book.cells:
        mark = seen.get(node(cell.number))
        if mark is not None and mark.state == "right":
            sheet = book.sheets[cell.table]
            for key in row_keys(sheet, cell.row) | column_keys(sheet, cell.column):
                votes[key][str(mark.facts["arm"])] += 1
    groups = {
        key: {group for group, count in every.items() if FEW * count >= every.total()}
        for key, every in votes.items()
    }
    threads = threads_of(logs) if logs else ()
    above = {sheet.nth: above_of(sheet, page) for sheet in book.sheets}
    made = courses(book.sheets, above, page)
    return Records(made, book.sheets, groups, threads, bests_of(book.sheets), above)


def _words(metric: str) -> str:
    return re.sub(r"[/_.]", " ", metric.casefold())


def clause(sentence: Sentence, start: int, end: int) -> tuple[int, int]:
    """Where the clause begins and ends that a part of a sentence stands in, with its brackets."""
    plain = sentence.plain
    first = max((m.end() for m in CLAUSE.finditer(plain, 0, start)), default=0)
    after = CLAUSE.search(plain, end)
    return first, after.start() if after else len(plain)


def subject_of(sentence: Sentence, sheets: Sequence[Sheet], start: int, end: int) -> Subject:
    """Of what a part of a sentence speaks."""
    every = mentions(sentence, sheets)
    first, last = clause(sentence, start, end)
    own = _own(sentence, every, first, last, start, end)
    text = _without(sentence, every, first, last)
    arms = own
    if not any(_is_arm(one, every) for one in own):
        arms = [*_carried(sentence, every, sheets, first), *own]
    if not families(text) and len(own) == sum(_is_arm(one, every) for one in own):
        text += " " + _earlier(sentence, every, first)
    return Subject(tuple(arms), text, _listed(sentence, arms))


def _own(
    sentence: Sentence, every: Sequence[Mention], first: int, last: int, start: int, end: int
) -> list[Mention]:
    """The names of a clause; of one that gives several steps those since the last of them."""
    inside = [one for one in every if first <= one.start and one.end <= last]
    others = [one for one in sentence.places if first <= one.start < last and one.start != start]
    if not others:
        return inside
    behind = [one for one in inside if _FOR.fullmatch(sentence.plain[end : one.start])]
    if behind:
        return behind[:1]
    since = max((one.end for one in others if one.end <= start), default=first)
    before = [one for one in inside if since <= one.start and one.end <= end]
    until = min((one.start for one in others if one.start >= end), default=last)
    return before or [one for one in inside if one.end <= start or one.end <= until]


def _is_arm(one: Mention, every: Sequence[Mention]) -> bool:
    """Whether a mention names an arm: by a coefficient, or as what is no quantity is named."""
    if any(key.startswith("#") for key in one.keys) or not families(one.text):
        return True
    return any(one.sides & other.sides and not families(other.text) for other in every)


def _carried(
    sentence: Sentence, every: Sequence[Mention], sheets: Sequence[Sheet], first: int
) -> list[Mention]:
    """The arms of the last clause before that names any, in this sentence or the one before."""
    before = [one for one in every if one.end <= first and _is_arm(one, every)]
    if before:
        start, _ = clause(sentence, before[-1].start, before[-1].end)
        named = [one for one in every if start <= one.start and one.end <= first]
        same = any(not _is_arm(one, every) for one in every if one.start >= first)
        return [one for one in named if one in before or not same]  # with its quantity
    if sentence.before is None:
        return []
    earlier = mentions(sentence.before, sheets)
    arms = [one for one in earlier if _is_arm(one, earlier)]
    return arms[:1] if len({one.keys for one in arms}) == 1 else []


def _earlier(sentence: Sentence, every: Sequence[Mention], first: int) -> str:
    """The last clause before that names a quantity."""
    edges = [0, *(m.end() for m in CLAUSE.finditer(sentence.plain, 0, first)), first]
    for start, end in zip(reversed(edges[:-1]), reversed(edges[1:]), strict=True):
        text = _without(sentence, every, start, end)
        if families(text):
            return text
    return ""


def _without(sentence: Sentence, every: Sequence[Mention], start: int, end: int) -> str:
    """A part of a sentence without the arms in it."""
    arms = [one for one in every if _is_arm(one, every)]
    hidden = {at for one in arms for at in range(one.start, one.end)}
    text = "".join(" " if at in hidden else sentence.plain[at] for at in range(start, end))
    return LEASHED.sub(" ", ZERO.sub(" ", text))


def _listed(sentence: Sentence, arms: Sequence[Mention]) -> bool:
    """Whether arms stand right beside each other."""
    return all(
        _JOINED.fullmatch(sentence.plain[one.end : other.start]) for one, other in pairwise(arms)
    )


def value_beside(sentence: Sentence, place: At) -> Said | None:
    """The number that a sentence gives for a step, right beside it: "step 150 (0.4)"."""
    for said in sorted(sentence.numbers, key=lambda one: abs(one.start - place.end)):
        before = said.end <= place.start
        start, end = (said.end, place.start) if before else (place.end, said.start)
        between = _nameless(sentence, start, end)
        if said.figure.digits < 2 or is_gap(sentence, said) or len(between) > NEAR:
            continue
        if not before and _FROM.search(between):
            continue
        others: list[At | Said] = [*sentence.places, *sentence.numbers]
        taken = any(start <= one.start < end for one in others)
        named = len(between) < end - start and _OF.fullmatch(between)
        if before and not named and re.search(r"[),](?!\s?at)", between):
            continue
        if not taken and not _OTHER.search(between):
            return said
    return None


def _nameless(sentence: Sentence, start: int, end: int) -> str:
    """A part of a sentence without the names in it: "0.73, from `b0.01_s44` at step 400"."""
    named = {at for one in sentence.names for at in range(one.start, one.end)}
    return "".join(sentence.plain[at] for at in range(start, end) if at not in named)


def has(course: Course, figure: Figure) -> bool:
    """Whether a course has a number anywhere."""
    return any(prints(figure, one) for one in course.points.values())


def each(subject: Subject) -> Iterator[Arms]:
    """Every one that a subject speaks of: one name for each way in which it names things.

    "DPO at 15 nats" is one of two names; "A, B and C" are three of one name each.
    """
    kinds: list[list[Mention]] = []
    for arm in subject.arms:
        same = next((one for one in kinds if any(arm.sides & other.sides for other in one)), None)
        if same is None:
            kinds.append([arm])
        else:
            same.append(arm)
    yield from product(*kinds)
