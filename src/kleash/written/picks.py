"""Columns that say which of the others is best: "best epoch", "最高", "winner".

Their cells are titles of other columns, or numbers that only one title has. If most of them are
where the row is highest (or lowest), the others are wrong. A row may say so of the rows above it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kleash.documents.marks import Mark
from kleash.findings.spoken import direction
from kleash.imports import Table
from kleash.imports.markdown.labels import axis_of, is_best_step, is_winner
from kleash.imports.markdown.text import bare, plain
from kleash.written.made.boards import LARGEST, Board, board_of, counted, turned
from kleash.written.made.parts import Part

LETTERS = 24  # of a cell that is no more than a name
NUMERIC = 0.6  # of the cells of a column of numbers
_NUMBER = re.compile(r"(?<![\d.])\d+(?:\.\d+)?")
_HIGHEST = re.compile(
    r"最[高大]|峰|领先|第一|(?<![a-z])(?:highest|max|peak|top|leads?|leader)", re.I
)
_LOWEST = re.compile(r"最[低小]|见底|(?<![a-z])(?:lowest|min|bottom)", re.I)
_BEST = re.compile(
    r"最[佳好优]|胜|赢|更[好优]|选[用中取]|(?<![a-z])(?:best|winner|better|chosen)", re.I
)
_OF_OTHERS = re.compile(
    r"平均|均值|极差|差|Δ|合计|总|mean|avg|average|range|spread|std|total", re.I
)
_LOWER = re.compile(
    r"步数|时间|用时|耗时|loss|损失|显存|memory|费用|成本|cost|波动|变化|标准差|std|steps|time|seconds",
    re.I,
)
LESS = re.compile(
    r"下降|回落|降幅|跌|掉|损失|差距|波动|(?<![a-z])(?:drop|fall|decline|loss|lost|gap|error)", re.I
)
_HIGHER = re.compile(
    r"性能|准确率|成功率|胜率|奖励|得分|acc|reward|score|success|performance", re.I
)


@dataclass(frozen=True)
class Pick:
    """A cell that names one of the lines of its table, and the numbers that these have there."""

    at: int
    line: int
    text: str
    named: int
    numbers: Mapping[int, Part]

    def best(self, sign: int) -> set[int]:
        """The lines that have the highest, or lowest, number."""
        top = max(sign * one.value for one in self.numbers.values())
        return {nth for nth, one in self.numbers.items() if sign * one.value == top}


def false_picks(tables: Sequence[Table]) -> Iterator[Mark]:
    """Cells that name another line than the one that is best there."""
    for nth, table in enumerate(tables):
        if max(len(table.rows), len(table.header)) > LARGEST:
            continue
        board = board_of(nth, table)
        columns = [list(column) for column in zip(*table.rows, strict=True)]
        yield from _of_view(board, columns, [table.lines] * len(columns))
        rows = [list(cells) for cells in table.rows]
        yield from _of_view(
            turned(board), rows, [[line] * len(table.header) for line in table.lines]
        )


def _of_view(
    board: Board, texts: Sequence[Sequence[str]], lines: Sequence[Sequence[int]]
) -> Iterator[Mark]:
    """Of every line the cells that do not name the best, if most of it do."""
    for line, cells in enumerate(texts):
        title = bare(board.titles[line])
        tried = [
            [
                pick
                for at, cell in enumerate(cells)
                if (pick := _pick(board, group, at, lines[line][at], cell)) is not None
            ]
            for group in _groups(board, line)
        ]
        picks = max(tried, key=len, default=[])
        signs = _believed(board, title, picks)
        for pick in picks:
            best = pick.best(signs[pick.at]) if pick.at in signs else {pick.named}
            if LESS.search(bare(board.labels[pick.at])) and not LESS.search(title):
                continue  # of the row "what is lost" the least may be best
            if pick.named not in best:
                right = min(best)
                facts = {"best": bare(board.titles[right]), "value": pick.numbers[right].text}
                yield Mark(pick.line, bare(pick.text), "wrong", "check.not-pick", facts, "pick")


def _groups(board: Board, line: int) -> Iterator[list[int]]:
    """The lines among which a line may choose: those that are counted, or those printed alike."""
    numeric = [
        nth
        for nth in range(len(board.titles))
        if nth != line
        and sum((at, (nth, "")) in board.at for at in range(len(board.labels)))
        >= NUMERIC * len(board.labels)
    ]
    axis = [nth for nth in numeric if nth in counted(board.titles)]
    if len(axis) > 1:
        yield axis
    plain = [
        nth for nth in numeric if nth < line and not _OF_OTHERS.search(bare(board.titles[nth]))
    ]
    plain = [nth for nth in plain if not _signed(board, nth) and not axis_of(board.titles[nth])]
    for last in plain[-1:]:
        alike = [nth for nth in plain if _kind(board, nth) == _kind(board, last)]
        if len(alike) > 1:
            yield alike


def _signed(board: Board, nth: int) -> bool:
    return any(part.signed for (_, line), part in board.at.items() if line == (nth, ""))


def _kind(board: Board, nth: int) -> list[tuple[str, bool]]:
    """The units of a line, position by position, and where it has decimals."""
    parts = [board.at.get((at, (nth, ""))) for at in range(len(board.labels))]
    found = [(part.unit, part.decimals > 0) for part in parts if part is not None]
    return sorted({max(found, key=found.count)}) if found else []


def _pick(board: Board, group: Sequence[int], at: int, line: int, cell: str) -> Pick | None:
    named = _named(cell, {nth: board.titles[nth] for nth in group})
    numbers = {nth: board.at[at, (nth, "")] for nth in group if (at, (nth, "")) in board.at}
    whole = len(numbers) == len(group) or (len(numbers) > 2 and len(numbers) >= len(group) - 1)
    if named is None or named not in numbers or not whole:
        return None
    return Pick(at, line, cell, named, numbers)


def _named(cell: str, titles: Mapping[int, str]) -> int | None:
    """The one title that a cell names: the same, one that has it in it, or one with its number."""
    own = _key(cell)
    if not own or len(own) > LETTERS:
        return None
    keys = {nth: _key(title) for nth, title in titles.items()}
    numbers = _NUMBER.findall(own)
    ways = (
        [nth for nth, key in keys.items() if key == own],
        [
            nth
            for nth, key in keys.items()
            if re.search(rf"(?<![\w.]){re.escape(own)}(?![\w.])", key)
        ],
        [nth for nth, key in keys.items() if len(own) > 1 and key.startswith(own)],
        [nth for nth, key in keys.items() if len(numbers) == 1 and _same_number(key, own)],
    )
    return next((found[0] for found in ways if len(found) == 1), None)


def _same_number(title: str, own: str) -> bool:
    """Whether a title has only the number that a cell has, and the cell little else."""
    every = _NUMBER.findall(title)
    rest = re.sub(r"step|epoch|ep|e|第|轮|步|#", "", _NUMBER.sub("", own))
    return len(every) == 1 and every == _NUMBER.findall(own) and not rest


def _key(text: str) -> str:
    inner = re.sub(r"\(.*?\)|[^\w.=\-−+|β/ ]", "", bare(plain(text)))
    return re.sub(r"\s+", "", inner).strip("*_").casefold()


def _believed(board: Board, title: str, picks: Sequence[Pick]) -> dict[int, int]:
    """By position whether the highest or the lowest is meant, if that fits most of the picks."""
    told = is_best_step(title) or is_winner(title) or bool(_BEST.search(title))
    high, low = bool(_HIGHEST.search(title)), bool(_LOWEST.search(title))
    if len(picks) < 2 or not (told or high or low or len(picks) >= 4):
        return {}
    kinds = {(part.unit, part.decimals > 0) for pick in picks for part in pick.numbers.values()}
    if len(kinds) > 1:
        return _of_many_kinds(board, picks) if told else {}
    best = dict[int, int]()
    fits = 0
    for sign in (1,) if high and not low else (-1,) if low and not high else (1, -1):
        right = sum(pick.named in pick.best(sign) for pick in picks)
        if right > fits:
            best, fits = {pick.at: sign for pick in picks}, right
    odd = len(picks) - fits
    titled = all(_key(pick.text) == _key(board.titles[pick.named]) for pick in picks)
    titled = titled and is_best_step(title)  # "best epoch: Epoch 2" is of these columns
    few = any(len(pick.numbers) == 2 for pick in picks) and not titled
    if high != low and not few:  # which end is meant the title says
        return best if fits >= max(2, odd) else {}
    if told or high or low:
        return best if fits >= 2 + few and fits >= (2 + few) * odd else {}
    return best if fits >= 4 + few and fits >= 4 * odd and not few else {}


def _of_many_kinds(board: Board, picks: Sequence[Pick]) -> dict[int, int]:
    """The same where every position is of a quantity of its own, which its label has to tell."""
    found = dict[int, int]()
    for pick in picks:
        label = bare(board.labels[pick.at])
        sign = -1 if _LOWER.search(label) else 1 if _HIGHER.search(label) else direction(label)
        if sign:
            found[pick.at] = sign
    fits = sum(pick.named in pick.best(found[pick.at]) for pick in picks if pick.at in found)
    return found if fits >= 2 and fits >= 2 * (len(found) - fits) else {}
