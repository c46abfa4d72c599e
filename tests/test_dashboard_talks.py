"""The dashboard for language agents: transcripts side by side, and where two arms disagree."""

import html
import json
import re
import shutil
from importlib import resources

import pytest
from starlette.testclient import TestClient

from kleash.report.charts import STYLE
from kleash.report.serve import dashboard
from kleash.report.serve.answers import study_answer
from kleash.report.serve.items import LEVELS, episode, legend, tokens
from kleash.report.serve.store import Store
from made_agents import KEPT, made_agents, said_by
from test_contrast import THEMES, colours, contrast

ITEM = "/study/talking/item"
SCRIPT = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("agents")
    made_agents(folder / "talking")
    return folder


@pytest.fixture
def folder(finished, tmp_path):
    """The same, for one test to spoil."""
    shutil.copytree(finished, tmp_path / "served")
    return tmp_path / "served"


def client(folder):
    return TestClient(dashboard(folder), base_url="http://127.0.0.1:8321")


def marked(text):
    """Every token of a page with its class and its title."""
    return re.findall(r'<span class="token (kl\d)" title="([^"]*)">([^<]*)</span>', text)


def test_a_task_shows_what_the_arms_said_side_by_side(finished):
    page = client(finished).get(f"{ITEM}?item=test-1&ours=none&theirs=tight")
    assert page.status_code == 200
    assert "TASK party ;" in page.text
    columns = re.findall(r'<th scope="col" class="w"><a href="[^"]+">([\w ]+)</a>', page.text)
    assert columns == ["no KL", "tight"]
    for word in ("Date or deadline", "reward +0.7", "STOP", "USER budget any_sum ;"):
        assert word in page.text
    assert "all details were covered" in page.text and "the agent ended it" in page.text
    told = [
        [text, kl, logp]
        for _, title, text in marked(page.text)
        for kl, logp in [re.fullmatch(r"KL (\S+) · log p (\S+)", title).groups()]
    ]
    wanted = [
        [text, f"{kl:.3f}", f"{logp:.3f}"]
        for at in range(2)
        for arm in ("none", "tight")
        for text, logp, kl in said_by(arm, 1)[at]["tokens"]
    ]
    assert told == wanted


def test_a_token_is_marked_by_how_far_it_is_from_the_start(finished):
    page = client(finished).get(f"{ITEM}?item=test-0")
    found = {(text, level) for level, _, text in marked(page.text)}
    assert {("ASK", "kl0"), ("ASK", "kl1"), ("budget", "kl2"), ("date", "kl3"), (";", "kl4")} <= (
        found
    )
    assert [each["level"] for each in legend()] == list(range(len(LEVELS) + 1))
    assert all(html.escape(each["text"]) in page.text for each in legend())


@pytest.mark.parametrize("theme", THEMES)
def test_tokens_can_be_read_in_both_themes_and_without_colour(theme):
    css = resources.files("kleash.report.serve").joinpath("static/page.css").read_text("utf-8")
    seen = colours(theme)
    shares = re.findall(r"\.kl(\d)\{background:rgba\(var\(--heat\),([\d.]+)\)", css)
    assert [int(level) for level, _ in shares] == [1, 2, 3, 4]
    assert "--heat" in STYLE
    for _, share in shares:
        pairs = zip(seen["heat"], seen["paper"], strict=True)
        field = [float(share) * h + (1 - float(share)) * p for h, p in pairs]
        assert contrast(seen["ink"], field) >= 4.5
    widths = re.findall(r"\.kl\d\{[^}]*border-bottom-width:(\d)px", css)
    assert widths == ["1", "2", "3", "4"]


def test_without_a_transcript_the_turns_are_those_of_the_scores(finished):
    page = client(finished).get(f"{ITEM}?item=test-{KEPT}")
    assert page.status_code == 200
    assert "ASK budget ;" in page.text and not marked(page.text)
    assert "No transcript with KL was kept of this episode for: no KL, tight." in page.text


