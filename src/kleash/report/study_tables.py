"""Tables that only a study has: arms, cells with states, baselines, expectations, likeness."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kleash.catalogue import key_name
from kleash.catalogue.terms import WORDS
from kleash.imports import Where
from kleash.plan import BASELINE, dotted
from kleash.report.material import Material, short
from kleash.report.parts import Cell, Code, Line, Linked, Paragraph, Part, Table
from kleash.report.places import (
    asked_place,
    cell_place,
    first_place,
    linked,
    study_file,
)
from kleash.results import ArmRow, Measured
from kleash.results.summary import baselines as baseline_means
from kleash.runs import Run
from kleash.stats import Interval, mean_interval

MOST_ROWS = 500  # of a table of cells; plan.json has them all


def score_of(made: Material, row: ArmRow) -> str:
    """An arm's score over its seeds; of one seed the score alone."""
    if row.score is None and row.scores:
        return made.scored(row.scores[0])
    return made.score(row.score)


# --- the matrix


def matrix(made: Material) -> list[Part]:
    """Means over seeds by arm and shots at every size, then what is not done, then every cell."""
    study = made.study
    if study is None:
        return []
    states = [f"{n} {made.state(name)}" for name, n in study.overview.counts().items()]
    parts: list[Part] = [
        Paragraph(made.say("matrix_counts", cells=len(study.measured), counts=made.listed(states)))
    ]
    own = [each for each in study.measured if not each.cell.arm.startswith(BASELINE)]
    sizes = sorted(
        {(e.cell.split, e.cell.items) for e in own}, key=lambda s: (s[0] != "test", -s[1])
    )
    parts += [_by_shots(made, own, split, items) for split, items in sizes]
    parts += _not_done(made)
    return [*parts, _every_cell(made)]


def _by_shots(made: Material, own: Sequence[Measured], split: str, items: int) -> Table:
    fit = [each for each in own if (each.cell.split, each.cell.items) == (split, items)]
    shots = sorted({each.cell.shots for each in fit})
    groups: dict[tuple[str, str], list[Measured]] = {}
    for each in fit:
        groups.setdefault((each.cell.arm, each.cell.checkpoint), []).append(each)
    rows: list[list[Cell]] = []
    for (arm, checkpoint), cells in groups.items():
        row: list[Cell] = [made.arm(arm), made.place(checkpoint)]
        for n in shots:
            row.append(_mean_cell(made, [each for each in cells if each.cell.shots == n]))
        rows.append(row)
    said = made.say("matrix_of", split=made.place(split), items=items)
    head = made.head("arm", "checkpoint", *(f"shots:{n}" for n in shots))
    return Table(said, head, rows, left=2)


def _mean_cell(made: Material, cells: Sequence[Measured]) -> Cell:
    """The mean over seeds; where some are not done, their state and how many are."""
    done = [each for each in cells if each.state == "done" and each.mean is not None]
    if len(done) < len(cells) or not done:
        states = [each.state for each in cells if each.state != "done"]
        told = made.listed([made.state(each) for each in dict.fromkeys(states)])
        counted = Linked(f"{told} ({len(done)}/{len(cells)})", study_file(made, "plan.json"))
        return counted if cells else "—"
    return Linked(made.score(over(done)), cell_place(made, done[0]))


def over(done: Sequence[Measured]) -> Interval | None:
    """Over seeds, or over items where there is one seed."""
    if len(done) == 1:
        return done[0].interval
    return mean_interval([each.mean or 0.0 for each in done])


def _not_done(made: Material) -> list[Part]:
    assert made.study is not None
    rest = [each for each in made.study.measured if each.state != "done"]
    if not rest:
        return []
    groups: dict[tuple[str, str, str], list[Measured]] = {}
    for each in rest:
        why = (each.why.splitlines() or [""])[0]
        groups.setdefault((each.cell.arm, each.state, why), []).append(each)
    rows: list[list[Cell]] = []
    for (arm, state, why), cells in groups.items():
        seeds = made.listed([str(n) for n in dict.fromkeys(each.cell.seed for each in cells)])
        where = study_file(made, "plan.json")
        rows.append([made.arm(arm), seeds, made.state(state), Linked(str(len(cells)), where), why])
    head = made.head("arm", "seed", "state", "count", "why")
    commands = dict.fromkeys(study_command(made) for each in rest if each.command)
    parts: list[Part] = [Table(made.say("not_done"), head, rows, left=3)]
    if commands:
        parts += [Paragraph(made.say("fill")), Code("\n".join(commands))]
    return parts


def study_command(made: Material) -> str:
    """What goes on with the study, run from where studies are made."""
    assert made.study is not None
    folder = made.study.folder.resolve()
    inside = folder.parent.name == "studies"
    return f"kleash study {'studies/' if inside else ''}{folder.name}"


def _every_cell(made: Material) -> Table:
    assert made.study is not None
    rows: list[list[Cell]] = []
    for each in made.study.measured[:MOST_ROWS]:
        cell = each.cell
        value = Linked(made.score(each.interval), cell_place(made, each))
        counts = [str(cell.shots), str(cell.items)]
        row: list[Cell] = [made.arm(cell.arm), str(cell.seed), each.checkpoint or cell.checkpoint]
        rows.append([*row, made.place(cell.split), made.state(each.state), *counts, value])
    head = made.head("arm", "seed", "checkpoint", "split", "state", "n_shots", "items", "score")
    below = left_out(made, len(made.study.measured), len(rows), study_file(made, "plan.json"))
    return Table(made.say("every_cell"), head, rows, left=7, folded=True, below=below)


