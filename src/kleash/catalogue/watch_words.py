"""What `kleash watch` says: signs of collapse, what a run found, the columns of its table."""

from __future__ import annotations

WATCH: dict[str, tuple[str, str]] = {
    "watch.dead-groups": (
        "{run}: {at}: {now} of the groups have equal rewards, {before} when it had settled",
        "{run}：{at}：{now} 的组内奖励全部相同，稳定初期为 {before}",
    ),
    "watch.dead-groups-no-gain": (
        "{run}: {at}: {now} of the groups have equal rewards ({before} at first) while the reward"
        " has fallen: they are not done, they are dead",
        "{run}：{at}：{now} 的组内奖励全部相同（起初为 {before}），而奖励已经下降："
        "不是学会了，是没有信号了",
    ),
    "watch.valid-actions": (
        "{run}: {at}: {now} of the actions can be read, {before} when it had settled",
        "{run}：{at}：可解析的动作占 {now}，稳定初期为 {before}",
    ),
    "watch.response-shorter": (
        "{run}: {at}: responses have shrunk to {now} tokens from {before} within a few steps, and"
        " the reward does not rise with it: a collapse may follow",
        "{run}：{at}：响应长度在数步之内由 {before} 缩短到 {now}，奖励并未随之上升：可能即将崩溃",
    ),
    "watch.response-longer": (
        "{run}: {at}: responses have grown to {now} tokens from {before} within a few steps, and"
        " the reward does not rise with it",
        "{run}：{at}：响应长度在数步之内由 {before} 增长到 {now}，奖励并未随之上升",
    ),
    "watch.entropy-falls": (
        "{run}: {at}: entropy has fallen to {now} from {before} within a few steps",
        "{run}：{at}：熵在数步之内由 {before} 骤降到 {now}",
    ),
    "watch.entropy-rises": (
        "{run}: {at}: entropy has jumped to {now} from {before} within a few steps",
        "{run}：{at}：熵在数步之内由 {before} 骤升到 {now}",
    ),
    "watch.kl-excursion": (
        "{run}: {at}: KL has jumped to {now} from {before} within a few steps: the leash does not"
        " hold",
        "{run}：{at}：KL 在数步之内由 {before} 骤升到 {now}：KL 约束没有拉住",
    ),
    "watch.reward-drawdown": (
        "{run}: {at}: the reward is {now}, far below the level of {before} that it had held",
        "{run}：{at}：奖励为 {now}，远低于曾经保持的水平 {before}",
    ),
    "watch.validation-drawdown": (
        "{run}: {at}: {metric} is {now}, twice in a row far below the best of {before}: keep the"
        " earlier checkpoint",
        "{run}：{at}：{metric}为 {now}，连续两次远低于最好水平 {before}：请保留先前的检查点",
    ),
    "watch.not-finite": (
        "{run}: {at}: {metric} is {now}: all that follows is lost",
        "{run}：{at}：{metric}为 {now}：此后的训练已无意义",
    ),
    "watch.run-finding": ("{run}: {message}", "{run}：{message}"),
    "watch.run": ("run", "训练"),
    "watch.step": ("step", "步"),
    "watch.reward": ("reward", "奖励"),
    "watch.accuracy": ("accuracy", "准确率"),
    "watch.kl": ("KL", "KL"),
    "watch.entropy": ("entropy", "熵"),
    "watch.response_length": ("length", "响应长度"),
    "watch.state": ("state", "状态"),
    "watch.fine": ("nothing noticed", "未见异常"),
    "watch.warned": ("{n} warnings", "{n} 条警告"),
    "watch.warned.1": ("1 warning", "1 条警告"),
    "watch.nothing": ("nothing to follow yet in {where}", "{where} 中还没有可以跟踪的日志"),
    "watch.looked": (
        "runs: {runs}, points: {points}, warnings: {n}; the logs were only read",
        "{runs} 个训练，{points} 个数据点，{n} 条警告；日志只读，未作任何改动",
    ),
    "watch.epoch": ("epoch {n}", "第 {n} 轮"),
    "watch.shortly": (
        "runs are called by what differs in their names: {names}",
        "运行只用名称中不同的部分来称呼：{names}",
    ),
    "watch.no_curves": (
        "logs without a curve, not shown: {n}",
        "另有 {n} 个没有曲线的日志，未列出",
    ),
    "watch.unread": ("{run}: lines that could not be read: {n}", "{run}：有 {n} 行无法读取"),
}
