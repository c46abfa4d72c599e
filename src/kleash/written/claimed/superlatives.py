"""What is called the highest, lowest, fastest or cheapest, and is not in any line that is meant.

A number behind the name pins the cell that is meant; without one the clause must name the quantity.
Seconds, steps and scores are left apart: "fastest" is least time or most tokens per second.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kleash.written.book import Book
from kleash.written.claimed.degrees import DEGREES, OPPOSITE, WAYS
from kleash.written.claimed.mentions import KINDS, QUANTITIES, Mention, concepts
from kleash.written.claimed.reach import NUMBER, numeral
from kleash.written.claimed.readings import (
    Clause,
    Line,
    Shelf,
    asked,
    clauses,
    complete,
    outside,
    single,
)
from kleash.written.fitting import prints
from kleash.written.marks import Mark
from kleash.written.printed import Cell, Figure, squeezed
from kleash.written.prose import Sentence

NEAR = 6  # letters between a word and the step at which it holds
Beaten = tuple[Cell, Cell]
"""A cell that is called the most, and one that is ahead of it."""
CHANGES = frozenset(("drop", "gain", "change", "gap"))
LEAST = 3  # labels of a line that has a highest
_B, _E = r"(?<![a-z])", r"(?![a-z])"
_LIMITED = re.compile(
    rf"第[二三四五]|次[高低优之]|其次|之一|除|其余|其他|其它|不是|并非|并不|未必|不一定|不见得|以外|之外|排第|"
    rf"至少|最多[^的]|接近最|不再|是否|如果|若|"
    rf"{_B}(?:second|third|next|runner|except|among|others?|not|no longer|one of|apart|excluding|"
    rf"at most|at least|nor|if|would|almost|but for){_E}|n't"
)
_SOME = re.compile(
    r"(?:带|有|加|含)\s?kl\s?的|受约束|训练过|"
    rf"{_B}(?:trained|penali[sz]ed|regulari[sz]ed|with (?:a )?(?:kl|penalty)|single|individual|any|"
    rf"step-to-step){_E}|单[个步次]|一次|相邻|每次"
)
NARROWED = re.compile(
    rf"就[^,。]{{1,24}}而言|[只仅单]看|若看|限于|(?<![组个种者条列])(?:里|之中|当中)|"
    rf"(?:^|\s)(?:of|among|within|for) (?:the|all|those) (?:last|first|two|three|other|arms|runs)|"
    rf"{_B}(?:of|among|within) (?:the|all) [^,]{{0,20}}(?:arms?|runs?|seeds?)"
)
_COUNT = re.compile(
    rf"({NUMBER})\s?"
    rf"(?:个|组|种|条|列|者|次|{_B}(?:arms?|runs?|tasks?|settings?|methods?){_E})"
)
_AFTER = re.compile(
    r"(?:的)?(?:一?[组个列种项])?[\u4e00-\u9fff ]{0,8}?(?:是|为|属于|出现在|在|:)\s*[\"“”]?|"
    r"(?:\s[a-z@\d%-]+){0,5}?\s"
    r"(?:is|was|are|for|at|in|on|under|with|belongs? to|goes? to|comes? from|by)"
    r"(?: th(?:at|ose) of)?(?: the)?\s*[\"“”]?"
)
_NAMED = re.compile(r"\s?(?:[(,;。]|[高低大小多少好差仍也都只为是]|$)")  # "最低的 A（54.1）"
_HELD = re.compile(  # what something is held against: "比最低的 …", "above the lowest"
    rf"(?:[比较与和]|[高低优劣差]于)\s?$|{_B}(?:than|above|below|over|from|with|to)(?: the)?\s?$"
)
_ALL = re.compile(rf"都|均|每[个种组一]|各|无一例外|{_B}(?:both|all|every|each|everywhere){_E}")
_GOES_ON = re.compile(r"\s*(?:是|也|且|仍|并|又|而且|却|但|同时|and|but|also)")
_REACHED = re.compile(
    rf"(?:达到|到达|[降升跌涨落]到|[到至]|它的|其|自己的|各自的?)\s?$|"
    rf"{_B}(?:reach\w*|attain\w*|its|their|to|from|own)(?: the| its| their| own)?\s?$"
)
_OWN_END = re.compile(r"的[^,;。()是为]{1,6}\(")  # "A 最好的种子（0.638）" is the best of A's
_CHANGED = re.compile(  # "what rises most" is no line of a table
    r"(?:回升|回落|[掉涨降升跌涨增减]|提[高升]|增加|减少|答对|领先|落后|变化|波动)[得了]?\s?$|"
    rf"{_B}(?:falls?|fell|dropp?(?:s|ed)?|ris(?:es?)|rose|grows?|grew|gain(?:s|ed)?|los(?:es?|t)|"
    rf"improve[sd]?|chang(?:es?|ed)|mov(?:es?|ed)|shr[aiu]nks?)(?: (?:by )?the)?\s?$"
)
_OFTEN = re.compile(  # "最高 5 次": `wins` counts them
    r"(?:的[^,;。]{0,3})?\s?(?:\d+|[一二两三四五六七八九十]+)\s?(?:次|个(?!百分))"
)
_OWN = re.compile(  # "the lowest run of A" is the lowest of A's
    r"\s(?:(?:run|seed|ordering|epoch|step|shot|cell|value|evaluation|checkpoint|score|point)s? )?"
    r"of (?:the )?"
)
_NUMBER = re.compile(r"(?<![\d.a-z])\d[\d,]*(\.(\d+))?(?:e(-?\d+))?(?!\d|\.\d)\s?(%)?")
_STEP = re.compile(r"(?<![a-z])(?:ep|ckpt|iter)\s?\d+\s?[时上]?\s?$")  # "在 ep3 最好"
_ARROW = re.compile(r"\s?(?:→|->)")
_BRACKET = re.compile(r"\(\s?[+-]?\s?[$¥€£]?$")
_GIVEN = re.compile(r"\s(?:with|at)\s?[+-]?$|[为达]\s?[+-]?$|^\s?[+-]?$")
_NEXT = re.compile(r"^\s?,\s?[+-]?$")


@dataclass(frozen=True)
class Called:
    """A word, the part of its clause that may name its subject, and a number that goes with it."""

    clause: Clause
    word: re.Match[str]
    first: int
    last: int
    pin: Figure | None
    signed: bool = False
    """Whether the number is told with its sign: it is a gap."""

    @property
    def sense(self) -> str:
        return self.word.lastgroup or ""


def false_superlatives(
    book: Book, all_shelves: Sequence[Shelf], every: Sequence[Sentence]
) -> Iterator[Mark]:
    """Names that are called the most of something, where others have more in all that is meant."""
    for sentence in every:
        parts = clauses(sentence)
        for nth, clause in enumerate(parts):
            if is_limited(parts[: nth + 1]):
                continue
            for called in called_in(clause):
                wrong = _beaten_everywhere(book, all_shelves, called, parts[:nth])
                if wrong is not None:
                    line = sentence.line(called.word.start())
                    text = sentence.text[called.word.start() : called.word.end()]
                    own, ahead = wrong
                    facts: dict[str, object] = {"value": _plain(ahead), "other": ahead.line}
                    facts["own"] = _plain(own)
                    yield Mark(line, text, "wrong", "check.not-most", facts, "most")


def is_limited(parts: Sequence[Clause]) -> bool:
    """Whether the last of some clauses speaks of some only, or denies what it says."""
    return bool(_SOME.search(outside(parts[-1].text))) or is_denied(parts)


def is_denied(parts: Sequence[Clause]) -> bool:
    """Whether the last of some clauses denies what it says, or says it of those of some kind."""
    return bool(_LIMITED.search(outside(parts[-1].text))) or _is_narrowed(parts)


def _plain(cell: Cell) -> str:
    return cell.number.text.split()[0].strip("*%") if cell.number.text.split() else ""


def _is_narrowed(parts: Sequence[Clause]) -> bool:
    """Whether a sentence says that it speaks of some only: "of the runs at 0.05, …"."""
    return any(NARROWED.search(outside(one.text)) for one in parts)


def called_in(clause: Clause) -> Iterator[Called]:
    plain = clause.sentence.plain
    masked = plain[: clause.start] + outside(clause.text) + plain[clause.end :]
    words = list(DEGREES.finditer(masked, clause.start, clause.end))
    for nth, word in enumerate(words):
        first = words[nth - 1].end() if nth else clause.start
        last = words[nth + 1].start() if nth + 1 < len(words) else clause.end
        came = _ARROW.search(plain, word.end(), last) and _CHANGED.search(plain[: word.start()])
        if came or _OFTEN.match(plain, word.end()):
            continue
        own = word.lastgroup in ("good", "bad") and _OWN_END.match(plain, word.end())
        reached = own or _REACHED.search(plain, first, word.start())
        if not reached and not _at_a_step(clause, word):
            pin, signed = _pin(clause.sentence, word.end(), last)
            yield Called(clause, word, first, last, pin, signed)


def _at_a_step(clause: Clause, word: re.Match[str]) -> bool:
    """Whether a step stands right beside a word: it is the highest of its own course."""
    return bool(_STEP.search(clause.sentence.plain[: word.start()])) or any(
        place.is_of_training
        and (0 <= place.start - word.end() <= NEAR or 0 <= word.start() - place.end <= NEAR)
        for place in clause.sentence.places
    )


def _pin(sentence: Sentence, start: int, end: int) -> tuple[Figure | None, bool]:
    """The first number behind a word that stands in brackets, or else right behind a name.

    With it, whether it has a sign.
    """
    every = list(_NUMBER.finditer(sentence.plain, start, end))
    for given in (_BRACKET, _GIVEN):
        for match in every:
            ahead = sentence.plain[start : match.start()]
            if _ARROW.match(sentence.plain, match.end()):
                return None, False  # where it came from
            if given.search(ahead) or (given is _GIVEN and match[2] and _NEXT.search(ahead)):
                decimals = max(0, len(match[2] or "") - int(match[3] or 0))
                value = float(match[0].rstrip("% ").replace(",", ""))
                return Figure(value, decimals, "%" if match[4] else ""), ahead.endswith("+")
    return None, False


def _beaten_everywhere(
    book: Book, every: Sequence[Shelf], called: Called, before: Sequence[Clause]
) -> Beaten | None:
    """What is called the most and what is ahead of it, if some is in every reading."""
    subjects = subjects_of(every, called, before)
    if called.pin is not None:
        pinned = [(s, n, lines_with(s, called.pin, n)) for s, n in subjects]
        any_ = any(lines for _, _, lines in pinned)
        if called.signed:
            pinned = [(s, n, [one for one in lines if _is_signed(one)]) for s, n, lines in pinned]
        if any_ and not any(lines for _, _, lines in pinned):
            return None  # a gap that no table has
        if any(lines for _, _, lines in pinned):
            return _judged(pinned, called)
    earlier = before if called.pin is None else ()
    read = [(s, n, list(lines_of(s, called, earlier, n))) for s, n in subjects]
    if called.pin is not None and any(prints(called.pin, cell.figure) for cell in book.cells):
        read = [(s, n, [one for one in lines if _has(one, called.pin)]) for s, n, lines in read]
    told = {id(s): _told(s, called) for s, _ in subjects}
    read = [(s, n, [one for one in lines if _bears(one, told[id(s)])]) for s, n, lines in read]
    if any(lines for _, _, lines in read):
        return _judged(read, called)
    if any(told.values()) or _CHANGED.search(called.clause.sentence.plain[: called.word.start()]):
        return None
    return _in_its_table(book, subjects, called) if called.pin is None else None


def _is_signed(line: Line) -> bool:
    return any(re.match(r"[\s*(]*[+-]", squeezed(c.number.text)) for c in line.cells.values())


def _told(shelf: Shelf, called: Called) -> list[Figure]:
    """The numbers with decimals that a clause tells, beside those that are names."""
    clause = called.clause
    names = [one for one, _ in _arms(shelf, clause.sentence, clause.start, clause.end)]
    return [
        Figure(float(found[0].rstrip("% ").replace(",", "")), len(found[2]))
        for found in _NUMBER.finditer(clause.sentence.plain, clause.start, clause.end)
        if found[2] and not found[3]
        if not any(one.start < found.end() and found.start() < one.end for one in names)
    ]


def _bears(line: Line, told: Sequence[Figure]) -> bool:
    """Whether a line has one of the numbers that a clause tells: else it tells of another."""
    return not told or any(_has(line, one) for one in told)


def _has(line: Line, pin: Figure) -> bool:
    """Whether a number is some label's in a line."""
    return any(prints(pin, cell.figure) for cell in line.cells.values())


