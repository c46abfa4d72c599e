"""What a report is made of, whoever made it: a study's results, or sources and their comparison."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kleash.compare.arms import Arm, gather
from kleash.compare.comparison import Comparison, Judged
from kleash.compare.read import Imported, Source
from kleash.report.words import CODES, Language, called, metric_name, say, term
from kleash.report.words.verdicts import gap_of
from kleash.stats import Interval
from kleash.study.results import Results
from kleash.study.results.sources import scores_of

HASH = re.compile(r"[0-9a-f]{40,}").fullmatch


@dataclass
class Material:
    """Everything that sections read. Of sources that are no study, `study` is None."""

    name: str
    language: Language
    comparison: Comparison | None
    sources: list[Source]
    arms: list[Arm]
    study: Results | None = None
    runs: dict[tuple[str, int], Imported] = field(default_factory=dict)
    """A study's runs by arm and seed, whole."""

    @property
    def comparisons(self) -> list[Comparison]:
        """The one comparison, if there is one."""
        return [] if self.comparison is None else [self.comparison]

    @property
    def of_agents(self) -> bool:
        """Whether it is a study of language agents, which have words of their own."""
        return self.study is not None and self.study.file.of_agents

    def say(self, code: str, **facts: Any) -> str:
        """A sentence of the report."""
        return say(self._code(code), facts, self.language)

    def word(self, kind: str, key: Any) -> str:
        """A word of some kind, such as `state` and `done`; itself where there is none."""
        return term(self._code(f"{kind}.{key}"), self.language, str(key))

    def _code(self, code: str) -> str:
        """A study of agents has some sentences and words of its own."""
        own = f"report.{code}.agent"
        return own if self.of_agents and own in CODES else f"report.{code}"

    def head(self, *keys: str) -> list[str]:
        """Columns by their keys; `shots:2` is a column that is counted."""
        return [self.column(key) for key in keys]

    def column(self, key: str) -> str:
        """One column's name."""
        name, _, counted = key.partition(":")
        own = f"{name}.{counted}"
        name = own if self._code(f"column.{own}") in CODES else name
        return self.word("column", name).replace("{n}", counted)

    def metric(self, name: str) -> str:
        """A quantity as people call it."""
        return term(f"report.own.{name}", self.language) or metric_name(name, self.language)

    def heading(self, key: str) -> str:
        """A section's heading."""
        return self.word("section", key)

    def arm(self, name: str) -> str:
        """An arm as a reader calls it; files keep its own name."""
        return called(name, self.language)

    def score(self, interval: Interval | None) -> str:
        """A mean score with its interval: an accuracy in percent, a reward as it is."""
        return rewards(interval) if self.of_agents else percents(interval)

    def scored(self, value: float | None) -> str:
        """One score."""
        if self.of_agents and value is not None:
            return f"{value:.3f}"
        return percent(value)

    def gap(self, judged: Judged | None) -> str:
        """A gap with its interval."""
        return "—" if judged is None else gap_of(judged, self.language)

    def listed(self, names: Sequence[str]) -> str:
        """Names in a row."""
        return ("、" if self.language == "zh" else ", ").join(names)


def of_study(found: Results, language: Language) -> Material:
    """A study with its runs, for curves and for the places of numbers."""
    made = Material(found.file.name, language, found.comparison, [], [], found)
    source = Source(str(found.folder), "kleash")
    arms = {each.name for each in found.arms}
    for (arm, seed), seen in found.overview.seen.items():
        if seen.run is None:
            continue
        if arm in arms:
            first = list(seen.scored)[:1]  # a place to name; every score is the study's
            scores = [scores_of(seen, key, found.file.compare.metric) for key in first]
            run = replace(found.read(seen.run), arm=arm, seed=seed, scores=scores)
            made.runs[arm, seed] = run
            source.runs.append(run)
    made.sources = [source]
    made.arms = _arms(made, source) if source.runs else []
    return made


def _arms(made: Material, source: Source) -> list[Arm]:
    """The arms of a study's runs, with the curves that comparing gathered if it met them all."""
    known = {arm.name: arm for each in made.comparisons for arm in each.gathered}
    if any(arm not in known or len(known[arm].names) > 1 for arm, _ in made.runs):
        return gather([source])
    return [
        replace(
            known[name],
            replicates=[
                replace(each, scores=made.runs[name, each.seed].scores)
                for each in known[name].replicates
                if each.seed is not None
            ],
        )
        for name in dict.fromkeys(arm for arm, _ in made.runs)
    ]


def of_sources(found: Comparison, name: str, language: Language) -> Material:
    """Sources that are no study."""
    return Material(name, language, found, list(found.sources), found.gathered)


# --- numbers as text


def percent(value: float | None) -> str:
    """A fraction as a percentage."""
    return "—" if value is None else f"{100 * value:.1f}%"


def percents(interval: Interval | None) -> str:
    """A mean of fractions with its interval, as far as that is possible: `41.2% [39.8, 42.6]`."""
    if interval is None:
        return "—"
    low, high = 100 * max(interval.low, 0.0), 100 * min(interval.high, 1.0)
    return f"{100 * interval.estimate:.1f}% [{low:.1f}, {high:.1f}]"


def rewards(interval: Interval | None) -> str:
    """A mean reward with its interval: `1.412 [1.398, 1.426]`."""
    if interval is None:
        return "—"
    return f"{interval.estimate:.3f} [{interval.low:.3f}, {interval.high:.3f}]"


def plain(interval: Interval | None) -> str:
    """A mean with its interval, in its own unit."""
    if interval is None:
        return "—"
    return f"{interval.estimate:.3g} [{interval.low:.3g}, {interval.high:.3g}]"


def short(value: Any) -> str:
    """A setting or a hash so that it fits in a table."""
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return text[:10] + "…" if HASH(text) else text if len(text) <= 80 else text[:79] + "…"
