"""What a search found, with the winner's optimism taken out.

The best of many trials was also the luckiest, on its seeds and on the items it was judged by. So
its gain is measured again on seeds and items that chose nothing, and the difference is named.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kleash import stats
from kleash.compare.items import table_of
from kleash.runs.run import read_json
from kleash.stats import Interval
from kleash.study.plan import FOUND, StudyFile, arm_recipe, arms_of
from kleash.study.plan.folder import Overview, placed
from kleash.study.results import item_means


@dataclass(frozen=True)
class Searched:
    """Gains of the found setting over the baseline arm, at the number of shots it was tuned at."""

    baseline: str
    trials: int
    pruned: int
    pruning: str
    won: bool
    """Whether any trial beat the baseline on the tuning seeds; if not there is no arm `found`."""
    tuned: float
    """On the tuning seeds, validation: what the search saw."""
    again: Interval | None
    """The same measure on the study's own seeds: without the luck of the tuning seeds."""
    confirmed: Interval | None
    """On the study's own seeds and the test: without the luck of the validation items either."""

    @property
    def optimism(self) -> Interval | None:
        """How much of the gain was the winner's luck; as unsure as what was confirmed is."""
        if (gap := self.confirmed) is None:
            return None
        ends = self.tuned - gap.estimate, self.tuned - gap.high, self.tuned - gap.low
        return Interval(*ends, gap.level, gap.n)


def signed(gap: Interval) -> str:
    """`+0.012 [-0.004, +0.028]`."""
    return f"{gap.estimate:+.3f} [{gap.low:+.3f}, {gap.high:+.3f}]"


def searched(folder: Path, file: StudyFile, found: Overview) -> Searched | None:
    """What a search found and what is left of it; None without a search."""
    path = folder / "search.json"
    if not path.is_file():
        return None
    kept = read_json(path)
    base, tuned = kept["baseline"], kept["tuned"]
    won = bool(kept["keys"])
    return Searched(
        baseline=base,
        trials=len(kept["trials"]),
        pruned=kept["pruned"],
        pruning=kept["pruning"],
        won=won,
        tuned=float(np.mean(tuned["found"]) - np.mean(tuned["baseline"])),
        again=gain(folder, file, found, base, "validation") if won else None,
        confirmed=gain(folder, file, found, base, "test") if won else None,
    )


def gain(folder: Path, file: StudyFile, found: Overview, base: str, split: str) -> Interval | None:
    """The gap of `found` over its baseline, paired by the study's seeds; None below two."""
    arms = {arm.name: arm for arm in arms_of(file, placed(folder))}
    trained = arm_recipe(file, arms[FOUND.name], 0, "BASE").validated_at()
    shots = [trained] if split == "validation" or trained in file.measure.shots else []
    items = file.measure.validation if split == "validation" else file.measure.items[-1]
    rows = []
    for seed in file.seeds:
        sides = []
        for name in (FOUND.name, base):
            seen = found.seen.get((name, seed))
            keys = [(seen.chosen, split, n) for n in shots or file.measure.shots] if seen else []
            sides.append(item_means([seen.scored.get(key) for key in keys], items) if seen else {})
        if both := sides[0].keys() & sides[1].keys():
            rows.append({item: sides[0][item] - sides[1][item] for item in both})
    return stats.crossed_seeds(table_of(rows)[1]).interval if len(rows) > 1 else None
