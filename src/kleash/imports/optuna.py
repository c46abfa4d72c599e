"""Studies of Optuna, from their SQLite file: every trial is a run.

Parameters, objective values and intermediate values are read. Which direction is better stands in
the name of the arm's study and is not judged here.
"""

from __future__ import annotations

import math
import sqlite3
from pathlib import Path
from typing import Any

from kleash.errors import DataError
from kleash.imports import Cell, Imported, Number, Setting, Source, Where
from kleash.imports.database import has_tables, opened
from kleash.imports.gather import Points, number, parsed
from kleash.imports.run_names import label

KINDS = {"INF_POS": math.inf, "INF_NEG": -math.inf, "NAN": math.nan}


def fits(path: Path) -> bool:
    """A storage of the default kind."""
    return has_tables(path, "studies", "trials", "trial_params", "trial_values")


def read(path: Path) -> Source:
    """Every trial of every study."""
    source = Source(str(path), "optuna")
    with opened(path, source.notes) as database:
        source.runs = _trials(database, path)
    return source


def _trials(database: sqlite3.Connection, path: Path) -> list[Imported]:
    runs: dict[int, Imported] = {}
    for trial, place, study, state, start in database.execute(
        "SELECT trial_id, number, study_name, state, datetime_start FROM trials "
        "JOIN studies USING (study_id) ORDER BY trial_id"
    ):
        runs[trial] = Imported(
            name=f"{study}/trial-{place}",
            arm=f"{study}/trial-{place}",
            format="optuna",
            where=Where(str(path), trial, "row of trials"),
            finished=state == "COMPLETE",
            started=None if start is None else str(start),
        )
    for row, trial, name, value, kind in database.execute(
        "SELECT param_id, trial_id, param_name, param_value, distribution_json FROM trial_params"
    ):
        where = Where(str(path), row, "row of trial_params")
        _run(runs, trial, path).config[name] = Setting(_parameter(value, kind, where), where)
    for row, trial, objective, value, kind in database.execute(
        "SELECT trial_value_id, trial_id, objective, value, value_type FROM trial_values"
    ):
        where = Where(str(path), row, "row of trial_values")
        held = _value(value, kind, where)
        state = "missing" if held is None else "known"
        name = "objective" if objective == 0 else f"objective {objective}"
        cell = Cell(name, Number(held, state, where))  # type: ignore[arg-type]
        _run(runs, trial, path).cells.append(cell)
    _add_series(database, path, runs)
    return [label(run) for run in runs.values()]


def _add_series(database: sqlite3.Connection, path: Path, runs: dict[int, Imported]) -> None:
    points: dict[int, Points] = {}
    for row, trial, step, value, kind in database.execute(
        "SELECT trial_intermediate_value_id, trial_id, step, intermediate_value, "
        "intermediate_value_type FROM trial_intermediate_values ORDER BY 1"
    ):
        held = _value(value, kind, Where(str(path), row))
        if held is not None:
            points.setdefault(trial, Points(path)).add("intermediate", step, held, row)
    for trial, found in points.items():
        _run(runs, trial, path).series = found.series(spot="row of trial_intermediate_values")


def _run(runs: dict[int, Imported], trial: int, path: Path) -> Imported:
    if trial not in runs:
        raise DataError(f"{path} speaks of trial {trial}, which it does not hold")
    return runs[trial]


def _value(value: Any, kind: str, where: Where) -> float | None:
    if kind in KINDS:
        return KINDS[kind]
    if value is not None and number(value) is None:
        raise DataError(f"{where.file} row {where.line}: {value!r} is no number")
    return number(value)


def _parameter(value: Any, distribution: Any, where: Where) -> Any:
    """What was tried: of a choice its index is stored, of a whole number a float."""
    try:
        kind = parsed(distribution)
        name, attributes = kind["name"], kind["attributes"]
        if name == "CategoricalDistribution":
            return attributes["choices"][int(value)]
    except (ValueError, TypeError, KeyError, IndexError, OverflowError):
        raise DataError(f"{where.file} row {where.line}: a parameter cannot be read") from None
    held = number(value)
    whole = held is not None and name.startswith("Int") and held.is_integer()
    return int(held) if whole and held is not None else held
