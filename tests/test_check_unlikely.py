"""Tables in which something nearly holds that nobody meant: nothing of them is marked."""

import pytest

from kleash.imports.markdown.document import draft_of
from kleash.written.grids import grids
from kleash.written.made.rounded import Relation
from kleash.written.patterns import patterns
from kleash.written.unlikely import likely
from test_check_filed import by_records
from test_check_slips import bad, page

RIGHT = {
    "ranks that gains happen to round to": """
| β | GSM8K | MATH | AMC |
|---|---|---|---|
| 0 | +3.21 | +3.11 | +2.57 |
| 0.005 | +1.85 | +1.00 | +1.78 |
| 0.02 | +1.26 | +2.12 | +1.40 |
| 0.08 | +3.66 | +3.87 | +3.70 |

| β | GSM8K | MATH | AMC |
|---|---|---|---|
| 0 | 3 | 3 | 4 |
| 0.005 | 2 | 1 | 2 |
| 0.02 | 1 | 2 | 1 |
| 0.08 | 4 | 4 | 3 |
""",
    "means of equal numbers": """
| 指标 | A | B | C | D | E |
|---|---|---|---|---|---|
| 吞吐 (tok/s/GPU) | 799 | 745 | 742 | 744 | 594 |
| 　相对 A | 1.00× | 0.93× | 0.93× | 0.93× | 0.74× |
| 总 token | 272.4M | 260.5M | 260.1M | 260.4M | 206.8M |
| 峰值显存 (GiB) | 58.3 | 61.7 | 61.7 | 61.4 | 72.3 |
| 　距 80 GiB 余量 | 21.7 | 18.3 | 18.3 | 18.6 | 7.7 |
| MFU (actor) 中位数 | 31.7% | 31.9% | 31.9% | 31.8% | 31.8% |
| step P50 / P95 (s) | 213 / 229 | 219 / 227 | 219 / 228 | 219 / 228 | 272 / 280 |
""",
    "counts that nearly add up": """
| arm | electronics | clothing | groceries | furniture | gifts | all |
|---|---|---|---|---|---|---|
| `kl0` | 2 (1.7) | 2 (1.3) | 1 (1.1) | 1 (1.5) | 1 (1.3) | 7 (1.4) |
| `kl1e-3` | 76 (63.3) | 97 (64.7) | 63 (70.0) | 35 (53.8) | 31 (41.3) | 302 (60.4) |
| `kl3e-3` | 75 (62.5) | 102 (68.0) | 66 (73.3) | 33 (50.8) | 30 (40.0) | 306 (61.2) |
| `kl1e-2` | 63 (52.5) | 90 (60.0) | 62 (68.9) | 28 (43.1) | 22 (29.3) | 265 (53.0) |
| `kl5e-2` | 50 (41.7) | 69 (46.0) | 50 (55.6) | 20 (30.8) | 12 (16.0) | 201 (40.2) |
""",
    "seconds and percentages": """
| 臂 | β=0 | β=0.02 | β=0.05 | β=0.10 | β=0.20 |
|---|---|---|---|---|---|
| 4 个 epoch 合计 (s) | 18964 | 20855 | 20666 | 21058 | 20810 |
| 墙钟 (h) | 5.27 | 5.79 | 5.74 | 5.85 | 5.78 |
| GPU 小时 | 21.07 | 23.17 | 22.96 | 23.40 | 23.12 |
| 相对 β=0 | — | +10.0% | +9.0% | +11.0% | +9.7% |
| 训到最佳 epoch (s) | 9434 | 15738 | 15451 | 21058 | 20810 |
| 每步参考模型前向 (s) | 0.00 | 1.87 | 1.91 | 1.88 | 1.90 |
""",
    "one quantity at several steps": """
| β |  | step 10 | step 50 | step 100 | step 200 | step 350 | step 500 |
|---|---|---|---|---|---|---|---|
| 0.005 | KL | 0.0115 | 0.0543 | 0.0900 | 0.1380 | 0.1719 | 0.1960 |
|  | β·KL | 5.8e-5 | 2.7e-4 | 4.5e-4 | 6.9e-4 | 8.6e-4 | 9.8e-4 |
| 0.02 | KL | 0.0052 | 0.0231 | 0.0425 | 0.0636 | 0.0808 | 0.0951 |
|  | β·KL | 1.0e-4 | 4.6e-4 | 8.5e-4 | 1.3e-3 | 1.6e-3 | 1.9e-3 |
| 0.08 | KL | 0.0021 | 0.0098 | 0.0170 | 0.0271 | 0.0343 | 0.0392 |
|  | β·KL | 1.7e-4 | 7.8e-4 | 1.4e-3 | 2.2e-3 | 2.7e-3 | 3.1e-3 |
""",
    "what was rounded on the way": """
| 臂 | 平均 gen (s) | 平均 step (s) | 总时长 (h) | GPU·h (×8) |
|---|---|---|---|---|
| N0 | 138.3 | 199.3 | 13.29 | 106.32 |
| K1 | 102.8 | 177.0 | 11.80 | 94.40 |
| K5 | 100.3 | 174.2 | 11.61 | 92.88 |
| K5e | 101.6 | 176.6 | 11.78 | 94.24 |
| K20 | 97.1 | 170.7 | 11.38 | 91.04 |
""",
    "the median of all, and hours with minutes": """
| status | jobs | GPU-h | share | cost | median queue (min) | total queue |
|---|---|---|---|---|---|---|
| finished | 8 | 366.8 | 97.4% | $1,058 | 35 | 11 h 17 min |
| failed | 2 | 9.7 | 2.6% | $28 | 113 | 3 h 46 min |
| **all** | 10 | 376.5 | 100.0% | $1,086 | 36.5 | 15 h 03 min |
""",
    "settings in two pairs of columns": """
| 项 | 值 | 项 | 值 |
|---|---|---|---|
| 推理 VLM | Qwen2.5-VL-3B-Instruct | 候选池大小 | 64 |
| RL 查询数 | 800 | batch size | 4 |
| 每 epoch 步数 | 200 | epochs | 3 |
| 峰值 LR | 5e-6 | warmup 步数 | 60 |
| 组大小 G | 8 | clip ε | 0.2 |
| 可训练参数 | 11.53M / 23.07M（50.0%） | seed | 42 |
""",
    "K5 and K5e, and the best steps of other seeds": """
| Step | N0 | K1 | K5 | K5e | K20 |
|---|---|---|---|---|---|
| 120 | 0.6612 | 0.6201 | 0.6102 | 0.6022 | 0.5201 |
| 140 | 0.6663 | 0.6391 | 0.6307 | 0.6203 | 0.5307 |
| 160 | 0.5021 | 0.6502 | 0.6411 | 0.6391 | 0.5402 |
| 180 | 0.3377 | 0.6661 | 0.6502 | 0.6410 | 0.5504 |
| 200 | 0.2521 | 0.6520 | 0.6611 | 0.6551 | 0.5533 |
| 220 | 0.2022 | 0.6411 | 0.6713 | 0.6466 | 0.5602 |
| 240 | 0.1836 | 0.6380 | 0.6648 | 0.6420 | 0.5619 |

| 臂 | 峰值 | 峰值 step | 终点 (240) |
|---|---|---|---|
| N0 | 0.6663 | 140 | 0.1836 |
| K1 | 0.6661 | 180 | 0.6380 |
| K5 | 0.6713 | 220 | 0.6648 |
| K5e | 0.6551 | 200 | 0.6420 |
| K20 | 0.5619 | 240 | 0.5619 |

| 臂 | 种子1 峰值 (step) | 种子2 峰值 (step) | 种子3 峰值 (step) |
|---|---|---|---|
| N0 | 0.6663 (140) | 0.6377 (120) | 0.7031 (140) |
| K1 | 0.6661 (180) | 0.6579 (180) | 0.6474 (160) |
| K5 | 0.6713 (220) | 0.6645 (240) | 0.6754 (220) |
| K20 | 0.5619 (240) | 0.5652 (200) | 0.5547 (240) |

| 臂 | 平均 gen (s) | 平均 step (s) |
|---|---|---|
| N0 | 138.3 | 199.3 |
| K1 | 102.8 | 177.0 |
| K5 | 100.3 | 174.2 |
| K20 | 97.1 | 170.7 |
""",
    "a first step of its own": """
| step | `kl1e-3` | `kl3e-3` | `kl5e-2` | `kl1e-3` / `kl5e-2` |
|---|---|---|---|---|
| 10 | 0.0313 | 0.0159 | 0.0017 | 18.4 |
| 40 | 0.0981 | 0.0518 | 0.0054 | 18.2 |
| 80 | 0.1619 | 0.0780 | 0.0086 | 18.8 |
| 120 | 0.1917 | 0.0991 | 0.0104 | 18.4 |
| 160 | 0.2069 | 0.1049 | 0.0114 | 18.1 |
| 200 | 0.2042 | 0.1121 | 0.0120 | 17.0 |
""",
}  # fmt: skip


