"""A whole study as it is asked for: its file and folder, then its search, seeds and cells.

The command line and `kleash.study` call the same functions here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kleash.errors import KleashError

if TYPE_CHECKING:
    from kleash.runs.jobs import Told
    from kleash.study.plan import StudyFile
    from kleash.study.plan.folder import Overview
    from kleash.study.running import Asked, Ran

STUDIES = Path("studies")


def resolve_study(
    what: str | Path = "",
    keys: Sequence[str] = (),
    out: Path | None = None,
    *,
    changes: Mapping[str, Any] | None = None,
) -> tuple[StudyFile, Path]:
    """The study that is asked for, and its folder; without a name the bundled default."""
    from kleash.study.plan import DEFAULT, bundled, read_study

    name = str(what)
    file = read_study(name or DEFAULT, keys, changes)
    given = Path(name) if name and name not in bundled() else None
    ours = given if given is not None and given.is_dir() else STUDIES / file.name
    return file, out or ours


def asked_of(
    file: StudyFile,
    folder: Path,
    *,
    jobs: int = 0,
    on: str = "local",
    gpus: str = "",
    device: str = "cpu",
    log_to: str = "",
) -> Asked:
    """How a study is to run: `jobs` workers, one per core if 0; refused where it cannot be."""
    from kleash.train.single import need_torch

    need_torch(device if on in ("local", "ray") else "cpu")
    from kleash.runs.sinks import sink_names
    from kleash.study.running import Asked
    from kleash.study.servers import device_names

    workers = jobs or os.cpu_count() or 1
    return Asked(file, folder, workers, on, device, sink_names(log_to), gpus=device_names(gpus))


def run_whole(
    asked: Asked,
    hear: Callable[[Told, Overview], None] = lambda told, found: None,
    *,
    until: str = "",
) -> tuple[Ran, StudyFile]:
    """Search if it asks for that; run the study, or grow it by looks `until` it is "decided"."""
    if until not in ("", "decided"):
        raise KleashError(f"--until {until!r}: there is only `decided`")
    from kleash.study.looks import run_until_decided
    from kleash.study.running import run_study

    if asked.file.search.trials:
        from kleash.study.search import run_search

        searched = run_search(asked, hear)
        if searched is not None and (searched.stopped or searched.failures):
            return searched, asked.file
    if until:
        return run_until_decided(asked, hear)
    return run_study(asked, hear), asked.file
