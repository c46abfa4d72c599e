"""The servers of a study: one process per device, started before its jobs and ended after them.

One that dies is started again, a few times; its clients wait and ask again. When the driver dies,
by whatever signal, its servers leave.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path

from kleash.errors import ConfigError, KleashError
from kleash.models.answer.serving import PATIENCE, Model
from kleash.runs.jobs import Job
from kleash.runs.jobs.local import how_it_died
from kleash.runs.jobs.worker import ONE_THREAD

LIVES = 3
LOOK = 0.1  # seconds between two looks at whether they live
GOODBYE = 5.0  # seconds for a server to leave
START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[2]); "
    "from kleash.models.answer.serving import main; main(sys.argv[1])"
)


def device_names(text: str) -> tuple[str, ...]:
    """`0,1` are GPUs by number; other devices go by their names in torch."""
    names = tuple(
        f"cuda:{name}" if name.isdigit() else name for name in text.replace(" ", "").split(",")
    )
    wrong = [name for name in names if not re.fullmatch(r"cpu|mps|cuda(:\d+)?", name)]
    if text and wrong:
        raise ConfigError(f"--gpus {text!r}: give numbers of GPUs, as in 0,1, or cpu,cpu")
    return names if text else ()


@contextmanager
def at_servers(
    jobs: Sequence[Job], model: Model | None, devices: Sequence[str], on: str
) -> Iterator[list[Job]]:
    """The jobs, told where their answerer is; it is there as long as the context is open."""
    if not devices:
        yield list(jobs)
        return
    if on not in ("local", "ray"):
        raise ConfigError(f"--gpus serves jobs of this machine, and --on {on} may use others")
    if model is None:
        raise ConfigError("--gpus serves an answerer, and an agent asks none: give --device cuda")
    with served(model, devices) as folder:
        yield [replace(job, given=job.given | {"served": str(folder)}) for job in jobs]


@contextmanager
def served(model: Model, devices: Sequence[str]) -> Iterator[Path]:
    """A server on each device; the folder where clients find them."""
    with tempfile.TemporaryDirectory(prefix="kleash-served-") as name:
        folder = Path(name)
        (folder / "secret").write_bytes(secrets.token_bytes(32))
        (folder / "servers").write_text(str(len(devices)))
        servers: list[Server] = []
        over = threading.Event()
        watch = threading.Thread(target=look_after, args=(servers, over), daemon=True)
        try:
            servers += [Server(folder, n, device, model) for n, device in enumerate(devices)]
            for server in servers:
                server.wait_until_ready()
            watch.start()
            yield folder
        finally:
            over.set()
            if watch.is_alive():
                watch.join()
            for server in servers:
                server.let_go()
            for server in servers:
                server.end()


def look_after(servers: Sequence[Server], over: threading.Event) -> None:
    """Start again what has died, until all is over."""
    while not over.wait(LOOK):
        for server in servers:
            server.look()


class Server:
    """One process with a model."""

    def __init__(self, folder: Path, number: int, device: str, model: Model) -> None:
        self.folder, self.number, self.device, self.model = folder, number, device, model
        self.deaths = 0
        self.start()

    def file(self, ending: str) -> Path:
        """One of its files."""
        return self.folder / f"{self.number}.{ending}"

    def start(self) -> None:
        """A new process, in a group of its own: Ctrl-C at the terminal is for the driver."""
        spec = {"folder": str(self.folder), "number": self.number, "device": self.device}
        given = json.dumps(spec | {"model": asdict(self.model)})
        with self.file("log").open("wb") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-c", START, given, json.dumps(sys.path)],
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=out,
                env=os.environ | ONE_THREAD | {"PYTHONFAULTHANDLER": "1"},
                process_group=0,
            )

    def wait_until_ready(self) -> None:
        """Until its model is loaded; a model that cannot be is the end."""
        end = time.monotonic() + PATIENCE
        while not self.file("socket").exists():
            if self.process.poll() is not None:
                raise KleashError(f"no answerer on {self.device}: {self.last_line()}")
            if time.monotonic() > end:
                raise KleashError(f"the answerer on {self.device} was not ready in {PATIENCE:g} s")
            time.sleep(LOOK)

    def look(self) -> None:
        """If it has died, start it again, or say to its clients that it will not come back."""
        if self.deaths == LIVES or self.process.poll() is None:
            return
        self.deaths += 1
        self.end()
        if self.deaths < LIVES:
            self.start()
            return
        text = (
            f"the answerer on {self.device} died {LIVES} times, at last"
            f" {how_it_died(self.process.returncode)}: {self.last_line()}"
        )
        passing = self.file("tmp")
        passing.write_text(text, encoding="utf-8")
        passing.replace(self.file("gone"))

    def last_line(self) -> str:
        """What it printed last."""
        lines = self.file("log").read_text(encoding="utf-8", errors="replace").split("\n")
        return next((line for line in reversed(lines) if line.strip()), "it printed nothing")

    def let_go(self) -> None:
        """Tell it to leave."""
        if self.process.stdin is not None:
            with suppress(OSError):
                self.process.stdin.close()

    def end(self) -> None:
        """See that it is gone."""
        self.let_go()
        try:
            self.process.wait(GOODBYE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