def left_out(
    made: Material, count: int, shown: int, where: Where | None, code: str = "left_out"
) -> Line:
    """That a table was cut, how much is not in it, and where all is; '' if it is whole."""
    if count <= shown:
        return ""
    told = made.say(code, count=f"{count - shown:,}", of=f"{count:,}")
    file = "" if where is None else Path(where.file).name
    return (told, " ", Linked(file, where)) if file else told


# --- baselines, expectations


def baselines(made: Material) -> list[Part]:
    """What needs no training, at each number of shots, at the largest n."""
    study = made.study
    if study is None:
        return []
    shots = study.file.measure.shots
    rows: list[list[Cell]] = []
    for name, by_shots in baseline_means(study).items():
        values = [by_shots.get(n) for n in shots]
        where = (
            cell_place(made, each)
            for each in study.measured
            if each.cell.arm.removeprefix(BASELINE).startswith(name) and each.mean is not None
        )
        first = next(where, None)
        rows.append([name, *(Linked(made.score(value), first) for value in values)])
    if not rows:
        return []
    said = made.say("baselines_of", items=study.file.measure.items[-1])
    table = Table(said, made.head("baseline", *(f"shots:{n}" for n in shots)), rows)
    return [table]


def expectations(made: Material) -> list[Part]:
    """What the author expected and what came out."""
    if made.study is None or not made.study.expectations:
        return []
    rows: list[list[Cell]] = []
    for each in made.study.expectations:
        facts = {"arm": each.arm, "baseline": each.against, "metric": each.metric}
        said = made.say("expected_of", direction=made.answer(each.direction), **facts)
        rows.append(
            [said, each.why, made.answer(each.answer), made.word(WORDS, ("", each.verdict))]
            if each.against
            else [made.say("expected_alone", arm=each.arm), each.why, "—", "—"]
        )
    head = made.head("expected", "why", "answer", "verdict")
    return [Table(made.say("expectations_of"), head, rows, left=4)]


# --- what differs, and what was used


def settings(made: Material) -> list[Part]:
    """The keys in which the arms' recipes differ."""
    study = made.study
    if study is None:
        return []
    recipes: dict[str, dict[str, Any]] = {
        name: dict(dotted(told.resolved)) for name, told in study.overview.told.items()
    }
    keys = list(dict.fromkeys(key for recipe in recipes.values() for key in recipe))
    apart = [key for key in keys if len({str(each.get(key)) for each in recipes.values()}) > 1]
    if not apart:
        return []
    rows: list[list[Cell]] = [
        [
            made.arm(name),
            *(Linked(short(each.get(key, "—")), asked_place(made, name)) for key in apart),
        ]
        for name, each in recipes.items()
    ]
    head = [made.column("arm"), *(key_name(key, made.language) for key in apart)]
    return [Table(made.say("settings_of"), head, rows)]


def used(made: Material) -> list[Part]:
    """What was asked of the test split and of the answerer."""
    study = made.study
    if study is None:
        return []
    uses = {name: n for name, n in study.test_uses.items() if not name.startswith(BASELINE)}
    spent = study.spent
    saved = spent["asked"] - spent["bought"]
    facts: dict[str, Any] = {key: int(spent[key]) for key in ("asked", "bought", "jobs")}
    share = saved / max(spent["asked"], 1)
    plan, told = study_file(made, "plan.json"), study_file(made, "spent.jsonl", 1)
    rows: list[list[Cell]] = [
        [made.arm(name), Linked(str(n), first_place(made, name) or plan)]
        for name, n in uses.items()
    ]
    arms = sum(n for name, n in uses.items() if name != "base")
    parts: list[Part] = [
        Paragraph(made.say("tests", count=arms)),
        Table(made.say("uses_of"), made.head("arm", "uses"), rows),
    ]
    if spent["asked"]:  # a rule that answers an agent costs nothing
        line = made.say("answers", saved=int(saved), share=share, **facts)
        parts.append(Paragraph(linked(line, told)))
    return parts + shaped(made)


def shaped(made: Material) -> list[Part]:
    """How much the views of base and arms have left, over seeds; and facts from files."""
    assert made.study is not None
    runs: dict[str, list[Run]] = {}
    for (arm, _), seen in made.study.overview.seen.items():
        if seen.run is not None and not arm.startswith(BASELINE):  # these lie in the base's folder
            runs.setdefault(arm, []).append(seen.run)
    parts: list[Part] = []
    for arm, own in runs.items():
        place = Where(str(own[0].path / "meta.json"))
        parts += [Paragraph(linked(line, place)) for line in viewed(made, arm, own)]
        if facts := own[0].meta.get("facts"):
            left = [f"{made.say(f'left.{why}')} {n}" for why, n in facts["left_out"].items()]
            told = facts | {"left_out": made.listed(left) if left else None}
            parts.append(Paragraph(linked(made.say("facts", arm=arm, **told), place)))
    return parts


def viewed(made: Material, arm: str, runs: Sequence[Run]) -> list[str]:
    """What a view left of the groups of some runs, all together."""
    counts = [run.meta["view"] for run in runs if run.meta.get("view")]
    if not counts:
        return []
    names = ("groups", "kept_groups", "pointers", "kept_pointers")
    total = {name: sum(int(each[name]) for each in counts) for name in names}
    positive = sum(each["positive_share"] * each["kept_pointers"] for each in counts)
    share = positive / max(total["kept_pointers"], 1)
    said = [made.say("view", arm=arm, share=share, seeds=len(counts), **total)]
    if added := sum(int(each.get("added", 0)) for each in counts):
        said.append(made.say("view_added", arm=arm, added=added))
    return said
