"""Worlds and runs that many tests look at and none changes.

Torch is imported by the fixtures that need it: tests of the parts without it start at once.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from pace import within

# How long an example takes is the machine's affair: where time is a claim, its test measures it.
settings.register_profile(
    "any-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any-machine")

# A shell that works in the background ignores interrupts, and whatever it starts would too.
signal.signal(signal.SIGINT, signal.default_int_handler)

# It only matters when the power fails: a process that is killed loses nothing that it has written.
os.fsync = lambda fd: None

LIMIT, SLOW_LIMIT = 300, 3600  # seconds that a test may take: one that hangs fails, the rest go on


@pytest.hookimpl(wrapper=True)
def in_time(item: pytest.Item) -> Iterator[None]:
    """Setting up, running and clearing away end in time, each of them."""
    marked, slow = (item.get_closest_marker(name) for name in ("limit", "slow"))
    with within(marked.args[0] if marked else SLOW_LIMIT if slow else LIMIT):
        return (yield)


pytest_runtest_setup = pytest_runtest_call = pytest_runtest_teardown = in_time


if TYPE_CHECKING:
    from kleash.runs.ledger import Ledger
    from kleash.runs.run import Run


@pytest.fixture(scope="session")
def one_thread() -> None:
    """Torch as every run has it: on one thread, with the products it uses."""
    from kleash.train.rollout import compute_one_way

    compute_one_way()


@pytest.fixture(scope="session")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ledger]:
    """One ledger for all: answers do not depend on who asked before."""
    from kleash.runs.ledger import Ledger

    with Ledger(tmp_path_factory.mktemp("ledger") / "ledger.sqlite") as opened:
        yield opened


@pytest.fixture(scope="session")
def tiny_run(tmp_path_factory: pytest.TempPathFactory, ledger: Ledger, one_thread: None) -> Run:
    """A finished run of all three phases. Copy it to change it."""
    from tiny import train_tiny

    return train_tiny(tmp_path_factory.mktemp("runs") / "tiny-s0", ledger)


@pytest.fixture
def trained(tmp_path: Path, ledger: Ledger, one_thread: None) -> Callable[..., Run]:
    """Train the tiny recipe with some keys changed, in a folder of that name."""
    from tiny import train_tiny

    return lambda name, *keys: train_tiny(tmp_path / name, ledger, *keys)
