"""Right reports in other styles than the five documents, made from numbers that are known.

Every number in them follows from the curves and accuracies that `numpy` draws by the seed.
"""

from __future__ import annotations

import numpy as np


def sweep(seed: int) -> str:
    """A sweep of coefficients: percentages by shots with bold bests, means, gaps, a loss table."""
    rng = np.random.default_rng([seed, 1])
    betas = (0.0, 0.02, 0.05, 0.1, 0.2)
    shots = np.round(rng.uniform(0.41, 0.62, (len(betas), 4)), 3)
    means = shots.mean(axis=1)
    best = shots.argmax(axis=0)
    lines = [
        "# KL sweep on ScienceQA",
        "",
        "## Setup",
        "",
        "- **Learning rate**: 2e-6",
        "- **Epochs**: 4",
        "",
    ]
    lines += ["## Test accuracy (400 samples)", ""]
    lines += [
        "| beta | 1-shot | 2-shot | 4-shot | 8-shot | Mean | vs 0.0 |",
        "|---|---|---|---|---|---|---|",
    ]
    for row, beta in enumerate(betas):
        cells = [f"{100 * value:.1f}%" for value in shots[row]]
        cells = [f"**{cell}**" if best[nth] == row else cell for nth, cell in enumerate(cells)]
        gap = "baseline" if not row else f"{100 * (means[row] - means[0]):+.2f}%"
        lines.append(f"| {beta} | " + " | ".join(cells) + f" | {100 * means[row]:.2f}% | {gap} |")
    top, low = int(means.argmax()), int(means.argmin())
    lines += ["", f"- beta={betas[top]} has the highest mean accuracy ({100 * means[top]:.2f}%)"]
    lines += [f"- beta={betas[low]} has the lowest mean accuracy ({100 * means[low]:.2f}%)", ""]
    lines += [
        "## Training",
        "",
        "| beta | KL | Policy Loss | Train Loss | Entropy |",
        "|---|---|---|---|---|",
    ]
    kl = np.round(rng.uniform(0.05, 0.9, len(betas)), 4)
    policy = np.round(rng.uniform(-0.02, 0.02, len(betas)), 4)
    entropy = np.round(rng.uniform(0.9, 2.1, len(betas)), 3)
    for row, beta in enumerate(betas):
        loss = policy[row] + beta * kl[row]
        lines.append(
            f"| {beta} | {kl[row]:.4f} | {policy[row]:.4f} | {loss:.4f} | {entropy[row]:.3f} |"
        )
    most, least = int(kl.argmax()), int(kl.argmin())
    lines += ["", f"- beta={betas[most]} has the highest KL ({kl[most]:.4f})"]
    lines += [f"- beta={betas[least]} has the lowest KL ({kl[least]:.4f})"]
    lines += [f"- The KL of beta={betas[most]} is higher than that of beta={betas[least]}", ""]
    return "\n".join(lines)


def agents(seed: int) -> str:
    """Two agents over steps: rewards, differences with changes, bests, a list, sentences."""
    rng = np.random.default_rng([seed, 2])
    steps = np.arange(20, 241, 20)
    free = np.round(0.3 + 0.3 * (1 - np.exp(-steps / 90)) + rng.normal(0, 0.02, len(steps)), 3)
    held = np.round(0.3 + 0.27 * (1 - np.exp(-steps / 70)) + rng.normal(0, 0.02, len(steps)), 3)
    lines = ["# Travel agent: leashed and free", "", "## Validation reward", ""]
    lines += ["| Step | free | leashed | Difference |", "|---|---|---|---|"]
    for step, ours, theirs in zip(steps, free, held, strict=True):
        gap = theirs - ours
        lines.append(
            f"| {step} | {ours:.3f} | {theirs:.3f} | {gap:+.3f} ({100 * gap / ours:+.1f}%) |"
        )
    top = {"free": int(free.argmax()), "leashed": int(held.argmax())}
    value = {"free": free, "leashed": held}
    lines += ["", "## Bests", "", "| Run | Best step | Best reward |", "|---|---|---|"]
    for name, at in top.items():
        lines.append(f"| {name} | {steps[at]} | {value[name][at]:.3f} |")
    lines += ["", "Notes:", ""]
    for name, at in top.items():
        lines.append(
            f"- {name} reaches its best reward of {value[name][at]:.3f} at step {steps[at]}"
        )
    gap = value["leashed"][top["leashed"]] - value["free"][top["free"]]
    share = 100 * gap / value["free"][top["free"]]
    ours, theirs = (value[name][top[name]] for name in ("leashed", "free"))
    lines += [f"- Best against best: {ours:.3f} vs {theirs:.3f} ({share:+.1f}%)", ""]
    for name in value:
        lines += [f"## Validation reward of {name}", "", "```"]
        lines += [f"Step {s}: {v:.3f}" for s, v in zip(steps, value[name], strict=True)]
        lines += ["```", ""]
    return "\n".join(lines)


def curves(seed: int) -> str:
    """两个配置的训练曲线：平均、初始、最终与变化，差异与句子。"""
    rng = np.random.default_rng([seed, 3])
    lines = ["# 余弦与线性学习率的训练曲线对比", "", "## 设置", "", "- **训练轮数**: 30", ""]
    metrics = {"KL散度": 0.06, "PPO Loss": 0.01, "Validation Loss": 6.4, "策略熵": 1.3}
    for number, (metric, size) in enumerate(metrics.items(), 1):
        values = size * (1 + 0.2 * rng.random((3, 2)))
        values[1] = values[1] * 1.3
        printed = np.round(values, 5)
        gaps = printed[:, 0] - printed[:, 1]
        change = 100 * (printed[2] - printed[1]) / printed[1]
        lines += [
            f"### {number}. {metric}",
            "",
            "| 指标 | 余弦 | 线性 | 差异 |",
            "|---|---|---|---|",
        ]
        for row, name in enumerate(("平均", "初始", "最终")):
            ours, theirs = printed[row]
            lines.append(f"| {name} | {ours:.5f} | {theirs:.5f} | {gaps[row]:.5f} |")
        between = change[0] - change[1]
        lines.append(f"| 变化 | {change[0]:.2f}% | {change[1]:.2f}% | {between:.2f}% |")
        lower = "余弦" if gaps[2] < 0 else "线性"
        lines += [
            "",
            f"- {lower} 的最终 {metric} 更低（{printed[2].min():.5f} vs {printed[2].max():.5f}）",
        ]
        lines += [f"- 最终差异为 {abs(gaps[2]):.5f}", ""]
    return "\n".join(lines)


STYLES = {"sweep": sweep, "agents": agents, "curves": curves}
