import random
import time
from pathlib import Path

import pytest

from kleash.compare.read import Derived, Number, Where, markdown, names
from kleash.compare.read import read as read_any
from kleash.compare.read.markdown.derived import allowed, follows
from kleash.compare.read.markdown.numbers import Place, arrows, places, reading
from kleash.errors import DataError
from pace import cpu_within, soon

FIXTURES = Path(__file__).parent / "fixtures/markdown"
SEEDS = sorted((Path(__file__).parents[2] / "shared/seeds").glob("*.txt"))
HERE = Where("x.md", 1)


def document(tmp_path, text, name="x.md"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return markdown.read(path)


def fixture(name):
    return markdown.read(FIXTURES / name)


def arm(source, name):
    return next(run for run in source.runs if run.arm == name)


def series(run, metric):
    """Steps and values of the first series of a metric."""
    found = next(one for one in run.series if one.metric == metric)
    return dict(zip(found.steps.tolist(), found.values.tolist(), strict=True))


def cell(run, **wanted):
    found = [
        one
        for one in run.cells
        if all(getattr(one, name) == value for name, value in wanted.items())
    ]
    assert len(found) == 1, found
    return found[0]


def derived_at(source, line, kind=None):
    return [
        one for one in source.derived if one.number.where.line == line and kind in (None, one.kind)
    ]


# --- numbers as printed


@pytest.mark.parametrize(
    ("text", "value", "decimals", "unit"),
    [
        ("57.0%", 0.57, 3, "%"),
        ("**50.55%**", 0.5055, 4, "%"),
        ("５７．０％", 0.57, 3, "%"),
        ("**2.123** ⭐", 2.123, 3, ""),
        ("-0.25% ⬇️", -0.0025, 4, "%"),
        ("+0.142 ⬆️", 0.142, 3, ""),
        ("−0.5", -0.5, 1, ""),
        ("-0.00000009", -9e-8, 8, ""),
        ("5e-6", 5e-6, 6, ""),
        ("3×10^-4", 3e-4, 4, ""),
        ("1,234.5", 1234.5, 1, ""),
        ("1.2k", 1200.0, -2, ""),
        ("3万", 30_000.0, -4, ""),
        ("485步", 485.0, 0, "步"),
        ("Step 45", 45.0, 0, "step"),
        ("第 3 轮", 3.0, 0, "epoch"),
        ("~~1.0~~ 2.0", 2.0, 1, ""),
        ("`0.10`", 0.1, 2, ""),
        ("<b>0.3</b>", 0.3, 1, ""),
        ("1.750 (-4.4%) ⚠️ 大幅下降", 1.75, 3, ""),
    ],
)
def test_a_number_keeps_its_printed_decimals_and_unit(text, value, decimals, unit):
    number = reading(text, HERE).number
    assert (number.value, number.decimals, number.unit) == (value, decimals, unit)
    assert number.state == "known"


@pytest.mark.parametrize(
    "text",
    ["?", "？", "**?**", "-", "—", "", "待填充", "待评估", "TBD", "n/a", "NaN", "?%", "? (待测)"],
)
def test_missing_is_missing_and_never_0(text):
    number = reading(text, HERE).number
    assert (number.value, number.state) == (None, "missing")


@pytest.mark.parametrize(
    "text", ["~1.85 (估计)", "1.85 (est.)", "估计1.85", "~1.85", "1.85 (estimated)"]
)
def test_an_estimate_is_marked(text):
    number = reading(text, HERE).number
    assert (number.value, number.state, number.decimals) == (1.85, "estimated", 2)


def test_about_is_not_an_estimate_where_a_quantity_is_given_roughly():
    number = reading("~59,839 tokens", HERE).number
    assert (number.value, number.state, number.unit, number.about) == (
        59839,
        "known",
        "tokens",
        True,
    )


@pytest.mark.parametrize(
    ("text", "low", "high", "unit"),
    [
        ("~193-205s", 193, 205, "s"),
        ("0.306-0.340", 0.306, 0.340, ""),
        ("~262–297 tokens/s", 262, 297, "tokens/s"),
        ("50～60%", 0.5, 0.6, "%"),
    ],
)
def test_a_range_has_two_ends_and_no_middle(text, low, high, unit):
    number = reading(text, HERE).number
    assert (number.value, number.low, number.high, number.unit) == (None, low, high, unit)


def test_brackets_hold_a_place_a_change_or_a_bare_number():
    assert reading("7.972695 (Epoch 47)", HERE).place == Place(epoch=47)
    assert reading("-0.28% (200样本)", HERE).place == Place(items=200)
    read = reading("-0.079 (-3.6%)", HERE)
    assert (read.number.value, read.change.value, read.unsigned) == (-0.079, -0.036, False)
    assert reading("1.768 (下降11.2%)", HERE).change.value == -0.112
    assert reading("-0.079 (约3.6%)", HERE).unsigned
    assert reading("45 (2.202)", HERE).inner.value == 2.202
    assert reading("1.5 ± 0.2", HERE).number.value == 1.5


@pytest.mark.parametrize(
    "text",
    ["基准 ✅", "Shot 1 全场景", "12/15", "2025-12-01", "Qwen3-8B", "1e999", "1.695 vs 1.818",
     "⭐⭐⭐", "a1"],
)  # fmt: skip
def test_what_is_not_wholly_a_number_is_words(text):
    assert reading(text, HERE).number is None


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("Epoch 1 推理结果（200样本）", Place(epoch=1, items=200)),
        ("之前Group8 8B (Step 5)", Place(step=5)),
        ("新实验KL版本（Step 1-45）", Place(span=(1, 45))),
        ("5-shot", Place(shots=5)),
        ("第 3 轮", Place(epoch=3)),
        ("epoch 1, GPU 0, 1,000 samples", Place(epoch=1, items=1000)),
        ("GRPO epoch 1, 2, 3", Place()),
        ("Step 40 vs Step 45", Place()),
        ("footstep 3", Place()),
    ],
)
def test_a_label_names_a_place_only_if_it_names_one(text, place):
    assert places(text)[0] == place


