"""From vectors of prompts to words and the truth's log-probability, a batch at a time.

A prompt is read once. What it says first and what the true answer begins with both come from that
reading; the true answer's further ids go through the model together with the beams' first ones.

Shapes: B prompts, L places of the longest, K ids of the longest true answer, W beams, C candidates,
T ids said, S places of memory, V ids.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from kleash.models.answer.reading import Memory, Reader, plain_attention, seen_before

NEVER = -1e9  # the score of what is not there; finite, so that sums of it stay comparable
CHUNK = 1 << 27  # logits there at once: half a gigabyte of them


@dataclass(frozen=True)
class Decoding:
    """How words are said."""

    beams: int = 3
    tokens: int = 5
    penalty: float = 1.0
    """Of a beam's length, as `length_penalty` of `generate`."""

    def describe(self) -> str:
        """In words, for an identity."""
        way = f"{self.beams} beams (penalty {self.penalty:g})" if self.beams > 1 else "greedy"
        return f"{way}, {self.tokens} tokens"


@dataclass(frozen=True)
class Row:
    """One prompt, ready to be read: its ids, a place for each, and where images go."""

    ids: Tensor
    place: Tensor
    """[L], or [3, L] where images have height and width."""
    next: int
    """The place after the last."""
    truth: list[int]
    seen: tuple[tuple[int, Tensor], ...] = ()
    """Where among the ids vectors of images go, and the vectors."""
    key: tuple[object, ...] = ()
    """Ids, with an image's content in place of its own: equal keys read alike."""

    def part(self, start: int, end: int | None) -> Row:
        """A stretch of it that cuts no image in two."""
        last = len(self.ids) if end is None else end
        seen = tuple((at - start, each) for at, each in self.seen if start <= at < last)
        return Row(self.ids[start:end], self.place[..., start:end], self.next, self.truth, seen)


