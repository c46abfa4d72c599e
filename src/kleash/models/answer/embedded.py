"""The embedded answerer: the network of `network`, its shipped weights, batches of one fixed size.

Prompts are answered 64 at a time; a short batch is filled up with its last prompt. So the
arithmetic behind an answer is the same whatever else was asked, and answers are the same to the
last bit. What depends on one item only is worked out once and kept: its block, and what its block
leaves behind as the first of a prompt (28 kB an item, since nothing before it can change it).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from kleash.algo.guard import load_strictly
from kleash.algo.policy import fingerprint
from kleash.config import build
from kleash.errors import CheckpointError, DataError
from kleash.models.answer import Images
from kleash.models.answer.network import (
    ANSWER_WORDS,
    ASKED,
    END,
    MAX_BLOCKS,
    PICTURE_VECTORS,
    TOKEN,
    VOCABULARY,
    Network,
    Size,
    answer_tokens,
    question_tokens,
)
from kleash.runs.run import read_json
from kleash.tasks.demos.embeddings import Embeddings, unit_rows
from kleash.types import Answer, Item, Prompt

WEIGHTS = Path(__file__).with_name("scenes.safetensors")
BATCH, LARGE_BATCH = 64, 512
DECODING = "greedy, at most two words"


def load(path: Path) -> Network:
    """The network that `scripts/fit_answerer.py` wrote, with proof that these are its weights."""
    recipe = read_json(path.with_suffix(".json"))
    network = Network(build(Size, recipe["config"]["size"]))
    try:
        tensors = load_file(path)
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"cannot read {path}: {error}") from None
    load_strictly(network, tensors, source=str(path))
    if fingerprint(tensors) != recipe["weights"]:
        raise CheckpointError(
            f"{path} does not hold the weights that {path.with_suffix('.json').name} describes:"
            " copy both files of one answerer, or train it again"
        )
    return network.eval().requires_grad_(False)


@contextmanager
def plain_products() -> Iterator[None]:
    """Leave oneDNN out: products this small take a sixth longer with it."""
    mkldnn: Any = torch.backends.mkldnn
    before = mkldnn.enabled
    mkldnn.enabled = False
    try:
        yield
    finally:
        mkldnn.enabled = before


class Table:
    """A row for every item met so far; `make` works out the rows of new ones."""

    def __init__(self, make: Callable[[Sequence[Item]], Tensor]) -> None:
        self.make = make
        self.rows = torch.zeros(0)
        self.place: dict[Item, int] = {}

    def places(self, items: Sequence[Item]) -> Tensor:
        """Where the items' rows are."""
        new = [item for item in dict.fromkeys(items) if item not in self.place]
        if new:
            self.append(self.make(new))
            self.place |= {item: place for place, item in enumerate(new, len(self.place))}
        return torch.tensor([self.place[item] for item in items])

    def append(self, rows: Tensor) -> None:
        """Add rows; when there is no room for them, twice the room needed is made."""
        start, end = len(self.place), len(self.place) + len(rows)
        if end > len(self.rows):
            room = rows.new_empty(2 * end, *rows.shape[1:])
            if start:
                room[:start] = self.rows[:start]
            self.rows = room
        self.rows[start:end] = rows


