"""A report says what the records say, in both languages, with every number's place."""

import re

import pytest

from kleash import report
from kleash.report.markdown import escaped
from kleash.results import results
from made_study import made_study


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports") / "made"
    made_study(folder)
    return results(folder)


def test_a_report_made_twice_has_the_same_bytes(study):
    first = [path.read_bytes() for path in report.write(study)]
    assert first == [path.read_bytes() for path in report.write(study)]


def test_the_first_paragraph_says_which_why_how_sure_and_what_is_not_said(study):
    page = report.write(study, language="en")[0].read_text()
    paragraph = page.split("## Verdict\n\n")[1].split("\n")[0]
    assert paragraph.startswith("Use kl0.15: as a setting it is better than none on accuracy")
    assert "kl1.5 against none" in paragraph
    assert "How sure [L3]" in paragraph
    assert "What it does not say" in paragraph


def test_every_arm_has_its_score_with_an_interval_and_its_place(study):
    made = report.of_study(study, "en")
    page = report.markdown_of(made, study.folder)
    row = next(line for line in page.splitlines() if line.startswith("| kl0.15"))
    number = re.search(r"\[81\.2% \[[\d., ]+\]\]\[(\d+)\]", row)[1]
    place = re.search(rf"^\[{number}\]: (\S+)#L(\d+)$", page, re.M)
    line = (study.folder / place[1]).read_text().splitlines()[int(place[2]) - 1]
    assert '"checkpoint": "epoch-3", "split": "test"' in line


def test_expectations_are_answered(study):
    page = report.write(study, language="en")[0].read_text()
    assert re.search(r"kl0\.15 better than none on accuracy +\| less drift +\| borne out", page)
    assert re.search(r"kl1\.5 worse than none on accuracy +\| +\| (refuted|undecided)", page)


def test_missing_cells_are_told_with_the_command_that_fills_them(tmp_path):
    made_study(tmp_path / "half", leave_out=("kl1.5-s3",))
    page = report.write(results(tmp_path / "half"), language="en")[0].read_text()
    assert "missing (7/8)" in page
    assert re.search(r"\| kl1\.5 \| 3 +\| missing +\|", page)
    assert "\nkleash study half\n" in page


def test_both_languages_have_the_same_sections_and_numbers(study):
    both = [report.write(study, language=each)[0].read_text() for each in ("en", "zh")]
    numbers = [re.findall(r"\d+\.\d+%", page) for page in both]
    assert numbers[0] == numbers[1]
    assert both[0].count("\n## ") == both[1].count("\n## ")
    assert "作为设置，它在准确率上好于 none" in both[1]


def test_what_a_file_says_is_text(study):
    assert escaped("<script>a|b</script>\n`x`") == "&lt;script>a\\|b&lt;/script> \\`x\\`"
    assert escaped("[x](javascript:y)") == "[x]\\(javascript:y)"
