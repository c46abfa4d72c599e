"""What a KL coefficient of another project is here: one table for `kleash coef` and the page.

Its rows are in coefficients.toml. Texts are Markdown; what other projects do by default changes,
so each row names the settings it is about. How the factors come about is in docs/method.md, which
has the same table.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

Texts = tuple[str, str]
"""In English and in Chinese."""

NOTHING = "–"
FACTORS: dict[str, Callable[[float, int], float]] = {
    "": lambda sd, group: 1.0,
    "·σ": lambda sd, group: sd,
    "·G/(G-1)": lambda sd, group: group / (group - 1),
    "·σ·(G/(G-1))": lambda sd, group: sd * group / (group - 1),
}
"""What a coefficient is multiplied by: σ is the SD of rewards within a group, G its size."""


@dataclass(frozen=True)
class Elsewhere:
    """A coefficient of a project under some of its settings, and what it is here."""

    project: str
    key: str
    """The setting that holds the number, by its last part."""
    when: tuple[str, ...]
    """The settings that the row is about, as key=value, in small letters."""
    settings: Texts
    here: Texts
    factor: str | None = None
    """By what the number is multiplied; None where there is nothing like it here."""
    note: Texts = ("", "")

    def amount(self, number: str) -> str:
        """The coefficient here as a formula."""
        return NOTHING if self.factor is None else f"{number}{self.factor}"


@cache
def known_rows() -> tuple[Elsewhere, ...]:
    """Every row of coefficients.toml; what the file has once is the same in both languages."""
    text = Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
    found = []
    for row in tomllib.loads(text)["row"]:
        texts = {name: row.get(name, "") for name in ("settings", "here", "note")}
        pairs = {n: (t, t) if isinstance(t, str) else tuple(t) for n, t in texts.items()}
        found.append(Elsewhere(**row | pairs | {"when": tuple(row["when"])}))
    return tuple(found)


def rows_for(project: str, given: Mapping[str, str]) -> tuple[str, Sequence[Elsewhere]]:
    """The key that holds the number, and the rows about it that the other settings leave.

    A row that is about a setting as it was given comes before those that do not mention it.
    """
    ours = [row for row in known_rows() if row.project.lower() == project.lower()]
    last = {key.rsplit(".", 1)[-1]: value.strip("\"'").lower() for key, value in given.items()}
    key = next((row.key for row in ours if row.key in last), "")
    about = [row for row in ours if row.key == key]
    wanted = {f"{name}={value}" for name, value in last.items() if name != key}

    def other(row: Elsewhere) -> bool:
        """Whether a row is about another value of a setting that was given."""
        named = {each.split("=")[0] for each in row.when}
        asked = {each for each in wanted if each.split("=")[0] in named}
        return any(each not in row.when for each in asked)

    left = [row for row in about if not other(row)]
    exact = [row for row in left if wanted & set(row.when)]
    refused = [row for row in exact if row.factor is None]
    return key, refused or exact or left
