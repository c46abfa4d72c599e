"""Parts of a whole that a sentence gives in percent: "26.4 of 46.4 h, 56.9 %".

Part, whole and share stand in one sentence, in one of a few orders, so the share can be of no other
two numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kleash.written.prose import Said, Sentence, is_rough

_ANY = r"[^,;。\d]"
_UNIT = r"\s?%?[^,;。\d]{0,16}?"
# Between part and whole, and between whole and share.
_PART_WHOLE_SHARE = (
    (rf"{_UNIT}[,(]?\s?(?:占|是|为|相当于|等于){_ANY}{{0,12}}", rf"{_ANY}{{0,10}}的\s?"),
    (
        r"\s?(?:[a-z]+\s)?(?:out )?of (?:the |all |these |its )?",
        r"[^;。\d()]{0,48}[,(=]\s?(?:or |that is |i\.e\. |about )?",
    ),
    (r"\s?/\s?", r"[^;。\d()]{0,12}[,(=]\s?(?:即|占|约)?\s?"),
)
# Between whole and part, and between part and share.
_WHOLE_PART_SHARE = (
    (
        r"[^;。\d]{0,24}(?:其中|当中|of which|of these|of them)[^;。\d]{0,24}",
        r"[^;。\d]{0,12}[,(]\s?(?:占|即|约占|合)?[^;。\d,]{0,6}",
    ),
    (rf"{_UNIT}(?:中|里)[^,;。\d]{{0,16}}", rf"{_ANY}{{0,12}}[,(]\s?(?:占|即|约占){_ANY}{{0,6}}"),
    (r"\s(?:[a-z]+[ ,]+){1,6}", r"\s?(?:[a-z]+\s){0,4}\(\s?"),
)
# Between part and share, and between share and whole.
_PART_SHARE_WHOLE = (
    (
        rf"{_UNIT}[,(]\s?(?:or |that is |i\.e\. )?",
        r"\s?(?:of|out of) (?:the |all |these |its )?(?:[a-z]+ ){0,2}",
    ),
)
_OF = re.compile(r"(?<![a-z])of (?:the |all |these )?$")


def portions(sentence: Sentence) -> Iterator[tuple[Said, Said, Said]]:
    """Every share of a sentence with the part and the whole that it is of."""
    for nth, share in enumerate(sentence.numbers):
        if share.kind != "share" or share.sign or is_rough(sentence, share):
            continue
        for part, whole in _two(sentence, nth):
            kinds = {part.kind, whole.kind} & {"share", "points", "times"}
            if 0 < part.figure.value <= whole.figure.value and not kinds:
                yield share, part, whole
                break


def _two(sentence: Sentence, nth: int) -> Iterator[tuple[Said, Said]]:
    """The two numbers that stand around a share as a part and a whole do."""
    before, share = sentence.numbers[max(0, nth - 2) : nth], sentence.numbers[nth]
    if len(before) > 1:
        one, other = before
        for first, second in _PART_WHOLE_SHARE:
            if _stand(sentence, (one, first, other, second, share)):
                yield one, other
        for number, (first, second) in enumerate(_WHOLE_PART_SHARE):
            led = number < 2 or _OF.search(sentence.plain, 0, one.start)
            if led and _stand(sentence, (one, first, other, second, share)):
                yield other, one
    if before and nth + 1 < len(sentence.numbers):
        part, whole = before[-1], sentence.numbers[nth + 1]
        for first, second in _PART_SHARE_WHOLE:
            if _stand(sentence, (part, first, share, second, whole)):
                yield part, whole


def _stand(sentence: Sentence, told: tuple[Said, str, Said, str, Said]) -> bool:
    """Whether what stands between three numbers is as it should be, names aside."""
    one, first, other, second, last = told
    texts = _between(sentence, one, other), _between(sentence, other, last)
    return all(re.fullmatch(*two) for two in zip((first, second), texts, strict=True))


def _between(sentence: Sentence, one: Said, other: Said) -> str:
    named = {
        at for name in sentence.names for at in range(name.start, name.end)
        if re.search(r"\d", sentence.plain[name.start : name.end])
    }  # fmt: skip
    return "".join("_" if at in named else sentence.plain[at] for at in range(one.end, other.start))
