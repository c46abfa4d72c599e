"""Whether a number of a sentence can be accounted for: printed in a table, or worked out of one.

What may be meant depends on what the number is called (points are differences, "3.1 times" is a
ratio) and on which rows and columns the sentence names: of two numbers that were taken one has to
be theirs. A number for which nothing of the kind is found stands alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations, pairwise, permutations

from kleash.imports.markdown.labels import is_best_step
from kleash.written.book import Book, between, meant, pairs
from kleash.written.fitting import NAMING, Account, Kind, kept, of_figures, pair, prints, unrounded
from kleash.written.gaps import compares, direction, is_gap, is_part, is_relative, way_of
from kleash.written.printed import Cell, Figure, is_total
from kleash.written.prose import At, Name, Said, Sentence
from kleash.written.ties import anchor, is_change, own_two

SLIP = 5  # units of the last digit within which a number was meant to be another
WIDE = 0.9  # a chance at which nothing is said by what comes out
_MEAN = re.compile(r"averag|(?<![a-z])mean(?![a-z])|平均|均值|均为|(?<![a-z])per(?![a-z])|每")
_SUM = re.compile(
    r"total|(?<![a-z])sum|together|whole|overall|altogether|合计|总|共|加起来|累计|(?<![a-z])all(?![a-z])"
)
_SPREAD = re.compile(r"极差|跨度|(?<![a-z])(?:range|spread)(?![a-z])")
_COUNT = re.compile(
    r"(?<![\w.,])(\d{1,4})\s?(?:x\s|×)?(?:a100|h100|h200|h800|gpus?|卡|seeds?|个?种子|nodes?|runs?|次)"
)
_SHARE = re.compile(
    r"占|(?<![a-z])(?:share|fraction|out of|of (?:the|all|this|that|which))(?![a-z])"
)
_RATIO = re.compile(r"[×÷/]|\dx|倍|比|相对|ratio|relative|speed-?up", re.I)
_CLAUSE = re.compile(r"[,;:。]\s?|(?<![a-z])(?:and|but|while|whereas)(?![a-z])")
MANY: dict[Kind, re.Pattern[str]] = {"mean": _MEAN, "sum": _SUM}


def near(book: Book, sentence: Sentence, said: Said) -> float | None:
    """What a number that nothing accounts for was meant to be, if it is but some digits off."""
    loose = replace(said, figure=replace(said.figure, loose=2 * SLIP))
    every = [one.value for one in accounts(book, sentence, loose) if one.kind != "sum"]
    value = abs(said.figure.value)
    return min(every, key=lambda one: abs(abs(one) - value), default=None)


def candidates(book: Book, sentence: Sentence, said: Said) -> Iterator[float]:
    """What a number may be: any that is printed, or that two of what its sentence names give."""
    scope = narrowed(sentence, said) or sentence
    for line, named in meant(book, scope) if said.kind != "times" else ():
        for cell in line:
            if cell.row in named.rows or cell.column in named.columns:
                yield cell.figure.value
    for one, other in pairs(book, scope) if is_gap(sentence, said) else ():
        ours, theirs = one.figure.value, other.figure.value
        if said.kind != "times":
            yield ours - theirs
        if said.kind in ("share", "times") and ours and theirs:
            ratios = (ours / theirs, theirs / ours)
            yield from ratios if said.kind == "times" else (100 * each - 100 for each in ratios)


# --- accounts


def account(book: Book, sentence: Sentence, said: Said) -> Account | None:
    """The best account of a number: one that comes out exactly before one that only may."""
    every = list(accounts(book, sentence, said))
    tied = any(one.exact for one in every) or own_two(sentence, said) is not None
    own = None if tied or not compares(sentence, said) else narrowed(sentence, said)
    found = accounts(book, own, said) if own is not None else ()
    every += [one for one in found if one.exact and one.kind not in MANY]
    best = min(
        every, key=lambda one: (not one.exact, one.kind != "printed", one.chance), default=None
    )
    if best is None or best.kind == "printed" or is_gap(sentence, said):
        return best
    surely = best.exact and best.kind in MANY
    return None if _one_off(book, said.figure, mean=surely) else best


def _one_off(book: Book, figure: Figure, *, mean: bool) -> bool:
    """Whether a table prints a number but for its last digit, if need be as a mean: that is it."""
    unit = 10.0**-figure.decimals
    if figure.digits < NAMING:
        return False
    near = (
        cell
        for cell in book.cells
        if cell.figure.decimals == figure.decimals
        and abs(abs(abs(cell.figure.value) - abs(figure.value)) - unit) < unit / 100
    )
    return any(not mean or _MEAN.search(book.named(cell)) for cell in near)


def accounts(book: Book, sentence: Sentence, said: Said) -> Iterator[Account]:
    """Every account of a number that its sentence allows.

    So many percent more are of the smaller of two numbers, so many percent less of the greater.
    """
    way, relative = direction(sentence, said), is_relative(sentence, said)
    for one in _every(book, sentence, said):
        turned = way and one.kind == "relative" and one.value * way < 0
        if not turned and not (relative and one.kind == "difference"):
            yield one


def _every(book: Book, sentence: Sentence, said: Said) -> Iterator[Account]:
    gap = is_gap(sentence, said)
    both = own_two(sentence, said) if gap or said.kind == "share" else None
    before = anchor(book, sentence, said) if gap or said.kind == "share" else []
    pinned = between(book, sentence)
    for cell in book.cells:
        if said.kind == "times" and not _is_ratio(book, cell):
            continue
        if pinned and gap and cell.table not in pinned:
            continue
        if both is not None and said.kind == "share" and cell.figure.unit != "%":
            continue
        if prints(said.figure, cell.figure) and _may_stand(said, cell, both, before):
            yield Account("printed", (cell,), exact=True, value=cell.figure.value)
    if both is not None:
        ours, theirs = (_logged(book, one.figure) for one in both)
        found = pair(said, ours, theirs, ())
        if is_change(sentence, both):  # in percent of where it began
            rises = theirs.value > ours.value
            found = (one for one in found if one.kind != "relative" or (one.value > 0) == rises)
        yield from found
        return
    way, part = way_of(sentence, said), is_part(sentence, said)
    for one, other in before:
        found = pair(said, one.figure, other.figure, (one, other))
        found = (each for each in found if each.kind != "relative" or each.value * way >= 0)
        yield from (each for each in found if not way or part or each.kind != "ratio")
    yield from _part(book, sentence, said)
    if not before:
        yield from _worked_out(book, sentence, said)
        return
    found = _beside(sentence, said)  # "from 5.44 to 1.92 points, 35 % of it"
    yield from (each for each in found if each.exact and each.kind == "ratio")


def _is_ratio(book: Book, cell: Cell) -> bool:
    """Whether a number of a table is so many times another, by its sign or its title."""
    return bool(_RATIO.search(cell.number.text) or _RATIO.search(book.named(cell)))


def _worked_out(book: Book, sentence: Sentence, said: Said) -> Iterator[Account]:
    """Accounts of a number that no other of its sentence ties down."""
    yield from _beside(sentence, said)
    yield from _times(book, sentence, said)
    if compares(sentence, said):
        own = _own_clause(sentence, said)
        for one, other in (*pairs(book, sentence), *(pairs(book, own) if own else ())):
            if not any(is_best_step(book.named(cell)) for cell in (one, other)):
                yield from pair(said, one.figure, other.figure, (one, other))
    if _SPREAD.search(sentence.plain) and said.kind != "times":
        for line in _lines(book, sentence, said):
            low, high = (end(cell.figure.value for cell in line) for end in (min, max))
            half = 2 * max(cell.figure.half for cell in line)
            gap = high - low
            yield from kept("difference", said, gap - half, gap + half, (line[0], line[-1]))
    for kind, words in MANY.items():
        if words.search(sentence.plain) and said.kind != "times":
            for line in _lines(book, sentence, said):
                yield from _of_many(kind, book, said, line)


def narrowed(sentence: Sentence, said: Said) -> Sentence | None:
    """A sentence with only what the clause of a number names, or else the last one that does.

    A clause with steps and no number holds for those behind it: "From step 25 to 150, A gains 4".
    """
    edges = [0, *(match.end() for match in _CLAUSE.finditer(sentence.plain)), len(sentence.text)]
    spans = [(first, last) for first, last in pairwise(edges) if first <= said.start]
    things: list[Name | At] = [*sentence.names, *sentence.places]
    for first, last in reversed(spans):
        if any(first <= one.start < last for one in things):
            names = [one for one in sentence.names if first <= one.start < last]
            places = [one for one in sentence.places if first <= one.start < last]
            places = places or _leading(sentence, spans)
            smaller = len(names) + len(places) < len(things)
            return replace(sentence, names=names, places=places) if smaller else None
    return None


def _leading(sentence: Sentence, spans: Sequence[tuple[int, int]]) -> list[At]:
    """The places that a sentence names before its first number."""
    first = min((one.start for one in sentence.numbers), default=0)
    last = max((end for _, end in spans if end <= first), default=0)
    return [one for one in sentence.places if one.end <= last]


def _own_clause(sentence: Sentence, said: Said) -> Sentence | None:
    """A sentence without the rows that only other clauses name, if this names columns; and so on.

    "The calls of B are 1.7 times those of A, the length is 1.72 times that of A".
    """
    plain = sentence.plain
    first = max(plain.rfind(mark, 0, said.start) for mark in ",;:。") + 1
    inside = [name for name in sentence.names if first <= name.start and name.end <= said.start]
    rows = {one.sheet for one in inside if one.row is not None}
    columns = {one.sheet for one in inside if one.column is not None}
    kept = [
        one
        for one in sentence.names
        if one in inside
        or not (
            (one.row is not None and one.sheet in columns - rows)
            or (one.column is not None and one.sheet in rows - columns)
        )
    ]
    return replace(sentence, names=kept) if len(kept) < len(sentence.names) else None


def _lines(book: Book, sentence: Sentence, said: Said) -> Iterator[Sequence[Cell]]:
    """The lines that a mean may be of: where its clause names nothing, any of its section's."""
    yield from (line for line, _ in meant(book, sentence))
    plain = sentence.plain
    first = max(plain.rfind(mark, 0, said.start) for mark in ",;:。") + 1
    if not any(first <= name.start < said.start for name in sentence.names):
        for sheet in book.section(sentence.line(said.start)):
            yield from book.lines[sheet.nth]


