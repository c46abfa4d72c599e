"""A number of a sentence together with all tables, as the sentence names and surrounds them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import NamedTuple

from kleash.written.book import Book, Line
from kleash.written.fitting import NAMING, prints
from kleash.written.gaps import is_gap
from kleash.written.page import Page
from kleash.written.printed import Cell, Figure, Sheet, is_total, squeezed
from kleash.written.prose import Said, Sentence, read
from kleash.written.sources.asks import Ask
from kleash.written.sources.named import Sides, letters, sides_of

SMALL = 1.5  # a fraction is not more
MANY = 2  # words in common, from which more tell no more
_STATISTIC = re.compile(
    r"最|平均|均值|变化|差|best|mean|avg|average|max|min|std|标准差|Δ|change|合计|总"
)
Around = tuple[str, str, str, str]
Key = tuple[int, int, int, str]


class Two(NamedTuple):
    """Two cells of a line, and what they give whatever a sentence says of them."""

    cells: tuple[Cell, Cell]
    places: tuple[int, int]
    """Where along the line they are."""
    gap: float
    room: float
    alike: bool
    """Whether they have one unit."""
    fewest: int
    """Decimals of the one that has fewer."""
    fractions: bool
    """Whether they may be said in percent."""
    ratios: tuple[tuple[float, float], ...]
    """Each by the other, within what."""
    ends: str
    """Whether one is the highest (h), one the lowest (l) of the line."""
    first: str
    """Whether the one stands first (f), the other at the end (e)."""


@dataclass(frozen=True)
class Run:
    """A line of a table: all its numbers, and those that are no sums or statistics of others."""

    sheet: Sheet
    across: bool
    cells: Line
    plain: Line

    def place(self, cell: Cell) -> int:
        """Where along the line a cell is."""
        return cell.column if self.across else cell.row

    @property
    def own(self) -> int:
        """Which row, or column, it is."""
        return self.cells[0].row if self.across else self.cells[0].column

    @cached_property
    def twos(self) -> list[Two]:
        """Every two of its cells."""
        values = [cell.figure.value for cell in self.cells]
        low, high = min(values), max(values)
        found = []
        for one, other in combinations(self.cells, 2):
            x, y = one.figure, other.figure
            both = (x.value, y.value)
            found.append(
                Two(
                    (one, other),
                    (self.place(one), self.place(other)),
                    x.value - y.value,
                    x.half + y.half,
                    x.unit == y.unit,
                    min(x.decimals, y.decimals),
                    x.unit != "%" and max(map(abs, both)) <= SMALL,
                    tuple(_ratio(*each) for each in ((x, y), (y, x)) if _divides(each[1])),
                    ("h" if high in both else "") + ("l" if low in both else ""),
                    ("f" if self.cells[0] is one else "")
                    + ("e" if self.cells[-1] is other else ""),
                )
            )
        return found


def _divides(figure: Figure) -> bool:
    return abs(figure.value) > figure.half


def _ratio(top: Figure, bottom: Figure) -> tuple[float, float]:
    ratio = top.value / bottom.value
    return ratio, (top.half + abs(ratio) * bottom.half) / abs(bottom.value)


@dataclass(frozen=True)
class View:
    """A number, and by table how its rows, columns and the table itself are named."""

    ask: Ask
    rows: dict[int, Sequence[str]]
    columns: dict[int, Sequence[str]]
    around: dict[int, Around]
    row_words: dict[int, Sequence[str]]
    column_words: dict[int, Sequence[str]]
    beside: frozenset[tuple[int, str, int]]
    """Rows and columns that have the numbers right beside it."""

    def along(self, run: Run) -> Sequence[str]:
        """How the places of a line are named."""
        return (self.columns if run.across else self.rows)[run.sheet.nth]

    def line(self, run: Run) -> str:
        """How a line itself is named."""
        return (self.rows if run.across else self.columns)[run.sheet.nth][run.own]

    def words(self, run: Run) -> str:
        """How many words of a line's own name stand in the sentence."""
        return (self.row_words if run.across else self.column_words)[run.sheet.nth][run.own]


