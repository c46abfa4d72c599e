"""Evaluations that lie in the folder of a training: `eval/checkpoint-200.json`, `eval_kl.csv`.

They are of that training unless they name another. The step of a checkpoint that is only in a
file's name is taken from there.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from kleash.compare.read import Imported, Series, Source
from kleash.compare.read.run_names import label
from kleash.compare.read.tables import AT_EPOCH, OF_SIZE, name_of
from kleash.compare.read.trl import RESULTS
from kleash.errors import DataError

HOLDERS = ("trl", "tensorboard")  # formats whose folders people put evaluations into
MOST = 2_000  # files of a folder
SUFFIXES = (".json", ".jsonl", ".csv")
_WORD = r"(?:eval|evals|evaluations?|results?|benchmarks?|bench|scores)"
_NAMED = re.compile(rf"(?:.*[_-])?{_WORD}(?:[_-].*)?", re.I)
_STEP = re.compile(r"(?:checkpoint|ckpt|global_step|step|iter)[-_]?(\d{1,9})(?!\d)", re.I)


def evaluations(folder: Path, form: str, read: Callable[[Path], Source | None]) -> Source:
    """What was measured of the one run of a folder of this format, in files that are not its."""
    if form not in HOLDERS:
        return Source(str(folder), "")
    own = [path for path in folder.iterdir() if _NAMED.fullmatch(path.stem)]
    below = [file for path in own if path.is_dir() for file in path.iterdir()]
    files = [path for path in (*own, *below) if path.suffix in SUFFIXES and path.is_file()]
    found: list[Imported] = []
    notes: list[str] = []
    for file in sorted(path for path in files if path.name not in RESULTS)[:MOST]:
        try:
            source = read(file)
        except DataError as error:
            notes.append(f"left out: {error}")
            continue
        if source is not None and len(source.runs) == 1:
            _belongs(source.runs[0], file, folder)
            found.append(source.runs[0])
    if found:
        notes.append(
            f"{folder}: {len(found)} files of evaluations beside it, read as of the same run"
        )
    return Source(str(folder), "", _together(found), notes=notes)


def _belongs(run: Imported, file: Path, folder: Path) -> None:
    """Call a run by its folder, if it is called by its file; with the step that the file names."""
    named = name_of(file)
    if run.name in (file.stem, named, OF_SIZE.sub("", AT_EPOCH.sub("", named)), file.parent.name):
        run.name, run.arm, run.seed = folder.resolve().name, "", None
        label(run)
    at = _STEP.search(file.stem)
    if at is None:
        return
    step, told = float(at[1]), run.cells
    run.cells = []
    for cell in told:
        if cell.step is not None or cell.epoch is not None:
            run.cells.append(cell)
        elif cell.shots is not None or cell.split or cell.number.value is None:
            run.cells.append(replace(cell, step=step))
        else:
            values, where = np.array([cell.number.value]), cell.number.where
            curve = Series(cell.metric, "step", np.array([step]), values, where)
            run.series.append(replace(curve, decimals=cell.number.decimals))
    run.scores = [replace(s, step=step) if s.step is None else s for s in run.scores]


def _together(found: Sequence[Imported]) -> list[Imported]:
    """One run for each that files tell of, its curves through all of them."""
    runs: dict[str, Imported] = {}
    for run in found:
        if (first := runs.setdefault(run.name, run)) is not run:
            first.series += run.series
            first.cells += run.cells
            first.scores += run.scores
            first.config = run.config | first.config
    for run in runs.values():
        curves: dict[tuple[str, str], list[Series]] = defaultdict(list)
        for series in run.series:
            curves[series.metric, series.axis].append(series)
        run.series = [_joined(parts) for parts in curves.values()]
    return list(runs.values())


def _joined(parts: Sequence[Series]) -> Series:
    """One curve, of pieces in files; in the order of their first steps."""
    ordered = sorted(parts, key=lambda one: float(one.steps[0]) if len(one.steps) else 0.0)
    firsts = np.cumsum([0, *(len(one.steps) for one in ordered[:-1])]).tolist()
    first, coarse = ordered[0], {one.decimals for one in ordered}
    lines = [one.lines for one in ordered if one.lines is not None]
    return replace(
        first,
        steps=np.concatenate([one.steps for one in ordered]),
        values=np.concatenate([one.values for one in ordered]),
        decimals=first.decimals if len(coarse) == 1 else None,
        lines=np.concatenate(lines) if len(lines) == len(ordered) else None,
        times=None,
        parts=tuple(zip(firsts[1:], [one.where.file for one in ordered[1:]], strict=True)),
    )
