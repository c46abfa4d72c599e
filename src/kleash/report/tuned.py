"""What only some studies have: a proxy beside gold, settings matched, what tuning found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from kleash.catalogue import gap_text, key_name
from kleash.charts import Chart, Dot, Spot, frontier, whiskers
from kleash.imports import Where
from kleash.plan import FOUND, base_checkpoint
from kleash.report.choices import dot, share, trained_shots
from kleash.report.material import Material, percents, plain, short
from kleash.report.parts import Cell, Figure, Linked, Paragraph, Part, Table
from kleash.report.places import first_place, kl_place, linked, logged_place, scores_place
from kleash.report.study_tables import left_out
from kleash.results import Results
from kleash.results.matched import Matched, at_equal_kl, at_equal_updates, by_updates, families
from kleash.results.proxy import ProxyRow, proxy_rows
from kleash.results.tuning import Searched, searched
from kleash.runs import read_json

MOST_TRIALS = 200  # rows of a table; search.json has them all


# --- a proxy


def proxy(made: Material) -> list[Part]:
    """What training paid for beside what is measured, and what was kept of the base's answers."""
    study = made.study
    rows = [] if study is None or not study.arms else proxy_rows(study)
    if study is None or not rows:
        return []
    told: list[list[Cell]] = []
    for row in rows:
        where = _answers_place(study, row.arm)
        counts = made.listed([str(n) for n in dict.fromkeys(row.retention_items)]) or "—"
        texts = (plain(row.proxy), percents(row.gold), percents(row.retained), counts)
        told.append([made.arm(row.arm), *(Linked(text, where) for text in texts)])
    head = made.head("arm", "proxy", "gold", "retained", "retained_of")
    said = made.say("proxy_of", shots=trained_shots(study), seeds=len(study.file.seeds))
    return [*_proxy_chart(made, study, rows), Table(said, head, told)]


def _answers_place(study: Results, arm: str) -> Where | None:
    """Where the answers begin that a row of the proxy is made of."""
    shots = trained_shots(study)
    for (name, seed), seen in study.overview.seen.items():
        checkpoint = seen.chosen or base_checkpoint(study.file, seed)
        where = scores_place(seen, checkpoint, "test", shots)
        if name == arm and where is not None:
            return where
    return None


def _proxy_chart(made: Material, study: Results, rows: Sequence[ProxyRow]) -> list[Part]:
    spots = []
    for row in rows:
        if row.proxy is not None and row.gold is not None:
            where = _answers_place(study, row.arm)
            name = made.arm(row.arm)
            across = dot(name, row.proxy, 1, where)
            spots.append(Spot(name, across, share(name, row.gold, where)))
    if len(spots) < 2:
        return []
    paid = max(spots, key=lambda spot: spot.across.value).name
    right = max(spots, key=lambda spot: spot.up.value).name
    title = made.say("proxy_seen", paid=paid, right=right)
    names = (made.column("proxy"), made.say("percent_axis", name=made.column("gold")))
    ends = made.head("low", "high")
    head = [made.column("arm"), names[0], *ends, names[1], *ends]
    return [Figure("proxy", frontier(title, names, spots, head), title)]


# --- settings matched


def matched(made: Material) -> list[Part]:
    """Settings where they went equally far, and after equally many updates."""
    study = made.study
    if study is None:
        return []
    parts: list[Part] = []
    pairs: dict[tuple[str, str], list[Matched]] = {}
    for row in at_equal_kl(study):
        pairs.setdefault((row.ours, row.theirs), []).append(row)
    for number, rows in enumerate(pairs.values(), 1):
        parts.append(_figure(made, study, rows, f"matched-kl-{number}"))
    updates = at_equal_updates(study)
    if updates:
        parts.append(_figure(made, study, updates, "matched-updates"))
    every = [row for rows in pairs.values() for row in rows] + updates
    if not every:
        return []
    told: list[list[Cell]] = []
    for row in every:
        at, gap = _places(made, study, row)
        text = made.gap(row.gap)
        names = [_family(made, name) for name in (row.ours, row.theirs)]
        numbers = [Linked(text, gap), Linked(str(row.gap.n), gap)]
        told.append([*names, Linked(_matched_at(made, row), at), *numbers])
    head = made.head("setting", "against", "matched_at", "gap", "seeds")
    return [*parts, Table(made.say("matched_of"), head, told, left=3)]


def _family(made: Material, name: str) -> str:
    return made.arm(name) or made.say("own_setting")


def _matched_at(made: Material, row: Matched) -> str:
    if row.on == "kl":
        return made.say("at_kl", kl=f"{row.at:.3g}")
    return made.say("at_updates", count=f"{row.at:,.0f}")


def _figure(made: Material, study: Results, rows: Sequence[Matched], name: str) -> Figure:
    """Gaps as whiskers: one pair over KLs, or pairs at their numbers of updates."""
    on_kl = rows[0].on == "kl"
    dots = []
    for row in rows:
        at, other = _matched_at(made, row), _family(made, row.theirs)
        label = at if on_kl else f"{_family(made, row.ours)} · {at}"
        dots.append(
            replace(dot(label, row.gap, made.times, _places(made, study, row)[1]), note=other)
        )
    facts = {"apart": sum(row.gap.low > 0 or row.gap.high < 0 for row in rows), "of": len(rows)}
    pair = {"ours": _family(made, rows[0].ours), "theirs": _family(made, rows[0].theirs)}
    title = made.say("matched_kl", **facts, **pair) if on_kl else made.say("matched_up", **facts)
    head = made.head("matched_at" if on_kl else "setting", "gap", "low", "high", "against")
    chart: Chart = whiskers(title, made.say("matched_axis"), dots, head)
    return Figure(name, chart, title)


