"""What all arms are said to do along their steps, and which of them is said not to.

"All four rise", "四个 β 的 KL 都是逐轮下降, 只有 0.14 例外". A bundle is the courses of one
quantity by arm: down the columns of a table of steps, along its rows, or in a table whose rows are
an arm and an epoch. Without a word such as "at every step" only the ends of a course are asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from kleash.imports.markdown.text import bare
from kleash.written.book import Book
from kleash.written.claimed.contrasts import TURN
from kleash.written.claimed.courses import STRICT, is_limited
from kleash.written.claimed.mentions import APART, KINDS, QUANTITIES, concepts
from kleash.written.claimed.reach import Stretch, counts, stretches, within
from kleash.written.claimed.readings import Clause, Shelf, clauses, outside
from kleash.written.marks import Mark
from kleash.written.printed import AXIS, Sheet, named, squeezed
from kleash.written.prose import Sentence
from kleash.written.told.things import column_keys, keys_of, mentions, row_keys
from kleash.written.told.tracks import by_arm

LEAST = 2  # arms, and points of a course
_B, _E = r"(?<![a-z])", r"(?![a-z])"
_ALL = re.compile(
    rf"(?:所有|全部|各[组个臂]?|[两二三四五六七八]\s?[组个种条臂者]|\d\s?[组个种条])[^,;。:]{{0,24}}?[都均]|"
    rf"{_B}(?:both|(?:all(?: of)?(?: the)?|every|each) "
    rf"(?!of |the |(?:{AXIS}|evaluation|point|time))\w+)"
)
_ONLY = re.compile(
    rf"(?:只有|唯有|仅有?|唯一[^,]{{0,6}}?是?)(?P<who>.+?)(?:是?例外|除外|相反|不是)|(?:例外|除外)[^,]{{0,3}}?是(?P<one>.+)|"
    rf"{_B}(?:except|but|apart from)(?: for)? (?P<but>.+)|"
    rf"{_B}the (?:only|one) exception (?:is|was) (?P<exception>.+)"
)
_PART = re.compile(rf"{_B}(?:of|between|with|than|as|when|if){_E}|随|比|于|占|差|越|间")
Bundle = Mapping[frozenset[str], Sequence[float]]


def false_bundles(book: Book, every: Sequence[Shelf], spoken: Sequence[Sentence]) -> Iterator[Mark]:
    """What is said of the courses of all arms, where one does not go so, or goes so as well."""
    for sentence in spoken:
        parts = clauses(sentence, fine=True)
        for nth, clause in enumerate(parts):
            text = outside(clause.text)
            word, turns = _ALL.search(text), list(TURN.finditer(text))
            if not word or len(turns) != 1 or is_limited(clause) or _PART.search(text):
                continue
            but = next((m for p in parts[nth + 1 : nth + 2] if (m := _only(p))), None)
            verdicts = [
                _holds(one, clause, turns[0], _named(book, clause, *but) if but else None)
                for one in _meant(book, every, clause)
            ]
            if verdicts and not any(verdicts):
                start, end = but or (clause.start + turns[0].start(), clause.start + turns[0].end())
                shown = sentence.text[start:end].strip()
                code = "check.not-the-one" if but else "check.not-all"
                yield Mark(sentence.line(start), shown, "wrong", code, {}, "every")


def _only(clause: Clause) -> tuple[int, int] | None:
    """Where a clause names what is an exception to the one before it."""
    match = _ONLY.search(clause.sentence.plain, clause.start, clause.end)
    return match.span(match.lastgroup or 0) if match else None


def _named(book: Book, clause: Clause, start: int, end: int) -> set[str]:
    """The keys of all that a part of a sentence names, and its own, if it is a name."""
    every = mentions(clause.sentence, book.sheets)
    found = {key for one in every if start <= one.start < end for key in one.keys}
    return found | keys_of([clause.sentence.plain[start:end].strip()], "")


def _holds(bundle: Bundle, clause: Clause, turn: re.Match[str], but: set[str] | None) -> bool:
    """Whether as many arms go the way that is said, and none of the exceptions."""
    way = 1 if turn.lastgroup == "up" else -1
    strict = bool(STRICT.search(outside(clause.text)))
    out = {keys for keys in bundle if but and keys & but}
    if but is not None and not out:
        return True  # who is excepted is not known
    kept = {keys for keys, values in bundle.items() if _goes(values, way, strict=strict)}
    told = [n for _, _, n in counts(outside(clause.text)) if n >= LEAST]
    least = min([len(bundle), *told[-1:]]) - len(out)
    return len(kept - out) >= least and not out & kept


def _goes(values: Sequence[float], way: int, *, strict: bool) -> bool:
    steps = [b - a for a, b in pairwise(values)] if strict else [values[-1] - values[0]]
    return all(way * step >= 0 for step in steps)


def _meant(book: Book, every: Sequence[Shelf], clause: Clause) -> Iterator[Bundle]:
    """The bundles of a quantity in the tables above, under the same heading."""
    line = clause.sentence.line(clause.start)
    above = [one for one in book.section(line) if one.line < line]
    need = concepts(outside(clause.text)) & QUANTITIES - {"step", "turns"}
    spans = stretches(clause.sentence, clause.start, clause.end)
    for shelf in every:
        if shelf.sheet in above[-1:] and need <= shelf.about and _has_arms(shelf):
            yield from _whole(book, clause, _of_steps(shelf, spans))
    for sheet in above:
        yield from _whole(book, clause, _of_rows(sheet, outside(clause.text), spans))


def _has_arms(shelf: Shelf) -> bool:
    """Whether a table has one quantity by arm along its steps."""
    labels = shelf.side.labels.values()
    return (
        bool(shelf.steps) and not shelf.side.is_metrics and not any(one & KINDS for one in labels)
    )


def _whole(book: Book, clause: Clause, bundle: Bundle) -> Iterator[Bundle]:
    """The arms of a bundle that are meant: those named, or all, if as many as are told."""
    arms = _named(book, clause, clause.start, clause.end)
    own = {keys: values for keys, values in bundle.items() if keys & arms} or bundle
    told = counts(outside(clause.text))
    if len(own) >= LEAST and (not told or told[-1][-1] == len(own)):
        yield own


def _of_steps(shelf: Shelf, spans: Sequence[Stretch]) -> Bundle:
    """The courses of a table of steps, over the stretches that are named."""
    keys_at = row_keys if shelf.side.is_rows else column_keys
    order = sorted(shelf.steps, key=lambda nth: shelf.steps[nth])
    lines = [shelf.line(nth) for nth in order if within(spans, shelf.steps[nth])]
    found = dict[frozenset[str], list[float]]()
    for label, text in shelf.side.texts.items():
        values = [line.value(label) for line in lines if label in line.cells]
        if len(values) >= LEAST and not APART.search(text):
            found[keys_at(shelf.sheet, label)] = values
    kinds = {(c.figure.decimals, c.figure.unit) for one in lines for c in one.cells.values()}
    return found if len(kinds) == 1 else {}  # else some hold ratios of others


def _of_rows(sheet: Sheet, text: str, spans: Sequence[Stretch]) -> Bundle:
    """The courses of a table whose rows are an arm and an epoch, in the column that is named."""
    header = [squeezed(bare(title)).strip() for title in sheet.table.header]
    every = [one for one in by_arm(sheet, "") if len(one.points) >= LEAST]
    columns = {one.quantity: int(one.quantity.split()[-1]) for one in every}
    said = [n for n in set(columns.values()) if any(named(text, header[n]))]
    longest = max(said, key=lambda n: len(header[n]), default=0)
    found = {}
    for one in every:
        values = [figure.value for at, figure in one.points.items() if within(spans, at)]
        if columns[one.quantity] == longest and len(values) >= LEAST:
            found[keys_of([one.arm], sheet.table.header[0])] = values
    return found
