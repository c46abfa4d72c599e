"""The checkpoint that an arm was trained from, where a report tells it more than once.

"| base checkpoint | RCE epoch 5 |" under the heading of an arm, and "from RCE epoch 2" beside the
command of that arm, cannot both be right. What all arms share is not looked at: it may be varied.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator

from kleash.documents.marks import Mark
from kleash.documents.page import Page
from kleash.written.scripts import arms_said, coded_arm

_STAGE = re.compile(r"(?<![a-z])([a-z]{2,6})[_ ]?(epoch|step)[_ ]?(\d+)(?!\d)", re.I)
_START = re.compile(
    r"checkpoint|ckpt|起点|基础|开始|(?<![a-z])(?:from|start\w*|init\w*|base)(?![a-z])", re.I
)


def false_origins(page: Page) -> Iterator[Mark]:
    """Lines that have an arm begin at another checkpoint than the rest of the report has."""
    told: dict[tuple[str, str, str], list[tuple[int, str, str]]] = defaultdict(list)
    votes: dict[tuple[str, str, str], Counter[str]] = defaultdict(Counter)
    heading = frozenset[str]()
    for nth, (start, end) in enumerate(page.lines, 1):
        line = page.text[start:end]
        if re.match(r"#{2,} ", line):
            heading = arms_said(line)
        code, _, comment = line.partition(" #")
        arm = coded_arm(code) if comment else min(heading) if len(heading) == 1 else ""
        for match in _STAGE.finditer(line) if arm and _START.search(line) else ():
            key = arm, match[1].casefold(), match[2].casefold()
            told[key].append((nth, match[3], match.group()))
            arguments = re.findall(r"(?<=\s)\d+(?=\s|$)", code) if comment else []
            votes[key].update([match[3], *set(arguments)])
    for key, lines in told.items():
        counts = Counter({value: votes[key][value] for _, value, _ in lines})
        (best, most), *others = counts.most_common()
        if others and others[0][1] < most:
            for nth, value, text in lines:
                if value != best:
                    facts = {
                        "lines": [line for line, one, _ in lines if one == best],
                        "value": best,
                    }
                    yield Mark(nth, text, "wrong", "check.not-same", facts, "origin")
