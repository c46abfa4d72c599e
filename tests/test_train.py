"""Training: each phase learns, the leash holds, and what is written can be trusted."""

import json
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tomli_w
import torch
from safetensors.torch import load_file
from typer.testing import CliRunner

from kleash.algo.grpo import Loss
from kleash.algo.policy import fingerprint
from kleash.cli import app
from kleash.errors import CheckpointError, ConfigError, DataError, GuardError
from kleash.models.selector import Selector
from kleash.runs.ledger import Ledger
from kleash.runs.run import Run
from kleash.seeds import generator
from kleash.stats import StopDecision
from kleash.tasks.demos.reward import REWARDS
from kleash.train import loop, selector, update
from kleash.train.rollout.proposed import buy_proposals
from kleash.train.rollout.selector import SelectorWorld, sample_groups
from kleash.train.selector import validation
from kleash.train.training import train
from tiny import Reader, contents, given, tiny_recipe, train_tiny

Trained = Callable[..., Run]
LARGER = ("selector=v4-2", "queries=160", "batch=16", "propose.width=8", "propose.random=6")

pytestmark = pytest.mark.usefixtures("one_thread")


def epoch_lines(run: Run, phase: str) -> list[dict[str, Any]]:
    return [line for line in run.metrics() if line["kind"] == "epoch" and line["phase"] == phase]


def findings(run: Run) -> list[str]:
    return [line["code"] for line in run.metrics() if line["kind"] == "finding"]


def only(**epochs: int) -> list[str]:
    """Keys that leave the other phases out."""
    lengths = {"supervised.epochs": 0, "rce.epochs": 0, "epochs": 0} | epochs
    return [f"{key}={value}" for key, value in lengths.items()]


def from_rce(run: Run) -> list[str]:
    """Keys that start GRPO from the base that a run's other phases made."""
    return ["phase=grpo", f"from={run.path}/checkpoints/rce-1", "queries=16"]


# --- learning


def mean_reward(policy: Selector, world: SelectorWorld) -> float:
    """Of pointers sampled for the training queries, with the same noise for every policy."""
    places = range(len(world.queries("train")))
    return sample_groups(policy, world, "train", places, ("test",)).reward.mean().item()


def blind_reward(world: SelectorWorld) -> float:
    """The mean reward of pointers drawn without looking."""
    recipe = world.recipe
    asked = [
        (query, tuple(rng.permutation(recipe.pool.size)[: recipe.shots].tolist()))
        for query in range(len(world.queries("train")))
        for rng in [generator("test", "blind", query)]
        for _ in range(4)
    ]
    rewards = [reward for reward in world.rewards("train", asked)[0] if reward is not None]
    return sum(rewards) / len(rewards)


def before_and_after(
    folder: Path, ledger: Ledger, *keys: str
) -> tuple[SelectorWorld, Run, tuple[float, float]]:
    """A larger run, and the mean reward of samples before and after it."""
    recipe = tiny_recipe(*LARGER, *keys)
    world = SelectorWorld(recipe, ledger)
    policy = world.fresh_policy()
    before = mean_reward(policy, world)
    run = train(folder, recipe, {}, world)
    policy.load_state_dict(run.load(run.checkpoints()[-1]).weights)
    return world, run, (before, mean_reward(policy, world))


def test_supervised_learns_to_choose_better_than_blindly(tmp_path: Path, ledger: Ledger) -> None:
    keys = [*only(**{"supervised.epochs": 10}), "supervised.lr=1e-3"]
    world, run, (_, after) = before_and_after(tmp_path / "a", ledger, *keys)
    first, *_, last = epoch_lines(run, "supervised")
    assert last["validation/uniform_loss"] == pytest.approx(math.log(8) + math.log(7))
    assert last["validation/loss"] < 0.92 * last["validation/uniform_loss"]
    assert last["loss"] < 0.8 * last["uniform_loss"] < first["loss"]
    assert after > blind_reward(world) + 0.2


