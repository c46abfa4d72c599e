"""The sentences of a report: what the rules of `findings` say of each.

A rule that finds a sentence false makes it wrong. What holds is right. Numbers are for `quoted`,
words that need a statistic for `words`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from kleash.findings import find
from kleash.findings.comparisons import comparison_false, extreme_false
from kleash.findings.record import Found, canonical
from kleash.findings.spoken import facts_said, position
from kleash.imports import Claim, Source, Where
from kleash.imports.markdown.draft import Draft
from kleash.imports.markdown.text import bare, fold
from kleash.written.claimed.superlatives import NARROWED
from kleash.written.claimed.words import tested_lines, unsupported
from kleash.written.marks import Mark, State
from kleash.written.page import Page

# Findings that say that something written is not so. Those on one number are `relations`'.
FALSE = frozenset(
    (
        "order-false",
        "spread-false",
        "extreme-false",
        "comparison-false",
        "same-false",
        "range-false",
        "range-gap-false",
        "difference-false",
        "count-false",
        "percent-reversed",
        "best-false",
        "best-step-false",
        "value-elsewhere",
        "stray-step",
        "course-false",
        "steps-ahead-false",
        "steps-denied",
        "off-lattice",
        "beyond-limit",
        "gpu-hours",
        "config-denied",
        "started-after-report",
        "not-steady",
        "spread-identity",
        "beyond-plan",
        "samples-differ",
        "stable-contradicted",
        "faster-contradicted",
        "copied-row",
    )
)
WEAK = frozenset(("kl-likeness", "same-outputs-other-weights"))
# The places of these are sentences, but for the two curves at the end.
NEARLY = 2.0  # times: a number that far from a range is not one of it
OTHER = 20.0  # times: numbers that are further apart are of two quantities
STARTS = ("step 0", "epoch 0")
SAID_OFTEN = ("stable-contradicted", "faster-contradicted")
_PASSED = re.compile(r"达到\s?\d|超过\s?\d|(?<![a-z])(?:reach\w*|pass\w*|past)\s\d", re.I)
_OWN_END = re.compile(  # an end of its own curve: no speed towards a level that both reach
    r"minim\w*|lowest|peaks?(?![a-z])|(?:its|their|own) best|最[低小]|峰值|自己的|"
    r"^(?!.*(?:更快|faster)).*\d\s?(?:vs\.?|对|比|against)\s?\d",  # with both steps beside it
    re.I,
)
_OWN_STEP = re.compile(
    r"在\s?(?:step|epoch|第)\s?\d+\s?[步轮]?\s?(?:时|上)?\s?(?:达到|取得)?\s?最[高低大小]|"
    r"(?:highest|lowest|largest|smallest) at (?:step|epoch) \d",
    re.I,
)
_APART = re.compile(r"\S\s+[-−–/÷]\s+\S")
_LINK = re.compile(r"(\d+(?:\.\d+)?)\s?%?\s?[(（][^()（）]*[)）][^\d>]*$")
_MOST = re.compile(r"最|highest|largest|greatest|longest|lowest|smallest|shortest|best|worst", re.I)
_MORE = re.compile(
    r"[高低长短大小好差优劣多少]|higher|lower|above|below|better|worse|more|less|fewer"
)
_OPPOSITE = (
    ("最高", "最低"), ("更高", "更低"), ("高于", "低于"), ("略高", "略低"), ("较高", "较低"),
    ("最好", "最差"), ("更好", "更差"), ("优于", "劣于"), ("更长", "更短"), ("最大", "最小"),
    ("highest", "lowest"), ("higher", "lower"), ("best", "worst"), ("better", "worse"),
    ("above", "below"), ("longer", "shorter"), ("larger", "smaller"), ("greater", "smaller"),
)  # fmt: skip


def said(draft: Draft, page: Page, marks: Sequence[Mark]) -> list[Mark]:
    """A mark for every sentence, number in a sentence, and word that needs more than there is."""
    source = draft.source
    numbers: dict[int, list[float]] = defaultdict(list)
    for cell in draft.printed:
        value = cell.read.number.value if cell.read.number else None
        numbers[cell.line] += [] if value is None else [value]
    found = [mark for one in find([source]) for mark in _of_finding(one, marks, numbers)]
    tested = tested_lines([(nth, page.text[a:b]) for nth, (a, b) in enumerate(page.lines, 1)])
    for line, text in _said(draft):
        words = unsupported(line, text, tested=line in tested)
        found += [replace(mark, line=_line_of(page, mark)) for mark in words]
    found += [mark for claim in facts_said(source) for mark in _holding(source, claim)]
    return found


def _of_finding(
    one: Found, marks: Sequence[Mark], numbers: Mapping[int, Sequence[float]]
) -> Iterator[Mark]:
    """The marks of a finding, at the sentences or cells that it speaks of."""
    if _misread(one, numbers):
        return
    if one.code == "copied-row":
        wrong = {mark.line for mark in marks if mark.state == "wrong"}
        logged = {mark.line for mark in marks if (mark.code, mark.state) == ("check.log", "right")}
        lines = [place.line or 0 for place in one.where]
        guilty = [line for line in lines if line in wrong]
        guilty = guilty or [line for line in lines if line not in logged][-1:]
        yield from (_marked(one, Where("", line), "wrong") for line in guilty[:1])
    elif one.code == "too-long-for-dates":
        yield _marked(one, one.where[-1], "wrong")  # the date: the times were measured
    elif one.code in FALSE or one.code in WEAK:
        places = one.where[:-2] if one.code in SAID_OFTEN else one.where
        often = one.code in SAID_OFTEN or one.code == "kl-likeness"
        # A remark beside one row of a table speaks of that row: it may be right there.
        aside = set(numbers) if one.code in SAID_OFTEN else set[int]()
        if one.code == "faster-contradicted":  # "its best comes earlier" says nothing of speed
            quoted = (*one.facts["texts"], *("" for _ in places))
            pairs = zip(places, quoted, strict=False)
            places = tuple(at for at, text in pairs if not _OWN_END.search(str(text)))
        for place in places if often else places[:1]:
            weak = one.code in WEAK or place.line in aside
            yield _marked(one, place, "unsupported" if weak else "wrong")


def _misread(one: Found, numbers: Mapping[int, Sequence[float]]) -> bool:
    """Whether a finding took a sentence, or a row, for something that it is not."""
    if one.code == "extreme-false" and _not_ranked(one):
        return True
    if one.code == "range-false" and _far_off(one):
        return True
    if one.code == "steps-ahead-false" and _PASSED.search(str(one.facts["text"])):
        return True  # so many steps earlier at some value, not at its best
    if one.code == "comparison-false" and _other_clause(one):
        return True  # "B is 3.2 below A, and KL is no better" does not say of which KL is lower
    if one.code == "beyond-limit" and _row_of_it(one, numbers):
        return True  # a whole row beyond it is of another quantity
    if one.code == "copied-row" and str(one.facts.get("at")) in STARTS:
        return True  # all begin alike
    if one.code == "order-false" and _falls(str(one.facts.get("text", ""))):
        return True  # its own numbers are in that order, and are looked up one by one
    # A difference of two arms has no such limit.
    return one.code == "beyond-limit" and bool(_APART.search(str(one.facts["arm"])))


def _not_ranked(one: Found) -> bool:
    """Whether a sentence does not say that an arm is the highest of the line that it is held to."""
    return (
        not _in_one_clause(one)
        or _other_size(one)
        or bool(_APART.search(str(one.facts["other"])))  # the gap of two arms is none of them
        or _others_number(one)  # "B is highest (0.9259)" is of no line in which B has 0.9053
        or bool(NARROWED.search(str(one.facts["text"]).casefold()))  # "of the last two"
        or bool(_OWN_STEP.search(str(one.facts["text"])))  # "B is lowest at epoch 2" of its course
    )


def _other_size(one: Found) -> bool:
    """Whether the number that is said to be ahead is of another size, so of another quantity."""
    sizes = []
    for key in ("value", "other_value"):
        match = re.search(r"\d+(?:\.\d+)?", str(one.facts[key]).replace(",", ""))
        sizes.append(float(match[0]) if match else 0.0)
    return min(sizes) > 0 and max(sizes) > OTHER * min(sizes)


def _others_number(one: Found) -> bool:
    """Whether a sentence gives numbers that tell, and not that of the arm that it ranks."""
    match = re.search(r"\d+(?:\.\d+)?", str(one.facts["value"]).replace(",", ""))
    said = re.findall(r"(?<![\d.=])\d+\.\d{2,}", str(one.facts["text"]))
    if not match or not said:
        return False
    value = float(match[0])
    near = (abs(value * scale - float(text)) <= 10.0 ** -len(text.partition(".")[2])
            for text in said for scale in (1, 100, 0.01))  # fmt: skip
    return not any(near)


def _far_off(one: Found) -> bool:
    """Whether a number is so far from a range that it is of another quantity, in percent or not."""
    value, low, high = (float(str(one.facts[key])) for key in ("value", "low", "high"))
    return not any(low / NEARLY <= value * scale <= high * NEARLY for scale in (1, 100, 0.01))


def _other_clause(one: Found) -> bool:
    """Whether the metric of a comparison is named in another clause, and that has a number."""
    parts = [part for part in re.split(r"[,;。]\s?", str(one.facts["text"])) if part.strip()]
    said = [part for part in parts if _MORE.search(part)]
    metric = re.split("[_/ ]", canonical(str(one.facts["metric"])))[0]
    elsewhere = any(re.search(metric, part, re.I) for part in parts if part not in said)
    return elsewhere and all(re.search(r"\d\.\d", part) for part in said)


def _row_of_it(one: Found, numbers: Mapping[int, Sequence[float]]) -> bool:
    """Whether most numbers of a row are beyond a limit."""
    values = numbers.get(one.where[0].line or 0, [])
    if float(str(one.facts["limit"])) == 1:
        return True  # a share of more than 1 is one in percent, or no share
    return 2 * sum(value > float(str(one.facts["limit"])) for value in values) > len(values) > 3


def _falls(text: str) -> bool:
    """Whether the links of a chain "26.8 (A) > 26.1 (B)" have numbers that fall as they should."""
    links = [_LINK.search(link) for link in re.split(r"\s*[>＞]\s*", text)]
    values = [float(link[1]) for link in links if link]
    return len(values) == len(links) > 1 and all(a > b for a, b in pairwise(values))


def _in_one_clause(one: Found) -> bool:
    """Whether the arm that is called highest stands in the clause that says so."""
    parts = re.split(r"[,;。]\s?", str(one.facts["text"]))
    said = [part for part in parts if _MOST.search(part)]
    arm = str(one.facts["arm"])
    return not any(position(arm, part) >= 0 for part in parts) or any(
        position(arm, part) >= 0 for part in said
    )


def _marked(one: Found, place: Where, state: State) -> Mark:
    text = str(one.facts.get("number") or one.facts.get("text") or "")
    return Mark(place.line or 0, text, state, one.code, one.facts, one.code)


def _said(draft: Draft) -> Iterator[tuple[int, str]]:
    """Everything that is said in words: lines of text, and remarks in tables."""
    yield from draft.lines
    for cell in draft.printed:
        if cell.read.number is None or cell.sense.role in ("remark", "winner"):
            yield cell.line, bare(cell.read.words)


def _line_of(page: Page, mark: Mark) -> int:
    """The line of a paragraph that has a word: the paragraph is known by its first."""
    for at in range(mark.line, len(page.lines) + 1):
        start, end = page.lines[at - 1]
        if mark.text in fold(page.text[start:end]):
            return at
        if not page.text[start:end].strip():
            break
    return mark.line


def _holding(source: Source, claim: Claim) -> Iterator[Mark]:
    """A sentence that ranks arms is right if its opposite is found to be false."""
    for ours, theirs in _OPPOSITE:
        if (ours in claim.text) == (theirs in claim.text):
            continue
        here, there = (ours, theirs) if ours in claim.text else (theirs, ours)
        turned = replace(claim, text=claim.text.replace(here, there))
        alone = replace(source, claims=[turned])
        if any(True for rule in (extreme_false, comparison_false) for _ in rule([alone])):
            yield Mark(claim.where.line or 0, claim.text, "right", "check.ranked", {}, "ranked")
            return
