"""What the layout of a table says: numbers in each other's column, stars, arrows, bold.

None of it stands in a number, and all of it can be wrong.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations, pairwise

from kleash.documents.marks import Mark, State
from kleash.documents.page import Page
from kleash.findings.spoken import direction
from kleash.imports import Number, names
from kleash.imports.markdown.draft import Draft, Printed
from kleash.written.grids import Grid, grids
from kleash.written.looks import exchanged_by_looks

RECITED = 3  # numbers of a row that a sentence must give to be about it
SEVERAL = 8  # numbers of a column that show its range
FEWEST = 4  # the same where the other column is far away
ORDERED = 5  # numbers of a column that rise or fall throughout by no chance
ENOUGH = 2  # numbers of a column that show how it is printed
NEARER = 3.0  # times: how much nearer two exchanged numbers are to those above and below
_STAR = re.compile("[⭐★🏆🥇]|最佳|(?<![a-z])best(?![a-z])", re.I)
_UP, _DOWN = re.compile("[⬆↑▲📈]"), re.compile("[⬇↓▼📉]")
_BOLD = re.compile(r"\*\*[^*]*\d[^*]*\*\*|__[^_]*\d[^_]*__")

Rows = dict[int, list[Printed]]


def laid_out(draft: Draft, page: Page) -> list[Mark]:
    """What is wrong with how the tables of a report are laid out."""
    found = [*_recited(draft), *_arrows(draft), *_stars(draft), *_bold(draft, page)]
    return [*found, *_exchanged(grids(draft))]


def tables(draft: Draft) -> list[Rows]:
    """The cells of each table, row by row."""
    found: dict[int, Rows] = defaultdict(lambda: defaultdict(list))
    for cell in draft.printed:
        found[cell.table][cell.line].append(cell)
    return [dict(rows) for rows in found.values()]


def value_of(cell: Printed) -> Number | None:
    """The measured number of a cell; None for differences, remarks, settings and gaps."""
    number = cell.read.number
    measured = cell.sense.role == "value" and not cell.sense.setting
    return number if measured and number is not None and number.value is not None else None


# --- numbers in each other's column


def _exchanged(every: Sequence[Grid]) -> Iterator[Mark]:
    """Two numbers of a row that look like those of each other's column and unlike their own."""
    for grid in every:
        columns = {slot: grid.column(slot) for slot in grid.slots() if not slot[1]}
        like = [one.table for one in every if one is not grid and one.titles == grid.titles]
        dressed = exchanged_by_looks(grid.table, like)
        accused = {place: (text, "dress") for place, text in dressed.items()}
        for line, place in enumerate(grid.table.lines):
            row = {slot: one for slot, one in grid.line(line).items() if slot in columns}
            for ours, theirs in combinations(row, 2):
                both = columns[ours], columns[theirs]
                if _in_others_range(*both, line) or _out_of_order(*both, line):
                    accused.setdefault(place, (f"{row[ours].text}, {row[theirs].text}", "row"))
        # Where half of the rows look so, it is not known which half is right.
        state: State = "wrong" if 2 * len(accused) < len(grid.table.lines) else "unsupported"
        for place, (text, spot) in accused.items():
            yield Mark(place, text, state, "check.exchanged", {}, spot)


def _printed_alike(one: Number, column: Sequence[Number]) -> list[float]:
    """The sizes of a column's numbers, if most of them have the decimals and unit of another."""
    alike = [each for each in column if (each.unit, each.decimals) == (one.unit, one.decimals)]
    most = len(column) >= ENOUGH and 3 * len(alike) >= 2 * len(column)
    return [each.value or 0.0 for each in alike] if most else []


def _in_others_range(ours: Mapping[int, Number], theirs: Mapping[int, Number], line: int) -> bool:
    """Whether two columns have nothing in common, and each number lies in the other's.

    The first and the last row may be: without a leash KL is large and entropy small.
    """
    if not {line - 1, line + 1} <= ours.keys() & theirs.keys():
        return False
    ranges = []
    for one, column in ((theirs[line], ours), (ours[line], theirs)):
        others = [each for at, each in column.items() if at != line]
        values = sorted(_printed_alike(one, others))
        if len(values) < FEWEST:
            return False
        few = len(values) // SEVERAL
        low, high = values[few], values[-1 - few]
        beyond = (high - low) / 2 if few else 0.0
        if not low - beyond <= (one.value or 0.0) <= high + beyond:
            return False
        ranges.append((low, high))
    (low, high), (least, most) = ranges
    # Few numbers show a range only if the other's is far away.
    short = min(len(ours), len(theirs)) <= SEVERAL
    room = max(high - low, most - least) if short else 0.0
    apart = high + room < least or most + room < low
    before = _off(ours, line, ours[line]) + _off(theirs, line, theirs[line])
    after = _off(ours, line, theirs[line]) + _off(theirs, line, ours[line])
    return apart and NEARER * after < before


