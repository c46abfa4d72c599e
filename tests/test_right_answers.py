"""One study, one answer: whoever is asked says the same, and it holds against the start."""

import io
import json
import re
import sys
import tomllib
from html import unescape
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

import made_study as made
from kleash import report
from kleash.cli import app
from kleash.cli.study import show_results
from kleash.compare.comparison import Wish, compare
from kleash.report.serve.answers import study_answer
from kleash.report.serve.store import Store
from kleash.runs.run import read_lines
from kleash.study.results import KL, results
from kleash.study.results.sources import study_source
from made_study import made_study

KEEP = "No arm is shown to be better than not training: keep the start."
LOST = {"none": 0.2, "kl0.15": 0.5, "kl1.5": 0.8}  # of a start that has 0.8


def scoring(name="", share=0.0):
    """Scores as they are made, with seeds that differ; one checkpoint has another share right."""
    plain = made._scores

    def scores(file, checkpoint, split, shots, usual, seed, pointer):
        chosen = share if checkpoint == name else usual
        number = 3 if checkpoint.startswith("rce") else int(pointer[0][1:])
        swing = (seed * (2 * number + 3) + seed // 3) % 5 - 2
        swing = 0 if checkpoint.startswith("baseline") else swing / 40
        return plain(file, checkpoint, split, shots, chosen + swing, seed, pointer)

    return scores


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A study in which the stronger leash loses less, and none gains."""
    folder = tmp_path_factory.mktemp("kept") / "made"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(made, "SHARES", LOST)
        patch.setattr(made, "_scores", scoring("rce-1", 0.8))
        made_study(folder)
    return folder


@pytest.fixture(scope="module")
def used(tmp_path_factory):
    """A study in which one arm gains 50 points over its start."""
    folder = tmp_path_factory.mktemp("used") / "made"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(made, "_scores", scoring())
        made_study(folder)
    return folder


def said(*words):
    done = CliRunner(env={"LANG": "C", "COLUMNS": "160"}).invoke(app, list(map(str, words)))
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.stdout


def bare(page):
    """A page without its tags, or Markdown without its links; a line of blanks is one blank."""
    text = unescape(re.sub(r"<[^>]+>", "", page))
    text = re.sub(r"\[((?:[^][]|\[[^]]*\])*)\]\[\d+\]", r"\1", text)
    return " ".join(text.replace("\\", "").split())


def first(text):
    """The first sentence of the verdict."""
    return bare(text).split("Verdict", 1)[1].lstrip("- ")


def ended(folder):
    """What a study says when it ends."""
    made_of = results(folder)
    with pytest.MonkeyPatch.context() as patch, io.StringIO() as file:
        console = Console(file=file, width=160)
        patch.setattr(sys.modules[show_results.__module__], "stdout", lambda: console)
        ran = SimpleNamespace(stopped=False, failures={})
        show_results(made_of, ran, [folder / "report.md"], "en", as_json=False)
        return bare(file.getvalue().split("report.md")[-1])


def everywhere(folder):
    """By who says it, the verdict as text."""
    written = {path.name: path for path in report.write(results(folder), language="en")}
    told = json.loads(said("compare", folder, "--json"))
    [use] = [each for each in told["verdicts"] if each["question"] == "recommend"]
    live = study_answer(Store(folder), folder, "en")
    return {
        "report.md": first(written["report.md"].read_text()),
        "report.html": bare(written["report.html"].read_text()).split("Verdict")[-1].lstrip(),
        "compare": first(said("compare", folder)),
        "compare --json": use["because"][0],
        "report --terminal": first(said("report", folder, "--terminal", "--lang", "en")),
        "the live page": re.search(r'"stated"><p>(.*?)</p>', live)[1],
        "study": ended(folder),
    }


@pytest.mark.parametrize("name", ["kept", "used"])
def test_terminal_json_reports_live_page_and_file_say_the_same(name, request):
    folder = request.getfixturevalue(name)
    told = everywhere(folder)
    decision = told["the live page"]
    assert decision == KEEP if name == "kept" else decision.startswith("Use kl0.15: accuracy +")
    for who, text in told.items():
        assert text.startswith(decision), who
    page = (folder / "report.html").read_text()
    assert bare(page).count(decision) >= 1
    recommended = folder / "recommended.toml"
    assert recommended.is_file() == (name == "used")
    if name == "used":
        assert tomllib.loads(recommended.read_text())["arm"] == "kl0.15"


def test_every_gap_is_the_same_to_the_last_digit(kept):
    found, again = results(kept), compare([study_source(kept)])
    assert found.comparison.verdicts == again.verdicts
    told = json.loads(said("compare", kept, "--json"))["verdicts"]
    shown = json.loads(said("report", kept, "--json"))["arms"]
    by_name = {each["arm"]: each for each in shown}
    for question, key in (("gain", "gain"), ("level", "gap")):
        every = [each for each in told if each["question"] == question]
        assert every
        for each in every:
            ours = by_name[each["arms"][0]][key]
            for number in ("estimate", "low", "high", "adjusted_p", "verdict"):
                assert ours[number] == each[number], (question, number)


def test_the_start_and_what_needs_no_training_are_in_the_one_comparison(kept):
    found = results(kept).comparison
    roles = {arm["name"]: arm["role"] for arm in found.arms}
    assert roles["start"] == "start"
    assert {roles["random"], roles["zero-shot"]} == {"untrained"}
    assert "planted" not in roles  # it knows the answers
    gains = {e.arms: e for e in found.verdicts if e.question == "gain"}
    assert gains.keys() == {(arm, "start") for arm in LOST}
    assert gains["none", "start"].verdict == "worse"
    assert gains["none", "start"].level == "L3"


def test_what_differs_between_arms_that_lost_is_told_as_that(kept):
    text = everywhere(kept)["report.md"]
    assert re.search(r"Worse than the start: no KL, kl0\.15 \(from -\d+\.\d+ to -\d+\.", text)
    assert "Lost less than no KL: kl0.15 (+" in text
    assert "Better than no KL: kl1.5 (+" in text
    assert "start: kl1.5" in text


def test_an_arm_that_beats_its_baseline_but_not_its_start_is_not_recommended(kept):
    found = results(kept).comparison
    [level] = [e for e in found.verdicts if e.question == "level" and e.arms[0] == "kl1.5"]
    [use] = [each for each in found.verdicts if each.question == "recommend"]
    assert (level.verdict, use.verdict, use.arms) == ("better", "undecided", ("start",))


def test_a_gain_that_is_not_beyond_a_margin_that_was_set_recommends_nothing(used):
    [use] = [e for e in compare([study_source(used)]).verdicts if e.question == "recommend"]
    assert (use.verdict, use.arms) == ("better", ("kl0.15",))
    wide = compare([study_source(used)], Wish(margin=0.8))
    [use] = [each for each in wide.verdicts if each.question == "recommend"]
    assert use.verdict == "undecided"
    within = [e for e in wide.verdicts if e.verdict == "better_within_margin"]
    assert within, "better within the margin is not better"


def test_what_beats_every_arm_without_training_is_what_to_use(tmp_path, monkeypatch):
    monkeypatch.setattr(made, "_scores", scoring("baseline:similar-text", 1.0))
    monkeypatch.setattr(made, "SHARES", made.SHARES | {"none": 0.3, "kl0.15": 0.8, "kl1.5": 0.3})
    made_study(tmp_path / "made")
    found = results(tmp_path / "made").comparison
    [use] = [each for each in found.verdicts if each.question == "recommend"]
    assert (use.verdict, use.arms) == ("undecided", ("similar-text",))
    assert "No arm is better than similar-text, which needs no training" in said(
        "compare", tmp_path / "made"
    )


def test_a_study_of_one_arm_is_held_against_its_start(tmp_path):
    left = [f"{arm}-s{seed}" for arm in ("none", "kl1.5") for seed in range(8)]
    made_study(tmp_path / "made", leave_out=tuple(left))
    assert "Use kl0.15" in said("compare", tmp_path / "made")


def test_a_stale_recommendation_goes(kept):
    stale = kept / "recommended.toml"
    stale.write_text('[peak]\narm = "none"\n', encoding="utf-8")
    report.write(results(kept))
    assert not stale.exists()


def test_kl_and_score_of_a_row_are_of_the_checkpoint_that_was_chosen(tmp_path):
    folder = tmp_path / "made"
    made_study(folder)
    for path in (folder / "runs").glob("*/scores.jsonl"):
        lines = list(read_lines(path))
        for line in lines:
            if line["split"] == "test":
                line["checkpoint"] = "epoch-2"
            elif line["checkpoint"] == "epoch-3":
                line["score"] = 0.0
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    for row in results(folder).rows:
        assert set(row.chosen) == {"epoch-2"}
        logged = [
            line[KL]
            for path in (folder / "runs").glob(f"{row.name}-s*/metrics.jsonl")
            for line in read_lines(path)
            if line["kind"] == "epoch" and line["epoch"] == 2
        ]
        assert row.kl.estimate == pytest.approx(np.mean(logged))


def test_hashes_at_hand_are_compared_and_not_asked_for(tmp_path, monkeypatch):
    monkeypatch.setattr(made, "SHARES", {"none": 0.4, "kl0.15": 0.4, "kl1.5": 0.2})
    made_study(tmp_path / "made")
    found = results(tmp_path / "made").comparison
    [alike] = [e for e in found.verdicts if e.question == "level" and e.verdict == "identical"]
    assert "same_weights" in [each.code for each in alike.because]
    assert not {"check_weights", "evaluate_start"} & {step.code for step in found.next}
