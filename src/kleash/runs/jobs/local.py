"""Jobs in processes of this machine, which live on from job to job, so that imports are paid once.

Each is a fresh interpreter of its own: nothing is forked, no script of the user's is run a second
time, as `multiprocessing` would, and Ctrl-C at the terminal reaches the driver alone.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing.connection import Pipe, wait
from pathlib import Path

from kleash.errors import ConfigError
from kleash.runs.jobs.job import Job, Told
from kleash.runs.jobs.worker import ONE_THREAD

LAST_LINES = 20
LAST_BYTES = 10_000
GOODBYE = 5.0  # seconds for an idle worker to leave
START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[2]); "
    "from kleash.runs.jobs.worker import serve; serve(int(sys.argv[1]))"
)


class Worker:
    """One process, its pipe, and the file that holds what it prints."""

    def __init__(self, log: Path, *, keep: bool) -> None:
        self.job: str | None = None
        self.log = log
        self.keep = keep
        self.since = 0  # where in the file the job's own lines begin
        self.pipe, theirs = Pipe()
        command = [sys.executable, "-P", "-c", START, str(theirs.fileno()), json.dumps(sys.path)]
        with log.open("ab") as out:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                pass_fds=[theirs.fileno()],
                env=os.environ | ONE_THREAD | {"PYTHONUNBUFFERED": "1", "PYTHONFAULTHANDLER": "1"},
                process_group=0,
            )
        theirs.close()

    def start(self, job: Job) -> None:
        """Hand over a job."""
        if self.keep:
            with self.log.open("a") as out:
                out.write(f"--- {job.name}\n")
        else:
            os.truncate(self.log, 0)
        self.since = self.log.stat().st_size
        self.job = job.name
        self.pipe.send_bytes(json.dumps({"call": job.call, "given": job.given}).encode())

    def read(self) -> Told:
        """What it says next, or that it died."""
        assert self.job
        name = self.job
        try:
            kind, record, error = json.loads(self.pipe.recv_bytes())
        except (EOFError, OSError):
            return self.lost()
        if kind == "failed":
            error += self.printed()
        if kind in ("done", "failed"):
            self.job = None
        return Told(kind, name, record, error)

    def lost(self) -> Told:
        """That it died, and how."""
        assert self.job
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(GOODBYE)  # it closes its pipe some way before it is gone
        self.end()
        told = Told("lost", self.job, error=how_it_died(self.process.returncode) + self.printed())
        self.job = None
        return told

    def printed(self) -> str:
        """The last lines that its job printed, as a paragraph."""
        with self.log.open("rb") as file:
            file.seek(max(self.since, self.log.stat().st_size - LAST_BYTES))
            lines = file.read().decode(errors="replace").splitlines()[-LAST_LINES:]
        return "\n".join(["\nlast lines it printed:", *lines]) if lines else ""

    def end(self) -> None:
        """Kill it and all that it has started, and forget its pipe."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.pipe.close()


class LocalCrew:
    """As many workers as were ever needed at once."""

    def __init__(self, logs: Path | None) -> None:
        self.workers: list[Worker] = []
        self.keep = logs is not None
        self.own = None if logs else tempfile.TemporaryDirectory(prefix="kleash-jobs-")
        self.folder = logs or Path(self.own.name if self.own else "")
        self.folder.mkdir(parents=True, exist_ok=True)

    def check(self, job: Job) -> None:
        """Refuse what only Ray can do."""
        if job.processes > 1:
            raise ConfigError(
                f"job {job.name!r} wants {job.processes} processes at once, "
                "which only Ray Train starts: run it on ray"
            )

    def start(self, job: Job) -> None:
        """Hand a job to an idle worker, or to a new one where none is idle or the idle one died."""
        idle = next((worker for worker in self.workers if not worker.job), None)
        if idle and idle.process.poll() is None:
            with suppress(OSError):
                return idle.start(job)
        if idle:
            idle.end()
            self.workers.remove(idle)
        taken = {worker.log for worker in self.workers}
        logs = (self.folder / f"worker-{n}.log" for n in range(1, len(taken) + 2))
        worker = Worker(next(log for log in logs if log not in taken), keep=self.keep)
        self.workers.append(worker)
        # A worker that dies while it starts is noticed like any other: by its pipe.
        with suppress(BrokenPipeError):
            worker.start(job)
        return None

    def news(self, seconds: float) -> Iterator[Told]:
        """One message from everyone who has one."""
        busy = {worker.pipe: worker for worker in self.workers if worker.job}
        heard = set(wait(list(busy), seconds))
        for pipe, worker in busy.items():
            if pipe in heard:
                yield worker.read()
            # A dead worker's pipe stays open where a process that it had started holds it too.
            elif worker.process.poll() is not None and not pipe.poll():
                yield worker.lost()
        self.workers = [worker for worker in self.workers if not worker.pipe.closed]

    def interrupt(self) -> None:
        """Raise KeyboardInterrupt in every job that runs."""
        for worker in self.workers:
            if worker.job:
                worker.process.send_signal(signal.SIGINT)

    def close(self) -> None:
        """Let the idle go on their own, kill the others, and leave nothing behind."""
        idle = [worker for worker in self.workers if not worker.job]
        for worker in idle:
            with suppress(OSError):
                worker.pipe.send_bytes(b"null")
        deadline = time.monotonic() + GOODBYE
        for worker in idle:
            with suppress(subprocess.TimeoutExpired):
                worker.process.wait(max(0.0, deadline - time.monotonic()))
        for worker in self.workers:
            worker.end()
        self.workers.clear()
        if self.own:
            self.own.cleanup()


def how_it_died(code: int) -> str:
    """The signal's name, or the exit code."""
    if code >= 0:
        return f"with exit code {code}"
    number = -code
    known = number in set(signal.Signals)
    name = signal.Signals(number).name if known else f"signal {number}"
    return f"of {name}" + (" (out of memory, or killed by hand)" if name == "SIGKILL" else "")
