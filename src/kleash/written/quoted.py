"""Numbers in sentences: which of them the tables account for, and whose they are.

A number that nothing accounts for stands alone. One that stands right behind the name of a row or
column, or behind a step, is that row's, column's or step's: if a table has it elsewhere, the
sentence and the table contradict each other.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations

from kleash.imports import Number
from kleash.written.accounts import WIDE, account, candidates, near, nearest
from kleash.written.book import Book, refs
from kleash.written.fitting import NAMING, Account, is_typo, pair, prints
from kleash.written.gaps import OR, is_end, is_gap
from kleash.written.made.rounded import for_hidden, is_of_printed
from kleash.written.marks import Mark, printed_as
from kleash.written.printed import figure_of
from kleash.written.prose import Said, Sentence, is_limit, is_rough, other_end
from kleash.written.ties import anchor, own_two
from kleash.written.told.subjects import Records
from kleash.written.told.vouched import is_vouched
from kleash.written.whose import said_mark, whose

FEW = 40  # numbers that another may have been meant to be
LISTED = 5  # numbers in a row, which are a course
UNLIKELY = 0.02  # that rounding alone made the last digit another
_COUNTED = re.compile(
    r"^(?:个\s?)?(?:steps?|epochs?|步|轮|次|updates?|iterations?|seeds?|组|张|卡|天|年|月|日)"
)
_SUMMED = re.compile(r"averag|(?<![a-z])mean|平均|均值|total|together|合计|总计")
_AVERAGED = re.compile(
    r"(?<![a-z])averaged over the (?:last|first|final)|"
    r"(?:后|末|最后)\s?\S{1,4}\s?(?:个?点|步|次)?\S{0,4}平均"
)
_LISTED = re.compile(r"[,、;:。](?!\d{3})")
_PART = re.compile(r"占|[是为约][^,。;]{1,12}的\s?\d|(?<![a-z])of (?:all|the|its|that)(?![a-z])")
_BETWEEN = re.compile(r"\s?%?\s?(?:[,、;/]|→|->|and|和)*\s?(?:and|和)?\s?")
_AWAY = re.compile(r"\d|[;。]|(?<![a-z])(?:and|but|while|ends?)(?![a-z])")
_CITED = re.compile(  # figures of others
    r"论文|文献|博客|官方|原文|社区|(?<![a-z])(?:papers?|blog|et al|reported by|reports?|authors?|"
    r"published|official|leaderboard)(?![a-z])|\[\d+\]"
)


@dataclass
class Quotes:
    """What came of the numbers of sentences: marks, and which numbers are accounted for."""

    marks: list[Mark] = field(default_factory=list)
    fine: set[tuple[int, str]] = field(default_factory=set)
    """By line and digits."""


def quoted(
    book: Book, every: Sequence[Sentence], listed: Sequence[Number], records: Records
) -> Quotes:
    """A mark for every number of a sentence that tables account for, or should.

    `listed` are numbers that the report gives as measured outside tables, too.
    """
    found, rough = Quotes(), list[tuple[Sentence, Said, Account]]()
    first = min((sheet.line for sheet in book.sheets), default=0)
    hidden: dict[str, float] = defaultdict(float)
    figures = [(one.where.line, figure) for one in listed if (figure := figure_of(one))]
    for sentence in every if book.sheets else ():
        told = [(said, account(book, sentence, said)) for said in sentence.numbers]
        known, vouched = _is_about_tables(sentence, told), set(_vouched(sentence))
        for said, one in told:
            line = sentence.line(said.start)
            same = [at for at, figure in figures if prints(said.figure, figure)]
            if one is None and same and (set(same) != {line} or "→" in sentence.text):
                _fine(found, sentence, said)
            elif one is None:
                shown = known and (line > first or known > 1 or bool(sentence.names))
                out = said not in vouched and _stands_out(book, sentence, said, told, shown=shown)
                if out and not _is_known(book, records, sentence, said):
                    _add(found, _alone(book, sentence, said))
            elif one.exact or one.chance >= WIDE:
                hidden[one.kind] += for_hidden(one.chance, odd=False) if one.chance < WIDE else 0
                _fine(found, sentence, said)
            elif one.chance <= UNLIKELY:
                _add(found, _alone(book, sentence, said))
            else:
                hidden[one.kind] += for_hidden(one.chance, odd=True)
                rough.append((sentence, said, one))
        found.marks += whose(book, sentence)
    for sentence, said, one in rough:
        if is_of_printed(hidden, one.kind):
            _add(found, _alone(book, sentence, said))
        else:
            _fine(found, sentence, said)
    return found


def _is_known(book: Book, records: Records, sentence: Sentence, said: Said) -> bool:
    """Whether a table prints a number to the digit, or a course gives it."""
    same = (
        cell.figure.decimals == said.figure.decimals and prints(said.figure, cell.figure)
        for cell in book.cells
    )
    return (said.figure.decimals > 1 and any(same)) or is_vouched(records, sentence, said)


def _add(found: Quotes, mark: Mark | None) -> None:
    found.marks += [] if mark is None else [mark]


def _is_about_tables(sentence: Sentence, told: Sequence[tuple[Said, Account | None]]) -> int:
    """2 if a number of a sentence surely is a table's, 1 if the sentence may speak of one, else 0.

    Where several numbers are in no table, they are of something else.
    """
    alone = [said for said, one in told if one is None and said.figure.decimals]
    if any(one is not None and one.exact and said.figure.digits >= NAMING for said, one in told):
        return 2
    if len(alone) > 1:
        return 0
    gaps = any(is_gap(sentence, said) for said in alone)
    words = bool(_SUMMED.search(sentence.plain))
    return int(bool(sentence.names or sentence.places or gaps or words or not alone))


def _stands_out(
    book: Book,
    sentence: Sentence,
    said: Said,
    told: Sequence[tuple[Said, Account | None]],
    *,
    shown: bool | int,
) -> bool:
    """Whether a number without an account should have one; a gap of two beside it always."""
    own = is_gap(sentence, said) and own_two(sentence, said) is not None
    if _CITED.search(sentence.plain) or is_limit(sentence, said):
        return False
    if other_end(sentence, said) not in (None, said.figure.decimals):
        return False
    if not own and (_is_off_tables(book, sentence, said) or _is_listed(sentence, said, told)):
        return False
    subject = is_subject(book, sentence, said) and bool(shown or own)
    return subject and not _is_not_shown(book, sentence, said, told)


def _is_listed(sentence: Sentence, said: Said, told: Sequence[tuple[Said, Account | None]]) -> bool:
    """Whether a number is one of a list of which several are in no table: a course of its own."""
    runs: list[list[tuple[Said, Account | None]]] = [[]]
    for one, known in told:
        gap = sentence.plain[runs[-1][-1][0].end : one.start] if runs[-1] else ""
        if not _BETWEEN.fullmatch(gap):
            runs.append([])
        runs[-1].append((one, known))
    own = next((run for run in runs if any(one is said for one, _ in run)), [])
    return len(own) >= LISTED and sum(known is None for _, known in own) > 1


def _is_off_tables(book: Book, sentence: Sentence, said: Said) -> bool:
    """Whether a number is given for a step, right beside it, that no table has."""
    beside = [
        place
        for place in sentence.places
        if place.is_of_training
        and not _AWAY.search(sentence.plain, place.end, said.start)
        and not _AWAY.search(sentence.plain, said.end, place.start)
    ]
    counted = {
        at for sheet in book.sheets for at in (*sheet.counts.values(), *sheet.across.values())
    }
    return bool(beside) and not any(place.at in counted for place in beside)


def _is_not_shown(
    book: Book, sentence: Sentence, said: Said, told: Sequence[tuple[Said, Account | None]]
) -> bool:
    """Whether a number is where something began that tables have only the end of."""
    if not is_end(sentence, said):
        return False
    for other, one in told:
        if one is None or one.kind != "printed" or not is_end(sentence, other):
            continue
        sheet = book.sheets[one.cells[0].table]
        named = refs(sheet, sentence, 0, len(sentence.text))
        return not sheet.counts and max(len(named.rows), len(named.columns)) < 2
    return False


def _vouched(sentence: Sentence) -> Iterator[Said]:
    """Numbers that another of their sentence was rightly worked out of, wherever they are from."""
    for said in sentence.numbers:
        others = [one for one in sentence.numbers if one is not said][:6]
        if not is_gap(sentence, said) or said.figure.digits < NAMING - 1:
            continue
        for one, other in combinations(others, 2):
            long = min(one.figure.digits, other.figure.digits) >= NAMING
            if long and any(each.exact for each in pair(said, one.figure, other.figure, ())):
                yield from (one, other)


def _fine(found: Quotes, sentence: Sentence, said: Said) -> None:
    found.fine.add((sentence.line(said.start), said.text.lstrip("+-±")))
    if said.figure.decimals and said.figure.digits > 1:
        found.marks.append(said_mark(sentence, said, "right", "check.quoted", {}))


def is_subject(book: Book, sentence: Sentence, said: Said) -> bool:
    """Whether a number claims to be measured or worked out: by its digits, or by what it is of."""
    if is_gap(sentence, said) and own_two(sentence, said):
        return True
    if said.figure.digits < 2 or _COUNTED.match(said.unit) or said.sign == "±":
        return False
    if said.figure.decimals or said.kind in ("points", "times"):
        return True
    if is_gap(sentence, said):
        return bool(said.unit or said.kind) and said.figure.digits > 1
    unit = said.unit.removeprefix("个").strip()
    return len(unit) > 1 and said.figure.digits >= NAMING and _heads(book, unit)


def _heads(book: Book, unit: str) -> bool:
    """Whether a row or column is counted in a unit: "GPU-hours", "length (tokens)"."""
    for sheet in book.sheets:
        for aliases in (*sheet.rows, *sheet.columns):
            for alias in aliases:
                if alias == unit or re.search(rf"\({re.escape(unit)}s?\)$", alias):
                    return True
                if re.search("[-/]", unit) and alias.startswith(unit):
                    return True
    return False


def _alone(book: Book, sentence: Sentence, said: Said) -> Mark | None:
    """The mark of a number that nothing accounts for, if it is clear what it should have been."""
    meant = near(book, sentence, said) if said.figure.decimals and sentence.names else None
    if meant is not None and other_end(sentence, said) is not None:
        meant = meant if _is_printed(book, meant, said.figure.decimals) else None
    unit = 10.0**-said.figure.decimals
    off = 0.0 if meant is None else abs(abs(meant) - abs(said.figure.value))
    if meant is not None and off < 1.5 * unit and is_rough(sentence, said):
        return None
    tied = (
        is_gap(sentence, said)
        or _is_behind(sentence, said)
        or (said.kind == "share" and bool(anchor(book, sentence, said)))
    )
    averaged = bool(_AVERAGED.search(sentence.plain)) and not tied
    if meant is not None and (off < 1.5 * unit or tied) and not averaged:
        value = printed_as(abs(meant), "", said.figure.decimals) + "%" * (said.kind == "share")
        if value.strip("%") != said.text.lstrip("+-"):
            return said_mark(sentence, said, "wrong", "check.slip", {"value": value})
    if not _is_typed_wrong(book, sentence, said) or said.figure.digits < 2:
        return None
    nearest_ = nearest(said, book.cells)
    text = sentence.text.strip()
    facts: dict[str, object] = {"text": text, "number": said.text, "nearest": nearest_}
    return said_mark(sentence, said, "unsupported", "number-without-source", facts)


def _is_printed(book: Book, value: float, decimals: int) -> bool:
    """Whether a table has a number so long: ends of ranges are often rounded outward."""
    unit = 10.0**-decimals
    return any(
        cell.figure.decimals == decimals and abs(abs(cell.figure.value) - abs(value)) < unit / 4
        for cell in book.cells
    )


def _is_typed_wrong(book: Book, sentence: Sentence, said: Said) -> bool:
    """Whether a number must follow from a table, or is a digit or two off what it may be of.

    A gap must, and a mean or total; other numbers may be of what no table shows, and so may the gap
    of two means.
    """
    summed = _is_summed(sentence, said)
    if is_gap(sentence, said) and own_two(sentence, said) is not None:
        return True
    if _is_behind(sentence, said):
        return True
    part = said.kind == "share" and bool(_PART.search(sentence.plain[: said.start + 40]))
    if (
        is_gap(sentence, said) != summed
        or part
        or (said.kind == "share" and anchor(book, sentence, said))
    ):
        return True
    if any(map(partial(_is_typo, said), _numbered(book))):
        return True  # an arm by its coefficient alone
    few = {round(value, 9) for value in candidates(book, sentence, said)}
    typed = said.figure.digits >= NAMING and len(few) <= FEW
    return typed and any(map(partial(_is_typo, said), few))


def _numbered(book: Book) -> set[float]:
    """Numbers of three digits that rows or columns are called by."""
    names = {one for sheet in book.sheets for own in (*sheet.rows, *sheet.columns) for one in own}
    return {float(one) for one in names if re.fullmatch(r"\d\.\d{3,}", one)}


def _is_behind(sentence: Sentence, said: Said) -> bool:
    """Whether a share stands right behind a gap: "0.006 less (0.075 %)"."""
    before = [one for one in sentence.numbers if one.end <= said.start][-1:]
    gap = said.kind == "share" and bool(before) and is_gap(sentence, before[0])
    return gap and bool(OR.fullmatch(sentence.plain, before[0].end, said.start))


def _is_summed(sentence: Sentence, said: Said) -> bool:
    """Whether a number is called a mean or a total, alone in its clause."""
    plain = sentence.plain
    first = max((m.end() for m in _LISTED.finditer(plain, 0, said.start)), default=0)
    after = _LISTED.search(plain, said.end)
    last = after.start() if after else len(plain)
    alone = sum(first <= one.start < last for one in sentence.numbers) == 1
    return alone and bool(_SUMMED.search(plain, first, last))


def _is_typo(said: Said, value: float) -> bool:
    return is_typo(abs(said.figure.value), abs(value), said.figure.decimals)
