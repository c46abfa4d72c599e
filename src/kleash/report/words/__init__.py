"""Every sentence that people see, in English and Chinese: `words/*.toml`, pairs side by side.

`say` turns a code and its facts into a sentence; `show` turns a fact into text. Nothing here
decides anything: what may be said is for `compare` and `checks`.
"""

from __future__ import annotations

import math
import re
import string
import tomllib
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

from kleash.compare.checks import CHECKS
from kleash.compare.comparison import Amount
from kleash.compare.read import names

__all__ = ["Language", "cut", "gap_text", "key_name", "metric_name", "pad", "say", "show", "width"]

Language = Literal["zh", "en"]
LANGUAGES: tuple[Language, ...] = ("en", "zh")
MOST_NAMED = 8  # arms in a sentence
LONGEST = 60  # characters of a text that is quoted in a sentence
COUNTED_PLACES = (
    (r"\bepoch ([\d.]+)", r"第 \1 轮"),
    (r"\bstep ([\d.]+)", r"第 \1 步"),
    (r"\bshots (\d+)", r"\1 个范例"),
    (r"\bn (\d+)", r"\1 题"),
)
NOTHING: tuple[Any, ...] = (None, [], ())
AXES = {"step": ("step", "步"), "epoch": ("epoch", "轮")}
TOLD_AS_KEYS = ("key", "keys", "factor")
TOLD_AS_QUOTED = ("low", "high", "limit", "spread", "nearest")
TOLD_AS_METRICS = ("metric", "metrics")
TOLD_AS_ARMS = ("arm", "arms", "baseline", "ours", "theirs", "other", "against", "lowest", "high")
ARMS = {"none": ("no KL", "无 KL")}


class Words(Mapping[str, tuple[str, str]]):
    """Codes and their sentences; a file is read when a code of it is asked for.

    A code is a file's name and a table's: what stands under `[title]` of report.toml. What begins
    with no file's name is in compare.toml.
    """

    folder = Path(__file__).parent / "sentences"

    def __getitem__(self, code: str) -> tuple[str, str]:
        return _words_of(self.file_of(code))[code]

    def __iter__(self) -> Iterator[str]:
        for path in sorted(self.folder.glob("*.toml")):
            yield from _words_of(path.stem)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def file_of(self, code: str) -> str:
        """The file that a code is in."""
        first, dot, _ = code.partition(".")
        return first if dot and first in _files() else "compare"

    def below(self, code: str) -> list[str]:
        """What follows a code, in its file's order: `question` has level, gain, and so on."""
        start = f"{code}."
        every = _words_of(self.file_of(start))
        return [each.removeprefix(start) for each in every if each.startswith(start)]


@cache
def _files() -> frozenset[str]:
    return frozenset(path.stem for path in Words.folder.glob("*.toml"))


@cache
def _words_of(name: str) -> dict[str, tuple[str, str]]:
    """The codes of a file, with its name before them."""
    tables = tomllib.loads((Words.folder / f"{name}.toml").read_text(encoding="utf-8"))
    if name != "compare":
        return dict(_pairs(tables, f"{name}."))
    checks = {code: (english, chinese) for code, (_, _, english, chinese) in CHECKS.items()}
    return {**checks, **dict(_pairs(tables, ""))}


def _pairs(tables: Mapping[str, Any], above: str) -> Iterator[tuple[str, tuple[str, str]]]:
    """English and Chinese of every table that has them, at any depth."""
    for key, table in tables.items():
        if isinstance(table, dict):
            if "en" in table:
                yield above + key, (table["en"], table["zh"])
            yield from _pairs(table, f"{above}{key}.")


CODES = Words()


def term(code: str, language: Language, default: str = "") -> str:
    """A word or a name that takes no facts; the default where there is none."""
    return CODES[code][LANGUAGES.index(language)] if code in CODES else default


def say(code: str, facts: Mapping[str, Any], language: Language) -> str:
    """The sentence of a code with its facts in it; a code without one is told with its facts."""
    if code not in CODES:
        return f"{code}: {show(facts, language)}"
    if f"{code}.unknown" in CODES and any(facts.get(name) in NOTHING for name in _needed(code)):
        code = f"{code}.unknown"
    sentence = CODES[code][LANGUAGES.index(language)]
    said = ""
    for literal, name, _, _ in string.Formatter().parse(sentence):
        said = _spaced(said, literal)
        if name:
            said = _spaced(said, _fact(name, facts, language))
    for gone in ("（；", "；）", "(; ", "; )"):
        said = said.replace(gone, gone.replace("；", "").replace("; ", ""))
    return said.replace(" ()", "").replace("（）", "")


