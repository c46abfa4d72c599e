"""Two arms that are set against each other: "A: KL is higher" and "B: KL is lower", item by item.

Together they say that A is above B, which some line of the quantity must bear out. And where one
arm has the faster fall, or the larger setting, the other of the two has not the faster fall too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from kleash.written.claimed.beside import WORDS
from kleash.written.claimed.mentions import QUANTITIES, concepts
from kleash.written.claimed.outline import Item, above, outline
from kleash.written.claimed.readings import Shelf, asked, clauses, complete, outside
from kleash.written.claimed.stated import LIMITED, Stated, head, stated
from kleash.written.marks import Mark
from kleash.written.page import Page
from kleash.written.prose import Sentence

_B, _E = r"(?<![a-z])", r"(?![a-z])"
_SETTINGS = re.compile(
    r"\(\s?[更较]?(?:(?P<up>[大高强])|(?P<down>[小低弱]))\s?\)|"
    r"\(\s?(?:the )?(?:(?P<more>larger|higher|stronger)|(?P<less>smaller|lower|weaker))\b[^()]*\)"
)
_PACE = re.compile(
    rf"(?P<fast>[更较][快早])|(?P<slow>[更较][慢晚])|"
    rf"{_B}(?:(?P<faster>faster|quicker|earlier|sooner)|(?P<slower>slower|later)){_E}"
)


def opposed(page: Page, every: Sequence[Shelf], spoken: Sequence[Sentence]) -> Iterator[Mark]:
    """Arms set against each other the wrong way round, or both with the more."""
    items = outline(page)
    for one, other in pairwise(stated(items, spoken)):
        if _are_set(items, one, other) and _is_turned(every, one, other):
            for each in (one, other):
                text = each.clause.sentence.text[slice(*each.span)]
                yield Mark(each.line, text, "wrong", "check.not-trend", {}, "order")
    yield from _both(items, spoken)


def _are_set(items: Mapping[int, Item], one: Stated, other: Stated) -> bool:
    """Whether two opposite words stand in one sentence, or in two items of one list."""
    if one.way == other.way:
        return False
    lines = [each.clause.sentence.line(0) for each in (one, other)]
    if one.clause.sentence is other.clause.sentence:
        return True
    own = [items.get(line) for line in lines]
    return all(own) and len({(each.under, each.indent) for each in own if each}) == 1


def _is_turned(every: Sequence[Shelf], one: Stated, other: Stated) -> bool:
    """Whether no line of what is said has the one above the other."""
    need = concepts(outside(one.clause.text)) & QUANTITIES
    theirs = concepts(outside(other.clause.text)) & QUANTITIES
    if not need or theirs - need:
        return False
    verdicts = []
    for shelf in every:
        ours, others = one.whose(shelf), other.whose(shelf)
        if ours is None or others is None or ours == others:
            continue
        said = asked(one.clause, (), (one.span,))
        for line in complete(shelf, one.clause.sentence, said):
            if ours in line.cells and others in line.cells:
                gap = line.value(ours) - line.value(others)
                verdicts.append(one.way * gap >= 0)
    return bool(verdicts) and not any(verdicts)


# --- "larger β: … falls faster", "smaller β: … falls faster"


def _both(items: Mapping[int, Item], spoken: Sequence[Sentence]) -> Iterator[Mark]:
    """The same pace of one quantity under the larger setting and under the smaller."""
    found = dict[tuple[int, str, frozenset[str]], list[tuple[int, int, str]]]()
    for sentence in spoken:
        setting = next((s for one in above(items, sentence.line(0)) if (s := _setting(one))), None)
        for clause in clauses(sentence) if setting else ():
            text = outside(clause.text)
            words, need = [*_PACE.finditer(text), *WORDS.finditer(text)], concepts(text)
            if len(words) != 1 or not need & QUANTITIES or LIMITED.search(text):
                continue
            start = clause.start + words[0].start()
            shown = sentence.text[start : clause.start + words[0].end()]
            key = (setting or (0, 0))[0], words[0].lastgroup or "", need
            way = (setting or (0, 0))[1]
            found.setdefault(key, []).append((way, sentence.line(start), shown))
    for told in found.values():
        for _, line, shown in told if len({way for way, _, _ in told}) > 1 else ():
            yield Mark(line, shown, "unsupported", "check.not-both", {}, "both")


def _setting(item: Item) -> tuple[int, int] | None:
    """The list of an item whose head calls its setting the larger (1) or the smaller (-1)."""
    told = head(item)
    match = _SETTINGS.search(told.sentence.plain, told.start, told.end)
    if match is None:
        return None
    return item.under, 1 if match["up"] or match["more"] else -1