def _judged(read: Sequence[tuple[Shelf, int, list[Line]]], called: Called) -> Beaten | None:
    verdicts = list[Beaten]()
    for shelf, label, lines in read:
        found = [
            one for line in lines if (one := verdict_of(shelf, line, called, label)) is not None
        ]
        if _holds(found, called):
            return None
        verdicts += [one for one in found if isinstance(one, tuple)]
    return verdicts[0] if verdicts else None


def _holds(found: Sequence[Beaten | bool], called: Called) -> bool:
    fits = [one is True for one in found]
    every = called.clause.says(_ALL) and called.pin is None
    count = _COUNT.search(called.clause.text)
    if every and count and numeral(count[1]) < len(fits):
        return True  # of so many, not of all lines
    return bool(fits) and (all(fits) if every else any(fits))


def _in_its_table(
    book: Book, subjects: Sequence[tuple[Shelf, int]], called: Called
) -> Beaten | None:
    """The same in the table right above, where no quantity is named: in none of its lines."""
    at = called.clause.sentence.line(called.word.start())
    above = [one for one in book.section(at) if one.line < at]
    said = concepts(called.clause.text)
    for shelf, label in subjects:  # "the largest drop" is no line of values
        if not above or shelf.sheet is not above[-1] or said & (QUANTITIES | CHANGES):
            continue
        lines = _alike([one for one in shelf.lines() if label in one.cells], label)
        found = [v for one in lines if (v := verdict_of(shelf, one, called, label)) is not None]
        cells = [one for one in found if isinstance(one, tuple)]
        if cells and not _holds(found, called):
            return cells[0]
    return None


