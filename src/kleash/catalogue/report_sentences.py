"""What a report says: a code, its sentence in English, its sentence in Chinese."""

from __future__ import annotations

from kleash.catalogue.tuned_sentences import TUNED

REPORT: dict[str, tuple[str, str]] = {
    **TUNED,
    "report.title": ("Report: {name}", "报告：{name}"),
    "report.contents": ("Contents", "目录"),
    "report.as_table": ("The same as a table", "以表格显示"),
    # the verdict
    "report.nothing_yet": (
        "Nothing can be compared yet: no baseline arm and another arm have both begun.",
        "目前无法比较：基线配置与其他配置还没有都开始运行。",
    ),
    "report.word_of": (
        "{word}: {arms} (gaps from {low} to {high}).",
        "{word}：{arms}（差距从 {low} 到 {high}）。",
    ),
    "report.word_one": ("{word}: {arms} (gap {gap}).", "{word}：{arms}（差距 {gap}）。"),
    "report.word_only": ("{word}: {arms}.", "{word}：{arms}。"),
    "report.sure.L1": (
        "How far this goes [L1]: only these runs, as they were measured.",
        "结论适用范围 [L1]：仅限这些运行的这些测量。",
    ),
    "report.sure.L2": (
        "How far this goes [L2]: these checkpoints on questions like these. Another seed could turn"
        " it round.",
        "结论适用范围 [L2]：这些检查点在同类题目上；换一个随机种子，结果可能反过来。",
    ),
    "report.sure.L3": (
        "How far this goes [L3]: these settings on questions like these ({n} seeds, 95 % intervals,"
        " adjusted for all comparisons made).",
        "结论适用范围 [L3]：这些设置在同类题目上（{n} 个随机种子，95% 区间，已按全部比较校正）。",
    ),
    "report.sure.L3_these": (
        "How far this goes [L3]: these settings on what was measured ({n} seeds, 95 % intervals,"
        " adjusted for all comparisons made). Single scores were not kept.",
        "结论适用范围 [L3]：这些设置在所测内容上（{n} 个随机种子，95% 区间，已按全部比较校正）；"
        "没有保留逐题得分。",
    ),
    "report.unsaid": (
        "Not tested: other values, data or models.",
        "没有检验：其他取值、数据或模型。",
    ),
    "report.unsaid_setting": (
        "Not shown: what the setting itself does. That takes four seeds of each arm with nothing"
        " else changed.",
        "没有说明设置本身的作用：那需要每个配置至少 4 个随机种子，且其他条件都不变。",
    ),
    # the first screen
    "report.question": ("{name}: {question}", "{name}：{question}"),
    "report.question_of": ("{name}: what is the effect of {keys}?", "{name}：{keys}有什么影响？"),
    "report.facts_line": (
        "{data} · {items} test questions · {shots} shots · {arms} settings × {seeds} seeds ·"
        " {done} of {cells} measurements done",
        "{data} · {items} 道测试题 · {shots} 个范例 · {arms} 个配置 × {seeds} 个随机种子 ·"
        " 已完成 {done} / {cells} 项测量",
    ),
    "report.card.differ": ("Do the settings differ?", "各配置有差别吗？"),
    "report.card.leash": ("Does the leash hold?", "KL 约束有效吗？"),
    "report.card.next": ("What to run next?", "下一步做什么？"),
    "report.leash_holds": (
        "Yes: KL to the reference falls, {course} nats.",
        "有效：与参考策略的 KL 下降，{course} 纳特。",
    ),
    "report.leash_open": (
        "Not shown: KL is {least} to {most} nats in {names}.",
        "未能证明：{names}的 KL 为 {least} 到 {most} 纳特。",
    ),
    "report.leash_pulls_not": (
        "No: KL grows with the coefficient, {least} to {most} nats in {names}.",
        "无效：{names}的 KL 随系数增大，从 {least} 到 {most} 纳特。",
    ),
    "report.start_row": ("start ({name})", "起点（{name}）"),
    "report.reference": ("0 (reference)", "0（基准）"),
    "report.to_arm": ("{arm}: {gap}", "{arm}：{gap}"),
    "report.files_are": (
        "In the folder tables: {names}. Items on which arms disagree, with pictures: items.html."
        " As tables of a document: kleash report --tables.",
        "在 tables 目录中：{names}。各配置回答不一致的题目（附图）：items.html。"
        "以文档表格的形式：kleash report --tables。",
    ),
    "report.rows_left": (
        "{count} of {of} arms are not shown; tables/gaps.csv has all.",
        "共 {of} 个配置，{count} 个未列出；全部见 tables/gaps.csv。",
    ),
    # what limits it
    "report.all_arms": ("all {count} arms", "全部 {count} 个配置"),
    "report.no_limits": (
        "Nothing was found that limits it beyond what the verdict says.",
        "除结论中所说的以外，没有发现其他限制。",
    ),
    "report.mixed": (
        "the {what} is not the same in all runs: {count} ({runs}) differ from {want}; what differs"
        " with it cannot be ascribed to a setting",
        "并非所有运行的{what}都相同：有 {count} 个（{runs}）不是 {want}；"
        "随之而来的差别不能归因于设置",
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
        " {items} items, {seeds} seeds; 95 % intervals,"
        " those of changes and gaps adjusted for all comparisons made",
        "在验证集上选出的检查点的测试准确率：{shots} 个范例的平均，{items} 题，{seeds} 个随机种子；"
        "95% 区间，变化与差距的区间已按全部比较校正",
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
        "{metric} as the sources tell it, {items} items",
        "各来源给出的{metric}（{items} 题）",
    ),
    "report.not_done": (
        "Cells that are not done, with what fills them",
        "尚未完成的单元，以及补齐它们的命令",
    ),
    "report.every_cell": (
        "Every cell, with its interval over items",
        "全部单元及其按题目计算的区间",
    ),
    "report.left_out": (
        "{count} of {of} rows are left out; all are in",
        "共 {of} 行，省略了 {count} 行；全部见",
    ),
    "report.left_out_runs": (
        "{count} of {of} rows are left out; they are in the runs' own files, the first of them in",
        "共 {of} 行，省略了 {count} 行；见各运行自己的文件，第一个在",
    ),
    "report.left_out_epochs": (
        "{count} of {of} epochs are left out; they are in the runs' own files, the first of them"
        " in",
        "共 {of} 轮，省略了 {count} 轮；见各运行自己的文件，第一个在",
    ),
    "report.left_out_arms": (
        "{count} of {of} arms are left out; they are in the runs' own files, the first of them in",
        "共 {of} 个配置，省略了 {count} 个；见各运行自己的文件，第一个在",
    ),
    "report.left_out_json": (
        "{count} of {of} rows are left out; kleash study --json has them all.",
        "共 {of} 行，省略了 {count} 行；kleash study --json 给出全部。",
    ),
    "report.left_out_pairs": (
        "{count} of {of} pairs are left out; kleash study --json has them all.",
        "共 {of} 对，省略了 {count} 对；kleash study --json 给出全部。",
    ),
    "report.some_drawn": (
        "{drawn} of {of} arms are drawn, evenly from the highest to the lowest at the end.",
        "{of} 个配置中画出 {drawn} 个，按最后的值从高到低均匀选取。",
    ),
    "report.fill": ("Fill them with:", "用下面的命令补齐："),
    "report.baselines_of": (
        "Accuracy on the same {items} items without training; 95 % intervals",
        "同样 {items} 题上无需训练的准确率；95% 区间",
    ),
    "report.gained_of": (
        "What GRPO gained over the start it grew from, paired by seed and item ({items} items;"
        " the mean's interval is the verdict's, the others hold together at 95 %)",
        "GRPO 相对其起点的提升，按随机种子与题目配对（{items} 题；均值的区间即结论的区间，其余区间"
        "以 95% 的置信度同时成立）",
    ),
    "report.expected_alone": (
        "{arm}, which the others are compared with",
        "{arm}（其他配置的对照，自身没有可比较的对象）",
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
        "L1: these measurements. L2: these checkpoints on items like these. L3: the settings, on"
        " items like these where each one's score was kept.",
        "L1：只是这些测量。L2：这些检查点在同类题目上。"
        "L3：设置本身（保留了逐题得分时，指在同类题目上）。",
    ),
    # gaps
    "report.forest": (
        "{apart} of {of} gaps to {baseline} on {metric} are told apart from 0; whiskers are 95 %"
        " intervals, the band is the margin",
        "与 {baseline} 的 {of} 个{metric}差距中，有 {apart} 个可与 0 区分；横线为 95% 区间，"
        "灰带为容差",
    ),
    "report.forest_axis_points": (
        "gap to {baseline} on {metric}, percentage points",
        "与 {baseline} 的{metric}差距（百分点）",
    ),
    "report.forest_axis": (
        "gap to {baseline} on {metric}",
        "与 {baseline} 的{metric}差距",
    ),
    "report.wins_of": (
        "Gap on validation by checkpoint, paired by seed, with 95 % intervals; last, the cells in"
        " which every gap to another arm has an interval above 0 (not adjusted for their number)",
        "各检查点在验证集上的差距（按种子配对，95% 区间）；最后一列为对其他各配置的差距区间都在 0 "
        "以上的单元数（未按个数校正）",
    ),
    "report.scoreboard_of": (
        "Dimension by dimension against {baseline}: who is ahead, or that it is open",
        "逐项与 {baseline} 对比：谁领先，或尚未定论",
    ),
    "report.recommended_file": (
        "For machines (recommended.toml):",
        "机器可读形式（recommended.toml）：",
    ),
    # curves
    "report.curve": (
        "{name} at {axis} {place}: highest in {high} ({most}), lowest in {low} ({least}); one run"
        " each",
        "{name}：第 {place} {axis}以 {high} 最高（{most}），{low} 最低（{least}）；"
        "每个配置一次运行",
    ),
    "report.curve_band": (
        "{name} at {axis} {place}: highest in {high} ({most}), lowest in {low} ({least}); means"
        " of {runs} runs, bands: 95 % intervals over seeds",
        "{name}：第 {place} {axis}以 {high} 最高（{most}），{low} 最低（{least}）；"
        "{runs} 次运行的平均，色带为种子间 95% 区间",
    ),
    "report.curve_equal": (
        "{name} at {axis} {place}: {most} in all arms",
        "{name}：第 {place} {axis}各配置都是 {most}",
    ),
    "report.curve_apart": (
        "{name}: the arms were measured at different places",
        "{name}：各配置的测量位置不同",
    ),
    "report.curve_one": ("{name}: {high} ends at {most}", "{name}：{high} 最后为 {most}"),
    "report.curve_one_band": (
        "{name}: {high} ends at {most}; mean of {runs} runs, band: 95 % interval over seeds",
        "{name}：{high} 最后为 {most}；{runs} 次运行的平均，色带为种子间 95% 区间",
    ),
    "report.summary_metric": (
        "{name}: summary (extrema with their place)",
        "{name}：汇总（极值附位置）",
    ),
    "report.summary_constant": (
        "{name}: summary; constant by construction, it says nothing about an arm",
        "{name}：汇总；按定义恒定，不能说明任何配置",
    ),
    "report.epoch_of": (
        "Epoch {place}: mean over runs; ↑ greatest, ↓ least",
        "第 {place} 轮：各运行的平均；↑ 最大，↓ 最小",
    ),
    "report.labelled": ("{name} ({label})", "{name}（{label}）"),
    "report.all_equal": ("equal in all arms", "各配置相同"),
    "report.steps_of": (
        "{name} step by step, with the change from the point before; extrema in bold",
        "{name}逐步对比，括号内为相对前一点的变化；极值加粗",
    ),
    "report.less": ("{ours} less {theirs}", "{ours} 减 {theirs}"),
    "report.dynamics_of": (
        "{name} at steps that all arms have",
        "{name}：各配置共有的步",
    ),
    "report.metrics_of": (
        "Every metric of every run: known values only",
        "各运行的各项指标：只用已知的数值",
    ),
    # what was chosen
    "report.frontier": (
        "{far} went furthest from the reference; {high} scored highest; lines are 95 % intervals"
        " over seeds",
        "{far} 离参考策略最远；{high} 得分最高；线段为种子间 95% 区间",
    ),
    "report.percent_axis": ("{name}, %", "{name}（%）"),
    "report.kl_of": (
        "√KL from the base at the chosen checkpoint, on the probe set that all arms share",
        "所选检查点相对起始策略的 √KL，在各配置共用的探测集上",
    ),
    "report.agreement_title": (
        "Two arms choose the same pointer on {low} to {high} of test items",
        "任意两个配置在 {low} 到 {high} 的测试题目上选出相同的范例序列",
    ),
    "report.demonstrations": (
        "The ten most chosen of {count} demonstrations make up {share} of all choices",
        "在被选中过的 {count} 个范例中，最常选的十个占全部选择的 {share}",
    ),
    "report.ranked_axis": (
        "demonstrations, the {most} most chosen of {count}",
        "范例（{count} 个中最常选的 {most} 个）",
    ),
    "report.chosen_of": (
        "Choices of the chosen checkpoints on the test, all seeds",
        "选中的检查点在测试集上的选择，全部随机种子",
    ),
    "report.items_of": (
        "On {count} of {of} test items the arms' mean scores differ; the {shown} furthest apart,"
        " with the answers and demonstrations of the first seed:",
        "在 {of} 道测试题目中，各配置的平均得分有 {count} 道不同；下面是相差最大的 {shown} 道，"
        "附第一个随机种子的应答与范例：",
    ),
    "report.asked": ("{question} ({answer})", "{question}（{answer}）"),
    "report.arm_said": (
        "{arm}: {score}, said {answer}; shown {pointer}",
        "{arm}：{score}，答 {answer}；范例：{pointer}",
    ),
    "report.settings_told": (
        "Settings that are not the same in all arms, as the sources tell them; two values in one"
        " field contradict each other",
        "各来源给出的、并非所有配置都相同的设置；同一格中的两个值互相矛盾",
    ),
    # the end
    "report.swings_of": (
        "{name}: the largest change between neighbouring points, and the SD over points",
        "{name}：相邻两点的最大变化，以及各点的标准差",
    ),
    "report.efficiency_of": (
        "What the clocks say, as logged",
        "日志记录的时间与吞吐",
    ),
    "report.presets_of": (
        "Each preset's size, time and accuracy by shots; in brackets the paired gap to the arm it"
        " is compared with ({items} items, {seeds} seeds, 95 % intervals, not adjusted for their"
        " number)",
        "各预设的参数量、用时与各范例数下的准确率；括号内为与对照配置的配对差距"
        "（{items} 题，{seeds} 个随机种子，95% 区间，未作多重比较校正）",
    ),
    "report.clocks_of": (
        "What the clocks say, over all epochs and seeds of an arm; and how many times its baseline"
        " arm's, paired by seed, with 95 % intervals: what the setting cost where runs shared a"
        " machine",
        "各配置全部轮次与随机种子的时间与吞吐；并与基线配置按种子配对相比的倍数（95% 区间）："
        "运行共用一台机器时，该设置的代价",
    ),
    "report.unmatched": (
        "nothing measured rounds to it",
        "没有任何测量值四舍五入到它",
    ),
    "report.notes_of": (
        "Numbers in the notes beside what was measured",
        "笔记中的数字与测量值对照",
    ),
    "report.changed.verdicts": ("verdict, {name}", "结论，{name}"),
    "report.changed.scores": ("score of {name}", "{name} 的得分"),
    "report.changed.cells": ("cells {name}", "单元：{name}"),
    "report.unchanged": (
        "Nothing has changed since the last report.",
        "自上次报告以来没有变化。",
    ),
    "report.changes_of": (
        "What is not as the last report said",
        "与上次报告不同之处",
    ),
    "report.sources_of": (
        "Files that were read (SHA-256)",
        "读取的文件（SHA-256）",
    ),
    "report.runs_of": (
        "Every run with the hashes of what went in",
        "各次运行及其输入的哈希",
    ),
}
