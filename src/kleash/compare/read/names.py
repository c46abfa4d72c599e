"""Which names mean the same: metrics and config keys, in Chinese, English and framework spelling.

The names stand in `names.toml`; here are the functions that look things up. A name that is not
there is unknown: it is kept, reported, and never guessed from its neighbours, so that no verdict
rests on it. The table says what a quantity is, not whether two values of it may be compared.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Literal

Kind = Literal["treatment", "must match", "seed", "harmless"]
LONGEST = 300  # characters of a name that are looked at


@dataclass(frozen=True)
class Metric:
    """A quantity: its unit, whether higher (1) or lower (-1) is better or neither (0).

    `constant` is the value it has by construction, whatever the training did; `trap` is what a
    reader of its numbers should know.
    """

    name: str
    unit: str
    direction: Literal[-1, 0, 1]
    constant: float | None = None
    trap: str = ""


@dataclass(frozen=True)
class Key:
    """A setting, under the name it has in our own configs, and what it may do to a comparison."""

    name: str
    kind: Kind


@dataclass
class Resolved:
    """A config under known names: values, how each was written, and what is unknown.

    `values` of the leash are numbers: a leash that is switched off has coefficient 0.
    """

    values: dict[str, Any] = field(default_factory=dict)
    written: dict[str, str] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)


TABLE = tomllib.loads((Path(__file__).parent / "names.toml").read_text(encoding="utf-8"))
METRICS: dict[Metric, tuple[str, ...]] = {
    Metric(name, **{key: value for key, value in told.items() if key != "names"}): (
        *told["names"],
        name,
    )
    for name, told in TABLE["metrics"].items()
}
KEYS: dict[Key, tuple[str, ...]] = {
    Key(name, kind): (*names, name)
    for kind, keys in TABLE["keys"].items()
    for name, names in keys.items()
}
COLUMNS: dict[str, Any] = TABLE["columns"]
WORDS: dict[str, Any] = TABLE["words"]
REPORT: dict[str, Any] = TABLE["report"]
# `mean@8` where a tool takes no "@" in names: MLflow's of verl and tensorboardX's.
_AT = re.compile(r"(?<=/)(mean|best|worst|maj|pass)(?:_at_|_)(\d{1,4})(?![^/])")
# Parts of a config that set up something other than the policy under training.
_OTHERS = re.compile(r"critic\.|reward_model\.|actor_rollout_ref\.ref\.|.*\.val_kwargs\.")


@lru_cache(maxsize=16_384)
def spelling(name: str) -> str:
    """A name without case, width, spaces, underscores, hyphens and Markdown's stars."""
    text = unicodedata.normalize("NFKC", name[:LONGEST]).casefold()
    return re.sub(r"[\s_*`-]", "", text).strip(":")


def pointed(number: str) -> str:
    """A number of a name with the point that names leave out: 0.10 for the 010 of `kl010`."""
    return f"0.{number[1:]}" if re.fullmatch(r"0\d+", number) else number


@cache
def _metrics() -> dict[str, Metric]:
    return {spelling(name): metric for metric, names in METRICS.items() for name in names}


@cache
def _keys() -> dict[str, Key]:
    return {spelling(name): key for key, names in KEYS.items() for name in names}


@cache
def _patterns() -> list[tuple[re.Pattern[str], str]]:
    """Patterns of names, and the quantity that each is of."""
    found = []
    for metric, patterns in TABLE["patterns"].items():
        for pattern in patterns:
            for part, text in TABLE["parts"].items():
                pattern = pattern.replace(f"{{{part}}}", text.replace("\n", ""))
            found.append((re.compile(pattern), metric))
    return found


def _readings(name: str) -> list[str]:
    """A name as it is, without its number in a list, without its brackets, and what is in them."""
    text = re.sub(r"^\s*\d{1,2}[.、)]\s*", "", unicodedata.normalize("NFKC", name[:LONGEST]))
    outside = re.sub(r"\([^()]*\)", "", text)
    return [name, text, outside, *re.findall(r"\(([^()]*)\)", text)[:2]]


_ASKED = {"higher is better: ": 1, "lower is better: ": -1}


