"""What `compare` says to the questions beside "worse or about the same", English and Chinese."""

from __future__ import annotations

ANSWERS: dict[str, tuple[str, str]] = {
    # faster, steadier, which step
    "threshold_reached": (
        "to {threshold}, the highest value both reach: {axis} {ours} against {axis} {theirs}",
        "达到双方都能达到的最高值 {threshold}：第 {ours} {axis}对第 {theirs} {axis}",
    ),
    "thresholds_counted": (
        "of {of} common thresholds: first to {first}, later to {later}",
        "在 {of} 个共同阈值中：先到 {first} 个，后到 {later} 个",
    ),
    "not_by_best": (
        "own best at {axis} {ours} against {axis} {theirs} is not speed",
        "各自最佳在第 {ours} {axis}与第 {theirs} {axis}，这不是速度",
    ),
    "no_interval": (
        "without single scores there is no interval",
        "没有逐题得分，无法给出区间",
    ),
    "swings": (
        "second-difference SD {ours} against {theirs}",
        "二阶差分标准差 {ours} 对 {theirs}",
    ),
    "drawdowns": (
        "largest drawdown {ours} against {theirs} (p = {p} by swapping steps)",
        "最大回撤 {ours} 对 {theirs}（交换各步检验 p = {p}）",
    ),
    "drawdowns_seen": (
        "largest drawdown {ours} against {theirs}",
        "最大回撤 {ours} 对 {theirs}",
    ),
    "points_for_ratio": (
        "{n} points; a ratio of 1.5 takes about {need}",
        "只有 {n} 个点；要看出 1.5 倍之差约需 {need} 个",
    ),
    "best_of_arm": (
        "{arm}: best {axis} {step} ({raw}; {corrected} once choosing is paid for), not"
        " distinguishable from {ties}",
        "{arm}：最佳为第 {step} {axis}（{raw}；扣除挑选的乐观偏差后 {corrected}），"
        "与第 {ties} {axis}无法区分",
    ),
    "inside_selection_noise": (
        "the gap of the bests, {gap}, is inside the noise of choosing them ({noise})",
        "最佳值之差 {gap} 在挑选噪声（{noise}）之内",
    ),
    "never_best_with_best": (
        "the gap of the raw bests, {gap}, contains the luck of choosing ({noise})",
        "原始最佳值之差 {gap} 含有挑选的运气（{noise}）",
    ),
    "kl_to_reference": (
        "KL to a reference cannot show that two policies agree: two that are equally far from it"
        " may differ at will; compare their choices on the same tasks",
        "到参考策略的 KL 不能说明两个策略一致：与参考距离相同的两个策略可以任意不同；"
        "应在相同任务上比较两者的选择",
    ),
    "threshold_half_way": (
        "to {threshold}, half way from where both began to the highest value both reach: {axis}"
        " {ours} against {axis} {theirs}",
        "达到 {threshold}（起点与双方都能达到的最高值的中点）："
        "第 {ours} {axis}对第 {theirs} {axis}",
    ),
    "threshold_over_seeds": (
        "to {threshold}, half way from where both began to the highest value both reach: {axis}"
        " {ours} against {axis} {theirs}, means over {n} seeds; {late} of {of} runs never arrive"
        " and count at the end",
        "达到 {threshold}（起点与双方都能达到的最高值的中点）："
        "第 {ours} {axis}对第 {theirs} {axis}（{n} 个随机种子的平均）；"
        "{of} 次运行中有 {late} 次始终未达到，按末尾计",
    ),
    "swings_over_seeds": (
        "second-difference SD {ours} against {theirs}, geometric means over {n} seeds",
        "二阶差分标准差 {ours} 对 {theirs}（{n} 个随机种子的几何平均）",
    ),
    "drawdowns_over_seeds": (
        "largest drawdown {ours} against {theirs} on average over them",
        "最大回撤的平均为 {ours} 对 {theirs}",
    ),
    "first_runs_only": (
        "about one run of each arm on items like these, not about the setting",
        "只针对每个配置的一次运行及同类题目，与设置的作用无关",
    ),
    "out_of_bag": (
        "the value is read on items that had no say in choosing (of {n})",
        "该值取自未参与挑选的题目（共 {n} 道）",
    ),
    # the noise of evaluating one checkpoint again
    "noise_repeats": (
        "noise of evaluating: SD {floor}, from evaluations of one checkpoint",
        "评估噪声：标准差 {floor}，由同一检查点的多次评估得出",
    ),
    "noise_generations": (
        "noise of evaluating: SD {floor}, from several answers per item",
        "评估噪声：标准差 {floor}，由每题的多次回答得出",
    ),
    "noise_items": (
        "noise of evaluating on new items: SD {floor}, from single scores",
        "换一批题目的评估噪声：标准差 {floor}，由逐题得分得出",
    ),
    "noise_second_differences": (
        "noise of evaluating: SD at most {floor}, from the curve's second differences",
        "评估噪声：标准差至多 {floor}，由曲线的二阶差分得出",
    ),
    "noise_declared": (
        "noise of evaluating: SD {floor}, as declared",
        "评估噪声：标准差 {floor}，为声明值",
    ),
    # what the coefficient did
    "trend_over": (
        "over {arms} arms that differ in nothing else: {levels}",
        "{arms} 个配置除系数外完全相同：{levels}",
    ),
    "trend_over_named": ("over {arms} arms: {levels}", "{arms} 个配置：{levels}"),
    "no_replicates": (
        "no seeds and no single scores: the number is what was printed, without an interval",
        "没有多个随机种子，也没有逐题得分：只是所印数字之差，无法给出区间",
    ),
    # early, middle, late
    "phase_steps": (
        "{axis}s {first}–{last} ({n} points both have)",
        "第 {first}–{last} {axis}（双方都有的 {n} 个点）",
    ),
    "phase_spread": (
        "SD about each one's line {ours} against {theirs}",
        "去趋势标准差 {ours} 对 {theirs}",
    ),
    "phase_slope": (
        "slope per {axis} {ours} against {theirs}",
        "每{axis}斜率 {ours} 对 {theirs}",
    ),
    # how a curve ends
    "no_collapse": (
        "never two evaluations in a row 3 errors below the running best ({best})",
        "没有连续两次评估低于此前最佳（{best}）3 个标准误",
    ),
    "collapsed": (
        "by {axis} {step} two evaluations lay {drop} below the running best ({best}), later ones at"
        " most {deepest}",
        "到第 {step} {axis}，连续两次评估比此前最佳（{best}）低 {drop}，此后最多低 {deepest}",
    ),
    "seeds_left_out": (
        "{n} shared seeds are left out: a run of theirs broke off too early",
        "另有 {n} 个共同种子未计入：其中有训练过早中断",
    ),
    "runs_that_fell": (
        "{fell} of {of} runs fell from their best, {deep} of them by a quarter of it or more",
        "{of} 次训练中有 {fell} 次从最佳处回落，其中 {deep} 次跌去四分之一以上",
    ),
    # many arms
    "baseline_first": (
        "no arm is told apart from the baseline, so no other pair is decided",
        "没有配置与基线区分开，因此其他配置对不下结论",
    ),
    "may_be_best": (
        "{count} of {of} arms may be the best on items like these {n}: the best is among them in"
        " 95 % of cases",
        "在这 {n} 道同类题目上，{of} 个配置中有 {count} 个可能最好：最好的有 95% 的把握在其中",
    ),
}
