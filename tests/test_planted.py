"""Right reports in many styles have no error; with one planted slip each, it is found.

The reports are in tests/reports. A plant is a report, what is changed in it, and the code that must
be found on a line that the plant touches or that speaks of it.
"""

from pathlib import Path

import pytest

from kleash.findings import CODES, find
from kleash.imports import markdown

REPORTS = Path(__file__).parent / "reports"
NAMES = sorted(path.stem for path in REPORTS.glob("*.md"))

PLANTS = [
    # sums
    ("beta-rows", "| 0.0027 | 0.0074 |", "| 0.0027 | 0.0094 |", "loss-identity"),
    ("beta-rows", "| 0.118 |", "| 0.188 |", "loss-identity"),
    ("ranking-zh", "| 0.00510 |", "| 0.00150 |", "kl-loss-identity"),
    ("beta-rows", "| -2.6% |", "| -2.2% |", "derived-number"),
    ("metrics-in-rows", "| +0.09 |", "| +0.07 |", "derived-number"),
    ("metrics-in-rows", "| -21.2% |", "| -26.9% |", "derived-number"),
    ("metrics-in-rows", "1.51 vs 1.42 (+6.3%)", "1.51 vs 1.42 (+9.3%)", "derived-number"),
    ("shots-zh", "| 63.08% | +0.58% |", "| 63.80% | +0.58% |", "derived-number"),
    ("shots-zh", "| -1.00% |", "| +1.00% |", "derived-number"),
    ("cost-zh", "+10.0%", "+15.0%", "derived-number"),
    ("verl-names", "+0.0121", "+0.0211", "derived-number"),
    ("nested-samples-zh", "| -1.25% |", "| -2.25% |", "derived-number"),
    ("early-look", "| +0.011 |", "| -0.011 |", "derived-number"),
    ("arm-and-metric-headers", "22.6%", "26.2%", "derived-number"),
    ("seeds", "(+3.3%)", "(+5.3%)", "derived-number"),
    ("seeds", "| mean | 0.608 |", "| mean | 0.618 |", "derived-number"),
    ("step-lists-zh", "0.389 (-3.0%)", "0.389 (-8.0%)", "derived-number"),
    ("step-lists-zh", "最大波动 13.9%", "最大波动 9.9%", "derived-number"),
    ("step-lists-zh", "-0.017 (-3.9%)", "-0.017 (-4.9%)", "derived-number"),
    ("tex", "| **53.7** |", "| **57.3** |", "derived-number"),
    ("shots-zh", "| 基线 | 61.25% |", "| 基线 | ? |", "derived-from-missing"),
    ("seeds", "| std | 0.008 |", "| std | 0.021 |", "spread-identity"),
    ("nested-samples-zh", "| 1 | 57.75% |", "| 1 | 57.25% |", "duplicate-step"),
    # too much alike
    (
        "shots-zh",
        "62.00% | 63.25% | 64.00% | 63.08% | +0.58%",
        "61.25% | 62.50% | 63.75% | 62.50% | +0.00%",
        "identical-results",
    ),
    (
        "beta-rows",
        "| 0.0021 | 0.0073 | 365 |",
        "| 0.0027 | 0.0074 | 365 |",
        "loss-identity",
    ),
    # what can be
    ("nested-samples-zh", "| 100 | 61.0% |", "| 100 | 61.3% |", "off-lattice"),
    ("metric-column-zh", "| 2 | 响应长度 | 810 |", "| 2 | 响应长度 | 1810 |", "beyond-limit"),
    ("verl-names", "| 588.1 | -24.3 |", "| 5881 | +5268.6 |", "beyond-limit"),
    # which run is meant
    (
        "guesses-zh",
        "| 训练数据 | rl_v2.json | rl_v2.json |",
        "| 训练数据 | rl_v2.json | rl_v3.json |",
        "config-denied",
    ),
    (
        "guesses-zh",
        "| sft_epoch3.pt | sft_epoch3.pt |",
        "| sft_epoch3.pt | sft_epoch5.pt |",
        "config-denied",
    ),
    # plans, dates, costs
    ("cost-zh", "| 88.0 |", "| 38.0 |", "gpu-hours"),
    ("cost-zh", "run-20260303_080000", "run-20260703_080000", "started-after-report"),
    ("cost-zh", "| 每步时间 | 90s | 99s |", "| 每步时间 | 90s | 999s |", "too-long-for-dates"),
    ("cost-zh", "run-20260303_080000", "run-20260302_090000", "runs-overlap"),
    ("cost-zh", "都已完成 400 步", "都已完成 4000 步", "steps-denied"),
    ("guesses-zh", "训练已完成60步", "训练已完成80步", "steps-denied"),
    ("early-look", "| Max steps | 100 | 100 |", "| Max steps | 500 | 500 |", "evaluations-missing"),
    ("early-look", "| Max steps | 100 | 100 |", "| Max steps | 50 | 50 |", "beyond-plan"),
    ("early-look", "| Warmup steps | 10 |", "| Warmup steps | 100 |", "inside-warmup"),
    # guesses
    ("early-look", "| 60 | 0.560 |", "| 60 | ~0.56 (estimated) |", "derived-from-estimate"),
    # at which step
    (
        "step-lists-zh",
        "在Step 80达到最佳（0.437）",
        "在Step 60达到最佳（0.437）",
        "value-elsewhere",
    ),
    ("step-lists-zh", "| 0.437 (Step 80) |", "| 0.437 (Step 40) |", "best-step-false"),
    (
        "step-lists-zh",
        "| 0.437 (Step 80) | 0.420 (Step 100) | -0.017 (-3.9%)",
        "| 0.415 (Step 100) | 0.420 (Step 100) | +0.005 (+1.2%)",
        "best-step-false",
    ),
    ("arm-and-metric-headers", "0.488 (step 200)", "0.488 (step 150)", "value-elsewhere"),
    ("early-look", "0.583 (step 100)", "0.583 (step 80)", "value-elsewhere"),
    ("step-lists-zh", "早20步", "早40步", "steps-ahead-false"),
    ("steadier", "0.70 at step 60", "0.70 at step 40", "value-elsewhere"),
    ("steadier", "step 40 vs step 60, 20 steps", "step 40 vs step 60, 30 steps", "derived-number"),
    ("early-look", "Step 60: 0.571", "Step 66: 0.571", "stray-step"),
    ("early-look", "0.506 → 0.571 →", "0.506 → 0.517 →", "course-false"),
    ("latency", "(0.310 → 0.302)", "(0.310 → 0.410)", "not-steady"),
    # what is said
    (
        "beta-rows",
        "beta=0.1 has the lowest accuracy",
        "beta=0.04 has the lowest accuracy",
        "other-arms-number",
    ),
    (
        "beta-rows",
        "- beta=0.1 has the lowest accuracy (71.6%)",
        "- beta=0.04 has the lowest accuracy (73.8%)",
        "extreme-false",
    ),
    (
        "beta-rows",
        "beta=0.0 has the highest KL (0.412)",
        "beta=0.0 has the lowest KL (0.412)",
        "extreme-false",
    ),
    (
        "shots-zh",
        "KL=0.05 的平均准确率最高（63.08%）",
        "KL=0.2 的平均准确率最高（61.50%）",
        "extreme-false",
    ),
    (
        "tex",
        "$\\beta=0.01$ is best on average (53.7)",
        "$\\beta=0$ is best on average (52.6)",
        "extreme-false",
    ),
    ("beta-rows", "is lower than that of", "is higher than that of", "comparison-false"),
    (
        "metric-column-zh",
        "B组在第 2 轮的准确率更高",
        "B组在第 2 轮的准确率更低",
        "comparison-false",
    ),
    ("cost-zh", "每步时间更长", "每步时间更短", "comparison-false"),
    ("ranking-zh", "0.05 (68.4%) > 0.02", "0.05 (68.4%) < 0.02", "order-false"),
    ("ranking-zh", "> 0.1 (66.5%) > 0.2", "> 0.1 (64.8%) > 0.2", "other-arms-number"),
    ("ranking-zh", "高 3.6 个百分点", "高 6.3 个百分点", "number-without-source"),
    ("tex", "1.1 points above", "2.1 points above", "number-without-source"),
    ("seeds", "better on 4 of 5 seeds", "better on 5 of 5 seeds", "count-false"),
    ("metric-column-zh", "（约 1%）", "（约 5%）", "difference-false"),
    ("metrics-in-rows", "(+26.9%)", "(+21.2%)", "percent-reversed"),
    ("kl-sweep", "3.6 points above", "6.3 points above", "number-without-source"),
    (
        "kl-sweep",
        "0.10 has the highest win rate (64.8%)",
        "0.05 has the highest win rate (63.5%)",
        "extreme-false",
    ),
    ("kl-sweep", "falls by 30.3%", "falls by 33.3%", "number-without-source"),
    ("kl-sweep", "between 3.2 and 18.4", "between 3.2 and 9.7", "range-false"),
    ("epochs-zh", "（0.620 → 0.601 → 0.588）", "（0.620 → 0.607 → 0.588）", "course-false"),
    ("epochs-zh", "下降了 5.2%", "下降了 2.5%", "derived-number"),
    ("agent-report", "peaks at step 200 (0.502)", "peaks at step 100 (0.502)", "value-elsewhere"),
    ("agent-report", "ahead at 1 of 3 evaluations", "ahead at 2 of 3 evaluations", "count-false"),
    ("agent-report", "| -0.005 |", "| +0.005 |", "derived-number"),
    ("tasks-zh", "| +2.4 |", "| +4.2 |", "derived-number"),
    (
        "tasks-zh",
        "| 平均 | 51.3 | 52.4 | +1.1 |",
        "| 平均 | 51.3 | 54.2 | +2.9 |",
        "derived-number",
    ),
    ("reward-hacking", "18.7% lower", "28.7% lower", "number-without-source"),
    ("guesses-zh", "0.512-0.571 之间", "0.520-0.571 之间", "range-false"),
    (
        "two-header-rows",
        "The two are about equal in accuracy",
        "The accuracy of the two is identical",
        "same-false",
    ),
    ("latency", "| 115-140 s |", "| 103-121 s |", "range-gap-false"),
    ("steadier", "leashed is more stable", "free is more stable", "stable-contradicted"),
    (
        "steadier",
        "free reaches 0.66 earlier",
        "leashed reaches 0.66 earlier",
        "faster-contradicted",
    ),
]


def text_of(name):
    return (REPORTS / f"{name}.md").read_text(encoding="utf-8")


def found(path, text):
    path.write_text(text, encoding="utf-8")
    return find([markdown.read(path)])


@pytest.mark.parametrize("name", NAMES)
def test_a_right_report_has_no_error(tmp_path, name):
    errors = [
        one for one in found(tmp_path / "report.md", text_of(name)) if one.severity == "error"
    ]
    assert not [(one.code, one.facts) for one in errors]


@pytest.mark.parametrize(
    ("name", "old", "new", "code"),
    PLANTS,
    ids=[f"{number}-{plant[0]}-{plant[3]}" for number, plant in enumerate(PLANTS)],
)
def test_a_planted_slip_is_found(tmp_path, name, old, new, code):
    text = text_of(name)
    assert text.count(old) == 1
    before = {one.code for one in found(tmp_path / "report.md", text)}
    after = found(tmp_path / "report.md", text.replace(old, new))
    assert code not in before
    of_code = [one for one in after if one.code == code]
    assert of_code, sorted({one.code for one in after} - before)
    touched = text[: text.index(old)].count("\n") + 1
    assert any(place.line == touched for one in of_code for place in one.where)
    for one in of_code:
        assert set(one.facts) == set(CODES[code])
