"""What a report says: a code, its sentence in English, its sentence in Chinese."""

from __future__ import annotations

REPORT: dict[str, tuple[str, str]] = {
    "report.title": ("Report: {name}", "报告：{name}"),
    "report.contents": ("Contents", "目录"),
    "report.as_table": ("The same as a table", "以表格显示"),
    # the verdict
    "report.use": (
        "Use {arm}: as a setting it is better than {baseline} on {metric}, {gap} over {n} seeds"
        " [{level}].",
        "用 {arm}：作为设置，它在{metric}上好于 {baseline}，{gap}（{n} 个随机种子）[{level}]。",
    ),
    "report.use_none": (
        "No setting is shown to be better than {baseline} on {metric}.",
        "没有任何设置被证明在{metric}上好于 {baseline}。",
    ),
    "report.word_of": (
        "{word}: {arms} (gaps from {low} to {high}).",
        "{word}：{arms}（差距从 {low} 到 {high}）。",
    ),
    "report.word_only": ("{word}: {arms}.", "{word}：{arms}。"),
    "report.sure.L1": (
        "How sure [L1]: it is about these runs as they were measured, and nothing beyond them.",
        "可靠程度 [L1]：只说明这些运行的这些测量，不能外推。",
    ),
    "report.sure.L2": (
        "How sure [L2]: it is about these checkpoints on questions like these; another seed could"
        " turn it round.",
        "可靠程度 [L2]：只说明这些检查点在同类题目上的表现；换一个随机种子，结果可能反过来。",
    ),
    "report.sure.L3": (
        "How sure [L3]: it is about the settings, over {n} seeds; 95 % intervals, adjusted for"
        " all comparisons made.",
        "可靠程度 [L3]：说明的是设置本身，依据 {n} 个随机种子；区间为 95%，"
        "已按所做的全部比较校正。",
    ),
    "report.unsaid": (
        "What it does not say: anything about values that were not trained, about other data, or"
        " about another model.",
        "它没有说明：没有训练过的取值、其他数据或其他模型会怎样。",
    ),
    "report.unsaid_setting": (
        "What it does not say: anything about the setting itself; that takes four seeds of each"
        " arm with nothing else changed.",
        "它没有说明：设置本身的作用；那需要每个配置至少 4 个随机种子，且其他条件都不变。",
    ),
    # what limits it
    "report.no_limits": (
        "Nothing was found that limits it beyond what the verdict says.",
        "除结论中所说的以外，没有发现其他限制。",
    ),
    "report.mixed": (
        "{run} differs from the rest in its {what}: {have}, not {want}; nothing about it can be"
        " ascribed to its setting.",
        "{run} 的{what}与其他运行不同：是 {have}，不是 {want}；不能把它的结果归因于设置。",
    ),
    "report.late": (
        "{arms}: added after results were seen ({count} of {of} arms).",
        "{arms}：在看到结果之后才加入（共 {of} 个配置，后加 {count} 个）。",
    ),
    "report.broken": (
        "{count} answers broke and are in no average.",
        "{count} 个应答失败，未计入任何平均。",
    ),
    "report.failed": ("{run} failed: {why}", "{run} 失败：{why}"),
    "report.more_findings": (
        "and {count} more of this kind",
        "同类还有 {count} 条",
    ),
    "report.tests": (
        "The test split was used on {count} checkpoints of arms; each use is a chance to choose"
        " by it.",
        "测试集共在各配置的 {count} 个检查点上用过；每用一次，就多一次据此挑选的机会。",
    ),
    # tables
    "report.summary_of": (
        "Test accuracy of the checkpoint chosen on validation, mean over {shots} shots,"
        " {items} items, {seeds} seeds; 95 % t intervals over seeds",
        "在验证集上选出的检查点的测试准确率：{shots} 个范例的平均，{items} 题，{seeds} 个随机种子；"
        "区间为种子间 95% t 区间",
    ),
    "report.matrix_counts": (
        "{cells} cells: {counts}.",
        "共 {cells} 个单元：{counts}。",
    ),
    "report.matrix_of": (
        "{split}, {items} items, mean over seeds with 95 % intervals (one seed: over items)",
        "{split}，{items} 题，种子间平均及 95% 区间（只有一个种子时按题目计算）",
    ),
    "report.matrix_told": (
        "{metric} as the sources tell it",
        "各来源给出的{metric}",
    ),
    "report.not_done": (
        "Cells that are not done, with what fills them",
        "尚未完成的单元，以及补齐它们的命令",
    ),
    "report.every_cell": (
        "Every cell, with its interval over items",
        "全部单元及其按题目计算的区间",
    ),
    "report.fill": ("Fill them with:", "用下面的命令补齐："),
    "report.baselines_of": (
        "Accuracy on the same {items} items without training; 95 % intervals",
        "同样 {items} 题上无需训练的准确率；95% 区间",
    ),
    "report.expected_of": (
        "{arm} {direction} than {baseline} on {metric}",
        "{arm} 在{metric}上相对 {baseline}：{direction}",
    ),
    "report.expectations_of": (
        "What the author wrote down before anything ran, and what came out",
        "作者在运行之前写下的预期，以及实际结果",
    ),
    "report.agreement_of": (
        "The checkpoints chosen, same seeds and test items; means over seeds",
        "选中的检查点，相同的随机种子与测试题目；种子间平均",
    ),
    "report.settings_of": (
        "Keys in which recipes differ; all others are equal",
        "训练配方中不同的键；其余全部相同",
    ),
    "report.uses_of": (
        "How often the test split was used",
        "测试集的使用次数",
    ),
    "report.answers": (
        "Answers: {asked} asked for, {bought} bought, {saved} saved ({share}) in {jobs} jobs.",
        "应答：请求 {asked} 个，实际调用 {bought} 个，节省 {saved} 个（{share}），"
        "共 {jobs} 个作业。",
    ),
    "report.levels": (
        "L1: these measurements. L2: these checkpoints on items like these. L3: the settings.",
        "L1：只是这些测量。L2：这些检查点在同类题目上。L3：设置本身。",
    ),
}
