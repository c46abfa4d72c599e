"""Every check: its code, how grave it is, who looks for it, its sentence in English and Chinese."""

from __future__ import annotations

from kleash.compare.checks import histories, identities, learning, results
from kleash.compare.checks.evidence import Check, Severity, each_run
from kleash.compare.checks.histories import unless_misread
from kleash.compare.checks.identities import each_sum
from kleash.compare.checks.learning import noticed

CHECKS: dict[str, tuple[Severity, Check, str, str]] = {
    # noticed by the run itself
    "run-collapse": (
        "warning",
        noticed("collapse"),
        "{arms}: {count} of {of} runs showed signs of collapse, first at {at}",
        "{arms}：{of} 次运行中有 {count} 次出现崩溃迹象，最早在{at}",
    ),
    "run-no-signal": (
        "warning",
        noticed("no-signal"),
        "{arms}: in {count} of {of} runs whole epochs had no signal, first by {at}: all episodes of"
        " every group had the same reward, so nothing was learnt there",
        "{arms}：{of} 次运行中有 {count} 次整轮没有信号，最早到{at}："
        "每组的奖励全部相同，什么也没学到",
    ),
    "run-little-signal": (
        "warning",
        noticed("little-signal"),
        "{arms}: in {count} of {of} runs few groups had any signal, first by {at}",
        "{arms}：{of} 次运行中有 {count} 次只有少数组有信号，最早到{at}",
    ),
    "run-near-uniform": (
        "warning",
        noticed("near-uniform"),
        "{arms}: {count} of {of} runs chose hardly better than blindly after the supervised phase",
        "{arms}：{of} 次运行中有 {count} 次在监督阶段之后几乎与盲选无异",
    ),
    "run-no-choice": (
        "warning",
        noticed("no-choice"),
        "{arms}: in {count} of {of} runs the pool is as large as the shots: only the order is left"
        " to choose",
        "{arms}：{of} 次运行中有 {count} 次候选池与范例数一样大：能选的只有顺序",
    ),
    "run-coefficient-unit": (
        "warning",
        noticed("coefficient-unit"),
        "{arms}: in {count} of {of} runs advantages are divided by the spread of their group and"
        " the KL term is not, so a coefficient has no fixed strength. Mend: leash.scaled=true",
        "{arms}：{of} 次运行中有 {count} 次优势除以了组内标准差而 KL 项没有，系数的强度并不固定；"
        "可设 leash.scaled=true",
    ),
    "run-few-tasks": (
        "warning",
        noticed("few-tasks"),
        "{arms}: {count} of {of} runs are validated on too few tasks to tell checkpoints apart",
        "{arms}：{of} 次运行中有 {count} 次的验证任务太少，分不出检查点的好坏",
    ),
    "run-far-sampler": (
        "warning",
        noticed("far-sampler"),
        "{arms}: in {count} of {of} runs who sampled was far from the policy that learnt, first by"
        " {at}: weights for so large a gap are noise",
        "{arms}：{of} 次运行中有 {count} 次采样所用的策略与正在学习的策略相距太远，最早到{at}："
        "弥补这种差距的重要性权重噪声很大",
    ),
    # sums that do not come out
    "loss-identity": (
        "error",
        each_sum(identities.loss_identity),
        "{arm}, {at}: loss {loss} is not policy loss {policy_loss} + {coefficient} × KL {kl} ="
        " {expected}",
        "{arm}，{at}：总损失 {loss} 不等于策略损失 {policy_loss} + {coefficient} × KL {kl} ="
        " {expected}",
    ),
    "kl-loss-identity": (
        "error",
        each_sum(identities.kl_loss_identity),
        "{arm}, {at}: KL loss {kl_loss} is neither {coefficient} × KL {kl} = {expected} nor KL",
        "{arm}，{at}：KL 损失 {kl_loss} 既不是 {coefficient} × KL {kl} = {expected}，"
        "也不是 KL 本身",
    ),
    "other-coefficient": (
        "error",
        each_run(identities.other_coefficient),
        "{arm}: a KL coefficient of {configured} was asked for, but {logged} was applied",
        "{arm}：配置的 KL 系数是 {configured}，实际使用的却是 {logged}",
    ),
    "derived-from-missing": (
        "error",
        identities.derived_from_missing,
        "{text} is worked out from a number that is missing ({metric}; {arms})",
        "{text} 是由缺失的数字算出的（{metric}；{arms}）",
    ),
    # guesses
    "estimated-values": (
        "warning",
        each_run(histories.estimated_values),
        "{arm}: {estimated} of {of} values of {metric} are estimates; they are used in nothing",
        "{arm}：{metric}的 {of} 个值中有 {estimated} 个是估计值，任何计算都不使用",
    ),
    "estimate-contradicted": (
        "error",
        histories.estimates_contradicted,
        "{arm}: {count} estimates of {metric} are contradicted by measured values, by up to"
        " {largest}; {wrong_signs} of {signs} differences drawn from them have the wrong sign",
        "{arm}：{metric}的 {count} 个估计值与实测不符，最多差 {largest}；"
        "由其算出的 {signs} 个差值中有 {wrong_signs} 个符号相反",
    ),
    # too much alike
    "identical-results": (
        "error",
        results.identical_results,
        "{arms}: {cells} values of {metric} are the same to the last digit: identical outputs, not"
        " equal performance; were the same weights evaluated?",
        "{arms}：{cells} 个{metric}到最后一位都相同：这是输出完全相同，不是性能相同；"
        "评估的是同一份权重吗？",
    ),
    "identical-over-training": (
        "warning",
        each_run(results.identical_over_training),
        "{arm}: {cells} of {of} values of {metric} do not change over training ({at}): does the"
        " evaluated checkpoint change?",
        "{arm}：{of} 个{metric}中有 {cells} 个在训练中毫无变化（{at}）：被评估的检查点变了吗？",
    ),
    "copied-row": (
        "error",
        results.copied_rows,
        "{arms}, {at}: the same values {values} for {metrics}: was a row copied?",
        "{arms}，{at}：{metrics}的值 {values} 完全相同：是否抄错了行？",
    ),
    # what a mean over n items can be
    "off-lattice": (
        "error",
        results.off_lattice,
        "{arm}, {at}: {metric} {text} cannot be a mean over {items} items with steps of {step}",
        "{arm}，{at}：{metric} {text} 不可能是 {items} 道题目的平均（得分间隔 {step}）",
    ),
    "order-effect": (
        "warning",
        each_run(results.order_effect),
        "{arm}, {at}: the first items are easier or harder than later ones (blocks {blocks},"
        " p = {p}): first-n subsets are not random",
        "{arm}，{at}：靠前的题目与靠后的难度不同（各段 {blocks}，p = {p}）：取前 n 题不是随机抽样",
    ),
    # the leash
    "kl-at-start": (
        "warning",
        each_run(learning.kl_at_start),
        "{arm}: KL is {value} at {at}, but it is 0 before the first update: do policy and"
        " reference run in the same mode (dropout)?",
        "{arm}：{at}的 KL 为 {value}，而第一次更新之前应为 0："
        "策略与参考策略是否以相同方式（dropout）运行？",
    ),
    "kl-falls": (
        "warning",
        each_run(learning.kl_falls),
        "{arm}: KL falls from {first} to {last} ({change}): KL to a fixed start begins at 0, so"
        " this shows no convergence",
        "{arm}：KL 从 {first} 降到 {last}（{change}）：到固定起点的 KL 从 0 开始，"
        "这不能说明策略趋于稳定",
    ),
    # whether anything was learnt
    "near-uniform": (
        "warning",
        learning.near_uniform,
        "{arm}: {metric} {value} is close to {uniform}, that of a uniform choice of {shots} from"
        " {pool}: almost nothing was learnt",
        "{arm}：{metric} {value} 接近从 {pool} 个中均匀选 {shots} 个的 {uniform}：几乎什么也没学到",
    ),
    "barely-moved": (
        "warning",
        each_run(learning.barely_moved),
        "{arm}: {metric} moves from {first} to {last} ({change}) over the whole training",
        "{arm}：整个训练中{metric}只从 {first} 变到 {last}（{change}）",
    ),
    "little-signal": (
        "warning",
        each_run(learning.little_signal),
        "{arm}, {at}: the spread of advantages is {spread}; normalised within groups it is about"
        " the share of groups with any signal",
        "{arm}，{at}：优势标准差只有 {spread}；组内归一化时，它约等于有信号的组所占的比例",
    ),
    # which run is meant
    "same-run": (
        "note",
        histories.same_run,
        "{arms} are one run, by {by}",
        "{arms} 是同一次运行（依据：{by}）",
    ),
    "two-histories": (
        "error",
        histories.two_histories,
        "{arm} has two histories: {differs}",
        "{arm} 有两份不同的记录：{differs}",
    ),
    "config-clash": (
        "error",
        unless_misread(histories.config_clashes),
        "{arm}: {key} has two values: {values}",
        "{arm}：{key}有两个值：{values}",
    ),
    "stale-weights": (
        "error",
        each_run(histories.stale_weights),
        "{arm}: the weights scored as {checkpoint} are not those of that step: they were scored as"
        " of {steps}, or written again after they were scored",
        "{arm}：作为 {checkpoint} 评分的不是那一步的权重：它被当作 {steps} 来评估，"
        "或在评分之后又被改写",
    ),
    "step-restart": (
        "warning",
        each_run(histories.step_restarts),
        "{arm}: {metric} falls back from {at} to {back}: a resumed run; {dropped} points of the"
        " branch it gave up are left out",
        "{arm}：{metric}从 {at} 退回到 {back}：运行曾经恢复；被放弃的分支上的 {dropped} 个点不计入",
    ),
    "diverged": (
        "error",
        each_run(histories.diverged),
        "{arm}: {metric} is NaN or infinite from {at} to the end ({count} values, the last at"
        " {last}): it diverged",
        "{arm}：从{at}到结束，{metric}一直是 NaN 或无穷大（{count} 个值，最后在 {last}）："
        "运行已发散",
    ),
    "duplicate-step": (
        "error",
        unless_misread(histories.duplicate_steps),
        "{arm}: {metric} has two values at {at}: {values}",
        "{arm}：{metric}在 {at} 有两个值：{values}",
    ),
    "fewer-than-planned": (
        "warning",
        each_run(histories.fewer_than_planned),
        "{arm}: {last} of {planned} planned {axis}s are shown",
        "{arm}：计划 {planned} {axis}，只给出到第 {last} {axis}",
    ),
}
