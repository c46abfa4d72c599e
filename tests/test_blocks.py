"""A planted set for every block: it changes choices as its name says, and the plain preset loses.

No answerer: a reward is a function of what was shown, and training climbs the expected reward of
all pointers there are, so nothing here is drawn but data and first weights. Plain is v3 without its
attention, which begins as nearest neighbours: its scores know neither what was chosen before nor
what else is in the pool. Each block is put on that alone, and judged on queries it never saw.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from kleash.models.selector import STOP, Observation, Pointers, Queries, Selector, all_pointers
from kleash.seeds import torch_generator
from kleash.tasks.demos.presets import Blocks, preset

WIDTH = 12


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


@dataclass
class World:
    """Queries, and what a pointer earns with each of them."""

    queries: Queries
    earns: list[Callable[[tuple[int, ...]], float]]

    def mean(self, pointers: list[tuple[int, ...]]) -> float:
        """What the pointers earn, on average over the queries."""
        shown = [tuple(place for place in pointer if place != STOP) for pointer in pointers]
        return sum(map(lambda earn, each: earn(each), self.earns, shown)) / len(shown)


def world(draw: Callable[[torch.Generator], tuple[Tensor, Tensor, Callable]], seed: int) -> World:
    """Sixty-four queries of a kind."""
    rng = torch_generator("planted", draw.__name__, seed)
    drawn = [draw(rng) for _ in range(64)]
    seen = [Observation(f"q{i}", query, pool) for i, (query, pool, _) in enumerate(drawn)]
    return World(Queries.stack(seen), [earn for _, _, earn in drawn])


def randn(rng: torch.Generator, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=rng)


def mixed(rng: torch.Generator, pool: list[Tensor]) -> tuple[Tensor, list[int]]:
    """The pool in a random order, and where each candidate went."""
    order = torch.randperm(len(pool), generator=rng).tolist()
    return torch.stack([pool[place] for place in order]), [order.index(i) for i in range(len(pool))]


def one_is_enough(rng):
    """Half of the queries have two good candidates, the others one; any other one shown costs."""
    good = 1 + int(torch.randint(2, (), generator=rng))
    query = randn(rng, WIDTH)
    query[0] = 3.0 * (-1) ** good
    pool, at = mixed(
        rng, [query + 0.3 * randn(rng, WIDTH) for _ in range(good)] + [*randn(rng, 6 - good, WIDTH)]
    )
    helps = {at[i] for i in range(good)}
    return query, pool, lambda shown: sum(1.0 if i in helps else -0.5 for i in shown)


def twins(rng):
    """Two pairs of near copies fit the query; a second copy adds nothing."""
    query = randn(rng, WIDTH)
    kinds = [query + 0.7 * randn(rng, WIDTH) for _ in range(2)]
    pair = [kind + 0.05 * randn(rng, WIDTH) for kind in kinds for _ in range(2)]
    pool, at = mixed(rng, [*pair, *randn(rng, 2, WIDTH)])
    of = {at[i]: i // 2 for i in range(4)}
    return query, pool, lambda shown: len({of[i] for i in shown if i in of}) / 2


def two_needs(rng):
    """Four topics; the query needs two, one more than the other; others are of no use."""
    topics = torch.eye(WIDTH)[:4]
    first, second = torch.randperm(4, generator=rng)[:2].tolist()
    query = 2.0 * topics[first] + 1.0 * topics[second] + 0.2 * randn(rng, WIDTH)
    pool, at = mixed(rng, [1.5 * topics[i // 2] + 0.3 * randn(rng, WIDTH) for i in range(8)])
    of = {at[i]: i // 2 for i in range(8)}
    return query, pool, lambda shown: len({of[i] for i in shown} & {first, second}) / 2


def hidden_directions(rng):
    """What counts is the volume that three span in three dimensions; the others are noise."""
    kinds = F.normalize(randn(rng, 3, 3), dim=-1)
    counted = torch.cat([kinds, kinds[:1] + 0.1 * randn(rng, 1, 3), (kinds[:1] + kinds[1:2]) / 2])
    counted = F.normalize(counted, dim=-1)
    pool, at = mixed(rng, [*torch.cat([2 * counted, randn(rng, 5, WIDTH - 3)], dim=1)])
    where = dict(zip(at, counted, strict=True))
    threes = list(combinations(range(5), 3))
    spanned = torch.stack([torch.stack([where[i] for i in three]) for three in threes])
    volumes = torch.linalg.det(spanned).abs()
    volume = dict(zip(threes, (volumes / volumes.max()).tolist(), strict=True))
    return randn(rng, WIDTH), pool, lambda shown: volume[tuple(sorted(shown))]


def first_then_second(rng):
    """Three of one kind and three of another fit the query; one of each is wanted, in order."""
    query, kinds = randn(rng, WIDTH), 2 * torch.eye(WIDTH)[:2]
    pool, at = mixed(rng, [query + kinds[i // 3] + 0.3 * randn(rng, WIDTH) for i in range(6)])
    of = {at[i]: i // 3 for i in range(6)}
    return query, pool, lambda shown: ((of[shown[0]] == 0) + (of[shown[1]] == 1)) / 2


def odd_one_out(rng):
    """Four are near the query, three of them of one kind; the fourth is wanted."""
    query, kind, other = randn(rng, 3, WIDTH)
    near = [query + 0.8 * kind + 0.2 * randn(rng, WIDTH) for _ in range(3)]
    near.append(query + 0.8 * other + 0.2 * randn(rng, WIDTH))
    pool, at = mixed(rng, [*near, *randn(rng, 8, WIDTH)])
    return query, pool, lambda shown: float(shown[0] == at[3])


@dataclass
class Case:
    """A block, the set where it is needed, and by how much at least it must win there."""

    draw: Callable
    blocks: dict[str, object]
    shots: int
    gain: float


CASES = {
    "stop": Case(one_is_enough, {"stop": "on"}, 2, 0.1),
    "mmr": Case(twins, {"bonus": "mmr"}, 2, 0.2),
    "coverage": Case(two_needs, {"bonus": "coverage", "topics": 8}, 2, 0.08),
    "dpp": Case(hidden_directions, {"bonus": "dpp", "rank": 4}, 3, 0.1),
    "slots": Case(first_then_second, {"decoder": "slots"}, 2, 0.3),
    "two-stage": Case(odd_one_out, {"decoder": "two-stage", "shortlist": 4}, 1, 0.1),
}


def chosen(case: Case, **blocks: object) -> tuple[World, list[tuple[int, ...]]]:
    """What a selector made of these blocks chooses for unseen queries, once it was trained."""
    made = preset("v3", query_layers=0, hidden=WIDTH, shots=case.shots, **blocks)
    selector = Selector(made, WIDTH, torch_generator("planted"))
    batches = [listed(world(case.draw, seed), made) for seed in range(1, 7)]
    adam = torch.optim.Adam(selector.parameters(), lr=0.03)
    for step in range(48):
        pointers, reward = batches[step % len(batches)]
        logp = torch.zeros(len(reward)).index_add(
            0, pointers.episode, selector.judge(pointers).logp
        )
        adam.zero_grad()
        (-(logp.exp() * reward).sum() / len(pointers.queries)).backward()
        adam.step()
    unseen = world(case.draw, 0)
    return unseen, selector.choose(unseen.queries, case.shots)[0].lists()


def listed(some: World, blocks: Blocks) -> tuple[Pointers, Tensor]:
    """Every pointer of every query, and what it earns."""
    size = some.queries.mask_BK.shape[1]
    every = all_pointers(size, blocks.shots, stop=blocks.stop == "on")
    earned = [
        earn(tuple(place for place in pointer if place != STOP))
        for earn in some.earns
        for pointer in every
    ]
    return Pointers.of(some.queries, [every] * len(some.queries)), torch.tensor(earned)


@pytest.mark.parametrize(
    "name",
    [each if each == "dpp" else pytest.param(each, marks=pytest.mark.slow) for each in CASES],
)
def test_a_block_beats_the_plain_preset_where_it_is_needed(name):
    case = CASES[name]
    unseen, plain = chosen(case)
    _, ours = chosen(case, **case.blocks)
    found = f"{unseen.mean(plain):.3f} -> {unseen.mean(ours):.3f}"
    assert unseen.mean(ours) > unseen.mean(plain) + case.gain, found
    if name == "stop":
        needs_two = (unseen.queries.query_BD[:, 0] > 0).tolist()
        stopped = {
            two: [
                STOP in pointer
                for pointer, both in zip(ours, needs_two, strict=True)
                if both is two
            ]
            for two in (False, True)
        }
        few, many = (sum(stopped[two]) / len(stopped[two]) for two in (True, False))
        assert many > few + 0.3, f"it stops where one is enough: {few:.2f}, {many:.2f}"