def test_arrows_are_a_course():
    found = arrows("0.003 → 0.084 (Step 40)，0.114 (Step 45)", HERE)
    assert [one.number.value for one in found] == [0.003, 0.084, 0.114]
    assert [one.place.step for one in found] == [None, 40, 45]
    assert arrows("稳步上升 → 0.3", HERE) == []


# --- derived numbers


def number(value, decimals):
    return Number(value, "known", HERE, decimals)


def test_a_derived_number_is_judged_within_rounding():
    parts = tuple(number(value, 3) for value in (0.588, 0.566, 0.539, 0.552))
    assert follows(Derived("mean", number(0.561, 3), parts)) is True
    assert follows(Derived("mean", number(0.563, 3), parts)) is False
    # 0.561 stands for 0.5605 to 0.5615: with more decimals the same mean is 0.56125.
    assert allowed(Derived("mean", number(0, 0), parts)) == pytest.approx((0.56075, 0.56175))
    gap = Derived("difference", number(-0.079, 3), (number(2.123, 3),), (number(2.202, 3),))
    assert follows(gap) is True
    relative = Derived("relative", number(0.036, 3), gap.of, gap.minus, unsigned=True)
    assert follows(relative) is True
    assert follows(Derived("relative", number(0.036, 3), gap.of, gap.minus)) is False


def test_what_rests_on_a_missing_number_cannot_be_judged():
    gone = Number(None, "missing", HERE)
    assert follows(Derived("difference", number(-0.1, 1), (number(1, 0),), (gone,))) is None
    assert follows(Derived("mean", gone, (number(1, 0),))) is None
    assert follows(Derived("relative", number(1, 0), (number(1, 0),), (number(0, 0),))) is None


# --- documents with the traits of reports; `fixtures/handmade.json` has what four of them say


def test_a_table_of_settings_becomes_configs():
    without, leashed = fixture("with-and-without.md").runs
    found = [
        names.resolve({key: setting.value for key, setting in run.config.items()}).values
        for run in (without, leashed)
    ]
    assert [one["leash.coefficient"] for one in found] == [0, 0.02]
    assert [one["entropy_bonus"] for one in found] == [0, 0.001]
    assert [one["schedule"] for one in found] == ["constant", "warmup + cosine"]
    assert [one["steps"] for one in found] == [1200, 1150]
    assert found[0]["lr"] == 3e-6


