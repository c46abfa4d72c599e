"""Tables of reports written by hand: every cell and its state, settings, costs, files."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from kleash.compare.arms import known_name
from kleash.compare.matrix import MatrixCell
from kleash.compare.matrix import matrix as measurements
from kleash.compare.read import names
from kleash.report.courses import course, metrics_of
from kleash.report.curves import axis_name
from kleash.report.material import Material, short
from kleash.report.parts import Code, Lines, Paragraph, Part, Table
from kleash.report.words import key_name, say, show
from kleash.report.words.verdicts import confound

MOST_COMMANDS = 40
LARGEST_HASHED = 16 * 1024 * 1024
COSTS = ("step_time", "throughput", "mfu")
SPEEDS = ("speed/", "mfu/", "perf/mfu/")
"""What else is of the clock, by how its name begins."""


# --- measurements


def matrix(made: Material) -> list[Part]:
    """Every cell with its state as the sources have it, and what fills the missing ones."""
    found = measurements(made.sources)
    if not (found.known or found.missing or found.estimated):
        return []
    counts = {name: getattr(found, name) for name in ("known", "missing", "estimated")}
    parts: list[Part] = [Paragraph(say("matrix_line", counts, made.language))]
    groups: dict[tuple[str, int, str], list[MatrixCell]] = {}
    for cell in found.cells:
        if cell.shots is not None:
            place = (known_name(cell.metric), cell.items or 0, cell.split)
            groups.setdefault(place, []).append(cell)
    parts += [_by_shots(made, place, cells) for place, cells in groups.items()]
    commands = dict.fromkeys(c.command for c in found.cells if c.state == "missing" and c.command)
    if commands:
        parts += [Paragraph(made.say("fill")), Code("\n".join(list(commands)[:MOST_COMMANDS]))]
    return parts


def _by_shots(made: Material, place: tuple[str, int, str], cells: list[MatrixCell]) -> Table:
    metric, items, split = place
    shots = sorted({cell.shots or 0 for cell in cells})
    rows: dict[tuple[str, float], dict[int, MatrixCell]] = {}
    for cell in cells:
        at = cell.epoch if cell.epoch is not None else cell.step
        rows.setdefault((cell.arm, at or 0.0), {})[cell.shots or 0] = cell
    known = names.metric(metric)
    fraction = known is not None and known.unit == "fraction"
    lines: list[list[str]] = []
    for (arm, at), by_shots in sorted(rows.items(), key=lambda row: row[0][1]):
        texts = [_cell(made, by_shots.get(n), fraction=fraction) for n in shots]
        row = [f"{at:g}" if at else "—", made.arm(arm), *texts]
        lines.append([*row, _mean(by_shots, len(shots), fraction=fraction)])
    facts = {"metric": metric, "items": items or "—", "split": split or "—"}
    axis = "epoch" if any(cell.epoch is not None for cell in cells) else "step"
    head = [axis_name(made, axis), *made.head("arm", *(f"shots:{n}" for n in shots), "mean")]
    return Table(made.say("matrix_told", **facts), head, lines, left=2)


def _cell(made: Material, cell: MatrixCell | None, *, fraction: bool) -> str:
    """A number as it was printed: a percentage with one decimal, or two where it has them."""
    if cell is None:
        return "—"
    if cell.state == "missing" or cell.number is None:
        return made.word("state", "missing")
    text = f"{cell.number:.6g}"
    if fraction:
        text = f"{100 * cell.number:.2f}".removesuffix("0") + "%"
    return text if cell.state == "known" else f"{made.word('state', 'estimated')} {text}"


def _mean(cells: Mapping[int, MatrixCell], count: int, *, fraction: bool) -> str:
    """Over all numbers of shots, where every one is known."""
    values = [c.number for c in cells.values() if c.state == "known" and c.number is not None]
    if len(values) < count:
        return "—"
    mean = sum(values) / count
    return f"{100 * mean:.3f}%" if fraction else f"{mean:.4g}"


# --- settings


def settings(made: Material) -> list[Part]:
    """Keys in which arms differ, as each source has them; then what is contradicted."""
    values: dict[str, dict[str, dict[str, None]]] = {}
    for arm in made.arms:
        for key in arm.settings:
            texts = [short(show(value, made.language)) for value in arm.says(key)]
            if arm.kinds[key]:
                values.setdefault(key, {})[arm.name] = dict.fromkeys(texts)
    arms = [arm.name for arm in made.arms]
    rows: list[list[str]] = []
    for key, by_arm in values.items():
        texts = [" / ".join(by_arm.get(arm, ["—"])) for arm in arms]
        if len(set(texts)) > 1 or any(" / " in text for text in texts):
            rows.append([key_name(key, made.language), *texts])
    head = [made.column("key"), *map(made.arm, arms)]
    parts: list[Part] = []
    if rows:
        parts.append(Table(made.say("settings_told"), head, rows, left=1 + len(arms)))
    changed = [confound(e, made.language) for found in made.comparisons for e in found.confounds]
    return [*parts, Lines(list(dict.fromkeys(changed)))] if changed else parts


# --- costs


def efficiency(made: Material) -> list[Part]:
    """Seconds, throughput and use of the machine, as logged."""
    rows = list(_costs(made))
    head = made.head("arm", "metric", "mean", "n")
    return [Table(made.say("efficiency_of"), head, rows, left=2)] if rows else []


def _costs(made: Material) -> Iterator[list[str]]:
    """Every arm's costs: numbers that a document gives, or the mean of a curve."""
    own = [name for name in metrics_of(made) if name.startswith(SPEEDS) and name not in COSTS]
    for arm in made.arms:
        for metric in (*COSTS, *own):
            row = [made.arm(arm.name), made.metric(metric)]
            for replicate in arm.replicates:
                for (name, _), cells in replicate.cells.items():
                    number = next(iter(cells.values()))
                    if name == metric and (number.text or number.value is not None):
                        yield [*row, number.text or f"{number.value:.6g}", "1"]
            each = course(arm, metric)
            if each is not None:
                yield [*row, f"{each.values.mean():.6g}", str(len(each.steps))]


# --- files


def provenance(made: Material) -> list[Part]:
    """What every number was read from, and what was noted when it was read."""
    rows = [
        [Path(each.path).name, each.format, str(len(each.runs)), _hash(Path(each.path))]
        for each in made.sources
    ]
    head = made.head("file", "format", "runs", "hash")
    noted = dict.fromkeys(note for found in made.comparisons for note in found.notes)
    notes: list[Part] = [Lines(list(noted))] if noted else []
    return [Table(made.say("sources_of"), head, rows, left=2), *notes]


def _hash(path: Path) -> str:
    if not path.is_file() or path.stat().st_size > LARGEST_HASHED:
        return "—"
    return short(hashlib.sha256(path.read_bytes()).hexdigest())
