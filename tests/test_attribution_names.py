"""Settings that only the names of runs tell: which they are, and what they did."""

from __future__ import annotations

from pathlib import Path

import pytest

from kleash.attribution import attribute
from kleash.catalogue import attribution_screen as screen
from kleash.errors import DataError
from kleash.imports import in_names, read
from kleash.seeds import generator


@pytest.mark.parametrize(
    ("names", "told"),
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
def test_what_names_tell(names: list[str], told: list[dict[str, object]]) -> None:
    assert in_names.settings(names) == told


def logs(folder: Path, levels: dict[str, float], seeds: int = 3) -> Path:
    rng = generator("names", sorted(levels))
    for name, level in levels.items():
        for seed in range(seeds):
            rows = [f"{at},{level + rng.normal(0, 0.004):.4f}" for at in (10, 20, 30)]
            text = "\n".join(["step,accuracy", *rows]) + "\n"
            (folder / f"{name}-seed{seed}.csv").write_text(text)
    return folder


def test_a_coefficient_and_a_rate_in_names_are_told_apart(tmp_path: Path) -> None:
    levels = {
        f"kl{kl}-lr{lr}": 0.6 - (0.1 if kl == 0.2 else 0.0)
        for kl in (0.05, 0.2)
        for lr in ("1e-6", "5e-6")
    }
    found = attribute([read(logs(tmp_path, levels))])
    effects = {each.keys: each for each in found.effects}
    assert effects["leash.coefficient",].named
    assert effects["leash.coefficient",].estimate == pytest.approx(-0.1, abs=0.01)
    assert not effects["lr",].named
    assert found.by_name == ["lr"]
    said = screen.limits(found, "en")
    assert any("told by the names of the arms alone" in each for each in said)


def test_starts_and_baselines_without_a_coefficient_stand_aside(tmp_path: Path) -> None:
    levels = {"kl0": 0.60, "kl0.05": 0.58, "kl0.1": 0.56, "kl0.2": 0.54, "random": 0.2, "rce": 0.4}
    found = attribute([read(logs(tmp_path, levels))])
    assert found.aside == ["random", "rce"]
    assert len(found.rows) == 12
    (slope, _) = found.effects  # a doubling, and 0
    assert slope.estimate == pytest.approx(-0.02, abs=0.01)
    assert screen.plain(found, "en")["left_out"] == ["random", "rce"]


def test_names_that_are_only_names_are_no_factor(tmp_path: Path) -> None:
    levels = {"monday": 0.5, "tuesday": 0.6, "friday": 0.55}
    with pytest.raises(DataError, match="no setting differs between the 3 runs"):
        attribute([read(logs(tmp_path, levels, seeds=1))])


def test_configs_that_tell_leave_names_alone(tmp_path: Path) -> None:
    heads = "run,seed,lr,accuracy"
    rows = [f"{name},{seed},{lr},{0.5 + 0.1 * (lr > 2e-6) + 0.001 * seed}"
            for name, lr in (("fast-a", 5e-6), ("slow-b", 1e-6)) for seed in (0, 1)]  # fmt: skip
    (tmp_path / "runs.csv").write_text("\n".join([heads, *rows]) + "\n")
    found = attribute([read(tmp_path / "runs.csv")])
    assert [each.keys for each in found.effects] == [("lr",)]
    assert (found.by_name, found.refused) == ([], [])
