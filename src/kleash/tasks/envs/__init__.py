"""Environments with a simulated user. One file and one line in `ENVS` for each, or your class.

The contract is in `contract`. Training and evaluation both take a gym from here and let it `make`
environments, so that a policy is measured in what it was trained in.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, get_type_hints

from pydantic import ConfigDict, create_model

from kleash.config import Config, build
from kleash.errors import ConfigError
from kleash.runs.ledger import Ledger
from kleash.tasks.data import imported
from kleash.tasks.envs.contract import Gym

ENVS = {
    "intention": "kleash.tasks.envs.intention:Intention",
    "function": "kleash.tasks.envs.function:Functions",
    "telepathy": "kleash.tasks.envs.telepathy:Telepathy",
}


def register(name: str, gym: type | str) -> None:
    """Let `env=name` stand for a class of yours, or for "package.module:Class", in this process.

    A study's jobs and `kleash train` run in others: there, and to go on elsewhere, give the class.
    """
    where = gym if isinstance(gym, str) else f"{gym.__module__}:{gym.__qualname__}"
    if ENVS.get(name, where) != where:
        raise ConfigError(f"there is an environment {name!r} already: {ENVS[name]}")
    imported({}, where, "environment")
    ENVS[name] = where


def gym(
    name: str, options: Mapping[str, Any] | None = None, *, ledger: Ledger | None = None
) -> Gym:
    """The gym of that name, or of package.module:Class; `ledger` keeps a chat user's answers."""
    make: Callable[..., Gym] = imported(ENVS, name, "environment")
    takes = inspect.signature(make).parameters
    made = build(options_of(name), options or {}, "gym.")
    given = {key: getattr(made, key) for key in type(made).model_fields}
    if "options" in takes:
        given = {"options": made}
    return make(**given, **({"ledger": ledger} if "ledger" in takes else {}))


class Own(Config):
    """The options of a class that has arguments of its own, and no config for them."""

    model_config = ConfigDict(arbitrary_types_allowed=True)


def options_of(name: str) -> type[Config]:
    """What a gym can be asked for: the config that its class takes as `options`, or arguments."""
    make = imported(ENVS, name, "environment")
    takes = inspect.signature(make).parameters
    hints = get_type_hints(make.__init__ if inspect.isclass(make) else make)
    if "options" in takes:
        kinds = [hints["options"], *getattr(hints["options"], "__args__", ())]
        found: type[Config] = next(k for k in kinds if inspect.isclass(k) and issubclass(k, Config))
        return found
    named = {
        key: (hints.get(key, Any), ... if each.default is each.empty else each.default)
        for key, each in takes.items()
        if key != "ledger" and each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)
    }
    fields: dict[str, Any] = named
    return create_model("Own", __base__=Own, **fields)
