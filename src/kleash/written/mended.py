"""A report as it would be with what logs have: then one error is one mark.

A wrong number misleads whatever is held against it: sums, copies, the sentences that quote it. So
cells that logs have otherwise are put right, and the rest is checked on that page.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from kleash.documents.page import Page, Span, edited
from kleash.imports.markdown.document import draft_of
from kleash.imports.markdown.draft import Draft
from kleash.written.filed.found import Filed

_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


def mended(draft: Draft, page: Page, slips: Sequence[Filed]) -> tuple[Draft, Page, list[Filed]]:
    """The report with some numbers put right, and which of them could be."""
    edits: dict[Span, str] = {}
    done = []
    for one in slips:
        found = _edit(page, one)
        if found is not None and found[0] not in edits:
            edits[found[0]] = found[1]
            done.append(one)
    if not edits:
        return draft, page, []
    made = replace(page, text=edited(page, edits))
    return draft_of(made.text, page.path), made, done


def _edit(page: Page, one: Filed) -> tuple[Span, str] | None:
    """Where a number stands, and what is put there; None where its cell is not found."""
    cells = page.cells(one.line)
    if one.column >= len(cells) or one.number is None:
        return None
    start, end = cells[one.column]
    digits = _NUMBER.search(one.mark.text)
    same = [
        match for match in _NUMBER.finditer(page.text[start:end])
        if digits and match.group() == digits.group()
    ]  # fmt: skip
    if len(same) != 1 or digits is None:
        return None
    value, decimals = float(one.mark.facts["true"]), len(digits.group().partition(".")[2])
    new = f"{abs(value):,.{decimals}f}" if "," in digits.group() else f"{abs(value):.{decimals}f}"
    return (start + same[0].start(), start + same[0].end()), new
