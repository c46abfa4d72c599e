"""Numbers of sentences that tables give in a step or two, by lines that the sentence points at.

It only acquits: "0.20 falls by 3.55 from shot 1 to shot 3" is right if any line that may be meant
has it, so labels are read here more freely than where a number is to be found wrong.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations, permutations
from math import sqrt

from kleash.imports.markdown.text import bare
from kleash.written.book import Book
from kleash.written.fitting import NAMING, Account, kept, pair, prints
from kleash.written.gaps import is_gap
from kleash.written.printed import Cell, Figure, Sheet, is_total, named, squeezed
from kleash.written.prose import Said, Sentence
from kleash.written.told.things import ZERO, column_keys, row_keys

NEAR = 8  # letters between two numbers and their gap
_ARROW = re.compile(r"\s?%?\s?(?:→|->|=>)\s?")
_FACTOR = re.compile(r"\s?[×*·]\s?[a-z\u4e00-\u9fff]")
_DIVISION = re.compile(
    r"(\d[\d,]*(?:\.\d+)?)\s?[kmb]?\s?[/÷]\s?(\d[\d,]*(?:\.\d+)?)\s?[kmb]?\s?=\s?$"
)
LABELS = 2  # columns that may name a row
FEW = 3  # numbers of which a mean is one over a report
ROOM = (
    0.58  # units of the last digit that rounding leaves between one number and what it was, twice
)
_BEST = re.compile(
    r"最|峰|顶|触?底|(?<![a-z])(?:best|worst|peak\w*|highest|lowest|most|least|max\w*|min\w*|top\w*)(?![a-z])"
)
_SUM = re.compile(
    r"合计|总|共|加起来|(?<![a-z])(?:together|in all|total|sum|all|altogether)(?![a-z])"
)
_MEAN = re.compile(r"平均|均值|(?<![a-z])(?:mean|average\w*|avg)(?![a-z])")
_SPAN = re.compile(r"(?<![\d.])(\d+\.\d+)\s?(?:-|~|to|到|至)\s?(\d+\.\d+)(?![\d.])")
_WHOLE = re.compile(r"(?<![\d.])(\d{1,6})(?![\d.%])")
_WORDS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_HAN = "两三四五六七八九十"


def follows(book: Book, sentence: Sentence, said: Said) -> bool:
    """Whether a number is what two cells, a line or a span that its sentence points at give."""
    if said.figure.digits < 2 or _is_of_others(sentence, said):
        return False
    text = sentence.plain
    before = sentence.before.plain if sentence.before is not None else ""
    return (
        _is_printed(book, said)
        or _of_span(text, said)
        or _of_formula(text, said)
        or _of_list(sentence, said)
        or _of_own(book, sentence, said)
        or any(_of_two(book, sentence, each, said) for each in (text, f"{before} {text}"))
        or _of_several(book, sentence, said)
        or _of_steps(book, text, said)
    )


def _is_of_others(sentence: Sentence, said: Said) -> bool:
    """Whether a gap stands right behind the two numbers that it is of, and is not theirs."""
    earlier = [one for one in sentence.numbers if one.end <= said.start][-2:]
    if len(earlier) < 2 or said.kind in ("share", "times"):
        return False
    one, other = earlier
    joined = _ARROW.fullmatch(sentence.plain[one.end : other.start])
    near = said.start - other.end <= NEAR and is_gap(sentence, said)
    return bool(joined) and near and not _exact(said, one.figure, other.figure)


def is_of_named(book: Book, sentence: Sentence, said: Said) -> bool:
    """Whether a number is a total that was just named, or the only one of a line that is.

    "A, below B so far, has passed it at step 60 (1.891)" does not say right away whose that is.
    """
    text, before = sentence.plain, sentence.plain[: said.start]
    alone = sum(one.figure.digits >= NAMING for one in sentence.numbers) == 1
    for sheet in book.sheets:
        rows, columns = _pointed(sheet, text)
        for cell in sheet.cells:
            if not prints(said.figure, cell.figure):
                continue
            if alone and cell.row in rows and cell.column in columns:
                return True
            if any(is_total(one) and _has(before, one) for one in sheet.rows[cell.row]):
                return True
    return False


def _exact(said: Said, one: Figure, other: Figure) -> bool:
    """Whether a number is a gap or a ratio; of which end a change is the share is for others."""
    kinds = ("ratio",) if said.kind == "times" else ("difference",)
    return any(each.exact and each.kind in kinds for each in pair(said, one, other, ()))


def _is_printed(book: Book, said: Said) -> bool:
    """Whether a table has a number in so many digits in a label, or in brackets."""
    if said.figure.digits < NAMING or any(prints(said.figure, c.figure) for c in book.cells):
        return False
    token = re.compile(rf"(?<![\d.]){re.escape(said.text.lstrip('+-±'))}(?![\d]|\.\d)")
    return any(
        token.search(text)
        for sheet in book.sheets
        for row in (sheet.table.header, *sheet.table.rows)
        for text in row
    )


def _of_span(text: str, said: Said) -> bool:
    """Whether a number is how wide a span is: "2.017-2.121, a range of 0.104"."""
    for match in _SPAN.finditer(text):
        low, high = (Figure(float(one), len(one.partition(".")[2])) for one in match.groups())
        if low.decimals == high.decimals and _exact(said, low, high):
            return True
    return False


def _of_formula(text: str, said: Said) -> bool:
    """Whether a number is a coefficient, or what a division right before it gives."""
    before, after = text[: said.start], text[said.end :]
    if _FACTOR.match(after) and re.search(r"=[^=;。]*$", before):
        return True
    division = _DIVISION.search(before)
    if division is None:
        return False
    above, below = (float(division[nth].replace(",", "")) for nth in (1, 2))
    scale = 100 if said.kind == "share" else 1
    return below > 0 and abs(scale * above / below - said.figure.value) <= 1.01 * said.figure.half


def _of_list(sentence: Sentence, said: Said) -> bool:
    """Whether a number is the mean of those before it, or one of a list whose mean is given."""
    numbers = sentence.numbers
    for nth, made in enumerate(numbers):
        start = numbers[nth - 1].end if nth else 0
        if not _MEAN.search(sentence.plain, start, made.start):
            continue
        for count in range(FEW, nth + 1):
            part = numbers[nth - count : nth]
            alike = {one.figure.decimals for one in (*part, made)}
            if said not in (*part, made) or len(alike) > 1:
                continue
            values = [one.figure.value for one in part]
            if any(_is_mean(made.figure, each) for each in (values, [abs(v) for v in values])):
                return True
    return False


def _is_mean(said: Figure, values: Sequence[float]) -> bool:
    """Whether a number is the mean of others, but for what their rounding may well have left."""
    mean, count = sum(values) / len(values), len(values)
    room = said.half * (1 + 2 * ROOM / sqrt(count))
    return abs(abs(said.value) - abs(mean)) <= room


def _of_own(book: Book, sentence: Sentence, said: Said) -> bool:
    """Whether a number is a ratio of another of its sentence and the cell that it points at."""
    if said.kind != "times":
        return False
    own = [one.figure for one in sentence.numbers if one is not said and one.figure.decimals]
    for sheet in book.sheets:
        rows, columns = _pointed(sheet, sentence.plain)
        cells = [c for c in sheet.cells if c.row in rows and c.column in columns]
        if any(one for c in cells for each in own for one in pair(said, each, c.figure, ())):
            return True
    return False


# --- lines that a text points at


def _pointed(sheet: Sheet, text: str) -> tuple[set[int], set[int]]:
    """The rows and columns of a table of which a text has the label, or a part of it."""
    zero = bool(ZERO.search(text))
    measured = {cell.column for cell in sheet.cells}
    labels = [
        at for at in range(min(LABELS, len(sheet.table.header))) if at not in measured or not at
    ]
    rows = {
        nth
        for nth, row in enumerate(sheet.table.rows)
        if any(_has(text, part) for at in labels for part in _parts(row[at]))
        or any(_has(text, alias) for alias in sheet.rows[nth])
        or (zero and "#0" in row_keys(sheet, nth))
    }
    columns = {
        nth
        for nth, title in enumerate(sheet.table.header)
        if nth
        and (
            any(_has(text, part) for part in (*_parts(title), *sheet.columns[nth]))
            or (zero and "#0" in column_keys(sheet, nth))
        )
    }
    return rows, columns


def _parts(label: str) -> Iterator[str]:
    """A label, and the parts of one such as "PPO, 6 nats"."""
    plain = squeezed(bare(label)).strip(" :*↑↓")
    yield plain
    yield from (one.strip() for one in re.split(r"[,/|·]\s", plain))


def _has(text: str, label: str) -> bool:
    return bool(label) and any(named(text, label))


# --- what they give


def _of_two(book: Book, sentence: Sentence, text: str, said: Said) -> bool:
    """Whether a number is the gap or ratio of two cells of a line that a text points at."""
    section = book.section(sentence.line(said.start))
    for sheet in book.sheets:
        rows, columns = _pointed(sheet, text)
        for line in book.lines[sheet.nth]:
            across = len({cell.row for cell in line}) == 1 and len(line) > 1
            lines, ends = (rows, columns) if across else (columns, rows)
            own = line[0].row if across else line[0].column
            if own not in lines if lines else sheet not in section:
                continue
            if any(
                _exact(said, one.figure, other.figure)
                for one, other in _ends(sheet, line, ends, text)
            ):
                return True
    return False


def _ends(
    sheet: Sheet, line: Sequence[Cell], named_: set[int], text: str
) -> Iterator[tuple[Cell, Cell]]:
    """Every two cells of a line of which a text tells both: by name, as the best or as the last."""
    across = len({cell.row for cell in line}) == 1 and len(line) > 1
    names = sheet.columns if across else sheet.rows
    at = [cell.column if across else cell.row for cell in line]
    told = {nth for nth, cell in zip(at, line, strict=True) if nth in named_}
    counts = sheet.across if across else sheet.counts
    counted = [(nth, cell) for nth, cell in zip(at, line, strict=True) if nth in counts]
    if len(counted) > 1:
        told.add(max(counted, key=lambda one: counts[one[0]])[0])
        if _BEST.search(text):
            ordered = sorted(counted, key=lambda one: one[1].figure.value)
            told |= {ordered[0][0], ordered[-1][0]}
    kept_ = [
        cell
        for nth, cell in zip(at, line, strict=True)
        if nth in told and not any(map(is_total, names[nth]))
    ]
    yield from combinations(kept_, 2)


def _of_several(book: Book, sentence: Sentence, said: Said) -> bool:
    """Whether a number is the sum of the cells that a text points at, or a mean over tables."""
    text = sentence.plain
    share = said.kind == "share"
    if _SUM.search(text) or share:
        for sheet in book.sheets:
            rows, _ = _pointed(sheet, text)
            for line in book.lines[sheet.nth]:
                if len({cell.column for cell in line}) > 1:
                    continue
                body = [c for c in line if not any(map(is_total, sheet.rows[c.row]))]
                own = [cell for cell in body if cell.row in rows]
                if len(own) > 1 and any(_sums(said, own, 1.0)):
                    return True
                counts = _counts(text) if not share else ()
                many = [n for n in counts if n > len(body) > 1 and not n % len(body)]
                if any(any(_sums(said, body, count / len(body))) for count in many):
                    return True
    return bool(_MEAN.search(text)) and any(
        _is_mean(said.figure, [cell.figure.value for cell in cells]) for cells in _alike(book, text)
    )


def _sums(said: Said, cells: Sequence[Cell], scale: float) -> Iterator[Account]:
    total = scale * sum(cell.figure.value for cell in cells)
    if min(cell.figure.decimals for cell in cells) >= said.figure.decimals:
        yield from kept("sum", said, total, total, tuple(cells))


def _counts(text: str) -> set[int]:
    """The whole numbers that a text has, in words too."""
    found = {int(one) for one in _WHOLE.findall(text)}
    found |= {nth for nth, word in enumerate(_WORDS, 2) if re.search(rf"\b{word}\b", text)}
    return found | {nth for nth, word in enumerate(_HAN, 2) if re.search(f"{word}[个组次条]", text)}


def _alike(book: Book, text: str) -> Iterator[list[Cell]]:
    """The cells of all tables under one title in rows of one label that a text has."""
    found: dict[tuple[str, str], list[Cell]] = defaultdict(list)
    for sheet in book.sheets:
        for cell in sheet.cells:
            title = squeezed(bare(sheet.table.header[cell.column]))
            for label in {*sheet.table.rows[cell.row][:LABELS]}:
                plain = squeezed(bare(label)).strip(" :*")
                if not cell.part and _has(text, plain):
                    found[title, plain].append(cell)
    yield from (cells for cells in found.values() if len(cells) >= FEW)


def _of_steps(book: Book, text: str, said: Said) -> bool:
    """Whether a share or a ratio is one of steps, or of whole numbers of its sentence."""
    if said.kind not in ("share", "times"):
        return False
    steps = [at for sheet in book.sheets if (at := sheet.counts or sheet.across)]
    ends = [max(at.values()) for at in steps]
    whole = {float(one) for one in _WHOLE.findall(text)}
    if said.kind == "share":  # of other whole numbers it may be a change from the wrong end
        whole &= {one for at in steps for one in at.values()}
    for one, other in permutations({*whole, *ends}, 2):
        if one in whole and min(one, other) > 0:
            made = [one / other] if said.kind == "times" else [100 * one / other]
            made += [100 - 100 * one / other] if said.kind == "share" and one < other else []
            if any(each.exact for value in made for each in kept("ratio", said, value, value, ())):
                return True
    return False
