"""`kleash check` with an interpreter: formulas over a report's numbers, and what comes of them.

The interpreter here says what the tests say; what a real one says of unread reports is in
docs/log.md. Left out: which model says it, and how it words an answer beyond the lines of JSON.
"""

import contextlib
import json
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from kleash.cli import app
from kleash.compare.documents.check import check
from kleash.compare.documents.formula import FUNCTIONS, Formula, FormulaError
from kleash.compare.documents.interpreter import interpreted
from kleash.compare.read.markdown.page import Addresses, column_at, column_name, read_page
from model_server import flags, serving

REPORT = """# Two arms

| Step | free | leashed | Gap |
|---|---|---|---|
| 10 | 0.512 | 0.498 | -0.014 |
| 20 | 0.530 | 0.541 | +0.011 |
| 30 | 0.571 (best) | 0.550 | -0.021 |

1. free rises at every step, by 0.059 in all, 11.5%.
2. leashed is best at step 30 (0.550), about 0.05 above where it began.
"""


def page_of(tmp_path, text=REPORT):
    (tmp_path / "r.md").write_text(text, encoding="utf-8")
    return read_page(tmp_path / "r.md")


def addresses(tmp_path, text=REPORT):
    return Addresses(page_of(tmp_path, text))


def line(**told):
    return json.dumps(told)


def outcomes(page, *answers):
    """By text, whether each claim of the first answer holds; the second is to "read it right?"."""
    told = iter(answers)
    every = interpreted(page, lambda questions: [next(told) for _ in questions])
    return {one.text: one.holds for one in every.judged}


# --- addresses


def test_every_number_has_an_address(tmp_path):
    own = addresses(tmp_path).numbers
    assert own["A5"].value == 10
    assert (own["D6"].value, own["D6"].text) == (0.011, "+0.011")
    assert [own[f"n9.{n}"].value for n in (1, 2)] == [0.059, 11.5]
    assert [own[f"n10.{n}"].value for n in (1, 2, 3)] == [30, 0.55, 0.05]
    assert own["n10.3"].is_rough
    assert not own["n10.2"].is_rough
    assert "n9.3" not in own  # the number of a list is none


def test_ranges_go_down_along_and_from_line_to_line(tmp_path):
    own = addresses(tmp_path)
    assert own.between("B5", "B7") == ["B5", "B6", "B7"]
    assert own.between("B5", "D5") == ["B5", "C5", "D5"]
    assert own.between("n9.1", "n9.2") == ["n9.1", "n9.2"]
    assert own.between("n9.1", "n10.1") == ["n9.1", "n10.1"]
    assert own.between("B5", "B99") == ["B5", "B6", "B7"]


def test_a_range_stays_in_its_table(tmp_path):
    two = REPORT + "\n| Step | a | b |\n|---|---|---|\n| 1 | 5 | 6 |\n"
    assert addresses(tmp_path, two).between("B5", "B14") == ["B5", "B6", "B7", "B14"]
    three = two + "\n| Step | a |\n|---|---|\n| 1 | 9 |\n"
    assert "B14" not in addresses(tmp_path, three).between("B5", "B18")


@pytest.mark.parametrize(
    "text",
    ["`runs/kl012/epoch_3.pt`", "v3_2", "Qwen3-8B", "kl0.12_final", "/data/2025/a.json"],
)
def test_names_and_paths_hold_no_numbers(tmp_path, text):
    assert not addresses(tmp_path, f"Taken from {text}.").numbers


@pytest.mark.parametrize(
    ("text", "value", "decimals"),
    [
        ("-3.6%", -3.6, 1),
        ("(−0.079)", -0.079, 3),
        ("+0.1", 0.1, 1),
        ("30,720 rollouts", 30720, 0),
        ("1e-6", 1e-6, 6),
        ("KL_BETA=0.12", 0.12, 2),
        ("~1.85", 1.85, 2),
    ],
)
def test_numbers_are_read_as_printed(tmp_path, text, value, decimals):
    (one,) = addresses(tmp_path, f"It is {text}").numbers.values()
    assert (one.value, one.decimals) == (pytest.approx(value), decimals)


def test_a_range_of_numbers_is_no_subtraction(tmp_path):
    own = addresses(tmp_path, "between 193-205 s and 1.2–1.4").numbers
    assert [one.value for one in own.values()] == [193, 205, 1.2, 1.4]