def test_a_transcript_of_something_else_than_was_scored_does_not_count():
    line = {"pointer": ["ASK date ;"], "heard": ["TASK party ;"], "rewards": [0.0]}
    kept = {"turns": [{"said": "STOP ;", "tokens": [["STOP", -1.0, 0.1]]}]}
    assert episode(line, [kept])["kl"] == ""
    kept["turns"][0]["said"] = "ASK date ;"
    assert episode(line, [kept])["kl"] == "0.100"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_filter_lists_the_tasks_on_which_two_arms_disagree(finished, language):
    asked = client(finished)
    for kind in ("score", "pointer"):
        page = asked.get(f"/study/talking/items?ours=none&theirs=tight&in={kind}&lang={language}")
        found = re.findall(r"item\?item=(test-\d)", page.text)
        assert sorted(found) == ["test-1", "test-3", "test-5"]
    told = {"en": "3 of 6 tasks differ", "zh": "6 个任务中 3 个不同"}[language]
    assert told in page.text
    assert {"en": "what was said", "zh": "所说的话"}[language] in page.text


def test_every_page_of_a_study_of_agents_opens_and_an_average_is_no_percentage(finished):
    asked = client(finished)
    for address in ("/", "/study/talking", "/study/talking/items?ours=tight&theirs="):
        assert asked.get(address).status_code == 200
    page = asked.get("/run?run=talking/runs/tight-s0")
    assert page.status_code == 200
    assert ">1.200</a></td>" in page.text and "%</td>" not in page.text
    assert asked.get(f"{ITEM}?item=nothing").status_code == 404


def spoil(folder, change):
    """Change every line of the transcripts and scores of an arm."""
    run = folder / "talking/runs/none-s0"
    for path in (run / "transcripts/epoch-2.jsonl", run / "scores.jsonl"):
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        path.write_text("".join(json.dumps(change(line)) + "\n" for line in lines))


def test_hostile_words_are_shown_as_text(folder):
    def change(line):
        return json.loads(json.dumps(line).replace("budget", SCRIPT).replace("covered", SCRIPT))

    spoil(folder, lambda line: change(line) | {"item": line["item"]})
    page = client(folder).get(f"{ITEM}?item=test-0&ours=none")
    assert page.status_code == 200
    assert SCRIPT not in page.text and html.escape(SCRIPT) in page.text


@pytest.mark.parametrize(
    "turns",
    [
        None,
        "x",
        [1],
        [{"said": "ASK budget ;"}, {"said": "ASK date ;", "tokens": 3, "covered": {"a": 1}}],
        [
            {"said": "ASK budget ;", "tokens": [["a", "b", "c"], [1, 2, 3], ["x"], 5]},
            {"said": "ASK date ;", "tokens": [["a", 1e999, 0.1], ["a", -1, True]]},
        ],
    ],
)
def test_a_transcript_that_is_none_leaves_the_turns_of_the_scores(folder, turns):
    path = folder / "talking/runs/none-s0/transcripts/epoch-2.jsonl"
    path.write_text(json.dumps({"item": "test-0", "turns": turns}) + "\n{torn")
    page = client(folder).get(f"{ITEM}?item=test-0&ours=none")
    assert page.status_code == 200 and "ASK budget ;" in page.text


def test_no_file_outside_the_folder_is_read(folder, tmp_path):
    secret = tmp_path / "secret.jsonl"
    kept = folder / "talking/runs/none-s0/transcripts/epoch-2.jsonl"
    secret.write_bytes(kept.read_bytes().replace(b"Price range", b"a secret"))
    kept.unlink()
    kept.symlink_to(secret)
    page = client(folder).get(f"{ITEM}?item=test-0&ours=none")
    assert "a secret" not in page.text
    spoil_path = {"checkpoint": "../../../../../secret"}
    assert tokens([["a", -1.0, 0.5]])[0]["level"] == 3
    run = folder / "talking/runs/tight-s0/scores.jsonl"
    lines = [json.loads(line) | spoil_path for line in run.read_text().splitlines()]
    run.write_text("".join(json.dumps(line) + "\n" for line in lines))
    page = client(folder).get(f"{ITEM}?item=test-0&ours=tight")
    assert "a secret" not in page.text


def test_what_a_study_of_agents_tells_is_rewards(finished):
    told = study_answer(Store(finished), finished / "talking", "en")
    rows = dict(re.findall(r'<td class="w">([\w ]+)</td>.*?<td>([\d.]+) \[', told))
    assert (rows["no KL"], rows["tight"]) == ("1.700", "1.200")
    assert "test reward" in told.lower()
