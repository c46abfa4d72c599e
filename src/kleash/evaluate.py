"""Measures checkpoints and baselines: a score for every item, with what was behind it.

Weights are loaded strictly and their hash is compared with what was trained. Pools are made by the
code that made them for training. What is there already is not measured again, and the bytes of the
file do not depend on how often measuring was interrupted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from kleash import guard
from kleash.baselines import BASELINES, best_greedy
from kleash.demos.propose import Pointer
from kleash.demos.score import vqa_accuracy
from kleash.errors import ConfigError
from kleash.policy import fingerprint
from kleash.rollout import World, empty_selector
from kleash.runs import Run, ScoreKey
from kleash.seeds import generator
from kleash.selector import STOP, Selector
from kleash.stats import mean_interval, paired_difference, sign_flip
from kleash.types import Item

AT_ONCE = 256  # items measured between two writes
GREEDY_ITEMS = 100
BASELINE = "baseline:"


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


def baseline_names(*, greedy: bool) -> list[str]:
    """The baselines as they are called among the scores."""
    return [BASELINE + name for name in (*BASELINES, *(["best-greedy"] if greedy else []))]


def evaluate(
    run: Run,
    world: World,
    wanted: Wanted,
    progress: Callable[[int], None] = lambda count: None,
) -> None:
    """Add to `scores.jsonl` whatever is wanted and not there."""
    items = world.pooled(wanted.split).queries
    if not 1 <= wanted.items <= len(items):
        raise ConfigError(
            f"{wanted.items} items of {wanted.split!r} were asked for: ask for 1 to {len(items)}"
        )
    place = {item.id: at for at, item in enumerate(items)}
    with run.lock():
        scored_as_trained(run, wanted.checkpoints)
        todo: dict[str, dict[int, list[int]]] = {}
        for key in run.missing_scores(wanted_keys(items, wanted)):
            cells = todo.setdefault(key.checkpoint, {})
            cells.setdefault(key.shots, []).append(place[key.item])
        for name, cells in todo.items():
            for made in measured(run, world, name, wanted.split, cells):
                run.add_scores(made)
                progress(len(made))


def wanted_keys(items: Sequence[Item], wanted: Wanted) -> Iterator[ScoreKey]:
    """Every score that is wanted, in the order they are measured."""
    for name in wanted.checkpoints:
        few = name == BASELINE + "best-greedy"
        count = min(wanted.items, GREEDY_ITEMS) if few else wanted.items
        for shots in wanted.shots:
            for item in items[:count]:
                yield ScoreKey(name, shots, wanted.split, item.id)


def scored_as_trained(run: Run, names: Sequence[str]) -> None:
    """Refuse to go on where scores of a checkpoint are those of other weights."""
    trained = {
        name: run.state(name)["weights_hash"] for name in names if not name.startswith(BASELINE)
    }
    for line in run.scores():
        if line["checkpoint"] in trained:
            guard.same_weights(trained[line["checkpoint"]], line["weights"])


def measured(
    run: Run, world: World, name: str, split: str, cells: Mapping[int, Sequence[int]]
) -> Iterator[list[dict[str, Any]]]:
    """The lines of one checkpoint or baseline, some at a time: places by number of shots.

    A policy chooses one after the other, so its choices for few shots begin those for many.
    """
    weights, longest = "", {}
    if not name.startswith(BASELINE):
        most = max(cells)
        policy, weights = loaded(run, world, name, most)
        every = sorted({place for places in cells.values() for place in places})
        longest = greedy(policy, world, split, every, most)
    for shots, places in cells.items():
        if weights:
            pointers = {place: longest[place][:shots] for place in places}
        else:
            some = world.pooled(split).take(max(places) + 1)
            choose = BASELINES.get(name.removeprefix(BASELINE), best_greedy)
            chosen = choose(some, world.data, shots, world.ask)
            if chosen is None:
                return
            pointers = dict(enumerate(chosen))
        key = ScoreKey(name, shots, split, "")
        for start in range(0, len(places), AT_ONCE):
            asked = [(place, pointers[place]) for place in places[start : start + AT_ONCE]]
            yield lines(world, key, asked, weights)


def lines(
    world: World, key: ScoreKey, asked: Sequence[tuple[int, Pointer]], weights: str
) -> list[dict[str, Any]]:
    """One line for each item: the pointer behind it, the answer, the score or the error."""
    pooled = world.pooled(key.split)
    prompts = [
        pooled.prompt(place, [at for at in pointer if at != STOP]) for place, pointer in asked
    ]
    made = []
    for prompt, (asked_as, fact) in zip(prompts, world.ask.keyed_facts(prompts), strict=True):
        line: dict[str, Any] = {
            "checkpoint": key.checkpoint,
            "shots": key.shots,
            "split": key.split,
            "item": prompt.query.id,
            "pointer": [item.id for item in prompt.demonstrations],
            "prompt": asked_as,
            "weights": weights,
        }
        if fact.text is None:
            made.append(line | {"error": fact.error})
        else:
            score = vqa_accuracy(fact.text, prompt.query.answers)
            made.append(line | {"answer": fact.text, "score": score, "truth_logp": fact.truth_logp})
    return made


def loaded(run: Run, world: World, name: str, shots: int) -> tuple[Selector, str]:
    """The policy of a checkpoint, proven to be the one that was trained."""
    kept = run.load(name, trainer=False)
    guard.pool_fits(
        world.recipe.pool.size,
        shots,
        made_by=world.recipe.pool.maker,
        trained_with=kept.state["pool"],
    )
    policy = empty_selector(world.recipe, world.width)
    guard.load_strictly(policy, kept.weights, source=f"{run.path}/checkpoints/{name}")
    weights = fingerprint(policy.state_dict())
    guard.same_weights(kept.state["weights_hash"], weights)
    queries = world.queries("validation").take(range(4))
    policy.to(world.device)
    chosen, _ = policy.choose(queries, max(2, min(shots, world.recipe.shots)))
    guard.every_tensor_matters(policy, lambda: policy.judge(chosen).logp)
    return policy, weights


@torch.no_grad()
def greedy(
    policy: Selector, world: World, split: str, places: Sequence[int], shots: int
) -> dict[int, Pointer]:
    """The likeliest choice at every step, for each place.

    Always the same queries together: a choice does not depend on what else is measured.
    """
    chosen: dict[int, Pointer] = {}
    queries = policy.settle(world.queries(split))
    for block in sorted({place // AT_ONCE for place in places}):
        some = range(block * AT_ONCE, min((block + 1) * AT_ONCE, len(queries)))
        pointers, _ = policy.choose(queries.take(some), shots)
        chosen |= dict(zip(some, pointers.lists(), strict=True))
    return {place: chosen[place] for place in places}


Scores = dict[tuple[str, int], dict[str, float | None]]


def read_scores(run: Run, wanted: Wanted) -> Scores:
    """By (checkpoint, shots): the score of each item, None where its answer broke."""
    found: Scores = {(name, count): {} for name in wanted.checkpoints for count in wanted.shots}
    for line in run.scores():
        key = (line["checkpoint"], line["shots"])
        if line["split"] != wanted.split or key not in found:
            continue
        if len(found[key]) < wanted.items:  # measured in the drawn order: the first are nested
            found[key][line["item"]] = line.get("score")
    return found


def table(run: Run, wanted: Wanted) -> list[dict[str, Any]]:
    """Every cell: its mean with an interval, n, and how many answers broke."""
    cells = []
    for (name, count), scores in read_scores(run, wanted).items():
        good = [score for score in scores.values() if score is not None]
        broken = len(scores) - len(good)
        cell = {"checkpoint": name, "shots": count, "n": len(good), "broken": broken}
        if good:
            found = mean_interval(good, bounds=(0.0, 1.0))
            cell |= {"mean": found.estimate, "low": found.low, "high": found.high}
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
            gap = paired_difference(left, right)
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
