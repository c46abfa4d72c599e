"""Logs that say what a right report says: accuracies by shots, curves over epochs or steps.

What a report gives only as a mean, first, last and least becomes a curve that has them. Values have
more digits than were printed, so that differences come out as they do there.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

from kleash.imports import Number
from kleash.imports.markdown.draft import SEED, Draft
from kleash.written.relations import Node, node

EPOCHS = 50


def digits_behind(draft: Draft) -> dict[Node, float]:
    """By number, what is to be added before it was rounded, for every difference to come out."""
    added: dict[Node, float] = {}
    for derived in draft.source.derived:
        if derived.kind != "difference" or len(derived.of) != 1 or len(derived.minus) != 1:
            continue
        ours, theirs, gap = derived.of[0], derived.minus[0], derived.number
        if None in (ours.value, theirs.value, gap.value) or derived.unsigned:
            continue
        off = gap.value - (ours.value - theirs.value)
        unit = 10.0 ** -(gap.decimals or 0)
        if 0.6 * unit < abs(off) < 1.4 * unit:
            added[node(ours)], added[node(theirs)] = 0.3 * off, -0.3 * off
    return added


class Writer:
    """A folder for each arm, named by `arms` or by its coefficient without a dot."""

    def __init__(self, draft: Draft, folder: Path, arms: dict[str, str]) -> None:
        self.draft, self.folder, self.arms = draft, folder, arms
        self.added = digits_behind(draft)

    def value(self, number: Number) -> float:
        return number.value + self.added.get(node(number), 0.0)

    def place(self, whose: str) -> Path:
        arm = whose.partition(SEED)[0]
        plain = arm.replace("=", "").replace("_BETA", "").replace(".", "").lower()
        path = self.folder / self.arms.get(arm, plain)
        path.mkdir(parents=True, exist_ok=True)
        return path

    def curves(self) -> None:
        for (whose, _, axis), told in self.draft.histories.items():
            rows: dict[float, dict[str, float]] = defaultdict(dict)
            for step, number in told[0].points.items():
                if number.state == "known":
                    rows[step][told[0].metric] = self.value(number)
            path = self.place(whose)
            add_rows(path / f"{path.name}.jsonl", axis, rows)

    def accuracies(self) -> None:
        files: dict[Path, dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
        for (whose, _, at, _), cells in self.draft.cells.items():
            number = cells[0].number
            if number.value is not None and at.shots is not None and at.items is not None:
                path = self.place(whose)
                file = files[path / f"{path.name}_epoch{at.epoch or 0}.json"]
                key = f"2026-test_data_num={at.items}-RandSampler"
                file[key][f"shot_num={at.shots}"] = self.value(number)
        for path, shots in files.items():
            path.write_text(json.dumps(shots))

    def statistics(self) -> None:
        told: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
        for (whose, _, _, statistic), cells in self.draft.cells.items():
            number, metric = cells[0].number, cells[0].metric
            if number.value is not None and statistic in ("mean", "first", "last", "min"):
                told[whose, metric][statistic] = self.value(number)
                if statistic == "min":
                    told[whose, metric]["at"] = cells[0].epoch or cells[0].step or 2
        for (whose, metric), known in told.items():
            if {"mean", "first", "last"} <= known.keys():
                path = self.place(whose)
                curve = {at: {metric: value} for at, value in enumerate(curve_of(known), 1)}
                add_rows(path / f"{path.name}.jsonl", "epoch", curve)


def write_logs(draft: Draft, folder: Path, *, arms: dict[str, str] | None = None) -> list[Path]:
    """Every arm's logs in a folder of its own."""
    writer = Writer(draft, folder, arms or {})
    writer.curves()
    writer.accuracies()
    writer.statistics()
    return sorted(path for path in folder.glob("*") if path.is_dir())


def curve_of(known: dict[str, float]) -> list[float]:
    """Fifty values with a given first, last, mean and least."""
    least, at = known.get("min"), int(known.get("at", 0))
    fixed = [known["first"], known["last"]] + ([] if least is None else [least])
    rest = (EPOCHS * known["mean"] - sum(fixed)) / (EPOCHS - len(fixed))
    values = [known["first"], *[rest] * (EPOCHS - 2), known["last"]]
    if least is not None:
        values[at - 1] = least
    return values


def add_rows(path: Path, axis: str, rows: dict[float, dict[str, float]]) -> None:
    """Rows of a JSONL file, those of one step or epoch together."""
    held: dict[float, dict[str, float]] = defaultdict(dict)
    if path.is_file():
        for line in path.read_text().splitlines():
            row = json.loads(line)
            held[row[axis]] |= row
    for step, row in rows.items():
        held[step] |= {axis: step, **row}
    path.write_text("".join(json.dumps(held[step]) + "\n" for step in sorted(held)))
