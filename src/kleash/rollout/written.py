"""Proposals that were answered, in the format of RL data: for whoever trains elsewhere."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from kleash.demos.reward import relevance
from kleash.demos.rl_data import Candidate, RlGroup
from kleash.rollout.adopted import NUMBERS
from kleash.rollout.proposed import Bought
from kleash.rollout.selector import SelectorWorld
from kleash.selector import STOP
from kleash.types import Answer, Item


def rl_groups(
    world: SelectorWorld, split: str, places: Sequence[int], bought: Bought
) -> list[RlGroup]:
    """Some queries with their facts; answers that broke are none.

    A query that is among the demonstrations is called by its number there, as users know it.
    """
    pooled = world.pooled(split)
    numbers = {item.id: str(row) for row, item in enumerate(pooled.demonstrations)}
    made = []
    for at, place in enumerate(places):
        item = pooled.queries[place]
        pool = tuple(int(row) for row in pooled.pools[place])
        rows = zip(bought.pointers[at], bought.methods[at], bought.answers[at], strict=True)
        candidates = [
            candidate(world, item, pool, pointer, (method, answer))
            for pointer, method, answer in rows
            if answer is not None
        ]
        made.append(
            RlGroup(
                query=numbers.get(item.id, item.id),
                question_id=item.id,
                question=item.question,
                answers=item.answers,
                pool=pool,
                candidates=tuple(candidates),
                image_id=item.image,
            )
        )
    return made


def candidate(
    world: SelectorWorld,
    item: Item,
    pool: tuple[int, ...],
    pointer: Sequence[int],
    found: tuple[str, Answer],
) -> Candidate:
    """One pointer with its fact."""
    method, answer = found
    accuracy = world.score(answer.text, item)
    return Candidate(
        shown=tuple(pool[place] for place in pointer if place != STOP),
        method=method,
        answer=answer.text,
        correct=accuracy > 0,
        accuracy=accuracy,
        truth_probability=math.exp(min(0.0, answer.truth_logp)),
        relevance=relevance(answer.text, item.answers),
        mode="kleash",
    )


def rl_meta(world: SelectorWorld) -> dict[str, Any]:
    """What a file of RL data says of itself: what numbers mean, and whose answers these are."""
    return {
        "numbers": NUMBERS,
        "data": world.content,
        "answerer": world.answerer.identity,
        "pool": world.recipe.pool.maker,
        "shots": world.recipe.shots,
        "propose": world.recipe.propose.model_dump(mode="json"),
    }
