"""Folders of logs as people leave them: what is an arm, a training, a measurement."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kleash.compare.arms import gather
from kleash.compare.attribution import effect_of
from kleash.compare.comparison import Wish, compare
from kleash.compare.read import in_names, read
from kleash.compare.read.beside import evaluations
from kleash.errors import ConfigError
from kleash.report import markdown_of, of_sources, short_page
from kleash.report.words import attribution_screen, metric_name


def put(folder: Path, **files: object) -> Path:
    """Files by path: "/" is written "__", rows are dictionaries of one CSV, else JSON."""
    for name, held in files.items():
        path = folder / name.replace("__", "/").replace("_csv", ".csv").replace("_json", ".json")
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".csv":
            rows = list(held)  # type: ignore[call-overload]
            lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
            path.write_text("\n".join(lines) + "\n")
        else:
            path.write_text(json.dumps(held))
    return folder


def arms_in(folder: Path) -> dict[str, object]:
    return {arm.name: arm for arm in gather([read(folder)])}


def levels(folder: Path, **wish: object) -> dict[str, object]:
    found = compare([read(folder)], Wish(**wish))  # type: ignore[arg-type]
    return {e.arms[0]: e for e in found.verdicts if e.question == "level"}


def reason(judged, code: str) -> dict[str, object]:
    (found,) = (each.facts for each in judged.because if each.code == code)
    return dict(found)


def curve(**columns: list[float]) -> list[dict[str, float]]:
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


@pytest.mark.parametrize(
    ("name", "coefficient"),
    [
        ("kl010", 0.1), ("grpo_kl0.10_from_rce5", 0.1), ("beta_0.1", 0.1), ("b003", 0.03),
        ("kl0p005", 0.005), ("kl1e-3", 0.001), ("nokl", 0.0), ("gsm8k_kl_off", 0.0), ("beta0", 0.0),
        ("qwen2.5-1.5b-grpo-b0.0", 0.0), ("dpo-kl15", None), ("b16", None), ("adaptive-kl", None),
        ("KL=0.01", 0.01), ("无KL约束", 0.0), ("lr1e-5", None),
    ],
)  # fmt: skip
def test_the_coefficient_in_a_name(name, coefficient):
    assert in_names.coefficient(name)[0] == coefficient


def test_training_and_evaluation_of_one_coefficient_are_one_arm(tmp_path):
    for at, accuracy in (("005", 57.1), ("010", 58.3)):
        put(
            tmp_path,
            **{f"eval_kl{at}_csv": [{"epoch": 1, "num_samples": 200, "shot": 1, "acc": accuracy}]},
            **{f"training_metrics_kl{at}_csv": curve(epoch=[1, 2], kl=[0.1, 0.2], loss=[1, 2])},
        )
    found = arms_in(tmp_path)
    assert [arm.coefficient for arm in found.values()] == [0.05, 0.1]
    assert all(len(arm.replicates) == 1 for arm in found.values())
    (one,) = levels(tmp_path).values()
    assert one.metric == "accuracy"
    assert one.estimate == pytest.approx(0.012)  # of percentages without a sign


def test_two_experiments_that_measure_the_same_are_two_arms(tmp_path):
    put(tmp_path, grpo_kl005_csv=curve(step=[1, 2], reward=[1, 2]))
    put(tmp_path, kl005_csv=curve(step=[1, 2], reward=[2, 3]))
    assert len(arms_in(tmp_path)) == 2


def test_configs_that_contradict_each_other_are_of_two_arms(tmp_path):
    put(tmp_path, eval_kl010_json={"beta": 0.1, "lr": "1e-6", "accuracy": 0.5})
    put(tmp_path, kl010_json={"beta": 0.1, "lr": "2e-6", "loss": 0.5})
    assert len(arms_in(tmp_path)) == 2


def test_a_column_of_seeds_tells_trainings_of_the_files_arm(tmp_path):
    for beta in ("0", "0.1"):
        rows = [{"step": s, "seed": d, "reward": s * d} for d in (3, 17) for s in (1, 2)]
        put(tmp_path, **{f"grpo_beta{beta}_csv": rows})
    found = arms_in(tmp_path)
    assert sorted(found) == ["grpo_beta0", "grpo_beta0.1"]
    assert [[each.seed for each in arm.replicates] for arm in found.values()] == [[3, 17], [3, 17]]


def test_folders_that_are_called_by_their_seed_are_of_the_folder_above(tmp_path):
    for beta in ("0", "0.1"):
        for seed in (1, 2):
            name = f"beta_{beta}__seed_{seed}__metrics_csv"
            put(tmp_path, **{name: curve(step=[1, 2], reward=[1, 2])})
    found = arms_in(tmp_path)
    assert sorted(found) == ["beta_0", "beta_0.1"]
    assert all(len(arm.replicates) == 2 for arm in found.values())


def test_files_of_one_name_in_several_folders_are_of_as_many_runs(tmp_path):
    for beta in ("kl010", "kl015"):
        put(tmp_path, **{f"{beta}_from_rce__eval_okvqa_csv": curve(epoch=[1, 2], acc=[0.5, 0.6])})
    assert list(arms_in(tmp_path)) == ["kl010_from_rce", "kl015_from_rce"]


def test_folders_of_training_and_of_evaluation_name_no_runs(tmp_path):
    for beta in ("kl010", "kl015"):
        put(tmp_path, **{f"eval__{beta}_csv": curve(epoch=[1, 2], acc=[0.5, 0.6])})
        put(tmp_path, **{f"train__{beta}_csv": curve(epoch=[1, 2], kl=[0.5, 0.6])})
    assert list(arms_in(tmp_path)) == ["kl010", "kl015"]


def test_a_file_for_each_checkpoint_and_size_is_of_one_training(tmp_path):
    for beta in ("010", "014"):
        for epoch in (1, 2):
            for size in (100, 200):
                told = {"kl_beta": float(f"0.{beta[1:]}"), "n": size, "accuracy": {"shot1": 61.5}}
                put(tmp_path, **{f"kl{beta}__eval_epoch{epoch}_n{size}_json": told})
    for arm in arms_in(tmp_path).values():
        (training,) = arm.replicates
        places = {place[:3] for metric, place in training.cells if metric == "accuracy"}
        assert places == {(e, None, n) for e in (1.0, 2.0) for n in (100, 200)}


def test_two_logs_of_one_thing_are_two_trainings(tmp_path):
    rows = [{"run": "a", "step": 1, "reward": 1}, {"run": "a", "step": 2, "reward": 2}]
    put(tmp_path, one_csv=rows, two_csv=[row | {"reward": 5} for row in rows])
    (arm,) = arms_in(tmp_path).values()
    assert len(arm.replicates) == 2


def test_the_checkpoint_in_a_name_is_the_epoch_of_its_cells(tmp_path):
    for name in ("kl005_e1", "kl005_e2", "kl010_e1", "kl010_e2"):
        rows = [{"ckpt": name, "num_samples": 100, "shot": s, "acc": 60 + s} for s in (1, 2)]
        put(tmp_path, **{f"{name}_csv": rows})
    found = arms_in(tmp_path)
    assert list(found) == ["kl005", "kl010"]
    epochs = {place[0] for _, place in found["kl005"].replicates[0].cells}
    assert epochs == {1.0, 2.0}


def test_several_coefficients_in_a_file_are_several_runs(tmp_path):
    rows = [{"beta": b, "step": s, "reward": s + b} for b in (0.0, 0.1) for s in (1, 2)]
    put(tmp_path, runs_csv=rows)
    found = arms_in(tmp_path)
    assert [(arm.name, arm.coefficient) for arm in found.values()] == [
        ("runs-kl0", 0.0),
        ("runs-kl0.1", 0.1),
    ]


def test_a_coefficient_that_is_steered_is_a_curve(tmp_path):
    put(tmp_path, adaptive_csv=curve(step=[1, 2, 3], kl_coef=[0.1, 0.2, 0.3], reward=[1, 2, 3]))
    (run,) = read(tmp_path).runs
    assert {one.metric for one in run.series} == {"kl_coef", "reward"}
    assert not run.config


def test_a_log_without_steps_whose_coefficient_is_steered_is_one_run(tmp_path):
    put(tmp_path, log_csv=curve(kl_coef=[0.1, 0.1134, 0.0937], reward=[1, 2, 3]))
    (run,) = read(tmp_path).runs
    assert run.series[0].steps.tolist() == [0, 1, 2]


def test_a_row_for_each_run_of_a_grid(tmp_path):
    rows = [
        {"beta": b, "lr": lr, "accuracy": 0.5 + b + 1e4 * lr}
        for b in (0.0, 0.1)
        for lr in (1e-6, 2e-6)
    ]
    put(tmp_path, sweep_csv=rows)
    found = arms_in(tmp_path)
    assert len(found) == 4
    assert [arm.coefficient for arm in found.values()] == [0.0, 0.0, 0.1, 0.1]


def test_a_count_that_tells_rows_of_one_place_apart_is_a_setting(tmp_path):
    rows = [
        {"epoch": 1, "shots": 1, "train_samples": n, "n_eval": 50, "accuracy": n / 1e4}
        for n in (1000, 4000)
    ]
    put(tmp_path, sft_csv=rows)
    assert list(arms_in(tmp_path)) == ["sft-train_samples=1000", "sft-train_samples=4000"]


def test_the_mean_over_validation_sets_or_the_whole_where_it_is_told(tmp_path):
    steps = {"step": [10, 20]}
    for name, shift in (("kl0", 0.0), ("kl0.1", 0.1)):
        sets = {"val-core/aime/acc/mean@1": [0.2 + shift, 0.3], "eval_math500_acc": [0.4, 0.5]}
        put(tmp_path / "mean", **{f"{name}_csv": curve(**steps, **sets)})
        whole = {"val-core/all/acc/mean@1": [0.9 - shift, 0.8]}
        put(tmp_path / "whole", **{f"{name}_csv": curve(**steps, **sets, **whole)})
    (one,) = levels(tmp_path / "mean").values()
    assert reason(one, "mean_over_sets") == {"sets": "aime, math500"}
    assert (one.verdict, one.estimate) == ("undecided", pytest.approx(0.025))
    (one,) = levels(tmp_path / "whole").values()
    assert one.estimate == pytest.approx(-0.05)


def test_shots_and_items_in_the_names_of_metrics(tmp_path):
    for name, accuracy in (("kl010", 0.5), ("kl012", 0.6)):
        metrics = {f"eval/n200/shot{shot}/acc": [0.1, accuracy] for shot in (1, 2)}
        put(tmp_path, **{f"{name}_csv": curve(epoch=[1, 2], **metrics)})
    (one,) = levels(tmp_path).values()
    assert (one.estimate, one.n) == (pytest.approx(0.1), 200)


def test_what_is_above_one_is_no_fraction(tmp_path):
    for name, right in (("kl0", 110.0), ("kl0.1", 222.0)):
        counts = {"val/retail/success": [right, 200.0], "reward": [1.0, 2.0]}
        put(tmp_path, **{f"{name}_csv": curve(step=[1, 2], **counts)})
    (one,) = levels(tmp_path).values()
    assert one.metric == "reward"


def test_how_many_were_right_of_how_many_is_an_accuracy(tmp_path):
    for name, right in (("kl010", 579), ("kl012", 589)):
        told = {"run": name, "epoch": 1, "n": 1000, "correct": {"shot1": right, "shot2": right}}
        put(tmp_path, **{f"{name}__eval_ep1_json": told})
    (one,) = levels(tmp_path).values()
    assert (one.metric, one.estimate) == ("accuracy", pytest.approx(0.01))


def test_scores_of_items_with_a_column_for_each_number_of_shots(tmp_path):
    for name, right in (("kl005", 1.0), ("kl010", 0.0)):
        rows = [{"idx": i, "qtype": "what", "shot1": right, "shot2": 1.0} for i in range(40)]
        put(tmp_path, **{f"eval__{name}_ep1_csv": rows})
    (one,) = levels(tmp_path).values()
    assert (one.estimate, one.n) == (pytest.approx(-0.5), 40)


def test_what_was_measured_once_is_held_against_the_last_epoch(tmp_path):
    put(tmp_path, random_csv=[{"epoch": 0, "n": 800, "shots": 1, "acc": 0.40}])
    rows = [{"epoch": e, "n": 800, "shots": 1, "acc": 0.4 + e / 100} for e in (1, 2, 3)]
    put(tmp_path, kl010_csv=rows, kl020_csv=rows)
    one = levels(tmp_path)["random"]
    assert one.estimate == pytest.approx(-0.03)
    assert reason(one, "one_checkpoint") == {}


def test_costs_and_settings_beside_runs_are_no_arms(tmp_path):
    put(tmp_path, kl0_csv=curve(step=[1, 2], reward=[1, 2]))
    put(tmp_path, **{"kl0.1_csv": curve(step=[1, 2], reward=[2, 3])})
    put(tmp_path, aconfig_json={"model": "x", "gpus": 8}, cost_json=[{"day": "周一", "hours": 3}])
    found = compare([read(tmp_path)])
    assert found.baseline == "kl0"
    assert sorted(arm["name"] for arm in found.arms) == ["kl0", "kl0.1"]
    (one,) = (each for each in found.verdicts if each.question == "level")
    assert reason(one, "no_arms") == {"arms": "aconfig, 周一"}


def test_a_coefficient_alone_is_no_config(tmp_path):
    rows = [
        {"beta": b, "seed": d, "step": s, "reward": s + b}
        for b in (0.0, 0.1)
        for d in range(6)
        for s in (1, 2)
    ]
    put(tmp_path, runs_csv=rows)
    (one,) = levels(tmp_path).values()
    assert one.level == "L1"
    assert "config_unknown" in [each.code for each in one.because]


def test_runs_that_have_both_do_not_keep_the_others_apart(tmp_path):
    for name in ("rce", "kl010", "kl020"):
        put(tmp_path, **{f"eval__{name}_csv": [{"epoch": 1, "shot": 1, "n": 9, "acc": 0.5}]})
    put(tmp_path, train__rce_csv=curve(epoch=[1, 2], val_loss=[3, 2]))
    for name in ("kl010", "kl020"):
        put(tmp_path, **{f"train__grpo_{name}_csv": curve(epoch=[1, 2], val_loss=[3, 2])})
    assert list(arms_in(tmp_path)) == ["kl010", "kl020", "rce"]


def test_items_with_a_column_of_scores_for_each_run(tmp_path):
    rows = [{"qid": f"q{i}", "type": "what", "rce": 1.0, "kl0.1_ep3": i % 2} for i in range(30)]
    put(tmp_path, per_question_shot4_csv=rows)
    found = arms_in(tmp_path)
    assert list(found) == ["rce", "kl0.1"]
    (scores,) = found["kl0.1"].replicates[0].scores
    assert (scores.step, scores.shots, len(scores.items)) == (3.0, 4, 30)
    assert scores.values.mean() == 0.5


def test_what_alone_has_a_coefficient_is_of_its_arm_whatever_it_is_called(tmp_path):
    rows = [{"kl_beta": b, "epoch": 5, "shot": 1, "cider": 71 + b} for b in (0.1, 0.25)]
    put(tmp_path, cider_eval_csv=rows)
    for name in ("010", "025"):
        put(tmp_path, **{f"training_metrics_kl{name}_csv": curve(epoch=[1, 2], val_loss=[3, 2])})
    assert list(arms_in(tmp_path)) == ["cider_eval-kl0.1", "cider_eval-kl0.25"]


def test_a_baseline_that_shares_no_outcome_is_none(tmp_path):
    put(tmp_path, kl0_csv=curve(step=[1, 2], accuracy=[0.1, 0.2]))
    for name in ("kl0.1", "kl0.2"):
        put(tmp_path, **{f"{name}_csv": curve(step=[1, 2], reward=[1, 2])})
    found = compare([read(tmp_path)])
    assert (found.baseline, found.verdicts[0].metric) == ("kl0.1", "reward")


# --- what no table knows, and runs that were not measured at the same steps


def seeds_of(folder: Path, arm: str, values: list[float], steps: list[int], name: str) -> None:
    luck = 0.001 if arm == "kl0" else 0.002
    for seed in range(4):
        rows = curve(step=steps, **{name: [value + luck * seed for value in values]})
        put(folder, **{f"{arm}__seed_{seed}_csv": rows})


def test_a_run_measured_at_its_end_alone_is_held_against_the_end_of_others(tmp_path: Path) -> None:
    seeds_of(tmp_path, "kl0", [0.2, 0.4, 0.6], [10, 20, 30], "accuracy")
    seeds_of(tmp_path, "kl0.1", [0.55], [30], "accuracy")
    (judged,) = levels(tmp_path).values()
    assert judged.estimate == pytest.approx(
        -0.05, abs=0.01
    )  # and not 0.55 less the mean of the way there


def test_runs_that_went_on_longer_are_judged_by_the_steps_they_share(tmp_path: Path) -> None:
    seeds_of(tmp_path, "kl0", [0.2, 0.4, 0.6, 0.8], [10, 20, 30, 40], "accuracy")
    seeds_of(tmp_path, "kl0.1", [0.2, 0.4], [10, 20], "accuracy")
    (judged,) = levels(tmp_path).values()
    assert judged.estimate == pytest.approx(0.0, abs=0.01)
    found = effect_of("kl_coef", [read(tmp_path)])
    assert [row.value for row in found.rows[::4]] == pytest.approx([0.4, 0.4])


def test_one_run_in_many_that_broke_off_does_not_judge_all_where_it_ended(tmp_path: Path) -> None:
    seeds_of(tmp_path, "kl0", [0.2, 0.4, 0.6, 0.8], [10, 20, 30, 40], "accuracy")
    seeds_of(tmp_path, "kl0.1", [0.2, 0.4, 0.6, 0.7], [10, 20, 30, 40], "accuracy")
    put(tmp_path, **{"kl0.1__seed_3_csv": curve(step=[10], accuracy=[0.2])})
    found = effect_of("kl_coef", [read(tmp_path)])
    assert found.left_out["broke_off"] == ["kl0.1/seed_3"]
    assert found.over is not None
    assert found.over.last == 40
    assert {round(row.value, 1) for row in found.rows} == {0.7, 0.8}
    said = attribution_screen.terminal(found, "en")
    assert "on accuracy at step 40" in said
    assert "broke off before the others ended" in said


def test_cells_of_runs_that_went_on_longer_are_held_against_the_last_they_share(tmp_path: Path):
    for arm, levels_ in (("kl0", [0.2, 0.4, 0.9]), ("kl0.1", [0.2, 0.4])):
        for seed in range(4):
            own = [level + 0.001 * seed * (2 if arm == "kl0" else 1) for level in levels_]
            rows = curve(epoch=list(range(1, len(own) + 1)), acc_1shot=own, acc_2shot=own)
            put(tmp_path, **{f"{arm}__seed_{seed}_csv": rows})
    (judged,) = levels(tmp_path).values()
    assert judged.estimate == pytest.approx(0.0, abs=0.01)


def test_a_metric_of_ones_own_is_asked_for_with_its_better_end(tmp_path: Path) -> None:
    seeds_of(tmp_path, "kl0", [7.0, 5.0], [10, 20], "val/ppl_wiki")
    seeds_of(tmp_path, "kl0.1", [6.0, 4.0], [10, 20], "val/ppl_wiki")
    (lower,) = levels(tmp_path, on="-val/ppl_wiki").values()
    (higher,) = levels(tmp_path, on="+VAL/ppl_wiki").values()
    assert (lower.verdict, higher.verdict) == ("better", "worse")
    assert metric_name(lower.metric, "en") == "val/ppl_wiki"
    (unasked,) = levels(tmp_path).values()
    assert reason(unasked, "no_known_end") == {"metrics": ["val/ppl_wiki"]}
    with pytest.raises(ConfigError, match=r"better: \+val/ppl_wiki or -val/ppl_wiki"):
        levels(tmp_path, on="val/ppl_wiki")
    with pytest.raises(ConfigError, match="no run measured 'val/ppl': there are val/ppl_wiki"):
        levels(tmp_path, on="-val/ppl")


def test_a_sign_before_a_known_metric_is_no_matter(tmp_path: Path) -> None:
    seeds_of(tmp_path, "kl0", [0.5, 0.6], [10, 20], "accuracy")
    seeds_of(tmp_path, "kl0.1", [0.3, 0.4], [10, 20], "accuracy")
    (judged,) = levels(tmp_path, on="+acc").values()
    assert (judged.metric, judged.verdict) == ("accuracy", "worse")


# --- evaluations in the folder of a training


def trained(folder: Path, reward: float, **files: object) -> None:
    rows = [{"step": at, "reward": reward + at / 1000} for at in range(10, 60, 10)]
    state = {"log_history": rows, "max_steps": 50, "global_step": 50}
    put(folder, trainer_state_json=state, **files)


def counted(*right: int) -> dict[str, object]:
    sets = {f"set{at}": {"correct": n, "n": 100 * at} for at, n in enumerate(right, 1)}
    return {"results": sets}


def test_benchmarks_beside_a_training_count_more_than_its_reward(tmp_path: Path) -> None:
    for arm, reward, shift in (("kl0", 0.9, 0), ("kl0.1", 0.5, 10)):
        trained(
            tmp_path / arm,
            reward,
            **{
                "eval__checkpoint-20_json": counted(40 + shift, 80),
                "eval__checkpoint-100_json": {"step": 100} | counted(50 + shift, 80),
            },
        )
    (one,) = levels(tmp_path).values()
    assert (one.metric, one.estimate) == ("accuracy", pytest.approx(0.05))
    assert reason(one, "mean_over_sets") == {"sets": "set1, set2"}
    trained(tmp_path / "kl0.2", 0.5, **{"eval__checkpoint-20_json": counted(1, 2)})
    page = markdown_of(short_page(of_sources(compare([read(tmp_path)]), "x", "en")))
    assert "\n- · it is the mean over set1, set2" in page  # and not of one arm alone
    (run, beside) = read(tmp_path / "kl0").runs
    (curve_,) = (each for each in beside.series if each.metric == "results.set1.accuracy")
    assert (run.arm, beside.arm, curve_.steps.tolist()) == ("kl0", "kl0", [20, 100])
    assert [Path(curve_.place(at).file).stem[-3:] for at in (0, 1)] == ["-20", "100"]


def test_what_names_another_run_is_of_that(tmp_path: Path) -> None:
    trained(tmp_path / "kl0", 0.5, eval_results_csv=[{"run": "rce", "step": 5, "accuracy": 0.4}])
    trained(tmp_path / "kl0", 0.5, all_results_json={"train_loss": 0.1})
    trained(tmp_path / "kl0", 0.5, notes_json={"accuracy": 0.9})
    assert [run.arm for run in read(tmp_path / "kl0").runs] == ["kl0", "rce"]
    assert not evaluations(tmp_path / "kl0", "wandb", read).runs


def test_scores_of_items_beside_a_training_are_of_its_checkpoint(tmp_path: Path) -> None:
    rows = [{"item": f"q{at}", "score": at % 2} for at in range(10)]
    trained(tmp_path / "kl0-s3", 0.5, evals__step_30_csv=rows)
    _, beside = read(tmp_path / "kl0-s3").runs
    assert (beside.arm, beside.seed, beside.scores[0].step) == ("kl0", 3, 30)


def test_counts_by_category_and_of_all(tmp_path: Path) -> None:
    for arm, shift in (("kl0", 0), ("kl0.1", 20)):
        told = {
            "evals": [
                {"step": at, "categories": counted(30, 90)["results"]}
                | {"total": {"n": 300, "correct": 120 + shift}}
                for at in (10, 20)
            ]
        }
        put(tmp_path, **{f"{arm}_json": told})
    (one,) = levels(tmp_path).values()
    assert (one.metric, one.estimate) == ("accuracy", pytest.approx(20 / 300))


def test_results_in_one_file_by_arm(tmp_path: Path) -> None:
    told = {"kl0": {"gsm8k_correct": 50, "gsm8k_total": 100}, "kl0.1": {"gsm8k_correct": 60}}
    told["kl0.1"]["gsm8k_total"] = 100
    put(tmp_path / "a", results_json=told)
    (one,) = levels(tmp_path / "a").values()
    assert (one.arms, one.metric, one.estimate) == (
        ("kl0.1", "kl0"), "accuracy", pytest.approx(0.1),
    )  # fmt: skip
    by_step = {"10": {"shot1": 50.0, "shot2": 52.0}, "20": {"shot1": 55.0, "shot2": 57.0}}
    more = {step: {shot: v + 4.0 for shot, v in cells.items()} for step, cells in by_step.items()}
    put(tmp_path / "b", eval_json={"samples": 500, "accuracy": {"kl010": by_step, "kl020": more}})
    (one,) = levels(tmp_path / "b").values()
    assert (one.arms, one.estimate, one.n) == (("kl020", "kl010"), pytest.approx(0.04), 500)


def test_an_object_without_two_coefficients_is_no_table_of_arms(tmp_path: Path) -> None:
    put(tmp_path, run_json={"config": {"lr": 1e-6}, "kl0.1": {"accuracy": 0.5}, "loss": 0.3})
    (run,) = read(tmp_path / "run.json").runs
    assert run.name == "run"


def test_results_by_arm_under_several_metrics(tmp_path: Path) -> None:
    arms = {"kl0": {"final": 0.5}, "kl0.1": {"final": 0.6}}
    put(tmp_path, results_json={"accuracy": arms, "reward": arms})
    told = {(run.arm, cell.metric) for run in read(tmp_path).runs for cell in run.cells}
    assert told == {(arm, f"{of}.final") for arm in arms for of in ("accuracy", "reward")}


def test_a_share_that_is_told_is_not_worked_out_again(tmp_path: Path) -> None:
    put(tmp_path, a_json={"reward": 0.3, "correct": 5, "n": 10})
    put(tmp_path, b_json={"acc": 0.52, "correct": 5, "n": 10})
    cells = {run.name: {c.metric: c.number.value for c in run.cells} for run in read(tmp_path).runs}
    assert cells["a"]["accuracy"] == 0.5
    assert "accuracy" not in cells["b"]
