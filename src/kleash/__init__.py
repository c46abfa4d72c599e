"""Kleash trains policies with GRPO on a KL leash, and finds out what the leash did."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kleash import algo, stats
    from kleash.api import (
        Comparison,
        Page,
        Run,
        Runs,
        Study,
        compare,
        evaluate,
        keys,
        load,
        read,
        report,
        study,
        train,
    )  # fmt: skip
    from kleash.errors import KleashError
    from kleash.tasks import envs

__version__ = "0.1.0"
__all__ = [
    "Comparison", "KleashError", "Page", "Run", "Runs", "Study", "algo", "compare", "envs",
    "evaluate", "keys", "load", "read", "report", "stats", "study", "train",
]  # fmt: skip
# Packages; the four that are functions too are called as what `kleash.rooms` says.
PACKAGES = {
    name: f"kleash.{name}" for name in ("algo", "compare", "report", "stats", "study", "train")
}
PACKAGES["envs"] = "kleash.tasks.envs"


def __getattr__(name: str) -> Any:
    """A public name, loaded when it is first used: `import kleash` takes no time."""
    if name not in __all__:
        raise AttributeError(f"module 'kleash' has no attribute {name!r}")
    if name in PACKAGES:
        return import_module(PACKAGES[name])
    home = "kleash.errors" if name == "KleashError" else "kleash.api"
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    """With the public names."""
    return sorted({*globals(), *__all__})
