"""Marks that other evidence takes back: a rule that misread a table, or a sentence that adds up.

It only ever acquits. What makes a number wrong is for the rules that mark it.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from itertools import combinations

from kleash.imports.markdown.text import bare
from kleash.written.book import Book, refs
from kleash.written.fitting import NAMING, prints
from kleash.written.gaps import direction, is_gap
from kleash.written.marks import OF_PARTS, Mark
from kleash.written.printed import Sheet
from kleash.written.prose import At, Said, Sentence
from kleash.written.steps import BEST
from kleash.written.told.follows import follows, is_of_named
from kleash.written.told.subjects import value_beside
from kleash.written.told.tests import is_shown

# Rules that guess from where a number stands what it may be.
GUESSING = ("check.elsewhere", "check.exchanged")
SURE = ("dress", "ends")  # of these, looks and a least that is more than the greatest guess nothing
MANY, PART = 3, 4  # rows of a table, and one in so many, that one rule does not find wrong
# Rules that guess what a number of a sentence is of.
OF_SENTENCES = (
    "check.slip",
    "check.anothers",
    "check.not-same",
    "check.stranger",
    "number-without-source",
)
# Rules that guess what a number of a table is made or taken of.
OF_COLUMNS = (*OF_PARTS, "check.not-extract")
UNDERIVED = ("check.slip", "number-without-source")
BORNE = ("check.difference", "check.relative", "check.mean", "check.sum", "check.spread")
EXACT = 1e-9
_PLAIN = re.compile(r"[+-]?[\d,]+(?:\.\d+)?\s?%?")


def acquitted(
    marks: Sequence[Mark],
    book: Book,
    spoken: Sequence[Sentence],
    logged: Collection[tuple[int, str]],
    fine: Collection[tuple[int, str]],
    recited: Collection[tuple[int, str]] = (),
    apart: Collection[tuple[int, float, float]] = (),
) -> list[Mark]:
    """The marks that stand; `logged` are numbers of rows that logs bear out.

    `fine` are numbers of sentences that tables account for, by line and digits; `recited` are
    numbers of lines that give a row of a table as it is; `apart` are those by line whose
    difference stands beside them.
    """
    misread = _misread(marks, book.sheets)
    borne = {(mark.line, mark.spot) for mark in marks if mark.code in BORNE}
    made = {(mark.line, mark.text.strip("* ")) for mark in marks if mark.code in BORNE}
    spread = {(mark.line, mark.text.strip("* ±%")) for mark in marks if mark.code == "check.spread"}
    return [
        mark
        for mark in marks
        if ((mark.line, mark.code) not in misread or mark.spot in SURE)
        and not (mark.code == "check.exchanged" and _in_place(mark, made, logged, apart))
        and not (mark.code == "spread-identity" and _is_spread(mark, spread))
        and not (mark.code in OF_SENTENCES and (mark.line, mark.text.strip(" +%*")) in recited)
        and not (mark.code == "check.not-summary" and (mark.line, mark.spot) in borne)
        and not _adds_up(mark, spoken)
        and not _is_derived(mark, book, spoken, fine)
        and not _is_borne_out(mark, book, spoken)
        and not (mark.code == "check.elsewhere" and _stands_there(mark, book, spoken))
        and not (mark.code == "value-elsewhere" and _is_told_there(mark, spoken))
    ]


def without_counted(marks: Sequence[Mark], counted: Collection[tuple[int, str]]) -> list[Mark]:
    """Without guesses at what a share is made of that the count beside it gives to the digit."""
    return [
        mark
        for mark in marks
        if mark.code not in OF_COLUMNS
        or mark.spot.startswith("counted")  # what counts themselves deny is no guess
        or (mark.line, mark.text.strip(" +%*")) not in counted
    ]


def _is_spread(mark: Mark, spread: Collection[tuple[int, str]]) -> bool:
    """Whether a deviation is that of the numbers beside it, whatever seeds stand elsewhere."""
    value = mark.facts.get("spread")
    return isinstance(value, float) and any(
        line == mark.line and abs(float(text) - value) < EXACT
        for line, text in spread
        if re.fullmatch(r"\d+(?:\.\d+)?", text)
    )


def _in_place(
    mark: Mark,
    made: Collection[tuple[int, str]],
    logged: Collection[tuple[int, str]],
    apart: Collection[tuple[int, float, float]],
) -> bool:
    """Whether of two numbers that may be exchanged logs have one, or their columns give both.

    A difference of the two that comes out with its sign says as well that each is in its place.
    """
    if mark.spot == "ends":
        return False
    both = [(mark.line, text) for text in mark.text.split(", ")]
    numbers = [re.findall(r"\d+(?:\.\d+)?", text.replace(",", "")) for _, text in both]
    values = [float(found[0]) for found in numbers if len(found) == 1]  # not "17.1 ± 1.1"
    if len(values) == 2 and (mark.line, *values) in apart:
        return True
    has_one = mark.spot != "dress" and any(one in logged for one in both)
    return has_one or all(one in made for one in both)


def _misread(marks: Iterable[Mark], sheets: Sequence[Sheet]) -> set[tuple[int, str]]:
    """Rows and rules, where a rule that guesses finds so much of a table wrong."""
    tables = {line: nth for nth, sheet in enumerate(sheets) for line in sheet.table.lines}
    found: dict[tuple[int, str, str], set[int]] = defaultdict(set)
    for mark in marks:
        if mark.code in GUESSING and mark.line in tables and mark.spot not in SURE:
            rule = mark.spot if mark.spot in ("summit", "lone") else ""
            found[tables[mark.line], mark.code, rule].add(mark.line)
    rows = Counter(tables.values())
    return {
        (line, code)
        for (table, code, _), lines in found.items()
        if len(lines) >= MANY and PART * len(lines) >= rows[table]
        for line in lines
    }


def _is_derived(
    mark: Mark, book: Book, spoken: Sequence[Sentence], fine: Collection[tuple[int, str]]
) -> bool:
    """Whether tables, or other sentences, give a number that a rule found no source of."""
    if mark.code not in UNDERIVED:
        return False
    alone = mark.code == "number-without-source"
    for sentence in spoken:
        for said in sentence.numbers if mark.line in sentence.lines else ():
            if mark.spot != f"said {said.text}" or sentence.line(said.start) != mark.line:
                continue
            if follows(book, sentence, said) or _is_contrasted(mark, sentence, said):
                return True
            if alone and (_is_product(sentence, said) or _is_of_alike(book, said)):
                return True
            if alone and _is_count(book, said):
                return True
            if alone and _is_repeated(sentence, said, spoken, fine):
                return True
    return False


def _is_borne_out(mark: Mark, book: Book, spoken: Sequence[Sentence]) -> bool:
    """Whether a test is one of a table, or the only number of a sentence is of a name in it."""
    own = [one for one in spoken if mark.line in one.lines]
    if mark.code == "check.test":
        return any(is_shown(book, one, mark.text) for one in own)
    if mark.code not in ("check.not-same", "check.anothers"):
        return False
    return any(
        mark.spot == f"said {said.text}" and is_of_named(book, one, said)
        for one in own
        if not any(place.is_of_training for place in one.places)
        for said in one.numbers
    )


def _stands_there(mark: Mark, book: Book, spoken: Sequence[Sentence]) -> bool:
    """Whether a table has the number beside a step at that step, of whatever is named of it."""
    if mark.spot == "lone":
        return any(_is_own_end(sheet, mark) for sheet in book.sheets)
    for sentence in spoken if mark.spot in ("placed", "peak") else ():
        for place in sentence.places if mark.line in sentence.lines else ():
            said = value_beside(sentence, place)
            if said is None or sentence.text[place.start : place.end] != mark.text:
                continue
            if mark.spot == "peak" and BEST.search(sentence.plain[: place.end]):
                continue  # it may stand there and be no best
            if said.figure.digits >= NAMING and any(
                _is_at(sheet, sentence, place, said) for sheet in book.sheets
            ):
                return True
    return False


def _is_own_end(sheet: Sheet, mark: Mark) -> bool:
    """Whether a row is highest, or lowest, in the column that is called as the step is."""
    if mark.line not in sheet.table.lines:
        return False
    row, titled = sheet.table.lines.index(mark.line), _titled(sheet)
    cells = [one for one in sheet.cells if one.row == row and not one.part and one.column in titled]
    values = {titled[one.column]: one.figure.value for one in cells}
    own = values.get(mark.text)
    return own is not None and own in (max(values.values()), min(values.values()))


def _titled(sheet: Sheet) -> dict[int, str]:
    """The columns that are called by a whole number, which may be a step."""
    titles = {nth: bare(title).strip() for nth, title in enumerate(sheet.table.header) if nth}
    return {nth: title for nth, title in titles.items() if title.isdigit()}


def _is_told_there(mark: Mark, spoken: Sequence[Sentence]) -> bool:
    """Whether a sentence gives a number right beside the step at which it stands."""
    right = mark.facts.get("at", ())
    return any(
        said is not None and said.figure.value == mark.facts.get("value")
        for sentence in spoken
        for place in (sentence.places if mark.line in sentence.lines else ())
        if place.at in right
        for said in (value_beside(sentence, place),)
    )


def _is_at(sheet: Sheet, sentence: Sentence, place: At, said: Said) -> bool:
    """Whether a table has a number at a step, in a row or column that is named if any is."""
    rows = {nth for nth, at in sheet.counts.items() if (sheet.axis, at) == (place.axis, place.at)}
    columns = {
        nth for nth, at in sheet.across.items() if (sheet.across_axis, at) == (place.axis, place.at)
    }
    columns |= {nth for nth, title in _titled(sheet).items() if float(title) == place.at}
    named = refs(sheet, sentence, 0, len(sentence.text))
    return any(
        (cell.row in rows and (not named.columns or cell.column in named.columns))
        or (cell.column in columns and (not named.rows or cell.row in named.rows))
        for cell in sheet.cells
        if not cell.part and prints(said.figure, cell.figure)
    )


def _is_contrasted(mark: Mark, sentence: Sentence, said: Said) -> bool:
    """Whether a sentence has the number that another should have been as well: "30.4 vs 30.5"."""
    right = re.escape(str(mark.facts.get("value", "")).strip("%+-"))
    rest = f"{sentence.plain[: said.start]} {sentence.plain[said.end :]}"
    return bool(right) and bool(re.search(rf"(?<![\d.]){right}(?!\d|\.\d)", rest))


def _is_count(book: Book, said: Said) -> bool:
    """Whether a number may count the rows of a table: "higher at the other 11 points"."""
    most = max((len(sheet.table.rows) for sheet in book.sheets), default=0)
    return not said.figure.decimals and said.kind != "share" and said.figure.value <= most


def _is_product(sentence: Sentence, said: Said) -> bool:
    """Whether a count is the product of two whole numbers of its sentence: "4 sizes × 4 shots"."""
    whole = [float(one) for one in re.findall(r"(?<![\d.])\d{1,4}(?![\d.%])", sentence.plain)]
    value = said.figure.value
    return not said.figure.decimals and any(
        one * other == value for one, other in combinations(whole, 2) if min(one, other) > 1
    )


def _is_of_alike(book: Book, said: Said) -> bool:
    """Whether a number is the gap of two rows that are called alike: "tokens at 0", "at 400"."""
    for sheet in book.sheets:
        rows: dict[str, list[int]] = defaultdict(list)
        for nth, row in enumerate(sheet.table.rows):
            rows[re.sub(r"[\d.]+", "", row[0])].append(nth)
        for cell, other in combinations((c for c in sheet.cells if not c.part), 2):
            if cell.column != other.column or cell.figure.decimals != said.figure.decimals:
                continue
            both = {cell.row, other.row}
            alike = any(both <= set(each) for name, each in rows.items() if name.strip("* "))
            gap = abs(cell.figure.value - other.figure.value)
            if alike and abs(gap - abs(said.figure.value)) <= EXACT:
                return True
    return False


def _is_repeated(
    sentence: Sentence, said: Said, spoken: Sequence[Sentence], fine: Collection[tuple[int, str]]
) -> bool:
    """Whether another sentence has the same gap, and its tables give it there."""
    digits = said.text.lstrip("+-±")
    return is_gap(sentence, said) and any(
        one.text.lstrip("+-±") == digits
        and one.kind == said.kind
        and (other.line(one.start), digits) in fine
        and is_gap(other, one)
        for other in spoken
        if other is not sentence
        for one in other.numbers
    )


def _adds_up(mark: Mark, spoken: Sequence[Sentence]) -> bool:
    """Whether a number is what two others of its sentence give, or gives one with another."""
    if mark.code not in OF_SENTENCES or not _PLAIN.fullmatch(mark.text):
        return False
    digits = re.sub(r"[^\d.]", "", mark.text)
    for sentence in spoken:
        if mark.line not in sentence.lines:
            continue
        own = [one for one in sentence.numbers if re.sub(r"[^\d.]", "", one.text) == digits]
        others = [one for one in sentence.numbers if one not in own]
        for one in own:
            for left, right in combinations(others, 2):
                trios = [(one, left, right), (left, one, right), (right, one, left)]
                # What has no source but its sentence may be a change from the wrong end.
                if mark.code == "number-without-source":
                    trios = trios[: one.kind != "share"]
                if any(_gives(*trio, way=direction(sentence, trio[0])) for trio in trios):
                    return True
    return False


def _gives(made: Said, left: Said, right: Said, *, way: int) -> bool:
    """Whether a number is the gap of two others, or their relative gap in percent.

    So many percent more are of the smaller of the two, so many less of the greater.
    """
    one, first, second = made.figure, left.figure, right.figure
    if one.digits < 2 or not (first.decimals or second.decimals):
        return False
    gap = abs(first.value - second.value)
    slack = EXACT + (one.half if one.decimals < first.decimals else 0.0)
    if (left.kind, right.kind) == ("share", "share") or made.kind != "share":
        return first.decimals == second.decimals and abs(abs(one.value) - gap) <= slack
    bases = sorted(abs(each.value) for each in (first, second) if each.value)
    bases = bases[:1] if way > 0 else bases[-1:] if way < 0 else bases
    return any(abs(abs(one.value) - 100 * gap / base) <= one.half + EXACT for base in bases)
