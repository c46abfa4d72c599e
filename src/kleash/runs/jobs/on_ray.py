"""Jobs as Ray tasks, on a cluster that is there or on one started here for as long as they run.

Ray places and runs them. Trying again is left to the queue, as everywhere, so that it is heard and
counted; and Ray writes nothing of ours: what jobs tell and return comes back to the driver.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from kleash.errors import ConfigError
from kleash.runs.jobs.job import Job, Told
from kleash.runs.jobs.joining import join_cluster
from kleash.runs.jobs.worker import ONE_THREAD, perform, started, use_paths

# A lost worker is told by us; Ray would print a paragraph about it to stdout, among the results.
# It reads this when it is imported.
os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".")
try:
    import ray
except ModuleNotFoundError:
    ray = None

CANCEL = 5.0  # seconds for a task to be gone after it was killed
# Where this very Kleash is: a cluster that was started elsewhere must find what it is to call.
SOURCE = str(Path(__file__).parents[3])
AS_HERE = {"env_vars": ONE_THREAD | {"PYTHONPATH": SOURCE + os.pathsep + "${PYTHONPATH}"}}


class Mailbox:
    """An actor that keeps what jobs tell until the driver fetches it."""

    def __init__(self) -> None:
        self.letters: list[tuple[str, str]] = []

    def put(self, job: str, text: str) -> None:
        """Keep one message."""
        self.letters.append((job, text))

    def take(self) -> list[tuple[str, str]]:
        """All messages since the last time."""
        letters, self.letters = self.letters, []
        return letters


class RayCrew:
    """A cluster, joined when the first job starts."""

    def __init__(self, on: str, workers: int) -> None:
        if ray is None:
            raise ConfigError("Ray is not installed: pip install 'kleash[ray]'")
        self.on = on
        self.workers = workers
        self.joined = False
        self.ours = False  # whether to leave the cluster when done
        self.killed: Any = None  # what was done on SIGTERM before
        self.mailbox: Any = None
        self.alone: Any = None
        self.together: Any = None
        self.tasks: dict[Any, str] = {}

    def check(self, job: Job) -> None:
        """Refuse a job larger than the cluster that is started for it: it would wait for ever."""
        if self.on == "ray" and job.cpus > self.workers:
            raise ConfigError(
                f"job {job.name!r} wants {job.cpus:g} CPUs of {self.workers}: give more workers"
            )

    def join(self) -> None:
        """Connect, or start a cluster here."""
        if not ray.is_initialized():
            self.killed = signal.getsignal(signal.SIGTERM)
            quiet = {"log_to_driver": False, "logging_level": "ERROR", "runtime_env": AS_HERE}
            if self.on == "ray":
                ray.init("local", num_cpus=self.workers, include_dashboard=False, **quiet)
            else:
                join_cluster(self.on, **quiet)
            self.ours = True
            on_sigterm(stop_as_by_ctrl_c)
        self.joined = True
        lasting = {"num_cpus": 0, "max_restarts": -1, "max_task_retries": -1}
        try:
            self.mailbox = ray.remote(**lasting, runtime_env=AS_HERE)(Mailbox).remote()
            ray.get(self.mailbox.take.remote())
        except (ray.exceptions.RayError, ModuleNotFoundError) as error:
            raise ConfigError(
                "the Ray cluster cannot run Kleash: install it in the environment that the cluster"
                f" was started from, on every machine ({str(error).strip().splitlines()[-1]})"
            ) from error
        self.alone = ray.remote(run_alone)
        self.together = ray.remote(run_together)

    def start(self, job: Job) -> None:
        """Give a job to Ray, which runs it when there is room."""
        if not self.joined:
            self.join()
        if self.on == "ray" and job.gpus > (there := ray.cluster_resources().get("GPU", 0)):
            raise ConfigError(f"job {job.name!r} wants {job.gpus:g} GPUs; here are {there:g}")
        what = {"name": job.name, "max_retries": 0, "runtime_env": AS_HERE}
        if job.processes > 1:
            # The task only waits: the processes that Ray Train starts ask for the resources.
            task = self.together.options(num_cpus=0, **what)
        else:
            task = self.alone.options(num_cpus=job.cpus, num_gpus=job.gpus, **what)
        self.tasks[task.remote(job, self.mailbox, sys.path)] = job.name

    def news(self, seconds: float) -> Iterator[Told]:
        """What was told, then who has ended: a job tells everything before it ends."""
        if not self.tasks:
            return
        ended, _ = ray.wait(list(self.tasks), num_returns=len(self.tasks), timeout=0)
        if not ended:
            ended, _ = ray.wait(list(self.tasks), timeout=seconds)
        for job, text in ray.get(self.mailbox.take.remote()):
            yield as_told(job, text)
        for task in ended:
            yield self.end_of(task, self.tasks.pop(task))

    def end_of(self, task: Any, job: str) -> Told:
        """How a task ended. What a job raises was caught, so an error here is Ray's own."""
        try:
            return as_told(job, ray.get(task))
        except ray.exceptions.RayError as error:
            return Told("lost", job, error=f"({type(error).__name__})\n{error}")

    def interrupt(self) -> None:
        """Raise KeyboardInterrupt in every job that runs."""
        for task in self.tasks:
            ray.cancel(task)

    def close(self) -> None:
        """End what still runs, and leave the cluster, which ends with us where we started it."""
        if not self.joined or not ray.is_initialized():
            return
        for task in self.tasks:
            ray.cancel(task, force=True)
        if self.tasks:
            ray.wait(list(self.tasks), num_returns=len(self.tasks), timeout=CANCEL)
        self.tasks.clear()
        if self.mailbox is not None:
            ray.kill(self.mailbox)
        if self.ours:
            ray.shutdown()
            on_sigterm(self.killed)