def test_the_order_of_a_difference_is_the_one_its_numbers_follow(tmp_path):
    text = (
        "| Step | A | B | {} |\n|---|---|---|---|\n| 1 | 3.0 | 1.0 | {} |\n| 2 | 4.0 | 1.5 | {} |\n"
    )
    ours = document(tmp_path, text.format("Difference", "2.0", "2.5"))
    theirs = document(tmp_path, text.format("差异", "-2.0", "-2.5"))
    assert [one.of[0].value for one in ours.derived] == [3.0, 4.0]
    assert [one.of[0].value for one in theirs.derived] == [1.0, 1.5]


def test_seeds_are_runs_of_an_arm(tmp_path):
    source = document(
        tmp_path,
        "# Accuracy\n| KL_BETA | Seed | Epoch | Shot 1 |\n|---|---|---|---|\n"
        "| 0.1 | 1 | 2 | 50.0% |\n| 0.1 | 2 | 2 | 51.0% |\n| 0.2 | 1 | 2 | 49.0% |\n",
    )
    assert [(run.arm, run.seed) for run in source.runs] == [
        ("KL_BETA=0.1", 1),
        ("KL_BETA=0.1", 2),
        ("KL_BETA=0.2", 1),
    ]
    assert [run.cells[0].epoch for run in source.runs] == [2, 2, 2]


def test_a_run_alone_needs_no_arm(tmp_path):
    source = document(
        tmp_path, "| Step | reward | kl |\n|--|--|--|\n| 1 | 0.5 | 0.0 |\n| 2 | 0.6 | ? |\n"
    )
    (run,) = source.runs
    assert (run.name, run.arm) == ("x.md", "")
    assert series(run, "reward") == {1: 0.5, 2: 0.6}
    assert cell(run, metric="kl", step=2).number.value is None


def test_one_key_with_two_values_keeps_both(tmp_path):
    source = document(
        tmp_path,
        "## Config of KL_BETA=0.1\n\n- LR: 1e-5\n\n"
        "## Config again, KL_BETA=0.1\n\n- LR: 2e-5\n- LR: 1e-5\n",
    )
    setting = source.runs[0].config["LR"]
    assert (setting.value, [other.value for other in setting.others]) == (1e-5, [2e-5])
    assert setting.others[0].where.line == 7


def test_a_setting_that_is_the_same_as_another_has_its_value(tmp_path):
    source = document(
        tmp_path,
        "| 参数 | KL_BETA=0.1 | KL_BETA=0.2 | KL_BETA=0.3 |\n|--|--|--|--|\n"
        "| LR | 1e-5 | 同左 | (同左) |\n| GRPO epochs | 3 | 4 | 5 |\n"
        "| RCE epochs | 同上 | 2 | 同上 |\n",
    )
    assert [run.config["LR"].value for run in source.runs] == [1e-5] * 3
    assert [run.config["RCE epochs"].value for run in source.runs] == [3, 2, 5]


def test_advice_is_not_a_setting(tmp_path):
    text = "# KL_BETA=0.1\n\n## 建议\n\n- **学习率调度**: 观察 warmup\n- **KL系数**: 0.005\n"
    source = document(tmp_path, text)
    assert all(set(run.config) <= {"KL_BETA"} for run in source.runs)


def test_a_table_that_is_not_understood_is_noted_and_not_used(tmp_path):
    source = document(tmp_path, "| File | Size |\n|---|---|\n| a.py | 12 |\n| b.py | 30 |\n")
    assert len(source.tables) == 1
    assert source.notes == [
        "line 1: nothing of this table is used: its rows are not arms, steps, metrics or settings"
    ]
    assert not any(run.cells or run.series for run in source.runs)


# --- what fits, and what is torn


def test_plain_text_with_headings_or_a_table_fits(tmp_path):
    def fits(name, text):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return markdown.fits(path)

    assert fits("a.md", "anything")
    assert fits("a.txt", "| a | b |\n|---|---|\n")
    assert fits("b.txt", "# 标题\n\n## 小节\n")
    assert not fits("c.txt", "step:1 - loss:0.1\n")
    assert not fits("d.txt", b"\x00\x01# a\n## b\n")
    assert not fits("e.py", "# a\n## b\n")
    assert not fits("f.csv", "step,loss\n1,2\n")
    assert not markdown.fits(tmp_path)


