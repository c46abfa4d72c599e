"""A causal language model as a policy: every token it said is a choice, judged again with gradient.

Only its own tokens carry anything; what was said to it is context. Sampling is in `engine`.

Shapes: N choices (tokens that the policy said), B episodes, L places, D width.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from kleash.algo.policy import Judged
from kleash.errors import ConfigError, DataError
from kleash.models.language.head import Head, judge_hidden
from kleash.models.language.llama import hidden_rows, of_this_shape
from kleash.models.language.packed import Packing, pack_of, packable, plan
from kleash.models.language.packed import hidden_rows as packed_rows
from kleash.models.language.streamed import Streamed, pinned
from kleash.types import Brief, Turn

ROOM = {"cpu": 2048}
"""Places of a padded block, by kind of device: one that fits a core's cache is judged fastest."""
MORE_ROOM = 1 << 15


@dataclass(frozen=True, eq=False)
class Batch:
    """Conversations end to end, and where in them the policy spoke.

    A conversation is kept as far as its last choice needs it: that choice itself is not read.
    """

    ids: Tensor
    lengths: tuple[int, ...]
    """How many ids each episode has."""
    counts: tuple[int, ...]
    """How many choices each episode has."""
    place: Tensor
    """For each choice, where in its episode the id before it stands."""
    chosen: Tensor
    episode: Tensor
    turn: Tensor
    """For each choice, the how-manieth turn of its episode it was made in."""
    room: int = 0
    """Places of the one pack that it is judged in; 0 where it was not made for one."""

    def take(self, episodes: Sequence[int], room: int) -> tuple[Batch, Tensor]:
        """Some episodes in order, to be judged in one pack; which choices they are."""
        ids, spans = self.ids.split(self.lengths), self.spans
        index = torch.cat([torch.arange(*spans[at]) for at in episodes]).to(self.ids.device)
        counts = tuple(self.counts[at] for at in episodes)
        number = torch.arange(len(counts)).repeat_interleave(torch.tensor(counts))
        part = Batch(
            torch.cat([ids[at] for at in episodes]),
            tuple(self.lengths[at] for at in episodes),
            counts,
            self.place[index],
            self.chosen[index],
            number.to(index.device),
            self.turn[index],
            room,
        )
        return part, index

    @cached_property
    def spans(self) -> list[tuple[int, int]]:
        """For each episode, where its choices begin and end."""
        return list(itertools.pairwise([0, *itertools.accumulate(self.counts)]))

    @cached_property
    def rows(self) -> Tensor:
        """For each choice, where the id before it stands when episodes lie end to end."""
        starts = torch.tensor([0, *itertools.accumulate(self.lengths)][:-1])
        return self.place + starts.to(self.place.device)[self.episode]

    def __len__(self) -> int:
        return len(self.chosen)

    @cached_property
    def blocks(self) -> tuple[list[tuple[Tensor, Tensor]], Tensor]:
        """Episodes of like length side by side: ids [B,L] and the rows before choices, flat.

        Then, for each choice in order, where it lies among the rows of all blocks.
        """
        room = ROOM.get(self.ids.device.type, MORE_ROOM)
        order = sorted(range(len(self.lengths)), key=lambda index: -self.lengths[index])
        blocks: list[list[int]] = []
        for index in order:
            if not self.lengths[index]:
                continue
            longest = self.lengths[blocks[-1][0]] if blocks else 0
            if blocks and (len(blocks[-1]) + 1) * longest <= room:
                blocks[-1].append(index)
            else:
                blocks.append([index])
        ids, place = self.ids.split(self.lengths), self.place.split(self.counts)
        where = torch.arange(len(self), device=self.ids.device).split(self.counts)
        made = []
        for block in blocks:
            rows = nn.utils.rnn.pad_sequence([ids[index] for index in block], batch_first=True)
            at = [place[index] + row * rows.shape[1] for row, index in enumerate(block)]
            made.append((rows, torch.cat(at)))
        laid = torch.cat([where[index] for block in blocks for index in block] or [self.place])
        return made, laid.argsort()


