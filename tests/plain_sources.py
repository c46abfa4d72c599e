"""What readers make of the files that were written by hand, as values that JSON can hold.

    python tests/plain_sources.py

writes `fixtures/handmade.json` anew; look at what changed before you keep it.
"""

import json
import math
from pathlib import Path

from kleash.compare.read import read
from kleash.compare.read.markdown.derived import follows
from kleash.errors import DataError

FIXTURES = Path(__file__).parent / "fixtures"
HANDMADE = FIXTURES / "imports/handmade"
GOLDEN = FIXTURES / "handmade.json"
FILES = [
    *(path for path in sorted(HANDMADE.glob("*/*")) if path.parent.name != "nemo_rl"),
    HANDMADE / "nemo_rl",
    *sorted((FIXTURES / "markdown").glob("*.md")),
]


def plain(source, root):
    """A source: its runs with all their numbers, what follows from what, and what was noted."""
    text = json.dumps(
        {
            "runs": [_run(run) for run in source.runs],
            "derived": [_derived(one) for one in source.derived],
            "facts": sorted({(one.kind, one.text, one.arm) for one in source.facts}),
            "tables": [len(table.rows) for table in source.tables],
            "notes": source.notes,
        },
        ensure_ascii=False,
    )
    return json.loads(text.replace(str(root), "…"))


def _run(run):
    return {
        "called": [run.name, run.arm, run.seed, run.format, run.finished],
        "seconds": run.seconds,
        "config": {
            key: [repr(one.value), one.where.line, [repr(other.value) for other in one.others]]
            for key, one in run.config.items()
        },
        "series": [
            [one.metric, one.axis, one.decimals, one.steps.tolist(), _all(one.values),
             _all(one.lines), _all(one.estimated), one.parts]
            for one in run.series
        ],
        "cells": [
            [one.metric, _number(one.number), one.epoch, one.step, one.shots, one.items, one.split,
             one.statistic, one.command]
            for one in run.cells
        ],
        "scores": [
            [one.metric, one.step, one.shots, one.split, one.checkpoint, list(one.items),
             _all(one.values), _all(one.repeats)]
            for one in run.scores
        ],
    }  # fmt: skip


def _all(values):
    every = None if values is None else values.tolist()
    return every and [repr(one) if type(one) is float and math.isnan(one) else one for one in every]


def _number(one):
    ends = [one.value, one.low, one.high]
    return [*ends, one.state, one.decimals, one.unit, one.about, one.where.line, one.where.spot]


def _derived(one):
    sides = [[_number(number)[:1] for number in side] for side in (one.of, one.minus)]
    return [one.kind, _number(one.number), *sides, one.metric, one.arms, one.unsigned, follows(one)]


def source_of(path):
    """What is made of a file, or why nothing is."""
    try:
        return plain(read(path), path.parent)
    except DataError as error:
        return str(error).replace(str(path.parent), "…")


if __name__ == "__main__":
    every = (json.dumps({path.name: source_of(path)}, ensure_ascii=False)[1:-1] for path in FILES)
    GOLDEN.write_text("{\n" + ",\n".join(every) + "\n}\n", encoding="utf-8")
