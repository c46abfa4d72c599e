"""Points as they are read become series; numbers, JSON and settings are taken in one way.

Sizes are bounded here: a file that is read whole, a line, and (by Python) the depth of JSON. What
goes past a bound is one clear line, never a process that eats the machine. The file is long because
every reader takes all of this from one place: numbers, points, scores, JSON, YAML, settings.
"""

from __future__ import annotations

import json
import math
import re
import sys
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any, Literal
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from kleash.compare.read import Scores, Series, Setting, Where
from kleash.errors import DataError

Axis = Literal["step", "epoch", "time"]

WHOLE = 256 * 2**20  # bytes of a file that must be read at once
LINE = 32 * 2**20  # bytes of one line
BLOCK = 2**20  # bytes that are read at a time, fewer than a line may have
METRICS = 50_000  # names in one run: more is not a log but noise
DEPTH = 64  # of settings within settings
PLAIN = {str, int, float, bool, type(None), list}  # most settings
NOT_FINITE = {"NaN", "Infinity", "-Infinity", "nan", "inf", "-inf"}


# --- numbers -----------------------------------------------------------------------------------


def number(value: Any) -> float | None:
    """A JSON value as a number; None where it is none. True is not 1: see `score`."""
    if isinstance(value, float):
        return value
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        try:
            return float(value)
        except OverflowError:
            raise DataError(f"a number of {len(str(value))} digits is too large") from None
    if isinstance(value, str) and value in NOT_FINITE:
        return float(value)
    return None


def score(value: Any) -> float | None:
    """A number, or right and wrong as 1 and 0."""
    return float(value) if isinstance(value, bool) else number(value)


PRINTED = re.compile(r"[-+]?(?:\d+(?:\.(\d*))?|\.(\d+))(?:[eE]([-+]?\d{1,4}))?", re.ASCII)


def printed(text: str) -> tuple[float, int | None] | None:
    """A printed number and its decimals (None: all that a float has); None where it is none."""
    match = PRINTED.fullmatch(text)
    if match is None or math.isinf(float(text)):
        return (float(text), None) if text in NOT_FINITE else None
    fraction = match[1] or match[2] or ""
    digits = text.partition("e")[0].partition("E")[0]
    significant = sum(map(str.isdigit, digits.lstrip("+-0.")))
    decimals = len(fraction) - int(match[3] or 0)
    return float(text), None if significant >= 15 else max(0, decimals)


@dataclass(frozen=True)
class Numbers:
    """The numbers of a column, and which rows they are of.

    `coarse`: whether all were printed with few digits, then `decimals` at most; None if not said.
    """

    values: NDArray[np.float64]
    rows: NDArray[np.intp]
    decimals: int = 0
    coarse: bool | None = None


def numbers(column: Sequence[Any], value: Callable[[Any], float | None] = number) -> Numbers:
    """The numbers of a column of JSON values: at once where there is nothing else."""
    rows = np.arange(len(column))
    plain = {float, int, bool} if value is score else {float, int}
    if not plain.issuperset(map(type, column)):
        taken = [value(one) for one in column]
        rows = np.array([at for at, one in enumerate(taken) if one is not None], dtype=np.intp)
        column = [one for one in taken if one is not None]
    try:
        values = np.array(column, dtype=np.float64)
    except OverflowError:
        raise DataError("a number is too large") from None
    return Numbers(values, rows, coarse=False if np.isfinite(values).any() else None)


# --- series ------------------------------------------------------------------------------------

_SHARED: WeakValueDictionary[bytes, NDArray[Any]] = WeakValueDictionary()


def shared(made: NDArray[Any]) -> NDArray[Any]:
    """The array itself, or an equal one that is in use: a thousand runs have the same steps."""
    key = sha256(made.tobytes() + made.dtype.str.encode()).digest()
    made.flags.writeable = False
    return _SHARED.setdefault(key, made)


class Column:
    """The points of one metric, growing."""

    __slots__ = ("coarse", "decimals", "lines", "parts", "steps", "times", "values")

    def __init__(self) -> None:
        """Empty."""
        self.steps, self.values, self.times = array("d"), array("d"), array("d")
        self.lines = array("q")
        self.parts: list[tuple[int, str]] = []
        self.decimals = 0
        # Whether every number so far was printed with few digits; None before the first.
        self.coarse: bool | None = None


