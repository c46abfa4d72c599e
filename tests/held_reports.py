"""Four right reports in further styles, kept apart: the rules of the check were not made on them.

Every number follows from what `numpy` draws by the seed; `deviations` works with unrounded numbers,
the others with those that are printed.
"""

from __future__ import annotations

import numpy as np


def readme(seed: int) -> str:
    """The README of a repository: formulas in the headers, rows without outer bars, counts.

    It is long because it is one report, from top to bottom.
    """
    rng = np.random.default_rng([seed, 11])
    names = ("SFT", r"GRPO, $\beta=0$", r"GRPO, $\beta=0.01$", r"GRPO, $\beta=0.05$")
    short = ("SFT", "beta=0", "beta=0.01", "beta=0.05")
    categories = ("Electronics", "Garden", "Clothes", "Toys", "Books")
    tasks = np.array([140, 110, 100, 90, 60])
    wins = np.stack([rng.binomial(tasks, rate) for rate in (0.31, 0.42, 0.46, 0.4)], axis=1)
    success = 100 * wins.sum(axis=0) / tasks.sum()
    score = np.round(success + rng.uniform(15, 24, 4), 1)
    turns = np.round(rng.uniform(4.1, 7.9, 4), 2)
    lines = [
        "# Leashed shopping agents",
        "",
        "Code for a small study of the KL coefficient in GRPO.",
    ]
    lines += ["All runs start from the same SFT checkpoint of Qwen2.5-1.5B-Instruct.", ""]
    lines += ["## Main results", "", "500 test tasks, greedy decoding, one run per row.", ""]
    lines += [
        r"Method | Success $\uparrow$ | Score $\uparrow$ | Turns $\downarrow$ | $\Delta$ Success"
    ]
    lines += [":-- | :-: | :-: | :-: | :-:"]
    for nth, name in enumerate(names):
        gap = "--" if not nth else f"{success[nth] - success[0]:+.1f}"
        lines.append(f"{name} | {success[nth]:.1f} | {score[nth]:.1f} | {turns[nth]:.2f} | {gap}")
    top, few = int(success.argmax()), int(turns.argmin())
    lines += ["", f"- {short[top]} has the highest success ({success[top]:.1f})."]
    lines += [f"- {short[few]} needs the fewest turns ({turns[few]:.2f})."]
    gain = success[top] - success[0]
    lines += [
        f"- Success goes from {success[0]:.1f} (SFT) to {success[top]:.1f}, {gain:+.1f} points."
    ]
    lines += ["", "## Solved tasks by category", ""]
    lines += ["Category | Tasks | " + " | ".join(short), "--- | ---: | ---: | ---: | ---: | ---:"]
    for nth, name in enumerate(categories):
        lines.append(f"{name} | {tasks[nth]} | " + " | ".join(map(str, wins[nth])))
    lines.append(f"Total | {tasks.sum()} | " + " | ".join(map(str, wins.sum(axis=0))))
    steps = np.arange(20, 201, 20)
    reward = np.round(rng.normal(0.55, 0.03, (len(steps), 3)) + steps[:, None] / 1500, 3)
    lines += ["", "## Validation score during training", ""]
    lines += ["Step | beta=0 | beta=0.01 | beta=0.05 | Mean", "--: | --: | --: | --: | --:"]
    for step, row in zip(steps, reward, strict=True):
        cells = " | ".join(f"{value:.3f}" for value in row)
        lines.append(f"{step} | {cells} | {row.mean():.3f}")
    lines += [""]
    for nth, name in enumerate(short[1:]):
        at = int(reward[:, nth].argmax())
        lines.append(f"- {name} peaks at step {steps[at]} ({reward[at, nth]:.3f}).")
    last = reward[-1]
    lines.append(f"- At the last step beta=0.01 has {last[1]:.3f}, beta=0 has {last[0]:.3f}.")
    hours = np.round(rng.uniform(9, 14, 3), 1)
    lines += ["", "## Cost", "", "Run | GPUs | Hours | GPU-hours | vs beta=0", "--|--|--|--|--"]
    for nth, name in enumerate(short[1:]):
        change = "--" if not nth else f"{100 * (hours[nth] / hours[0] - 1):+.1f}%"
        lines.append(f"{name} | 4 | {hours[nth]:.1f} | {4 * hours[nth]:.1f} | {change}")
    return "\n".join([*lines, ""])


