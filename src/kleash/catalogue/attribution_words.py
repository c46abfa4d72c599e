"""What `attribute` says: a code, its sentence in English, its sentence in Chinese."""

from __future__ import annotations

ATTRIBUTION: dict[str, tuple[str, str]] = {
    "attribution_title": (
        "runs: {runs}, seeds told: {seeds}, judged by {metric}; factors: {factors}, degrees of"
        " freedom left: {df}",
        "{runs} 次运行，注明的随机种子 {seeds} 个，以{metric}衡量：{factors} 个因素，剩余自由度"
        " {df}",
    ),
    "effect_named": (
        "{keys} did it: {gap} for {change} (adjusted p {p})",
        "{keys}起了作用：{change}，{gap}（校正后 p {p}）",
    ),
    "effect_joint": (
        "{keys} changed together in every run: together {gap} for {change} (adjusted p {p}); which"
        " of them did it, these runs cannot say",
        "{keys}在所有运行中总是一起改变：合起来 {gap}（{change}，校正后 p {p}）；"
        "是其中哪一个的作用，这些运行无法说明",
    ),
    "effect_none": (
        "no single factor can be named: every interval holds 0 once all are looked at together",
        "无法指出任何单一因素：同时考察全部因素后，每个区间都包含 0",
    ),
    "change_levels": ("{ours} instead of {theirs}", "由 {theirs} 改为 {ours}"),
    "change_doubling": ("every doubling", "每增大一倍"),
    "change_zero": (
        "0 instead of about {theirs}",
        "由约 {theirs} 改为 0",
    ),
    "refused_always": (
        "{key} is refused: it never changes without {others}",
        "{key}：拒绝回答，它从不脱离{others}单独改变",
    ),
    "refused_aliased": (
        "{key} is refused: in these runs its effect cannot be told from that of {others}",
        "{key}：拒绝回答，在这些运行中它的作用与{others}的作用无法区分",
    ),
    "no_interval": (
        "no run is left over to show a spread, so no effect has an interval: repeat a run with"
        " another seed",
        "没有多余的运行来显示离散程度，因此没有任何区间：请换一个随机种子重复一次运行",
    ),
    "not_asked_for": (
        "changed as well, but --factor leaves it out: {names}; what it did is in the effects above",
        "同样有改变，但未列入 --factor：{names}；其作用混在上面的结果里",
    ),
    "setting_or_result": (
        "may be a setting or a result, so it was left out: {names} (--factor makes it a factor)",
        "可能是设置，也可能是结果，因此未计入：{names}（用 --factor 可将其作为因素）",
    ),
    "never_varied": (
        "never varied, so nothing follows about: {names}",
        "从未改变，因此无从得知其作用：{names}",
    ),
    "partly_told": (
        "the same wherever told, but not told everywhere: {names}",
        "凡注明之处都相同，但并非处处注明：{names}",
    ),
    "follows_seed": (
        "changes with the seed and with nothing else, so it is taken for a part of it: {names}",
        "只随随机种子改变，因此视为种子的一部分：{names}",
    ),
    "taken_for_label": (
        "different in every run, so taken for a label: {names} (--factor makes it a factor)",
        "每次运行都不同，因此视为标签：{names}（用 --factor 可将其作为因素）",
    ),
    "one_seed_only": (
        "all runs have one seed: another seed may move each effect by an unknown amount",
        "所有运行只用了一个随机种子：换一个种子，每个作用都可能有未知的变化",
    ),
    "seeds_shared_part": (
        "runs of one seed share about {part} of the spread; the intervals allow for not knowing it",
        "同一随机种子的运行约共有 {part} 的离散程度；区间已计入对此的不确定",
    ),
    "misfit_found": (
        "repeated runs say that effects do not just add up (p {p})",
        "重复运行表明各作用并非简单相加（p {p}）",
    ),
    "factors_act": (
        "No factor is named: what one does depends on another, so no single number is its effect."
        " Compare arms that differ in it alone (kleash compare).",
        "不指认任何因素：一个因素的作用取决于另一个，无法用一个数概括。"
        "请比较只在该因素上不同的配置（kleash compare）。",
    ),
    "runs_uneven": (
        "No factor is named: runs of some settings spread more than those of others, so one error"
        " for all of them would be wrong. Compare arms one by one (kleash compare).",
        "不指认任何因素：某些设置的运行比其他设置离散得多，不能共用一个误差。"
        "请逐对比较配置（kleash compare）。",
    ),
    "misfit_none": (
        "repeated runs do not contradict that effects add up (p {p})",
        "重复运行与“各作用相加”并无矛盾（p {p}）",
    ),
    "misfit_unknown": (
        "that effects add up is assumed: these runs cannot check it",
        "假定各作用相加：这些运行无法检验",
    ),
    "pairs_hidden": (
        "whether they act on each other cannot be seen in these runs: {pairs}",
        "这些运行看不出它们是否相互影响：{pairs}",
    ),
    "pair_found": (
        "{pair} act on each other: {gap} (adjusted p {p})",
        "{pair} 相互影响：{gap}（校正后 p {p}）",
    ),
    "pair_acts": (
        "{pair} act on each other (adjusted p {p})",
        "{pair} 相互影响（校正后 p {p}）",
    ),
    "pairs_seen": (
        "no sign that one depends on the other: {pairs}",
        "未见相互依赖的迹象：{pairs}",
    ),
    "add_run": (
        "run {like} again with {change}: then {parts} can be told",
        "将 {like} 重新运行一次，改为 {change}：之后可以回答 {parts}",
    ),
    "add_run_step": (
        "run {like} again with {change}: needed with the next",
        "将 {like} 重新运行一次，改为 {change}：须与下一项一起",
    ),
    "add_repeat": (
        "run {like} again with another seed: without a repeat no spread is known",
        "换一个随机种子重复 {like}：没有重复就不知道离散程度",
    ),
    "left_out_void": (
        "left out, because what was measured is not what was trained: {names}",
        "已排除，因为所测的并非所训练的：{names}",
    ),
    "left_out_aside": (
        "left out, because nothing tells a coefficient of them: {names}",
        "已排除，因为没有任何记录说明其系数：{names}",
    ),
    "left_out_broke_off": (
        "left out, because they broke off before the others ended, which a leash may have done:"
        " {names}",
        "已排除，因为在其他运行结束之前就中断了（这也可能是约束造成的）：{names}",
    ),
    "told_by_names": (
        "told by the names of the arms alone, so what else was changed is not known: {names}",
        "只由配置名得知，因此不知道是否还改了别的：{names}",
    ),
    "heading_effects": (
        "effects, all else equal (95 % intervals)",
        "其他条件相同时的作用（95% 区间）",
    ),
    "heading_effects_alone": (
        "effects of the factors asked for alone (95 % intervals)",
        "只考虑所要求的因素时的作用（95% 区间）",
    ),
    "heading_refused": ("refused", "拒绝回答"),
    "heading_limits": ("what limits this", "限制"),
    "heading_add": ("runs that would tell", "能够回答的运行"),
    "column_factor": ("factor", "因素"),
    "column_change": ("change", "变化"),
    "column_effect": ("effect", "作用"),
    "column_p": ("adjusted p", "校正后 p"),
}
