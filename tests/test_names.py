import pytest

from kleash.compare.read import in_names, names
from kleash.compare.read.names import Key, key, key_within, mention, metric, resolve

SPELLINGS = {
    "loss": ["Train Loss", "GRPO Loss", "grpo_loss", "训练损失"],
    "policy_loss": ["PPO Loss", "PG Loss", "actor/pg_loss", "policy_loss"],
    "kl": ["KL值", "KL 值", "ＫＬ散度", "1. KL散度 (KL Divergence)", "objective/kl"],
    "kl_loss": ["actor/kl_loss"],
    "old_kl": ["actor/ppo_kl"],
    "eval_reward": ["验证集Reward", "val-core/gym/reward/mean@1", "eval_reward",
                    "val/intention/reward/mean", "objective/gold_score"],
    "accuracy": ["val-core/okvqa/acc/mean@4", "val/vqa_acc/n300/shot1", "eval/acc_shot1_n100",
                 "eval_math500_avg12", "humaneval_pass1", "results.gsm8k.accuracy",
                 "eval_rewards/accuracies", "正确率", "acc,none"],
    "reward": ["train/reward"],
    "std_advantage": ["Adv Std"],
    "max_advantage": ["critic/advantages/max"],
    "step_time": ["perf/time_per_step", "每步时间"],
    "throughput": ["perf/throughput"],
    "mfu": ["MFU"],
    "sequence_length": ["平均序列长度"],
    "mean_ratio": ["Mean Ratio (Policy Update Ratio)"],
}  # fmt: skip
KEYS = {
    "entropy_bonus": ["Entropy Coeff", "entropy_coeff"],
    "schedule": ["学习率调度", "lr_scheduler_type"],
    "lr": ["GRPO LR", "actor.optim.lr"],
    "epochs": ["GRPO epochs", "num_train_epochs"],
    "steps": ["训练步数"],
    "start": ["基础 checkpoint", "RCE checkpoint"],
    "data": ["RL 数据", "数据文件"],
    "group": ["Rollout N", "rollout.n", "num_generations"],
    "freeze": ["冻结 backbone"],
    "reward": ["reward_mode"],
}
COEFFICIENT = ["kl_beta", "KL_BETA", "KL beta", "beta", "init_kl_coef", "kl_loss_coef",
               "actor_rollout_ref.actor.kl_loss_coef", "KL系数", "leash.coefficient"]  # fmt: skip
UNKNOWN = ["", "zorp", "math", "eval_math_loss", "val_n", "loss_of_life", "klangfarbe", "rewarding",
           "熊猫"]  # fmt: skip


def pairs(table):
    return [(name, known) for known, every in table.items() for name in every]


@pytest.mark.parametrize(("name", "known"), pairs(SPELLINGS))
def test_spellings_of_a_metric_are_one_metric(name, known):
    found = metric(name)
    assert found is not None
    assert found.name == known


@pytest.mark.parametrize("name", UNKNOWN)
def test_an_unknown_metric_is_unknown_and_not_guessed(name):
    assert metric(name) is None


def test_a_metric_has_a_unit_a_direction_and_what_is_fixed_by_construction():
    assert (metric("每步时间").unit, metric("每步时间").direction) == ("s", -1)
    assert (metric("吞吐量").unit, metric("吞吐量").direction) == ("tokens/s", 1)
    assert metric("accuracy").unit == "fraction"
    assert metric("Mean Advantage").constant == 0.0
    assert metric("critic/advantages/mean").constant == 0.0
    assert [metric(name).direction for name in ("kl", "entropy", "pg_loss", "loss")] == [0] * 4
    assert metric("val_loss").direction == -1


def test_no_spelling_belongs_to_two_metrics_or_two_keys():
    for table in (names.METRICS, names.KEYS):
        spelt = [
            (names.spelling(alias), str(what))
            for what, aliases in table.items()
            for alias in aliases
        ]
        assert len({alias for alias, _ in spelt}) == len(set(spelt))


@pytest.mark.parametrize("name", COEFFICIENT)
def test_spellings_of_the_coefficient_are_one_key(name):
    assert key(name) == Key("leash.coefficient", "treatment")


@pytest.mark.parametrize(("name", "known"), pairs(KEYS))
def test_what_must_match_is_known_by_its_spellings(name, known):
    assert key(name) == Key(known, "must match")


def test_keys_have_a_class():
    assert key("随机种子").kind == "seed"
    assert key("output_dir").kind == key("测试日期").kind == "harmless"
    assert key("use_kl_loss").kind == "treatment"
    assert key("foo.bar") is None
    assert key("foo.n") is None
    assert key("critic.optim.lr") is None
    assert key("wandb.name") == Key("name", "harmless")


def test_a_leash_that_is_off_has_coefficient_0():
    assert resolve({"use_kl_loss": False, "kl_loss_coef": 0.001}).values["leash.coefficient"] == 0
    assert resolve({"KL Loss": "❌ False"}).values["leash.coefficient"] == 0
    assert resolve({"KL Loss": "✅ True (coef=0.01)"}).values["leash.coefficient"] == 0.01
    assert resolve({"kl_beta": "0.12"}).values["leash.coefficient"] == 0.12


