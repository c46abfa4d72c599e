"""A study as it is written: one TOML file, read into a config. No torch: anybody can plan."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from kleash.config import Config, build, dotted, merge, parse_overrides, read_toml
from kleash.errors import ConfigError

DEFAULT = "demos-kl"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+=,-]*")
LIKE_A_SEED = re.compile(r"-s\d+$")
BASELINES = ("zero-shot", "random", "similar", "first-k", "planted", "base", "best-greedy")
ACCURACY, REWARD = "accuracy", "eval_reward"  # what families are judged by, as `compare` names it
# What is measured of an agent unless its study says otherwise: rewards spread more than accuracies.
OF_AGENTS: dict[str, Any] = {
    "measure": {"shots": (0, 2), "items": (100, 200, 400), "baselines": ("base",)},
    "compare": {"metric": REWARD, "margin": 0.05},
}


class Measure(Config):
    """What is measured of every run."""

    shots: tuple[int, ...] = (1, 2, 3, 4)
    """Numbers of demonstrations shown in the test; of an agent, sampled passes: 0 is greedy."""
    items: tuple[int, ...] = (100, 200, 400, 800)
    """Sizes of the test sets; each holds the smaller ones, and all are measured once."""
    validation: int = Field(200, ge=2)
    """Validation items for every checkpoint."""
    choose: Literal["validation", "last"] = "validation"
    """Which checkpoint is a run's chosen one; the last where training could not have seen gold."""
    test: Literal["chosen", "all", "none"] = "chosen"
    """Which checkpoints see the test split; none of those that only tune."""
    baselines: tuple[str, ...] = BASELINES
    """What a selector must beat; `base`, an agent's only one, is the start of all arms."""
    greedy_items: int = Field(25, ge=1)
    """Items for best-greedy, which asks for the whole pool at every step."""

    @model_validator(mode="after")
    def sensible(self) -> Self:
        """Sizes rise, counts are positive, baselines are known."""
        if not self.shots or not self.items or min(self.items) < 1:
            raise ConfigError("measure.shots and measure.items need numbers of 1 or more")
        if list(self.items) != sorted(set(self.items)):
            raise ConfigError(f"measure.items {list(self.items)} must rise")
        for name in self.baselines:
            if name not in BASELINES:
                raise ConfigError(f"no baseline {name!r}: there is {', '.join(BASELINES)}")
        return self


class Comparing(Config):
    """What will be asked of the results, fixed before anything runs."""

    baselines: tuple[str, ...] = ()
    """Arms that others are compared with, each with the nearest; the first arm if none is named."""
    metric: str = ACCURACY
    """What arms are judged by: accuracy, or an agent's eval_reward."""
    margin: float = Field(0.01, gt=0, allow_inf_nan=False)
    """The gap that would matter."""


class Expected(Config):
    """What the author expects of an arm: answered with borne out, refuted or undecided."""

    arm: str
    """The arm."""
    direction: Literal["better", "worse", "same"]
    """Against its baseline."""
    metric: str = ""
    """On what; as the study compares if empty."""
    why: str = ""
    """The author's reason, shown beside the answer."""


class Budget(Config):
    """What a study may cost; 0 is no limit. What does not fit stays missing, and is said."""

    hours: float = Field(0.0, ge=0, allow_inf_nan=False)
    """Hours of all workers together."""
    answers: int = Field(0, ge=0)
    """Answers bought."""
    looks: tuple[int, ...] = (3, 5, 8, 12)
    """With --until decided: after how many seeds the verdict is looked at."""


class Searching(Config):
    """A search for settings: chosen on tuning seeds, confirmed on fresh ones."""

    trials: int = Field(0, ge=0)
    """Settings tried; 0 is no search."""
    seeds: tuple[int, ...] = (1000, 1001)
    """Tuning seeds: never among those that confirm."""
    coefficient: tuple[float, float] = (0.001, 10.0)
    """The range of leash.coefficient, searched in its logarithm."""
    together: int = Field(4, ge=1)
    """Trials that are asked for at once; more are faster and learn less from each other."""
    forms: tuple[str, ...] = ()
    """Forms of the leash to choose from; the arms' own if empty."""
    controllers: tuple[str, ...] = ()
    """Controllers to choose from; the arms' own if empty."""
    entropy_bonus: tuple[float, float] | None = None
    """The range of entropy_bonus; not searched if not given."""
    lr: tuple[float, float] | None = None
    """The range of lr, in its logarithm; not searched if not given."""


class Calibrating(Config):
    """Arms placed by realised KL: short runs on tuning seeds find the coefficients."""

    arms: int = Field(0, ge=0)
    """How many arms; 0 is no calibration."""
    trials: tuple[float, ...] = (0.0, 0.01, 0.1, 1.0, 10.0)
    """Coefficients tried."""
    seeds: tuple[int, ...] = (1000,)
    """Tuning seeds: never among the study's."""
    epochs: int = Field(1, ge=1)
    """Epochs of each trial."""


