"""A Markdown document read: its arms first, then every block, then what needs the whole of it."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

from kleash.compare.read import Derived, Source, names
from kleash.compare.read.markdown.draft import Draft
from kleash.compare.read.markdown.labels import Arms, pair_label, pairs
from kleash.compare.read.markdown.lists import read_code, read_items, read_paragraph
from kleash.compare.read.markdown.numbers import places
from kleash.compare.read.markdown.page import MARKS, Page
from kleash.compare.read.markdown.senses import head_of, shape, without_index
from kleash.compare.read.markdown.tables import Lookup, read_table
from kleash.compare.read.markdown.text import (
    Block,
    Code,
    Grid,
    Heading,
    Item,
    Outline,
    Paragraph,
    fold,
    plain,
)
from kleash.errors import DataError

LARGEST = 16 * 2**20  # bytes of a document written by hand
_OUTCOMES = ("accuracy", "eval_reward", "reward", "performance")


def drafted(path: Path) -> Draft:
    """What a document says of each of its arms, with every cell of its tables."""
    raw = path.read_bytes()
    if len(raw) > LARGEST:
        size = f"{len(raw):,} bytes"
        raise DataError(f"{path}: {size} is no report written by hand; the limit is {LARGEST:,}")
    if b"\0" in raw and raw[:2] not in MARKS:
        raise DataError(f"{path}: holds NUL bytes, so it is not text")
    page = Page.of(path, raw)
    text = re.sub("[\ud800-\udfff\ufffd]", "\ufffd", page.text)
    source = Source(str(path), "markdown", language=page.language)
    if "\ufffd" in text:
        page = replace(page, text=text)
        source.notes.append("some bytes are not UTF-8 and were left out")
    outline = Outline(page)
    source.notes += outline.notes
    draft = Draft(source, _arms(outline.blocks, outline.titles), _outcome(text))
    _tell(outline.blocks, outline.titles, draft)
    draft.finish()
    return draft


def _outcome(text: str) -> str:
    """What a document measures success by: the outcome named most; 性能 only if nothing else is."""
    found: dict[str, Counter[str]] = {name: Counter() for name in _OUTCOMES}
    for line in text.splitlines()[:20_000]:
        for piece in re.split(r"[|,，。:：;；()（）]", line[:2000])[:100]:
            written = names.mention(fold(piece))
            known = names.metric(written) if written else None
            if known and known.name in found:
                found[known.name][written] += 1
    exact = max(_OUTCOMES[:3], key=lambda name: found[name].total())
    counts = found[exact] or found["performance"]
    return counts.most_common(1)[0][0] if counts else ""


def _title(titles: list[Heading]) -> int:
    return titles[0].line if titles and titles[0].level == 1 else 0


def _arms(parts: list[Block], titles: list[Heading]) -> Arms:
    """The arms of a document: from its tables first, then from headings and labels of lists."""
    arms = Arms()
    title = _title(titles)
    for part in parts:
        if isinstance(part, Grid):
            shape(without_index(part), head_of(part, arms, title=title), arms)
        elif isinstance(part, Item):
            label = re.split("[:：]", plain(part.text))[0]
            if pair_label(places(label)[1]):
                arms.add(places(label)[1])
    for heading in titles:
        if heading.line != title or len(pairs(heading.text)) == 1:
            for pair in pairs(heading.text):
                arms.add(pair.written, pair)
    return arms


def _tell(parts: list[Block], titles: list[Heading], draft: Draft) -> None:
    """Read every block; what needs the whole document comes at the end."""
    title = _title(titles)
    lookups: list[Lookup] = []
    items: list[Item] = []
    for part in [*parts, None]:
        if isinstance(part, Item):
            items.append(part)
            continue
        read_items(items, draft, title=title)
        items = []
        if isinstance(part, Grid):
            lookups += read_table(part, draft, title=title)
        elif isinstance(part, Code):
            read_code(part, draft, title=title)
        elif isinstance(part, Paragraph):
            read_paragraph(part, draft)
    for wanted in lookups:
        ours = draft.numbers(wanted.arm, wanted.metric, wanted.place)
        theirs = draft.numbers(wanted.against, wanted.metric, wanted.place)
        of, minus = tuple(ours), tuple(theirs)
        arms = (wanted.arm, wanted.against)
        derived = Derived("difference", wanted.number, of, minus, wanted.metric, arms)
        draft.source.derived.append(derived)
    draft.settle()