class Decoder:
    """A reader with the first and the last product of its model."""

    def __init__(
        self,
        reader: Reader,
        embed: Callable[[Tensor], Tensor],
        head: Any,
        stops: Sequence[int],
        decoding: Decoding,
    ) -> None:
        self.reader, self.embed, self.head, self.decoding = reader, embed, head, decoding
        self.stops = torch.tensor(list(stops), dtype=torch.long)

    @torch.inference_mode()
    @plain_attention()
    def begin(self, row: Row, device: torch.device) -> Memory:
        """The memory of what several prompts begin with."""
        inputs, place, length_B = self.laid_out([row], device)
        _, memory = self.reader.read(inputs, place, length_B, 0, None)
        return memory

    @torch.inference_mode()
    @plain_attention()
    def decode(
        self, rows: Sequence[Row], device: torch.device, begun: Memory | None = None
    ) -> tuple[list[list[int]], list[float]]:
        """The ids said to every prompt, and the log-probability of exactly its true answer."""
        inputs, place, length_B = self.laid_out(rows, device)
        truths = [row.truth for row in rows]
        truth_BK, is_truth_BK = padded(truths, device)
        further = truth_BK.shape[1] - 1
        room = self.decoding.beams * (self.decoding.tokens - 1) + further
        state_BW, memory = self.reader.read(inputs, place, length_B, room, begun)
        next_B = torch.tensor([row.next for row in rows], device=device)
        first_BV = self.logp(state_BW)
        truth_B = first_BV.gather(1, truth_BK[:, :1])[:, 0].double()
        search = self.search(len(rows), device)
        parent_BW, id_BW = search.advance(first_BV[:, None])
        tree = Tree(memory, id_BW.shape[1], next_B)
        for step in range(1, self.decoding.tokens):
            extra = truth_BK[:, :-1] if step == 1 and further else None
            states = self.step(tree, parent_BW, id_BW, extra)
            if extra is not None:
                behind = self.logp_of(states[:, -further:], truth_BK[:, 1:])
                truth_B = truth_B + (behind.double() * is_truth_BK[:, 1:]).sum(1)
            parent_BW, id_BW = search.advance(self.logp(states[:, : id_BW.shape[1]]))
        if further and self.decoding.tokens == 1:
            states = self.step(tree, parent_BW, id_BW, truth_BK[:, :-1])
            behind = self.logp_of(states[:, -further:], truth_BK[:, 1:])
            truth_B = truth_B + (behind.double() * is_truth_BK[:, 1:]).sum(1)
        return search.said(), truth_B.tolist()

    def step(self, tree: Tree, parent_BW: Tensor, id_BW: Tensor, truth_BK: Tensor | None) -> Tensor:
        """The states after the beams' new ids and, once, after the true answer's."""
        ids = id_BW if truth_BK is None else torch.cat([id_BW, truth_BK], 1)
        place, seen = tree.grow(parent_BW, 0 if truth_BK is None else truth_BK.shape[1])
        return self.reader.go_on(self.embed(ids), place, seen, tree.memory)

    def search(self, rows: int, device: torch.device) -> Greedy | Beams:
        """A search that has not begun."""
        how, stops = self.decoding, self.stops.to(device)
        if how.beams == 1:
            return Greedy(rows, stops)
        return Beams(rows, how.beams, how.tokens, stops, how.penalty)

    def logp(self, states: Tensor) -> Tensor:
        """Log-probabilities of every id, in float32 or better."""
        logits: Tensor = self.head(states)
        return logits.to(torch.promote_types(logits.dtype, torch.float32)).log_softmax(-1)

    def logp_of(self, states_BKW: Tensor, ids_BK: Tensor) -> Tensor:
        """The log-probability of one id after each state, in pieces that fit."""
        states, ids = states_BKW.flatten(0, 1), ids_BK.flatten()
        size = max(1, CHUNK // self.head.weight.shape[0])
        found = [
            self.logp(part).gather(1, wanted[:, None])[:, 0]
            for part, wanted in zip(states.split(size), ids.split(size), strict=True)
        ]
        return torch.cat(found).view(ids_BK.shape)

    def laid_out(self, rows: Sequence[Row], device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
        """Vectors [B, L, W], places and lengths of rows, padded at their ends."""
        longest = max(len(row.ids) for row in rows)
        ids_BL = torch.stack([filled(row.ids, longest) for row in rows]).to(device)
        place = torch.stack([filled(row.place, longest) for row in rows], -2).to(device)
        length_B = torch.tensor([len(row.ids) for row in rows], device=device)
        inputs: Tensor = self.embed(ids_BL)
        if any(row.seen for row in rows):
            inputs = inputs.clone()
        for number, row in enumerate(rows):
            for at, vectors in row.seen:
                inputs[number, at : at + len(vectors)] = vectors
        return inputs, place, length_B


class Tree:
    """Who follows whom behind the prompts: which places each new id sees, and where it stands."""

    def __init__(self, memory: Memory, width: int, next_B: Tensor) -> None:
        self.memory, self.next_B, self.width, self.depth = memory, next_B, width, 0
        before_BS = seen_before(memory.length_B, memory.places)
        self.line_BWS = before_BS[:, None].expand(-1, width, -1)
        self.prompt_BS = before_BS

    def grow(self, parent_BW: Tensor, truth: int) -> tuple[Tensor, Tensor]:
        """Places [B, Q] of a new id for each beam and `truth` ids in a row, and what each sees."""
        device = self.next_B.device
        taken = self.line_BWS.shape[-1]
        own = torch.eye(self.width, self.width + truth, dtype=torch.bool, device=device)
        line = self.line_BWS.gather(1, parent_BW[..., None].expand(-1, -1, taken))
        line = torch.cat([line, own.expand(len(line), -1, -1)], -1)
        self.line_BWS = line
        place_BQ = (self.next_B + self.depth)[:, None].expand(-1, self.width)
        self.depth += 1
        if not truth:
            return place_BQ, line
        chain = torch.ones(truth, truth, dtype=torch.bool, device=device).tril()
        chain = torch.nn.functional.pad(chain, (self.width, 0))
        prompt = self.prompt_BS[:, None].expand(-1, truth, -1)
        rows = torch.cat([prompt, chain.expand(len(line), -1, -1)], -1)
        steps = torch.arange(truth, device=device)
        place_BQ = torch.cat([place_BQ, self.next_B[:, None] + steps], 1)
        return place_BQ, torch.cat([line, rows], 1)


def filled(row: Tensor, length: int) -> Tensor:
    """A row with zeros behind it."""
    return torch.nn.functional.pad(row, (0, length - row.shape[-1]))


def padded(rows: Sequence[Sequence[int]], device: torch.device) -> tuple[Tensor, Tensor]:
    """Rows of ids with zeros behind them, and which are theirs."""
    longest = max(map(len, rows))
    ids = torch.tensor([[*row, *[0] * (longest - len(row))] for row in rows], device=device)
    length = torch.tensor([len(row) for row in rows], device=device)
    return ids, seen_before(length, longest)


# --- which words are said: greedily, or by a beam search that finds what `generate` finds
#
# Rows do not know of each other: each would end the same alone.


class Greedy:
    """The likeliest id, again and again."""

    def __init__(self, rows: int, stops: Tensor) -> None:
        self.stops = stops
        self.chosen = torch.zeros(rows, 0, dtype=torch.long, device=stops.device)

    def advance(self, logp_BWV: Tensor) -> tuple[Tensor, Tensor]:
        """The likeliest ids."""
        best_B1 = logp_BWV.argmax(-1)
        self.chosen = torch.cat([self.chosen, best_B1], 1)
        return torch.zeros_like(best_B1), best_B1

    def said(self) -> list[list[int]]:
        """Up to the first id that ends a turn."""
        stops = set(self.stops.tolist())
        return [upto(row, stops) for row in self.chosen.tolist()]


class Beams:
    """The search of transformers' `generate` with `early_stopping=False`, for many prompts at once.

    A beam that ends is kept with its mean log-probability (sum / length ** `penalty`); a prompt is
    done when as many have ended as there are beams and none that goes on is better on its way.
    """

    def __init__(self, rows: int, width: int, most: int, stops: Tensor, penalty: float) -> None:
        self.width, self.most, self.stops, self.penalty = width, most, stops, penalty
        self.step = 0
        device = stops.device
        self.score_BW = torch.full((rows, width), NEVER, device=device)
        self.score_BW[:, 0] = 0.0  # all beams begin alike: only one of them counts
        self.ids_BWT = torch.zeros(rows, width, 0, dtype=torch.long, device=device)
        self.best_BW = torch.full((rows, width), NEVER, device=device)
        self.ended_BW = torch.zeros(rows, width, dtype=torch.bool, device=device)
        self.kept_BWT = torch.zeros(rows, width, most, dtype=torch.long, device=device)
        self.open_B1 = torch.ones(rows, 1, dtype=torch.bool, device=device)

    def advance(self, logp_BWV: Tensor) -> tuple[Tensor, Tensor]:
        """The best beams that go on; those that end are put aside."""
        count = max(2, 1 + len(self.stops)) * self.width
        total_BWV = logp_BWV + self.score_BW[:, : logp_BWV.shape[1], None]
        score_BC, flat_BC = total_BWV.flatten(1).topk(count)
        parent_BC, id_BC = flat_BC // logp_BWV.shape[-1], flat_BC % logp_BWV.shape[-1]
        ids_BCT = torch.cat([pick(self.ids_BWT, parent_BC), id_BC[..., None]], -1)
        self.step += 1
        ends_BC = torch.isin(id_BC, self.stops) | (self.step == self.most)
        running_BC = score_BC + ends_BC * NEVER
        self.score_BW, next_BW = running_BC.topk(self.width)
        self.put_aside(score_BC, ids_BCT, ends_BC)
        self.ids_BWT = pick(ids_BCT, next_BW)
        self.look_ahead()
        return parent_BC.gather(1, next_BW), id_BC.gather(1, next_BW)

    def put_aside(self, score_BC: Tensor, ids_BCT: Tensor, ends_BC: Tensor) -> None:
        """Keep the best that have ended; only the first `width` candidates may end."""
        ends_BC = ends_BC.clone()
        ends_BC[:, self.width :] = False
        allowed_BC = ends_BC & self.open_B1
        final_BC = score_BC / self.step**self.penalty + ~allowed_BC * NEVER
        room = self.most - self.step
        padded = torch.nn.functional.pad(ids_BCT, (0, room), value=-1)
        merged = torch.cat([self.best_BW, final_BC], 1)
        self.best_BW, at = merged.topk(self.width)
        self.ended_BW = torch.cat([self.ended_BW, ends_BC], 1).gather(1, at)
        self.kept_BWT = pick(torch.cat([self.kept_BWT, padded], 1), at)

    def look_ahead(self) -> None:
        """Close the prompts in which no beam that goes on is better than the worst that ended."""
        hope_B1 = self.score_BW[:, :1] / self.step**self.penalty
        worst_B1 = self.best_BW.min(1, keepdim=True).values
        bar_BW = torch.where(self.ended_BW, worst_B1, NEVER)
        self.open_B1 &= (hope_B1 > bar_BW).any(1, keepdim=True)

    def said(self) -> list[list[int]]:
        """The best that ended, without the id that ended it."""
        stops = {*self.stops.tolist(), -1}
        return [upto(row, stops) for row in self.kept_BWT[:, 0].tolist()]


def pick(rows_BCT: Tensor, at_BW: Tensor) -> Tensor:
    """Some of the rows of each prompt."""
    return rows_BCT.gather(1, at_BW[..., None].expand(-1, -1, rows_BCT.shape[-1]))


def upto(ids: list[int], stops: set[int]) -> list[int]:
    """Ids before the first stop."""
    return ids[: next((at for at, one in enumerate(ids) if one in stops), len(ids))]
