"""What `kleash check` asks a language model, what that costs, and what comes of any answer.

The models here answer from a table or are weights drawn at random; SmolLM2-135M is asked where its
folder is named. Left out: how much a capable model understands, which is in docs.
"""

import json
import os
import re
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from kleash.cli import app
from kleash.compare.documents.interpreter import claims_in, interpreted
from kleash.compare.documents.judge import Claim
from kleash.compare.documents.questions import questions, tokens_in
from kleash.compare.read.markdown.page import Addresses, Page
from made_reports import STYLES
from model_server import flags, serving

ROOM = 4096


def page_of(text):
    return Page("r.md", text, "utf-8")


def long_report(count=6):
    """Sections with a table each and sentences on it."""
    parts = ["# 报告"]
    for n in range(count):
        rows = "\n".join(
            f"| {s} | {1 + (n + s) / 7:.3f} | {2 - (n + s) / 9:.3f} |" for s in range(9)
        )
        text = "\n".join(
            f"- 第 {s} 步的验证集奖励为 {1 + (n + s) / 7:.3f}，" + "略高于之前，" * 6
            for s in range(6)
        )
        parts.append(f"## 第 {n} 节\n\n| 步 | 甲 | 乙 |\n|---|---|---|\n{rows}\n\n{text}")
    return "\n\n".join(parts) + "\n"


def run(path, *flags):
    return CliRunner().invoke(app, ["check", str(path), *flags])


# --- questions


@pytest.mark.parametrize("room", [3000, ROOM, 8192, 100_000])
def test_questions_fit_and_ask_of_every_line_once(room):
    addresses = Addresses(page_of(long_report()))
    asked = []
    for one in questions(addresses, room):
        first, last = map(int, re.findall(r"\d+", one.text.splitlines()[-1]))
        assert one.tokens < room
        report = one.text.split("\nREPORT\n")[1]
        shown = {int(found) for found in re.findall(r"^(\d+) ", report, re.M)}
        assert {*range(first, last + 1)} - addresses.rules <= shown
        titles = {addresses.rows[n] for n in range(first, last + 1) if n in addresses.rows}
        assert titles <= shown
        asked += range(first, last + 1)
    assert asked == [*range(1, addresses.count + 1)]


def test_a_larger_context_asks_less_often_and_shows_the_whole():
    addresses = Addresses(page_of(long_report()))
    counts = [len(questions(addresses, room)) for room in (3000, ROOM, 8192, 100_000)]
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] == 1
    (one,) = questions(addresses, 100_000)
    lines = {*range(1, addresses.count + 1)} - addresses.rules
    assert all(addresses.shown(n) in one.text for n in lines)


def test_rows_of_large_tables_are_shown_where_a_sentence_tells_their_numbers():
    rows = "\n".join(f"| {s} | {s * s / 7:.4f} |" for s in range(1, 400))
    text = f"| step | loss |\n|---|---|\n{rows}\n\n# End\n\nAt step 20 it is {400 / 7:.4f}.\n"
    asked = questions(Addresses(page_of(text)), ROOM)
    assert f"22 | A: 20 | B: {400 / 7:.4f}" in asked[-1].text
    assert "1 | A: step | B: loss" in asked[-1].text
    assert all(one.tokens < ROOM for one in asked)


def test_a_sentence_is_never_cut():
    text = "\n".join(
        ["# A", "", *[f"It was {n}.5 and then went on" for n in range(120)], "to its end."]
    )
    spans = [
        [*map(int, re.findall(r"\d+", one.text.splitlines()[-1]))]
        for one in questions(Addresses(page_of(text)), 3000)
    ]
    assert [3, 123] in spans or any(first <= 3 and last == 123 for first, last in spans)


def test_the_brief_is_in_the_language_of_the_report():
    (zh,) = questions(Addresses(page_of("验证集奖励为 1.5。\n")), ROOM)
    (en,) = questions(Addresses(page_of("The reward is 1.5.\n")), ROOM)
    assert zh.text.startswith("你协助核对")
    assert en.text.startswith("You help to check")


# --- answers


BOTH = [{"at": "B1", "formula": "C1"}, {"at": "B2", "formula": "C2"}]


@pytest.mark.parametrize(
    "answer",
    [
        '{"claims": [{"at": "B1", "formula": "C1"}, {"at": "B2", "formula": "C2"}]}',
        f"```json\n{json.dumps({'claims': BOTH}, indent=1)}\n```",
        '[{"at": "B1", "formula": "C1"},\n{"at": "B2", "formula": "C2"}]',
        '{"claims": [{"at": "B1", "formula": "C1"}, {"at": "B2", "formula": "C2"}, ',
        '<think>{"at": "B9", "formula": "C1"}</think>' + "".join(map(json.dumps, BOTH)),
    ],
)
def test_claims_are_read_however_they_are_wrapped(answer):
    claims = [one for one in claims_in(answer) if isinstance(one, Claim)]
    assert [(one.at, one.formula) for one in claims] == [("B1", "C1"), ("B2", "C2")]
    assert not [one for one in claims_in(answer) if one not in claims]


