"""What arms chose: how far they went for it, how alike they are, and where they disagree."""

from __future__ import annotations

import base64
import io
import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from kleash.charts import Dot, Spot, bars, frontier, heat
from kleash.data import dataset
from kleash.errors import KleashError
from kleash.imports import Where
from kleash.plan import arm_recipe
from kleash.plan.cells import Column
from kleash.plan.folder import Seen
from kleash.recipe import SelectorRecipe
from kleash.report.material import Material, percent, plain
from kleash.report.parts import Cell, Figure, Gallery, Linked, Paragraph, Part, Pictured, Table
from kleash.report.study_tables import agreement_table
from kleash.results import KL, Results
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
    spots: list[Spot] = []
    rows: list[list[Cell]] = []
    for row in study.rows:
        if row.kl is None or row.score is None:
            continue
        spots.append(
            Spot(row.name, _dot(row.name, root(row.kl), 1), _dot(row.name, row.score, 100))
        )
        rows.append([row.name, Linked(plain(root(row.kl)), _kl_place(made, row.name))])
    if len(spots) < 2:
        return []
    far = max(spots, key=lambda spot: spot.across.value)
    high = max(spots, key=lambda spot: spot.up.value)
    title = made.say("frontier", far=far.name, high=high.name)
    names = (made.column("root_kl"), made.say("percent_axis", name=made.column("score")))
    ends = made.head("low", "high")
    head = [made.column("arm"), names[0], *ends, names[1], *ends]
    table = Table(made.say("kl_of"), made.head("arm", "root_kl"), rows)
    return [Figure("frontier", frontier(title, names, spots, head)), table]


def root(kl: Interval) -> Interval:
    """The square root of an interval: a distance."""
    middle, low, high = (math.sqrt(max(0.0, each)) for each in (kl.estimate, kl.low, kl.high))
    return Interval(middle, low, high, kl.level, kl.n)


def _dot(name: str, interval: Interval, times: float) -> Dot:
    low, high = times * interval.low, times * interval.high
    return Dot(name, times * interval.estimate, low, high)


def _kl_place(made: Material, arm: str) -> Where | None:
    run = next((run for (name, _), run in made.runs.items() if name == arm), None)
    series = [] if run is None else [each for each in run.series if each.metric == KL]
    return series[0].place(len(series[0].steps) - 1) if series else None


def agreement(made: Material) -> list[Part]:
    """Shares of equal pointers as a heat map, then every number."""
    if made.study is None or not made.study.agreements:
        return []
    found = {frozenset(each.arms): each.equal_pointers for each in made.study.agreements}
    names = [arm.name for arm in made.study.arms]
    if not 1 < len(names) <= MOST_HEAT:
        return agreement_table(made)
    values = [
        [1.0 if one == other else found.get(frozenset((one, other))) for other in names]
        for one in names
    ]
    shares = list(found.values())
    low, high = percent(min(shares)), percent(max(shares))
    title = made.say("agreement_title", low=low, high=high)
    head = made.head("arm", "arm", "equal_pointers")
    return [Figure("agreement", heat(title, names, values, head)), *agreement_table(made)]


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
    head = made.head("demonstration", "times")
    bar = bars(title, made.say("ranked_axis", most=len(most), count=len(total)), most, head)
    rows: list[list[Cell]] = []
    for arm, each in counts.items():
        ten = percent(sum(n for _, n in each.most_common(10)) / max(1, sum(each.values())))
        first = min(each, key=lambda name: (-each[name], _natural(name)))
        rows.append([arm, first, f"{each[first]}", str(len(each)), ten])
    table = Table(made.say("chosen_of"), made.head(*CHOSEN_HEAD), rows, left=2)
    return [Figure("demonstrations", bar), table]


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
        scores: dict[str, list[float]] = {}
        for _, column in each:
            for item, score in zip(column.items, column.scores, strict=True):
                if score is not None:
                    scores.setdefault(item, []).append(score)
        for item, scored in scores.items():
            means.setdefault(item, {})[arm] = sum(scored) / len(scored)
    apart = {item: max(by.values()) - min(by.values()) for item, by in means.items() if len(by) > 1}
    telling = sorted(
        (item for item in apart if apart[item] > 0), key=lambda i: (-apart[i], _natural(i))
    )
    if not telling:
        return []
    shown = telling[:TELLING]
    said = _answers(columns, shown, trained_shots(made.study))
    known = _items_of(made.study)
    entries = [_pictured(made, item, means[item], said, known) for item in shown]
    facts = {"count": len(telling), "of": len(means), "shown": len(shown)}
    return [Paragraph(made.say("items_of", **facts)), Gallery(entries)]


def _answers(
    columns: dict[str, list[tuple[Seen, Column]]], wanted: Sequence[str], shots: int
) -> dict[tuple[str, str], dict[str, Any]]:
    """By arm and item, the line of its first seed."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for arm, each in columns.items():
        seen = each[0][0]
        assert seen.run is not None  # it has scores
        for line in seen.run.scores():
            fits = line["checkpoint"] == seen.chosen and line["split"] == "test"
            if fits and line["shots"] == shots and line["item"] in wanted:
                found[arm, line["item"]] = line
    return found


def _items_of(study: Results) -> tuple[Any, dict[str, Any]]:
    """The data set and its items by id; nothing where it cannot be had."""
    recipe = arm_recipe(study.file, study.arms[0], study.file.seeds[0], "BASE")
    if not isinstance(recipe, SelectorRecipe):
        return None, {}
    try:
        data = dataset(recipe.data, recipe.data_seed)
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
    lines = (
        [] if query is None else [made.say("asked", question=query.question, answer=query.answer)]
    )
    for arm, mean in means.items():
        line = said.get((arm, item), {})
        shown = [_demonstration(by_id.get(each), each) for each in line.get("pointer", ())]
        facts = {"arm": arm, "score": percent(mean), "answer": line.get("answer") or "—"}
        lines.append(made.say("arm_said", pointer=made.listed(shown), **facts))
    picture = "" if query is None else data_uri(data.image(query.image))
    return Pictured(picture, item, lines)


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
