"""Made-up episodes that teach the embedded answerer to learn from what stands before.

An episode has its own villagers: what each word and each frame means is drawn afresh, so that
nothing but the blocks before can tell. Every block is a query to those before it and a
demonstration to those after it, so one pass teaches all numbers of shots at once. Plain questions
are answered in the manner of some earlier block: the network learns to imitate, as language models
do.

Not here: the data set's own words and frames. The network never sees what they mean.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from kleash.models.answer.network import MAX_BLOCKS, TOKEN, answer_tokens
from kleash.seeds import generator, torch_generator
from kleash.tasks.data.scenes import (
    ATTRIBUTES,
    FRAMES,
    LANGUAGES,
    NO_FRAME,
    PLACES,
    VALUES,
    VILLAGES,
    WORDS,
    draw,
    draw_looks,
    say,
)


@dataclass(frozen=True)
class Bank:
    """Pictures by village and frame, and the value of every attribute at every place."""

    pictures: Tensor
    present: Tensor
    values: Tensor

    @property
    def each(self) -> int:
        """How many pictures there are for each village and frame."""
        return len(self.pictures) // (VILLAGES * (FRAMES + 1))


def make_bank(each: int, seed: int, device: str) -> Bank:
    """Pictures that share nothing with the data set but the way they are drawn."""
    kinds = np.arange(VILLAGES * (FRAMES + 1)).repeat(each)
    pictures: list[Tensor] = []
    present: list[Tensor] = []
    values: list[Tensor] = []
    for part in np.array_split(kinds, max(1, len(kinds) // 20_000)):
        rng = generator("fit", "bank", seed, len(pictures))
        looks = draw_looks(rng, part // (FRAMES + 1), part % (FRAMES + 1))
        pictures.append(torch.from_numpy(draw(looks)))
        present.append(torch.from_numpy(looks.present_NQ))
        values.append(
            torch.from_numpy(np.stack([looks.value_NQ(name) for name in ATTRIBUTES], axis=2))
        )
    return Bank(*(torch.cat(rows).to(device) for rows in (pictures, present, values)))


@dataclass(frozen=True)
class Episodes:
    """Blocks [B, N]: a picture, two words each of question and answer, and what was told before."""

    picture: Tensor
    question: Tensor
    answer: Tensor
    plain: Tensor
    word_told: Tensor
    manner_told: Tensor


class EpisodeMaker:
    """Draws episodes on a device."""

    def __init__(self, bank: Bank, device: str, seed: int) -> None:
        self.bank = bank
        self.device = device
        self.rng = torch_generator("fit", "episodes", seed, device=device)
        first = np.cumsum([0, *(len(values) for values in ATTRIBUTES.values())])[:-1]
        self.first_value = torch.tensor(first, device=device)
        self.handful = torch.tensor([1, 2, 3, 4, 8], device=device)
        self.plain_word = torch.tensor([TOKEN[name] for name in ATTRIBUTES], device=device)
        self.said = torch.tensor(
            [
                [answer_tokens(say(value, language)) for language in range(LANGUAGES)]
                for value in VALUES
            ],
            device=device,
        )

    def pick(self, high: int, *shape: int) -> Tensor:
        """Whole numbers below `high`."""
        return torch.randint(0, high, shape, generator=self.rng, device=self.device)

    def chance(self, *shape: int) -> Tensor:
        """Numbers between 0 and 1."""
        return torch.rand(shape, generator=self.rng, device=self.device)

    def few(self, high: int, batch: int, blocks: int) -> Tensor:
        """Draws [B, N] below `high`, in each episode from a handful of its own, large or small."""
        handful = self.chance(batch, high).argsort(dim=1)
        many = self.handful[self.pick(len(self.handful), batch)]
        which = (self.chance(batch, blocks) * many.clamp(max=high)[:, None]).long()
        return handful.gather(1, which)

    def make(self, batch: int, blocks: int = MAX_BLOCKS) -> Episodes:
        """`batch` episodes of `blocks` blocks."""
        village = self.few(VILLAGES, batch, blocks)
        word = self.few(len(WORDS), batch, blocks)
        frame = self.few(FRAMES, batch, blocks)
        plain = self.chance(batch, blocks) < 0.12
        meaning = self.pick(len(ATTRIBUTES), batch, VILLAGES * len(WORDS))
        manner = self.pick(LANGUAGES, batch, VILLAGES * FRAMES)
        word_key, manner_key = village * len(WORDS) + word, village * FRAMES + frame
        attribute = meaning.gather(1, word_key)
        attribute = torch.where(plain, self.pick(len(ATTRIBUTES), batch, blocks), attribute)
        language = self.imitate(manner.gather(1, manner_key), plain)
        frame = torch.where(plain, NO_FRAME, frame)

        kind = village * (FRAMES + 1) + frame
        picture = kind * self.bank.each + self.pick(self.bank.each, batch, blocks)
        chance = self.chance(batch, blocks, len(PLACES)) * self.bank.present[picture]
        place = chance.argmax(-1)
        value = self.bank.values[picture, place, attribute] + self.first_value[attribute]
        asked = torch.where(plain, self.plain_word[attribute], TOKEN[WORDS[0]] + word)
        return Episodes(
            picture=picture,
            question=torch.stack([asked, TOKEN[PLACES[0]] + place], dim=-1),
            answer=self.said[value, language],
            plain=plain,
            word_told=told(word_key, plain),
            manner_told=told(manner_key, plain),
        )

    def imitate(self, language: Tensor, plain: Tensor) -> Tensor:
        """A plain block speaks as some earlier block did; the first one plainly."""
        chance = self.chance(*language.shape)
        spoken = [torch.where(plain[:, 0], 0, language[:, 0])]
        for block in range(1, language.shape[1]):
            which = (chance[:, block, None] * block).long()
            earlier = torch.stack(spoken, dim=1).gather(1, which)[:, 0]
            spoken.append(torch.where(plain[:, block], earlier, language[:, block]))
        return torch.stack(spoken, dim=1)


def told(key: Tensor, plain: Tensor) -> Tensor:
    """Whether an earlier block, not plain, has the same key."""
    blocks = key.shape[1]
    same = (key[:, :, None] == key[:, None, :]) & ~plain[:, None, :]
    before = torch.ones(blocks, blocks, dtype=torch.bool, device=key.device).tril(-1)
    return (same & before).any(-1)
