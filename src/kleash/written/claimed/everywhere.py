"""Arms that are called best in every line of a table, and are not in some.

"Best at every shot", "在所有任务上都最好": the table is the last one above, under the same heading,
in which the arm has numbers, and its lines are those of one quantity. Where nothing says whether
more is better, the arm must be highest in all lines, or lowest in all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from kleash.written.book import Book
from kleash.written.claimed.mentions import APART, KINDS, QUANTITIES, concepts
from kleash.written.claimed.readings import Line, Shelf, clauses, outside
from kleash.written.claimed.superlatives import Called, called_in, is_limited, subjects_of
from kleash.written.marks import Mark
from kleash.written.prose import Sentence

LEAST = 2  # lines, and arms of each
_B, _E = r"(?<![a-z])", r"(?![a-z])"
_EVERY = re.compile(
    rf"(?:每一?[个次轮步项类种]?|各[个次轮步项类种]?|所有|全部|任何)[^,;。]{{0,10}}?(?:[都均]|[上中里下]|时)|始终|一直|总是|"
    rf"无一例外|{_B}(?:(?:at|in|on|for|of) (?:every|each|all)|always|throughout|everywhere|"
    rf"without exception|across the board){_E}"
)
_ARMS = re.compile(  # "the highest of all arms" is said of one line
    rf"(?:所有|全部|各)\s?(?:模型|版本|实验|方法|系数|设置|组|臂|arm|kl|β)|"
    rf"{_B}(?:of|in) all (?:the )?(?:models|arms|runs|methods|settings|coefficients){_E}"
)


def false_everywhere(
    book: Book, every: Sequence[Shelf], spoken: Sequence[Sentence]
) -> Iterator[Mark]:
    """Superlatives of every line that some line of the table at hand denies."""
    for sentence in spoken:
        parts = clauses(sentence)
        for nth, clause in enumerate(parts):
            text = outside(clause.text)
            if any(one.is_of_training and one.start < clause.end for one in sentence.places):
                continue  # from a step on, or up to it
            if not _EVERY.search(text) or _ARMS.search(text) or is_limited(parts[: nth + 1]):
                continue
            for called in called_in(clause):
                if called.sense not in ("good", "bad") or called.pin is not None:
                    continue
                if _is_denied(book, subjects_of(every, called, parts[:nth]), called):
                    start, end = called.word.span()
                    line, shown = sentence.line(start), sentence.text[start:end]
                    yield Mark(line, shown, "wrong", "check.not-all", {}, "every")


def _is_denied(book: Book, subjects: Sequence[tuple[Shelf, int]], called: Called) -> bool:
    """Whether the table at hand has a line in which the arm is not the most."""
    at = called.clause.sentence.line(called.word.start())
    section = book.section(at)
    if len(section) == len(book.sheets) > 1 or concepts(called.clause.text) & QUANTITIES - {"step"}:
        return False  # no table at hand; of a quantity that is named others judge
    known = dict[int, list[frozenset[int]]]()
    for shelf, label in subjects:
        lines = list(_lines(shelf, label)) if not APART.search(shelf.side.texts[label]) else []
        if shelf.sheet in section and shelf.sheet.line < at and len(lines) >= LEAST:
            known[shelf.sheet.line] = lines
    if not known:
        return False
    ends = known[max(known)]
    return not any(all(way in end for end in ends) for way in (1, -1))


def _lines(shelf: Shelf, label: int) -> Iterator[frozenset[int]]:
    """For each line of a quantity, whether a label is highest (1) or lowest (-1) in it."""
    lines = [one for one in shelf.lines() if label in one.cells and not one.cells[label].part]
    kinds = [(one.cells[label].figure.decimals, one.cells[label].figure.unit) for one in lines]
    most = max(kinds, key=kinds.count, default=None)
    for line, kind in zip(lines, kinds, strict=True):
        scope = shelf.scope(line, label) if kind == most and _is_plain(line) else []
        if len(scope) >= LEAST:
            values = [line.value(one) for one in scope]
            ends = {1: max(values), -1: min(values)}
            yield frozenset(way for way, end in ends.items() if line.value(label) == end)


def _is_plain(line: Line) -> bool:
    return not line.words & (KINDS | QUANTITIES) - {
        "step",
        "validation",
        "test",
        "mean",
        "accuracy",
    }
