"""What is said to differ, and is printed alike in every line of the table at hand.

That things are said to be the same and are not is a finding (`same_false`). Here is the reverse:
arms, or all arms of a quantity, whose numbers are equal throughout do not "differ slightly".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from kleash.written.book import Book
from kleash.written.claimed.halves import topics_of
from kleash.written.claimed.readings import Clause, Shelf, clauses, outside
from kleash.written.marks import Mark
from kleash.written.prose import Sentence

LEAST = 2  # lines in which arms are alike
_B, _E = r"(?<![a-z])", r"(?![a-z])"
_APART = re.compile(
    rf"(?:略有|有所|稍有|有些|明显|显著)(?:不同|差异|差别|区别)|(?<!完全)(?<!没有)不同(?=[。!,;]|\s*$)|不一样|"
    rf"高于|低于|优于|差于|{_B}(?:differs?|is different|are different|slightly different){_E}|"
    rf"{_B}(?:higher|lower|better|worse) than{_E}"
)
_SAME = re.compile(rf"完全(?:相同|一致|一样)|{_B}(?:identical|exactly the same){_E}")
_DENIED = re.compile(
    rf"没有|并无|无[明显]|不会|只有|仅|除|其他|其余|若|如果|可能|参数|权重|样本|难度|原因|"
    rf"{_B}(?:not|no|only|except|other|if|may|might|weights?|parameters?|samples?){_E}|n't"
)
_ARMS = re.compile(
    rf"两[个组种者]|[二三四五]\s?[个组种]|模型|{_B}(?:both|two|three|arms|models|runs){_E}"
)


def false_differences(
    book: Book, every: Sequence[Shelf], spoken: Sequence[Sentence]
) -> Iterator[Mark]:
    """Words for a difference between what is alike in every line that is meant."""
    for sentence in spoken:
        parts = clauses(sentence)
        for nth, clause in enumerate(parts):
            word = _APART.search(outside(clause.text))
            if word is None or _DENIED.search(clause.text) or _has_number(clause):
                continue
            same = _are_alike(book, every, clause, parts[:nth])
            if same or _is_unsaid(book, every, clause, parts[:nth], spoken):
                start, end = (clause.start + at for at in word.span())
                line, text = sentence.line(start), sentence.text[start:end]
                yield Mark(line, text, "wrong", "check.not-apart", {}, "same")


def _has_number(clause: Clause) -> bool:
    numbers = clause.sentence.numbers
    return any(clause.start <= one.start < clause.end and one.figure.digits > 2 for one in numbers)


def _are_alike(
    book: Book, every: Sequence[Shelf], clause: Clause, before: Sequence[Clause]
) -> bool:
    """Whether all that a clause names has equal numbers in each line of the table it means."""
    line = clause.sentence.line(clause.start)
    above = [one for one in book.section(line) if one.line < line][-1:]
    verdicts = list[bool]()
    for shelf in every:
        if shelf.own_steps or shelf.side.is_metrics or shelf.steps:
            continue
        meant = any(one in clause.text for one in topics_of(shelf))
        if not meant and shelf.sheet not in above:
            continue
        labels = _named(shelf, clause, before)
        if len(labels) == 1 or (not labels and not meant and not _ARMS.search(clause.text)):
            continue
        verdicts += _verdict(shelf, labels)
    return bool(verdicts) and all(verdicts)


def _is_unsaid(
    book: Book,
    every: Sequence[Shelf],
    clause: Clause,
    before: Sequence[Clause],
    spoken: Sequence[Sentence],
) -> bool:
    """Whether another sentence under the heading says that just these arms are the same."""
    line = clause.sentence.line(clause.start)
    near = book.section(line)
    for shelf in every:
        labels = _named(shelf, clause, before) if shelf.sheet in near else set[int]()
        for other in spoken if len(labels) > 1 else ():
            if other is clause.sentence or book.section(other.line(0)) != near:
                continue
            for part in clauses(other):
                if _SAME.search(part.text) and labels <= _named(shelf, part, ()):
                    return True
    return False


def _named(shelf: Shelf, clause: Clause, before: Sequence[Clause]) -> set[int]:
    """The labels that a clause names, with those of the clause before that it goes on from."""
    found = set[int]()
    for part in (clause, *before[-1:]):
        names = shelf.side.named(clause.sentence, part.start, part.end, arms=True)
        own = {label for one in names if len(one.labels) == 1 for label in one.labels}
        if part is clause and not own:
            return found
        found |= own
    return found


def _verdict(shelf: Shelf, labels: set[int]) -> Iterator[bool]:
    """For a table that has them, whether the labels, or all, are equal in each of its lines."""
    lines = 0
    for line in shelf.lines():
        own = labels & line.cells.keys() if labels else set(line.cells)
        if len(own) < 2 or (labels and own != labels):
            continue
        scope = own & set(shelf.scope(line, min(own)))
        if len(scope) < 2:
            continue
        lines += 1
        if len({line.value(label) for label in scope}) > 1:
            yield False
            return
    if lines >= LEAST:
        yield True
