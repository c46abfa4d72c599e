"""Sentences: what they claim, the numbers in them, and where they say that things lie.

A claim is listed, not believed. Where a sentence works a number out of two others of its own
("2.123 vs 2.202, 仅差 3.6%"), that is kept as a derived number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from kleash.imports import Claim, Derived, Fact, Number
from kleash.imports.markdown.derived import best
from kleash.imports.markdown.draft import Draft
from kleash.imports.markdown.labels import MOST
from kleash.imports.markdown.numbers import VALUE, number, numbers_in
from kleash.imports.markdown.text import bare, fold, plain

_JUDGEMENTS = {
    "same": (
        r"完全相同|完全一致|(?<!不)一样|(?<!几乎)(?<!不)相同|毫无差异|没有差异|"
        r"(?<!almost )(?<!nearly )(?<!not )identical|exactly (?:the same|equal)|"
        r"(?<!about )(?<!almost )(?<!nearly )(?<!roughly )(?<!much )(?<!not )"
        r"(?<![a-z])(?:the same(?! (?:way|time|reason))|equal(?!ly|iz))"
    ),
    "similar": (
        r"几乎相同|非常相似|差不多|相似|接近|几乎一致|相当|不相上下|差异不大|"
        r"no (?:real |clear |visible |meaningful |notable )?difference|on par|indistinguishable|"
        r"(?:about|almost|nearly|roughly|much) (?:the same|equal|identical)|as good as|"
        r"similar|comparable|close to|does not matter|makes? no difference"
    ),
    "small": r"很小|极小|仅(?!有)|不大|(?<!策)略|微小|minor|negligible|slightly|small difference",
    "significant": r"显著|明显|significant",
    "stable": r"(?<!不)稳定|平滑|温和|stable|stability|smooth",
    "unstable": r"不稳定|波动|崩溃|震荡|unstable|volatile|collapse|fluctuat",
    "faster": r"更快|快\s?\d|提前|更少|faster|earlier|sooner|quicker",
    "slower": r"更慢|略慢|较慢|slower|later than",
    "better": r"更好|最好|最佳|最优|优于|提升|略好|better|best|improv|outperform",
    "worse": r"更差|最差|劣于|略差|worse|worst|degrad",
    "higher": r"更高|最高|略高|上升|增加|higher|highest|rose|rises|increas",
    "lower": r"更低|最低|略低|下降|降低|减少|lower|lowest|fell|falls|drop(?:s|ped)|decreas",
    "converged": r"收敛|converge",
    "overfitting": r"过拟合|over-?fit",
    "conservative": r"保守|conservative",
    "recommended": r"推荐|值得|建议使用|recommend|should use",
    "expected": r"预期|预计|可能|expect|likely|should be",
}
_PATTERNS = {name: re.compile(words, re.I) for name, words in _JUDGEMENTS.items()}
_ENDS = re.compile(r"[()]|[。!?;](?=.)|(?<![A-Z\d])\.(?=\s+\S)|(?<=\d)\.(?=\s+[A-Z\u4e00-\u9fff])")
_PLACES = re.compile(
    r"(?:step|epoch|shots?|gpu)s?\s*\d{1,9}(?:\s*[-~]\s*\d{1,9})?|\d{1,9}\s*个?\s*(?:样本|samples?\b)|"
    r"第\s*\d{1,9}\s*[步轮个]|20\d\d[-/.年]\d{1,2}[-/.月]\d{1,2}日?",
    re.I,
)
_VERSUS = re.compile(r"(?<![A-Za-z])(?:vs\.?|versus|than)(?![A-Za-z])|比(?![例较如])", re.I)
_POINTS = re.compile(r"点|point|pp", re.I)  # no percentage of where something began
_FROM_TO = re.compile(
    r"(?:from|从|由)\s?[\d.]{1,12}\s?(?:to|→|->|降到|降至|升到|升至|增至|到|至)\s?[\d.]{1,12}"
    r"|(?<![\d.→>] )(?<![\d.])(?<!step )(?<!epoch )[\d.]{1,12}\s?(?:→|->)\s?[\d.]{1,12}"
    r"(?!\s?(?:→|->|[\d.]))",
    re.I,
)
_OPENS = re.compile(r"\s*[(（]?\s*")
_MEAN_OF = re.compile(
    r"((?:[\d.]{1,12}%?\s?[,、/]\s?){1,11}[\d.]{1,12}%?)\s?"
    r"\(\s?(?:平均|均值|mean|average|avg)\s?[:=]?\s?([\d.]{1,12}%?)\s?\)",
    re.I,
)
_LARGEST = re.compile(
    r"(?:最大(?:波动|变化|跌幅|涨幅)|(?:largest|max(?:imum)?) (?:swing|change|fluctuation))"
    r"\D{0,6}([\d.]{1,12}%)",
    re.I,
)
_WANDB = re.compile(r"(?<![\w-])(?:offline-)?run-(\d{8})_(\d{6})-[a-z0-9]{4,16}(?![\w-])")
_DATE = re.compile(r"(?<!\d)20\d\d(?:-\d{1,2}-\d{1,2}|/\d{1,2}/\d{1,2}|年\d{1,2}月\d{1,2}日)(?!\d)")
_ENDINGS = (
    "json|jsonl|pt|pth|ckpt|sh|py|md|csv|tsv|ya?ml|toml|log|safetensors|bin|parquet|txt|npz|pkl"
)
_PATH = re.compile(
    rf"`([^`\n]{{0,300}}(?:/[^`\n]{{0,300}}|\.(?:{_ENDINGS})))`|(?<![\w/.])"
    rf"((?:~|\.{{1,2}})?/?(?:[\w.-]{{1,80}}/){{0,20}}[\w.-]{{1,80}}\.(?:{_ENDINGS})|"
    r"/(?:[\w.-]{1,80}/){1,20}[\w.-]{0,80})(?![\w/])"
)


def judgements(text: str) -> tuple[str, ...]:
    """What a sentence asserts, by its words."""
    return tuple(name for name, pattern in _PATTERNS.items() if pattern.search(text))


def sentences(text: str) -> list[str]:
    """The sentences of a text; a full stop inside a number or a bracket ends none."""
    found, depth, start = list[str](), 0, 0
    for match in _ENDS.finditer(text):
        depth = max(0, depth + (match.group() == "(") - (match.group() == ")"))
        if depth == 0 and match.group() not in ("(", ")"):
            found.append(text[start : match.end()].strip())
            start = match.end()
    return [each for each in (*found, text[start:].strip()) if each]


def claim(
    draft: Draft, text: str, line: int, arm: str | None = None, *, words: bool = False
) -> None:
    """List a sentence that holds a number or a judgement; with `words` only for a judgement."""
    folded = re.sub(r"^\d{1,2}(?:[.)]\s|、)(?!\d)", "", bare(plain(text)))
    made = judgements(folded)
    numbers = _measured(draft, folded, line)
    words = words or folded.endswith(":")
    if not set(made) - ({"expected"} if words else set()) and (words or not numbers):
        return
    if folded.endswith("?") and not numbers:
        return
    arms = ([arm] if arm else []) + [each for each in draft.arms.within(folded) if each != arm]
    where = draft.where(line)
    draft.source.claims.append(Claim(folded, where, tuple(numbers), made, tuple(arms)))
    draft.source.derived += _worked_out(draft, folded, line)
    largest = _LARGEST.search(folded)
    if largest and len(arms) == 1:
        match = VALUE.fullmatch(largest[1])
        one = number(match, where) if match else None
        if one is not None:
            draft.largest.append((one, arms[0]))


def _measured(draft: Draft, text: str, line: int) -> list[Number]:
    """The numbers of a sentence that are neither places nor the values that name arms."""
    where = draft.where(line)
    if len(draft.arms.names) <= MOST:
        for arm in sorted(draft.arms.all(), key=len, reverse=True):
            text = text.replace(bare(arm), " " * len(bare(arm)))
    blank = _PLACES.sub(lambda match: " " * len(match.group()), _without_facts(text))
    found = [one for one, _, _ in numbers_in(blank, where)]
    return [one for one in found if not ("." in one.text and draft.arms.named(one.text))]


def _without_facts(text: str) -> str:
    for pattern in (_WANDB, _DATE, _PATH):
        text = pattern.sub(lambda match: " " * len(match.group()), text)
    return text


def _worked_out(draft: Draft, text: str, line: int) -> Iterator[Derived]:
    """Numbers that a sentence works out from others of its own."""
    where = draft.where(line)
    for match in _MEAN_OF.finditer(text):
        parts = [one for one, _, _ in numbers_in(match[1], where)]
        whole = numbers_in(match[2], where)
        if len(parts) > 1 and whole:
            yield Derived("mean", whole[0][0], tuple(parts))
    yield from _from_to(text, draft, line)
    every = [
        each
        for each in numbers_in(text, where)
        if not ("." in each[0].text and draft.arms.named(each[0].text))
    ]
    pairs = [_compared(text, between, every) for between in list(_VERSUS.finditer(text))[:4]]
    used = {each[1] for pair in pairs for each in pair[:2]}
    for pair in pairs:
        if pair:
            for one, at, end in every:
                if at not in used:
                    steps, of = _is_place(text, pair[0][1]), bool(_OF.match(text, end))
                    yield from _gap(one, pair[0][0], pair[1][0], steps=steps, of=of)


def _from_to(text: str, draft: Draft, line: int) -> Iterator[Derived]:
    """ "fell by 32% (from 0.080 to 0.060)": the one percentage beside a start and an end."""
    every = list(_FROM_TO.finditer(text)) if not _VERSUS.search(text) else []
    outside = _FROM_TO.sub(lambda match: " " * len(match.group()), text)
    found = [
        (one, end) for one, _, end in numbers_in(outside, draft.where(line))
        if one.unit == "%" and not _POINTS.search(one.text)
    ]  # fmt: skip
    for match in every:
        ends = numbers_in(match.group(), draft.where(line))
        start, only = match.start(), len(every) == 1
        own = [one for one, end in found if only or _OPENS.fullmatch(text, end, start)]
        if len(ends) == 2 and len(own) == 1 and "%" not in (ends[0][0].unit, ends[1][0].unit):
            first, last = ends[0][0], ends[1][0]
            unsigned = own[0].text[:1] not in "+-"
            yield Derived("relative", own[0], (last,), (first,), unsigned=unsigned)


_OF = re.compile(r"\s?(?:of (?:that|those|the|what|its)\b|的水平|的大小)", re.I)
Found = tuple[Number, int, int]


def _compared(text: str, between: re.Match[str], every: list[Found]) -> tuple[Found, ...]:
    """The numbers on both sides of "vs", two values or two steps; empty if there are none."""
    before = [each for each in every if each[2] <= between.start()][-2:]
    after = [each for each in every if each[1] >= between.end()][:1]
    if not before or not after:
        return ()
    if _is_place(text, after[0][1]):
        return (before[-1], after[0]) if _is_place(text, before[-1][1]) else ()
    # "2.202 (Step 45) vs the new 2.123": a place may stand between a number and its "vs".
    ours = next((each for each in reversed(before) if not _is_place(text, each[1])), None)
    return (ours, after[0]) if ours else ()


def _is_place(text: str, at: int) -> bool:
    return bool(re.search(r"(?:step|epoch|第)\s*$", text[:at], re.I))


def _gap(
    one: Number, ours: Number, theirs: Number, *, steps: bool, of: bool = False
) -> Iterator[Derived]:
    """One number as the difference of two others, if its unit and decimals let it be that."""
    signed = one.text[:1] in "+-"
    if steps != (one.unit in ("步", "step", "steps")):
        return
    if steps:
        ours, theirs = replace(ours, unit="step"), replace(theirs, unit="step")
    shares = "%" in (ours.unit, theirs.unit)
    if of and one.unit == "%" and not signed:
        return  # what one is of the other is no change
    kinds = ("difference", "relative") if shares or one.unit != "%" else ("relative",)
    if not steps and one.unit != "%":
        alike = one.unit == ours.unit and (one.decimals or 0) >= (ours.decimals or 0)
        if not (alike and signed):
            return
        kinds = ("difference",)

    def derive(way: tuple[str, Number, Number]) -> list[Derived | None]:
        made = Derived("relative", one, (way[1],), (way[2],), unsigned=not signed)
        return [made if way[0] == "relative" else replace(made, kind="difference")]

    orders = ((ours, theirs), (theirs, ours))
    yield from best([(kind, *order) for kind in kinds for order in orders], derive)


def facts(draft: Draft, raw: str, line: int, arm: str | None = None) -> bool:
    """Keep the paths, dates and W&B ids of a line; whether there were any."""
    found = list(_facts(draft, raw[:2000], line, arm))
    draft.source.facts += found
    return bool(found)


def _facts(draft: Draft, raw: str, line: int, arm: str | None) -> Iterator[Fact]:
    where = draft.where(line)
    for match in _WANDB.finditer(raw):
        after = re.match(
            r"[`*]{0,3}\s?[(（]([^()（）]{1,40})[)）]", raw[match.end() : match.end() + 60]
        )
        whose = (draft.arms.find(after[1]) if after else None) or arm or ""
        if whose:
            day, clock = match[1], match[2]
            started = f"{day[:4]}-{day[4:6]}-{day[6:]}T{clock[:2]}:{clock[2:4]}:{clock[4:]}"
            draft.run(whose).started = started
        yield Fact("wandb", match.group(), where, whose)
    rest = _WANDB.sub(" ", raw)
    for match in _PATH.finditer(rest):
        text = (match[1] or match[2]).strip()
        if len(text) > 2 and not re.fullmatch(r"[\d./-]+", text):
            yield Fact("path", text, where, arm or "")
    for match in _DATE.finditer(fold(_PATH.sub(" ", rest))):
        yield Fact("date", match.group(), where, arm or "")