def _alike(lines: Sequence[Line], label: int) -> list[Line]:
    """The lines that are printed as most are: those of one quantity."""
    kinds = [(one.cells[label].figure.decimals, one.cells[label].figure.unit) for one in lines]
    most = max(kinds, key=kinds.count, default=None)
    kept = [one for one, kind in zip(lines, kinds, strict=True) if kind == most]
    return [one for one in kept if not one.words & (KINDS - {"mean"})]


def _behind(shelf: Shelf, called: Called) -> Iterator[int]:
    """The label behind a word: "the highest is A"."""
    sentence, word = called.clause.sentence, called.word
    for mention, label in _arms(shelf, sentence, word.end(), called.last):
        said = _AFTER.fullmatch(sentence.plain, word.end(), mention.start)
        attribute = re.fullmatch(r"的\s?", sentence.plain[word.end() : mention.start])
        if said or (attribute and _NAMED.match(sentence.plain, mention.end)):
            yield label
            return


def _ahead(shelf: Shelf, called: Called, start: int, end: int) -> Iterator[int]:
    """The last label of a part of a sentence that lies before a word: "A has the highest"."""
    yield from (label for _, label in _arms(shelf, called.clause.sentence, start, end)[-1:])


def _is_of(shelf: Shelf, called: Called) -> bool:
    sentence, end = called.clause.sentence, called.word.end()
    names = _arms(shelf, sentence, end, called.last)
    between = [sentence.plain[end : one.start] for one, _ in names]
    return any(not one.strip() or _OWN.fullmatch(one) for one in between)


