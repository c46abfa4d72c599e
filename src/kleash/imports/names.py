"""Which names mean the same: metrics and config keys, in Chinese, English and framework spelling.

Two tables, and a few functions that look things up in them. A name that is not in a table is
unknown: it is kept, reported, and never guessed from its neighbours, so that no verdict rests on
it. The tables say what a quantity is, not whether two values of it may be compared. The file is
long because its tables are.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any, Literal

Kind = Literal["treatment", "must match", "seed", "harmless"]
LONGEST = 300  # characters of a name that are looked at


@dataclass(frozen=True)
class Metric:
    """A quantity: its unit, whether higher (1) or lower (-1) is better or neither (0).

    `constant` is the value it has by construction, whatever the training did; `trap` is what a
    reader of its numbers should know.
    """

    name: str
    unit: str
    direction: Literal[-1, 0, 1]
    constant: float | None = None
    trap: str = ""


@dataclass(frozen=True)
class Key:
    """A setting, under the name it has in our own configs, and what it may do to a comparison."""

    name: str
    kind: Kind


@dataclass
class Resolved:
    """A config under known names: values, how each was written, what is unknown or contradictory.

    `values` of the leash are numbers: a leash that is switched off has coefficient 0.
    """

    values: dict[str, Any] = field(default_factory=dict)
    written: dict[str, str] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)
    clashes: list[str] = field(default_factory=list)


_METRICS: dict[Metric, str] = {
    Metric("accuracy", "fraction", 1): (
        "accuracy|acc|正确率|准确率|推理准确率|推理正确率|测试准确率|验证准确率|vqa accuracy|acc.|"
        "validation/accuracy|validation accuracy|"
        "vqa acc|eval accuracy|test accuracy|val accuracy|eval/accuracy|acc,none|acc norm,none|"
        "exact match|exact match,none|test/accuracy|val/accuracy|inference accuracy"
    ),
    Metric("eval_reward", "reward", 1): (
        "eval reward|eval/reward|eval/rewards/mean|val reward|validation reward|验证集reward|"
        "验证reward|验证集奖励|验证奖励|测试集reward|test reward|val/reward|val/test score|"
        "eval rewards/mean|validation/reward|validation score|验证集得分|验证集分数|验证得分"
    ),
    Metric("reward", "reward", 1): (
        "reward|rewards|奖励|训练奖励|训练reward|平均奖励|mean reward|train reward|average reward|"
        "critic/score/mean|critic/rewards/mean|objective/rm score|objective/scores|rewards/mean|"
        "episode reward|reward/mean|奖励均值"
    ),
    Metric("performance", "", 1, trap="the document does not say what was measured"): (
        "performance|性能|性能分数|性能得分|score|scores|得分|分数|评分"
    ),
    Metric("reward_std", "reward", 0): "reward std|critic/rewards/std|critic/score/std|奖励标准差",
    Metric(
        "loss",
        "",
        0,
        trap="it contains coefficient × KL: with another coefficient it is another quantity",
    ): (
        "loss|train loss|training loss|grpo loss|total loss|训练损失|总损失|训练loss|损失|"
        "actor/loss|actor/total loss|总loss|grpo损失"
    ),
    Metric("policy_loss", "", 0, trap="near 0 on-policy, whatever was learnt"): (
        "policy loss|ppo loss|pg loss|actor/pg loss|policy gradient loss|策略损失|surrogate loss|"
        "actor/policy loss|ppo损失|pg损失|loss/policy avg|策略梯度损失|policy/loss"
    ),
    Metric(
        "kl_loss",
        "",
        0,
        trap="coefficient × KL in some frameworks, KL before the coefficient in others",
    ): "kl loss|actor/kl loss|kl损失|kl penalty loss|kl惩罚|loss/kl",
    Metric(
        "kl", "nats", 0, trap="to the reference: two policies as far from it may differ at will"
    ): (
        "kl|kl值|kl散度|kl divergence|mean kl|kl div|objective/kl|actor/kl|平均kl|kl to reference|"
        "critic/kl|actor/reward kl penalty|kl均值|ref kl|kl/mean|reference kl"
    ),
    Metric("old_kl", "nats", 0, trap="to the policy that sampled, not to the reference"): (
        "old kl|ppo kl|actor/ppo kl|approx kl|approxkl|policy/approxkl avg"
    ),
    Metric("entropy", "nats", 0): (
        "entropy|熵|策略熵|policy entropy|actor/entropy|actor/entropy loss|entropy loss|"
        "policy/entropy avg|mean entropy|平均熵|熵值"
    ),
    Metric("grad_norm", "", 0): "grad norm|gradient norm|actor/grad norm|梯度范数|梯度norm",
    Metric("learning_rate", "", 0): "actor/lr|learning rate|lr|学习率",
    Metric("val_loss", "nats", -1): (
        "val loss|validation loss|eval loss|验证损失|验证集损失|验证集loss|验证loss|val/loss|"
        "eval/loss|test loss"
    ),
    Metric("mean_ratio", "", 0): (
        "mean ratio|policy update ratio|ratio|平均比率|重要性比率|ratio/mean|importance ratio"
    ),
    Metric(
        "mean_advantage",
        "",
        0,
        constant=0.0,
        trap="0 by construction where advantages are centred in their group",
    ): (
        "mean advantage|adv mean|advantage mean|平均优势|优势均值|critic/advantages/mean|"
        "advantages/mean"
    ),
    Metric("std_advantage", "", 0): (
        "std advantage|adv std|advantage std|优势标准差|critic/advantages/std|advantages/std"
    ),
    Metric("max_advantage", "", 0): (
        "max advantage|adv max|advantage max|最大优势|critic/advantages/max|advantages/max"
    ),
    Metric("clip_fraction", "fraction", 0): (
        "clip fraction|clipfrac|actor/pg clipfrac|clip ratio/region mean|裁剪比例|"
        "policy/clipfrac avg"
    ),
    Metric("response_length", "tokens", 0): (
        "response length|响应长度|回复长度|response length/mean|completions/mean length|"
        "completion length|输出长度|平均响应长度|mean response length"
    ),
    Metric("sequence_length", "tokens", 0): (
        "sequence length|序列长度|平均序列长度|mean sequence length|global seqlen/mean|seq len"
    ),
    Metric("step_time", "s", -1): (
        "time per step|step time|每步时间|单步时间|每步耗时|perf/time per step|timing s/step|"
        "seconds per step|sec/step|s/step"
    ),
    Metric("throughput", "tokens/s", 1): (
        "throughput|吞吐量|吞吐|perf/throughput|tokens per second|tokens/s"
    ),
    Metric("gpu_hours", "h", -1): "gpu hours|gpu hour|gpu小时|gpu时|gpu·h|gpu·小时|卡时|gpu h",
    Metric("mfu", "fraction", 1): "mfu|perf/mfu/actor|model flops utilization",
    Metric("kl_coefficient", "", 0): "actor/kl coef|kl ctrl/coef|kl coefficient|objective/kl coef",
}
_KEYS: dict[tuple[str, Kind], str] = {
    ("leash.coefficient", "treatment"): (
        "leash.coefficient|kl beta|kl loss coef|kl loss coeff|beta|init kl coef|kl coef|kl coeff|"
        "kl coefficient|kl系数|kl weight|kl权重|kl约束系数|kl penalty coef|kl惩罚系数"
    ),
    ("leash.reward_coefficient", "treatment"): "kl ctrl.kl coef|kl reward coef",
    ("leash.used", "treatment"): (
        "use kl loss|kl loss|use kl|kl约束|use kl penalty|kl正则|kl正则化|enable kl|kl损失|leash"
    ),
    ("leash.in_reward", "treatment"): "use kl in reward|kl in reward",
    ("leash.form", "treatment"): "leash.form|kl loss type|kl estimator|kl形式",
    ("leash.reward_form", "treatment"): "kl penalty",
    ("leash.controller", "treatment"): "leash.controller|kl ctrl.type|adap kl ctrl|kl控制器",
    ("leash.reference", "treatment"): "leash.reference|reference model|参考模型|ref model",
    ("entropy_bonus", "must match"): (
        "entropy bonus|entropy coeff|entropy coef|ent coef|entropy系数|熵系数|entropy coefficient|"
        "entropy正则|entropy正则化|entropy regularization|entropy weight|熵正则"
    ),
    ("lr", "must match"): "lr|grpo lr|learning rate|学习率|optim.lr|初始学习率|grpo learning rate",
    ("schedule", "must match"): (
        "schedule|lr schedule|lr scheduler|lr scheduler type|学习率调度|学习率策略|学习率调度器|"
        "warmup style|scheduler|learning rate schedule|optim.lr scheduler"
    ),
    ("warmup", "must match"): ("warmup|warmup steps|lr warmup steps|预热步数|预热"),
    ("warmup_ratio", "must match"): "warmup ratio|lr warmup steps ratio|预热比例",
    ("epochs", "must match"): (
        "epochs|epoch|grpo epochs|total epochs|num train epochs|num epochs|训练轮数|轮数|epoch数"
    ),
    ("steps", "must match"): (
        "total training steps|max steps|训练步数|总步数|training steps|num steps|train steps"
    ),
    ("start", "must match"): (
        "base checkpoint|基础checkpoint|rce checkpoint|初始checkpoint|起始checkpoint|起点|基础模型|"
        "init checkpoint|initial checkpoint|start checkpoint|sft checkpoint|load checkpoint|"
        "基础检查点|初始权重|resume from checkpoint|base ckpt|from"
    ),
    ("model", "must match"): (
        "model|模型|model name|model.path|model name or path|base model|model id|策略模型"
    ),
    ("answerer", "must match"): "answerer|推理模型|inference model|eval model|评估模型",
    ("data", "must match"): (
        "data|data file|数据文件|rl数据|rl data|train files|data.train files|训练数据|"
        "training data|train data|训练集|train dataset|数据"
    ),
    ("dataset", "must match"): "dataset|数据集|dataset name|task|任务",
    ("eval_data", "must match"): (
        "data.val files|val files|test data num|测试样本数|评估样本数|eval items|验证集|测试集|"
        "eval dataset|test set|评估集"
    ),
    ("sampler", "must match"): "sampler|采样器|采样方式",
    ("sampler.staleness", "must match"): (
        "sampler.staleness|max head offpolicyness|async level|max async level|staleness threshold"
    ),
    ("sampler.cap", "must match"): ("sampler.cap|tis imp ratio cap|vllm importance sampling cap"),
    ("reward", "must match"): (
        "reward|reward mode|奖励模式|奖励函数|reward function|reward type|reward fn|"
        "reward model.reward manager"
    ),
    ("batch", "must match"): (
        "batch|batch size|train batch size|per device train batch size|批大小|批次大小|"
        "data.train batch size"
    ),
    ("mini_batch", "must match"): "ppo mini batch size|mini batch size",
    ("accumulation", "must match"): "gradient accumulation steps|accumulation|梯度累积",
    ("group", "must match"): (
        "group|group size|rollout n|rollout.n|num generations|组大小|每组采样数|n rollouts"
    ),
    ("freeze", "must match"): "freeze|冻结backbone|freeze backbone|冻结参数|冻结|frozen",
    (
        "temperature",
        "must match",
    ): "temperature|温度|rollout.temperature|采样温度|sampling temperature",
    (
        "clip",
        "must match",
    ): "clip|clip ratio|epsilon|clip range|clip eps|裁剪范围",
    ("clip_low", "must match"): "clip low|clip ratio low|epsilon low",
    ("clip_high", "must match"): "clip high|clip ratio high|epsilon high",
    ("updates", "must match"): "ppo epochs|num iterations|updates|inner epochs",
    ("advantage", "must match"): (
        "advantage|adv estimator|algorithm.adv estimator|优势估计|advantage estimator|scale rewards"
    ),
    ("weight_decay", "must match"): "weight decay|optim.weight decay|权重衰减",
    ("clip_norm", "must match"): "max grad norm|grad clip|clip norm|梯度裁剪",
    ("length", "must match"): (
        "max response length|max completion length|max new tokens|max length|最大长度|最大响应长度"
    ),
    ("prompt_length", "must match"): "max prompt length|最大提示长度",
    ("dropout", "must match"): "dropout|丢弃率",
    ("hardware", "must match"): (
        "gpus|num gpus|n gpus|gpu数|gpu数量|n gpus per node|world size|硬件|显卡|hardware"
    ),
    ("nodes", "must match"): "nnodes|num nodes|节点数",
    ("revision", "must match"): "commit|git|git commit|revision|git revision|代码版本",
    ("seed", "seed"): "seed|随机种子|种子|random seed|train seed",
    ("data_seed", "seed"): "data seed|数据种子",
    ("output", "harmless"): (
        "output|output dir|save dir|log dir|logging dir|输出目录|保存路径|default local dir|"
        "out|结果目录"
    ),
    ("name", "harmless"): (
        "run name|experiment name|project name|实验名称|实验名|wandb project|name|备注|note|tags|"
        "hub model id|exp name"
    ),
    ("gpu", "harmless"): "gpu|gpu id|cuda visible devices|device|local rank|显卡编号",
    (
        "time",
        "harmless",
    ): "timestamp|date|日期|测试日期|训练日期|时间|created|开始时间|报告生成时间",
    ("logging", "harmless"): (
        "logging steps|logger|report to|save steps|save freq|log level|save total limit|verbose|"
        "disable tqdm|num workers|dataloader num workers|logging strategy|save strategy|test freq"
    ),
}
# How often something came out right, under the names that people give it in evaluations.
_RIGHT = r"(?:vqa )?acc(?:uracy)?|success(?: rate)?|pass ?@? ?1|em|exact match|win ?rate|solve rate"
# Known sets, whose name alone, of an evaluation, means how often it came out right.
_SET = (
    r"gsm ?8k|math ?500|math|aime ?\d*|amc ?\d*|minerva(?: ?math)?|olympiad(?: ?bench)?|"
    r"mmlu(?: ?pro)?|human ?eval\+?|mbpp\+?|lcb|live ?code ?bench|gpqa(?: ?diamond)?|"
    r"arc(?: ?[ce])?|hella ?swag|bbh|if ?eval|truthful ?qa|(?:a-?)?ok-?vqa|vqa ?v?2|text ?vqa|"
    r"gqa|viz ?wiz"
)
# How many shots and items, or how many tries a mean is over.
_OF = r"(?:[ /](?:n-?\d+|shots?-?\d+|\d+-?shots?|(?:avg|mean) ?@? ?\d+))*"
_PATTERNS = (
    (re.compile(rf"(?:val|eval|test)[ /](?:.{{1,120}}[ /])?(?:{_RIGHT}){_OF}"), "accuracy"),
    (re.compile(rf"(?:val|eval|test)[ /](?:{_SET}){_OF}"), "accuracy"),
    (re.compile(rf"(?:{_SET})[ /](?:{_RIGHT}){_OF}"), "accuracy"),
    (re.compile(r"eval rewards/accuracies"), "accuracy"),
    (re.compile(rf"(?!train)(?:.{{1,120}}\.)(?:{_RIGHT})"), "accuracy"),
    (re.compile(r"eval .{1,120} rewards/(?:accuracy|correct\w*)(?: reward)?/mean"), "accuracy"),
    (
        re.compile(r"(?:val|eval|test|validation)[ /](?:[^ /]{1,60}[ /])?rewards?[ /]mean"),
        "eval_reward",
    ),
    (re.compile(r"(?:objective/)?gold (?:rm )?(?:scores?|rewards?)"), "eval_reward"),
    (re.compile(r"(?:.{1,40}[ /])?(?:cider|bleu ?4?|rouge ?l?|meteor|spice)"), "performance"),
    (
        re.compile(r"(?:vqa acc|success rate|pass ?@ ?1|solve rate)(?: score)?"),
        "accuracy",
    ),
    (re.compile(rf"val-?core/.{{1,120}}/(?:{_RIGHT})(?:/mean@\d{{1,4}})?"), "accuracy"),
    (re.compile(r"val-?core/.{1,120}/mean@\d{1,4}"), "eval_reward"),
    (re.compile(r"val/test ?score/.{1,120}"), "eval_reward"),
)
# `mean@8` where a tool takes no "@" in names: MLflow's of verl and tensorboardX's.
_AT = re.compile(r"(?<=/)(mean|best|worst|maj|pass)(?:_at_|_)(\d{1,4})(?![^/])")
# Parts of a config that set up something other than the policy under training.
_OTHERS = re.compile(r"critic\.|reward_model\.|actor_rollout_ref\.ref\.|.*\.val_kwargs\.")
# Words beside "KL" that make it the treatment and not a measured quantity.
_NOT_METRICS = (
    "kl约束|kl版本|kl系数|kl beta|kl coef|kl loss coef|kl正则|无kl|有kl|no kl|without kl|with kl|"
    "reward mode|entropy coeff?|entropy系数|entropy正则|学习率调度|loss曲线|lr schedule|kl penalty"
)


@lru_cache(maxsize=16_384)
def spelling(name: str) -> str:
    """A name without case, width, spaces, underscores, hyphens and Markdown's stars."""
    text = unicodedata.normalize("NFKC", name[:LONGEST]).casefold()
    return re.sub(r"[\s_*`-]", "", text).strip(":")


