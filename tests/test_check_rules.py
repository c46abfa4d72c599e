"""Each rule of `kleash check` on a small made table: where it speaks up, and where it must not."""

import pytest

from test_check import BAD, marks

ARMS = """# Four arms

## Results

| arm | accuracy (%) | KL | tokens | GPU-hours |
|---|---|---|---|---|
| free | 61.2 | 0.413 | 310.8 | 11.2 |
| loose | 63.5 | 0.242 | 288.4 | 12.6 |
| tight | 62.4 | 0.091 | 255.1 | 12.5 |
| frozen | 58.9 | 0.012 | 221.5 | 12.4 |
| total | – | – | – | 48.7 |

{}
"""
STEPS = """# Two arms

| update | A | B | B − A |
|---|---|---|---|
| 40 | 0.603 | 0.824 | 0.221 |
| 80 | 0.762 | 1.093 | 0.331 |
| 120 | 0.884 | 1.241 | 0.357 |
| 160 | 0.979 | 1.302 | 0.323 |
| 200 | 1.051 | 1.288 | 0.237 |
| 240 | 1.106 | 1.229 | 0.123 |

{}
"""
POINTS = """# Erfolg

| step | A | B | B − A (points) | B / A |
|---|---|---|---|---|
| 10 | 38.8% | 37.1% | -1.7 ↓ | 0.96 |
| 20 | 44.7% | 41.9% | -2.8 ↓ | 0.94 |
| 30 | 50.3% | 54.9% | +4.6 ↑ | 1.09 |
| 40 | 54.1% | 59.6% | +5.5 ↑ | 1.10 |

{}
"""
SPANS = """# Intervals

| arm | success | calls |
|---|---|---|
| cold | 0.651 [0.630, 0.672] | 14.6 |
| warm | 0.684 [0.665, 0.703] | 13.9 |

{}
"""
CHINESE = """# 三种系数

## 结果

| 系数 | 成功率 | 步数 | 无效率 |
|---|---|---|---|
| SFT | 37.9% | 14.2 | 6.3% |
| KL=0.01 | 46.6% | 12.6 | 3.8% |
| KL=0.05 | 42.2% | 13.1 | 4.4% |

{}
"""

# A text, a sentence that is right, and the same with something wrong in it.
SENTENCES = [
    (ARMS, "loose is best with 63.5%.", "loose is best with 65.3%."),
    (ARMS, "It is 2.3 points above free.", "It is 3.4 points above free."),
    (ARMS, "Second is tight (62.4%), 1.1 points behind loose.", None),
    (
        ARMS,
        "Second is tight (62.4%), 1.1 points behind loose.",
        "Second is tight (62.4%), 1.7 points behind loose.",
    ),
    (ARMS, "free is 4.5 times as far away as tight.", "free is 5.4 times as far away as tight."),
    (
        ARMS,
        "free writes 89.3 tokens more than frozen (310.8 vs 221.5).",
        "free writes 98.3 tokens more than frozen (310.8 vs 221.5).",
    ),
    (ARMS, "On average accuracy is 61.5%.", "On average accuracy is 64.9%."),
    (ARMS, "Highest is loose (63.5), then tight (62.4).", "Highest is loose (62.4), then tight."),
    (ARMS, "All four cost 48.7 GPU-hours.", "All four cost 47.8 GPU-hours."),
    (ARMS, "Eight GPUs were used at 1.41 GHz, a price of 2.15 each.", None),
    (ARMS, "- clip range 0.25, entropy bonus 0.0035", None),
    (STEPS, "B peaks at update 160 with 1.302.", "B peaks at update 120 with 1.302."),
    (STEPS, "Use the checkpoint of update 160 for B.", "Use the checkpoint of update 80 for B."),
    (
        STEPS,
        "A is best at update 240, B at update 160.",
        "A is best at update 240, B at update 200.",
    ),
    (STEPS, "B has lost 0.073 by update 240.", "B has lost 0.097 by update 240."),
    (STEPS, "From update 40 until its peak B gains 0.478.", None),
    (STEPS, "At update 80 A has 0.762 and B 1.093.", None),
    (STEPS, "At update 160 B (1.302) leads A (0.979).", "At update 160 B (0.979) leads A (1.302)."),
    (SPANS, "warm gains 0.033 over cold.", "warm gains 0.053 over cold."),
    (SPANS, "Its interval is [0.665, 0.703].", None),
    (CHINESE, "KL=0.01 比 SFT 高 8.7 个百分点。", "KL=0.01 比 SFT 高 7.9 个百分点。"),
    (
        CHINESE,
        "无效率从 6.3% 降到 3.8%，降了 2.5 个百分点。",
        "无效率从 6.3% 降到 3.8%，降了 3.5 个百分点。",
    ),
    (CHINESE, "18 个里做成 13 个（72.2%），KL=0.01 平均 12.6 步。", None),
    (CHINESE, "如果只训一轮，KL=0.01 更划算（46.6%）。", "如果只训一轮，KL=0.01 更稳定（46.6%）。"),
]