def _places(made: Material, study: Results, row: Matched) -> tuple[Where | None, Where | None]:
    """Where what was matched stands, and what the gap is of: of our first arm and seed."""
    if row.on == "kl":
        arm = families(study.arms)[row.ours][0].name
        return kl_place(made, arm), first_place(made, arm)
    arm_of = {arm.name: arm for arm in study.arms}
    made_by = by_updates(study.overview, study.file, arm_of[row.ours])
    epochs = sorted(next(iter(made_by.values())))
    epoch = float(1 + epochs.index(int(row.at)))
    where = logged_place(made, row.ours, study.file.logged, epoch)
    return where, where


# --- tuning


def tuning(made: Material) -> list[Part]:
    """What a calibration placed, what a search tried, and the winner without its luck."""
    study = made.study
    if study is None:
        return []
    found = searched(study.folder, study.file, study.overview)
    parts = _calibrated(made, study)
    if found is not None:
        file = study.folder / "search.json"
        parts += [Paragraph(_search_line(made, found, file)), *_gains(made, study, found, file)]
        parts.append(_trials(made, read_json(file), file))
    return parts


def _line_of(file: Path, text: str) -> Where:
    """The first line of a file that holds a text."""
    lines = file.read_text(encoding="utf-8").splitlines()
    return Where(str(file), next((n for n, line in enumerate(lines, 1) if text in line), None))


def _search_line(made: Material, found: Searched, file: Path) -> Any:
    facts: dict[str, Any] = {"trials": found.trials, "pruned": found.pruned}
    code = "searched" if found.won else "searched_none"
    tuned = gap_text(found.tuned, None, None, made.unit, made.language)
    text = made.say(code, baseline=found.baseline, tuned=tuned, **facts)
    return linked(text, _line_of(file, '"tuned"'), [found.baseline])


def _gains(made: Material, study: Results, found: Searched, file: Path) -> list[Part]:
    """The gain where it was tuned, on fresh seeds, on the test; and what of it was luck."""
    if not found.won:
        return []
    seen = study.overview.seen.get((FOUND.name, study.file.seeds[0]))
    validation = None
    if seen is not None:
        shots = {key[2] for key in seen.scored if key[1] == "validation"}
        places = (scores_place(seen, seen.chosen, "validation", n) for n in sorted(shots))
        validation = next(filter(None, places), None)
    test, tuned = first_place(made, FOUND.name), _line_of(file, '"tuned"')
    dots = [Dot(made.say("gain_tuned"), made.times * found.tuned, where=tuned)]
    text = gap_text(found.tuned, None, None, made.unit, made.language)
    rows: list[list[Cell]] = [[made.say("gain_tuned"), Linked(text, tuned), "—"]]
    for code, gain, where in (
        ("gain_again", found.again, validation),
        ("gain_confirmed", found.confirmed, test),
        ("gain_optimism", found.optimism, test),
    ):
        if gain is not None:
            dots.append(dot(made.say(code), gain, made.times, where))
            text = made.gap(gain)
            rows.append([made.say(code), Linked(text, where), Linked(str(gain.n), where)])
    title = made.say("gains_seen" if found.confirmed else "gains_open", baseline=found.baseline)
    head = made.head("what", "gap", "low", "high")
    chart = whiskers(title, made.say("gains_axis", baseline=found.baseline), dots, head)
    table = Table(made.say("gains_of"), made.head("what", "gap", "seeds"), rows)
    return [Figure("search", chart, title), table]


def _trials(made: Material, kept: Mapping[str, Any], file: Path) -> Table:
    keys = list(dict.fromkeys(key for trial in kept["trials"] for key in trial["keys"]))
    ranked = sorted(kept["trials"], key=lambda trial: -(trial["score"] or -1.0))
    rows: list[list[Cell]] = []
    for trial in ranked[:MOST_TRIALS]:
        where = _line_of(file, f'"trial": "{trial["trial"]}"')
        values = [short(trial["keys"].get(key, "—")) for key in keys]
        numbers = [made.scored(trial["score"]), str(trial["epochs"]), *values]
        state = made.say(f"trial_{trial['state']}")
        rows.append([trial["trial"], state, *(Linked(text, where) for text in numbers)])
    head = made.head("trial", "state", "score", "epochs_made")
    head += [key_name(key, made.language) for key in keys]
    below = left_out(made, len(ranked), len(rows), Where(str(file)))
    return Table(made.say("trials_of"), head, rows, left=2, folded=len(rows) > 12, below=below)


def _calibrated(made: Material, study: Results) -> list[Part]:
    """The coefficients that a calibration placed: the KL expected of each, and the KL reached."""
    file = study.folder / "calibration.json"
    if not file.is_file():
        return []
    kept = read_json(file)
    reached = {row.keys.get("leash.coefficient"): row for row in study.rows}
    rows: list[list[Cell]] = []
    for value, expected in zip(kept["coefficients"], kept["expected_kl"], strict=True):
        row = reached.get(value)
        went = "—" if row is None else plain(row.kl)
        where = None if row is None else kl_place(made, row.name)
        place = _line_of(file, '"expected_kl"')
        rows.append([f"{value:g}", Linked(f"{expected:.3g}", place), Linked(went, where)])
    return [Table(made.say("calibrated_of"), made.head("coefficient", "expected_kl", "kl"), rows)]