@pytest.mark.parametrize("text", RIGHT.values(), ids=RIGHT)
def test_what_nobody_meant_is_not_held_against_a_table(tmp_path, text):
    assert not bad(tmp_path, page(*text.strip().split("\n")))


def test_sums_that_are_meant_are_still_held(tmp_path):
    rows = RIGHT["counts that nearly add up"].strip().split("\n")
    wrong = [row.replace("306 (61.2)", "316 (61.2)") for row in rows]
    assert bad(tmp_path, page(*wrong)) == {7}


@pytest.mark.parametrize(
    ("said", "wrong"),
    [
        ("无 KL 回落 0.213，是 KL 0.01 回落（0.103）的 2.07 倍。", "2.17"),
        ("终点的 KL 为 1.4349，是 B（0.0467）的 30.7 倍、C（0.0171）的 83.9 倍。", "32.7"),
        ("At the end 839 uses are 2.96 times the 283 under RCE.", "2.69"),
        ("物体识别的占比最高（66.6%），计数最低（39.7%），两者差 26.9 点。", "27.9"),
    ],
)
def test_a_gap_of_the_two_that_are_named_with_it(tmp_path, said, wrong):
    codes = ("check.not-share", "check.not-difference")
    assert not bad(tmp_path, page(f"- {said}"), *codes)
    number = {"2.17": "2.07", "32.7": "30.7", "2.69": "2.96", "27.9": "26.9"}[wrong]
    assert bad(tmp_path, page(f"- {said.replace(number, wrong)}"), *codes) == {3}


