"""Reports by strange hands with two fifths of the numbers of their tables emptied, and filled."""

import random
import re
import tarfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kleash.cli import app
from kleash.compare.documents.fill import written_as_row
from kleash.compare.read import Number, Where

HERE = Path(__file__).parent / "planted_by_hand"
EMPTIED = 0.4
FAR = 0.02  # of a number: less may be another way of rounding, more is another measurement


def emptied(text, rng):
    """The report with open cells, and by line and cell what stood there."""
    lines = text.split("\n")
    heads = {at for at, line in enumerate(lines[1:]) if re.match(r"\|[\s:|-]+\|$", line)}
    gone = {}
    for at, line in enumerate(lines):
        if not line.startswith("|") or {at, at - 1} & heads:
            continue
        cells = line.split("|")
        for nth in range(2, len(cells) - 1):
            plain = re.fullmatch(r"\s*\**\d[\d,]*(\.\d+)?%?\**\s*", cells[nth])
            if plain and rng.random() < EMPTIED:
                gone[at, nth] = cells[nth]
                cells[nth] = " ? "
        lines[at] = "|".join(cells)
    return "\n".join(lines), gone


def number(text):
    return float(re.sub(r"[*,%\s]", "", text))


def outcome(folder, tmp_path):
    """How many cells are filled with what stood there, and which with another measurement."""
    text, gone = emptied((folder / "report.md").read_text(), random.Random(folder.name))
    report = tmp_path / "report.md"
    report.write_text(text)
    told = CliRunner().invoke(app, ["fill", str(report), "--from", str(folder / "logs")])
    assert told.exit_code == 0, told.output
    after = [line.split("|") for line in report.read_text().split("\n")]
    right, wrong = 0, []
    for (at, nth), before in gone.items():
        now = after[at][nth]
        if now.strip() != "?":
            near = abs(number(now) - number(before)) <= FAR * abs(number(before))
            right += near
            wrong += [] if near else [(folder.name, at + 1, before.strip(), now.strip())]
    return right, wrong


@pytest.mark.slow
@pytest.mark.parametrize(("archive", "under", "fewest", "most"), [("unseen8", "r", 135, 0)])
def test_what_is_filled_is_what_stood_there(archive, under, fewest, most, tmp_path):
    with tarfile.open(HERE / f"{archive}.tar.xz") as packed:
        packed.extractall(tmp_path, filter="data")
    found = [outcome(folder, tmp_path) for folder in sorted((tmp_path / under).iterdir())]
    wrong = [each for _, some in found for each in some]
    assert len(wrong) <= most, wrong
    assert sum(right for right, _ in found) >= fewest


def test_a_number_is_written_as_its_row_where_its_column_is_of_other_quantities():
    def numbers(*told):
        return [Number(value, "known", Where("made up"), digits) for value, digits in told]

    row = numbers((0.08381, 5), (0.09962, 5))
    assert written_as_row(row, numbers((1.09, 2), (3.79, 2)), 0.1085)
    assert written_as_row(row, numbers((1.159, 3), (656.9, 1)), 0.1085)
    assert not written_as_row(row, numbers((0.11, 2), (0.04, 2)), 0.1085)
    assert not written_as_row(numbers((0.08381, 5), (0.1, 1)), numbers((1.09, 2)), 0.1085)
    assert not written_as_row(row[:1], numbers((1.09, 2)), 0.1085)
    assert not written_as_row(row, [], 0.1085)