def test_rce_learns_from_the_rewards_of_its_proposals(tmp_path: Path, ledger: Ledger) -> None:
    heat = ["rce.lr=1e-3", "rce.hot=0.5", "rce.cold=0.1"]
    keys = [*only(**{"rce.epochs": 8}), *heat]
    world, _, (before, after) = before_and_after(tmp_path / "a", ledger, *keys)
    assert before < blind_reward(world)
    # Imitating all proposals alike would end at the blind reward.
    assert after > blind_reward(world) + 0.1


def test_grpo_raises_the_reward_of_its_samples(tmp_path: Path, ledger: Ledger) -> None:
    keys = [*only(epochs=4), "lr=5e-4", "leash.coefficient=0.02"]
    _, run, (before, after) = before_and_after(tmp_path / "a", ledger, *keys)
    lines = epoch_lines(run, "grpo")
    assert lines[-1]["reward"] > lines[0]["reward"] + 0.1
    assert after > before + 0.2


def test_a_shorter_leash_keeps_the_policy_nearer_to_its_reference(
    trained: Trained, tiny_run: Run
) -> None:
    base = [*from_rce(tiny_run), "queries=24", "epochs=4", "lr=1e-3"]
    arms = {
        "none": ["leash.form=none", "leash.coefficient=0.0"],
        "0.3": ["leash.coefficient=0.3"],
        "3": ["leash.coefficient=3.0"],
    }
    reached = []
    for name, keys in arms.items():
        line = epoch_lines(trained(name, *base, *keys), "grpo")[-1]
        enumerated, sampled = (
            line["probe/kl/ref/enumerated"],
            line["probe/kl/ref/exact/episode/mean"],
        )
        assert sampled == pytest.approx(enumerated, rel=0.2)
        reached.append(enumerated)
    free, held, tight = reached
    assert free > 1.3 * held > 1.3 * 1.3 * tight > 0


# --- every way to hold the leash


@pytest.mark.parametrize(
    "form", ["return_to_go", "exact", "k2", "k3", "k3_ratio", "reward_k1", "none"]
)
def test_every_form_trains_and_acts_with_the_coefficient_asked_for(
    trained: Trained, tiny_run: Run, form: str
) -> None:
    keys = [*from_rce(tiny_run), f"leash.form={form}", "leash.coefficient=0.5", "lr=1e-3"]
    run = trained("a", *keys, "updates=2")
    steps = [line for line in run.metrics() if line["kind"] == "step"]
    assert len(steps) == 4
    for line in steps:
        assert all(math.isfinite(v) for v in line.values() if isinstance(v, float))
        assert line["leash/penalty"] == pytest.approx(0.5 * line["leash/value"])
    last = epoch_lines(run, "grpo")[-1]
    assert last["kl/ref/exact/episode/mean"] > 1e-4
    # With no leash there is nothing to multiply; with any other there is.
    assert (steps[-1]["leash/value"] == 0) == (form == "none")


@pytest.mark.parametrize(
    ("keys", "after_four"),
    [
        (["leash.controller=constant"], 0.5),
        (["leash.controller=linear", "leash.steps=8", "leash.end=0.1"], 0.3),
        (["leash.controller=cosine", "leash.steps=8", "leash.end=0.1"], 0.3),
        (["leash.controller=piecewise", "leash.points=[[3, 0.9]]"], 0.9),
        (
            ["leash.controller=adaptive", "leash.target=50.0", "leash.rate=0.1"],
            0.5 * (1 - 0.1 * 0.2) ** 4,
        ),
        (["leash.controller=target", "leash.target=50.0", "leash.rate=0.001"], 0.3),
    ],
)
def test_every_controller_moves_the_coefficient_as_it_should(
    trained: Trained, tiny_run: Run, keys: list[str], after_four: float
) -> None:
    run = trained("a", *from_rce(tiny_run), "leash.coefficient=0.5", *keys)
    last = epoch_lines(run, "grpo")[-1]
    assert last["leash/coefficient"] == pytest.approx(after_four, abs=1e-3)
    assert run.state("epoch-2")["controller"] == {
        "step": 4,
        "coefficient": last["leash/coefficient"],
    }


def reference_of(run: Run, name: str) -> dict[str, torch.Tensor]:
    held = run.load(name).trainer
    return {
        key.removeprefix("reference."): tensor
        for key, tensor in held.items()
        if key.startswith("reference.")
    }


