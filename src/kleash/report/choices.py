"""What arms chose: how far they went for it, how alike they are, and where they disagree."""

from __future__ import annotations

import base64
import io
import json
import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from kleash.charts import Dot, Spot, bars, frontier
from kleash.data import dataset
from kleash.errors import KleashError
from kleash.imports import Where
from kleash.plan import arm_recipe, base_checkpoint
from kleash.plan.cells import Column
from kleash.plan.folder import Seen
from kleash.recipe import SelectorRecipe
from kleash.report.courses import beside
from kleash.report.material import Material, percent, plain
from kleash.report.parts import (
    Cell,
    Figure,
    Gallery,
    Line,
    Linked,
    Paragraph,
    Part,
    Pictured,
    Table,
)
from kleash.report.places import first_place, kl_place, linked, scores_place
from kleash.report.study_tables import left_out
from kleash.results import Results, over_seeds, seed_means
from kleash.stats import Interval

TELLING = 20  # items shown
MOST_BARS = 40
MOST_HEAT = 16  # arms in a heat map; of more the table alone
SIDE = 96  # pixels of a picture at most
CHOSEN_HEAD = ("arm", "most_chosen", "times", "distinct", "top_ten")


def score_against_kl(made: Material) -> list[Part]:
    """Every arm by its distance from the reference and its score."""
    study = made.study
    if study is None:
        return []
    spots = _start_spot(made, study)
    rows: list[list[Cell]] = []
    drawn = {arm.name for arm in beside(made)}
    for row in study.rows:
        if row.name not in drawn or row.kl is None or row.score is None:
            continue
        across = dot(row.name, root(row.kl), 1, kl_place(made, row.name))
        where = first_place(made, row.name)
        up = (
            dot(row.name, row.score, 1, where)
            if made.of_agents
            else share(row.name, row.score, where)
        )
        spots.append(Spot(made.arm(row.name), across, up))
        rows.append([made.arm(row.name), Linked(plain(root(row.kl)), across.where)])
    if len(spots) < 2:
        return []
    far = max(spots, key=lambda spot: spot.across.value)
    high = max(spots, key=lambda spot: spot.up.value)
    title = made.say("frontier", far=far.name, high=high.name)
    score = made.column("score")
    names = (
        made.column("root_kl"),
        score if made.of_agents else made.say("percent_axis", name=score),
    )
    ends = made.head("low", "high")
    head = [made.column("arm"), names[0], *ends, names[1], *ends]
    table = Table(made.say("kl_of"), made.head("arm", "root_kl"), rows)
    return [Figure("frontier", frontier(title, names, spots, head), title), table]


def frontier_chart(made: Material) -> list[Part]:
    """The picture alone."""
    return [part for part in score_against_kl(made) if isinstance(part, Figure)]


def _start_spot(made: Material, study: Results) -> list[Spot]:
    """The start, which has gone nowhere, where it was measured."""
    name = base_checkpoint(study.file, study.file.seeds[0])
    score = over_seeds(list(seed_means(study.overview, study.file, "base", name).values()))
    if score is None:
        return []
    places = (
        scores_place(seen, name, "test", study.file.measure.shots[0])
        for (arm, _), seen in study.overview.seen.items()
        if arm == "base"
    )
    where, label = next(filter(None, places), None), made.say("start_row", name=name)
    up = dot(label, score, 1, where) if made.of_agents else share(label, score, where)
    return [Spot(label, Dot(label, 0.0, where=where), up)]


def root(kl: Interval) -> Interval:
    """The square root of an interval: a distance."""
    middle, low, high = (math.sqrt(max(0.0, each)) for each in (kl.estimate, kl.low, kl.high))
    return Interval(middle, low, high, kl.level, kl.n)


def share(name: str, interval: Interval, where: Where | None) -> Dot:
    """A mean of fractions in percent, with its interval as far as that is possible."""
    low, high = 100 * max(interval.low, 0.0), 100 * min(interval.high, 1.0)
    return Dot(name, 100 * interval.estimate, low, high, where=where)


def dot(name: str, interval: Interval, times: float, where: Where | None) -> Dot:
    """An interval as a chart draws it, with its place."""
    low, high = times * interval.low, times * interval.high
    return Dot(name, times * interval.estimate, low, high, where=where)


# --- demonstrations


def chosen_columns(study: Results) -> dict[str, list[tuple[Seen, Column]]]:
    """By arm, what the chosen checkpoint of each seed did on the test at the trained shots."""
    shots = trained_shots(study)
    found: dict[str, list[tuple[Seen, Column]]] = {arm.name: [] for arm in study.arms}
    for (arm, _), seen in study.overview.seen.items():
        column = seen.scored.get((seen.chosen, "test", shots))
        if arm in found and column is not None:
            found[arm].append((seen, column))
    return {arm: columns for arm, columns in found.items() if columns}


def trained_shots(study: Results) -> int:
    """The shots that arms were trained with, if they were measured; else the most."""
    shots = arm_recipe(study.file, study.arms[0], study.file.seeds[0], "BASE").validated_at()
    return shots if shots in study.file.measure.shots else max(study.file.measure.shots)