def _off(column: Mapping[int, Number], line: int, one: Number) -> float:
    """How far a number is from those of the lines before and after its own."""
    beside = [column[at].value or 0.0 for at in (line - 1, line + 1) if at in column]
    value = one.value or 0.0
    return max(min(beside) - value, value - max(beside), 0.0) if beside else 0.0


def _out_of_order(ours: Mapping[int, Number], theirs: Mapping[int, Number], line: int) -> bool:
    """Whether two columns would both rise or fall throughout with two numbers exchanged."""
    if ours.keys() != theirs.keys() or len(ours) < ORDERED:
        return False
    if not (_is_at_home(theirs[line], ours, line) and _is_at_home(ours[line], theirs, line)):
        return False
    both = [[column[at].value or 0.0 for at in sorted(ours)] for column in (ours, theirs)]
    place = sorted(ours).index(line)
    turned = [list(values) for values in both]
    turned[0][place], turned[1][place] = both[1][place], both[0][place]
    return not any(map(_steady, both)) and all(map(_steady, turned))


def _is_at_home(one: Number, column: Mapping[int, Number], line: int) -> bool:
    """Whether a number is printed as the others of a column are, with a sign that some have."""
    others = [each for at, each in column.items() if at != line]
    signs = {(each.value or 0.0) < 0 for each in others}
    return bool(_printed_alike(one, others)) and ((one.value or 0.0) < 0) in signs


def _steady(values: Sequence[float]) -> bool:
    gaps = [after - before for before, after in pairwise(values)]
    return all(gap > 0 for gap in gaps) or all(gap < 0 for gap in gaps)


# --- rows that a sentence repeats


def _recited(draft: Draft) -> Iterator[Mark]:
    """A row and a sentence that gives its numbers in another order: two of them are swapped."""
    rows = list(_told_once(draft))
    for claim in draft.source.claims:
        said = [one.value for one in claim.numbers if one.value is not None]
        if len(said) < RECITED or len(claim.numbers) > len(said):
            continue
        for line, arm, numbers in rows:
            if arm not in claim.arms:
                continue
            values = [number.value for number in numbers]
            for first in range(len(values) - RECITED + 1):
                for count in range(RECITED, len(values) - first + 1):
                    part, told = values[first : first + count], said[:count]
                    mixed = part != told and sorted(map(float, part)) == sorted(told)  # type: ignore[arg-type]
                    if mixed and _is_list(claim.text, claim.numbers[:count]):
                        lines = line, claim.where.line or 0
                        text = ", ".join(n.text for n in numbers[first : first + count])
                        for here, there in (lines, lines[::-1]):
                            yield Mark(
                                here, text, "wrong", "check.swapped", {"other": there}, "row"
                            )


def _is_list(text: str, numbers: Sequence[Number]) -> bool:
    """Whether numbers stand one behind the other in a text: else they have no order."""
    body = r"\s*[,，、/→;]\s*".join(re.escape(one.text.strip()) for one in numbers)
    return re.search(body, text) is not None


def _told_once(draft: Draft) -> Iterator[tuple[int, str | None, list[Number]]]:
    """The rows of one arm with their lines and numbers; none that another row bears out."""
    rows = [cells for table in tables(draft) for cells in table.values()]
    often = Counter(tuple(map(_number, cells)) for cells in rows)
    for cells in rows:
        held = [(cell, number) for cell in cells if (number := value_of(cell)) is not None]
        arms = {cell.sense.arm for cell, _ in held}
        if len(arms) == 1 and often[tuple(map(_number, cells))] == 1:
            yield cells[0].line, arms.pop(), [number for _, number in held]


# --- arrows


def _arrows(draft: Draft) -> Iterator[Mark]:
    """An arrow up beside a number that is negative, where the others of its column agree."""
    columns: dict[tuple[int, int], list[tuple[Printed, bool]]] = defaultdict(list)
    for cell in draft.printed:
        number = cell.read.number
        up, down = _UP.search(cell.read.words), _DOWN.search(cell.read.words)
        if number is None or not number.value or bool(up) == bool(down):
            continue
        columns[cell.table, cell.column].append((cell, bool(up) == (number.value > 0)))
    for cells in columns.values():
        odd = [cell for cell, agrees in cells if not agrees and "-" in cell.read.words]
        odd += [cell for cell, agrees in cells if not agrees and "+" in cell.read.words]
        if len(odd) * 3 < len(cells):
            for cell in odd:
                text = cell.read.number.text if cell.read.number else ""
                yield Mark(cell.line, text, "wrong", "check.arrow", {}, cell.where.spot)