@pytest.mark.parametrize(
    ("keys", "then"),
    [
        (["leash.reference=start"], "stays"),
        (["leash.reference=ema", "leash.reference_decay=0.5"], "follows"),
        (["leash.reference=reset_every", "leash.reference_every=3"], "follows"),
    ],
)
def test_a_reference_stays_or_follows_as_asked(
    trained: Trained, tiny_run: Run, keys: list[str], then: str
) -> None:
    run = trained("a", *from_rce(tiny_run), *keys, "lr=1e-3")
    base = tiny_run.load("rce-1", trainer=False).weights
    tied = reference_of(run, "epoch-2")
    assert then == ("stays" if fingerprint(tied) == fingerprint(base) else "follows")
    assert fingerprint(tied) != fingerprint(run.load("epoch-2").weights)
    assert all(torch.isfinite(tensor).all() for tensor in tied.values())


def test_a_reference_from_a_path_is_that_checkpoint(trained: Trained, tiny_run: Run) -> None:
    path = tiny_run.path / "checkpoints" / "supervised-1"
    keys = ["leash.reference=path", f"leash.reference_path={path}"]
    run = trained("a", *from_rce(tiny_run), *keys)
    tied = tiny_run.load("supervised-1", trainer=False).weights
    assert fingerprint(reference_of(run, "epoch-2")) == fingerprint(tied)
    assert run.meta["reference"] == fingerprint(tied)
    # The policy starts elsewhere, so KL is there from the first step.
    assert epoch_lines(run, "grpo")[0]["kl/ref/exact/episode/mean"] > 1e-3


# --- other ways to train


def test_every_step_says_how_far_the_policy_is_and_what_coefficient_held_it(
    trained: Trained, tiny_run: Run
) -> None:
    keys = ("phase=grpo", f"from={tiny_run.path}/checkpoints/rce-1", "batch=24", "lr=3e-3")
    leash = ("leash.controller=linear", "leash.coefficient=0.2", "leash.end=0.1", "leash.steps=4")
    run = trained("one-batch", *keys, *leash, "epochs=3")  # every epoch is one batch
    steps = [line for line in run.metrics() if line["kind"] == "step"]
    coefficients = [line["leash/coefficient"] for line in steps]
    assert coefficients == pytest.approx([0.2, 0.175, 0.15])
    for step, epoch in zip(steps, epoch_lines(run, "grpo"), strict=True):
        for name in ("kl/ref/exact/choice/mean", "kl/ref/exact/episode/mean"):
            assert step[name] == pytest.approx(epoch[name])
        assert step["kl/old/k1"] == 0.0  # what was sampled is what learns
        assert step["leash/penalty"] == pytest.approx(
            step["leash/coefficient"] * step["leash/value"]
        )
    assert steps[0]["kl/ref/exact/episode/mean"] == 0 < steps[1]["kl/ref/exact/episode/mean"]

    again = trained("again", *keys, "updates=3")
    assert all(abs(line["kl/old/k1"]) > 1e-6 for line in again.metrics() if line["kind"] == "step")

    offline = trained("offline", *keys, "source=offline")
    for line in offline.metrics():
        if line["kind"] == "step":
            assert line["kl/proposed/exact/episode/mean"] >= 0 and "leash/coefficient" in line
            assert not [name for name in line if name.startswith("kl/ref")]


def test_online_ratios_are_one_until_a_batch_is_used_again(trained: Trained, tiny_run: Run) -> None:
    base = [*from_rce(tiny_run), "lr=1e-3"]
    once = epoch_lines(trained("once", *base), "grpo")[-1]
    twice = epoch_lines(trained("twice", *base, "updates=2"), "grpo")[-1]
    assert once["mean_ratio"] == pytest.approx(1, abs=1e-6)
    assert abs(twice["mean_ratio"] - 1) > 1e-4
    assert (once["step"], twice["step"]) == (4, 8)


