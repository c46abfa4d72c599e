"""What `plan` says: a code, its sentence in English, its sentence in Chinese."""

from __future__ import annotations

PROSPECT: dict[str, tuple[str, str]] = {
    "plan_title": (
        "{hours} more hours, judged by {metric}; a gap is seen if with power {power}",
        "再花 {hours} 小时，以{metric}衡量；“看出”指检验功效达 {power}",
    ),
    "plan_title_blank": (
        "{hours} hours before any run: gaps are in SDs between seeds, because nothing tells how"
        " large those are; a gap is seen if with power {power}",
        "尚无运行，{hours} 小时：差距以种子间标准差为单位，因为没有任何记录说明它有多大；"
        "“看出”指检验功效达 {power}",
    ),
    "plan_sds": ("{size} SD", "{size} 个标准差"),
    "plan_now": (
        "now: {seeds} seeds; a gap of {gap} is seen, equivalence within {margin}",
        "目前：{seeds} 个随机种子；可看出 {gap}的差距，等价容差 {margin}",
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
    "plan_best": (
        "best: {more} more seeds of {names} ({hours} hours): a gap of {gap} is seen, equivalence"
        " within {margin}",
        "最佳：给 {names} 再加 {more} 个随机种子（{hours} 小时）：可看出 {gap}的差距，"
        "等价容差 {margin}",
    ),
    "plan_not_at_margin": (
        "at the margin of {margin} neither is seen: that takes more hours, or a wider margin",
        "容差为 {margin}时，二者都看不出：需要更多小时，或更宽的容差",
    ),
    "plan_more_items": (
        "most of that error is these {items} items: more items would help more than seeds",
        "误差大多来自这 {items} 道题目：多测题目比多加种子更有用",
    ),
    "plan_too_little": (
        "{hours} hours decide nothing about a setting: four seeds of all arms take {least} hours,"
        " of two arms {pair}",
        "{hours} 小时不足以对设置下结论：全部配置各四个随机种子需 {least} 小时，"
        "两个配置需 {pair} 小时",
    ),
    "plan_chance": (
        "{arm}: now {gap}; decided then in {share} of studies, if that is its gap",
        "{arm}：目前 {gap}；若这就是其差距，届时有 {share} 的研究能得出结论",
    ),
    "plan_cost": ("a run takes {run} hours", "一次运行 {run} 小时"),
    "plan_cost_start": (
        "the start of a seed takes {start} hours",
        "一个随机种子的起点 {start} 小时",
    ),
    "plan_cost_machine": (
        "the logs do not tell on how many devices: these are hours of the whole machine, and the"
        " hours to spend are taken so",
        "日志没有说明用了几块卡：这里按整台机器的小时计，预算也按此理解",
    ),
    "plan_cautious": (
        "all of it if the spread stays as it is; at its upper 80 % bound: a gap of {gap},"
        " equivalence within {margin}",
        "以上均以离散程度不变为前提；取其 80% 上界时：差距 {gap}，等价容差 {margin}",
    ),
    "spread_items": (
        "spread of a gap, measured on {n} items under {count} seeds: SD {seeds} between seeds,"
        " {items} between items, {left} left",
        "差距的离散程度（在 {count} 个随机种子、{n} 道题目上测得）："
        "种子间标准差 {seeds}，题目间 {items}，其余 {left}",
    ),
    "spread_seeds": (
        "spread of a gap, measured on means of {count} seeds: SD {seeds}",
        "差距的离散程度（由 {count} 个随机种子的均值测得）：标准差 {seeds}",
    ),
    "spread_apart": (
        "spread of a gap, from runs that share no seeds: SD {seeds}; sharing them can only help",
        "差距的离散程度（由不共享随机种子的运行得出）：标准差 {seeds}；共享种子只会更好",
    ),
    "spread_unknown": (
        "spread of a gap: not known, so gaps are in SDs between seeds",
        "差距的离散程度：未知，因此差距以种子间标准差为单位",
    ),
    "plan_command": ("for all arms", "用于全部配置"),
    "column_arms": ("arms", "配置"),
    "column_seeds": ("seeds", "随机种子"),
    "column_hours": ("hours", "小时"),
    "column_gap": ("gap seen", "可见差距"),
    "column_margin": ("equivalent within", "等价容差"),
}
