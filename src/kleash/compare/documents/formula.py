"""What a formula over the numbers of a report gives: a number, several, or whether it holds.

    mean(C37:C45)          0.18
    100 * (C40 - B40) / B40
    at_max(C37:C45, A37:A45) == 40
    all(C37:C45 > B37:B45)

A small part of Python's expressions, worked out here and never executed: numbers, addresses and
ranges of them, arithmetic and comparisons element by element, and the functions below.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kleash import stats
from kleash.errors import KleashError

LONGEST = 2000  # letters of a formula
LARGEST = 1e15  # number that it may bring
_ADDRESS = r"(?:n\d+\.\d+|[A-Z]{1,2}\d+(?:\.\d+)?)"
_NAMED = re.compile(rf"(?<![A-Za-z0-9_.])({_ADDRESS})(?:\s?:\s?({_ADDRESS}))?(?![A-Za-z0-9_])")
_ROW = re.compile(r"[A-Z]+(\d+)")
_WRITTEN = {"≥": ">=", "≤": "<=", "≠": "!=", "−": "-", "×": "*", "÷": "/", "^": "**", "＝": "=="}
Value = Any  # a number, a truth, or an array of either, masked where a cell holds no number
Array = NDArray[np.float64]


class FormulaError(KleashError):
    """A formula that cannot be read, or speaks of what a report has not."""


class Undecided(FormulaError):
    """A relation that a test decides, and does not: with its ratio and interval, or how few."""


def _deviation(values: Array) -> float:
    if len(values) < 2:
        raise FormulaError("a deviation of one number")
    return float(np.std(values, ddof=1))


def _at(pick: Callable[[Array], Any], values: Value, labels: Value) -> float:
    """The label of the highest or lowest value."""
    values, labels = np.ma.atleast_1d(values), np.ma.atleast_1d(labels)
    if len(labels) != len(values):
        raise FormulaError(f"{len(values)} values and {len(labels)} labels")
    both = ~(np.ma.getmaskarray(values) | np.ma.getmaskarray(labels))
    return float(labels[both][int(pick(values[both]))])


def _steadier(ours: Mapping[float, float], theirs: Mapping[float, float]) -> bool:
    """Whether one curve swings less, as `kleash compare` decides it at the steps of both."""
    steps = sorted(ours.keys() & theirs.keys())
    sides = [[side[step] for step in steps] for side in (ours, theirs)]
    try:
        found = stats.spread_ratio(*sides)
    except ValueError:
        raise Undecided(f"n = {len(steps)}") from None
    if found.low <= 1 <= found.high:
        told = f"{found.estimate:.2f} [{found.low:.2f}, {found.high:.2f}]×, n = {len(steps)}"
        raise Undecided(told)
    return found.high < 1


def _first(truths: Array) -> Any:
    """The first place where something holds."""
    if not np.any(truths):
        raise FormulaError("it holds nowhere")
    return np.argmax(truths)


def _flat(parts: Sequence[Value]) -> Array:
    """Every number that a function was given, in one line; cells without a number are left out."""
    every = [x.compressed() if np.ma.isMaskedArray(x) else np.ravel(x) for x in parts]
    if not sum(map(len, every)):
        raise FormulaError("a function of nothing")
    return np.concatenate(every)


# Of every number in them, however many ranges they are given.
_OF_ALL: dict[str, Callable[[Array], Any]] = {
    "sum": np.sum,
    "mean": np.mean,
    "median": np.median,
    "std": _deviation,
    "max": np.max,
    "min": np.min,
    "spread": np.ptp,
    "count": lambda values: np.sum(values) if values.dtype == bool else len(values),
    "all": np.all,
    "any": np.any,
    "same": lambda values: bool(np.all(values == values[0])),
    "rises": lambda values: bool(np.all(np.diff(values) > 0)),
    "falls": lambda values: bool(np.all(np.diff(values) < 0)),
    "changes": np.diff,
    "changes_percent": lambda values: 100 * np.diff(values) / values[:-1],
}
FUNCTIONS: dict[str, Callable[..., Value]] = {
    name: lambda *parts, of=of: of(_flat(parts)) for name, of in _OF_ALL.items()
} | {
    "abs": np.abs,
    "sqrt": np.sqrt,
    "log": np.log,
    "exp": np.exp,
    "round": lambda value, places=0: np.round(value, int(places)),
    "steadier": _steadier,
    "rank": lambda value, *parts: 1 + int(np.sum(_flat(parts) > value)),
    "first": lambda truths, labels: _at(_first, truths, labels),
    "at_max": lambda values, labels: _at(np.argmax, values, labels),
    "at_min": lambda values, labels: _at(np.argmin, values, labels),
}
_SIGNS: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.And: np.logical_and,
    ast.Or: np.logical_or,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Not: np.logical_not,
}


@dataclass(frozen=True)
class Formula:
    """A formula, and the addresses that each of its names stands for."""

    text: str
    tree: ast.expr
    names: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, text: str, between: Callable[[str, str], Sequence[str]]) -> Formula:
        """Read a formula; `between` gives the addresses of a range."""
        names = dict[str, tuple[str, ...]]()

        def named(match: re.Match[str]) -> str:
            first, last = match.groups()
            name = f"{'range' if last else 'cell'}_{len(names)}"
            names[name] = tuple(between(first, last)) if last else (first,)
            return name

        plain = text.strip().removeprefix("=")
        for sign, ours in _WRITTEN.items():
            plain = plain.replace(sign, ours)
        plain = _NAMED.sub(named, plain)
        try:
            tree = ast.parse(plain if len(plain) <= LONGEST else "", mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise FormulaError(f"cannot be read: {text[:80]}") from None
        numbers = [one.value for one in ast.walk(tree) if isinstance(one, ast.Constant)]
        if not all(isinstance(one, int | float) and abs(one) < LARGEST for one in numbers):
            raise FormulaError(f"no formula over numbers: {text[:80]}")
        return cls(text.strip(), tree, names)

    @cached_property
    def addresses(self) -> tuple[str, ...]:
        """Every address that it names, each once; in ranges some may hold no number."""
        return tuple(dict.fromkeys(one for own in self.names.values() for one in own))

    @cached_property
    def constants(self) -> set[float]:
        """The numbers that it brings itself."""
        nodes = (one for one in ast.walk(self.tree) if isinstance(one, ast.Constant))
        return {float(one.value) for one in nodes if isinstance(one.value, int | float)}

    def value(self, numbers: Mapping[str, float]) -> Value:
        """What it gives with these numbers."""
        try:
            with np.errstate(all="ignore"):
                return self._of(self.tree, numbers)
        except (TypeError, ValueError, ArithmeticError, IndexError, RecursionError) as error:
            raise FormulaError(f"cannot be worked out: {error}") from None

    def _of(self, node: ast.AST, numbers: Mapping[str, float]) -> Value:
        match node:
            case ast.Constant(value=int() | float() as value):
                return value
            case ast.Name(id=name) if name in self.names:
                own = np.array([numbers.get(one, np.nan) for one in self.names[name]])
                if name.startswith("range"):
                    return np.ma.masked_invalid(own) if np.isnan(own).any() else own
                if np.isnan(own[0]):
                    raise FormulaError(f"no number at {self.names[name][0]}")
                return float(own[0])
            case ast.List(elts=parts) | ast.Tuple(elts=parts):
                return _flat([self._of(one, numbers) for one in parts])
            case ast.Call():
                return self._called(node, numbers)
        return self._operated(node, numbers)

    def _called(self, node: ast.Call, numbers: Mapping[str, float]) -> Value:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name not in FUNCTIONS or node.keywords:
            raise FormulaError(f"no function {name or ast.dump(node.func)[:40]}")
        if name == "steadier":
            return _steadier(*self._curves(node.args, numbers))
        parts = [self._of(one, numbers) for one in node.args]
        if name in ("at_max", "at_min") and len(parts) == 2 and _has_changes(node.args[0]):
            parts[1] = parts[1][-len(parts[0]) :]  # a change is told at the later label
        return FUNCTIONS[name](*parts)

    def _curves(
        self, nodes: Sequence[ast.expr], numbers: Mapping[str, float]
    ) -> list[dict[float, float]]:
        """Values by step: the number that leads their rows, if all have one; else their place."""
        values = [np.ma.atleast_1d(self._of(node, numbers)) for node in nodes]
        steps = list[Sequence[float]]()
        for node in nodes:
            rows = map(_ROW.match, self.names.get(getattr(node, "id", ""), ()))
            steps.append([numbers.get(f"A{row[1]}", np.nan) for row in rows if row])
        both = list(zip(steps, values, strict=True))
        if any(len({*own} - {np.nan}) < len(side) for own, side in both):
            both = [(range(len(side)), side) for side in values]
        # Where a cell holds no number, a curve has none.
        every = (zip(own, side, strict=True) for own, side in both)
        return [{x: y for x, y in points if not np.ma.is_masked(y)} for points in every]

    def _operated(self, node: ast.AST, numbers: Mapping[str, float]) -> Value:
        match node:
            case ast.UnaryOp(op=sign, operand=one) if type(sign) in _SIGNS:
                return _SIGNS[type(sign)](self._of(one, numbers))
            case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _SIGNS:
                return _SIGNS[type(sign)](self._of(left, numbers), self._of(right, numbers))
            case ast.BoolOp(op=sign, values=parts):
                return reduce(_SIGNS[type(sign)], [self._of(one, numbers) for one in parts])
            case ast.Compare(left=left, ops=signs) if all(type(one) in _SIGNS for one in signs):
                sides = [_level(self._of(one, numbers)) for one in (left, *node.comparators)]
                pairs = zip(signs, sides, sides[1:], strict=False)
                return reduce(np.logical_and, [_SIGNS[type(one)](a, b) for one, a, b in pairs])
        raise FormulaError(f"no {type(node).__name__} in a formula")


def _has_changes(node: ast.AST) -> bool:
    """Whether values are changes from each to the next, one fewer than there are labels."""
    calls = (one.func for one in ast.walk(node) if isinstance(one, ast.Call))
    return any(isinstance(one, ast.Name) and one.id.startswith("changes") for one in calls)


def _level(value: Value) -> Value:
    """A number without what counting in binary adds to it: 0.3 - 0.1 is 0.2."""
    if isinstance(value, bool):
        return value
    return value.round(9) if isinstance(value, np.ndarray) else round(float(value), 9)
