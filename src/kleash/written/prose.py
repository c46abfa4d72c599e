"""The sentences of a page: their numbers, the rows and columns they name, the steps they name.

Nothing is understood beyond that. A number is what is printed; what it is of is for `accounts`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from typing import Any

from kleash.documents.page import Page
from kleash.written.printed import AXIS, Figure, Sheet, axis_word, named, squeezed

_NUMBER = re.compile(
    r"(?<![A-Za-z0-9_.#@^\\/])(?<![A-Za-z]-)(?<!\d-)([+±-]?)\s?"
    r"(\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)(e[+-]?\d+)?(?![\d_]|\.\d|,\d{3})"
)
_BEHIND = re.compile(
    r"\s?(?:(?P<share>%(?!\s?(?:个?百分点|points?|pp))|percent(?!age))|"
    r"(?P<points>%?\s?(?:个?百分点|percentage points?|个点|points?|pts?(?![a-z])|pp(?![a-z])|"
    r"点(?=[^\d]|$)))|"
    r"(?P<times>(?:x|×)(?![a-z\d])|-?\s?times(?![a-z])|-?fold(?![a-z])|倍)|"
    r"(?P<name>-(?=[a-z])|[bmk](?![a-z])|gb|mb|卡(?!时)|gpus?(?!-?\s?(?:h|小时))|个?(?:种子|epochs?|seeds?))|"
    r"(?P<unit>个?\s?[a-z]{1,12}(?:[-/][a-z]{1,6})?|卡时|小时|机时|个?[题步秒条次个\u4e00-\u9fff]))?",
    re.I,
)
_ENDS = re.compile(
    r"[。！？!?；;]|(?<![\d.])\.(?=\s|$)|(?<=\d)\.(?=\s+[A-Z\u0370-\u03ff\u4e00-\u9fff*]|\s*$|\n)|\n(?=\s*(?:[-*+•]|\d+[.)]|>)\s)"
)
_SHORT = re.compile(
    r"(?<![A-Za-z])(?:i\.e|e\.g|vs|cf|approx|resp|fig|eq|etc|no|TL;?DR?|TL)[.;]$", re.I
)
_ITEM = re.compile(
    r"^\s*(?:>\s*)?(?:[-*+•]\s+|\d{1,3}(?:[.)](?!\d)|、)\s*|[(（]\d{1,2}[)）]\s*)?(?:\[[ xX]\]\s*)?"
)
PLACE = re.compile(
    rf"(?<![a-z])(?P<axis>{AXIS})s?\s?(?:[:=#(-]|是|为|is|was)?\s?(?P<at>\d{{1,3}}(?:,\d{{3}})+|\d+)(?!\d|\.\d|e-?\d|,\d{{3}}|\s?%|\s?[-~]\s?\d|\s?(?:条|题|样本|samples|items|(?:s|h|min|ms|gb|秒|分钟|小时|tokens?)(?![a-z])))|"
    rf"第\s?(?P<nth>\d+)\s?(?:个\s?)?(?P<unit>{AXIS})|(?P<lead>\d+)\s?-\s?(?P<shot>shots?)(?![a-z])|"
    r"(?<=[在于])\s?(?P<number>\d+)\s?(?P<word>步|轮)(?![数长次])"
)
_SIZES = re.compile(  # "at 100, 200 and 800 samples", "150 题时"
    r"(?<![\d.,/×*+-])(?<!of )(?<!共 )(?<!共)(?<!取 )(?<!the )"
    r"(?P<sizes>\d{2,6}(?:\s?(?:[、,/和与]|and|or|to|到|至|→|->|-)+\s?\d{2,6})*)"
    r"\s?(?:(?:个\s?)?样本(?![中里])|题(?=[时下上])|"
    r"-?\s?samples?(?![a-z])(?! (?:of|from|per|were|was)))"
)
_ENDING = re.compile(
    rf"(?P<last>末步|末尾|末段|末个\s?(?:{AXIS})|最后一?(?:个\s?)?(?:{AXIS})|训练结束时?|结束时|"
    rf"(?<![a-z])(?:(?:final|last) (?:{AXIS})|(?:at|by) the end)(?![a-z]))|"
    r"(?:首步|起点|起步时|(?<![a-z])(?:at the start|the first step|initially)(?![a-z]))"
)
_NOT_MEASURED = re.compile(
    r"(?:表|图|table|figure|fig\.?|section|附录|appendix|第|eq\.?|v|version|seed|种子|gpu|top-?[pk]|"
    r"temperature|温度|lr|learning rate|学习率|batch(?: size)?|批大小|clip\w*|gamma|lambda|γ|λ|"
    r"weight decay|dropout|warmup|rank|group(?: size)?|系数|coefficients?|coef\w*|"
    r"beta|β|alpha|α|ε|epsilon|"
    r"level|水平|threshold|阈值)\s*(?:为|是|of|=|:|(?:is|was) )?\s*$|"
    r"(?<![a-z])[ptzdfr]\s?[<>=≈]\s?-?$|"
    r"(?<![\d)%\s>])\s?[<>≤≥]=?\s?$|[$¥€£]\s?$|(?<![a-z])(?:usd|rmb|cny|us)\s?\$?\s?$",
    re.I,
)
_PRICED = re.compile(  # "21.6 元/GPU·h", "16 × H800", "0.15 × KL": prices, machines, terms
    r"\s?(?:元|美元|usd|rmb|cny)\s?(?:/|每|per)|\s?[×x*]\s?(?:[a-z]{1,8}[- ]?\d|gpu|npu|卡)|"
    r"\s?[×*]\s?(?:kl|loss|β|entropy)(?![a-z])|\s?[节章]",
    re.I,
)
_FACTOR = re.compile(r"(?:之比|比值|(?<![a-z])(?:factor|ratio)(?: of)?)\s?(?:为|是|约|is|=)?\s?$")
UNDONE = re.compile(r"\s*[-*+]\s*\[ \]")  # nothing of it was measured
_DATE = re.compile(  # "β 0.16: 55.30%" is no time
    r"20\d\d[-/.年]\s?\d{1,2}(?:[-/.月]\s?\d{1,2}日?)?|\d{1,2}:\d\d(?!\.\d+\s?%)"
)


_ROUGH = re.compile(
    r"(?:约|大约|近|将近|左右|(?<![a-z])(?:about|roughly|nearly|almost|around))\s?$|[~≈]\s?$|"
    r"(?:预计|预期|估计|预算|计划)[^,;。\d]{0,12}$|(?<![a-z])(?:expect|estimat|budget)[a-z]*[^,;。\d]{0,24}$"
)
_LIMIT = re.compile(
    r"(?:不到|超过|至少|不足|低于|高于|(?<![a-z])(?:over|under|(?:less|more|lower|higher) than|"
    r"below|above|at (?:least|most)|within))\s?$"
)
_FROM = re.compile(r"\d+(?:\.(\d+))?\s?%?\s?[-~]\s?$")
_TO = re.compile(r"\s?%?\s?[-~]\s?\d+(?:\.(\d+))?")
END = "end"  # the axis of the first and the last place, whatever is counted
STILL = ("", "shot", "sample", END)  # axes along which nothing is trained
REMARK = 4  # letters of a cell that says something


@dataclass(frozen=True)
class Said:
    """A number of a sentence: its place in it, its figure, its sign and what kind it is."""

    start: int
    end: int
    text: str
    figure: Figure
    sign: str = ""
    kind: str = ""
    """"share" (%), "points", "times", "unit" or nothing."""
    unit: str = ""


@dataclass(frozen=True)
class Name:
    """A row or column of a table that a sentence names; the table itself, if neither is given."""

    start: int
    end: int
    sheet: int
    row: int | None
    column: int | None

    @property
    def is_table(self) -> bool:
        """Whether it is the table itself that is named."""
        return self.row is None and self.column is None


@dataclass(frozen=True)
class At:
    """A step, epoch or the like that a sentence names."""

    start: int
    end: int
    axis: str
    at: float

    @property
    def is_of_training(self) -> bool:
        """Whether it is where training had come to."""
        return self.axis not in STILL


@dataclass
class Sentence:
    """A sentence with the line on which each of its letters stands."""

    text: str
    lines: list[int]
    numbers: list[Said] = field(default_factory=list)
    names: list[Name] = field(default_factory=list)
    places: list[At] = field(default_factory=list)
    before: Sentence | None = None
    """The sentence before it in its paragraph."""
    mentioned: list[Any] | None = None
    """What `things` found in it, once it has looked."""

    @cached_property
    def plain(self) -> str:
        """Its text for finding words in it."""
        return squeezed(self.text)

    @cached_property
    def apart(self) -> str:
        """The same, where a comma of Chinese is none of a number: "20，300 of them" are two."""
        letters = zip(self.text, self.plain, strict=True)
        return "".join(";" if letter == "，" else plain for letter, plain in letters)

    def line(self, at: int) -> int:
        """The line of the page on which a letter stands."""
        return self.lines[min(at, len(self.lines) - 1)]


def sentences(page: Page, sheets: Sequence[Sheet]) -> list[Sentence]:
    """Every sentence of a page outside tables and code, with its numbers and names."""
    rows = {line for sheet in sheets for line in sheet.table.lines}
    found = []
    dotted = {
        alias
        for sheet in sheets
        for aliases in (*sheet.rows, *sheet.columns)
        for alias in aliases
        if ". " in alias
    }
    for text, lines in _paragraphs(page, rows):
        before = None
        plain = squeezed(text)
        inside = [span for alias in dotted for span in named(plain, alias)]
        for start, end in _spans(text, inside):
            start += len(text[start:end]) - len(text[start:end].lstrip())
            if start >= end:
                continue
            sentence = Sentence(text[start:end], lines[start:end], before=before)
            _read(sentence, sheets)
            found.append(sentence)
            before = sentence
    for sheet in sheets:
        for line, row in zip(sheet.table.lines, sheet.table.rows, strict=True):
            for cell in row[1:]:
                if len(re.findall(r"[^\W\d_]", cell)) >= REMARK and re.search(r"\d", cell):
                    sentence = Sentence(cell, [line] * (len(cell) + 1))
                    _read(sentence, sheets)
                    found.append(sentence)
    return found


def read(text: str, line: int, sheets: Sequence[Sheet]) -> Sentence:
    """A text that stands by itself, such as a heading, as a sentence."""
    sentence = Sentence(text, [line])
    _read(sentence, sheets)
    return sentence


def _paragraphs(page: Page, rows: set[int]) -> Iterator[tuple[str, list[int]]]:
    text, lines, fenced = "", list[int](), False
    for nth, (start, end) in enumerate(page.lines, 1):
        line = page.text[start:end]
        fence = line.strip().startswith(("```", "~~~"))
        begins = _ITEM.match(line)
        item = begins is not None and begins.end() > len(line) - len(line.lstrip())
        ends = fence or fenced or nth in rows or not line.strip() or line.startswith("#")
        ends = ends or UNDONE.match(line) is not None
        if (ends or item) and text:
            yield text, lines
            text, lines = "", []
        fenced = fenced != fence
        if ends or line.lstrip().startswith("|"):
            continue
        kept = line[begins.end() :] if begins else line
        text += kept + "\n"
        lines += [nth] * (len(kept) + 1)
    if text:
        yield text, lines


def _spans(text: str, names: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Where sentences begin and end; a name such as "Dr. GRPO" holds no end."""
    start, depth = 0, 0
    ends = {m.end() for m in _ENDS.finditer(text) if not _SHORT.search(text[: m.end()])}
    ends = {at for at in ends if not any(first < at < last for first, last in names)}
    for at, letter in enumerate(text, 1):
        depth = max(0, depth + (letter in "(（") - (letter in ")）"))
        if at in ends and depth == 0:
            yield start, at
            start = at
    yield start, len(text)