def _needed(code: str) -> list[str]:
    return [name for _, name, _, _ in string.Formatter().parse(CODES[code][0]) if name]


def _spaced(said: str, more: str) -> str:
    """Both, with the blank that stands between Chinese and Latin letters or figures."""
    if not said or not more or (said[-1].isascii() and more[0].isascii()):
        return said + more
    chinese = [unicodedata.name(each, "").startswith("CJK UNI") for each in (said[-1], more[0])]
    latin = [each.isascii() and each.isalnum() for each in (said[-1], more[0])]
    apart = (chinese[0] and latin[1]) or (latin[0] and chinese[1])
    return f"{said} {more}" if apart else said + more


def _fact(name: str, facts: Mapping[str, Any], language: Language) -> str:
    value = facts.get(name)
    quoted = str(facts.get("number" if name == "nearest" else "text"))
    if name in TOLD_AS_QUOTED and isinstance(value, float) and "%" in quoted:
        return f"{100 * value:.4g}%"
    if name in ("at", "steps", "by", "judgement"):
        return _listed(value, language, _place)
    if name == "differs" and isinstance(value, list | tuple):
        return ("；" if language == "zh" else "; ").join(_entry(one, language) for one in value)
    if name in TOLD_AS_KEYS:
        return _listed(value, language, key_name)
    if name in TOLD_AS_METRICS:
        return _listed(value, language, metric_name)
    if name == "axis":
        return AXES.get(str(value), (str(value), str(value)))[LANGUAGES.index(language)]
    if isinstance(value, float):
        return _number(name, value)
    if name in TOLD_AS_ARMS and all(isinstance(one, str) for one in _several(value)):
        return ("、" if language == "zh" else ", ").join(
            show(called(one, language), language) for one in _several(value)
        )
    return show(value, language)


def _several(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _number(name: str, value: float) -> str:
    if name in ("p", "chance"):
        return "< 0.001" if value < 0.001 else f"{value:.3f}"
    if name in ("again", "change"):
        return format(value, ".1%" if name == "change" and abs(value) < 0.1 else ".0%")
    return f"{100 * value:.2f}%" if name in ("share", "trained") else _float(value)


def called(arm: str, language: Language) -> str:
    """An arm as sentences and tables call it: one called `none` would make them say otherwise."""
    return ARMS.get(arm, (arm, arm))[LANGUAGES.index(language)]


def named(arms: Sequence[str], language: Language) -> list[str]:
    """As many names as can be read, and how many more there are."""
    if len(arms) <= MOST_NAMED:
        return list(arms)
    rest = say("group.more", {"count": len(arms) - MOST_NAMED + 1}, language)
    return [*arms[: MOST_NAMED - 1], rest]


def _listed(value: Any, language: Language, name: Any) -> str:
    each = (name(one, language) if isinstance(one, str) else show(one, language)
            for one in _several(value))  # fmt: skip
    return ("、" if language == "zh" else ", ").join(each)


def _place(text: str, language: Language) -> str:
    """ "epoch 2 shots 1" or another word of the findings, in the language."""
    if language == "en":
        return term(f"place.{text}", language, text)
    for pattern, form in COUNTED_PLACES:
        text = re.sub(pattern, form, text)
    return " ".join(term(f"place.{word}", language, word) for word in text.split(" "))


def show(value: Any, language: Language) -> str:
    """A fact as text: amounts with their unit, lists joined, texts cut, nothing as a dash."""
    if value is None:
        return "—"
    if isinstance(value, Amount):
        return _amount(value, language)
    if isinstance(value, bool):
        yes = ("yes", "是") if value else ("no", "否")
        return yes[LANGUAGES.index(language)]
    if isinstance(value, int):
        return f"{value:,}" if abs(value) >= 10_000 else str(value)
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, Mapping):
        parts = [f"{key_name(str(k), language)} = {show(v, language)}" for k, v in value.items()]
        return ("、" if language == "zh" else ", ").join(parts)
    if isinstance(value, list | tuple | set | frozenset):
        return ("、" if language == "zh" else ", ").join(show(one, language) for one in value)
    text = " ".join(str(value).split())
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _entry(entry: Any, language: Language) -> str:
    """What differs, and its values: "training data: a / b"."""
    first, *rest = entry
    colon = "：" if language == "zh" else ": "
    values = " / ".join(show(one, language) for one in rest)
    return f"{key_name(str(first), language)}{colon}{values}"


