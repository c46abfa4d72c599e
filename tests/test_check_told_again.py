"""Lines of tables told again: in a sentence, a list of steps, a second table; factors in titles."""

from __future__ import annotations

from pathlib import Path

import pytest

from kleash.imports.markdown import document
from kleash.written.check import check
from kleash.written.page import read_page

SHOTS = """# 推理结果

## KL_BETA=0.08

| 样本数 | Shot 1 | Shot 2 | Shot 3 | Shot 4 | 平均 |
|---|---|---|---|---|---|
| 100 | 65.3% | 60.9% | 60.4% | 61.2% | 61.95% |
| 250 | 60.4% | 58.1% | 58.4% | 57.6% | 58.63% |
| 500 | 58.3% | {row} |
| 1000 | 56.7% | 55.6% | 54.8% | 55.7% | 55.70% |

## KL_BETA=0.24

| 样本数 | Shot 1 | Shot 2 | Shot 3 | Shot 4 | 平均 |
|---|---|---|---|---|---|
| 100 | 64.2% | 62.1% | 57.3% | 59.6% | 60.80% |
| 250 | 59.6% | 59.2% | 58.4% | 58.8% | 59.00% |
| 500 | 57.1% | 57.9% | 55.8% | 56.4% | 56.80% |
| 1000 | 56.2% | 55.4% | 54.1% | 53.9% | 54.90% |

- Shot 2 在四种样本规模下为 {said}
"""
ROW, SAID = "57.0% | 56.6% | 56.5% | 57.10%", "62.1% / 59.2% / 57.9% / 55.4%"

LIST = """# 曲线

| Step | Reward | 完成数 |
|---|---|---|
| 10 | 1.120 | 58 |
| 20 | 1.315 | 67 |
| 30 | 1.235 | 64 |
| 40 | 1.445 | 76 |
| 50 | 1.572 | 80 |

```
Step 10: 1.120 (起点)
Step 20: 1.315
Step 30: {}
Step 40: 1.445
Step 50: 1.572
```
"""

COUNTS = """# 稳定性

| 指标 | 无约束 | 有约束 |
|---|---|---|
| 最大波动 | 24.6% | 10.7% |
| 下降次数 | 4 / 9 | 1 / 9 |

- {}
"""

TERMS = """# Losses

| Step | PG loss | KL | 0.01 × KL | Entropy |
|---|---|---|---|---|
| 1 | 0.198 | 0.011 | 0.00011 | 0.416 |
| 40 | 0.174 | 0.112 | 0.00112 | 0.387 |
| 80 | 0.159 | 0.174 | 0.00174 | 0.362 |
| 120 | 0.135 | {} |
| 160 | 0.094 | 0.332 | 0.00332 | 0.309 |
| 240 | 0.085 | 0.385 | 0.00385 | 0.303 |
"""


def marked(tmp_path: Path, text: str) -> list[tuple[str, str]]:
    path = tmp_path / "report.md"
    path.write_text(text)
    marks = check(document.drafted(path), read_page(path))
    bad = [mark for mark in marks if mark.state in ("wrong", "unsupported")]
    return [(mark.code, mark.text) for mark in bad if mark.code != "check.word"]


def test_a_column_that_a_sentence_recites_is_the_same_from_top_to_bottom(tmp_path: Path) -> None:
    assert marked(tmp_path, SHOTS.format(row=ROW, said=SAID)) == []
    false = SHOTS.format(row=ROW, said="57.3% / 59.2% / 57.9% / 55.4%")
    assert marked(tmp_path, false) == [("check.twin", "62.1%"), ("check.twin", "57.3")]


def test_a_row_of_another_table_of_its_form_is_a_copy(tmp_path: Path) -> None:
    copy = "58.3% | 57.9% | 55.8% | 56.4% | 56.80%"
    text = SHOTS.replace("| 58.3% | {row}", "| {row}")
    assert marked(tmp_path, text.format(row=f"58.3% | {ROW}", said=SAID)) == []
    false = text.format(row=copy.replace("58.3%", "57.1%"), said=SAID)
    assert marked(tmp_path, false) == [("check.copied", "500")] * 2


def test_a_list_of_steps_has_the_numbers_of_its_column(tmp_path: Path) -> None:
    assert marked(tmp_path, LIST.format("1.235 (小幅回落)")) == []
    assert ("check.twin", "1.253") in marked(tmp_path, LIST.format("1.253 (小幅回落)"))


@pytest.mark.parametrize(
    ("said", "odd"),
    [
        ("最大波动 10.7% vs 24.6%，下降次数 1 vs 4", []),
        ("最大波动 10.7% vs 24.6%，下降次数 2 vs 4", [("check.slip", "2")]),
    ],
)
def test_two_numbers_beside_the_name_of_a_row_stand_in_it(
    tmp_path: Path, said: str, odd: list[tuple[str, str]]
) -> None:
    assert marked(tmp_path, COUNTS.format(said)) == odd


def test_a_factor_below_one_that_a_title_writes_out_holds(tmp_path: Path) -> None:
    assert marked(tmp_path, TERMS.format("0.277 | 0.00277 | 0.327")) == []
    assert marked(tmp_path, TERMS.format("0.327 | 0.00277 | 0.277"))