def differences_in(folder):
    rows = [
        ("avg", "0.005", "0", 6.4802), ("avg", "0.02", "0", 5.8519), ("avg", "0.08", "0", 0.8587),
        ("math500", "0.005", "0.02", 2.2), ("math500", "0.02", "0", 3.0),
        ("math500", "0.08", "0", -2.9333), ("gsm8k", "0.005", "0.02", -1.112),
        ("minerva", "0.005", "0.02", -1.2255), ("olympiad", "0.005", "0.02", 2.0741),
    ]  # fmt: skip
    folder.mkdir()
    lines = ["metric,arm_a,arm_b,diff", *(",".join(map(str, row)) for row in rows)]
    (folder / "ttests.csv").write_text("\n".join(lines) + "\n")
    shown = {"avg": "Average", "math500": "MATH-500", "gsm8k": "GSM8K", "minerva": "Minerva"}
    table = ["| No. | Metric | Comparison | Difference |", "|---|---|---|---|"]
    for nth, (metric, one, other, gap) in enumerate(rows, 1):
        name = shown.get(metric, "OlympiadBench")
        table.append(f"| {nth} | {name} | {one} vs {other} | {gap:+.2f} |")
    return folder, table


def test_labels_that_lead_to_one_record_do_not_tell_numbers_apart(tmp_path):
    logs, table = differences_in(tmp_path / "logs")
    right, wrong = by_records(tmp_path, page(*table), [logs])
    assert right >= 4
    assert not wrong


def test_hours_before_their_minutes_are_no_sum(tmp_path):
    nodes = ((5, "queue / all", 15.0), (3, "queue / a", 11.0), (4, "queue / b", 3.0))
    draft = draft_of("# Report", tmp_path / "r.md")
    assert not likely([Relation("sum", nodes, False, "15 h")], draft)
    assert likely([Relation("sum", nodes, False, "15")], draft)


def test_nothing_is_worked_out_in_a_table_with_the_same_columns_twice(tmp_path):
    nodes = ((5, "值 / warmup", 60.0), (5, "值 / pool", 64.0), (5, "值 / batch", 3.0))
    wrong = Relation("difference", nodes, False, "60")
    for header, kept in (("项 | 值 | 项 | 值", []), ("项 | 值 | 名 | 数", [wrong])):
        text = page(f"| {header} |", "|---|---|---|---|", "| a | 64 | b | 60 |")
        assert likely([wrong], draft_of(text, tmp_path / "r.md")) == kept, header


def test_a_deviation_is_none_that_no_title_speaks_of(tmp_path):
    table = (
        "| β | P5 | median | P95 | max | above | share |",
        "|---|---|---|---|---|---|---|",
        "| 0 | 0.112 | 0.201 | 0.377 | 0.513 | 2 | 1.0 |",
        "| 0.005 | 0.0791 | 0.139 | 0.276 | 0.552 | 1 | 0.4 |",
        "| 0.02 | 0.0794 | 0.145 | 0.277 | 0.443 | 0 | 0.0 |",
        "| 0.08 | 0.0781 | 0.150 | 0.297 | 0.436 | 0 | 0.0 |",
        "| seed 77 | 0.107 | 0.225 | 3.54 | 4.25 | 7 | 22.6 |",
    )
    draft = draft_of(page(*table), tmp_path / "r.md")
    assert "spread" not in {one.kind for one in patterns(grids(draft))}
