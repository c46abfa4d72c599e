"""What a report is made of, whoever made it: a study's results, or sources and their comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kleash.catalogue import LANGUAGES, Language, metric_name, say
from kleash.catalogue.report_words import ANSWERS, COLUMNS, OWN, PLACES, SECTIONS, STATES
from kleash.compare import Comparison
from kleash.compare.arms import Arm, gather
from kleash.imports import Imported, Source, Where
from kleash.imports.run_folder import read_run
from kleash.results import Results
from kleash.stats import Interval

ScorePlace = tuple[str, str, str, int]
"""Run, checkpoint, split, shots."""


@dataclass
class Material:
    """Everything that sections read. Of sources that are no study, `study` is None."""

    name: str
    language: Language
    comparisons: dict[str, Comparison]
    sources: list[Source]
    arms: list[Arm]
    study: Results | None = None
    runs: dict[tuple[str, int], Imported] = field(default_factory=dict)
    """A study's runs by arm and seed, whole."""
    places: dict[ScorePlace, Where] = field(default_factory=dict)
    """Where the scores of a cell begin."""
    before: dict[str, Any] | None = None
    """What the last report said, if there was one."""
    notes: str = ""
    """The author's own words."""
    asked: list[str] | None = None
    """The lines of `study.toml`, once they were needed."""
    firsts: dict[str, Where | None] = field(default_factory=dict)
    """Where an arm's first tested column begins, once that was looked up."""

    def say(self, code: str, **facts: Any) -> str:
        """A sentence of the report."""
        return say(f"report.{code}", facts, self.language)

    def word(self, table: dict[Any, tuple[str, str]], key: Any) -> str:
        """A word of one of the tables; itself where the table has none."""
        return table[key][LANGUAGES.index(self.language)] if key in table else str(key)

    def head(self, *keys: str) -> list[str]:
        """Columns by their keys; `shots:2` is a column that is counted."""
        return [self.column(key) for key in keys]

    def column(self, key: str) -> str:
        """One column's name."""
        name, _, counted = key.partition(":")
        name = f"{name}.one" if counted == "1" and f"{name}.one" in COLUMNS else name
        return self.word(COLUMNS, name).replace("{n}", counted)

    def metric(self, name: str) -> str:
        """A quantity as people call it."""
        return self.word(OWN, name) if name in OWN else metric_name(name, self.language)

    def heading(self, key: str) -> str:
        """A section's heading."""
        return self.word(SECTIONS, key)

    def state(self, key: str) -> str:
        """The state of a cell."""
        return self.word(STATES, key)

    def place(self, key: str) -> str:
        """A split, or that a checkpoint is the chosen one."""
        return self.word(PLACES, key)

    def answer(self, key: str) -> str:
        """An answer to an expectation, or what was expected."""
        return self.word(ANSWERS, key)

    def listed(self, names: Sequence[str]) -> str:
        """Names in a row."""
        return ("、" if self.language == "zh" else ", ").join(names)


def of_study(found: Results, language: Language) -> Material:
    """A study with its runs read whole, for curves and for the places of numbers."""
    made = Material(found.file.name, language, found.comparisons, [], [], found)
    source = Source(str(found.folder), "kleash")
    opened: dict[Path, Imported] = {}
    for (arm, seed), seen in found.overview.seen.items():
        if seen.run is None:
            continue
        if seen.run.path not in opened:
            opened[seen.run.path] = read_run(seen.run)
            _note_places(made, seen.name, opened[seen.run.path])
        if arm in {each.name for each in found.arms}:
            run = opened[seen.run.path]
            run.arm, run.seed = arm, seed
            made.runs[arm, seed] = run
            source.runs.append(run)
    made.sources = [source]
    made.arms = gather(made.sources) if source.runs else []
    return made


def _note_places(made: Material, name: str, run: Imported) -> None:
    for scores in run.scores:
        place = (name, scores.checkpoint, scores.split, scores.shots or 0)
        made.places.setdefault(place, scores.where)


def of_sources(
    sources: Sequence[Source], found: Comparison, name: str, language: Language
) -> Material:
    """Sources that are no study."""
    return Material(name, language, {found.baseline: found}, list(sources), gather(sources))


# --- numbers as text


def percent(value: float | None) -> str:
    """A fraction as a percentage."""
    return "—" if value is None else f"{100 * value:.1f}%"


def percents(interval: Interval | None, *, digits: int = 1) -> str:
    """A mean of fractions with its interval, as far as that is possible: `41.2% [39.8, 42.6]`."""
    if interval is None:
        return "—"
    low, high = 100 * max(interval.low, 0.0), 100 * min(interval.high, 1.0)
    return f"{100 * interval.estimate:.{digits}f}% [{low:.{digits}f}, {high:.{digits}f}]"


def plain(interval: Interval | None) -> str:
    """A mean with its interval, in its own unit."""
    if interval is None:
        return "—"
    return f"{interval.estimate:.3g} [{interval.low:.3g}, {interval.high:.3g}]"


def short(value: Any) -> str:
    """A setting or a hash so that it fits in a table."""
    text = f"{value:g}" if isinstance(value, float) else str(value)
    hashed = len(text) >= 40 and all(each in "0123456789abcdef" for each in text)
    return text[:10] + "…" if hashed else text if len(text) <= 80 else text[:79] + "…"
