"""Where a selector acts: data, pools and the one who answers; groups of rewarded pointers.

A world is the data, the answerer behind its ledger, and the pools, made the same way for training
and evaluation. Groups come online (sample, answer, reward) or offline (the proposals, some of them
a trained selector's). The file is long because everything a selector is asked stands in one world.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import torch

from kleash.algo import guard
from kleash.algo.policy import Noise, fingerprint, keyed_noise
from kleash.errors import ConfigError, DataError
from kleash.models.answer import Answerer, answerer
from kleash.models.answer.asking import Asker
from kleash.models.answer.serving import Model, Served
from kleash.models.embed import KEPT_ROWS, Encoder, encoder
from kleash.models.embed.towers import TwoTowers
from kleash.models.selector import STOP, Pointers, Queries, Selector
from kleash.models.selector.towers import AdaptedTowers
from kleash.runs.ledger import Ledger
from kleash.seeds import generator, torch_generator
from kleash.tasks.data import Dataset, dataset
from kleash.tasks.demos.embeddings import Embeddings
from kleash.tasks.demos.pool import make_pools
from kleash.tasks.demos.presets import Blocks
from kleash.tasks.demos.propose import Pointer, Pooled, Proposal, Proposing, propose, similar
from kleash.tasks.demos.retrieval import nearness
from kleash.tasks.demos.reward import OVER, REWARDS, facts
from kleash.tasks.demos.score import scorer
from kleash.train.recipe import SelectorRecipe
from kleash.train.rollout import Groups, load_checkpoint
from kleash.train.rollout.adopted import AdoptedFacts
from kleash.types import Answer, Item

Kept = TypeVar("Kept")

SPLITS = ("train", "validation", "test")
# What two recipes have in common if they have one world.
SHARED = (
    *("data", "data_seed", "data_options", "answerer", "answerer_options"),
    *("encoder", "encoder_options"),
)
BROKEN = "ask for more proposals, or look at the answerer"


class SelectorWorld:
    """The data, the pools and the one who answers, for a recipe."""

    def __init__(
        self,
        recipe: SelectorRecipe,
        ledger: Ledger,
        *,
        device: str = "cpu",
        served: str = "",
        progress: Callable[[int], None] = lambda count: None,
    ) -> None:
        self.recipe = recipe
        self.ledger = ledger
        self.device = device
        self.served = served  # the folder of those who hold the model, if others do
        self.data: Dataset = dataset(recipe.data, recipe.data_seed, recipe.data_options)
        model = Model(
            recipe.answerer,
            recipe.data,
            recipe.data_seed,
            recipe.answerer_options,
            recipe.data_options,
        )
        self.answerer: Answerer = (
            Served(Path(served), model)
            if served
            else answerer(recipe.answerer, self.data.image, options=recipe.answerer_options)
        )
        self.encoder: Encoder = encoder(
            recipe.encoder,
            self.data.image,
            lambda: self.answerer,
            device=device,
            options=recipe.encoder_options,
            kept=ledger.path.with_name(KEPT_ROWS),
        )
        self.score = scorer(self.data)
        self.ask = Asker(self.answerer, ledger, self.data.image, progress)
        self._kept: dict[tuple[object, ...], Any] = {}

    def with_recipe(self, recipe: SelectorRecipe) -> SelectorWorld:
        """The world of another recipe; what both have in common is made once and shared."""
        if any(getattr(recipe, key) != getattr(self.recipe, key) for key in SHARED):
            return SelectorWorld(
                recipe,
                self.ledger,
                device=self.device,
                served=self.served,
                progress=self.progress,
            )
        other = copy.copy(self)
        other.recipe = recipe
        return other

    @property
    def progress(self) -> Callable[[int], None]:
        """Who hears of every answer."""
        return self.ask.progress

    @progress.setter
    def progress(self, hear: Callable[[int], None]) -> None:
        self.ask.progress = hear

    @property
    def content(self) -> str:
        """The hash of the data."""
        return self.data.content

    def by_content(self) -> dict[str, Any]:
        """The answerer and the encoder as what they are, not where they lie on a disk."""
        options = ("data_options", "answerer_options", "encoder_options")
        given: dict[str, Any] = {key: None for key in options if getattr(self.recipe, key)}
        if self.recipe.encoder != "answerer":
            given["encoder"] = self.encoder.identity
        proposed: dict[str, Any] = {}
        if self.recipe.propose.facts:
            proposed["facts"] = self.adopted.data.content
        if self.recipe.propose.policy:
            proposer = selector_at(self.recipe.propose.policy, self.width)
            proposed["policy"] = fingerprint(proposer.state_dict())
        if proposed:
            given["propose"] = proposed
        return given | {"answerer": self.answerer.identity}

    def facts(self) -> dict[str, Any]:
        """How many items there are, whose answers, which pools."""
        told: dict[str, Any] = {
            "counts": self.counts(),
            "seeds": {"run": self.recipe.seed, "data": self.recipe.data_seed},
            "answerer": self.answerer.identity,
            "pool": self.recipe.pool.maker,
        }
        if self.recipe.encoder != "answerer":
            told["encoder"] = self.encoder.identity
        if excluded := getattr(self.data, "excluded", None):
            told["excluded"] = dict(excluded)
        if self.recipe.propose.facts:
            told["facts"] = self.adopted.counts()
        return told

    def counts(self) -> dict[str, int]:
        """How many items each part of the data has, and how many training queries are used."""
        splits = {split: len(self.data.queries(split)) for split in SPLITS}
        used = len(self.pooled("train"))
        return {"demonstrations": len(self.data.demonstrations), **splits, "used": used}

    def state(self) -> dict[str, Any]:
        """What a checkpoint tells of how it was trained."""
        return {"shots": self.recipe.shots, "pool": self.recipe.pool.maker}

    def empty_policy(self) -> Selector:
        """A selector to load weights into, strictly: its own mean nothing."""
        blocks = self.recipe.blocks()
        return Selector(blocks, self.width, None, self.towers(blocks))

    def fresh_policy(self) -> Selector:
        """A selector with weights drawn by the recipe's seed."""
        drawn, blocks = torch_generator("weights", self.recipe.seed), self.recipe.blocks()
        return Selector(blocks, self.width, drawn, self.towers(blocks))

    def towers(self, blocks: Blocks) -> AdaptedTowers | None:
        """The encoder's towers with adapters of their own, for blocks that train such."""
        if blocks.towers == "fixed":
            return None
        seeing = getattr(self.encoder, "towers", None)
        if not isinstance(seeing, TwoTowers):
            raise ConfigError(
                f"encoder {self.recipe.encoder!r} has no two towers to put adapters on: set"
                " encoder=clip or siglip, or leave +lora out of selector"
            )
        made = self.keep(
            lambda: AdaptedTowers(seeing, self.data.image, blocks.lora_rank),
            *("towers", blocks.lora_rank),
        )
        return copy.deepcopy(made)

    def keep(self, make: Callable[[], Kept], *name: object) -> Kept:
        """What was made before under this name; the name holds all that it depends on."""
        if name not in self._kept:
            self._kept[name] = make()
        found: Kept = self._kept[name]
        return found

    def split_name(self, split: str) -> tuple[object, ...]:
        """What the queries of a split and their pools depend on."""
        if split != "train":
            return (split, self.recipe.pool, None)
        return (split, self.recipe.pool, self.recipe.queries, self.recipe.propose.facts)

    @property
    def adopted(self) -> AdoptedFacts:
        """Facts from a file, in the place of proposals."""
        recipe = self.recipe
        return self.keep(
            lambda: AdoptedFacts(
                Path(recipe.propose.facts), self.data, size=recipe.pool.size, most=recipe.queries
            ),
            *("adopted", recipe.propose.facts, recipe.pool.size, recipe.queries),
        )

    @property
    def demonstration_rows(self) -> Embeddings:
        """The demonstrations as vectors."""
        return self.keep(lambda: self.encoder.embed(self.data.demonstrations), "demonstration rows")

    def item_ids(self, split: str) -> list[str]:
        """The queries of a split by their names, in the order they are measured."""
        return [item.id for item in self.pooled(split).queries]

    def pooled(self, split: str) -> Pooled:
        """The queries of a split in a seeded order, with their pools."""
        return self.keep(lambda: self.make_pooled(split), "pooled", *self.split_name(split))

    def make_pooled(self, split: str) -> Pooled:
        """The queries of a split with their pools, made anew; or those of a file of facts."""
        if split == "train" and self.recipe.propose.facts:
            asked = self.adopted
            rows = self.encoder.embed(asked.items)
            return Pooled(
                asked.items, rows, self.data.demonstrations, self.demonstration_rows, asked.pools
            )
        items = drawn_order(self.data.queries(split), split, self.data.name)
        if split == "train":
            items = items[: self.recipe.queries]
        rows = self.encoder.embed(items)
        demonstrations = self.data.demonstrations
        pools = make_pools(
            self.recipe.pool,
            self.recipe.data_seed,
            items,
            rows,
            demonstrations,
            self.demonstration_rows,
        )
        return Pooled(items, rows, demonstrations, self.demonstration_rows, pools)

    def queries(self, split: str) -> Queries:
        """The same queries and pools as a selector sees them."""
        name = ("queries", self.recipe.blocks().retrieval, *self.split_name(split))
        return self.keep(lambda: self.make_queries(split), *name)

    def make_queries(self, split: str) -> Queries:
        """The queries of a split and their pools as tensors, with what retrieval makes of them."""
        pooled, retrieval = self.pooled(split), self.recipe.blocks().retrieval
        near = None if retrieval == "off" else torch.from_numpy(nearness(pooled)).to(self.device)
        rows = torch.from_numpy(self.demonstration_rows.part("both"))
        return Queries(
            tasks=tuple(item.id for item in pooled.queries),
            query_BD=torch.from_numpy(pooled.query_rows.part("both")).to(self.device),
            rows_RD=self.keep(lambda: rows.to(self.device), "demonstrations on the device"),
            row_BK=torch.from_numpy(pooled.pools).to(self.device),
            mask_BK=torch.ones(pooled.pools.shape, dtype=torch.bool, device=self.device),
            asked=tuple(pooled.queries),
            shown=self.data.demonstrations,
            near_BKE=near,
        )

    @property
    def width(self) -> int:
        """How wide an embedding of image and question is."""
        return self.keep(lambda: int(self.demonstration_rows.part("both").shape[1]), "width")

    def rewards(
        self, split: str, asked: Sequence[tuple[int, Pointer]]
    ) -> tuple[list[float | None], list[Answer | None]]:
        """The reward of each (query, pointer), and the answer; None where the answer broke."""
        shown = [(query, self.in_order(pointer)) for query, pointer in asked]
        rewards, answers = self.plain_rewards(split, shown)
        if self.recipe.reward.endswith(OVER):
            pooled = self.pooled(split)
            near = [(query, similar(pooled, query, "both", len(at))) for query, at in shown]
            pairs = zip(rewards, self.plain_rewards(split, near)[0], strict=True)
            rewards = [None if a is None or b is None else max(0.0, a - b) for a, b in pairs]
        return rewards, answers

    def in_order(self, pointer: Pointer) -> Pointer:
        """What is chosen as a prompt shows it; or, of what a prompt shows, the choices.

        A selector that begins as retrieval chooses the nearest first, and retrieval has the nearest
        next to the query.
        """
        return prompt_order(self.recipe.blocks(), pointer)

    def plain_rewards(
        self, split: str, asked: Sequence[tuple[int, Pointer]]
    ) -> tuple[list[float | None], list[Answer | None]]:
        """`rewards`, before anything is taken off."""
        pooled, reward = self.pooled(split), REWARDS[self.recipe.reward.removesuffix(OVER)]
        prompts = [pooled.prompt(query, pointer) for query, pointer in asked]
        answers = self.ask(prompts)
        rewarded = [
            None if answer is None else reward(facts(answer, prompt.query, self.score))
            for prompt, answer in zip(prompts, answers, strict=True)
        ]
        return rewarded, list(answers)

    def proposals(self, split: str, count: int) -> list[list[Proposal]]:
        """Proposed pointers for the first so many queries of a split."""
        return self.proposals_for(split, range(count))

    def proposals_for(self, split: str, places: Sequence[int]) -> list[list[Proposal]]:
        """Proposed pointers for some queries of a split."""
        recipe = self.recipe
        asked, seed = recipe.propose, self.proposal_seed(split)
        chosen = None
        if asked.policy and split == "train":
            policy = selector_at(asked.policy, self.width).to(self.device)
            some = self.queries(split).take(list(places))
            chosen = chosen_by(policy, some, asked, recipe.shots, seed)
        whole = self.pooled(split)
        return propose(
            asked,
            whole.some(places),
            recipe.shots,
            seed,
            self.ask,
            chosen=chosen,
            limit=asked.limit(len(whole)),
        )

    def proposal_seed(self, split: str) -> int:
        """What names the proposals: a run's seed in training; validation is one for all runs."""
        return self.recipe.seed if split == "train" else self.recipe.data_seed


