"""What a header, a row label or a heading says: the tables of words, and the arms of a document.

The words are general (指标, metric, 平均, mean); the arms are whatever the document compares, and
are known by any spelling that leads to one of them alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from typing import Any, Literal

from kleash.compare.read import names
from kleash.compare.read.markdown.text import bare, fold, undecorated

Kind = Literal["value", "remark", "winner", ""]
Axis = Literal["arm", "step", "epoch", "shots", "items", "seed", "metric", "setting"]
MOST = 300  # arms of a document beyond which only exact spellings are found


def _by_word(table: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """The first name of a table that each word is under."""
    return {word: name for name, words in reversed(list(table.items())) for word in words}


_AXES = _by_word(names.REPORT["axes"])
_KINDS = _by_word(names.REPORT["kinds"])
_STATISTICS: dict[str, list[str]] = names.REPORT["statistics"]
_DIFFERENCE = re.compile(
    r"差异|差值|差距|相差|提升|改进|增益|Δ|(?<![a-z])(?:vs\.?|diff(?:erence)?|delta|gap|gain|"
    r"improvement|change)(?![a-z])|变化|^差$|^相对",
    re.I,
)
_VERSUS = re.compile(r"(?<![A-Za-z])(?:vs\.?|versus|相对于?|对比|较)\s*(.{1,60})", re.I)
_BEST_AT = re.compile(
    r"(?:最佳|最优|最好|达到|best|peak).{0,20}?(?:step|步数?|epoch|轮|update|iter(?:ation)?)|"
    r"(?:step|epoch|update|iter(?:ation)?).{0,8}最[佳优]",
    re.I,
)
_SPENT = re.compile(
    r"耗时|用时|时间|时长|小时|费用|成本|(?<![a-z])(?:time|hours?|minutes|seconds|costs?)(?![a-z])",
    re.I,
)
_BASELINE = re.compile(r"基准|基线|baseline|参照组|对照|reference", re.I)
_PAIR = re.compile(
    r"([A-Za-z\u03b2\u4e00-\u9fff][A-Za-z0-9_.\u4e00-\u9fff]{0,40}(?: [A-Za-z0-9_]{1,20})?)"
    r"\s*=\s*([+-]?[A-Za-z0-9_.+-]{1,40})"
    r"((?:\s*(?:vs\.?|和|与|、|,|and|/|&)\s*[+-]?\d{1,9}(?:\.\d{1,9})?(?:[eE][+-]?\d{1,2})?"
    r"(?![\d.]|-?[A-Za-z]|\s?[%个次项组点条步轮题]|\s(?:shots?|samples?|epochs?|steps?)(?![a-z])))"
    r"{0,20})"
)
_BESIDE = re.compile(
    r"(KL|β|beta|kl[ _]?(?:beta|coef\w{0,6}))\s*[:= ]?\s*(\d{1,9}(?:\.\d{1,9})?)", re.I
)
_FILLER = re.compile(
    r"实验|版本|模型|配置|训练|version|experiment|model|setting|config(?:uration)?|\barms?\b|\bruns?\b"
)
_WITHOUT = re.compile(r"没有|不带|不加|不使用|未使用|无|(?<![a-z])(?:no|without|w/o)(?![a-z])\s*")
_WITH = re.compile(r"^(?:有|带|加|使用|with\s|w/\s?)")


def _named(header: str) -> str:
    return names.spelling(re.sub(r"\(.*?\)", "", bare(header)))


def axis_of(header: str) -> Axis | None:
    """What the rows under a first header are, by its words alone."""
    return _AXES.get(_named(header))


_SEED = re.compile(r"(?:(?<![A-Za-z])seed|种子)\s*[=:#_-]?\s*(\d{1,9})(?!\d)", re.I)
_AT_THE_END = re.compile(rf"[\s/,，、·|_-]*[(（\[]?{_SEED.pattern}[)）\]]?$", re.I)


def seed_of(text: str) -> int | None:
    """The seed that a text names."""
    match = _SEED.search(bare(text))
    return int(match[1]) if match else None


def without_seed(text: str) -> tuple[str, int | None]:
    """An arm and the seed behind it: "loose / seed 1"."""
    match = _AT_THE_END.search(text)
    return (text[: match.start()], int(match[1])) if match else (text, None)


def is_index(header: str) -> bool:
    """Whether a column only counts its rows."""
    return bare(header).casefold().strip(".") in ("#", "no", "序号", "编号", "rank", "排名", "id")


def in_percent(label: str) -> bool:
    """Whether a label says that its numbers are percentages: "Accuracy (%)"."""
    return bool(re.search(r"[(\[,/]\s*%\s*[)\]]?\s*$|[(\[]%[)\]]|百分比", bare(label)))


def kind_of(header: str) -> Kind:
    """What a column holds by its header alone: a "value" of the arm named above its table, a
    "remark", or who is the "winner"; '' where it does not say.
    """
    kind: Kind = _KINDS.get(_named(header), "")
    return kind


def is_difference(label: str) -> bool:
    """Whether a row or column holds differences of others."""
    return bool(_DIFFERENCE.search(bare(label))) and names.metric(label) is None


def versus(label: str) -> str:
    """What a difference is taken from: the 0.15 of "vs 0.15"; '' if that is not said."""
    match = _VERSUS.search(bare(label))
    return match[1].strip() if match else ""


@lru_cache(maxsize=4096)
def is_best_step(label: str) -> bool:
    """Whether a label asks at which step the best was reached, and not how long that took."""
    return bool(_BEST_AT.search(bare(label))) and not _SPENT.search(bare(label))


def is_baseline(text: str) -> bool:
    """Whether a cell says that its row is what others are compared with."""
    return bool(_BASELINE.search(text[:40]))


@cache
def _statistics() -> list[tuple[str, re.Pattern[str], re.Pattern[str]]]:
    """Each statistic with its words before a metric, and after one."""
    made = []
    for name, words in _STATISTICS.items():
        each = "|".join(f"{word}(?![a-z])" if word.isascii() else word for word in words)
        before = re.compile(rf"(?:{each})\.?\s*(?:的|of\s)?\s*(.*)", re.I)
        after = re.compile(rf"(.{{1,40}}?)\s*(?:的)?(?<![a-z])(?:{'|'.join(words)})\.?", re.I)
        made.append((name, before, after))
    return made


@lru_cache(maxsize=4096)
def statistic(label: str) -> tuple[str, str]:
    """Which statistic a label names, and the metric beside it: 最佳性能 is the best of 性能."""
    text = bare(label)
    if names.metric(text) is not None:
        return "", text
    outside = re.sub(r"\(.*?\)", "", text).strip()
    for name, before, after in _statistics():
        match = before.match(outside)
        if match:
            return name, match[1].strip(" .")
        last = after.fullmatch(outside)
        if last and names.metric(last[1]) is not None:
            return name, last[1].strip()
    return "", text


@dataclass(frozen=True)
class Pair:
    """`KL_BETA=0.12`, under its known name, so that other spellings of it are the same arm."""

    key: str
    value: str | float
    written: str


def _pair(key: str, value: str) -> Pair | None:
    known = names.key(key)
    canonical = known.name if known else ""
    if names.spelling(key) in ("kl", "β"):
        canonical = "leash.coefficient"
    elif known is None or known.kind not in ("treatment", "must match"):
        return None
    number = re.fullmatch(
        r"[+-]?(?:\d{1,20}(?:\.\d{0,20})?|\.\d{1,20})(?:[eE][+-]?\d{1,3})?", value
    )
    if names.spelling(key) in ("kl", "β"):
        value = names.pointed(value)
    kept: str | float = float(value) if number else names.spelling(value)
    return Pair(canonical, kept, f"{key.strip()}={value}")


def pairs(text: str) -> list[Pair]:
    """Every setting = value that a text names, and the further values of "β=0.1 和 0.2"."""
    folded = bare(text)[:400]
    found = []
    for match in _PAIR.finditer(folded):
        more = re.findall(r"[+-]?\d{1,9}(?:\.\d{1,9})?(?:[eE][+-]?\d{1,2})?", match[3])
        for value in (match[2].rstrip(".,"), *more):
            one = _pair(match[1], value) or _pair(match[1].rsplit(" ", 1)[-1], value)
            if one:
                found.append(one)
    return found


def beside(header: str, value: str) -> Pair | None:
    """The arm of a row "0.12" under a header "KL_BETA"."""
    named = re.search(r"\d|true|false|on|off", value, re.I)
    return _pair(bare(header), bare(value)) if named else None


def pair_label(text: str) -> Pair | None:
    """The setting that a whole header such as `KL 0.12` or `KL_BETA=0.12` is."""
    whole = bare(re.sub(r"[(（][^()（）]*[)）]", "", text)).strip()
    match = _PAIR.fullmatch(whole)
    if match and not match[3]:
        return _pair(match[1], match[2])
    short = _BESIDE.fullmatch(whole)
    pair = _pair(short[1], short[2]) if short else None
    return replace(pair, written=whole) if pair else None


@lru_cache(maxsize=4096)
def key_of(name: str) -> str:
    """An arm's name without brackets, case, spaces and words such as 版本 that tell nothing."""
    text = re.sub(r"[()\[\]{}\"'“”‘’:：,，、·_-]", " ", fold(name)[:200].casefold()).strip()
    text = _WITH.sub("", _WITHOUT.sub("无", text))
    text = re.sub(r"\s+", "", _FILLER.sub(" ", text))
    return text or re.sub(r"\s+", "", fold(name)[:200].casefold())


