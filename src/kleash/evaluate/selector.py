"""Measures selectors and what needs no training: choose greedily, have it answered, score it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from kleash import guard
from kleash.baselines import BASELINES, Baseline, best_greedy
from kleash.demos.lemmas import lemmatised_score
from kleash.demos.propose import Pointer
from kleash.errors import ConfigError
from kleash.policy import fingerprint
from kleash.rollout.selector import SelectorWorld
from kleash.runs import Run, ScoreKey
from kleash.selector import STOP, Selector

AT_ONCE = 256  # items measured between two writes
BASELINE = "baseline:"


def baseline_names(*, greedy: bool) -> list[str]:
    """The baselines as they are called among the scores."""
    return [BASELINE + name for name in (*BASELINES, *(["best-greedy"] if greedy else []))]


def baseline(name: str) -> Baseline:
    """The baseline that is called so among the scores."""
    known = BASELINES | {"best-greedy": best_greedy}
    plain = name.removeprefix(BASELINE)
    if plain not in known:
        raise ConfigError(f"no baseline {plain!r}: there is {', '.join(known)}")
    return known[plain]


def measured(
    run: Run, world: SelectorWorld, name: str, split: str, cells: Mapping[int, Sequence[int]]
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
            chosen = baseline(name)(some, world.data, shots, world.ask)
            if chosen is None:
                return
            pointers = dict(enumerate(chosen))
        key = ScoreKey(name, shots, split, "")
        for start in range(0, len(places), AT_ONCE):
            asked = [(place, pointers[place]) for place in places[start : start + AT_ONCE]]
            yield lines(world, key, asked, weights)


def lines(
    world: SelectorWorld, key: ScoreKey, asked: Sequence[tuple[int, Pointer]], weights: str
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
            score = world.score(fact.text, prompt.query)
            line |= {"answer": fact.text, "score": score, "truth_logp": fact.truth_logp}
            if getattr(world.data, "lemmatised", False):
                line["lemmatised"] = lemmatised_score(fact.text, prompt.query)
            made.append(line)
    return made


def loaded(run: Run, world: SelectorWorld, name: str, shots: int) -> tuple[Selector, str]:
    """The policy of a checkpoint, proven to be the one that was trained."""
    kept = run.load(name, trainer=False)
    guard.pool_fits(
        world.recipe.pool.size,
        shots,
        made_by=world.recipe.pool.maker,
        trained_with=kept.state["pool"],
    )
    policy = world.empty_policy()
    guard.load_strictly(policy, kept.weights, source=f"{run.path}/checkpoints/{name}")
    weights = fingerprint(policy.state_dict())
    guard.same_weights(kept.state["weights_hash"], weights)
    queries = world.queries("validation").take(range(4))
    policy.to(world.device)
    some = max(2, min(shots, world.recipe.shots))
    if policy.towers is not None:  # hundreds of tensors, each with a pass through the towers
        queries = queries.take(range(2)).few(2 * some)
    chosen, _ = policy.choose(queries, some)
    guard.every_tensor_matters(policy, lambda: policy.judge(chosen).logp)
    return policy, weights


@torch.no_grad()
def greedy(
    policy: Selector, world: SelectorWorld, split: str, places: Sequence[int], shots: int
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