def drawn_order(items: Sequence[Item], split: str, data: str) -> list[Item]:
    """The items of a split in an order drawn once: the first N are a random N, and nested."""
    order = generator("items", data, split).permutation(len(items))
    return [items[place] for place in order]


def make_groups(
    queries: Queries,
    members: Sequence[Sequence[tuple[Pointer, float | None, tuple[float, ...] | None]]],
) -> Groups:
    """Groups from (pointer, reward, sampled logp) of each query."""
    whole = [[member for member in group if member[1] is not None] for group in members]
    kept = [place for place, group in enumerate(whole) if len(group) >= 2]
    if not kept:
        raise DataError(f"none of {len(members)} groups has two answered pointers: {BROKEN}")
    pointers = Pointers.of(
        queries.take(kept), [[pointer for pointer, _, _ in whole[place]] for place in kept]
    )
    flat = [member for place in kept for member in whole[place]]
    sampled = [value for _, _, logp in flat if logp is not None for value in logp]
    device = queries.mask_BK.device
    return Groups(
        batch=pointers,
        episode=pointers.episode,
        reward=torch.tensor([reward for _, reward, _ in flat], dtype=torch.float64, device=device),
        group=pointers.query_P,
        logp=torch.tensor(sampled, device=device) if sampled else None,
        broken=sum(len(group) for group in members) - sum(len(group) for group in whole),
        dropped=len(members) - len(kept),
    )


