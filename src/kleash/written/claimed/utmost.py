"""Values that a sentence gives as the most or the least of something, and that no table has there.

"The largest effect is that of X (-0.115)": whatever X is, the number stands in a table, and in some
line of it, a row or a column, it must be at an end. What a change is, "A → B", is for `strides`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kleash.imports.markdown.text import bare
from kleash.written.book import Book
from kleash.written.claimed.mentions import APART, KINDS, QUANTITIES, concepts
from kleash.written.claimed.readings import Clause, Line, Shelf, clauses, outside
from kleash.written.claimed.superlatives import is_denied
from kleash.written.fitting import NAMING, prints
from kleash.written.gaps import is_gap
from kleash.written.marks import Mark
from kleash.written.mirrored import is_square
from kleash.written.printed import AXIS, Cell, Sheet, axis_word, squeezed
from kleash.written.prose import Name, Said, Sentence, is_rough

LEAST = 3  # cells of a line that has an end
NEAR = 4  # letters between a step and the word behind it
_B, _E = r"(?<![a-z])", r"(?![a-z])"
_WORD = re.compile(
    rf"(?P<high>最[高大多长]|{_B}(?:highest|largest|greatest|biggest|longest|peaks|peaked){_E})|"
    rf"(?P<low>最[低小少短]|{_B}(?:lowest|smallest|shortest|fewest){_E})|"
    rf"(?P<best>最[佳好优]|{_B}best{_E})|(?P<worst>最[差坏]|{_B}worst{_E})|"
    rf"(?P<pair>最(?:接近|相似|远)|{_B}(?:closest|nearest|furthest|farthest|"
    rf"most (?:distant|similar|alike)){_E})"
)
_OF_AXIS = re.compile(rf"\s?(?P<axis>{AXIS})s?\s?(?:数|counts?|numbers?)?\s?(?:是|为|is|was|:)")
_OWN = re.compile(rf"{_B}(?:its|their)\s?$")
_WHOSE = re.compile(r"\s(?:[a-z]+\s){0,2}of\s")
_SUBSET = re.compile(
    rf"[带有加含]\s?kl|受约束|训练过|其中|剩|其余|另|[两二三四五六]者中|[前后]\s?[\d一二两三四五六几]|之[前后]|以[前后]|只看|"
    rf"{_B}(?:these|those|them|which|rest|remaining|first|last|before|after|within|until|since|"
    rf"so far|trained|penali[sz]ed|regulari[sz]ed|only|both|yet|ever|any|other|another){_E}"
)
_OTHER = re.compile(rf"比|于|{_B}(?:than|vs|versus|against|over|above|below|while|but){_E}|[;。]")
_CHANGED = re.compile(
    rf"[降升涨跌增减]|提[高升]|变化|影响|波动|回落|差|领先|落后|"
    rf"{_B}(?:gain\w*|drop\w*|falls?|rises?|changes?|effects?|gap|differences?|improve\w*|jump|lead|"
    rf"los[et]s?|swing|increase|decrease|costs?){_E}"
)
_CHANGES = frozenset(("change", "gap", "drop", "gain", "spread", "range"))
_OF_SOME = frozenset(("mean", "spread", "range", "gap", "change"))
_SIGNED = re.compile(r"^[\s*(]*[+\-−]")
_BESIDE = re.compile(r"(?:[的值点为是在达:,\s]|is|was|at|in|of|with)*")
_REACHED = re.compile(
    rf"(?:[从由自到至其](?:最[终后])?|它的|第[一二]个|"
    rf"{_B}(?:from|to|at|reach\w*|by)(?: its| their| the)?)\s*$"
)
_AGAINST = re.compile(rf"[与和对比较]|{_B}(?:between|over|against|than|from|with|to){_E}")
_BRACKET = re.compile(r"\(([^()]*)\)")
_ARROW = re.compile(r"→|->")
_NUMBERED = re.compile(
    r"(?:[a-z\u4e00-\u9fff=]{0,8}\s?)?(\d+(?:\.\d+)?)(?:\s?[a-z\u4e00-\u9fff]{1,8})?"
)


@dataclass(frozen=True)
class Utmost:
    """A word, the numbers given with it, and what it says of the lines that are meant."""

    clause: Clause
    word: re.Match[str]
    numbers: tuple[Said, ...]
    axis: str = ""
    """What is counted along the line, where the word says so: "the best epoch is 3 (0.7)"."""
    own: str = ""
    """Whether it is the end of what is named: "its worst seed", "the best of A"."""

    @property
    def sentence(self) -> Sentence:
        return self.clause.sentence

    @property
    def sense(self) -> str:
        return self.word.lastgroup or ""

    def may_own(self, name: Name) -> bool:
        """Whether a name stands where it says whose end it is: behind "of", else before it."""
        if self.own == "of":
            return self.word.end() <= name.start < self.numbers[0].start
        return name.end <= self.word.start()

    @property
    def has_arrow(self) -> bool:
        """Whether it is of a change from one number to another."""
        start, end = self.numbers[0].end, self.numbers[-1].start
        return bool(_ARROW.search(self.sentence.plain, start, max(start, end)))

    @property
    def is_change(self) -> bool:
        """Whether it is of how much something changed, or is ahead."""
        text = self.sentence.plain[self.clause.start : self.numbers[0].start]
        return bool(_CHANGED.search(text)) or is_gap(self.sentence, self.numbers[0])


def false_utmosts(book: Book, every: Sequence[Shelf], spoken: Sequence[Sentence]) -> Iterator[Mark]:
    """Numbers that are called the most of something and are at no end of any line."""
    for one in utmosts(book, spoken):
        if one.has_arrow:
            continue
        said = next((each for each in one.numbers if _tells(one, each)), None)
        short = next((each for each in one.numbers if each.figure.decimals), None)
        ahead = _ahead(book, every, one, said) if said else None
        if said is None and short is not None:
            ahead = _ahead(book, every, one, short, named=True)
        if ahead is not None:
            yield mark_of(one, ahead.line, _plain(ahead))


def mark_of(one: Utmost, line: int, value: str) -> Mark:
    """The mark of a word, with what is ahead of the number that goes with it."""
    text = one.sentence.text[one.word.start() : one.word.end()]
    facts: dict[str, object] = {"value": value, "other": line}
    return Mark(one.sentence.line(one.word.start()), text, "wrong", "check.not-most", facts, "most")


def utmosts(book: Book, spoken: Sequence[Sentence]) -> Iterator[Utmost]:
    """Every word of sentences that says most or least and has a number, of all that there are."""
    rows = {line for sheet in book.sheets for line in sheet.table.lines}
    for sentence in spoken:
        parts = clauses(sentence) if not rows & set(sentence.lines) else []
        for nth, clause in enumerate(parts):
            text = outside(clause.text)
            if not is_denied(parts[: nth + 1]) and not _SUBSET.search(text):
                yield from _told(parts, nth)


def _told(parts: Sequence[Clause], nth: int) -> Iterator[Utmost]:
    """The words of a clause that a number in brackets, or right behind them, goes with."""
    clause = parts[nth]
    sentence, end = clause.sentence, _end(parts, nth)
    masked = sentence.plain[: clause.start] + outside(clause.text) + sentence.plain[clause.end :]
    words = list(_WORD.finditer(masked, clause.start, clause.end))
    for at, word in enumerate(words):
        last = words[at + 1].start() if at + 1 < len(words) else end
        numbers = _numbers(sentence, word.end(), last)
        if not numbers or _is_of_another(sentence, word.end(), numbers[0].start):
            continue
        axis = _axis(sentence, word, numbers[0].start)
        own = "its" if _OWN.search(sentence.plain[: word.start()]) else ""
        own = "of" if _WHOSE.match(sentence.plain, word.end()) else own
        reached = not own and _REACHED.search(sentence.plain[: word.start()])
        whose = word.lastgroup in ("best", "worst") or word.group().startswith("peak")
        if not reached and (axis or own or not whose):
            yield Utmost(clause, word, numbers, axis, own)


def _axis(sentence: Sentence, word: re.Match[str], end: int) -> str:
    """What is counted where a word says so, or stands right behind a step: "in epoch 2".

    "The lowest at step 200 is A" is one of those at that step.
    """
    told = _OF_AXIS.match(sentence.plain, word.end())
    if told:
        return axis_word(told["axis"])
    behind = [one for one in sentence.places if 0 <= one.start - word.end() <= NEAR]
    if behind and behind[0].is_of_training:
        named = any(behind[0].end <= one.start < end for one in sentence.names)
        return behind[0].axis if not named else ""
    before = [one for one in sentence.places if 0 <= word.start() - one.end <= NEAR]
    step = before and "时" not in sentence.plain[before[-1].end : word.start()]
    return before[-1].axis if step and before[-1].is_of_training else ""


def _is_of_another(sentence: Sentence, start: int, end: int) -> bool:
    """Whether what stands between a word and a number leads to another: "A is best, 800 …"."""
    rest = outside(sentence.plain[start:end])
    comma = "，" in sentence.text[start:end].partition("（")[0] and ":" not in rest
    return comma or bool(_OTHER.search(rest))


def _end(parts: Sequence[Clause], nth: int) -> int:
    """Where what a clause says ends: behind a colon it goes on, and on behind a step."""
    sentence, last = parts[nth].sentence, nth
    while last + 1 < len(parts) and last < nth + 2:
        between = sentence.plain[parts[last].end : parts[last + 1].start]
        step = last > nth and not any(
            parts[last].start <= one.start < parts[last].end for one in sentence.numbers
        )
        if ":" not in between and not step:
            break
        last += 1
    return parts[last].end


def _numbers(sentence: Sentence, start: int, end: int) -> tuple[Said, ...]:
    """The numbers in the first bracket behind a word, those of "A → B", or the one beside it."""
    inside = [one for one in sentence.numbers if start <= one.start < end]
    inside = [one for one in inside if not is_rough(sentence, one)]
    arrow = _ARROW.search(sentence.plain, start, end)
    bracket = _BRACKET.search(sentence.plain, start, end)
    if arrow and len(inside) > 1:
        return tuple(inside[:3])
    if bracket:
        return tuple(one for one in inside if bracket.start() < one.start < bracket.end())
    if not inside:
        return ()
    steps = {at for one in sentence.places for at in range(one.start, one.end)}
    between = (sentence.plain[at] for at in range(start, inside[0].start) if at not in steps)
    return tuple(inside[:1]) if _BESIDE.fullmatch("".join(between).rstrip("+-")) else ()


def _plain(cell: Cell) -> str:
    return cell.number.text.split()[0].strip("*%") if cell.number.text.split() else ""


def _ahead(
    book: Book, every: Sequence[Shelf], one: Utmost, said: Said, *, named: bool = False
) -> Cell | None:
    """What is ahead of a number in a line that is meant, if it is at no end of any.

    One of few digits must have its label `named` with it.
    """
    near, need = book.section(one.sentence.line(one.word.start())), _needed(one)
    read = [each for each in _lines(every, said) if _is_meant(*each, one)]
    if one.axis or one.own or named:
        read = [each for each in read if each[0].sheet in near]
    if named:
        read = [each for each in read if is_named(each[0], each[2], one)]
    found = list[Cell]()
    for shelf, line, label in read:
        scope = _rivals(shelf, line, label)
        if len(scope) < LEAST - 1:
            continue
        if is_at_end([each.figure.value for each in scope], line.value(label), one.sense):
            return None
        fits = need <= line.words | shelf.about or is_named(shelf, label, one)
        if len(scope) >= LEAST and fits and _is_near(shelf, line, one, near):
            found.append(_furthest(scope, one))
    return found[0] if found else None


def _tells(one: Utmost, said: Said) -> bool:
    """Whether a number has digits enough to be known again, of changes that have a sign fewer."""
    signed = said.sign in ("+", "-") and one.is_change
    return said.figure.digits >= NAMING - signed and said.figure.decimals > 0


def is_named(shelf: Shelf, label: int, one: Utmost) -> bool:
    """Whether the label of a number stands right before it: it is this table that is meant."""
    numbered = _NUMBERED.fullmatch(squeezed(bare(shelf.side.texts[label])))
    between = one.sentence.plain[one.word.end() : one.numbers[0].start]
    if numbered and re.search(rf"(?<![\d.]){re.escape(numbered[1])}(?!\d|\.\d)", between):
        return True
    return any(
        (each.row if shelf.side.is_rows else each.column) == label
        for each in one.sentence.names
        if each.sheet == shelf.sheet.nth and one.word.end() <= each.start < one.numbers[0].start
    )


def _furthest(scope: Sequence[Cell], one: Utmost) -> Cell:
    """The cell that is what another was called; of losses by their size."""
    values = [each.figure.value for each in scope]
    way = -1 if one.sense in ("low", "worst") else 1
    way = -way if max(values) <= 0 else way
    return scope[max(range(len(scope)), key=lambda at: way * values[at])]


def _needed(one: Utmost) -> frozenset[str]:
    """The quantities that a clause speaks of, but for those in the names of rows."""
    start = one.clause.start
    names = [
        (each.start - start, each.end - start)
        for each in one.sentence.names
        if each.row is not None
    ]
    return concepts(outside(one.clause.text), names) & QUANTITIES


def _scope(shelf: Shelf, line: Line, label: int) -> list[int]:
    """The labels that one is held against: of rows that are no quantities all but sums of some."""
    alike = shelf.scope(line, label)
    measured = [words for words in shelf.side.labels.values() if words & QUANTITIES]
    signed = all(_SIGNED.match(cell.number.text) for cell in line.cells.values())
    apart = 2 * len(measured) > len(shelf.side.labels) or not signed
    if not shelf.side.is_rows or (shelf.side.is_metrics and apart):
        return alike
    unit, own = line.cells[label].figure.unit, _kind(shelf, label)
    return [
        at
        for at, cell in line.cells.items()
        if at in alike or (_kind(shelf, at) == own and cell.figure.unit == unit)
    ]


def _kind(shelf: Shelf, label: int) -> tuple[frozenset[str], bool]:
    """Of what kind a row is: one of what was run, or made of others."""
    side = shelf.side
    return side.labels[label] & _OF_SOME, bool(APART.search(side.texts[label]))


def _lines(every: Sequence[Shelf], said: Said) -> Iterator[tuple[Shelf, Line, int]]:
    """Every line that has a number, and the label that it has it for."""
    for shelf in every:
        for line in shelf.lines():
            for label, cell in line.cells.items():
                same = cell.figure.decimals == said.figure.decimals
                turned = bool(said.sign) and said.figure.value * cell.figure.value < 0
                if same and not turned and prints(said.figure, cell.figure):
                    yield shelf, line, label


def _is_meant(shelf: Shelf, line: Line, label: int, one: Utmost) -> bool:
    """Whether a line may be the one: along what the word counts, or of what it names."""
    sheet, is_rows = shelf.sheet, shelf.side.is_rows
    if one.sense == "pair":
        return is_square(sheet)
    names = [each for each in one.sentence.names if each.sheet == sheet.nth and one.may_own(each)]
    named = {each.column if is_rows else each.row for each in names} - {None}
    if one.axis:
        counted = sheet.axis if is_rows else sheet.across_axis
        return counted == one.axis and (not named or line.at in named)
    if one.own:
        return line.at in named and bool(line.words - KINDS - QUANTITIES)
    counts = sheet.across if is_rows else sheet.counts
    counted = sheet.across_axis if is_rows else sheet.axis
    start, end = one.clause.start, one.clause.end
    told = {at.at for at in one.sentence.places if start <= at.start < end and at.axis == counted}
    return not told or line.at not in counts or counts[line.at] in told


def _rivals(shelf: Shelf, line: Line, label: int) -> list[Cell]:
    """The cells that one is held against: of its line, or all pairs of a table of pairs."""
    if is_square(shelf.sheet):
        return _pairs(shelf.sheet, line.cells[label])
    decimals = line.cells[label].figure.decimals
    scope = [line.cells[at] for at in _scope(shelf, line, label)]
    return [one for one in scope if one.figure.decimals == decimals]


def _is_near(shelf: Shelf, line: Line, one: Utmost, near: Sequence[Sheet]) -> bool:
    """Whether a line is under the same heading, and of changes if the word is of one."""
    cells = line.cells.values()
    title = shelf.other.texts.get(line.at, "")
    signed = all(_SIGNED.match(each.number.text) or not each.figure.value for each in cells)
    text = one.sentence.plain[one.clause.start : one.word.start()]
    if one.is_change and _AGAINST.search(text):
        return False  # of which two it is the gap only words tell
    gaps = signed or bool(line.words & _CHANGES) or bool(APART.search(title))
    return shelf.sheet in near and gaps == one.is_change


def is_at_end(values: Sequence[float], value: float, sense: str) -> bool:
    """Whether a value is at the end of others that a word speaks of; of changes at either."""
    sizes = [abs(each) for each in values]
    ends = {"high": {max(values), max(sizes)}, "low": {min(values), min(sizes)}}
    both = {*ends["high"], *ends["low"], -max(sizes), -min(sizes)}
    if sense not in ends or min(values) < 0:
        return value in both
    return value in ends[sense]


def _pairs(sheet: Sheet, cell: Cell) -> list[Cell]:
    """All cells of such a table but those of a thing with itself."""
    return [each for each in sheet.cells if each.part == cell.part and each.column != each.row + 1]
