"""What only tuned studies have: what a calibration placed and what a search found."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kleash.catalogue import gap_text, key_name
from kleash.charts import Dot, whiskers
from kleash.imports import Where
from kleash.plan import FOUND
from kleash.report.choices import dot
from kleash.report.material import Material, plain, short
from kleash.report.parts import Cell, Figure, Linked, Paragraph, Part, Table
from kleash.report.places import first_place, kl_place, linked, scores_place
from kleash.report.study_tables import left_out
from kleash.results import Results
from kleash.results.tuning import Searched, searched
from kleash.runs import read_json

MOST_TRIALS = 200  # rows of a table; search.json has them all


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
