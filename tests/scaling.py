"""How much faster more workers are, measured so that other programs cannot flatter or spoil it."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kleash.errors import GuardError
from kleash.runs.jobs import Job, run_jobs

FOREIGN = 0.1  # the share of the machine that other programs may take


@dataclass(frozen=True)
class Scaling:
    """Jobs per second with one worker and with more, one after the other; the best such pair."""

    workers: int
    one: float
    more: float
    pairs: int
    """Pairs that count, of those that were asked for."""
    asked: int

    @property
    def ratio(self) -> float:
        """How many times as many jobs per second."""
        return self.more / self.one


def scaling(jobs: Sequence[Job], *, workers: int = 2, pairs: int = 5) -> Scaling:
    """The best of some alternating pairs; refused where other programs were busy in all of them."""
    kept: list[tuple[float, float]] = []
    shares: list[float] = []
    for _ in range(pairs):
        one, more = timed(jobs, 1), timed(jobs, workers)
        shares.append(max(one[1], more[1]))
        if shares[-1] <= FOREIGN:
            kept.append((one[0], more[0]))
    if not kept:
        raise GuardError(
            f"other programs took {min(shares):.0%} of the machine or more, and {FOREIGN:.0%} is "
            "the limit: scaling cannot be measured now, try again when it is idle"
        )
    best = max(kept, key=lambda pair: pair[1] / pair[0])
    return Scaling(workers, *best, pairs=len(kept), asked=pairs)


def timed(jobs: Sequence[Job], workers: int) -> tuple[float, float]:
    """Jobs per second from start to end, and the share of the machine that others took."""
    busy, own, start = busy_seconds(), own_seconds(), time.monotonic()
    outcomes = run_jobs(jobs, workers=workers, hear=lambda told: None)
    wall = time.monotonic() - start
    if broken := [name for name, outcome in outcomes.items() if outcome.state != "done"]:
        raise GuardError(f"{len(broken)} jobs did not end well, {broken[0]} first: nothing to time")
    foreign = (busy_seconds() - busy) - (own_seconds() - own)
    return len(jobs) / wall, max(0.0, foreign / (wall * (os.cpu_count() or 1)))


def busy_seconds() -> float:
    """Processor time that all programs of the machine have used, as Linux counts it; else 0."""
    counts = Path("/proc/stat")
    if not counts.exists():
        return 0.0
    # user, nice, system, idle, iowait, irq, softirq, steal
    user, nice, system, _, _, irq, softirq, steal = map(
        int, counts.read_text().splitlines()[0].split()[1:9]
    )
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def own_seconds() -> float:
    """Processor time of this process and of the workers that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)
