"""What is printed in a cell or after a colon, as a number: with its decimals, unit and doubts.

Nothing is guessed: text that is not wholly a number with its notes is words. A range has two ends
and no value, a missing number has no value, and a percentage is a fraction.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import NamedTuple

from kleash.compare.read import Number, Where
from kleash.compare.read.markdown.text import bare, fold, plain
from kleash.compare.read.names import REPORT

MISSING = frozenset(REPORT["missing"])
_DIGITS = r"(?:\d{1,3}(?:,\d{3}){1,8}(?:\.\d{1,30})?|\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})"
_POWER = r"(?:[eE][+-]?\d{1,3}|\s?[×x]\s?10\^?[+-]?\d{1,3})?"
_UNITS = REPORT["units"].replace("\n", "")
VALUE = re.compile(rf"([+±-]?)\s?({_DIGITS}{_POWER})\s?({_UNITS})?(?![A-Za-z0-9_])")
_ABOUT = re.compile(r"(?:~|≈|约为|大约|约|about|approx(?:imately)?\.?|circa|ca\.|around)\s*", re.I)
_ESTIMATE = re.compile(
    r"估|预计|推测|推断|猜测|外推|插值|(?<![a-z])est(?:\.|\b)|estimat|guess|extrapolat|interpolat",
    re.I,
)
_RANGE = re.compile(r"\s?(?:-|~|—|至|到|to\b|\.\.)\s?")
_TIMES = re.compile(r"\s?[×x]\s?10\^?")
_SCALES = {"k": 3, "K": 3, "M": 6, "B": 9, "万": 4, "亿": 8, "%": -2, "‰": -3}
_POINTS = ("pp", "百分点", "percentage point", "percentage points")
_DOWN = re.compile(r"下降|降低|减少|下跌|低|降|fell|down|drop|decreas|lower|↓|⬇|▼", re.I)
_UP = re.compile(r"上升|提升|增加|提高|高|升|rose|up\b|gain|increas|higher|↑|⬆|▲", re.I)
_AT = re.compile(
    r"(?:(step|epoch|iter(?:ation)?)s?\s*[:=#]?\s*|第\s*)(\d{1,9})(?:\s*(步|轮))?", re.I
)


class Place(NamedTuple):
    """Where a number belongs, as far as a text says so; `span` is a stretch of steps."""

    epoch: int | None = None
    step: int | None = None
    shots: int | None = None
    items: int | None = None
    span: tuple[int, int] | None = None

    def over(self, other: Place) -> Place:
        """This place, and the other's where this says nothing."""
        return Place._make(b if a is None else a for a, b in zip(self, other, strict=True))

    def __bool__(self) -> bool:
        return any(part is not None for part in self)


HERE = Place()


@dataclass(frozen=True)
class Reading:
    """One cell: a number or words, with what its brackets add.

    `change` is a difference given in brackets, `unsigned` that it has no sign; `inner` is a bare
    number in brackets, which means what the row or column says it means.
    """

    words: str
    number: Number | None = None
    place: Place = HERE
    change: Number | None = None
    unsigned: bool = False
    inner: Number | None = None


_LAST = r"(\d{1,9})(?!\d|\s*[,、/~-]\s*\d)"
# Not \b: between a Chinese and a Latin letter there is no boundary of words.
_L, _R = r"(?<![A-Za-z])", r"(?![A-Za-z])"
_PLACES = {
    "span": rf"{_L}steps?\s*(\d{{1,9}})\s*(?:-|~|到|至|to)\s*(?:step\s*)?(\d{{1,9}})",
    "epoch": rf"{_L}epochs?\s*[:=#]?\s*{_LAST}|第\s*(\d{{1,9}})\s*(?:个\s*epoch|轮)",
    "step": rf"{_L}steps?\s*[:=#]?\s*{_LAST}|第\s*(\d{{1,9}})\s*步",
    "shots": (
        rf"{_L}shots?(?:_num)?\s*[:=#]?\s*{_LAST}|(?<![\d.])(?<![×x]\s)(?<![×x])(\d{{1,4}})\s?-?shots?{_R}|"
        r"(?<![\d.])(\d{1,4})\s*个?范例"
    ),
    "items": (
        r"(?<![\d.,])(\d{1,3}(?:,\d{3}){1,4}|\d{1,9})\s*(?:个\s*)?(?:测试|评估)?"
        rf"(?:样本|题|samples?{_R}|items?{_R}|examples?{_R}|questions?{_R})|"
        rf"(?:{_L}n|test_data_num)\s*=\s*(\d{{1,9}})(?!\d)"
    ),
}
_FOUND = {name: re.compile(pattern, re.I) for name, pattern in _PLACES.items()}