def subjects_of(
    every: Sequence[Shelf], called: Called, before: Sequence[Clause]
) -> list[tuple[Shelf, int]]:
    """What a word is said of: behind it, else before it, else in a clause that it goes on from."""
    found = [(s, label) for s in every for label in _behind(s, called)]
    if not found and any(_is_of(s, called) for s in every):
        return []  # "the weakest GRPO seed": one of several of that name
    if found or _HELD.search(called.clause.sentence.plain, called.first, called.word.start()):
        return found
    spans = [(called.first, called.word.start())]
    if called.pin or _GOES_ON.match(called.clause.text):
        spans += [(one.start, one.end) for one in reversed(before)]
    for start, end in spans:
        found = found or [(s, n) for s in every for n in _ahead(s, called, start, end)]
    return found


def _arms(shelf: Shelf, sentence: Sentence, start: int, end: int) -> list[tuple[Mention, int]]:
    if shelf.own_steps or shelf.side.is_metrics:
        return []
    return single(shelf.side.named(sentence, start, end, arms=True))


def lines_with(shelf: Shelf, pin: Figure, label: int) -> list[Line]:
    """The lines in which a label has a number."""
    return [
        line
        for line in shelf.lines()
        if (cell := line.cells.get(label)) is not None and prints(pin, cell.figure)
    ]


