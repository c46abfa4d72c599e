"""Two arms of a table that a claim holds against each other, however its titles have them.

Each may be a column or row of its own ("A", "B"), or one for each of several quantities ("KL (A)",
"Entropy (A)"): then the quantity that the clause names tells which. Where a clause names one arm
only, the other is the one it is compared with in the clause before, or the only other there is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from kleash.written.claimed.mentions import KINDS, QUANTITIES, Mention, concepts
from kleash.written.claimed.readings import Clause, Line, Shelf, Span, outside
from kleash.written.printed import is_total

_B, _E = r"(?<![a-z])", r"(?![a-z])"
_AGAINST = re.compile(
    rf"相比|相较|相对|对比|比起|较之|"
    rf"{_B}(?:compared (?:with|to)|relative to|against|versus|over){_E}"
)
_SIZES = re.compile(
    r"leader|winner|best.*|最[高佳好优].*|领先.*|胜者|#.*|n|.*(?:任务|样本|题|条|问题|总|局|次|对话)数量?|数量|"
    r"(?:number|count|size|tasks|questions|games|samples).*"
)
Pair = tuple[int, int]


def pairs(
    shelf: Shelf, clause: Clause, one: Span, other: Span, before: Sequence[Clause]
) -> list[Pair]:
    """The labels of the one and the other that are alike but for whose they are."""
    if shelf.own_steps:
        return []
    ours, theirs = (_names(shelf, clause, *span) for span in (one, other))
    if len(ours) != 1:
        return []
    if not theirs:
        theirs = [
            name
            for part in before[-1:]
            if _AGAINST.search(part.text)
            for name in _names(shelf, part, part.start, part.end)
            if not name.labels & ours[0].labels
        ]
    if len(theirs) > 1:
        return []
    found = [
        (own, label)
        for own in _called(shelf, clause, ours[0])
        for label in (_called(shelf, clause, theirs[0]) if theirs else _others(shelf, own, ours[0]))
        if own != label
        and _are_alike(shelf, (own, ours[0]), (label, theirs[0] if theirs else None))
    ]
    owns = [own for own, _ in found]
    return found if len(set(owns)) == len(owns) else []


def _names(shelf: Shelf, clause: Clause, start: int, end: int) -> list[Mention]:
    """The arms that a part of a sentence names, each once and with all its labels."""
    found = dict[frozenset[int], Mention]()
    for one in shelf.side.named(clause.sentence, start, end, arms=True):
        labels = frozenset(n for n, own in shelf.side.labels.items() if one.words <= own)
        found.setdefault(labels, replace(one, labels=labels))
    return list(found.values())


def _called(shelf: Shelf, clause: Clause, name: Mention) -> list[int]:
    """The labels of an arm: of several those of the quantity that the clause names."""
    plain = [
        n
        for n in name.labels
        if not re.search(r"\s[-−–/÷]\s|(?<![a-z])vs(?![a-z])|Δ", shelf.side.texts[n])
    ]
    told = concepts(outside(clause.text)) - {"step", "turns"}
    need, labels = told & QUANTITIES, shelf.side.labels
    exact = [n for n in plain if told & KINDS and told & (QUANTITIES | KINDS) <= labels[n]]
    return (
        exact
        or [n for n in plain if need and need <= labels[n]]
        or (plain if not need or len(plain) == 1 or need <= shelf.about else [])
    )


def _others(shelf: Shelf, own: int, name: Mention) -> list[int]:
    """The labels that have all the words of one but its arm's, and as many."""
    labels, texts = shelf.side.labels, shelf.side.texts
    rest = labels[own] - name.words
    return [
        n
        for n, words in labels.items()
        if n != own
        and rest <= words
        and (len(words) == len(labels[own]) or not rest)
        and not (words - labels[own]) & {"gap", "change", "gain", "drop", "mean", "share"}
        and not is_total(texts[n])
        and not _SIZES.fullmatch(texts[n].strip("* ").casefold())
    ]


def _are_alike(shelf: Shelf, one: tuple[int, Mention], other: tuple[int, Mention | None]) -> bool:
    """Whether two labels differ in nothing but their arms."""
    labels = shelf.side.labels
    if other[1] is None or (len(one[1].labels) == len(other[1].labels) == 1):
        return not shelf.side.is_metrics or bool(labels[one[0]] & labels[other[0]])
    return labels[one[0]] - one[1].words == labels[other[0]] - other[1].words


def is_full(line: Line, pair: Pair) -> bool:
    """Whether a line has plain numbers of one unit for both."""
    if not all(label in line.cells for label in pair):
        return False
    one, other = (line.cells[label] for label in pair)
    return not one.part and not other.part and one.figure.unit == other.figure.unit