def pointed(number: str) -> str:
    """A number of a name with the point that names leave out: 0.10 for the 010 of `kl010`."""
    return f"0.{number[1:]}" if re.fullmatch(r"0\d+", number) else number


@cache
def _metrics() -> dict[str, Metric]:
    return {
        spelling(alias): metric
        for metric, aliases in _METRICS.items()
        for alias in (*aliases.split("|"), metric.name)
    }


@cache
def _keys() -> dict[str, Key]:
    return {
        spelling(alias): Key(name, kind)
        for (name, kind), aliases in _KEYS.items()
        for alias in (*aliases.split("|"), name)
    }


def _readings(name: str) -> list[str]:
    """A name as it is, without its number in a list, without its brackets, and what is in them."""
    text = re.sub(r"^\s*\d{1,2}[.、)]\s*", "", unicodedata.normalize("NFKC", name[:LONGEST]))
    outside = re.sub(r"\([^()]*\)", "", text)
    return [name, text, outside, *re.findall(r"\(([^()]*)\)", text)[:2]]


_ASKED = {"higher is better: ": 1, "lower is better: ": -1}


def asked(name: str, direction: Literal[-1, 1]) -> str:
    """What a quantity is called that no table knows, whose better end somebody gave."""
    return next(words for words, end in _ASKED.items() if end == direction) + name


