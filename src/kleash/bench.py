"""How fast training is, beside the plain way of doing the same: `kleash bench`.

Both ways are timed in turns on one thread, and must give the same gradient before they are timed.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kleash.demos.presets import preset
from kleash.seeds import torch_generator

if TYPE_CHECKING:
    from torch import Tensor

    from kleash.selector import Queries, Selector

WIDTH, POOL, GROUP, SHOTS = 512, 64, 15, 2
PRODUCTS = ("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm")
GRADIENT_GAP = 1e-4  # float32, summed in another order


@dataclass(frozen=True)
class Work:
    """Queries with their groups, as a batch of the offline GRPO phase has them."""

    queries: Queries
    chosen_PT: Tensor
    advantage_P: Tensor
    logp_old_PT: Tensor

    def take(self, first: int, last: int) -> Work:
        """The work of some queries."""
        rows = slice(first * GROUP, last * GROUP)
        return Work(
            self.queries.take(range(first, last)),
            self.chosen_PT[rows],
            self.advantage_P[rows],
            self.logp_old_PT[rows],
        )


def made_up(queries: int, policy: Selector) -> Work:
    """Random embeddings, pointers and rewards: what they are does not matter to the clock."""
    import torch

    from kleash.grpo import standardise
    from kleash.selector import Pointers, Queries

    rng = torch_generator("bench", "work")
    pointers = queries * GROUP
    query_P = torch.arange(queries).repeat_interleave(GROUP)
    order_PK = torch.rand(pointers, POOL, generator=rng).argsort(1)
    made = Queries(
        tuple(str(i) for i in range(queries)),
        torch.randn(queries, WIDTH, generator=rng),
        torch.randn(queries, POOL, WIDTH, generator=rng),
        torch.ones(queries, POOL, dtype=torch.bool),
    )
    chosen_PT = order_PK[:, :SHOTS].contiguous()
    with torch.no_grad():
        logp = policy.judge(Pointers(made, query_P, chosen_PT)).logp
    reward = torch.rand(pointers, generator=rng)
    return Work(made, chosen_PT, standardise(reward, query_P), logp.view(-1, SHOTS))


def one_pass(policy: Selector, reference: Selector, work: Work) -> tuple[Tensor, Tensor]:
    """Log-probabilities [P,T] of policy and reference as Kleash computes them."""
    import torch

    from kleash.selector import Pointers

    query_P = torch.arange(len(work.queries)).repeat_interleave(GROUP)
    judged = policy.judge(Pointers(work.queries, query_P, work.chosen_PT), reference)
    assert judged.logp_ref is not None
    return judged.logp.view(-1, SHOTS), judged.logp_ref.view(-1, SHOTS)


def plain(policy: Selector, reference: Selector, work: Work) -> tuple[Tensor, Tensor]:
    """The same for one query, which is encoded again for each of its pointers.

    The copies go through the network side by side, which is faster than one after the other.
    """
    import torch

    with torch.no_grad():
        logp_ref_PT = plain_logp(reference, work)
    return plain_logp(policy, work), logp_ref_PT


def plain_logp(policy: Selector, work: Work) -> Tensor:
    """Preset v3 as one would write it down: a forward pass of every pointer with its own pool."""
    import torch
    import torch.nn.functional as F

    parts = policy.projections
    query_PH: Tensor = parts.input(work.queries.query_BD.expand(GROUP, -1))
    pool_PKH = parts.input(work.queries.pool_BKD.expand(GROUP, -1, -1))
    found = query_PH[:, None]
    layers: Any = policy.query_encoder.layers
    for layer in layers:
        attended, _ = layer.attention(found, pool_PKH, pool_PKH, need_weights=False)
        found = layer.norm(found + attended)
    state_PH = F.normalize(parts.query(found[:, 0]), dim=-1)
    candidates_PKH = F.normalize(parts.candidate(pool_PKH), dim=-1)
    taken_PK = torch.zeros(GROUP, POOL, dtype=torch.bool)
    logp = []
    for chosen_P in work.chosen_PT.unbind(1):
        chosen_P1 = chosen_P[:, None]
        score_PK = (candidates_PKH @ state_PH[..., None])[..., 0] / policy.blocks.temperature
        logp_PK = score_PK.masked_fill(taken_PK, -torch.inf).log_softmax(-1)
        logp.append(logp_PK.gather(1, chosen_P1))
        taken_PK = taken_PK.scatter(1, chosen_P1, True)
    return torch.cat(logp, dim=1)


Judge = Callable[["Selector", "Selector", Work], "tuple[Tensor, Tensor]"]


def loss(judge: Judge, policy: Selector, reference: Selector, work: Work) -> Tensor:
    """GRPO with k3 in the loss."""
    import torch

    from kleash.grpo import Choices, Clip, grpo_loss

    logp_PT, logp_ref_PT = judge(policy, reference, work)
    count = logp_PT.numel()
    choices = Choices(
        logp=logp_PT.flatten(),
        logp_old=work.logp_old_PT.flatten(),
        logp_ref=logp_ref_PT.flatten(),
        advantage=work.advantage_P.repeat_interleave(SHOTS),
        weight=torch.full((count,), 1 / count),
        episode=torch.arange(count // SHOTS).repeat_interleave(SHOTS),
    )
    return grpo_loss(choices, Clip(), form="k3", coefficient=0.15).total


def train(judge: Judge, work: Work, batch: int) -> Callable[[], None]:
    """A pass over the work in batches of queries, one update each."""
    import torch

    policy, reference = pair()
    adam = torch.optim.AdamW(policy.parameters(), lr=5e-6, fused=True)
    parts = [work.take(i, i + batch) for i in range(0, len(work.queries), batch)]

    def run() -> None:
        for part in parts:
            adam.zero_grad()
            torch.autograd.backward(loss(judge, policy, reference, part))
            torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
            adam.step()

    return run


def pair() -> tuple[Selector, Selector]:
    """A policy and a reference a little away from it, so that KL has a gradient."""
    import torch

    from kleash.policy import frozen
    from kleash.selector import Selector

    policy = Selector(preset("v3"), WIDTH, torch_generator("bench", "policy"))
    reference = frozen(policy)
    rng = torch_generator("bench", "reference")
    with torch.no_grad():
        for weight in reference.parameters():
            weight.add_(torch.randn(weight.shape, generator=rng), alpha=0.01)
    assert isinstance(reference, Selector)
    return policy, reference


def gradient_gap(work: Work) -> float:
    """The largest difference of the two ways' gradients, as a fraction of the largest entry."""
    import torch

    gradients = []
    for judge in (one_pass, plain):
        policy, reference = pair()
        torch.autograd.backward(loss(judge, policy, reference, work))
        grads = [p.grad.flatten() for p in policy.parameters() if p.grad is not None]
        gradients.append(torch.cat(grads))
    ours, theirs = gradients
    return ((ours - theirs).abs().max() / theirs.abs().max()).item()


