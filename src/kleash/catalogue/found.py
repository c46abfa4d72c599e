"""What `findings` says: a code, its sentence in English, its sentence in Chinese."""

from __future__ import annotations

from kleash.catalogue.noticed_sentences import NOTICED

FOUND: dict[str, tuple[str, str]] = {
    **NOTICED,
    # sums that do not come out
    "loss-identity": (
        "{arm}, {at}: loss {loss} is not policy loss {policy_loss} + {coefficient} × KL {kl} ="
        " {expected}",
        "{arm}，{at}：总损失 {loss} 不等于策略损失 {policy_loss} + {coefficient} × KL {kl} ="
        " {expected}",
    ),
    "kl-loss-identity": (
        "{arm}, {at}: KL loss {kl_loss} is neither {coefficient} × KL {kl} = {expected} nor KL",
        "{arm}，{at}：KL 损失 {kl_loss} 既不是 {coefficient} × KL {kl} = {expected}，"
        "也不是 KL 本身",
    ),
    "derived-from-missing": (
        "{text} is worked out from a number that is missing ({metric}; {arms})",
        "{text} 是由缺失的数字算出的（{metric}；{arms}）",
    ),
    "derived-from-rounded": (
        "{text} was worked out from rounded numbers: unrounded it is {low} to {high} ({metric})",
        "{text} 由舍入后的数字算出：不舍入应为 {low} 至 {high}（{metric}）",
    ),
    "printed-twice": (
        "{text} is printed elsewhere as {low} to {high} ({metric}; {arms})",
        "{text} 在别处印作 {low} 至 {high}（{metric}；{arms}）",
    ),
    "spread-identity": (
        "{arm}: a spread of {spread} ({metric}) is not that of the {seeds} seeds shown, {expected}",
        "{arm}：{metric}的离散度 {spread} 不是所列 {seeds} 个种子的离散度 {expected}",
    ),
    # reports that people wrote
    "report-misread": (
        "{report}: {count} numbers would contradict others of the same name: its tables were"
        " misread here, so none of this is called an error",
        "{report}：有 {count} 处数字似与同名的数字矛盾：这是误读了它的表格，因此不算报告的错误",
    ),
    "report-unchecked": (
        "{report}: its sentences, differences and means are not checked here; kleash check {report}"
        " does",
        "{report}：其中的语句、差值和平均值不在此处核对；请用 kleash check {report}",
    ),
    # guesses
    "estimated-values": (
        "{arm}: {estimated} of {of} values of {metric} are estimates; they are used in nothing",
        "{arm}：{metric}的 {of} 个值中有 {estimated} 个是估计值，任何计算都不使用",
    ),
    "derived-from-estimate": (
        "{count} of {of} derived numbers rest on estimates ({metric}): {texts}",
        "{of} 个推算的数中有 {count} 个依据估计值（{metric}）：{texts}",
    ),
    "estimate-contradicted": (
        "{arm}: {count} estimates of {metric} are contradicted by measured values, by up to"
        " {largest}; {wrong_signs} of {signs} differences drawn from them have the wrong sign",
        "{arm}：{metric}的 {count} 个估计值与实测不符，最多差 {largest}；"
        "由其算出的 {signs} 个差值中有 {wrong_signs} 个符号相反",
    ),
    # too much alike
    "identical-results": (
        "{arms}: {cells} values of {metric} on {items} items are the same to the last digit:"
        " identical outputs, not equal performance; were the same weights evaluated?",
        "{arms}：{items} 道题目上的 {cells} 个{metric}到最后一位都相同：这是输出完全相同，"
        "不是性能相同；评估的是同一份权重吗？",
    ),
    "identical-over-training": (
        "{arm}: {cells} of {of} values of {metric} do not change over training ({at}): does the"
        " evaluated checkpoint change?",
        "{arm}：{of} 个{metric}中有 {cells} 个在训练中毫无变化（{at}）：被评估的检查点变了吗？",
    ),
    "copied-row": (
        "{arms}, {at}: the same values {values} for {metrics}: was a row copied?",
        "{arms}，{at}：{metrics}的值 {values} 完全相同：是否抄错了行？",
    ),
    "same-in-all-arms": (
        "{arms} have the same {metric} at all {points} points: it does not depend on the arm",
        "{arms} 的{metric}在全部 {points} 个点上都相同：它与配置无关",
    ),
    "constant-by-construction": (
        "{metric} is {constant} by construction; that it is {value} in {arms} shows nothing",
        "{metric}按定义恒为 {constant}；{arms} 中为 {value} 说明不了任何问题",
    ),
    # what a mean over n items can be
    "off-lattice": (
        "{arm}, {at}: {metric} {text} cannot be a mean over {items} items with steps of {step}",
        "{arm}，{at}：{metric} {text} 不可能是 {items} 道题目的平均（得分间隔 {step}）",
    ),
    "scores-off-lattice": (
        "{arm}: {count} of {of} scores of {metric} are no multiples of {step}, such as {value}",
        "{arm}：{of} 个{metric}得分中有 {count} 个不是 {step} 的倍数，例如 {value}",
    ),
    "nested-samples": (
        "{arm}, {at}: the samples of {sizes} items lie inside each other: one measurement, not"
        " several; later blocks give {blocks}",
        "{arm}，{at}：{sizes} 题的样本彼此包含：这是一次测量，不是多次；各段的平均为 {blocks}",
    ),
    "order-effect": (
        "{arm}, {at}: the first items are easier or harder than later ones (blocks {blocks},"
        " p = {p}): first-n subsets are not random",
        "{arm}，{at}：靠前的题目与靠后的难度不同（各段 {blocks}，p = {p}）：取前 n 题不是随机抽样",
    ),
    "samples-differ": (
        "{arm}, {at}: the samples of {sizes} items cannot lie inside each other: {means}",
        "{arm}，{at}：{sizes} 题的样本不可能彼此包含：{means}",
    ),
    # the best of many
    "best-of-several": (
        "{arm}: the best of {points} values of {metric}, {best} at {at}, is about {optimism} too"
        " high by choosing; not distinguishable from {ties}",
        "{arm}：{points} 个{metric}中的最佳值 {best}（{at}）因挑选约偏高 {optimism}；"
        "与 {ties} 无法区分",
    ),
    "best-against-best": (
        "best compared with best ({arms}, {metric}, {steps}): the gap {gap} is within the noise of"
        " choosing, {noise}",
        "拿最佳值比最佳值（{arms}，{metric}，{steps}）：差距 {gap} 在挑选噪声 {noise} 之内",
    ),
    "best-against-best.unknown": (
        "best compared with best ({arms}, {metric}, {steps}): the gap {gap} contains the luck of"
        " choosing, and how large that is cannot be told",
        "拿最佳值比最佳值（{arms}，{metric}，{steps}）：差距 {gap} 含有挑选的运气，其大小无从得知",
    ),
    "best-of-several.unknown": (
        "{arm}: {best} ({metric}, {at}) is the best of {points} values, so it is too good; by how"
        " much cannot be told",
        "{arm}：{best}（{metric}，{at}）是 {points} 个值中的最佳值，因而偏好；偏多少无从得知",
    ),
    "unequal-steps": (
        "{metric} of {arms} is compared at different steps: {steps}",
        "{arms} 的{metric}在不同的步上比较：{steps}",
    ),
    # the leash
    "kl-at-start": (
        "{arm}: KL is {value} at {at}, but it is 0 before the first update: do policy and"
        " reference run in the same mode (dropout)?",
        "{arm}：{at}的 KL 为 {value}，而第一次更新之前应为 0："
        "策略与参考策略是否以相同方式（dropout）运行？",
    ),
    "kl-falls": (
        "{arm}: KL falls from {first} to {last} ({change}): KL to a fixed start begins at 0, so"
        " this shows no convergence",
        "{arm}：KL 从 {first} 降到 {last}（{change}）：到固定起点的 KL 从 0 开始，"
        "这不能说明策略趋于稳定",
    ),
    "loss-across-coefficients": (
        "{metric} of {arms} contains coefficient × KL ({coefficients}): these are different"
        " quantities",
        "{arms} 的{metric}含有 系数 × KL（{coefficients}）：它们不是同一个量",
    ),
    # whether anything was learnt
    "near-uniform": (
        "{arm}: {metric} {value} is close to {uniform}, that of a uniform choice of {shots} from"
        " {pool}: almost nothing was learnt",
        "{arm}：{metric} {value} 接近从 {pool} 个中均匀选 {shots} 个的 {uniform}：几乎什么也没学到",
    ),
    "barely-moved": (
        "{arm}: {metric} moves from {first} to {last} ({change}) over the whole training",
        "{arm}：整个训练中{metric}只从 {first} 变到 {last}（{change}）",
    ),
    "little-signal": (
        "{arm}, {at}: the spread of advantages is {spread}; normalised within groups it is about"
        " the share of groups with any signal",
        "{arm}，{at}：优势标准差只有 {spread}；组内归一化时，它约等于有信号的组所占的比例",
    ),
    "lr-below-print": (
        "{arm}: a learning rate printed as {printed} is {configured} by the config: below the"
        " printed decimals, not 0",
        "{arm}：学习率印作 {printed}，而配置为 {configured}：低于打印精度，并不是 0",
    ),
    "lr-below-print.unknown": (
        "{arm}: a learning rate printed as {printed} is below the printed decimals, not 0",
        "{arm}：学习率印作 {printed}，是低于打印精度，并不是 0",
    ),
    "inside-warmup": (
        "{arm}: all values of {metric}, the last at {last}, lie inside the warm-up of {warmup}",
        "{arm}：{metric}的所有值（最后在 {last}）都在预热期 {warmup} 之内",
    ),
    # which run is meant
    "same-run": (
        "{arms} are one run, by {by}",
        "{arms} 是同一次运行（依据：{by}）",
    ),
    "two-histories": (
        "{arm} has two histories: {differs}",
        "{arm} 有两份不同的记录：{differs}",
    ),
    "config-clash": (
        "{arm}: {key} has two values: {values}",
        "{arm}：{key}有两个值：{values}",
    ),
    "stale-weights": (
        "{arm}: the same weights ({checkpoint}) were evaluated as {steps}",
        "{arm}：同一份权重（{checkpoint}）被当作 {steps} 来评估",
    ),
    "step-restart": (
        "{arm}: {metric} falls back from {at} to {back}: a resumed run; {dropped} points of the"
        " branch it gave up are left out",
        "{arm}：{metric}从 {at} 退回到 {back}：运行曾经恢复；被放弃的分支上的 {dropped} 个点不计入",
    ),
    "diverged": (
        "{arm}: {metric} is NaN or infinite from {at} to the end ({count} values, the last at"
        " {last}): it diverged",
        "{arm}：从{at}到结束，{metric}一直是 NaN 或无穷大（{count} 个值，最后在 {last}）："
        "运行已发散",
    ),
    "duplicate-step": (
        "{arm}: {metric} has two values at {at}: {values}",
        "{arm}：{metric}在 {at} 有两个值：{values}",
    ),
    # plans and limits
    "fewer-than-planned": (
        "{arm}: {last} of {planned} planned {axis}s are shown",
        "{arm}：计划 {planned} {axis}，只给出到第 {last} {axis}",
    ),
    "beyond-plan": (
        "{arm}: goes to {axis} {last}, beyond the {planned} planned",
        "{arm}：到第 {last} {axis}，超过计划的 {planned} {axis}",
    ),
    "evaluations-missing": (
        "{arm}: {shown} evaluations of {metric} are shown, but {steps} steps with one every"
        " {every} make {expected}",
        "{arm}：只给出 {shown} 次{metric}评估，而 {steps} 步、每 {every} 步一次应有 {expected} 次",
    ),
    "too-long-for-dates": (
        "{arm}: {steps} steps take {hours_low} to {hours_high} h, but from {started} to {until}"
        " there are {hours} h",
        "{arm}：{steps} 步需 {hours_low} 至 {hours_high} 小时，"
        "而从 {started} 到 {until} 只有 {hours} 小时",
    ),
    "started-after-report": (
        "{arm} began at {started}, after the report of {until}",
        "{arm} 开始于 {started}，晚于报告日期 {until}",
    ),
    "runs-overlap": (
        "{arms} overlap: the first takes at least {hours} h, and the second began {between} h"
        " later; did they share the machine?",
        "{arms} 在时间上重叠：前者至少需要 {hours} 小时，而后者在 {between} 小时后就开始了；"
        "它们是否共用了机器？",
    ),
    "gpu-hours": (
        "{arm}: {hours} GPU-hours do not fit {steps} steps × {seconds} s × {gpus} GPUs ="
        " {expected}",
        "{arm}：{hours} GPU 小时与 {steps} 步 × {seconds} 秒 × {gpus} 块 GPU = {expected} 不符",
    ),
    "beyond-limit": (
        "{arm}: {metric} {value} is beyond the limit of {limit} ({key})",
        "{arm}：{metric} {value} 超过上限 {limit}（{key}）",
    ),
    # at which step
    "best-step-false": (
        "{arm}: the best {metric} is said to be {said} at step {step}, but it is {value} at step"
        " {at}",
        "{arm}：所称最佳{metric}为 {said}（第 {step} 步），而曲线上是 {value}（第 {at} 步）",
    ),
    "stray-step": (
        "{arm}: {metric} {value} stands at step {at}, between the steps of all other values, and"
        " also at step {other}: is one of the two a slip?",
        "{arm}：{metric} {value} 写在第 {at} 步，不在其余各值的步上，又写在第 {other} 步："
        "其中是否有笔误？",
    ),
}
