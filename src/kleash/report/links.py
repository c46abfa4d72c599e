"""From the place of a number to an address that works beside the report."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from urllib.parse import quote

from kleash.imports import Where


@dataclass(frozen=True)
class Links:
    """Addresses relative to the folder that the report stands in."""

    folder: Path

    def address(self, where: Where | None) -> str:
        """`runs/a-s0/scores.jsonl#L41`; '' where there is no place."""
        if where is None or not where.file:
            return ""
        path = _quoted(where.file, self.folder)
        return path if where.line is None else f"{path}#L{where.line}"

    def shown(self, file: str) -> str:
        """A file's path as seen from the report."""
        return _relative(file, self.folder)


@lru_cache(maxsize=65_536)  # a report has many numbers from few files
def _relative(file: str, folder: Path) -> str:
    return Path(os.path.relpath(file, folder)).as_posix()


@lru_cache(maxsize=65_536)
def _quoted(file: str, folder: Path) -> str:
    return quote(_relative(file, folder))
