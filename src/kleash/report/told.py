"""Of sources that are no study: their matrix with the state of every cell, and their settings."""

from __future__ import annotations

from typing import Any

from kleash.catalogue import key_name, say, show
from kleash.catalogue.lines import confound
from kleash.compare.arms import known_name
from kleash.imports import names
from kleash.matrix import MatrixCell
from kleash.matrix import matrix as measurements
from kleash.report import study_tables
from kleash.report.curves import axis_name
from kleash.report.material import Material, short
from kleash.report.parts import Cell, Code, Line, Lines, Linked, Paragraph, Part, Table
from kleash.report.places import linked, setting_place

MOST_COMMANDS = 40


def matrix(made: Material) -> list[Part]:
    """Every cell with its state: a study's own, or as the sources tell them."""
    if made.study is not None:
        return study_tables.matrix(made)
    found = measurements(made.sources, logged=False)
    if not (found.known or found.missing or found.estimated):
        return []
    counts = {name: getattr(found, name) for name in ("known", "missing", "estimated")}
    parts: list[Part] = [Paragraph(say("matrix_line", counts, made.language))]
    groups: dict[tuple[Any, ...], list[MatrixCell]] = {}
    for cell in found.cells:
        if cell.shots is not None:
            place = (known_name(cell.metric), cell.items or 0, cell.split)
            groups.setdefault(place, []).append(cell)
    for (metric, items, split), cells in groups.items():
        parts.append(_by_shots(made, metric, items, split, cells))
    commands = dict.fromkeys(c.command for c in found.cells if c.state == "missing" and c.command)
    if commands:
        parts += [Paragraph(made.say("fill")), Code("\n".join(list(commands)[:MOST_COMMANDS]))]
    return parts


def _by_shots(
    made: Material, metric: str, items: int, split: str, cells: list[MatrixCell]
) -> Table:
    shots = sorted({cell.shots or 0 for cell in cells})
    rows: dict[tuple[str, float], dict[int, MatrixCell]] = {}
    for cell in cells:
        at = cell.epoch if cell.epoch is not None else cell.step
        rows.setdefault((cell.arm, at or 0.0), {})[cell.shots or 0] = cell
    fraction = (known := names.metric(metric)) is not None and known.unit == "fraction"
    lines: list[list[Cell]] = []
    for (arm, at), by_shots in sorted(rows.items(), key=lambda row: row[0][1]):
        told = [_cell(made, by_shots.get(n), fraction=fraction) for n in shots]
        values = [
            c.number for c in by_shots.values() if c.state == "known" and c.number is not None
        ]
        whole = len(values) == len(shots)
        mean = sum(values) / len(values) if whole else None
        mean_text = f"{mean:.4g}" if mean is not None and not fraction else _percent(mean)
        first = next((c.where for c in by_shots.values() if c.state == "known"), None)
        lines.append([f"{at:g}" if at else "—", made.arm(arm), *told, Linked(mean_text, first)])
    facts = {"metric": metric, "items": items or "—", "split": split or "—"}
    axis = "epoch" if any(cell.epoch is not None for cell in cells) else "step"
    head = [axis_name(made, axis), *made.head("arm", *(f"shots:{n}" for n in shots), "mean")]
    return Table(made.say("matrix_told", **facts), head, lines, left=2)


def _cell(made: Material, cell: MatrixCell | None, *, fraction: bool) -> Cell:
    if cell is None:
        return "—"
    if cell.state == "missing" or cell.number is None:
        return Linked(made.state("missing"), cell.where)
    text = _as_printed(cell.number) if fraction else f"{cell.number:.6g}"
    return Linked(
        text if cell.state == "known" else f"{made.state('estimated')} {text}", cell.where
    )


def _as_printed(value: float) -> str:
    """A percentage with one decimal, or two where it was printed so."""
    text = f"{100 * value:.2f}"
    return f"{text.removesuffix('0')}%"


def _percent(mean: float | None) -> str:
    return "—" if mean is None else f"{100 * mean:.3f}%"


def settings(made: Material) -> list[Part]:
    """Keys in which arms differ, as each source tells them; then what is contradicted."""
    if made.study is not None:
        return study_tables.settings(made)
    told: dict[str, dict[str, list[str]]] = {}
    for arm in made.arms:
        for _, resolved, _ in arm.configs:
            for key, value in resolved.values.items():
                held = told.setdefault(key, {}).setdefault(arm.name, [])
                text = short(show(value, made.language))
                if text not in held:
                    held.append(text)
    arms = [arm.name for arm in made.arms]
    rows: list[list[Cell]] = []
    for key, by_arm in told.items():
        texts = [" / ".join(by_arm.get(arm, ["—"])) for arm in arms]
        if len(set(texts)) > 1 or any(" / " in text for text in texts):
            places = [setting_place(arm, key) for arm in made.arms]
            rows.append([key_name(key, made.language), *map(Linked, texts, places)])
    parts: list[Part] = []
    if rows:
        said = made.say("settings_told")
        parts.append(
            Table(said, [made.column("key"), *map(made.arm, arms)], rows, left=1 + len(arms))
        )
    return [*parts, *_changed(made)]


def _changed(made: Material) -> list[Part]:
    """What else changed, or is contradicted, a line each."""
    lines: dict[Line, None] = {}
    arms = {arm.name: arm for arm in made.arms}
    for found in made.comparisons:
        for each in found.confounds:
            arm = arms.get(each.arms[0])
            where = None if arm is None else setting_place(arm, each.key)
            lines[linked(confound(each, made.language), where, each.arms)] = None
    return [Lines(list(lines))] if lines else []