def test_cells_without_a_number_keep_their_place_and_titles_between_are_left_out(tmp_path):
    own = addresses(tmp_path, REPORT.replace("0.530", "?"))
    assert "B6" not in own.numbers
    assert own.between("B5", "B7") == ["B5", "B6", "B7"]
    titles = addresses(tmp_path, "| x | Epoch 1 | Epoch 2 |\n|---|---|---|\n| a | 5 | 6 |\n")
    assert titles.between("B1", "C1") == ["B1", "C1"]
    assert titles.numbers["C1"].value == 2


def test_a_sign_counts_in_a_column_that_has_signs(tmp_path):
    own = addresses(tmp_path, REPORT.replace("+0.011", "0.011")).numbers
    assert own["D6"].is_signed
    assert not own["C6"].is_signed
    assert addresses(tmp_path, "- 5e-6 is less").numbers["n1.1"].value == 5e-6
    assert not addresses(tmp_path, "a − 0.02×b").numbers["n1.1"].is_signed


def test_columns_have_letters_as_in_a_spreadsheet():
    assert [column_name(n) for n in (0, 25, 26, 51, 52)] == ["A", "Z", "AA", "AZ", "BA"]
    assert all(column_at(column_name(n)) == n for n in range(800))


def test_whoever_is_asked_sees_the_addresses(tmp_path):
    own = addresses(tmp_path)
    assert own.shown(7) == "7 | A: 30 | B: 0.571 (best) | C: 0.550 | D: -0.021"
    assert own.shown(9) == ("9 1. free rises at every step, by 0.059⟨n9.1⟩ in all, 11.5%⟨n9.2⟩.")


# --- formulas


def between(first, last):
    if "." in first + last:
        return []  # numbers of sentences, of which there is one
    return [f"{first[0]}{n}" for n in range(int(first[1:]), int(last[1:]) + 1)]


NUMBERS = {"A1": 10, "A2": 20, "A3": 30, "B1": 1.0, "B2": 3.0, "B3": 2.0, "n4.1": 7.0}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("B2 - B1", 2.0),
        ("100 * (B2 - B1) / B1", 200.0),
        ("mean(B1:B3)", 2.0),
        ("sum(B1, B2) + n4.1", 11.0),
        ("spread(B1:B3)", 2.0),
        ("std(B1:B3)", 1.0),
        ("at_max(B1:B3, A1:A3)", 20),
        ("at_min(B1:B3, A1:A3)", 10),
        ("at_max(changes(B1:B3), A1:A3)", 20),
        ("at_min(changes(B1:B3), A1:A3)", 30),
        ("at_min(changes(B1:B3), A2:A3)", 30),
        ("at_max(abs(changes_percent(B1:B3)), A1:A3)", 20),
        ("sqrt(B2 + 1) + log(exp(B1))", 3.0),
        ("max(abs(changes(B1:B3)))", 2.0),
        ("changes_percent(B1:B2)", [200.0]),
        ("count(B1:B3 > 1.5)", 2),
        ("count(B1:B3)", 3),
        ("B1:B3 - A1:A3", [-9, -17, -28]),
        ("rises(B1:B3)", False),
        ("rises(B1:B2) and falls(B2:B3)", True),
        ("same(B1, B1)", True),
        ("all(A1:A3 > B1:B3)", True),
        ("any(B1:B3 >= 4) or not B1 < B2", False),
        ("B1 < B3 < B2", True),
        ("B1 ≤ B3", True),
        ("(B1 + B2) × 2", 8.0),
        ("round(B2 / n4.1, 2)", 0.43),
        ("[B1, B2]", [1.0, 3.0]),
    ],
)
def test_what_a_formula_gives(text, value):
    np.testing.assert_allclose(Formula.of(text, between).value(NUMBERS), value)


WITH_HOLE = {key: value for key, value in NUMBERS.items() if key != "B2"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("at_max(B1:B3, A1:A3)", 30),
        ("mean(B1:B3)", 1.5),
        ("count(B1:B3)", 2),
        ("all(A1:A3 > B1:B3)", True),
        ("rises(B1:B3)", True),
        ("sum(A1:A3 - B1:B3)", 37),
    ],
)
def test_a_cell_without_a_number_is_in_nothing(text, value):
    assert Formula.of(text, between).value(WITH_HOLE) == value


