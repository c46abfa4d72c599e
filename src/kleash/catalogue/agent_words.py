"""What reports of language agents say in other words than those of selectors, and of factors.

The keys are those of the tables they go before: a report looks here first where agents are trained.
"""

from __future__ import annotations

AGENT_SECTIONS: dict[str, tuple[str, str]] = {
    "baselines": ("Before GRPO", "GRPO 之前"),
    "frontier": ("Reward against distance from the reference", "奖励与偏离参考策略的程度"),
    "demonstrations": ("What agents say, and how often", "各种发言及其次数"),
    "items": ("Where arms disagree", "各配置不一致的任务"),
}
AGENT_COLUMNS: dict[str, tuple[str, str]] = {
    "score": ("reward", "奖励"),
    "shots": ("{n} sampled passes", "采样 {n} 遍"),
    "shots.1": ("1 sampled pass", "采样 1 遍"),
    "shots.0": ("greedy", "贪心"),
    "n_shots": ("sampled passes (0: greedy)", "采样遍数（0 为贪心）"),
    "items": ("tasks", "任务数"),
    "baseline": ("start", "起点"),
    "equal_pointers": ("equal conversations", "对话完全相同"),
    "place": ("turn {n} equal", "第 {n} 次发言相同"),
    "most_chosen": ("said most often", "最常说的"),
    "distinct": ("different ones", "不同的发言数"),
    "top_ten": ("share of the ten most said", "前十种所占比例"),
    "times": ("times said", "次数"),
    "demonstration": ("turn", "发言"),
    "speech": ("vocabulary and template", "词表与模板"),
}
AGENT: dict[str, tuple[str, str]] = {
    "report.summary_of.agent": (
        "Test reward of the checkpoint chosen on validation, mean over {shots}, {items} tasks,"
        " {seeds} seeds; 95 % intervals,"
        " those of changes and gaps adjusted for all comparisons made",
        "在验证集上选出的检查点的测试奖励：{shots}的平均，{items} 个任务，{seeds} 个随机种子；"
        "95% 区间，变化与差距的区间已按全部比较校正",
    ),
    "report.matrix_of.agent": (
        "{split}, {items} tasks, mean reward over seeds with 95 % intervals (one seed: over tasks)",
        "{split}，{items} 个任务，奖励的种子间平均及 95% 区间（只有一个种子时按任务计算）",
    ),
    "report.every_cell.agent": (
        "Every cell, with its interval over tasks",
        "全部单元及其按任务计算的区间",
    ),
    "report.baselines_of.agent": (
        "Reward on the same {items} tasks of the policies that all arms start from; 95 % intervals"
        " over seeds",
        "各配置共同的起始策略在同样 {items} 个任务上的奖励；种子间 95% 区间",
    ),
    "report.gained_of.agent": (
        "What GRPO gained over the start it grew from, paired by seed and task ({items} tasks;"
        " the mean's interval is the verdict's, the others hold together at 95 %)",
        "GRPO 相对其起点的提升，按随机种子与任务配对（{items} 个任务；均值的区间即结论的区间，"
        "其余区间以 95% 的置信度同时成立）",
    ),
    "report.broken.agent": (
        "{count} episodes broke and are in no average.",
        "{count} 个回合中断，未计入任何平均。",
    ),
    "report.sure.L2.agent": (
        "How far this goes [L2]: these checkpoints on tasks like these. Another seed could turn it"
        " round.",
        "结论适用范围 [L2]：这些检查点在同类任务上；换一个随机种子，结果可能反过来。",
    ),
    "report.sure.L3.agent": (
        "How far this goes [L3]: these settings on tasks like these ({n} seeds, 95 % intervals,"
        " adjusted for all comparisons made).",
        "结论适用范围 [L3]：这些设置在同类任务上（{n} 个随机种子，95% 区间，已按全部比较校正）。",
    ),
    "report.facts_line.agent": (
        "{data} · {items} test tasks · {arms} settings × {seeds} seeds · {done} of {cells}"
        " measurements done",
        "{data} · {items} 个测试任务 · {arms} 个配置 × {seeds} 个随机种子 ·"
        " 已完成 {done} / {cells} 项测量",
    ),
    "report.levels.agent": (
        "L1: these measurements. L2: these checkpoints on tasks like these. L3: the settings, on"
        " tasks like these where each one's score was kept.",
        "L1：只是这些测量。L2：这些检查点在同类任务上。"
        "L3：设置本身（保留了逐个得分时，指在同类任务上）。",
    ),
    "report.agreement_of.agent": (
        "The checkpoints chosen, same seeds and test tasks, first tries; means over seeds",
        "选中的检查点，相同的随机种子与测试任务，各取第一次尝试；种子间平均",
    ),
    "report.agreement_title.agent": (
        "Two arms say the same from beginning to end on {low} to {high} of test tasks",
        "任意两个配置在 {low} 到 {high} 的测试任务上从头到尾说得一样",
    ),
    "report.demonstrations.agent": (
        "The ten most said of {count} different turns make up {share} of all turns",
        "在 {count} 种不同的发言中，最常说的十种占全部发言的 {share}",
    ),
    "report.ranked_axis.agent": (
        "turns, the {most} most said of {count}",
        "发言（{count} 种中最常说的 {most} 种）",
    ),
    "report.chosen_of.agent": (
        "Turns of the chosen checkpoints on the test, the first try at each task, all seeds",
        "选中的检查点在测试集上的发言，每个任务的第一次尝试，全部随机种子",
    ),
    "report.items_of.agent": (
        "On {count} of {of} test tasks the arms' mean rewards differ; the {shown} furthest apart,"
        " with what was said in the first seed:",
        "在 {of} 个测试任务中，各配置的平均奖励有 {count} 个不同；下面是相差最大的 {shown} 个，"
        "附第一个随机种子的对话：",
    ),
    "report.arm_said.agent": (
        "{arm}: {score}, ended by {answer}; said {pointer}",
        "{arm}：{score}，结束于 {answer}；发言：{pointer}",
    ),
    "report.courses_of": (
        "The same over seeds, on validation: one number for each seed, paired, with 95 % intervals"
        " (not adjusted for their number); who is ahead where the interval says so",
        "在验证集上按随机种子对比：每个种子一个数，配对，95% 区间（未按个数校正）；"
        "区间足以区分时给出领先者",
    ),
    "report.course.peak": ("highest evaluation of a run", "一次运行中的最高评测"),
    "report.course.threshold": (
        "epochs to {level}, which all reach",
        "达到 {level} 的轮数（都能达到）",
    ),
    "report.course.swings": ("swings (SD of second differences)", "波动（二阶差分的标准差）"),
    "report.course.early": ("early: first third", "前期：前三分之一"),
    "report.course.middle": ("middle third", "中期：中间三分之一"),
    "report.course.late": ("late: last third", "后期：后三分之一"),
    "report.factors_of": (
        "What each setting of the grid did by itself, mean over all values of the others, and which"
        " two did something together; paired by seed, 95 % intervals, p adjusted for all rows",
        "网格中各设置单独的作用（对其他设置的全部取值平均），以及两两之间的相互作用；按种子配对，"
        "95% 区间，p 值按全部行校正",
    ),
    "report.factors_seen": (
        "{apart} of {of} effects are told apart from 0 (adjusted p below 0.05): {names}",
        "{of} 个作用中有 {apart} 个可与 0 区分（校正后 p 小于 0.05）：{names}",
    ),
    "report.factors_none": (
        "None of {of} effects is told apart from 0 (adjusted p below 0.05)",
        "{of} 个作用中没有一个可与 0 区分（校正后 p 小于 0.05）",
    ),
    "report.factors_axis": ("effect, percentage points", "作用（百分点）"),
    "report.factors_axis.agent": ("effect on reward", "对奖励的作用"),
    "report.matched_axis.agent": ("gap on reward", "奖励差距"),
    "report.gains_axis.agent": ("gain over {baseline} on reward", "相对 {baseline} 的奖励增益"),
}
