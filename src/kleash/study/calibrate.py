"""Arms placed by how far they go: short runs on tuning seeds find coefficients evenly apart in KL.

A grid of coefficients says little: half of it may lie where the leash holds everything, and half
where it holds nothing. The trials are a small study of their own in `calibration/`, which sees no
test item; what they found is in `calibration.json`, with every trial behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kleash.config import build, merge
from kleash.errors import ConfigError, KleashError
from kleash.runs.run import read_json, write_json
from kleash.study.plan import StudyFile
from kleash.study.plan.folder import Overview
from kleash.study.results import realised_kl

if TYPE_CHECKING:
    from kleash.study.running import Asked


def tuning_asked(asked: Asked, file: StudyFile, name: str) -> Asked:
    """A study of tuning runs inside a study's folder; both pay from one ledger."""
    ledger = asked.ledger or asked.folder / "ledger.sqlite"
    return replace(asked, file=file, folder=asked.folder / name, ledger=ledger)


def tuning_file(file: StudyFile, name: str, about: str, **given: Any) -> StudyFile:
    """A study of tuning runs: the same base; validation is measured, and nothing of the test."""
    measure = file.measure.model_dump() | {"test": "none", "baselines": []}
    shared = {"base": file.base, "measure": measure, "budget": file.budget.model_dump()}
    none = {"seeds": ()}  # these seeds tune: there is nothing they would have to be kept from
    tuned = {"search": none, "calibrate": none}
    return build(StudyFile, {"name": name, "about": about, **shared, **tuned, **given})


def trials_file(file: StudyFile) -> StudyFile:
    """The study of the trials: the same base and settings, tuning seeds, a few epochs."""
    calibrate, grpo = file.calibrate, merge(file.grpo, {"epochs": file.calibrate.epochs})
    if len([value for value in calibrate.trials if value > 0]) < 2:
        raise ConfigError(
            f"calibrate.trials {list(calibrate.trials)}: between fewer than two coefficients above"
            " 0 there is nothing to place"
        )
    arms = {f"kl-{value:g}": {"leash": {"coefficient": value}} for value in calibrate.trials}
    about = f"Short runs that place the arms of {file.name} by realised KL."
    return tuning_file(file, "calibration", about, seeds=calibrate.seeds, grpo=grpo, arms=arms)


def calibrated(asked: Asked, trials: StudyFile) -> bool:
    """Whether this calibration was made already."""
    path = asked.folder / "calibration.json"
    return path.is_file() and read_json(path)["asked"] == request(asked.file, trials)


def request(file: StudyFile, trials: StudyFile) -> dict[str, Any]:
    """All that a calibration depends on."""
    plain = trials.model_dump(mode="json", include={"seeds", "base", "grpo", "arms"})
    return plain | {"placed": file.calibrate.arms}


def keep_calibration(asked: Asked, trials: StudyFile, found: Overview) -> None:
    """Place the arms by what the trials reached, and keep it with the trials."""
    reached: dict[float, list[float]] = {}
    rows = []
    for value in asked.file.calibrate.trials:
        for seed in trials.seeds:
            kl = realised_kl(found.seen[f"kl-{value:g}", seed], {})
            if kl is None:
                raise KleashError(f"the trial kl-{value:g}-s{seed} told no KL: look at its folder")
            reached.setdefault(value, []).append(kl)
            rows.append({"coefficient": value, "seed": seed, "kl": kl})
    means = {value: float(np.mean(kls)) for value, kls in reached.items()}
    held = {value: kl for value, kl in sorted(means.items()) if value > 0}
    coefficients, targets = place(list(held), list(held.values()), asked.file.calibrate.arms)
    write_json(
        asked.folder / "calibration.json",
        {
            "asked": request(asked.file, trials),
            "coefficients": coefficients,
            "expected_kl": targets,
            "without_leash": means.get(0.0),
            "trials": rows,
        },
    )


def place(
    coefficients: Sequence[float], kls: Sequence[float], count: int
) -> tuple[list[float], list[float]]:
    """So many coefficients whose KL is evenly apart in its logarithm, and that KL in nats.

    Between the smallest and the largest reached, by straight lines between logarithms; where KL
    does not fall as the coefficient rises, neighbours are pooled (isotonic least squares).
    """
    if min(kls) <= 0:
        raise KleashError(
            f"trials went {min(kls):.3g} to {max(kls):.3g} nats from the base: a policy that"
            " stays where it is cannot be placed; raise grpo.lr or calibrate.epochs"
        )
    blocks = falling(np.log(coefficients), np.log(kls))
    if len(blocks) < 2:
        raise KleashError(
            f"coefficients {min(coefficients):g} to {max(coefficients):g} all went about"
            f" {np.mean(kls):.3g} nats: try others in calibrate.trials, or more epochs"
        )
    x, y = np.array(blocks).T
    targets = np.linspace(y[0], y[-1], count)
    found = np.exp(np.interp(-targets, -y, x))
    rounded = dict.fromkeys(float(f"{value:.3g}") for value in found)  # as its arm is called
    return list(rounded), np.exp(np.interp(np.log(list(rounded)), x, y)).tolist()


def falling(x: Sequence[float] | Any, y: Sequence[float] | Any) -> list[tuple[float, float]]:
    """The points of a curve that only falls, nearest in squares: pools of neighbours, averaged."""
    pools: list[list[tuple[float, float]]] = []
    for point in zip(x, y, strict=True):
        pools.append([point])
        while len(pools) > 1 and _level(pools[-1]) >= _level(pools[-2]):
            pools[-2:] = [pools[-2] + pools[-1]]
    return [(float(np.mean([p[0] for p in pool])), _level(pool)) for pool in pools]


def _level(pool: Sequence[tuple[float, float]]) -> float:
    return float(np.mean([y for _, y in pool]))
