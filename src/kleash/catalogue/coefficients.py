"""What a KL coefficient of another project is here: one table for `kleash coef` and the page.

Texts are Markdown; what other projects do by default changes, so each row names the settings it is
about. How the factors come about is in docs/method.md, which has the same table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

Texts = tuple[str, str]
"""In English and in Chinese."""

NOTHING = "–"
FACTORS: dict[str, Callable[[float, int], float]] = {
    "": lambda sd, group: 1.0,
    "·σ": lambda sd, group: sd,
    "·G/(G-1)": lambda sd, group: group / (group - 1),
    "·σ·(G/(G-1))": lambda sd, group: sd * group / (group - 1),
}
"""What a coefficient is multiplied by: σ is the SD of rewards within a group, G its size."""


@dataclass(frozen=True)
class Elsewhere:
    """A coefficient of a project under some of its settings, and what it is here."""

    project: str
    key: str
    """The setting that holds the number, by its last part."""
    when: tuple[str, ...]
    """The settings that the row is about, as key=value, in small letters."""
    settings: Texts
    here: Texts
    factor: str | None = None
    """By what the number is multiplied; None where there is nothing like it here."""
    note: Texts = ("", "")

    def amount(self, number: str) -> str:
        """The coefficient here as a formula."""
        return NOTHING if self.factor is None else f"{number}{self.factor}"


def both(text: str) -> Texts:
    """What is the same in both languages."""
    return (text, text)


NO_LEASH = ("refused: no leash", "拒绝：不成约束")
WHOLE = "·σ·(G/(G-1))"
CENTRED = "·G/(G-1)"
TABLE = (
    Elsewhere(
        "TRL",
        "beta",
        ("use_bias_correction_kl=true", "scale_rewards=group", "loss_type=dapo"),
        (
            '`beta`, `use_bias_correction_kl=True`, `scale_rewards="group"`, `loss_type="dapo"`'
            " (defaults of 1.16)",
            '`beta`，`use_bias_correction_kl=True`，`scale_rewards="group"`，`loss_type="dapo"`'
            "（1.16 的默认值）",
        ),
        both("`k3_ratio`, `standardise`, `by_choice`"),
        WHOLE,
    ),
    Elsewhere(
        "TRL",
        "beta",
        ("use_bias_correction_kl=false", "scale_rewards=group"),
        both("`use_bias_correction_kl=False`"),
        both("`k3`, `standardise`"),
        WHOLE,
    ),
    Elsewhere(
        "TRL",
        "beta",
        ("scale_rewards=none", "scale_rewards=false"),
        both('`scale_rewards="none"`'),
        both("`centre`"),
        CENTRED,
    ),
    Elsewhere(
        "TRL",
        "beta",
        ("loss_type=grpo", "loss_type=dr_grpo", "scale_rewards=group"),
        both('`loss_type="grpo"` / `"dr_grpo"`'),
        both("`by_episode` / `by_choice`"),
        WHOLE,
    ),
    Elsewhere(
        "verl",
        "kl_loss_coef",
        (
            *("use_kl_loss=true", "kl_loss_type=low_var_kl", "kl_loss_type=k3"),
            *("kl_loss_type=mse", "norm_adv_by_std_in_grpo=true"),
        ),
        both("`use_kl_loss`, `kl_loss_coef`, `kl_loss_type=low_var_kl` / `mse`"),
        both("`k3` / `k2`, `standardise`"),
        WHOLE,
    ),
    Elsewhere(
        "verl",
        "kl_loss_coef",
        ("norm_adv_by_std_in_grpo=false",),
        both("`norm_adv_by_std_in_grpo=False`"),
        both("`centre`"),
        CENTRED,
    ),
    Elsewhere(
        "verl",
        "kl_loss_coef",
        ("kl_loss_type=kl", "kl_loss_type=k1"),
        both("`kl_loss_type=kl`"),
        NO_LEASH,
    ),
    Elsewhere(
        "verl",
        "kl_coef",
        ("use_kl_in_reward=true", "kl_penalty=kl"),
        both("`use_kl_in_reward`, `kl_ctrl.kl_coef`, `kl_penalty=kl`"),
        both("`reward_k1`"),
        "",
    ),
    Elsewhere(
        "verl",
        "kl_coef",
        ("kl_penalty=low_var_kl",),
        both("`kl_penalty=low_var_kl`"),
        NO_LEASH,
    ),
    Elsewhere(
        "NeMo-RL",
        "reference_policy_kl_penalty",
        ("reference_policy_kl_type=k3",),
        (
            "`reference_policy_kl_penalty`, `reference_policy_kl_type=k3`, rewards normalised",
            "`reference_policy_kl_penalty`，`reference_policy_kl_type=k3`，奖励已归一化",
        ),
        (
            "`k3_ratio` (versions that differentiate the ratio) or `k3` (those that detach it);"
            " both with `leash.clamp=10`",
            "`k3_ratio`（对比率求导的版本）或 `k3`（不求导的版本），都设 `leash.clamp=10`",
        ),
        "·σ",
        ("with the leave-one-out baseline (default)", "使用留一基线（默认）"),
    ),
    Elsewhere(
        "OpenRLHF",
        "init_kl_coef",
        ("use_kl_loss=false",),
        (
            "`init_kl_coef` with the `k1` estimator in the reward, discount 1",
            "`init_kl_coef`，`k1` 估计量计入奖励，折扣为 1",
        ),
        both("`return_to_go`"),
        "",
        ("before any whitening of advantages", "在优势白化之前"),
    ),
    Elsewhere(
        "OpenRLHF",
        "init_kl_coef",
        ("use_kl_loss=true",),
        both("`use_kl_loss` with `k2` / `k3`"),
        both("`k2` / `k3`"),
        "",
        ("times σ where rewards are standardised", "若奖励做了标准化，再乘以 σ"),
    ),
)
PROJECTS = tuple(dict.fromkeys(row.project for row in TABLE))


def rows_for(project: str, given: Mapping[str, str]) -> tuple[str, Sequence[Elsewhere]]:
    """The key that holds the number, and the rows about it that the other settings leave.

    A row that is about a setting as it was given comes before those that do not mention it.
    """
    ours = [row for row in TABLE if row.project.lower() == project.lower()]
    last = {key.rsplit(".", 1)[-1]: value.strip("\"'").lower() for key, value in given.items()}
    key = next((row.key for row in ours if row.key in last), "")
    about = [row for row in ours if row.key == key]
    wanted = {f"{name}={value}" for name, value in last.items() if name != key}

    def other(row: Elsewhere) -> bool:
        """Whether a row is about another value of a setting that was given."""
        named = {each.split("=")[0] for each in row.when}
        asked = {each for each in wanted if each.split("=")[0] in named}
        return any(each not in row.when for each in asked)

    left = [row for row in about if not other(row)]
    exact = [row for row in left if wanted & set(row.when)]
    refused = [row for row in exact if row.factor is None]
    return key, refused or exact or left
