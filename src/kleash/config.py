"""Configs: frozen pydantic models, made from defaults, TOML files and `key=value`, in that order.

An unknown key is an error that names the nearest one. The sentence under a field is its help.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from kleash.errors import ConfigError

# What other projects call our keys. Answered with "did you mean", never accepted silently.
FOREIGN = {
    "kl_beta": "leash.coefficient",
    "kl_coef": "leash.coefficient",
    "kl_loss_coef": "leash.coefficient",
    "init_kl_coef": "leash.coefficient",
    "beta": "leash.coefficient",
    "use_kl_loss": "leash.form",
    "kl_loss_type": "leash.form",
    "learning_rate": "lr",
    "entropy_coeff": "entropy_bonus",
}


FEW = 3  # keys that are named where none is near


class Config(BaseModel):
    """A frozen record that forbids unknown keys."""

    listed: ClassVar[str] = ""
    """The command that lists its keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    def but(self, **changes: Any) -> Self:
        """The same config with some fields changed, checked again."""
        return build(type(self), self.model_dump(by_alias=True) | changes)


ConfigT = TypeVar("ConfigT", bound=Config)


def build(kind: type[ConfigT], values: Mapping[str, Any], at: str = "") -> ConfigT:
    """Make a `kind` from nested mappings, with one clear line for the first thing wrong.

    `at` is what a user writes before its keys, where they stand in another config: `gym.`.
    """
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise ConfigError(explain(kind, error, at)) from None


def explain(kind: type[Config], error: ValidationError, at: str = "") -> str:
    """The first error of a pydantic report as one line that says what to do."""
    # A key that is missing may be the one that was misspelt.
    first = min(error.errors(), key=lambda each: each["type"] != "extra_forbidden")
    path = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return f"unknown key {at + path!r}: {suggestion(kind, path, at)}"
    path = at + path
    if first["type"] == "missing":
        return f"{path!r} is missing: give it in the TOML file or as {path}=VALUE"
    return f"bad value for {path!r}: {first['msg']} (got {first['input']!r})"


def suggestion(kind: type[Config], path: str, at: str = "") -> str:
    """What the writer of an unknown key may have meant."""
    known = list(keys(kind))
    last = path.rsplit(".", 1)[-1]
    if last in FOREIGN and FOREIGN[last] in known:
        return f"did you mean {FOREIGN[last]!r}?"
    near = get_close_matches(path, known, n=1) or get_close_matches(
        last, [name for name in known if "." not in name], n=1
    )
    ends = [name for name in known if name.endswith("." + last)]
    if near or ends:
        return f"did you mean {at + (ends or near)[0]!r}?"
    if len(known) <= FEW:
        return f"the keys are: {', '.join(at + name for name in known)}"
    nearest = [at + name for name in get_close_matches(last, known, n=FEW, cutoff=0.0)]
    return f"the nearest keys are {', '.join(nearest)}" + (
        f"; {kind.listed} lists all {len(known)}" if kind.listed else ""
    )


def keys(kind: type[Config], prefix: str = "") -> Iterator[str]:
    """Every dotted key of a config, nested ones included."""
    for name, field in kind.model_fields.items():
        shown = prefix + (field.alias or name)
        nested = field.annotation
        if inspect.isclass(nested) and issubclass(nested, Config):
            yield from keys(nested, shown + ".")
        else:
            yield shown


def read_toml(path: Path) -> dict[str, Any]:
    """The mapping in a TOML file."""
    if not path.is_file():
        raise ConfigError(f"no such config file: {path}")
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from None


def parse_overrides(pairs: Sequence[str]) -> dict[str, Any]:
    """`["leash.coefficient=0.12", "seed=3"]` as a nested mapping; values are TOML, or bare text."""
    nested: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name.strip():
            raise ConfigError(f"{pair!r} is not key=value: write for example seed=3")
        spot = nested
        *parents, last = name.strip().split(".")
        for parent in parents:
            spot = spot.setdefault(parent, {})
            if not isinstance(spot, dict):
                raise ConfigError(f"{name!r}: {parent!r} was given a value before")
        if isinstance(spot.get(last), dict):
            raise ConfigError(f"{name!r} was given as {name}.{next(iter(spot[last]))} before")
        spot[last] = parse_value(text.strip())
    return nested


def parse_value(text: str) -> Any:
    """A TOML value, or the text itself: `0.1` is a number, `none` is a word."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def merge(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Nested mappings laid over each other, later ones on top."""
    merged: dict[str, Any] = {}
    for layer in layers:
        for name, value in layer.items():
            if isinstance(value, Mapping):
                below = merged.get(name)
                merged[name] = merge(below if isinstance(below, Mapping) else {}, value)
            else:
                merged[name] = value
    return merged


def help_lines(kind: type[Config], prefix: str = "") -> Iterator[tuple[str, str, str]]:
    """(key, default, sentence) for every field: the sentence is the docstring under the field."""
    sentences = field_sentences(kind)
    for name, field in kind.model_fields.items():
        shown = prefix + (field.alias or name)
        nested = field.annotation
        if inspect.isclass(nested) and issubclass(nested, Config):
            yield from help_lines(nested, shown + ".")
        else:
            default = "required" if field.is_required() else str(field.get_default())
            yield shown, default, sentences.get(name, "")


def field_sentences(kind: type[Config]) -> dict[str, str]:
    """The string under each field of a class and of those it is built on, from their source."""
    found: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        if issubclass(each, Config) and each is not Config:
            found |= own_sentences(each)
    return found


def own_sentences(kind: type[Config]) -> dict[str, str]:
    """The string under each field that a class itself has."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(kind)))
    body = tree.body[0].body if isinstance(tree.body[0], ast.ClassDef) else []
    found = {}
    for field, below in pairwise(body):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(below, ast.Expr)
            and isinstance(below.value, ast.Constant)
        ):
            found[field.target.id] = " ".join(str(below.value.value).split())
    return found


def dotted(table: Mapping[str, Any], above: str = "") -> list[tuple[str, Any]]:
    """Every value of nested tables under its dotted key."""
    found = []
    for key, value in table.items():
        if isinstance(value, Mapping):
            found += dotted(value, f"{above}{key}.")
        else:
            found.append((above + key, value))
    return found