def test_offline_learns_from_the_proposals_and_calls_nothing_of_them_kl(
    trained: Trained, tiny_run: Run
) -> None:
    run = trained("a", *from_rce(tiny_run), "source=offline", "lr=1e-3")
    lines = epoch_lines(run, "grpo")
    # Later batches are judged by a policy that has moved on from the one at the epoch's start.
    assert abs(lines[0]["mean_ratio"] - 1) > 1e-4
    assert "kl/ref/exact/episode/mean" not in lines[0]
    assert lines[0]["probe/kl/ref/exact/episode/mean"] > 1e-3
    assert 0 < lines[0]["positive_share"] < 1


def test_frozen_blocks_stay_bit_equal_and_the_others_move(trained: Trained, tiny_run: Run) -> None:
    run = trained("a", *from_rce(tiny_run), 'freeze=["projections"]')
    before = tiny_run.load("rce-1", trainer=False).weights
    after = run.load("epoch-2", trainer=False).weights
    moved = {name for name in before if not torch.equal(before[name], after[name])}
    frozen = {name for name in before if name.startswith("projections.")}
    assert moved == set(before) - frozen
    assert moved
    numbers = {name: tensor.numel() for name, tensor in before.items()}
    share = sum(numbers[name] for name in moved) / sum(numbers.values())
    assert run.meta["trainable_share"] == pytest.approx(share)


def test_a_coefficient_that_is_not_in_units_of_reward_is_marked(
    trained: Trained, tiny_run: Run
) -> None:
    base = [*from_rce(tiny_run), "advantage=standardise", "leash.form=k3"]
    assert "coefficient-unit" in findings(trained("unscaled", *base, "leash.scaled=false"))
    assert "coefficient-unit" not in findings(trained("scaled", *base))