def plain(name: str) -> str:
    """The name without its better end."""
    return next((name.removeprefix(words) for words in _ASKED if name.startswith(words)), name)


def with_at(name: str) -> str:
    """A name as it was before a tool took the "@" out of it: `mean@1` for `mean_at_1`."""
    return _AT.sub(r"\1@\2", name)


@lru_cache(maxsize=16_384)
def rank(name: str) -> int:
    """Which of a quantity's names comes first where a run has several of them: the lowest."""
    known = metric(name)
    aliases = [*map(spelling, _METRICS.get(known, "").split("|"))] if known else []
    plain = re.sub(r"^train(?:ing)?/", "", spelling(name))
    return aliases.index(plain) if plain in aliases else len(aliases)


@lru_cache(maxsize=65_536)
def metric(name: str) -> Metric | None:
    """The quantity that a name stands for, or None where the name is unknown."""
    name = with_at(name)
    for words, direction in _ASKED.items():
        if name.startswith(words):
            return Metric(name, "", direction)  # type: ignore[arg-type]
    known = _metrics()
    for reading in _readings(name):
        plain = spelling(reading)
        for text in (plain, plain.removeprefix("train/"), plain.removeprefix("training/")):
            if text in known:
                return known[text]
        lowered = re.sub(r"[\s_]", " ", reading.casefold()).strip()
        for pattern, canonical in _PATTERNS:
            if pattern.fullmatch(lowered):
                return known[spelling(canonical)]
    return None


