"""The end of a report: stability, the author's notes, changes, next steps, sources."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kleash.catalogue.lines import next_step
from kleash.imports import Where
from kleash.report.courses import at_step, courses, outcome
from kleash.report.gaps import told
from kleash.report.material import Material, short
from kleash.report.parts import Cell, Code, Line, Lines, Linked, Paragraph, Part, Quoted, Table
from kleash.report.places import asked_place, cell_place, first_place, kl_place, study_file
from kleash.report.study_tables import study_command, used
from kleash.results import ArmRow

LARGEST_HASHED = 16 * 1024 * 1024
NUMBER = re.compile(r"(?<![\w.])[-+]?\d+\.\d+(?:\s*%)?")


def stability(made: Material) -> list[Part]:
    """The largest change between neighbouring points, and the verdicts with their statistics."""
    metric = outcome(made)
    rows: list[list[Cell]] = []
    for each in courses(made, metric) if metric else []:
        pairs = list(zip(each.steps[:-1], each.steps[1:], strict=True))
        changes = [(abs(_change(each, *pair)), pair) for pair in pairs if at_step(each, pair[0])]
        if changes:
            _, (first, last) = max(changes, key=lambda change: change[0])
            text = f"{_change(each, first, last):+.1%} ({first:g} → {last:g})"
            spread = f"{float(each.values.std(ddof=1)):.4g}"
            where = each.where(float(last))
            rows.append(
                [made.arm(each.arm), *(Linked(t, where) for t in (text, spread, f"{len(pairs)}"))]
            )
    parts: list[Part] = []
    if rows:
        said = made.say("swings_of", name=made.metric(metric))
        parts.append(Table(said, made.head("arm", "swing", "spread", "pairs"), rows))
    return [*parts, *told(made, "steadier", "collapse")]


def _change(each: Any, first: float, last: float) -> float:
    before, after = at_step(each, float(first)), at_step(each, float(last))
    return 0.0 if not before or after is None else (after - before) / abs(before)


# --- the author's notes


def notes(made: Material) -> list[Part]:
    """The author's own words as they are, and whether anything measured rounds to each number."""
    if not made.notes.strip():
        return []
    known = list(_known(made))
    rows: list[list[Cell]] = []
    for line, text in enumerate(made.notes.splitlines(), 1):
        for found in NUMBER.finditer(text):
            label, where = _matching(found[0], known)
            quoted = Linked(found[0], study_file(made, "notes.md", line))
            rows.append([str(line), quoted, Linked(label or made.say("unmatched"), where)])
    parts: list[Part] = [Quoted(made.notes.rstrip())]
    if rows:
        head = made.head("line", "value", "matches")
        parts.append(Table(made.say("notes_of"), head, rows, left=3))
    return parts


def _known(made: Material) -> Iterator[tuple[float, str, Where | None]]:
    """Every value that a note may quote: value, what it is, where it stands."""
    study = made.study
    for row in () if study is None else study.rows:
        yield from _known_of(made, row)
    for each in () if study is None else study.measured:
        if each.mean is not None:
            cell = each.cell
            place = f"{each.checkpoint}, {cell.split}, {cell.shots}, n {cell.items}"
            yield each.mean, f"{cell.arm}-s{cell.seed}, {place}", cell_place(made, each)


def _known_of(made: Material, row: ArmRow) -> Iterator[tuple[float, str, Where | None]]:
    start = first_place(made, row.name)
    for key, value in row.keys.items():
        if isinstance(value, float):
            yield value, f"{made.arm(row.name)}: {key}", asked_place(made, row.name)
    for name, interval in (("score", row.score), ("kl", row.kl), ("gap", row.gap)):
        if interval is not None:
            ours, theirs = made.arm(row.name), made.arm(row.against)
            whose = f"{ours} − {theirs}" if name == "gap" else ours
            for end in (interval.estimate, interval.low, interval.high):
                if end is not None:
                    where = kl_place(made, row.name) if name == "kl" else start
                    yield end, f"{whose}: {made.column(name)}", where


def _matching(text: str, known: list[tuple[float, str, Where | None]]) -> tuple[str, Where | None]:
    plain = text.replace("%", "").strip()
    decimals, times = len(plain.partition(".")[2]), 100.0 if "%" in text else 1.0
    written = float(plain.lstrip("+-"))
    # A difference of percentages is often written without its sign.
    for value, label, where in known:
        for scaled in {times * value, 100.0 * value}:
            if abs(abs(scaled) - written) <= 0.5000001 * 10.0**-decimals:
                return label, where
    return "", None


