"""A study's runs as `compare` takes them: chosen checkpoints, their start, what needs no training.

Of an arm the chosen checkpoint on the test is taken, and each run starts from the base of its seed,
which is one start for all. A path that is no study is read as it lies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from kleash.compare.read import Imported, Role, Scores, Setting, Source, Where, read
from kleash.compare.read.given import read_given
from kleash.compare.read.run_folder import read_run
from kleash.runs.run import Run
from kleash.study.plan import (
    BASELINE,
    Arm,
    StudyFile,
    against,
    arms_of,
    base_checkpoint,
    read_study,
)
from kleash.study.plan.cells import KNOWS_THE_TRUTH
from kleash.study.plan.folder import Overview, Seen, mixtures, overview, placed

START = "start"
ELSEWHERE = {"from", "selector"}
"""Keys of an arm that make it grow from another start than the study's."""
Runs = dict[Path, Imported]
"""Runs as they were read, without scores: a file is read once, whoever asks."""


def read_once(run: Run, runs: Runs) -> Imported:
    """A run among those that were read; it is read if it is not."""
    found = runs.get(run.path)
    if found is None:
        found = runs[run.path] = read_run(run, scores=False)
    return found


def is_study(path: Path) -> bool:
    """Whether a path is the folder of a study that was begun."""
    return (path / "study.toml").is_file()


def study_source(folder: Path) -> Source:
    """All of a study, as its own report has it."""
    file = read_study(str(folder))
    arms = arms_of(file, placed(folder))
    found = overview(folder, file, arms)
    compared = against(file, arms, found.told)
    made = source_of(found, file, arms, compared, strangers(mixtures(folder, file, found)))
    made.path = str(folder)
    return made


def read_sources(paths: Sequence[Path], named: Sequence[str] = ()) -> list[Source]:
    """Every path, read as what it is, under the names that the user gives, as in `A=PATH`."""
    return read_given(paths, named, lambda at: study_source(at) if is_study(at) else read(at))


def strangers(mixed: Sequence[Mapping[str, object]]) -> list[str]:
    """Runs that do not start from the base of their seed."""
    return [str(entry["run"]) for entry in mixed if entry["what"] == "base"]


def source_of(
    found: Overview,
    file: StudyFile,
    arms: Sequence[Arm],
    compared: Mapping[str, str],
    apart: Sequence[str],
    runs: Runs | None = None,
) -> Source:
    """Every arm that has begun, the start of each seed, and what needs no training.

    All arms start from the base of their seed, which is one start though it lies in several
    folders; only those `apart` do not. `compared` says with which arm each is compared.
    """
    source = Source("study", "kleash", on=file.compare.metric, margin=file.compare.margin)
    names, runs = [arm.name for arm in arms], {} if runs is None else runs
    moved = {arm.name for arm in arms if ELSEWHERE & arm.keys.keys()}
    begin = spare(START, names)
    starts = list(started(found, file, begin))
    for (arm, seed), seen in found.seen.items():
        if arm not in names or seen.run is None:
            continue
        run = read_once(seen.run, runs)
        start = str(seen.run.meta["base"]) if seen.name in apart else "the base of its seed"
        config = run.config | {"from": Setting(start, Where(seen.run.file("meta.json")))}
        from_base = starts and seen.name not in apart and arm not in moved
        own = replace(run, arm=arm, seed=seed, config=config, scores=list(tested(seen, file)))
        own.start, own.against = begin if from_base else "", compared.get(arm, "")
        source.runs.append(own)
    source.runs.sort(key=lambda run: names.index(run.arm))
    source.runs += [*starts, *untrained(found, file, names)] if source.runs else []
    return source


def spare(name: str, taken: Sequence[str]) -> str:
    """The name, with an article if an arm has it."""
    return f"the {name}" if name in taken else name


def started(found: Overview, file: StudyFile, name: str) -> Iterator[Imported]:
    """The start of each seed, where it was measured."""
    checkpoint = base_checkpoint(file, file.seeds[0])
    for seed, seen in found.of_arm("base", file.seeds).items():
        yield from made(seen, name, "start", [seed], list(tested(seen, file, checkpoint)))


def untrained(found: Overview, file: StudyFile, taken: Sequence[str]) -> Iterator[Imported]:
    """What was chosen without learning: the same under every seed; random draws are its tries.

    What looks at the truth can be used by nobody, so no arm is held against it.
    """
    families: dict[str, list[Scores]] = {}
    whose: dict[str, Seen] = {}
    for (arm, _), seen in found.seen.items():
        name = arm.removeprefix(BASELINE)
        if name != arm and name not in KNOWS_THE_TRUTH:
            family = "random" if name.startswith("random-") else name
            whose[family] = seen
            families.setdefault(family, []).extend(tested(seen, file, arm))
    for family, scores in families.items():
        yield from made(whose[family], spare(family, taken), "untrained", file.seeds, scores)


def made(
    seen: Seen, name: str, role: Role, seeds: Sequence[int], scores: list[Scores]
) -> Iterator[Imported]:
    """What is no arm, under each of its seeds; nothing where nothing was measured."""
    if seen.run is not None and scores:
        for seed in seeds:
            run = Imported(f"{name}-s{seed}", name, "kleash", Where(seen.run.file("meta.json")))
            run.seed, run.role, run.scores = seed, role, scores
            yield run


def tested(seen: Seen, file: StudyFile, checkpoint: str = "") -> Iterator[Scores]:
    """The scores of a run's checkpoint on the test, by number of shots: of the chosen one."""
    name = checkpoint or seen.chosen
    for shots in file.measure.shots:
        if (name, "test", shots) in seen.scored:
            yield scores_of(seen, (name, "test", shots), file.compare.metric)


def scores_of(seen: Seen, key: tuple[str, str, int], metric: str) -> Scores:
    """One column of a run's scores, as it was measured."""
    assert seen.run is not None
    column, (checkpoint, split, shots) = seen.scored[key], key
    return Scores(
        metric=metric,
        items=column.items,
        values=np.array(column.scores, dtype=np.float64),  # None becomes NaN
        where=Where(seen.run.file("scores.jsonl"), column.lines[0]),
        shots=shots,
        split=split,
        checkpoint=checkpoint,
        repeats=np.zeros(len(column.items), dtype=np.int64),
        lines=np.array(column.lines),
        weights=column.weights,
    )
