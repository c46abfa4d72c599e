"""Where numbers come from: the place of an arm's scores, curves, KL and settings.

A mean, a gap and a verdict are of many numbers. They link to the first of them: the first seed of
the arm that they are about; the others stand below it, and in the runs beside it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from kleash.charts import Cell, Linked
from kleash.compare import Judged
from kleash.compare.arms import Arm, known_name
from kleash.imports import Where, names
from kleash.plan.folder import Seen
from kleash.report.courses import Course, course
from kleash.report.material import Material
from kleash.report.parts import Line
from kleash.results import KL, Measured

ONE = r"[-+−]?\d[\d,]*(?:\.\d+(?:e[-+]?\d+)?%?|%)"
NUMBER = re.compile(rf"(?<![A-Za-z0-9_.=])(?!95 ?%){ONE}(?: \[{ONE}, {ONE}\])?(?![\d.]*[A-Za-z_])")

OF_CURVES = (
    *("average", "at_end", "best_step", "faster", "steadier"),
    *("phase_early", "phase_middle", "phase_late", "collapse"),
)


def linked(text: str, where: Where | None, arms: Sequence[str] = ()) -> Line:
    """A sentence whose numbers link to a place; digits in the names of arms are no numbers."""
    if where is None:
        return text
    taken = [span for arm in arms for span in _spans(arm, text)]
    made: list[Cell] = []
    done = 0
    for found in NUMBER.finditer(text):
        start, end = found.span()
        if not any(low < end and start < high for low, high in taken):
            made += [text[done:start]] if start > done else []
            made.append(Linked(text[start:end], where))
            done = end
    rest = text[done:]
    return tuple([*made, rest] if rest else made) if made else text


def _spans(arm: str, text: str) -> Iterator[tuple[int, int]]:
    """From where to where a name stands in a text."""
    start = text.find(arm) if arm else -1
    while start >= 0:
        yield start, start + len(arm)
        start = text.find(arm, start + len(arm))


def joined(lines: Sequence[Line], between: str) -> Line:
    """Lines as one."""
    made: list[Cell] = []
    for number, line in enumerate(lines):
        made += [between] if number and between else []
        made += line if isinstance(line, tuple) else [line]
    return tuple(made)


# --- of a study


def first_place(made: Material, arm: str) -> Where | None:
    """Where an arm's first tested column begins."""
    if made.study is not None and not made.firsts:
        for (name, _), seen in made.study.overview.seen.items():
            for shots in made.study.file.measure.shots if made.firsts.get(name) is None else ():
                where = scores_place(seen, seen.chosen, "test", shots)
                made.firsts[name] = made.firsts.get(name) or where
    return made.firsts.get(arm)


def cell_place(made: Material, each: Measured) -> Where | None:
    """Where the scores of a cell begin."""
    assert made.study is not None
    seen = made.study.overview.seen[each.cell.arm, each.cell.seed]
    return scores_place(seen, each.checkpoint, each.cell.split, each.cell.shots)


def scores_place(seen: Seen, checkpoint: str, split: str, shots: int) -> Where | None:
    """Where a run's scores of a checkpoint begin, on a split and at some shots."""
    column = seen.scored.get((checkpoint, split, shots))
    if column is None or seen.run is None:
        return None
    return Where(seen.run.file("scores.jsonl"), column.lines[0])


def logged_place(made: Material, arm: str, metric: str, at: float | None = None) -> Where | None:
    """Where the first run of an arm logged a quantity, at an epoch or last."""
    seeds = () if made.study is None else made.study.file.seeds
    run = next((made.runs[arm, seed] for seed in seeds if (arm, seed) in made.runs), None)
    for series in () if run is None else run.series:
        if series.metric == metric and len(series.steps):
            points = [k for k, step in enumerate(series.steps) if at in (None, float(step))]
            return series.place(points[-1]) if points else None
    return None


def kl_place(made: Material, arm: str) -> Where | None:
    """Where an arm's distance from the reference stands."""
    return logged_place(made, arm, KL)


def study_file(made: Material, name: str, line: int | None = None) -> Where | None:
    """A file of the study's folder, if it is there."""
    path = Path() if made.study is None else made.study.folder / name
    return Where(str(path), line) if path.is_file() else None


def asked_place(made: Material, arm: str) -> Where | None:
    """Where a study asks for an arm; of one that tuning placed, what placed it."""
    path = study_file(made, "study.toml")
    if path is None:
        return None
    if made.asked is None:
        lines = enumerate(Path(path.file).read_text(encoding="utf-8").splitlines(), 1)
        made.asked = [(number, line) for number, line in lines if line.startswith("[arms.")]
    heads = (f"[arms.{arm}]", f"[arms.{arm}.", f'[arms."{arm}"')
    for number, line in made.asked:
        if line.startswith(heads):
            return Where(path.file, number)
    return study_file(made, "search.json") if arm == "found" else path


# --- of any source


def arm_place(made: Material, name: str, judged: Judged) -> Where | None:
    """Where the first value of an arm that a verdict is about stands.

    It is among its scores, on its curve, or among its cells; what is asked of a course is answered
    from the curve, where there is one beside the scores.
    """
    metric, question = judged.metric, judged.question
    arm = next((each for each in made.arms if each.name == name), None)
    each = None if arm is None or question not in OF_CURVES else course(arm, metric)
    if each is not None:
        return each.where(_first(each, judged))
    tested = first_place(made, name) if metric in ("", judged_by(made)) else None
    if tested is not None or arm is None:
        return tested
    return _told_place(arm, judged)


def judged_by(made: Material) -> str:
    """What a study's arms are judged by, and their items scored."""
    return "" if made.study is None else made.study.file.compare.metric


def _first(curve: Course, judged: Judged) -> float:
    """The step at which a curve begins to count for a verdict."""
    return float(curve.steps[0]) if judged.over is None else judged.over.first


def _told_place(arm: Arm, judged: Judged) -> Where | None:
    metric = judged.metric
    each = course(arm, metric)
    if each is not None and (where := each.where(_first(each, judged))) is not None:
        return where
    for replicate in arm.replicates:
        for scores in replicate.scores:
            if metric in ("", known_name(scores.metric)):
                return scores.where
        for (told, _), cells in replicate.cells.items():
            if told == metric:
                return next(iter(cells.values())).where
    return arm.replicates[0].runs[0].where if arm.replicates else None


def setting_place(arm: Arm, key: str) -> Where | None:
    """Where a source tells a setting of an arm, by itself or inside another."""
    told = [each for one in arm.replicates for run in one.runs for each in run.config.items()]
    for written, setting in told:
        known = names.key(written)
        if key == (written if known is None else known.name):
            return setting.where
    for written, setting in told:
        if key in names.resolve({written: setting.value}).values:
            return setting.where
    return None


def judged_place(made: Material, judged: Judged) -> Where | None:
    """Where the first number of the arm that a verdict is about stands."""
    found = (arm_place(made, arm, judged) for arm in judged.arms)
    return next((where for where in found if where is not None), None)