def product_share(run: Callable[[], None]) -> float:
    """The fraction of the time of all operations that is spent in matrix products."""
    from torch.autograd.profiler import profile

    with profile(use_kineto=False) as found:
        run()
    spent = {event.key: event.self_cpu_time_total for event in found.key_averages()}
    products = sum(
        seconds
        for name, seconds in spent.items()
        if name in PRODUCTS or "scaled_dot_product" in name
    )
    return float(products / sum(spent.values()))


@contextmanager
def one_thread() -> Iterator[None]:
    """Torch on one thread, and then as it was."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def seconds_per_query(
    ways: dict[str, tuple[Callable[[], None], int]], rounds: int
) -> dict[str, list[float]]:
    """Every way in turns, so that a slow spell of the machine falls on all of them.

    In seconds of CPU: with one thread they are those on the clock, less what other programs took.
    """
    for run, _ in ways.values():
        run()
    spent: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, (run, queries) in ways.items():
            start = time.process_time()
            run()
            spent[name].append((time.process_time() - start) / queries)
    return spent


def selector_bench(*, queries: int = 64, plain_queries: int = 4, rounds: int = 7) -> dict[str, Any]:
    """Queries trained per second, one update per batch and one per query, beside the plain way.

    An update has the reference in it, k3 in the loss, the norm clipped, and AdamW.
    """
    with one_thread():
        work = made_up(queries, pair()[0])
        gap = gradient_gap(work.take(0, 1))
        if not gap < GRADIENT_GAP:
            raise RuntimeError(f"the two ways differ in their gradient by {gap:.3g} of its largest")
        ways = {
            "batched": (train(one_pass, work, queries), queries),
            "one_by_one": (train(one_pass, work, 1), queries),
            "plain": (train(plain, work.take(0, plain_queries), 1), plain_queries),
        }
        spent = seconds_per_query(ways, rounds)
        found: dict[str, Any] = {
            "setting": f"v3, {queries} queries, pool {POOL}, group {GROUP}, {SHOTS} shots, float32",
            "rounds": rounds,
            "gradient_gap": gap,
        }
        for name, seconds in spent.items():
            found[f"{name}_queries_per_second"] = 1 / statistics.median(seconds)
        for name in ("batched", "one_by_one"):
            ratios = [p / o for p, o in zip(spent["plain"], spent[name], strict=True)]
            found[f"{name}_ratio"] = statistics.median(ratios)
            found[f"{name}_ratio_range"] = (min(ratios), max(ratios))
            found[f"{name}_product_share"] = product_share(ways[name][0])
        return found


def answerer_bench(*, prompts: int = 640, rounds: int = 5) -> dict[str, Any]:
    """Milliseconds of one core per answer of the embedded answerer, at 1 to 4 shots."""
    from kleash.answer.embedded import Embedded
    from kleash.data.scenes import Scenes
    from kleash.types import Prompt

    scenes = Scenes()
    shown, asked = scenes.demonstrations, scenes.queries("test")
    answerer = Embedded(scenes.image)
    found: dict[str, Any] = {}
    with one_thread():
        for shots in (1, 2, 3, 4):
            batch = [
                Prompt(
                    tuple(shown[(7 * i + 13 * k) % len(shown)] for k in range(shots)),
                    asked[i % len(asked)],
                )
                for i in range(prompts)
            ]
            answerer.answer(batch)  # its pictures are looked at once
            times = []
            for _ in range(rounds):
                began = time.process_time()
                answerer.answer(batch)
                times.append(1e3 * (time.process_time() - began) / prompts)
            found[f"ms per answer, {shots} shots"] = statistics.median(times)
    found["ms per answer, mean"] = statistics.fmean(found.values())
    return found


BENCHES: dict[str, Callable[[], dict[str, Any]]] = {
    "selector": selector_bench,
    "answerer": answerer_bench,
}
