"""Our own decoder for GPUs: talks over pages, several steps at a time, the host at work meanwhile.

What is asked of it and what it says are those of `own`. It differs in how: keys and values lie in
pages that never move, steps are graphs that go on without the host, and while the device computes,
users are heard and answered. When pages run out, talks whose users think are put aside, and read
again when they go on.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from kleash.engine import Said, Talk
from kleash.engine.decoder import Decoder, as_bits
from kleash.engine.draws import stream
from kleash.engine.own import OwnEngine, _Row
from kleash.engine.pages import PAGE, Pages, Size, unclaimed
from kleash.engine.weights import put_side_by_side
from kleash.errors import ConfigError, GuardError
from kleash.language.lean import of_this_shape

SHARE = 0.5  # of the free memory of a GPU that pages may take
ON_CPU = 1 << 14  # places where there is no GPU: for tests


@dataclass(eq=False)
class _Paged(_Row):
    """What the engine keeps of one talk."""

    kept: list[int] = field(default_factory=list)  # the ids that have keys and values
    opening: tuple[int, ...] = ()  # what it heard first


class PagedEngine(OwnEngine):
    """Conversations of one policy in one event loop, of a model of Llama's shape.

    `places` is how many tokens the pages hold; without it, half of the GPU's free memory is taken
    when the first talk speaks. `steps` is how many ids a talk may say before users are looked at.
    """

    name = "own"

    def __init__(
        self,
        model: nn.Module,
        stops: Collection[int],
        *,
        seats: int = 512,
        places: int | None = None,
        steps: int = 4,
    ) -> None:
        super().__init__(model, stops, seats=seats)
        self.inner: Any = of_this_shape(model)
        if self.inner is None:
            raise ConfigError(f"{type(model).__name__} is not of a shape that this engine knows")
        self.places, self.steps = places, steps
        self._made: Decoder | None = None
        self._free = list(range(seats - 1, -1, -1))
        self._seated = [None] * seats
        self._begun: dict[tuple[int, ...], _Paged] = {}
        if next(model.parameters()).device.type == "cuda":
            put_side_by_side(self.inner)

    # --- talks

    def _row(self, talk: Talk) -> _Paged:
        return _Paged(talk, first=stream(talk))

    def refresh(self, policy: object) -> None:
        """The weights were updated. They are the policy's own, so only old talks are concerned."""
        super().refresh(policy)
        if self._made is not None:
            self._made.reread()

    def _look_at_weights(self) -> None:
        super()._look_at_weights()
        if self._made is not None:
            self._made.reread()

    def release(self) -> None:
        """Give the memory of the pages back until somebody speaks again; nobody may be speaking."""
        if self._speaking:
            raise RuntimeError("somebody is in the middle of a turn")
        for row in self._seated:
            if row is not None:
                self._put_aside(row)
        self._made = None
        self._begun.clear()

    # --- the device

    @property
    def decoder(self) -> Decoder:
        """Made when it is needed first, with the memory that is free then."""
        if self._made is None:
            pages = Pages(self._size())
            self._made = Decoder(self.inner, pages, self.stops, most_steps=self.steps)
            if self._made.on_cuda:
                self._made.tune()
        return self._made

    def _size(self) -> Size:
        config, weight = self.inner.config, self.inner.model.embed_tokens.weight
        heads, width = config.num_key_value_heads, self.inner.model.layers[0].self_attn.head_dim
        layers, context = config.num_hidden_layers, config.max_position_embeddings
        size = Size(layers, heads, width, 0, self.most_seats, context, weight.dtype, weight.device)
        places = self.places
        if places is None and weight.device.type == "cuda":
            places = int(SHARE * unclaimed(weight.device)) // size.bytes_of_token
        places = min(places or ON_CPU, self.most_seats * (context + PAGE))
        return Size(
            layers, heads, width, places, self.most_seats, context, weight.dtype, weight.device
        )

    # --- ticks

    async def _ticks(self) -> None:
        while True:
            await asyncio.sleep(0)  # all who can speak now do so before the next pass
            rows = self._waiting()
            if not rows:
                return
            await self._tick_of(rows)

    def _waiting(self) -> list[_Row]:
        """Those who wait for a token, in the order of their seats."""
        while self._queue and self._free:
            row = self._queue.popleft()
            row.seat = self._free.pop()
            self._seated[row.seat] = row
        return [row for row in self._seated if row and row.answer and not row.answer.done()]

    async def _tick_of(self, rows: Sequence[_Row]) -> None:
        """Some steps of the rows that there is room for; who is heard meanwhile joins the next."""
        training = self.model.training
        if training:
            self.model.eval()
        steps = min(self.steps, max(row.talk.most - len(row.said) for row in rows))
        ready = self._with_pages(rows, steps)
        fed_FN, last = self._read_and_fed(ready)
        decoder = self.decoder
        size = decoder.start(fed_FN, steps)
        if training:
            self.model.train()
        said_TN, logp_TN = decoder.said_TN[:steps, :size], decoder.logp_TN[:steps, :size]
        if decoder.on_cuda:
            said_TN, logp_TN = await _fetched(said_TN), await _fetched(logp_TN)
        self.ticks += steps
        for row, column in zip(ready, last, strict=True):
            self._hear(row, said_TN[:, column].tolist(), logp_TN[:, column].tolist())

    def _hear(self, row: _Paged, ids: Sequence[int], logp: Sequence[float]) -> None:
        """Add what a row said in these steps, up to its end."""
        row.kept += row.owed
        row.length += len(row.owed)
        for place, (choice, likely) in enumerate(zip(ids, logp, strict=True)):
            if not math.isfinite(likely):
                raise GuardError("a log-probability is not a number: the policy is broken")
            if place:
                row.kept.append(row.said[-1])
                row.length += 1
            row.owed = [choice]
            row.said.append(choice)
            row.logp.append(likely)
            if choice in self.stops or len(row.said) == row.talk.most:
                assert row.answer is not None
                if not row.answer.done():
                    said = Said(tuple(row.said), tuple(row.logp), choice in self.stops)
                    row.answer.set_result(said)
                return

    def _read_and_fed(self, rows: Sequence[_Paged]) -> tuple[NDArray[np.int64], list[int]]:
        """Read what is long, and lay out the rest: tokens to feed, and the last one of each row.

        Openings that are alike, as those of a group, are read once.
        """
        decoder, room = self.decoder, self.decoder.sizes[-1] - len(rows)
        pieces, copies = [], []
        for row in rows:
            assert row.seat is not None
            owed = len(row.owed) - 1
            if not row.length and owed:
                shared = self._shared(row)
                if shared is not None:
                    copies += shared
                    continue
            if row.length and owed <= room:
                room -= owed
            elif owed:
                pieces.append((row.seat, row.owed[:-1], row.length))
                self._have_read(row, owed)
        decoder.read(pieces)
        decoder.pages.copy(copies)
        columns: list[list[int]] = []
        last = []
        for row in rows:
            columns += self._columns(row)
            last.append(len(columns) - 1)
        return np.array(columns, dtype=np.int64).T, last

    def _columns(self, row: _Paged) -> list[list[int]]:
        """What a step is fed of a row: its last token speaks, those before it are only read."""
        talk, before = row.talk, len(row.owed) - 1
        keyed = int(row.stream is not None)
        temperature, top_p = as_bits(talk.temperature), as_bits(talk.top_p)
        return [
            [
                token,
                row.seat or 0,
                row.length + place,
                row.stream or 0,
                len(row.said),
                talk.most - len(row.said) if place == before else 0,
                keyed,
                temperature,
                top_p,
            ]
            for place, token in enumerate(row.owed)
        ]

    def _have_read(self, row: _Paged, count: int) -> None:
        if not row.length:
            row.opening = tuple(row.owed)
            self._begun[row.opening] = row
        row.kept += row.owed[:count]
        row.owed = row.owed[count:]
        row.length += count

    def _shared(self, row: _Paged) -> list[tuple[int, int]] | None:
        """Begin with what another talk read that began alike; pages to copy, or none of it."""
        other = self._begun.get(tuple(row.owed))
        if other is None or other.seat is None or other.weights != row.weights:
            return None
        assert row.seat is not None
        pages, count = self.decoder.pages, len(row.owed) - 1
        held = len(pages.held[row.seat])
        pages.leave(row.seat)
        copies = pages.share(other.seat, row.seat, count)
        pages.take(row.seat, held * PAGE)  # no more than it gave back
        row.kept, row.owed, row.length = list(row.owed[:-1]), row.owed[-1:], count
        return copies

    # --- pages

    def _with_pages(self, rows: Sequence[_Row], steps: int) -> list[_Paged]:
        """The rows that there is room for, which they are given; those who are idle make room."""
        pages, most = self.decoder.pages, self.decoder.sizes[-1]
        ready: list[_Paged] = []
        needs = 0
        for at, row in enumerate(rows):
            if len(ready) == most:
                break
            if row.seat is None:  # it was put aside for one before it
                continue
            assert isinstance(row, _Paged)
            says = min(steps, row.talk.most - len(row.said))
            needs = row.length + len(row.owed) + says - 1
            if needs > pages.size.context:
                raise ConfigError(
                    f"a conversation of {needs} tokens: the model has room for"
                    f" {pages.size.context}; lower the turns or the tokens of a turn"
                )
            while pages.missing(row.seat, needs) > pages.free and self._make_room(rows[at + 1 :]):
                pass
            if pages.take(row.seat, needs):
                ready.append(row)
        if not ready:
            raise ConfigError(
                f"a conversation of {needs} tokens does not fit the {pages.size.places} places"
                " that the engine has for keys and values"
            )
        return ready

    def _make_room(self, later: Sequence[_Row]) -> bool:
        """Put a talk aside: one whose user thinks or, if there is none, the last of these."""
        held = self.decoder.pages.held
        seated = [row for row in self._seated if row is not None and held[row.seat or 0]]
        idle = [row for row in seated if row.answer is None or row.answer.done()]
        waiting = [row for row in later if row in seated]
        if not (idle or waiting):
            return False
        self._put_aside((idle or waiting)[-1])
        return True

    def _put_aside(self, row: Any) -> None:
        """Forget a talk's keys and values: it reads its ids again when it goes on."""
        self._leave(row)
        row.owed = [*row.kept, *row.owed]
        row.kept, row.length = [], 0
        if row.answer is not None and not row.answer.done():
            self._queue.appendleft(row)

    def _leave(self, row: Any) -> None:
        if self._made is not None:
            self._made.pages.leave(row.seat)
        known = self._begun.get(row.opening) is row
        if known:
            del self._begun[row.opening]
        super()._leave(row)
        self._free.append(row.seat)
        row.seat = None


async def _fetched(found: Tensor) -> Tensor:
    """A tensor on the host, once it is computed; others go on meanwhile."""
    host = torch.empty(found.shape, dtype=found.dtype, pin_memory=True)
    host.copy_(found, non_blocking=True)
    event = torch.cuda.Event()
    event.record()
    while not event.query():
        await asyncio.sleep(0)
    return host
