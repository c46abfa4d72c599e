"""Jobs: calls that other processes make, here or on a Ray cluster, each after those it needs.

A job is the name of a function and what it is given, both plain enough for JSON, so it can travel.
What a job is about, and what is written to disk, is left to whoever asks for it.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from kleash.errors import ConfigError
from kleash.runs.jobs.job import NO_SPACE, Crew, Hear, Job, Outcome, Told
from kleash.runs.jobs.local import LocalCrew
from kleash.runs.jobs.queue import Queue

__all__ = ["NO_SPACE", "Job", "Outcome", "Told", "run_jobs"]

TICK = 0.1  # seconds between two looks at whether to stop
GRACE = 5.0  # seconds that a job has to end after it was asked to


def never() -> bool:
    """Do not stop before everything is done."""
    return False


def run_jobs(
    jobs: Iterable[Job],
    *,
    workers: int,
    hear: Hear,
    on: str = "local",
    retries: int = 1,
    stop: Callable[[], bool] = never,
    logs: Path | None = None,
) -> dict[str, Outcome]:
    """Run all jobs, `workers` at a time, and say how each ended; `hear` may return further ones.

    On Ctrl-C or `stop()` what runs is interrupted and what is left is "stopped": look for it. A job
    whose worker dies is tried again `retries` times. `logs`: a folder for what local jobs print.
    """
    if workers < 1:
        raise ConfigError(f"{workers} workers do no job: ask for at least one")
    with closing(crew_for(on, workers, logs)) as crew:
        queue = Queue(hear, crew.check, retries)
        queue.add(jobs)
        with first_interrupt() as interrupted:
            while queue.unfinished and not (interrupted() or stop()):
                while len(queue.running) < workers and (job := queue.take()):
                    crew.start(job)
                for told in crew.news(TICK):
                    queue.note(told)
            wind_down(queue, crew)
    queue.stop_rest()  # by now nothing of them runs any more
    return queue.outcomes


def crew_for(on: str, workers: int, logs: Path | None) -> Crew:
    """Who works: processes of this machine, or a Ray cluster."""
    if on == "local":
        return LocalCrew(logs)
    if on in ("ray", "auto") or on.startswith("ray://"):
        from kleash.runs.jobs.on_ray import RayCrew

        return RayCrew(on, workers)
    raise ConfigError(f"jobs do not run on {on!r}: use local, ray, auto or ray://HOST:PORT")


def wind_down(queue: Queue, crew: Crew) -> None:
    """Interrupt what runs and hear it out for a while; a job that still ends counts as done."""
    if not queue.running:
        return
    queue.stopping = True
    crew.interrupt()
    deadline = time.monotonic() + GRACE
    while queue.running and time.monotonic() < deadline:
        for told in crew.news(TICK):
            queue.note(told)


@contextmanager
def first_interrupt() -> Iterator[Callable[[], bool]]:
    """Whether Ctrl-C was pressed; the first time it raises nothing, so no `hear` is cut in two."""
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        yield never
        return
    seen: list[int] = []

    def note(number: int, frame: object) -> None:
        if seen:
            raise KeyboardInterrupt
        seen.append(number)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: bool(seen)
    finally:
        signal.signal(signal.SIGINT, before)
