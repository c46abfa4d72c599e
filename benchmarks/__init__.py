"""How fast Kleash is, beside the plain way of doing the same: `python -m benchmarks NAME`.

Ways are timed in turns on one thread, and must give the same numbers before they are timed. The
file is long because every bench has its plain way beside it.
"""

from __future__ import annotations

import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kleash.seeds import generator, torch_generator

if TYPE_CHECKING:
    from torch import Tensor

    from kleash.models.selector import Queries, Selector

WIDTH, POOL, GROUP, SHOTS = 512, 64, 15, 2
PRODUCTS = ("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm")
GRADIENT_GAP = 1e-4  # float32, summed in another order
DRAWS = 10_000
METRICS = ("reward", "kl", "loss", "entropy", "lr", "grad_norm")
PROBE = """
import sys
from kleash.cli import main
try:
    main()
except SystemExit as stop:
    if stop.code:
        raise
sys.exit(7 if "torch" in sys.modules else 0)
"""


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

    from kleash.algo.grpo import standardise
    from kleash.models.selector import Pointers, Queries

    rng = torch_generator("bench", "work")
    pointers = queries * GROUP
    query_P = torch.arange(queries).repeat_interleave(GROUP)
    order_PK = torch.rand(pointers, POOL, generator=rng).argsort(1)
    made = Queries.of(
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

    from kleash.models.selector import Pointers

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


Floats = NDArray[np.float64]
Ways = dict[str, tuple[Callable[[], object], int]]
Judge = Callable[["Selector", "Selector", Work], "tuple[Tensor, Tensor]"]


def loss(judge: Judge, policy: Selector, reference: Selector, work: Work) -> Tensor:
    """GRPO with k3 in the loss."""
    import torch

    from kleash.algo.grpo import Choices, Clip, grpo_loss

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

    from kleash.algo.policy import frozen
    from kleash.models.selector import Selector
    from kleash.tasks.demos.presets import preset

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
    ways: Mapping[str, tuple[Callable[[], object], int]], rounds: int
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
    from kleash.models.answer.embedded import Embedded
    from kleash.tasks.data.scenes import Scenes
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


def plain_bootstrap(ours: Floats, theirs: Floats, rng: np.random.Generator) -> tuple[float, float]:
    """The paired percentile bootstrap as one would write it down."""
    gap = ours - theirs
    means = gap[rng.integers(0, len(gap), size=(DRAWS, len(gap)))].mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def plain_csv(path: Path) -> dict[str, Floats]:
    """A table's columns: by pandas where it is installed, else by the csv module and NumPy."""
    if find_spec("pandas"):
        table = import_module("pandas").read_csv(path)
        return {name: table[name].to_numpy(dtype=np.float64) for name in table}
    with path.open(newline="", encoding="utf-8") as handle:
        header, *rows = csv.reader(handle)
    return dict(zip(header, np.array(rows, dtype=np.float64).T, strict=True))


def plain_jsonl(path: Path) -> dict[str, Floats]:
    """A log's columns, by the json module and NumPy."""
    with path.open(encoding="utf-8") as handle:
        rows = [json.loads(line) for line in handle]
    return {name: np.array([row[name] for row in rows], dtype=np.float64) for name in rows[0]}


def write_log(path: Path, rows: int) -> Path:
    """A made-up log of one run, a row for each step."""
    values = generator("bench", path.name).random((rows, len(METRICS))).round(6).tolist()
    with path.open("w", encoding="utf-8", newline="") as handle:
        if path.suffix == ".csv":
            csv.writer(handle).writerow(["step", *METRICS])
            csv.writer(handle).writerows([step, *row] for step, row in enumerate(values))
        else:
            for step, row in enumerate(values):
                named = {"step": step, **dict(zip(METRICS, row, strict=True))}
                handle.write(json.dumps(named) + "\n")
    return path


def import_bench(path: Path, plain: Callable[[Path], dict[str, Floats]]) -> Ways:
    """Our reader and the plain one on the same log, after both gave the same numbers."""
    from kleash.compare.read import read

    series = {each.metric: each.values for run in read(path).runs for each in run.series}
    columns = plain(path)
    for name in METRICS:
        if not np.array_equal(series[name], columns[name]):
            raise RuntimeError(f"the two ways read other numbers for {name} in {path.name}")
    count = len(columns["step"])
    kind = path.suffix.removeprefix(".")
    return {
        f"import {kind}": (lambda: read(path), count),
        f"plain {kind}": (lambda: plain(path), count),
    }


def pair_bench(items: int = 800) -> Ways:
    """One pair of arms: our interval and sign flips, our bootstrap weights, the plain bootstrap."""
    from kleash.stats import paired_difference, sign_flip
    from kleash.stats.intervals import percentile_interval, resample

    rng = generator("bench", "pairs")
    ours, theirs = rng.choice([0, 0.3, 0.6, 0.9, 1.0], size=(2, items))

    def drawn() -> tuple[float, float]:
        gap = ours - theirs
        found = percentile_interval(0.0, resample(items, DRAWS, rng) @ gap, n=items)
        return found.low, found.high

    def exact() -> tuple[float, float]:
        sign_flip(ours, theirs, rng)
        found = paired_difference(ours, theirs)
        return found.low, found.high

    low, high = plain_bootstrap(ours, theirs, rng)
    for way in (drawn, exact):
        off = max(abs(way()[0] - low), abs(way()[1] - high)) / (high - low)
        if not off < 0.05:
            raise RuntimeError(f"the ways' intervals differ by {off:.1%} of their width")
    return {
        "pair": (exact, 1),
        "weights pair": (drawn, 1),
        "plain pair": (lambda: plain_bootstrap(ours, theirs, rng), 1),
    }


def verb_seconds(folder: Path, rounds: int) -> float:
    """CPU seconds of `kleash compare` on two small logs, start and imports included.

    The first call, which compiles the sources, is not counted. An import of torch ends the bench.
    """
    logs = [write_log(folder / f"{name}.csv", 100) for name in ("kl0", "kl0.1")]
    kept = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(folder / "compiled")}
    spent = []
    for _ in range(1 + rounds):
        before = os.times()
        words = [sys.executable, "-c", PROBE, "compare", *map(str, logs), "--lang", "en"]
        done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, **kept})
        if done.returncode == 7:
            raise RuntimeError("comparing two logs has imported torch")
        if done.returncode:
            raise RuntimeError(f"comparing two logs failed: {done.stderr[-300:]}")
        now = os.times()
        spent.append(
            now.children_user + now.children_system - before.children_user - before.children_system
        )
    return statistics.median(spent[1:])


