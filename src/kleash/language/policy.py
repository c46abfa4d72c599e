"""A causal language model as a policy: every token it said is a choice, judged again with gradient.

Only its own tokens carry anything; what was said to it is context. Sampling is in `engine`.

Shapes: N choices (tokens that the policy said), B episodes, L their length, D width.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from kleash.errors import DataError
from kleash.language.head import Head, judge_hidden
from kleash.policy import Judged
from kleash.types import Turn


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

    def __len__(self) -> int:
        return len(self.chosen)


class LanguagePolicy(nn.Module):
    """A causal language model of transformers, judged at the tokens it said."""

    def __init__(self, model: Any, *, temperature: float = 1.0) -> None:
        super().__init__()
        self.model = model
        self.temperature = temperature

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
        chosen = [c for turns in episodes for one in turns for c in one.choices]
        episode = torch.arange(len(counts)).repeat_interleave(torch.tensor(counts))
        made = Batch(
            torch.tensor(ids, dtype=torch.long),
            tuple(lengths),
            tuple(counts),
            torch.tensor(place, dtype=torch.long),
            torch.tensor(chosen, dtype=torch.long),
            episode,
            torch.tensor(turn, dtype=torch.long),
        )
        return on(made, self.device)

    def parts(self, batch: Batch, tokens: int) -> list[tuple[Batch, slice]]:
        """The batch in parts of at most that many tokens, cut between episodes, where each lies.

        An episode longer than that is a part of its own.
        """
        cuts = [0]
        held = 0
        for index, length in enumerate(batch.lengths):
            if held and held + length > tokens:
                cuts.append(index)
                held = 0
            held += length
        cuts.append(len(batch.lengths))
        id_ends = [0, *itertools.accumulate(batch.lengths)]
        ends = [0, *itertools.accumulate(batch.counts)]
        made = []
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

    def hidden(self, batch: Batch) -> Tensor:
        """The model's last hidden state [N,D] before each choice."""
        rows = nn.utils.rnn.pad_sequence(list(batch.ids.split(batch.lengths)), batch_first=True)
        # Padding stands at the end, where no one before it can see it: no mask is needed.
        out = self.model.model(input_ids=rows, use_cache=False)
        hidden: Tensor = out.last_hidden_state[batch.episode, batch.place]
        return hidden

    def head(self, hidden_ND: Tensor) -> Head:
        """The hidden states with the product that makes logits of them."""
        last = self.model.get_output_embeddings()
        return Head(hidden_ND, last.weight, getattr(last, "bias", None))

    def judge(self, batch: Batch, reference: Any = None) -> Judged:
        """Every choice in order of episodes, turns, tokens; `reference` is another policy."""
        theirs = None
        if reference is not None:
            with torch.no_grad():
                theirs = reference.head(reference.hidden(batch))
        own = self.head(self.hidden(batch))
        return judge_hidden(own, batch.chosen, theirs, temperature=self.temperature)


def on(batch: Batch, device: torch.device) -> Batch:
    """The batch on a device."""
    return Batch(
        batch.ids.to(device),
        batch.lengths,
        batch.counts,
        batch.place.to(device),
        batch.chosen.to(device),
        batch.episode.to(device),
        batch.turn.to(device),
    )
