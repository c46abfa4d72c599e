"""Every measured number of a report links to the file and line it came from.

In a table's number columns every cell with a digit; in its word columns, in sentences, in what a
figure says and in galleries every number with decimals or a percent sign. Left out are what nobody
measured: `PLANNED` sections, `COUNTED` columns (what was asked for), code to be copied, a note.
"""

import re
from pathlib import Path

import pytest

from kleash import report
from kleash.compare import compare
from kleash.imports import read
from kleash.report.parts import Figure, Gallery, Lines, Linked, Paragraph, Table, cells
from kleash.results import results
from made_study import made_study

SEEDS = sorted((Path(__file__).parent.parent.parent / "shared/seeds").glob("00*.txt"))
PLANNED = ("next", "verdict")  # what the verdict rests on stands in gaps.csv with its line
COUNTED = ("seed", "n_shots", "items")
LEVEL = re.compile(r"\[?L[123]\]?")
INTERVAL_LEVEL = re.compile(r"95 ?%")
DECIMAL = re.compile(r"(?<![A-Za-z0-9_.=])\d[\d,]*(?:\.\d+|%)(?!\w*[A-Za-z_])")


def measured_study(tmp_path):
    made_study(tmp_path / "made")
    (tmp_path / "made/notes.md").write_text("it scored 81.3%\n", encoding="utf-8")
    return report.study_material(results(tmp_path / "made"), "en")


def half_study(tmp_path):
    made_study(tmp_path / "half", leave_out=("kl1.5-s3", "none-s1"))
    found = results(tmp_path / "half")
    report.write(found, language="zh")
    made_study(tmp_path / "whole/half")
    (tmp_path / "whole/half/runs/none-s1").rename(tmp_path / "half/runs/none-s1")
    return report.study_material(results(tmp_path / "half"), "zh")


def logs(tmp_path):
    for arm, slope in (("none", 0.1), ("kl0.1", 0.12)):
        for seed in range(4):
            rows = [f"{n},{slope * n + 0.01 * seed},{0.013 * n},7.25,0.31" for n in range(1, 30)]
            text = "step,reward,kl,timing_s/step,perf/mfu/actor\n" + "\n".join(rows) + "\n"
            (tmp_path / f"{arm}-s{seed}.csv").write_text(text, encoding="utf-8")
    return told(sorted(tmp_path.glob("*.csv")), "en")


def told(paths, language):
    sources = [read(path) for path in paths]
    return report.of_sources(sources, compare(sources), "x", language)


CASES = {"study": measured_study, "half": half_study, "logs": logs} | {
    path.name[:3]: lambda _, path=path: told([path], "zh") for path in SEEDS if len(SEEDS) == 5
}


@pytest.mark.parametrize("case", CASES)
def test_every_measured_number_links_to_where_it_came_from(case, tmp_path):
    made = CASES[case](tmp_path)
    names = {arm.name for arm in made.arms}
    if made.study is not None:
        names |= {seen.name for seen in made.study.overview.seen.values()}
        names |= {arm for arm, _ in made.study.overview.seen}
    bare = [
        f"{section.key}: {text}"
        for section in report.document(made).sections
        if section.key not in PLANNED
        for part in section.parts
        for text in unlinked(part, made, sorted(names, key=len, reverse=True))
    ]
    assert not bare


def unlinked(part, made, names):
    """Texts of a part that hold a measured number and no link."""
    for line in sentences(part):
        yield from in_words(cells(line), names)
    if isinstance(part, Table):
        counted = [name in {made.column(key) for key in COUNTED} for name in part.head]
        for row in part.rows:
            yield from in_words(row[: part.left], names)
            yield from in_numbers(row[part.left :], counted[part.left :], names)
    if isinstance(part, Figure):
        # Name and position, then numbers; of the heat matrix two names.
        first = 2 if part.chart.head[1] in (made.column("arm"), *AXES) else 1
        for row in part.chart.shown:
            yield from in_numbers(row[first:], [False] * (len(row) - first), names)


def sentences(part):
    match part:
        case Paragraph(line):
            return [line]
        case Lines(lines):
            return lines
        case Gallery(entries):
            # First comes the question with its answer, which are of the data set.
            return [line for entry in entries for line in entry.lines[1:]]
        case Table():
            return [part.caption, part.below]
        case Figure():
            return [part.said]
    return []


AXES = ("step", "epoch", "步", "轮")


def in_numbers(row, counted, names):
    for cell, exempt in zip(row, counted, strict=True):
        text = cell.text if isinstance(cell, Linked) else cell
        digits = re.search(r"\d", LEVEL.sub("", without(text, names)))
        if digits and not exempt and not has_place(cell):
            yield text


def in_words(row, names):
    for cell in row:
        text = without(cell.text if isinstance(cell, Linked) else cell, names)
        if DECIMAL.search(INTERVAL_LEVEL.sub("", text)) and not has_place(cell):
            yield text


def without(text, names):
    for name in names:
        text = text.replace(name, "")
    return text


def has_place(cell):
    return isinstance(cell, Linked) and cell.place is not None and Path(cell.place.file).exists()


def test_a_number_without_a_place_is_found_out(tmp_path):
    made = logs(tmp_path)
    table = Table("t", ["a", "b"], [["x 0.5%", "3"], ["y", Linked("4")]])
    assert list(unlinked(table, made, [])) == ["x 0.5%", "3", "4"]
    assert list(unlinked(Paragraph("kl0.15 scored 0.5, 95 % sure"), made, ["kl0.15"])) == [
        " scored 0.5, 95 % sure"
    ]
    assert not list(unlinked(Paragraph("kl0.15 in 3 runs [L3]"), made, ["kl0.15"]))
