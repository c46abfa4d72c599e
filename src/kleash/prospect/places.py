"""Where arms should lie: coefficients whose realised KL is evenly apart in its logarithm."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from kleash.compare.arms import Arm
from kleash.errors import KleashError
from kleash.results import KL
from kleash.runs import read_json
from kleash.study.calibrate import place

LAST = 0.25  # of a curve that is taken for where it ended


def reached(arms: Sequence[Arm]) -> dict[float, float]:
    """By coefficient above 0, the KL in nats at which its runs ended."""
    found: dict[float, list[float]] = {}
    for arm in arms:
        for each in arm.replicates:
            curve = each.curve(KL) or each.curve("kl")
            if curve is not None and len(curve) and arm.coefficient:
                tail = curve.values[-max(1, int(LAST * len(curve))) :]
                found.setdefault(arm.coefficient, []).append(float(tail.mean()))
    return {value: float(np.mean(kls)) for value, kls in sorted(found.items())}


def calibrated(folder: Path) -> dict[float, float]:
    """The same of a study's calibration, where one was made."""
    path = folder / "calibration.json"
    found: dict[float, list[float]] = {}
    for row in read_json(path)["trials"] if path.is_file() else ():
        if row["coefficient"] > 0:
            found.setdefault(row["coefficient"], []).append(row["kl"])
    return {value: float(np.mean(kls)) for value, kls in sorted(found.items())}


def placed_arms(known: dict[float, float], count: int) -> tuple[list[float], list[float]] | None:
    """Coefficients and the KL expected of each; None where what is known cannot place them."""
    if len(known) < 2:
        return None
    try:
        return place(list(known), list(known.values()), count)
    except KleashError:
        return None  # all went equally far, or nowhere: a calibration has to find where they part
