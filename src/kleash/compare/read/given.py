"""Paths as a user gives them: two of them are never one arm because their files are called alike.

What tells that runs of two paths are of one arm after all: seeds that differ beside equal settings
or names that say something, parts of one training that measured nothing twice, or the user, who
calls both the same. Reports are left alone: they tell of runs that have logs elsewhere.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from os.path import abspath
from pathlib import Path

import numpy as np

from kleash.compare.read import Imported, Source, names, read
from kleash.compare.read.run_names import SEED, label
from kleash.compare.read.units import as_fractions
from kleash.errors import ConfigError

UNTELLING = re.compile(  # names of files and folders
    r"(?:(?:train|training|eval|evaluation|test|val|validation|trainer|tb|tensorboard|verl|trl|grpo"
    r"|wandb|swanlab|mlruns?|metrics?|results?|logs?|logging|history|progress|scalars|console|nohup"
    r"|std|out|outputs?|err|stdout|stderr|main|jobs?|slurm|state|events?|runs?|ckpts?|checkpoints?"
    r"|exp|experiments?|data|summary|rollouts?|epoch|step|n)[-_.]?\d*[-_.]?)+",
    re.I,
)
Placed = tuple[Path, Imported]


def named(values: Sequence[str]) -> list[tuple[str, Path]]:
    """`A=PATH` as a name and a path."""
    found = [value.partition("=") for value in values]
    for value, (name, _, path) in zip(values, found, strict=True):
        if not name.strip() or not path:
            raise ConfigError(f"--name {value}: give a name and a path, as in --name A=runs/a")
    return [(name.strip(), Path(path)) for name, _, path in found]


def ordered(paths: Sequence[Path], values: Sequence[str]) -> list[tuple[Path, str]]:
    """Every path with the name the user gives it, "" for none; a named one may stand once only."""
    told = {_whole(path): name for name, path in named(values)}
    every = {_whole(path): path for path in (*paths, *(path for _, path in named(values)))}
    if not every:
        raise ConfigError("no path is given: name the logs, folders or reports of your runs")
    return [(path, told.get(place, "")) for place, path in every.items()]


def _whole(path: Path) -> Path:
    return Path(abspath(path))  # noqa: PTH100  # a link keeps the name that the user gave


def read_given(
    paths: Sequence[Path], values: Sequence[str] = (), reader: Callable[[Path], Source] = read
) -> list[Source]:
    """The sources at these paths, under the names that the user gives them."""
    found = []
    for path, name in ordered(paths, values):
        found.append(reader(path))
        call(found[-1], name)
    return found


def call(source: Source, name: str) -> None:
    """All runs of a source by the user's name for it; its arms, where there are several, below."""
    if not name:
        return
    source.name = name
    several = len({names.spelling(run.arm) for run in source.runs}) > 1
    for run in source.runs:
        own = f"{name}/{run.arm}" if several else name
        run.name = own if run.seed is None else f"{own}-s{run.seed}"
        run.arm = own


def tell_apart(sources: Sequence[Source]) -> None:
    """Call runs of different paths differently where they are of different arms."""
    logs = [(one, run) for one in sources if not one.name for run in one.runs]
    separate([(Path(one.path), run) for one, run in logs if run.format != "markdown"])


def separate(placed: Sequence[Placed]) -> None:
    """The same of runs and the places they are from."""
    if len({place for place, _ in placed}) < 2:
        return
    groups: dict[str, list[Placed]] = {}
    for place, run in placed:
        groups.setdefault(names.spelling(run.arm), []).append((place, run))
    taken = set(groups)
    for group in groups.values():
        places = list(dict.fromkeys(place for place, _ in group))
        if len(places) < 2 or _are_one(group):
            continue
        labels = dict(zip(places, differing(places), strict=True))
        seeds = [SEED.fullmatch(labels[place]) for place in places]
        if all(seeds) and len({found[1] for found in seeds if found}) == len(places):
            for place, run in group:
                run.seed = int(SEED.fullmatch(labels[place])[1])  # type: ignore[index]
            continue
        short = all(UNTELLING.fullmatch(run.arm) for _, run in group) and not taken & {
            names.spelling(SEED.sub("", each)) for each in labels.values()
        }
        for place, run in group:
            _rename(run, labels[place], short=short)
        taken |= {names.spelling(run.arm) for _, run in group}


