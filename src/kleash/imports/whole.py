"""What shows only in a whole source: files of one name in several folders are of as many runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from kleash.imports import Imported, Source
from kleash.imports.given import UNTELLING, separate
from kleash.imports.run_names import SEED, label
from kleash.imports.units import as_fractions


def settle(source: Source) -> None:
    """Call runs by their folders, make fractions of percentages, and note what is no number."""
    name_by_folder(source.runs)
    separate([placed for run in source.runs if (placed := _by_place(run))])
    as_fractions([source])
    source.notes += [note for run in source.runs for note in _odd(run)]


def _by_place(run: Imported) -> tuple[Path, Imported] | None:
    """A run with its place, where it is called by a folder or a file that says nothing of it."""
    path = Path(run.where.file).absolute()
    own = run.name == run.arm and run.arm in (path.stem, *path.parts)
    return (path, run) if own and UNTELLING.fullmatch(run.arm) else None


def _odd(run: Imported) -> Iterator[str]:
    """What of a run's numbers is there and yet no number, or that there are none."""
    if not (run.series or run.scores or run.cells):
        yield f"{run.name}: no numbers in {run.where.file}"
    odd = sum(int((~np.isfinite(s.values)).sum()) for s in run.series if not s.finite)
    if odd:
        yield f"{run.name}: {odd:,} values are NaN or infinite, kept as they are"
    lost = sum(int(np.isnan(scores.values).sum()) for scores in run.scores)
    if lost:
        yield f"{run.name}: {lost:,} scores are not there, kept as missing"


def name_by_folder(runs: Sequence[Imported]) -> None:
    """Call runs by their folder that files of one name, each alone of its kind, tell of."""
    files: dict[str, set[Path]] = {}
    beside: Counter[tuple[Path, str]] = Counter()
    where = {id(run): Path(run.where.file).absolute() for run in runs}
    for path in set(where.values()):
        beside[path.parent, path.suffix] += 1
    for run in runs:
        path = where[id(run)]
        if path.stem == run.name and beside[path.parent, path.suffix] == 1:
            files.setdefault(run.name, set()).add(path)
    for run in runs:
        same, path = files.get(run.name, set()), where[id(run)]
        if path in same and len({one.parent.name for one in same}) > 1:
            seed = SEED.fullmatch(path.parent.name)
            run.name, run.arm = (f"{run.name}-s{seed[1]}" if seed else path.parent.name), ""
            label(run)
