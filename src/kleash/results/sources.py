"""Sources as people name them: a study's folder is its runs as the study judges them.

Anything else is read as it lies. Of a study only the chosen checkpoints on the test are taken, and
each run starts from the base of its seed, which is one start for all.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kleash.imports import Source, read
from kleash.imports.given import read_given
from kleash.plan import arms_of, read_study
from kleash.plan.folder import mixtures, overview, placed
from kleash.results import source_of


def is_study(path: Path) -> bool:
    """Whether a path is the folder of a study that was begun."""
    return (path / "study.toml").is_file()


def study_source(folder: Path) -> Source:
    """All arms of a study, as `compare` takes them."""
    file = read_study(str(folder))
    arms = arms_of(file, placed(folder))
    found = overview(folder, file, arms)
    strangers = [
        str(entry["run"]) for entry in mixtures(folder, file, found) if entry["what"] == "base"
    ]
    made = source_of(found, [arm.name for arm in arms], file, strangers, {})
    made.path = str(folder)
    return made


def read_sources(paths: Sequence[Path], named: Sequence[str] = ()) -> list[Source]:
    """Every path, read as what it is, under the names that the user gives, as in `A=PATH`."""
    return read_given(paths, named, lambda at: study_source(at) if is_study(at) else read(at))