class LanguagePolicy(Brief, nn.Module):
    """A causal language model of transformers, judged at the tokens it said.

    It never drops out: policy and reference are judged in the same mode. What is kept of it
    (`state_dict`) has every tensor once and, where there is an adapter, the adapter alone.
    """

    def __init__(
        self, model: Any, *, temperature: float = 1.0, packing: Packing | None = None
    ) -> None:
        super().__init__()
        self.model = model
        self.temperature = temperature
        self.packing = packing
        if packing is not None:
            packable(model)
        self.train(False)
        self._check_head()

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.parameters()).device

    def gather(self, episodes: Sequence[Sequence[Turn]]) -> Batch:
        """The conversations as a batch to judge; an observation is the ids that were heard."""
        ids: list[int] = []
        lengths, counts = [], []
        place: list[int] = []
        turn: list[int] = []
        for number, turns in enumerate(episodes):
            said: list[int] = []
            before = len(place)
            for index, one in enumerate(turns):
                said.extend(one.observation)
                if one.choices and not said:
                    raise DataError(f"episode {number} begins with a choice: nothing was said yet")
                place.extend(range(len(said) - 1, len(said) - 1 + len(one.choices)))
                turn.extend([index] * len(one.choices))
                said.extend(one.choices)
            counts.append(len(place) - before)
            lengths.append(place[-1] + 1 if counts[-1] else 0)
            ids.extend(said[: lengths[-1]])
        chosen = [choice for turns in episodes for one in turns for choice in one.choices]
        long = torch.tensor([*ids, *place, *chosen, *turn], dtype=torch.long, device=self.device)
        sizes = [len(ids), len(place), len(chosen), len(turn)]
        ids_T, place_N, chosen_N, turn_N = long.split(sizes)
        episode = torch.arange(len(counts)).repeat_interleave(torch.tensor(counts)).to(self.device)
        return Batch(ids_T, tuple(lengths), tuple(counts), place_N, chosen_N, episode, turn_N)

    def parts(self, batch: Batch, tokens: int) -> list[tuple[Batch, slice | Tensor]]:
        """The batch in parts of at most that many tokens, cut between episodes, where each lies.

        An episode longer than that is a part of its own. With packing each part is one pack.
        """
        if self.packing is not None:
            how = replace(self.packing, tokens=min(tokens, self.packing.tokens))
            return [batch.take(*pack) for pack in plan(batch.lengths, how)]
        cuts, held = [0], 0
        for index, length in enumerate(batch.lengths):
            if held and held + length > tokens:
                cuts.append(index)
                held = 0
            held += length
        cuts.append(len(batch.lengths))
        id_ends = [0, *itertools.accumulate(batch.lengths)]
        ends = [0, *itertools.accumulate(batch.counts)]
        made: list[tuple[Batch, slice | Tensor]] = []
        for first, last in itertools.pairwise(cuts):
            where = slice(ends[first], ends[last])
            part = Batch(
                batch.ids[id_ends[first] : id_ends[last]],
                batch.lengths[first:last],
                batch.counts[first:last],
                batch.place[where],
                batch.chosen[where],
                batch.episode[where] - first,
                batch.turn[where],
            )
            made.append((part, where))
        return made

    def judge(self, batch: Batch, reference: Any = None) -> Judged:
        """Every choice in order of episodes, turns, tokens.

        The reference is another policy, or what `tie` made of one for this batch.
        """
        theirs = reference
        if reference is not None and not isinstance(reference, Head):
            theirs = self.tie(batch, reference)
        own = self.head(self.hidden(batch))
        compiled = self.packing is not None and self.packing.compile != "off"
        backend = self.packing.backend if self.packing and compiled else ""
        return judge_hidden(
            own, batch.chosen, theirs, temperature=self.temperature, backend=backend
        )

    @torch.no_grad()
    def tie(self, batch: Batch, reference: Any) -> Head:
        """All that a reference that stands has to say of a batch, for several updates on it."""
        theirs: Head = reference.head(reference.hidden(batch))
        return theirs

    def head(self, hidden_ND: Tensor) -> Head:
        """The hidden states with the product that makes logits of them."""
        last = self.model.get_output_embeddings()
        return Head(hidden_ND, last.weight, getattr(last, "bias", None))

    def hidden(self, batch: Batch) -> Tensor:
        """The model's last hidden state [N,D] before each choice."""
        if self.packing is not None and batch.ids.numel():
            return self._packed(batch, self.packing)
        blocks, back = batch.blocks
        found = [self._rows(ids_BL, rows) for ids_BL, rows in blocks]
        return torch.cat(found or [self.head(torch.empty(0)).weight_VD[:0]])[back]

    def _packed(self, batch: Batch, how: Packing) -> Tensor:
        """The same in packs."""
        if batch.room:
            pack = pack_of(batch.ids, batch.lengths, batch.room)
            return packed_rows(self.model, pack, batch.rows, how)
        found, index = zip(*(batch.take(*pack) for pack in plan(batch.lengths, how)), strict=True)
        return torch.cat([self._packed(part, how) for part in found])[torch.cat(index).argsort()]

    def _rows(self, ids_BL: Tensor, rows: Tensor) -> Tensor:
        """The last hidden states of some rows; padding at the end is seen by none of them."""
        llama = of_this_shape(self.model)
        if llama is not None:
            return hidden_rows(llama, ids_BL, rows)
        decoder = causal(self.model).base_model
        hidden: Tensor = decoder(input_ids=ids_BL, use_cache=False).last_hidden_state
        return hidden.flatten(0, 1)[rows]

    @torch.no_grad()
    def _check_head(self) -> None:
        """Refuse a model that does more to its logits than one product: soft-caps, scales."""
        weight_VD = self.head(torch.empty(0)).weight_VD
        ids = torch.arange(4, device=self.device)[None] % len(weight_VD)
        own = self.head(self._rows(ids, ids[0]))
        judged = judge_hidden(own, ids[0])
        model = self.model(input_ids=ids, use_cache=False).logits[0].to(judged.logp.dtype)
        theirs = model.log_softmax(-1).gather(1, ids.T)[:, 0]
        close = 1e-3 if weight_VD.dtype in (torch.float32, torch.float64) else 0.1
        if not torch.allclose(judged.logp, theirs, rtol=close, atol=close):
            raise ConfigError(
                f"{type(causal(self.model)).__name__} is refused: its logits are not the product"
                " of its last hidden state and its head (a soft-cap or a scale, perhaps), so that"
                " log-probabilities and KL would be those of another model"
            )

    def streamed(self, device: torch.device) -> Streamed:
        """This policy as a reference, its weights fetched from the machine's memory in turn."""
        self.packing = self.packing or Packing()
        return Streamed(self, device)

    def pinned(self) -> LanguagePolicy:
        """This policy, moved to where a GPU can fetch it from."""
        pinned(self)
        return self

    # --- modes and what is kept

    def train(self, mode: bool = True) -> LanguagePolicy:  # noqa: FBT001 (torch's own signature)
        """Stay as it is: nothing drops out, whoever asks."""
        return super().train(False)

    @contextlib.contextmanager
    def adapter_off(self) -> Iterator[None]:
        """The model that the adapter was put on, as long as this lasts."""
        if not self.adapted:
            raise ConfigError("this policy has no adapter that could be off: train it with LoRA")
        with self.model.disable_adapter():
            yield

    @property
    def adapted(self) -> bool:
        """Whether an adapter is what trains."""
        return hasattr(self.model, "disable_adapter")

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:  # type: ignore[override]
        """Every tensor under one name; with an adapter, those of the adapter alone."""
        once = {name for name, _ in [*self.named_parameters(), *self.named_buffers()]}
        whole = super().state_dict(*args, **kwargs)
        return {
            name: tensor
            for name, tensor in whole.items()
            if name in once and (not self.adapted or ".lora_" in name)
        }

    def load_state_dict(
        self,
        state_dict: Mapping[str, Any],
        strict: bool = True,  # noqa: FBT001 (torch's own signature)
        assign: bool = False,  # noqa: FBT001
    ) -> Any:
        """Load what `state_dict` gave."""
        own = self.state_dict()
        if strict and own.keys() != state_dict.keys():
            missing, more = (
                sorted(own.keys() - state_dict.keys()),
                sorted(state_dict.keys() - own.keys()),
            )
            raise RuntimeError(f"the tensors do not fit: missing {missing}, unknown {more}")
        return super().load_state_dict(state_dict, strict=False, assign=assign)


def causal(model: Any) -> Any:
    """The model of transformers itself, under an adapter perhaps."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model