def on_sigterm(handler: Any) -> None:
    """Have SIGTERM handled so; only the main thread can."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, handler)


def stop_as_by_ctrl_c(number: int, frame: Any) -> None:
    """Ray would raise SystemExit wherever we are, in its own calls too, and then wait for ever."""
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler):  # ignored, as in the background of a shell
        sys.exit(128 + number)
    handler(number, frame)


def as_told(job: str, text: str) -> Told:
    """A message, with the job that it is from."""
    kind, record, error = json.loads(text)
    return Told(kind, job, record, error)


def sender(job: Job, mailbox: Any) -> Callable[[str], None]:
    """Puts messages in the mailbox, and waits until each is there, so that none comes too late."""
    return lambda text: ray.get(mailbox.put.remote(job.name, text))


def run_alone(job: Job, mailbox: Any, paths: list[str]) -> str:
    """A job's call, in a worker of Ray."""
    use_paths(paths)
    send = sender(job, mailbox)
    send(started())
    return perform(job.call, job.given, send)


def run_together(job: Job, mailbox: Any, paths: list[str]) -> str:
    """A job's call in several processes at once, which find each other by `torch.distributed`."""
    from ray.train import RunConfig, ScalingConfig, WorkerGroupError
    from ray.train.torch import TorchConfig, TorchTrainer

    ranks = job.processes
    each = {"CPU": job.cpus / ranks} | ({"GPU": job.gpus / ranks} if job.gpus else {})
    with tempfile.TemporaryDirectory(prefix="kleash-ray-train-") as folder:
        trainer = TorchTrainer(
            one_rank,
            train_loop_config={"job": job, "mailbox": mailbox, "paths": paths},
            torch_config=TorchConfig(backend="nccl" if job.gpus else "gloo"),
            scaling_config=ScalingConfig(
                num_workers=ranks, use_gpu=job.gpus > 0, resources_per_worker=each
            ),
            # Ray Train wants a place for checkpoints; jobs keep their own.
            run_config=RunConfig(storage_path=folder),
        )
        try:
            return str(trainer.fit().return_value)
        except WorkerGroupError as error:
            return first_failure(list(error.worker_failures.values()), error)


def first_failure(failures: list[Exception], error: Exception) -> str:
    """What the job itself raised first; where a process died, others fail for want of it."""
    own = [failure for failure in failures if isinstance(failure, RankError)]
    if len(own) < len(failures):
        raise error
    return min(own, key=lambda failure: failure.when).said


class RankError(Exception):
    """One process of a job has failed, and the others must not wait for it."""

    def __init__(self, said: str, when: float) -> None:
        super().__init__(said, when)
        self.said = said
        self.when = when


def silent(text: str) -> None:
    """For all processes of a job but the first."""


def one_rank(config: dict[str, Any]) -> str:
    """A job's call in one of its processes: all may fail, but only the first is heard."""
    from ray.train import get_context

    job: Job = config["job"]
    use_paths(config["paths"])
    send = sender(job, config["mailbox"])
    if get_context().get_world_rank():
        send = silent
    send(started())
    said = perform(job.call, job.given, send)
    if json.loads(said)[0] == "failed":
        raise RankError(said, time.time())
    return said
