"""Best steps in tables, held against the courses of all tables: the best stands where it stands.

A table that sums up its runs gives the best value of each and the step of it. Where another table
has the course, the value is at the end of it and stands at a step of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kleash.imports.markdown.labels import is_best_step
from kleash.imports.markdown.text import bare
from kleash.written.fitting import prints
from kleash.written.made.parts import Part, parts_of
from kleash.written.marks import Mark
from kleash.written.printed import Figure, Sheet, squeezed
from kleash.written.prose import STILL
from kleash.written.told.things import column_keys, row_keys
from kleash.written.told.tracks import Course, families

TELLING = 3  # digits of a value that is known by them, of an arm that is named
ALONE = 4  # and of one that is not
_EXTREME = re.compile(
    r"最[佳好优高低大小]|峰值?|(?<![a-z])(?:best|peak|max(?:imum)?|min(?:imum)?|highest|lowest)(?![a-z])"
)
_DERIVED = re.compile(
    r"[−→]|\s-\s|差|回落|变化|提升|下降|较|相对|后|次数|占比|显存|用时|时长|时间|耗时|费用|成本|"
    r"(?<![a-z])(?:vs|minus|drop|gain|change|after|since|mean|memory|mem|from|count|share|time|cost)"
    r"(?![a-z])"
)
_STEPS = r"steps?|epochs?|updates?|iterations?|iters?|步数?|轮次?"
_WHERE = re.compile(
    rf"所在|峰值\s?(?:{_STEPS})|最[高低大小佳好优]值?\s?的?\s?(?:{_STEPS})|"
    rf"(?<![a-z])(?:peak|max|min|highest|lowest)\W?(?:{_STEPS})"
)
_THERE = re.compile(
    rf"(?:(?:at|in|@)\s?(?:the\s)?)?(?:{_STEPS})|在?第?几(?:{_STEPS})|所在(?:{_STEPS})"
)
_WORD = re.compile(r"[a-z]*\d+|[a-z]+|[\u4e00-\u9fff]")


@dataclass(frozen=True)
class Summit:
    """A best value of a table, the step that is given with it, and whose it may be."""

    line: int
    text: str
    at: float
    value: Figure
    keys: frozenset[str]
    told: int
    """The line of the value."""
    title: str = ""


def false_summits(sheets: Sequence[Sheet], courses: Sequence[Course]) -> Iterator[Mark]:
    """Best steps of tables at which the value beside them does not stand."""
    for sheet in sheets:
        for one in summits(sheet):
            steps = _stands(one, courses)
            if steps and one.at not in steps:
                at = [int(step) if step.is_integer() else step for step in sorted(steps)]
                facts = {"said": f"{one.at:g}", "at": at}
                # The step may be right and the value another's.
                line = one.told if _ends(one, courses) else one.line
                yield Mark(line, one.text, "wrong", "check.elsewhere", facts, "summit")


def summits(sheet: Sheet) -> Iterator[Summit]:
    """Every best of a table with its step: two columns, two rows, or a step in brackets."""
    header, rows, lines = sheet.table.header, sheet.table.rows, sheet.table.lines
    labels = [texts[0] for texts in rows]
    for step, best in _paired(["", *header[1:]]):
        for row, texts in enumerate(rows):
            if max(step, best) < len(texts):
                where = lines[row], lines[row]
                yield from _two(
                    where, texts[step], texts[best], _row_keys(sheet, row), header[step]
                )
    for step, best in _paired(labels):
        for column in range(1, min(len(rows[step]), len(rows[best]))):
            keys, where = column_keys(sheet, column), (lines[step], lines[best])
            yield from _two(where, rows[step][column], rows[best][column], keys, labels[step])
    for row, texts in enumerate(rows):
        for column in range(1, min(len(texts), len(header))):
            own, other = (squeezed(bare(text)) for text in (labels[row], header[column]))
            named = f"{own} | {other}"
            if _EXTREME.search(named) and not _DERIVED.search(named):
                keys = _row_keys(sheet, row) | column_keys(sheet, column)
                title = own if _EXTREME.search(own) else other
                yield from _in_brackets(lines[row], texts[column], keys, title)


def is_where(title: str) -> bool:
    """Whether a title asks at which step something is highest, or lowest."""
    return bool(_WHERE.search(title)) and not _DERIVED.search(title)


def _row_keys(sheet: Sheet, row: int) -> frozenset[str]:
    """The keys of a row; one that is a number under "Rollout N" is also N=2."""
    head = squeezed(bare(sheet.table.header[0])).split()
    number = re.fullmatch(r"\d+(?:\.\d+)?", bare(sheet.table.rows[row][0]))
    return row_keys(sheet, row) | ({f"{head[-1]}{number[0]}"} if head and number else set())


def _paired(titles: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Lines of best steps, each with the line of bests that shares most words, or is nearest."""
    plain = [re.sub(r"\(.*?\)", "", squeezed(bare(title))) for title in titles]
    told = [nth for nth, title in enumerate(plain) if not _DERIVED.search(title)]
    best = [nth for nth in told if _EXTREME.search(plain[nth])]
    steps = [nth for nth in best if is_best_step(plain[nth]) or is_where(plain[nth])]
    bests = [nth for nth in best if nth not in steps]
    steps += [nth for nth in told if nth - 1 in bests and _THERE.fullmatch(plain[nth])]
    words = [set(_WORD.findall(title)) for title in plain]
    found: dict[int, list[tuple[int, int, int]]] = {}
    for step in steps:
        kinds = families(plain[step])
        same = [
            (-len(words[nth] & words[step]), abs(nth - step), nth)
            for nth in bests
            if not kinds or not (own := families(plain[nth])) or kinds & own
        ]
        if same:
            common, far, nth = min(same)
            found.setdefault(nth, []).append((common, far, step))
    for nth, pairs in found.items():  # a best has one step; another is that of something else
        yield min(pairs)[2], nth