class Embedded:
    """Answers prompts about scenes on one thread, in less than a millisecond each.

    Elsewhere than on a CPU the last bits are others, so there it goes by another identity.
    """

    def __init__(self, images: Images, weights: Path = WEIGHTS, device: str = "cpu") -> None:
        network = load(weights)
        self.device = torch.device(device)
        self.batch = BATCH if self.device.type == "cpu" else LARGE_BATCH
        self.images = images
        self.identity = f"{fingerprint(network.state_dict())} {DECODING}"
        if self.device.type != "cpu":
            self.identity += f", on {self.device.type}"
        self.network = network.to(self.device)
        self.blocks = Table(self.make_blocks)
        self.memories = Table(self.make_memories)

    def make_blocks(self, items: Sequence[Item]) -> Tensor:
        """The blocks [N, 7, D] of items: picture, question and answer, not yet placed."""
        words = torch.tensor([known_words(item) for item in items], device=self.device)
        shown = torch.from_numpy(np.stack([self.images(item.image) for item in items]))
        pictures = shown.to(self.device)
        seen = [
            self.network.see(part)[:wanted] for wanted, (part,) in batches(self.batch, pictures)
        ]
        return torch.cat([torch.cat(seen), self.network.word(words)], dim=1)

    def make_memories(self, items: Sequence[Item]) -> Tensor:
        """What items leave in the memory of all layers as the first of a prompt, [N, L, …]."""
        places = self.blocks.places(items)
        made = []
        for wanted, (part,) in batches(self.batch, self.blocks.rows[places]):
            memory = torch.stack(self.network.remember(self.network.place(part[:, None])))
            made.append(memory.movedim(2, 0)[:wanted])
        return torch.cat(made)

    @torch.inference_mode()
    @plain_products()
    def embed(self, items: Sequence[Item]) -> Embeddings:
        """Picture vectors side by side; the words of the question added up."""
        places = self.blocks.places(items)
        blocks = self.blocks.rows[places].cpu()
        pictures, words = blocks[:, :PICTURE_VECTORS], blocks[:, PICTURE_VECTORS:ASKED]
        return Embeddings(unit_rows(pictures.flatten(1).numpy()), unit_rows(words.sum(1).numpy()))

    @torch.inference_mode()
    @plain_products()
    def answer(self, prompts: Sequence[Prompt]) -> list[Answer]:
        """An answer for every prompt, in order."""
        by_shots: dict[int, list[int]] = defaultdict(list)
        for place, prompt in enumerate(prompts):
            by_shots[len(prompt.demonstrations)].append(place)
        if max(by_shots, default=0) >= MAX_BLOCKS:
            raise DataError(
                f"{max(by_shots)} shots are too many: the embedded answerer was taught at most"
                f" {MAX_BLOCKS - 1}"
            )
        answers: dict[int, Answer] = {}
        for places in by_shots.values():
            said = self.answer_same_shots([prompts[place] for place in places])
            answers.update(zip(places, said, strict=True))
        return [answers[place] for place in range(len(prompts))]

    def answer_same_shots(self, prompts: Sequence[Prompt]) -> Iterator[Answer]:
        """Answers to prompts of one length."""
        blocks = self.blocks.places([i for p in prompts for i in (*p.demonstrations, p.query)])
        firsts = self.memories.places([i for p in prompts for i in p.demonstrations[:1]])
        on_cpu = (
            blocks.unflatten(0, (len(prompts), -1)),
            firsts.long().unflatten(0, (len(prompts), -1)),
            torch.tensor([answer_tokens(prompt.query.answer) for prompt in prompts]),
        )
        tables = [table.to(self.device) for table in on_cpu]
        for wanted, parts in batches(self.batch, *tables):
            words, truth_logp = self.read(*parts)
            for said, logp in zip(words[:wanted].tolist(), truth_logp.tolist(), strict=False):
                kept = said[: said.index(TOKEN[END])] if TOKEN[END] in said else said
                yield Answer(" ".join(VOCABULARY[word] for word in kept), logp)

    def read(self, blocks_BN: Tensor, firsts: Tensor, truth_BW: Tensor) -> tuple[Tensor, Tensor]:
        """The words said greedily [B, W], and the log-probability of exactly the true ones [B]."""
        network, shots = self.network, blocks_BN.shape[1] - 1
        known = firsts.shape[1]
        blocks = self.blocks.rows[blocks_BN[:, known:]]
        x = network.place(blocks, first=known)[:, :-ANSWER_WORDS]
        kept = list(self.memories.rows[firsts[:, 0]].movedim(0, 2)) if known else None
        first, memory = network.read(x, kept)
        said, truth = first.argmax(-1), truth_BW[:, 0]
        where = network.slot[ASKED] + network.block[shots]
        after = network.go_on(torch.stack([said, truth], dim=1), where, memory)
        logp = first.log_softmax(-1).gather(1, truth[:, None])
        logp = logp + after[:, 1].log_softmax(-1).gather(1, truth_BW[:, 1:])
        return torch.stack([said, after[:, 0].argmax(-1)], dim=1), logp[:, 0].double()


def batches(size: int, *tables: Tensor) -> Iterator[tuple[int, list[Tensor]]]:
    """Rows of the tables, always so many at a time, and how many of them are wanted."""
    for parts in zip(*(table.split(size) for table in tables), strict=True):
        wanted = len(parts[0])
        filling = [part[-1:].expand(size - wanted, *part.shape[1:]) for part in parts]
        yield wanted, [torch.cat(both) for both in zip(parts, filling, strict=True)]


def known_words(item: Item) -> list[int]:
    """The words of an item's question and majority answer; a stranger's word is an error."""
    try:
        return [*question_tokens(item.question), *answer_tokens(item.answer)]
    except KeyError as error:
        raise DataError(
            f"item {item.id}: the embedded answerer does not know the word {error}; it knows scenes"
        ) from None
