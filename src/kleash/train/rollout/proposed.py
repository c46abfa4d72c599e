"""Proposals that were answered: what they were worth, through a view or as they are; as RL data.

Nothing of what was bought is changed by a view: it says which pointers of which queries are used.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from kleash.errors import DataError
from kleash.models.selector import STOP, Pointers, Queries
from kleash.runs.ledger import Usage
from kleash.tasks.demos.propose import Pointer, further
from kleash.tasks.demos.reward import REWARDS, query_health, relevance
from kleash.tasks.demos.rl_data import Candidate, RlGroup
from kleash.tasks.demos.views import View, flat, see
from kleash.train.rollout import Groups
from kleash.train.rollout.adopted import NUMBERS
from kleash.train.rollout.selector import BROKEN, SelectorWorld, make_groups
from kleash.types import Answer, Item

Value = TypeVar("Value")


@dataclass(frozen=True)
class Proposals:
    """The proposals of some queries with what their answers were worth."""

    pointers: list[list[Pointer]]
    rewards: list[list[float | None]]
    truth_logp: list[list[float]]
    methods: list[list[str]] = field(default_factory=list)
    """How each was found."""
    answers: list[list[Answer | None]] = field(default_factory=list)
    """What was answered; of facts from a file only what was made of it is kept."""
    kept: tuple[int, ...] | None = None
    """The queries that a view has left; none was looked through if None."""
    counts: Mapping[str, float] = field(default_factory=dict)
    """How much a view has left."""
    added: int = 0
    """Pointers that a view asked for beyond the proposals."""

    def best(self, query: int) -> Pointer | None:
        """The pointer that made the true answer likeliest; none where all answers broke."""
        logp = self.truth_logp[query]
        if not logp or max(logp) == -np.inf:
            return None
        return self.pointers[query][int(np.argmax(logp))]

    def health(self) -> dict[str, int]:
        """How many queries have proposals that all failed, all reached the top, or differ."""
        known = [[reward for reward in group if reward is not None] for group in self.rewards]
        return asdict(query_health([group for group in known if group]))

    def positive_share(self) -> float:
        """The share of answered pointers with any reward."""
        known = [reward for rewards in self.rewards for reward in rewards if reward is not None]
        return sum(reward > 0 for reward in known) / max(len(known), 1)


def buy_proposals(world: SelectorWorld, split: str, count: int) -> Proposals:
    """Propose pointers and have every one of them answered.

    Worlds that share what they hold work it out once; the ledger counts the asking every time.
    """
    recipe, ledger = world.recipe, world.ledger
    before = ledger.usage()

    def ask() -> tuple[Proposals, Usage]:
        bought = ask_for_proposals(world, split, count)
        return bought, ledger.usage().since(before)

    seed = world.proposal_seed(split)
    more = recipe.view.more if split == "train" else 0
    on = (recipe.propose, recipe.shots, seed, recipe.reward, more, *world.split_name(split))
    bought, usage = world.keep(ask, "proposals", count, *on)
    if ledger.usage() == before:
        ledger.recall(usage)
    return bought


def ask_for_proposals(world: SelectorWorld, split: str, count: int) -> Proposals:
    """Propose pointers and have every one of them answered; or take facts from a file."""
    if split == "train" and world.recipe.propose.facts:
        return from_facts(world, count)
    return ask_for_some(world, split, range(count))


def ask_for_some(world: SelectorWorld, split: str, places: Sequence[int]) -> Proposals:
    """The proposals of some queries, answered; more of them where a view asks for it."""
    proposals = world.proposals_for(split, places)
    bought = answered(
        world,
        split,
        places,
        [[world.in_order(each.pointer) for each in group] for group in proposals],
        [[each.method for each in group] for group in proposals],
    )
    view = world.recipe.view
    if split != "train" or not view.more:
        return bought
    pooled, seed = world.pooled(split), world.proposal_seed(split)
    again = [
        further(pooled, place, bought.pointers[at], view.more, seed)
        if flat(bought.rewards[at])
        else []
        for at, place in enumerate(places)
    ]
    named = [["further"] * len(group) for group in again]
    news = answered(world, split, places, again, named)
    return Proposals(
        beside(bought.pointers, news.pointers),
        beside(bought.rewards, news.rewards),
        beside(bought.truth_logp, news.truth_logp),
        beside(bought.methods, news.methods),
        beside(bought.answers, news.answers),
        added=sum(map(len, again)),
    )


def beside(ours: Sequence[list[Value]], theirs: Sequence[list[Value]]) -> list[list[Value]]:
    """Group by group, one list behind the other."""
    return [one + other for one, other in zip(ours, theirs, strict=True)]


def answered(
    world: SelectorWorld,
    split: str,
    places: Sequence[int],
    pointers: list[list[Pointer]],
    methods: list[list[str]],
) -> Proposals:
    """Pointers of queries with what came of asking."""
    asked = [(places[at], pointer) for at, group in enumerate(pointers) for pointer in group]
    rewards, answers = world.rewards(split, asked)
    truth = [-np.inf if answer is None else answer.truth_logp for answer in answers]
    sizes = [len(group) for group in pointers]
    return Proposals(pointers, cut(rewards, sizes), cut(truth, sizes), methods, cut(answers, sizes))


def cut(values: Sequence[Value], sizes: Sequence[int]) -> list[list[Value]]:
    """Values end to end, group by group."""
    ends = np.cumsum(sizes).tolist()
    return [list(values[end - size : end]) for end, size in zip(ends, sizes, strict=True)]


def from_facts(world: SelectorWorld, count: int) -> Proposals:
    """The facts of a file in the place of proposals; every reward is worked out from its answer."""
    recipe, adopted = world.recipe, world.adopted
    reward, needs = REWARDS[recipe.reward], "gt" in recipe.reward
    every = range(min(count, len(adopted.groups)))
    truth = [adopted.truth_logp(place) for place in every]
    taught = recipe.phase in ("all", "supervised") and recipe.supervised.epochs
    if taught and all(max(group) == -np.inf for group in truth):
        raise DataError(
            f"{recipe.propose.facts} holds no vqa_gt_prob, so no pointer to imitate is known: set"
            " supervised.epochs=0, or start from a checkpoint with phase=rce"
        )
    return Proposals(
        [[*map(world.in_order, adopted.pointers(place))] for place in every],
        [
            [reward(each) for each in adopted.facts(place, world.score, needs_truth=needs)]
            for place in every
        ],
        truth,
        [[each.method for each in adopted.members[place]] for place in every],
    )


def through_view(bought: Proposals, view: View, names: Sequence[str], seed: int) -> Proposals:
    """What a view leaves of it; as it is where none is set."""
    if not view.is_set:
        return bought
    left = see(view, bought.rewards, names, seed)
    if not left.groups:
        raise DataError(f"the view leaves none of {len(names)} groups: {view}")
    counts = left.counts | ({"added": float(bought.added)} if view.more else {})

    def some(values: Sequence[list[Value]]) -> list[list[Value]]:
        return [
            [group[at] for at in places] for group, places in zip(values, left.members, strict=True)
        ]

    return replace(
        bought,
        pointers=some(bought.pointers),
        rewards=some(bought.rewards),
        truth_logp=some(bought.truth_logp),
        kept=tuple(left.groups),
        counts=counts,
    )


def best_pointers(queries: Queries, bought: Proposals, places: Sequence[int]) -> Pointers:
    """The best proposal of each query, without the queries whose answers all broke."""
    found = [(place, best) for place in places if (best := bought.best(place)) is not None]
    if not found:
        raise DataError(f"none of {len(places)} queries has an answered pointer: {BROKEN}")
    return Pointers.of(queries.take([place for place, _ in found]), [[best] for _, best in found])


def proposal_groups(queries: Queries, bought: Proposals, places: Sequence[int]) -> Groups:
    """The proposals of some of the queries as groups."""
    return make_groups(
        queries.take(places),
        [
            [
                (pointer, reward, None)
                for pointer, reward in zip(bought.pointers[p], bought.rewards[p], strict=True)
            ]
            for p in places
        ],
    )


# --- in the format of RL data, for whoever trains elsewhere


def rl_groups(
    world: SelectorWorld, split: str, places: Sequence[int], bought: Proposals
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
            candidate(world, item, pool, world.in_order(pointer), (method, answer))
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
