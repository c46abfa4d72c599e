"""Which column of a table plays which part, by the names that people and tools give columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kleash.imports import names
from kleash.imports.gather import Axis
from kleash.imports.stretches import Value

STEPS: dict[str, Axis] = {
    "step": "step", "_step": "step", "global_step": "step", "train/global_step": "step",
    "trainer/global_step": "step", "training_step": "step", "iteration": "step", "iter": "step",
    "update": "step", "步数": "step", "步": "step", "epoch": "epoch", "轮次": "epoch",
}  # fmt: skip
RUNS = ("run", "run_name", "run_id", "experiment", "arm", "配置", "实验")
EPOCHS: tuple[Axis, Axis] = ("step", "epoch")
# Names of runs where they differ within a file; else the file has one run, whatever it calls it.
TELLING = (
    "stage", "method", "selector", "algorithm", "algo", "policy", "setting", "variant", "model",
    "ckpt", "checkpoint", "阶段", "方法", "选择器", "模型", "策略",
)  # fmt: skip
SPLITS = (
    "benchmark", "dataset", "task", "category", "domain", "qtype", "question_type", "answer_type",
    "类别", "任务", "数据集", "题型",
)  # fmt: skip
ITEMS = (
    "item", "item_id", "question_id", "qid", "sample_id", "example_id", "doc_hash", "doc_id", "uid",
    "id",
)  # fmt: skip
COUNTED = ("idx", "index", "序号")  # items, where no step is beside them
SCORES = (
    "score", "acc", "accuracy", "correct", "is_correct", "reward", "exact_match", "em", "f1",
    "vqa_acc", "vqa_acc_score",
)  # fmt: skip
METRICS = ("metric", "tag", "metric_name", "指标")
VALUES = ("value", "值")
TABLES = ("csv", "jsonl")  # formats whose rows may be anything: curves, results, settings
SHOTS = ("shot", "shots", "n_shot", "n_shots", "num_shots", "shot_num")
SIZES = (
    "items", "n_samples", "num_samples", "samples", "sample_num", "test_data_num", "样本数",
    "n_items", "num_items", "n_test", "n_eval", "num_eval", "n",
)  # fmt: skip
RIGHT = ("correct", "hits", "n_correct", "num_correct")  # of items, those that came out right
BY_SHOTS = re.compile(
    r"(?:(?P<metric>.+?)[._/ ])?(?:shots?[_-]?(?P<of>\d{1,3})|(?P<by>\d{1,3})[_-]?shots?)", re.I
)
SHOTS_FIRST = re.compile(r"shots?[._/](?P<of>\d{1,3})[._/](?P<metric>.+)", re.I)
UNNAMED = "score"  # what a column that names nothing but its shots holds
AT_PLACE = re.compile(  # a column for each step: "step 100", "reward@step200", "第100步"
    r"(?:(?P<metric>.+?)[ _/@-]+)?(?:(?:global[ _-]?)?(?P<axis>step|iter|epoch)[ _-]?"
    r"(?P<at>\d{1,9})|第?(?P<nth>\d{1,9}) ?(?P<zh>[步轮]))",
    re.I,
)
OF_ROW = {
    "best": "best", "max": "max", "last": "last", "final": "last",
    "最佳": "best", "最好": "best", "最后": "last", "最终": "last",
}  # fmt: skip
SORTS = ("type", "kind", "row_type", "record_type", "event", "phase", "split", "mode")
TIMES = ("wall time", "wall_time", "_timestamp", "timestamp", "_runtime")


def _named(columns: Iterable[str], names: Iterable[str]) -> str | None:
    """The first of the names that a column has, whatever its case."""
    lower = {column.strip().lower(): column for column in reversed(list(columns))}
    return next((lower[name] for name in names if name in lower), None)


@dataclass
class Layout:
    """Which column plays which part."""

    kind: str
    step: str | None = None
    run: str | None = None
    seed: str | None = None
    item: str | None = None
    metric: str | None = None
    value: str | None = None
    time: str | None = None
    shots: str | None = None
    size: str | None = None
    leash: str | None = None
    """The KL coefficient. Where it differs within a file, each has its run."""
    split: str | None = None
    telling: tuple[str, ...] = ()
    """What may tell runs apart; those that do, once some rows were seen (`told_apart`)."""
    leashes: bool = False
    """Whether rows of one step have several coefficients."""
    sort: str | None = None
    """What sort of record a row of a series is: steps and the means of epochs may be in one."""
    scores: tuple[str, ...] = ()
    among: str | None = None
    """What names items, where no column has a score's name."""
    single: bool = False  # the table is one row by nature
    wide: bool = False
    """Whether items have a column of scores for each run."""
    places: Mapping[str, tuple[str, float]] = field(default_factory=dict)
    """Columns of a step each: the metric, if they tell it, and the step."""
    by_epoch: bool = False

    @property
    def axis(self) -> Axis:
        """What the steps count."""
        return STEPS[self.step.strip().lower()] if self.step else EPOCHS[self.by_epoch]

    @property
    def naming(self) -> tuple[str, ...]:
        """What names runs."""
        return (*self.telling, *((self.run,) if self.run else ()))

    @property
    def by_column(self) -> bool:
        """Whether rows are alike, so that they can be taken by the stretch."""
        return self.kind in ("series", "counted", "items")

    def countable(self, row: Mapping[str, Value]) -> bool:
        """Whether nothing in a row says what it is about."""
        words = any(isinstance(value, str) for value in row.values())
        told = self.run or self.seed or words or self.single or self.leashes
        return not (told or self.places)

    def is_part(self, column: str) -> bool:
        """Whether a column says what a row is about, so that it is no metric."""
        return column in self.telling or column in (
            self.step, self.run, self.seed, self.item, self.metric, self.time, self.shots,
            self.size, self.split, self.leash if self.leashes or self.kind == "matrix" else None,
        )  # fmt: skip

    def told_apart(self, rows: Sequence[Mapping[str, Value]]) -> None:
        """Keep of what may tell runs apart that in which some rows differ."""
        self.telling = tuple(
            one
            for one in self.telling
            if len({held for row in rows if isinstance(held := row.get(one), str)}) > 1
        )
        told = {(self._place(row), row.get(self.leash)) for row in rows if self.leash}
        leashes = {leash for _, leash in told}
        self.leashes = len({place for place, _ in told}) < len(told) and all(map(_is_set, leashes))
        if len(leashes) > 1 and not self.leashes:
            self.leash = None  # one that is steered: a curve
        if self.kind == "matrix" or (self.kind == "cells" and self.leashes):
            self.telling += self._setting(rows)
        if self.among and not self.run and not self.seed:
            self._widen(rows)
        if self.among and self.kind != "items":
            self._by_item(rows)

    def _widen(self, rows: Sequence[Mapping[str, Value]]) -> None:
        """Take a table for one of items if all its numbers lie between 0 and 1, a run a column."""
        held = {name: [row.get(name) for row in rows] for name in rows[0] if name != self.among}
        scores = [
            name
            for name, column in held.items()
            if all(isinstance(one, tuple) and 0 <= one[0] <= 1 for one in column)
        ]
        numbers = [n for n, column in held.items() if any(isinstance(o, tuple) for o in column)]
        if len(scores) > 1 and scores == numbers:
            self.kind, self.item, self.scores, self.wide = "items", self.among, tuple(scores), True

    def _by_item(self, rows: Sequence[Mapping[str, Value]]) -> None:
        """Take a table for one of items if a run has several rows at one place, each of another."""
        item = self.among or ""
        held = [row.get(item) for row in rows]
        if not self.run and item.strip().lower() == "id" and any(isinstance(o, str) for o in held):
            return  # the names of runs
        places = [(self._place(row), row.get(self.leash or "")) for row in rows]
        told = {(place, one) for place, one in zip(places, held, strict=True) if one is not None}
        if len({place for place, _ in told}) == len(told):
            return
        beside = [name for name in rows[0] if name != item and not self.is_part(name)]
        known = [name for name in beside if names.metric(name)]
        self.kind, self.item, self.scores = "items", item, tuple(known or beside)

    def _place(self, row: Mapping[str, Value]) -> tuple[Value, ...]:
        """What a row is about but for its coefficient."""
        told = (self.step, self.run, self.seed, self.shots, self.size, self.split, *self.telling)
        return tuple(row.get(one) for one in told if one)

    def _setting(self, rows: Sequence[Mapping[str, Value]]) -> tuple[str, ...]:
        """The count or word that tells rows of one place apart: "train_samples"."""
        places = [(self._place(row), row.get(self.leash or "")) for row in rows]
        if len(set(places)) == len(places):
            return ()
        for column in rows[0]:
            held = [row.get(column) for row in rows]
            counts = all(not isinstance(one, tuple) or one[0].is_integer() for one in held)
            told = (
                names.key(column) if self.kind == "cells" else counts and not names.metric(column)
            )
            if self.is_part(column) or not told:
                continue
            if len(set(zip(places, held, strict=True))) == len(places):
                return (column,)
        return ()