# --- what changed


def snapshot(made: Material) -> dict[str, Any]:
    """What a later report compares itself with."""
    verdicts = {
        f"{each.question}: {' / '.join(each.arms)}": f"{each.verdict} [{each.level}]"
        for found in made.comparisons
        for each in found.verdicts
    }
    scores = {}
    cells = {}
    if made.study is not None:
        scores = {row.name: made.score(row.score) for row in made.study.rows}
        cells = {name: str(n) for name, n in sorted(made.study.overview.counts().items())}
    return {"verdicts": verdicts, "scores": scores, "cells": cells}


def changes(made: Material) -> list[Part]:
    """Verdicts, scores and states that are not what the last report said."""
    if made.before is None:
        return []
    now = snapshot(made)
    rows: list[list[Cell]] = []
    place = study_file(made, "report.json")
    for kind, after in now.items():
        before = made.before.get(kind, {})
        for key in dict.fromkeys([*before, *after]):
            ends = [str(side.get(key, "—")) for side in (before, after)]
            if ends[0] != ends[1]:
                what = made.say(f"changed.{kind}", name=key)
                rows.append([what, *(Linked(end, place) for end in ends)])
    if not rows:
        return [Paragraph(made.say("unchanged"))]
    return [Table(made.say("changes_of"), made.head("what", "before", "now"), rows, left=3)]


# --- next


def next_steps(made: Material) -> list[Part]:
    """What to run, cheapest first, with what it costs; of a study also the command."""
    lines: dict[str, None] = {}
    for found in made.comparisons:
        for step in found.next:
            lines[next_step(step, made.language, whole=True)] = None
    told_lines: list[Line] = list(lines)
    parts: list[Part] = [Lines(told_lines, numbered=True)] if told_lines else []
    run = commands(made)
    return [*parts, Code("\n".join(run))] if run else parts


def commands(made: Material) -> list[str]:
    """Of a study, what goes on with it: first what is not done, then further seeds."""
    study, found = made.study, dict[str, None]()
    if study is None:
        return []
    if any(each.state != "done" for each in study.measured):
        found[study_command(made)] = None
    for step in (step for each in made.comparisons for step in each.next):
        if step.code in ("seeds", "more_seeds", "one_more_seed"):
            more = step.facts.get("more")
            seeds = len(study.file.seeds) + (more if isinstance(more, int) else 2)
            found[f"{study_command(made)} seeds={seeds}"] = None
    return list(found)


# --- provenance


def provenance(made: Material) -> list[Part]:
    """Uses of the test split, answers bought, and what every number was read from."""
    parts: list[Part] = [*used(made)]
    if made.study is not None:
        return [*parts, _runs(made)]
    rows: list[list[Cell]] = []
    for source in made.sources:
        file = Linked(Path(source.path).name, Where(source.path))
        told = (str(len(source.runs)), _hash(Path(source.path)))
        rows.append([file, source.format, *(Linked(text, file.where) for text in told)])
    head = made.head("file", "format", "runs", "hash")
    parts.append(Table(made.say("sources_of"), head, rows, left=2))
    said = [note for found in made.comparisons for note in found.notes]
    return [*parts, Lines(list(dict.fromkeys(said)))] if said else parts


def _hash(path: Path) -> str:
    if not path.is_file() or path.stat().st_size > LARGEST_HASHED:
        return "—"
    return short(hashlib.sha256(path.read_bytes()).hexdigest())


def _runs(made: Material) -> Table:
    """Every run with the hashes of what went in."""
    assert made.study is not None
    rows: list[list[Cell]] = []
    keys = ["data", "base", "speech" if made.of_agents else "answerer", "revision"]
    seen_paths: set[Path] = set()
    for seen in made.study.overview.seen.values():
        if seen.run is None or seen.run.path in seen_paths:
            continue
        seen_paths.add(seen.run.path)
        meta = seen.run.meta
        facts = [short(meta.get(key) or "—") for key in keys]
        place = Where(seen.run.file("meta.json"))
        rows.append([Linked(seen.run.name, place), *facts])
    head = made.head("run", "data", "start", keys[2], "revision")
    return Table(made.say("runs_of"), head, rows, left=5, folded=True)