def test_the_readers_know_markdown(tmp_path):
    path = tmp_path / "report.txt"
    path.write_text("# R\n\n## S\n\n| Step | reward |\n|---|---|\n| 1 | 0.5 |\n", encoding="utf-8")
    assert read_any(path).format == "markdown"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "gb18030", "utf-16"])
def test_any_usual_encoding_is_read(tmp_path, encoding):
    path = tmp_path / "x.md"
    text = "# 报告\n\n| Step | 验证集奖励 |\n|---|---|\n| 1 | 0.5 |\n"
    path.write_bytes(text.encode(encoding))
    assert markdown.read(path).runs[0].series[0].metric == "验证集奖励"


def test_what_is_not_text_is_refused_in_one_line(tmp_path):
    path = tmp_path / "x.md"
    path.write_bytes(b"\x89PNG\x00\x00")
    with pytest.raises(DataError, match="holds NUL bytes, so it is not text"):
        markdown.read(path)


def test_torn_tables_and_open_code_are_noted(tmp_path):
    source = document(
        tmp_path,
        "| Step | reward |\n| 1 | 0.5 |\n\n"
        "| Step | reward |\n|---|---|\n| 1 | 0.5 | 7 |\n| 2 |\n| 3 | 0.7 |\n\n```\nStep 4: 0.8\n",
    )
    assert source.notes == [
        "line 1: a row outside any table (no row of dashes above it), left out",
        "line 2: a row outside any table (no row of dashes above it), left out",
        "line 6: 3 cells under 2 columns",
        "line 7: 1 cells under 2 columns",
        "line 10: code that is never closed, read to the end",
    ]
    (run,) = source.runs
    assert series(run, "reward") == {1: 0.5, 3: 0.7, 4: 0.8}
    assert cell(run, step=2).number.state == "missing"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n\n",
        "|\n|-|\n",
        "||||\n|-|-|-|\n||||\n",
        "# \n## \n",
        "```",
        "| 差异 |\n|---|\n| 差异 |\n| KL_BETA=0.1 |\n",
        "- [ ] \n- [x]",
        "*" * 50_000,
        "(" * 20_000,
        "|" * 20_000 + "\n" + "|-" * 20_000,
        "| a " * 150 + "|\n" + "|-" * 150 + "|\n" + ("| 1 " * 150 + "|\n") * 30,
        "9" * 10_000,
        "# " + "KL_BETA=0.1 和 " * 3000,
        "\n".join(f"| KL_BETA={i} | {i} |" for i in range(3)) + "\n",
        "| 配置 | reward |\n|--|--|\n" + "\n".join(f"| 甲{i} | 0.{i} |" for i in range(3000)),
        "~~" * 9000 + "\n" + "[" * 9000 + "](" * 900,
        "- a: " * 5000,
        "1e9999 vs 1e-9999，仅差 9" + "9" * 400 + "%",
    ],
)
def test_hostile_text_is_read_soon_and_without_a_traceback(tmp_path, text):
    with cpu_within(5):
        document(tmp_path, text)


def test_300_torn_documents_are_read_or_refused(tmp_path):
    rng = random.Random(20260101)
    whole = [path.read_text(encoding="utf-8") for path in sorted(FIXTURES.glob("*.md"))]
    pieces = [
        "\n",
        "Step 3: ",
        "~1.2 (估计)",
        "- [ ] ",
        "vs 0.1",
        "-" * 40,
        "\\|",
        "差异",
        "\ud7ff",
    ]
    pieces += [
        "|",
        "---",
        "**",
        "?",
        "%",
        "（",
        ")",
        "→",
        "KL_BETA=",
        "0.1",
        "`",
        "#",
        "９",
        "1e400",
        "±",
    ]
    began = time.process_time()
    for at in range(300):
        text = rng.choice(whole)
        for _ in range(rng.randint(1, 40)):
            spot = rng.randrange(len(text) + 1)
            cut = spot + rng.choice((0, 0, 1, 5, 200))
            text = text[:spot] + rng.choice(pieces) * rng.randint(1, 3) + text[cut:]
        path = tmp_path / f"{at}.md"
        path.write_text(text, encoding="utf-8")
        source = markdown.read(path)
        for run in source.runs:
            for one in run.series:
                assert len(one.steps) == len(one.values) == len(one.lines) > 0
            for one in run.cells:
                known = one.number.value is not None or one.number.low is not None
                assert known == (one.number.state != "missing")
        for one in source.derived:
            assert follows(one) in (True, False, None)
    assert soon(time.process_time() - began, 15)


