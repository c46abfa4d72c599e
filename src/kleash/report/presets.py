"""The selector's presets in one table: size, time, accuracy by shots, and its paired gaps."""

from __future__ import annotations

from kleash.report.material import Material
from kleash.report.parts import Cell, Linked, Part, Table
from kleash.report.places import asked_place, first_place
from kleash.results.presets import PresetRow, preset_rows


def presets(made: Material) -> list[Part]:
    """An arm a line; nothing where arms do not differ in their preset."""
    found = [] if made.study is None else preset_rows(made.study)
    if made.study is None or not found:
        return []
    shots = made.study.file.measure.shots
    head = made.head(
        *("arm", "size", "epoch_seconds", "cpu_seconds"), *(f"shots:{n}" for n in shots), "against"
    )
    facts = {"items": made.study.file.measure.items[-1], "seeds": len(made.study.file.seeds)}
    rows = [_row(made, each, shots) for each in found]
    return [Table(made.say("presets_of", **facts), head, rows, left=1)]


def _row(made: Material, each: PresetRow, shots: tuple[int, ...]) -> list[Cell]:
    where = first_place(made, each.arm)
    size = "—" if each.parameters is None else f"{each.parameters:,}"
    clocks = ["—" if read is None else f"{read:.3g}" for read in (each.seconds, each.cpu_seconds)]
    cells: list[Cell] = [
        made.arm(each.arm),
        Linked(size, asked_place(made, each.arm)),
        *(Linked(clock, where) for clock in clocks),
    ]
    for n in shots:
        score, gap = each.scores[n], each.gaps[n]
        text = "—" if score is None else made.scored(score.estimate)
        cells.append(Linked(text if gap is None else f"{text} ({made.gap(gap)})", where))
    return [*cells, made.arm(each.against)]
