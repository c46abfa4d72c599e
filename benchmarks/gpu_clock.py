"""Where an engine's time goes: tuning, captures, reading, and steps by the size of their batch.

Spans are measured on the device, so that what is not in any of them is waiting: for the host, or
for users.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmarks.figures import Figures
    from kleash.models.engine.paged import PagedEngine

Mark = Any
"""A moment: an event of CUDA, or seconds."""


class EngineClock:
    """Looks on as an engine works, from when it is entered until it is left."""

    def __init__(self, engine: PagedEngine, figures: Figures) -> None:
        self.engine, self.figures = engine, figures
        self.spans: list[tuple[str, Mark, Mark]] = []
        self.aside = 0

    def __enter__(self) -> EngineClock:
        from kleash.models.engine.decoder import Decoder

        self.honest = {name: getattr(Decoder, name) for name in ("tune", "_read", "_one")}
        self.put_aside = self.engine._put_aside
        read, tune, one = (self.honest[name] for name in ("_read", "tune", "_one"))

        def aside(row: Any) -> None:
            self.aside += 1
            self.put_aside(row)

        def step(decoder: Any, size: int, *, truncated: bool, mixed: bool = False) -> Any:
            fresh = decoder.on_cuda and (size, truncated, mixed) not in decoder._graphs
            steps = f"steps of {size}{' with replies' if mixed else ''}"
            how = {"truncated": truncated, "mixed": mixed}
            return self.timed("capturing" if fresh else steps, lambda: one(decoder, size, **how))

        patched: dict[str, Any] = {
            "tune": lambda decoder: self.timed("tuning", lambda: tune(decoder)),
            "_read": lambda decoder, pieces: self.timed("reading", lambda: read(decoder, pieces)),
            "_one": step,
        }
        for name, call in patched.items():
            setattr(Decoder, name, call)
        self.engine.__dict__["_put_aside"] = aside
        return self

    def __exit__(self, *given: object) -> None:
        from kleash.models.engine.decoder import Decoder

        for name, call in self.honest.items():
            setattr(Decoder, name, call)
        del self.engine.__dict__["_put_aside"]

    def timed(self, kind: str, work: Any) -> Any:
        """Do it between two marks."""
        began = self.mark()
        found = work()
        self.spans.append((kind, began, self.mark()))
        return found

    def mark(self) -> Mark:
        """Now, on the device."""
        if not self.figures.large:
            return time.perf_counter()
        event = self.figures.torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def tell(self, name: str, seconds: float) -> None:
        """Seconds of every kind, and their share of all seconds."""
        self.figures.wait()
        spent: dict[str, list[float]] = {}
        for kind, began, ended in self.spans:
            took = began.elapsed_time(ended) / 1e3 if self.figures.large else ended - began
            spent.setdefault(kind, []).append(took)
        for kind in sorted(spent, key=lambda kind: (len(kind), kind)):
            each = spent[kind]
            found = {"count": len(each), "seconds": sum(each), "ms": 1e3 * sum(each) / len(each)}
            self.figures.note(f"{name}, {kind}", found)
        busy = sum(map(sum, spent.values())) / seconds
        self.figures.note(f"{name}, share of the time that the device is at work", busy)
        self.figures.note(f"{name}, times a talk was put aside", self.aside)
