"""How far arms went for their score, and the items on which they disagree."""

from __future__ import annotations

import base64
import io
import json
import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from kleash.errors import KleashError
from kleash.report.charts import Dot, Spot, frontier
from kleash.report.courses import beside
from kleash.report.curves import left_out
from kleash.report.material import Material
from kleash.report.parts import Figure, Gallery, Paragraph, Part, Pictured
from kleash.stats import Interval
from kleash.study.plan import arm_recipe, base_checkpoint
from kleash.study.plan.cells import Column
from kleash.study.plan.folder import Seen
from kleash.study.results import Results, over_seeds, seed_means
from kleash.tasks.data import dataset
from kleash.train.recipe import SelectorRecipe

TELLING = 20  # items shown
SIDE = 96  # pixels of a picture at most


def frontier_chart(made: Material) -> list[Part]:
    """Every arm by its distance from the reference and its score."""
    study = made.study
    if study is None:
        return []
    start = base_checkpoint(study.file, study.file.seeds[0])
    means = list(seed_means(study.overview, study.file, "base", start).values())
    score, label = over_seeds(means), made.say("start_row", name=start)
    spots = [] if score is None else [Spot(label, Dot(label, 0.0), _height(made, label, score))]
    drawn = {arm.name for arm in beside(made)}
    for row in study.rows:
        if row.name in drawn and row.kl is not None and row.score is not None:
            name = made.arm(row.name)
            far = (row.kl.estimate, row.kl.low, row.kl.high)
            middle, low, high = (math.sqrt(max(0.0, end)) for end in far)  # a distance
            across = Dot(name, middle, low, high)
            spots.append(Spot(name, across, _height(made, name, row.score)))
    if len(spots) < 2:
        return []
    furthest = max(spots, key=lambda spot: spot.across.value)
    highest = max(spots, key=lambda spot: spot.up.value)
    up = made.column("score")
    names = made.column("root_kl"), up if made.of_agents else made.say("percent_axis", name=up)
    ends = made.head("low", "high")
    head = [made.column("arm"), names[0], *ends, names[1], *ends]
    title = made.say("frontier", far=furthest.name, high=highest.name)
    return [Figure("frontier", frontier(title, names, spots, head))]


def _height(made: Material, name: str, score: Interval) -> Dot:
    """A mean reward; or a mean of fractions in percent, its interval as far as is possible."""
    if made.of_agents:
        return Dot(name, score.estimate, score.low, score.high)
    return Dot(name, 100 * score.estimate, 100 * max(score.low, 0.0), 100 * min(score.high, 1.0))


# --- items

Columns = dict[str, list[tuple[Seen, Column]]]
"""By arm, what the chosen checkpoint of each seed did on the test."""


def chosen_columns(study: Results) -> Columns:
    """At the shots that arms were trained with, if they were measured; else at the most."""
    trained = arm_recipe(study.file, study.arms[0], study.file.seeds[0], "BASE").validated_at()
    measured = study.file.measure.shots
    shots = trained if trained in measured else max(measured)
    found: Columns = {arm.name: [] for arm in study.arms}
    for (arm, _), seen in study.overview.seen.items():
        column = seen.scored.get((seen.chosen, "test", shots))
        if arm in found and column is not None:
            found[arm].append((seen, column))
    return {arm: columns for arm, columns in found.items() if columns}


def items(made: Material) -> list[Part]:
    """The items on which the arms' mean scores are furthest apart, with pictures."""
    if made.study is None:
        return []
    columns = chosen_columns(made.study)
    means: dict[str, dict[str, float]] = {}
    for arm, each in columns.items():
        for item, mean in _means([column for _, column in each]).items():
            means.setdefault(item, {})[arm] = mean
    apart = {item: max(by.values()) - min(by.values()) for item, by in means.items() if len(by) > 1}
    disputed = [item for item in apart if apart[item] > 0]
    if not disputed:
        return []
    shown = sorted(disputed, key=lambda item: (-apart[item], _natural(item)))[:TELLING]
    arms = {arm.name for arm in beside(made)} & columns.keys()
    answers = _answers({arm: each for arm, each in columns.items() if arm in arms}, shown)
    data, known = _items_of(made.study)
    entries = []
    for item in shown:
        query = known.get(item)
        lines = [] if query is None else [made.say("asked", **_asked(query))]
        lines += [
            _arm_line(made, arm, mean, answers.get((arm, item), {}), known)
            for arm, mean in means[item].items()
            if arm in arms
        ]
        entries.append(Pictured(_picture(data, query), item, lines))
    facts = {"count": len(disputed), "of": len(means), "shown": len(shown)}
    cut = left_out(made, len(columns), len(arms), "left_out_arms")
    texts = (made.say("items_of", **facts), cut)
    return [*(Paragraph(text) for text in texts if text), Gallery(entries)]


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(each), "") if each.isdigit() else (-1, each) for each in re.split(r"(\d+)", name)]


def _means(columns: Sequence[Column]) -> dict[str, float]:
    """By item, the mean over seeds of what did not break; at once where nothing did."""
    items = columns[0].items
    if all(column.items == items and None not in column.scores for column in columns):
        total = np.add.reduce(np.array([column.scores for column in columns], np.float64))
        return dict(zip(items, (total / len(columns)).tolist(), strict=True))
    scores: dict[str, list[float]] = {}
    for column in columns:
        for item, score in zip(column.items, column.scores, strict=True):
            if score is not None:
                scores.setdefault(item, []).append(score)
    return {item: sum(scored) / len(scored) for item, scored in scores.items()}


def _answers(columns: Columns, wanted: Sequence[str]) -> dict[tuple[str, str], dict[str, Any]]:
    """By arm and item, the line of its first seed."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for arm, each in columns.items():
        seen, column = each[0]
        assert seen.run is not None  # it has scores
        lines = (seen.run.path / "scores.jsonl").read_bytes().splitlines()
        for item, number in zip(column.items, column.lines, strict=True):
            if item in wanted:
                found[arm, item] = json.loads(lines[number - 1])
    return found


def _items_of(study: Results) -> tuple[Any, dict[str, Any]]:
    """The data set and its items by id; nothing where it cannot be had."""
    recipe = arm_recipe(study.file, study.arms[0], study.file.seeds[0], "BASE")
    if not isinstance(recipe, SelectorRecipe):
        return None, {}
    try:
        data = dataset(recipe.data, recipe.data_seed, recipe.data_options)
        known = {item.id: item for item in (*data.queries("test"), *data.demonstrations)}
    except (KleashError, OSError):
        return None, {}
    return data, known


def _asked(item: Any) -> dict[str, str]:
    return {"question": item.question, "answer": item.answer}


def _arm_line(
    made: Material, arm: str, mean: float, line: dict[str, Any], known: dict[str, Any]
) -> str:
    """What an arm scored, answered and chose."""
    chosen = [
        f"{known[name].question} {known[name].answer}" if name in known else name
        for name in line.get("pointer", ())
    ]
    facts = {"arm": arm, "score": made.scored(mean), "answer": line.get("answer") or "—"}
    return made.say("arm_said", pointer=made.listed(chosen), **facts)


def _picture(data: Any, query: Any) -> str:
    """A small image as text that a page can hold; questions with captions may come without."""
    if query is None:
        return ""
    from PIL import Image

    try:
        image = Image.fromarray(data.image(query.image))
    except KleashError:
        return ""
    image.thumbnail((SIDE, SIDE))
    file = io.BytesIO()
    image.save(file, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()
