"""The open cells of a report, filled with what was measured; nothing else of it is touched.

A cell that asks ("?", "TBD", 待填充) gets what the logs have for it, written as its neighbours are.
Means and differences are worked out again from what then stands there. One that was wrong keeps its
old text struck out beside the new one, so that filling again changes nothing. What was never
measured stays as it is, and is listed with what would measure it.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from kleash.documents.logs import Held, Logs, as_printed
from kleash.documents.page import Page, Span, edited, percent
from kleash.documents.styles import is_alike, result_style, style_of, written_like
from kleash.findings.identities import roughly
from kleash.imports import Derived, Number, Where
from kleash.imports.markdown.derived import allowed, follows
from kleash.imports.markdown.differences import metric_of
from kleash.imports.markdown.draft import Draft, Printed
from kleash.imports.markdown.numbers import VALUE, Place

OPEN = re.compile(
    r"[?？]{1,3}|TBD|TODO|待填充|待评估|待补充|待测试?|待定|待完成|待更新|待运行|pending", re.I
)
Spot = tuple[int, str]
NOWHERE = Place()


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
    arm: str = ""
    place: Place = NOWHERE
    metric: str = ""
    command: str = ""


@dataclass
class Filled:
    """What became of a report."""

    text: str = ""
    filled: list[Change] = field(default_factory=list)
    corrected: list[Change] = field(default_factory=list)
    left: list[Left] = field(default_factory=list)


def fill(draft: Draft, page: Page, logs: Logs) -> Filled:
    """A report with its open cells filled from logs, and what its numbers give worked out again."""
    filler = _Filler(draft, page, logs)
    for cell in draft.printed:
        if is_open(page, cell) and cell.sense.role == "value" and not cell.sense.setting:
            filler.measure(cell)
    filler.correct("mean")
    filler.work_out()
    filler.correct("difference", "relative")
    filler.list_left()
    filler.made.text = edited(page, filler.edits)
    return filler.made


def oriented(every: Sequence[Derived]) -> list[Derived]:
    """Differences of two arms, all in the order in which most of the document takes them."""
    ways: dict[frozenset[str], Counter[tuple[str, ...]]] = defaultdict(Counter)
    for one in every:
        if _has_order(one) and follows(one):
            ways[frozenset(one.arms)][one.arms] += 1
    made = []
    for one in every:
        counts = ways.get(frozenset(one.arms), Counter()) if _has_order(one) else Counter()
        usual = counts.most_common(1)[0][0] if counts else one.arms
        clear = counts[usual] >= max(4, 2 * (counts.total() - counts[usual]))
        if usual != one.arms and clear:
            one = replace(one, of=one.minus, minus=one.of, arms=usual)
        made.append(one)
    return made


def _has_order(one: Derived) -> bool:
    """Whether a difference would have the other sign if it were taken the other way round."""
    plain = one.kind == "difference" and not one.unsigned and bool(one.number.value)
    return plain and len(one.arms) == 2


def guilty_of(every: Sequence[Derived]) -> set[Where]:
    """Results that do not follow, but for those whose numbers fail elsewhere more often."""
    failing = [one for one in oriented(every) if follows(one) is False]
    weight = Counter[Where]()
    for one in every:
        held = follows(one)
        for where in {number.where for number in (one.number, *_of(one))}:
            weight[where] += 0 if held is None else -1 if held else 1
    return {
        one.number.where
        for one in failing
        if all(weight[each.where] <= weight[one.number.where] for each in _of(one))
    }


def _of(one: Derived) -> tuple[Number, ...]:
    return (*one.of, *one.minus)


def raw_cell(page: Page, cell: Printed) -> Span | None:
    """Where a cell stands in the text."""
    spans = page.cells(cell.line)
    return spans[cell.column] if cell.column < len(spans) else None


def is_open(page: Page, cell: Printed) -> bool:
    """Whether a cell asks to be filled, marks of emphasis aside."""
    span = raw_cell(page, cell)
    text = "" if span is None else page.text[slice(*span)].strip("*_` ")
    return OPEN.fullmatch(text) is not None


@dataclass
class _Filler:
    draft: Draft
    page: Page
    logs: Logs
    made: Filled = field(default_factory=Filled)
    edits: dict[Span, str] = field(default_factory=dict)
    fixed: set[Spot] = field(default_factory=set)
    values: dict[Spot, float] = field(default_factory=dict)
    """What is now known of cells that were open, or wrong."""

    def measure(self, cell: Printed) -> None:
        """Fill one cell from the logs, if they have it."""
        place = cell.read.place.over(cell.sense.place)
        number = cell.read.number
        if number is None or self._is_derived(cell):
            return
        metric = metric_of(self.draft, cell.sense, number)
        found = self.logs.traced.get((cell.line, cell.column)) or self._looked_up(cell, number)
        if found is not None:
            style = style_of(self.draft, cell, metric, place, found.value)
            share = 100 if style.unit == "%" else 1
            value = found.value / share if found.printed else as_printed(found.value, metric, style)
            if self._tells_falls(cell):
                value = -value
            if is_alike(self.draft, cell, value):
                self.put(cell, value, style, runs=found.runs, file=found.file)

    def _looked_up(self, cell: Printed, number: Number) -> Held | None:
        """What logs have under the names that a cell stands under."""
        sense, place = cell.sense, cell.read.place.over(cell.sense.place)
        metric = metric_of(self.draft, sense, number)
        return self.logs.look(sense.arm or "", metric, place, sense.statistic, sense.seed)

    def _tells_falls(self, cell: Printed) -> bool:
        """Whether its column is one of falls: known changes have the sign that they do not have."""
        if cell.sense.statistic != "change":
            return False
        told = [
            (number.value, held.value)
            for one in self.draft.printed
            if (one.table, one.column) == (cell.table, cell.column)
            and (number := one.read.number)
            and number.value
            and (held := self._looked_up(one, number))
        ]
        return bool(told) and all(shown * measured < 0 for shown, measured in told)

    def _is_derived(self, cell: Printed) -> bool:
        return any(
            derived.kind == "mean" and derived.number.where == cell.where
            for derived in self.draft.source.derived
        )

    def put(
        self,
        cell: Printed,
        value: float,
        like: Number,
        *,
        runs: int = 0,
        file: str = "",
        note: str = "",
    ) -> None:
        """Write a value into an open cell, in the style of another number."""
        span = raw_cell(self.page, cell)
        if span is None:
            return
        raw = self.page.text[slice(*span)]
        match = OPEN.search(raw)
        if match is None:
            return
        after = written_like(value, like) + note
        where = (span[0] + match.start(), span[0] + match.end())
        self.edits[where] = after
        self.values[cell.line, cell.where.spot] = value
        change = Change(cell.line, cell.where.spot, match.group(), after, runs, file)
        self.made.filled.append(change)

    # --- what is worked out

    def value(self, number: Number) -> Number:
        """A number of the report with the value that it has by now."""
        spot = (number.where.line or 0, number.where.spot)
        known = self.values.get(spot)
        if known is not None and (number.value is None or spot in self.fixed):
            return replace(number, value=known, state="known", decimals=None)
        return number

    def work_out(self) -> None:
        """Open means and differences whose numbers are all there, means first."""
        cells = {cell.where: cell for cell in self.draft.printed}
        every = sorted(oriented(self.draft.source.derived), key=lambda one: one.kind != "mean")
        for derived in every:
            cell = cells.get(derived.number.where)
            if cell is None or derived.number.value is not None or not is_open(self.page, cell):
                continue
            if (cell.line, cell.where.spot) in self.values:
                continue
            whole = self._with_operands(derived, cell)
            exact = allowed(whole)
            if exact is not None and whole.of:
                value, like = (exact[0] + exact[1]) / 2, self._result_style(whole, cell)
                self.put(cell, value, like, note="" if derived.of else self._note(cell))

    def _with_operands(self, derived: Derived, cell: Printed) -> Derived:
        """A formula with its numbers; one over other tables takes the count of its neighbours."""
        of, minus = derived.of, derived.minus
        if not of and len(derived.arms) == 2:
            place = self._place_beside(cell)
            of, minus = (tuple(self._numbers(arm, derived.metric, place)) for arm in derived.arms)
        exact = [tuple(map(self._exact, side)) for side in (of, minus)]
        return replace(derived, of=exact[0], minus=exact[1])

    def _exact(self, number: Number) -> Number:
        return replace(self.value(number), decimals=None)

    def _place_beside(self, cell: Printed) -> Place:
        """The place that the other cells of a column, or of a table, give in brackets."""
        beside = self._beside(cell)
        return (beside.read.place if beside else Place()).over(cell.sense.place)

    def _note(self, cell: Printed) -> str:
        """The bracket with the count of items that its neighbour has: " (200样本)"."""
        beside = self._beside(cell)
        span = raw_cell(self.page, beside) if beside else None
        found = (
            re.search(r"\s*[(（][^()（）]*[)）]\s*$", self.page.text[slice(*span)])
            if span
            else None
        )
        return found.group().rstrip() if found and beside and beside.read.place.items else ""

    def _beside(self, cell: Printed) -> Printed | None:
        """A cell of the same column, else of the same table, that gives a place in brackets."""
        every = [one for one in self.draft.printed if one.table == cell.table and one.read.place]
        column = [one for one in every if one.column == cell.column]
        return next(iter(column or every), None)

    def _numbers(self, arm: str, metric: str, place: Place) -> Iterator[Number]:
        """The cells of an arm at an epoch and a count of items, over all shots, each once."""
        seen: set[int | None] = set()
        for cell in self.draft.printed:
            at, number = cell.sense.place, cell.read.number
            ours = cell.sense.arm == arm and cell.sense.role == "value" and number is not None
            if not ours or number is None or at.shots is None or at.shots in seen:
                continue
            fits = at.epoch == place.epoch and at.items == place.items
            if fits and self.value(number).value is not None:
                seen.add(at.shots)
                yield number

    def _result_style(self, derived: Derived, cell: Printed) -> Number:
        """How a result is written, among the numbers as they stand by now."""
        texts = {(change.line, change.spot): change.after for change in self.made.filled}
        return result_style(self.draft, derived, cell, texts)

    # --- what was wrong

    def correct(self, *kinds: str) -> None:
        """Numbers that were worked out wrongly, the old text struck out beside the new."""
        guilty = guilty_of(self.draft.source.derived)
        cells = {cell.where: cell for cell in self.draft.printed}
        for derived in oriented(self.draft.source.derived):
            cell, number = cells.get(derived.number.where), derived.number
            if cell is None or number.value is None or derived.kind not in kinds:
                continue
            whole = replace(
                derived,
                of=tuple(map(self.value, derived.of)),
                minus=tuple(map(self.value, derived.minus)),
            )
            fresh = whole != derived
            if (
                follows(whole) is not False
                or roughly(whole)
                or not (fresh or number.where in guilty)
            ):
                continue
            exact = allowed(self._plain(whole))
            if exact is not None:
                self._strike(cell, number, (exact[0] + exact[1]) / 2)

    @staticmethod
    def _plain(derived: Derived) -> Derived:
        of, minus = (
            tuple(replace(one, decimals=None) for one in side)
            for side in (derived.of, derived.minus)
        )
        return replace(derived, of=of, minus=minus)

    def _strike(self, cell: Printed, number: Number, value: float) -> None:
        span = raw_cell(self.page, cell)
        if span is None:
            return
        raw = self.page.text[slice(*span)]
        for match in VALUE.finditer(raw):
            digits = re.sub(r"[^\d.]", "", match[2])
            if not digits or abs(abs(_float(digits)) - _printed(number)) > 1e-12 * max(
                1, _printed(number)
            ):
                continue
            before = match.group().strip()
            like = replace(number, text=percent(before) + "+")
            signed = match[1] or cell.sense.role == "difference"
            after = written_like(
                value, like if signed else replace(like, text=like.text.rstrip("+"))
            )
            start = span[0] + match.start()
            where = (start, start + len(match.group().rstrip()))
            if after != before and where not in self.edits:
                self.edits[where] = f"{after} ~~{before}~~"
                change = Change(cell.line, cell.where.spot, before, after)
                self.made.corrected.append(change)
                if number is cell.read.number:
                    self.fixed.add((cell.line, cell.where.spot))
                    self.values[cell.line, cell.where.spot] = value
            return

    # --- what stays

    def list_left(self) -> None:
        """The cells that stay open, and why."""
        known: Sequence[Printed] = self.draft.printed
        for cell in known:
            spot = (cell.line, cell.where.spot)
            if not is_open(self.page, cell) or spot in self.values:
                continue
            role, number = cell.sense.role, cell.read.number
            why = "words" if role in ("remark", "winner") or cell.sense.setting else "unmeasured"
            why = "derived" if role == "difference" or self._is_derived(cell) else why
            place = cell.read.place.over(cell.sense.place)
            metric = "" if number is None else metric_of(self.draft, cell.sense, number)
            command = self._command(cell)
            arm = cell.sense.arm or ""
            self.made.left.append(
                Left(cell.line, cell.where.spot, why, arm, place, metric, command)
            )

    def _command(self, cell: Printed) -> str:
        """What the report itself says would measure a cell."""
        for run in self.draft.source.runs:
            for one in run.cells:
                if one.number.where == cell.where and one.command:
                    return one.command
        return ""


def _float(digits: str) -> float:
    try:
        return float(digits)
    except ValueError:
        return 0.0


def _printed(number: Number) -> float:
    """A number's size as it stands in the text."""
    return abs(number.value or 0.0) * (100 if number.unit == "%" else 1)
