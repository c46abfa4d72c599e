"""From the place of a number to an address that works beside the report."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from kleash.imports import Where


@dataclass(frozen=True)
class Links:
    """Addresses relative to the folder that the report stands in."""

    folder: Path
    known: dict[str, str] = field(default_factory=dict, compare=False)
    """A report has many numbers from few files."""

    def address(self, where: Where | None) -> str:
        """`runs/a-s0/scores.jsonl#L41`; '' where there is no place."""
        if where is None or not where.file:
            return ""
        path = self.known.get(where.file)
        if path is None:
            path = self.known[where.file] = quote(self.shown(where.file))
        return path if where.line is None else f"{path}#L{where.line}"

    def shown(self, file: str) -> str:
        """A file's path as seen from the report."""
        return os.path.relpath(file, self.folder).replace(os.sep, "/")