def test_what_binary_numbers_add_is_no_difference():
    assert Formula.of("B1 - A1 == 0.3", between).value({"B1": 0.4, "A1": 0.1})


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')",
        "B1.__class__",
        "open('x')",
        "(lambda: 1)()",
        "B1 ** 99999999",
        "B1 if B2 else B3",
        "[x for x in B1:B3]",
        "'text'",
        "C9",
        "B1 +",
        "max()",
        "mean(B1:B3, axis=0)",
        "B1:B2 + B1:B3",
        "at_max(B1:B3, A1)",
        "1" + "+1" * 2000,
        "1" + "+1" * 990,
        "-" * 900 + "1",
        "9" * 1000,
        "std(B1)",
        "",
    ],
)
def test_what_is_no_formula_is_refused(text):
    with pytest.raises(FormulaError):
        Formula.of(text, between).value(NUMBERS)


PARTS = [*"+-*/()<>=,:[].", "B1", "A1:A3", "B1:B3", "n4.1", "2", "1e400", "not ", " and ", " if "]
PARTS += ["==", *FUNCTIONS]


@given(st.lists(st.sampled_from(PARTS), max_size=12).map("".join))
@settings(max_examples=500, deadline=None)
def test_whatever_an_interpreter_writes_is_worked_out_or_refused(text):
    with contextlib.suppress(FormulaError):
        Formula.of(text, between).value(NUMBERS)


# --- claims


RIGHT = [
    line(at="D5:D7", formula="C5:C7 - B5:B7"),
    line(at="n9.1", formula="B7 - B5"),
    line(at="n9.2", formula="100 * (B7 - B5) / B5"),
    line(at="n10.1", formula="at_max(C5:C7, A5:A7)"),
    line(at="n10.2", formula="C7"),
    line(at="n10.3", formula="C7 - C5"),
    line(line=9, words="rises at every step", formula="rises(B5:B7)"),
]


def test_a_right_report_holds(tmp_path):
    held = outcomes(page_of(tmp_path), "\n".join(RIGHT))
    assert set(held.values()) == {"yes"}
    assert len(held) == len(RIGHT) + 2  # three gaps


@pytest.mark.parametrize(
    ("old", "new", "wrong"),
    [
        ("+0.011", "-0.011", "-0.011"),
        ("by 0.059", "by 0.069", "0.069"),
        ("11.5%", "10.3%", "10.3%"),
        ("at step 30", "at step 20", "20"),
        ("(0.550)", "(0.505)", "0.505"),
        ("about 0.05", "about 0.5", "0.5"),
        ("| 0.530 |", "| 0.630 |", "rises at every step"),
    ],
)
def test_a_wrong_report_does_not(tmp_path, old, new, wrong):
    text = REPORT.replace(old, new, 1)
    assert text != REPORT
    answer = "\n".join(RIGHT)
    held = outcomes(page_of(tmp_path, text), answer, answer)
    assert held[wrong] == "no"


def test_a_percentage_may_be_told_as_a_fraction(tmp_path):
    told = line(at="n9.2", formula="(B7 - B5) / B5")
    assert outcomes(page_of(tmp_path), told) == {"11.5%": "yes"}


def test_signs_count_where_they_are_printed(tmp_path):
    other_way = line(at="D6", formula="B6 - C6"), line(at="n9.1", formula="B5 - B7")
    held = outcomes(page_of(tmp_path), "\n".join(other_way), "\n".join(other_way))
    assert held == {"+0.011": "no", "0.059": "yes"}


@pytest.mark.parametrize(("count", "held"), [(2, "yes"), (24, "no")])
def test_a_last_digit_is_a_slip_where_all_others_come_out_of_printed_numbers(tmp_path, count, held):
    """7.4 to 8.0 are 8.1 % more, and 8.0 % or 8.2 % if digits were hidden."""
    rows = [
        f"| {n} | {10 + n} | {12 + 3 * n} | {(12 + 3 * n) / (10 + n):.2f} |" for n in range(count)
    ]
    table = "\n".join(["| n | a | b | ratio |", "|---|---|---|---|", *rows])
    text = f"{table}\n\n7.4 became 8.0, 8.2% more.\n"
    last = count + 2
    claims = [
        line(at=f"D3:D{last}", formula=f"C3:C{last} / B3:B{last}"),
        line(
            at=f"n{count + 4}.3",
            formula=f"100 * (n{count + 4}.2 - n{count + 4}.1) / n{count + 4}.1",
        ),
    ]
    told = outcomes(page_of(tmp_path, text), "\n".join(claims), "\n".join(claims))
    assert told["8.2%"] == held


