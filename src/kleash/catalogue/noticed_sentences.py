"""What a run's own guards noticed while it trained, as a report says it."""

from __future__ import annotations

NOTICED: dict[str, tuple[str, str]] = {
    "run-collapse": (
        "{arms}: {count} of {of} runs showed signs of collapse, first at {at}",
        "{arms}：{of} 次运行中有 {count} 次出现崩溃迹象，最早在{at}",
    ),
    "run-no-signal": (
        "{arms}: in {count} of {of} runs whole epochs had no signal, first by {at}: all episodes of"
        " every group had the same reward, so nothing was learnt there",
        "{arms}：{of} 次运行中有 {count} 次整轮没有信号，最早到{at}："
        "每组的奖励全部相同，什么也没学到",
    ),
    "run-little-signal": (
        "{arms}: in {count} of {of} runs few groups had any signal, first by {at}",
        "{arms}：{of} 次运行中有 {count} 次只有少数组有信号，最早到{at}",
    ),
    "run-near-uniform": (
        "{arms}: {count} of {of} runs chose hardly better than blindly after the supervised phase",
        "{arms}：{of} 次运行中有 {count} 次在监督阶段之后几乎与盲选无异",
    ),
    "run-no-choice": (
        "{arms}: in {count} of {of} runs the pool is as large as the shots: only the order is left"
        " to choose",
        "{arms}：{of} 次运行中有 {count} 次候选池与范例数一样大：能选的只有顺序",
    ),
    "run-coefficient-unit": (
        "{arms}: in {count} of {of} runs advantages are divided by the spread of their group and"
        " the KL term is not, so a coefficient has no fixed strength. Mend: leash.scaled=true",
        "{arms}：{of} 次运行中有 {count} 次优势除以了组内标准差而 KL 项没有，系数的强度并不固定；"
        "可设 leash.scaled=true",
    ),
    "run-few-tasks": (
        "{arms}: {count} of {of} runs are validated on too few tasks to tell checkpoints apart",
        "{arms}：{of} 次运行中有 {count} 次的验证任务太少，分不出检查点的好坏",
    ),
    "run-far-sampler": (
        "{arms}: in {count} of {of} runs who sampled was far from the policy that learnt, first by"
        " {at}: weights for so large a gap are noise",
        "{arms}：{of} 次运行中有 {count} 次采样所用的策略与正在学习的策略相距太远，最早到{at}："
        "弥补这种差距的重要性权重噪声很大",
    ),
}