# --- the reports that the design was drawn from, where they are at hand

reports = pytest.mark.skipif(len(SEEDS) != 5, reason="the five reports are not here")


@pytest.fixture(scope="module")
def seeds():
    return [markdown.read(path) for path in SEEDS]


@reports
def test_all_tables_are_found_and_understood(seeds):
    assert [len(source.tables) for source in seeds] == [6, 7, 16, 4, 4]
    assert sum(len(source.tables) for source in seeds) == 37
    assert [source.notes for source in seeds] == [[], [], [], [], []]
    assert {source.language for source in seeds} == {"zh"}


@reports
def test_no_other_reader_takes_the_reports_for_its_own():
    assert [read_any(path).format for path in SEEDS] == ["markdown"] * 5


@reports
def test_question_marks_are_counted_and_each_is_missing(seeds):
    def printed(source):
        rows = [cell for table in source.tables for row in table.rows for cell in row]
        return rows.count("?")

    assert [printed(source) for source in seeds] == [36, 0, 139, 0, 0]
    # 139 = 110 cells, 8 of them printed again, 11 differences, and 10 remarks
    # (评价, 趋势, 最佳场景), which are no numbers.
    gone = [one for run in seeds[2].runs for one in run.cells if one.number.state == "missing"]
    assert len(gone) == 110
    derived = [one for one in seeds[2].derived if one.number.state == "missing"]
    assert len(derived) == 11
    # 36 = 26 cells, 9 means and differences, and the difference of 0.15 from itself. 12 more cells
    # are missing that are printed as "-".
    cells = [one for run in seeds[0].runs for one in run.cells if one.number.state == "missing"]
    assert [sum(one.number.text == mark for one in cells) for mark in "?-"] == [26, 12]
    assert sum(one.number.state == "missing" for one in seeds[0].derived) == 9


@reports
def test_seven_values_are_estimated(seeds):
    guessed = {
        (run.arm, metric.metric): metric.steps[metric.estimated].tolist()
        for source in seeds
        for run in source.runs
        for metric in run.series
        if metric.estimated is not None
    }
    assert guessed == {("之前Group8 8B", "验证集Reward"): [10, 15, 20, 25, 30, 35, 40]}
    assert not [c for s in seeds for r in s.runs for c in r.cells if c.number.state == "estimated"]


@reports
def test_the_arms_are_those_of_the_reports(seeds):
    five = [f"KL_BETA={value}" for value in (0.12, 0.145, 0.15, 0.155, 0.18)]
    assert [[run.arm for run in source.runs] for source in seeds] == [
        five,
        ["KL_BETA=0.12", "KL_BETA=0.15"],
        ["KL_BETA=0.18", "KL_BETA=0.15", "KL_BETA=0.12"],
        ["之前Group8 8B", "新实验（KL版本）"],
        ["无KL约束", "有KL约束"],
    ]


