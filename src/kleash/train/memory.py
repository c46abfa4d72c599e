"""A GPU's memory while an agent trains: its peaks, and whether an update needs an engine's too."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from kleash.engine.pages import unclaimed

SPARE = 1.1
"""Times what the largest update so far took: batches differ."""


class Memory:
    """What was used of a device since an epoch began. On a CPU nothing is counted or scarce."""

    def __init__(self, device: str) -> None:
        self.device, self.on_gpu = device, device.startswith("cuda")
        self.needed = math.inf  # what an update takes, which is not known before the first
        self.begin()

    def begin(self) -> None:
        """From here on peaks are counted anew."""
        self.allocated = self.reserved = 0
        if self.on_gpu:
            torch.cuda.reset_peak_memory_stats(self.device)

    def scarce(self) -> bool:
        """Whether an update might not fit beside what an engine keeps for talks."""
        return self.on_gpu and unclaimed(torch.device(self.device)) < SPARE * self.needed

    @contextmanager
    def update(self) -> Iterator[None]:
        """See how much the update in here takes beside what is there."""
        if not self.on_gpu:
            yield
            return
        self._look()
        torch.cuda.reset_peak_memory_stats(self.device)
        held = torch.cuda.memory_allocated(self.device)
        yield
        took = torch.cuda.max_memory_allocated(self.device) - held
        self.needed = took if self.needed == math.inf else max(took, self.needed)

    def peaks(self) -> dict[str, float]:
        """The most GiB that tensors held, and what was reserved for them."""
        if not self.on_gpu:
            return {}
        self._look()
        return {
            "peak_memory": self.allocated / 2**30,
            "reserved_memory": self.reserved / 2**30,
        }

    def _look(self) -> None:
        self.allocated = max(self.allocated, torch.cuda.max_memory_allocated(self.device))
        self.reserved = max(self.reserved, torch.cuda.max_memory_reserved(self.device))