def by_shots(column: str) -> tuple[str, int] | None:
    """The metric of a column that says of how many shots it is, and these."""
    if first := SHOTS_FIRST.fullmatch(column):
        return first["metric"], int(first["of"])
    by = BY_SHOTS.fullmatch(column)
    return (by["metric"] or UNNAMED, int(by["of"] or by["by"])) if by else None


def _is_set(value: Value) -> bool:
    """Whether a coefficient may have been chosen: 0.05, not 0.0937."""
    return not isinstance(value, tuple) or f"{value[0]:.2g}" == f"{value[0]:.6g}"


def _is_leash(column: str) -> bool:
    known = names.key(column)
    return known is not None and known.name == "leash.coefficient"


def layout(columns: list[str]) -> Layout:
    """What a table with these columns is."""
    found = Layout(
        "cells",
        step=_named(columns, STEPS),
        run=_named(columns, RUNS),
        seed=_named(columns, ("seed", "随机种子")),
        item=_named(columns, ITEMS),
        metric=_named(columns, METRICS),
        value=_named(columns, VALUES),
        time=_named(columns, TIMES),
        shots=_named(columns, SHOTS),
        leash=next((one for one in columns if _is_leash(one)), None),
        split=_named(columns, SPLITS),
    )
    lower = {column: column.strip().lower() for column in columns}
    found.telling = tuple(c for name in TELLING for c in columns if lower[c] == name)
    found.scores = tuple(c for c in columns if lower[c] in SCORES)
    if not found.step and not found.item and (item := _named(columns, COUNTED)):
        found.scores = found.scores or tuple(c for c in columns if by_shots(c))
        found.item = item if found.scores else None
    if found.metric and found.value:
        found.kind = "long"
    elif found.item and found.scores:
        found.kind = "items"
    elif found.step and (found.shots or any(map(by_shots, columns))):
        found.kind = "matrix"
        found.size = _named(columns, SIZES)
    elif found.step:
        found.kind = "series"
        found.sort = _named(columns, SORTS)
    found.shots = found.shots if found.kind in ("matrix", "cells") else None
    if found.kind != "items":
        found.among = found.item if found.kind in ("cells", "series") else None
        found.item = None
    if found.kind == "cells":
        _by_place(found, columns)
    if found.kind != "long" and not found.places:
        found.metric = None
    return found


def _by_place(found: Layout, columns: Sequence[str]) -> None:
    """Two columns or more that are named by a step are points of a curve in each row."""
    named = {one: match for one in columns if (match := AT_PLACE.fullmatch(one.strip()))}
    if len(named) > 1:
        found.places = {
            one: (m["metric"] or "", float(m["at"] or m["nth"])) for one, m in named.items()
        }
        found.by_epoch = all(m["axis"] == "epoch" or m["zh"] == "轮" for m in named.values())
