"""Measures checkpoints and baselines: a score for every item, with what was behind it.

Weights are loaded strictly and their hash is compared with what was trained. Pools are made by the
code that made them for training. What is there already is not measured again, and the bytes of the
file do not depend on how often measuring was interrupted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kleash.algo import guard
from kleash.errors import ConfigError
from kleash.runs.run import Run, ScoreKey
from kleash.seeds import generator
from kleash.stats import mean_interval, paired_difference, sign_flip
from kleash.train.evaluate import selector
from kleash.train.evaluate.selector import BASELINE
from kleash.train.recipe import AgentRecipe
from kleash.train.rollout import one_way

GREEDY_ITEMS = 100


@dataclass(frozen=True)
class Wanted:
    """What to measure: checkpoints or baselines, numbers of shots, so many items of a split."""

    checkpoints: Sequence[str]
    shots: Sequence[int]
    split: str
    items: int


def resolve_checkpoints(run: Run, asked: str) -> list[str]:
    """`all`, `last`, or names with commas between them, as checkpoints that exist."""
    have = run.checkpoints()
    if not have:
        raise ConfigError(f"{run.path} has no checkpoint yet: train it first")
    if asked == "all":
        return have
    if asked == "last":
        return have[-1:]
    names = [name.strip() for name in asked.split(",")]
    for name in names:
        run.state(name)
    return names


@one_way()
def evaluate(
    run: Run,
    world: Any,
    wanted: Wanted,
    progress: Callable[[int], None] = lambda count: None,
) -> None:
    """Add to `scores.jsonl` whatever is wanted and not there."""
    items = world.item_ids(wanted.split)
    if not 1 <= wanted.items <= len(items):
        raise ConfigError(
            f"{wanted.items} items of {wanted.split!r} were asked for: ask for 1 to {len(items)}"
        )
    place = {item: at for at, item in enumerate(items)}
    with run.lock():
        scored_as_trained(run, wanted.checkpoints)
        todo: dict[str, dict[int, list[int]]] = {}
        for key in run.missing_scores(wanted_keys(items, wanted)):
            cells = todo.setdefault(key.checkpoint, {})
            cells.setdefault(key.shots, []).append(place[key.item])
        measured = measuring(world)
        for name, cells in todo.items():
            for made in measured(run, world, name, wanted.split, cells):
                run.add_scores(made)
                progress(len(made))


def measuring(world: Any) -> Callable[..., Iterator[list[dict[str, Any]]]]:
    """How the family of a world is measured."""
    if isinstance(world.recipe, AgentRecipe):
        from kleash.train.evaluate import agent

        return agent.measured
    return selector.measured


def wanted_keys(items: Sequence[str], wanted: Wanted) -> Iterator[ScoreKey]:
    """Every score that is wanted, in the order they are measured."""
    for name in wanted.checkpoints:
        few = name == BASELINE + "best-greedy"
        count = min(wanted.items, GREEDY_ITEMS) if few else wanted.items
        for shots in wanted.shots:
            for item in items[:count]:
                yield ScoreKey(name, shots, wanted.split, item)


def scored_as_trained(run: Run, names: Sequence[str]) -> None:
    """Refuse to go on where scores of a checkpoint are those of other weights."""
    trained = {
        name: run.state(name)["weights_hash"] for name in names if not name.startswith(BASELINE)
    }
    for line in run.scores():
        if line["checkpoint"] in trained:
            guard.same_weights(trained[line["checkpoint"]], line["weights"])


Scores = dict[tuple[str, int], dict[str, float | None]]


def read_scores(run: Run, wanted: Wanted, kind: str = "score") -> Scores:
    """By (checkpoint, shots): the score of each item, None where its answer broke or has none."""
    found: Scores = {(name, count): {} for name in wanted.checkpoints for count in wanted.shots}
    for line in run.scores():
        key = (line["checkpoint"], line["shots"])
        if line["split"] != wanted.split or key not in found:
            continue
        if len(found[key]) < wanted.items:  # measured in the drawn order: the first are nested
            found[key][line["item"]] = line.get(kind)
    return found


def table(run: Run, wanted: Wanted) -> list[dict[str, Any]]:
    """Every cell: its mean with an interval, n, and how many answers broke."""
    cells, by_lemmas = [], read_scores(run, wanted, "lemmatised")
    bounds = (0.0, 1.0) if "selector" in run.config else None  # a reward has none
    for (name, count), scores in read_scores(run, wanted).items():
        good = [score for score in scores.values() if score is not None]
        broken = len(scores) - len(good)
        cell = {"checkpoint": name, "shots": count, "n": len(good), "broken": broken}
        if len(good) > 1 or (good and bounds):
            found = mean_interval(good, bounds=bounds)
            cell |= {"mean": found.estimate, "low": found.low, "high": found.high}
        if lemmas := [score for score in by_lemmas[name, count].values() if score is not None]:
            cell["lemmatised"] = sum(lemmas) / len(lemmas)
        if void := voided(scores):
            cell["void"] = void.message
        cells.append(cell)
    return cells


def voided(scores: Mapping[str, float | None]) -> guard.Finding | None:
    """Why a cell is in no comparison, if it is in none."""
    broken = sum(score is None for score in scores.values())
    return guard.few_broken(broken, len(scores)) if scores else None


def gaps(run: Run, wanted: Wanted) -> list[dict[str, Any]]:
    """The last checkpoint's gap to every other one, paired by item, at each number of shots.

    Void cells have none.
    """
    scores = read_scores(run, wanted)
    last = wanted.checkpoints[-1]
    found = []
    for count in wanted.shots:
        ours = scores[last, count]
        for name in wanted.checkpoints[:-1]:
            theirs = scores[name, count]
            shared = [
                (mine, other)
                for item, mine in ours.items()
                if mine is not None and (other := theirs.get(item)) is not None
            ]
            if len(shared) < 2 or voided(ours) or voided(theirs):
                continue
            left, right = zip(*shared, strict=True)
            span = max(1.0, max(*left, *right) - min(*left, *right))  # rewards leave 0 to 1
            gap = paired_difference(left, right, span=span)
            flips = sign_flip(left, right, generator("sign flips", name, count))
            found.append(
                {
                    "against": name,
                    "shots": count,
                    "estimate": gap.estimate,
                    "low": gap.low,
                    "high": gap.high,
                    "n": gap.n,
                    "differ": flips.k,
                    "p": flips.p,
                }
            )
    return found