def demonstrations(made: Material) -> list[Part]:
    """How often each demonstration is chosen, by arm and over all."""
    if made.study is None:
        return []
    counts = {
        arm: Counter(d for _, column in columns for p in column.pointers for d in p)
        for arm, columns in chosen_columns(made.study).items()
    }
    total: Counter[str] = sum(counts.values(), Counter())
    if not total:
        return []
    ranked = sorted(total.items(), key=lambda pair: (-pair[1], _natural(pair[0])))
    most, every = ranked[:MOST_BARS], sum(total.values())
    share = percent(sum(n for _, n in ranked[:10]) / every)
    title = made.say("demonstrations", share=share, count=len(total))
    head, places = made.head("demonstration", "times"), _chosen_first(made.study)
    axis = made.say("ranked_axis", most=len(most), count=len(total))
    bar = bars(title, axis, most, head, places)
    rows: list[list[Cell]] = []
    for arm, each in counts.items():
        ten = percent(sum(n for _, n in each.most_common(10)) / max(1, sum(each.values())))
        first = min(each, key=lambda name: (-each[name], _natural(name)))
        where = first_place(made, arm)
        numbers = (f"{each[first]}", str(len(each)), ten)
        rows.append([made.arm(arm), first, *(Linked(text, where) for text in numbers)])
    table = Table(made.say("chosen_of"), made.head(*CHOSEN_HEAD), rows, left=2)
    return [Figure("demonstrations", bar, linked(title, places[most[0][0]])), table]


def _chosen_first(study: Results) -> dict[str, Where]:
    """By demonstration, where it was chosen first."""
    found: dict[str, Where] = {}
    for columns in chosen_columns(study).values():
        for seen, column in columns:
            assert seen.run is not None  # it has scores
            file = seen.run.file("scores.jsonl")
            for pointer, line in zip(column.pointers, column.lines, strict=True):
                for name in pointer:
                    if name not in found:
                        found[name] = Where(file, line)
    return found


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(each), "") if each.isdigit() else (-1, each) for each in re.split(r"(\d+)", name)]


# --- items


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
    telling = sorted(
        (item for item in apart if apart[item] > 0), key=lambda i: (-apart[i], _natural(i))
    )
    if not telling:
        return []
    shown, arms = telling[:TELLING], {arm.name for arm in beside(made)}
    said = _answers({arm: each for arm, each in columns.items() if arm in arms}, shown)
    known = _items_of(made.study)
    told = {item: {arm: m for arm, m in means[item].items() if arm in arms} for item in shown}
    entries = [_pictured(made, item, told[item], said, known) for item in shown]
    facts = {"count": len(telling), "of": len(means), "shown": len(shown)}
    rest = next((first_place(made, arm) for arm in columns if arm not in arms), None)
    cut = left_out(made, len(columns), len(arms & columns.keys()), rest, "left_out_arms")
    parts = [Paragraph(line) for line in (made.say("items_of", **facts), cut) if line]
    return [*parts, Gallery(entries)]


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


def _answers(
    columns: dict[str, list[tuple[Seen, Column]]], wanted: Sequence[str]
) -> dict[tuple[str, str], dict[str, Any]]:
    """By arm and item, the line of its first seed."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for arm, each in columns.items():
        seen, column = each[0]
        assert seen.run is not None  # it has scores
        file = seen.run.path / "scores.jsonl"
        lines = file.read_bytes().splitlines()
        for item, number in zip(column.items, column.lines, strict=True):
            if item in wanted:
                line = json.loads(lines[number - 1])
                found[arm, item] = line | {"where": Where(str(file), number)}
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


def _pictured(
    made: Material,
    item: str,
    means: dict[str, float],
    said: dict[tuple[str, str], dict[str, Any]],
    known: tuple[Any, dict[str, Any]],
) -> Pictured:
    data, by_id = known
    query = by_id.get(item)
    lines: list[Line] = (
        [] if query is None else [made.say("asked", question=query.question, answer=query.answer)]
    )
    for arm, mean in means.items():
        line = said.get((arm, item), {})
        shown = [_demonstration(by_id.get(each), each) for each in line.get("pointer", ())]
        facts = {"arm": arm, "score": made.scored(mean), "answer": line.get("answer") or "—"}
        told = made.say("arm_said", pointer=made.listed(shown), **facts)
        lines.append(linked(told, line.get("where"), [arm]))
    return Pictured("" if query is None else _picture(data, query.image), item, lines)


def _picture(data: Any, name: str) -> str:
    """An image, where there is one: questions with captions may come without."""
    try:
        return data_uri(data.image(name))
    except KleashError:
        return ""


def _demonstration(item: Any, name: str) -> str:
    return name if item is None else f"{item.question} {item.answer}"


def data_uri(pixels: Any) -> str:
    """A small picture as text that a page can hold."""
    from PIL import Image

    image = Image.fromarray(pixels)
    image.thumbnail((SIDE, SIDE))
    file = io.BytesIO()
    image.save(file, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()