PARTS = [
    '{"claims": [',
    "{",
    "}",
    "]",
    '"at": "',
    "B3",
    ":",
    "B5",
    "n99999999.1",
    '", ',
    '"line": 3, ',
]
PARTS += ['"words": "', '"formula": "', "rises(", ")", "1e999", "最高", "\n", "null", "[", "٣", "²"]


@given(st.lists(st.sampled_from(PARTS), max_size=25).map("".join))
@settings(max_examples=300, deadline=None)
def test_whatever_is_answered_is_read_or_counted(answer):
    page = page_of("| a | b |\n|---|---|\n| 1 | 2 |\n| 2 | 3 |\n\n甲为 3，乙为 2。\n")
    found = interpreted(page, lambda asked: [answer for _ in asked])
    assert found.sentences == 1
    assert found.judged or found.unread or not re.search(r"\w", answer.replace("claims", ""))


def test_a_range_without_an_end_is_no_claim_and_takes_no_time():
    page = page_of("It is 3 and 4.\n")
    told = '{"at": "n1.1:n9999999.1", "formula": "n1.1:n1.9999"}\n{"at": "x:y", "formula": "B1"}'
    found = interpreted(page, lambda asked: [told for _ in asked])
    assert not found.judged
    assert {one.trouble for one in found.unread} == {"no-number", "no-claim"}


def test_why_a_claim_cannot_be_checked_is_told(tmp_path):
    (tmp_path / "r.md").write_text("It is 3 and 4. Then 5.\n")
    (tmp_path / "a.jsonl").touch()
    run(tmp_path / "r.md", "--interpreter", str(tmp_path / "a.jsonl"))
    (line,) = map(json.loads, (tmp_path / "a.jsonl").read_text().splitlines())
    line["answer"] = (
        '{"at": "n1.1", "formula": "magic(n1.2)"}\nSure!\n{"at": "n1.2", "formula": "n1.2"}'
    )
    (tmp_path / "a.jsonl").write_text(json.dumps(line) + "\n")
    told = run(tmp_path / "r.md", "--interpreter", str(tmp_path / "a.jsonl"), "--all").output
    assert "Of 2 sentences with numbers 0 became formulas" in told
    for why in ("a formula that cannot", "a line that is no JSON", "no number of the report"):
        assert f"1 × {why}" in told
    assert "3 · magic(n1.2) cannot be worked out: no function magic" in told


# --- servers


def test_a_server_that_refuses_the_schema_is_asked_without_it(tmp_path):
    (tmp_path / "r.md").write_text(long_report())
    with serving(lambda body: (400, "") if "response_format" in body else (200, "[]")) as server:
        told = run(tmp_path / "r.md", *flags(server))
    assert told.exit_code == 0, told.output
    plain = [body for body in server.asked if "response_format" not in body]
    assert {body["messages"][0]["content"] for body in server.asked} == {
        body["messages"][0]["content"] for body in plain
    }
    assert all(body["max_tokens"] >= 512 for body in server.asked)


@pytest.mark.parametrize("text", [long_report(2), STYLES["sweep"](0)])
def test_a_question_and_its_answer_fit_a_small_context(tmp_path, text):
    (tmp_path / "r.md").write_text(text)
    refused = run(tmp_path / "r.md", "--context", "1500", "--answers", str(tmp_path / "a"))
    least = re.search(r"give (\d+) or more", str(refused.exception))[1]
    with serving(lambda body: (200, "[]")) as server:
        run(tmp_path / "r.md", *flags(server, "--context", least))
    for body in server.asked:
        asked = body["messages"][0]["content"]
        assert tokens_in(asked) + body["max_tokens"] <= int(least), asked[-200:]
        assert body["max_tokens"] >= 128


def test_a_changed_line_asks_only_its_batch_again(tmp_path):
    report = tmp_path / "r.md"
    report.write_text(long_report())
    with serving(lambda body: (200, '{"claims": []}')) as server:
        first = run(report, *flags(server, "--context", str(ROOM)))
        count = len(server.asked)
        assert count > 2
        assert f"{count} 个问题" in first.output
        run(report, *flags(server, "--context", str(ROOM)))
        assert len(server.asked) == count
        lines = long_report().splitlines()
        lines[-1] = lines[-1].replace("略高于", "略低于", 1)
        report.write_text("\n".join(lines) + "\n")
        again = run(report, *flags(server, "--context", str(ROOM)))
        assert len(server.asked) == count + 1
        assert f"另有 {count - 1} 个已有回答" in again.output
    kept = [json.loads(one) for one in (tmp_path / "r.md.answers.jsonl").read_text().splitlines()]
    assert {one["model"] for one in kept} == {"m"}
    assert {one["brief"][:3] for one in kept} == {"zh-"}


