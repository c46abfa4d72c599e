"""What the doctor says about what fits a card."""

from __future__ import annotations

MEMORY: dict[str, tuple[str, str]] = {
    "memory.fits": (
        "What fits one GPU, by its memory (computed, not measured)",
        "单张 GPU 能训练什么，按显存计（计算所得，并非实测）",
    ),
    "memory.model": (
        "{model}: what each way of training takes, nothing recomputed; then what fits (computed)",
        "{model}：各种训练方式所需的显存（不重算时）；以及放得下与否（计算所得）",
    ),
    "memory.note": (
        "GRPO in bf16, packs of {tokens} tokens, {conversations} conversations of {context} tokens"
        " at a time. A cell names the most demanding way that fits, its GiB, and how many layers"
        " are worked out again on the way back. 1 GiB and 5 % of a card are left to CUDA."
        " kleash doctor --fits 8B (or a model's folder) shows every way by its parts; how far such"
        " plans were off where memory was measured: docs/scale.md.",
        "bf16 的 GRPO，每包 {tokens} 个 token，"
        "同时进行 {conversations} 段各 {context} 个 token 的对话。"
        "格中是放得下的、要求最高的训练方式，其 GiB 数，以及反向时需重算的层数。"
        "每张卡为 CUDA 留出 1 GiB 和 5 %。"
        "kleash doctor --fits 8B（或模型文件夹）按组成部分列出各种方式；"
        "在实测过显存之处，这类计算偏差多少，见 docs/scale.md。",
    ),
    "memory.again": ("{again} of {layers} again", "重算 {again}/{layers} 层"),
    "memory.no": ("no: {gib} GiB at least", "放不下：至少 {gib} GiB"),
}
COLUMNS: dict[str, tuple[str, str]] = {
    "model": ("Qwen3", "Qwen3"),
    "part": ("GiB", "GiB"),
    "full": ("full", "全参数"),
    "full, moments on host": ("full, moments on host", "全参数，动量放内存"),
    "LoRA": ("LoRA", "LoRA"),
    "LoRA on nf4": ("LoRA on nf4", "nf4 底座上的 LoRA"),
    "LoRA, weights on host": ("LoRA, weights on host", "LoRA，底座放内存"),
    "weights": ("weights", "权重"),
    "adapter": ("adapter", "适配器"),
    "gradients": ("gradients", "梯度"),
    "moments": ("moments", "动量"),
    "reference": ("reference", "参考策略"),
    "activations": ("activations", "激活值"),
    "head": ("head", "输出层"),
    "keys and values": ("keys and values", "键值缓存"),
    "unpacked": ("unpacked", "解包"),
    "host": ("on the host", "内存"),
    "nothing": ("nothing", "都放不下"),
}