class Points:
    """Collects the points of one run, in the order of the file, and makes series of them."""

    def __init__(self, file: Path | str) -> None:
        """`file` is where the next points stand; see `enter`."""
        self.file = str(file)
        self.columns: dict[str, Column] = {}

    def enter(self, file: Path | str) -> None:
        """What follows stands in another file."""
        self.file = str(file)

    def add(
        self,
        metric: str,
        step: float,
        value: float,
        line: int,
        *,
        time: float | None = None,
        decimals: int | None = None,
    ) -> None:
        """One point. `time` is in seconds since 1970, `decimals` what was printed."""
        column = self._column(metric)
        column.steps.append(step)
        column.values.append(value)
        column.lines.append(line)
        if time is not None:
            column.times.append(time)
        if decimals is not None:
            column.decimals = max(column.decimals, decimals)
            column.coarse = column.coarse is not False
        elif math.isfinite(value):
            column.coarse = False

    def add_row(
        self,
        row: Mapping[str, Any],
        step: float,
        line: int,
        *,
        skip: Collection[str] = (),
        time: float | None = None,
    ) -> None:
        """Every number of a row, under the names it has there."""
        for name, value in row.items():
            if name not in skip and (taken := number(value)) is not None:
                self.add(name, step, taken, line, time=time)

    def extend(
        self,
        metric: str,
        steps: NDArray[np.float64],
        found: Numbers,
        lines: NDArray[np.int64],
        times: NDArray[np.float64],
    ) -> None:
        """Many points at once, as `add` would take them one by one."""
        column = self._column(metric)
        column.steps.frombytes(steps.tobytes())
        column.values.frombytes(found.values.tobytes())
        column.lines.frombytes(lines.tobytes())
        column.times.frombytes(times.tobytes())
        column.decimals = max(column.decimals, found.decimals)
        if found.coarse is not None:
            column.coarse = found.coarse and column.coarse is not False

    def _in_order(self, column: Column) -> None:
        """Put points in the order of the file: those of several sorts were taken sort by sort."""
        lines = np.array(column.lines)
        if len(column.parts) > 1 or (lines[1:] >= lines[:-1]).all():
            return
        order = np.argsort(lines, kind="stable")
        for name in ("steps", "values", "lines", "times"):
            held = getattr(column, name)
            if len(held) == len(order):
                setattr(column, name, array(held.typecode, np.array(held)[order].tobytes()))

    def _column(self, metric: str) -> Column:
        """Where the next points of a metric belong."""
        column = self.columns.get(metric)
        if column is None:
            if len(self.columns) >= METRICS:
                raise DataError(f"{self.file}: more than {METRICS:,} names of metrics in one run")
            column = self.columns[metric] = Column()
        if not column.parts or column.parts[-1][1] != self.file:
            column.parts.append((len(column.steps), self.file))
        return column

    def series(
        self, axis: Axis = "step", *, float32: bool | Iterable[str] = False, spot: str = ""
    ) -> list[Series]:
        """What was collected. `float32` names the metrics that were stored with 24 bits."""
        narrow = set(self.columns) if float32 is True else set(float32 or ())
        made = []
        alike: dict[tuple[str, bytes], NDArray[Any]] = {}  # most columns have the same steps

        def once(held: array[Any]) -> NDArray[Any]:
            key = (held.typecode, held.tobytes())
            if key not in alike:
                alike[key] = shared(np.array(held))
            return alike[key]

        for metric, column in self.columns.items():
            self._in_order(column)
            whole_times = len(column.times) == len(column.steps)
            each = Series(
                metric=metric,
                axis=axis,
                steps=once(column.steps),
                values=np.array(column.values, dtype=np.float64),
                where=Where(column.parts[0][1], int(column.lines[0]), spot),
                decimals=column.decimals if column.coarse else None,
                float32=metric in narrow,
                lines=once(column.lines),
                times=once(column.times) if whole_times else None,
                parts=tuple(column.parts[1:]),
            )
            made.append(each)
        return made


def some_points(series: Series, points: NDArray[np.intp]) -> Series:
    """Some of a series' points, in the order of the file."""

    def some(held: NDArray[Any] | None) -> Any:
        return None if held is None else held[points]

    return replace(
        series,
        steps=series.steps[points],
        values=series.values[points],
        lines=some(series.lines),
        estimated=some(series.estimated),
        times=some(series.times),
        parts=tuple((int(np.searchsorted(points, at)), file) for at, file in series.parts),
    )


