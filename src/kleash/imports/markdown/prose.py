"""Prose: whether it calls things alike, and where it says that they lie.

What sentences claim is for `kleash check` with an interpreter. Nothing is measured here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kleash.imports import Fact
from kleash.imports.markdown.draft import Draft
from kleash.imports.markdown.text import bare, fold, plain

_ALIKE = re.compile(
    r"完全相同|完全一致|(?<!不)一样|(?<!不)相同|毫无差异|没有差异|(?<!not )identical|"
    r"(?<!not )(?<![a-z])(?:the same(?! (?:way|time|reason))|equal(?!ly|iz))|"
    r"非常相似|差不多|相似|接近|几乎一致|相当|不相上下|差异不大|"
    r"no (?:real |clear |visible |meaningful |notable )?difference|on par|indistinguishable|"
    r"as good as|similar|comparable|close to|does not matter|makes? no difference",
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


def likens(draft: Draft, text: str) -> None:
    """Keep that a text calls things alike, unless it asks."""
    said = bare(plain(text))
    draft.source.likens |= bool(_ALIKE.search(said)) and not said.endswith("?")


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
