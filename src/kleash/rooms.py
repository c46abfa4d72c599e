"""Packages that can be called: `kleash.train(...)` works, and so does `import kleash.train.loop`.

Four public functions have the name of a package beside them, and Python binds a package that was
imported to its name, whatever stood there. So the package itself is the function.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any


class Room(ModuleType):
    """A package that is called as the function of its name in `kleash.api`."""

    def __call__(self, *given: Any, **named: Any) -> Any:
        """Call that function."""
        return self._function()(*given, **named)

    def _function(self) -> Callable[..., Any]:
        found: Callable[..., Any] = getattr(import_module("kleash.api"), self.__name__[7:])
        return found

    @property
    def __signature__(self) -> inspect.Signature:
        """What it takes, for `inspect.signature` and notebooks."""
        return inspect.signature(self._function())

    @property
    def __doc__(self) -> str:  # type: ignore[override]  # as text: `help` and `?` show it
        """What the function does, then what is in the package."""
        own, call = vars(self).get("__doc__", ""), self._function()
        name = f"{self.__name__}{inspect.signature(call)}"
        return f"{name}\n\n{inspect.getdoc(call)}\n\nAs a package: {own}"

    def __reduce__(self) -> tuple[Callable[[str], ModuleType], tuple[str]]:
        """As its name: it travels to processes and Ray's workers as a function does."""
        return import_module, (self.__name__,)


def make_callable(name: str) -> None:
    """Let the package of that name, which is being imported, be called."""
    sys.modules[name].__class__ = Room


def files_of(package: str) -> Callable[[str], Any]:
    """A `__getattr__` for a package whose files are imported when they are first named."""

    def file(name: str) -> Any:
        if name.startswith("_") or find_spec(f"{package}.{name}") is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return import_module(f"{package}.{name}")

    return file
