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
    "check.not-formula": (
        "{formula} is {value} ({sources})",
        "{formula} 应为 {value}（{sources}）",
    ),
    "check.source": (
        "what is worked out of it does not come out: {formula} ({sources})",
        "由它算出的数不对：{formula}（{sources}）",
    ),
    "check.not-so": ("{formula} does not hold ({sources})", "{formula} 不成立（{sources}）"),
    "check.undecided": ("a statistical test does not bear it out: {why}", "统计检验不支持：{why}"),
    "check.unsaid": ("nothing in the report bears it out: {why}", "报告中没有依据：{why}"),
    "check.word": (
        "“{word}” is said without a statistic (interval, test, seeds)",
        "“{word}”没有统计量支持（区间、检验、多个种子）",
    ),
    "check.copied": (
        "rows {lines} hold the same numbers: was one copied?",
        "第 {lines} 行的数字相同：是否抄错了行？",
    ),
    "check.not-best": (
        "called the best; the other numbers of its row or column say otherwise",
        "标为最佳，但本行（列）的其他数字并非如此",
    ),
    "check.elsewhere": (
        "the tables have it at {value}, not at {said}",
        "表中它在 {value}，而不是 {said}",
    ),
    "check.estimate": ("is an estimate: nothing measured it", "是估计值，没有实测"),
    "check.nothing": ("nothing to hold it against", "没有可对照的数字"),
    # of a whole report
    "check.total": (
        "{right} right, {wrong} wrong, {unsupported} not supported, {unknown} not checkable",
        "正确 {right}，错误 {wrong}，无依据 {unsupported}，无法核对 {unknown}",
    ),
    "check.read-numbers": (
        "Read by numbers alone: tables{logs}. Sentences are not read. Of 20 errors in a stranger's"
        " report this finds 7 to 8; with a language model 18 to 20: --interpreter URL --model NAME",
        "仅核对数字：表格{logs}；不读句子。别人的报告里若有 20 处错误，这样能查出 7 到 8 处；"
        "加上语言模型能查出 18 到 20 处：--interpreter URL --model NAME",
    ),
    "check.read-logs": (" and logs", "和日志"),
    "check.read-formulas": (
        "Read by numbers, and by an interpreter: of {all} sentences with numbers {count} became"
        " formulas ({claims} numbers and claims, with those in tables).",
        "数字与解读模型一起核对：{all} 个含数字的句子中有 {count} 个写成了公式（连同表格共 {claims}"
        " 处数字和说法）。",
    ),
    "check.read-unread": ("Not understood in its answers: ", "它的回答中读不懂的："),
    "check.read-little": (
        "Most sentences were not checked; a larger model may read more.",
        "大部分句子没有核对；换更大的模型可能读懂更多。",
    ),
    "check.silent": ("a question without an answer", "问题没有得到回答"),
    "check.no-json": ("a line that is no JSON", "不是 JSON 的一行"),
    "check.no-claim": ("JSON that is no claim", "不是说法的 JSON"),
    "check.no-number": (
        "no number of the report, or given by itself",
        "不是报告中的数，或以自身为出处",
    ),
    "check.no-formula": ("a formula that cannot be worked out", "无法计算的公式"),
    "check.no-truth": ("words without anything true or false", "文字没有可判真假的公式"),
    "check.unread": (
        "the interpreter's formula {formula} cannot be worked out: {why}",
        "解读模型的公式 {formula} 无法计算：{why}",
    ),
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
    "fill.other-data": (
        "Data differ: the report is on {report} (line {line}), the runs are on {logs}.",
        "数据不同：报告用的是 {report}（第 {line} 行），而这些训练用的是 {logs}。",
    ),
    "fill.other-model": (
        "The model differs: {report} in the report (line {line}), {logs} in the runs.",
        "模型不同：报告中是 {report}（第 {line} 行），而这些训练用的是 {logs}。",
    ),
    "fill.other-level": (
        "The level differs: line {line} prints {report}, the runs have {logs}.",
        "数值水平不同：第 {line} 行写的是 {report}，而这些训练中是 {logs}。",
    ),
    "fill.ask": ("Fill {count} cells all the same?", "仍要填入 {count} 个单元格吗？"),
    "fill.untouched": (
        "Nothing was written to {target}; --anyway fills it all the same.",
        "{target} 未改动；加 --anyway 仍会填入。",
    ),
    "fill.unsaid-data": (
        "data were not compared: the report or the runs do not name them",
        "没有核对数据集：报告或训练日志没有写明",
    ),
    "fill.unsaid-model": (
        "the model was not compared: the report or the runs do not name it",
        "没有核对模型：报告或训练日志没有写明",
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