class StudyFile(Config):
    """Arms × seeds × measurements, from one shared start per seed."""

    name: str = ""
    """What it is called; the file's name if empty."""
    about: str = ""
    """What the study is for."""
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    """Every arm has every one of them; a number N stands for the first N."""
    base: dict[str, Any] = Field({})
    """Keys of a recipe: the shared start (supervised and RCE), made once per seed; or `from`."""
    grpo: dict[str, Any] = Field({})
    """Keys of a recipe that every arm has on top of the base."""
    arms: dict[str, dict[str, Any]] = Field({})
    """By name, the keys in which an arm differs from the base."""
    grid: dict[str, tuple[Any, ...]] = Field({})
    """Arms as the product of these values, by dotted key."""
    calibrate: Calibrating = Calibrating()
    measure: Measure = Measure()
    compare: Comparing = Comparing()
    expect: tuple[Expected, ...] = ()
    """What the author expects, written down before."""
    budget: Budget = Budget()
    search: Searching = Searching()

    @model_validator(mode="before")
    @classmethod
    def defaults_of_family(cls, given: Any) -> Any:
        """An agent is measured and judged by other numbers than a selector."""
        base = given.get("base") if isinstance(given, Mapping) else None
        return merge(OF_AGENTS, given) if isinstance(base, Mapping) and "env" in base else given

    @field_validator("seeds", mode="before")
    @classmethod
    def count_of_seeds(cls, seeds: Any) -> Any:
        """`seeds = 5` is [0, 1, 2, 3, 4]."""
        return tuple(range(seeds)) if type(seeds) is int else seeds

    @field_validator("grid", mode="before")
    @classmethod
    def dotted_grid(cls, grid: Any) -> Any:
        """`leash.coefficient = [...]` is a nested table to TOML, and one key to us."""
        return dict(dotted(grid)) if isinstance(grid, Mapping) else grid

    @model_validator(mode="after")
    def consistent(self) -> Self:
        """Refuse what cannot be planned."""
        if not self.seeds or len(set(self.seeds)) != len(self.seeds):
            raise ConfigError(f"seeds {list(self.seeds)}: give one or more, each once")
        if not self.arms and not self.grid and not self.calibrate.arms:
            raise ConfigError("a study needs arms: write [arms.NAME] tables, or a [grid]")
        for name in self.arms:
            if not NAME.fullmatch(name) or LIKE_A_SEED.search(name):
                raise ConfigError(
                    f"an arm cannot be called {name!r}: letters, digits and . _ + = , - only,"
                    " and no seed at the end"
                )
        self.fits_family()
        for kind, tuning in (("search", self.search), ("calibrate", self.calibrate)):
            if shared := sorted(set(tuning.seeds) & set(self.seeds)):
                raise ConfigError(
                    f"{kind}.seeds {shared} are also the study's: what was tuned on a seed"
                    " cannot be confirmed on it"
                )
        return self

    @property
    def of_agents(self) -> bool:
        """Whether its arms train language agents."""
        return "env" in self.base

    @property
    def logged(self) -> str:
        """What training logs as validation, under its name in `metrics.jsonl`."""
        return "validation/reward" if self.of_agents else "validation/accuracy"

    def fits_family(self) -> None:
        """Refuse what has no meaning for the family that is trained."""
        measure, metric = self.measure, REWARD if self.of_agents else ACCURACY
        if min(self.measure.shots) < (0 if self.of_agents else 1):
            raise ConfigError("measure.shots and measure.items need numbers of 1 or more")
        if self.of_agents and (odd := [name for name in measure.baselines if name != "base"]):
            raise ConfigError(
                f"measure.baselines {odd[0]!r} chooses demonstrations, and an agent is shown none:"
                ' give ["base"] or []'
            )
        for name in (self.compare.metric, *(each.metric for each in self.expect if each.metric)):
            if name != metric and (self.of_agents or name == REWARD):
                kind = "an agent" if self.of_agents else "a selector"
                raise ConfigError(f"{kind} is judged by {metric!r}, and no {name!r} is measured")


def nested(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Dotted keys as nested tables."""
    made: dict[str, Any] = {}
    for key, value in flat.items():
        *parents, last = key.split(".")
        spot = made
        for parent in parents:
            spot = spot.setdefault(parent, {})
        spot[last] = value
    return made


def as_written(keys: Mapping[str, Any]) -> dict[str, Any]:
    """Keyword arguments as a file would have them: `from_` is `from`, a class its address."""
    return merge(*(nested({name.rstrip("_"): _written(keys[name])}) for name in keys))


def _written(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _written(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_written(each) for each in value]
    if isinstance(value, type):
        return f"{value.__module__}:{value.__qualname__}"
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return value.item() if hasattr(value, "dtype") else value  # a number of numpy's


def bundled() -> dict[str, Any]:
    """The studies that come with Kleash: name and file."""
    folder = resources.files("kleash").joinpath("study", "bundled")
    return {
        Path(file.name).stem: file
        for file in sorted(folder.iterdir(), key=lambda file: file.name)
        if file.name.endswith(".toml")
    }


def read_study(
    asked: str, keys: Sequence[str] = (), changes: Mapping[str, Any] | None = None
) -> StudyFile:
    """A study by the name of a bundled one, a TOML file, or the folder of a study to go on with."""
    import tomllib

    known, path = bundled(), Path(asked)
    if asked in known:
        written = tomllib.loads(known[asked].read_text(encoding="utf-8"))
    elif path.is_dir() and (path / "study.toml").is_file():
        written = read_toml(path / "study.toml")
    elif path.is_file():
        written = read_toml(path)
    else:
        raise ConfigError(
            f"no study {asked!r}: give a TOML file, a study's folder, or one of {', '.join(known)}"
        )
    stem = path.name if path.is_dir() else path.stem
    return build(StudyFile, merge({"name": stem}, written, parse_overrides(keys), changes or {}))
