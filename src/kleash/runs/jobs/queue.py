"""Which job comes next, and what became of each. It starts nothing itself."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable

from kleash.errors import ConfigError
from kleash.runs.jobs.job import Hear, Job, Outcome, State, Told


class Queue:
    """Jobs in the order given, each held back until those before it are done."""

    def __init__(self, hear: Hear, check: Callable[[Job], None], retries: int) -> None:
        self.hear = hear
        self.check = check
        self.retries = retries
        self.outcomes: dict[str, Outcome] = {}
        self.running: set[str] = set()
        self.stopping = False
        self.jobs: dict[str, Job] = {}
        self.place: dict[str, int] = {}
        self.attempts: dict[str, int] = {}
        self.missing: dict[str, int] = {}  # how many of those before it are not done yet
        self.followers: dict[str, list[str]] = {}
        self.ready: list[tuple[int, str]] = []

    @property
    def unfinished(self) -> bool:
        """Whether any job has no outcome yet."""
        return len(self.outcomes) < len(self.jobs)

    def add(self, jobs: Iterable[Job]) -> None:
        """Queue further jobs; they may wait for each other and for any that are known."""
        new: dict[str, Job] = {}
        for job in jobs:
            if job.name in new or job.name in self.jobs:
                raise ConfigError(f"two jobs are called {job.name!r}: give each its own name")
            self.check(job)
            new[job.name] = job
        self.refuse_loose_ends(new)
        self.jobs |= new
        for job in new.values():
            self.place[job.name] = len(self.place)
            self.attempts[job.name] = 0
            waits_for = [name for name in set(job.after) if name not in self.outcomes]
            self.missing[job.name] = len(waits_for)
            for name in waits_for:
                self.followers.setdefault(name, []).append(job.name)
            if not waits_for:
                heapq.heappush(self.ready, (self.place[job.name], job.name))
        for job in new.values():
            for name in job.after:
                if name in self.outcomes and self.outcomes[name].state != "done":
                    self.skip(job.name, name)

    def refuse_loose_ends(self, new: dict[str, Job]) -> None:
        """An error for a job that waits for an unknown one, or in a circle for itself."""
        left = {name: {n for n in job.after if n in new} for name, job in new.items()}
        followers: dict[str, list[str]] = {}
        for name, job in new.items():
            for before in job.after:
                if before not in new and before not in self.jobs:
                    raise ConfigError(f"job {name!r} waits for {before!r}, which is no job")
            for before in left[name]:
                followers.setdefault(before, []).append(name)
        free = [name for name, before in left.items() if not before]
        while free:
            done = free.pop()
            del left[done]
            for name in followers.get(done, ()):
                left[name].discard(done)
                if not left[name]:
                    free.append(name)
        if left:
            raise ConfigError(f"jobs wait for each other in a circle: {circle(left)}")

    def take(self) -> Job | None:
        """The next job that can start, now counted as running."""
        while self.ready:
            name = heapq.heappop(self.ready)[1]
            if name not in self.outcomes:
                self.running.add(name)
                self.attempts[name] += 1
                return self.jobs[name]
        return None

    def note(self, told: Told) -> None:
        """Take in what a crew heard, and pass it on."""
        if told.kind == "done":
            self.end(told.job, "done", told)
        elif told.kind == "failed":
            self.end(told.job, "failed", told)
        elif told.kind == "lost":
            self.lose(told)
        else:
            self.say(told)

    def say(self, told: Told) -> None:
        """Let the caller hear it, and queue the jobs it answers with."""
        if more := self.hear(told):
            self.add(more)

    def end(self, name: str, state: State, told: Told) -> None:
        """A job has ended: those that waited for it can start, or never will."""
        self.running.discard(name)
        self.outcomes[name] = Outcome(state, told.record, told.error, self.attempts[name])
        followers = self.followers.pop(name, [])
        for follower in followers:
            self.missing[follower] -= 1
            if state == "done" and not self.missing[follower]:
                heapq.heappush(self.ready, (self.place[follower], follower))
        self.say(told)
        if state != "done":
            for follower in followers:
                self.skip(follower, name)

    def lose(self, told: Told) -> None:
        """A worker died: its job is tried again, unless all is to stop or it was tried enough."""
        self.running.discard(told.job)
        if self.stopping:
            return
        attempts = self.attempts[told.job]
        if attempts <= self.retries:
            heapq.heappush(self.ready, (self.place[told.job], told.job))
            self.say(Told("retried", told.job, error=told.error))
        else:
            first, *rest = told.error.split("\n")
            times = "once" if attempts == 1 else f"{attempts} times, at last"
            error = "\n".join([f"its worker died {times} {first}", *rest])
            self.end(told.job, "failed", Told("failed", told.job, error=error))

    def skip(self, name: str, because: str) -> None:
        """Neither this job nor any that waits for it can ever start."""
        state = self.outcomes[because].state
        error = f"{because} {'was ' if state in ('skipped', 'stopped') else ''}{state}"
        waiting = [name]
        while waiting:
            name = waiting.pop()
            if name in self.outcomes:
                continue
            self.outcomes[name] = Outcome("skipped", error=error)
            waiting += reversed(self.followers.pop(name, []))
            self.say(Told("skipped", name, error=error))

    def stop_rest(self) -> None:
        """Everything without an outcome was stopped."""
        for name in [name for name in self.jobs if name not in self.outcomes]:
            self.outcomes[name] = Outcome("stopped", attempts=self.attempts[name])
            self.hear(Told("stopped", name))
        self.running.clear()


def circle(left: dict[str, set[str]]) -> str:
    """One circle among jobs that all wait for another of them."""
    path = [next(iter(left))]
    while True:
        step = min(left[path[-1]])
        if step in path:
            return " → ".join([*path[path.index(step) :], step])
        path.append(step)
