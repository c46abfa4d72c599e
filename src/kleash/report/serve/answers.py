"""What takes longer than a page may: made in a thread, one thing after the other, and kept.

A page asks, and gets the answer or None; it is then shown without, and looks again.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Lock, Thread
from typing import Any

from markupsafe import Markup

from kleash.errors import KleashError
from kleash.report.serve.store import TORN, Store
from kleash.report.words import Language

MOST = 64
EVERYTHING = 16  # folders down
PAUSE = 0.5  # seconds: the page that asks is sent first
OF_STUDY = (
    *("verdict", "limits", "expectations", "next", "curves", "frontier", "gaps", "comparisons"),
)
OF_RUNS = ("verdict", "limits", "next", "curves", "comparisons")


@dataclass(frozen=True)
class Unread:
    """Why there is no answer, in one line."""

    why: str


@dataclass
class Job:
    """Something to be made anew whenever its stamp changes; till then its last answer holds."""

    stamp: Any
    make: Callable[[], Any]
    made: Any = None
    """The stamp of the answer."""
    answer: Any = None


class Background:
    """A thread for all that is long, while there is any."""

    def __init__(self) -> None:
        self.jobs: OrderedDict[Hashable, Job] = OrderedDict()
        self.lock, self.working = Lock(), False

    def ask(self, name: Hashable, stamp: Hashable, make: Callable[..., Any], *given: Any) -> Any:
        """What `make` said last under this name, None before; made again where the stamp is new.

        Of too many the oldest go; what nobody waits for any more is not begun.
        """
        with self.lock:
            job = self.jobs.setdefault(name, Job(stamp, partial(make, *given)))
            job.stamp = stamp
            self.jobs.move_to_end(name)
            while len(self.jobs) > MOST:
                self.jobs.popitem(last=False)
            if job.made != stamp and not self.working:
                self.working = True
                Thread(target=self.work, daemon=True).start()
            return job.answer

    def work(self) -> None:
        """Make what is asked for until nothing is left."""
        time.sleep(PAUSE)
        while True:
            with self.lock:
                job = next((each for each in self.jobs.values() if each.made != each.stamp), None)
                if job is None:
                    self.working = False
                    return
                stamp = job.stamp
            made = answer(job.make)
            with self.lock:
                job.answer, job.made = made, stamp

    def close(self) -> None:
        """Nothing more is begun."""
        with self.lock:
            self.jobs.clear()


def answer(make: Callable[[], Any]) -> Any:
    """The answer, or one line for whatever a torn or foreign file makes readers raise."""
    try:
        return make()
    except (*TORN, MemoryError) as error:
        text = str(error).splitlines()[0][:300] if str(error) else ""
        return Unread(text if isinstance(error, KleashError) else f"{type(error).__name__}: {text}")


# --- what is made there


def study_answer(store: Store, folder: Path, language: Language) -> Markup:
    """What the report says of a study first: the same blocks."""
    from kleash.report.material import of_study
    from kleash.study.results import results

    return blocks(of_study(results(store.guard(folder, EVERYTHING)), language), OF_STUDY)


def comparison(store: Store, paths: Sequence[Path], language: Language) -> Markup:
    """What `kleash compare` says of runs, as the blocks of a report, and their curves."""
    from kleash.compare.comparison import compare
    from kleash.compare.read import read
    from kleash.report import of_sources

    sources = [read(store.guard(path, EVERYTHING)) for path in paths]
    return blocks(of_sources(compare(sources), "", language), OF_RUNS)


def run_curves(store: Store, path: Path, language: Language) -> Markup:
    """The curves of one run, as a report draws them."""
    from kleash.compare.arms import gather
    from kleash.compare.read import read
    from kleash.report import Material

    sources = [read(store.guard(path, EVERYTHING))]
    return blocks(Material("", language, None, sources, gather(sources)), ("curves",))


def blocks(made: Any, keys: Sequence[str]) -> Markup:
    """Sections of a report as HTML; the long lists are folded there, too."""
    from kleash.report import FOLDED, PAGE
    from kleash.report.page import fragments
    from kleash.report.parts import Section

    folded = {*FOLDED} - {"curves"}
    sections = [Section(k, made.heading(k), PAGE[k](made), folded=k in folded) for k in keys]
    return fragments([each for each in sections if each.parts], made.say("as_table"))