@lru_cache(maxsize=65_536)
def key(name: str) -> Key | None:
    """The setting that a config key stands for, by its longest known ending; None if unknown."""
    known = _keys()
    for reading in _readings(name)[:3]:
        parts = reading.split(".")
        for first in range(min(len(parts), 12)):
            found = known.get(spelling(".".join(parts[first:])))
            # A letter or two at the end of a dotted key may mean anything.
            if found and (first == 0 or len(parts) - first > 1 or len(parts[-1]) > 2):
                return found
            if _OTHERS.match(reading):
                break
    return None


@cache
def _mention() -> re.Pattern[str]:
    """Any known metric inside a phrase, the longest first, whole words where they are Latin."""
    aliases = {alias for names in _METRICS.values() for alias in names.split("|")}
    kept = [alias for alias in aliases if "/" not in alias and "," not in alias]
    every = sorted([*kept, *_NOT_METRICS.split("|")], key=lambda alias: (-len(alias), alias))
    each = []
    for alias in every:
        body = "[ _-]?".join(map(re.escape, alias.replace("?", "").split(" ")))
        left = r"(?<![a-z0-9_])" if alias[0].isascii() else ""
        right = r"(?![a-z0-9_=])" if alias[-1].isascii() else ""
        each.append(f"{left}{body}{right}")
    return re.compile("|".join(each))


