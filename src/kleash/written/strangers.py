"""Arms that no table knows, named in sentences by the value of their setting.

What is planned may be new. A value that is one digit off an arm which is told far more often, and
stands where arms stand, is a slip all the same: nobody tries 0.144 beside 0.145.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from kleash.documents.marks import Mark
from kleash.imports.markdown import labels
from kleash.imports.markdown.draft import Draft
from kleash.written.fitting import is_typo

ROUNDED = 3  # digits of a number that is known with fewer than were measured
LEAST = 5  # lines that name an arm which another value is a slip of
OFTEN = 4  # times: in so many more lines than the slip
NEAR = 0.25  # of the way to the next arm: nobody tries a value so close to one
_BARE = re.compile(r"(?:只有\s?)?(0\.\d+)\s?(?:的|[:：])")  # an arm by its value alone
_FIRST = re.compile(
    r"[\s*`_]*(0\.\d+)[\s*`_]*([^\s\d*`_%±×)）.,，。~-])"
)  # what an item begins with
_BESIDE = re.compile(
    r"(?<![\d.])(?P<one>0\.\d+)(?=[*`_\s]*(?:和|与|、|/|vs\.?|and|or|或)[*`_\s]*(?P<other>0\.\d+)(?![\d.%]|\s?%))"
)
_MEASURED = (
    r"\s?(?:%|个?百分点|个点|点|倍|points?|pts?|pp|times|x|×|"
    r"(?:above|below|higher|lower|more|less|ahead|behind)(?![a-z]))"
)
_PLANNED = re.compile(
    r"可以|尝试|建议|例如|比如|排队|下周|下一|计划|打算|准备|待|补|\[ \]|"
    r"(?<![a-z])(?:try|e\.g|suggest\w*|could|should|plan\w*|next|queued?|todo|will|pending|later|future)(?![a-z])",
    re.I,
)
_FIGURE = re.compile(r"(?<![\d.])\d+\.\d+(?![\d.])")


def strangers(draft: Draft) -> Iterator[Mark]:
    """An arm that a sentence names and no table knows."""
    arms = draft.arms
    told = {run.arm for run in draft.source.runs if run.cells or run.series}
    keys = {pair.key for arm, pair in arms.keys.items() if arm in told}
    values = {pair.value for arm, pair in arms.keys.items() if arm in told}
    cells = (cell for table in draft.source.tables for row in table.rows for cell in row[1:])
    measured = {float(one) for cell in cells for one in _FIGURE.findall(cell)}
    if len(values) < 2:
        return
    rows = {cell.line for cell in draft.printed}
    spoken = [(line, text) for line, text in draft.lines if line not in rows]
    facts = {"arms": sorted(told)}
    slips = dict(_slips(spoken, {one for one in values if isinstance(one, float)}, measured))
    for line, text in spoken:
        if line in slips:
            yield Mark(line, slips[line], "unsupported", "check.stranger", facts, "arm")
        if _PLANNED.search(text):
            continue
        bare = _BARE.match(text)
        if (
            bare
            and float(bare[1]) not in values
            and sum(bare[1] in one for _, one in draft.lines) < 2
        ):
            yield Mark(line, bare[1], "unsupported", "check.stranger", facts, "arm")
        for pair in labels.pairs(text):
            strange = pair.value not in values and isinstance(pair.value, float)
            others = [one for one in _FIGURE.findall(text) if float(one) not in values]
            strange = strange and sum(float(one) != pair.value for one in others) > 0
            strange = strange and not _is_rounded(pair.value, measured)
            # "β = 0.005, 78.77%" and "β = 0.01 and 4.0 points" tell what came of an arm.
            if strange and pair.key in keys and not _is_measured(pair.value, text):
                yield Mark(line, pair.written, "unsupported", "check.stranger", facts, "arm")


def _slips(
    spoken: Sequence[tuple[int, str]], values: Collection[float], measured: Collection[float]
) -> Iterator[tuple[int, str]]:
    """Lines with a value, where arms stand, that is one digit off an arm told far more often."""
    often = Counter(one for _, text in spoken for one in set(_FIGURE.findall(text)))
    known = [one for one in often if float(one) in values and often[one] >= LEAST]
    behind = {m[2] for _, text in spoken if (m := _FIRST.match(text)) and m[1] in known}
    for line, text in spoken:
        first = _FIRST.match(text)
        found = [first[1]] if first and first[2] in behind else []
        for match in _BESIDE.finditer(text):
            two = match["one"], match["other"]
            found += two if {*two} & {*known} else ()
        for one in found:
            value = float(one)
            if (
                value not in values
                and value not in measured
                and any(
                    _is_slip(one, arm, values) and often[arm] >= OFTEN * often[one] for arm in known
                )
            ):
                yield line, one


def _is_slip(text: str, arm: str, values: Collection[float]) -> bool:
    """Whether a value is an arm but for a digit, and so near to it that it is none of its own."""
    decimals = len(arm.partition(".")[2])
    gap = min(abs(one - float(arm)) for one in values if one != float(arm))
    alike = len(text) == len(arm) and is_typo(float(text), float(arm), decimals)
    return alike and abs(float(text) - float(arm)) < NEAR * gap


def _is_rounded(value: object, measured: Collection[float]) -> bool:
    """Whether a value is one that was measured, or such a one with fewer digits."""
    decimals = len(f"{value}".partition(".")[2])
    half = 0.5 * 10.0**-decimals * (1 + 1e-9) if decimals >= ROUNDED else 0.0
    return isinstance(value, float) and any(abs(one - value) <= half for one in measured)


def _is_measured(value: object, text: str) -> bool:
    """Whether a number of a text is said to be points, a percentage or so many times."""
    return bool(re.search(rf"(?<![\d.]){value:g}0*{_MEASURED}", text, re.I)) or bool(
        re.search(rf"(?<![\d.]){re.escape(str(value))}{_MEASURED}", text, re.I)
    )