def asked(name: str, direction: Literal[-1, 1]) -> str:
    """What a quantity is called that no table knows, whose better end somebody gave."""
    return next(words for words, end in _ASKED.items() if end == direction) + name


def plain(name: str) -> str:
    """The name without its better end."""
    return next((name.removeprefix(words) for words in _ASKED if name.startswith(words)), name)


def with_at(name: str) -> str:
    """A name as it was before a tool took the "@" out of it: `mean@1` for `mean_at_1`."""
    return _AT.sub(r"\1@\2", name)


@lru_cache(maxsize=16_384)
def rank(name: str) -> int:
    """Which of a quantity's names comes first where a run has several of them: the lowest."""
    known = metric(name)
    aliases = [*map(spelling, METRICS.get(known, ()))] if known else []
    plain = re.sub(r"^train(?:ing)?/", "", spelling(name))
    return aliases.index(plain) if plain in aliases else len(aliases)


@lru_cache(maxsize=65_536)
def metric(name: str) -> Metric | None:
    """The quantity that a name stands for, or None where the name is unknown."""
    name = with_at(name)
    for words, direction in _ASKED.items():
        if name.startswith(words):
            return Metric(name, "", direction)  # type: ignore[arg-type]
    known = _metrics()
    for reading in _readings(name):
        plain = spelling(reading)
        for text in (plain, plain.removeprefix("train/"), plain.removeprefix("training/")):
            if text in known:
                return known[text]
        lowered = re.sub(r"[\s_]", " ", reading.casefold()).strip()
        for pattern, canonical in _patterns():
            if pattern.fullmatch(lowered):
                return known[spelling(canonical)]
    return None


@lru_cache(maxsize=65_536)
def key(name: str) -> Key | None:
    """The setting that a config key stands for, by its longest known ending; None if unknown."""
    known = _keys()
    for reading in _readings(name)[:3]:
        parts = reading.split(".")
        for first in range(min(len(parts), 12)):
            found = known.get(spelling(".".join(parts[first:])))
            # A letter or two at the end of a dotted key may mean anything.
            if found and (first == 0 or len(parts) - first > 1 or len(parts[-1]) > 2):
                return found
            if _OTHERS.match(reading):
                break
    return None


@cache
def _mention() -> re.Pattern[str]:
    """Any known metric inside a phrase, the longest first, whole words where they are Latin."""
    aliases = {alias for names in METRICS.values() for alias in names[:-1]}
    kept = [alias for alias in aliases if "/" not in alias and "," not in alias]
    every = sorted([*kept, *WORDS["treatments"]], key=lambda alias: (-len(alias), alias))
    each = []
    for alias in every:
        body = "[ _-]?".join(map(re.escape, alias.replace("?", "").split(" ")))
        left = r"(?<![a-z0-9_])" if alias[0].isascii() else ""
        right = r"(?![a-z0-9_=])" if alias[-1].isascii() else ""
        each.append(f"{left}{body}{right}")
    return re.compile("|".join(each))


@lru_cache(maxsize=16_384)
def mention(text: str) -> str:
    """The first known metric that a phrase names, as it is written there; '' if it names none."""
    # Lengths stay equal, so that the match can be cut from the text as it was written.
    lowered = "".join(low if len(low := c.lower()) == 1 else c for c in text[: 4 * LONGEST])
    for match in _mention().finditer(lowered):
        if metric(match.group()) is not None and not _treats(match.group()):
            return text[match.start() : match.end()]
    return ""


def key_within(text: str) -> str:
    """The longest known config key that a phrase holds, as spelt in the table; '' if none.

    Only Chinese keys and long ones: short Latin words stand inside others.
    """
    plain = spelling(text)
    fit = [alias for alias in _keys() if alias in plain and (not alias.isascii() or len(alias) > 7)]
    return max((alias for alias in fit if len(alias) > 2), key=len, default="")


@cache
def _treats(text: str) -> bool:
    return spelling(text) in {spelling(each.replace("?", "")) for each in WORDS["treatments"]}


_COEFFICIENT = re.compile(r"(?:coef\w{0,8}|beta|系数|β)\s*[=:]?\s*([\d.]{1,20}(?:e-?\d{1,3})?)")
_NUMBER = re.compile(r"[+-]?(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})(?:e[+-]?\d{1,3})?")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?")