class Items:
    """Scores of the items of one measurement, growing: columns of equal length."""

    def __init__(self) -> None:
        """Empty."""
        self.items: list[str] = []
        self.lines = array("q")
        self.columns: dict[str, array[float]] = {}

    def add(self, item: str, line: int, scores: Mapping[str, float | None]) -> None:
        """One try at an item; what other tries have and it has not is NaN."""
        for name in scores:
            if name not in self.columns:
                self.columns[name] = array("d", [math.nan]) * len(self.items)
        self.items.append(sys.intern(item))
        self.lines.append(line)
        for name, column in self.columns.items():
            value = scores.get(name)
            column.append(math.nan if value is None else value)

    def extend(
        self,
        items: Iterable[str],
        lines: NDArray[np.int64],
        columns: Mapping[str, NDArray[np.float64]],
    ) -> None:
        """Many at once, each with all scores."""
        self.items += map(sys.intern, items)
        self.lines.frombytes(lines.tobytes())
        for name, values in columns.items():
            self.columns.setdefault(name, array("d")).frombytes(values.tobytes())

    def scores(self, file: Path | str, spot: str = "", **about: Any) -> list[Scores]:
        """A record for each column. `about` is what else the records say: step, split, shots."""
        lines, items = np.array(self.lines), self.items
        order = np.argsort(lines, kind="stable")  # of several sorts each was taken by itself
        if (order[1:] < order[:-1]).any():
            lines, items = lines[order], [items[at] for at in order.tolist()]
        where = Where(str(file), int(lines[0]) if len(lines) else None, spot)
        about.setdefault("repeats", repeats(items))
        return [
            Scores(name, items, np.array(column)[order], where, lines=lines, **about)
            for name, column in self.columns.items()
        ]


# --- JSON --------------------------------------------------------------------------------------


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice[:40]!r} stands twice in one object")
    return made


def parsed(content: bytes | str) -> Any:
    """The JSON value in a text; NaN and infinity are kept, a key twice is a `ValueError`."""
    try:
        text = content if isinstance(content, str) else content.decode()
        value, end = _DECODER.raw_decode(text)
        # Every key and every word that was kept has two quotation marks. Where the text has no
        # others none was lost to a second key; else it is read again, with a look at each object.
        if (end == len(text) or text[end:].isspace()) and text.count('"') == 2 * _words(value):
            return value
    except (ValueError, RecursionError):
        pass  # it may have a mark of its encoding or spaces before it, else it is said below
    try:
        return json.loads(content, object_pairs_hook=_once)
    except RecursionError:
        raise ValueError("nested too deeply") from None


_DECODER = json.JSONDecoder()
NUMBERS = {float, int, bool, type(None)}


def _words(value: Any) -> int:
    """The keys and the words in a value."""
    if isinstance(value, str):
        return 1
    if isinstance(value, dict):
        if NUMBERS.issuperset(map(type, value.values())):
            return len(value)
        return len(value) + sum(map(_words, value.values()))
    return sum(map(_words, value)) if isinstance(value, list) else 0


def content(path: Path) -> bytes:
    """A whole file, if it is not too large for that."""
    try:
        size = path.stat().st_size
        if size > WHOLE:
            raise DataError(f"{path} has {size / 2**20:,.0f} MiB: too large to be read at once")
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None


def whole_json(path: Path) -> Any:
    """The value in a JSON file."""
    try:
        return parsed(content(path))
    except ValueError as error:
        raise DataError(f"{path} is not JSON: {error}") from None


def whole_object(path: Path) -> dict[str, Any]:
    """The object in a JSON file."""
    value = whole_json(path)
    if not isinstance(value, dict):
        raise DataError(f"{path} holds no JSON object but {type(value).__name__}")
    return value


def raw_blocks(path: Path) -> Iterator[tuple[int, bytes]]:
    """Whole lines of a file, about a mebibyte at a time, with the number of the first."""
    try:
        handle = path.open("rb")
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None
    with handle:
        line_number, rest = 1, b""
        while chunk := handle.read(BLOCK):
            if len(rest) + (chunk.find(b"\n") + 1 or len(chunk)) > LINE:
                raise DataError(f"{path} line {line_number} is longer than {LINE // 2**20} MiB")
            end = chunk.rfind(b"\n") + 1
            if not end:
                rest += chunk
                continue
            block, rest = rest + chunk[:end], chunk[end:]
            yield line_number, block
            line_number += block.count(b"\n")
        if rest:
            yield line_number, rest


