"""A study's results in short: means of the baselines, and plain values for `--json`."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from kleash.compare.comparison import Judged
from kleash.stats import Interval, mean_interval
from kleash.study.plan import BASELINE, CHOSEN
from kleash.study.results import ArmRow, Results
from kleash.study.results.tuning import searched


def baselines(found: Results) -> dict[str, dict[int, Interval]]:
    """By name and shots: over items, of `base` over seeds, of random draws over draws."""
    largest: dict[tuple[str, int], list[Any]] = {}
    for each in found.measured:
        cell = each.cell
        if each.mean is None or not (cell.arm == "base" or cell.arm.startswith(BASELINE)):
            continue
        name = cell.arm.removeprefix(BASELINE)
        family = "random" if name.startswith("random-") else name
        fit = largest.setdefault((family, cell.shots), [])
        fit[:] = [one for one in fit if one.cell.items >= cell.items]
        if not fit or fit[0].cell.items == cell.items:
            fit.append(each)
    made: dict[str, dict[int, Interval]] = {}
    for (family, shots), cells in largest.items():
        several = len(cells) > 1
        interval = mean_interval([c.mean for c in cells]) if several else cells[0].interval
        if interval is not None:
            made.setdefault(family, {})[shots] = interval
    return made


def scored(found: Results, interval: Interval | None) -> str:
    """A mean score; where it is an accuracy, its interval as far as that is possible."""
    if interval is not None and not found.file.of_agents:
        interval = replace(interval, low=max(interval.low, 0.0), high=min(interval.high, 1.0))
    return shown(interval)


def shown(interval: Interval | None) -> str:
    """`0.412 [0.398, 0.426]`."""
    if interval is None:
        return "–"
    return f"{interval.estimate:.3f} [{interval.low:.3f}, {interval.high:.3f}]"


def plain(found: Results) -> dict[str, Any]:
    """The results as JSON."""
    search = searched(found.folder, found.file, found.overview)
    return {
        "study": found.file.name,
        "folder": str(found.folder),
        "counts": found.overview.counts(),
        "use": used(found),
        "arms": [plain_row(row) for row in found.rows],
        "baselines": {
            name: {str(shots): asdict(each) for shots, each in by_shots.items()}
            for name, by_shots in baselines(found).items()
        },
        "expectations": [asdict(each) for each in found.expectations],
        "mixed": found.mixed,
        "late_arms": found.late,
        "test_uses": found.test_uses,
        "spent": found.spent,
        "search": None
        if search is None
        else asdict(search) | {"optimism": search.optimism and asdict(search.optimism)},
        "failures": found.failures,
        "cells": [
            {
                **each.cell._asdict(),
                "checkpoint": each.checkpoint or CHOSEN,
                "state": each.state,
                "mean": each.mean,
                "command": each.command,
                "why": each.why,
            }
            for each in found.measured
        ],
    }


def used(found: Results) -> dict[str, Any] | None:
    """Which arm to use, or the start that is kept."""
    every = found.comparison.verdicts if found.comparison else []
    use = next((each for each in every if each.question == "recommend"), None)
    return (
        None
        if use is None
        else {"verdict": use.verdict, "arms": list(use.arms), "level": use.level}
    )


def plain_row(row: ArmRow) -> dict[str, Any]:
    """One arm."""
    return {
        "arm": row.name,
        "keys": dict(row.keys),
        "against": row.against,
        "late": row.late,
        "kl": None if row.kl is None else asdict(row.kl),
        "score": None if row.score is None else asdict(row.score),
        "scores": list(row.scores),
        "chosen": list(row.chosen),
        "gap": plain_gap(row.gap),
        "gain": plain_gap(row.gain),
    }


def plain_gap(gap: Judged | None) -> dict[str, Any] | None:
    """A verdict."""
    if gap is None:
        return None
    names = ("verdict", "level", "estimate", "low", "high", "p", "adjusted_p")
    told = {name: getattr(gap, name) for name in names}
    return told | {"also_changed": list(gap.also_changed)}
