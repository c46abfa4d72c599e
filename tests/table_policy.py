"""The contract of a policy at its smallest: a row of logits for every prefix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from kleash.algo.policy import Judged, Noise, judge_logits
from kleash.types import Turn


class TablePolicy(nn.Module):
    """A row of logits for every prefix of `length` choices among `vocabulary`.

    Rows lie in order of length, then of value. What it observes does not matter to it.
    """

    def __init__(self, vocabulary: int, length: int, logits: Tensor | None = None) -> None:
        super().__init__()
        self.vocabulary = vocabulary
        self.length = length
        rows = sum(vocabulary**t for t in range(length))
        self.logits = nn.Parameter(
            torch.zeros(rows, vocabulary) if logits is None else logits.clone()
        )

    def row(self, prefix: Sequence[int]) -> int:
        """Which row the prefix has."""
        index = 0
        for choice in prefix:
            index = index * self.vocabulary + choice + 1
        return index

    @torch.no_grad()
    def act(self, observations: Sequence[Any], noise: Noise) -> list[Turn]:
        """One turn of `length` choices for each observation."""
        logp_NA = self.logits.log_softmax(-1)
        turns = []
        for index, observation in enumerate(observations):
            choices: list[int] = []
            logp: list[float] = []
            for step in range(self.length):
                here = logp_NA[self.row(choices)]
                drawn = noise(index, step, self.vocabulary)
                choice = int((here.double().cpu() + torch.from_numpy(drawn)).argmax())
                choices.append(choice)
                logp.append(here[choice].item())
            turns.append(Turn(observation, tuple(choices), tuple(logp)))
        return turns

    def gather(self, turns: Sequence[Turn]) -> tuple[Tensor, Tensor]:
        """The row and the choice made there, for every choice."""
        rows = [self.row(turn.choices[:t]) for turn in turns for t in range(len(turn.choices))]
        chosen = [choice for turn in turns for choice in turn.choices]
        return torch.tensor(rows), torch.tensor(chosen)

    def judge(self, batch: tuple[Tensor, Tensor], reference: TablePolicy | None = None) -> Judged:
        """Judge the choices from this table, and the reference's."""
        rows, chosen = batch
        theirs = None if reference is None else reference.logits[rows]
        return judge_logits(self.logits[rows], chosen, theirs)
