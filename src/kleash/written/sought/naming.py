"""What the labels of a table name in logs: runs, seeds, metrics, steps and statistics.

A run is named by the parts of its name that others have not, by a label that was learnt from
numbers, or not at all. Nothing here looks at the numbers of cells.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

from kleash.imports import names
from kleash.imports.markdown.text import bare
from kleash.written.printed import MINIMUM
from kleash.written.sought.measures import Place, is_time

HALF = 0.4  # of what was learnt of the labels of a group that names it
Items = frozenset[str]
_ITEM = re.compile(r"\d+(?:\.\d+)?(?:e-?\d+)?|[a-z]+|[α-ω]|[\u4e00-\u9fff]")
_SEED = re.compile(r"(?:(?<![a-z])(?:seed|s)|种子)\s*[=:#_-]?\s*(\d{1,9})(?![\d.])", re.I)
_WINDOW = re.compile(r"(?<![\d.])(\d{1,6})\s*(?:-|–|—|~|～|至|到|to)\s*(\d{1,6})(?![\d.])")
_LAST = re.compile(r"(?:last|final|末|最后|后)\s*(\d{1,4})", re.I)
_FIRST = re.compile(r"(?:first|前|首)\s*(\d{1,4})", re.I)
_COUNT = re.compile(r"(?<![\w.])(\d{1,7})(k?)(?![\d.]*\d|%|[a-z])", re.I)
_LIMIT = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)\s*(%?)")
_COUNTED = re.compile(
    r"(?:steps?|epochs?|shots?|seeds?|第|种子|样本数?|@|(?<![a-z\d])[se])\s*[=:#_-]?\s*\d+(?![\d.]*\d)(?:\s*(?:步|轮))?"
    r"|\d+\s*(?:steps?|epochs?|shots?|步|轮)",
    re.I,
)
_TIME = re.compile(
    r"[(（](?:h|s|min)[)）]|hours?|小时|时长|耗时|用时|gpu.?h|卡时|time|seconds?|秒", re.I
)
_ALL = re.compile(r"全程|全部|整个|whole|overall|all(?: steps| points)?$|full", re.I)
_EPOCH = re.compile(r"epoch|轮|(?<![a-z])e(?:p)?\s?\d", re.I)
_LIMITED = re.compile(
    r"首次|第一次|first|reach|达到|超过|越过|低于|高于|above|below|[≥≤<>]|次数|步数", re.I
)
_DEVIATION = r"±|标准差|std|(?<![a-z])sd(?![a-z])|stdev"
_RANGE = r"极差|range"
_MEAN = r"均值|平均|mean|avg|average"
# How several runs are taken as one.
_OVERS = (
    (re.compile(_DEVIATION, re.I), "sd"),
    (re.compile(rf"{_RANGE}|spread", re.I), "range"),
    (re.compile(_MEAN, re.I), "mean"),
)
# What statistic a label speaks of; the first kind that fits is the likeliest.
_WORDS: tuple[tuple[str, str], ...] = (
    (rf"{_DEVIATION}|波动", "sd|population sd"),
    (_RANGE, "range|max|min"),
    (r"初始|起始|起点|首步|首(?!次)|initial|first|start|init|before", "first|at"),
    (r"最终|末|最后|final|last|end|after|收尾|终点|训练后", "last|last mean|at|mean"),
    (
        r"最佳|最好|最高|最大|峰值|峰|peak|best|max|highest|largest|slowest|最慢|最长",
        "max|max at|min|min at|latest max at|max epoch at|min epoch at|at best mean",
    ),
    (
        rf"最低|最小|{MINIMUM}|lowest|least|smallest|fastest|最快|最短",
        "min|min at|min epoch at",
    ),
    (_MEAN, "mean|last mean|window mean|epoch mean|at|last"),
    (r"中位|median", "median"),
    (r"总|合计|累计|total|sum|小时|hours|\(h\)|gpu.?h", "sum|last|max"),
    (r"变化|增幅|提升|下降|降幅|gain|change|delta|Δ", "change|relative change|rise|fall"),
)


@lru_cache(maxsize=8192)
def items(text: str) -> Items:
    """The words, letters and numbers of a label, each as one would compare it."""
    plain = bare(text).casefold()
    plain = re.sub(r"(?:无|没有|不加|不带|去掉|no|without|w/o)[\s_-]*(?=kl)", " no ", plain)
    return frozenset(_item(one) for one in _ITEM.findall(plain))


def _item(one: str) -> str:
    if not one[0].isdigit():
        return one
    return f"{float(names.pointed(one)):g}"


class Namer:
    """Which group of runs a label names."""

    def __init__(self, groups: Sequence[str]) -> None:
        own = {group: items(group) for group in groups}
        often = Counter(item for every in own.values() for item in every)
        self.own = {
            group: frozenset(one for one in every if often[one] < len(groups))
            for group, every in own.items()
        }
        self.every = set(often)
        self.learnt: dict[str, Items] = {}
        self.found: dict[str, str] = {}

    def learn(self, votes: Mapping[str, Collection[Items]]) -> None:
        """Labels that numbers showed to be of a group: what most of its labels have."""
        of_groups = Counter(one for labels in votes.values() for one in labels)
        votes = {
            group: [o for o in labels if of_groups[o] == 1 and self._own(self._spelt(o)) != group]
            for group, labels in votes.items()
        }
        every = {
            group: Counter(i for one in labels for i in one) for group, labels in votes.items()
        }
        for group, mine in every.items():
            others = set[str]().union(*(o for g, o in every.items() if g != group))
            often = {one for one, count in mine.items() if 2 * count > len(votes[group])}
            self.learnt[group] = frozenset(often - others - self.every)
        self.found = {}

    def group(self, text: str) -> str:
        """The group that a label names; '' where it names none or several."""
        if text not in self.found:
            plain = _COUNTED.sub(" ", bare(text))
            self.found[text] = self._group(self._spelt(self._compound(plain)))
        return self.found[text]

    def _compound(self, plain: str) -> Items:
        """The items of a label, two words as one where a name has them so: "Dr. GRPO", `drgrpo`."""
        have = items(plain)
        for one, other in pairwise(re.findall(r"[a-z]+", plain.casefold())):
            if one + other in self.every:
                have = have - {one, other} | {one + other}
        return have

    def _spelt(self, have: Items) -> Items:
        """What a label has, with the words of names that it spells out or shortens."""
        words = {one for own in self.own.values() for one in own if len(one) > 2 and one.isalpha()}
        strange = {one for one in have - words if len(one) > 2}
        return have | {
            one for one in words for other in strange
            if other.startswith(one) or one.startswith(other)
        }  # fmt: skip

    def _group(self, have: Items) -> str:
        told = {group: len(own & have) / len(own) for group, own in self.learnt.items() if own}
        most = max(told.values(), default=0.0)
        some = [group for group, share in told.items() if share == most and share >= HALF]
        best = self._own(have)
        if len(some) == 1 and (not best or self.own[best] < self.own[some[0]]):
            return some[0]
        return best

    def _own(self, have: Items) -> str:
        """The one group whose name has all that a label shares with names."""
        whole = [group for group, own in self.own.items() if own and own <= have]
        best = [group for group in whole if not any(self.own[group] < self.own[o] for o in whole)]
        if best:
            more = [g for g in self.own if self.own[best[0]] & have < self.own[g] & have]
            best = more if len(best) == 1 and more else best
            return best[0] if len(best) == 1 else ""
        shared = {group: own & have for group, own in self.own.items() if own & have}
        alone = [
            group
            for group, mine in shared.items()
            if sum(mine <= own for own in self.own.values()) == 1
        ]
        return alone[0] if len(alone) == 1 else ""


@lru_cache(maxsize=8192)
def seed_in(text: str) -> int | None:
    """The seed that a label names."""
    match = _SEED.search(bare(text))
    return int(match[1]) if match else None


@lru_cache(maxsize=8192)
def over_in(text: str) -> str:
    """The way to take several runs as one that a label names; '' if none."""
    return next((over for words, over in _OVERS if words.search(bare(text))), "")


@lru_cache(maxsize=8192)
def without_over(text: str) -> str:
    """A label without its words for that."""
    for words, _ in _OVERS:
        text = words.sub(" ", text)
    return text


@lru_cache(maxsize=8192)
def counts_in(text: str) -> list[float]:
    """The whole numbers of a label."""
    found = [float(one) * (1000 if k else 1) for one, k in _COUNT.findall(_spaced(text))]
    return found


def _spaced(text: str) -> str:
    """A label with letters and numbers apart: "E3", "shot4", "s42"."""
    plain = re.sub(r"(?<=\d),(?=\d{3})", "", bare(text))
    return re.sub(r"(?<=[A-Za-z\u4e00-\u9fff@])(?=\d)|(?<=\d)(?=[A-Za-z\u4e00-\u9fff])", " ", plain)


@lru_cache(maxsize=8192)
def is_step(text: str) -> bool:
    """Whether a label speaks of steps or epochs."""
    return bool(_EPOCH.search(bare(text)) or re.search(r"step|步|@", text, re.I))


def windows_in(text: str) -> list[tuple[float, float]]:
    """The stretches of steps that a label names: "step 41–60"."""
    pairs = ((float(first), float(last)) for first, last in _WINDOW.findall(_spaced(text)))
    return [(first, last) for first, last in pairs if first < last]


@lru_cache(maxsize=8192)
def is_all(text: str) -> bool:
    """Whether a label speaks of a whole run rather than a part of it."""
    return bool(_ALL.search(bare(text)))


@lru_cache(maxsize=8192)
def is_epoch(text: str) -> bool:
    """Whether a label speaks of epochs."""
    return bool(_EPOCH.search(bare(text)))


@lru_cache(maxsize=8192)
def places_in(text: str) -> list[Place]:
    """The places of curves that a label may name by its numbers."""
    plain, found = _spaced(text), list[Place]()
    for first, second in windows_in(text):
        kinds = ("mean", "sd", "population sd", "max", "min", "range", "max at", "min at")
        found += [(f"window {kind}", first, second) for kind in kinds]
    found += [("last mean", float(one), 0.0) for one in _LAST.findall(plain)]
    found += [("first mean", float(one), 0.0) for one in _FIRST.findall(plain)]
    for one in counts_in(text):
        found += [("at", one, 0.0)]
        found += [("epoch last", one, 0.0), ("epoch mean", one, 0.0)] if one <= 100 else []
    if _LIMITED.search(plain):
        for number, percent in _LIMIT.findall(plain):
            limits = {float(number) / 100} if percent else {float(number)}
            past = ("above", "below", "count above", "count below")
            found += [(kind, limit, 0.0) for limit in limits for kind in past]
    return list(dict.fromkeys(found))


@lru_cache(maxsize=8192)
def statistics_in(text: str) -> list[str]:
    """The kinds of statistics that a label speaks of, likeliest first."""
    plain = bare(text).casefold()
    kinds = [kind for words, told in _WORDS if re.search(words, plain) for kind in told.split("|")]
    return list(dict.fromkeys(kinds))


@lru_cache(maxsize=8192)
def _metric_items(metric: str) -> Items:
    return items(re.sub(r"(?<=[a-z])(?=[A-Z])", " ", metric))


def metrics_in(text: str, metrics: Sequence[str]) -> set[int]:
    """The metrics that a label may name: by a known name, or by words in common."""
    return set(_metrics_in(text, tuple(metrics)))


@lru_cache(maxsize=4096)
def _metrics_in(text: str, metrics: tuple[str, ...]) -> frozenset[int]:
    known = {found.name for part in _pieces(text) if (found := names.metric(part))}
    exact = {nth for nth, metric in enumerate(metrics) if metric in known}
    have = items(text)
    shared = {
        nth for nth, metric in enumerate(metrics)
        if any(len(one) > 1 and not one[0].isdigit() for one in _metric_items(metric) & have)
    }  # fmt: skip
    timed = {nth for nth, one in enumerate(metrics) if is_time(one) and _TIME.search(text)}
    return frozenset(exact | shared | timed)


def _pieces(text: str) -> Iterable[str]:
    """A label and its parts, without the words for statistics."""
    plain = bare(text)
    yield plain
    yield re.sub(r"[(（].*?[)）]", "", plain)
    for words, _ in _WORDS:
        yield re.sub(f"(?:{words})(?:的|值|步)?", "", plain, flags=re.I).strip(" ()（）,，")
    yield from re.split(r"[\s,，/()（）|:：]+", plain)
