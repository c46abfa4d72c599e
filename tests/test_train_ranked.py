"""Episodes shared out over ranks, threads in their place: all have all, once, in order.

Whole runs of several processes are in `test_train_ranks`; what they print and count of users is
only seen here.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from agent_tools import SHORT, Agents
from kleash.errors import GuardError
from kleash.runs.ledger import Ledger, Usage
from kleash.train import ranked
from kleash.train.ranked import SharedWorld
from kleash.train.rollout.agent import AgentWorld, Attempt
from kleash.types import Episode

COUNT = 2

pytestmark = pytest.mark.usefixtures("one_thread")


class Ranks:
    """Threads that each have a number; what one says, all hear."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.here, self.told = threading.local(), [None] * COUNT
        self.met = threading.Barrier(COUNT)
        patch.setattr(ranked, "count", lambda: COUNT)
        patch.setattr(ranked, "rank", lambda: self.here.rank)
        patch.setattr(ranked, "is_first", lambda: self.here.rank == 0)
        patch.setattr(ranked, "all_gather", self.all_gather)

    def all_gather(self, own: Any) -> list[Any]:
        self.told[self.here.rank] = own
        self.met.wait(60)
        every = list(self.told)
        self.met.wait(60)
        return every

    def all_do(self, work: Callable[[int], Any]) -> list[Any]:
        def one(rank: int) -> Any:
            self.here.rank = rank
            return work(rank)

        with ThreadPoolExecutor(COUNT) as threads:
            return list(threads.map(one, range(COUNT)))


@pytest.fixture
def ledgers(tmp_path: Path) -> Any:
    made = [Ledger(tmp_path / f"ledger-{rank}.sqlite") for rank in range(COUNT)]
    yield made
    for each in made:
        each.close()


def test_every_rank_has_every_episode_and_the_first_counts_what_all_asked(
    ledgers: list[Ledger], monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe, real = Agents(SHORT).recipe("supervised.epochs=0"), AgentWorld.play_one

    async def paid(self: AgentWorld, engine: Any, one: Attempt) -> Episode | None:
        self.ledger.count(Usage(asked=3, bought=2))
        return await real(self, engine, one)

    worlds = [AgentWorld(recipe, ledger) for ledger in ledgers]
    asked = [
        Attempt(task, 0, member, (0, task.id, member))
        for task in worlds[0].tasks("train")[:3]
        for member in range(3)
    ]
    alone = worlds[0].play(worlds[0].engine(worlds[0].fresh_policy()), asked)
    monkeypatch.setattr(AgentWorld, "play_one", paid)
    seen: list[list[int]] = [[] for _ in range(COUNT)]

    def play(rank: int) -> list[Episode]:
        world = SharedWorld.of(worlds[rank])
        world.progress = seen[rank].append
        return world.play(world.engine(world.fresh_policy()), asked)

    for found in Ranks(monkeypatch).all_do(play):
        assert [said(each) for each in found] == [said(each) for each in alone]
    assert [ledger.usage() for ledger in ledgers] == [Usage(27, 18), Usage(9, 6)]
    assert [sum(counts) for counts in seen] == [9, 3]  # two groups of three, and one


def said(episode: Episode) -> tuple[str, list[tuple[int, ...]]]:
    return episode.task, [turn.choices for turn in episode.turns]


def test_what_ends_one_rank_s_playing_ends_all(
    ledgers: list[Ledger], monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe, real = Agents(SHORT).recipe("supervised.epochs=0"), AgentWorld.play_one
    worlds = [AgentWorld(recipe, ledger) for ledger in ledgers]

    async def broken(self: AgentWorld, engine: Any, one: Attempt) -> Episode | None:
        if self.ledger is ledgers[1]:
            raise GuardError("rank 1 has seen enough")
        return await real(self, engine, one)

    monkeypatch.setattr(AgentWorld, "play_one", broken)
    asked = [Attempt(task, 0, 0, (0, task.id)) for task in worlds[0].tasks("train")[:2]]

    def play(rank: int) -> str:
        world = SharedWorld.of(worlds[rank])
        with pytest.raises(GuardError) as told:
            world.play(world.engine(world.fresh_policy()), asked)
        return str(told.value)

    assert Ranks(monkeypatch).all_do(play) == ["rank 1 has seen enough"] * COUNT