def test_words_that_nothing_bears_out_are_told_with_the_reason(tmp_path):
    told = line(line=9, words="rises", formula="", why="one run each")
    (one,) = interpreted(page_of(tmp_path), lambda questions: [told for _ in questions]).judged
    assert (one.line, one.holds, one.claim.why) == (9, "unsaid", "one run each")


def test_a_limit_that_nobody_told_proves_nothing(tmp_path):
    told = line(line=10, words="about", formula="abs(C7 - B7) < 0.001 * C7")
    said = line(line=9, words="11.5%", formula="(B7 - B5) / B5 < 0.059")
    page = page_of(tmp_path)
    every = interpreted(page, lambda questions: ["\n".join((told, said)) for _ in questions])
    marks = {m.line: m.state for m in check(page, (), every.judged) if m.code == "check.not-so"}
    assert marks == {10: "unsupported", 9: "wrong"}


def test_a_number_is_not_its_own_source_and_nonsense_says_nothing(tmp_path):
    told = [
        "Sure! Here you are:",
        line(at="n9.1", formula="n9.1"),
        line(at="n99.1", formula="B5"),
        line(at="n9.1", formula="magic(B5)"),
        line(at="D5:D7", formula="B5"),
        line(line=9, words="rises", formula="B5 + B6"),
        line(line=9, words="rises", formula="1 < 2"),
        line(line=900, words="rises", formula="", why="?"),
        '{"at": "n9.1", "formula"',
        "[]",
        "<think>" + line(at="n10.2", formula="B5") + "</think>",
    ]
    assert outcomes(page_of(tmp_path), "\n".join(told)) == {}


def test_what_the_interpreter_read_wrong_it_may_take_back(tmp_path):
    first = [line(at="n10.2", formula="B7"), line(at="n10.1", formula="at_max(B5:B6, A5:A6)")]
    first += [line(line=9, words="rises", formula="rises(D5:D7)")]
    again = [line(at="n10.2", formula="C7"), line(at="n10.1", formula="at_max(B5:B6, A5:A6)")]
    held = outcomes(page_of(tmp_path), "\n".join(first), "\n".join(again))
    assert held == {"0.550": "yes", "30": "no"}


def test_a_second_reading_is_only_of_what_was_asked(tmp_path):
    first = [line(at="n10.2", formula="B7"), line(at="n9.1", formula="B7 - B5")]
    again = [line(at="n10.2", formula="C7"), line(at="n9.1", formula="B7 - B6")]
    held = outcomes(page_of(tmp_path), "\n".join(first), "\n".join(again))
    assert held == {"0.550": "yes", "0.059": "yes"}


# --- what statistics decide, as in compare

SWINGS = {
    "undecided": ([0.50, 0.61, 0.48, 0.66, 0.52, 0.70], [0.51, 0.60, 0.50, 0.67, 0.51, 0.69]),
    "steadier": ([0.49, 0.53, 0.56, 0.60, 0.63, 0.66], [0.50, 0.61, 0.48, 0.66, 0.52, 0.70]),
    "less_steady": ([0.50, 0.61, 0.48, 0.66, 0.52, 0.70], [0.49, 0.53, 0.56, 0.60, 0.63, 0.66]),
}


SAYS = {
    "undecided": ("undecided", "未定", "unsupported"),
    "steadier": ("steadier", "更平稳", "right"),
    "less_steady": ("less steady", "波动更大", "wrong"),
}
PAGES = {
    "en": (
        "Validation reward",
        "leashed is steadier.",
        "steadier",
        "Steadier? leashed against free: ",
    ),
    "zh": ("验证集奖励", "leashed 更平稳。", "更平稳", "更平稳吗？leashed对free："),
}


