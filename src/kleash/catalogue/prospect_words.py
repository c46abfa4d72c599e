"""What `plan` says: a code, its sentence in English, its sentence in Chinese."""

from __future__ import annotations

PROSPECT: dict[str, tuple[str, str]] = {
    "plan_title": (
        "{hours} hours, judged by {metric}: the margin is {margin}, the power {power}",
        "{hours} 小时，以{metric}衡量：容差 {margin}，检验功效 {power}",
    ),
    "plan_title_sds": (
        "{hours} hours, judged by {metric}, power {power}; gaps are in SDs between seeds, because"
        " nothing tells how large those are",
        "{hours} 小时，以{metric}衡量，检验功效 {power}；差距以种子间标准差为单位，"
        "因为没有任何记录说明它有多大",
    ),
    "plan_proposed": (
        "run {arms} arms (one without a leash) × {seeds} seeds, {items} items each: {hours} hours",
        "运行 {arms} 个配置（其中一个没有 KL 约束）× {seeds} 个随机种子，"
        "每次 {items} 道题目：{hours} 小时",
    ),
    "plan_nothing": (
        "{hours} hours do not do: four seeds of two arms are the least that says anything about a"
        " setting, {least} hours",
        "{hours} 小时不够：要对设置下结论，至少需要两个配置各四个随机种子，共 {least} 小时",
    ),
    "plan_arms_placed": (
        "coefficients: {coefficients}; KL expected: {kls} nats, evenly apart in its logarithm",
        "系数：{coefficients}；预期 KL：{kls} 奈特，按对数均匀分布",
    ),
    "plan_arms_calibrated": (
        "coefficients: placed by realised KL, evenly apart in its logarithm, by short runs first"
        " ({hours} hours of these)",
        "系数：先用短运行（计入其中的 {hours} 小时）按实际 KL 放置，使其在对数上均匀分布",
    ),
    "plan_decides": (
        "a gap of {gap} is seen with power {power}; equal arms are called equivalent within"
        " {margin} with power {power}",
        "检验功效 {power} 下可以看出 {gap}的差距；相同的配置在 {margin}的容差内判为等价",
    ),
    "plan_decides_sds": (
        "a gap of {gap} SDs is seen with power {power}; equal arms are called equivalent within"
        " {margin} SDs",
        "检验功效 {power} 下可以看出 {gap} 个标准差的差距；"
        "相同的配置在 {margin} 个标准差内判为等价",
    ),
    "plan_at_margin": (
        "at the margin of {margin}: such a gap is seen in {seen} of studies, equality in {equal}",
        "容差为 {margin}时：这样大的差距有 {seen} 的研究能看出，相等有 {equal} 的研究能看出",
    ),
    "plan_not_at_margin": (
        "at the margin of {margin} neither is seen with power {power}: that takes more hours, or a"
        " wider margin",
        "容差为 {margin}时，二者的检验功效都不到 {power}：需要更多小时，或更宽的容差",
    ),
    "plan_unequal": (
        "{parts} of the error comes from seeds, the rest from items",
        "误差中有 {parts} 来自随机种子，其余来自题目",
    ),
    "plan_cautious": (
        "with the spread at its upper 80 % bound: a gap of {gap}, equivalence within {margin}",
        "离散程度取其 80% 上界时：差距 {gap}，等价容差 {margin}",
    ),
    "plan_cost": (
        "a run takes {run} hours",
        "一次运行 {run} 小时",
    ),
    "plan_cost_machine": (
        "the logs do not tell on how many devices: these are hours of the whole machine, and the"
        " hours to spend are taken so",
        "日志没有说明用了几块卡：这里按整台机器的小时计，预算也按此理解",
    ),
    "plan_cost_base": (
        "the start of a seed takes {base} hours",
        "一个随机种子的起点 {base} 小时",
    ),
    "plan_cost_item": (
        "scoring an item takes {item} seconds",
        "评估一道题目 {item} 秒",
    ),
    "plan_cost_free": (
        "evaluation counts as nothing: --item-seconds says what an item costs",
        "评估按不花时间计：可用 --item-seconds 说明一道题目的成本",
    ),
    "spread_given": (
        "spread of a gap, as given: SD {seeds} between seeds, {items} between items",
        "差距的离散程度（给定）：种子间标准差 {seeds}，题目间 {items}",
    ),
    "spread_items": (
        "spread of a gap, measured on {n} items under {count} seeds: SD {seeds} between seeds,"
        " {items} between items, {left} left",
        "差距的离散程度（在 {count} 个随机种子、{n} 道题目上测得）："
        "种子间标准差 {seeds}，题目间 {items}，其余 {left}",
    ),
    "spread_seeds": (
        "spread of a gap, measured on means of {count} seeds: SD {seeds}; scores of items were not"
        " kept, so what more items would do is not known",
        "差距的离散程度（由 {count} 个随机种子的均值测得）：标准差 {seeds}；没有保留逐题得分，"
        "因此不知道更多题目有何作用",
    ),
    "spread_apart": (
        "spread of a gap, from runs that share no seeds: SD {seeds}; sharing them can only help",
        "差距的离散程度（由不共享随机种子的运行得出）：标准差 {seeds}；共享种子只会更好",
    ),
    "spread_one_seed": (
        "one seed only: how far another would move a gap is not known; SD {items} between items",
        "只有一个随机种子：不知道换一个会使差距移动多少；题目间标准差 {items}",
    ),
    "spread_unknown": (
        "spread of a gap: not known; --seed-sd and --item-sd give it, or --from runs of the same"
        " task with several seeds",
        "差距的离散程度：未知；可用 --seed-sd 和 --item-sd 给出，"
        "或用 --from 指向同一任务的多种子运行",
    ),
    "plan_now": (
        "now: {seeds} seeds, {items} items; a gap of {gap} is seen with power {power}, equivalence"
        " within {margin}",
        "目前：{seeds} 个随机种子，{items} 道题目；检验功效 {power} 下可看出 {gap}的差距，"
        "等价容差 {margin}",
    ),
    "plan_now_seeds": (
        "now: {seeds} seeds; a gap of {gap} is seen with power {power}, equivalence within"
        " {margin}",
        "目前：{seeds} 个随机种子；检验功效 {power} 下可看出 {gap}的差距，等价容差 {margin}",
    ),
    "plan_now_few": (
        "now: seeds measured in all arms: {seeds}; below four nothing is decided about a setting",
        "目前：各配置都测过的随机种子有 {seeds} 个；不足四个时无法对设置下结论",
    ),
    "plan_settled": (
        "decided already: {arms}; no hours need to go there",
        "已有结论：{arms}；无需再花时间",
    ),
    "plan_all_settled": (
        "nothing is open: hours are for further arms, or for a narrower interval",
        "没有待定的配置：时间可用于新的配置，或缩窄区间",
    ),
    "plan_buy_seeds": (
        "best: {more} more seeds of all {arms} arms ({hours} hours): a gap of {gap}, equivalence"
        " within {margin}",
        "最佳：全部 {arms} 个配置再加 {more} 个随机种子（{hours} 小时）："
        "差距 {gap}，等价容差 {margin}",
    ),
    "plan_buy_open": (
        "best: {more} more seeds and {further} more items, only of {names} ({hours} hours): a gap"
        " of {gap}, equivalence within {margin}",
        "最佳：只给 {names} 再加 {more} 个随机种子和 {further} 道题目（{hours} 小时）：差距 {gap}，"
        "等价容差 {margin}",
    ),
    "plan_buy_open_seeds": (
        "best: {more} more seeds, only of {names} ({hours} hours): a gap of {gap}, equivalence"
        " within {margin}",
        "最佳：只给 {names} 再加 {more} 个随机种子（{hours} 小时）：差距 {gap}，等价容差 {margin}",
    ),
    "plan_buy_open_items": (
        "best: {further} more items, only for the runs of {names} ({hours} hours): a gap of {gap},"
        " equivalence within {margin}",
        "最佳：只给 {names} 的运行再加 {further} 道题目（{hours} 小时）：差距 {gap}，"
        "等价容差 {margin}",
    ),
    "plan_more_items": (
        "most of that error is these {items} items: more items would help more than seeds;"
        " --most-items says how many there are",
        "误差大多来自这 {items} 道题目：多测题目比多加种子更有用；可用 --most-items 说明共有多少",
    ),
    "plan_buy_items": (
        "best: {further} more items for the runs there are ({hours} hours): a gap of {gap},"
        " equivalence within {margin}",
        "最佳：给现有运行再加 {further} 道题目（{hours} 小时）：差距 {gap}，等价容差 {margin}",
    ),
    "plan_buy_both": (
        "best: {more} more seeds of all {arms} arms and {further} more items ({hours} hours): a"
        " gap of {gap}, equivalence within {margin}",
        "最佳：全部 {arms} 个配置再加 {more} 个随机种子和 {further} 道题目（{hours} 小时）："
        "差距 {gap}，等价容差 {margin}",
    ),
    "plan_buy_nothing": (
        "{hours} hours buy no further seed of these arms",
        "{hours} 小时不够给这些配置再加一个随机种子",
    ),
    "plan_buy_few": (
        "{hours} hours do not bring all {count} arms to four seeds, below which nothing is decided:"
        " that takes {least} hours, or {pair} for {baseline} and one other",
        "{hours} 小时不够让全部 {count} 个配置都达到四个随机种子（少于四个得不出结论）："
        "这需要 {least} 小时；只做 {baseline} 和另一个配置则需 {pair} 小时",
    ),
    "plan_chance": (
        "{arm}: now {gap}; decided then in {chance} of studies, if that is its gap",
        "{arm}：目前 {gap}；若这就是其差距，届时有 {chance} 的研究能得出结论",
    ),
    "plan_ranks": (
        "a run takes {ranks} devices at the same time: its hours are those of all {ranks}",
        "每次训练同时占用 {ranks} 块设备：所列小时数为 {ranks} 块设备之和",
    ),
    "plan_most_items": (
        "at most {items} items were planned with: --most-items says if there are more",
        "最多按 {items} 道题目规划：若有更多，可用 --most-items 说明",
    ),
    "plan_stays": (
        "all of it if the spread stays as it is",
        "以上均以离散程度不变为前提",
    ),
    "heading_proposal": ("proposal", "方案"),
    "heading_designs": ("what other designs would decide", "其他方案能得出的结论"),
    "heading_options": ("ways to spend the hours", "花费这些小时的方式"),
    "heading_rests": ("what this rests on", "依据"),
    "heading_command": ("next", "下一步"),
    "column_arms": ("arms", "配置"),
    "column_seeds": ("seeds", "随机种子"),
    "column_items": ("items", "题目"),
    "column_hours": ("hours", "小时"),
    "column_gap": ("gap seen", "可见差距"),
    "column_margin": ("equivalent within", "等价容差"),
    "column_seen": ("seen at the margin", "容差处功效"),
}
