"""What a text names of a table: rows and columns by the words that tell them apart, and quantities.

A label is a set of words; quantities go by one word each, whatever they are called and in which
language. Only what tells a label from the others of its side counts as naming it: of "A, no KL"
and "B, 0.01" either half will do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from kleash.imports.markdown.text import bare
from kleash.written.page import Page
from kleash.written.printed import Sheet, axis_word, is_total, squeezed
from kleash.written.prose import Sentence

FREE = "no-kl"  # the word of an arm without a penalty, however it is written
LEASHED = "kl-on"  # and of one that is only said to have one
CAPTION = 160  # letters of the line above a table
KINDS_OF = 3  # quantities that make a side one of quantities
LONGEST = 24  # letters of a cell that names its row
NEAR = 9  # letters between two words of one name
_B, _E = r"(?<![a-z])", r"(?![a-z])"
_FREE = re.compile(
    rf"(?:不加|不带|不用|没有|无|去掉)\s?kl(?:\s?约束|\s?惩罚)?|"
    rf"{_B}(?:no|without(?: any| the| a)?|w/o)[- ]?(?:kl{_E}|penalty|leash)|"
    rf"{_B}nokl{_E}|{_B}kl[- ]?off{_E}|{_B}unpenali[sz]ed|"
    rf"(?:β|{_B}beta|{_B}kl)\s?[ =]?\s?0(?:\.0+)?(?![\d.]|e-)"
)
_LEASHED = re.compile(
    rf"(?:有|带|加|含|用)\s?kl(?:\s?约束|\s?惩罚)?(?:\s?的)?(?:\s?版本?)?(?!\s?[=:]?\s?\d)|"
    rf"{_B}kl\s?(?:约束\s?)?版本?|"
    rf"{_B}with (?:a |the )?kl(?: penalty| term| loss)?{_E}(?!\s?[=:]?\s?\d)|"
    rf"{_B}kl[- ]?on{_E}"
)
_QUANTITIES: dict[str, str] = {
    "accuracy": rf"准确率|正确率|命中率|{_B}accurac(?:y|ies)|{_B}acc{_E}",
    "success": rf"成功率|解决率|{_B}success(?: rate)?{_E}",
    "win": rf"胜率|{_B}win[- ]?rate",
    "reward": rf"奖励|{_B}rewards?{_E}|{_B}rm score|{_B}rm{_E}",
    "kl": rf"{_B}kl(?: loss| 散度| divergence|[ _-]?值)?{_E}"
    rf"(?! ?系数| beta| coef|[ =:]{{0,3}}\d)|散度|{_B}divergence",
    "entropy": rf"熵|{_B}entrop(?:y|ies)",
    "loss": rf"损失|{_B}loss(?:es)?{_E}",
    "length": rf"长度|{_B}lengths?{_E}|{_B}tokens?{_E}(?! ?/ ?s| per s)|变长|变短",
    "gradient": rf"梯度范数|{_B}grad(?:ient)?[ _]?norm",
    "throughput": rf"吞吐量?|{_B}throughput|{_B}tokens? ?(?:/ ?s|per s)",
    "memory": rf"显存|内存|{_B}(?:peak )?memory",
    "gpu": rf"{_B}gpu ?[·.\- ]? ?(?:h(?:ours?)?{_E}|小时|时)|卡时|机时",
    "cost": rf"费用|成本|花费|{_B}costs?{_E}|价钱|\(元\)|\(usd\)|\(\$\)",
    "time": rf"时间|用时|耗时|时长|{_B}hours?{_E}|{_B}seconds?{_E}|wall[- ]?clock|"
    rf"{_B}s ?/ ?(?:step|it)|\(h\)|\(s\)|\(min\)|小时|{_B}h ?/ ?run|\(秒\)|run time|step time",
    "spread": rf"标准差|方差|波动|{_B}std{_E}|{_B}s\.?d\.{_E}|{_B}sd{_E}|{_B}spread|"
    rf"{_B}deviations?",
    "range": rf"极差|{_B}range{_E}",
    "rank": rf"名次|排名|{_B}ranks?{_E}",
    "turns": rf"轮数|{_B}turns{_E}(?! (?:round|out|away|into|to))",
    "share": rf"占比|{_B}shares?{_E}",
    "retention": rf"保持率|{_B}retention",
    "step": rf"(?<!\d)(?<!\d )步(?!长)|(?<!\d)(?<!\d )轮次|"
    rf"{_B}(?:steps?|epochs?|updates?|iterations?){_E}(?! ?\d)(?<!\d step)",
}
_KINDS: dict[str, str] = {
    "best": rf"最佳(?!化)|最好成绩|峰值|最高点|{_B}best{_E}|{_B}peaks?{_E}",
    "final": rf"末步|末次|最终|终点|末尾|末值|末个|末段|{_B}final{_E}|{_B}last{_E}|{_B}ends?{_E}|"
    rf"(?<=[(])末(?=[)])|结束",
    "first": rf"首步|起点|初始|起步|{_B}initial(?:ly)?{_E}|{_B}first{_E}|(?<=[(])首(?=[)])",
    "mean": rf"均值|平均|{_B}mean{_E}|{_B}avg{_E}|{_B}average",
    "change": rf"变化|环比|较上|{_B}changes?{_E}|Δ|δ",
    "gap": rf"差[异值距]|相差|{_B}(?:difference|gap|diff)s?{_E}",
    "drop": rf"回落|退化|下跌|掉(?!头)|跌|降幅|下降|回撤|{_B}drops?{_E}|"
    rf"{_B}lo(?:st|ses?){_E}|{_B}declines?|{_B}falls?{_E}",
    "gain": rf"提升|提高|增益|增幅|增长|涨|{_B}gains?{_E}|{_B}improve\w*|增加|收益",
    "train": rf"训练|{_B}train(?:ing)?{_E}",
    "validation": rf"验证|{_B}val(?:idation)?{_E}|{_B}held-out",
    "test": rf"测试|{_B}test{_E}",
    "step time": rf"每步|{_B}per step|/ ?step|{_B}a step",
}
QUANTITIES = frozenset(_QUANTITIES)
KINDS = frozenset(_KINDS)
_CONCEPTS = {name: re.compile(words) for name, words in (*_QUANTITIES.items(), *_KINDS.items())}
_NO_NAMES = frozenset((*_CONCEPTS, *"αβγδελμστ", "kl", "coef", "系数"))
_WORD = re.compile(
    r"[a-z]+@\d+|\d+(?:\.\d+)?e-?\d+|\d+\.\d+|[a-z]+\d+[a-z]*(?![\d.])|\d+[a-z]+(?![a-z\d])|\d+|[a-z]+|[α-ω]|"
    r"[\u4e00-\u9fff]+"
)
_NUMBER = re.compile(r"(?<![\d.])(?:(?<![a-z])\d+(?:e-?\d+)?|\d+\.\d+(?:e-?\d+)?)(?!\d|\.\d|[a-z])")
_SAID_OF = re.compile(r"\s(?:is|has|was|ends|gives|wins)(?![a-z])|\s?(?:最|的)")
_SUBJECT = re.compile(
    r"\s?(?:只|仅|则|[为是要](?!\d)|在|最|也|却|仍|反而|依[旧然]|[和与、]\s?\d)|\s+\d+\.\d|\s(?:is|has|was|had|ends|ended|peaks)(?![a-z])"
)
_KEY = re.compile(r"(?:(?<![a-z])(?:kl|beta|coef\w*|lr)|β)(?: beta)?\s?[=:]?\s?$")
_ZERO = re.compile(r"\s*0(?:\.0+)?\s*")
_RESULT = re.compile(r"\d\s?(?:→|->|–|-|~|/|@)\s?\d|%|±")
APART = re.compile(r"\s[-−–/÷]\s|(?<![a-z])vs(?![a-z])|(?<=\S)−(?=\S)")
_COUNTED = frozenset(("epoch", "step", "steps", "seed", "seeds", "table", "shot", "shots"))
_IDLE = frozenset(
    ("的", "与", "和", "为", "是", "of", "the", "at", "in", "vs", "an", "and", "by", "to", "per")
)
_MEASURED = re.compile(
    r"\s?(?:%|个?百分点|个点|点|points?|pp|pts|s(?![a-z])|秒|h(?![a-z])|小时|×|x(?![a-z])|倍|元|gb|步|次|"
    r"tokens?|题|条)"
)


@dataclass(frozen=True)
class Mention:
    """A part of a text that names some labels of one side of a table, and by which words."""

    start: int
    end: int
    labels: frozenset[int]
    words: frozenset[str]


def _blanked(text: str, words: re.Pattern[str]) -> str:
    return words.sub(lambda match: " " * len(match[0]), text)


@lru_cache(maxsize=8192)
def _concepts_at(text: str) -> tuple[tuple[str, int, int], ...]:
    blank = _blanked(_blanked(text, _FREE), _LEASHED)
    return tuple(
        (name, *match.span())
        for name, words in _CONCEPTS.items()
        for match in words.finditer(blank)
    )


def concepts(text: str, skip: Sequence[tuple[int, int]] = ()) -> frozenset[str]:
    """The quantities, and which kind of their values, that a squeezed text speaks of."""
    return frozenset(
        name
        for name, start, end in _concepts_at(text)
        if not any(first < end and start < last for first, last in skip)
    )


@lru_cache(maxsize=4096)
def words_of(label: str) -> frozenset[str]:
    """The words of a label: its concepts under one name each, and the rest as written."""
    text = squeezed(bare(label)).strip(" :*↑↓⭐")
    found = set(concepts(text))
    if _FREE.search(text):
        found.add(FREE)
        text = _FREE.sub(" ", text)
    if _LEASHED.search(text):
        found.add(LEASHED)
        text = _LEASHED.sub(" ", text)
    for words in _CONCEPTS.values():
        text = words.sub(" ", text)
    rest = {_same(word) for word in _WORD.findall(text)} - _IDLE - _CONCEPTS.keys()
    return frozenset(found | rest)


def _same(word: str) -> str:
    """A number as one however it is written: 0.10 is 0.1, 1e-3 is 0.001."""
    return f"{float(word):g}" if re.fullmatch(r"\d+(?:\.\d+)?(?:e-?\d+)?", word) else word


@dataclass(frozen=True)
class Side:
    """The rows, or the columns, of a table with the words of their labels."""

    sheet: Sheet
    is_rows: bool
    labels: dict[int, frozenset[str]]
    head: frozenset[str]
    texts: dict[int, str]
    naming: tuple[int, ...] = (0,)
    """The columns that name the rows."""

    @cached_property
    def telling(self) -> dict[str, frozenset[int]]:
        """The words that some labels have and others have not, with those that have them."""
        every = frozenset().union(*self.labels.values()) if self.labels else frozenset()
        # A set has another order in every process; of 0 and "no KL" the latter says more.
        words = sorted(every, key=lambda word: (word not in (FREE, LEASHED), word))
        found = {w: frozenset(i for i, one in self.labels.items() if w in one) for w in words}
        return {word: at for word, at in found.items() if len(at) < len(self.labels)}

    @cached_property
    def is_metrics(self) -> bool:
        """Whether its labels are quantities of several kinds, and not what was compared."""
        return (
            len({frozenset(one & _CONCEPTS.keys()) for one in self.labels.values()} - {frozenset()})
            >= KINDS_OF
        )

    def named(self, sentence: Sentence, start: int, end: int, *, arms: bool) -> list[Mention]:
        """What a part of a sentence names of this side; of `arms` not by quantities alone."""
        found = sorted(
            (
                Mention(first, last, at, frozenset((word,)))
                for word, at in self.telling.items()
                for first, last in _spans(word, sentence, start, end, self)
            ),
            key=lambda one: (one.start, -one.end),
        )
        made = list[Mention]()
        for one in found:
            joined = _joined(made[-1], one, sentence.plain) if made else None
            if joined is not None:
                made[-1] = joined
            elif not made or one.end > made[-1].end:
                made.append(one)
        exact = [self._exact(one) for one in made]
        return [one for one in exact if not arms or self._is_name(one)]

    def _is_name(self, mention: Mention) -> bool:
        """Whether a mention has the first word of a label, or half of them: not one of a phrase."""
        own = mention.words - _NO_NAMES
        least = min(len(self.labels[at] - _NO_NAMES) for at in mention.labels)
        leads = any(_leading(self.texts[at]) in own for at in mention.labels)
        return bool(own) and (leads or 2 * len(own) >= least)

    def _exact(self, mention: Mention) -> Mention:
        """A mention of several labels as that of the one of which it has every word."""
        extra = {at: self.labels[at] & self.telling.keys() - mention.words for at in mention.labels}
        whole = [at for at, words in extra.items() if not words]
        plain = [
            at
            for at, words in extra.items()
            if not words & _CONCEPTS.keys() - QUANTITIES and not APART.search(self.texts[at])
        ]
        for labels in (whole, plain):
            if len(labels) == 1:
                return replace(mention, labels=frozenset(labels))
        return mention


def _leading(label: str) -> str:
    match = _WORD.search(squeezed(bare(label)))
    return _same(match[0]) if match else ""


def _joined(before: Mention, one: Mention, text: str) -> Mention | None:
    """Two words as one mention, if they lie side by side and some label has both."""
    between = text[before.end : one.start]
    near = one.start < before.end or (len(between) <= NEAR and _joins(between))
    both = before.labels & one.labels
    if not near or not both:
        return None
    return Mention(before.start, max(before.end, one.end), both, before.words | one.words)


def _joins(between: str) -> bool:
    return bool(re.fullmatch(r"[\s=:/_()·.,+-]*(?:(?:epoch|step|seed|shot|第)[\s=:]*)?", between))


def _spans(
    word: str, sentence: Sentence, start: int, end: int, side: Side
) -> Iterator[tuple[int, int]]:
    """Where a part of a sentence has a word of a label; a letter alone is a capital."""
    text = sentence.plain
    if word == FREE:
        yield from (match.span() for match in _FREE.finditer(text, start, end))
    elif word == LEASHED:
        blank = _blanked(text, _FREE)
        yield from (match.span() for match in _LEASHED.finditer(blank, start, end))
    elif word in _CONCEPTS:
        yield from (match.span() for match in _CONCEPTS[word].finditer(text, start, end))
    elif re.fullmatch(r"\d.*", word) and not re.search("[a-z]$", word):
        yield from _numbers(word, text, start, end, side)
    elif re.fullmatch("[\u4e00-\u9fff]+", word):
        yield from (
            match.span() for match in re.finditer(word, text[:end]) if match.start() >= start
        )
    else:
        pattern = rf"(?<![a-z\d.]){re.escape(word)}(?![a-z\d]|\.\d)"
        for match in re.compile(pattern).finditer(text, start, end):
            if len(word) > 1 or not word.isascii() or sentence.text[match.start()].isupper():
                yield match.span()


def _numbers(word: str, text: str, start: int, end: int, side: Side) -> Iterator[tuple[int, int]]:
    """Where a number stands as a name: not as what was measured, and a whole one behind its key."""
    whole = "." not in word and "e" not in word
    for match in _NUMBER.finditer(text, start, end):
        if _same(match[0]) != word or _MEASURED.match(text, match.end()):
            continue
        before = text[max(0, match.start() - 12) : match.start()]
        value = re.search(r"[(+→~]\s?$|(?<![a-z])-\s?$", before)  # "GRPO-2" is a name
        listed = re.search(r",\s?$", before) and not _SUBJECT.match(text, match.end())
        if (value or listed) and not re.search(r"=\s?$", before):
            continue
        key = re.search(r"([a-zα-ω]+|[\u4e00-\u9fff]+)\s?[=:-]?\s?$", before)
        behind = re.compile(r"[ -]?([a-z]+)").match(text, match.end())
        keys = side.head | frozenset().union(*side.labels.values())
        said = {one[1] for one in (key, behind) if one}
        bare_label = (
            frozenset((word,)) in side.labels.values() or {word, FREE} in side.labels.values()
        )
        if whole and bare_label and _SAID_OF.match(text, match.end()):
            yield match.span()
            continue
        if whole and not any(key in one or one in key for one in said for key in keys if key):
            continue
        lead = _KEY.search(text[: match.start()])
        yield (lead.start() if lead else match.start()), match.end()


def sides(sheet: Sheet) -> tuple[Side, Side]:
    """The two sides of a table: its rows, without totals, and its columns."""
    naming = [at for at in range(1, len(sheet.table.header)) if _labels(sheet, at)]
    texts = {
        nth: " ".join((row[0], *(_told(sheet, row, at) for at in naming)))
        for nth, row in enumerate(sheet.table.rows)
        if not is_total(row[0])
    }
    heads = {
        nth: title
        for nth, title in enumerate(sheet.table.header)
        if nth and nth not in naming and any(cell.column == nth for cell in sheet.cells)
    }
    heads = {nth: title for nth, title in heads.items() if not is_total(title)}
    named = [one for at, one in enumerate(sheet.table.header) if not at or at not in heads]
    first = frozenset().union(*map(words_of, named)) if named else frozenset[str]()
    return (
        Side(sheet, True, _with_free(texts, named), first, texts, (0, *naming)),
        Side(sheet, False, _with_free(heads, named[:1]), first, heads),
    )


def _with_free(texts: Mapping[int, str], heads: Sequence[str]) -> dict[int, frozenset[str]]:
    """The words of labels; a coefficient of 0 is an arm without a penalty."""
    small = [one for one in texts.values() if re.fullmatch(r"0\.\d+", bare(one).strip())]
    coefficient = len(small) > 1 or any(
        re.search("kl|β|beta|coef|系数", one, re.I) for one in heads
    )
    return {
        nth: words_of(text) | ({FREE} if coefficient and _ZERO.fullmatch(bare(text)) else set())
        for nth, text in texts.items()
    }


def _labels(sheet: Sheet, column: int) -> bool:
    """Whether a column names the rows: short words, or the steps or seeds of each."""
    texts = [row[column].strip() for row in sheet.table.rows if column < len(row)]
    if column > 2 or any(len(text) > LONGEST or _RESULT.search(text) for text in texts):
        return False
    if _is_counted(sheet.table.header[column]):
        return all(re.fullmatch(r"\d*", bare(text)) for text in texts)
    figures = any(cell.column == column for cell in sheet.cells)
    return not figures and sum(map(bool, texts)) >= 2


def _is_counted(title: str) -> bool:
    return bool(axis_word(title)) or bare(title).strip().casefold() in ("seed", "种子")


def _told(sheet: Sheet, row: Sequence[str], column: int) -> str:
    title = sheet.table.header[column]
    return f"{title} {row[column]}" if _is_counted(title) else row[column]


def context(sheet: Sheet, page: Page) -> frozenset[str]:
    """What the heading of a table, the line above it and its corner say that it is about."""
    table = sheet.table
    said = (*table.headings[-1:], *table.header[:1], _caption(sheet, page))
    return frozenset().union(*(words_of(one) for one in said))


def _caption(sheet: Sheet, page: Page) -> str:
    """The line of text above a table."""
    for nth in range(min(sheet.line, len(page.lines)) - 1, 0, -1):
        text = page.text[slice(*page.lines[nth - 1])].strip()
        if text and not text.startswith("|") and not re.fullmatch(r"[|:\s-]*", text):
            return "" if text.startswith("#") else text[:CAPTION]
    return ""


def has_topic(words: frozenset[str], text: str) -> bool:
    """Whether a squeezed text has one of some words that are no quantities: a benchmark."""
    topics = [
        re.escape(word)
        for word in words - _CONCEPTS.keys()
        if re.fullmatch(r"[a-z][a-z\d@^+]{2,}|[\u4e00-\u9fff]{2,}", word) and word not in _COUNTED
    ]
    return any(re.search(rf"(?<![a-z\d]){word}(?![a-z\d])", text) for word in topics)


def kinds(words: frozenset[str]) -> frozenset[str]:
    """Of which quantity or kind a label is; nothing, if it is the name of an arm or a step."""
    rest = words - _CONCEPTS.keys()
    named = any(re.match(r"[a-zα-ω\d]", word) for word in rest - _NO_NAMES)
    return frozenset() if named else words & _CONCEPTS.keys()
