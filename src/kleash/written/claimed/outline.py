"""Items of lists with what they stand under: "**A** (larger):" above two items speaks for both.

An item stands under the item that is less indented, or under the line that leads its list. Nothing
is understood of either; `stated` finds the names in them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from kleash.written.page import Page

_ITEM = re.compile(r"(?P<indent>\s*)(?:>\s*)?(?:[-*+•]\s+|\d{1,3}(?:[.)](?!\d)|、)\s*)")
_LEADS = re.compile(r"[:：]\s*\**\s*$")


@dataclass(frozen=True)
class Item:
    """A line of a list: where it is, how far indented, and the line that it stands under."""

    line: int
    text: str
    indent: int
    under: int = 0
    """0 where it stands under nothing but its heading."""


def outline(page: Page) -> dict[int, Item]:
    """The items of a page by line, and the lines that lead lists."""
    found, open_, fenced = dict[int, Item](), list[Item](), False
    for nth in range(1, len(page.lines) + 1):
        line = page.line(nth)
        fence = line.strip().startswith(("```", "~~~"))
        fenced = fenced != fence
        if fence or fenced or line.startswith(("#", "|")):
            open_ = []
            continue
        item = _ITEM.match(line)
        if not line.strip() or (not item and line[0].isspace()):
            continue
        if item is None:
            open_ = [Item(nth, line, -1)] if _LEADS.search(line) else []
        else:
            indent = len(item["indent"].expandtabs(4))
            open_ = [one for one in open_ if one.indent < indent]
            open_ += [Item(nth, line[item.end() :], indent, open_[-1].line if open_ else 0)]
        found |= {one.line: one for one in open_[-1:]}
    return found


def above(items: Mapping[int, Item], line: int) -> list[Item]:
    """What an item stands under, the nearest first."""
    found, at = list[Item](), items.get(line)
    while at is not None and at.under:
        at = items[at.under]
        found.append(at)
    return found


def before(items: Mapping[int, Item], line: int) -> Item | None:
    """The item of the same list right before one."""
    own = items.get(line)
    if own is None or own.indent < 0:
        return None
    same = [
        one
        for one in items.values()
        if one.line < line and (one.under, one.indent) == (own.under, own.indent)
    ]
    last = same[-1] if same else None
    between = range(last.line + 1, line) if last else range(0)
    return last if all(nth in items for nth in between) else None