# --- stars and bold


def _lines_of(draft: Draft) -> dict[tuple[int, int], list[Printed]]:
    """Columns of measurements of one metric, without rows of statistics."""
    found: dict[tuple[int, int], list[Printed]] = defaultdict(list)
    for cell in draft.printed:
        if value_of(cell) is not None and not (
            cell.sense.statistic and cell.sense.statistic != "mean"
        ):
            found[cell.table, cell.column].append(cell)
    return found


def _sign(draft: Draft, cells: Sequence[Printed]) -> int:
    metrics = {cell.sense.metric for cell in cells}
    if len(metrics) != 1:
        return 0
    written = metrics.pop() or draft.outcome
    share = all(cell.read.number and cell.read.number.unit == "%" for cell in cells)
    return direction(written) or (1 if share and names.metric(written) is None else 0)


def _stars(draft: Draft) -> Iterator[Mark]:
    """A star beside a number of a column, or of a row, that holds a better one."""
    for cells in _lines_of(draft).values():
        starred = [cell for cell in cells if _STAR.search(cell.read.words)]
        sign = _sign(draft, cells)
        stars = {cell for cell in draft.printed if _STAR.search(cell.read.words)}
        if len(starred) != 1 or not sign or len(cells) < 3:
            continue
        if _is_of_row(draft, starred[0], stars, sign):
            continue
        known = [cell for cell in cells if cell.read.number and cell.read.number.state == "known"]
        best = max(known, key=lambda cell: sign * _number(cell), default=None)
        if best is not None and sign * _number(best) > sign * _number(starred[0]):
            facts = {"value": best.read.number.text if best.read.number else "", "other": best.line}
            cell = starred[0]
            text = cell.read.number.text if cell.read.number else ""
            yield Mark(cell.line, text, "wrong", "check.star", facts, cell.where.spot)


def _is_of_row(draft: Draft, starred: Printed, stars: Collection[Printed], sign: int) -> bool:
    """Whether the cells of a table that are set apart are the bests of their rows, this one too."""
    rows: dict[int, list[Printed]] = defaultdict(list)
    for cell in draft.printed:
        unit = cell.read.number.unit if cell.read.number else None
        own = starred.read.number.unit if starred.read.number else None
        if cell.table == starred.table and value_of(cell) is not None and unit == own:
            rows[cell.line].append(cell)
    bests = {
        line
        for line, cells in rows.items()
        if len(cells) > 2 and max(cells, key=lambda one: sign * _number(one)) in stars
    }
    count = sum(one in stars for cells in rows.values() for one in cells)
    return starred.line in bests and 1 < len(bests) == count == len(rows)


def _number(cell: Printed) -> float:
    one = value_of(cell)
    return 0.0 if one is None else one.value or 0.0


def _bold(draft: Draft, page: Page) -> Iterator[Mark]:
    """The one bold number of a column that is not its best, where bold means best in the others."""
    by_table: dict[int, list[tuple[Printed, Printed, bool]]] = defaultdict(list)
    raw = {cell: _is_bold(page, cell) for cell in draft.printed if value_of(cell) is not None}
    for (table, _), cells in _lines_of(draft).items():
        bold = [cell for cell in cells if raw.get(cell)]
        sign = _sign(draft, cells)
        if len(bold) != 1 or len(cells) < 3 or not sign:
            continue
        if _is_of_row(draft, bold[0], {cell for cell, told in raw.items() if told}, sign):
            continue
        best = max(cells, key=lambda cell: sign * _number(cell))
        by_table[table].append((bold[0], best, _number(best) == _number(bold[0])))
    for found in by_table.values():
        odd = [(cell, best) for cell, best, fits in found if not fits]
        if len(found) >= 3 and len(odd) * 3 <= len(found):
            for cell, best in odd:
                text = cell.read.number.text if cell.read.number else ""
                facts = {
                    "value": best.read.number.text if best.read.number else "",
                    "other": best.line,
                }
                yield Mark(cell.line, text, "wrong", "check.star", facts, cell.where.spot)


def _is_bold(page: Page, cell: Printed) -> bool:
    spans = page.cells(cell.line)
    if cell.column >= len(spans):
        return False
    start, end = spans[cell.column]
    return bool(_BOLD.search(page.text[start:end]))
