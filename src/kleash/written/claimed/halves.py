"""Of two arms one is called higher or lower, and the other is not named: "B's KL loss is lower".

It is false if it is so in no line of the quantity. A table whose heading the clause has word for
word is the one that is meant: "KL loss" is not the KL.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from kleash.imports.markdown.text import bare
from kleash.written.claimed.mentions import QUANTITIES
from kleash.written.claimed.outline import outline
from kleash.written.claimed.readings import Line, Shelf, asked, complete, outside, single
from kleash.written.claimed.stated import Stated, stated
from kleash.written.marks import Mark
from kleash.written.page import Page
from kleash.written.printed import squeezed
from kleash.written.prose import Sentence

# Lines that stand for a run as a whole, where there are any.
_WHOLE = frozenset(("mean", "final"))
_CHANGES = frozenset(("change", "drop", "gain", "gap"))
SHORT = 4  # letters of a heading that a clause may have word for word
_B, _E = r"(?<![a-z])", r"(?![a-z])"
_LIMITED = re.compile(
    rf"比|于|不|没|未|非|除|若|如果|可能|预期|应该?|早期|前期|中期|后期|有时|部分|阶段|越|使用|例如|"
    rf"{_B}(?:than|not|no|never|if|may|might|should|would|early|late|later|mid|sometimes|expect\w*|"
    rf"use|with|at|by|to){_E}|n't"
)


def false_halves(page: Page, every: Sequence[Shelf], spoken: Sequence[Sentence]) -> Iterator[Mark]:
    """Arms called higher than the only other one that are lower in all that is meant."""
    for one in stated(outline(page), spoken):
        text = outside(one.clause.text)
        if not _LIMITED.search(text) and _is_false(_meant(every, text), one):
            shown = one.clause.sentence.text[slice(*one.span)]
            yield Mark(one.line, shown, "wrong", "check.not-trend", {}, "order")


def _meant(every: Sequence[Shelf], text: str) -> list[Shelf]:
    """The tables whose heading a clause has word for word; all, if it has none."""
    own = [shelf for shelf in every if any(one in text for one in topics_of(shelf))]
    return own or list(every)


def topics_of(shelf: Shelf) -> list[str]:
    """What the heading of a table says that it is about, in each of its forms."""
    found = []
    for heading in shelf.sheet.table.headings[-1:]:
        plain = re.sub(r"^[\s#\d.)、]+", "", squeezed(bare(heading)))
        found += [one.strip() for one in re.split(r"[()]", plain) if len(one.strip()) >= SHORT]
    return found


def _is_false(every: Sequence[Shelf], one: Stated) -> bool:
    clause, sentence, verdicts = one.clause, one.clause.sentence, []
    for shelf in every:
        label = one.whose(shelf)
        if label is None:
            continue
        names = shelf.side.named(sentence, clause.start, clause.end, arms=True)
        skip = (one.span, *((name.start, name.end) for name, _ in single(names)))
        said = asked(clause, (), skip)
        lines = list(complete(shelf, sentence, said)) if said.need & QUANTITIES else []
        for line in [each for each in lines if each.words & _WHOLE] or lines:
            scope = shelf.scope(line, label) if label in line.cells else []
            if len(scope) == 2:
                values = [line.value(label), *(line.value(n) for n in scope if n != label)]
                ours, theirs = map(abs, values) if _is_size(line, values) else values
                verdicts.append(ours == theirs or (ours > theirs) == (one.way > 0))
    return bool(verdicts) and not any(verdicts)


def _is_size(line: Line, values: Sequence[float]) -> bool:
    """Whether the smaller of two changes is the one that is nearer to 0: both are falls."""
    return bool(line.words & _CHANGES) and max(values) < 0