def sample_groups(
    policy: Selector,
    world: SelectorWorld,
    split: str,
    places: Sequence[int],
    draw: tuple[object, ...],
) -> Groups:
    """For each query a group of sampled, answered and rewarded pointers.

    Noise is keyed by seed, task, rollout and step: arms that share a seed share it.
    """
    recipe = world.recipe
    queries = world.queries(split).take(places)
    query_P = torch.arange(len(places), device=queries.mask_BK.device).repeat_interleave(
        recipe.group
    )
    keys = [
        (recipe.seed, *draw, task, rollout)
        for task in queries.tasks
        for rollout in range(recipe.group)
    ]
    chosen, logp_PT = policy.choose(queries, recipe.shots, keyed_noise(keys), query_P=query_P)
    asked = [
        (places[query], pointer)
        for query, pointer in zip(query_P.tolist(), chosen.lists(), strict=True)
    ]
    rewards, _ = world.rewards(split, asked)
    members = [
        (pointer, reward, tuple(logp[: len(pointer)]))
        for (_, pointer), reward, logp in zip(asked, rewards, logp_PT.tolist(), strict=True)
    ]
    size = recipe.group
    return make_groups(queries, [members[i : i + size] for i in range(0, len(members), size)])


def prompt_order(blocks: Blocks, pointer: Pointer) -> Pointer:
    """The choices of such a selector as a prompt shows them, without the stop."""
    chosen = tuple(at for at in pointer if at != STOP)
    return chosen if blocks.retrieval == "off" else chosen[::-1]


