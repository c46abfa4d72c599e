"""What was read as checks look at it: numbers with their places, and which runs are one run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain, combinations, groupby
from math import floor, isfinite, log10
from typing import Any, Literal

from kleash.compare.read import Cell, Imported, Series, Source, Where, names

Severity = Literal["note", "warning", "error"]
SLACK = 1e-9  # relative: what floating-point sums may be off by
SHORT, SAMPLED = 200, 20  # a longer series is looked at in that many points
MANY, FEW = 100, 10  # of so many runs each series is looked at in few
REWARDS = ("eval_reward", "reward", "performance")


@dataclass(frozen=True)
class Hit:
    """Where a check fires, and the facts of its sentence; severity where it is not the usual."""

    where: tuple[Where, ...]
    facts: dict[str, Any]
    severity: Severity | None = None


@dataclass(slots=True, eq=False)
class Point:
    """One number of a run at one place, under a canonical name."""

    metric: str
    at: str
    value: float
    known: bool
    decimals: int | None
    origin: Series | Cell
    nth: int = 0
    epoch: float | None = None
    step: float | None = None
    shots: int | None = None
    items: int | None = None

    @property
    def name(self) -> str:
        """The metric as its source calls it."""
        return self.origin.metric

    @property
    def where(self) -> Where:
        """Where it stands."""
        origin = self.origin
        return origin.number.where if isinstance(origin, Cell) else origin.place(self.nth)

    @property
    def half(self) -> float:
        """How far what was printed so may be from it."""
        return 0.0 if self.decimals is None else 0.5 * 10.0**-self.decimals

    @property
    def digits(self) -> int:
        """How many significant digits were printed; equal numbers of few digits mean nothing."""
        if self.value == 0 or self.decimals is None:
            return 15 if self.value else 0
        return len(str(abs(round(self.value * 10.0**self.decimals))))

    @property
    def time(self) -> float:
        """Its epoch, else its step."""
        return self.epoch if self.epoch is not None else self.step or 0.0


Places = dict[tuple[str, str], Point]


class Numbers:
    """The numbers of one run by metric, made once when a check asks for them."""

    def __init__(self, source: Source, run: Imported, most: int = SHORT) -> None:
        self.source, self.run, self.arm, self.most = source, run, run.arm, most
        self.by_hand = run.format == "markdown"
        """Whether a person wrote them down."""
        self.origins: dict[str, list[Series | Cell]] = {}
        every: list[Series | Cell] = [*run.series, *run.cells]
        for origin in every:
            self.origins.setdefault(canonical(origin.metric), []).append(origin)
        self._points: dict[str, list[Point]] = {}

    def hit(self, points: Sequence[Point], **facts: Any) -> Hit:
        """A check fires at some points: the first of them says which metric it is, and where."""
        whose = {"arm": self.arm, "metric": points[0].name, "at": points[0].at}
        return Hit(tuple(dict.fromkeys(point.where for point in points)), whose | facts)

    def points(self, metrics: Iterable[str] | None = None) -> list[Point]:
        """Numbers that have a value, of some metrics or all; of a long series some of them."""
        found: list[Point] = []
        for metric in self.origins if metrics is None else metrics:
            if metric not in self._points:
                made = (
                    _points(metric, origin, self.most) for origin in self.origins.get(metric, ())
                )
                self._points[metric] = list(chain.from_iterable(made))
            found += self._points[metric]
        return found

    def known(self, *metrics: str) -> list[Point]:
        """The values of some metrics that are no estimates."""
        return [point for point in self.points(metrics) if point.known]

    def cells(self) -> list[Point]:
        """Those that are known and stand in cells."""
        every = self.known(*self.origins) if self.run.cells else ()
        return [point for point in every if isinstance(point.origin, Cell)]

    def curve(self, metric: str) -> list[Point]:
        """The known values in the order of training; of a summary its first and its last."""
        found = [point for point in self.known(metric) if point.items is None]
        curve = [point for point in found if point.at.startswith(("epoch", "step"))]
        ends = {point.at: point for point in found if point.at in ("first", "last")}
        summary = not curve or (len(curve) < 2 and len(ends) == 2)
        return sorted(ends.values() if summary else curve, key=lambda p: (p.time, p.at == "last"))

    @cached_property
    def placed(self) -> Places:
        """Numbers by what and where they are, any reward as one: a document may not say which."""
        found: Places = {}
        for point in self.points():
            metric = "performance" if point.metric in REWARDS else point.metric
            found.setdefault((metric, point.at), point)
        return found

    @cached_property
    def paths(self) -> set[str]:
        """Folders and W&B ids that its source gives as its origin, and as that of no other."""
        facts = [fact for fact in self.source.facts if fact.kind in ("path", "wandb") and fact.arm]
        paths = [(fact.arm == self.arm, fact.text.strip().rstrip("/")) for fact in facts]
        return {path for mine, path in paths if mine} - {path for mine, path in paths if not mine}

    def setting(self, key: str) -> float | None:
        """A setting that is a number."""
        value: Any = self.run.resolved.values.get(key)
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return float(value) if number else None

    def setting_place(self, key: str) -> Where:
        """Where a setting stands."""
        written = self.run.resolved.written.get(key, "")
        return self.run.config[written].where if written in self.run.config else self.run.where


class Evidence:
    """All that was read: the sources, and the numbers of every run."""

    def __init__(self, sources: Iterable[Source]) -> None:
        self.sources = list(sources)
        most = SHORT if sum(len(source.runs) for source in self.sources) < MANY else FEW
        self.runs = [Numbers(source, run, most) for source in self.sources for run in source.runs]

    def by_source(self) -> Iterator[list[Numbers]]:
        """The runs of one source after the other."""
        for _, runs in groupby(self.runs, key=lambda run: id(run.source)):
            yield list(runs)

    @cached_property
    def twins(self) -> list[tuple[Numbers, Numbers, str]]:
        """Records of one run: of one name and seed, or from one folder under two names."""
        found = []
        first: dict[tuple[str, int | None], Numbers] = {}
        for run in self.runs:
            before = first.setdefault((names.spelling(run.arm), run.run.seed), run)
            if before.run.where.file != run.run.where.file:
                found.append((before, run, "name"))
        for ours, theirs in combinations([run for run in self.runs if run.paths], 2):
            alike = names.spelling(ours.arm) == names.spelling(theirs.arm)
            if ours.source is not theirs.source and not alike and ours.paths & theirs.paths:
                found.append((ours, theirs, "path"))
        return found


Check = Callable[[Evidence], Iterable[Hit]]


def each_run(check: Callable[[Numbers], Iterable[Hit]]) -> Check:
    """A check that looks at one run at a time."""
    return lambda evidence: chain.from_iterable(map(check, evidence.runs))


@lru_cache(maxsize=4096)
def canonical(metric: str) -> str:
    """The name of a quantity where it is known, else as it is written."""
    known = names.metric(metric)
    return metric if known is None else known.name


def _points(metric: str, origin: Series | Cell, most: int) -> Iterator[Point]:
    if isinstance(origin, Cell):
        number, at = origin.number, place_of(origin)
        if number.value is not None:
            made = Point(metric, at, number.value, number.state == "known", number.decimals, origin)
            made.epoch, made.step = origin.epoch, origin.step
            made.shots, made.items = origin.shots, origin.items
            yield made
        return
    stride = 1 if len(origin.steps) <= most else -(-len(origin.steps) // min(most, SAMPLED))
    values, guesses = origin.values[::stride].tolist(), origin.estimated
    for nth, step in enumerate(origin.steps[::stride].tolist()):
        if isfinite(value := values[nth]):
            known = guesses is None or not guesses[nth * stride]
            decimals = _float32_decimals(value) if origin.float32 else origin.decimals
            at = f"{origin.axis} {step:g}"
            made = Point(metric, at, value, known, decimals, origin, nth * stride)
            made.epoch, made.step = (step, None) if origin.axis == "epoch" else (None, step)
            yield made


def _float32_decimals(value: float) -> int:
    """The decimals to which a number that went through float32 can be trusted."""
    return 6 - (floor(log10(abs(value))) if value else 0)


def place_of(cell: Cell) -> str:
    """Where in a run a cell belongs, in words that are the same in every language."""
    counted = (("epoch", cell.epoch), ("step", cell.step), ("shots", cell.shots), ("n", cell.items))
    places = [f"{word} {count:g}" for word, count in counted if count is not None]
    return " ".join(filter(None, (cell.statistic, *places, cell.split)))


def differ(ours: Point, theirs: Point) -> bool:
    """Whether two printed numbers cannot be one; of equal decimals, if they are not equal."""
    half = ours.half + (0.0 if ours.decimals == theirs.decimals else theirs.half)
    largest = max(abs(ours.value), abs(theirs.value), 1e-6)
    return abs(ours.value - theirs.value) > half + SLACK * largest