def _read(sentence: Sentence, sheets: Sequence[Sheet]) -> None:
    plain = sentence.plain
    sentence.places = list(places(plain))
    sentence.names = _names(sentence.text, plain, sheets)
    taken = [(one.start, one.end) for one in sentence.places]
    taken += [(one.start, one.end) for one in sentence.names]
    taken += [match.span() for match in _DATE.finditer(plain)]
    for match in _NUMBER.finditer(sentence.apart):
        start = match.start(2)
        if any(first <= start < last for first, last in taken):
            continue
        one = _said(plain, match)
        if one is not None:
            sentence.numbers.append(one)


def places(plain: str) -> Iterator[At]:
    """The steps, epochs and the like that a squeezed text names."""
    for match in PLACE.finditer(plain):
        word = match["axis"] or match["unit"] or match["shot"] or match["word"]
        at = match["at"] or match["nth"] or match["lead"] or match["number"]
        yield At(match.start(), match.end(), axis_word(word), float(at.replace(",", "")))
    for match in _SIZES.finditer(plain):
        for size in re.finditer(r"\d+", match["sizes"]):
            first = match.start("sizes") + size.start()
            yield At(first, first + len(size[0]), "sample", float(size[0]))
    for match in _ENDING.finditer(plain):
        yield At(match.start(), match.end(), END, inf if match["last"] else -inf)


