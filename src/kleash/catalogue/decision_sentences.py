"""Which arm to use, and what became of each: a code, its sentence in English, in Chinese."""

from __future__ import annotations

DECISIONS: dict[str, tuple[str, str]] = {
    "keep_start": (
        "No arm is better than not training: keep the start.",
        "没有任何配置好于不训练：保留起点。",
    ),
    "keep_start_open": (
        "No arm is shown to be better than not training: keep the start.",
        "没有任何配置被证明好于不训练：保留起点。",
    ),
    "gain_too_small": (
        "No arm is shown to gain more than {margin} over the start: keep the start.",
        "没有任何配置被证明比起点提升超过{margin}：保留起点。",
    ),
    "untrained_better": (
        "No arm is better than {starts}, which needs no training: use that.",
        "没有任何配置好于无需训练的{starts}：用后者。",
    ),
    "none_recommended": (
        "No setting can be recommended from these runs.",
        "根据这些运行，不能推荐任何配置。",
    ),
    "use_gain": (
        "Use {arm}: {name} {gap} over its start ({n} seeds), and no arm is better than it.",
        "用{arm}：{name}比起点 {gap}（{n}个随机种子），没有配置比它更好。",
    ),
    "use_level": (
        "Use {arm}: better than {baseline}, {name} {gap} ({n} seeds). Whether it is better than"
        " its start was not measured.",
        "用{arm}：好于{baseline}，{name} {gap}（{n}个随机种子）。是否好于其起点没有测量。",
    ),
    "use_baseline": (
        "Use {arm}: every other arm is worse. Whether it is better than its start was not"
        " measured.",
        "用{arm}：其他配置都更差。是否好于其起点没有测量。",
    ),
    "use_as_good": (
        "Not shown to differ from it: {arms}.",
        "没有证据表明与它不同：{arms}。",
    ),
    "the_start": ("the start", "起点"),
    "group.more": ("{count} more", "另外 {count} 个"),
    "group.range": ("from {least} to {most}", "从{least}到{most}"),
    "group.invalid": (
        "Not judged against {other}: {arms}{level}.",
        "未与{other}比较：{arms}{level}。",
    ),
    "group.diverged": (
        "Not compared with {other}, since a run diverged: {arms}{level}.",
        "有运行发散，未与{other}比较：{arms}{level}。",
    ),
    "group.identical": (
        "The same outputs as {other}: {arms}{level}.",
        "输出与{other}完全相同：{arms}{level}。",
    ),
    "group.better": (
        "Better than {other}: {arms} ({gaps}){level}.",
        "好于{other}：{arms}（{gaps}）{level}。",
    ),
    "group.better_within_margin": (
        "Better than {other}, but by less than the margin of {margin}: {arms} ({gaps}){level}.",
        "好于{other}，但不超过容差{margin}：{arms}（{gaps}）{level}。",
    ),
    "group.worse": (
        "Worse than {other}: {arms} ({gaps}){level}.",
        "差于{other}：{arms}（{gaps}）{level}。",
    ),
    "group.worse_within_margin": (
        "Worse than {other}, but by less than the margin of {margin}: {arms} ({gaps}){level}.",
        "差于{other}，但不超过容差{margin}：{arms}（{gaps}）{level}。",
    ),
    "group.equivalent": (
        "Equivalent to {other} within the margin of {margin}: {arms} ({gaps}){level}.",
        "与{other}在容差{margin}内等价：{arms}（{gaps}）{level}。",
    ),
    "group.undecided": (
        "Not shown to differ from {other}: {arms} ({gaps}){level}.",
        "没有证据表明与{other}不同：{arms}（{gaps}）{level}。",
    ),
    "group.lost_less": (
        "Lost less than {other}: {arms} ({gaps}){level}.",
        "比{other}损失更少：{arms}（{gaps}）{level}。",
    ),
    "group.lost_more": (
        "Lost more than {other}: {arms} ({gaps}){level}.",
        "比{other}损失更多：{arms}（{gaps}）{level}。",
    ),
    "group.gained_more": (
        "Gained more than {other}: {arms} ({gaps}){level}.",
        "比{other}提升更多：{arms}（{gaps}）{level}。",
    ),
    "group.gained_less": (
        "Gained less than {other}: {arms} ({gaps}){level}.",
        "比{other}提升更少：{arms}（{gaps}）{level}。",
    ),
    "group.also": (
        " This is not attributable to one setting: {keys} changed too.",
        "不能归因于单一设置：同时改变的还有{keys}。",
    ),
}
