"""Best steps that a table gives without their values: all but a slip are where courses are best.

"Best step of the mean: 350, 400, 400, 250": where a table has the course of each, most of the steps
are where these are highest, or lowest. Two tables may also tell the best step of one thing; then
they tell the same.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from kleash.findings.record import canonical
from kleash.imports.markdown.labels import is_best_step
from kleash.imports.markdown.text import bare
from kleash.written.marks import Mark
from kleash.written.printed import Sheet, squeezed
from kleash.written.prose import STILL
from kleash.written.told.subjects import Records
from kleash.written.told.summits import is_where, summits
from kleash.written.told.things import column_keys, keys_of, row_keys
from kleash.written.told.tracks import Course, families

LEAST = 2  # steps of a line that are where courses are best
_LOWEST = re.compile(r"最[小低]|(?<![a-z])(?:lowest|min(?:imum|imal)?)(?![a-z])")
_HIGHEST = re.compile(r"最[大高]|峰|(?<![a-z])(?:highest|max(?:imum|imal)?|peak)(?![a-z])")
_SAID_OF = re.compile(
    r"最[小低大高佳优好]值?|峰值?|的|所在|(?<![a-z])(?:best|peak|highest|lowest|max(?:imum)?|"
    r"min(?:imum)?|of|the|at|steps?|epochs?|updates?)(?![a-z])|步数?|轮次?|validation|val(?![a-z])"
)
_STEP = re.compile(r"(?:(?:step|epoch|update|iter\w*|第)\s?)?(\d+)\s?(?:步|轮)?", re.I)


@dataclass(frozen=True)
class Lone:
    """A cell that holds a best step: of what, and as which title says."""

    line: int
    text: str
    at: float
    keys: tuple[frozenset[str], ...]
    """What its course answers to, each of them."""
    title: str


@dataclass(frozen=True)
class Telling:
    """A best step as a table tells it: of what, and whether of its highest or its lowest."""

    line: int
    text: str
    at: float
    keys: frozenset[str]
    quantity: str
    way: str

    def is_of(self, other: Telling) -> bool:
        """Whether two tellings are of one thing."""
        same = (self.quantity, self.way) == (other.quantity, other.way)
        return bool(same and self.quantity and self.way and self.keys & other.keys)


def false_lone_steps(records: Records) -> Iterator[Mark]:
    """Best steps that are not where their courses are best, as those beside them are."""
    sources = _sources(records.courses)
    told = list[Lone]()
    for sheet in records.sheets:
        paired = {(one.line, one.text) for one in summits(sheet)}
        for every in _lines(sheet, records.above.get(sheet.nth, "")):
            own = [one for one in every if (one.line, one.text) not in paired]
            told += own
            yield from (_mark(one, right) for one, right in _off(own, sources))
    yield from _told_otherwise(records.sheets, told)


def _mark(one: Lone, right: set[float]) -> Mark:
    at = [int(step) if step.is_integer() else step for step in sorted(right)]
    facts = {"said": f"{one.at:g}", "at": at}
    return Mark(one.line, one.text, "wrong", "check.elsewhere", facts, "lone")


def _lines(sheet: Sheet, above: str) -> Iterator[list[Lone]]:
    """Every line of best steps of a table: a column, a row, or each row where all of it are."""
    header, rows, lines = sheet.table.header, sheet.table.rows, sheet.table.lines
    for column, title in enumerate(header):
        if column and _is_lone(title):
            every = range(len(rows))
            keys = {row: (row_keys(sheet, row),) for row in every}
            cells = {row: rows[row][column] for row in every if column < len(rows[row])}
            yield _read({lines[row]: (text, keys[row]) for row, text in cells.items()}, title)
    for row, texts in enumerate(rows):
        if _is_lone(texts[0]):
            own = range(1, min(len(texts), len(header)))
            made = [_of(lines[row], texts[at], (column_keys(sheet, at),), texts[0]) for at in own]
            yield [one for one in made if one]
        elif _is_lone(above) and not any(map(_is_lone, header[1:])):
            first = row_keys(sheet, row) | keys_of([bare(texts[0])], "")
            made = [
                _of(lines[row], texts[at], (first, column_keys(sheet, at)), above)
                for at in range(1, min(len(texts), len(header)))
            ]
            if all(made):
                yield [one for one in made if one]


def _read(cells: dict[int, tuple[str, tuple[frozenset[str], ...]]], title: str) -> list[Lone]:
    made = [_of(line, text, keys, title) for line, (text, keys) in cells.items()]
    return [one for one in made if one]


def _of(line: int, text: str, keys: tuple[frozenset[str], ...], title: str) -> Lone | None:
    match = _STEP.fullmatch(bare(text).strip("* "))
    return Lone(line, bare(text), float(match[1]), keys, title) if match else None


def _is_lone(title: str) -> bool:
    plain = squeezed(bare(title))
    return is_best_step(plain) or is_where(plain)


def _sources(courses: Sequence[Course]) -> list[list[Course]]:
    """The courses of each quantity of each table, and of each that goes from table to table."""
    found: dict[tuple[object, ...], list[Course]] = defaultdict(list)
    for one in courses:
        table = () if one.arm else tuple(sorted(one.lines))
        found[table, one.quantity or one.label.rpartition("·")[0], one.axis].append(one)
        found[one.about, tuple(sorted(families(one.label))), one.axis].append(one)
    return list(found.values())


def _off(own: Sequence[Lone], sources: Sequence[list[Course]]) -> list[tuple[Lone, set[float]]]:
    """The steps of a line that are off by the courses that bear out most of it."""
    found: list[tuple[set[Lone], list[tuple[Lone, set[float]]]]] = []
    for source in (one for one in sources if one[0].axis not in STILL):
        for way in _ways(own[0].title) if own else ():
            ends = {one: _ends(one, source, way) for one in own}
            fine = {one for one, steps in ends.items() if one.at in steps}
            off = [(one, steps) for one, steps in ends.items() if steps and one not in fine]
            if len(fine) >= LEAST:
                found.append((fine, off))
    most = max((len(fine) for fine, _ in found), default=0)
    off = min((off for fine, off in found if len(fine) == most), key=len, default=[])
    near = [fine for fine, other in found if len(fine) >= most - 1 and len(other) <= len(off)]
    fine = {one for each in near for one in each}
    return [each for each in off if each[0] not in fine] if 2 * len(off) <= most else []


def _ways(title: str) -> Sequence[str]:
    plain = squeezed(bare(title))
    if _LOWEST.search(plain):
        return ["low"]
    return ["high"] if _HIGHEST.search(plain) else ["high", "low"]


def _ends(one: Lone, source: Sequence[Course], way: str) -> set[float]:
    """Where the one course that is meant is best; nothing where none is, or several are."""
    text = squeezed(bare(one.title))
    meant = [
        each for each in source if all(keys & each.keys for keys in one.keys) and each.is_of(text)
    ]
    if len(meant) != 1 or one.at not in meant[0].points:
        return set()
    values = {at: figure.value for at, figure in meant[0].points.items()}
    end = max(values.values()) if way == "high" else min(values.values())
    return {at for at, value in values.items() if value == end}


def _told_otherwise(sheets: Sequence[Sheet], told: Sequence[Lone]) -> Iterator[Mark]:
    """Best steps of one quantity of one arm that two tables give differently."""
    known = [
        Telling(one.line, one.text, one.at, one.keys[0], quantity(one.title), _way(one.title))
        for one in told
        if len(one.keys) == 1
    ]
    headings = Counter(sheet.table.headings[-1:] for sheet in sheets)
    for sheet in sheets:
        labels = [row[0] for row in sheet.table.rows]
        for one in summits(sheet) if len(set(labels)) == len(labels) else ():
            heading = squeezed(bare("".join(sheet.table.headings[-1:])))
            alone = headings[sheet.table.headings[-1:]] == 1  # several may be of a quantity each
            named = quantity(one.title) or (
                quantity(heading) if alone and families(heading) else ""
            )
            known.append(Telling(one.line, one.text, one.at, one.keys, named, _way(one.title)))
    for first, second in combinations(known, 2):
        if first.line == second.line or first.at == second.at or not first.is_of(second):
            continue
        for ours, theirs in ((first, second), (second, first)):
            facts = {"said": f"{ours.at:g}", "at": [f"{theirs.at:g}"]}
            yield Mark(ours.line, ours.text, "unsupported", "check.elsewhere", facts, "lone")


def quantity(title: str) -> str:
    """What a title is of, without what it says of it and without its brackets."""
    plain = re.sub(r"\(.*?\)", " ", squeezed(bare(title)))
    return re.sub(r"[^a-z\u4e00-\u9fff]", "", _SAID_OF.sub(" ", canonical(plain)))


def _way(title: str) -> str:
    ways = _ways(title)
    return ways[0] if len(ways) == 1 else ""
