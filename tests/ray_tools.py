"""A Ray cluster as people start one: `ray start --head`, a process of its own, their token."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
SOURCE = TESTS.parent / "src"
START = 300.0  # seconds for a cluster to be there


@dataclass(frozen=True)
class Cluster:
    """Where it is, and the environment of whoever wants to join it."""

    folder: Path
    port: int
    client_port: int

    @property
    def client(self) -> str:
        """Its address for `--on`."""
        return f"ray://127.0.0.1:{self.client_port}"

    def env(self, **changes: str) -> dict[str, str]:
        """The user's environment: a home with a token in it, and nothing said about Ray."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("RAY_", "PYTHONPATH"))}
        return kept | {"HOME": str(self.folder / "home"), "RAY_USAGE_STATS_ENABLED": "0"} | changes

    def driver(self, code: str, *words: str, **changes: str) -> subprocess.Popen[str]:
        """Someone who uses it: Python with Kleash and the tests in its path."""
        return subprocess.Popen(
            [sys.executable, "-c", code, *words],
            env=self.env(PYTHONPATH=f"{SOURCE}{os.pathsep}{TESTS}", **changes),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def processes(self) -> set[int]:
        """All that run for it: they name its folder, or have it in their environment."""
        return {int(each.name) for each in Path("/proc").glob("[0-9]*") if self.owns(each)}

    def owns(self, process: Path) -> bool:
        """Whether a process was started by the cluster or from it."""
        try:
            said = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
        except OSError:
            return False
        return str(self.folder).encode() in said and int(process.name) != os.getpid()


def free_port() -> int:
    """A port that nobody has."""
    with socket.socket() as ours:
        ours.bind(("", 0))
        return int(ours.getsockname()[1])


def wait_until_gone(pids: set[int], seconds: float) -> set[int]:
    """Those that are still there after so long; one that is only to be reaped is not."""
    end = time.monotonic() + seconds
    while (left := {pid for pid in pids if alive(pid)}) and time.monotonic() < end:
        time.sleep(0.05)
    return left


def alive(pid: int) -> bool:
    """Whether it runs."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture(scope="module")  # no longer: `auto` finds any cluster that runs on the machine
def cluster() -> Iterator[Cluster]:
    """Two workers, ports and a folder of its own, a token in the home; afterwards nothing of it."""
    # Not in pytest's folder: the path of a socket has at most 107 characters.
    there = Cluster(Path(tempfile.mkdtemp(prefix="kleash-ray-")), free_port(), free_port())
    token = there.folder / "home" / ".ray" / "auth_token"
    token.parent.mkdir(parents=True)
    token.write_text(secrets.token_hex(32))
    command = [
        *(sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block"),
        *(f"--port={there.port}", f"--ray-client-server-port={there.client_port}"),
        *(f"--temp-dir={there.folder / 'ray'}", "--num-cpus=2", "--include-dashboard=false"),
        *("--object-store-memory=100000000", "--disable-usage-stats"),
    ]
    log = there.folder / "start.log"
    with (
        log.open("w") as said,
        subprocess.Popen(command, env=there.env(), stdout=said, stderr=subprocess.STDOUT) as head,
    ):
        try:
            end = time.monotonic() + START
            while "Ray runtime started" not in log.read_text():
                assert head.poll() is None and time.monotonic() < end, log.read_text()
                time.sleep(0.1)
            yield there
        finally:
            ours = there.processes() | {head.pid}
            head.send_signal(signal.SIGTERM)
            head.wait(300)
            left = wait_until_gone(ours, 120)
            for pid in left:
                os.kill(pid, signal.SIGKILL)
            shutil.rmtree(there.folder)
    assert not left, f"still there after the cluster was stopped: {left}"
