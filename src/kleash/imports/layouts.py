"""Which column of a table plays which part, by the names that people and tools give columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kleash.imports.gather import Axis
from kleash.imports.stretches import Value

STEPS: dict[str, Axis] = {
    "step": "step", "_step": "step", "global_step": "step", "train/global_step": "step",
    "trainer/global_step": "step", "training_step": "step", "iteration": "step", "iter": "step",
    "update": "step", "步数": "step", "步": "step", "epoch": "epoch", "轮次": "epoch",
}  # fmt: skip
RUNS = ("run", "run_name", "run_id", "experiment", "arm", "配置", "实验")
ITEMS = (
    "item", "item_id", "question_id", "qid", "sample_id", "example_id", "doc_hash", "doc_id", "uid",
    "id",
)  # fmt: skip
SCORES = (
    "score", "acc", "accuracy", "correct", "is_correct", "reward", "exact_match", "em", "f1",
    "vqa_acc", "vqa_acc_score",
)  # fmt: skip
METRICS = ("metric", "tag", "metric_name", "指标")
VALUES = ("value", "值")
SHOTS = ("shot", "shots", "n_shot", "n_shots", "num_shots", "shot_num")
SIZES = ("items", "n_samples", "num_samples", "samples", "sample_num", "test_data_num", "样本数")
LEASHES = ("kl_beta", "beta", "kl_coef", "kl_coeff")
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
    sort: str | None = None
    """What sort of record a row of a series is: steps and the means of epochs may be in one."""
    scores: tuple[str, ...] = ()
    single: bool = False  # the table is one row by nature

    @property
    def axis(self) -> Axis:
        """What the steps count."""
        return STEPS[self.step.strip().lower()] if self.step else "step"

    @property
    def by_column(self) -> bool:
        """Whether rows are alike, so that they can be taken by the stretch."""
        return self.kind in ("series", "counted", "items")

    def countable(self, row: Mapping[str, Value]) -> bool:
        """Whether nothing in a row says what it is about."""
        words = any(isinstance(value, str) for value in row.values())
        return not (self.run or self.seed or words or self.single)

    def is_part(self, column: str) -> bool:
        """Whether a column says what a row is about, so that it is no metric."""
        return column in (
            self.step, self.run, self.seed, self.item, self.metric, self.time, self.shots,
            self.size, self.leash if self.kind == "matrix" else None,
        )  # fmt: skip


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
        leash=_named(columns, LEASHES),
    )
    lower = {column: column.strip().lower() for column in columns}
    found.scores = tuple(c for c in columns if lower[c] in SCORES)
    if found.metric and found.value:
        found.kind = "long"
    elif found.item and found.scores:
        found.kind = "items"
    elif found.step and found.shots:
        found.kind = "matrix"
        found.size = _named(columns, SIZES)
    elif found.step:
        found.kind = "series"
        found.sort = _named(columns, SORTS)
    found.shots = found.shots if found.kind == "matrix" else None
    if found.kind != "items":
        found.item = None
    if found.kind != "long":
        found.metric = None
    return found
