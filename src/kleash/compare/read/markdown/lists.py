"""Lists, code and prose: series by steps, settings, check-boxes, commands.

`Step 15: 1.840 (-14.0%)` and `**PG Loss**: 0.280 → 0.033 (Step 40)` are series. An unticked box is
a missing cell, and a command beside the name of a missing cell is what would fill it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from kleash.compare.read import Derived, Fact, Number, names
from kleash.compare.read.markdown import labels
from kleash.compare.read.markdown.derived import best
from kleash.compare.read.markdown.draft import Command, Course, Draft
from kleash.compare.read.markdown.numbers import Place, Reading, arrows, percent, places, reading
from kleash.compare.read.markdown.senses import Sense, head_of
from kleash.compare.read.markdown.tables import metric_of, setting_value
from kleash.compare.read.markdown.text import Code, Item, Paragraph, bare, fold, plain

_POINT = re.compile(r"(step|epoch|第)\s*(\d{1,9})\s*(步|轮)?\s*:\s*(.{1,200})", re.I)
_LABEL = re.compile(r"\s*([^:]{1,60}?)\s*:(?!//)\s*(.*)")
_CONFIG = re.compile(r"配置|设置|参数|config|setup|settings|hyper-?param|recipe|环境", re.I)
_ADVICE = re.compile(
    r"建议|下一步|计划|推荐|预期|展望|next|future|recommend|todo|expect|plan", re.I
)
_SETTING = re.compile(r"(?<![\w=])([A-Za-z_][\w.]{1,60})\s*=\s*([\w.+-]{1,60})")
_COMMAND = re.compile(
    r"\s*(?:\$\s+)?((?:[A-Z_]{2,40}=\S{1,80}\s){0,6}"
    r"(?:bash|sh|python3?|torchrun|accelerate|kleash|make|sbatch|uv|deepspeed|ray)\s+\S.*|\./\S.*)"
)
_EVALUATES = re.compile(r"eval|评估|测试|test|infer|推理|validat", re.I)
_ALL = re.compile(r"所有|全部|完整|(?<![a-z])all(?![a-z])", re.I)
_BEST = re.compile(r"最佳|最优|最好|best|peak", re.I)


_WANDB = re.compile(r"(?<![\w-])(?:offline-)?run-\d{8}_\d{6}-[a-z0-9]{4,16}(?![\w-])")
_ENDINGS = (
    "json|jsonl|pt|pth|ckpt|sh|py|md|csv|tsv|ya?ml|toml|log|safetensors|bin|parquet|txt|npz|pkl"
)
_PATH = re.compile(
    rf"`([^`\n]{{0,300}}(?:/[^`\n]{{0,300}}|\.(?:{_ENDINGS})))`|(?<![\w/.])"
    rf"((?:~|\.{{1,2}})?/?(?:[\w.-]{{1,80}}/){{0,20}}[\w.-]{{1,80}}\.(?:{_ENDINGS})|"
    r"/(?:[\w.-]{1,80}/){1,20}[\w.-]{0,80})(?![\w/])"
)


@dataclass(frozen=True)
class Told:
    """A point that a list or code tells, with what it belongs to."""

    arm: str
    metric: str
    axis: Course
    at: int
    read: Reading


def head_with_parents(item: Item, draft: Draft, title: int) -> Sense:
    """What the items and headings above an item say, the nearest first."""
    found = Sense()
    for parent in reversed(item.parents):
        arm = labels.heading_arm(draft.arms, parent)
        found = found.over(Sense(arm=arm, place=places(parent)[0]))
    return found.over(head_of(item, draft.arms, title=title))


def read_items(items: Sequence[Item], draft: Draft, *, title: int) -> None:
    """A list, or several that follow one another."""
    told: list[Told] = []
    for item in items:
        head = head_with_parents(item, draft, title)
        text = fold(plain(item.text))
        if item.box is not None:
            _box(item, text, head, draft)
            continue
        point = _point(text, head, draft, item.line)
        if point:
            told.append(point)
            continue
        match = _LABEL.fullmatch(text)
        if not (match and _labelled(item, match[1], match[2], head, draft)):
            arm = _one(draft.arms.within(match[1])) if match else None
            facts(draft, item.text, arm)
    _tell(draft, told)


def _point(text: str, head: Sense, draft: Draft, line: int) -> Told | None:
    """`Step 15: 1.768 (下降11.2%)` of a known arm; None if anything else is said."""
    match = _POINT.fullmatch(bare(text))
    if match is None or (head.arm is None and len(draft.arms.names) > 1):
        return None
    read = reading(match[4], draft.where(line, f"{match[1]} {match[2]}"))
    if read.number is None or read.number.low is not None:
        return None
    axis: Course = "epoch" if match[1].casefold() == "epoch" or match[3] == "轮" else "step"
    metric = metric_of(draft, head, read.number)
    return Told(_only(draft, head.arm), metric, axis, int(match[2]), read)


def _only(draft: Draft, arm: str | None) -> str:
    """The arm named, or the only one there is."""
    return arm or next(iter(draft.arms.all()), "")


def _tell(draft: Draft, told: Sequence[Told]) -> None:
    """Points of a list as series, and the changes in their brackets as derived numbers."""
    groups: dict[tuple[str, str, Course], list[Told]] = {}
    for one in told:
        groups.setdefault((one.arm, one.metric, one.axis), []).append(one)
    for (arm, metric, axis), group in groups.items():
        points = [(float(one.at), one.read.number) for one in group if one.read.number]
        draft.add_points(arm, metric, axis, points)

        def derive(kind: str, group: Sequence[Told] = group) -> list[Derived | None]:
            return [_changed(one, before.read.number, kind) for before, one in pairwise(group)]

        draft.source.derived += best(("relative", "difference"), derive)


def _changed(told: Told, before: Number | None, kind: str) -> Derived | None:
    read = told.read
    if read.change is None or read.number is None or before is None:
        return None
    change = read.change
    if read.number.unit == before.unit == "%" and change.unit != "%" and change.value is not None:
        change = percent(Reading("", change)).number or change  # between percentages in points
    made = Derived(
        "relative", change, (read.number,), (before,), told.metric, (told.arm,), read.unsigned
    )
    return made if kind == "relative" else replace(made, kind="difference")


def _labelled(item: Item, label: str, value: str, head: Sense, draft: Draft) -> bool:
    """An item `label: value`; whether it was understood."""
    where = draft.where(item.line, label)
    arm = draft.arms.find(label) or _one(draft.arms.within(label))
    arm = arm or draft.arms.find(_BEST.sub("", label))
    if arm is None and draft.arms.find(bare(label)) is None and labels.pair_label(label):
        arm = draft.arms.add(label)
    if arm and draft.arms.find(label) and _arm_setting(item, arm, value, draft):
        return True
    whose = arm or head.arm
    if _course(label, value, whose, head, draft, item.line):
        return True
    read = reading(value, where)
    if arm and read.number is not None and _best(label, arm, read, draft):
        return True
    return draft.arms.find(label) is None and _config(item, label, value, whose, draft)


def _one(found: Sequence[str]) -> str | None:
    return found[0] if len(found) == 1 else None


def _best(label: str, arm: str, read: Reading, draft: Draft) -> bool:
    """`**新实验最佳**: 2.123 (Step 40)`."""
    if not _BEST.search(label) or read.number is None or read.number.value is None:
        return False
    metric = metric_of(draft, Sense(metric=names.mention(label)), read.number)
    draft.add_cell(arm, metric, read.number, read.place, "best")
    return True


def _arm_setting(item: Item, arm: str, value: str, draft: Draft) -> bool:
    """Settings after the name of an arm, or under a heading that names the setting."""
    where = draft.where(item.line, arm)
    given = _SETTING.findall(value)
    for key, written in given:
        draft.set(arm, key, setting_value(reading(written, where)), where)
    if given:
        return True
    one = reading(re.sub(r"\(.*?\)", "", value), where).number
    if one is not None and one.value is not None and "epoch" in one.unit:
        draft.set(arm, "epochs", int(one.value), where)
        return True
    key = names.key_within(item.headings[-1].text) if item.headings else ""
    if key and len(value) <= 40 and not re.search(r"可能|may|might|影响", value):
        draft.set(arm, key, bare(value), where)
        return True
    return facts(draft, item.text, arm)


def _course(label: str, value: str, arm: str | None, head: Sense, draft: Draft, line: int) -> bool:
    """`**KL Loss**: 0.003 → 0.084 (Step 40), 0.114 (Step 45)`."""
    if names.metric(label) is None or (arm is None and len(draft.arms.names) > 1):
        return False
    found = arrows(value, draft.where(line, label))
    if not found:
        return False
    span = head.place.span
    points: list[tuple[float, Number]] = []
    loose: list[tuple[str, Number]] = []
    for at, read in enumerate(found):
        ends = {0: span[0] if span else None, len(found) - 1: span[1] if span else None}
        step = read.place.step if read.place.step is not None else ends.get(at)
        if read.number is None:
            continue
        if read.place.epoch is not None:
            draft.add_points(_only(draft, arm), label, "epoch", [(read.place.epoch, read.number)])
        elif step is not None:
            points.append((step, read.number))
        elif at in (0, len(found) - 1):
            loose.append(("last" if at else "first", read.number))
    whose = _only(draft, arm)
    draft.add_points(whose, label, "step", points)
    for statistic, number in loose:
        draft.add_cell(whose, label, number, Place(), statistic)
    return True


def _config(item: Item, label: str, value: str, arm: str | None, draft: Draft) -> bool:
    """A setting: in a section of settings any label, elsewhere only a known key and a value."""
    above = " ".join((*(heading.text for heading in item.headings[1:]), item.lead, *item.parents))
    if not value or _ADVICE.search(above):
        return False
    known = names.key(label)
    simple = setting_value(reading(value, draft.where(item.line)))
    # A name in code is the value; what follows in brackets is a remark.
    named = re.search(r"[:：]\**\s*`([^`]{1,200})`", item.text)
    simple = named[1] if named and isinstance(simple, str) else simple
    if not _CONFIG.search(above) and not (known and not isinstance(simple, str)):
        return False
    if labels.kind_of(label) == "remark" or (known is None and len(value) > 120):
        return False
    where = draft.where(item.line, label)
    if simple is not None:
        if arm is None:
            draft.shared.append((label, simple, where))
        else:
            draft.set(arm, label, simple, where)
    facts(draft, item.text, arm)
    return True


def _box(item: Item, text: str, head: Sense, draft: Draft) -> None:
    """A check-box that names a cell: unticked, it is missing."""
    arm = _one(draft.arms.within(text)) or head.arm or ""
    place = places(text)[0].over(head.place)
    if not item.box and arm and (place.epoch is not None or place.step is not None):
        metric = head.metric or ("accuracy" if place.items or place.shots else draft.outcome)
        gone = Number(None, "missing", draft.where(item.line), text="[ ]")
        draft.boxes.append((arm, metric or "value", gone, place))


def read_code(code: Code, draft: Draft, *, title: int) -> None:
    """Steps with their values, or commands with the cells they would fill."""
    head = head_of(code, draft.arms, title=title)
    told: list[Told] = []
    comment = ""
    for line, text in code.lines:
        if text.strip().startswith("#"):
            comment = text.strip(" #")
            continue
        point = _point(text.strip(), head, draft, line)
        if point:
            told.append(point)
            continue
        command = _COMMAND.fullmatch(text)
        if command:
            _command(draft, command[1].strip(), comment, head)
        elif text.strip():
            facts(draft, text, head.arm)
    _tell(draft, told)


def _command(draft: Draft, text: str, comment: str, head: Sense) -> None:
    """A command, the arm it is for, and the places that its comments name."""
    body, _, own = text.partition(" #")
    said = f"{own} {comment}"
    arm = _one(draft.arms.within(said)) or _one(_arms_in_name(draft, body)) or head.arm or ""
    draft.source.facts.append(Fact("command", body.strip(), arm))
    place = places(own)[0].over(places(comment)[0])
    flags = re.sub(r"[-_=]+", " ", " ".join(re.findall(r"--[\w-]+[= ]\d{1,9}", body)))
    place = place.over(places(flags)[0])
    every = bool(_ALL.search(said) or re.search(r"(?:^|[_-])all(?:[_.-]|$)", body))
    values = frozenset(int(word) for word in body.split()[1:] if re.fullmatch(r"\d{1,9}", word))
    evaluates = bool(_EVALUATES.search(f"{body} {said}"))
    if arm:
        draft.commands.append(Command(body.strip(), arm, place, values, every, evaluates))


def _arms_in_name(draft: Draft, body: str) -> list[str]:
    """Arms whose value stands in a name without its dot: kl018 is 0.18."""
    digits = re.findall(r"(?<=[a-z_-])\d{2,9}", body)
    return list(
        dict.fromkeys(
            name
            for name, pair in draft.arms.keys.items()
            if isinstance(pair.value, float) and f"{pair.value:g}".replace(".", "") in digits
        )
    )


def read_paragraph(paragraph: Paragraph, draft: Draft) -> None:
    """A line of prose: where things lie."""
    text = fold(plain(paragraph.text))
    label = text.split(":")[0]
    arm = draft.arms.find(label) if ":" in text and len(label) < 40 else None
    facts(draft, paragraph.text, arm)


def facts(draft: Draft, raw: str, arm: str | None = None) -> bool:
    """Keep the paths and W&B ids of a line; whether there were any."""
    found = list(_facts(draft, raw[:2000], arm))
    draft.source.facts += found
    return bool(found)


def _facts(draft: Draft, raw: str, arm: str | None) -> Iterator[Fact]:
    for match in _WANDB.finditer(raw):
        after = re.match(
            r"[`*]{0,3}\s?[(（]([^()（）]{1,40})[)）]", raw[match.end() : match.end() + 60]
        )
        whose = (draft.arms.find(after[1]) if after else None) or arm or ""
        yield Fact("wandb", match.group(), whose)
    rest = _WANDB.sub(" ", raw)
    for match in _PATH.finditer(rest):
        text = (match[1] or match[2]).strip()
        if len(text) > 2 and not re.fullmatch(r"[\d./-]+", text):
            yield Fact("path", text, arm or "")