class Reader:
    """Everything of a page that numbers of its sentences may come from."""

    def __init__(self, book: Book, page: Page) -> None:
        self.book = book
        self._sides: dict[int, tuple[Sides, set[int]]] = {}
        self._heads = [(nth, read(page.line(nth) + " ", nth, book.sheets)) for nth in book.heads]

    @cached_property
    def runs(self) -> list[Run]:
        """All lines of at least two numbers."""
        return [
            Run(sheet, across, line, tuple(_plain(sheet, line, across=across)))
            for sheet in self.book.sheets
            for line in self.book.lines[sheet.nth]
            if len(line) > 1
            for across in (len({cell.row for cell in line}) == 1,)
        ]

    @cached_property
    def ends(self) -> dict[Key, frozenset[str]]:
        """Which cells are the highest or the lowest of a line."""
        found: dict[Key, set[str]] = {}
        for run in self.runs:
            values = [cell.figure.value for cell in run.cells]
            for cell in run.cells:
                own = found.setdefault(key_of(cell), set())
                own |= {"high"} if cell.figure.value == max(values) else set()
                own |= {"low"} if cell.figure.value == min(values) else set()
        return {key: frozenset(own) for key, own in found.items()}

    @cached_property
    def _words(self) -> dict[int, tuple[set[str], list[set[str]], list[set[str]]]]:
        return {
            sheet.nth: (
                words(" ".join(sheet.table.headings[-1:])),
                [words(" ".join(names)) for names in sheet.rows],
                [words(" ".join(names)) for names in sheet.columns],
            )
            for sheet in self.book.sheets
        }

    def sides(self, sentence: Sentence | None) -> tuple[Sides, set[int]]:
        """What a sentence names."""
        if sentence is None:
            return {}, set()
        if id(sentence) not in self._sides:
            self._sides[id(sentence)] = sides_of(sentence, self.book)
        return self._sides[id(sentence)]

    def view(self, ask: Ask) -> View:
        """A number as its sentence shows it."""
        sentence, line = ask.sentence, ask.sentence.line(ask.said.start)
        (own, whole), (before, _) = self.sides(sentence), self.sides(sentence.before)
        heads = [head for nth, head in self._heads if nth < line]
        above, _ = self.sides(heads[-1] if heads else None)
        rows, columns = dict[int, Sequence[str]](), dict[int, Sequence[str]]()
        for sheet in self.book.sheets:
            both = (own[sheet.nth], before.get(sheet.nth, ({}, {})), above.get(sheet.nth, ({}, {})))
            for side, lines in ((0, rows), (1, columns)):
                named, earlier, over = (each[side] for each in both)
                count = len(sheet.columns if side else sheet.rows)
                lines[sheet.nth] = letters(ask, named, earlier, over, count)
        said = words(sentence.plain)
        counted = {
            nth: tuple([str(min(MANY, len(one & said))) for one in side] for side in sides)
            for nth, (_, *sides) in self._words.items()
        }
        return View(
            ask, rows, columns, self._around(ask, line, whole, said),
            {nth: sides[0] for nth, sides in counted.items()},
            {nth: sides[1] for nth, sides in counted.items()},
            frozenset(self._beside(ask)),
        )  # fmt: skip

    def _around(self, ask: Ask, line: int, whole: set[int], said: set[str]) -> dict[int, Around]:
        """By table: how near it is, whether it is named, by its heading, by other numbers."""
        section = self.book.section(line)
        over = [sheet.nth for sheet in section if sheet.line < line]
        others = [one for one in ask.sentence.numbers if one is not ask.said]
        had = [self._cells(ask.sentence, one) for one in others]
        tables = {cell.table for cells in had for cell in cells}
        found = {}
        for sheet in self.book.sheets:
            nth, inside = sheet.nth, sheet in section and len(section) < len(self.book.sheets)
            near = "inside" if inside else "before" if sheet.line < line else "after"
            near = "over" if over[-1:] == [nth] else near
            head = str(min(MANY, len(self._words[nth][0] & said)))
            known = "" if not any(had) else "yes" if nth in tables else "no"
            found[nth] = near, "named" if nth in whole else "", head, known
        return found

    def _beside(self, ask: Ask) -> Iterator[tuple[int, str, int]]:
        """The rows and columns of the numbers right before and right behind a number."""
        numbers = ask.sentence.numbers
        nth = numbers.index(ask.said)
        for one in (*numbers[max(0, nth - 1) : nth], *numbers[nth + 1 : nth + 2]):
            for cell in self._cells(ask.sentence, one):
                yield cell.table, "row", cell.row
                yield cell.table, "column", cell.column

    def _cells(self, sentence: Sentence, said: Said) -> list[Cell]:
        """The cells that a number is, if it has enough digits to tell."""
        if said.figure.digits < NAMING or is_gap(sentence, said):
            return []
        decimals = said.figure.decimals
        cells = (cell for cell in self.book.cells if cell.figure.decimals == decimals)
        return [cell for cell in cells if prints(said.figure, cell.figure)]


def key_of(cell: Cell) -> Key:
    """A cell by its place."""
    return cell.table, cell.row, cell.column, cell.part


def words(text: str) -> set[str]:
    """The words of a text; of Chinese every two letters in a row."""
    plain = squeezed(text)
    found = set(re.findall(r"[a-z]{3,}", plain))
    for run in re.findall(r"[\u4e00-\u9fff]{2,}", plain):
        found |= {run[at : at + 2] for at in range(len(run) - 1)}
    return found


def _plain(sheet: Sheet, line: Line, *, across: bool) -> Iterator[Cell]:
    names = sheet.columns if across else sheet.rows
    for cell in line:
        own = names[cell.column if across else cell.row]
        if not any(is_total(name) or _STATISTIC.search(name) for name in own):
            yield cell
