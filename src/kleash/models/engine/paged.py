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
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from kleash.errors import ConfigError, GuardError
from kleash.models.engine import Said, Talk
from kleash.models.engine.decoder import Decoder, as_bits, put_side_by_side
from kleash.models.engine.draws import stream
from kleash.models.engine.operations import Tiling
from kleash.models.engine.own import OwnEngine, _Row
from kleash.models.engine.pages import PAGE, Pages, Size, unclaimed
from kleash.models.language.llama import of_this_shape

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
    when the first talk speaks. `steps` is how many ids a talk may say before users are looked at;
    on a GPU as many more are under way by then.
    """

    name = "own"

    def __init__(
        self,
        model: nn.Module,
        stops: Collection[int],
        *,
        slots: int = 512,
        places: int | None = None,
        steps: int = 2,
    ) -> None:
        super().__init__(model, stops, slots=slots)
        self.inner: Any = of_this_shape(model)
        if self.inner is None:
            raise ConfigError(f"{type(model).__name__} is not of a shape that this engine knows")
        self.places, self.steps = places, steps
        self.runs_ahead = next(model.parameters()).device.type == "cuda"
        self._made: Decoder | None = None
        self._config: Tiling | None = None  # how attention was cut up fastest
        self._free = list(range(slots - 1, -1, -1))
        self._by_slot = [None] * slots
        self._begun: dict[tuple[int, ...], _Paged] = {}
        if self.runs_ahead:
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
        for row in self._by_slot:
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
            if self._made.on_cuda and self._config is None:
                self._made.tune()
                self._config = self._made.config
            self._made.config = self._config or self._made.config
        return self._made

    def _size(self) -> Size:
        config, weight = self.inner.config, self.inner.model.embed_tokens.weight
        heads, width = config.num_key_value_heads, self.inner.model.layers[0].self_attn.head_dim
        layers, context = config.num_hidden_layers, config.max_position_embeddings
        size = Size(layers, heads, width, 0, self.most_slots, context, weight.dtype, weight.device)
        places = self.places
        if places is None and weight.device.type == "cuda":
            places = int(SHARE * unclaimed(weight.device)) // size.bytes_of_token
        places = min(places or ON_CPU, self.most_slots * (context + PAGE))
        return replace(size, places=places)

    # --- ticks

    def _waiting(self) -> list[_Row]:
        """Those who wait for a token, in the order of their slots."""
        while self._queue and self._free:
            row = self._queue.popleft()
            row.slot = self._free.pop()
            self._by_slot[row.slot] = row
        return [row for row in self._by_slot if row and row.answer and not row.answer.done()]

    async def _tick(self, rows: Sequence[_Row]) -> None:
        """Some steps of the rows that there is room for; who is heard meanwhile joins later.

        Where nobody else waits, the device goes on before what it said is heard: what comes after
        the end of a turn is not listened to.
        """
        training = self.model.training
        if training:
            self.model.eval()
        steps = min(self.steps, max(row.talk.most - len(row.said) for row in rows))
        ready = self._with_pages(rows, steps)
        answers = [row.answer for row in ready]
        fed_FN, blocks_4B = self._read_and_fed(ready)
        size = self.decoder.start(fed_FN, steps, len(ready), blocks_4B)
        flight: _Flight | None = _Flight(self.decoder, steps, size)
        if training:
            self.model.train()
        while flight is not None:
            ahead = self._ahead(ready, answers, len(flight.said_TN))
            await flight.landed()
            self.ticks += len(flight.said_TN)
            for row, answer, ids_T, logp_T in zip(
                ready, answers, flight.said_TN.T.tolist(), flight.logp_TN.T.tolist(), strict=False
            ):
                if row.answer is answer and answer is not None and not answer.done():
                    self._hear(row, ids_T, logp_T)
            flight = ahead
            await asyncio.sleep(0)  # users who answer at once do so before more is begun

    def _ahead(
        self, ready: Sequence[_Paged], answers: Sequence[object], under_way: int
    ) -> _Flight | None:
        """Steps more of the same rows, if all who wait are among them and have pages for it."""
        pairs = zip(ready, answers, strict=True)
        going = [
            r for r, answer in pairs if r.answer is answer and r.answer and not r.answer.done()
        ]
        if not self.runs_ahead or not going or len(self._waiting()) > len(going):
            return None
        decoder, pages = self.decoder, self.decoder.pages
        steps = min(self.steps, max(row.talk.most - len(row.said) for row in going) - under_way)
        if steps < 1 or decoder.size_of(len(going)) < decoder.size_of(len(ready)):
            return None
        needs = []
        for row in going:
            says = min(under_way + steps, row.talk.most - len(row.said))
            needs.append((row.slot or 0, row.length + len(row.owed) + says - 1))
        if max(places for _, places in needs) > pages.size.context:
            return None
        if sum(pages.missing(*each) for each in needs) > pages.free:
            return None
        for each in needs:
            pages.take(*each)
        return _Flight(decoder, steps, decoder.go_on(steps, len(ready)))

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

    def _read_and_fed(
        self, rows: Sequence[_Paged]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
        """Read what is long, and lay out the rest: the last token of each row, then all others.

        And, where there are others, which tokens follow one another.

        Openings that are alike, as those of a group, are read once.
        """
        decoder, room = self.decoder, self.decoder.sizes[-1] - len(rows)
        pieces, copies = [], []
        for row in rows:
            assert row.slot is not None
            owed = len(row.owed) - 1
            if not row.length and owed:
                shared = self._shared(row)
                if shared is not None:
                    copies += shared
                    continue
            if row.length and owed <= room:
                room -= owed
            elif owed:
                pieces.append((row.slot, row.owed[:-1], row.length))
                self._have_read(row, owed)
        decoder.read(pieces)
        decoder.pages.copy(copies)
        columns = [self._columns(row) for row in rows]
        before = [column for each in columns for column in each[:-1]]
        fed_FN = np.array([each[-1] for each in columns] + before, dtype=np.int64).T
        return fed_FN, self._blocks(rows) if before else None

    def _blocks(self, rows: Sequence[_Paged]) -> NDArray[np.int64]:
        """Slot, first place, first token and count of every block of tokens that are fed."""
        longest, at = self.decoder.longest, len(rows)
        blocks = []
        for index, row in enumerate(rows):
            slot, before = row.slot or 0, len(row.owed) - 1
            blocks.append((slot, row.length + before, index, 1))
            for begin in range(0, before, longest):
                count = min(longest, before - begin)
                blocks.append((slot, row.length + begin, at + begin, count))
            at += before
        return np.array(blocks, dtype=np.int64).T

    def _columns(self, row: _Paged) -> list[list[int]]:
        """What a step is fed of a row: its last token speaks, those before it are only read."""
        talk, before = row.talk, len(row.owed) - 1
        keyed = int(row.stream is not None)
        temperature, top_p = as_bits(talk.temperature), as_bits(talk.top_p)
        return [
            [
                token,
                row.slot or 0,
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
        if other is None or other.slot is None or other.weights != row.weights:
            return None
        assert row.slot is not None
        pages, count = self.decoder.pages, len(row.owed) - 1
        held = len(pages.held[row.slot])
        pages.leave(row.slot)
        copies = pages.share(other.slot, row.slot, count)
        pages.take(row.slot, held * PAGE)  # no more than it gave back
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
            if row.slot is None:  # it was put aside for one before it
                continue
            assert isinstance(row, _Paged)
            says = min(steps, row.talk.most - len(row.said))
            needs = row.length + len(row.owed) + says - 1
            if needs > pages.size.context:
                raise ConfigError(
                    f"a conversation of {needs} tokens: the model has room for"
                    f" {pages.size.context}; lower the turns or the tokens of a turn"
                )
            while pages.missing(row.slot, needs) > pages.free and self._make_room(rows[at + 1 :]):
                pass
            if pages.take(row.slot, needs):
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
        holders = [row for row in self._by_slot if row is not None and held[row.slot or 0]]
        idle = [row for row in holders if row.answer is None or row.answer.done()]
        waiting = [row for row in later if row in holders]
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
            self._made.pages.leave(row.slot)
        known = self._begun.get(row.opening) is row
        if known:
            del self._begun[row.opening]
        super()._leave(row)
        self._free.append(row.slot)
        row.slot = None


class _Flight:
    """What some steps say, on its way to the host while the device does other things."""

    def __init__(self, decoder: Decoder, steps: int, size: int) -> None:
        found = decoder.said_TN[:steps, :size], decoder.logp_TN[:steps, :size]
        self.event = None
        if not decoder.on_cuda:
            self.said_TN, self.logp_TN = (each.clone() for each in found)
            return
        self.said_TN, self.logp_TN = (
            torch.empty(each.shape, dtype=each.dtype, pin_memory=True) for each in found
        )
        for host, there in zip((self.said_TN, self.logp_TN), found, strict=True):
            host.copy_(there, non_blocking=True)
        self.event = torch.cuda.Event()
        self.event.record()

    async def landed(self) -> None:
        """Once it is here; others go on meanwhile."""
        while self.event is not None and not self.event.query():
            await asyncio.sleep(0)
