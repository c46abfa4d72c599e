"""Limits that all of a group are said to keep: "all four stay below 10 %", "12 次全部高于 58%".

Of so many as are told, so many must keep it in some line that is meant, whichever they are. Names
in the clause are those that are meant. Where neither is told, all labels of the line are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from kleash.written.book import Book
from kleash.written.claimed.mentions import QUANTITIES, concepts
from kleash.written.claimed.reach import counts, stretches, within
from kleash.written.claimed.readings import (
    Asked,
    Clause,
    Line,
    Shelf,
    asked,
    clauses,
    complete,
    outside,
    single,
)
from kleash.written.marks import Mark
from kleash.written.printed import Cell
from kleash.written.prose import Sentence

LEAST = 2  # of which something is said of all
NEAR = 48  # letters between "all" and the limit
_B, _E = r"(?<![a-z])", r"(?![a-z])"
_ALL = rf"全部|全都|无一例外地?|[都均皆]|{_B}(?:all|every|each|both){_E}"
_LIMIT = re.compile(
    rf"(?P<all>{_ALL})[^,;。:()]{{0,{NEAR}}}?"
    rf"(?:(?P<below>不到|不足|低于|小于|少于|不超过|未超过|没有?超过|不高于|"
    rf"{_B}(?:below|under|less than|lower than|at most|no more than|within){_E})|"
    rf"(?P<above>高于|大于|多于|超过|不低于|不少于|至少|"
    rf"{_B}(?:above|over|more than|higher than|at least|exceeds?|no less than){_E}))"
    r"\s?(?P<limit>\d[\d,]*(?:\.\d+)?)(?!\d|\.\d|e-|\s?[-×/])\s?(?P<unit>%(?!\s?点))?"
    r"(?!\s?(?:倍|步|轮|次|times|x|steps?|epochs?|seeds?|shots?|个(?!百分)|组|题|条))"
)
_LIMITED = re.compile(
    rf"并非|不是|不全|未必|除|几乎|多数|大多|若|如果|应当?|需要?|要求|阈值|规定|假设|预计|目标|之[前后]|以[前后]|"
    rf"[起前后]$|相差|差距|差[异值]|"
    rf"{_B}(?:not|except|almost|nearly|if|should|must|would|most of|may|might|want|target|"
    rf"differ\w*|apart|gaps?|after|before|until|since|onwards?|from|spread){_E}|n't"
)
_TESTED = re.compile(rf"{_B}p{_E}")  # "both have p below 0.01"
_WHOLE = re.compile(rf"所有|全部|各|每|{_B}(?:all|every|each){_E}")
_SOME = re.compile(
    rf"[有带加含用无]\s?kl|没有|不[带加用含]|其余|其[他它]|剩|[前后]|"
    rf"{_B}(?:with|without|no|others?|remaining|rest|last|first|later?|early|that|which){_E}"
)
_FALLS = frozenset(("drop", "gain", "change", "gap"))
_CLOSED = re.compile(
    rf"不超过|未超过|没有?超过|不高于|不低于|不少于|至少|"
    rf"{_B}(?:at most|at least|no more|no less|within){_E}"
)


def false_limits(book: Book, every: Sequence[Shelf], spoken: Sequence[Sentence]) -> Iterator[Mark]:
    """Limits that fewer keep than are said to, in all that is meant."""
    for sentence in spoken:
        parts = clauses(sentence)
        for nth, clause in enumerate(parts):
            text = outside(clause.text)
            found = list(_LIMIT.finditer(text))
            if len(found) != 1 or _LIMITED.search(text[: found[0].end("all")]):
                continue
            if _TESTED.search(found[0][0]):
                continue
            if _is_name(every, clause, found[0]):
                continue
            verdicts = list(_verdicts(book, every, clause, parts[:nth], found[0]))
            if verdicts and not any(verdicts):
                start = clause.start + found[0].start("limit")
                shown = found[0]["limit"] + (found[0]["unit"] or "")
                line = sentence.line(start)
                yield Mark(line, shown, "wrong", "check.not-all", {}, f"limit {shown}")


def _is_name(every: Sequence[Shelf], clause: Clause, limit: re.Match[str]) -> bool:
    """Whether a limit is the name of an arm: "all above 0.13"."""
    name = f"{float(limit['limit'].replace(',', '')):g}"
    own = [shelf for shelf in every if name in shelf.side.telling and not limit["unit"]]
    end = clause.start + limit.start()
    arms = any(shelf.side.named(clause.sentence, clause.start, end, arms=True) for shelf in own)
    return bool(own) and (arms or not concepts(outside(clause.text)) & QUANTITIES - {"step"})


def _verdicts(
    book: Book, every: Sequence[Shelf], clause: Clause, before: Sequence[Clause],
    limit: re.Match[str],
) -> Iterator[bool]:  # fmt: skip
    """Whether so many keep a limit, line by line of those that are meant."""
    word = limit.start("below" if limit["below"] else "above")
    told = [n for _, _, n in counts(outside(clause.text)[:word]) if n >= LEAST]
    count = told[-1] if told else None
    said = asked(clause, before, ((clause.start + word, clause.start + limit.end()),))
    if not said.need & QUANTITIES and not said.need & _FALLS:
        if count is not None:
            yield from _blocks(book, clause, count, limit)
        return
    lines = [(shelf, line) for shelf in every for line in _lines(shelf, clause, said, limit)]
    sized = bool(said.need & _FALLS)
    for shelf, line in lines:
        cells = _meant(shelf, line, clause)
        names = bool(cells)
        cells = cells or list(line.cells.values())
        least = len(cells) if names else count
        if least is None and not _is_plain(shelf, clause):
            continue
        least = len(cells) if least is None else least
        if len(cells) >= max(least, LEAST):
            kept = sum(_keeps(cell, limit, sized=sized) for cell in cells)
            yield kept >= least


def _lines(shelf: Shelf, clause: Clause, said: Asked, limit: re.Match[str]) -> list[Line]:
    """The lines of a quantity in the unit of a limit: of "drop" and "drop in %" the latter."""
    called = list(complete(shelf, clause.sentence, said))
    known = said.need & (QUANTITIES | _FALLS)
    alike = [one for one in shelf.lines() if called and known <= one.words]
    return [one for one in called if _has_unit(one, limit)] or [
        one for one in alike if _has_unit(one, limit)
    ]


def _meant(shelf: Shelf, line: Line, clause: Clause) -> list[Cell]:
    """The cells of the labels that a clause names, and of the steps that it speaks of."""
    named = single(shelf.side.named(clause.sentence, clause.start, clause.end, arms=True))
    labels = {label for _, label in named if not shelf.own_steps and not shelf.side.is_metrics}
    if len(labels) >= LEAST:
        return [cell for label, cell in line.cells.items() if label in labels]
    spans = stretches(clause.sentence, 0, clause.end)
    steps = shelf.own_steps
    if spans and steps:
        return [cell for n, cell in line.cells.items() if n in steps and within(spans, steps[n])]
    return []


def _is_plain(shelf: Shelf, clause: Clause) -> bool:
    """Whether all labels of a table may be meant: all are settings, and no step is named."""
    texts = shelf.side.texts.values()
    places = [one for one in clause.sentence.places if one.start < clause.end]
    settings = all(re.search(r"\d", one) for one in texts) and not shelf.side.is_metrics
    whole = clause.says(_WHOLE) and not clause.says(_SOME)
    return whole and settings and not (shelf.own_steps and places)


def _has_unit(line: Line, limit: re.Match[str]) -> bool:
    """Whether the numbers of a line are in the unit of a limit: in percent, or not."""
    share = [cell.figure.unit == "%" for cell in line.cells.values()]
    return bool(share) and (all(share) if limit["unit"] else not any(share))


def _blocks(book: Book, clause: Clause, count: int, limit: re.Match[str]) -> Iterator[bool]:
    """The same where no quantity is named: for all numbers of the table at hand, if so many."""
    at = clause.sentence.line(clause.start)
    for sheet in [one for one in book.section(at) if one.line < at][-1:]:
        kinds: dict[tuple[int, str], list[Cell]] = {}
        for cell in sheet.cells:
            if not cell.part:
                kinds.setdefault((cell.figure.decimals, cell.figure.unit), []).append(cell)
        for (_, unit), cells in kinds.items():
            if len(cells) == count and (unit == "%") == bool(limit["unit"]):
                yield all(_keeps(cell, limit, sized=False) for cell in cells)


def _keeps(cell: Cell, limit: re.Match[str], *, sized: bool) -> bool:
    value = abs(cell.figure.value) if sized else cell.figure.value
    bound = float(limit["limit"].replace(",", ""))
    if value == bound:
        return bool(_CLOSED.search(limit[0]))
    return (value > bound) == (limit["above"] is not None)
