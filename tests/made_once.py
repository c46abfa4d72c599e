"""What takes long to make and is only read: whoever needs it first makes it, the others copy it.

A fixture that several modules import is a fixture of each of them, and each worker has its own.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """A folder that `make` filled, in a copy of its own for every call.

    Copies, so that no test sees what another one opens, locks or leaves in it. A folder whose
    making broke is made again by whoever comes next.
    """
    base = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent
    shared = base / "made-once" / name
    shared.parent.mkdir(exist_ok=True)
    with shared.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (done := shared.with_suffix(".done")).exists():
            shutil.rmtree(shared, ignore_errors=True)
            make(shared)
            done.touch()
    return Path(shutil.copytree(shared, factory.mktemp("copies") / name))
