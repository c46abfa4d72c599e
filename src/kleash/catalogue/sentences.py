"""What `compare` says: a code, its sentence in English, its sentence in Chinese."""

from __future__ import annotations

from kleash.catalogue.answers import ANSWERS
from kleash.catalogue.attribution_words import ATTRIBUTION
from kleash.catalogue.prospect_words import PROSPECT
from kleash.catalogue.tensors import TENSORS

SENTENCES: dict[str, tuple[str, str]] = {
    **TENSORS,
    **ANSWERS,
    **ATTRIBUTION,
    **PROSPECT,
    # what was compared
    "curve_means": (
        "mean over {axis}s {first}–{last} ({n} points both have): {ours} against {theirs}",
        "第 {first}–{last} {axis}（双方都有的 {n} 个点）的平均：{ours} 对 {theirs}",
    ),
    "curve_ends": (
        "{axis} {last}, the last that both have: {ours} against {theirs}",
        "双方都有的最后一{axis}（第 {last} {axis}）：{ours} 对 {theirs}",
    ),
    "ends_differ": (
        "each seed at the last {axis} that both its runs have: {first} to {last}",
        "每个随机种子取其两次运行都有的最后一{axis}：第 {first} 至 {last} {axis}",
    ),
    "cell_means": (
        "mean over {shots} shot counts on {n} items: {ours} against {theirs}",
        "{n} 道题目、{shots} 种范例数的平均：{ours} 对 {theirs}",
    ),
    "seed_means": (
        "run means over {n} seeds (paired by seed: {paired}): {ours} against {theirs}",
        "{n} 个随机种子的运行均值（按种子配对：{paired}）：{ours} 对 {theirs}",
    ),
    "seeds_of_one_arm": (
        "left out, since {other} has no run with the same seed: seed {seeds} of {arm}",
        "{other} 没有相同随机种子的运行，因此不计入 {arm} 的随机种子 {seeds}",
    ),
    "on_items_like_these": (
        "it holds for items like these: {share} of the squared error is theirs and in the interval,"
        " which would be for these items alone from {low} to {high}",
        "结论适用于同类题目：误差平方中有 {share} 来自题目，已计入区间；"
        "若只针对这些题目，区间为 {low} 至 {high}",
    ),
    "on_these_items": (
        "scores of items were not kept under each seed: it holds for the items measured, and what"
        " others like them would change is not in the interval",
        "没有保留各随机种子下的逐题得分：结论只针对所测的题目，换一批同类题目的影响不在区间内",
    ),
    "items_differ": (
        "{k} of {n} items are scored differently",
        "{n} 道题目中有 {k} 道得分不同",
    ),
    "common_items": (
        "the item sets differ: compared on the {n} they share (of {of})",
        "题目集合不同：只比较共有的 {n} 道（共 {of} 道）",
    ),
    "run_means_only": (
        "only means of whole runs are told ({ours} against {theirs}): they have no spread, so"
        " no interval",
        "只给出了整个运行的平均值（{ours} 对 {theirs}）：没有离散程度，无法给出区间",
    ),
    "means_of_unknown_size": (
        "{ours} against {theirs} (mean over {shots} cells): nobody says of how many items, so no"
        " interval",
        "{ours} 对 {theirs}（{shots} 个单元的平均）：没有说明是多少道题目，无法给出区间",
    ),
    "mean_over_sets": (
        "it is the mean over {sets}, each counting the same",
        "这是 {sets} 的平均值，各数据集权重相同",
    ),
    "read_as_percent": (
        "{metric} was read as percent in all runs, since {most} can be no fraction",
        "{metric}在所有运行中都按百分数读取，因为 {most} 不可能是比例",
    ),
    "no_share": (
        "{arm}: {metric} of {value} at {axis} {step} is no fraction: it is left out ({count} in"
        " all; --unit METRIC=percent if all are percent)",
        "{arm}：第 {step} {axis}的{metric}为 {value}，不可能是比例，已剔除（共 {count} 个；"
        "若全部是百分数，请用 --unit 指标=percent）",
    ),
    "it_diverged": (
        "{arm} diverged at {axis} {step}: {metric} is NaN or infinite from there to {axis} {last},"
        " its end ({runs} of {of} runs)",
        "{arm} 在第 {step} {axis}发散：从那里到结束（第 {last} {axis}），{metric}一直是 NaN 或"
        "无穷大（{of} 次运行中的 {runs} 次）",
    ),
    "one_checkpoint": (
        "one of the two was measured at one checkpoint only: it is held against the other's last",
        "其中一方只有一个检查点的测量：与另一方的最后一个检查点相比",
    ),
    "called_shortly": (
        "arms are called by what differs in their names: {names}",
        "配置只用名称中不同的部分来称呼：{names}",
    ),
    "no_arms": (
        "no arms, because they have neither the metric nor a coefficient: {arms}",
        "不算配置，因为既没有该指标也没有系数：{arms}",
    ),
    "no_known_end": (
        "measured, but nothing tells which end is better: {metrics}; --on +NAME says that higher"
        " is, --on -NAME that lower is",
        "测过，但不知道高好还是低好：{metrics}；--on +名称 表示越高越好，--on -名称 表示越低越好",
    ),
    "not_used": (
        "read and not used: {names}",
        "读到但未采用：{names}",
    ),
    "nothing_shared": (
        "the runs have no common steps for this metric ({names})",
        "两个配置在该指标上没有共同的步（{names}）",
    ),
    # why a verdict is no stronger
    "steps_are_not_replicates": (
        "steps of one run are not replicates: this is about these two curves",
        "同一次运行的各步不是重复实验：结论只针对这两条曲线",
    ),
    "noise_from_bends": (
        "the interval has the noise of evaluating, from how the curves bend: it is about these two"
        " checkpoints",
        "区间只含评估噪声（由曲线的起伏估计）：结论只针对这两个检查点",
    ),
    "too_few_steps": (
        "fewer than 8 common points: no verdict on a curve",
        "共有的点不足 8 个：不对曲线下结论",
    ),
    "neighbours_alike": (
        "neighbouring steps are so alike that the interval is too narrow",
        "相邻各步过于相似，区间偏窄",
    ),
    "too_few_seeds": (
        "fewer than 4 seeds per arm: this is about these runs, not about the setting",
        "每个配置不足 4 个随机种子：结论只针对这几次运行，不针对设置",
    ),
    "estimates_unused": (
        "{arm}: {count} values are estimates and are used in nothing; {usable} usable points",
        "{arm}：{count} 个值是估计值，任何计算都不使用；可用的点有 {usable} 个",
    ),
    "inside_at_90": (
        "the 90 % interval, {low} to {high}, lies inside the margin of {margin}",
        "90% 区间（{low} 到 {high}）完全落在容差 {margin} 之内",
    ),
    "no_spread": (
        "the gap is the same everywhere, so nothing shows how noisy it is: were the same values"
        " logged twice?",
        "各处差距完全相同，看不出噪声有多大：是不是同一份数值记录了两遍？",
    ),
    "needs_margin": (
        "equivalent only for margins of {margin} or wider",
        "只有容差不小于 {margin} 时才算等价",
    ),
    "one_run_per_arm": (
        "one run per arm: nothing follows about the coefficient; another seed could move each run"
        " by an unknown amount",
        "每个配置只有一次运行：不能对系数下任何结论；换一个随机种子，结果会变动多少并不知道",
    ),
    "config_unknown": (
        "the configs do not tell in what the arms differ: nothing shows that it is one setting",
        "配置没有说明两者差在哪里：无从证明只改变了一个设置",
    ),
    "scores_lost": (
        "per-item scores were not kept: the interval is that of two unrelated samples of {n}",
        "没有保留逐题得分：区间按两个互不相关的 {n} 题样本计算",
    ),
    "p_at_best": (
        "from the means alone p is at least {least}, if all {k} smallest differences went one way",
        "仅凭平均值，p 至少为 {least}（假设 {k} 个最小差异全部同向）",
    ),
    "printed_alike": (
        "all {cells} accuracies that both have on {n} items are equal to the last printed digit:"
        " probably the same outputs, perhaps of the same weights; this does not show equal"
        " performance",
        "双方在 {n} 道题目上共有的 {cells} 个准确率到最后一位都相同：很可能输出完全相同，"
        "甚至评估的是同一份权重；这不能说明性能相同",
    ),
    "undone_by_many": (
        "decided alone, but not among the {count} comparisons made (adjusted p = {p})",
        "单独看可下结论，但在所做的 {count} 个比较中不成立（校正后 p = {p}）",
    ),
    "contradicted": (
        "sources contradict each other on the {key} of {arm}: {values}",
        "各来源对 {arm} 的{key}说法矛盾：{values}",
    ),
    "integrity_two_histories": (
        "one arm has two different histories of this metric",
        "同一配置的该指标有两份不同的记录",
    ),
    "integrity_broken_items": (
        "more than 2 % of items failed on one side and are in no average",
        "一方有超过 2% 的题目失败，未计入任何平均",
    ),
    "integrity_stale_weights": (
        "the same weights were evaluated under several names",
        "同一份权重被当作几个检查点来评估",
    ),
    "integrity_off_lattice": (
        "a printed value cannot be a mean over the stated number of items",
        "有一个数不可能是所述题数的平均",
    ),
    "same_weights": (
        "they were scored from the same weights",
        "评分所用的是同一份权重",
    ),
    "other_weights": (
        "the weights that were scored are not the same: they differ in no answer",
        "评分所用的权重并不相同，只是没有一个答案不同",
    ),
    "as_good": ("not told apart from it: {arms}", "与它分不出高下：{arms}"),
    "best_setting": ("{arm} is better as a setting", "{arm}作为设置更好"),
    # what else changed
    "changed": (
        "{key} differs: {values} ({arms}; {sources})",
        "{key}不同：{values}（{arms}；{sources}）",
    ),
    "unknown": (
        "{name}, whose meaning is not known, differs: {values} ({arms})",
        "含义未知的 {name} 不同：{values}（{arms}）",
    ),
    # what to run next
    "settle": (
        "look up which {key} {arms} had: {values}",
        "查清 {arms} 的{key}到底是哪个：{values}",
    ),
    "settle.why": ("the sources contradict each other", "各来源互相矛盾"),
    "check_weights": (
        "compare the hashes of the weights as loaded for evaluation ({arms})",
        "比较评估时实际加载的权重的哈希（{arms}）",
    ),
    "check_weights.why": (
        "identical outputs are what the same weights give",
        "同一份权重才会给出完全相同的输出",
    ),
    "evaluate_start": (
        "evaluate the checkpoint that training started from",
        "评估训练的起始检查点",
    ),
    "evaluate_start.why": (
        "outputs that never changed are the start's own",
        "从未变过的输出，就是起点自己的输出",
    ),
    "fill_cells": (
        "fill the {missing} missing cells; {of} commands are at hand, such as {commands}",
        "补齐 {missing} 个缺失单元；现成的命令有 {of} 条，例如 {commands}",
    ),
    "fill_cells.why": (
        "missing is not 0, and nothing follows from it",
        "缺失不是 0，由此得不出任何结论",
    ),
    "fill_cells_by_hand": (
        "measure the {missing} missing cells",
        "测量 {missing} 个缺失单元",
    ),
    "fill_cells_by_hand.why": (
        "missing is not 0, and nothing follows from it",
        "缺失不是 0，由此得不出任何结论",
    ),
    "score_items": (
        "evaluate the saved checkpoints again on the same {items} items and keep the score of each",
        "在相同的 {items} 道题目上重新评估已保存的检查点，并保留逐题得分",
    ),
    "score_items.why": (
        "paired scores decide at this margin if about 5 % of items differ; no training needed",
        "若约 5% 的题目得分不同，配对得分足以在此容差下判定；无需训练",
    ),
    "score_checkpoints": (
        "validate the saved checkpoints of all arms again on the same, more items, keeping every"
        " item's score",
        "在相同且更多的题目上重新验证各配置已保存的检查点，并保留逐题得分",
    ),
    "score_checkpoints.why": (
        "gives the noise of evaluation and a paired interval; no training needed",
        "可得到评估噪声与配对区间；无需训练",
    ),
    "more_items": (
        "score about {more} more items, if the spread stays as it is",
        "若离散程度不变，再评估约 {more} 道题目",
    ),
    "more_items.why": ("then the gap or the margin decides", "届时可由差距或容差判定"),
    "unconfound": (
        "train {arm}'s setting ({factor} {coefficient}) once more with all else as in {baseline}:"
        " {keep}",
        "只保留 {arm} 的{factor}（{coefficient}），其余与 {baseline} 相同（{keep}），再训练一次",
    ),
    "unconfound.why": (
        "the one run that separates the factor from what else changed",
        "这一次运行就能把该因素与其他改变分开",
    ),
    "seeds": (
        "2 more seeds of every arm (detects {two} between-seed SDs), or 4 more ({four})",
        "每个配置再跑 2 个随机种子（可检出 {two} 倍种子间标准差），或再跑 4 个（{four} 倍）",
    ),
    "seeds.why": (
        "only runs with other seeds say anything about a setting",
        "只有不同随机种子的运行才能说明设置的作用",
    ),
    "more_seeds": (
        "{more} more seeds of each of {arms}, if the spread stays as it is",
        "若离散程度不变，{arms} 各再跑 {more} 个随机种子",
    ),
    "one_more_seed": (
        "one more seed of each of {arms}, if the spread stays as it is",
        "若离散程度不变，{arms} 各再跑 1 个随机种子",
    ),
    "one_more_seed.why": ("then the gap or the margin decides", "届时可由差距或容差判定"),
    "more_seeds.why": ("then the gap or the margin decides", "届时可由差距或容差判定"),
    "after_divergence": (
        "look at what {arm} logged just before {axis} {step}, where it diverged (gradient norm, KL,"
        " rewards), then run it again with a lower learning rate",
        "先查看 {arm} 在{axis} {step} 发散之前的记录（梯度范数、KL、奖励），再以更小的学习率重跑",
    ),
    "after_divergence.why": (
        "more seeds of a setting that ends in NaN would show nothing more",
        "以 NaN 告终的设置，再加随机种子也看不出更多",
    ),
    "tell_configs": (
        "give the configs of all runs beside their logs",
        "把各次运行的配置与日志一起提供",
    ),
    "tell_configs.why": (
        "without them nothing can be ascribed to a setting",
        "没有配置，就不能把任何差距归因于某个设置",
    ),
    "measure_outcome": (
        "measure an outcome (accuracy or reward on held-out items) for every arm",
        "为每个配置测量一个结果指标（留出题目上的准确率或奖励）",
    ),
    "measure_outcome.why": ("nothing told here has a better end", "现有指标都没有好坏之分"),
    # frames
    "title": (
        "{arms} arms against {baseline}, on {metric}",
        "{arms} 个配置，以 {baseline} 为基线，比较{metric}",
    ),
    "against": ("{ours} against {theirs}", "{ours} 对 {theirs}"),
    "interval_of": (
        "{gap} (95 % interval, {n} {counted})",
        "{gap}（95% 区间，{n} {counted}）",
    ),
    "at_step": ("{metric} at {axis} {last}", "第 {last} {axis}的{metric}"),
    "over_steps": (
        "{metric} over {axis}s {first}–{last}",
        "第 {first}–{last} {axis}平均{metric}",
    ),
    "per_doubling": (
        "{gap} per doubling of the coefficient",
        "系数每翻一倍 {gap}",
    ),
    "gap_of": ("{gap} ({n} {counted})", "{gap}（{n} {counted}）"),
    "bound_of": (
        "on {n} items; the gap on others is below {bound}",
        "在 {n} 道题目上；在其他题目上差距小于 {bound}",
    ),
    "not_attributable": (
        "not attributable to the {factor}; also changed: {keys}",
        "不能归因于{factor}；同时改变的还有：{keys}",
    ),
    "more_of_kind": (" (and {count} more of this kind)", "（同类还有 {count} 条）"),
    "more_lines": ("… and {count} more (--json or --md)", "……还有 {count} 条（--json 或 --md）"),
    "cost_hours": ("about {hours} h of the same machine", "同一机器约 {hours} 小时"),
    "cost_minutes": ("about {minutes} min of the same machine", "同一机器约 {minutes} 分钟"),
    "cost_device_minutes": ("about {minutes} GPU-minutes", "约 {minutes} GPU 分钟"),
    "cost_devices": ("about {hours} GPU-hours", "约 {hours} GPU 小时"),
    "cost_none": ("no GPU", "不需要 GPU"),
    "cost_inference": ("inference only", "只需推理"),
    "cost_unknown": ("a training; the logs do not tell its time", "一次训练；日志没有给出时间"),
    "matrix_line": (
        "{known} cells known, {missing} missing, {estimated} estimated (used in nothing)",
        "已知 {known} 个单元，缺失 {missing} 个，估计 {estimated} 个（任何计算都不使用）",
    ),
    "where": ("{file} line {line}", "{file} 第 {line} 行"),
}