def swinging(found, language="en", rough=""):
    """A report on two curves, some values of one perhaps estimates, and that one is steadier."""
    title, sentence, *_ = PAGES[language]
    rows = "\n".join(
        f"| {10 * n + 10} | {rough * (0 < n < 4)}{b:.2f} | {a:.2f} |"
        for n, (a, b) in enumerate(zip(*SWINGS[found], strict=True))
    )
    return f"# {title}\n\n| Step | free | leashed |\n|---|---|---|\n{rows}\n\n{sentence}\n"


def marks_of(tmp_path, text, *lines):
    """What `kleash check` says of the last line of a report, with these lines as every answer."""
    report, kept = page_of(tmp_path, text).path, tmp_path / "a.jsonl"
    kept.unlink(missing_ok=True)
    for _ in range(3):  # what does not hold is asked once more
        told = run(report, "--answers", str(kept), "--json")
        every = [
            json.loads(one) | {"answer": "\n".join(lines)} for one in kept.read_text().splitlines()
        ]
        kept.write_text("".join(json.dumps(one) + "\n" for one in every))
    last = len(text.splitlines())
    return [mark for mark in json.loads(told.output)["marks"] if mark["line"] == last]


@pytest.mark.parametrize("language", PAGES)
@pytest.mark.parametrize("found", SWINGS)
def test_steadier_is_what_compare_says(tmp_path, found, language):
    text, (_, _, words, question) = swinging(found, language), PAGES[language]
    en, zh, state = SAYS[found]
    for formula in ("steadier(C5:C10, B5:B10)", "std(C5:C10) < std(B5:B10)"):
        told = line(line=12, words=words, formula=formula)
        (mark,) = marks_of(tmp_path, text, told)
        assert (mark["state"], mark["text"]) == (state, words)
    flags = ["compare", str(tmp_path / "r.md"), "--lang", language]
    said = CliRunner().invoke(app, flags).output
    said = "".join(said.split()) if language == "zh" else " ".join(said.split())
    said = said[said.index(question) + len(question) :]
    assert re.match(r"[\w ]+", said)[0] == (zh if language == "zh" else en)
    if found == "undecided":
        assert re.search(r"1\.04 ?\[0\.21, ?5\.24\]", said)
        assert "1.04 [0.21, 5.24]" in mark["message"]


def test_steadier_is_of_measured_values_at_steps_that_both_have(tmp_path):
    """As in compare, which has no verdict below four such steps."""
    told = line(line=12, words="steadier", formula="steadier(C5:C10, B5:B10)")
    (mark,) = marks_of(tmp_path, swinging("steadier", rough="~"), told)
    assert (mark["state"], "3" in mark["message"]) == ("unsupported", True)
    report = CliRunner().invoke(app, ["compare", str(tmp_path / "r.md")]).output
    assert "Worse or about the same?" in report and "Steadier?" not in report
    later, sooner = SWINGS["steadier"]
    rows = [
        [f"| {10 * n + 10} | {v:.2f} |" for n, v in enumerate(side)] for side in (later, sooner)
    ]
    tables = ["\n".join(["| Step | Reward |", "|---|---|", *side]) for side in rows]
    tables[0] += "\n| 80 | 0.10 |\n| 90 | 0.90 |"
    text = f"# Leashed\n\n{tables[0]}\n\n# Free\n\n{tables[1]}\n\nleashed is steadier.\n"
    told = line(line=25, words="steadier", formula="steadier(B5:B12, B18:B23)")
    assert [mark["state"] for mark in marks_of(tmp_path, text, told)] == ["right"]


def test_spreads_that_are_no_talk_of_stability_are_numbers(tmp_path):
    text = swinging("undecided").replace("leashed is steadier", "the SD of leashed is larger")
    told = line(line=12, words="the SD of leashed is larger", formula="std(C5:C10) > std(B5:B10)")
    assert [mark["state"] for mark in marks_of(tmp_path, text, told)] == ["right"]


def test_a_difference_of_printed_numbers_is_right_for_both(tmp_path):
    rows = (
        "| Arm | accuracy | gap |\n|---|---|---|\n| free | 43.0 | - |\n| leashed | 44.1 | +1.1 |\n"
    )
    page = page_of(tmp_path, f"# Runs\n\n{rows}\nThe leash gives +1.1.\n")
    told = line(at="n8.1", formula="B6 - B5") + "\n" + line(at="C6", formula="B6 - B5")
    every = interpreted(page, lambda asked: [told for _ in asked]).judged
    assert {mark.state for mark in check(page, (), every) if mark.text == "+1.1"} == {"right"}
    said = CliRunner().invoke(app, ["compare", str(page.path)]).output
    assert re.search(r"leashed against free: undecided; accuracy \+1\.10*\s+points", said), said


