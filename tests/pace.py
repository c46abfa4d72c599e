"""Bounds in seconds on any machine: one that is slower, or does much else, has as much longer.

A bound says how work grows, not how fast a processor is: where the seconds are exceeded, work that
never changes is timed beside them, and what it takes longer than it did where the bounds were set
is allowed to them too. Elsewhere the bound is what is written.
"""

from __future__ import annotations

import faulthandler
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

REFERENCE = 0.045  # CPU seconds of `work` on the machine on which the bounds were set


def work() -> int:
    """Names, a dictionary and a sort: what most of the package's own time is spent with."""
    found = {f"{n * 7919 % 60_000}": n for n in range(60_000)}
    return sum(map(len, sorted(found)))


def slowness() -> float:
    """How many times as long as there; never less than once."""
    spent = []
    for _ in range(5):
        began = time.process_time()
        work()
        spent.append(time.process_time() - began)
    return max(1.0, sorted(spent)[2] / REFERENCE)


def soon(spent: float, seconds: float) -> bool:
    """Whether so many CPU seconds are within the bound."""
    return spent < seconds or spent < seconds * slowness()


class LateError(BaseException):
    """That time is up: no `Exception`, which what hangs may catch and go on."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """What is done here takes at most so long on the clock, or fails where it is.

    What other threads do is written to standard error. Where nothing is heard of it, as in a
    callback that swallows errors, it is said again.
    """

    def late(*_: object) -> None:
        faulthandler.dump_traceback(sys.__stderr__)
        raise LateError(f"it takes more than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, late)
    outer = signal.setitimer(signal.ITIMER_REAL, seconds, 10)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, *outer)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def cpu_within(seconds: float) -> Iterator[None]:
    """What is done here takes this process at most so many seconds of CPU."""
    began = time.process_time()
    yield
    spent = time.process_time() - began
    assert soon(spent, seconds), f"{spent:.1f} s of CPU, and {seconds:g} are allowed"
