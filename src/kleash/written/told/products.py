"""Whole numbers that a sentence multiplies itself: "750 a epoch, 12 epochs, 9000 in all".

A total that is a digit off the product of two numbers before it, or has two digits in each other's
place, is that product with a slip: chance makes few numbers of four digits so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations

from kleash.written.fitting import is_typo
from kleash.written.marks import Mark
from kleash.written.prose import Sentence

LEAST = 1000  # of a total that can be told from others
MOST = 8  # numbers before it that may be multiplied
_WHOLE = re.compile(r"(?<![\d.A-Za-z_-])(?<!\d,)(\d{1,3}(?:,\d{3})+|\d+)(?![\d.]*\d|\s?%)")
_IN_ALL = re.compile(
    r"(?:合计|总计|总共|一共|共计?|总数|折合|(?<=[\d\s])=|"
    r"(?<![a-z])(?:total(?:s|ling)?|in all|altogether|makes?))[^\d;。,]{0,8}$"
)
_BEHIND = re.compile(r"[^\d;。,]{0,16}(?:合计|in all|in total|altogether)(?![a-z])")
_EACH = re.compile(r"每|(?<![a-z])(?:each|every|per)(?![a-z])")


def false_products(sentence: Sentence) -> Iterator[Mark]:
    """Totals that are nearly, and not quite, the product of two numbers before them."""
    plain = sentence.plain
    found = [(match, int(match[1].replace(",", ""))) for match in _WHOLE.finditer(plain)]
    above = _WHOLE.findall(sentence.before.plain) if sentence.before else []
    for nth, (match, total) in enumerate(found):
        own = [value for _, value in found[:nth] if value > 1]
        before = [*(int(one.replace(",", "")) for one in above), *own][-MOST:]
        told = _IN_ALL.search(plain, 0, match.start()) or _BEHIND.match(plain, match.end())
        if total < LEAST or not told or total in before:
            continue
        made = {one * other for one, other in combinations(before, 2)}
        made |= {one + other for one, other in combinations(before, 2)} | {sum(before)}
        near = {one for one in made if one != total and is_typo(total, one, 0)}
        if len(own) == 2 and _EACH.search(plain[: found[0][0].start()]):
            near = {own[0] * own[1]}  # so many for each, and so many of them
        if total not in made and len(near) == 1:
            line = sentence.line(match.start())
            facts: dict[str, object] = {"value": f"{near.pop()}", "lines": [line]}
            yield Mark(line, match[1], "wrong", "check.not-product", facts, f"product {match[1]}")
