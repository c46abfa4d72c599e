"""Right figures that were once taken for wrong: what each of them is of."""

from __future__ import annotations

from pathlib import Path

import pytest

from kleash.imports.markdown import document
from kleash.written.check import check
from kleash.written.page import read_page

BASELINE = """# 三个种子

| β | Seed 11 | Seed 22 | Seed 33 | 平均 |
|---|---|---|---|---|
| 0.03 | 58.3% | 58.0% | 57.2% | 57.83% |
| 0.08 | 58.5% | 59.3% | 59.2% | 59.00% |
| 随机选择 | - | - | - | 55.35% |
"""

SHARES = """# 成本

| 项目 | GPU 小时 | 占比 |
|---|---|---|
| 任务甲训练 | 57.6 | 11.1% |
| 任务乙训练 | 460.8 | 88.9% |
| 合计 | 518.4 | 100.0% |

- 任务乙训练（460.8 GPU 小时，占 88.9%）
"""

TITLED_BY_STEPS = """# Accuracy during training

| β | 100 | 200 | 300 | 400 | best step |
|---|---|---|---|---|---|
| β=0 | 0.689 | 0.725 | 0.717 | 0.699 | 200 |
| β=0.005 | 0.687 | 0.716 | 0.726 | 0.723 | 300 |
| β=0.01 | 0.685 | 0.712 | 0.720 | 0.732 | 400 |
| β=0.02 | 0.681 | 0.708 | 0.717 | 0.731 | 400 |

# KL

| step | β=0 | β=0.005 | β=0.01 | β=0.02 |
|---|---|---|---|---|
| 100 | 0.030 | 0.027 | 0.024 | 0.020 |
| 200 | 0.082 | 0.061 | 0.047 | 0.035 |
| 300 | 0.161 | 0.100 | 0.073 | 0.051 |
| 400 | 0.264 | 0.148 | 0.100 | 0.068 |
"""


@pytest.mark.parametrize("text", [BASELINE, SHARES, TITLED_BY_STEPS])
def test_right_figures_are_not_marked(tmp_path: Path, text: str) -> None:
    path = tmp_path / "report.md"
    path.write_text(text)
    marks = check(document.drafted(path), read_page(path))
    bad = [mark for mark in marks if mark.state in ("wrong", "unsupported")]
    assert [mark for mark in bad if mark.code != "check.word"] == []
