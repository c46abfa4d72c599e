"""At which step or epoch a value stands, line by line, whoever's it is.

A value of several digits names its point. Where one line gives it another step than the tables do,
or than two other lines, that line is wrong. `places` knows more, of what was understood.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kleash.documents.marks import Mark
from kleash.documents.page import Page
from kleash.findings.record import digits
from kleash.imports import Number, Where
from kleash.imports.markdown import labels
from kleash.imports.markdown.draft import Draft
from kleash.imports.markdown.numbers import numbers_in
from kleash.imports.markdown.text import fold, plain
from kleash.written.grids import Grid, Slot, grids, turned
from kleash.written.printed import figure_of
from kleash.written.prose import UNDONE

NAMING = 3  # digits of a value that is called a best; one more elsewhere
PLACE = re.compile(
    r"(?<![a-z])(?P<axis>step|epoch)s?\s?[:=#(（]?\s?(?P<at>\d{1,9})(?!\s*[-~\d%→]|\.\d|,\d{3})|第\s?(?P<nth>\d{1,9})\s?(?P<unit>步|轮)",
    re.I,
)
SPAN = re.compile(r"(?:step|epoch)s?\s?\d+\s?(?:[-~]|到|至|to)\s?\d+", re.I)
BEST = re.compile(
    r"最佳|最优|最小|最低|最大|最高|峰值|(?<![a-z])(?:best|peaks?|minimum|lowest|maximum|highest)(?![a-z])",
    re.I,
)
RANKING = re.compile(  # "the highest at step 40 is A" says of no course where its highest is
    r"(?<![a-z])(?:highest|lowest|best|largest|smallest)(?: \w+){0,3} (?:at|in|on) "
    r"(?:step|epoch)s? ?\d+ (?:is|was|goes|belongs)(?![a-z])|"
    r"(?<!达到)(?<!到达)(?<!取得)最[高低好差大小优佳]的(?:是|一?组是|方法是|模型是)",
    re.I,
)
_TURN = re.compile(
    r"[;。,、]|\.\s|(?<![a-z])(?:and|but|while|then|whereas|ends?|ending|against|from|to)(?![a-z])|"
    r"而|但|随后|之后|最终|最后|末|结束|终点|降到|升到|落到|[降升跌涨回]至"
)
_STOP = re.compile(r"[;。]|\.\s")
_GAP = re.compile(
    r"[高低多少差快慢降升涨跌]|领先|"
    r"(?<![a-z])(?:above|below|lower|higher|more|less|by(?= \d)|lead|behind)(?![a-z])"
)
_COMMA = re.compile(r"\s?(?:时|处|上|里)?\s?(?:的)?\s?[,:(]\s?")
LISTED = re.compile(r"\d\s?%?\s?[/,、]\s?\d+\.\d+\s?%?\s?[/,、]\s?\d+\.\d")  # a row of a table
MORE = re.compile(r"\s?(?:,|、|and|or|和|或|与)\s?\d+(?!\d|\.\d|\s?%)", re.I)  # "epochs 4, 5 and 6"
FROM = re.compile(  # what it came from, or is held against, does not stand there
    r"(?:从|由|超过|高于|低于|不及|赶上|(?<![a-z])(?:from|than|above|below|over|beats?|exceeds?))\s?$"
)
_BEHIND = re.compile(rf"(\d+\.\d+)\s?%?\s?[(（]\s?(?:{PLACE.pattern})", re.I)
_INSIDE = re.compile(rf"(?:{PLACE.pattern})\s?[(（]\s?(?P<inside>[+-]\d+\.\d+)\s?%?\s?[)）]", re.I)


@dataclass(frozen=True)
class Point:
    """A value said to stand at a step or epoch; `counted` where a table has it in that row."""

    line: int
    axis: str
    at: float
    number: Number
    counted: bool = False
    best: bool = False
    alone: bool = False
    """Whether the step stands right behind the value, so that it is this one's."""
    summed: bool = False
    """Whether a table of bests has it: whether that is right `told.summits` knows, by its arm."""