def test_a_leash_in_the_reward_takes_its_own_coefficient():
    config = {"use_kl_loss": False, "use_kl_in_reward": True, "kl_ctrl.kl_coef": 0.05}
    assert resolve(config | {"kl_loss_coef": 0.001}).values["leash.coefficient"] == 0.05
    assert resolve({"algorithm.kl_ctrl.kl_coef": 0.05}).values["leash.coefficient"] == 0.05


def test_a_schedule_is_known_by_its_words_and_may_name_its_rate():
    found = resolve({"学习率调度": "❌ 固定 (1e-6)"})
    assert (found.values["schedule"], found.values["lr"]) == ("constant", 1e-6)
    assert resolve({"lr_schedule": "Warmup + Cosine Decay"}).values["schedule"] == "warmup + cosine"
    assert resolve({"lr_schedule": "one of ours"}).values["schedule"] == "one of ours"


def test_of_two_spellings_the_first_counts_and_unknown_keys_are_reported():
    found = resolve({"kl_beta": 0.12, "KL系数": 0.15, "zorp": 1, "output_dir": "a", "out": "b"})
    assert found.values["leash.coefficient"] == 0.12
    assert found.unknown == ["zorp"]


@pytest.mark.parametrize(
    ("phrase", "found"),
    [
        ("验证集Reward对比", "验证集Reward"),
        ("正确率对比报告（KL_BETA=0.18）", "正确率"),
        ("KL_BETA 对比分析", ""),
        ("KL约束对训练效果的影响", ""),
        ("Validation Loss by epoch", "Validation Loss"),
        ("the blossom", ""),
        ("", ""),
    ],
)
def test_a_phrase_names_a_metric_only_in_whole_words(phrase, found):
    assert mention(phrase) == found


def test_a_phrase_may_hold_a_key():
    assert key(key_within("2. 学习率调度的影响")).name == "schedule"
    assert key_within("总结") == ""


@pytest.mark.parametrize(
    ("arm", "said"),
    [
        ("无KL约束", False),
        ("no KL", False),
        ("without-kl", False),
        ("有KL约束", True),
        ("新实验（KL版本）", True),
        ("with KL", True),
        ("之前Group8 8B", None),
        ("no klaxon", None),
    ],
)
def test_the_name_of_an_arm_may_say_whether_it_has_a_leash(arm, said):
    assert in_names.leash(arm) is said


def test_truth_is_read_from_words_and_ticks():
    texts = ("是（只训练一半）", "❌ False", "✅", "❌", "maybe")
    assert [*map(names.truth, texts)] == [True, False, True, False, None]


def test_a_moment_is_no_setting():
    told = names.resolve({"start": "2025-12-01 10:02", "tag": "2025-12-01T10:02:33Z", "lr": 1e-6})
    assert told.values == {"lr": 1e-6}
    assert told.unknown == []
    assert names.resolve({"start": "ckpt/2025-12-01"}).values == {"start": "ckpt/2025-12-01"}


@pytest.mark.parametrize(
    ("arms", "told"),
    [
        (["lr1e-6_kl0.05", "lr5e-6_kl0.05"], [{"lr": 1e-6}, {"lr": 5e-6}]),
        (["k1-G8", "k3-G16"], [{"group": 8, "k1/k3": "k1"}, {"group": 16, "k1/k3": "k3"}]),
        (["qwen_7b_a", "qwen_135m_a"], [{"model size": "7b"}, {"model size": "135m"}]),
        (["7b-nokl", "1.5b-nokl"], [{"model size": "7b"}, {"model size": "1.5b"}]),
        (["gsm8k-a", "mbpp-a"], [{"gsm8k/mbpp": "gsm8k"}, {"gsm8k/mbpp": "mbpp"}]),
        (["kl0.1", "kl0.1_ent"], [{"ent": False}, {"ent": True}]),
        (["run_kl_on", "run"], [{"kl_on": True}, {"kl_on": False}]),
        (["grpo_kl0.1-train_samples=500", "grpo_kl0.1-train_samples=100"],
         [{"train_samples": 500}, {"train_samples": 100}]),
        (["qwen2.5-x-b0.1", "qwen2.5-x-b0.2"], [{}, {}]),  # the coefficient is told elsewhere
        (["low-kl0.01", "high-kl0.1"], [{}, {}]),  # words that say it again
        (["base", "lr2e-6", "g16"], [{}, {"lr": 2e-6}, {"group": 16}]),  # one change at a time
        (["rce", "grpo_hard", "grpo_soft"],
         [{"rce/grpo hard/grpo soft": each} for each in ("rce", "grpo hard", "grpo soft")]),
        (["k1-loss", "k3-loss", "k1-rew", "k3-rew"],
         [{"k1/k3": k, "loss/rew": form} for form in ("loss", "rew") for k in ("k1", "k3")]),
    ],
)  # fmt: skip
def test_what_names_of_arms_tell(arms, told):
    assert in_names.settings(arms) == told
