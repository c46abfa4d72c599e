"""A study file in the making: what reports say of settings, and lines of TOML with their places."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Said:
    """One value of a setting, who says it of which arm, and where."""

    key: str
    value: Any
    arm: str
    report: str
    line: int | None


@dataclass
class Asked:
    """A study file in the making: tables of lines, and the questions above them."""

    tables: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    questions: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    """Codes with their facts: the sentences are the catalogue's."""

    def ask(self, code: str, **facts: Any) -> None:
        """Something that only the author can answer."""
        self.questions.append((f"ask.{code}", facts))

    def put(self, table: str, key: str, value: Any, said: Sequence[Said] = ()) -> None:
        """A setting, with the lines it was taken from."""
        note = f"  # {places(said)}" if said else ""
        self.tables[table].append(f"{key} = {toml(value)}{note}")


def toml(value: Any) -> str:
    """A value as TOML writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        text = f"{value:g}"
        return text if re.search(r"[.e]", text) else f"{text}.0"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(one)}" for key, one in value.items()) + " }"
    text = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def places(said: Sequence[Said]) -> str:
    """Where things are said: `000.md 9, 24`."""
    by_report: dict[str, list[int]] = defaultdict(list)
    for one in said:
        if one.line is not None and one.line not in by_report[one.report]:
            by_report[one.report].append(one.line)
    return "; ".join(
        f"{report}:{','.join(map(str, sorted(lines)))}" for report, lines in by_report.items()
    )
