"""Steps that a sentence calls the best: a column of a table must be highest or lowest there.

"PPO-mid peaks at update 360", "use the checkpoint of epoch 3". Where it names a column, it is that
column's; otherwise any column's will do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from kleash.written.book import Book, refs
from kleash.written.fitting import prints
from kleash.written.marks import Mark
from kleash.written.printed import Sheet
from kleash.written.prose import END, At, Sentence
from kleash.written.steps import RANKING

FAR = 40  # letters between a word and the step behind it
NEAR = 14  # and before it
LEAST = 4  # rows of a table that has a course
_HIGH = r"peak(?:s|ed)?|highest|maximum|maximal|最高点?|最大|峰值|最高值|到顶|见顶|登顶"
_LOW = r"lowest|minimum|minimal|最低点?|最小"
_BEST = r"best|top|optimum|optimal|最佳|最好|最优"
_TAKEN = (
    r"use|keep|choose|chose|pick|picked|select(?:ed)?|recommend(?:ed)?|取|选用?|推荐|采用|保留|"
    r"用(?=\s*(?:step|epoch|第|checkpoint|ckpt))"
)
_KEPT = re.compile(r"checkpoint|ckpt|检查点|权重|模型|(?<![a-z])(?:weights|model)(?![a-z])")
_AXES = ("step", "update", "iteration")
_WORDS = re.compile(
    rf"(?<![a-z])(?:(?P<high>{_HIGH})|(?P<low>{_LOW})|(?P<best>{_BEST})|(?P<taken>{_TAKEN}))(?![a-z])"
)
_APART = re.compile(
    r"(?:from|until|till|after|before|since|than|over|beyond|by|to|every|过了|之后|之前|到|至|从|自|比|前|每)\s*"
    r"(?:the\s)?$"
)
_SHORT = re.compile(
    r"[\s,、;:和与及]*|and|at|is|was|for|在|为|是|于|应取|取|则|应选|选|(?:peaks?|best)"
)


def false_peaks(book: Book, every: Sequence[Sentence]) -> Iterator[Mark]:
    """Steps that are called the best of a column, and are not."""
    for sentence in every:
        for place, kind in _called(sentence):
            wrong = _not_peak(book, sentence, place, kind)
            if wrong is not None:
                yield wrong


def _called(sentence: Sentence) -> Iterator[tuple[At, str]]:
    """The steps that a sentence calls best, and by which kind of word."""
    plain = sentence.plain
    places = [place for place in sentence.places if place.axis not in ("", "shot", END)]
    found: dict[At, str] = {}
    for match in _WORDS.finditer(plain) if not RANKING.search(plain) else ():
        kind = match.lastgroup or ""
        behind = [place for place in places if match.end() <= place.start <= match.end() + FAR]
        before = [place for place in places if match.start() - NEAR <= place.end <= match.start()]
        place = behind[0] if behind else before[-1] if before and kind != "taken" else None
        if place is None or _APART.search(plain[: place.start]):
            continue
        between = _unnamed(sentence, min(place.end, match.end()), max(place.start, match.start()))
        ends = r"[。.!?](?!\d)|\d" if place in behind and kind == "taken" else r"[。.!?](?!\d)"
        if re.search(ends if place in behind else r"[。.!?,\d]", between):
            continue
        found.setdefault(place, kind)
    for one, other in pairwise(places):
        if one in found and other not in found and _same_form(sentence, one, other):
            found[other] = found[one]
    yield from found.items()


def _same_form(sentence: Sentence, one: At, other: At) -> bool:
    """Whether only a name stands between two steps: "A at epoch 2, B at epoch 3"."""
    rest = _unnamed(sentence, one.end, other.start)
    named = len(rest) < other.start - one.end
    return named and all(_SHORT.fullmatch(word) for word in re.split(r"[\s,、;]+", rest))


def _unnamed(sentence: Sentence, start: int, end: int) -> str:
    """A part of a sentence without the names in it."""
    named = {at for name in sentence.names for at in range(name.start, name.end)}
    return "".join(sentence.plain[at] for at in range(start, end) if at not in named)


def _not_peak(book: Book, sentence: Sentence, place: At, kind: str) -> Mark | None:
    usual: set[float] = set()
    start = max((one.end for one in sentence.places if one.end <= place.start), default=0)
    kept = place.axis == "checkpoint" or _KEPT.search(sentence.plain)
    for sheet in book.sheets:
        same = sheet.axis == place.axis or (place.axis == "checkpoint" and sheet.axis in _AXES)
        if not same or len(sheet.counts) < LEAST or place.at not in sheet.counts.values():
            continue
        columns = _valued(sheet, sentence, place)
        columns = columns or set(refs(sheet, sentence, start, place.end).columns)
        columns = columns or set(refs(sheet, sentence, 0, place.end).columns)
        before = sentence.before
        if (
            kind == "taken"
            and not columns
            and before is not None
            and re.search("[;；]\\s*$", before.text)
        ):
            columns = set(refs(sheet, before, 0, len(before.text)).columns)  # "β = 0.1; keep …"
        if kind == "taken" and not (columns or kept) and place.at == max(sheet.counts.values()):
            return None  # what is read at the end is no choice
        if not _complete(sheet, columns):
            return None
        named = bool(columns) or not sentence.names or _is_named(sentence, sheet)
        usual |= _peaks(sheet, columns, kind) if named else set()
    if not usual or place.at in usual:
        return None
    facts = {"said": _whole(place.at), "at": [_whole(at) for at in sorted(usual)]}
    text = sentence.text[place.start : place.end]
    return Mark(sentence.line(place.start), text, "wrong", "check.elsewhere", facts, "peak")


def _valued(sheet: Sheet, sentence: Sentence, place: At) -> set[int]:
    """The columns that have, at a step, the number given right behind it: "step 150 (0.4)"."""
    behind = [one for one in sentence.numbers if one.start >= place.end][:1]
    if not behind or not re.fullmatch(r"\s?[(,:]\s?", sentence.plain[place.end : behind[0].start]):
        return set()
    return {
        cell.column
        for cell in sheet.cells
        if sheet.counts.get(cell.row) == place.at and prints(behind[0].figure, cell.figure)
    }


def _complete(sheet: Sheet, columns: set[int]) -> bool:
    """Whether columns have a number at every step: guesses and gaps may be the best."""
    for column in columns or {cell.column for cell in sheet.cells}:
        rows = {cell.row for cell in sheet.cells if cell.column == column and not cell.part}
        if len(rows & sheet.counts.keys()) < len(sheet.counts):
            return False
    return True


def _is_named(sentence: Sentence, sheet: Sheet) -> bool:
    """Whether a sentence names no row or column that would lead to another table."""
    return not any(one.sheet != sheet.nth for one in sentence.names)


def _peaks(sheet: Sheet, columns: set[int], kind: str) -> set[float]:
    """The steps at which columns of a table are highest or lowest."""
    found: set[float] = set()
    for column in columns or {cell.column for cell in sheet.cells}:
        cells = [
            cell
            for cell in sheet.cells
            if cell.column == column and not cell.part and cell.row in sheet.counts
        ]
        values = [cell.figure.value for cell in cells]
        if len(values) < LEAST:
            continue
        ends = [max(values)] if kind == "high" else [min(values)] if kind == "low" else []
        ends = ends or [max(values), min(values)]
        found |= {sheet.counts[cell.row] for cell in cells if cell.figure.value in ends}
    return found


def _whole(at: float) -> float:
    return int(at) if float(at).is_integer() else at
