"""Gaps that a sentence gives twice, as they are and in percent: "1.605, 0.568 more (+54.8 %)".

With the number that the gap is from, both are of two numbers: the one that is given, and one that
lies so far above or below it and is printed somewhere. In percent the gap is of the lower one if it
is more, of the higher one if it is less.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from kleash.written.fitting import is_typo
from kleash.written.gaps import OR, is_gap, way_of
from kleash.written.printed import Figure
from kleash.written.prose import Said, Sentence, is_rough
from kleash.written.told.given import Given, change

DIGITS = 3  # of a number that a gap is from
Printed = Collection[tuple[int, float]]
"""Numbers of tables: decimals and value."""


def false_couples(sentence: Sentence, printed: Printed) -> Iterator[tuple[Said, list[Given]]]:
    """Shares that are a digit off what their gap is in percent, or of the other number."""
    for gap, share in zip(sentence.numbers, sentence.numbers[1:], strict=False):
        led = share.kind == "share" and OR.fullmatch(
            sentence.plain[gap.end : share.start].rstrip("+-± ")
        )
        if not led or not is_gap(sentence, gap) or is_rough(sentence, share):
            continue
        if gap.kind in ("share", "times") or not gap.figure.decimals or not gap.figure.value:
            continue
        pairs = list(_pairs(sentence, gap, printed))
        way = way_of(sentence, share)
        given = [one for two in pairs for one in _changes(gap, share, two, way)]
        turned = [one for two in pairs for one in _changes(gap, share, two, -way)] if way else []
        off = given and not any(one.fits(share) for one in given)
        slip = any(_is_slip(share, one) for one in given)
        if off and (slip or any(one.is_exact(share) for one in turned)):
            yield share, given


def _pairs(sentence: Sentence, gap: Said, printed: Printed) -> Iterator[tuple[Figure, Figure]]:
    """A number before a gap, and one that is so far above or below it: the lower one first."""
    apart = abs(gap.figure.value)
    for one in sentence.numbers:
        figure = one.figure
        alike = figure.decimals == gap.figure.decimals and figure.digits >= DIGITS
        if one.end > gap.start or not alike or is_gap(sentence, one):
            continue
        for other in (figure.value - apart, figure.value + apart):
            if (figure.decimals, round(other, figure.decimals)) in printed and other > 0:
                low, high = sorted((figure.value, other))
                yield replace(figure, value=low), replace(figure, value=high)


def _changes(gap: Said, share: Said, two: tuple[Figure, Figure], way: int) -> Iterator[Given]:
    """A gap in percent: of the lower number if it is more, of the higher if less."""
    sign = -1 if share.sign == "-" else 1
    for base in two[:1] if way > 0 else two[1:] if way < 0 else two:
        yield change(sign * abs(gap.figure.value), 2 * base.half, base)


def _is_slip(share: Said, given: Given) -> bool:
    return is_typo(abs(share.figure.value), abs(given.value), share.figure.decimals)