@lru_cache(maxsize=8192)
def places(text: str) -> tuple[Place, str]:
    """The epoch, step, shots and items that a text names, and the text without them."""
    rest = fold(text)
    found: dict[str, int] = {}
    span = None
    for name, pattern in _FOUND.items():
        match = pattern.search(rest)
        if match is None:
            continue
        numbers = [int(group.replace(",", "")) for group in match.groups() if group]
        if name == "span":
            span = (numbers[0], numbers[1])
        elif len({m.group().casefold() for m in pattern.finditer(rest)}) == 1:
            found[name] = numbers[0]
        else:
            continue
        rest = pattern.sub(" ", rest)
    rest = re.sub(r"\s+", " ", re.sub(r"\(\s*[,;]?\s*\)", " ", rest)).strip(" ,;:")
    return Place(**found, span=span), rest


def _decimal(sign: str, digits: str, unit: str) -> tuple[float, int] | None:
    """A printed number and how many decimals it has, after percent signs and powers of ten."""
    body = _TIMES.sub("e", digits.replace(",", ""))
    try:
        exact = Decimal(body).scaleb(_SCALES.get(unit, 0))
        value = float(exact)
    except (InvalidOperation, OverflowError, ValueError):
        return None
    if not math.isfinite(value):
        return None
    exponent = exact.as_tuple().exponent
    decimals = -exponent if isinstance(exponent, int) else 0
    # 5e-6 is printed to six decimals, 1e3 and 1,000 to none.
    return (-value if sign == "-" else value), decimals if unit in _SCALES else max(decimals, 0)


def number(match: re.Match[str], where: Where, unit: str = "") -> Number | None:
    """The number that `VALUE` matched, if it is no "±0.2"; `unit` is one that stands later."""
    own = match[3] or unit
    own = "%" if own.removeprefix("个") in _POINTS else own
    found = None if match[1] == "±" else _decimal(match[1], match[2], own)
    if found is None:
        return None
    value, decimals = found
    shown = own if own not in _SCALES or own in "%‰" else ""
    return Number(value, "known", where, decimals, unit=shown, text=match.group().strip())


def percent(read: Reading) -> Reading:
    """A bare number under a header such as "Accuracy (%)", as the fraction that it is."""
    one = read.number
    if one is None or one.unit or one.state == "missing":
        return read
    ends = (one.value, one.low, one.high)
    value, low, high = (v if v is None else float(Decimal(repr(v)).scaleb(-2)) for v in ends)
    decimals = None if one.decimals is None else one.decimals + 2
    scaled = replace(one, value=value, low=low, high=high, unit="%", decimals=decimals)
    return replace(read, number=scaled)


def _brackets(text: str) -> tuple[str, list[str]]:
    """A text without the brackets at its end and any words after them; what the brackets hold."""
    notes: list[str] = []
    remark = re.fullmatch(r"([^()]{1,80}(?:\([^()]{0,80}\)\s?){1,3})\s?[^\d()]{1,80}", text)
    text = remark[1] if remark else text
    while (text := text.rstrip(" ,")).endswith(")") and len(notes) < 8:
        depth, at = 0, len(text)
        for at in range(len(text) - 1, -1, -1):
            depth += (text[at] == ")") - (text[at] == "(")
            if depth == 0:
                break
        if depth:
            break
        notes.insert(0, text[at + 1 : -1].strip())
        text = text[:at]
    return text.strip(), notes


