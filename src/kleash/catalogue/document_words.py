"""What is said of reports that were filled, checked or turned into a study: English, Chinese."""

from __future__ import annotations

DOCUMENTS: dict[str, tuple[str, str]] = {
    # states of a number or a claim
    "state.right": ("right", "正确"),
    "state.wrong": ("WRONG", "错误"),
    "state.unsupported": ("not supported", "无依据"),
    "state.unknown": ("not checkable", "无法核对"),
    # what is said of one
    "check.log": ("as in {file} ({metric})", "与 {file} 一致（{metric}）"),
    "check.not-log": ("{file} has {value} ({metric})", "{file} 中为 {value}（{metric}）"),
    "check.formula": ("is {formula} ({sources})", "等于 {formula}（{sources}）"),
    "check.not-formula": ("{formula} is {value} ({sources})", "{formula} 为 {value}（{sources}）"),
    "check.source": ("breaks {formula} ({sources})", "使 {formula} 不成立（{sources}）"),
    "check.not-so": ("{formula} does not hold ({sources})", "{formula} 不成立（{sources}）"),
    "check.undecided": ("a statistical test does not bear it out: {why}", "统计检验不支持：{why}"),
    "check.unsaid": ("nothing in the report bears it out: {why}", "报告中没有依据：{why}"),
    "check.word": ("“{word}” without an interval or test", "“{word}”没有区间或检验支持"),
    "check.copied": ("rows {lines} are the same: copied?", "第 {lines} 行数字相同：是否抄错？"),
    "check.not-best": ("not the extreme of its row or column", "不是本行（列）的最大或最小值"),
    "check.elsewhere": (
        "the tables have it at {value}, not at {said}",
        "表中它在 {value}，而非 {said}",
    ),
    "check.estimate": ("is an estimate: nothing measured it", "是估计值，没有实测"),
    "check.nothing": ("nothing to hold it against", "没有可对照的数字"),
    # of a whole report
    "check.total": (
        "{right} right, {wrong} wrong, {unsupported} not supported, {unknown} not checkable",
        "正确 {right}，错误 {wrong}，无依据 {unsupported}，无法核对 {unknown}",
    ),
    "check.read-numbers": (
        "Read: tables{logs}; not sentences. Of 20 errors in a stranger's report this finds 7 to 8;"
        " with a language model 18 to 20: --interpreter URL --model NAME",
        "已核对表格{logs}，不读句子。别人的报告里若有 20 处错误，这样能查出 7 到 8 处；"
        "加上语言模型能查出 18 到 20 处：--interpreter URL --model NAME",
    ),
    "check.read-logs": (" and logs", "和日志"),
    "check.read-formulas": (
        "Of {all} sentences with numbers {count} became formulas ({claims} claims, with tables).",
        "{all} 个含数字的句子中有 {count} 个写成了公式（连同表格共 {claims} 处）。",
    ),
    "check.read-unread": ("Not understood in its answers: ", "它的回答中读不懂的："),
    "check.read-little": ("A larger model may read more.", "换更大的模型可能读懂更多。"),
    "check.silent": ("a question without an answer", "问题没有得到回答"),
    "check.no-json": ("a line that is no JSON", "不是 JSON 的一行"),
    "check.no-claim": ("JSON that is no claim", "不是说法的 JSON"),
    "check.no-number": ("no number of the report, or itself", "不是报告中的数，或以自身为出处"),
    "check.no-formula": ("a formula that cannot be worked out", "无法计算的公式"),
    "check.no-truth": ("words without anything true or false", "文字没有可判真假的公式"),
    "check.unread": ("{formula} cannot be worked out: {why}", "公式 {formula} 算不出：{why}"),
    "check.cost": (
        "{count} question(s), about {tokens} tokens in, model {model}; {known} already answered",
        "{count} 个问题，输入约 {tokens} 个 token，模型 {model}；另有 {known} 个已有回答",
    ),
    "check.go-on": ("Go on?", "继续吗？"),
    "check.none-of-logs": (
        "no number of the report was found in these logs: they were read as the runs {names}",
        "这些日志中找不到报告里的任何数字：读到的训练为 {names}",
    ),
    # fill
    "fill.filled": (
        "cells filled: {count}, corrected: {corrected}, still open: {left}",
        "填入 {count} 个单元格，更正 {corrected} 个，{left} 个仍待填",
    ),
    "fill.corrected": ("line {line}: {before} is now {after}", "第 {line} 行：{before} → {after}"),
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
    "fill.other": (
        "The {what} differs: {report} in the report (line {line}), {logs} in the runs.",
        "{what}不同：报告中为 {report}（第 {line} 行），训练中为 {logs}。",
    ),
    "fill.data": ("data", "数据集"),
    "fill.model": ("model", "模型"),
    "fill.level": ("level", "数值水平"),
    "fill.ask": ("Fill {count} cells all the same?", "仍要填入 {count} 个单元格吗？"),
    "fill.untouched": ("{target} was not touched: see --anyway.", "{target} 未改动：见 --anyway。"),
    "fill.unsaid": (
        "not compared, as one side does not say it: {what}",
        "有一方没写，未核对：{what}",
    ),
    "fill.would": ("nothing was written; it would be: ", "未写入任何内容；将会："),
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
        "where {data} and the models lie is not said. Here: {folders}; see docs/vqa.md.",
        "没有说明 {data} 和模型在哪里。此处取：{folders}；见 docs/vqa.md。",
    ),
    "ask.one-run": (
        "every arm was trained once, it seems. Here: {here} seeds, which all arms share.",
        "看来每个配置只训练了一次。此处：{here} 个种子，所有配置共用。",
    ),
    "ask.no-none": (
        "no arm is without a leash: without one, what the leash does cannot be told. Add it?",
        "没有不加 KL 约束的配置：没有它就无法知道约束起了什么作用。要加上吗？",
    ),
    "ask.together": (
        "{keys} change together, so neither is told apart: the [grid] below would tell.",
        "{keys} 同时改变，无法分清各自的作用：可用下面的 [grid] 代替各 [arms]。",
    ),
    "ask.no-arms": (
        "not taken for arms, as no coefficient is told: {names}. Is one of them an arm?",
        "没有给出系数，未作为配置：{names}。其中有配置吗？",
    ),
    "ask.coefficient": (
        "no coefficient is given for {arm}. Here: {here}.",
        "没有给出 {arm} 的系数。此处取：{here}。",
    ),
}