def _rename(run: Imported, where: str, *, short: bool) -> None:
    """A run by the part of its path that others do not have, and by its own name if that tells."""
    seed = SEED.search(where)
    if short or seed is None or below(where, run.name) == where:
        run.name = where if short else below(where, run.name)
    else:
        run.name = f"{SEED.sub('', where)}/{run.name}-s{seed[1]}"
    run.arm = ""
    label(run)


def below(where: str, own: str) -> str:
    """A name with what differs in its path; without itself, where it says nothing more."""
    last = names.spelling(Path(where).name)
    return where if UNTELLING.fullmatch(own) or last == names.spelling(own) else f"{where}/{own}"


def _are_one(group: Sequence[Placed]) -> bool:
    pairs = combinations(group, 2)
    return all(one == other or are_alike(ours, theirs) for (one, ours), (other, theirs) in pairs)


def are_alike(ours: Imported, theirs: Imported) -> bool:
    """Whether two runs from two paths may be of one arm."""
    telling = not (UNTELLING.fullmatch(ours.arm) and ours.name == ours.arm)
    if None not in (ours.seed, theirs.seed) and ours.seed != theirs.seed:
        mine, other = setup(ours), setup(theirs)
        return (telling and not contradict(ours, theirs)) or (len(mine) > 2 and mine == other)
    return telling and not collide(ours, theirs)


def contradict(ours: Imported, theirs: Imported) -> bool:
    """Whether two runs have settings that make two arms."""
    kinds = {known.name: known.kind for run in (ours, theirs) for key in run.config
             if (known := names.key(key))}  # fmt: skip
    mine, other = ours.resolved.values, theirs.resolved.values
    return any(
        kinds.get(key) in ("treatment", "must match") and not names.same(mine[key], other[key])
        for key in mine.keys() & other.keys()
    )


def setup(run: Imported) -> frozenset[tuple[str, str]]:
    """The config of a run without its seed and without what does no harm."""
    return frozenset(
        (key, repr(setting.value))
        for key, setting in run.config.items()
        if (known := names.key(key)) is None or known.kind not in ("seed", "harmless")
    )


def collide(ours: Imported, theirs: Imported) -> bool:
    """Whether two runs measured the same at the same place."""
    ends = {(one.metric, one.axis): one for one in ours.series if len(one.steps)}
    for one in theirs.series:
        other = ends.get((one.metric, one.axis))
        if other is None or not len(one.steps):
            continue
        if one.steps.min() <= other.last and other.steps.min() <= one.last:
            return True
    return bool(_spots(ours) & _spots(theirs))


def _spots(run: Imported) -> set[tuple[object, ...]]:
    """Where a run has a measurement that is no curve."""
    cells = {(c.metric, c.epoch, c.step, c.shots, c.items, c.split) for c in run.cells}
    return cells | {(one.metric, "items", one.step, one.shots, one.split) for one in run.scores}


def differing(places: Sequence[Path]) -> list[str]:
    """The parts of paths that are not the same in all, without the ending of a file."""
    every = [_whole(place).parts for place in places]
    least = min(map(len, every))
    first = next((at for at in range(least) if len({one[at] for one in every}) > 1), least)
    rest = least - first
    last = next((at for at in range(rest) if len({one[-1 - at] for one in every}) > 1), rest)
    ends = [one[first : len(one) - last] or one[first - 1 : first] for one in every]
    whole = ["/".join(end) for end in ends]
    stems = [
        text[: -len(place.suffix)] if not last and place.is_file() and place.suffix else text
        for text, place in zip(whole, places, strict=True)
    ]
    return stems if len(set(stems)) == len(stems) else whole


# --- what shows only in a whole source


def settle(source: Source) -> None:
    """Call runs by their folders, make fractions of percentages, and note what is no number."""
    for run in source.runs:
        if run.format != "markdown":  # a report says itself whose its numbers are
            label(run)
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
