"""The records of jobs: what to call, what is heard of it, how it ended, and who runs it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

NO_SPACE = "no space"
"""The record of a job that failed because a disk is full: the next ones would too."""
Kind = Literal["started", "told", "done", "failed", "lost", "retried", "skipped", "stopped"]
State = Literal["done", "failed", "skipped", "stopped"]


@dataclass(frozen=True)
class Job:
    """A call that another process makes: `function(given, tell) -> result`, all plain JSON."""

    name: str
    """Unique, and shown to people."""
    call: str
    """`package.module:function`, imported where it runs."""
    given: dict[str, Any]
    after: tuple[str, ...] = ()
    """Jobs that must be done before this one starts."""
    cpus: float = 1
    """Of the whole job; like `gpus` it is for Ray, which knows what is free."""
    gpus: float = 0
    ranks: int = 0
    """Processes that make the call together, through Ray Train. 0: one per GPU, at least one."""

    @property
    def processes(self) -> int:
        """How many processes make the call."""
        return self.ranks or max(1, int(self.gpus))


@dataclass(frozen=True)
class Told:
    """One thing heard of a job. "lost", a worker that died, is heard as "retried" or "failed"."""

    kind: Kind
    job: str
    record: Any = None
    """What was told; the result, when it is done; process and machine, when it has started.
    NO_SPACE where it failed for that."""
    error: str = ""
    """Its first line says what happened; below it, where, and the last lines that were printed."""


@dataclass(frozen=True)
class Outcome:
    """How a job ended. "skipped": something before it did not end well."""

    state: State
    result: Any = None
    error: str = ""
    attempts: int = 0


Hear = Callable[[Told], Iterable[Job] | None]
"""Hears everything in the order in which it came, and may answer with further jobs."""


class Crew(Protocol):
    """Those who run jobs. It neither orders them nor tries one again."""

    def check(self, job: Job) -> None:
        """Refuse a job that could never run here."""

    def start(self, job: Job) -> None:
        """Run it as soon as somebody is free."""

    def news(self, seconds: float) -> Iterable[Told]:
        """What was heard, after waiting at most so long for it."""

    def interrupt(self) -> None:
        """Raise KeyboardInterrupt in every job that runs."""

    def close(self) -> None:
        """Let the idle go, end what still runs, and leave nothing behind."""