def compare_bench(*, rows: int = 20_000, items: int = 800, rounds: int = 5) -> dict[str, Any]:
    """Comparing beside plain NumPy, and the verb from its start.

    Seconds are of CPU, all threads together.
    """
    reader = "pandas" if find_spec("pandas") else "csv module"
    found: dict[str, Any] = {
        "setting": f"{items} items, {DRAWS:,} draws; logs of {rows:,} rows, plain by {reader}",
        "rounds": rounds,
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ways = pair_bench(items)
        ways |= import_bench(write_log(folder / "log.csv", rows), plain_csv)
        ways |= import_bench(write_log(folder / "log.jsonl", rows), plain_jsonl)
        spent = seconds_per_query(ways, rounds)
        for ours, plain in (
            ("pair", "plain pair"),
            ("weights pair", "plain pair"),
            ("import csv", "plain csv"),
            ("import jsonl", "plain jsonl"),
        ):
            ratios = [p / o for p, o in zip(spent[plain], spent[ours], strict=True)]
            unit = "rows" if "import" in ours else "pairs"
            found[f"{ours}, {unit} per second"] = 1 / statistics.median(spent[ours])
            found[f"{ours}, times the plain way"] = statistics.median(ratios)
            found[f"{ours}, range"] = (round(min(ratios), 3), round(max(ratios), 3))
        found["compare two small logs, seconds"] = verb_seconds(folder, rounds)
        found["compare two small logs, imports torch"] = False
    return found


def later(module: str, function: str, *, threads: bool = True) -> Callable[..., dict[str, Any]]:
    """A bench in a file of its own, which is imported when it runs."""

    def run(*device: str, **given: Any) -> dict[str, Any]:
        measured = getattr(import_module(f"benchmarks.{module}"), function)
        with nullcontext() if threads else one_thread():
            found: dict[str, Any] = measured(*device, **given)
        return found

    return run


BENCHES: dict[str, Callable[..., dict[str, Any]]] = {
    "selector": selector_bench,
    "answerer": answerer_bench,
    "compare": compare_bench,
    "study": later("studies", "study_bench", threads=False),
    "report": later("reports", "report_bench"),
    "rollouts": later("rollouts", "rollouts_bench"),
    "leash": later("leash", "leash_bench", threads=False),
    "staleness": later("staleness", "staleness_bench", threads=False),
    "gpu": later("gpu", "gpu_bench"),
    "vlm": later("vlm", "vlm_bench"),
    "captions": later("vlm", "captions_bench"),
}
ON_DEVICE = ("gpu", "staleness", "vlm", "captions")
"""Those that can be told where to compute."""