def axis_and_step(match: re.Match[str]) -> tuple[str, float]:
    """What `PLACE` matched: whether steps or epochs are counted, and which it is."""
    if match["at"]:
        return match["axis"].casefold(), float(match["at"])
    return ("step" if match["unit"] == "步" else "epoch"), float(match["nth"])


def misplaced(draft: Draft, page: Page) -> tuple[list[Mark], set[int]]:
    """Every value that a line puts at another step than the rest does; lines that agree with it."""
    found, agreeing = list[Mark](), set[int]()
    every = grids(draft)
    counted = [point for grid in every for point in _counted(grid)]
    told = [*_sentences(draft, page), *_bests(every, counted)]
    by_line: dict[int, list[Point]] = {}
    for point in told:
        by_line.setdefault(point.line, []).append(point)
    for line, points in by_line.items():
        others = [one for one in (*counted, *told) if one.line != line]
        agreed, strayed = False, list[tuple[Point, list[float]]]()
        for point in points:
            same = [one for one in others if one.axis == point.axis and _equal(one, point)]
            usual = sorted({one.at for one in same if one.counted})
            fits = point.at in (usual or [one.at for one in same])
            agreed = agreed or fits
            if fits and point.alone:
                continue
            often = Counter(one.at for one in same if not one.counted).most_common(1)
            usual = usual or [at for at, count in often if count > 1]
            telling = point.best or (
                point.alone and point.number.text[:1] in "+-" and len(usual) == 1
            )
            if usual and not point.summed and digits(point.number) >= NAMING + (not telling):
                strayed.append((point, usual))
        strayed = [each for each in strayed if each[0].alone or not agreed]
        if strayed:
            point, usual = strayed[0]
            facts = {"said": _whole(point.at), "at": [*map(_whole, usual)]}
            text = point.number.text
            found.append(Mark(line, text, "wrong", "check.elsewhere", facts, "step"))
        elif agreed:
            agreeing.add(line)
    return found, agreeing


def _whole(step: float) -> float:
    return int(step) if float(step).is_integer() else step


def _equal(one: Point, other: Point) -> bool:
    """Whether two numbers are printed alike, as far as both have decimals."""
    ours, theirs = (figure_of(point.number) for point in (one, other))
    if ours is None or theirs is None:
        return False
    decimals = min(ours.decimals, theirs.decimals)
    gap = abs(ours.value - theirs.value)
    return gap <= 0.5 * 10.0**-decimals * (1 + 1e-9) and decimals > 0


def _counted(grid: Grid) -> Iterator[Point]:
    """The points of a table whose rows are steps or epochs."""
    axis = labels.axis_of(grid.titles[0])
    heading = fold(plain("".join(grid.table.headings[-1:])))
    above = {axis_and_step(match) for match in PLACE.finditer(heading)}
    across = {nth: _place_of(title) for nth, title in enumerate(grid.titles)}
    for (line, slot), number in grid.at.items():
        match = PLACE.search(plain(grid.names[line]))
        column = across.get(slot[0])
        digits_ = re.fullmatch(r"\D{0,3}(\d{1,9})\D{0,3}", grid.names[line])
        if axis in ("step", "epoch") and digits_ and not slot[1]:
            yield Point(grid.table.lines[line], axis, float(digits_[1]), number, counted=True)
        elif match and not slot[1] and len(grid.names[line]) < 30:
            name, at = axis_and_step(match)
            yield Point(grid.table.lines[line], name, at, number, counted=True)
        elif column and not slot[1]:
            yield Point(grid.table.lines[line], *column, number, counted=True)
        elif len(above) == 1 and not slot[1]:
            yield Point(grid.table.lines[line], *min(above), number, counted=True)


def _place_of(title: str) -> tuple[str, float] | None:
    """The step or epoch that a title is, and nothing else."""
    match = PLACE.fullmatch(fold(plain(title)).strip("* "))
    return axis_and_step(match) if match else None


