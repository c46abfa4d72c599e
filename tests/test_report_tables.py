"""Every table of the five documents, and the section of the report that replaces it.

A number of a table stands in its section, to the last digit printed; `REPLACED` are those that do
not, each with what stands there instead.
"""

import re
from pathlib import Path

import pytest

from kleash import report
from kleash.compare.comparison import compare
from kleash.compare.read import read
from kleash.report.words import CODES, term

FOLDER = Path(__file__).parent.parent.parent / "shared/seeds"
DOCUMENTS = {path.name[:3]: path for path in sorted(FOLDER.glob("00*.txt"))}
pytestmark = pytest.mark.skipif(len(DOCUMENTS) != 5, reason="the five documents are not here")

TABLES = {
    "000": {19: "epochs", 34: "epochs", 48: "epochs", 63: "matrix", 83: "matrix", 98: "matrix"},
    "001": dict.fromkeys((13, 27, 40, 53, 66, 81, 94), "curves"),
    "002": {
        **dict.fromkeys((20, 32, 44), "settings"),
        **dict.fromkeys((60, 78), "epochs"),
        **dict.fromkeys((90, 99, 108, 117, 130, 139, 148, 161, 170, 183, 191), "matrix"),
    },
    "003": {7: "settings", 22: "steps", 72: "dynamics", 82: "efficiency"},
    "004": {9: "scoreboard", 25: "scoreboard", 42: "steps", 141: "scoreboard"},
}
REPLACED: dict[tuple[str, int], tuple[str, ...]] = {
    # the gap of rounded means: 0.275 with its interval is in the forest of gaps
    ("000", 63): ("0.25",),
    ("000", 83): ("0.25",),
    # differences of values that were not yet rounded: ours are of the values as printed
    ("001", 27): ("0.00173389",),
    ("001", 40): ("0.00254224",),
    # the share of parameters that was trained: a result, and no setting
    ("002", 20): ("50.1",),
    ("002", 32): ("50.1",),
    ("002", 44): ("50.1",),
    # gaps and trends by eye: the forest and the question "do gaps depend on shots" have intervals
    ("002", 183): ("0.28",),
    ("002", 191): ("0.0", "0.5", "1.2", "1.8"),
    # gaps to values that were estimated: no gap is taken from an estimate
    ("003", 22): ("0.142", "0.132", "0.035", "0.03", "0.222", "0.26", "0.027", "0.079"),
    # the best of nine less the best of nine: the scoreboard has it without the winner's luck
    ("004", 9): ("0.079", "3.6"),
    ("004", 25): ("0.079",),
    ("004", 141): ("3.6",),
}


def numbers(text):
    return {float(each.replace(",", "")) for each in re.findall(r"\d[\d,]*\.\d+", text)}


@pytest.fixture(scope="module")
def told():
    """By document its tables by line, and its report by section."""
    found = {}
    for name, path in DOCUMENTS.items():
        source = read(path)
        made = report.of_sources(compare([source]), name, "zh")
        page = report.markdown_of(report.tables_of(made))
        headings = {term(f"report.section.{k}", "zh"): k for k in CODES.below("report.section")}
        parts = [part.partition("\n") for part in page.split("\n## ")[1:]]
        sections = {headings[heading]: body for heading, _, body in parts}
        found[name] = ({table.where.line: table for table in source.tables}, sections)
    return found


def test_all_thirty_seven_tables_are_named(told):
    for name, (tables, _) in told.items():
        assert set(TABLES[name]) == set(tables)
    assert sum(map(len, TABLES.values())) == 37


@pytest.mark.parametrize(
    ("name", "line"), [(name, line) for name, lines in TABLES.items() for line in lines]
)
def test_a_table_stands_in_its_section_digit_by_digit(told, name, line):
    tables, sections = told[name]
    theirs = set().union(*(numbers(cell) for row in tables[line].rows for cell in row))
    section = TABLES[name][line]
    missing = theirs - numbers(sections[section])
    assert missing == {float(each) for each in REPLACED.get((name, line), ())}
