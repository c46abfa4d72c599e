"""`kleash.read`: runs from anywhere as frames, for a notebook."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from kleash.compare.read import Imported, Source, frames
from kleash.compare.read.given import tell_apart
from kleash.compare.read.units import as_fractions, units_of
from kleash.study.results.sources import read_sources

if TYPE_CHECKING:
    import polars as pl

Place = str | os.PathLike[str]
"""A path, or a run or a study, which stand for their folders."""
Names = Mapping[str, Place]
"""Paths by the names that a user gives them, as `kleash compare --name` does."""


def read(*sources: Place, names: Names | None = None, unit: Sequence[str] = ()) -> Runs:
    """Runs of studies, run folders, logs, tables, reports, `mlflow://…` and `wandb://…`.

    `unit` is `accuracy=percent` and the like, for a share whose unit the numbers leave open
    (`notes` then ask).
    """
    found = sources_at(sources, names)
    tell_apart(found)
    open_questions = as_fractions(found, units_of(unit)).questions
    return Runs(found, [*open_questions.values()])


def sources_at(places: Sequence[Place], names: Names | None = None) -> list[Source]:
    """What lies at paths, and at those that have names."""
    named = [f"{name}={os.fspath(path)}" for name, path in (names or {}).items()]
    return read_sources([Path(place) for place in places], named)


class Runs:
    """What was read: `scores`, `curves` and `settings` are polars frames, made when asked for."""

    def __init__(self, sources: Sequence[Source], questions: Sequence[str] = ()) -> None:
        """Of sources that were read together."""
        self.sources = list(sources)
        self.runs: list[Imported] = [run for source in sources for run in source.runs]
        self.notes = [*questions, *(note for source in sources for note in source.notes)]

    @cached_property
    def scores(self) -> pl.DataFrame:
        """A row for each score of an item, and for each measurement without items."""
        return frames.scores(self.runs)

    @cached_property
    def curves(self) -> pl.DataFrame:
        """A row for each point of each metric over steps, epochs or time."""
        return frames.curves(self.runs)

    @cached_property
    def settings(self) -> pl.DataFrame:
        """A row for each setting, under its known name (`key`) and as it was written (`name`)."""
        return frames.settings(self.runs)

    def __repr__(self) -> str:
        """What there is of each, in a line."""
        arms, seeds = {run.arm for run in self.runs}, {run.seed for run in self.runs} - {None}
        curves = sum(len(run.series) for run in self.runs)
        scores = sum(len(one.values) for run in self.runs for one in run.scores)
        cells = sum(len(run.cells) for run in self.runs)
        return (
            f"<Runs: {len(self.runs):,} runs of {len(arms):,} arms and {len(seeds):,} seeds with"
            f" {curves:,} curves, {scores:,} scores of items, {cells:,} measurements;"
            f" {len(self.notes):,} notes>"
        )