def _said(plain: str, match: re.Match[str]) -> Said | None:
    behind = _BEHIND.match(plain, match.end())
    groups = behind.groupdict() if behind else {}
    size = re.fullmatch("[gm]b", groups.get("name") or "", re.I) and "." in match[2]
    if size:  # "80GB" is a card, "58.3 GB" was measured
        groups |= {"unit": groups["name"], "name": None}
    if groups.get("name") or _NOT_MEASURED.search(plain[: match.start()]) or match[3]:
        return None
    if _PRICED.match(plain, match.end()):
        return None
    sign = match[1]
    between = (
        r"[\d%)a-z\u4e00-\u9fff]\s?$" if " " in match[0] else r"[\d%)]\s?$|[a-z\u4e00-\u9fff]$"
    )
    if sign == "-" and re.search(between, plain[: match.start()]):
        sign = ""
    body = match[2].replace(",", "")
    kind = next((name for name in ("share", "points", "times", "unit") if groups.get(name)), "")
    kind = "times" if not kind and _FACTOR.search(plain[: match.start()]) else kind
    unit = {"share": "%", "points": "%"}.get(kind, "")
    value = float(body) * (-1 if sign == "-" else 1)
    figure = Figure(value, len(body.partition(".")[2]), unit)
    last = behind.end() if behind and kind in ("share", "points", "times") else match.end()
    said = (groups.get("unit") or "").strip()
    return Said(match.start(2), last, sign + match[2], figure, sign, kind, said)


