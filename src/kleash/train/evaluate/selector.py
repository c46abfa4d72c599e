"""Measures selectors and what needs no training: choose greedily, have it answered, score it.

Of every checkpoint of a run also what it would choose on a fixed probe set. The histories are the
base's own greedy choices, so that all arms of a seed are asked the same: after these choices, how
likely is each candidate? Two such files give the KL between two arms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from kleash.algo import guard
from kleash.errors import ConfigError
from kleash.models.selector import STOP, Pointers, Selector
from kleash.runs.run import Run, ScoreKey
from kleash.seeds import generator
from kleash.tasks.data import Dataset
from kleash.tasks.demos.lemmas import lemmatised_score
from kleash.tasks.demos.propose import Ask, Pointer, Pooled, Proposing, gain_beams, similar
from kleash.train.rollout import load_policy, one_way
from kleash.train.rollout.selector import SelectorWorld

AT_ONCE = 256  # items measured between two writes
BASELINE = "baseline:"
PROBE_QUERIES = 64


# --- baselines: pointers chosen without learning, on the same items and pools

# Pointers for every query: of (queries and pools, the data set, shots, how to ask).
Baseline = Callable[[Pooled, Dataset, int, Ask], list[Pointer] | None]


def zero_shot(pooled: Pooled, data: Dataset, shots: int, ask: Ask) -> list[Pointer] | None:
    """No demonstrations at all, whatever the shots."""
    return [() for _ in range(len(pooled))]


def first_k(pooled: Pooled, data: Dataset, shots: int, ask: Ask) -> list[Pointer] | None:
    """The first candidates of the pool, whose order says nothing: a constant choice."""
    return [tuple(range(shots)) for _ in range(len(pooled))]


def random(draw: int) -> Baseline:
    """Demonstrations drawn from the pool; each draw is a baseline of its own."""

    def choose(pooled: Pooled, data: Dataset, shots: int, ask: Ask) -> list[Pointer] | None:
        size = pooled.pools.shape[1]
        return [
            tuple(
                int(place)
                for place in generator("baseline", "random", draw, item.id).permutation(size)[
                    :shots
                ]
            )
            for item in pooled.queries
        ]

    return choose


def most_similar(kind: str) -> Baseline:
    """The most similar demonstrations by `image`, `text` or `both`, the nearest one last.

    Nothing where the encoder sees no images or reads no text.
    """

    def choose(pooled: Pooled, data: Dataset, shots: int, ask: Ask) -> list[Pointer] | None:
        if kind not in pooled.query_rows.kinds:
            return None
        return [similar(pooled, query, kind, shots) for query in range(len(pooled))]

    return choose


def planted(pooled: Pooled, data: Dataset, shots: int, ask: Ask) -> list[Pointer] | None:
    """What the generator of the data knows to be best; nothing where no generator knows."""
    found = [data.planted(pooled.queries[i], pooled.pool(i), shots) for i in range(len(pooled))]
    return [pointer for pointer in found if pointer is not None] if all(found) else None


def best_greedy(pooled: Pooled, data: Dataset, shots: int, ask: Ask) -> list[Pointer] | None:
    """Forward search over the whole pool by the true answer's probability.

    Optimistic: it looks at the truth, and the best of many lucky answers is no oracle. It asks for
    K answers per step and query, so it is measured on few items.
    """
    width = Proposing(beams=1, width=pooled.pools.shape[1], random=0, retrieval=0)
    beams = gain_beams(width, pooled, shots, 0, ask)
    return [pointers[0] if pointers else tuple(np.arange(shots).tolist()) for pointers in beams]


BASELINES: dict[str, Baseline] = {
    "zero-shot": zero_shot,
    **{f"random-{draw}": random(draw) for draw in range(5)},
    **{f"similar-{kind}": most_similar(kind) for kind in ("image", "text", "both")},
    "first-k": first_k,
    "planted": planted,
}
"""Cheap ones, measured on every item. `best_greedy` is measured on request."""


def baseline_names(*, greedy: bool) -> list[str]:
    """The baselines as they are called among the scores."""
    return [BASELINE + name for name in (*BASELINES, *(["best-greedy"] if greedy else []))]


def baseline(name: str) -> Baseline:
    """The baseline that is called so among the scores."""
    known = BASELINES | {"best-greedy": best_greedy}
    plain = name.removeprefix(BASELINE)
    if plain not in known:
        raise ConfigError(f"no baseline {plain!r}: there is {', '.join(known)}")
    return known[plain]


def measured(
    run: Run, world: SelectorWorld, name: str, split: str, cells: Mapping[int, Sequence[int]]
) -> Iterator[list[dict[str, Any]]]:
    """The lines of one checkpoint or baseline, some at a time: places by number of shots.

    A policy chooses one after the other, so its choices for few shots begin those for many.
    """
    weights, longest = "", {}
    if not name.startswith(BASELINE):
        most = max(cells)
        policy, weights = loaded(run, world, name, most)
        every = sorted({place for places in cells.values() for place in places})
        longest = greedy(policy, world, split, every, most)
    for shots, places in cells.items():
        if weights:
            pointers = {place: world.in_order(longest[place][:shots]) for place in places}
        else:
            some = world.pooled(split).take(max(places) + 1)
            chosen = baseline(name)(some, world.data, shots, world.ask)
            if chosen is None:
                return
            pointers = dict(enumerate(chosen))
        key = ScoreKey(name, shots, split, "")
        for start in range(0, len(places), AT_ONCE):
            asked = [(place, pointers[place]) for place in places[start : start + AT_ONCE]]
            yield lines(world, key, asked, weights)


def lines(
    world: SelectorWorld, key: ScoreKey, asked: Sequence[tuple[int, Pointer]], weights: str
) -> list[dict[str, Any]]:
    """One line for each item: the pointer behind it, the answer, the score or the error."""
    pooled = world.pooled(key.split)
    prompts = [
        pooled.prompt(place, [at for at in pointer if at != STOP]) for place, pointer in asked
    ]
    made = []
    for prompt, (asked_as, fact) in zip(prompts, world.ask.keyed_facts(prompts), strict=True):
        line: dict[str, Any] = {
            "checkpoint": key.checkpoint,
            "shots": key.shots,
            "split": key.split,
            "item": prompt.query.id,
            "pointer": [item.id for item in prompt.demonstrations],
            "prompt": asked_as,
            "weights": weights,
        }
        if fact.text is None:
            made.append(line | {"error": fact.error})
        else:
            score = world.score(fact.text, prompt.query)
            line |= {"answer": fact.text, "score": score, "truth_logp": fact.truth_logp}
            if getattr(world.data, "lemmatised", False):
                line["lemmatised"] = lemmatised_score(fact.text, prompt.query)
            made.append(line)
    return made


def loaded(run: Run, world: SelectorWorld, name: str, shots: int) -> tuple[Selector, str]:
    """The policy of a checkpoint, each of its tensors proven to matter; the hash of its weights."""
    state = run.state(name)
    maker, size = world.recipe.pool.maker, world.recipe.pool.size
    guard.pool_fits(size, shots, made_by=maker, trained_with=state["pool"])
    policy: Selector = load_policy(run, world, name)
    queries = world.queries("validation").take(range(4))
    some = max(2, min(shots, world.recipe.shots))
    if policy.towers is not None:  # hundreds of tensors, each with a pass through the towers
        queries = queries.take(range(2)).few(2 * some)
    chosen, _ = policy.choose(queries, some)
    guard.every_tensor_matters(policy, lambda: policy.judge(chosen).logp)
    return policy, state["weights_hash"]


@torch.no_grad()
def greedy(
    policy: Selector, world: SelectorWorld, split: str, places: Sequence[int], shots: int
) -> dict[int, Pointer]:
    """The likeliest choice at every step, for each place.

    Always the same queries together: a choice does not depend on what else is measured.
    """
    chosen: dict[int, Pointer] = {}
    queries = policy.project(world.queries(split))
    for block in sorted({place // AT_ONCE for place in places}):
        some = range(block * AT_ONCE, min((block + 1) * AT_ONCE, len(queries)))
        pointers, _ = policy.choose(queries.take(some), shots)
        chosen |= dict(zip(some, pointers.lists(), strict=True))
    return {place: chosen[place] for place in places}


# --- what a policy would choose on a fixed probe set


def choices_file(run: Path, checkpoint: str) -> Path:
    """Where the distributions of a checkpoint lie."""
    return run / "choices" / f"{checkpoint}.npy"


@one_way()
@torch.no_grad()
def keep_choices(run: Run, world: SelectorWorld, names: Sequence[str], base: Selector) -> None:
    """Write the log-probabilities [query, step, candidate] of checkpoints that have none yet."""
    missing = [name for name in names if not choices_file(run.path, name).is_file()]
    if not missing:
        return
    whole = world.queries("validation")
    queries = whole.take(range(min(PROBE_QUERIES, len(whole))))
    along, _ = base.choose(queries, world.recipe.shots)
    for name in missing:
        policy = load_policy(run, world, name)
        _write(choices_file(run.path, name), distributions(policy, along))


def distributions(policy: Selector, along: Pointers) -> NDArray[np.float32]:
    """Log-probabilities of every candidate at every step; −inf where it cannot be chosen."""
    logp_NA = policy.logits(along).log_softmax(-1)
    made_PT = along.made_PT
    whole = logp_NA.new_full((*made_PT.shape, logp_NA.shape[-1]), -torch.inf)
    whole[made_PT] = logp_NA
    found: NDArray[np.float32] = whole.float().cpu().numpy()
    return found


def _write(path: Path, values: NDArray[np.float32]) -> None:
    path.parent.mkdir(exist_ok=True)
    passing = path.parent.with_name(f".{path.name}.tmp")  # whoever locks the run next clears it
    with passing.open("wb") as handle:
        np.save(handle, values)
    passing.replace(path)
