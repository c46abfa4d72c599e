"""Courses: the numbers of one thing along steps or epochs, from whichever table has them.

A table has them down its columns or along its rows; several tables of one form, each under its own
epoch, have them from table to table; a list in a code block has one.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kleash.imports.markdown.text import bare
from kleash.written.page import Page
from kleash.written.printed import Cell, Figure, Sheet, axis_word, squeezed
from kleash.written.prose import STILL, places
from kleash.written.told.things import Mention, column_keys, keys_of, row_keys

LEAST = 3  # points of a course
ALIKE = 0.6  # of a course's numbers that a curve has if it is the same
ABOVE = 3  # lines above a table in which it is told what it is of
FAMILIES: dict[str, re.Pattern[str]] = {
    "kl": re.compile(r"(?<![a-z])kl(?![a-z]|\s?[=\d]|[ -]?o(?:n|ff)\b)|散度|divergence"),
    "loss": re.compile(r"(?<![a-z])loss(?:es)?(?![a-z])|损失"),
    "entropy": re.compile(r"entropy|熵"),
    "length": re.compile(r"length|长度|tokens?(?!\s?/|\w)|字数"),
    "rate": re.compile(r"tokens?\s?/\s?s|吞吐|throughput|mfu"),
    "norm": re.compile(r"norm|梯度|范数"),
    "time": re.compile(r"seconds|hours|time|耗时|用时|时长|时间|秒"),
    "reward": re.compile(r"reward|奖励|performance|性能"),
    "share": re.compile(
        r"accura|(?<![a-z])acc(?![a-z])|准确率|正确率|成功率|success|pass\W?\d|win[ -]rate|胜率|"
        r"解决率|命中率|score|得分|分数|cider|(?<![a-z])em(?![a-z])"
    ),
}
_TRAIN = re.compile(r"训练|(?<![a-z])train(?:ing)?(?![a-z])")
_EVAL = re.compile(r"验证|测试|评测|(?<![a-z])(?:eval\w*|val|validation|test|held-out)(?![a-z])")
_LISTED = re.compile(r"^\s*[-*]?\s*(.{3,24}?)\s*[:：]\s*([+-]?\d+(?:\.\d+)?)\s*(%?)")
_STATISTIC = re.compile(r"最[高低佳好优大小终]|平均|均值|变化|差|合计|[-−→/]|best|mean|last|Δ")


@dataclass(frozen=True)
class Course:
    """Figures by step, epoch or the like, and what they are of."""

    axis: str
    points: Mapping[float, Figure]
    keys: frozenset[str]
    label: str
    """Its own names, for finding in it what is measured."""
    about: str
    """What its table is said to be of."""
    lines: tuple[int, ...]
    whole: bool = True
    """Whether it has a number at every place of its table."""
    arm: str = ""
    """The arm that it is of, where its table has several quantities for each of several arms."""
    quantity: str = ""

    def answers(self, mention: Mention) -> bool:
        """Whether a mention is of this course, or of all its table."""
        if mention.keys & self.keys:
            return True
        letters = re.sub(r"[\s=:_·-]+", "", mention.text)
        return len(letters) > 1 and letters in re.sub(r"[\s=:_·-]+", "", self.about)

    def is_of(self, text: str) -> bool:
        """Whether it may be what a text speaks of: the same kind of quantity."""
        wanted = families(text)
        own = families(self.label) | families(self.about)  # "k1-loss" may be an arm
        if wanted and own and not wanted & own:
            return False
        whole = f"{self.label} {self.about}"
        return not (_TRAIN.search(text) and _EVAL.search(whole) and not _TRAIN.search(whole))

    def is_like(self, points: Mapping[float, float]) -> bool:
        """Whether a curve of a log is this course, by its numbers."""
        same = [(one, points[at]) for at, one in self.points.items() if at in points]
        fits = [
            any(abs(one.value - scale * value) <= 1.01 * one.half for scale in (1.0, 100.0))
            for one, value in same
        ]
        return len(same) >= LEAST and ALIKE * len(same) <= sum(fits)


def families(text: str) -> set[str]:
    """The kinds of quantity that a text names."""
    return {name for name, words in FAMILIES.items() if words.search(text)}


def courses(sheets: Sequence[Sheet], above: Mapping[int, str], page: Page) -> list[Course]:
    """Every course of a page; `above` is what its tables are said to be of."""
    found = [one for sheet in sheets for one in _of_sheet(sheet, above[sheet.nth])]
    found += _listings(page)
    found = [one for one in found if len(one.points) >= LEAST]
    return [*found, *(one for one in _from_table_to_table(sheets, above) if len(one.points) > 1)]


def above_of(sheet: Sheet, page: Page) -> str:
    """The headings of a table and the text right above it."""
    texts = [*sheet.table.headings[1:], *(sheet.table.header[:1])]
    first = (sheet.table.where.line or sheet.line) - 1
    for nth in range(first - 1, max(0, first - 1 - ABOVE), -1):
        start, end = page.lines[nth - 1]
        line = page.text[start:end].strip()
        if line.startswith(("|", "#")):
            break
        texts.append(line)
        if line:
            break
    return squeezed(" ".join(map(bare, texts)))


def _of_sheet(sheet: Sheet, above: str) -> Iterator[Course]:
    cells = [cell for cell in sheet.cells if not cell.part]
    owners = keys_of(sheet.owners)
    if len(set(sheet.counts.values())) < len(sheet.counts):
        yield from _by_two(sheet, cells, above)
    elif sheet.counts:
        for column in {cell.column for cell in cells}:
            own = {cell.row: cell for cell in cells if cell.column == column}
            points = {at: own[row] for row, at in sheet.counts.items() if row in own}
            keys, label = column_keys(sheet, column), " ".join(sheet.columns[column])
            made = _course(sheet.axis, points, keys | owners, label, above)
            yield replace(made, whole=len(points) == len(sheet.counts))
    for row in range(len(sheet.rows)) if sheet.across else ():
        own = {cell.column: cell for cell in cells if cell.row == row}
        points = {at: own[column] for column, at in sheet.across.items() if column in own}
        keys, label = row_keys(sheet, row), " ".join(sheet.rows[row])
        made = _course(sheet.across_axis, points, keys | owners, label, above)
        yield replace(made, whole=len(points) == len(sheet.across))
    yield from by_arm(sheet, above)


def _by_two(sheet: Sheet, cells: Sequence[Cell], above: str) -> Iterator[Course]:
    """Courses of a table whose rows are an epoch and something else: one for each of that."""
    groups: dict[str, dict[int, float]] = defaultdict(dict)
    for row, at in sheet.counts.items():
        groups[bare(sheet.table.rows[row][1])][row] = at
    for name, rows in groups.items():
        keys = keys_of([name, f"{sheet.table.header[1]}{name}"]) | keys_of(sheet.owners)
        for column in range(2, len(sheet.table.header)):
            own = {cell.row: cell for cell in cells if cell.column == column}
            points = {at: own[row] for row, at in rows.items() if row in own}
            label = f"{name} {' '.join(sheet.columns[column])}"
            made = _course(sheet.axis, points, keys | column_keys(sheet, column), label, above)
            yield replace(made, whole=len(points) == len(rows))


def by_arm(sheet: Sheet, above: str) -> Iterator[Course]:
    """Courses of a table whose rows are an arm and an epoch: one for each arm and column."""
    header, cells = sheet.table.header, [cell for cell in sheet.cells if not cell.part]
    axis = axis_word(header[1]) if len(header) > 2 and not sheet.counts else ""
    if axis in STILL:
        return
    groups: dict[str, dict[int, float]] = defaultdict(dict)
    for row, texts in enumerate(sheet.table.rows):
        at = re.search(r"\d+", bare(texts[1]))
        if at:
            groups[texts[0]][row] = float(at[0])
    for name, rows in groups.items():
        keys = keys_of([bare(name)], header[0])
        for column in range(2, len(header)):
            own = {cell.row: cell for cell in cells if cell.column == column}
            points = {at: own[row] for row, at in rows.items() if row in own}
            label = f"{name} {' '.join(sheet.columns[column])}"
            made = _course(axis, points, keys | column_keys(sheet, column), label, above)
            made = replace(made, arm=bare(name), quantity=f"{sheet.nth} {column}")
            yield replace(made, whole=len(points) == len(rows))


def _from_table_to_table(sheets: Sequence[Sheet], above: Mapping[int, str]) -> Iterator[Course]:
    """Courses through tables of one form, each of which stands under its own epoch or step.

    A row is known by its name, so that one which a table lacks is missing there.
    """
    forms: dict[tuple[object, ...], dict[tuple[str, float], Sheet]] = defaultdict(dict)
    for sheet in sheets:
        found = [one for one in places(above[sheet.nth]) if one.is_of_training]
        if len({(one.axis, one.at) for one in found}) == 1 and not sheet.counts:
            rest = re.sub(r"\d+(?:\.\d+)?", "", above[sheet.nth])
            form = (tuple(sheet.table.header), found[0].axis, rest)
            names = [bare(row[0]) for row in sheet.table.rows]
            if len(set(names)) == len(names):
                forms[form].setdefault((found[0].axis, found[0].at), sheet)
    for same in (form for form in forms.values() if len(form) >= LEAST):
        axis = next(iter(same))[0]
        for own in _told_again(same).values():
            points = {at: cell for at, (_, cell) in own.items()}
            first, cell = next(iter(own.values()))
            keys = row_keys(first, cell.row) | column_keys(first, cell.column)
            label = " ".join((*first.rows[cell.row], *first.columns[cell.column]))
            made = _course(axis, points, keys, label, above[first.nth])
            yield replace(made, whole=len(points) == len(same))


def _told_again(
    same: Mapping[tuple[str, float], Sheet],
) -> dict[tuple[str, int], dict[float, tuple[Sheet, Cell]]]:
    """By the name of a row and a column, the cell that each of some tables has there."""
    found: dict[tuple[str, int], dict[float, tuple[Sheet, Cell]]] = defaultdict(dict)
    for (_, at), sheet in same.items():
        for cell in sheet.cells:
            if not cell.part:
                name = bare(sheet.table.rows[cell.row][0])
                found[name, cell.column][at] = (sheet, cell)
    return found


def _listings(page: Page) -> Iterator[Course]:
    """Lists of code blocks: "Step 10: 1.531 (+12.5%)"."""
    heading, fenced, own = "", False, list[tuple[float, Figure, int]]()
    axis = ""
    for nth, (start, end) in enumerate(page.lines, 1):
        line = page.text[start:end]
        if line.startswith("#") and not fenced:
            heading = squeezed(bare(line.strip("# ")))
        if line.strip().startswith(("```", "~~~")):
            if fenced and own:
                points = {at: figure for at, figure, _ in own}
                lines = tuple(line for *_, line in own)
                yield Course(axis, points, keys_of([heading]), "", heading, lines)
            fenced, own = not fenced, []
            continue
        match = _LISTED.match(line) if fenced else None
        place = next(iter(places(squeezed(match[1]))), None) if match else None
        if match and place:
            decimals = len(match[2].partition(".")[2])
            own.append((place.at, Figure(float(match[2]), decimals, match[3]), nth))
            axis = place.axis


def _course(
    axis: str, points: Mapping[float, Cell], keys: frozenset[str], label: str, above: str
) -> Course:
    points = dict(sorted(points.items()))
    figures = {at: cell.figure for at, cell in points.items()}
    lines = tuple(cell.line for cell in points.values())
    return Course(axis, figures, keys, label, above, lines)