@dataclass
class Arms:
    """The arms of one document, in the order in which they are first named."""

    names: dict[str, str] = field(default_factory=dict)
    pairs: dict[tuple[str, str | float], str] = field(default_factory=dict)
    keys: dict[str, Pair] = field(default_factory=dict)

    def add(self, name: str, pair: Pair | None = None) -> str:
        """The arm of this name, new or as it was first written."""
        pair = pair or pair_label(name)
        if pair:
            written = self.pairs.setdefault((pair.key, pair.value), pair.written)
            self.keys.setdefault(written, pair)
            self.names.setdefault(key_of(written), written)
            return written
        return self.names.setdefault(key_of(name), undecorated(name)[:200])

    def all(self) -> list[str]:
        """Every arm once."""
        return list(dict.fromkeys(self.names.values()))

    def find(self, text: str) -> str | None:
        """The arm that a whole text names, by its spelling, its value, or the one it begins."""
        text = bare(text)[:200]
        if not text:
            return None
        pair = pair_label(text)
        if pair and (pair.key, pair.value) in self.pairs:
            return self.pairs[pair.key, pair.value]
        wanted = key_of(text)
        if wanted in self.names:
            return self.names[wanted]
        by_value = self._by_value(text)
        if by_value or len(self.names) > MOST:
            return by_value
        begun = {name for key, name in self.names.items() if key.startswith(wanted)}
        return begun.pop() if len(begun) == 1 and len(wanted) < 30 else None

    def _by_value(self, text: str) -> str | None:
        if not re.fullmatch(r"[+-]?\d{1,9}(?:\.\d{1,9})?", text):
            return None
        found = {name for (_, value), name in self.pairs.items() if value == float(text)}
        return found.pop() if len(found) == 1 else None

    def within(self, text: str) -> list[str]:
        """The arms that a sentence names."""
        found = [
            self.pairs[pair.key, pair.value]
            for pair in pairs(text)
            if (pair.key, pair.value) in self.pairs
        ]
        if len(self.names) > MOST:
            return list(dict.fromkeys(found))
        lowered, rest = text.casefold(), key_of(text[:200])
        for name in sorted(self.names.values(), key=len, reverse=True):
            if len(name) > (3 if name.isascii() else 1) and name.casefold() in lowered:
                found.append(name)
                lowered = lowered.replace(name.casefold(), "\0")
        for key in sorted(self.names, key=len, reverse=True):
            if len(key) > 2 and key in rest and self.names[key] not in self.pairs.values():
                found.append(self.names[key])
                rest = rest.replace(key, "\0")
        return list(dict.fromkeys(found))


