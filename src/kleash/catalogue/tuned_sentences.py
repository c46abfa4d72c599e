"""What a report says of a proxy, of matched settings and of tuning: code, English, Chinese."""

from __future__ import annotations

TUNED: dict[str, tuple[str, str]] = {
    "report.proxy_of": (
        "Answers of the last test with {shots} demonstrations, over {seeds} seeds (95 % intervals):"
        " what the reward of training pays for them, what they are worth, and how much is left of"
        " what the base of the seed answered with any agreement",
        "最后一次测试的应答（{shots} 个范例，{seeds} 个随机种子，95% 区间）：训练奖励给多少、"
        "真实得分多少，以及起始策略答对的题还剩多少",
    ),
    "report.proxy_seen": (
        "{paid} is paid most by the proxy; {right} is right most often; lines are 95 % intervals"
        " over seeds",
        "{paid} 的代理奖励最高；{right} 的真实准确率最高；线段为种子间 95% 区间",
    ),
    "report.matched_of": (
        "Gaps paired by seed, with 95 % intervals (not adjusted for their number): on the test at"
        " equal KL, on validation after equally many updates",
        "按种子配对的差距及 95% 区间（未按个数校正）：KL 相同时看测试集，更新次数相同时看验证集",
    ),
    "report.matched_kl": (
        "At equal KL, {ours} is told apart from {theirs} at {apart} of {of} distances; whiskers"
        " are 95 % intervals over seeds",
        "KL 相同时，{ours}与{theirs}在 {of} 个距离中有 {apart} 个可以区分；横线为种子间 95% 区间",
    ),
    "report.matched_up": (
        "After equally many updates {apart} of {of} gaps are told apart from 0; whiskers are 95 %"
        " intervals over seeds",
        "更新次数相同时，{of} 个差距中有 {apart} 个可与 0 区分；横线为种子间 95% 区间",
    ),
    "report.matched_axis": ("gap on accuracy, percentage points", "准确率差距（百分点）"),
    "report.at_kl": ("KL {kl} nats", "KL {kl} 纳特"),
    "report.at_updates": ("{count} updates", "{count} 次更新"),
    "report.own_setting": ("the study's own setting", "研究的默认设置"),
    "report.searched": (
        "{trials} settings were tried on tuning seeds, {pruned} of them ended early; the best"
        " gained {tuned} over {baseline} there. The best of many was also the luckiest: what it is"
        " worth stands on seeds and items that chose nothing.",
        "在调参种子上试了 {trials} 个设置，其中 {pruned} 个提前结束；最好的一个比 {baseline} 高"
        " {tuned}。多中选优也选中了运气：它值多少，要看没有参与挑选的种子与题目。",
    ),
    "report.searched_none": (
        "{trials} settings were tried on tuning seeds, {pruned} of them ended early; none beat"
        " {baseline} there (the best: {tuned}).",
        "在调参种子上试了 {trials} 个设置，其中 {pruned} 个提前结束；没有一个超过 {baseline}"
        "（最好的：{tuned}）。",
    ),
    "report.gain_tuned": ("where it was tuned", "调参时"),
    "report.gain_again": ("fresh seeds", "新的随机种子"),
    "report.gain_confirmed": ("fresh seeds, test", "新种子，测试集"),
    "report.gain_optimism": ("the winner's optimism", "挑选带来的高估"),
    "report.gains_seen": (
        "The gain over {baseline} where it was tuned, and what is left of it on fresh seeds and the"
        " test; whiskers are 95 % intervals over seeds",
        "调参时相对 {baseline} 的增益，以及在新的随机种子与测试集上还剩多少；横线为种子间 95% 区间",
    ),
    "report.gains_open": (
        "The gain over {baseline} where it was tuned; not confirmed yet: that takes two of the"
        " study's seeds",
        "调参时相对 {baseline} 的增益；尚未确认：需要研究中的两个随机种子",
    ),
    "report.gains_axis": (
        "gain over {baseline} on accuracy, percentage points",
        "相对 {baseline} 的准确率增益（百分点）",
    ),
    "report.gains_of": (
        "Gains over the baseline, paired by the study's seeds; optimism is the first less the last",
        "相对基线的增益（按研究的种子配对）；高估为第一项减最后一项",
    ),
    "report.trials_of": (
        "Every trial: mean over tuning seeds of the chosen checkpoint on validation",
        "全部试验：选中的检查点在验证集上的得分，按调参种子平均",
    ),
    "report.trial_whole": ("whole", "完整"),
    "report.trial_pruned": ("ended early", "提前结束"),
    "report.calibrated_of": (
        "Coefficients that a short calibration placed, with the KL expected of each and the KL that"
        " its arm reached",
        "由短程校准确定的系数，各自预计的 KL 与实际达到的 KL",
    ),
}
