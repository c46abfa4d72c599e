"""The rules that find errors by themselves: of what sentences say, of tables, and of the layout."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kleash.documents.marks import Mark
from kleash.documents.page import Page
from kleash.imports.markdown.draft import Draft
from kleash.written.book import Book
from kleash.written.converted import false_conversions
from kleash.written.copied import copied_items
from kleash.written.counted import false_counted
from kleash.written.intervals import false_ends, false_intervals
from kleash.written.mirrored import not_mirrored
from kleash.written.neighbours import exchanged_in_course
from kleash.written.off_course import off_course
from kleash.written.origins import false_origins
from kleash.written.picks import false_picks
from kleash.written.prose import Sentence
from kleash.written.recited import false_recitals
from kleash.written.repeated import repeated_labels
from kleash.written.scripts import false_commands
from kleash.written.shares import false_shares, false_summaries


def of_tables(book: Book, page: Page, spoken: Sequence[Sentence]) -> Iterator[Mark]:
    """What tables say of themselves and of each other."""
    yield from false_shares(page, book.sheets)
    yield from false_counted(book.sheets, page)
    yield from false_conversions(page)
    yield from false_summaries(book.sheets)
    yield from copied_items(page, book.sheets)
    yield from off_course(book.sheets)
    yield from exchanged_in_course(book.sheets)
    yield from not_mirrored(book.sheets)


def of_layout(draft: Draft, page: Page, marks: Sequence[Mark]) -> Iterator[Mark]:
    """What tables and commands say beside their numbers: who is best, labels, comments."""
    wrong = {mark.line for mark in marks if mark.state == "wrong"}
    turned = {mark.line for mark in marks if mark.code == "check.crossed-titles"}
    tables = draft.source.tables
    yield from false_picks([one for one in tables if one.where.line not in turned])
    yield from false_intervals(tables)
    yield from false_ends(tables)
    yield from repeated_labels(tables)
    yield from false_commands(page)
    yield from false_origins(page)
    yield from false_recitals(page, tables, wrong)
