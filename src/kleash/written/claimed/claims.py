"""All that a report claims in words about its tables, and is not so: four kinds of claims."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kleash.written.book import Book
from kleash.written.claimed.contrasts import contradictory
from kleash.written.claimed.courses import false_courses
from kleash.written.claimed.orders import false_orders
from kleash.written.claimed.readings import shelves
from kleash.written.claimed.superlatives import false_superlatives
from kleash.written.marks import Mark
from kleash.written.page import Page
from kleash.written.prose import Sentence


def false_claims(book: Book, page: Page, every: Sequence[Sentence]) -> Iterator[Mark]:
    """What is called the most, put before another, or said to rise, where the tables deny it."""
    all_shelves = shelves(book, page)
    yield from false_superlatives(book, all_shelves, every)
    yield from false_orders(all_shelves, every)
    yield from false_courses(book, all_shelves, every)
    yield from contradictory(every)
