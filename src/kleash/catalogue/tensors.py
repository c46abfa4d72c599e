"""What `compare` says of two checkpoints: a code, its sentence in English, in Chinese."""

from __future__ import annotations

TENSORS: dict[str, tuple[str, str]] = {
    "checkpoints_title": ("checkpoints {ours} and {theirs}", "检查点 {ours} 与 {theirs}"),
    "weights_equal": (
        "the weights are the same, bit for bit: {tensors} tensors, {parameters} parameters",
        "权重逐位相同：{tensors} 个张量，{parameters} 个参数",
    ),
    "weights_differ": (
        "{count} of {tensors} shared tensors differ, in {differ} of {parameters} parameters"
        " ({share})",
        "{tensors} 个共有张量中有 {count} 个不同，涉及 {parameters} 个参数中的 {differ} 个"
        "（{share}）",
    ),
    "shared_equal": (
        "the {tensors} shared tensors are the same, bit for bit ({parameters} parameters)",
        "{tensors} 个共有张量逐位相同（{parameters} 个参数）",
    ),
    "nothing_shared_in_weights": (
        "no tensor has the same name and shape in both: these are different networks",
        "没有名称和形状都相同的张量：这是两个不同的网络",
    ),
    "tensors_only": (
        "{count} tensors only in {arm} ({parameters} parameters): {names}",
        "只在 {arm} 中的张量有 {count} 个（{parameters} 个参数）：{names}",
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
    "choices_equal": (
        "greedy choices are the same on all {n} validation queries; on others at most {share}"
        " differ (95 % Clopper–Pearson bound)",
        "验证集 {n} 道题目上的贪心选择全部相同；在其他题目上至多 {share} 不同"
        "（95% Clopper–Pearson 上界）",
    ),
    "choices_differ": (
        "greedy choices differ on {count} of {n} validation queries ({share}); equal by position:"
        " {shares}",
        "验证集 {n} 道题目中有 {count} 道的贪心选择不同（{share}）；按位置相同的比例：{shares}",
    ),
    "choices_need_runs": (
        "choices are not compared: that needs checkpoints of two runs (RUN/checkpoints/NAME)",
        "未比较选择：需要两次运行的检查点（RUN/checkpoints/NAME）",
    ),
    "choices_other_data": (
        "choices are not compared: the runs differ in {keys}",
        "未比较选择：两次运行的 {keys} 不同",
    ),
    "choices_failed": ("choices are not compared: {error}", "未比较选择：{error}"),
    "column_tensor": ("tensor", "张量"),
    "column_differ": ("differ", "不同"),
    "column_largest": ("largest change", "最大变化"),
    "column_relative": ("relative change", "相对变化"),
    "more_tensors": ("… and {count} more (--json)", "……还有 {count} 个（--json）"),
}