@reports
@pytest.mark.parametrize(
    ("report", "name", "metric", "points", "lines"),
    [
        (0, "KL_BETA=0.145", "KL值", {1: 0.08471, 2: 0.07384, 3: 0.07138}, [22, 37, 50]),
        (0, "KL_BETA=0.155", "Train Loss", {1: 0.01438, 2: 0.02249, 3: 0.02135}, [24, 39, 51]),
        (0, "KL_BETA=0.12", "PPO Loss", {1: 0.0065, 2: 0.0086}, [21, 36]),
        (0, "KL_BETA=0.18", "KL值", {1: 0.08134, 2: 0.07002}, [25, 40]),
        (0, "KL_BETA=0.145", "Adv Max", {1: 0.1966, 2: 0.3558, 3: 0.3558}, [22, 37, 50]),
        (2, "KL_BETA=0.12", "Val Loss", {1: 5.11661, 2: 5.11663, 3: 5.11607}, [80, 81, 82]),
        (2, "KL_BETA=0.12", "KL", {1: 0.094, 2: 0.08131, 3: 0.07414}, [80, 81, 82]),
        (2, "KL_BETA=0.12", "Adv Std", {1: 0.0063, 2: 0.0062, 3: 0.0062}, [80, 81, 82]),
        (3, "之前Group8 8B", "PG Loss", {1: 0.28, 5: 0.033}, [53, 53]),
        (3, "新实验（KL版本）", "PG Loss", {1: 0.201, 40: 0.175}, [59, 59]),
        (3, "新实验（KL版本）", "KL Loss", {1: 0.003, 40: 0.084, 45: 0.114}, [60, 60, 60]),
        (3, "新实验（KL版本）", "Entropy", {1: 0.216, 40: 0.256, 45: 0.281}, [61, 61, 61]),
        (3, "之前Group8 8B", "平均序列长度", {5: 59839}, [74]),
        (3, "新实验（KL版本）", "平均序列长度", {10: 59544}, [74]),
    ],
)
def test_series_of_the_reports(seeds, report, name, metric, points, lines):
    run = arm(seeds[report], name)
    assert series(run, metric) == points
    found = next(one for one in run.series if one.metric == metric)
    assert found.lines.tolist() == lines


@reports
def test_the_two_curves_of_both_reports(seeds):
    steps = range(5, 50, 5)
    leashed = (1.695, 1.992, 1.768, 1.915, 1.970, 1.828, 1.840, 2.123, 2.005)
    free = (1.818, 2.140, 1.840, 1.830, 1.750, 1.788, 2.040, 2.003, 2.202)
    assert series(seeds[3].runs[1], "验证集Reward") == dict(zip(steps, leashed, strict=True))
    assert series(seeds[4].runs[1], "性能") == dict(zip(steps, leashed, strict=True))
    assert series(seeds[4].runs[0], "性能") == dict(zip(steps, free, strict=True))
    assert [len([s for s in run.series if s.metric == "性能"]) for run in seeds[4].runs] == [1, 1]


@reports
@pytest.mark.parametrize(
    ("report", "name", "place", "value", "decimals", "line"),
    [
        (0, "KL_BETA=0.15", {"epoch": 1, "shots": 1, "items": 200}, 0.588, 3, 67),
        (0, "KL_BETA=0.18", {"epoch": 2, "shots": 4, "items": 200}, 0.552, 3, 89),
        (0, "KL_BETA=0.145", {"epoch": 3, "shots": 2, "items": 200}, None, None, 100),
        (2, "KL_BETA=0.15", {"epoch": 1, "shots": 1, "items": 100}, 0.632, 3, 101),
        (2, "KL_BETA=0.15", {"epoch": 1, "shots": 3, "items": 400}, 0.5055, 4, 103),
        (2, "KL_BETA=0.15", {"epoch": 1, "shots": 4, "items": 800}, 0.4783, 4, 104),
        (2, "KL_BETA=0.15", {"epoch": 2, "shots": 2, "items": 800}, 0.4833, 4, 144),
        (2, "KL_BETA=0.12", {"epoch": 1, "shots": 3, "items": 200}, 0.551, 3, 111),
        (2, "KL_BETA=0.12", {"epoch": 3, "shots": 3, "items": 800}, None, None, 175),
        (2, "KL_BETA=0.18", {"epoch": 1, "shots": 1, "items": 200}, None, None, 93),
    ],
)
def test_accuracies_of_the_reports(seeds, report, name, place, value, decimals, line):
    found = cell(arm(seeds[report], name), **place).number
    assert (found.value, found.decimals, found.where.line) == (value, decimals, line)


