"""A plan as a study's file: what `kleash study` runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kleash.config import build
from kleash.errors import ConfigError, DataError
from kleash.plan import Arm, StudyFile, nested
from kleash.plan.folder import without_none
from kleash.prospect import Option, Proposal

TUNED = ("search", "calibrate")


def proposed_file(found: Proposal, file: StudyFile, name: str) -> StudyFile:
    """The proposal as a study like `file`."""
    design = found.design
    if design is None:
        raise ConfigError(
            f"{found.hours:g} hours do not do for a study that decides: nothing to write"
        )
    arms: dict[str, Any] = {"none": {"leash": {"coefficient": 0.0}}}
    calibrate: dict[str, Any] = {"seeds": ()}
    if found.coefficients:
        for value in found.coefficients:
            arms[f"kl-{value:.3g}"] = {"leash": {"coefficient": value}}
    else:
        calibrate = _free(file.calibrate.model_dump(mode="json"), design.seeds)
        calibrate |= {"arms": design.arms - 1}
    measure = file.measure.model_dump(mode="json")
    smaller = [size for size in file.measure.items if size < design.items]
    return build(
        StudyFile,
        {
            "name": name,
            "about": f"planned for {found.hours:g} hours",
            "seeds": design.seeds,
            "base": file.base,
            "grpo": file.grpo,
            "arms": arms,
            "calibrate": calibrate,
            "measure": measure | {"items": [*smaller, design.items]},
            "compare": {
                "baselines": ["none"],
                "metric": found.rest.metric,
                "margin": found.rest.goal.margin,
            },
            "budget": file.budget.model_dump(mode="json") | {"hours": found.hours},
            "search": {"seeds": ()},
        },
    )


def _free(calibrate: dict[str, Any], seeds: int) -> dict[str, Any]:
    """Tuning seeds that are none of the study's."""
    kept = [seed for seed in calibrate["seeds"] if seed >= seeds] or [max(1000, seeds)]
    return calibrate | {"seeds": kept}


def grown_file(option: Option, file: StudyFile, arms: Sequence[Arm]) -> StudyFile:
    """A study that was run, with the seeds, items and arms of an option."""
    plain = file.model_dump(mode="json")
    plain["seeds"] = seeds_then(option, file)
    plain["measure"]["items"] = items_then(option, file)
    if option.kind == "open":
        # Named one by one: a grid or a calibration would bring the others back.
        plain["arms"] = {arm.name: nested(arm.keys) for arm in arms if arm.name in option.arms}
        plain["grid"] = {}
        plain["calibrate"] = {"seeds": ()}
        kept = [name for name in file.compare.baselines if name in option.arms]
        plain["compare"]["baselines"] = kept
        held = kept or list(plain["arms"])[:1]
        names = [name for name in plain["arms"] if name not in held]
        plain["expect"] = [each for each in plain["expect"] if each["arm"] in names]
    return build(StudyFile, plain)


def seeds_then(option: Option, file: StudyFile) -> list[int]:
    """The study's seeds and as many fresh ones as the option has."""
    used = {*file.seeds, *file.search.seeds, *file.calibrate.seeds}
    fresh = (seed for seed in range(10_000) if seed not in used)
    return [*file.seeds, *(next(fresh) for _ in range(option.seeds))]


def items_then(option: Option, file: StudyFile) -> list[int]:
    """The sizes that were measured, and the option's where it is larger."""
    last = file.measure.items[-1]
    return [*file.measure.items, *([last + option.items] if option.items else [])]


def write_file(path: Path, file: StudyFile) -> None:
    """The file as TOML; one that is there is never overwritten."""
    import tomli_w

    if path.exists():
        raise ConfigError(f"{path} is there already: name another file, or move it away")
    text = tomli_w.dumps(without_none(file.model_dump(mode="json", exclude_defaults=True)))
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror}") from None
