"""Everything that was read as three polars frames under canonical names: `Runs.scores` and others.

A quantity or setting that no table knows keeps the name it was written with. Curves are of the last
branch of a resumed run. What is missing is null and never 0; an estimate says so in `state`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from kleash.compare.read import Cell, Imported, Scores, Series, names
from kleash.compare.read.course import last_branch

if TYPE_CHECKING:
    import polars as pl

Part = tuple[tuple[Any, ...], int, Mapping[str, Any]]
"""Rows of one record: what they share, how many they are, and their columns."""

SCORES = (
    "arm", "seed", "metric", "checkpoint", "split", "shots", "item", "cluster", "score", "weights",
    "n", "state", "decimals", "file", "line",
)  # fmt: skip
CURVES = ("arm", "seed", "metric", "axis", "at", "value", "state", "decimals", "file", "line")
SETTINGS = ("arm", "key", "name", "value", "file", "line")
TYPES = {
    "seed": "Int64", "shots": "Int64", "n": "Int64", "decimals": "Int64", "line": "Int64",
    "score": "Float64", "at": "Float64", "value": "Float64",
}  # fmt: skip


def scores(runs: Sequence[Imported]) -> pl.DataFrame:
    """A row for each score of an item, and for each measurement without items (`item` is null)."""
    parts = [_scores(run, one) for run in runs for one in run.scores]
    parts += [_cell(run, one) for run in runs for one in run.cells]
    return _frame(SCORES, ("item", "cluster", "score", "state", "line"), parts)


def curves(runs: Sequence[Imported]) -> pl.DataFrame:
    """A row for each point of each curve."""
    parts = (part for run in runs for one in last_branch(run)[0] for part in _curve(run, one))
    return _frame(CURVES, ("at", "value", "state", "line"), list(parts))


def settings(runs: Sequence[Imported]) -> pl.DataFrame:
    """A row for each setting of each run; values are text, as they may be of any kind."""
    import polars as pl

    rows = []
    for run in runs:
        for name, one in run.config.items():
            known = names.key(name)
            value = (
                one.value if one.value is None or isinstance(one.value, str) else repr(one.value)
            )
            key = known.name if known else None
            rows.append((run.arm, key, name, value, one.where.file, one.where.line))
    types = dict.fromkeys(SETTINGS, pl.String) | {"line": pl.Int64}
    return pl.DataFrame(rows, schema=types, orient="row").unique(maintain_order=True)


def canonical(metric: str) -> str:
    """The name of a quantity in our own words; as it was written, where it is not known."""
    known = names.metric(metric)
    return known.name if known else metric


def checkpoint(step: float | None, epoch: float | None = None) -> str | None:
    """What a measurement at a step or an epoch is of."""
    if step is None:
        return None if epoch is None else f"epoch-{epoch:g}"
    return f"step-{step:g}"


def _scores(run: Imported, one: Scores) -> Part:
    place = one.checkpoint or checkpoint(one.step)
    about = (run.arm, run.seed, canonical(one.metric), place, one.split or None, one.shots)
    lost = np.isnan(one.values)
    columns = {
        "item": one.items,
        "cluster": one.clusters,
        "score": np.where(lost, np.nan, one.values),
        "state": np.where(lost, "missing", "known"),
        "line": one.lines,
    }
    return (*about, one.weights or None, 1, None, one.where.file), len(one.values), columns


def _cell(run: Imported, one: Cell) -> Part:
    place = one.statistic or checkpoint(one.step, one.epoch)
    about = (run.arm, run.seed, canonical(one.metric), place, one.split or None, one.shots)
    number = one.number
    columns = {"score": [number.value], "state": [number.state], "line": [number.where.line]}
    return (*about, None, one.items, number.decimals, number.where.file), 1, columns


def _curve(run: Imported, one: Series) -> Iterator[Part]:
    """A curve, cut where it goes on in another file."""
    cuts = [0, *(first for first, _ in one.parts), len(one.steps)]
    files = [one.where.file, *(file for _, file in one.parts)]
    about = (run.arm, run.seed, canonical(one.metric), one.axis, one.decimals)
    state = np.full(len(one.steps), "known")
    if one.estimated is not None:
        state = np.where(one.estimated, "estimated", state)
    whole = {"at": one.steps, "value": one.values, "state": state, "line": one.lines}
    for first, last, file in zip(cuts, cuts[1:], files, strict=False):
        columns = {name: None if held is None else held[first:last] for name, held in whole.items()}
        yield (*about, file), last - first, columns


def _frame(schema: Sequence[str], own: Sequence[str], parts: Sequence[Part]) -> pl.DataFrame:
    """One frame of all parts: columns of their `own` one behind the other, the rest repeated."""
    import polars as pl

    kinds = {name: getattr(pl, TYPES.get(name, "String")) for name in schema}
    which = np.repeat(np.arange(len(parts)), [count for _, count, _ in parts])
    shared = [name for name in schema if name not in own]
    columns = {}
    for at, name in enumerate(shared):
        each = pl.Series(name, [about[at] for about, _, _ in parts], dtype=kinds[name])
        columns[name] = each.gather(which)
    for name in own:
        held = [_filled(columns_.get(name), count) for _, count, columns_ in parts]
        columns[name] = pl.Series(name, _joined(held), dtype=kinds[name])
    made = pl.DataFrame([columns[name] for name in schema], schema=kinds)
    return made.with_columns(pl.col("score").fill_nan(None)) if "score" in kinds else made


def _filled(held: Any, count: int) -> Any:
    return [None] * count if held is None else held


def _joined(parts: Iterable[Any]) -> Any:
    """One column: an array where all parts are, else a list."""
    every = list(parts)
    if every and all(isinstance(part, np.ndarray) for part in every):
        return np.concatenate(every)
    return [one for part in every for one in (part.tolist() if hasattr(part, "tolist") else part)]
