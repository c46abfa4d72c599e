"""Arms that are said to be best at one step: "A, B and C peak at epoch 3, D only at 4".

Each must have its end of a course there, in some table over steps that is meant: those under the
same heading that have all the names, else any.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from kleash.written.book import Book
from kleash.written.claimed.mentions import QUANTITIES, concepts
from kleash.written.claimed.readings import Clause, Shelf, clauses, outside, single
from kleash.written.marks import Mark
from kleash.written.prose import END, At, Sentence

LEAST = 3  # steps of a course that has a best one
_B, _E = r"(?<![a-z])", r"(?![a-z])"
_BEST = re.compile(
    rf"(?P<high>最高|峰值|最大|见顶|{_B}(?:peaks?|highest|tops? out){_E})|"
    rf"(?P<low>最低|最小|见底|{_B}(?:lowest|bottoms? out){_E})|"
    rf"(?P<best>最[好佳优]|{_B}best{_E})"
)
_OR = re.compile(r"\s?(?:or|and|或|和|、|,)\s?\d+(?!\d|\.\d|\s?%)")
_LATER = re.compile(r"要?到|才|only at|not until")
_LIMITED = re.compile(
    rf"不|没|未|除|若|如果|差[距值]?最|[降升涨跌]幅|变化|领先|优势|单[次格步个]|之[前后]|以[前后]|回落|[下上][跌涨]|"
    rf"{_B}(?:not|no|except|if|would|before|after|gap|lead|since|until|from|by|drop|change|advantage|single|jump|rise){_E}|n't"
)


def false_tops(book: Book, every: Sequence[Shelf], spoken: Sequence[Sentence]) -> Iterator[Mark]:
    """Steps at which an arm is said to be best, and is not in any course that is meant."""
    for sentence in spoken:
        sense = ""
        for clause in _parts(sentence):
            text = outside(clause.text)
            word = _BEST.search(text)
            goes_on = sense and word is None and _LATER.search(text)
            if (word is None and not goes_on) or _LIMITED.search(text) or _has_number(clause):
                sense = ""
                continue
            sense = (word.lastgroup or "") if word else sense
            place = _place(clause)
            if place is not None and _is_false(book, every, clause, place, sense):
                yield _mark(sentence, place)


def _mark(sentence: Sentence, place: At) -> Mark:
    line, shown = sentence.line(place.start), sentence.text[place.start : place.end]
    return Mark(line, shown, "wrong", "check.not-top", {}, "step")


def _parts(sentence: Sentence) -> Iterator[Clause]:
    """The clauses of a sentence, also where a number follows a Chinese comma."""
    for clause in clauses(sentence):
        start = clause.start
        for at in range(clause.start, clause.end):
            if sentence.text[at] == "，":
                yield Clause(sentence, start, at)
                start = at + 1
        yield Clause(sentence, start, clause.end)


def _has_number(clause: Clause) -> bool:
    """Whether a clause tells a value, by which the course that is meant is known: see `peaks`."""
    numbers = clause.sentence.numbers
    return any(clause.start <= one.start < clause.end and one.figure.decimals for one in numbers)


def _place(clause: Clause) -> At | None:
    """The only step that a clause names; not "step 250 or 300"."""
    inside = [
        one
        for one in clause.sentence.places
        if clause.start <= one.start < clause.end and one.axis not in ("", "shot", "sample")
    ]
    if len(inside) != 1 or inside[0].axis == END:
        return None
    return None if _OR.match(clause.sentence.plain, inside[0].end) else inside[0]


def _is_false(book: Book, every: Sequence[Shelf], clause: Clause, place: At, sense: str) -> bool:
    """Whether some arm that is named is best elsewhere in all that is meant."""
    need = concepts(outside(clause.text)) & QUANTITIES - {"step", "turns"}
    near = book.section(clause.sentence.line(clause.start))
    told = list[tuple[bool, dict[int, bool]]]()
    for shelf in every:
        if shelf.own_steps or len(shelf.steps) < LEAST or place.at not in shelf.steps.values():
            continue
        if shelf.side.is_metrics or not need <= shelf.about:
            continue
        names = single(shelf.side.named(clause.sentence, clause.start, clause.end, arms=True))
        if names:
            labels = {label for _, label in names}
            told.append((shelf.sheet in near, {n: _is_top(shelf, n, place, sense) for n in labels}))
    close = [verdicts for is_near, verdicts in told if is_near]
    if len(close) != 1 and not need:
        return False
    every_ = close or [verdicts for _, verdicts in told]
    return bool(every_) and not any(all(verdicts.values()) for verdicts in every_)


def _is_top(shelf: Shelf, label: int, place: At, sense: str) -> bool:
    """Whether a label has its highest or lowest number at a step, or none there."""
    lines = {at: shelf.line(nth) for nth, at in shelf.steps.items()}
    values = {at: line.value(label) for at, line in lines.items() if label in line.cells}
    if len(values) < LEAST or place.at not in values:
        return True
    ends = {"high": {max(values.values())}, "low": {min(values.values())}}
    return values[place.at] in ends.get(sense, ends["high"] | ends["low"])