def lines_of(shelf: Shelf, called: Called, before: Sequence[Clause], label: int) -> Iterator[Line]:
    """The lines of the quantity that a word is said of."""
    sentence = called.clause.sentence
    start = before[-1].start if before else called.clause.start
    named = [one for one, _ in _arms(shelf, sentence, start, called.clause.end)]
    words = [match.span() for match in DEGREES.finditer(sentence.plain)]
    skip = (*words, *((one.start, one.end) for one in named))
    implied = WAYS.get(OPPOSITE.get(called.sense, called.sense), {})
    implied = {} if called.sense in ("good", "bad") else implied
    said = asked(called.clause, () if implied else before, skip)
    if implied and not said.need & QUANTITIES:
        yield from (one for one in shelf.lines() if one.words & implied.keys())
    else:
        yield from complete(shelf, called.clause.sentence, said)


def verdict_of(shelf: Shelf, line: Line, called: Called, label: int) -> Beaten | bool | None:
    """True if a label is the most of a line, what is ahead if not, None if it cannot be said."""
    if label not in line.cells:
        return None
    scope = shelf.scope(line, label)
    count = _COUNT.search(called.clause.text)
    if len(scope) < LEAST or (count and numeral(count[1]) < len(scope)):
        return None
    ahead = []
    for way, size in _ways(called, line.words | shelf.about, [line.value(one) for one in scope]):
        values = {one: abs(line.value(one)) if size else line.value(one) for one in scope}
        best = max(scope, key=lambda one: way * values[one])
        if values[best] == values[label]:
            return True
        ahead.append((line.cells[label], line.cells[best]))
    return ahead[0] if ahead else None


def _ways(called: Called, words: frozenset[str], values: Sequence[float]) -> list[tuple[int, bool]]:
    """Which way the most lies, and whether by size: a drop of -4 is more than one of -1."""
    sense = called.sense
    if sense in ("high", "low"):
        way = 1 if sense == "high" else -1
        if min(values) >= 0:
            return [(way, False)]
        falls = "drop" in concepts(called.clause.sentence.plain)
        if falls and max(values) <= 0:
            return [(way, True)]
        falls = "drop" in concepts(called.clause.text)
        return [(-way, False)] if falls and max(values) > 0 else [(way, False), (way, True)]
    turn = -1 if sense in OPPOSITE else 1
    ways = WAYS[OPPOSITE.get(sense, sense)]
    found = {turn * way for quantity, way in ways.items() if quantity in words}
    return [(way, False) for way in found] if len(found) == 1 else []
