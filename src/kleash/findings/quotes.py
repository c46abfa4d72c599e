"""Numbers in prose: each of two digits and more stands in a table, or follows from one.

A sentence that quotes a number which nothing in the document prints was written for other data,
or is a slip. Numbers of one digit are let pass: too much rounds to them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from kleash.findings.record import SLACK, Found, bounds, digits, points
from kleash.imports import Claim, Number, Source
from kleash.imports.markdown.derived import follows

DIGITS = 2
_NUMBER = re.compile(r"(?<![\w.])\d{1,9}(?:\.\d{1,9})?(?:e-?\d{1,3})?(?![\w])")


def number_without_source(sources: Sequence[Source]) -> Iterator[Found]:
    """A number that is quoted in a sentence and printed nowhere else."""
    for source in sources:
        if not source.tables:
            continue
        printed = sorted(_printed(source))
        for claim in source.claims:
            for number in claim.numbers:
                if not _is_quoted(number, claim) or _supported(number, printed):
                    continue
                value = abs(number.value or 0.0)
                facts = {
                    "text": claim.text,
                    "number": number.text,
                    "nearest": min(printed, key=lambda one: abs(one - value), default=None),
                }
                yield Found("number-without-source", "warning", (claim.where,), facts)


def _is_quoted(number: Number, claim: Claim) -> bool:
    """Whether a number claims to be a measurement: decimals, enough digits, no mere plan."""
    return (
        number.value is not None
        and bool(number.decimals)
        and digits(number) >= DIGITS
        and not {"recommended", "expected"} & set(claim.judgements)
    )


def _supported(number: Number, printed: Sequence[float]) -> bool:
    low, high = bounds(number)
    low, high = sorted((abs(low), abs(high)))
    slack = SLACK * max(1e-6, high)
    return any(low - slack <= one <= high + slack for one in printed)


def _printed(source: Source) -> set[float]:
    """The sizes of all numbers that stand in tables, lists and configs, or are derived there."""
    found = set()
    for run in source.runs:
        found |= {abs(point.value) for point in points(run)}
        ends = [end for cell in run.cells for end in (cell.number.low, cell.number.high)]
        found |= {abs(end) for end in ends if end is not None}
        for setting in run.config.values():
            numbers = [float(text) for text in _NUMBER.findall(str(setting.value))]
            found |= {*numbers, *(number / 100 for number in numbers)}
    found |= {
        abs(one.number.value)
        for one in source.derived
        # A sentence supports itself only if it worked its number out rightly.
        if one.number.value is not None and (one.metric or follows(one))
    }
    return found


RULES = (number_without_source,)