def _part(book: Book, sentence: Sentence, said: Said) -> Iterator[Account]:
    """A share as what a part is of a whole: of two numbers before it, or of the sum of a line."""
    if said.kind != "share" or not _SHARE.search(sentence.plain):
        return
    told = [one for one in sentence.numbers if one.end <= said.start and one.kind != "share"]
    for part, whole in permutations(told, 2):
        if 0 < part.figure.value < whole.figure.value and part.unit == whole.unit:
            found = of_figures(said, part.figure, whole.figure, ())
            yield from (one for one in found if one.kind == "ratio" and one.exact)
    for line, named in meant(book, sentence):
        total = sum(cell.figure.value for cell in line if not _is_sum(book, cell))
        half = sum(cell.figure.half for cell in line if not _is_sum(book, cell))
        along = len({cell.row for cell in line}) == 1
        own = [c for c in line if (c.column in named.columns if along else c.row in named.rows)]
        for cells in ([own] if len(own) > 1 else []) + [[cell] for cell in own]:
            if 0 < half < total:
                part_ = sum(cell.figure.value for cell in cells)
                low, high = (100 * part_ / (total + sign * half) for sign in (1, -1))
                slack = 100 * sum(cell.figure.half for cell in cells) / total
                yield from kept("ratio", said, low - slack, high + slack, tuple(cells))