# --- proposals of a trained selector


def selector_at(path: str, width: int) -> Selector:
    """The selector of a checkpoint, loaded strictly for embeddings of this width."""
    kept, recipe = load_checkpoint(Path(path))
    if not isinstance(recipe, SelectorRecipe):
        raise ConfigError(f"propose.policy {path!r} is an agent's checkpoint: give a selector's")
    if recipe.blocks().towers != "fixed":
        raise ConfigError(
            f"propose.policy {path!r} chooses by towers of its own: give one that was trained"
            " without +lora"
        )
    policy = Selector(recipe.blocks(), width, None)
    guard.load_strictly(policy, kept.weights, source=path)
    return policy


@torch.no_grad()
def chosen_by(
    policy: Selector, queries: Queries, proposing: Proposing, shots: int, seed: int
) -> list[list[Proposal]]:
    """What the selector proposes for each query; pointers that stop early are left out."""
    found: list[list[Proposal]] = [[] for _ in range(len(queries))]
    projected = policy.project(queries)
    if proposing.policy_beams:
        pointers, _ = policy.beams(projected, shots, proposing.policy_beams)
        for query, pointer in zip(pointers.query_P.tolist(), pointers.lists(), strict=True):
            if STOP not in pointer:
                found[query].append(Proposal(prompt_order(policy.blocks, pointer), "policy"))
    for heat in proposing.temperatures if proposing.samples else ():
        query_P = torch.arange(len(queries), device=queries.mask_BK.device)
        query_P = query_P.repeat_interleave(proposing.samples)
        keys = [
            (seed, "propose", "sample", heat, task, draw)
            for task in queries.tasks
            for draw in range(proposing.samples)
        ]
        pointers, _ = policy.choose(
            projected, shots, hotter(keyed_noise(keys), heat), query_P=query_P
        )
        for query, pointer in zip(query_P.tolist(), pointers.lists(), strict=True):
            if STOP not in pointer:
                found[query].append(Proposal(prompt_order(policy.blocks, pointer), "sample"))
    return found


def hotter(noise: Noise, heat: float) -> Noise:
    """Noise with which the largest is a draw at this temperature (the Gumbel trick, scaled)."""
    return lambda index, step, size: heat * noise(index, step, size)
