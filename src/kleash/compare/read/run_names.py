"""What runs are called: their arm is their name without the seed.

Where there is little room, they are called without what all of their names share:
`TravelGym_Qwen3-4B_n8_kl0.001` and `TravelGym_Qwen3-4B_n8_kl0.005` look the same in the legend of a
chart or in a column of a table.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from kleash.compare.read import Imported

SEED = re.compile(r"(?:[-_/ ]|^)(?:seed[-_=: ]?|s)(\d{1,9})$", re.I)
ROOM = 20  # characters: what a chart has room for
LEAST = 6  # of them: to drop fewer is not worth a word
UPTO = re.compile(r".*[_\-/ ]")
FROM = re.compile(r"[_\-/ ].*")


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
        bare = run.name[: match.start()] if match else run.name
        run.arm = bare or _above(run.name, run.where.file) or run.name
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


def shortly(names: Sequence[str]) -> tuple[list[str], str]:
    """Names, the long ones without what they share; and what that is, "" where nothing is left out.

    What is left has a letter in it, and is nobody else's name.
    """
    long = [name for name in names if len(name) > ROOM]
    if len(long) < 2:
        return list(names), ""
    before = _upto(_shared(long))
    while before and not all(_says(name[len(before) :]) for name in long):
        before = _upto(before[:-1])
    rests = [name[len(before) :] for name in long]
    found = FROM.search(_shared([rest[::-1] for rest in rests])[::-1])
    after = found.group() if found else ""
    if after and not all(_says(rest[: -len(after)]) for rest in rests):
        after = ""
    short = {name: rest[: len(rest) - len(after)] for name, rest in zip(long, rests, strict=True)}
    if len(before) + len(after) < LEAST or {*names} & {*short.values()}:
        return list(names), ""
    return [short.get(name, name) for name in names], f"{before}…{after}"


def _shared(names: Sequence[str]) -> str:
    """What all of them begin with."""
    for at, letters in enumerate(zip(*names, strict=False)):
        if len(set(letters)) > 1:
            return names[0][:at]
    return min(names, key=len)


def _upto(text: str) -> str:
    """As far as the last mark between words."""
    found = UPTO.match(text)
    return found.group() if found else ""


def _says(rest: str) -> bool:
    """Whether what is left of a name is one: a number alone is none."""
    return any(letter.isalpha() for letter in rest)
