"""What is wrong with a table or a step whatever its numbers give: rows copied, winners that lost,
values beside another step than the tables have them at.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations
from math import log

from kleash.documents.boards import Board, Table, bare, label, names_of, numbers_in
from kleash.documents.marks import Mark
from kleash.documents.numbered import Addresses, Numbered

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
_BREAK = re.compile(r"[，,。；;、|]|(?<!\d)\.(?!\d)|\d")


# --- rows


def copied(tables: Sequence[Table]) -> list[tuple[int, int]]:
    """The lines of two rows that are one by no chance, where no row is in two pairs."""
    pairs = [pair for table in tables for pair in _within(table)]
    often = Counter(line for pair in pairs for line in pair)
    return [pair for pair in pairs if max(often[line] for line in pair) < 2]


Row = dict[tuple[int, int], Numbered]


def _rows(table: Table) -> dict[int, Row]:
    found = defaultdict[int, Row](dict)
    for (r, c, k), one in table.at.items():
        if c:
            found[r][c, k] = one
    return found


def _within(table: Table) -> Iterator[tuple[int, int]]:
    rows = _rows(table)
    columns = defaultdict[tuple[int, int], list[float]](list)
    for row in rows.values():
        for key, number in row.items():
            columns[key].append(number.value)
    for a, b in combinations(sorted(rows), 2):
        one, other = rows[a], rows[b]
        if (
            one.keys() != other.keys()
            or len(one) < 2
            or label(table.rows[a]) == label(table.rows[b])
        ):
            continue
        same = [key for key, x in one.items() if x.text == other[key].text]
        odds = sum(_surprise(one[key], columns[key]) for key in same)
        if 4 * len(same) >= 3 * len(one) and odds > (WHOLE if len(same) == len(one) else MOST):
            yield table.lines[a], table.lines[b]


def _surprise(one: Numbered, column: Sequence[float]) -> float:
    """How little two equal numbers of a column are chance; nothing if a third is equal."""
    if column.count(one.value) > 2:
        return 0.0
    room = log((max(column) - min(column)) / (2 * one.half) + 1)
    return min(len(_digits(one)) * log(10), room)


def _digits(one: Numbered) -> str:
    return one.text.strip("+-−%％0.").replace(".", "")


# --- who is best


def false_winners(tables: Sequence[Table]) -> Iterator[Mark]:
    """Winners that are not the best of their row, where most are; stars off the top of a column."""
    for table in tables:
        for column in table.winners:
            told = [one for r in range(len(table.rows)) if (one := _winner(table, r, column))]
            yield from _off_top(table, told)
        yield from _off_top(table, list(_stars(table)))


def _winner(table: Table, r: int, column: int) -> tuple[int, Numbered, str, bool] | None:
    """Of a row that names one column as best: its number there, and whether it is the extreme."""
    row = table.texts[r]
    said = names_of(row[column]) if column < len(row) else set()
    others = [c for c in range(1, len(table.titles)) if c not in table.winners]
    held = {c: table.steps[r, c] for c in others if (r, c) in table.steps}
    held = held or {c: table.at[r, c, 0] for c in others if (r, c, 0) in table.at}
    names = {c: bare(table.titles[c]).casefold() for c in held}
    own = [
        c
        for c in held
        for name in said
        if name == names[c]
        or (name in names[c] and sum(name in one for one in names.values()) == 1)
    ]
    if len(said) != 1 or len(own) != 1:
        return None
    ours = held[own[0]]
    rivals = [
        x.value
        for x in held.values()
        if (x.is_share, x.is_signed) == (ours.is_share, ours.is_signed)
    ]
    best = ours.value in (max(rivals), min(rivals))
    return (r, ours, row[column], best) if len(rivals) > 1 else None


def _stars(table: Table) -> Iterator[tuple[int, Numbered, str, bool]]:
    for c in range(1, len(table.titles)):
        column = {r: x for (r, at, k), x in table.at.items() if table.head and at == c and not k}
        starred = [r for r in column if STARS.search(table.texts[r][c].strip())]
        if len(starred) == 1 and len(column) > 3:
            values = [x.value for x in column.values()]
            own = column[starred[0]]
            yield starred[0], own, own.text, own.value in (max(values), min(values))


def _off_top(table: Table, told: Sequence[tuple[int, Numbered, str, bool]]) -> Iterator[Mark]:
    bad = [one for one in told if not one[3]]
    if len(told) > 2 and 3 * len(bad) <= len(told):
        for r, one, text, _ in bad:
            facts = {"value": "", "at": one.address}
            yield Mark(table.lines[r], text, "wrong", "check.not-best", facts, one.address)


# --- steps


def at_another_step(addresses: Addresses, tables: Sequence[Table]) -> Iterator[Mark]:
    """Numbers right beside a step at which no table has them, though it has that step."""
    boards = [(b, axis) for t in tables for b in t.boards if (axis := _axis(b))]
    where = defaultdict[str, dict[float, str]](dict)
    steps = defaultdict[str, set[float]](set)
    for board, axis in boards:
        for at, title in enumerate(board.positions):
            named = numbers_in(title)
            if len(named) != 1 or named[0] != round(named[0]):
                continue
            for one in (line[at] for line in board.cells):
                if one is not None:
                    where[plain(one.text)][named[0]] = axis
                    steps[plain(one.text)] |= {
                        n for p in board.positions for n in numbers_in(p)[:1]
                    }
    listed = {line for t in tables if not t.head for line in t.lines}
    for line in range(1, addresses.count + 1):
        text = addresses.page.line(line)
        for one, (axis, said) in _beside(text, _telling(addresses, line, few=line in listed)):
            own = where.get(plain(one.text), {})
            fits = not axis or any(each.startswith(axis[:4]) for each in own.values())
            if own and fits and said not in own and said in steps[plain(one.text)]:
                facts = {
                    "value": ", ".join(f"{at:g}" for at in sorted(own)[:3]),
                    "said": f"{said:g}",
                }
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


def _telling(addresses: Addresses, line: int, *, few: bool) -> list[Numbered]:
    """The numbers of a line with so many digits that they are known by them."""
    own = addresses.on(line)[: 2 if few else None]
    return [
        one
        for one in own
        if len(digits := re.sub(r"\D", "", one.text).lstrip("0")) >= 3
        and (one.decimals > 0 or len(digits) >= 4)
        and not re.fullmatch(r"(?:19|20)\d\d", one.text)
        and one.text[0] not in "+-−"
    ]


def _beside(text: str, numbers: Sequence[Numbered]) -> Iterator[tuple[Numbered, tuple[str, float]]]:
    """Each number beside which one step stands, by its axis."""
    named = [
        (m.start(), m.end(), (m["axis"] or "").casefold().rstrip("s"), float(m["at"]))
        for m in _STEP.finditer(text)
    ]
    at = 0
    for one in numbers if named else ():
        start = text.find(one.text, at)
        end = at = start + len(one.text)
        if start < 0 or re.match(r"\s*(?:→|->|到|至|to )", text[end:]):
            continue
        near = [
            (axis, step)
            for a, b, axis, step in named
            if not a <= start < b and (_is_led(text, a, b, start) or _is_followed(text, a, b, end))
        ]
        if len(near) == 1:
            yield one, near[0]


def _is_led(text: str, a: int, b: int, start: int) -> bool:
    between = text[b:start] if b <= start else "," * 99
    free = not _FROM.search(between) and not _FROM.search(text[max(0, a - 3) : a])
    return len(between) <= 14 and free and not _BREAK.search(between)


def _is_followed(text: str, a: int, b: int, end: int) -> bool:
    between = text[end:a] if end <= a else "," * 99
    closed = re.match(r"\s*(?:[)）,，;；。|*]|$)", text[b:])
    free = not _FROM.search(between) and not _BREAK.search(between)
    return bool(closed) and free and len(between) <= 8