def _is_sum(book: Book, cell: Cell) -> bool:
    sheet = book.sheets[cell.table]
    return any(is_total(one) for one in (*sheet.rows[cell.row], *sheet.columns[cell.column]))


def _logged(book: Book, figure: Figure) -> Figure:
    """A number of a sentence with what it was before rounding, if a log has it."""
    same = (cell.figure for cell in book.cells if cell.figure.value == figure.value)
    found = {one.true for one in same if one.decimals == figure.decimals}
    return replace(figure, true=found.pop()) if len(found) == 1 else figure


def _may_stand(
    said: Said,
    cell: Cell,
    both: tuple[Said, Said] | None,
    before: Sequence[tuple[Cell, Cell]],
) -> bool:
    """Whether a number of few digits that has its own two numbers may still be a cell's."""
    if said.figure.digits >= NAMING or (both is None and not before):
        return True
    return any(cell.table == one.table and cell.row == one.row for one, _ in before)


def _of_many(kind: Kind, book: Book, said: Said, line: Sequence[Cell]) -> Iterator[Account]:
    """A number as the mean or the sum of a line, of all of it or all but one end."""
    sheet = book.sheets[line[0].table]
    same_row = len({cell.row for cell in line}) == 1
    aliases = sheet.columns if same_row else sheet.rows
    kept = [
        cell
        for cell in line
        if not any(is_total(alias) for alias in aliases[cell.column if same_row else cell.row])
    ]
    for part in dict.fromkeys((tuple(kept), tuple(kept[1:]), tuple(kept[:-1]))):
        if len(part) < 2:
            continue
        figures = [cell.figure for cell in part]
        known = all(one.true is not None for one in figures)
        for each in (figures, [unrounded(one) for one in figures]) if known else (figures,):
            found = _of_line(kind, said, each, part)
            yield from (one for one in found if one.exact or not known)


