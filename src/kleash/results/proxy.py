"""Proxy beside gold: what an arm was trained on, what it is judged by, and what it still knows.

All from the answers of the last test: the proxy is the reward of the run's own recipe, gold is the
score. Retention is over what the base of the seed answered rightly before GRPO, item by item.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kleash.data import dataset
from kleash.demos.reward import PROXIES, REWARDS, Facts, facts
from kleash.demos.score import Scorer, scorer
from kleash.plan import StudyFile, arm_recipe, base_checkpoint
from kleash.plan.folder import Overview, Seen
from kleash.recipe import SelectorRecipe
from kleash.results import Results, over_seeds
from kleash.stats import Interval
from kleash.types import Answer, Item


@dataclass(frozen=True)
class ProxyRow:
    """An arm over its seeds, at the number of shots it was trained with; `base` is the start."""

    arm: str
    proxy: Interval | None
    """Mean of the study's own reward on the test."""
    gold: Interval | None
    """Accuracy on the same answers."""
    retained: Interval | None
    """Of what the base answered rightly, how much the arm still does; the base's own is 1."""
    retention_items: tuple[int, ...]
    """By seed, how many items that is of."""


def proxy_rows(found: Results) -> list[ProxyRow]:
    """The base and every arm, where the first arm is trained on a proxy; else nothing."""
    file, names = found.file, ["base", *(arm.name for arm in found.arms)]
    recipe = arm_recipe(file, found.arms[0], file.seeds[0], "BASE")
    if not isinstance(recipe, SelectorRecipe):
        return []
    if recipe.reward not in PROXIES or recipe.shots not in file.measure.shots:
        return []
    data = dataset(recipe.data, recipe.data_seed, recipe.data_options)
    items = {item.id: item for item in data.queries("test")}
    paid = payment(REWARDS[recipe.reward], scorer(data), items)
    return [proxy_row(found.overview, file, recipe.shots, name, paid) for name in names]


def proxy_row(
    found: Overview, file: StudyFile, shots: int, arm: str, paid: Callable[[Any], float]
) -> ProxyRow:
    """One arm over its seeds."""
    start = base_checkpoint(file, file.seeds[0])
    proxies, golds, retained, sizes = [], [], [], []
    for seed in file.seeds:
        ours, base = found.seen.get((arm, seed)), found.seen.get(("base", seed))
        lines = {} if ours is None else answers(ours, ours.chosen or start, shots)
        before = {} if base is None else answers(base, start, shots)
        if not lines:
            continue
        proxies.append(float(np.mean([paid(line) for line in lines.values()])))
        golds.append(float(np.mean([line["score"] for line in lines.values()])))
        right = [item for item, line in before.items() if line["score"] > 0 and item in lines]
        if right:
            retained.append(float(np.mean([lines[item]["score"] > 0 for item in right])))
            sizes.append(len(right))
    return ProxyRow(arm, over_seeds(proxies), over_seeds(golds), over_seeds(retained), tuple(sizes))


def answers(seen: Seen, checkpoint: str, shots: int) -> dict[str, Any]:
    """By item, the line of an answer on the test; broken ones are left out."""
    if seen.run is None:
        return {}
    return {
        line["item"]: line
        for line in seen.run.scores()
        if (line["checkpoint"], line["split"], line["shots"]) == (checkpoint, "test", shots)
        and line.get("score") is not None
    }


def payment(
    reward: Callable[[Facts], float], score: Scorer, items: Mapping[str, Item]
) -> Callable[[Any], float]:
    """What training would have paid for the answer of a line."""

    def paid(line: Mapping[str, Any]) -> float:
        answer = Answer(line["answer"], line["truth_logp"])
        return reward(facts(answer, items[line["item"]], score))

    return paid
