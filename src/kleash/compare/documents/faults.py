"""What is wrong with a table or a step whatever its numbers give: rows copied, winners that lost,
values beside another step than the tables have them at.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations
from math import log

from kleash.compare.documents.boards import Board, Table, bare, label, names_of, numbers_in
from kleash.compare.documents.judge import Mark
from kleash.compare.read.markdown.page import Addresses, Numbered

# How unlikely a copy must be by chance, in nats: of a whole row, and of most of it.
WHOLE, MOST = 9.0, 14.0
STARS = re.compile(r"[⭐★🏆]|(?<!\*)\*$")
_STEP = re.compile(
    r"(?:(?<![a-z])(?P<axis>steps?|epochs?|iter(?:ation)?s?|updates?|ckpt|checkpoints?)[ \-#_]*|"
    r"@\s?|第\s?)"
    r"(?P<at>\d+)(?:\s?[步轮])?",
    re.I,
)
_AXIS = re.compile(r"(?<![a-z])(step|epoch|iter|update|ckpt|checkpoint)|步|轮", re.I)
_FROM = re.compile(
    r"[后前起从至到]|之间|(?<![a-z])(?:after|before|since|from|until|between|past|by|to)(?![a-z])|→|->",
    re.I,
)
_TO = re.compile(r"\s*(?:→|->|到|至|to )")
_BREAK = re.compile(r"[，,。；;、|]|(?<!\d)\.(?!\d)|\d")


def copied(tables: Sequence[Table]) -> list[tuple[int, int]]:
    """The lines of two rows that are one by no chance, where no row is in two pairs."""
    pairs = [pair for table in tables for pair in _copies(table)]
    often = Counter(line for pair in pairs for line in pair)
    return [pair for pair in pairs if max(often[line] for line in pair) < 2]


def _copies(table: Table) -> Iterator[tuple[int, int]]:
    rows = defaultdict[int, dict[tuple[int, int], Numbered]](dict)
    columns = defaultdict[tuple[int, int], list[float]](list)
    for (r, c, k), number in table.at.items():
        if c:
            rows[r][c, k] = number
            columns[c, k].append(number.value)
    for a, b in combinations(sorted(rows), 2):
        one, other = rows[a], rows[b]
        alike = one.keys() == other.keys() and len(one) > 1
        if not alike or label(table.rows[a]) == label(table.rows[b]):
            continue
        same = [key for key, x in one.items() if x.text == other[key].text]
        odds = sum(_surprise(one[key], columns[key]) for key in same)
        if 4 * len(same) >= 3 * len(one) and odds > (WHOLE if len(same) == len(one) else MOST):
            yield table.lines[a], table.lines[b]


def _surprise(one: Numbered, column: Sequence[float]) -> float:
    """How little two equal numbers of a column are chance; nothing if a third is equal."""
    if column.count(one.value) > 2:
        return 0.0
    digits = len(one.text.strip("+-−%％0.").replace(".", ""))
    return min(digits * log(10), log((max(column) - min(column)) / (2 * one.half) + 1))


def false_winners(tables: Sequence[Table]) -> Iterator[Mark]:
    """Winners that are not the best of their row, where most are; stars off the top of a column."""
    for table in tables:
        rows = range(len(table.rows))
        every = [
            [best for r in rows if (best := _winner(table, r, column))] for column in table.winners
        ]
        for told in [*every, list(_stars(table))]:
            bad = [one for one in told if not one[-1]]
            for r, one, text, _ in bad if len(told) > 2 and 3 * len(bad) <= len(told) else ():
                facts = {"value": "", "at": one.address}
                yield Mark(table.lines[r], text, "wrong", "check.not-best", facts, one.address)


def _stars(table: Table) -> Iterator[tuple[int, Numbered, str, bool]]:
    for c in range(1, len(table.titles) if table.head else 0):
        column = {r: x for (r, at, k), x in table.at.items() if at == c and not k}
        starred = [r for r in column if STARS.search(table.texts[r][c].strip())]
        if len(starred) == 1 and len(column) > 3:
            own, values = column[starred[0]], [x.value for x in column.values()]
            yield starred[0], own, own.text, own.value in (max(values), min(values))


def _winner(table: Table, r: int, column: int) -> tuple[int, Numbered, str, bool] | None:
    """Of a row that names one column as best: its number there, and whether it is the extreme."""
    row = table.texts[r]
    said = names_of(row[column]) if column < len(row) else set()
    others = set(range(1, len(table.titles))) - table.winners
    held = {c: one for (at, c), one in table.steps.items() if at == r and c in others}
    held = held or {c: one for (at, c, k), one in table.at.items() if (at, k) == (r, 0)}
    names = {c: bare(table.titles[c]).casefold() for c in held if c in others}
    own = [c for c, one in names.items() if said == {one}]
    own = own or [c for c, one in names.items() if any(name in one for name in said)]
    if len(said) != 1 or len(own) != 1:
        return None
    ours = held[own[0]]
    printed = ours.is_share, ours.is_signed
    rivals = [held[c].value for c in names if (held[c].is_share, held[c].is_signed) == printed]
    best = len(rivals) > 1 and ours.value in (max(rivals), min(rivals))
    return (r, ours, row[column], best) if len(rivals) > 1 else None


def at_another_step(addresses: Addresses, tables: Sequence[Table]) -> Iterator[Mark]:
    """Numbers right beside a step at which no table has them, though it has that step."""
    where = defaultdict[str, dict[float, str]](dict)
    steps = defaultdict[str, set[float]](set)
    for board in (b for t in tables for b in t.boards):
        axis, named = _axis(board), [numbers_in(p) for p in board.positions]
        for at, own in enumerate(named if axis else ()):
            texts = {plain(one.text) for line in board.cells if (one := line[at])}
            for text in texts if len(own) == 1 and own[0] == round(own[0]) else ():
                where[text][own[0]] = axis
                steps[text] |= {each[0] for each in named if each}
    listed = {line for t in tables if not t.head for line in t.lines}
    for line in range(1, addresses.count + 1):
        numbers = addresses.on(line)[: 2 if line in listed else None]
        for one, axis, said in _beside(addresses.page.line(line), list(filter(_telling, numbers))):
            there = where.get(plain(one.text), {})
            fits = not axis or any(each.startswith(axis[:4]) for each in there.values())
            if there and fits and said not in there and said in steps[plain(one.text)]:
                told = ", ".join(f"{at:g}" for at in sorted(there)[:3])
                facts = {"value": told, "said": f"{said:g}"}
                yield Mark(line, one.text, "wrong", "check.elsewhere", facts, one.address)


def plain(text: str) -> str:
    """A number however it is dressed."""
    return text.replace("−", "-").lstrip("+").rstrip("%％ ").replace(",", "")


def _axis(board: Board) -> str:
    """By which axis the positions of a board are counted; '' if by none."""
    head = bare(board.table.titles[0] if not board.turned else " ".join(board.table.titles))
    every = [_AXIS.search(bare(one)) for one in board.positions]
    found = _AXIS.search(head) or next(iter(every), None)
    if found is None or (not board.turned and not _AXIS.search(head) and not all(every)):
        return ""
    return (found[1] or ("step" if found[0] == "步" else "epoch")).casefold()


def _telling(one: Numbered) -> bool:
    """Whether a number has so many digits that it is known by them."""
    digits = re.sub(r"\D", "", one.text).lstrip("0")
    year = re.fullmatch(r"(?:19|20)\d\d", one.text)
    return len(digits) >= (3 if one.decimals > 0 else 4) and not year and one.text[0] not in "+-−"


def _beside(text: str, numbers: Sequence[Numbered]) -> Iterator[tuple[Numbered, str, float]]:
    """Each number beside which one step stands, with its axis."""
    named, end = list(_STEP.finditer(text)), 0
    for one in numbers if named else ():
        start = text.find(one.text, end)
        end = start + len(one.text)
        if start < 0 or _TO.match(text[end:]):
            continue
        near = [m for m in named if _leads(text, m, start) or _follows(text, m, end)]
        near = [m for m in near if not m.start() <= start < m.end()]
        if len(near) == 1:
            axis, at = near[0].group("axis", "at")
            yield one, (axis or "").casefold().rstrip("s"), float(at)


def _leads(text: str, step: re.Match[str], start: int) -> bool:
    between = text[step.end() : start]
    apart = _FROM.search(between) or _FROM.search(text[max(0, step.start() - 3) : step.start()])
    return step.end() <= start <= step.end() + 14 and not apart and not _BREAK.search(between)


def _follows(text: str, step: re.Match[str], end: int) -> bool:
    between = text[end : step.start()]
    closed = re.match(r"\s*(?:[)）,，;；。|*]|$)", text[step.end() :])
    apart = _FROM.search(between) or _BREAK.search(between)
    return end <= step.start() <= end + 8 and bool(closed) and not apart