@lru_cache(maxsize=16_384)
def mention(text: str) -> str:
    """The first known metric that a phrase names, as it is written there; '' if it names none."""
    # Lengths stay equal, so that the match can be cut from the text as it was written.
    lowered = "".join(low if len(low := c.lower()) == 1 else c for c in text[: 4 * LONGEST])
    for match in _mention().finditer(lowered):
        if metric(match.group()) is not None and not _treats(match.group()):
            return text[match.start() : match.end()]
    return ""


def key_within(text: str) -> str:
    """The longest known config key that a phrase holds, as spelt in the table; '' if none.

    Only Chinese keys and long ones: short Latin words stand inside others.
    """
    plain = spelling(text)
    fit = [alias for alias in _keys() if alias in plain and (not alias.isascii() or len(alias) > 7)]
    return max((alias for alias in fit if len(alias) > 2), key=len, default="")


@cache
def _treats(text: str) -> bool:
    return spelling(text) in {spelling(each) for each in _NOT_METRICS.replace("?", "").split("|")}


_TRUE = {"true", "yes", "on", "是", "开", "开启", "启用", "有", "1"}
_FALSE = {"false", "no", "off", "否", "关", "关闭", "禁用", "无", "0", "none", "null"}
_COEFFICIENT = re.compile(r"(?:coef\w{0,8}|beta|系数|β)\s*[=:]?\s*([\d.]{1,20}(?:e-?\d{1,3})?)")
_NUMBER = re.compile(r"[+-]?(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})(?:e[+-]?\d{1,3})?")
_SCHEDULES = (
    ("cosine", "cosine|余弦"),
    ("linear", "linear|线性"),
    ("constant", "constant|fixed|固定|恒定|不变"),
)


