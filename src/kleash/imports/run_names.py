"""What runs are called: their arm is their name without the seed."""

from __future__ import annotations

import re
from pathlib import Path

from kleash.imports import Imported

SEED = re.compile(r"(?:[-_/ ]|^)(?:seed[-_=: ]?|s)(\d{1,9})$", re.I)


def label(run: Imported) -> Imported:
    """Fill in the seed from the config or the name, and the arm as the name without it."""
    match = SEED.search(run.name)
    if run.seed is None:
        seeds = {
            setting.value
            for key, setting in run.config.items()
            if (key == "seed" or key.endswith(".seed"))
            and type(setting.value) in (int, float)
            and setting.value % 1 == 0
        }
        if len(seeds) == 1:
            run.seed = int(seeds.pop())
        elif match:
            run.seed = int(match[1])
    if not run.arm:
        above = _above(run.name, run.where.file)
        run.arm = (run.name[: match.start()] if match else run.name) or above or run.name
    return run


def whole_name(name: str, file: Path | str) -> str:
    """A run's name, behind that of its folder where it is a seed alone: `beta0.01/seed_1`."""
    above = _above(name, file) if SEED.fullmatch(name) else ""
    return f"{above}/{name}" if above else name


def _above(name: str, file: Path | str) -> str:
    """The folder that something of this name lies in."""
    parts = Path(file).absolute().parts
    places = [at for at, part in enumerate(parts) if name in (part, Path(part).stem)]
    return parts[places[-1] - 1] if places and places[-1] else ""
