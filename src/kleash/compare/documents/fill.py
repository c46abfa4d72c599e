"""The open cells of a report, filled with what was measured; nothing else of it is touched.

A cell that asks ("?", "TBD", 待填充) gets what the logs have for it, written as its neighbours are.
Means and differences are worked out again from what then stands there. One that was wrong keeps its
old text struck out beside the new one, so that filling again changes nothing. What was never
measured stays as it is, and is listed with what would measure it. Long, because how neighbours
write a number is part of filling it in.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from kleash.compare.checks.identities import roughly
from kleash.compare.documents.logs import SECONDS, Difference, Logs, Measured, as_printed, stated
from kleash.compare.read import Derived, Number, Where
from kleash.compare.read.markdown.derived import allowed, follows
from kleash.compare.read.markdown.draft import Draft, Printed, identity
from kleash.compare.read.markdown.numbers import VALUE, Place
from kleash.compare.read.markdown.page import Page, Span, edited, percent
from kleash.compare.read.markdown.tables import metric_of

OPEN = re.compile(
    r"[?？]{1,3}|TBD|TODO|待填充|待评估|待补充|待测试?|待定|待完成|待更新|待运行|pending", re.I
)
FAR, ENOUGH = 0.1, 3  # of a number: farther is another level; so many, and most of all
_BRACKET = re.compile(r"\s*[(（][^()（）]*[)）]\s*$")


@dataclass(frozen=True)
class Change:
    """A cell that was filled or corrected: its line and place, what stood there and stands now."""

    line: int
    spot: str
    before: str
    after: str
    runs: int = 0
    file: str = ""


@dataclass(frozen=True)
class Left:
    """A cell that stays open: whose it is, why, and what would fill it."""

    line: int
    spot: str
    why: str
    arm: str
    place: Place
    metric: str
    command: str


@dataclass
class Filled:
    """What became of a report."""

    text: str = ""
    filled: list[Change] = field(default_factory=list)
    corrected: list[Change] = field(default_factory=list)
    left: list[Left] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)
    """What is not the logs': asked about before anything is written."""
    unsaid: list[str] = field(default_factory=list)
    """What could not be compared, as one of both does not say it."""


def fill(draft: Draft, page: Page, logs: Logs) -> Filled:
    """A report with its open cells filled from logs, and what its numbers give worked out again."""
    filler = _Filler(draft, page, logs)
    filler.made.differences, filler.made.unsaid = stated(draft.source, logs.sources)
    filler.made.differences += filler.level()
    for cell in filler.open:
        if is_value(cell):
            filler.measure(cell)
    filler.correct("mean")
    filler.work_out()
    filler.correct("difference", "relative")
    filler.made.left = list(filler.left())
    filler.made.text = edited(page, filler.edits)
    return filler.made


def guilty_of(every: Sequence[Derived]) -> set[Where]:
    """Results that do not follow, but for those whose numbers fail elsewhere more often."""
    weight, found = Counter[Where](), set[Where]()
    for one in every:
        held = follows(one)
        for where in {number.where for number in (one.number, *one.of, *one.minus)}:
            weight[where] += 0 if held is None else -1 if held else 1
    for one in every:
        most = max((weight[number.where] for number in (*one.of, *one.minus)), default=0)
        if follows(one) is False and most <= weight[one.number.where]:
            found.add(one.number.where)
    return found


def is_value(cell: Printed) -> bool:
    """Whether a cell holds what was measured, and no setting."""
    return cell.sense.role == "value" and not cell.sense.setting


