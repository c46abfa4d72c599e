"""Figures that are measured on one device until time is up, each written down at once."""

from __future__ import annotations

import gc
import json
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kleash.models.language import flops
from kleash.models.language.flops import Work


class Figures:
    """What was found so far, and how things are timed.

    Every part is tried by itself: one that fails leaves its error among the figures.
    """

    def __init__(self, device: str, seconds: float, setting: str) -> None:
        import torch

        self.torch, self.device = torch, device
        self.began, self.seconds = time.monotonic(), seconds
        self.large = device != "cpu"
        self.peak = flops.peak(device)
        self.found: dict[str, Any] = {"setting": f"{setting}, drawn weights, {device}"}

    def left(self, *, used: bool = False) -> float:
        """Seconds until time is up, or those that are gone."""
        gone = time.monotonic() - self.began
        return gone if used else self.seconds - gone

    def note(self, name: str, value: Any) -> None:
        """Keep a figure, and write it down at once."""
        self.found[name] = value
        line = json.dumps({"what": name, "figure": value, "at": round(self.left(used=True), 1)})
        print(line, file=sys.stderr, flush=True)  # noqa: T201 (so that none is lost if killed)

    def attempt(self, name: str, measure: Callable[[], None], needs: float = 0.0) -> None:
        """One part by itself; its error is its figure."""
        if self.left() < needs:
            self.note(f"{name}: not measured", f"{self.left():.0f} s were left")
            return
        try:
            measure()
        except Exception as error:  # noqa: BLE001 (whatever breaks a part must not break the others)
            self.note(f"{name}: failed", f"{type(error).__name__}: {str(error)[:600]}")
            where = traceback.extract_tb(error.__traceback__)[-6:]
            self.note(f"{name}: where", [f"{Path(at.filename).name}:{at.lineno}" for at in where])
        self.tidy()

    def clocked(self, work: Callable[[], Any]) -> float:
        """Seconds of it on the device."""
        began = self.now()
        work()
        return self.now() - began

    def now(self) -> float:
        """Seconds on a clock, once the device is done."""
        self.wait()
        return time.perf_counter()

    def wait(self) -> None:
        """Until the device has done all it was told."""
        if self.large:
            self.torch.cuda.synchronize()

    def memory(self, *, reset: bool = False) -> float:
        """The peak of allocated memory since the last reset, in GiB."""
        if not self.large:
            return 0.0
        if reset:
            self.torch.cuda.reset_peak_memory_stats()
        return float(self.torch.cuda.max_memory_allocated()) / 2**30

    def rates(self, name: str, seconds: float, work: Work, tokens: int) -> None:
        """Tokens per second and both MFUs of work over so many tokens."""
        self.note(f"{name}, seconds", seconds)
        self.note(f"{name}, tokens per second", tokens / seconds)
        if self.peak is not None:
            for formula, share in work.mfu(seconds, self.peak).items():
                self.note(f"{name}, MFU ({formula} formula)", share)

    def tidy(self) -> None:
        """Give back memory that nobody holds."""
        gc.collect()
        if self.large:
            self.torch.cuda.empty_cache()
