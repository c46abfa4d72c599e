"""How a sentence names each row and column, as seen from one of its numbers.

A letter for each: the last that is named before the number, in its clause (L) or before it (l);
others in its clause (C) and before (S); the first behind it (A), others behind (a); where the
sentence names none, those of the sentence before (P, and p for others) and of the heading (H, h);
- where nothing names any, and X for one beside which others are named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kleash.written.book import Book
from kleash.written.prose import END, At, Sentence
from kleash.written.sources.asks import Ask
from kleash.written.told.things import column_keys, mentions, row_keys

Spans = dict[tuple[int, int], set[int]]
Sides = dict[int, tuple[Spans, Spans]]
NAMED = frozenset("LlCSAa")
AVOIDED = frozenset("Xph")


def sides_of(sentence: Sentence, book: Book) -> tuple[Sides, set[int]]:
    """By table, the parts of a sentence that name rows and columns; and tables named whole."""
    found: Sides = {sheet.nth: ({}, {}) for sheet in book.sheets}
    whole = set[int]()
    for name in sentence.names:
        if name.row is None and name.column is None:
            whole.add(name.sheet)
            continue
        side, at = (0, name.row) if name.row is not None else (1, name.column)
        found[name.sheet][side].setdefault((name.start, name.end), set()).add(at or 0)
    for sheet in book.sheets:
        rows, columns = found[sheet.nth]
        for one in mentions(sentence, book.sheets):
            own = {
                nth
                for nth in range(len(sheet.rows))
                if nth not in sheet.counts and one.keys & row_keys(sheet, nth)
            }
            if 0 < len(own) < len(sheet.rows):
                rows.setdefault((one.start, one.end), set()).update(own)
            own = {
                nth for nth in range(1, len(sheet.columns)) if one.keys & column_keys(sheet, nth)
            }
            if own:
                columns.setdefault((one.start, one.end), set()).update(own)
        for place in sentence.places:
            by_row = _counted(place, sheet.axis, sheet.counts)
            by_column = _counted(place, sheet.across_axis, sheet.across)
            for spans, own in ((rows, by_row), (columns, by_column)):
                if own:
                    spans.setdefault((place.start, place.end), set()).update(own)
    return found, whole


def _counted(place: At, axis: str, counts: Mapping[int, float]) -> set[int]:
    """The rows, or columns, of a place."""
    wanted = place.at
    if place.axis == END and counts:
        wanted = max(counts.values()) if wanted > 0 else min(counts.values())
    elif place.axis != axis:
        return set()
    return {nth for nth, at in counts.items() if at == wanted}


def letters(ask: Ask, spans: Spans, before: Spans, heading: Spans, count: int) -> Sequence[str]:
    """A letter for each row, or column, of a table."""
    if not spans:
        for others, (yes, no) in ((before, "Pp"), (heading, "Hh")):
            if others:
                named = set[int]().union(*others.values())
                return [yes if nth in named else no for nth in range(count)]
        return ["-"] * count
    found = ["X"] * count
    ahead = sorted(span for span in spans if span[1] <= ask.said.start)
    behind = sorted(span for span in spans if span[0] >= ask.said.start)
    first, last = ask.clause
    for nth, span in reversed(list(enumerate(behind))):
        for at in spans[span]:
            found[at] = "A" if not nth and first <= span[0] < last else "a"
    for span in ahead:
        inside, latest = span[0] >= first, span == ahead[-1]
        for at in spans[span]:
            found[at] = ("L" if inside else "l") if latest else "C" if inside else "S"
    return found
