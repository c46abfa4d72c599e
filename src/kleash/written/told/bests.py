"""Best steps as tables give them: in a column or row of their own, or in brackets behind a best."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kleash.imports.markdown.labels import is_best_step
from kleash.imports.markdown.text import bare
from kleash.written.printed import Figure, Sheet, squeezed
from kleash.written.prose import places
from kleash.written.told.things import Mention, column_keys, row_keys

NAME = 4  # letters of a heading that a sentence may call a table by
_EXTREME = re.compile(
    r"最[佳好优高低大小]|峰值|(?<![a-z])(?:best|peak|max\w*|min\w*|highest|lowest)"
)

_ENDS = {
    "high": re.compile(r"最[高大]|峰值|(?<![a-z])(?:max\w*|highest|peak)"),
    "low": re.compile(r"最[低小]|(?<![a-z])(?:min\w*|lowest)"),
}
_CHANGED = re.compile(
    r"[降升跌涨]|回落|波动|变化|差|(?<![a-z])(?:drop|fall|rise|gain|jump|swing|change|gap)(?![a-z])"
)
_WHERE = re.compile(  # below, or beside, the bests themselves
    r"(?:所在|对应|出现|at|in)\s?的?\s?(?:step|epoch|update|步数?|轮次?|checkpoint)s?"
)
_APART = re.compile(  # how far two steps are apart, in a row of differences
    r"[快慢早晚差多少]|提前|落后|(?<![a-z])(?:faster|slower|earlier|later|sooner|more|fewer|apart)"
)


@dataclass(frozen=True)
class Best:
    """A number of an arm, and the step at which a table says that it is best."""

    keys: frozenset[str]
    figure: Figure
    at: float
    is_change: bool = False
    """Whether it is the step of a greatest change."""
    about: str = ""
    """Its labels and the heading of its table, which say what it is of, and which end."""
    line: int = 0

    @property
    def end(self) -> str:
        """Which end of a course it is: "high", "low", or "" for the best, whichever that is."""
        told = [name for name, words in _ENDS.items() if words.search(self.about.partition("#")[0])]
        return told[0] if len(told) == 1 else ""

    @property
    def heading(self) -> str:
        """The heading of its table without its number."""
        return re.sub(r"^[\s\d.、)]+", "", self.about.partition("#")[2]).strip()

    def answers(self, mention: Mention) -> bool:
        """Whether a mention is of its arm, or of its table by the heading."""
        return bool(mention.keys & self.keys) or (
            not mention.sides and len(mention.text) >= NAME and mention.text in self.heading
        )


def bests_of(sheets: Sequence[Sheet]) -> list[Best]:
    """Every best step of every table, with each number beside it."""
    return [one for sheet in sheets for one in (*_in_lines(sheet), *_in_brackets(sheet))]


def lines_of_bests(sheets: Sequence[Sheet]) -> Iterator[list[float]]:
    """Every column, or row, of best steps that has one in each cell."""
    for sheet in sheets:
        rows = sheet.table.rows
        for column, title in enumerate(sheet.table.header):
            if _is_where(title):
                yield [at for texts in rows for at in step_in(texts, column)]
        for texts in rows:
            if _is_where(texts[0]):
                yield [at for column in range(1, len(texts)) for at in step_in(texts, column)]


def _is_where(title: str) -> bool:
    return is_best_step(title) or bool(_WHERE.fullmatch(squeezed(bare(title)).strip()))


def _in_lines(sheet: Sheet) -> Iterator[Best]:
    """Of a column, or a row, of best steps."""
    for column, title in enumerate(sheet.table.header):
        for row, texts in enumerate(sheet.table.rows) if is_best_step(title) else ():
            own = [one.figure for one in sheet.cells if one.row == row]
            for at in step_in(texts, column):
                yield from (Best(row_keys(sheet, row), figure, at) for figure in own)
    for texts in sheet.table.rows:
        for column in range(1, len(texts)) if is_best_step(texts[0]) else ():
            own = [one.figure for one in sheet.cells if one.column == column]
            for at in step_in(texts, column):
                yield from (Best(column_keys(sheet, column), figure, at) for figure in own)


def _in_brackets(sheet: Sheet) -> Iterator[Best]:
    """Of cells such as "1.690 (Step 45)" under a title, or beside a name, that says best."""
    for cell in sheet.cells:
        text = squeezed(sheet.table.rows[cell.row][cell.column])
        named = f"{sheet.table.rows[cell.row][0]} {sheet.table.header[cell.column]}"
        inside = [one.at for one in places(text) if one.is_of_training]
        if len(inside) == 1 and not cell.part and _EXTREME.search(squeezed(named)):
            keys = row_keys(sheet, cell.row) | column_keys(sheet, cell.column)
            heads = " ".join(sheet.table.headings[-1:])
            changed, about = _CHANGED.search(squeezed(named)), squeezed(f"{named} # {heads}")
            yield Best(keys, cell.figure, inside[0], bool(changed), about, cell.line)


def step_in(texts: Sequence[str], column: int) -> list[float]:
    """The step that a cell holds, if it holds nothing else."""
    text = bare(texts[column]) if column < len(texts) else ""
    match = re.fullmatch(r"\D{0,12}(\d+)\D{0,6}", text)
    return [float(match[1])] if match and not _APART.search(squeezed(text)) else []