def deviations(seed: int) -> str:
    """三个种子：每个种子的准确率、平均 ± 标准差、差异、每轮的验证准确率。

    It is long because it is one report, from top to bottom.
    """
    rng = np.random.default_rng([seed, 12])
    arms = ("0", "0.02", "0.08", "0.2")
    right = rng.binomial(500, np.array([0.52, 0.55, 0.54, 0.5])[:, None], (4, 3))
    accuracy = right / 500
    means, spreads = accuracy.mean(axis=1), accuracy.std(axis=1, ddof=1)
    lines = [
        "# 三个随机种子下的 KL 系数对比",
        "",
        "## 设置",
        "",
        "- **基座**: Qwen2.5-VL-3B-Instruct",
    ]
    lines += ["- **随机种子**: 0, 1, 2", "- **训练轮数**: 6", "- **学习率**: 1e-6", ""]
    lines += ["## 测试准确率（500样本，2-shot）", ""]
    lines += ["| KL系数 | 种子 0 | 种子 1 | 种子 2 | 平均 ± 标准差 | 与 0 的差异 |"]
    lines += ["|:---|---:|---:|---:|---:|---:|"]
    for nth, arm in enumerate(arms):
        cells = " | ".join(f"{100 * value:.1f}%" for value in accuracy[nth])
        gap = "-" if not nth else f"{100 * (means[nth] - means[0]):+.2f}%"
        lines.append(
            f"| {arm} | {cells} | {100 * means[nth]:.2f}% ± {100 * spreads[nth]:.2f}% | {gap} |"
        )
    top, low = int(means.argmax()), int(means.argmin())
    lines += ["", f"- KL系数 {arms[top]} 的平均准确率最高（{100 * means[top]:.2f}%）"]
    lines += [f"- KL系数 {arms[low]} 的平均准确率最低（{100 * means[low]:.2f}%）"]
    best = np.unravel_index(int(accuracy.argmax()), accuracy.shape)
    lines += [
        f"- 单次最高为 KL系数 {arms[best[0]]} 的种子 {best[1]}（{100 * accuracy[best]:.1f}%）"
    ]
    lines += ["", "## 训练末期指标（三个种子的平均 ± 标准差）", ""]
    lines += ["| KL系数 | KL散度 | 策略熵 | 响应长度 |", "|---|---|---|---|"]
    kl = np.sort(rng.uniform(0.02, 0.4, 4))[::-1]
    entropy, length = rng.uniform(0.8, 1.4, 4), rng.uniform(180, 240, 4)
    noise = rng.uniform(0.02, 0.06, (4, 3))
    for nth, arm in enumerate(arms):
        cells = f"{kl[nth]:.4f} ± {kl[nth] * noise[nth, 0]:.4f} | "
        cells += f"{entropy[nth]:.3f} ± {entropy[nth] * noise[nth, 1]:.3f} | "
        lines.append(f"| {arm} | {cells}{length[nth]:.1f} ± {length[nth] * noise[nth, 2]:.1f} |")
    lines += [
        "",
        f"- KL散度随系数增大而下降：{kl[0]:.4f} → {kl[1]:.4f} → {kl[2]:.4f} → {kl[3]:.4f}",
    ]
    flat = int(entropy.argmin())
    lines += [f"- KL系数 {arms[flat]} 的策略熵最低（{entropy[flat]:.3f}）"]
    curve = rng.uniform(0.49, 0.56, (6, 4)).round(4)
    lines += ["", "## 每轮的验证准确率（三个种子平均）", ""]
    lines += ["| Epoch | 0 | 0.02 | 0.08 | 0.2 | 平均 |", "|---|---|---|---|---|---|"]
    for epoch, row in enumerate(curve, 1):
        cells = " | ".join(f"{100 * value:.2f}%" for value in row)
        lines.append(f"| {epoch} | {cells} | {100 * row.mean():.2f}% |")
    lines += [""]
    for nth, arm in enumerate(arms):
        at = int(curve[:, nth].argmax())
        lines.append(
            f"- KL系数 {arm} 在 Epoch {at + 1} 达到最佳验证准确率（{100 * curve[at, nth]:.2f}%）"
        )
    lines += [
        "",
        "## 小结",
        "",
        f"1. 平均准确率：{100 * means[top]:.2f}% vs {100 * means[0]:.2f}%（系数 {arms[top]} 与 0）",
    ]
    lines += [f"2. 最大与最小的平均相差 {100 * (means[top] - means[low]):.2f} 个百分点"]
    lines += [f"3. 系数 0.2 的 KL散度比系数 0 低 {kl[0] - kl[3]:.4f}", ""]
    return "\n".join(lines)


