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
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kleash.errors import KleashError

LONGEST = 2000  # letters of a formula
LARGEST = 1e15  # number that it may bring
_ADDRESS = r"(?:n\d+\.\d+|[A-Z]{1,2}\d+(?:\.\d+)?)"
_NAMED = re.compile(rf"(?<![A-Za-z0-9_.])({_ADDRESS})(?:\s?:\s?({_ADDRESS}))?(?![A-Za-z0-9_])")
_WRITTEN = {"≥": ">=", "≤": "<=", "≠": "!=", "−": "-", "×": "*", "÷": "/", "^": "**", "＝": "=="}
Value = Any  # a number, a truth, or an array of either, masked where a cell holds no number
Array = NDArray[np.float64]


class FormulaError(KleashError):
    """A formula that cannot be read, or speaks of what a report has not."""


def _changes(values: Array) -> Array:
    changes: Array = np.diff(values)
    return changes


def _changes_percent(values: Array) -> Array:
    changes: Array = 100 * _changes(values) / values[:-1]
    return changes


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


def _flat(parts: Sequence[Value]) -> Array:
    """Every number that a function was given, in one line; cells without a number are left out."""
    every = [np.ma.ravel(np.ma.asarray(part)).compressed() for part in parts]
    if not sum(map(len, every)):
        raise FormulaError("a function of nothing")
    return np.concatenate(every)


def _of_all(function: Callable[[Array], Any]) -> Callable[..., Any]:
    return lambda *parts: function(_flat(parts))


FUNCTIONS: dict[str, Callable[..., Value]] = {
    "sum": _of_all(np.sum),
    "mean": _of_all(np.mean),
    "median": _of_all(np.median),
    "std": _of_all(_deviation),
    "max": _of_all(np.max),
    "min": _of_all(np.min),
    "spread": _of_all(np.ptp),
    "count": _of_all(lambda values: np.sum(values) if values.dtype == bool else len(values)),
    "all": _of_all(np.all),
    "any": _of_all(np.any),
    "same": _of_all(lambda values: bool(np.all(values == values[0]))),
    "rises": _of_all(lambda values: bool(np.all(np.diff(values) > 0))),
    "falls": _of_all(lambda values: bool(np.all(np.diff(values) < 0))),
    "changes": _of_all(_changes),
    "changes_percent": _of_all(_changes_percent),
    "abs": np.abs,
    "sqrt": np.sqrt,
    "log": np.log,
    "exp": np.exp,
    "round": lambda value, places=0: np.round(value, int(places)),
    "at_max": lambda values, labels: _at(np.argmax, values, labels),
    "at_min": lambda values, labels: _at(np.argmin, values, labels),
}
_TWO: dict[type, Callable[[Any, Any], Any]] = {
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
}
_ONE: dict[type, Callable[[Any], Any]] = {
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
    ranges: frozenset[str]

    @classmethod
    def of(cls, text: str, between: Callable[[str, str], Sequence[str]]) -> Formula:
        """Read a formula; `between` gives the addresses of a range."""
        names, ranges = dict[str, tuple[str, ...]](), set[str]()

        def named(match: re.Match[str]) -> str:
            name = f"_{len(names)}"
            first, last = match.groups()
            names[name] = tuple(between(first, last)) if last else (first,)
            if last:
                ranges.add(name)
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
        return cls(text.strip(), tree, names, frozenset(ranges))

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
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            return node.value
        if isinstance(node, ast.Name) and node.id in self.names:
            own = [numbers.get(one, np.nan) for one in self.names[node.id]]
            if node.id in self.ranges:
                return np.ma.masked_invalid(own)
            if own[0] is np.nan:
                raise FormulaError(f"no number at {self.names[node.id][0]}")
            return own[0]
        if isinstance(node, ast.List | ast.Tuple):
            return _flat([self._of(one, numbers) for one in node.elts])
        if isinstance(node, ast.Call):
            return self._called(node, numbers)
        return self._operated(node, numbers)

    def _called(self, node: ast.Call, numbers: Mapping[str, float]) -> Value:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name not in FUNCTIONS or node.keywords:
            raise FormulaError(f"no function {name or ast.dump(node.func)[:40]}")
        parts = [self._of(one, numbers) for one in node.args]
        if name in ("at_max", "at_min") and len(parts) == 2 and _has_changes(node.args[0]):
            parts[1] = parts[1][-len(parts[0]) :]  # a change is told at the later label
        return FUNCTIONS[name](*parts)

    def _operated(self, node: ast.AST, numbers: Mapping[str, float]) -> Value:
        if isinstance(node, ast.UnaryOp) and type(node.op) in _ONE:
            return _ONE[type(node.op)](self._of(node.operand, numbers))
        if isinstance(node, ast.BinOp) and type(node.op) in _TWO:
            return _TWO[type(node.op)](self._of(node.left, numbers), self._of(node.right, numbers))
        if isinstance(node, ast.BoolOp):
            parts = [self._of(one, numbers) for one in node.values]
            return _joined(_TWO[type(node.op)], parts)
        if isinstance(node, ast.Compare) and all(type(one) in _TWO for one in node.ops):
            sides = [self._of(one, numbers) for one in (node.left, *node.comparators)]
            told = [
                _TWO[type(sign)](_level(left), _level(right))
                for sign, left, right in zip(node.ops, sides, sides[1:], strict=False)
            ]
            return _joined(np.logical_and, told)
        raise FormulaError(f"no {type(node).__name__} in a formula")


def _has_changes(node: ast.AST) -> bool:
    """Whether values are changes from each to the next, one fewer than there are labels."""
    calls = (one.func for one in ast.walk(node) if isinstance(one, ast.Call))
    return any(isinstance(one, ast.Name) and one.id.startswith("changes") for one in calls)


def _joined(two: Callable[[Any, Any], Any], parts: Sequence[Value]) -> Value:
    whole = parts[0]
    for part in parts[1:]:
        whole = two(whole, part)
    return whole


def _level(value: Value) -> Value:
    """A number without what counting in binary adds to it: 0.3 - 0.1 is 0.2."""
    if isinstance(value, bool):
        return value
    return value.round(9) if isinstance(value, np.ndarray) else round(float(value), 9)