class _Filler:
    def __init__(self, draft: Draft, page: Page, logs: Logs) -> None:
        self.draft, self.page, self.logs = draft, page, logs
        self.made, self.edits, self.styles = Filled(), dict[Span, str](), Styles(draft)
        self.values = dict[Where, Number]()
        """What is now known of cells that were open, or wrong."""
        self.derived = sorted(draft.source.derived, key=lambda one: one.kind != "mean")
        self.means = {one.number.where for one in self.derived if one.kind == "mean"}
        self.cells = {cell.where: cell for cell in draft.printed}
        texts = ((cell, self.page.text[slice(*self.span(cell))]) for cell in draft.printed)
        self.open = [cell for cell, text in texts if OPEN.fullmatch(text.strip("*_` "))]
        known = ((cell, number, self.named(cell)) for cell, number, _ in self.styles.every)
        self.logged = [(cell, number, found) for cell, number, found in known if found]
        """Printed numbers that the logs have too, by name."""

    def span(self, cell: Printed) -> Span:
        """Where a cell stands in the text."""
        spans = self.page.cells(cell.line)
        return spans[cell.column] if cell.column < len(spans) else (0, 0)

    def asked(self, cell: Printed) -> tuple[str, Place]:
        """The metric that a cell is of; and what it, its row and its column say of its place."""
        number = cell.read.number
        metric = "" if number is None else metric_of(self.draft, cell.sense, number)
        return metric, cell.read.place.over(cell.sense.place)

    def named(self, cell: Printed) -> Measured | None:
        """What logs have under the names that a cell stands under; no mean is measured."""
        sense = cell.sense
        if cell.read.number is None or cell.where in self.means:
            return None
        return self.logs.look(sense.arm or "", *self.asked(cell), sense.statistic, sense.seed)

    def measure(self, cell: Printed) -> None:
        """Fill one cell from the logs, if they have it."""
        traced, found = self.logs.traced.get((cell.line, cell.column)), self.named(cell)
        if cell.read.number is None or cell.where in self.means:
            return
        if traced is not None:
            like = self.styles.of(cell, *self.asked(cell), traced.value)
            value, runs, file = traced.value / (100 if like.unit == "%" else 1), 1, traced.file
        elif found is not None:
            like = self.styles.of(cell, *self.asked(cell), found.value)
            value, runs, file = as_printed(found, like), found.runs, found.file
            # A column of changes has them as falls where those known have the other sign.
            column = [
                (number.value or 0.0) * measured.value < 0
                for other, number, measured in self.logged
                if (other.table, other.column) == (cell.table, cell.column)
            ]
            if cell.sense.statistic == "change" and column and all(column):
                value = -value
        else:
            return
        if self.styles.is_alike(cell, value):
            self.put(cell, value, like, runs, file)

    def level(self) -> Iterator[Difference]:
        """That most printed numbers which the logs have too, by name, are others there."""
        every = [one for one in self.logged if is_value(one[0])]
        far = []
        for cell, number, found in every:
            here, there = abs(number.value or 0.0), abs(as_printed(found, number))
            if abs(here - there) > max(FAR * here, 10.0 ** -(number.decimals or 0)):
                far.append((cell, number, found))
        if len(far) >= ENOUGH and 2 * len(far) > len(every):
            cell, number, found = far[0]
            measured = written_like(as_printed(found, number), number)
            logs = f"{measured} ({found.file}; {len(far)}/{len(every)})"
            yield Difference("level", number.text, logs, cell.line)

    def put(
        self,
        cell: Printed,
        value: float,
        like: Number,
        runs: int = 0,
        file: str = "",
        note: str = "",
    ) -> None:
        """Write a value into an open cell, in the style of another number."""
        match = OPEN.search(self.page.text, *self.span(cell))
        assert match is not None
        after = written_like(value, like) + note
        self.edits[match.span()] = after
        self.values[cell.where] = replace(like, value=value, state="known", where=cell.where)
        change = Change(cell.line, cell.where.spot, match.group(), after, runs, file)
        self.made.filled.append(change)

    # --- what is worked out

    def again(self, derived: Derived, *, every: bool = True) -> Derived:
        """A result of numbers as they are known by now.

        As if printed in full: every one, or those that were not printed.
        """

        def exact(old: Number) -> Number:
            new = self.values.get(old.where, old)
            return replace(new, decimals=None) if every or new is not old else new

        of, minus = (tuple(map(exact, own)) for own in (derived.of, derived.minus))
        return replace(derived, of=of, minus=minus)

    def work_out(self) -> None:
        """Open means and differences whose numbers are all there, means first."""
        still = {cell.where for cell in self.open}
        for one in self.derived:
            cell = self.cells.get(one.number.where)
            if cell is None or cell.where not in still or cell.where in self.values:
                continue
            note = ""
            if not one.of and len(one.arms) == 2:  # over other tables: as its neighbours count
                place, note = self._beside(cell)
                of, minus = (self._numbers(arm, place) for arm in one.arms)
                one = replace(one, of=of, minus=minus)
            given = allowed(self.again(one))
            if given is not None and one.of:
                operands = [self.values.get(each.where, each) for each in (*one.of, *one.minus)]
                like = self.styles.of_result(one.kind, operands, cell)
                self.put(cell, sum(given) / 2, like, note=note)

    def _beside(self, cell: Printed) -> tuple[Place, str]:
        """The place that a cell of the same column, else table, gives in brackets: " (200样本)"."""
        every = [one for one in self.draft.printed if one.table == cell.table and one.read.place]
        every.sort(key=lambda one: one.column != cell.column)
        if not every:
            return cell.sense.place, ""
        place = every[0].read.place
        found = _BRACKET.search(self.page.text[slice(*self.span(every[0]))])
        note = found.group().rstrip() if found and place.items else ""
        return place.over(cell.sense.place), note

    def _numbers(self, arm: str, place: Place) -> tuple[Number, ...]:
        """The cells of an arm at an epoch and a count of items, over all shots, each once."""
        found, wanted = dict[int, Number](), (arm, "value", place.epoch, place.items)
        for cell in self.draft.printed:
            at, number = cell.sense.place, cell.read.number
            if number is None or (number.value is None and cell.where not in self.values):
                continue
            own = (cell.sense.arm, cell.sense.role, at.epoch, at.items)
            if own == wanted and at.shots is not None:
                found.setdefault(at.shots, number)
        return tuple(found.values())

    # --- what was wrong

    def correct(self, *kinds: str) -> None:
        """Numbers that were worked out wrongly, the old text struck out beside the new."""
        guilty = guilty_of(self.draft.source.derived)
        for derived in self.derived:
            cell, number = self.cells.get(derived.number.where), derived.number
            if cell is None or number.value is None or derived.kind not in kinds:
                continue
            fresh = any(n.where in self.values for n in (*derived.of, *derived.minus))
            given, shown = allowed(self.again(derived)), self.again(derived, every=False)
            fails = given is not None and follows(shown) is False and not roughly(shown)
            if given is not None and fails and (fresh or number.where in guilty):
                self._strike(cell, number, sum(given) / 2)

    def _strike(self, cell: Printed, number: Number, value: float) -> None:
        size = abs(number.value or 0.0) * (100 if number.unit == "%" else 1)
        for match in VALUE.finditer(self.page.text, *self.span(cell)):
            digits = re.sub(r"[^\d.]", "", match[2])
            if digits.count(".") > 1 or abs(float(digits) - size) > 1e-12 * max(1, size):
                continue
            before = match.group().strip()
            signed = match[1] or cell.sense.role == "difference"
            like = replace(number, text=percent(before) + ("+" if signed else ""))
            after = written_like(value, like)
            where = (match.start(), match.start() + len(match.group().rstrip()))
            if after != before and where not in self.edits:
                self.edits[where] = f"{after} ~~{before}~~"
                self.made.corrected.append(Change(cell.line, cell.where.spot, before, after))
                if number is cell.read.number:
                    self.values[cell.where] = replace(like, value=value)
            return

    # --- what stays

    def left(self) -> Iterator[Left]:
        """The cells that stay open, and why."""
        runs = self.draft.source.runs
        own = {one.number.where: one.command for run in runs for one in run.cells if one.command}
        for cell in [cell for cell in self.open if cell.where not in self.values]:
            sense, (metric, place) = cell.sense, self.asked(cell)
            why = "words" if sense.role in ("remark", "winner") or sense.setting else "unmeasured"
            why = "derived" if sense.role == "difference" or cell.where in self.means else why
            command = own.get(cell.where, "")
            yield Left(cell.line, cell.where.spot, why, sense.arm or "", place, metric, command)