def _of_line(
    kind: Kind, said: Said, figures: Sequence[Figure], cells: tuple[Cell, ...]
) -> Iterator[Account]:
    total, half = sum(one.value for one in figures), sum(one.half for one in figures)
    share = said.figure.unit == "%" and total <= 1.5 * len(figures)
    scale = 1.0 / len(figures) if kind == "mean" else 1.0
    for times in (scale, 100 * scale) if share else (scale,):
        yield from kept(kind, said, (total - half) * times, (total + half) * times, cells)


def _beside(sentence: Sentence, said: Said) -> Iterator[Account]:
    """A number worked out of others of its sentence, or of the one before it."""
    others = [one for one in sentence.numbers if one is not said]
    if sentence.before is not None:
        others += sentence.before.numbers
    for one, other in combinations(others[:12], 2) if compares(sentence, said) else ():
        yield from pair(said, one.figure, other.figure, ())
        if said.kind == "share" and other.kind == "points" and one.figure.value:
            share = 100 * abs(other.figure.value / one.figure.value)
            share *= direction(sentence, said) or 1
            yield from kept("relative", said, share * 0.995, share * 1.005, ())
    whole = [one.figure for one in others if not one.figure.decimals and one.figure.value]
    for part, of in permutations(whole, 2) if said.kind == "share" else ():
        if part.value <= of.value:
            share = 100 * part.value / of.value  # "13 of 18 (72.2 %)"
            yield from kept("ratio", said, share, share, ())
    if _SUM.search(sentence.plain):
        total, half = (
            sum(one.figure.value for one in others),
            sum(one.figure.half for one in others),
        )
        if len(others) > 1:
            yield from kept("sum", said, total - half, total + half, ())


def _times(book: Book, sentence: Sentence, said: Said) -> Iterator[Account]:
    """A number as so many times one of a table: 35.3 h on 8 GPUs."""
    counts = {float(match[1]) for match in _COUNT.finditer(sentence.plain)}
    enough = said.figure.digits >= NAMING and said.kind in ("", "unit")
    for cell in book.cells if counts and enough else ():
        for count in counts if cell.figure.digits >= NAMING - 1 else ():
            ends = [count * (cell.figure.value + sign * cell.figure.half) for sign in (-1, 1)]
            yield from kept("sum", said, min(ends), max(ends), (cell,))


def nearest(said: Said, cells: Iterable[Cell]) -> float | None:
    """The figure of a table that is nearest to a number."""
    return min(
        (cell.figure.value for cell in cells),
        key=lambda one: abs(one - said.figure.value),
        default=None,
    )
