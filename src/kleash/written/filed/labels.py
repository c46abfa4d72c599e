"""What the labels of a line tell of its coordinates: shots, epochs, seeds, sizes, whose it is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from kleash.written.filed.columns import DEVIATION, MEAN, NUMBERED, SUM, Column, window
from kleash.written.filed.records import COUNTS
from kleash.written.sought.lines import Line
from kleash.written.sought.naming import Namer, counts_in, windows_in

# Words for what is counted, where a label has a number of it.
WORDS = {
    "epoch": re.compile(r"epoch|轮|(?<![a-z])e(?:p)?\s?\d", re.I),
    "step": re.compile(r"step|步|checkpoint|ckpt|update|@", re.I),
    "shots": re.compile(r"shot|示例|demonstration", re.I),
    "seed": re.compile(r"seed|种子|(?<![a-z])s\d", re.I),
    "size": re.compile(r"(?<![a-z])n(?![a-z])|样本|samples?|questions?|images?|图|题|items?", re.I),
    NUMBERED: re.compile(r"(?!)"),
}
_MEAN = re.compile(r"均|mean|avg|average", re.I)
_DEVIATION = re.compile(r"标准差|std|deviation|(?<![a-z])s\.?d(?![a-z])", re.I)
_SUM = re.compile(r"合计|总|累计|(?<![a-z])(?:sum|total|all)(?![a-z])", re.I)
_OVER_STEPS = re.compile(
    r"\d+\s*步的?(?:平均|均值)|\d+[- ]steps? (?:mean|average)|"
    r"(?:mean|average) (?:of|over) \d+ steps",
    re.I,
)
SINGLE = ("epoch", "step", "size")  # a mean that a label speaks of is not over these
Told = list[int | None]
"""By axis the code of what a label names."""


class Labels:
    """The reader of labels."""

    def __init__(self) -> None:
        self.namers: dict[tuple[str, ...], Namer] = {}

    def own(self, line: Line, column: Column) -> list[list[Told]]:
        """By token what its own label tells; bare numbers may count one thing or another."""
        made = list[list[Told]]()
        for texts in _labels(line):
            for bare in ("", *(axis for axis in column.axes if axis in WORDS)):
                told = [
                    [self._code(column, at, text, bare) for at in range(len(column.axes))]
                    for text in texts
                ]
                if told not in made:
                    made.append(told)
        return made

    def shared(self, line: Line, column: Column, axes: Sequence[int]) -> dict[int, int]:
        """The coordinates that a whole line has by its labels; the nearest tells."""
        return {
            **self._named(line.table.columns[0], column, axes),
            **self._named(line.shared, column, axes),
        }

    def above(self, line: Line, column: Column, axes: Sequence[int]) -> dict[int, int]:
        """The same by what stands above its table, which may be said of something else."""
        return self._named(line.table.heads, column, axes)

    def _named(self, text: str, column: Column, axes: Sequence[int]) -> dict[int, int]:
        found = {at: self._code(column, at, text, "") for at in axes}
        return {at: code for at, code in found.items() if code is not None}

    def _code(self, column: Column, at: int, text: str, bare: str) -> int | None:
        """Which value of an axis a label names."""
        axis, texts = column.axes[at], column.texts[at]
        if axis in COUNTS or axis == NUMBERED:
            together = None if axis in SINGLE else _together(text)
            if axis != bare and not WORDS[axis].search(text):
                return together
            if axis == "step" and _OVER_STEPS.search(text):
                return MEAN
            stretch = {window(*one) for one in windows_in(text)} & {*texts}
            fit = stretch or {f"{n:g}" for n in counts_in(text)} & {*texts}
            return texts.index(fit.pop()) if len(fit) == 1 else together
        group = self.namers.setdefault(texts, Namer(texts)).group(text)
        return texts.index(group) if group in texts else None


def _labels(line: Line) -> Iterator[list[str]]:
    """By token its own label; then with what its row counts besides, such as the best epoch."""
    if not line.down:
        yield [line.table.column(one) for one in line.tokens]
        return
    yield [line.table.row(one) for one in line.tokens]
    for at in line.table.counters:
        rows, title = line.table.sheet.table.rows, line.table.columns[at]
        if all(one.column != at for one in line.tokens):
            yield [f"{line.table.row(one)} ; {title} {rows[one.row][at]}" for one in line.tokens]


def _together(text: str) -> int | None:
    told = ((_DEVIATION, DEVIATION), (_MEAN, MEAN), (_SUM, SUM))
    return next((code for words, code in told if words.search(text)), None)