def _two(
    lines: tuple[int, int], step: str, best: str, keys: frozenset[str], title: str
) -> Iterator[Summit]:
    """A step in one cell and its value in another; either may have the other in brackets."""
    values = [part for kind, part in parts_of(best).items() if kind == ""]
    match = re.fullmatch(r"\D{0,10}(\d+)\D{0,4}", bare(step))
    if values and match and _is_value(values[0]):
        at, value = float(match[1]), _figure(values[0])
        yield Summit(lines[0], bare(step), at, value, keys, lines[1], title)


def _in_brackets(line: int, text: str, keys: frozenset[str], title: str) -> Iterator[Summit]:
    """A value with its step behind it, "1.690 (Step 45)" or "0.672 @ 364", or the other way."""
    parts = parts_of(text)
    value, step = parts.get(""), parts.get("(") or parts.get("@")
    if value is None or step is None or len(parts) != 2 or step.unit == "%":
        return
    if value.decimals == 0 and step.decimals:
        value, step = step, value
    if _is_value(value) and step.decimals == 0 and step.value >= 0 and not step.signed:
        yield Summit(line, bare(text), step.value, _figure(value), keys, line, title)


def _is_value(part: Part) -> bool:
    return part.decimals > 0 and part.digits >= TELLING


def _figure(part: Part) -> Figure:
    return Figure(part.value, part.decimals, part.unit)


def _stands(one: Summit, courses: Sequence[Course]) -> set[float]:
    """The steps at which a value is the best of its course; none if it may stand where it says."""
    # A column of bests is no course.
    known = [each for each in courses if one.line not in each.lines or len(set(each.lines)) == 1]
    known = [each for each in known if one.at in each.points and each.axis not in STILL]
    own = [each for each in known if one.keys & each.keys and _extremes(each, one.value)]
    if any(_same(one.value, each.points[one.at]) for each in own or known):
        return set()
    if own:
        return {at for each in own for at in _extremes(each, one.value)}
    alone = {
        at
        for each in known
        for at in _extremes(each, one.value)
        if prints(one.value, each.points[at])
    }
    return alone if one.value.digits >= ALONE and len(alone) == 1 else set()


def _ends(one: Summit, courses: Sequence[Course]) -> bool:
    """Whether a course of what is named is highest, or lowest, at the step that is said."""
    own = [each for each in courses if one.keys & each.keys and one.at in each.points]
    return any(_extremes(each, each.points[one.at]) for each in own)


def _extremes(course: Course, value: Figure) -> set[float]:
    """The steps at which a course is highest, or lowest, and has a value there."""
    values = [figure.value for figure in course.points.values()]
    return {
        at
        for at, figure in course.points.items()
        if figure.value in (max(values), min(values)) and _same(value, figure)
    }


def _same(one: Figure, other: Figure) -> bool:
    """Whether two tables may have one number, each with its own decimals."""
    return prints(one, other) or prints(other, one)
