"""Every number and claim of a report: right, wrong, not supported, or not to be checked.

Numbers are held against logs where there are any, and against each other: what was worked out from
what, what is printed twice, what a loss is made of. What a report says in words is the business of
`findings`; here each gets its mark. That a thing means less than it seems is for `compare`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from kleash.documents.judge import Judged
from kleash.documents.marks import Mark, State, number_mark
from kleash.documents.page import Page
from kleash.documents.words import strong_words
from kleash.findings.record import canonical
from kleash.imports import Derived
from kleash.imports.markdown.draft import Draft
from kleash.written.blame import copied_lines, related
from kleash.written.book import Book
from kleash.written.copied import copied_rows, copies
from kleash.written.curves import threads_of
from kleash.written.filed.found import Filed, filed, on_file
from kleash.written.grids import grids
from kleash.written.interpreted.interpret import with_interpretation
from kleash.written.listings import with_listings
from kleash.written.logs import Logs
from kleash.written.measured import Told, derived_from_logs, held, measured_marks, numbers_of
from kleash.written.mended import mended
from kleash.written.places import placed
from kleash.written.printed import sheets
from kleash.written.prose import sentences
from kleash.written.ranked import ranked
from kleash.written.relations import Node, Relation, node, relations, well_read
from kleash.written.rules import of_layout, of_tables
from kleash.written.siblings import unlike_twins
from kleash.written.sought.joined import joined
from kleash.written.steps import misplaced
from kleash.written.tables import laid_out
from kleash.written.traced import corrected, sought_in, traced

# Findings on a step that a table can overrule, whoever's it is.
AT_A_STEP = ("best-step-false", "value-elsewhere")
BESTS = (
    "best-step-false",
    "best-false",
    "extreme-false",
    "check.star",
    "check.not-most",
    "check.not-pick",
)
BY_FACTOR = ("multiple", "product")  # hours of seconds
RANK: dict[State, int] = {"wrong": 0, "unsupported": 1, "right": 2, "unknown": 3}


def check(
    draft: Draft, page: Page, logs: Logs | None = None, told: Sequence[Judged] = ()
) -> list[Mark]:
    """Every mark, line by line; of several on one number the gravest, and all that are wrong.

    `told` is what an interpreter made of the report, if one was asked.
    """
    return _sorted(with_interpretation(_every(draft, page, logs), told))


def _every(draft: Draft, page: Page, logs: Logs | None) -> list[Mark]:
    if logs is None:
        return _checked(draft, page)
    tables = sheets(grids(with_listings(draft, page)))
    aligner = on_file(logs, tables)
    have = filed(tables, aligner, page)
    draft, page, slips = mended(draft, page, [one for one in have if one.mark.state == "wrong"])
    if slips:
        have = filed(sheets(grids(with_listings(draft, page))), aligner, page)
    fixed = {(one.mark.line, one.mark.spot) for one in slips}
    marks = [m for m in _checked(draft, page, logs, have) if (m.line, m.spot) not in fixed]
    labels = [one.mark for one in have if one.number is None]
    return [*marks, *labels, *(one.mark for one in slips)]


def _checked(
    draft: Draft, page: Page, logs: Logs | None = None, have: Sequence[Filed] = ()
) -> list[Mark]:
    """The marks of a report whose tables have what logs have, as far as that is sure."""
    draft = with_listings(draft, page)
    source, every = draft.source, relations(draft, page)
    told = list(numbers_of(draft))
    truth = held(source, told, logs) if logs else {}
    book = Book.of(sheets(grids(draft)), page)
    sought = sought_in(book.sheets, joined(threads_of(logs)), page) if logs else None
    seen = _without_rounded(_told_by_both(traced(sought) if sought else {}, have), every)
    marks = measured_marks(source, told, truth, logs) if logs else []
    marks = _without(marks, seen) + list(seen.values())
    fixed = {(mark.line, mark.spot): mark.state for mark in marks}
    right = {one for one in {*truth, *seen} if fixed.get(one[:2]) == "right"}
    off = {one for one in {*truth, *seen} if fixed.get(one[:2]) == "wrong"}
    kept = [each for each in every if not off & set(each.nodes)]
    often = Counter(number.value for claim in source.claims for number in claim.numbers)
    strayed, agreeing = misplaced(draft, page)
    doubtful = copied_lines(kept, copies(grids(draft), few=True)) | {m.line for m in strayed}
    marks += related(kept, right, often, doubtful)
    read = well_read(draft)
    marks += [
        *derived_from_logs(read, truth),
        *_unfinished(read),
        *laid_out(draft, page),
        *copied_rows(draft),
        *unlike_twins(grids(draft), _fitting(marks)),
    ]
    book = corrected(book, seen)
    spoken = sentences(page, book.sheets)
    marks = [m for m in marks if m.code not in AT_A_STEP or m.line not in agreeing]
    marks += [*placed(draft, marks), *strayed, *ranked(book, spoken)]
    marks += [*of_tables(book, page, spoken), *of_layout(draft, page, marks)]
    marks += strong_words(page)
    marks = _without_echoes([mark for mark in marks if _stands(mark, page)])
    return marks + _rest(told, marks)


def _without(marks: Sequence[Mark], seen: Mapping[Node, Mark]) -> list[Mark]:
    """What one number was taken for, where a whole column does not tell what it is."""
    known = {one[:2] for one in seen}
    return [mark for mark in marks if (mark.line, mark.spot) not in known]


def _told_by_both(curves: Mapping[Node, Mark], have: Sequence[Filed]) -> dict[Node, Mark]:
    """What curves and records of logs have: a number that either has is right."""
    right = {one: mark for one, mark in curves.items() if mark.state == "right"}
    filed_ = {node(one.number): one.mark for one in have if one.number is not None}
    return {**curves, **filed_, **right}


def _without_rounded(seen: Mapping[Node, Mark], every: Sequence[Relation]) -> dict[Node, Mark]:
    """What logs have, but for numbers that come out of printed ones to the digit."""
    factors = [one for one in every if one.holds and one.kind in BY_FACTOR]
    made = {one.nodes[0] for one in factors if one.is_exact or one.is_times}
    return {
        one: mark
        for one, mark in seen.items()
        if mark.state == "right" or one not in made or not _is_one_off(mark)
    }


def _is_one_off(mark: Mark) -> bool:
    """Whether a number differs from what a log has in its last digit only, by one."""
    ours, theirs = (_digits(text) for text in (mark.text, f"{mark.facts.get('value')}"))
    return bool(ours and theirs) and abs(int(ours) - int(theirs)) == 1


def _digits(text: str) -> str:
    found = re.search(r"\d[\d,]*(?:\.\d+)?", text)
    return re.sub(r"[.,]", "", found.group()) if found else ""


def _fitting(marks: Sequence[Mark]) -> set[tuple[int, str]]:
    """Numbers that what is worked out of them bears out."""
    return {(mark.line, mark.spot) for mark in marks if mark.code == "check.fits"}


def _made(every: Sequence[Relation]) -> set[Node]:
    """Numbers that others of their table give."""
    return {one.nodes[0] for one in every if one.holds and one.kind != "same"}


def _stands(mark: Mark, page: Page) -> bool:
    """Whether a number that does not fit stands in its line as it was read: 1.5 is not 150 %."""
    if mark.state != "wrong" or mark.code != "check.no-fit" or not mark.line:
        return True
    start, end = page.lines[mark.line - 1]
    text, digits = page.text[start:end].replace(",", ""), re.sub(r"[^\d.]", "", mark.text)
    if digits in text or not re.fullmatch(r"0?\.\d{3,}", digits):
        return digits in text
    share = re.escape(f"{100 * float(digits):g}")
    return bool(re.search(rf"(?<![\d.]){share}0*\s?%", text))


def _without_echoes(marks: list[Mark]) -> list[Mark]:
    """Without bests that are false only because another number, which is wrong, is better."""
    wrong = {_first(mark.text) for mark in marks if mark.state == "wrong"} - {""}
    said = (
        (mark, {_first(f"{mark.facts.get(key)}") for key in ("value", "own")}) for mark in marks
    )
    return [mark for mark, texts in said if mark.code not in BESTS or not texts & wrong]


def _first(text: str) -> str:
    """The first number of a text, however many zeros it ends with."""
    plain = (text.split() or [""])[0].strip("*%")
    try:
        return f"{float(plain):g}"
    except ValueError:
        return plain


def _unfinished(every: Sequence[Derived]) -> list[Mark]:
    """What was worked out from numbers that are missing or guessed."""
    marks = []
    for derived in every:
        operands = (*derived.of, *derived.minus)
        if derived.number.value is None:
            continue
        missing = [operand.state == "missing" for operand in operands]
        if any(missing) and not all(missing):  # what has no parts at all was measured itself
            marks.append(number_mark(derived.number, "unsupported", "check.from-missing", {}))
    return marks


def _rest(told: Sequence[Told], marks: Sequence[Mark]) -> list[Mark]:
    """Numbers that nothing speaks of."""
    known = {(mark.line, mark.spot) for mark in marks}
    return [
        number_mark(
            one.number,
            "unknown",
            "check.estimate" if one.number.state == "estimated" else "check.nothing",
            {"metric": canonical(one.metric), "arm": one.arm},
        )
        for one in told
        if (one.number.where.line or 0, one.number.where.spot) not in known
    ]


def _sorted(marks: Sequence[Mark]) -> list[Mark]:
    """By line; of one number only the gravest of its kinds, and each wrong thing once."""
    by_number: dict[tuple[int, str, str], Mark] = {}
    for mark in marks:
        key = (mark.line, mark.spot, mark.text)
        other = by_number.get(key)
        if other is None or RANK[mark.state] < RANK[other.state]:
            by_number[key] = mark
    return sorted(by_number.values(), key=lambda mark: (mark.line, RANK[mark.state], mark.spot))