def _bests(every: Sequence[Grid], counted: Sequence[Point]) -> Iterator[Point]:
    """Bests of a summary, with the step that stands in a column or row of its own.

    Not of one whose bests mostly stand elsewhere: it sums up what no table shows.
    """
    for grid in every:
        for view in (grid, turned(grid)):
            titled = [slot for slot in view.slots() if labels.is_best_step(view.titles[slot[0]])]
            whole = len(titled) == 1 and all(map(_is_step, view.column(titled[0]).values()))
            lines = list(_of_slot(view, titled[0])) if whole else []
            told = [
                {o.at == p.at for p in points for o in counted if o.axis == p.axis and _equal(o, p)}
                for points in lines
            ]
            if sum(map(bool, told)) <= 2 * sum(True in one for one in told):
                yield from (one for points in lines for one in points)


def _is_step(number: Number) -> bool:
    """Whether a number may be a step: -0.55% is none, nor is 312.5."""
    whole = float(number.value or 0.0).is_integer()
    return number.unit != "%" and whole and number.text[:1] != "-"


def _of_slot(view: Grid, slot: Slot) -> Iterator[list[Point]]:
    """The bests of every line with the step of that line."""
    axis = "epoch" if re.search("epoch|轮", view.titles[slot[0]], re.I) else "step"
    for line, step in view.column(slot).items():
        yield [
            Point(step.where.line or 0, axis, step.value or 0.0, number, best=True, summed=True)
            for other, number in view.line(line).items()
            if BEST.search(view.titles[other[0]]) and number.decimals and not other[1]
        ]


def _sentences(draft: Draft, page: Page) -> Iterator[Point]:
    """Lines that are no rows of numbers, and cells, with one step and a value beside it."""
    rows = {line for table in draft.source.tables for line in table.lines}
    for line, (start, end) in enumerate(page.lines, 1):
        text = fold(plain(page.text[start:end]))
        if UNDONE.match(page.text[start:end]):
            continue
        texts = [page.text[a:b] for a, b in page.cells(line)] if line in rows else [text]
        best = bool(BEST.search(text))
        for each in texts:
            yield from _said(fold(plain(each)), line, best=best, row=line in rows)


def _said(text: str, line: int, *, best: bool, row: bool) -> Iterator[Point]:
    where = Where("", line, "said")
    behind = list(_BEHIND.finditer(text))
    for match in behind:
        for number, _, _ in numbers_in(match[1], where):
            yield Point(line, *axis_and_step(match), number, best=best, alone=True)
    if not behind and not row:
        for match in _INSIDE.finditer(text):
            for number, _, _ in numbers_in(match["inside"], where):
                yield Point(line, *axis_and_step(match), number, best=best, alone=True)
    listed = SPAN.search(text) or "→" in text or LISTED.search(text)
    places = [] if behind or row or listed else list(PLACE.finditer(text))
    places = [one for one in places if not MORE.match(text, one.end())]
    for found in places if len(places) == 1 else ():
        for number in _beside(text, found, where):
            yield Point(line, *axis_and_step(found), number, best=best)


def _beside(text: str, found: re.Match[str], where: Where) -> list[Number]:
    """The numbers of a step's clause; where it has none, the only one of its sentence."""
    ends = [match.end() for match in _STOP.finditer(text)]
    first = max((at for at in ends if at <= found.start()), default=0)
    last = min((at for at in ends if at >= found.end()), default=len(text))
    clause, sentence = clause_of(text, found), text[first:last]
    own = _measured(clause, where)
    if own or _GAP.search(sentence):
        return own
    every = _measured(sentence, where)
    return every if len(every) == 1 else []


def _measured(text: str, where: Where) -> list[Number]:
    every = [(number, text[:start]) for number, start, _ in numbers_in(text, where)]
    own = [number for number, before in every if not FROM.search(before)]
    return [one for one in own if one.value is not None and one.decimals]


def clause_of(text: str, found: re.Match[str]) -> str:
    """The part of a text that speaks of a step: its clause, and the next if that begins with it."""
    first = max((m.end() for m in _TURN.finditer(text, 0, found.start())), default=0)
    comma = _COMMA.match(text, found.end())
    after = _TURN.search(text, comma.end() if comma else found.end())
    return text[first : after.start() if after else len(text)]
