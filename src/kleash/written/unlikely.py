"""Relations that do not hold because nobody meant them: nothing is wrong with their numbers.

A rank is not the gain that rounds to it, hours stand before their minutes, and a table of settings
in two pairs of columns works nothing out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from kleash.imports.markdown.draft import Draft
from kleash.imports.markdown.text import bare
from kleash.written.made.rounded import Relation
from kleash.written.printed import is_total

NEAR = 1e-3  # of itself: how far a number may be off that was rounded on the way
FARTHER = 0.6  # of the greater: how far two tellings of one thing may be apart
_SAYS = re.compile(r"[(（]\s?(?:最[大小高低]|平均|均值|max|min|mean|avg|average)\s?[)）]", re.I)
STATISTIC = re.compile(r"(?:[tzfp]|df|n|se|sem|sd|std|stdev|标准[差误]|方差)(?![a-z\d])", re.I)
_HOURS = re.compile(r"\s*\d+\s?(?:h|小时|hours?)\s*")
_RANK = re.compile(r"\W*\d\W*")


def likely(every: Sequence[Relation], draft: Draft) -> list[Relation]:
    """Without those that do not hold and that nobody meant.

    What was rounded on the way (hours, before they were taken eight times) is not to the digit what
    it was made of before that.
    """
    exact = {one.nodes[0] for one in every if one.kind == "multiple" and one.holds and one.is_times}
    settings = {
        line for table in draft.source.tables if _is_folded(table.header) for line in table.lines
    }
    return [one for one in every if one.holds or not _is_unlikely(one, exact, settings)]


def _is_unlikely(one: Relation, exact: set[tuple[int, str, float]], settings: set[int]) -> bool:
    if one.nodes[0][0] in settings or one.is_no_sum or _is_of_tests(one):
        return True
    if one.kind == "same":
        ours, theirs = (abs(node[2]) for node in one.nodes[:2])
        far = abs(ours - theirs) > FARTHER * max(ours, theirs)
        return far or bool(_RANK.fullmatch(one.text))
    if one.kind == "multiple" and is_total(one.nodes[0][1].rpartition(" / ")[2]):
        return True  # a total has a whole of its own
    if one.kind == "sum":
        return bool(_HOURS.fullmatch(one.text))
    if one.kind != "multiple" or not exact & set(one.nodes) or one.low is None or one.high is None:
        return False
    value = one.nodes[0][2]
    return abs(value - (one.low + one.high) / 2) <= NEAR * abs(value)


def _is_folded(header: Sequence[str]) -> bool:
    """Whether a table has the same columns once more beside them: "项 | 值 | 项 | 值"."""
    half = len(header) // 2
    return len(header) == 2 * half > 2 and tuple(header[:half]) == tuple(header[half:])


def _is_of_tests(one: Relation) -> bool:
    """Whether a sum would be of steps, tests, spreads, or of what says what it is: "6 (max)"."""
    label = bare(one.nodes[0][1].partition(" / ")[2])
    if re.match(r"\W*(?:epoch|step|第)", one.text, re.I) or _SAYS.search(one.text):
        return True
    return one.kind in ("difference", "relative", "sum", "mean") and bool(STATISTIC.match(label))