def _names(text: str, plain: str, sheets: Sequence[Sheet]) -> list[Name]:
    """Rows and columns that a sentence names: of overlapping names of a table the longest."""
    every = list[Name]()
    for sheet in sheets:
        found = list[Name]()
        for row, aliases in enumerate(sheet.rows):
            if row not in sheet.counts:
                found += [Name(*at, sheet.nth, row, None) for at in _found(text, plain, aliases)]
        for column, aliases in enumerate(sheet.columns):
            if column:
                found += [Name(*at, sheet.nth, None, column) for at in _found(text, plain, aliases)]
        found += [Name(*at, sheet.nth, None, None) for at in _found(text, plain, sheet.owners)]
        every += [one for one in found if not any(_inside(one, other) for other in found)]
    return sorted(every, key=lambda one: (one.start, one.end))


def _inside(one: Name, other: Name) -> bool:
    longer = other.end - other.start > one.end - one.start
    return other.start <= one.start and one.end <= other.end and longer


def _found(text: str, plain: str, aliases: Sequence[str]) -> Iterator[tuple[int, int]]:
    for alias in aliases:
        for start, end in named(plain, alias):
            letter = len(alias) == 1 and alias.isascii() and alias.isalpha()
            begins = not text[:start].strip(" *\n") and bool(re.match(r"\s[a-z]", text[end:]))
            article = letter and (not text[start].isupper() or (alias in "ai" and begins))
            if not article:
                yield start, end


def is_rough(sentence: Sentence, said: Said) -> bool:
    """Whether a number is given as about so much, or as a limit."""
    return bool(_ROUGH.search(sentence.plain[: said.start])) or is_limit(sentence, said)


def is_limit(sentence: Sentence, said: Said) -> bool:
    """Whether a number is a limit of what is meant: "less than 0.011"."""
    return bool(_LIMIT.search(sentence.plain[: said.start]))


def other_end(sentence: Sentence, said: Said) -> int | None:
    """The decimals of the other end of a range, if a number is one: "0.205–0.25"."""
    plain = sentence.plain
    end = _FROM.search(plain[: said.start]) or _TO.match(plain, said.end)
    return len(end[1] or "") if end else None
