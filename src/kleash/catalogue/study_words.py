"""What `kleash study --dry-run` says: what will run, what it costs, the columns of its table."""

from __future__ import annotations

STUDY: dict[str, tuple[str, str]] = {
    "study.cells": ("{name}: {count} cells", "{name}：共 {count} 个单元"),
    "study.state": ("{count} {state}", "{count} 个{state}"),
    "study.arm": ("arm", "配置"),
    "study.seeds": ("seeds", "随机种子"),
    "study.checkpoints": ("checkpoints", "检查点"),
    "study.split": ("split", "数据划分"),
    "study.shots": ("shots", "范例数"),
    "study.passes": ("passes", "遍数"),
    "study.items": ("items", "题目数"),
    "study.states": ("state", "状态"),
    "study.jobs": (
        "jobs to run: {jobs}; answers to be asked for: at most {answers} (the ledger knows {known}"
        " and pays for none twice)",
        "待运行的任务：{jobs} 个；最多要问 {answers} 个回答（账本中已有 {known} 个，不会重复付费）",
    ),
    "study.ranks": (
        "a run is trained by {ranks} processes at once, with a GPU each where --device is cuda:"
        " give --on ray, auto or ray://HOST:PORT",
        "每次运行由 {ranks} 个进程共同训练；--device 为 cuda 时每个进程用一块 GPU："
        "请给出 --on ray、auto 或 ray://HOST:PORT",
    ),
    "study.jobs_agents": (
        "jobs to run: {jobs}; episodes to be played: {answers}",
        "待运行的任务：{jobs} 个；要进行 {answers} 个回合",
    ),
    "study.time": (
        "time: about {minutes} minutes of one core",
        "时间：约 {minutes} 分钟（单核）",
    ),
    "study.time_unknown": (
        "time: not known before a job of each kind has run",
        "时间：每种任务至少运行过一个之后才知道",
    ),
    "study.time_guessed": (
        "time: about {hours} hours of one {card} for the answers, if no two are the same: {seconds}"
        " s each ({weights} billion weights, {tokens} tokens); a slower card takes longer by as"
        " much as it is slower",
        "时间：若没有两个回答相同，约需一块 {card} {hours} 小时：每个回答 {seconds} 秒"
        "（{weights}B 参数，{tokens} 个 token）；卡慢多少，时间就长多少",
    ),
    "study.first_calibrate": (
        "first: {runs} short runs to place {arms} arms by realised KL",
        "首先：{runs} 次短运行，按实际 KL 放置 {arms} 个配置",
    ),
    "study.first_search": (
        "first: a search, at most {runs} runs of {trials} settings",
        "首先：一次搜索，{trials} 组设置最多 {runs} 次运行",
    ),
}