def deltas(seed: int) -> str:
    """Ablations in percent with the difference to the first row behind each number.

    It is long because it is one report, from top to bottom.
    """
    rng = np.random.default_rng([seed, 13])
    sets = ("GSM8K", "MATH", "SVAMP", "AQuA")
    methods = ("baseline", "+ KL 0.01", "+ warmup", "+ length penalty", "+ all three")
    table = rng.uniform(0.42, 0.72, (1, 4)) + rng.normal(0.015, 0.02, (5, 4))
    table = (100 * table).round(1)
    means = table.mean(axis=1).round(2)
    lines = [
        "# What each change is worth",
        "",
        "Numbers are accuracies in percent; in brackets the",
    ]
    lines += [
        "difference to the baseline in points. Best of each column in bold.",
        "",
        "## Results",
        "",
    ]
    lines += ["| Method | " + " | ".join(sets) + " | Average |", "|---|" + "---|" * 5]
    for nth, method in enumerate(methods):
        cells = []
        for column in range(4):
            text = f"{table[nth, column]:.1f}"
            text = f"**{text}**" if table[:, column].argmax() == nth else text
            gap = table[nth, column] - table[0, column]
            cells.append(text + (f" ({gap:+.1f})" if nth else ""))
        gap = f" ({means[nth] - means[0]:+.2f})" if nth else ""
        lines.append(f"| {method} | " + " | ".join(cells) + f" | {means[nth]:.2f}{gap} |")
    top, low = int(means.argmax()), int(means.argmin())
    lines += ["", f"- The highest average is that of {methods[top]} ({means[top]:.2f})"]
    lines += [f"- The lowest average is that of {methods[low]} ({means[low]:.2f})"]
    for column, name in enumerate(sets):
        at = int(table[:, column].argmax())
        lines += [f"- On {name} the best is {methods[at]} with {table[at, column]:.1f}"]
    lines += ["", "## Without one of the three", ""]
    lines += ["| Left out | GSM8K | MATH | Mean |", "|---|---|---|---|"]
    whole = table[4, :2]
    lines += [f"| nothing | {whole[0]:.1f} | {whole[1]:.1f} | {whole.mean():.2f} |"]
    for name in ("KL", "warmup", "length penalty"):
        less = (whole - rng.uniform(0.2, 3, 2)).round(1)
        cells = " | ".join(f"{a:.1f} ({a - b:+.1f})" for a, b in zip(less, whole, strict=True))
        lines.append(
            f"| {name} | {cells} | {less.mean():.2f} ({less.mean() - whole.mean():+.2f}) |"
        )
    tokens = rng.integers(210, 420, (5, 2))
    lines += ["", "## Response length", ""]
    lines += ["| Method | First epoch | Last epoch | Change |", "|---|---|---|---|"]
    for nth, method in enumerate(methods):
        first, last = (int(value) for value in tokens[nth])
        share = 100 * (last / first - 1)
        lines.append(f"| {method} | {first} | {last} | {last - first:+d} ({share:+.1f}%) |")
    short = int(tokens[:, 1].argmin())
    lines += [
        "",
        f"- {methods[short]} has the shortest responses in the last epoch ({tokens[short, 1]})",
    ]
    lines += [
        f"- {methods[0]} has {tokens[0, 1]} tokens in the last epoch, {tokens[0, 0]} in the first"
    ]
    lines += ["", "## Summary", ""]
    both = means[4] - means[0]
    lines += [f"- All three together: {means[4]:.2f} vs {means[0]:.2f} ({both:+.2f} points)"]
    lines += [f"- KL alone: {means[1]:.2f} vs {means[0]:.2f} ({means[1] - means[0]:+.2f} points)"]
    return "\n".join([*lines, ""])


