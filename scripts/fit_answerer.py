"""Trains the embedded answerer on endless made-up episodes: minutes on a GPU, a night on 8 cores.

First it learns to see, then, with its eyes fixed, to read. The episodes are in
`answerer_episodes`, the network is in `kleash.models.answer.network`; who answers with it is in
`kleash.models.answer.embedded`.

    PYTHONPATH=src python scripts/fit_answerer.py weights.safetensors --device cuda seed=1 lr=0.001

Prints JSON: how often both words are right, by what had been told.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from pydantic import Field
from safetensors.torch import save_file
from torch import Tensor
from torch.nn import functional as F

from answerer_episodes import Bank, EpisodeMaker, Episodes, make_bank
from kleash.algo.policy import fingerprint
from kleash.config import Config, build, parse_overrides
from kleash.models.answer.network import ASKED, BLOCK, PICTURE_VECTORS, Network, Size
from kleash.runs.run import write_json
from kleash.seeds import torch_generator
from kleash.tasks.data.scenes import ATTRIBUTES, FRAMES, PLACES, VALUES, VILLAGES


class Fit(Config):
    """How the answerer is trained; as it stands, how the shipped one was."""

    size: Size = Size()
    """How large the network is."""
    seed: int = 1
    """Names every draw."""
    seeing_steps: int = Field(2_000, ge=1)
    """Updates on pictures alone, four pictures for each episode of a batch."""
    steps: int = Field(31_000, ge=1)
    """Updates on episodes."""
    batch: int = Field(512, ge=1)
    """Episodes in an update."""
    lr: float = Field(1e-3, gt=0)
    """Highest learning rate of either stage."""
    weight_decay: float = Field(0.01, ge=0)
    """AdamW's."""
    pictures: int = Field(1_200, ge=1)
    """Pictures kept for each village and frame."""


def logits_of(network: Network, seen: Tensor, episodes: Episodes) -> Tensor:
    """The logits [B, N, 2, words] for both words of every answer."""
    batch, blocks = episodes.picture.shape
    words = torch.cat([episodes.question, episodes.answer], dim=-1)
    pictures = seen.unflatten(0, (batch, blocks))
    x = network.place(torch.cat([pictures, network.word(words).to(seen.dtype)], dim=2))
    logits: Tensor = network(x).unflatten(1, (blocks, BLOCK))
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
    """One update after the other.

    On a GPU an update is one recorded graph, played again and again: launching its kernels one by
    one takes ten times as long.
    """

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
        loss.backward()
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


def save(network: Network, config: Fit, scores: Mapping[str, float], path: Path) -> None:
    """Write the weights to `path`, and beside them as JSON how they were made and how they scored.

    Each file appears whole or not at all; the second names the first by hash, so that a kill
    between the two cannot pair weights with another's scores unnoticed.
    """
    tensors = {name: tensor.detach().cpu() for name, tensor in network.state_dict().items()}
    passing = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    save_file(tensors, passing)
    passing.chmod(0o644)  # safetensors lets nobody else read it
    passing.replace(path)
    write_json(
        path.with_suffix(".json"),
        {"config": config.model_dump(), "scores": dict(scores), "weights": fingerprint(tensors)},
    )


def main() -> None:
    """Train one, tell how it goes, and write it."""
    parser = argparse.ArgumentParser(description="Train the embedded answerer anew.")
    parser.add_argument("out", type=Path, help="the .safetensors file to write")
    parser.add_argument("keys", nargs="*", metavar="KEY=VALUE")
    parser.add_argument("--device", default="cpu")
    given = parser.parse_args()
    config = build(Fit, parse_overrides(given.keys))
    last: dict[str, float] = {}

    def hear(scores: dict[str, float]) -> None:
        last.update(scores)
        sys.stderr.write(f"update {scores['step']:,.0f}: both told {scores['both']:.3f}\n")

    network = fit(config, device=given.device, report=hear, every=max(1, config.steps // 50))
    save(network, config, last, given.out)
    sys.stdout.write(json.dumps(last) + "\n")


if __name__ == "__main__":
    main()
