"""The rules that find errors by themselves: of what sentences say, of tables, and of the layout."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kleash.imports.markdown.draft import Draft
from kleash.written.book import Book
from kleash.written.claimed.claims import false_claims
from kleash.written.claimed.ranges import false_ranges
from kleash.written.converted import false_conversions
from kleash.written.copied import copied_items
from kleash.written.counted import false_counted
from kleash.written.crossed import exchanged_cells, exchanged_titles
from kleash.written.intervals import false_ends, false_intervals
from kleash.written.marks import Mark
from kleash.written.mirrored import not_mirrored
from kleash.written.neighbours import exchanged_in_course
from kleash.written.off_course import off_course
from kleash.written.origins import false_origins
from kleash.written.page import Page
from kleash.written.peaks import false_peaks
from kleash.written.picks import false_picks
from kleash.written.prose import Sentence
from kleash.written.quoted import Quotes
from kleash.written.recited import false_recitals
from kleash.written.repeated import repeated_labels
from kleash.written.scripts import false_commands
from kleash.written.shares import false_shares, false_summaries
from kleash.written.staged import false_stages
from kleash.written.told.crossings import false_crossings, false_spans
from kleash.written.told.decimal_point import false_points
from kleash.written.told.exchanged_items import exchanged_items
from kleash.written.told.headings import exchanged_epochs
from kleash.written.told.listed import false_lists, false_pairs, false_rooms, false_steps_in_a_row
from kleash.written.told.lone import false_lone_steps
from kleash.written.told.once_off import told_once_off
from kleash.written.told.parallel import false_in_parallel
from kleash.written.told.pinned_steps import false_pinned_steps
from kleash.written.told.retold_lines import false_retellings
from kleash.written.told.settings import exchanged_settings
from kleash.written.told.slashed import false_slashed
from kleash.written.told.slips import slips
from kleash.written.told.spans import false_changes
from kleash.written.told.subjects import Records
from kleash.written.told.summits import false_summits
from kleash.written.told.swings import false_swings
from kleash.written.told.tallies import false_tallies
from kleash.written.told.tests import false_values, unborne
from kleash.written.told.turns import false_turns
from kleash.written.told.unheard import unheard_steps
from kleash.written.told.versus import false_versus


def of_sentences(
    records: Records, book: Book, page: Page, spoken: Sequence[Sentence], quotes: Quotes
) -> Iterator[Mark]:
    """What sentences say of courses, in numbers and in words."""
    yield from false_peaks(records, book, spoken)
    yield from false_crossings(records, spoken)
    yield from slips(records, spoken, quotes.fine)
    yield from false_tallies(records, spoken)
    yield from false_in_parallel(records, spoken)
    yield from false_lists(records, spoken)
    yield from false_steps_in_a_row(records, spoken)
    yield from false_rooms(records, spoken)
    yield from false_pairs(records, spoken)
    yield from false_spans(spoken)
    yield from false_changes(records, spoken)
    yield from false_turns(book.sheets, records.courses)
    yield from false_versus(book.sheets, spoken)
    yield from false_retellings(book, records, spoken)
    yield from false_summits(book.sheets, records.courses)
    yield from false_stages(book.sheets, records.courses)
    yield from false_lone_steps(records)
    yield from false_pinned_steps(book.sheets, page, spoken)
    yield from unheard_steps(records, spoken, page)
    yield from false_values(spoken)
    yield from unborne(book, spoken)
    yield from false_points(book, spoken)
    yield from told_once_off(book.sheets, spoken)
    yield from exchanged_items(book, spoken)
    yield from false_claims(book, page, spoken, records.courses)


def of_arms(draft: Draft, page: Page, spoken: Sequence[Sentence]) -> Iterator[Mark]:
    """What is told of arms in two places: their settings, their lists, their ranges."""
    yield from exchanged_settings(draft, page)
    yield from exchanged_epochs(draft, page)
    yield from false_swings(draft, page)
    yield from false_ranges(draft, spoken)


def of_tables(book: Book, page: Page, spoken: Sequence[Sentence]) -> Iterator[Mark]:
    """What tables say of themselves and of each other."""
    yield from false_shares(page, book.sheets)
    yield from false_counted(book.sheets, page)
    yield from false_conversions(page)
    yield from false_summaries(book.sheets)
    yield from exchanged_titles(book.sheets, spoken)
    yield from exchanged_cells(book.sheets)
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
    yield from false_slashed(page)
    yield from false_origins(page)
    yield from false_recitals(page, tables, wrong)
