"""All that a report claims in words about its tables, and is not so: a kind of claim to a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kleash.written.book import Book
from kleash.written.claimed.answered import false_answers
from kleash.written.claimed.beside import beside
from kleash.written.claimed.bundles import false_bundles
from kleash.written.claimed.chained import false_in_chains
from kleash.written.claimed.chains import false_chains
from kleash.written.claimed.comparatives import false_comparatives
from kleash.written.claimed.contrasts import contradictory
from kleash.written.claimed.courses import false_courses
from kleash.written.claimed.everywhere import false_everywhere
from kleash.written.claimed.exchanged import exchanged
from kleash.written.claimed.halves import false_halves
from kleash.written.claimed.identity import false_identities
from kleash.written.claimed.leashes import false_leashes
from kleash.written.claimed.limits import false_limits
from kleash.written.claimed.moved import false_moves
from kleash.written.claimed.opposed import opposed
from kleash.written.claimed.orders import false_orders, false_parts
from kleash.written.claimed.pinned import denied
from kleash.written.claimed.readings import Shelf, shelves
from kleash.written.claimed.remarks import false_remarks
from kleash.written.claimed.sameness import false_differences
from kleash.written.claimed.shapes import false_shapes
from kleash.written.claimed.spelled import misspelled
from kleash.written.claimed.standings import false_standings
from kleash.written.claimed.strides import false_strides
from kleash.written.claimed.superlatives import false_superlatives
from kleash.written.claimed.sweeping import false_sweeps
from kleash.written.claimed.tops import false_tops
from kleash.written.claimed.unnamed import false_unnamed
from kleash.written.claimed.utmost import false_utmosts
from kleash.written.claimed.verdicts import false_verdicts
from kleash.written.claimed.winners import false_winners
from kleash.written.claimed.wins import false_wins
from kleash.written.marks import Mark
from kleash.written.page import Page
from kleash.written.prose import Sentence
from kleash.written.told.tracks import Course

KINDS = (
    false_superlatives,
    denied,
    false_courses,
    false_bundles,
    false_moves,
    false_shapes,
    false_chains,
    false_sweeps,
    false_everywhere,
    false_limits,
    false_wins,
    false_winners,
    false_comparatives,
    false_differences,
    false_verdicts,
    false_answers,
    false_remarks,
    false_standings,
    false_leashes,
    false_tops,
    false_utmosts,
    false_strides,
    exchanged,
    beside,
)


def false_claims(
    book: Book, page: Page, every: Sequence[Sentence], courses: Sequence[Course]
) -> Iterator[Mark]:
    """What is called the most, put before another, or said to rise, where the tables deny it."""
    all_shelves = shelves(book, page)
    plain = [one for one in all_shelves if not _repeats(one)]
    for kind in KINDS:
        yield from kind(book, plain if kind is false_chains else all_shelves, every)
    yield from false_orders(plain, every)
    yield from false_parts(plain, every)
    yield from false_halves(page, all_shelves, every)
    yield from false_in_chains(page, every)
    yield from opposed(page, all_shelves, every)
    yield from false_identities(book, page, all_shelves, every)
    yield from false_unnamed(book, page, all_shelves, every, courses)
    yield from contradictory(every)
    yield from misspelled(every)


def _repeats(shelf: Shelf) -> bool:
    """Whether rows have one label twice: an arm at several epochs has no place in an order."""
    labels = [row[0] for row in shelf.sheet.table.rows]
    return shelf.side.is_rows and len(set(labels)) < len(labels)