def arm_and_metric(text: str, arms: Arms) -> tuple[str, str]:
    """The arm and the metric of a header such as `KL=0.05 Loss`; empty if it is not both."""
    if names.metric(text) is not None:
        return "", ""
    words = re.split(r"[\s:/·-]+", re.sub(r"[()]", " ", bare(text)).strip())
    for at in range(1, min(len(words), 8)):
        for left, right in ((words[:at], words[at:]), (words[at:], words[:at])):
            arm, metric = " ".join(left), " ".join(right)
            known = pair_label(arm) is not None or key_of(arm) in arms.names
            if known and names.metric(arm) is None and names.metric(metric) is not None:
                return arm, metric
    return "", ""


def heading_arm(arms: Arms, text: str) -> str | None:
    """The one arm that a heading is about; None if it names several or none."""
    said = pairs(text)
    found = {arms.pairs[p.key, p.value] for p in said if (p.key, p.value) in arms.pairs}
    is_versus = re.search(r"(?<![A-Za-z])vs(?![A-Za-z])", text)
    if len({pair.written for pair in said}) > 1 or len(found) > 1:
        return None
    if found:
        return None if is_versus else found.pop()
    whole = re.sub(r"[(（].*?[)）]", "", text)
    if names.metric(whole) is None and key_of(whole) in arms.names:
        return arms.names[key_of(whole)]
    named = arms.within(re.sub(r"[(（][^()（）]{0,40}\d[^()（）]{0,40}[)）]", "", text))
    return named[0] if len(named) == 1 and not is_versus else None
