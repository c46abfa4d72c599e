"""The embedded answerer: the network of `network`, its shipped weights, and batches of one fixed size.

Prompts are answered 64 at a time; a short batch is filled up with its last prompt. So the arithmetic
behind an answer is the same whatever else was asked, and answers are the same to the last bit.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor

from kleash.answer import Images
from kleash.answer.fit import Fit
from kleash.answer.network import (
    ANSWER_WORDS,
    ASKED,
    END,
    MAX_BLOCKS,
    TOKEN,
    VOCABULARY,
    Network,
    answer_tokens,
    question_tokens,
)
from kleash.config import build
from kleash.demos.embeddings import Embeddings, unit_rows
from kleash.errors import DataError
from kleash.guard import load_strictly
from kleash.policy import fingerprint
from kleash.types import Answer, Item, Prompt

WEIGHTS = Path(__file__).with_name("scenes.safetensors")
BATCH = 64
DECODING = "greedy, at most two words"


@contextmanager
def plain_products() -> Iterator[None]:
    """Leave oneDNN out: for products this small its set-up takes half as long again."""
    before = torch.backends.mkldnn.enabled
    torch.backends.mkldnn.enabled = False
    try:
        yield
    finally:
        torch.backends.mkldnn.enabled = before


class Embedded:
    """Answers prompts about scenes on one thread, in about half a millisecond each."""

    def __init__(self, images: Images, weights: Path = WEIGHTS) -> None:
        recipe = json.loads(weights.with_suffix(".json").read_text(encoding="utf-8"))
        self.network = Network(build(Fit, recipe["config"]).size).eval().requires_grad_(False)
        load_strictly(self.network, load_file(weights), source=str(weights))
        self.images = images
        self.identity = f"{fingerprint(self.network.state_dict())} {DECODING}"
        self.row: dict[str, int] = {}
        width = self.network.size.width
        self.asked = torch.zeros(0, ASKED, width)
        self.answered = torch.zeros(0, ANSWER_WORDS, width)
        self.truth = torch.zeros(0, ANSWER_WORDS, dtype=torch.long)

    def rows(self, items: Sequence[Item]) -> list[int]:
        """Where the items lie in the tables; new ones are looked at first."""
        new = list({item.id: item for item in items if item.id not in self.row}.values())
        if new:
            for item in new:
                self.row[item.id] = len(self.row)
            words = torch.tensor([known_words(item) for item in new])
            asked, said = words.split([words.shape[1] - ANSWER_WORDS, ANSWER_WORDS], dim=1)
            seen = self.see([item.image for item in new])
            self.asked = torch.cat([self.asked, torch.cat([seen, self.network.word(asked)], 1)])
            self.answered = torch.cat([self.answered, self.network.word(said)])
            self.truth = torch.cat([self.truth, said])
        return [self.row[item.id] for item in items]

    @torch.inference_mode()
    @plain_products()
    def see(self, names: Sequence[str]) -> Tensor:
        """The vectors of pictures, [N, V, D]."""
        pictures = torch.from_numpy(np.stack([self.images(name) for name in names]))
        seen = []
        for part in pictures.split(BATCH):
            filled = torch.cat([part, part[-1:].expand(BATCH - len(part), -1, -1, -1)])
            seen.append(self.network.see(filled)[: len(part)])
        return torch.cat(seen).clone()

    def embed(self, items: Sequence[Item]) -> Embeddings:
        """Picture vectors side by side; the words of the question added up."""
        table = self.asked_table(items)
        pictures, words = table.split([ASKED - 2, 2], dim=1)
        return Embeddings(unit_rows(pictures.flatten(1).numpy()), unit_rows(words.sum(1).numpy()))

    def asked_table(self, items: Sequence[Item]) -> Tensor:
        """The items as queries, before they are placed."""
        rows = self.rows(items)
        return self.asked[rows]

    def answer(self, prompts: Sequence[Prompt]) -> list[Answer]:
        """An answer for every prompt, in order."""
        answers: list[Answer | None] = [None] * len(prompts)
        by_shots: dict[int, list[int]] = defaultdict(list)
        for place, prompt in enumerate(prompts):
            by_shots[len(prompt.demonstrations)].append(place)
        for shots, places in sorted(by_shots.items()):
            if shots >= MAX_BLOCKS:
                raise DataError(
                    f"{shots} shots: the embedded answerer was taught at most {MAX_BLOCKS - 1}"
                )
            for place, answer in zip(places, self.same_shots(prompts, places), strict=True):
                answers[place] = answer
        return [answer for answer in answers if answer is not None]

    def same_shots(self, prompts: Sequence[Prompt], places: Sequence[int]) -> Iterator[Answer]:
        """Answers to prompts of one length, in batches of one size."""
        table = torch.tensor(
            [self.rows([*prompts[p].demonstrations, prompts[p].query]) for p in places]
        )
        for part in table.split(BATCH):
            filled = torch.cat([part, part[-1:].expand(BATCH - len(part), -1)])
            words, truth_logp = self.read(filled)
            for said, logp in zip(
                words[: len(part)].tolist(), truth_logp[: len(part)].tolist(), strict=True
            ):
                kept = said[: said.index(TOKEN[END])] if TOKEN[END] in said else said
                yield Answer(" ".join(VOCABULARY[word] for word in kept), logp)

    @torch.inference_mode()
    @plain_products()
    def read(self, rows_BN: Tensor) -> tuple[Tensor, Tensor]:
        """The words said greedily [B, 2], and the log-probability of exactly the true ones [B]."""
        network, shots = self.network, rows_BN.shape[1] - 1
        shown, query = rows_BN[:, :shots], rows_BN[:, shots]
        demonstrations = torch.cat([self.asked[shown], self.answered[shown]], dim=2)
        x = torch.cat(
            [
                network.place(demonstrations),
                network.place(self.asked[query][:, None], first=shots),
            ],
            dim=1,
        )
        first, seen = network.read(x)
        where = network.slot[ASKED] + network.block[shots]
        said = first.argmax(-1)
        truth = self.truth[query]
        after = network.go_on(torch.stack([said, truth[:, 0]], dim=1), where, seen)
        second = after[:, 0].argmax(-1)
        given_truth = after[:, 1].log_softmax(-1)
        logp = first.log_softmax(-1).gather(1, truth[:, :1]) + given_truth.gather(1, truth[:, 1:])
        return torch.stack([said, second], dim=1), logp[:, 0].double()


def known_words(item: Item) -> list[int]:
    """The words of an item's question and majority answer; a stranger's word is an error."""
    try:
        return [*question_tokens(item.question), *answer_tokens(item.answer)]
    except KeyError as error:
        raise DataError(
            f"item {item.id}: the embedded answerer does not know the word {error}; it knows scenes"
        ) from None
