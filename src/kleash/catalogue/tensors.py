"""What `diff` says of two checkpoints: a code, its sentence in English, in Chinese."""

from __future__ import annotations

TENSORS: dict[str, tuple[str, str]] = {
    "weights_equal": (
        "the {tensors} shared tensors are the same, bit for bit ({parameters} parameters)",
        "{tensors} 个共有张量逐位相同（{parameters} 个参数）",
    ),
    "weights_differ": (
        "{count} of {tensors} shared tensors differ, in {differ} of {parameters} parameters"
        " ({share})",
        "{tensors} 个共有张量中有 {count} 个不同，涉及 {parameters} 个参数中的 {differ} 个"
        "（{share}）",
    ),
    "nothing_shared_in_weights": (
        "no tensor has the same name and shape in both: these are different networks",
        "没有名称和形状都相同的张量：这是两个不同的网络",
    ),
    **dict.fromkeys(
        ("tensors_only_first", "tensors_only_second"),
        (
            "{count} tensors only in {arm} ({parameters} parameters): {names}",
            "只在 {arm} 中的张量有 {count} 个（{parameters} 个参数）：{names}",
        ),
    ),
    "tensors_reshaped": (
        "{count} tensors have another shape: {names}",
        "{count} 个张量的形状不同：{names}",
    ),
    "tensors_retyped": (
        "{count} tensors are of another number type, compared by value: {names}",
        "{count} 个张量的数值类型不同，按数值比较：{names}",
    ),
    "blocks_equal": (
        "the same bit for bit, of {total} blocks: {count} ({names})",
        "{total} 个模块中逐位相同的有 {count} 个（{names}）",
    ),
    "blocks_differ": ("no block is the same bit for bit", "没有逐位相同的模块"),
    "tensor_moved": (
        "{name}: {share} of its values, by {largest} at most, in all by {relative} of its length",
        "{name}：{share} 的数值，最大变化 {largest}，整体相对变化 {relative}",
    ),
    "more_tensors": ("… and {count} more (--json)", "……还有 {count} 个（--json）"),
}
