"""What a comparison finds, as codes and facts. The sentences are in `words`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from kleash.compare.matrix import Matrix, matrix
from kleash.compare.read import Source
from kleash.stats import Level, Width, Word

Question = Literal[
    "level",
    "gain",
    "untrained",
    "average",
    "at_end",
    "trend",
    "faster",
    "steadier",
    "best_step",
    "collapse",
    "diverged",
    "pairs",
    "recommend",
]


@dataclass(frozen=True)
class Amount:
    """A number with its unit: a fraction is shown as percent, a difference of them as points."""

    value: float
    unit: str = ""
    gap: bool = False


@dataclass(frozen=True)
class Because:
    """One reason, as a code of the catalogue and the facts its sentence needs."""

    code: str
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Window:
    """Where on their curves trainings are compared: from which step (or epoch) to which."""

    axis: str
    first: float
    last: float


@dataclass(frozen=True)
class Judged:
    """The answer to one question about a pair of arms; the estimate is first arm less second.

    `gain` is an arm against its start, `untrained` against the best that needs no training.

    `trend` is about all the arms named, `collapse` about one.
    """

    question: Question
    metric: str
    unit: str
    arms: tuple[str, ...]
    verdict: Word
    level: Level
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    """The interval that decides the word: with its share of alpha among all that were looked at; of
    what is equivalent the one at 90 %."""
    narrow: tuple[float, float] | None = None
    """That at 90 %, which alone decides what is equivalent."""
    n: int | None = None
    counted: Literal["steps", "items", "seeds", ""] = ""
    items: int | None = None
    """Of a gap over seeds: the items that each of them scored."""
    over: Window | None = None
    """Of curves: where on them the gap is, if it is at one place in all runs."""
    p: float | None = None
    adjusted_p: float | None = None
    margin: float | None = None
    width: Width | None = field(default=None, repr=False)
    """The interval at every level; None where there is none."""
    more: int | None = None
    more_of: Literal["items", "seeds", ""] = ""
    beyond_margin: bool = False
    bound: float | None = None
    also_changed: tuple[str, ...] = ()
    because: tuple[Because, ...] = ()


@dataclass(frozen=True)
class Confound:
    """A setting besides the factor that two arms do not share, or on which sources disagree.

    `kind`: "changed" (it differs), "contradicted" (one arm, two values), "unknown" (a key whose
    meaning is not known differs).
    """

    kind: Literal["changed", "contradicted", "unknown"]
    key: str
    arms: tuple[str, ...]
    values: tuple[Any, ...]
    sources: tuple[str, ...]


@dataclass(frozen=True)
class Step:
    """Something to run next. `hours` of the machine that the logs are from, if they tell."""

    code: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    hours: tuple[float, float] | None = None
    devices: int | None = None


@dataclass
class Comparison:
    """Everything that one call of `compare` has to say."""

    arms: list[dict[str, Any]] = field(default_factory=list)
    baseline: str = ""
    factor: tuple[str, ...] = ()
    verdicts: list[Judged] = field(default_factory=list)
    findings: list[Any] = field(default_factory=list)
    confounds: list[Confound] = field(default_factory=list)
    next: list[Step] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    gathered: list[Any] = field(default_factory=list)
    """The arms themselves, for whoever tells of them next."""
    sources: Sequence[Source] = ()

    @property
    def references(self) -> list[str]:
        """The arms that others are compared with."""
        levels = (each.arms[1] for each in self.verdicts if each.question == "level")
        return list(dict.fromkeys(levels)) or [self.baseline]

    @cached_property
    def matrix(self) -> Matrix:
        """Every measurement of the sources; a study's report has its own and asks for none."""
        return matrix(self.sources)
