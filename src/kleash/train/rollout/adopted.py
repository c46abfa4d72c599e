"""Facts that were bought elsewhere: a file of RL data in the place of proposals.

Only what can be believed is used: a pointer needs an answer of its own, in its own pool. Rewards
are worked out again from the answers. What is left out is counted by reason.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kleash.errors import DataError
from kleash.tasks.data import Dataset
from kleash.tasks.demos.propose import Pointer
from kleash.tasks.demos.reward import Facts, relevance
from kleash.tasks.demos.rl_checks import unsound
from kleash.tasks.demos.rl_data import Candidate, RlGroup, read_rl_data
from kleash.tasks.demos.score import Scorer
from kleash.types import Item

NUMBERS = "demonstrations"
"""In `_meta` of files of ours: numbers are rows of the demonstrations of `data`."""


class AdoptedFacts:
    """The queries of a file with their pools, and the pointers that can be believed."""

    def __init__(self, path: Path, data: Dataset, *, size: int, most: int) -> None:
        self.data = read_rl_data(path)
        known = {item.id: item for item in (*data.demonstrations, *data.queries("train"))}
        self._prove_numbers(data)
        wrong = unsound(self.data)
        self.left: Counter[str] = Counter(wrong.values())
        self.groups: list[RlGroup] = []
        self.items: list[Item] = []
        self.members: list[list[Candidate]] = []
        for group in self.data.groups:
            kept = [
                each for at, each in enumerate(group.candidates) if (group.query, at) not in wrong
            ]
            if group.question_id not in known or not kept:
                reason = "no pointer left" if not kept else "not in the data set"
                self.left[reason] += 1
                continue
            if len(self.groups) < most:
                self.groups.append(group)
                self.items.append(known[group.question_id])
                self.members.append(kept)
        if not self.groups:
            reasons = ", ".join(f"{reason}: {n}" for reason, n in self.left.items())
            raise DataError(f"{path} has no fact that can be believed ({reasons})")
        self._check_pools(size, len(data.demonstrations))

    @property
    def pools(self) -> NDArray[np.int64]:
        """[query, K]: rows of the demonstrations."""
        return np.array([group.pool for group in self.groups], dtype=np.int64)

    def counts(self) -> dict[str, Any]:
        """What was used, and what was left out and why."""
        return {
            "file": self.data.content,
            "queries": len(self.groups),
            "pointers": sum(map(len, self.members)),
            "left_out": dict(self.left),
        }

    def pointers(self, place: int) -> list[Pointer]:
        """The pointers of a query as places of its pool."""
        group = self.groups[place]
        return [group.local(each) or () for each in self.members[place]]

    def facts(self, place: int, score: Scorer, *, needs_truth: bool) -> list[Facts]:
        """What each answer of a query was worth, worked out from the answer itself."""
        item, found = self.items[place], []
        for each in self.members[place]:
            if needs_truth and each.truth_probability is None:
                raise DataError(
                    f"{self.data.path}: query {self.groups[place].query!r} has pointers without"
                    " vqa_gt_prob, which this reward is made of: choose another reward"
                )
            said = each.answer or ""
            found.append(
                Facts(
                    accuracy=score(said, item),
                    truth_probability=each.truth_probability or 0.0,
                    relevance=relevance(said, item.answers),
                    words=len(said.split()),
                )
            )
        return found

    def truth_logp(self, place: int) -> list[float]:
        """How likely the truth was with each pointer; -inf where the file does not say."""
        found = [each.truth_probability for each in self.members[place]]
        return [math.log(each) if each else -math.inf for each in found]

    def _prove_numbers(self, data: Dataset) -> None:
        """Refuse a file whose numbers cannot be shown to mean this data set's demonstrations."""
        meta, path = self.data.meta, self.data.path
        if meta.get("numbers") == NUMBERS:
            if meta.get("data") != data.content:
                raise DataError(f"{path} was written for other data than {data.name!r}")
            return
        shown: Sequence[Item] = data.demonstrations
        for group in self.data.groups:
            number = int(group.query) if group.query.isdigit() else -1
            theirs = shown[number].id if 0 <= number < len(shown) else "none"
            if theirs != group.question_id:
                raise DataError(
                    f"{path}: query {group.query!r} is question {group.question_id}, and number"
                    f" {group.query} of {data.name!r} is {theirs}: the file numbers other items"
                )

    def _check_pools(self, size: int, most: int) -> None:
        for group in self.groups:
            if len(group.pool) != size:
                raise DataError(
                    f"{self.data.path}: the pool of query {group.query!r} has {len(group.pool)},"
                    f" and pool.size is {size}"
                )
            if max(group.pool) >= most or min(group.pool) < 0:
                raise DataError(
                    f"{self.data.path}: the pool of query {group.query!r} has numbers that none of"
                    f" {most} demonstrations has"
                )
