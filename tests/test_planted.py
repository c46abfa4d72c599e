"""Right reports in many styles have no error; with one planted slip each, it is found.

The reports are in tests/reports. A plant is a report, what is changed in it, and the code that must
be found on a line that the plant touches or that speaks of it.
"""

from pathlib import Path

import pytest

from kleash.compare.checks import find
from kleash.compare.read import markdown

REPORTS = Path(__file__).parent / "reports"
NAMES = sorted(path.stem for path in REPORTS.glob("*.md"))

PLANTS = [
    # sums
    ("beta-rows", "| 0.0027 | 0.0074 |", "| 0.0027 | 0.0094 |", "loss-identity"),
    ("beta-rows", "| 0.118 |", "| 0.188 |", "loss-identity"),
    ("ranking-zh", "| 0.00510 |", "| 0.00150 |", "kl-loss-identity"),
    ("shots-zh", "| 基线 | 61.25% |", "| 基线 | ? |", "derived-from-missing"),
    ("nested-samples-zh", "| 1 | 57.75% |", "| 1 | 57.25% |", "duplicate-step"),
    # too much alike
    (
        "shots-zh",
        "62.00% | 63.25% | 64.00% | 63.08% | +0.58%",
        "61.25% | 62.50% | 63.75% | 62.50% | +0.00%",
        "identical-results",
    ),
    (
        "beta-rows",
        "| 0.0021 | 0.0073 | 365 |",
        "| 0.0027 | 0.0074 | 365 |",
        "loss-identity",
    ),
    # what can be
    ("nested-samples-zh", "| 100 | 61.0% |", "| 100 | 61.3% |", "off-lattice"),
    # what was planned, what was guessed
    ("early-look", "| Max steps | 100 | 100 |", "| Max steps | 500 | 500 |", "fewer-than-planned"),
    ("early-look", "| 60 | 0.560 |", "| 60 | ~0.56 (estimated) |", "estimated-values"),
]


def text_of(name):
    return (REPORTS / f"{name}.md").read_text(encoding="utf-8")


def found(path, text):
    path.write_text(text, encoding="utf-8")
    return find([markdown.read(path)])


@pytest.mark.parametrize("name", NAMES)
def test_a_right_report_has_no_error(tmp_path, name):
    errors = [
        one for one in found(tmp_path / "report.md", text_of(name)) if one.severity == "error"
    ]
    assert not [(one.code, one.facts) for one in errors]


@pytest.mark.parametrize(
    ("name", "old", "new", "code"),
    PLANTS,
    ids=[f"{number}-{plant[0]}-{plant[3]}" for number, plant in enumerate(PLANTS)],
)
def test_a_planted_slip_is_found(tmp_path, name, old, new, code):
    text = text_of(name)
    assert text.count(old) == 1
    before = {one.code for one in found(tmp_path / "report.md", text)}
    after = found(tmp_path / "report.md", text.replace(old, new))
    assert code not in before
    of_code = [one for one in after if one.code == code]
    assert of_code, sorted({one.code for one in after} - before)
    touched = text[: text.index(old)].count("\n") + 1
    assert any(place.line == touched for one in of_code for place in one.where)