def steps(seed: int) -> str:
    """两次训练的日志汇总：每 25 步的指标、最佳与最终、均值、曲线列表。

    It is long because it is one report, from top to bottom.
    """
    rng = np.random.default_rng([seed, 14])
    at = np.arange(25, 301, 25)
    runs = {}
    for name, gain, pull in (("grpo_free", 0.34, 1.0), ("grpo_kl", 0.31, 0.35)):
        noise = rng.normal(0, 0.025, len(at))
        runs[name] = {
            "reward": (0.4 + gain * (1 - np.exp(-at / 110)) + noise).round(4),
            "kl": (pull * at / 900 + np.abs(rng.normal(0, 0.01, len(at)))).round(4),
            "entropy": (1.2 * np.exp(-at / (260 if pull == 1 else 700)) + 0.05).round(3),
            "length": rng.integers(300, 520, len(at)),
        }
    lines = [
        "# 两次训练的日志汇总",
        "",
        "由 `metrics.jsonl` 导出，每 25 步一次验证。",
        "",
        "```json",
    ]
    first = runs["grpo_free"]
    lines += [
        f'{{"step": 25, "val/reward": {first["reward"][0]:.4f}, "actor/kl": {first["kl"][0]:.4f}}}',
        "```",
        "",
    ]
    for name, run in runs.items():
        lines += [
            f"## {name}",
            "",
            "| step | val/reward | actor/kl | actor/entropy | response_length |",
        ]
        lines += ["|-----:|-----:|-----:|-----:|-----:|"]
        for nth, step in enumerate(at):
            lines.append(
                f"| {step} | {run['reward'][nth]:.4f} | {run['kl'][nth]:.4f} | "
                f"{run['entropy'][nth]:.3f} | {run['length'][nth]} |"
            )
        lines += [""]
    lines += [
        "## 汇总",
        "",
        "| run | 最佳 val/reward | 最佳 step | 最终 val/reward | 平均 val/reward | 最终 - 最佳 |",
    ]
    lines += ["|---|---|---|---|---|---|"]
    best = {name: int(run["reward"].argmax()) for name, run in runs.items()}
    for name, run in runs.items():
        reward, top = run["reward"], best[name]
        lines.append(
            f"| {name} | {reward[top]:.4f} | {at[top]} | {reward[-1]:.4f} | {reward.mean():.4f} | "
            f"{reward[-1] - reward[top]:+.4f} |"
        )
    free, held = runs["grpo_free"], runs["grpo_kl"]
    lines += [
        "",
        "## 逐步差异（grpo_kl − grpo_free）",
        "",
        "| step | grpo_free | grpo_kl | 差异 |",
        "|---|---|---|---|",
    ]
    for nth, step in enumerate(at):
        one, other = free["reward"][nth], held["reward"][nth]
        lines.append(f"| {step} | {one:.4f} | {other:.4f} | {other - one:+.4f} |")
    lines += ["", "## 观察", ""]
    for name, top in best.items():
        lines.append(f"- {name} 在 step {at[top]} 达到最佳 reward {runs[name]['reward'][top]:.4f}")
    lines += [f"- 最终 KL：grpo_free {free['kl'][-1]:.4f}，grpo_kl {held['kl'][-1]:.4f}"]
    lines += [
        f"- grpo_kl 的最终策略熵更高（{held['entropy'][-1]:.3f} vs {free['entropy'][-1]:.3f}）"
    ]
    gap = held["reward"][best["grpo_kl"]] - free["reward"][best["grpo_free"]]
    lines += [f"- 最佳 reward 之差为 {gap:+.4f}（grpo_kl 减 grpo_free）"]
    lines += [f"- grpo_free 的 entropy 从 {free['entropy'][0]:.3f} 降到 {free['entropy'][-1]:.3f}"]
    return "\n".join([*lines, ""])


HELD = {"readme": readme, "deviations": deviations, "deltas": deltas, "steps": steps}
