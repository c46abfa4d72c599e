"""Trains the embedded answerer on endless made-up episodes: minutes on a GPU, a night on a CPU.

An episode has its own villagers: what each word and each frame means is drawn afresh, so that nothing
but the blocks before can tell. Every block is a query to those before it and a demonstration to those
after it, so one pass teaches all numbers of shots at once. Plain questions are answered in the manner
of some earlier block: the network learns to imitate, as language models do.

Not here: the data set's own words and frames. The network never sees them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from kleash.answer.network import (
    ASKED,
    BLOCK,
    END,
    MAX_BLOCKS,
    PICTURE_VECTORS,
    TOKEN,
    Network,
    Size,
)
from kleash.config import Config
from kleash.data.scenes import (
    ATTRIBUTES,
    FRAMES,
    LANGUAGES,
    NO_FRAME,
    PLACES,
    STRANGE,
    VALUES,
    VILLAGES,
    WORDS,
    draw,
    draw_looks,
)
from kleash.seeds import generator, torch_generator


class Fit(Config):
    """How the answerer is trained."""

    size: Size = Size()
    """How large the network is."""
    seed: int = 0
    """Names every draw."""
    seeing_steps: int = 2_000
    """Updates on pictures alone, four pictures for each episode of a batch."""
    steps: int = 80_000
    """Updates on episodes."""
    batch: int = 512
    """Episodes in an update."""
    lr: float = 6e-4
    """Highest learning rate of either stage."""
    weight_decay: float = 0.01
    """AdamW's."""
    pictures: int = 2_000
    """Pictures kept for each village and frame."""


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
    pictures, present, values = [], [], []
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
    """Blocks [B, N]: a picture, two words of question, two words of answer; and whether both were told."""

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
                [
                    [TOKEN[value], TOKEN[END]],
                    [TOKEN[strange], TOKEN[END]],
                    [TOKEN["mo"], TOKEN[value]],
                    [TOKEN[strange], TOKEN["ti"]],
                ]
                for value, strange in zip(VALUES, STRANGE, strict=True)
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


def logits_of(network: Network, seen: Tensor, episodes: Episodes) -> Tensor:
    """The logits [B, N, 2, words] for both words of every answer."""
    batch, blocks = episodes.picture.shape
    words = torch.cat([episodes.question, episodes.answer], dim=-1)
    pictures = seen.unflatten(0, (batch, blocks))
    x = network.place(torch.cat([pictures, network.word(words).to(seen.dtype)], dim=2))
    logits = network(x).unflatten(1, (blocks, BLOCK))
    return logits[:, :, ASKED - 1 : ASKED + 1]


@torch.no_grad()
def accuracies(
    network: Network, seen: Tensor, maker: EpisodeMaker, batches: int = 8
) -> dict[str, float]:
    """How often both words are right, by what the earlier blocks had told."""
    right, plain, word, manner = [], [], [], []
    for _ in range(batches):
        episodes = maker.make(256)
        logits = logits_of(network, seen[episodes.picture.flatten()], episodes)
        right.append((logits.argmax(-1) == episodes.answer).all(-1))
        plain.append(episodes.plain)
        word.append(episodes.word_told)
        manner.append(episodes.manner_told)
    hit, is_plain = torch.cat(right).float(), torch.cat(plain)
    has_word, has_manner = torch.cat(word), torch.cat(manner)
    parts = {
        "both": ~is_plain & has_word & has_manner,
        "word_only": ~is_plain & has_word & ~has_manner,
        "manner_only": ~is_plain & ~has_word & has_manner,
        "neither": ~is_plain & ~has_word & ~has_manner,
        "plain_first": is_plain & (torch.arange(hit.shape[1], device=hit.device) == 0),
        "plain_later": is_plain & (torch.arange(hit.shape[1], device=hit.device) > 0),
    }
    return {name: hit[part].mean().item() for name, part in parts.items()}


class Stepper:
    """One update after the other. On a GPU an update is one recorded graph, played again and again:
    launching its kernels one by one takes ten times as long."""

    def __init__(
        self,
        loss: Callable[[], Tensor],
        parameters: list[torch.nn.Parameter],
        rng: torch.Generator,
        config: Fit,
    ) -> None:
        self.loss = loss
        self.parameters = parameters
        self.on_gpu = rng.device.type == "cuda"
        self.optimiser = torch.optim.AdamW(
            parameters,
            lr=torch.tensor(config.lr, device=rng.device) if self.on_gpu else config.lr,
            betas=(0.9, 0.98),
            weight_decay=config.weight_decay,
            fused=self.on_gpu,
            capturable=self.on_gpu,
        )
        self.last = torch.zeros((), device=rng.device)
        self.graph = self.record(rng) if self.on_gpu else None

    def update(self) -> None:
        """Step down the gradient of the loss."""
        with torch.autocast("cuda", torch.bfloat16, enabled=self.on_gpu, cache_enabled=False):
            loss = self.loss()
        self.optimiser.zero_grad(set_to_none=False)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.parameters, 1.0)
        self.optimiser.step()
        self.last.copy_(loss.detach())

    def record(self, rng: torch.Generator) -> torch.cuda.CUDAGraph:
        """An update as a graph, after three that warm up at a rate of almost nothing."""
        self.set_rate(1e-9)
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.update()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        graph.register_generator_state(rng)
        with torch.cuda.graph(graph):
            self.update()
        return graph

    def set_rate(self, rate: float) -> None:
        """The learning rate of the next update."""
        for group in self.optimiser.param_groups:
            if self.on_gpu:
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate

    def run(self, steps: int, lr: float, hear: Callable[[int], None]) -> None:
        """So many updates; the rate rises for 500 of them and then falls as a cosine."""
        for step in range(steps):
            falling = 0.5 * (1 + math.cos(math.pi * step / steps))
            self.set_rate(lr * min(1.0, (step + 1) / 500) * falling)
            if self.graph is None:
                self.update()
            else:
                self.graph.replay()
            hear(step + 1)