def raw_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a file with their numbers, each with its newline where it has one."""
    for first, block in raw_blocks(path):
        yield from enumerate(BytesIO(block), first)


def json_lines(path: Path, notes: list[str]) -> Iterator[tuple[int, Any]]:
    """The values of a JSONL file with their lines. A last line that was cut off is noted."""
    for line_number, line in raw_lines(path):
        if line.isspace():
            continue
        try:
            yield line_number, parsed(line)
        except ValueError as error:
            if not line.endswith(b"\n"):
                notes.append(f"{path} line {line_number} was cut off: left out")
                return
            raise DataError(f"{path} line {line_number} is not JSON: {error}") from None


def below(folder: Path, depth: int) -> Iterator[Path]:
    """The files in a folder and so many levels under it, by name; links are not followed."""
    for path in sorted(folder.iterdir()):
        if path.is_file():
            yield path
        elif path.is_dir() and depth and not path.is_symlink():
            yield from below(path, depth - 1)


def head(path: Path, size: int = 4096) -> bytes:
    """The first bytes of a file; nothing where it cannot be read."""
    if not path.is_file():  # a pipe would never end
        return b""
    try:
        with path.open("rb") as handle:
            return handle.read(size)
    except OSError:
        return b""


def first_object(path: Path) -> dict[str, Any] | None:
    """The object on the first line of a file, for `fits`: None where there is none."""
    try:
        value = parsed(head(path, 2**22).lstrip().split(b"\n", 1)[0])
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


# --- YAML --------------------------------------------------------------------------------------

WORDS = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
    ".nan": math.nan, ".NaN": math.nan, ".inf": math.inf, "-.inf": -math.inf,
}  # fmt: skip
INT = re.compile(r"[-+]?(0|[1-9][0-9_]{0,40})$")
FLOAT = re.compile(r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))([eE][-+]?[0-9]+)?$")


def literal(text: str) -> Any:
    """A scalar as people mean it: 1e-06 is a number (YAML 1.1 says text), `on` and 010 are text."""
    if text in WORDS:
        return WORDS[text]
    if INT.match(text):
        return int(text.replace("_", ""))
    return float(text) if FLOAT.match(text) else text


def read_yaml(path: Path) -> tuple[Any, dict[str, int]]:
    """The value in a YAML file, and the line of every dotted key; no tags and no aliases."""
    import yaml  # 20 ms, and few formats need it

    lines: dict[str, int] = {}
    seen: set[int] = set()

    def built(node: Any, prefix: str) -> Any:
        if id(node) in seen or len(seen) > METRICS:
            raise ValueError("it refers to a part of itself, or is too long")
        seen.add(id(node))
        if not node.tag.endswith((":str", ":seq", ":map")):
            raise ValueError(f"line {node.start_mark.line + 1}: a value with a tag")
        if isinstance(node, yaml.ScalarNode):
            return literal(node.value) if node.style is None else node.value
        if isinstance(node, yaml.SequenceNode):
            return [built(part, f"{prefix}{at}.") for at, part in enumerate(node.value)]
        made: dict[str, Any] = {}
        for key, part in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode) or key.value in made:
                raise ValueError(f"line {line} repeats a key, or has one that is no word")
            lines[f"{prefix}{key.value}"] = line
            made[key.value] = built(part, f"{prefix}{key.value}.")
        return made

    try:
        node = yaml.compose(content(path).decode(), Loader=yaml.BaseLoader)
        return None if node is None else built(node, ""), lines
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        said = " ".join(str(error).split()) or "nested too deeply"
        raise DataError(f"{path} cannot be read: {said}") from None


def yaml_settings(path: Path) -> dict[str, Setting]:
    """The settings in a YAML file, each with its line."""
    values, lines = read_yaml(path)
    made = settings(values, Where(str(path))) if isinstance(values, dict) else {}
    return {n: Setting(s.value, Where(str(path), lines.get(n))) for n, s in made.items()}


# --- settings, names ---------------------------------------------------------------------------


def settings(values: Mapping[Any, Any], where: Where, prefix: str = "") -> dict[str, Setting]:
    """Nested mappings as dotted keys; lists are values."""
    if prefix.count(".") > DEPTH:
        raise DataError(f"{where.file}: settings are nested more than {DEPTH} deep")
    made: dict[str, Setting] = {}
    for key, value in values.items():
        name = f"{prefix}{key}"
        if type(value) not in PLAIN and isinstance(value, Mapping) and value:
            made |= settings(value, where, f"{name}.")
        else:
            made[name] = Setting(value, where)
    return made


def item_id(*parts: str) -> str:
    """An item's id made from what it says: 16 digits of SHA-256, one string for all runs."""
    return sys.intern(sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16])


def repeats(items: Iterable[str]) -> NDArray[np.int64]:
    """Which time each item is seen: 0 for the first, in order."""
    seen: dict[str, int] = {}
    made = array("q")
    for item in items:
        made.append(seen.get(item, 0))
        seen[item] = made[-1] + 1
    return shared(np.array(made, dtype=np.int64))