_MOMENT = re.compile(r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?")


def resolve(config: Mapping[str, Any]) -> Resolved:
    """A config under known names. Two spellings that give two values are a clash, and both stay."""
    found = Resolved()
    for written, value in config.items():
        if isinstance(value, str) and _MOMENT.fullmatch(value.strip()):
            continue  # when a run began is not what it began from
        known = key(written)
        if known is None:
            found.unknown.append(written)
        else:
            _settle(found, known.name, written, value)
    _tie(found)
    return found


def _settle(found: Resolved, name: str, written: str, value: Any) -> None:
    settled = _value(name, value)
    if name in found.values and not same(found.values[name], settled):
        if key(written) != Key(name, "harmless"):
            found.clashes.append(
                f"{found.written[name]} says {found.values[name]!r}, {written} says {settled!r}"
            )
        return
    found.values.setdefault(name, settled)
    found.written.setdefault(name, written)
    if name == "leash.used" and isinstance(value, str):
        coefficient = _COEFFICIENT.search(value.casefold())
        if coefficient and truth(value) is not False and _float(coefficient[1]) is not None:
            _settle(found, "leash.coefficient", written, coefficient[1])
    if name == "schedule" and isinstance(value, str) and "lr" not in found.values:
        bracket = re.search(r"\(\s*([\d.]{1,20}e-?\d{1,3})\s*\)", value.casefold())
        if bracket and _float(bracket[1]) is not None:
            found.values["lr"] = _float(bracket[1])
            found.written["lr"] = written


def _tie(found: Resolved) -> None:
    """A leash that is off has coefficient 0, whatever coefficient is written beside it."""
    if found.values.get("leash.used") is True:
        return
    if found.values.get("leash.in_reward") is True:
        if "leash.reward_coefficient" in found.values:
            found.values["leash.coefficient"] = found.values["leash.reward_coefficient"]
            found.written["leash.coefficient"] = found.written["leash.reward_coefficient"]
    elif found.values.get("leash.used") is False:
        found.values["leash.coefficient"] = 0.0
        found.written["leash.coefficient"] = found.written["leash.used"]
    elif "leash.reward_coefficient" in found.values:
        found.values.setdefault("leash.coefficient", found.values["leash.reward_coefficient"])
        found.written.setdefault("leash.coefficient", found.written["leash.reward_coefficient"])


def _value(name: str, value: Any) -> Any:
    if isinstance(value, bool | int | float) or value is None:
        return value
    return _text_value(name, value) if isinstance(value, str) else value


@lru_cache(maxsize=65_536)
def _text_value(name: str, value: str) -> Any:
    text = unicodedata.normalize("NFKC", value[:LONGEST]).strip()
    if name in ("leash.used", "leash.in_reward"):
        return text if truth(text) is None else truth(text)
    if name == "schedule":
        return schedule(text)
    number = _float(text)
    return text if number is None else number


def _float(text: str) -> float | None:
    plain = text.replace(",", "").casefold()
    return float(plain) if _NUMBER.fullmatch(plain) else None


def truth(text: str) -> bool | None:
    """What the first word of "❌ False" or "是（只训练一半）" says; None if it says neither."""
    plain = unicodedata.normalize("NFKC", text[:LONGEST]).casefold()
    words = re.findall(r"[a-z0-9.]+|[\u4e00-\u9fff]+", plain)
    if words and words[0] in _TRUE:
        return True
    if words and words[0] in _FALSE:
        return False
    marks = {"✅": True, "✓": True, "✔": True, "❌": False, "✗": False, "✘": False, "×": False}
    return None if words else next((marks[c] for c in plain if c in marks), None)


def schedule(text: str) -> str:
    """A learning-rate schedule by its usual name, with "warmup" where that is said; else as is."""
    plain = text.casefold()
    kind = next((name for name, words in _SCHEDULES if re.search(words, plain)), "")
    warm = "warmup" if re.search("warm-?up|预热", plain) else ""
    return " + ".join(filter(None, (warm, kind))) or text


def same(ours: Any, theirs: Any) -> bool:
    """Whether two values of a config are equal, numbers as numbers and text without case."""
    if isinstance(ours, str) and isinstance(theirs, str):
        return spelling(ours) == spelling(theirs)
    return bool(ours == theirs) and isinstance(ours, bool) == isinstance(theirs, bool)
