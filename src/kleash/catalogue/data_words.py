"""What `kleash data check` and `kleash adopt` say, English and Chinese."""

from __future__ import annotations

DATA: dict[str, tuple[str, str]] = {
    # --- counts
    "rl.counts": (
        "{queries} queries, {pointers} pointers, {positive} of them positive ({share})",
        "{queries} 道题目，{pointers} 个范例序列，其中正例 {positive} 个（{share}）",
    ),
    "rl.counts.unknown": (
        "{queries} queries, {pointers} pointers, no reward at all",
        "{queries} 道题目，{pointers} 个范例序列，没有任何奖励",
    ),
    "rl.sizes": (
        "{least} to {most} pointers for a query, of length {lengths}; pools of {sizes}",
        "每题 {least} 到 {most} 个范例序列，长度 {lengths}；候选池大小 {sizes}",
    ),
    "rl.methods": ("found by: {methods}", "生成方式：{methods}"),
    "rl.health": (
        "groups: {mixed} with signal, {zero} all zero, {top} all one, {equal} all equal",
        "组：{mixed} 组有信号，{zero} 组全 0，{top} 组全 1，{equal} 组取值相同",
    ),
    "rl.global": (
        "`pointer` holds numbers of the whole set",
        "`pointer` 为全局序号",
    ),
    "rl.local": (
        "`pointer` counts places of the pool, `pointer_global` holds numbers of the whole set",
        "`pointer` 为候选池内位置，`pointer_global` 为全局序号",
    ),
    "rl.both": (
        "`pointer` counts places of the pool in some entries, numbers of the whole set in others",
        "`pointer` 在部分条目中为候选池内位置，在其余条目中为全局序号",
    ),
    "rl.sound": ("nothing wrong was found", "没有发现问题"),
    # --- what is wrong
    "rl.unanswered": (
        "{count} of {total} rewards have no answer behind them: nobody ran the model for them"
        " (queries {examples})",
        "{total} 个奖励中有 {count} 个没有回答：没有为它们运行过模型（题目 {examples}）",
    ),
    "rl.failed": (
        "{count} of {total} are errors that stand as a reward: a failure is not a number"
        " (queries {examples})",
        "{total} 个中有 {count} 个是出错却记成了奖励：失败不是数值（题目 {examples}）",
    ),
    "rl.unrewarded": (
        "{count} of {total} pointers have neither vqa_correct nor vqa_acc_score"
        " (queries {examples})",
        "{total} 个范例序列中有 {count} 个既无 vqa_correct 也无 vqa_acc_score（题目 {examples}）",
    ),
    "rl.copied": (
        "{count} of {total} positives were copied from other queries: what was right there"
        " was never asked here (queries {examples})",
        "{total} 个正例中有 {count} 个抄自其他题目：在那里答对，在这里从未问过（题目 {examples}）",
    ),
    "rl.not_own": (
        "{count} of {total} rewards are not what the answer earns with the query's own"
        " gt_answers_raw (queries {examples})",
        "{total} 个奖励中有 {count} 个与该回答按本题 gt_answers_raw 应得的不符（题目 {examples}）",
    ),
    "rl.flag": (
        "{count} of {total}: vqa_correct and vqa_acc_score contradict each other"
        " (queries {examples})",
        "{total} 个中有 {count} 个 vqa_correct 与 vqa_acc_score 相互矛盾（题目 {examples}）",
    ),
    "rl.range": (
        "{count} of {total}: vqa_acc_score is not between 0 and 1; percent? (queries {examples})",
        "{total} 个中有 {count} 个 vqa_acc_score 不在 0 到 1 之间；是否为百分数？"
        "（题目 {examples}）",
    ),
    "rl.truths": (
        "{count} of {total} queries have fewer than 4 gt_answers_raw: their rewards cannot be"
        " worked out again",
        "{total} 道题目中有 {count} 道的 gt_answers_raw 少于 4 个：无法重新计算奖励",
    ),
    "rl.no_pool": (
        "{count} of {total} queries have no candidate_pool_ids: what else could have been chosen is"
        " not known (queries {examples})",
        "{total} 道题目中有 {count} 道没有 candidate_pool_ids：不知道还能选什么（题目 {examples}）",
    ),
    "rl.pool_sizes": (
        "pools differ in size: {sizes}; {count} of {total} are not of the usual one"
        " (queries {examples})",
        "候选池大小不一：{sizes}；{total} 个中有 {count} 个不是通常大小（题目 {examples}）",
    ),
    "rl.pool_repeats": (
        "{count} of {total} pools hold a demonstration twice (queries {examples})",
        "{total} 个候选池中有 {count} 个含重复范例（题目 {examples}）",
    ),
    "rl.pool_self": (
        "{count} of {total} pools hold the query itself (queries {examples})",
        "{total} 个候选池中有 {count} 个含题目本身（题目 {examples}）",
    ),
    "rl.pool_order": (
        "{count} of {total} pools begin with exactly what their pointers show: they were made from"
        " the pointers, and a place tells what was chosen (queries {examples})",
        "{total} 个候选池中有 {count} 个恰以范例序列用到的范例开头：候选池由范例序列倒推而成，"
        "位置泄露了选择（题目 {examples}）",
    ),
    "rl.pool_cache": (
        "{count} of {total} pools are not those of the cache (queries {examples})",
        "{total} 个候选池中有 {count} 个与缓存不同（题目 {examples}）",
    ),
    "rl.outside": (
        "{count} of {total} pointers lead outside their pool (queries {examples})",
        "{total} 个范例序列中有 {count} 个指向候选池之外（题目 {examples}）",
    ),
    "rl.repeated": (
        "{count} of {total} pointers show a demonstration twice (queries {examples})",
        "{total} 个范例序列中有 {count} 个重复使用同一范例（题目 {examples}）",
    ),
    "rl.itself": (
        "{count} of {total} pointers show the query itself (queries {examples})",
        "{total} 个范例序列中有 {count} 个含题目本身（题目 {examples}）",
    ),
    "rl.lengths": (
        "pointers have different lengths: {lengths}",
        "范例序列长度不一：{lengths}",
    ),
    "rl.misplaced": (
        "{count} of {total}: another demonstration stands at the place that `pointer` says than"
        " `pointer_global` names (queries {examples})",
        "{total} 个中有 {count} 个：`pointer` 所指位置的范例不是 `pointer_global` 所说的"
        "（题目 {examples}）",
    ),
    "rl.modulo": (
        "{count} of {total}: `pointer` is the number modulo the size of the pool, where another"
        " demonstration stands (queries {examples})",
        "{total} 个中有 {count} 个：`pointer` 是全局序号对候选池大小取模，该位置上是另一个范例"
        "（题目 {examples}）",
    ),
    "rl.duplicates": (
        "{count} of {total} pointers stand in their group already (queries {examples})",
        "{total} 个范例序列中有 {count} 个在组内重复（题目 {examples}）",
    ),
    "rl.contradicts": (
        "{count} pointers stand twice in a group with different rewards (queries {examples})",
        "{count} 个范例序列在组内出现两次而奖励不同（题目 {examples}）",
    ),
    "rl.asked_twice": (
        "{count} questions stand under more than one key: {examples}",
        "{count} 个问题出现在多个键下：{examples}",
    ),
    "rl.keys_twice": (
        "{count} keys stand twice in the file, and readers keep only the last: {examples}",
        "文件中有 {count} 个键出现两次，读取时只保留最后一个：{examples}",
    ),
    "rl.no_signal": (
        "{count} of {total} groups have no signal, {zero} of them all zero: they teach nothing",
        "{total} 组中有 {count} 组没有信号，其中 {zero} 组全 0：学不到任何东西",
    ),
    "rl.order_rising": (
        "{count} of {total} pointers rise (by chance {chance} of them): they were sorted, and"
        " (a, b) was taken for (b, a)",
        "{total} 个范例序列中有 {count} 个递增（随机时占 {chance}）：序列被排过序，"
        "(a, b) 与 (b, a) 被当成同一个",
    ),
    "rl.order_falling": (
        "{count} of {total} pointers fall (by chance {chance} of them): they were sorted, and"
        " (a, b) was taken for (b, a)",
        "{total} 个范例序列中有 {count} 个递减（随机时占 {chance}）：序列被排过序，"
        "(a, b) 与 (b, a) 被当成同一个",
    ),
    # --- what was adopted
    "adopt.run": (
        "{run}: preset {preset}; checkpoints: {names}",
        "{run}：预设 {preset}；检查点：{names}",
    ),
    "adopt.again": (
        "{run} was adopted from the same files before: nothing was changed",
        "{run} 此前已由同样的文件接管：没有改动",
    ),
    "adopt.checkpoint": (
        "{file} → {name}: {parameters} values, every tensor in its place",
        "{file} → {name}：{parameters} 个数值，每个张量都已就位",
    ),
    "adopt.renamed": (
        "{file} was converted: {count} tensors have names that the evaluating model does not know."
        " Loaded without being strict, {parameters} of {total} values ({share}) never reached"
        " evaluation: {names}",
        "{file} 经过转换：{count} 个张量的名字是评估模型不认识的。非严格加载时，{total} 个数值中有"
        " {parameters} 个（{share}）从未进入评估：{names}",
    ),
    "adopt.lost": (
        "{file} has lost {count} tensors of {source}, {parameters} values that never reached"
        " evaluation: {names}",
        "{file} 丢失了 {source} 的 {count} 个张量，共 {parameters} 个数值从未进入评估：{names}",
    ),
    "adopt.other": (
        "{file} holds other values than {source} in: {names}",
        "{file} 与 {source} 的数值不同之处：{names}",
    ),
    "adopt.same": (
        "{file} holds the same values as {source}, which was adopted in its place",
        "{file} 的数值与 {source} 相同，接管的是后者",
    ),
    "adopt.equal": (
        "{names} hold the same weights: what came between them changed nothing",
        "{names} 的权重相同：其间的训练没有改变任何东西",
    ),
    "adopt.towers": (
        "{file}: {parameters} values belong to {names}, not to the selector: left out",
        "{file}：{parameters} 个数值属于 {names} 而不属于选择器：未接管",
    ),
    "adopt.embeddings": (
        "{file}: {count} rows of {width}; kept and not used: no row tells which item it is of, and"
        " the encoder makes them again",
        "{file}：{count} 行，每行 {width} 维；仅保存而不使用：各行没有写明对应"
        "哪个样本，向量由编码器重新生成",
    ),
    "adopt.pools": (
        "{file}: pools of {queries} queries, of size {sizes}; RL data beside it is checked against"
        " them, training takes its pools from RL data or makes them anew",
        "{file}：{queries} 道题目的候选池，大小 {sizes}；用于核对同处的 RL 数据，"
        "训练时候选池取自 RL 数据或重新生成",
    ),
    "adopt.beams": (
        "{file}: {pointers} beams of {queries} queries; kept and not used: none has an answer, and"
        " kleash propose searches anew",
        "{file}：{queries} 道题目的 {pointers} 条束搜索序列；仅保存而不使用：都没有回答，"
        "kleash propose 会重新搜索",
    ),
    "adopt.rl": (
        "{file}: {queries} queries, {pointers} pointers, {share} positive; things wrong with it:"
        " {wrong} (kleash data check); propose.facts=FILE trains from it",
        "{file}：{queries} 道题目，{pointers} 个范例序列，正例 {share}；问题 {wrong} 类"
        "（kleash data check）；用 propose.facts=FILE 可据此训练",
    ),
    "adopt.curves": (
        "{file}: curves, an epoch a line, under their own names",
        "{file}：训练曲线，每轮一行，沿用原名",
    ),
    "adopt.accuracy": (
        "{file}: accuracies without their items: shown as they are, and no interval follows",
        "{file}：没有逐题结果的正确率：照原样展示，无法得出区间",
    ),
    "adopt.assumed": (
        "assumed, since no file says so (give KEY=VALUE to change it): {assumed}",
        "文件中没有、按惯例假定的（可用 KEY=VALUE 更改）：{assumed}",
    ),
    "adopt.left": ("left alone: {names}", "未处理：{names}"),
    # --- in a report
    "report.view": (
        "{arm}: its view leaves {kept_groups} of {groups} groups and {kept_pointers} of {pointers}"
        " pointers, {share} of them positive (all {seeds} seeds together).",
        "{arm}：视图在 {groups} 组中保留 {kept_groups} 组，在 {pointers} 个范例序列中保留"
        " {kept_pointers} 个，其中正例占 {share}（{seeds} 个随机种子合计）。",
    ),
    "report.view_added": (
        "{arm}: where all pointers of a query were worth the same, {added} further ones were asked"
        " for.",
        "{arm}：对奖励全部相同的题目，另外询问了 {added} 个范例序列。",
    ),
    "report.facts": (
        "{arm}: trained on {pointers} facts of {queries} queries from a file; left out:"
        " {left_out}.",
        "{arm}：使用文件中 {queries} 道题目的 {pointers} 条记录训练；未使用：{left_out}。",
    ),
    "report.left.an error": ("an error", "出错"),
    "report.left.no answer": ("no answer", "没有回答"),
    "report.left.copied from another query": ("copied from another query", "抄自其他题目"),
    "report.left.no pool": ("no pool", "没有候选池"),
    "report.left.outside the pool": ("outside the pool", "在候选池之外"),
    "report.left.another demonstration at its place": (
        "another demonstration at its place",
        "所指位置是另一个范例",
    ),
    "report.left.a demonstration twice": ("a demonstration twice", "范例重复"),
    "report.left.the query itself": ("the query itself", "题目本身"),
    "report.left.asked before": ("asked before", "组内重复"),
    "report.left.no pointer left": ("no pointer left", "没有可用的范例序列"),
    "report.left.not in the data set": ("not in the data set", "不在数据集中"),
}
