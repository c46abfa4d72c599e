"""What is said of reports that were filled, checked or turned into a study: English, Chinese."""

from __future__ import annotations

WRITTEN: dict[str, tuple[str, str]] = {
    # states of a number or a claim
    "state.right": ("right", "正确"),
    "state.wrong": ("WRONG", "错误"),
    "state.unsupported": ("not supported", "无依据"),
    "state.unknown": ("not checkable", "无法核对"),
    # against logs
    "check.log": ("as in {file} ({runs} run(s))", "与 {file} 一致（{runs} 次训练）"),
    "check.not-log": (
        "{file} has {value} ({arm}; {runs} run(s))",
        "{file} 中为 {value}（{arm}；{runs} 次训练）",
    ),
    "check.none-of-logs": (
        "no number of the report was found in these logs: they were read as the runs {names}",
        "这些日志中找不到报告里的任何数字：读到的训练为 {names}",
    ),
    "check.unheard-step": (
        "no table, log or other line has it; the last is {last}",
        "没有任何表格、日志或其他行有这一步；最后为 {last}",
    ),
    "check.no-step": ("{file} has no such step", "{file} 中没有这一步"),
    # against each other
    "check.mean": (
        "is the mean of its numbers (lines {lines})",
        "是所列数字的平均（第 {lines} 行）",
    ),
    "check.difference": ("is the difference (lines {lines})", "差值算得对（第 {lines} 行）"),
    "check.relative": ("is the relative change (lines {lines})", "相对变化算得对（第 {lines} 行）"),
    "check.largest": ("is the largest change (lines {lines})", "是最大的变化（第 {lines} 行）"),
    "check.sum": ("is the sum (lines {lines})", "合计算得对（第 {lines} 行）"),
    "check.product": ("is the product (lines {lines})", "乘积算得对（第 {lines} 行）"),
    "check.multiple": (
        "is to its neighbour as the others are (lines {lines})",
        "与同行（列）的比例和其余一致（第 {lines} 行）",
    ),
    "check.share": ("is the ratio (lines {lines})", "比值算得对（第 {lines} 行）"),
    "check.spread": ("is the deviation (lines {lines})", "标准差算得对（第 {lines} 行）"),
    "check.same": ("is printed alike in lines {lines}", "与第 {lines} 行一致"),
    "check.loss": ("is policy loss + coefficient × KL", "等于策略损失 + 系数 × KL"),
    "check.kl_loss": ("is coefficient × KL", "等于系数 × KL"),
    "check.min": ("is below mean, first and last", "不大于平均、初始与最终值"),
    "check.max": ("is above mean, first and last", "不小于平均、初始与最终值"),
    "check.fits": (
        "fits what was worked out from it (lines {lines})",
        "与由其算出的数相符（第 {lines} 行）",
    ),
    "check.not-mean": ("the mean is {value} (lines {lines})", "平均应为 {value}（第 {lines} 行）"),
    "check.not-difference": (
        "the difference is {value} (lines {lines})",
        "差值应为 {value}（第 {lines} 行）",
    ),
    "check.not-relative": (
        "the relative change is {value} (lines {lines})",
        "相对变化应为 {value}（第 {lines} 行）",
    ),
    "check.not-largest": (
        "the largest change is {value} (lines {lines})",
        "最大变化应为 {value}（第 {lines} 行）",
    ),
    "check.not-sum": ("the sum is {value} (lines {lines})", "合计应为 {value}（第 {lines} 行）"),
    "check.not-product": (
        "the product is {value} (lines {lines})",
        "乘积应为 {value}（第 {lines} 行）",
    ),
    "check.not-multiple": (
        "should be {value}, by the factor of the other numbers of both (lines {lines})",
        "按两行（列）其余数字的比例应为 {value}（第 {lines} 行）",
    ),
    "check.not-share": (
        "the ratio is {value} (lines {lines})",
        "比值应为 {value}（第 {lines} 行）",
    ),
    "check.not-summary": (
        "as in most of its line it should be {value} (lines {lines})",
        "按同一行（列）其余数字的算法应为 {value}（第 {lines} 行）",
    ),
    "check.not-extract": (
        "as the rest of its line is of lines {lines}, it should be {value}",
        "按该行（列）其余数字与第 {lines} 行的关系，应为 {value}",
    ),
    "check.not-monotone": (
        "its table has it both rise and fall",
        "表中有升有降",
    ),
    "check.not-course": (
        "no course that is meant goes like this",
        "表中没有这样走的曲线",
    ),
    "check.not-trend": (
        "the tables have it the other way round",
        "表中正好相反",
    ),
    "check.turned": (
        "the numbers beside it say the opposite: {one}, {other}",
        "旁边的数字正好相反：{one}、{other}",
    ),
    "check.not-most": (
        "it is not: line {other} has {value}",
        "并非如此：第 {other} 行为 {value}",
    ),
    "check.not-pick": ("it is {best} that has {value}", "应为 {best}（{value}）"),
    "check.not-the-one": (
        "the number beside it is another's, or says the opposite",
        "旁边的数字是别组的，或者正好相反",
    ),
    "check.not-winner": (
        "the numbers of its row say otherwise ({value})",
        "与本行数字不符（{value}）",
    ),
    "check.not-standing": ("the values give it place {value}", "按数值应为第 {value} 名"),
    "check.not-place": (
        "not among the coefficients of this report: {values}",
        "与本报告各系数的大小不符：{values}",
    ),
    "check.not-order": ("no line has this order", "表中没有这样的次序"),
    "check.not-all": ("a line of the table above denies it", "上表有一行（列）不是这样"),
    "check.not-equal": ("no line of it has equal numbers", "表中没有哪一行（列）的数值是相同的"),
    "check.not-both": (
        "the same is said of the one that it is held against",
        "对与之相对的另一组也是这样说的",
    ),
    "check.not-top": ("its course is best elsewhere", "表中它的最佳不在这里"),
    "check.not-apart": ("they are told to be equal", "表中或别处说它们相同"),
    "check.not-spread": (
        "the deviation is {value} (lines {lines})",
        "标准差应为 {value}（第 {lines} 行）",
    ),
    "check.not-same": ("line(s) {lines} have {value}", "第 {lines} 行为 {value}"),
    "check.told-otherwise": (
        "line {lines} has {value}, and nothing tells which is right",
        "第 {lines} 行为 {value}，无从判断哪个对",
    ),
    "check.not-loss": (
        "policy loss + coefficient × KL is {value}",
        "策略损失 + 系数 × KL 应为 {value}",
    ),
    "check.not-kl_loss": ("coefficient × KL is {value}", "系数 × KL 应为 {value}"),
    "check.not-min": ("is not the least: see lines {lines}", "不是最小值：见第 {lines} 行"),
    "check.not-max": ("is not the greatest: see lines {lines}", "不是最大值：见第 {lines} 行"),
    "check.outside": (
        "lies outside its own interval [{low}, {high}]",
        "落在自己的区间 [{low}, {high}] 之外",
    ),
    "check.off-middle": (
        "is not the middle of its interval [{low}, {high}], {value}, as all others are",
        "不在区间 [{low}, {high}] 的正中（应为 {value}），而其余各行都在",
    ),
    "check.zero": (
        "but the interval is [{low}, {high}]",
        "但区间为 [{low}, {high}]",
    ),
    "check.off-course": (
        "stands far off the numbers before and after it ({before}, {after}): is a digit wrong?",
        "与前后的数字（{before}、{after}）相去甚远：是否错了一位？",
    ),
    "check.mistyped": (
        "should be {value} by what lines {lines} make of it",
        "按第 {lines} 行由它算出的数，应为 {value}",
    ),
    "check.no-fit": ("does not fit what lines {lines} say", "与第 {lines} 行不符"),
    "check.rests-on": ("rests on line {other}, which is wrong", "依据的第 {other} 行有误"),
    "check.from-missing": ("is worked out from a number that is missing", "由缺失的数字算出"),
    "check.interpreted": ("is {formula} ({sources})", "等于 {formula}（{sources}）"),
    "check.not-interpreted": (
        "{formula} is {value} ({sources})",
        "{formula} 应为 {value}（{sources}）",
    ),
    "check.not-so": ("{formula} does not hold ({sources})", "{formula} 不成立（{sources}）"),
    "check.formulas": (
        "{count} of its numbers and words were put into formulas by the interpreter",
        "解读模型把其中 {count} 处数字和说法写成了公式",
    ),
    "check.no-formulas": (
        "the interpreter put nothing into a formula: a larger model may",
        "解读模型没有写出任何公式：可换更大的模型",
    ),
    "check.rules-alone": (
        "read by rules alone, which miss some three in ten errors: --interpreter finds more",
        "仅按规则核对，约三成错误查不出：用 --interpreter 可查出更多",
    ),
    "check.unsaid": ("nothing in the report bears it out: {why}", "报告中没有依据：{why}"),
    "check.estimate": ("is an estimate: nothing measured it", "是估计值，没有实测"),
    "check.nothing": (
        "nothing to hold it against ({metric}; {arm})",
        "没有可对照的数字（{metric}；{arm}）",
    ),
    # layout
    "check.copied": (
        "the same numbers as line {other}: was a row copied?",
        "与第 {other} 行的数字完全相同：是否抄错了行？",
    ),
    "check.swapped": (
        "line {other} gives these numbers in another order: were two swapped?",
        "第 {other} 行中这些数字的顺序不同：是否有两个调换了？",
    ),
    "check.crosswise": (
        "a table has this and another number beside it the other way round",
        "另有表格中它与旁边的一个数字正好对调",
    ),
    "check.crossed-titles": (
        "the numbers of each stand elsewhere under the title of the other: were they swapped?",
        "两者的数字在别处正好对调：标题是否写反了？",
    ),
    "check.exchanged": (
        "each looks like the numbers of the other's column: were two swapped?",
        "各自像对方那一列的数字：是否调换了？",
    ),
    "check.twin": (
        "line {lines} has {value}, and all beside it is the same: a slip in one of the two?",
        "第 {lines} 行为 {value}，而旁边的数字都相同：其中一处是否写错？",
    ),
    "check.anothers": (
        "the tables have it elsewhere (line {lines}), not where this sentence puts it",
        "表中它在别处（第 {lines} 行），而不在这句话所说的位置",
    ),
    "check.arrow": ("the arrow points the other way than the sign", "箭头方向与正负号相反"),
    "check.star": (
        "marked as the best, but line {other} has {value}",
        "标为最佳，但第 {other} 行为 {value}",
    ),
    # places
    "check.elsewhere": ("stands at {at}, not at {said}", "出现在 {at}，而不是 {said}"),
    "check.best-order": ("the bests are at {at}", "最佳值分别在 {at}"),
    "check.beyond": (
        "{said} is beyond the {limit} that were trained",
        "{said} 超出了训练的 {limit}",
    ),
    "check.argument": (
        "the command has {value} where its comment has {said}",
        "命令中为 {value}，注释却写 {said}",
    ),
    "check.label-twice": (
        "line {other} has this label: was it meant to be {value}?",
        "第 {other} 行已有这个标签：是否应为 {value}？",
    ),
    "check.other-arm": ("this arm is {arm}", "该配置是 {arm}"),
    "check.stranger": (
        "no table has such an arm: there are {arms}",
        "没有表格有这个配置：有 {arms}",
    ),
    # sentences
    "check.quoted": ("stands in a table, or follows from one", "表中有，或可由表中数字得出"),
    "check.slip": ("the tables have {value}", "表中为 {value}"),
    "check.ranked": ("as the tables have it", "与表格一致"),
    "check.word": (
        "“{word}” is said without a statistic (interval, test, seeds)",
        "“{word}”没有统计量支持（区间、检验、多个种子）",
    ),
    "check.against-test": (
        "“{word}”, but {test}",
        "写着“{word}”，但 {test}",
    ),
    "check.test": ("no table or log shows this test", "没有表格或日志给出这一检验"),
    "check.total": (
        "{right} right, {wrong} wrong, {unsupported} not supported, {unknown} not checkable",
        "正确 {right}，错误 {wrong}，无依据 {unsupported}，无法核对 {unknown}",
    ),
    # fill
    "fill.filled": (
        "cells filled: {count}, corrected: {corrected}, still open: {left}",
        "填入 {count} 个单元格，更正 {corrected} 个，{left} 个仍待填",
    ),
    "fill.would": (
        "nothing was written; cells to fill: {count}, to correct: {corrected}, then still open:"
        " {left}",
        "未写入任何内容；将填入 {count} 个单元格，更正 {corrected} 个，其后 {left} 个仍待填",
    ),
    "fill.corrected": (
        "line {line}: {before} was wrong, now {after}",
        "第 {line} 行：{before} 有误，改为 {after}",
    ),
    "fill.left": (
        "cells that were not measured: {count} (lines {lines}); this would measure them:",
        "未测的单元格 {count} 个（第 {lines} 行），可用以下命令测得：",
    ),
    "fill.own": ("the report's own: ", "报告自己的命令："),
    "fill.derived": (
        "cells that follow from some that were not measured: {count} (lines {lines})",
        "要由未测的单元格得出的单元格：{count} 个（第 {lines} 行）",
    ),
    "fill.words": (
        "cells that ask for words: {count} (lines {lines})",
        "要填文字的单元格：{count} 个（第 {lines} 行）",
    ),
    "fill.nothing": ("nothing was open", "没有待填的单元格"),
    # a study out of reports
    "ask.about": ("The study that would settle {reports}.", "能给 {reports} 下结论的研究。"),
    "ask.questions": (
        "Questions, to be answered before it runs:",
        "运行之前要回答的问题：",
    ),
    "ask.default": ("the default", "默认值"),
    "ask.differs": (
        "{key} is not the same everywhere: {values}. Here: {here}.",
        "{key} 各处不一致：{values}。此处取：{here}。",
    ),
    "ask.not-here": (
        "{key}: the reports have {values}, which is not among {known}. Here: {here}.",
        "{key}：报告中为 {values}，这里只有 {known}。此处取：{here}。",
    ),
    "ask.unsaid": (
        "{key}: none that is here ({known}) is named in the reports. Here: {here}.",
        "{key}：报告中没有提到这里有的任何一个（{known}）。此处取：{here}。",
    ),
    "ask.files": (
        "where {data} and the models lie is not said. Here: {folders}; docs/vqa.md says what to"
        " fetch and which other models there are.",
        "没有说明 {data} 和模型在哪里。此处取：{folders}；"
        "docs/vqa.md 说明要下载什么、还能用哪些模型。",
    ),
    "ask.one-run": (
        "as far as the reports show, every arm was trained once. Here: {here} seeds, which all arms"
        " share.",
        "就报告所示，每个配置只训练了一次。此处：{here} 个种子，所有配置共用。",
    ),
    "ask.no-none": (
        "no arm is without a leash: without one, what the leash does cannot be told. Add it?",
        "没有不加 KL 约束的配置：没有它就无法知道约束起了什么作用。要加上吗？",
    ),
    "ask.together": (
        "{keys} change together between the arms: what each did cannot be told apart. The [grid]"
        " below, in place of the arms, would tell.",
        "{keys} 在各配置之间同时改变：无法分清各自的作用。用下面的 [grid] 代替各 [arms] 即可分清。",
    ),
    "ask.no-arms": (
        "not taken for arms, because no coefficient is told of them: {names}. Is one of them an"
        " arm?",
        "没有给出系数，未作为配置：{names}。其中有配置吗？",
    ),
    "ask.coefficient": (
        "no coefficient is given for {arm}. Here: {here}.",
        "没有给出 {arm} 的系数。此处取：{here}。",
    ),
}
