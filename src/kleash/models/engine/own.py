"""Our own decoder: every conversation that waits for a token is in the next forward pass.

There is no lock-step: a conversation joins when its user has answered and leaves when its turn
ends. Keys and values stay from turn to turn. The weights are the policy's own, never a copy.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from kleash.errors import GuardError
from kleash.models.engine import Said, Talk
from kleash.models.engine.draws import draw, of_turn, stream
from kleash.models.engine.forward import forward_of
from kleash.models.engine.kv_cache import Feed, KvCache


@dataclass(eq=False)
class _Row:
    """What the engine keeps of one talk."""

    talk: Talk
    slot: int | None = None
    weights: tuple[int, int] | None = None  # those that its keys and values were computed with
    length: int = 0  # ids that have keys and values
    owed: list[int] = field(default_factory=list)  # ids that the model has not seen yet
    said: list[int] = field(default_factory=list)
    logp: list[float] = field(default_factory=list)
    first: int | None = None  # the noise of its first turn
    stream: int | None = None  # and of the turn under way
    answer: asyncio.Future[Said] | None = None  # of the turn under way


class OwnEngine:
    """Conversations of one policy in one event loop; those above `slots` at a time wait for one.

    A talk keeps its slot until it is forgotten.
    """

    name = "own"

    def __init__(self, model: nn.Module, stops: Collection[int], *, slots: int = 512) -> None:
        self.model = model
        self.stops = frozenset(stops)
        self.most_slots = slots
        self.ticks = 0
        self._forward = forward_of(model)
        self._cache = KvCache()
        self._rows: dict[Talk, _Row] = {}
        self._by_slot: list[_Row | None] = []  # none where one has left
        self._queue: deque[_Row] = deque()  # those whose first words wait for a slot
        self._loop: asyncio.AbstractEventLoop | None = None
        self._driver: asyncio.Task[None] | None = None
        self._speaking = 0  # turns under way
        self._weights = (0, 0)  # updates that were told, and the checksum when last looked at

    def talk(self, key: tuple[object, ...] | None, **options: Any) -> Talk:
        """A conversation that has not begun."""
        made = Talk(key, **options)
        self._rows[made] = self._row(made)
        return made

    def _row(self, talk: Talk) -> _Row:
        return _Row(talk, first=stream(talk))

    async def say(self, talk: Talk, heard: Sequence[int]) -> Said:
        """Hear these ids, then sample a turn. Refused once the weights have changed."""
        row = self._rows.get(talk)
        if row is None:
            raise RuntimeError("this talk is forgotten, or another engine's")
        if row.answer is not None:
            raise RuntimeError("a talk says one turn at a time, and a turn that broke off ends it")
        if not row.owed and not heard:
            raise ValueError("a talk cannot begin with nothing heard")
        if not self._speaking:  # nobody is in the middle of a turn: a time for updates
            self._look_at_weights()
        if row.weights not in (None, self._weights):
            raise RuntimeError(
                "the weights have changed since this talk began, and what it remembers is theirs:"
                " forget it and begin another one"
            )
        row.weights = self._weights
        row.owed += heard
        row.said, row.logp, row.stream = [], [], of_turn(row.first, talk.turns)
        row.answer = asyncio.get_running_loop().create_future()
        if row.slot is None:
            self._queue.append(row)
        self._drive()
        self._speaking += 1
        try:
            said = await row.answer
        finally:
            self._speaking -= 1
        row.answer = None
        talk.turns += 1
        return said

    def forget(self, talk: Talk) -> None:
        """Free the talk's slot."""
        row = self._rows.pop(talk, None)
        if row is None:
            return
        if row.slot is None:
            if row in self._queue:
                self._queue.remove(row)
            return
        self._leave(row)
        if self._queue:
            self._drive()

    def _leave(self, row: Any) -> None:
        """Free a row's slot."""
        self._by_slot[row.slot] = None

    def refresh(self, policy: object) -> None:
        """The weights were updated. They are the policy's own, so only old talks are concerned."""
        self._weights = (self._weights[0] + 1, self._weights[1])
        self._forward.reread()

    def release(self) -> None:
        """Keep the slots: they are few, and on a CPU making them anew costs more."""

    def _look_at_weights(self) -> None:
        """Notice an update that nobody told of."""
        found = checksum(self.model)
        if found != self._weights[1]:
            self._weights = (self._weights[0], found)
            self._forward.reread()

    def _drive(self) -> None:
        """See to it that ticks are made in the running loop as long as somebody waits."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._driver = loop, None
        if self._driver is None or self._driver.done():
            self._driver = loop.create_task(self._ticks())
            self._driver.add_done_callback(self._pass_on)

    async def _ticks(self) -> None:
        while True:
            await asyncio.sleep(0)  # all who can speak now do so before the next pass
            rows = self._waiting()
            if not rows:
                return
            await self._tick(rows)

    def _pass_on(self, driver: asyncio.Task[None]) -> None:
        """What stopped the ticks is raised to all who wait for one."""
        if driver.cancelled() or (error := driver.exception()) is None:
            return
        for row in self._rows.values():
            if row.answer is not None and not row.answer.done():
                row.answer.set_exception(error)

    def _waiting(self) -> list[_Row]:
        """Those who wait for a token, in the order of their slots."""
        self._close_up()
        while self._queue and len(self._by_slot) < self.most_slots:
            row = self._queue.popleft()
            row.slot = len(self._by_slot)
            self._by_slot.append(row)
        return [row for row in self._by_slot if row and row.answer and not row.answer.done()]

    def _close_up(self) -> None:
        """Let the last ones take the slots that were left, so that all sit side by side."""
        free = [slot for slot, row in enumerate(self._by_slot) if row is None]
        origins, goals, longest = [], [], 0
        for slot in free:
            while self._by_slot and self._by_slot[-1] is None:
                self._by_slot.pop()
            if slot >= len(self._by_slot):
                break
            row = self._by_slot.pop()
            assert row is not None and row.slot is not None
            origins.append(row.slot)
            goals.append(slot)
            longest = max(longest, row.length)
            row.slot, self._by_slot[slot] = slot, row
        if longest:
            self._cache.copy(origins, goals, longest)

    async def _tick(self, rows: list[_Row]) -> None:
        """One forward pass, and one id for each of the rows."""
        self.ticks += 1
        training = self.model.training
        if training:
            self.model.eval()
        with torch.no_grad():
            logits_NV = self._logits(rows)
        if training:
            self.model.train()
        ids, logp = draw(
            logits_NV,
            [row.talk for row in rows],
            [row.stream for row in rows],
            [len(row.said) for row in rows],
        )
        if not all(map(math.isfinite, logp)):
            raise GuardError("a log-probability is not a number: the policy is broken")
        for row, choice, likely in zip(rows, ids, logp, strict=True):
            row.owed = [choice]
            row.said.append(choice)
            row.logp.append(likely)
            if choice in self.stops or len(row.said) == row.talk.most:
                assert row.answer is not None
                stopped = choice in self.stops
                row.answer.set_result(Said(tuple(row.said), tuple(row.logp), stopped))

    def _logits(self, rows: list[_Row]) -> Tensor:
        """What comes next in every row. Those who begin alike, as a group does, are read once."""
        read: list[_Row] = []
        place: list[int] = []
        begun: dict[tuple[int, ...], int] = {}
        for row in rows:
            alike = len(read) if row.length else begun.setdefault(tuple(row.owed), len(read))
            place.append(alike)
            if alike == len(read):
                read.append(row)
        feed = Feed(
            [row.slot for row in read if row.slot is not None],
            [row.owed for row in read],
            [row.length for row in read],
        )
        self._cache.make_room(len(self._by_slot), feed.reach)
        logits_NV = self._forward(feed, self._cache)
        for row in rows:
            row.length += len(row.owed)
        if len(read) < len(rows):
            pairs = [(read[at], row) for at, row in zip(place, rows, strict=True)]
            moved = [(a.slot, b.slot, a.length) for a, b in pairs if a is not b]
            origins, goals, lengths = zip(*moved, strict=True)
            self._cache.copy(origins, goals, max(lengths))
            logits_NV = logits_NV[place]
        return logits_NV


def checksum(model: nn.Module) -> int:
    """The sum of all parameters' bits. Torch's own counters miss what a fused optimiser does."""
    kinds = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    sums = [p.detach().view(kinds[p.element_size()]).sum() for p in model.parameters()]
    return int(torch.stack(sums).sum())