def _float(value: float) -> str:
    if not math.isfinite(value):
        return str(value)
    return f"{value:,.0f}" if value == round(value) and abs(value) < 1e15 else f"{value:.4g}"


def _amount(amount: Amount, language: Language) -> str:
    if amount.unit == "fraction":
        if not amount.gap:
            return f"{100 * amount.value:.2f}%"
        return f"{100 * amount.value:.2f} " + ("points" if language == "en" else "个百分点")
    plain = _plain(amount.value)
    return f"{plain} {amount.unit}" if amount.unit in ("s", "tokens/s", "nats") else plain


def _plain(value: float) -> str:
    size = abs(value)
    return f"{value:.3f}" if 1 <= size < 1000 else f"{value:.4g}"


def gap_text(
    estimate: float, low: float | None, high: float | None, unit: str, language: Language
) -> str:
    """A gap with its sign and its interval; points for percentages, times for ratios."""
    shown, suffix = 1.0, ("", "")
    form = "+.3g" if any(abs(each or 1) < 0.01 for each in (low, high)) else "+.3f"
    if unit == "ratio":
        form, suffix = ".2f", ("×", " 倍")
    elif unit == "fraction":
        form, shown, suffix = "+.2f", 100.0, (" points", " 个百分点")
    elif unit in AXES:
        form, suffix = "+.7g", (f" {AXES[unit][0]}s", f" {AXES[unit][1]}")

    def text(value: float) -> str:
        if unit in AXES and abs(value) >= 10:
            value = round(value)  # nobody steps by thirds
        return format(shown * value, form)

    interval = "" if low is None or high is None else f" [{text(low)}, {text(high)}]"
    middle = f"{100 * estimate:+.3f}" if unit == "fraction" else text(estimate)
    return middle + interval + suffix[LANGUAGES.index(language)]


def key_name(key: str, language: Language) -> str:
    """A setting as people call it."""
    return term(f"key.{key}", language, key)


def metric_name(metric: str, language: Language) -> str:
    """A quantity as people call it; its own name where no table has it."""
    known = names.metric(metric)
    name = known.name if known else metric
    return term(f"metric.{name}", language) or names.plain(metric)


# --- columns


def width(text: str) -> int:
    """How many columns of a terminal a text takes: Chinese characters take two."""
    rare = [each for each in text if each > "~"]  # ASCII takes one each
    wide = sum(unicodedata.east_asian_width(each) in "WF" for each in rare)
    joined = sum(unicodedata.combining(each) > 0 for each in rare)
    return len(text) + wide - joined


def pad(text: str, columns: int, *, right: bool = False) -> str:
    """The text with blanks up to so many columns."""
    blanks = " " * max(0, columns - width(text))
    return blanks + text if right else text + blanks


def cut(text: str, columns: int) -> list[str]:
    """The text in lines of so many columns; Latin words stay whole."""
    lines, line = [], ""
    for word in _words(text):
        if line and width(line) + width(word.rstrip()) > columns:
            lines.append(line.rstrip())
            line = ""
        line += word if line else word.lstrip()
    return [*lines, line.rstrip()] if line.strip() or not lines else lines


def _words(text: str) -> list[str]:
    """Latin words with the blank after them, wide characters one by one.

    Full-width stops stay with the character before them, as no line may begin with one.
    """
    found: list[str] = []
    for each in text:
        wide = unicodedata.east_asian_width(each) in "WF"
        stays = each in " ，。；：、）！？》”"
        if found and (stays or (not wide and not found[-1].endswith(" ") and _latin(found[-1]))):
            found[-1] += each
        else:
            found.append(each)
    return found


def _latin(word: str) -> bool:
    return unicodedata.east_asian_width(word[-1]) not in "WF"
