"""What is said to be exactly the same, and is so in no line that may be meant.

"Identical" of a quantity needs a line of it, a row or a column, in which the arms that are named
have equal numbers: all of it, where the clause speaks of all, else any two. The quantity is that of
the clause, or of what it stands under.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from kleash.written.book import Book
from kleash.written.claimed.mentions import APART, QUANTITIES, concepts
from kleash.written.claimed.outline import Item, above, outline
from kleash.written.claimed.readings import Clause, Line, Shelf, clauses, outside, single
from kleash.written.claimed.stated import head
from kleash.written.marks import Mark
from kleash.written.page import Page
from kleash.written.prose import Sentence

_B, _E = r"(?<![a-z])", r"(?![a-z])"
_SAME = re.compile(
    rf"完全(?:相同|一致|一样|相等|重合)|一模一样|毫无(?:差[异别]|区别)|没有任何(?:差[异别]|区别)|分毫不差|"
    rf"{_B}(?:identical|exactly (?:the same|equal)|no difference(?: at all)?|"
    rf"the very same|coincide exactly){_E}"
)
_ALL = re.compile(rf"所有|全部|[都均]|各|每|{_B}(?:all|every|each){_E}")
_LIMITED = re.compile(
    rf"几乎|近乎|接近|基本|大致|不|未|非|除|若|如果|可能|名次|排名|排序|次序|顺序|趋势|走势|形状|方向|符号|设置|配置|超参|数据|条件|样本|种子|初始化|流程|"
    rf"{_B}(?:almost|nearly|not|never|if|may|might|except|but|orders?|ranking|trends?|shapes?|directions?|signs?|patterns?|settings?|config\w*|data|"
    rf"conditions?|hyper\w*|seeds?|otherwise|setup){_E}|n't"
)
_RESULTS = re.compile(
    rf"结果|表现|性能|数值|成绩|得分|{_B}(?:results?|scores?|numbers?|values?|performance){_E}"
)
_MOVES = frozenset(("gap", "change", "drop", "gain"))
_IDLE = frozenset(("step", "turns", "time", "share"))


def false_identities(
    book: Book, page: Page, every: Sequence[Shelf], spoken: Sequence[Sentence]
) -> Iterator[Mark]:
    """Words for equal numbers that no line of their quantity has."""
    items = outline(page)
    for sentence in spoken:
        parts = clauses(sentence)
        for nth, clause in enumerate(parts):
            text = outside(clause.text)
            word = _SAME.search(text)
            if word is None or _LIMITED.search(_SAME.sub("", text)):
                continue
            told = parts[max(0, nth - 1) : nth + 1]
            need = _need(items, told, sentence)
            verdicts = list(_verdicts(every, told, need))
            if verdicts and not any(verdicts):
                start, end = (clause.start + at for at in word.span())
                line, shown = sentence.line(start), sentence.text[start:end]
                yield Mark(line, shown, "wrong", "check.not-equal", {}, "same")


def _need(items: Mapping[int, Item], told: Sequence[Clause], sentence: Sentence) -> frozenset[str]:
    """The quantities of a clause, else of the one before it, else of what the item stands under."""
    for one in (*reversed(told), *map(head, above(items, sentence.line(0)))):
        found = concepts(outside(one.text)) & QUANTITIES - _IDLE
        if found:
            return found
    return frozenset()


def _verdicts(
    every: Sequence[Shelf], told: Sequence[Clause], need: frozenset[str]
) -> Iterator[bool]:
    """For each line of a quantity, whether what is named is equal in it.

    Of "results" of two arms that are named, every line is one.
    """
    whole = any(_ALL.search(outside(one.text)) for one in told)
    if not need and not _RESULTS.search(told[-1].text):
        return
    for shelf in every:
        names = {
            label
            for one in told
            for _, label in single(shelf.side.named(one.sentence, one.start, one.end, arms=True))
        }
        if not need and len(names) < 2:
            continue
        values = {n for n in shelf.side.labels if _is_value(shelf, n)}
        for line in shelf.lines():
            if need <= line.words | shelf.about and not line.is_ranks:
                yield from _alike(line, names, values & line.cells.keys(), whole=whole)


def _is_value(shelf: Shelf, label: int) -> bool:
    """Whether a label is no difference or change of others."""
    return not shelf.side.labels[label] & _MOVES and not APART.search(shelf.side.texts[label])


def _alike(line: Line, names: set[int], values: set[int], *, whole: bool) -> Iterator[bool]:
    """Whether the named of a line are equal, or all, or any two; nothing for fewer."""
    named = names & values
    labels = named if len(named) > 1 else values
    if len(labels) < 2 or (len(names) > 1 and named != names):
        return
    counts = Counter(line.value(label) for label in labels)
    yield len(counts) == 1 or (not whole and len(named) < 2 and max(counts.values()) > 1)