def commands(left: Sequence[Left], logs: Logs, report: Path) -> dict[str, list[Left]]:
    """By command, the cells that it would measure; what follows from others is not in it."""
    found: dict[str, list[Left]] = defaultdict(list)
    asked: dict[tuple[tuple[str, ...], int], list[Left]] = defaultdict(list)
    source, file = (shlex.quote(text) for text in (str(report), f"{report.stem}.toml"))
    study = f"kleash study from {source} --out {file} && kleash study {file}"
    for one in [one for one in left if one.why == "unmeasured"]:
        arm = logs.match.get(one.arm)
        every = [] if arm is None else [run for each in arm.replicates for run in each.runs[:1]]
        ours = tuple(run.where.file for run in every if run.format == "kleash")
        if ours and one.place.epoch is not None:
            asked[ours, one.place.epoch].append(one)
        else:
            found[(ours and one.command) or study].append(one)
    for (runs, epoch), cells in asked.items():
        found["\n".join(_measuring(Path(run), epoch, cells) for run in runs)] += cells
    return dict(found)


def _measuring(run: Path, epoch: int, cells: Sequence[Left]) -> str:
    """`kleash eval` of one checkpoint; training it first where it is not there."""
    shots = sorted({one.place.shots for one in cells if one.place.shots is not None})
    items = [one.place.items for one in cells if one.place.items is not None]
    train = f"kleash train {shlex.quote(str(run))} epochs={epoch}"
    if not shots and not items:
        return train
    measure = f"kleash eval {shlex.quote(str(run))} --checkpoint epoch-{epoch}"
    measure += f" --shots {','.join(map(str, shots))}" if shots else ""
    measure += f" --items {max(items)}" if items else ""
    return measure if (run / f"checkpoints/epoch-{epoch}").is_dir() else f"{train} && {measure}"


