"""Words that no number bears out: "significant", "proves", where no test or interval is told."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kleash.documents.marks import Mark
from kleash.documents.page import Page

_STRONG = re.compile(
    r"(?<![不未无])显著(?!性)|(?<![未没不])(?:证明|证实)了?|必然|毫无疑问|保证了|已(?:经)?得到验证|与?种子无关|无关种子|"
    r"(?<!not )(?<!no )\bsignificant(?:ly)?\b(?! digit)|\bproves?d?\b|confirms? that|"
    r"\bguarantees?\b|undoubtedly",
    re.I,
)
_DOUBTED = re.compile(
    r"p\s?[=<>]|p\s?值|95\s?%|置信|区间|检验|\b(?:test|interval|CI|bootstrap)\b|±|是否|需要|建议|whether|"
    r"not\s+\w*\s*significan|[没未不].{0,8}显著",
    re.I,
)
_TEST = re.compile(r"p\s?[=<]\s?0?\.|95\s?%|置信区间|检验|confidence interval", re.I)


def strong_words(page: Page) -> Iterator[Mark]:
    """Words that need a test, where neither their line nor their section tells of one before."""
    tested = False
    for nth in range(1, len(page.lines) + 1):
        line = page.line(nth)
        if line.startswith("#"):
            tested = False
            continue
        tested = tested or bool(_TEST.search(line))
        word = _STRONG.search(line)
        if word and not tested and not _DOUBTED.search(line):
            yield Mark(nth, word[0], "unsupported", "check.word", {"word": word[0]})
