"""What `compare --effect` says: a code, its sentence in English, its sentence in Chinese."""

from __future__ import annotations

ATTRIBUTION: dict[str, tuple[str, str]] = {
    "effect_title": (
        "effect of {key} on {metric}; runs: {runs}, seeds told: {seeds}, degrees of freedom left:"
        " {df}",
        "{key}对{metric}的作用：{runs} 次运行，注明的随机种子 {seeds} 个，剩余自由度 {df}",
    ),
    "effect_named": (
        "{key} did it: {gap} for {change} (adjusted p {p})",
        "{key}起了作用：{change}，{gap}（校正后 p {p}）",
    ),
    "effect_none": (
        "{key}: no effect that can be told from chance, {gap} for {change} (adjusted p {p})",
        "{key}：没有能与偶然区分的作用，{change}，{gap}（校正后 p {p}）",
    ),
    "effect_plain": (
        "{key}: {gap} for {change}, and no run is left over to show a spread: repeat a run with"
        " another seed",
        "{key}：{change}，{gap}；没有多余的运行来显示离散程度：请换一个随机种子重复一次运行",
    ),
    "effect_joint": (
        "all of them together: {gap} for {change} (adjusted p {p})",
        "它们合起来：{gap}（{change}，校正后 p {p}）",
    ),
    "change_levels": ("{ours} instead of {theirs}", "由 {theirs} 改为 {ours}"),
    "change_doubling": ("every doubling", "每增大一倍"),
    "change_zero": ("0 instead of about {theirs}", "由约 {theirs} 改为 0"),
    "effect_together": (
        "{key} is refused: it never changes without {others}; a run that changes it alone would"
        " tell",
        "{key}：拒绝回答，它从不脱离{others}单独改变；补一次只改变它的运行即可回答",
    ),
    "effect_aliased": (
        "{key} is refused: in these runs its effect cannot be told from that of {others}; a run"
        " that changes it alone would tell",
        "{key}：拒绝回答，在这些运行中它的作用与{others}的作用无法区分；"
        "补一次只改变它的运行即可回答",
    ),
    "effect_acting": (
        "{key} is refused: what one setting does depends on another, so no single number is its"
        " effect. Compare arms that differ in it alone (kleash compare).",
        "{key}：拒绝回答，一个设置的作用取决于另一个，无法用一个数概括。"
        "请比较只在该设置上不同的配置（kleash compare）。",
    ),
    "effect_uneven": (
        "{key} is refused: runs of some settings spread more than those of others, so one error"
        " for all of them would be wrong. Compare arms one by one (kleash compare).",
        "{key}：拒绝回答，某些设置的运行比其他设置离散得多，不能共用一个误差。"
        "请逐对比较配置（kleash compare）。",
    ),
    "pairs_acting": ("they act on each other: {pairs}", "相互影响：{pairs}"),
    "pairs_unseen": (
        "whether they act on each other cannot be seen in these runs: {pairs}",
        "这些运行看不出它们是否相互影响：{pairs}",
    ),
    "held_equal": ("all else equal: {names}", "其他条件相同：{names}"),
    "not_held_equal": (
        "not held equal, because told of some runs only, different with every seed or run, or"
        " perhaps a result: {names}",
        "未加控制（只在部分运行中注明、随每个种子或每次运行而变，或可能是结果）：{names}",
    ),
    "one_seed_only": (
        "all runs have one seed: another seed may move the effect by an unknown amount",
        "所有运行只用了一个随机种子：换一个种子，作用可能有未知的变化",
    ),
    "misfit_found": (
        "repeated runs say that effects do not just add up (p {p})",
        "重复运行表明各作用并非简单相加（p {p}）",
    ),
    "misfit_unknown": (
        "that effects add up is assumed: these runs cannot check it",
        "假定各作用相加：这些运行无法检验",
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
}