ALIKE = 3.0  # times that numbers of one column or row may differ to be of one size
ONE = 10.0  # the same where a column has only one


def written_like(value: float, like: Number) -> str:
    """A value written as another number is: decimals, percent sign, sign."""
    share = like.unit == "%"
    decimals = max(0, (4 if like.decimals is None else like.decimals) - (2 if share else 0))
    text = f"{100 * value if share else value:z.{decimals}f}"
    return "+" * ("+" in like.text and float(text) > 0) + text + suffix(like)


def suffix(like: Number) -> str:
    """The percent sign or unit of time behind a number, as it is printed."""
    if like.unit == "%":
        return percent(like.text)
    is_time = like.unit == "s" or like.unit.rstrip("s") in SECONDS
    found = re.search(rf"\s?{re.escape(like.unit)}\s*$", like.text) if is_time else None
    return found.group() if found else ""


def written_as_row(row: Sequence[Number], column: Sequence[Number], value: float) -> bool:
    """Whether a number is written as its row is, which has one style: rows are quantities.

    Then its column has none, or one of numbers of another size.
    """
    styles = [{(one.decimals, one.unit) for one in side} for side in (row, column)]
    if len(row) < 2 or not column or len(styles[0]) > 1:
        return False
    sizes = [[abs(one.value) for one in side if one.value] for side in (row, column)]
    return len(styles[1]) > 1 or (_is_of(sizes[0], value) and not _is_of(sizes[1], value))


def _is_of(sizes: Sequence[float], value: float, room: float = ALIKE) -> bool:
    """Whether a value is of one size with others."""
    return bool(sizes) and min(sizes) / room <= abs(value) <= room * max(sizes)


def finest(numbers: Sequence[Number]) -> Number:
    """The number with most decimals."""
    return max(numbers, key=lambda one: one.decimals or 0)


class Styles:
    """The known numbers of a report's tables, by which others are written."""

    def __init__(self, draft: Draft) -> None:
        self.every = [
            (cell, number, identity(metric_of(draft, cell.sense, number)))
            for cell in draft.printed
            if (number := cell.read.number) is not None and number.value is not None
        ]

    def of(self, cell: Printed, metric: str, place: Place, value: float) -> Number:
        """How numbers like it are written: in its column or row, of its items, of its metric."""
        every = [
            (other, number, what == identity(metric))
            for other, number, what in self.every
            if other.sense.role == "value" and not other.sense.setting
        ]
        table = [one for one in every if one[0].table == cell.table]
        column = [one for one in table if one[0].column == cell.column]
        row = [one for one in table if one[0].line == cell.line]
        items = [one for one in every if place.items and one[0].sense.place.items == place.items]
        own = [number for _, number, _ in row]
        nearest = [own if written_as_row(own, [number for _, number, _ in column], value) else []]
        nearest += [[n for _, n, alike in some if alike] for some in (column, row, items, table)]
        nearest += [own, [number for _, number, alike in every if alike]]
        if found := next(filter(None, nearest), None):
            like = finest(found)
            return replace(like, text=suffix(like))
        share = "%" * (place.shots is not None or place.items is not None)
        return Number(None, "known", cell.where, 4, unit=share, text=share)

    def is_alike(self, cell: Printed, value: float) -> bool:
        """Whether a value may stand where it would: as large as its column's, else its row's.

        Where these are of all sizes, nothing is said.
        """
        own = [(o, abs(n.value)) for o, n, _ in self.every if o.table == cell.table and n.value]
        column = [size for other, size in own if other.column == cell.column]
        row = [size for other, size in own if other.line == cell.line]
        for sizes in (column, row):
            if len(sizes) > 1 and max(sizes) <= ALIKE * min(sizes):
                return _is_of(sizes, value)
        return len(column) != 1 or _is_of(column, value, ONE)

    def of_result(self, kind: str, operands: Sequence[Number], cell: Printed) -> Number:
        """How a result is written: as those of its column, else with the digits of its numbers."""
        role = cell.sense.role
        every = [(o, n) for o, n, _ in self.every if (o.table, o.sense.role) == (cell.table, role)]
        beside = [number for other, number in every if other.column == cell.column]
        beside = beside or [number for _, number in every if role == "difference"]
        first = finest(beside) if beside else next((n for n in operands if n.unit), operands[0])
        decimals = None if beside else finest(operands).decimals
        sign = percent(first.text) or "%" * (first.unit == "%")
        text = sign + "+" * (kind != "mean")
        return replace(first, decimals=decimals or first.decimals, text=text)
