"""How many rows of the table at hand are said to have risen or fallen, of as many as it has.

"五类任务中有一类退步", "all four tasks improved". Where columns hold changes, one of them must have
as many of that sign; so may any two columns of which one came before the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import combinations

from kleash.written.book import Book
from kleash.written.claimed.mentions import APART
from kleash.written.claimed.reach import NUMBER, numeral
from kleash.written.claimed.readings import Clause, Shelf, at_hand, clauses, outside
from kleash.written.marks import Mark
from kleash.written.prose import Sentence

LEAST = 3  # rows that are counted
ONE = {"one": 1, "一": 1, "none": 0}
_B, _E = r"(?<![a-z])", r"(?![a-z])"
_UNIT = r"(?:个|类|项|种|组|档|条|行|题型|臂)"
_UP = r"进步|上升|提升|提高|改善|变好|增加|上涨"
_DOWN = r"退步|下降|变差|回落|减少|下跌|降低|退化"
_UPS = r"(?:improved?|improves|rose|rises?|gained?|gains|went up|got better|increased?)"
_DOWNS = (
    r"(?:fell|falls?|dropped|drops?|declined?|lost|loses?|went down|got worse|worsened|regressed)"
)
_TOLD = (
    re.compile(
        rf"(?P<whole>{NUMBER})\s?{_UNIT}[^,;。:\d]{{0,8}}?[中里]\s?(?:只|仅|共)?有\s?(?P<count>{NUMBER}|一)\s?{_UNIT}"
        rf"[^,;。:\d高低于比]{{0,4}}?(?:(?P<up>{_UP})|(?P<down>{_DOWN}))(?![^,;。]{{0,4}}\d)"
    ),
    re.compile(
        rf"(?P<whole>{NUMBER})\s?{_UNIT}[^,;。:\d的]{{0,6}}?(?:全部|全都|[都均])(?:有所?|在|是)?"
        rf"(?:(?P<up>{_UP})|(?P<down>{_DOWN}))(?![^,;。]{{0,2}}\d)"
    ),
    re.compile(
        rf"{_B}(?P<count>{NUMBER}|one|none) of (?:the |all )?(?P<whole>{NUMBER}) "
        rf"[a-z]+(?: [a-z]+)? (?:(?P<up>{_UPS})|(?P<down>{_DOWNS})){_E}"
        r"(?! (?:by|more|less|to|over))"
    ),
    re.compile(
        rf"{_B}all (?P<whole>{NUMBER}) [a-z]+(?: [a-z]+)? (?:(?P<up>{_UPS})|(?P<down>{_DOWNS})){_E}"
    ),
)
_LIMITED = re.compile(
    rf"不|没|未|除|几乎|若|如果|随|每|逐|"
    rf"{_B}(?:not|except|almost|if|at (?:every|each)|with){_E}"
)
_MOVES = frozenset(("change", "gap", "gain", "drop"))


def false_moves(book: Book, every: Sequence[Shelf], spoken: Sequence[Sentence]) -> Iterator[Mark]:
    """Counts of rows that rose or fell which no columns of the table at hand have."""
    for sentence in spoken:
        for clause in clauses(sentence):
            text = outside(clause.text)
            for match in (one for pattern in _TOLD for one in pattern.finditer(text)):
                whole = numeral(match["whole"])
                count = _count(match, whole)
                found = (
                    set() if _LIMITED.search(text) else set(_counted(book, every, clause, match))
                )
                if found and whole >= LEAST and count not in found:
                    start, end = (clause.start + at for at in match.span())
                    line, shown = sentence.line(start), sentence.text[start:end].strip()
                    yield Mark(line, shown, "wrong", "check.not-all", {}, "every")


def _count(match: re.Match[str], whole: int) -> int:
    told = match.groupdict().get("count")
    return whole if not told else ONE[told] if told in ONE else numeral(told)


def _counted(
    book: Book, every: Sequence[Shelf], clause: Clause, match: re.Match[str]
) -> Iterator[int]:
    """How many rows rose, or fell, by each column of changes and by each two columns."""
    near, way = at_hand(book, clause.sentence, clause.start), 1 if match["up"] else -1
    for shelf in every:
        if shelf.sheet not in near or not shelf.side.is_rows or shelf.own_steps:
            continue
        lines = [one for one in shelf.lines() if len(one.cells) == numeral(match["whole"])]
        plain = [one for one in lines if not any(cell.part for cell in one.cells.values())]
        for line in plain:
            if line.words & _MOVES or APART.search(shelf.other.texts.get(line.at, "")):
                yield sum(way * line.value(label) > 0 for label in line.cells)
        for one, other in combinations(plain, 2):
            if one.cells.keys() == other.cells.keys():
                yield sum(way * (other.value(n) - one.value(n)) > 0 for n in one.cells)