def reading(raw: str, where: Where) -> Reading:
    """What a cell holds."""
    printed = plain(raw)
    text, notes = _brackets(re.sub(r"[†‡§¶]", "", bare(printed)))
    if text.strip("% ").casefold() in MISSING or not printed:
        gone = Number(None, "missing", where, text=printed[:200])
        return _with_notes(Reading(printed, gone), notes, where)
    at = _AT.fullmatch(text)
    if at:
        unit = "epoch" if (at[1] or "").casefold() == "epoch" or at[3] == "轮" else "step"
        one: Number | None = Number(float(at[2]), "known", where, 0, unit=unit, text=printed[:200])
    else:
        one = _whole(text, where)
    if one is None:
        return _with_notes(Reading(printed), notes, where)
    doubts = bool(_ESTIMATE.search(text) or any(_ESTIMATE.search(note) for note in notes))
    # "~" before a range or a quantity with a unit says "about"; before a bare value, "estimated".
    rough = bool(_ABOUT.match(text)) or text.endswith(("左右", "上下"))
    guessed = doubts or (rough and one.low is None and not one.unit)
    one = replace(one, state="estimated" if guessed else "known", about=rough, text=printed[:200])
    return _with_notes(Reading(printed, one), notes, where)


def _whole(text: str, where: Where) -> Number | None:
    """The number or range that a text is, with ± behind it or not; None if it is anything else."""
    text = _ESTIMATE.sub("", text)
    text = re.sub(r"^(?:计|算|值)?[:\s]*|(?:左右|上下|ed|e?d?\.)$", "", text).strip()
    start = _ABOUT.match(text)
    body = text[start.end() :] if start else text
    first = VALUE.match(body)
    if first is None:
        return None
    rest = body[first.end() :].strip()
    if not rest:
        return number(first, where)
    if rest.startswith(("±", "+/-", "+-")):
        second = VALUE.fullmatch(rest.lstrip("±+/- "))
        return number(first, where, first[3] or second[3] or "") if second else None
    between = _RANGE.match(rest)
    end = VALUE.fullmatch(rest[between.end() :].strip("~ ")) if between else None
    return _range(first, end, where) if end and not end[1] else None


def _range(first: re.Match[str], second: re.Match[str], where: Where) -> Number | None:
    unit = second[3] or first[3] or ""
    low, high = number(first, where, unit), number(second, where, unit)
    if low is None or high is None or low.value is None or high.value is None:
        return None
    if low.value > high.value:
        return None
    decimals = min(low.decimals or 0, high.decimals or 0)
    return Number(None, "known", where, decimals, low.value, high.value, unit=low.unit)


def _with_notes(found: Reading, notes: list[str], where: Where) -> Reading:
    """What stands in brackets: a place, a change, or a bare number."""
    for note in notes[:4]:
        place, rest = places(note)
        found = replace(found, place=found.place.over(place))
        match = VALUE.search(rest)
        one = number(match, where) if match else None
        if one is None or match is None:
            continue
        if one.unit == "%" or match[1] in ("+", "-"):
            signed, unsigned = _signed(one, match[1], rest)
            found = replace(found, change=signed, unsigned=unsigned)
        elif match.group() == rest:
            found = replace(found, inner=one)
    return found


def _signed(one: Number, sign: str, text: str) -> tuple[Number, bool]:
    """A change with the sign that its words give it, and whether it has none."""
    if sign or one.value is None:
        return one, False
    if _DOWN.search(text):
        return replace(one, value=-one.value), False
    return one, not _UP.search(text) and one.value != 0


def arrows(text: str, where: Where) -> list[Reading]:
    """The readings of `0.280 → 0.033 (Step 40), 0.114 (Step 45)`; empty if it is anything else."""
    pieces = re.split(r"\s*(?:→|->|⇒|➡|=>)\s*", fold(plain(text)))
    if len(pieces) < 2 or len(pieces) > 200:
        return []
    pieces = pieces[:-1] + re.split(r",\s+", pieces[-1])
    found = [reading(piece, where) for piece in pieces]
    fine = all(r.number is not None and r.number.state != "missing" for r in found)
    return found if fine and all(r.number and r.number.value is not None for r in found) else []
