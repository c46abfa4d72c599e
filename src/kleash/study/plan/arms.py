"""The arms of a study as recipes: what each names, what it starts from, whom it is compared with.

An arm's recipe is the base, what every arm has on top, and the keys the arm names. Its start is the
base's last checkpoint of the same seed, so that arms of a seed share weights, tasks and draws.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from kleash.config import dotted, merge
from kleash.errors import ConfigError
from kleash.study.plan.file import StudyFile, nested
from kleash.train.recipe import AgentRecipe, Recipe, recipe_from

# What only the GRPO phase reads: a base is the same base whatever these are.
GRPO_KEYS = (
    *("epochs", "source", "group", "updates", "lr", "schedule", "warmup", "advantage", "weight"),
    *("clip.low", "clip.high", "clip.dual", "entropy_bonus", "leash", "early_stop", "freeze"),
    "like",
)
# An agent's other phase has batches of its own. How it talks (engine, temperature, turn_tokens) and
# what is played after an epoch (validation) its base reads too: dialogues, scores and lines depend.
AGENT_KEYS = (
    *GRPO_KEYS,
    *("batch", "steps", "credit", "collapse", "part_tokens", "sampler", "scale.ranks"),
)
# What makes an agent's start or its tasks another one: no arm of a study can have its own.
SHARED = ("env", "gym", "model", "tiny", "lora")


@dataclass(frozen=True)
class Arm:
    """A setting under study: its name and the dotted keys in which it differs from the base."""

    name: str
    keys: Mapping[str, Any] = field(default_factory=dict)


FOUND = Arm("found")
"""The best setting of a search, before it is known."""


def arms_of(file: StudyFile, placed: Sequence[Arm] = ()) -> list[Arm]:
    """Every arm: the named ones, the grid's, and those that tuning found.

    Where coefficients are placed by a calibration there is always one without a leash.
    """
    arms = [Arm(name, dict(dotted(keys))) for name, keys in file.arms.items()]
    if file.grid:
        names = list(file.grid)
        for values in product(*file.grid.values()):
            keys = dict(zip(names, values, strict=True))
            arms.append(Arm(",".join(f"{_short(k)}={_shown(v)}" for k, v in keys.items()), keys))
    if file.calibrate.arms and all(arm.name != "none" for arm in arms):
        arms.insert(0, Arm("none", {"leash.coefficient": 0.0}))
    arms += placed
    check_arms(file, arms)
    return arms


def check_arms(file: StudyFile, arms: Sequence[Arm]) -> None:
    """Refuse arms that cannot be told apart or would not be comparable."""
    names = [arm.name for arm in arms]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"two arms are called {name!r}: each needs a name of its own")
    for arm in arms:
        if own := sorted({"seed", "data_seed", "phase"} & arm.keys.keys()):
            raise ConfigError(
                f"arm {arm.name!r} sets its own {own[0]}: every arm has every seed of the study"
                " and starts from the base of its seed"
            )
        heads = {key.partition(".")[0] for key in arm.keys} if file.of_agents else set()
        if own := sorted(heads & set(SHARED)):
            raise ConfigError(
                f"arm {arm.name!r} sets its own {own[0]}: arms play the same tasks from the same"
                " weights; write it under [base], or make it a study of its own"
            )
    check_named(file, names)


def check_named(file: StudyFile, names: Sequence[str]) -> None:
    """Refuse baselines and expectations of arms that are not there to be compared."""
    told = ", ".join(names)
    for name in file.compare.baselines:
        if name not in names:
            raise ConfigError(f"compare.baselines names no arm {name!r}: the arms are {told}")
    later = [FOUND.name] if file.search.trials else []
    for each in file.expect:
        if each.arm not in [*names, *later]:
            raise ConfigError(f"expect names no arm {each.arm!r}: the arms are {told}")


def check_expected(file: StudyFile, arms: Sequence[Arm]) -> None:
    """Refuse to run what expects something of an arm that is compared with nothing."""
    held = file.compare.baselines or [arm.name for arm in arms[:1]]
    for each in file.expect:
        if each.arm in held:
            raise ConfigError(
                f"expect names {each.arm!r}, which the others are compared with:"
                " say what you expect of one of them"
            )


def _short(key: str) -> str:
    return key.rsplit(".", 1)[-1]


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value).replace("/", "-")


def own_selector(file: StudyFile, arm: Arm) -> str:
    """An arm's preset, if it is not the base's: its weights fit no other, so it has its own base.

    '' for all others, which share one base per seed, and for agents, whose arms share a model.
    """
    preset = str(arm.keys.get("selector", ""))
    shared = not preset or preset == base_recipe(file, file.seeds[0]).model_name()
    return "" if shared else preset


def base_given(file: StudyFile, seed: int, selector: str = "") -> dict[str, Any]:
    """What the shared start of a seed is asked to do: no more of the file than it reads."""
    grpo = AGENT_KEYS if file.of_agents else GRPO_KEYS
    keys = {
        key: value
        for key, value in dotted(file.base)
        if not any(key == ours or key.startswith(ours + ".") for ours in grpo)
    }
    start = keys.get("from")
    phase = {"phase": "grpo"} if start else {"phase": "all"}
    own = {"selector": selector} if selector else {}
    return merge(nested(keys), own, phase, {"epochs": 0, "seed": seed})


def base_recipe(file: StudyFile, seed: int, selector: str = "") -> Recipe:
    """The recipe of the shared start of a seed; of another preset, if one is named."""
    return recipe_from(base_given(file, seed, selector))


def arm_given(file: StudyFile, arm: Arm, seed: int, start: Path | str) -> dict[str, Any]:
    """What one run of an arm is asked to do, from a checkpoint."""
    given = merge(file.base, file.grpo, nested(arm.keys))
    own = nested(arm.keys).get("from")
    return merge(given, {"seed": seed, "phase": "grpo", "from": own or str(start)})


def arm_recipe(file: StudyFile, arm: Arm, seed: int, start: Path | str) -> Recipe:
    """The recipe of one run of an arm."""
    return recipe_from(arm_given(file, arm, seed, start))


def ranks_of(recipe: Recipe) -> int:
    """How many processes train a run of a study together."""
    return max(1, recipe.scale.ranks) if isinstance(recipe, AgentRecipe) else 1


def most_ranks(file: StudyFile, arms: Sequence[Arm]) -> int:
    """The same of the arm that has most."""
    recipes = (arm_recipe(file, arm, file.seeds[0], "BASE") for arm in arms)
    return max(map(ranks_of, recipes), default=1)


def seeded(recipe: Recipe, arm: Arm, seed: int, start: Path | str) -> Recipe:
    """The recipe of another run of an arm: nothing but its seed and its start is another."""
    own = nested(arm.keys).get("from")
    return recipe.model_copy(update={"seed": seed, "start": own or str(start)})


class Told(NamedTuple):
    """A recipe and its plain values, which take long to tell: once for all seeds of an arm."""

    recipe: Recipe
    resolved: dict[str, Any]

    @classmethod
    def of(cls, recipe: Recipe) -> Told:
        """A recipe as it is."""
        return cls(recipe, recipe.resolved())


def told_of(file: StudyFile, arms: Sequence[Arm]) -> dict[str, Told]:
    """By arm, the recipe of its first seed, wherever it starts."""
    return {arm.name: Told.of(arm_recipe(file, arm, file.seeds[0], "BASE")) for arm in arms}


def _apart(one: Mapping[str, Any], other: Mapping[str, Any]) -> set[str]:
    return {key for key in one.keys() | other.keys() if one.get(key) != other.get(key)}


def against(
    file: StudyFile, arms: Sequence[Arm], told: Mapping[str, Told] | None = None
) -> dict[str, str]:
    """By arm, the baseline arm it is compared with: the one it shares most settings with.

    `told` are the arms' recipes, where they were made already.
    """
    by_name = {arm.name: arm for arm in arms}
    baselines = [by_name[name] for name in file.compare.baselines] or list(arms[:1])
    flat = {
        name: dict(dotted(each.resolved)) for name, each in (told or told_of(file, arms)).items()
    }
    return {
        arm.name: min(baselines, key=lambda base: len(_apart(flat[arm.name], flat[base.name]))).name
        for arm in arms
        if arm not in baselines
    }