def resolve(config: Mapping[str, Any]) -> Resolved:
    """A config under known names. Of two spellings that give two values the first counts."""
    found = Resolved()
    for written, value in config.items():
        if isinstance(value, str) and _MOMENT.fullmatch(value.strip()):
            continue  # when a run began is not what it began from
        known = key(written)
        if known is None:
            found.unknown.append(written)
        else:
            _settle(found, known.name, written, value)
    _tie(found)
    return found


def _settle(found: Resolved, name: str, written: str, value: Any) -> None:
    settled = _value(name, value)
    if name in found.values and not same(found.values[name], settled):
        return
    found.values.setdefault(name, settled)
    found.written.setdefault(name, written)
    if name == "leash.used" and isinstance(value, str):
        coefficient = _COEFFICIENT.search(value.casefold())
        if coefficient and truth(value) is not False and _float(coefficient[1]) is not None:
            _settle(found, "leash.coefficient", written, coefficient[1])
    if name == "schedule" and isinstance(value, str) and "lr" not in found.values:
        bracket = re.search(r"\(\s*([\d.]{1,20}e-?\d{1,3})\s*\)", value.casefold())
        if bracket and _float(bracket[1]) is not None:
            found.values["lr"] = _float(bracket[1])
            found.written["lr"] = written


def _tie(found: Resolved) -> None:
    """A leash that is off has coefficient 0, whatever coefficient is written beside it."""
    if found.values.get("leash.used") is True:
        return
    if found.values.get("leash.in_reward") is True:
        if "leash.reward_coefficient" in found.values:
            found.values["leash.coefficient"] = found.values["leash.reward_coefficient"]
            found.written["leash.coefficient"] = found.written["leash.reward_coefficient"]
    elif found.values.get("leash.used") is False:
        found.values["leash.coefficient"] = 0.0
        found.written["leash.coefficient"] = found.written["leash.used"]
    elif "leash.reward_coefficient" in found.values:
        found.values.setdefault("leash.coefficient", found.values["leash.reward_coefficient"])
        found.written.setdefault("leash.coefficient", found.written["leash.reward_coefficient"])


def _value(name: str, value: Any) -> Any:
    if isinstance(value, bool | int | float) or value is None:
        return value
    return _text_value(name, value) if isinstance(value, str) else value


@lru_cache(maxsize=65_536)
def _text_value(name: str, value: str) -> Any:
    text = unicodedata.normalize("NFKC", value[:LONGEST]).strip()
    if name in ("leash.used", "leash.in_reward"):
        return text if truth(text) is None else truth(text)
    if name == "schedule":
        return schedule(text)
    number = _float(text)
    return text if number is None else number


def _float(text: str) -> float | None:
    plain = text.replace(",", "").casefold()
    return float(plain) if _NUMBER.fullmatch(plain) else None


def truth(text: str) -> bool | None:
    """What the first word of "❌ False" or "是（只训练一半）" says; None if it says neither."""
    plain = unicodedata.normalize("NFKC", text[:LONGEST]).casefold()
    words = re.findall(r"[a-z0-9.]+|[\u4e00-\u9fff]+", plain)
    if words:
        return next((said == "true" for said in ("true", "false") if words[0] in WORDS[said]), None)
    marks = {"✅": True, "✓": True, "✔": True, "❌": False, "✗": False, "✘": False, "×": False}
    return next((marks[c] for c in plain if c in marks), None)


def schedule(text: str) -> str:
    """A learning-rate schedule by its usual name, with "warmup" where that is said; else as is."""
    plain = text.casefold()
    kind = next((name for name, words in WORDS["schedules"].items() if re.search(words, plain)), "")
    warm = "warmup" if re.search("warm-?up|预热", plain) else ""
    return " + ".join(filter(None, (warm, kind))) or text


def same(ours: Any, theirs: Any) -> bool:
    """Whether two values of a config are equal, numbers as numbers and text without case."""
    if isinstance(ours, str) and isinstance(theirs, str):
        return spelling(ours) == spelling(theirs)
    return bool(ours == theirs) and isinstance(ours, bool) == isinstance(theirs, bool)