class Eyes(torch.nn.Module):
    """What picture vectors must tell by themselves: every value at every place, village and frame.

    Only for training. Without it the network learns to see only through its answers: after 5,000
    updates half of the plain questions were still wrong, with it none after 900.
    """

    def __init__(self, width: int, seed: int) -> None:
        super().__init__()
        self.parts = [len(values) for values in ATTRIBUTES.values()]
        outputs = len(PLACES) * len(VALUES) + VILLAGES + FRAMES + 1
        self.read = torch.nn.Linear(PICTURE_VECTORS * width, outputs)
        rng = torch_generator("fit", "eyes", seed)
        torch.nn.init.normal_(self.read.weight, std=0.05, generator=rng)
        torch.nn.init.zeros_(self.read.bias)

    def loss(self, seen: Tensor, bank: Bank, picture: Tensor) -> Tensor:
        """The mean cross-entropy of all that is there to be seen."""
        logits = self.read(seen.flatten(1)).float()
        objects, village, frame = logits.split(
            [len(PLACES) * len(VALUES), VILLAGES, FRAMES + 1], dim=1
        )
        kind = picture // bank.each
        total = F.cross_entropy(village, kind // (FRAMES + 1))
        total = total + F.cross_entropy(frame, kind % (FRAMES + 1))
        present = bank.present[picture].float().flatten()
        by_place = objects.unflatten(1, (len(PLACES), len(VALUES))).split(self.parts, dim=-1)
        for attribute, part in enumerate(by_place):
            value = bank.values[picture, :, attribute].flatten()
            wrong = F.cross_entropy(part.flatten(0, 1), value, reduction="none")
            total = total + (wrong * present).sum() / present.sum()
        return total / (len(self.parts) + 2)


def learn_to_see(network: Network, bank: Bank, config: Fit, device: str) -> float:
    """First stage: pictures alone. The last loss."""
    eyes = Eyes(config.size.width, config.seed).to(device)
    rng = torch_generator("fit", "pictures", config.seed, device=device)

    def loss() -> Tensor:
        picture = torch.randint(
            0, len(bank.pictures), (config.batch * 4,), generator=rng, device=device
        )
        return eyes.loss(network.see(bank.pictures[picture]), bank, picture)

    stepper = Stepper(loss, [*network.eye_parameters(), *eyes.parameters()], rng, config)
    stepper.run(config.seeing_steps, config.lr, lambda step: None)
    return stepper.last.item()


@torch.no_grad()
def all_seen(network: Network, bank: Bank) -> Tensor:
    """The vectors of every picture in the bank."""
    return torch.cat([network.see(part) for part in bank.pictures.split(2_000)])


def fit(
    config: Fit,
    *,
    device: str = "cpu",
    report: Callable[[dict[str, float]], None] | None = None,
    every: int = 1_000,
) -> Network:
    """Train a network: first to see, then, with its eyes fixed, to learn from earlier blocks.

    `report` hears of the loss and the accuracies now and then.
    """
    network = Network(config.size)
    network.draw_weights(torch_generator("fit", "weights", config.seed))
    network.to(device)
    bank = make_bank(config.pictures, config.seed, device)
    seeing = learn_to_see(network, bank, config, device)
    seen = all_seen(network, bank)
    maker = EpisodeMaker(bank, device, config.seed)
    judge = EpisodeMaker(bank, device, config.seed + 1)

    def loss() -> Tensor:
        episodes = maker.make(config.batch)
        logits = logits_of(network, seen[episodes.picture.flatten()], episodes)
        return F.cross_entropy(logits.float().flatten(0, 2), episodes.answer.flatten())

    stepper = Stepper(loss, network.reading_parameters(), maker.rng, config)
    began = time.monotonic()

    def hear(step: int) -> None:
        if report is not None and (step % every == 0 or step == config.steps):
            report(
                {
                    "step": step,
                    "loss": stepper.last.item(),
                    "seeing_loss": seeing,
                    "seconds": time.monotonic() - began,
                    **accuracies(network, seen, judge),
                }
            )

    stepper.run(config.steps, config.lr, hear)
    return network.cpu()