# --- the verb


def run(path, *flags):
    return CliRunner().invoke(app, ["check", str(path), *flags])


def test_open_questions_wait_in_a_file_until_somebody_answers_them(tmp_path):
    page_of(tmp_path, REPORT.replace("by 0.059", "by 0.069"))
    report, kept = tmp_path / "r.md", tmp_path / "a.jsonl"
    told = run(report, "--answers", str(kept))
    assert told.exit_code != 0
    assert "1 question(s) are open" in str(told.exception)
    for answers in (1, 2):  # the second is to "did you read it right?"
        lines = [json.loads(one) for one in kept.read_text().splitlines()]
        assert [one["answer"] for one in lines].count("") == 1
        assert len(lines) == answers
        lines[-1]["answer"] = "\n".join(RIGHT)
        kept.write_text("".join(json.dumps(one) + "\n" for one in lines))
        told = run(report, "--answers", str(kept))
    assert told.exit_code == 1
    assert ":9: WRONG: 0.069 · B7 - B5 is 0.059 (B7 = 0.571, B5 = 0.512)" in told.output


def test_a_file_that_is_none_is_told(tmp_path):
    page_of(tmp_path)
    (tmp_path / "a.jsonl").write_text("hello\n")
    told = run(tmp_path / "r.md", "--answers", str(tmp_path / "a.jsonl"))
    assert "a.jsonl:1: no question with its answer" in str(told.exception)


def test_a_server_is_asked_once_and_its_answers_are_kept(tmp_path):
    """It is busy once, and then says what holds of the report as it was."""
    page_of(tmp_path, REPORT.replace("(0.550)", "(0.505)"))
    busy = iter([(503, "")])
    with serving(lambda _: next(busy, (200, "\n".join(RIGHT)))) as server:
        told = run(tmp_path / "r.md", *flags(server))
    assert told.exit_code == 1
    assert "0.505 · C7 is 0.550" in told.output
    assert "Of 2 sentences with numbers 2 became formulas (9 claims" in told.output
    assert "1 question(s), about" in told.output and "model m; 0 already" in told.output
    assert [body["model"] for body in server.asked] == ["m"] * 3
    assert "Answer for lines 1 to 10." in server.asked[1]["messages"][0]["content"]
    claims = server.asked[1]["response_format"]["json_schema"]["schema"]["properties"]["claims"]
    assert {"at", "formula"} <= claims["items"]["anyOf"][0]["properties"].keys()
    assert "C7" in server.asked[2]["messages"][0]["content"].splitlines()[-2]
    kept = tmp_path / "r.md.answers.jsonl"
    assert len(kept.read_text().splitlines()) == 2
    again = run(tmp_path / "r.md", "--answers", str(kept))
    assert told.output.endswith(again.output)  # what it costs is told where it is asked
    assert len(server.asked) == 3


def test_an_interpreter_that_says_nothing_is_told(tmp_path):
    page_of(tmp_path)
    kept = tmp_path / "a.jsonl"
    run(tmp_path / "r.md", "--answers", str(kept))
    (open_,) = (json.loads(one) for one in kept.read_text().splitlines())
    kept.write_text(json.dumps({**open_, "answer": "16. The gold score is 0.76."}) + "\n")
    told = run(tmp_path / "r.md", "--answers", str(kept))
    assert "Of 2 sentences with numbers 0 became formulas" in told.output
    assert "Not understood in its answers: 1 × a line that is no JSON" in told.output
    assert "A larger model may" in told.output


def test_that_no_interpreter_was_asked_is_told(tmp_path):
    page_of(tmp_path)
    first = run(tmp_path / "r.md").output.splitlines()[0]
    assert "not sentences" in first
    assert "--interpreter URL" in first
    assert "not sentences" not in run(tmp_path / "r.md", "--json").output


def test_a_server_needs_the_name_of_a_model(tmp_path):
    page_of(tmp_path)
    told = run(tmp_path / "r.md", "--interpreter", "http://127.0.0.1:9/v1")
    assert "--model" in str(told.exception)