def bad(tmp_path, text):
    return [(m.line, m.code, m.text) for m in marks(tmp_path / "r.md", text) if m.state in BAD]


def marked_if_wrong(tmp_path, text, right, wrong):
    """The right sentence is left alone, the wrong one, if there is one, marked at its line."""
    assert bad(tmp_path, text.format(right)) == []
    if wrong is not None:
        lines = text.format(wrong).split("\n")
        assert lines.index(wrong) + 1 in {line for line, _, _ in bad(tmp_path, text.format(wrong))}


@pytest.mark.parametrize(("text", "right", "wrong"), SENTENCES, ids=range(len(SENTENCES)))
def test_a_sentence_is_marked_only_if_it_is_wrong(tmp_path, text, right, wrong):
    marked_if_wrong(tmp_path, text, right, wrong)


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        (ARMS, "| total | – | – | – | 48.7 |", "| total | – | – | – | 47.8 |"),
        (STEPS, "| 120 | 0.884 | 1.241 | 0.357 |", "| 120 | 0.884 | 1.241 | 0.375 |"),
        (STEPS, "| 120 | 0.884 | 1.241 | 0.357 |", "| 120 | 1.241 | 0.884 | 0.357 |"),
        (POINTS, "-2.8 ↓", "-3.8 ↓"),
        (POINTS, "| 0.94 |", "| 0.97 |"),
        (POINTS, "| 38.8% | 37.1% |", "| 37.1% | 38.8% |"),
    ],
)
def test_a_title_that_says_how_its_column_is_made_is_taken_at_its_word(tmp_path, text, old, new):
    whole = text.format("")
    assert bad(tmp_path, whole) == []
    found = bad(tmp_path, whole.replace(old, new))
    assert whole.replace(old, new).split("\n").index(
        next(line for line in whole.replace(old, new).split("\n") if new in line)
    ) + 1 in {line for line, _, _ in found}


TWINS = """# Two epochs

## Epoch {epoch}

| items | 1-shot | 2-shot | 3-shot | 4-shot |
|---|---|---|---|---|
| 100 | {first} | 63.8% | 60.8% | 61.8% |
| 200 | 58.8% | 56.6% | 53.9% | {last} |
| 400 | 54.1% | 51.6% | 50.5% | 50.9% |
"""


def twins(first, last="55.2%"):
    one = TWINS.format(epoch=1, first="64.2%", last="55.2%")
    return one + TWINS.format(epoch=2, first=first, last=last).removeprefix("# Two epochs\n")


def test_of_twin_tables_a_digit_that_differs_is_a_slip_but_not_a_last_one(tmp_path):
    assert "check.twin" not in {code for _, code, _ in bad(tmp_path, twins("64.7%"))}
    found = [text for _, code, text in bad(tmp_path, twins("34.2%")) if code == "check.twin"]
    assert found == ["34.2%"]


ORDER = """# A course

| step | KL | entropy |
|---|---|---|
| 0 | 0.011 | 0.684 |
| 30 | 0.024 | 0.622 |
| 60 | {} |
| 90 | 0.054 | 0.552 |
| 120 | 0.063 | 0.537 |
"""


def test_two_numbers_in_each_others_column_break_the_order_of_both(tmp_path):
    assert bad(tmp_path, ORDER.format("0.042 | 0.580")) == []
    found = bad(tmp_path, ORDER.format("0.580 | 0.042"))
    assert {(line, code) for line, code, _ in found} == {(7, "check.exchanged")}
    assert bad(tmp_path, ORDER.format("0.070 | 0.580")) == []  # a bump is no exchange


def test_a_log_knows_a_column_by_its_numbers_whatever_it_is_called(tmp_path):
    log = tmp_path / "run-7" / "metrics.jsonl"
    log.parent.mkdir()
    values = {40: 0.6031, 80: 0.7622, 120: 0.8838, 160: 0.9791, 200: 1.0512, 240: 1.1058}
    log.write_text("\n".join(f'{{"step": {at}, "gold": {one}}}' for at, one in values.items()))
    text = STEPS.format("")
    fine = marks(tmp_path / "r.md", text, [tmp_path / "run-7"])
    assert sum(mark.code == "check.log" for mark in fine) == len(values)
    assert not [mark for mark in fine if mark.state in BAD]
    # A swap in a row that the difference does not show, and another last digit.
    typed = text.replace("| 120 | 0.884 | 1.241 | 0.357 |", "| 120 | 0.848 | 1.205 | 0.357 |")
    found = marks(tmp_path / "r.md", typed, [tmp_path / "run-7"])
    wrong = [(mark.text, mark.facts["value"]) for mark in found if mark.code == "check.not-log"]
    assert wrong == [("0.848", "0.884")]
