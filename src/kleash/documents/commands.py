"""What would measure the cells that a report still asks for: a command for many cells at once."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from kleash.documents.fill import Left
from kleash.documents.logs import Logs


def commands(left: Sequence[Left], logs: Logs, report: Path) -> dict[str, list[Left]]:
    """By command, the cells that it would measure; what follows from others is not in it."""
    found: dict[str, list[Left]] = defaultdict(list)
    asked: dict[tuple[tuple[str, ...], str], list[Left]] = defaultdict(list)
    for one in left:
        if one.why != "unmeasured":
            continue
        runs = _runs(one.arm, logs)
        if not runs:
            found[_study(report)].append(one)
        elif one.place.epoch is None:
            found[one.command or _study(report)].append(one)
        else:
            asked[runs, f"epoch-{one.place.epoch}"].append(one)
    for (runs, checkpoint), cells in asked.items():
        every = [_measuring(Path(run), checkpoint, cells) for run in runs]
        found["\n".join(every)] += cells
    return dict(found)


def _runs(arm: str, logs: Logs) -> tuple[str, ...]:
    """The folders of an arm's runs, one for each seed, if they are ours; none of logs elsewhere."""
    log = logs.match.get(arm)
    every = [] if log is None else [run for one in log.replicates for run in one.runs[:1]]
    return tuple(run.where.file for run in every if run.format == "kleash")


def _study(report: Path) -> str:
    told, asked = (shlex.quote(text) for text in (str(report), f"{report.stem}.toml"))
    return f"kleash study from {told} --out {asked} && kleash study {asked}"


def _measuring(run: Path, checkpoint: str, cells: Sequence[Left]) -> str:
    """`kleash eval` of one checkpoint; training it first where it is not there."""
    shots = sorted({one.place.shots for one in cells if one.place.shots is not None})
    items = [one.place.items for one in cells if one.place.items is not None]
    train, where = "", shlex.quote(str(run))
    if not (run / "checkpoints" / checkpoint).is_dir():
        train = f"kleash train {where} epochs={checkpoint.removeprefix('epoch-')}"
    if not shots and not items:
        return train or f"kleash train {where}"
    told = f" --shots {','.join(map(str, shots))}" if shots else ""
    count = f" --items {max(items)}" if items else ""
    measure = f"kleash eval {where} --checkpoint {checkpoint}{told}{count}"
    return f"{train} && {measure}" if train else measure
