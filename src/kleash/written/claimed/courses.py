"""What is said to rise or fall throughout, and what with what, held against the tables.

"B rises monotonically" is false if B falls somewhere in every table of its steps; "the larger β,
the lower the KL" if the KL rises with β in all that is meant. What is limited is let pass.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, pairwise

from kleash.written.book import Book
from kleash.written.claimed.contrasts import TURN
from kleash.written.claimed.mentions import FREE, QUANTITIES, Side, concepts, words_of
from kleash.written.claimed.reach import counts, stretches, within
from kleash.written.claimed.readings import (
    Asked,
    Clause,
    Line,
    Shelf,
    asked,
    clauses,
    complete,
    outside,
    single,
)
from kleash.written.marks import Mark
from kleash.written.printed import squeezed
from kleash.written.prose import END, Sentence

_MOVES = frozenset(("change", "gap", "drop", "gain"))
LEAST = 4  # points of a course
FEW = 3  # arms of which something rises
_B, _E = r"(?<![a-z])", r"(?![a-z])"
_NEVER = (  # "never falls", of a course
    rf"(?:从[未没]|从来没|一次[也都]没|没有?(?:任何|一次|一步))有?(?:再|过|出现过?|发生过?)?"
    rf"(?:(?P<rebound>上升|反弹|回升)|下降|回落|下跌|回撤|回退|倒退)(?![到至于破穿])|"
    rf"{_B}(?:never once|never|not once) (?:(?P<climbs>ris(?:es|en)|rose|increase[sd]?)|"
    rf"falls?|fell|drop(?:s|ped)|dip(?:s|ped)|decline[sd]?|decrease[sd]?)"
    rf"(?! (?:below|under|above|over|to|behind|by|back|short|off|out))"
)
STRICT = re.compile(
    rf"单调|一路(?=上|下|走|涨|跌|升|降)|逐[点段步次个]|逐(?:轮|\s?epoch)(?![^,;。]*\d\.\d)|从头升到尾|从头降到尾|持续(?=上升|下降|增|减)|"
    rf"(?:一直|全程|始终|自始至终)(?:都|均|在|保持)?(?=上升|下降|上涨|下跌|涨|跌|升|降|增|减)|{_NEVER}|每一?[次个轮步][^,;。]{{0,6}}?都(?=[^,;。]{{0,4}}?[升降涨跌增减])|"
    rf"{_B}monotonic\w*|{_B}without a single (?:decrease|increase|drop|rise|dip){_E}|"
    rf"{_B}(?:throughout|steadily|at (?:every|each) (?:\w+ )?"
    rf"(?:evaluation|step|epoch|checkpoint|validation|measurement|point)){_E}"
)
_NONE = re.compile(rf"without a single (?:(?P<rise>increase|rise)|decrease|drop|dip)|{_NEVER}")
_MONOTONE = re.compile(rf"单调|逐|持续|一路|从头|{_B}monotonic")
_LIMITED = re.compile(
    rf"不|没|未|非|除|几乎|大体|基本|之前|之后|此后|以后|起|前|后|阶段|只|"
    rf"{_B}(?:not|non|no|never|except|until|after|before|up to|almost|nearly|from|then|only|but|"
    rf"mostly|largely|since|if|first|past){_E}|n't"
)
_CURVE = re.compile(rf"训练(?:的)?(?:曲线|过程)|{_B}training (?:curves?|course|run){_E}")
_ALL = re.compile(rf"都|均|各|{_B}(?:both|all|every|each){_E}|[两二三四五六七八]\s?[条组个种]")
_KEYS: dict[str, re.Pattern[str]] = {
    "coefficient": re.compile(rf"β|{_B}beta|{_B}kl[ _]?(?:coef\w*|beta|系数)|系数|{_B}coef"),
    "rate": re.compile(rf"学习率|{_B}lr{_E}|learning rate"),
    "group": re.compile(rf"组(?:大小)?|{_B}group(?: ?size)?|{_B}g{_E}|rollout"),
    "items": re.compile(rf"样本|题|条|{_B}n{_E}|{_B}samples?|{_B}items?"),
    "shot": re.compile(rf"{_B}shots?{_E}|示例"),
}
_GOES_ON = re.compile(rf"\s*(?:并且?|而且|且|同时|也|又|还|and{_E}|which{_E})")
_AND = re.compile(rf"{_B}and{_E}|并且?|而且|且")
_BIG, _SMALL = "大多高长", "小少低短"
_RISES = rf"(?:(?P<up>[{_BIG}])|(?P<down>[{_SMALL}])|(?P<calm>平滑|稳定?))"
_SHRINKS = re.compile(r"[小少低短减]|变小|small|low|weak")
_TRENDS = (
    re.compile(
        rf"(?P<key>[^,;。:越]{{1,10}}?)越(?P<way>[{_BIG}{_SMALL}])[,、\s]*(?P<what>[^,;。:(]{{0,16}}?)越{_RISES}"
    ),
    re.compile(
        r"(?P<what>[^,;。:(]{1,20}?)随着?\s?(?P<key>[^,;。:]{1,10}?)(?P<way>增大|增加|变大|减小|减少|变小)"
        r"而?(?P<strict>单调|逐[级档步])?(?:(?P<up>增|升|上|变大|变长|提)|(?P<down>减|降|下|变小|变短))"
    ),
    re.compile(
        rf"{_B}the (?P<way>larger|higher|greater|stronger|smaller|lower|weaker) (?:the )?"
        rf"(?P<key>[^,;:.]{{1,20}}?), the (?:(?P<up>higher|larger|greater|longer)|"
        rf"(?P<down>lower|smaller|shorter)) (?:the )?(?P<what>[^,;:.(]{{2,24}})"
    ),
    re.compile(
        r"(?P<what>[^,;:.(]{2,32}?) (?:(?P<up>rises|grows|increases|climbs)|"
        r"(?P<down>falls|drops|declines|decreases|shrinks)) (?P<strict>monotonically )?"
        r"(?:with|as) (?:the |a |an )?(?P<way>smaller |lower |weaker |increasing |larger )?"
        r"(?P<key>(?:number of )?[^,;:. ]{1,16}(?: [a-z]{1,12})??)"
        r"(?: (?:grows|rises|increases|goes up|is raised)|(?=[,;:.(]|\s*$))"
    ),
)


def false_courses(
    book: Book, all_shelves: Sequence[Shelf], every: Sequence[Sentence]
) -> Iterator[Mark]:
    """Sentences on courses and trends that the tables turn round."""
    for sentence in every:
        parts = clauses(sentence)
        for nth, clause in enumerate(parts):
            word = strict_word(clause)
            if word is None:
                continue
            own = _upto_and(clause, word)
            if is_limited(own, never=True):
                continue
            if _is_broken(book, all_shelves, own, [*parts[nth + 1 : nth + 2], *parts[:nth]]):
                start, end = (clause.start + at for at in word.span())
                yield _mark(sentence, start, end, "check.not-monotone")
        for pattern in _TRENDS:
            for match in pattern.finditer(sentence.plain):
                if _is_turned(book, all_shelves, sentence, match):
                    yield _mark(sentence, match.start(), match.end(), "check.not-trend")


def strict_word(clause: Clause) -> re.Match[str] | None:
    """The word by which a course never turns; "leads at every step" is no course."""
    word = STRICT.search(outside(clause.text))
    if word is None or _MONOTONE.match(word[0]):
        return word
    return word if _upto_and(clause, word).says(TURN) else None


def _mark(sentence: Sentence, start: int, end: int, code: str) -> Mark:
    text = sentence.text[start:end].strip()
    return Mark(sentence.line(start), text, "wrong", code, {}, "course")


def _upto_and(clause: Clause, word: re.Match[str]) -> Clause:
    """A clause up to an "and" behind a word: "rise at every step and are best at step 600"."""
    cut = _AND.search(clause.sentence.plain, clause.start + word.end(), clause.end)
    return Clause(clause.sentence, clause.start, cut.start() if cut else clause.end)


def is_limited(clause: Clause, *, never: bool = False) -> bool:
    """Whether a clause speaks of a part of a course that is not a stretch of named steps.

    With `never`, "never falls" is no limit.
    """
    sentence, text = clause.sentence, outside(clause.text)
    text = _NONE.sub(lambda match: " " * len(match[0]), text) if never else text
    spans = stretches(sentence, clause.start, clause.end)
    for one in spans:
        first, last = one.start - clause.start, one.end - clause.start
        text = re.sub(r"(?:从|(?<![a-z])from)\s?$", "", text[:first]).ljust(last) + text[last:]
    return bool(_LIMITED.search(text)) or any(
        clause.start <= one.start < clause.end
        and one.axis != END
        and not any(span.start <= one.start < span.end for span in spans)
        for one in sentence.places
    )


# --- courses


def _is_broken(
    book: Book, every: Sequence[Shelf], clause: Clause, beside: Sequence[Clause]
) -> bool:
    """Whether every course that may be meant both rises and falls."""
    way = way_of(clause)
    if way is None:
        return False
    verdicts = [
        sum(is_steady(one, way) for one in courses) >= least
        for courses, least in courses_of(book, every, clause, beside, LEAST)
    ]
    return bool(verdicts) and not any(verdicts)


def way_of(clause: Clause) -> int | None:
    """Which way a clause says that a course goes: 1, -1, 0 if it does not say, None if both."""
    denied, text = _NONE.search(clause.text), _NONE.sub("", outside(clause.text))
    ways = {match.lastgroup for match in TURN.finditer(text)}
    if denied:
        ways.add("down" if denied.lastgroup else "up")
    if len(ways) > 1:
        return None
    return {"up": 1, "down": -1}.get(next(iter(ways), None) or "", 0)


def courses_of(
    book: Book, every: Sequence[Shelf], clause: Clause, beside: Sequence[Clause], points: int,
    since: float | None = None,
) -> Iterator[tuple[list[list[float]], int]]:  # fmt: skip
    """By table, the courses that a clause may speak of, and of how many of them it does."""
    told = [n for _, _, n in counts(outside(clause.text))] if clause.says(_ALL) else []
    for shelf in every:
        if len(shelf.steps) < points:
            continue
        courses = [_course(shelf, n, clause, since) for n in subjects(book, shelf, clause, beside)]
        courses = _pinned([one for one in courses if len(one) >= points], clause)
        if courses:
            yield courses, min(told[-1], len(courses)) if told else len(courses)


def _pinned(courses: Sequence[list[float]], clause: Clause) -> list[list[float]]:
    """The courses that have most of the numbers that a clause tells: of others it says nothing."""
    told = [
        one.figure
        for one in clause.sentence.numbers
        if clause.start <= one.start < clause.end
        and one.figure.decimals
        and one.kind in ("", "share", "unit")
        and not one.sign
    ]
    return [
        course
        for course in courses
        if 2 * sum(any(abs(v - one.value) <= one.half for v in course) for one in told) >= len(told)
    ]


def _course(shelf: Shelf, label: int, clause: Clause, since: float | None) -> list[float]:
    """The numbers of a label by step, over the stretch that a clause names, or from a step on."""
    spans = stretches(clause.sentence, clause.start, clause.end)
    steps = {nth: at for nth, at in shelf.steps.items() if within(spans, at)}
    lines = [(at, shelf.line(nth)) for nth, at in steps.items() if since is None or at >= since]
    return [
        line.value(label)
        for _, line in sorted(lines, key=lambda one: one[0])
        if label in line.cells
    ]


def is_steady(values: Sequence[float], way: int) -> bool:
    """Whether a course never turns: the way that is told, or either (0)."""
    gaps = [b - a for a, b in pairwise(values)]
    return any(all(one * gap >= 0 for gap in gaps) for one in ((way,) if way else (1, -1)))


def subjects(book: Book, shelf: Shelf, clause: Clause, beside: Sequence[Clause]) -> list[int]:
    """The arms, or the quantity, whose course a clause speaks of in a table of steps."""
    sentence = clause.sentence
    arms = single(shelf.side.named(sentence, clause.start, clause.end, arms=True))
    if not arms and _GOES_ON.match(clause.text):
        spans = [(one.start, one.end) for one in beside[-1:] if one.end <= clause.start]
        arms = [
            two for span in spans for two in single(shelf.side.named(sentence, *span, arms=True))
        ]
    skip = tuple((mention.start, mention.end) for mention, _ in arms)
    need = asked(clause, (), skip).need - {"step"} - _MOVES
    inherits = not need & QUANTITIES and (shelf.side.is_metrics or not arms)
    inherits = inherits and clause.says(TURN)
    if inherits:
        told = (concepts(outside(one.text)) & QUANTITIES - {"step", "turns"} for one in beside)
        need |= next((one for one in told if one), frozenset())
    if shelf.side.is_metrics:
        named = frozenset().union(
            *(one.labels for one in shelf.side.named(sentence, clause.start, clause.end, arms=True))
        )
        every = [
            n
            for n, words in shelf.side.labels.items()
            if need & QUANTITIES and need <= words | shelf.about and not words & _MOVES
        ]
        every = [n for n in every if need & QUANTITIES <= shelf.side.labels[n]] or every
        return [n for n in every if n in named or inherits] if named else every
    if _CURVE.search(clause.text):
        need -= {"train"}  # "the training curve" is the course itself
    if not need <= shelf.about:
        return []
    if arms:
        return [label for _, label in arms]
    above = [
        one
        for one in book.section(sentence.line(clause.start))
        if one.line < sentence.line(clause.start)
    ]
    whole = bool(_ALL.search(clause.text)) and above and shelf.sheet is above[-1]
    return [n for n in shelf.side.labels if _plain(shelf.side, n)] if whole else []


def _plain(side: Side, label: int) -> bool:
    """Whether a label is an arm: no difference, no statistic."""
    return not re.search(r"\s[-−–/]\s|Δ|δ|vs", side.texts[label])


# --- trends


def _is_turned(
    book: Book, every: Sequence[Shelf], sentence: Sentence, match: re.Match[str]
) -> bool:
    """Whether a quantity goes the other way with a setting in all that is meant."""
    keys = [name for name, words in _KEYS.items() if words.search(match["key"])]
    groups = match.groupdict()
    clause = Clause(sentence, *match.span("what" if match["what"].strip() else 0))
    need = asked(clause, (), ()).need
    if groups.get("calm"):
        need = need | {"spread"}
    if not keys or not need & QUANTITIES or _LIMITED.search(match["what"]):
        return False
    way = (-1 if _SHRINKS.match(match["way"] or "") else 1) * (1 if groups.get("up") else -1)
    verdicts = []
    for shelf in every:
        order = settings(shelf.side, keys)
        if len(order) < FEW:
            continue
        said = Asked(
            need, ((match.start(), match.end()),), ((match.start("key"), match.end("key")),)
        )
        for line in complete(shelf, sentence, said):
            verdict = _goes(line, order, way, strict=bool(groups.get("strict")))
            if verdict is not None:
                verdicts.append(verdict)
    if not verdicts and "kl" not in need:
        verdicts = list(_at_hand(book, every, sentence.line(match.start()), keys, way))
    return bool(verdicts) and not any(verdicts)


def _at_hand(
    book: Book, every: Sequence[Shelf], line: int, keys: Sequence[str], way: int
) -> Iterator[bool]:
    """Whether each line of the table right above goes the way that is said with a setting."""
    above = [one for one in book.section(line) if one.line < line][-1:]
    for shelf in every:
        order = settings(shelf.side, keys) if shelf.sheet in above else {}
        for one in shelf.lines() if len(order) >= FEW else ():
            verdict = _goes(one, order, way)
            if verdict is not None and not one.words & QUANTITIES:
                yield verdict


def settings(side: Side, keys: Sequence[str]) -> dict[int, tuple[float, str]]:
    """The labels of a side by the value of a setting, with what else tells them apart."""
    found = {}
    for label, text in side.texts.items():
        for name, rest, head in _parts(side, label, text):
            number = re.findall(r"\d+(?:\.\d+)?(?:e-?\d+)?", squeezed(name))
            bare_number = re.fullmatch(r"[\s*]*[\d.]+(?:e-?\d+)?[\s*]*", squeezed(name))
            own = head if bare_number else name
            if FREE in words_of(name) and "coefficient" in keys:
                found[label] = (0.0, rest)
            elif len(number) == 1 and any(_KEYS[key].search(squeezed(own)) for key in keys):
                found[label] = (float(number[0]), rest)
    return found if len(set(found.values())) == len(found) else {}


def _parts(side: Side, label: int, text: str) -> Iterator[tuple[str, str, str]]:
    """Each part of a label that may be a setting, the rest of it, and its title."""
    table = side.sheet.table
    if not side.is_rows:
        yield text, "", table.header[0] if table.header else ""
        return
    for at in side.naming:
        others = " ".join(table.rows[label][other] for other in side.naming if other != at)
        yield table.rows[label][at], others, table.header[at]


def _goes(
    line: Line, order: Mapping[int, tuple[float, str]], way: int, *, strict: bool = False
) -> bool | None:
    """Whether a line goes the way that is said, mostly or always; None: too little."""
    known = [label for label in order if label in line.cells]
    signs = [
        (order[b][0] - order[a][0]) * (line.value(b) - line.value(a))
        for a, b in combinations(known, 2)
        if order[a][1] == order[b][1]
    ]
    if len(signs) < FEW:
        return None
    if strict:
        return all(way * sign >= 0 for sign in signs)
    return sum(way * sign > 0 for sign in signs) >= sum(way * sign < 0 for sign in signs)