def test_another_model_is_asked_itself(tmp_path):
    (tmp_path / "r.md").write_text("It is 3 and 4.\n")
    with serving(lambda body: (200, "[]")) as server:
        run(tmp_path / "r.md", *flags(server))
        run(tmp_path / "r.md", *flags(server)[:3], "other")
        run(tmp_path / "r.md", *flags(server))
    assert [body["model"] for body in server.asked] == ["m", "other"]


def test_one_question_that_fails_for_good_takes_no_other_with_it(tmp_path):
    (tmp_path / "r.md").write_text(long_report())
    with serving(
        lambda body: (413, "") if "第 1 行" in body["messages"][0]["content"] else (200, "[]")
    ) as server:
        told = run(tmp_path / "r.md", *flags(server, "--context", str(ROOM)))
    assert told.exit_code == 0, told.output
    assert "1 × 问题没有得到回答" in told.output


def test_much_is_not_asked_without_a_yes(tmp_path, monkeypatch):
    (tmp_path / "r.md").write_text("It is 3 and 4.\n")
    verb = sys.modules["kleash.cli.check"]
    monkeypatch.setattr(verb, "MANY_TOKENS", 10)
    monkeypatch.setattr(verb, "is_terminal", lambda: True)
    with serving(lambda body: (200, "[]")) as server:
        told = CliRunner().invoke(
            app, ["check", str(tmp_path / "r.md"), *flags(server)], input="n\n"
        )
        assert "Go on?" in told.output
        assert told.exit_code == 1
        assert not server.asked


# --- small models


def nonsense():
    """A tiny random model's words: letters, digits and signs, as it draws them."""
    torch = pytest.importorskip("torch")
    from kleash.models.language.models import fresh

    letters = [
        *'{}[]":,. \nABCn0123456789+-*/()',
        '"at"',
        '"formula"',
        '"line"',
        '"words"',
        "claims",
    ]
    model = fresh(len(letters), torch.Generator().manual_seed(0), width=16, heads=2, inner=32)
    draw = torch.Generator().manual_seed(1)

    def says(body):
        ids = torch.tensor([[len(body["messages"][0]["content"]) % len(letters)]])
        with torch.no_grad():
            for _ in range(60):
                odds = model(input_ids=ids).logits[0, -1].softmax(-1)
                ids = torch.cat([ids, torch.multinomial(odds, 1, generator=draw)[None]], dim=1)
        return 200, "".join(letters[one] for one in ids[0, 1:])

    return says


def test_a_small_model_that_answers_nonsense_is_survived_and_told(tmp_path):
    report = tmp_path / "r.md"
    report.write_text(STYLES["sweep"](0))
    alone = run(report)
    with serving(nonsense()) as server:
        told = run(report, *flags(server))
    assert told.exit_code == alone.exit_code == 0, told.output
    assert server.asked
    assert "sentences with numbers 0 became formulas" in told.output
    assert "Not understood in its answers: " in told.output
    assert "A larger model may" in told.output
    assert told.output.splitlines()[-1] == alone.output.splitlines()[-1]


@pytest.mark.slow
@pytest.mark.skipif("KLEASH_SMOLLM2" not in os.environ, reason="no GGUF file of SmolLM2 is named")
def test_smollm2_is_survived_and_told(tmp_path):
    import torch

    from kleash.models.language.chat import load_chat, load_tokenizer
    from kleash.models.language.models import load

    path = os.environ["KLEASH_SMOLLM2"]
    model, chat, tokenizer = load(path), load_chat(path), load_tokenizer(path)

    def says(body):
        heard = torch.tensor([chat.opening("", [], body["messages"][0]["content"])])
        with torch.no_grad():
            whole = model.generate(heard, max_new_tokens=100, do_sample=False)
        return 200, tokenizer.decode(whole[0, heard.shape[1] :], skip_special_tokens=True)

    report = tmp_path / "r.md"
    report.write_text(STYLES["sweep"](0))
    with serving(says) as server:
        told = run(report, *flags(server))
    assert told.exit_code in (0, 1), told.output
    assert re.search(r"[Oo]f \d+ sentences with numbers \d+ became formulas", told.output)
