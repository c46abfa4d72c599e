"""Environments with a simulated user. One file and one line in `ENVS` for each.

The contract is in `contract`. Training and evaluation both take a gym from here and let it `make`
environments, so that a policy is measured in what it was trained in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from kleash.config import Config, build
from kleash.envs.contract import Gym
from kleash.errors import ConfigError
from kleash.ledger import Ledger

# name: (module, gym, its options)
ENVS = {
    "intention": ("kleash.envs.intention", "Intention", "IntentionOptions"),
    "function": ("kleash.envs.function", "Functions", "FunctionOptions"),
    "telepathy": ("kleash.envs.telepathy", "Telepathy", "TelepathyOptions"),
}


def gym(
    name: str, options: Mapping[str, Any] | None = None, *, ledger: Ledger | None = None
) -> Gym:
    """The gym of that name; `ledger` is where a chat user's answers are kept."""
    make: Callable[..., Gym] = getattr(_module(name), ENVS[name][1])
    return make(ledger=ledger, options=build(options_of(name), options or {}))


def options_of(name: str) -> type[Config]:
    """The options of a gym, each with its sentence."""
    found: type[Config] = getattr(_module(name), ENVS[name][2])
    return found


def _module(name: str) -> Any:
    if name not in ENVS:
        raise ConfigError(f"no environment {name!r}: there is {', '.join(ENVS)}")
    return import_module(ENVS[name][0])
