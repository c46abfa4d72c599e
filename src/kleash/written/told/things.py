"""What rows and columns of all tables are called, and which names in a sentence mean one of them.

"无 KL" of one table, the row 0 under "KL 系数" of another and "without KL" in a sentence are one
thing. So every name has keys, and two names mean the same if they share one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kleash.imports.markdown.text import bare
from kleash.written.printed import Sheet, squeezed
from kleash.written.prose import Sentence

ZERO = re.compile(
    r"(?:无|不加|不带|不用|没有|没加|去掉|关掉|关闭)\s?kl(?:\s?(?:约束|惩罚|项))?(?:版本|组)?|"
    r"(?<![a-z])(?:no|without(?: an?| the| any)?|w/o)[ -]?kl(?: penalty| term| at all)?(?![a-z])|"
    r"(?<![a-z])kl[ -]?(?:off(?![a-z])|关)|(?<![a-z])nokl(?![a-z])|unpenali[sz]ed"
)
LEASHED = re.compile(
    r"(?:有|带|加|用|含)\s?kl(?:\s?(?:约束|惩罚|项))?(?:版本|组)?|kl\s?(?:约束)?(?:版本|组)|kl\s?约束|"
    r"(?<![a-z])with(?: an?| the)? kl(?: penalty| term)?(?![a-z])|"
    r"(?<![a-z])the kl (?:arm|run)(?![a-z])|(?<![a-z])kl[ -]?(?:on(?![a-z])|开)"
)
_VALUE = r"(\d+(?:\.\d+)?(?:e-?\d+)?)"
_SETTING = re.compile(rf"(?:kl[\s_])?(?:kl|beta|β|coef\w*|系数|λ|lambda|lr|学习率)[\s=:]*{_VALUE}")
_HEAD = re.compile(r"kl|beta|β|coef|系数|λ|arm|臂|lr|学习率|^$")
_BLANK = re.compile(r"[\s=:_·-]+")
_POWER = re.compile(r"(?<![\w.+-])\d(?:\.\d)?e-\d{1,2}(?![\w.])")
SETTINGS = 3  # columns among which those are that name an arm by its setting
_SET = re.compile(r"^(?:(?:kl[\s_]?)?(?:beta|coef\w*|系数)|β|λ|lr|(?:grpo )?lr|学习率)")
_KIND = re.compile(r"(?:臂|组|版本?|实验|arm|run)$")
NOISE = re.compile(  # names of statistics, which no course is known by
    r"(?:最[大小高低佳好优终](?:值|步|step|epoch|reward|性能)?|平均|均值|总?平均|合计|总计|变化|差异?|"
    r"best|worst|mean|avg|average|max|min|last|final|first|total|all|step|steps?|epochs?|epoch|seed|"
    r"最佳(?:epoch|step|轮次|步数)|beststep|bestepoch|change|range|rank|名次|排名|步数?|轮次?|"
    r"基准|变化率|起点|末步|std|标准差|n|s|h)"
)


@dataclass(frozen=True)
class Mention:
    """A part of a sentence that names something, and the keys of all that it may be."""

    start: int
    end: int
    keys: frozenset[str]
    text: str
    sides: frozenset[tuple[int, str]] = frozenset()
    """The tables that have it, and whether among their rows or their columns."""


def keys_of(names: Sequence[str], head: str = "-") -> frozenset[str]:
    """By what a row or column can be told: its letters, and its coefficient where it has one."""
    found = set()
    for name in names:
        plain = squeezed(name).strip(" :*↑↓%")
        letters = _BLANK.sub("", plain)
        if letters and not re.fullmatch(r"[\d.,%]+", letters):
            found.add(letters)
            found.add(_KIND.sub("", letters) or letters)
        setting = _SETTING.fullmatch(plain)
        number = re.fullmatch(_VALUE, plain) if _HEAD.search(squeezed(head).strip()) else None
        told = setting or number
        if told:
            found.add(f"#{float(told[1]):g}")
        elif ZERO.fullmatch(plain):
            found.add("#0")
        elif LEASHED.fullmatch(plain):
            found.add("#kl")
    return frozenset(found)


def row_keys(sheet: Sheet, row: int) -> frozenset[str]:
    """The keys of a row."""
    if ("row", row) not in sheet.keys:
        sheet.keys["row", row] = _row_keys(sheet, row)
    return sheet.keys["row", row]


def column_keys(sheet: Sheet, column: int) -> frozenset[str]:
    """The keys of a column."""
    if ("column", column) not in sheet.keys:
        sheet.keys["column", column] = _column_keys(sheet, column)
    return sheet.keys["column", column]


def _row_keys(sheet: Sheet, row: int) -> frozenset[str]:
    head = sheet.table.header[0] if sheet.table.header else ""
    texts = sheet.table.rows[row] if row < len(sheet.table.rows) else ()
    found = keys_of((*sheet.rows[row], *texts[:1]), head)
    for title, text in zip(sheet.table.header[1:SETTINGS], texts[1:SETTINGS], strict=False):
        if _SET.search(squeezed(bare(title))):
            found |= keys_of([bare(text)], title)
    return found


def _column_keys(sheet: Sheet, column: int) -> frozenset[str]:
    """The keys of a column; where columns are numbered, but no steps, these are settings."""
    own = sheet.table.header[column : column + 1]
    decimal = any(re.fullmatch(r"\d+\.\d+", bare(one)) for one in sheet.table.header)
    return keys_of((*sheet.columns[column], *own), "" if decimal and not sheet.across else "-")


def mentions(sentence: Sentence, sheets: Sequence[Sheet]) -> list[Mention]:
    """All that a sentence names but steps and statistics; of names in each other the longest."""
    if sentence.mentioned is None:
        sentence.mentioned = _mentions(sentence, sheets)
    return sentence.mentioned


def _mentions(sentence: Sentence, sheets: Sequence[Sheet]) -> list[Mention]:
    named: dict[tuple[int, int], dict[tuple[int, str], set[int]]] = {}
    for one in sentence.names:
        own = named.setdefault((one.start, one.end), {})
        if one.row is not None:
            own.setdefault((one.sheet, "row"), set()).add(one.row)
        elif one.column is not None:
            own.setdefault((one.sheet, "column"), set()).add(one.column)
    for span, key in settings(sentence.plain):
        for side, lines in having(sheets, key):
            named.setdefault(span, {}).setdefault(side, set()).update(lines)
    taken = [(place.start, place.end) for place in sentence.places]
    found = [
        _mention(sentence, *span, own, sheets)
        for span, own in named.items()
        if not any(_inside(span, other) for other in named)
        and not any(first < span[1] and span[0] < last for first, last in taken)
        and not NOISE.fullmatch(_BLANK.sub("", sentence.plain[slice(*span)]))
    ]
    return sorted(found, key=lambda one: one.start)


def settings(plain: str) -> Iterator[tuple[tuple[int, int], str]]:
    """Where a text speaks of what has a penalty, has none, or has one of a power of ten."""
    for words, key in ((ZERO, "#0"), (LEASHED, "#kl")):
        yield from ((match.span(), key) for match in words.finditer(plain))
    for match in _POWER.finditer(plain):  # of "KL 1e-3" people say "1e-3"
        yield match.span(), f"#{float(match[0]):g}"


def _lines(sheet: Sheet, side: str) -> dict[int, frozenset[str]]:
    """The keys of all rows, or columns, of a table."""
    if side == "row":
        return {nth: row_keys(sheet, nth) for nth in range(len(sheet.rows))}
    return {nth: column_keys(sheet, nth) for nth in range(len(sheet.columns))}


def having(sheets: Sequence[Sheet], key: str) -> Iterator[tuple[tuple[int, str], set[int]]]:
    """The rows and columns of every table that have a key."""
    for sheet in sheets:
        for side in ("row", "column"):
            found = {nth for nth, keys in _lines(sheet, side).items() if key in keys}
            if found:
                yield (sheet.nth, side), found


def _inside(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return other[0] <= one[0] and one[1] <= other[1] and other != one


def _mention(
    sentence: Sentence,
    start: int,
    end: int,
    own: Mapping[tuple[int, str], set[int]],
    sheets: Sequence[Sheet],
) -> Mention:
    """What a part of a sentence names: what its rows, or columns, have in common and no others."""
    plain = sentence.plain[start:end]
    keys = keys_of([plain], "")
    for (sheet, side), lines in own.items():
        every = _lines(sheets[sheet], side)
        common = frozenset.intersection(*(every[nth] for nth in lines))
        others = [found for nth, found in every.items() if nth not in lines]
        keys |= common.difference(*others)
    return Mention(start, end, keys, plain, frozenset(own))