@reports
@pytest.mark.parametrize(
    ("name", "metric", "statistic", "value", "line"),
    [
        ("KL_BETA=0.12", "KL散度", "mean", 0.059986, 15),
        ("KL_BETA=0.15", "KL散度", "first", 0.078858, 16),
        ("KL_BETA=0.12", "KL散度", "change", -0.3224, 18),
        ("KL_BETA=0.15", "KL Loss", "last", 0.00804239, 31),
        ("KL_BETA=0.12", "PPO Loss", "mean", 0.00956868, 42),
        ("KL_BETA=0.15", "GRPO Loss", "last", 0.01355903, 57),
        ("KL_BETA=0.12", "Validation Loss", "min", 7.972695, 71),
        ("KL_BETA=0.15", "Mean Ratio", "first", 0.821189, 84),
        ("KL_BETA=0.12", "Mean Advantage", "mean", -9e-8, 96),
    ],
)
def test_statistics_of_the_reports(seeds, name, metric, statistic, value, line):
    found = cell(arm(seeds[1], name), metric=metric, statistic=statistic)
    assert (found.number.value, found.number.where.line) == (value, line)


@reports
def test_the_configs_of_the_reports_show_what_else_was_changed(seeds):
    def resolved(source):
        return {
            run.arm: names.resolve({key: one.value for key, one in run.config.items()}).values
            for run in source.runs
        }

    shared = resolved(seeds[0])
    assert {one["start"] for one in shared.values()} == {"kl012/rce_epoch5.pt"}
    told = resolved(seeds[2])
    assert told["KL_BETA=0.12"]["start"] == told["KL_BETA=0.18"]["start"] == "RCE epoch 5"
    assert told["KL_BETA=0.15"]["start"] == "RCE epoch 2 (val_loss=7.8863)"
    assert told["KL_BETA=0.15"]["data"].startswith("rl_data_k64_v3.json")
    before, after = resolved(seeds[3]).values()
    assert (before["leash.coefficient"], after["leash.coefficient"]) == (0, 0.01)
    assert (before["entropy_bonus"], after["entropy_bonus"]) == (0, 0.01)
    assert (before["schedule"], after["schedule"]) == ("constant", "warmup + cosine")
    assert (before["steps"], after["steps"]) == (485, 465)
    without, leashed = resolved(seeds[4]).values()
    assert (without["entropy_bonus"], leashed["entropy_bonus"]) == (0, 0.01)
    assert (without["schedule"], leashed["schedule"]) == ("constant", "warmup + cosine")
    assert [one["epochs"] for one in resolved(seeds[1]).values()] == [50, 50]


@reports
def test_commands_and_boxes_of_the_reports(seeds):
    missing = cell(arm(seeds[0], "KL_BETA=0.145"), epoch=2, shots=3)
    assert missing.command == "bash scripts/eval_grpo_kl0145.sh 2 0 200"
    assert cell(arm(seeds[0], "KL_BETA=0.15"), epoch=2, shots=3).command == ""
    exact = cell(arm(seeds[2], "KL_BETA=0.18"), epoch=1, shots=2, items=400)
    assert exact.command == "bash scripts/eval_grpo_kl018.sh 1 1 400"
    rest = cell(arm(seeds[2], "KL_BETA=0.18"), epoch=3, shots=2, items=400)
    assert rest.command == "bash scripts/eval_grpo_kl018_all.sh"


@reports
def test_what_the_reports_derive_follows_from_their_tables_but_for_three_numbers(seeds):
    judged = [(at, one, follows(one)) for at, source in enumerate(seeds) for one in source.derived]
    assert sum(verdict is True for *_, verdict in judged) == 81
    wrong = [
        (at, one.number.where.line, one.kind) for at, one, verdict in judged if verdict is False
    ]
    assert wrong == [(4, 143, "relative")]


@reports
def test_a_difference_from_a_missing_number_is_kept_for_findings(seeds):
    (gap,) = derived_at(seeds[0], 85, "difference")
    assert (gap.number.value, gap.minus[0].state, follows(gap)) == (-0.0025, "missing", None)
    (means,) = [one for one in derived_at(seeds[2], 187) if one.number.value is not None]
    assert (len(means.of), len(means.minus), means.arms) == (4, 4, ("KL_BETA=0.12", "KL_BETA=0.15"))


@reports
def test_provenance_of_the_reports(seeds):
    found = {(fact.kind, fact.arm) for fact in seeds[3].facts if fact.kind in ("path", "wandb")}
    assert found == {
        (kind, name) for kind in ("path", "wandb") for name in ("之前Group8 8B", "新实验（KL版本）")
    }
