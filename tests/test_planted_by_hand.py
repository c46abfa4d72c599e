"""`kleash check` on eight reports with 20 errors each that were planted by hand, not by a program.

They were written before the check was tried on them, by somebody who had not read it: every number
of a right report follows from made data, every error contradicts a line of the report or its log.
The first four were worked on, then the others were tried (docs/log.md), then they were worked on.
Left out: how each error is worded, and which of several lines a mark stands at.
"""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kleash.cli import app

HERE = Path(__file__).parent / "planted_by_hand"
FIRST = ("gsm8k_kl", "rlhf_ppo", "verl_agent", "vlm_demo")
THEN = ("dpo_beta", "multi_bench", "weekly", "zh_cost")
KINDS = {"arithmetic", "rounding", "copied", "swapped", "words", "best step"}


def marks(report):
    """What is wrong or not supported, as (line, code, text)."""
    told = CliRunner().invoke(
        app, ["check", str(report), "--json", "--against", str(report.parent / "logs")]
    )
    assert told.exit_code in (0, 1), told.output
    every = json.loads(told.output)["marks"]
    return [mark for mark in every if mark["state"] in ("wrong", "unsupported")]


def spot(mark):
    return mark["line"], mark["code"], mark["text"]


def scored(name):
    """How many of 20 errors are found, and how many figures of the right report are marked."""
    folder = HERE / name
    plants = json.loads((folder / "plants.json").read_text(encoding="utf-8"))
    right, planted = marks(folder / "report.md"), marks(folder / "planted.md")
    had = set(map(spot, right))
    at = {mark["line"] for mark in planted if spot(mark) not in had}
    taken = {line for plant in plants for line in plant["lines"]}
    found = sum(
        bool(at & {*plant["lines"], *(set(plant["contradicts"]) - taken)}) for plant in plants
    )
    false = [
        mark
        for mark in right
        if mark["state"] == "wrong"
        or (re.search(r"\d", mark["text"]) and mark["code"] != "check.word")
    ]
    return found, len(false)


@pytest.mark.parametrize("name", (*FIRST, *THEN))
def test_twenty_errors_of_six_kinds_stand_where_the_list_says(name):
    folder = HERE / name
    plants = json.loads((folder / "plants.json").read_text(encoding="utf-8"))
    right, wrong = (
        (folder / each).read_text(encoding="utf-8").split("\n")
        for each in ("report.md", "planted.md")
    )
    assert len(plants) == 20
    assert {plant["kind"] for plant in plants} == KINDS
    differ = {n for n, (a, b) in enumerate(zip(right, wrong, strict=True), 1) if a != b}
    assert differ == {line for plant in plants for line in plant["lines"]}


@pytest.mark.slow
@pytest.mark.parametrize(("names", "least", "most"), [(FIRST, 75, 0), (THEN, 73, 0)])
def test_as_many_are_found_as_docs_say(names, least, most):
    found = [scored(name) for name in names]
    assert sum(count for count, _ in found) >= least, found
    assert sum(false for _, false in found) <= most, found
