"""Kleash trains policies with GRPO on a KL leash, and finds out what the leash did."""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# Public names, each loaded when it is first used: `import kleash` takes no time.
PUBLIC = {"read": "kleash.study.results.reading", "Runs": "kleash.study.results.reading"}


def __getattr__(name: str) -> Any:
    """A public name."""
    if name not in PUBLIC:
        raise AttributeError(f"module 'kleash' has no attribute {name!r}")
    return getattr(import_module(PUBLIC[name]), name)


def __dir__() -> list[str]:
    """With the public names."""
    return sorted({*globals(), *PUBLIC})