def test_groups_without_signal_are_counted_as_groups(
    trained: Trained, tiny_run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(REWARDS, "soft", lambda facts: 0.5)
    run = trained("a", *from_rce(tiny_run), "reward=soft", "leash.coefficient=0.0")
    said = [line for line in run.metrics() if line.get("code") == "no-signal"]
    assert len(said) == 2
    assert said[0]["message"].startswith("0 of 16 groups have any signal")
    assert epoch_lines(run, "grpo")[0]["groups_with_signal"] == 0


def test_early_stopping_keeps_the_best_window_and_the_last_epoch(
    trained: Trained, tiny_run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def after_four(values: list[float], noise: float, margin: float, **_: Any) -> StopDecision:
        verdict = "stop" if len(values) == 4 else "go on"
        return StopDecision(verdict, None, checkpoint=1, window=1, patience=2, n=len(values))

    monkeypatch.setattr(loop, "early_stop", after_four)
    keys = [*from_rce(tiny_run), "epochs=9"]
    run = trained("a", *keys, "early_stop=on")
    assert run.checkpoints() == ["epoch-2", "epoch-4"]
    assert [line["epoch"] for line in epoch_lines(run, "grpo")] == [1, 2, 3, 4]
    assert run.finished
    assert trained("a", *keys, "early_stop=on").checkpoints() == ["epoch-2", "epoch-4"]


# --- what is written


def test_every_epoch_says_what_the_run_did(tiny_run: Run) -> None:
    everywhere = {
        "loss",
        "grad_norm",
        "step",
        "validation/loss",
        "validation/uniform_loss",
        "validation/accuracy",
        "validation/accuracy_se",
        "validation/n",
        "validation/broken",
    }
    proposals = everywhere | {"positive_share", "dropped_groups"}
    grpo = everywhere | {
        "policy_loss",
        "leash/value",
        "mean_ratio",
        "mean_advantage",
        "std_advantage",
        "max_advantage",
        "groups_with_signal",
        "effective_coefficient",
        "leash/form",
        "leash/coefficient",
        "lr",
        "reward",
        "broken",
        "dropped_groups",
        "probe/kl/ref/exact/episode/mean",
        "probe/entropy",
        "probe/distinct",
    }
    for phase, fields in (("supervised", proposals), ("rce", proposals), ("grpo", grpo)):
        for line in epoch_lines(tiny_run, phase):
            assert fields <= set(line), phase
            assert all(math.isfinite(v) for v in line.values() if isinstance(v, float))
    assert [line["epoch"] for line in epoch_lines(tiny_run, "grpo")] == [1, 2]


def test_times_are_in_the_timings_and_nowhere_else(tiny_run: Run) -> None:
    clocked = {"seconds", "queries_per_second"}
    timings = [line for line in tiny_run.timings() if "epoch" in line]
    assert [line["phase"] for line in timings] == ["supervised", "rce", "grpo", "grpo"]
    assert all(clocked < set(line) and line["seconds"] > 0 for line in timings)
    for line in tiny_run.metrics():
        assert not [key for key in line if key in clocked or "time" in key]


def test_a_run_says_where_it_came_from(tiny_run: Run) -> None:
    meta = tiny_run.meta
    recipe = tiny_recipe()
    assert {"revision", "diff", "versions", "platform", "started", "identity"} <= set(meta)
    assert meta["versions"]["torch"] == torch.__version__
    assert meta["seeds"] == {"run": 0, "data": 0}
    assert meta["counts"] == {
        "demonstrations": 200,
        "train": 200,
        "validation": 60,
        "test": 60,
        "used": 24,
    }
    assert (meta["trainable_share"], meta["base"], meta["reference"]) == (1.0, None, None)
    assert (meta["answerer"], meta["pool"]) == ("tiny", "random-8")
    supervised = epoch_lines(tiny_run, "supervised")[0]
    assert meta["positive_share"] == supervised["positive_share"]
    assert sum(meta["health"].values()) == meta["counts"]["used"]
    assert tiny_run.config == recipe.resolved()
    assert tiny_run.given == given()


def test_a_run_from_a_checkpoint_is_known_by_its_content(
    trained: Trained, tiny_run: Run, tmp_path: Path
) -> None:
    shutil.copytree(tiny_run.path, tmp_path / "moved")
    here = trained("here", *from_rce(tiny_run))
    there = trained("there", *from_rce(Run.open(tmp_path / "moved")))
    assert here.meta["base"] == fingerprint(tiny_run.load("rce-1", trainer=False).weights)
    assert here.meta["identity"] == there.meta["identity"]
    assert contents(here, "config.json", "given.json") == contents(
        there, "config.json", "given.json"
    )


def test_another_answerer_or_reference_makes_another_run(
    tmp_path: Path, ledger: Ledger, tiny_run: Run, trained: Trained
) -> None:
    recipe = tiny_recipe()
    world = SelectorWorld(recipe, ledger)
    assert isinstance(world.answerer, Reader)
    world.answerer.break_on(lambda prompt: False)
    other = train(tmp_path / "other", recipe, {}, world)
    assert other.meta["identity"] != tiny_run.meta["identity"]
    shutil.copytree(tiny_run.path, tmp_path / "tied")
    tied = tmp_path / "tied" / "checkpoints" / "supervised-1"
    keys = [*from_rce(tiny_run), "leash.reference=path", f"leash.reference_path={tied}"]
    before = trained("a", *keys)
    shutil.rmtree(tied)
    shutil.copytree(tiny_run.path / "checkpoints" / "epoch-1", tied)
    assert trained("a", *keys).meta["identity"] != before.meta["identity"]


# --- what is refused or stops


@pytest.mark.parametrize(
    ("keys", "error", "expected"),
    [
        (['freeze=["head"]'], ConfigError, "cannot freeze 'head': the blocks are projections"),
        (["phase=grpo", "from=nowhere/checkpoints/epoch-1"], DataError, "no such run: nowhere"),
        (["phase=grpo", "from={run}/checkpoints/epoch-9"], CheckpointError, "'epoch-9'; it has:"),
        (["phase=grpo", "from={run}/checkpoints/rce-1", "selector=v2"], CheckpointError, "missing"),
        (
            ["leash.reference=path", "leash.reference_path=nowhere/checkpoints/epoch-1"],
            DataError,
            "no such run: nowhere",
        ),
        (["data=mars"], ConfigError, "no data set 'mars'"),
        (["answerer=oracle"], ConfigError, "no answerer 'oracle'"),
        (["pool.size=200"], DataError, "make pool.size smaller"),
    ],
)
def test_what_does_not_fit_is_refused_before_a_folder_is_made(
    tmp_path: Path, ledger: Ledger, tiny_run: Run, keys: list[str], error: type, expected: str
) -> None:
    asked = [key.format(run=tiny_run.path) for key in keys]
    with pytest.raises(error) as caught:
        train_tiny(tmp_path / "a", ledger, *asked)
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def nan_from(call: int, real: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """The same function whose result is NaN from a certain call on."""
    calls = iter(range(10**9))

    def made(*args: Any) -> torch.Tensor:
        return real(*args) * (math.nan if next(calls) >= call else 1)

    return made


@pytest.mark.parametrize(("phase", "step"), [("supervised", 2), ("rce", 1), ("grpo", 1)])
def test_nan_stops_at_its_step_with_the_batch_saved_and_the_run_can_go_on(
    trained: Trained, tiny_run: Run, monkeypatch: pytest.MonkeyPatch, phase: str, step: int
) -> None:
    with monkeypatch.context() as patch:
        if phase == "grpo":
            patch.setattr(update, "grpo_loss", nan_loss_from(step))
        else:
            before = {"supervised": step, "rce": 4 + step}[phase]  # three batches, one validation
            patch.setattr(selector, "episode_sum", nan_from(before, selector.episode_sum))
        with pytest.raises(GuardError) as caught:
            trained("a")
    message = str(caught.value)
    assert "the loss are NaN or infinite" in message
    assert "\n" not in message
    file = Path(kept(message))
    assert file.name == f"broken-step-{step}.safetensors"
    batch = load_file(file)
    assert {"query", "pool", "pointer", "pointer_query"} < set(batch)
    assert any(name.startswith("weights.") for name in batch)
    assert not Run.open(file.parent).finished
    file.unlink()
    assert contents(trained("a")) == contents(tiny_run)


def nan_loss_from(call: int) -> Callable[..., Loss]:
    """GRPO's loss, NaN from a certain call on."""
    real, calls = update.grpo_loss, iter(range(10**9))

    def made(*args: Any, **keys: Any) -> Loss:
        loss = real(*args, **keys)
        return replace(loss, total=loss.total * math.nan) if next(calls) >= call else loss

    return made


def kept(message: str) -> str:
    """The file that a guard's line names."""
    return message.split("(", 1)[1].split(")", 1)[0]


def test_a_reward_that_is_no_number_stops_grpo_with_the_batch_saved(
    trained: Trained, tiny_run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(REWARDS, "soft", lambda facts: math.nan)
    with pytest.raises(GuardError, match="of the rewards are NaN") as caught:
        trained("a", *from_rce(tiny_run), "reward=soft")
    assert Path(kept(str(caught.value))).is_file()


def test_broken_answers_are_counted_and_too_many_are_marked(tmp_path: Path, ledger: Ledger) -> None:
    recipe = tiny_recipe("group=6")
    world = SelectorWorld(recipe, ledger)
    assert isinstance(world.answerer, Reader)
    lost = world.queries("train").tasks[0]

    def breaks(prompt: Any) -> bool:
        shown = "".join(item.id for item in prompt.demonstrations)
        return prompt.query.id == lost or hash_share(shown) < 0.1

    world.answerer.break_on(breaks)
    run = train(tmp_path / "a", recipe, {}, world)
    assert epoch_lines(run, "supervised")[0]["dropped_groups"] == 1
    for phase in ("rce", "grpo"):
        line = epoch_lines(run, phase)[0]
        assert line["dropped_groups"] >= 1
        assert line["broken"] > line["dropped_groups"]
    line = epoch_lines(run, "grpo")[0]
    assert line["validation/n"] + line["validation/broken"] == 60
    assert line["validation/broken"] > 3
    assert "broken" in findings(run)


def hash_share(text: str) -> float:
    """A number from 0 to 1 that stands for the text."""
    return float(generator("test", text).random())


def test_validation_without_any_answer_is_no_number(ledger: Ledger) -> None:
    recipe = tiny_recipe()
    world = SelectorWorld(recipe, ledger)
    assert isinstance(world.answerer, Reader)
    bought = buy_proposals(world, "validation", 60)
    world.answerer.break_on(lambda prompt: True)
    with pytest.raises(DataError, match="60 of 60 validation answers broke"):
        validation(world.fresh_policy(), world, bought)


# --- the same bytes


CHILD = """
import sys
from pathlib import Path
from tiny import train_tiny
from kleash.train.single import need_torch
from kleash.runs.ledger import Ledger
need_torch()
with Ledger(Path(sys.argv[1]) / "ledger.sqlite") as ledger:
    train_tiny(Path(sys.argv[1]) / "a", ledger)
"""


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bytes_in_another_process(
    tmp_path: Path, tiny_run: Run
) -> None:
    paths = [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    subprocess.run(
        [sys.executable, "-c", CHILD, str(tmp_path)],
        check=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths), "PYTHONHASHSEED": "12345"},
    )
    assert contents(Run.open(tmp_path / "a")) == contents(tiny_run)


def test_another_seed_gives_other_weights(trained: Trained, tiny_run: Run) -> None:
    other = trained("other", "seed=1")
    for name in tiny_run.checkpoints():
        assert other.state(name)["weights_hash"] != tiny_run.state(name)["weights_hash"]
    assert other.meta["identity"] != tiny_run.meta["identity"]


@pytest.mark.parametrize(
    "keys",
    [
        [],
        ["leash.reference=ema", "leash.reference_decay=0.9", "leash.controller=adaptive"],
        pytest.param(
            ["leash.reference=reset_every", "leash.reference_every=2", "warmup=5"],
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_run_that_is_extended_is_the_run_that_was_long_at_once(
    trained: Trained, keys: list[str]
) -> None:
    more = [*keys, "leash.target=0.1"]
    at_once = trained("at-once", *more, "epochs=3")
    short = trained("extended", *more, "epochs=1")
    assert short.checkpoints()[-1] == "epoch-1"
    assert short.finished
    extended = trained("extended", *more, "epochs=3")
    assert extended.path == short.path
    assert contents(extended, "given.json") == contents(at_once, "given.json")


def test_a_finished_run_is_left_as_it_is(trained: Trained) -> None:
    run = trained("a")
    before = {path: path.stat().st_mtime_ns for path in run.path.rglob("*.safetensors")}
    assert trained("a", "epochs=1").path == run.path
    assert json.loads((run.path / "config.json").read_text())["epochs"] == 2
    assert {path: path.stat().st_mtime_ns for path in run.path.rglob("*.safetensors")} == before


def test_a_run_of_another_recipe_gets_a_folder_of_its_own(trained: Trained) -> None:
    first, second = trained("a"), trained("a", "lr=1e-3")
    assert second.path.name == f"a-{second.meta['identity'][:8]}"
    assert first.meta["identity"] != second.meta["identity"]


def test_a_run_with_a_relative_start_goes_on_from_any_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny_run: Run
) -> None:
    def kleash(*words: str) -> None:
        done = CliRunner().invoke(app, [*words])
        if done.exception:
            raise done.exception

    here, there, elsewhere = (tmp_path / name for name in ("here", "there", "elsewhere"))
    elsewhere.mkdir()
    shutil.copytree(tiny_run.path, here / "runs/base")
    (here / "mine.toml").write_text(tomli_w.dumps(given("epochs=1")), encoding="utf-8")
    monkeypatch.chdir(here)
    start = "runs/base/checkpoints/rce-1"
    tied = ("leash.reference=path", f"leash.reference_path={start}")
    kleash("train", "mine.toml", "phase=grpo", f"from={start}", *tied, "--out", "runs/next")
    run = Run.open(here / "runs/next")
    assert run.config["from"] == start  # as it was written

    monkeypatch.chdir(elsewhere)
    kleash("train", str(here / "runs/next"), "epochs=2")
    shutil.copytree(here, there)
    shutil.rmtree(here)
    kleash("train", str(there / "runs/next"), "epochs=3")
    assert Run.open(there / "runs/next").checkpoints() == ["epoch-1", "epoch-2", "epoch-3"]
    assert {path.name for path in (there / "runs").glob("*/")} == {"base", "next"}
