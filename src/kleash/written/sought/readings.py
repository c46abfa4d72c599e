"""Which numbers of logs a line of a table is: every reading is tried, and chance is reckoned with.

A reading gives each cell a unit, a metric and a place, by its labels or the same for all. How much
it explains is weighed against how many were tried: a number with many digits among values that
differ widely tells much, one that half the statistics of its curve would fit tells nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log

import numpy as np
import numpy.typing as npt

from kleash.stats import Floats
from kleash.written.sought.labels import Choice, Index, Labels
from kleash.written.sought.lines import Line, counted
from kleash.written.sought.measures import AVERAGED, DERIVED, PAST, STEPS, Measures, Unit
from kleash.written.sought.naming import Namer, is_step, metrics_in, places_in, statistics_in

SCALES = (1.0, 100.0)  # a share may be logged as a fraction and printed in percent
HOURS = (1 / 3600, 1 / 60, 2 / 3600, 4 / 3600, 8 / 3600, 16 / 3600, 32 / 3600)  # of so many GPUs
SLIP = log(30)  # what a number costs that is not what a reading says
FEWEST = 2
SOME = 40  # readings of one kind that are weighed
MOST = 300  # readings of a line that are kept
CLEAR = 18.0  # how much must speak for a reading that all numbers fit, to look no further
RELATIVE = "relative change"  # it has no unit: what is rounded in it is a share too
LOOSE = 3.0  # times its rounding that a difference may be off: it may be of rounded numbers
TWICE = 2.0  # the same for a mean of rounded numbers
FLOOR = 3.0  # numbers of one digit that fit tell little
OFTEN = 0.9  # how likely the last step is the best one
FEW = 3  # points that do not show how widely a metric varies
LIKELIEST = 1e-4  # no number tells more than this
AGAINST = 1e5  # how much less likely a reading is that labels speak against
Choices = tuple[Choice, Choice, Choice]
"""Of units, metrics and places."""
Indices = tuple[Index, Index, Index]


@dataclass(frozen=True)
class Reading:
    """What a line may be: for each token a unit, a metric and a place, and how sure that is."""

    units: Index
    metrics: Index
    places: Index
    scale: float
    fits: tuple[bool | None, ...]
    """By token; None where it says nothing of it."""
    score: float
    complete: bool
    """Whether labels name its runs, its metric and its statistic."""
    against: bool
    """Whether labels name other runs or steps."""
    placed: bool
    """Whether labels name its runs and its steps."""
    beside: bool = False
    """Whether it has the steps of bests that stand in the same table."""

    @property
    def slips(self) -> int:
        return sum(one is False for one in self.fits)

    @property
    def clear(self) -> bool:
        """Whether it is so good that no other need be looked for."""
        return self.score > CLEAR and not self.slips


@dataclass(frozen=True)
class Printed:
    """The numbers of a line that a way of reading speaks of."""

    use: list[int]
    values: Floats
    half: Floats
    digits: list[int]


class Search:
    """The search for readings among all that logs have."""

    def __init__(self, measures: Measures, namer: Namer) -> None:
        self.measures = measures
        self.labels = Labels(measures, namer)
        self.context: dict[int, set[tuple[int, str]]] = {}
        """By table the metrics that it is known to have, and what is taken of each."""
        self.kinds = np.array([place[0] for place in measures.places])
        self.derived = np.isin(self.kinds, DERIVED)
        self.averaged = np.isin(self.kinds, AVERAGED)
        self.whole = ~np.isin(self.kinds, STEPS)
        at = measures.at
        self.last = at["last step", 0.0, 0.0]
        self.points = measures.values[:, :, at["points", 0.0, 0.0]]
        first = np.abs(measures.values[:, :, at["first", 0.0, 0.0]])
        self.first = np.where(first > 0, first, 1.0)
        ends = [measures.values[:, :, at[kind, 0.0, 0.0]] for kind in ("max", "min")]
        self.extent = self._extents(ends[0] - ends[1])

    def learn(self, line: Line, sure: Sequence[Reading]) -> None:
        """Which metrics a table has, from readings of a line that are sure."""
        for one in sure:
            pairs = zip(one.metrics.tolist(), one.places.tolist(), strict=True)
            told = {(metric, str(self.kinds[place])) for metric, place in pairs if metric >= 0}
            self.context.setdefault(line.table.sheet.nth, set()).update(told)

    def readings(self, line: Line) -> list[Reading]:
        """Every reading of a line that is worth a thought, best first."""
        known = [nth for nth, one in enumerate(line.tokens) if one.figure is not None]
        if len(known) < FEWEST:
            return []
        found = list[Reading]()
        every = Choice(None)
        places, metrics = self.labels.places(line), self.labels.metrics(line)
        for unit in (*self.labels.units(line), every):
            for metric in (*metrics, every):
                # One run, one metric and one place are one number.
                fixed = unit.index is None and metric.index is None
                for place in places if fixed else (*places, every):
                    choices = (unit, metric, place)
                    if not line.block or sum(one.index is None for one in choices) < FEWEST:
                        found += self._tried(line, known, choices)
            if any(one.clear for one in found):
                break
        return sorted(found, key=lambda one: -one.score)[:MOST]

    def _tried(self, line: Line, known: Sequence[int], choices: Choices) -> Iterator[Reading]:
        """The readings of one way to read a line that most of its numbers fit."""
        printed = _printed(line, known, choices)
        if printed is None:
            return
        index = self._index(choices, printed.use)
        taken = self.measures.values[index]
        there = np.isfinite(taken).sum(0)
        timed = self.measures.timed[index[1]].all(0)
        shape = (-1, 1, 1, 1)
        half = self.measures.halves[index[:2]]  # of the curve's own last digit, if it was printed
        half = np.where(self.kinds[index[2]] == RELATIVE, half / self.first[index[:2]], half)
        loose = np.where(self.averaged[index[2]] & (half > 0), TWICE, 1.0)
        loose = np.where(self.derived[index[2]], LOOSE, loose)
        for scale in (*SCALES, *HOURS) if timed.any() else SCALES:
            room = loose * np.maximum(printed.half.reshape(shape), scale * half)
            fit = np.abs(scale * taken - printed.values.reshape(shape)) <= room
            count = fit.sum(0)
            good = (count >= FEWEST) & (count * 2 > there) & (timed | (scale in SCALES))
            spots = np.argwhere(good) if good.any() else np.empty((0, 3), int)
            if len(spots) > SOME:
                spots = spots[np.argsort(-count[good], kind="stable")[:SOME]]
            for a, b, c in spots.tolist():
                units, metrics, places = (_picked(one, (a, b, c), len(fit)) for one in index)
                chosen = (units, metrics, places)
                yield self._weighed(line, printed, choices, chosen, (scale, fit[:, a, b, c]))

    def _index(self, choices: Choices, use: Sequence[int]) -> Indices:
        made = []
        for axis, choice in enumerate(choices):
            if choice.index is not None:
                made.append(choice.index[use].reshape(-1, 1, 1, 1))
            else:
                shape = [1, 1, 1, 1]
                shape[axis + 1] = self.measures.values.shape[axis]
                made.append(np.arange(shape[axis + 1]).reshape(shape))
        return made[0], made[1], made[2]

    # --- how much speaks for a reading

    def _weighed(
        self,
        line: Line,
        printed: Printed,
        choices: Choices,
        chosen: Indices,
        fitting: tuple[float, npt.NDArray[np.bool_]],
    ) -> Reading:
        """A reading with what speaks for it."""
        scale, fits = fitting
        there = np.isfinite(self.measures.values[chosen])
        score, told = 0.0, set[tuple[int, ...]]()
        for n in np.flatnonzero(fits).tolist():
            key = (int(chosen[0][n]), int(chosen[1][n]), int(chosen[2][n]))
            if key not in told:
                told.add(key)
                score -= log(self._chance(key, scale, printed, n))
        score -= SLIP * int((there & ~fits).sum())
        tries, complete, against = self._tries(line, choices, chosen, scale)
        score -= log(tries * (AGAINST if against else 1))
        whole = [
            np.full(len(line.tokens), one[0]) if choice.index is None else choice.index
            for choice, one in zip(choices, chosen, strict=True)
        ]
        told_fits: list[bool | None] = [None] * len(line.tokens)
        for n, fit, known in zip(printed.use, fits, there, strict=True):
            told_fits[n] = bool(fit) if known else None
        every = (whole[0], whole[1], whole[2], scale, tuple(told_fits))
        placed = choices[0].named and choices[2].named
        return Reading(
            *every, score, complete, against, placed, self._beside_its_best(line, chosen)
        )

    def _extents(self, of_runs: Floats) -> Floats:
        """How widely each metric of each unit varies."""
        made, of = of_runs.copy(), self.measures.of
        for unit, nth in of.items():
            if unit.over in ("sd", "population sd", "range"):
                values = np.where(self.whole, self.measures.values[nth], np.nan)
                made[nth] = np.fmax.reduce(values, 1)
            elif unit.over:
                made[nth] = of_runs[of[Unit(unit.group, None, "curve")]]
        # What was measured once varies from run to run.
        last = self.measures.values[:, :, self.measures.at["last", 0.0, 0.0]]
        between = np.fmax.reduce(last, 0) - np.fmin.reduce(last, 0)
        return np.where(self.points < FEW, np.fmax(made, between), made)

    def _chance(self, key: tuple[int, int, int], scale: float, printed: Printed, n: int) -> float:
        """How likely a number would fit, were it another of the same metric and unit."""
        unit, metric, place = key
        if not self.whole[place]:
            last = self.measures.values[unit, metric, self.last] == printed.values[n]
            return OFTEN if last else float(1 / max(1.0, self.points[unit, metric]))
        value, half = printed.values[n], printed.half[n]
        every = scale * self.measures.values[unit, metric]
        mine = every[place]
        other = (np.abs(every - value) <= half) & self.whole
        other &= np.abs(every - mine) > 1e-9 * max(1e-9, abs(mine))
        extent = scale * self.extent[unit, metric]
        if self.kinds[place] == "sum":
            extent *= self.points[unit, metric]
        width = 2 * half / extent if extent > 0 else 1.0
        share = other.sum() / max(1, int(np.isfinite(every).sum()))
        floor = max(LIKELIEST, FLOOR * 10.0 ** -printed.digits[n])
        return float(min(1.0, max(width, share, floor)))

    def _tries(
        self, line: Line, choices: Choices, chosen: Indices, scale: float
    ) -> tuple[float, bool, bool]:
        """How many readings were as likely before, and whether labels name this one, or another."""
        unit, against = choices[0], self._other_step(line, choices[2], int(chosen[2][0]))
        tries = 1.0 if scale == 1 else 2.0 if scale == 100 else 10.0
        if unit.index is None:
            told = {self.labels.group(line, one, heads=False) for one in line.tokens} - {""}
            other = told and told != {self.measures.units[int(chosen[0][0])].group}
            tries, against = tries * len(self.measures.units), against or bool(other)
        elif not unit.named:
            tries *= len(self.measures.groups)
        if self._beside_its_best(line, chosen):
            return tries, unit.named, against
        of_metric = self._tries_metric(line, choices[1], int(chosen[1][0]))
        of_place = self._tries_place(line, choices[2], int(chosen[2][0]))
        named = unit.named and of_metric[1] and of_place[1]
        return tries * of_metric[0] * of_place[0], named, against

    def _beside_its_best(self, line: Line, chosen: Indices) -> bool:
        """Whether a line of steps stands in one table with the bests that were measured there."""
        metric, kind = int(chosen[1][0]), str(self.kinds[int(chosen[2][0])])
        best = kind.removeprefix("latest ").partition(" ")[0]
        known = self.context.get(line.table.sheet.nth, ())
        words = statistics_in(line.shared)
        told = kind in words or (not words and is_step(line.shared))
        return kind in STEPS and told and (metric, best) in known

    def _other_step(self, line: Line, choice: Choice, place: int) -> bool:
        """Whether the label of a whole line is of another step."""
        label = counted([line.shared])[0][0] if is_step(line.shared) else None
        return (
            choice.index is None and label is not None and self.measures.places[place][1] != label
        )

    def _tries_metric(self, line: Line, choice: Choice, metric: int) -> tuple[float, bool]:
        if choice.index is not None:
            return 4.0, True
        every, heads = self.measures.metrics, line.table.heads
        about = metrics_in(line.shared, every) or metrics_in(heads, every)
        about |= {one for one, _ in self.context.get(line.table.sheet.nth, ())}
        if metric in about:
            return 2.0 * len(about), True
        return 4.0 * len(every), False

    def _tries_place(self, line: Line, choice: Choice, place: int) -> tuple[float, bool]:
        if choice.index is not None:
            return 4.0, True
        words = statistics_in(line.shared) or statistics_in(line.table.heads)
        asked = [*places_in(line.shared), *places_in(line.table.heads)]
        one = self.measures.places[place]
        if one[0] in words or one in asked:
            rivals = [word for word in words if (word in STEPS) != self.whole[place]]
            return 1.0 + len(rivals) + len(asked), True
        # A limit that no label of the table names is none.
        unlikely = AGAINST if one[0] in PAST else 4.0 if words else 1.0
        return len(self.measures.places) * unlikely, False


def _printed(line: Line, known: Sequence[int], choices: Choices) -> Printed | None:
    """The numbers of which all three choices know something, if they are not all the same."""
    use = [n for n in known if all(c.index is None or c.index[n] >= 0 for c in choices)]
    figures = [figure for n in use if (figure := line.tokens[n].figure)]
    if len({one.value for one in figures}) < FEWEST:
        return None
    half = np.array([one.half for one in figures]) * (1 + 1e-6) + 1e-12
    values = np.array([one.value for one in figures])
    return Printed(use, values, half, [one.digits for one in figures])


def _picked(index: Index, place: tuple[int, int, int], count: int) -> Index:
    """By token what a spot of the search means on one axis."""
    a, b, c = (one if size > 1 else 0 for one, size in zip(place, index.shape[1:], strict=True))
    return np.broadcast_to(index[:, a, b, c], (count,))
