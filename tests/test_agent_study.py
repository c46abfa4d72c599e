"""Whole small studies of language agents: shared starts, passes, killed and gone on with, told."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from kleash.cli import app
from kleash.config import build, merge
from kleash.errors import KleashError
from kleash.report import markdown_of, short_page, study_material
from kleash.runs.run import Run
from kleash.study.estimate import estimate
from kleash.study.plan import StudyFile, arms_of, base_given, bundled, read_study
from kleash.study.plan.folder import overview, read_plan
from kleash.study.results import results
from kleash.study.running import Asked, Ran, run_study
from kleash.train.rollout.agent import AgentWorld, example_dialogue
from made_once import made_once
from study_tools import inline, kill_and_go_on, lasting, run_inline

__all__ = ["inline"]
AGENTS: dict[str, Any] = {
    "name": "agents",
    "seeds": 2,
    "base": {
        "env": "intention",
        "gym": {
            "surface": "tokens",
            "limit": 4,
            "world": {"train": 60, "validation": 20, "test": 50},
        },
        "tiny": {"width": 32, "layers": 1, "heads": 2},
        "turn_tokens": 4,
        "supervised": {"epochs": 1, "dialogues": 200, "lr": 1e-2},
        "validation": {"tasks": 20, "training": 10},
    },
    "grpo": {"epochs": 1, "steps": 2, "batch": 4, "group": 4, "lr": 1e-2},
    "arms": {
        "none": {"leash": {"coefficient": 0.0}},
        "tight": {"leash": {"coefficient": 1.0}},
    },
    "measure": {"items": [10, 20], "validation": 20},
}


def agents(**changes: Any) -> StudyFile:
    """The small study with some of it changed."""
    return build(StudyFile, merge(AGENTS, changes))


def run_agents(folder: Path, jobs: int = 1, **changes: Any) -> tuple[Ran, list[str]]:
    """Run it; and the names of the jobs that were started."""
    started: list[str] = []
    ran = run_study(
        Asked(agents(**changes), folder, jobs),
        lambda told, found: started.append(told.job) if told.kind == "started" else None,
    )
    return ran, started


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, one_thread: None) -> Path:
    """A finished study. Copy it to change it."""

    def make(folder: Path) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("kleash.study.running.run_jobs", run_inline)
            ran, _ = run_agents(folder)
        assert not ran.failures

    return made_once(tmp_path_factory, "agents", make)


@pytest.fixture
def copied(finished: Path, tmp_path: Path) -> Path:
    """A copy of it to change."""
    return Path(shutil.copytree(finished, tmp_path / "agents"))


def test_every_cell_is_filled_greedy_and_in_passes(finished: Path) -> None:
    plan = read_plan(finished)
    assert plan["counts"] == {
        "done": 28
    }  # 2 seeds: base 4; each arm 1 on validation, 4 on the test
    run = Run.open(finished / "runs/tight-s0")
    tested = [line for line in run.scores() if line["split"] == "test"]
    assert {line["shots"] for line in tested} == {0, 2}
    assert len(tested) == 40
    for line in tested:
        assert len(line["heard"]) == len(line["pointer"]) == len(line["rewards"]) <= 4


def test_arms_of_a_seed_share_start_tasks_and_draws(finished: Path) -> None:
    for seed in (0, 1):
        base = Run.open(finished / f"base-s{seed}").state("supervised-1")["weights_hash"]
        runs = [Run.open(finished / f"runs/{arm}-s{seed}") for arm in ("none", "tight")]
        assert [run.meta["base"] for run in runs] == [base, base]
        first = [next(line for line in run.metrics() if line["kind"] == "step") for run in runs]
        assert first[0]["reward"] == first[1]["reward"]
    found = results(finished)
    assert {entry["what"] for entry in found.mixed} <= {"revision", "diff"}
    assert [row.against for row in found.rows] == ["", "none"]
    (gap,) = [row.gap for row in found.rows if row.gap is not None]
    assert (gap.metric, gap.unit, gap.counted) == ("eval_reward", "reward", "seeds")


def test_second_start_does_nothing_and_lost_scores_come_back_the_same(
    copied: Path, inline: None
) -> None:
    before = lasting(copied)
    _, started = run_agents(copied)
    assert started == []
    scores = copied / "runs/none-s1/scores.jsonl"
    lines = scores.read_bytes().splitlines(keepends=True)
    scores.write_bytes(b"".join(lines[:-17]) + lines[-17][:40])  # in the midst of a line
    _, started = run_agents(copied)
    assert started == ["none-s1"]
    assert lasting(copied) == before


@pytest.mark.slow
def test_killed_once_it_ends_with_the_same_bytes(finished: Path, tmp_path: Path) -> None:
    kill_and_go_on(finished, tmp_path / "killed", kills=1, run=run_agents)


def test_report_and_terminal_speak_of_rewards_in_both_languages(copied: Path) -> None:
    never = {"en": ("accurac", " shot", "demonstration"), "zh": ("准确率", "范例", "应答模型")}
    said = {"en": ("2 sampled passes", "Reward against"), "zh": ("采样 2 遍", "奖励与偏离")}
    for language in ("en", "zh"):
        text = markdown_of(short_page(study_material(results(copied), language)))
        shown = CliRunner().invoke(app, ["report", str(copied), "--terminal", "--lang", language])
        assert shown.exit_code == 0
        for words in said[language]:
            assert words in text
        wrong = [
            line
            for line in (text + shown.output).replace("demonstrations.csv", "").splitlines()
            if any(word in line for word in never[language])
        ]
        assert wrong == []


def test_dry_run_counts_what_is_played(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inline: None
) -> None:
    changes: dict[str, Any] = {"grpo": {"epochs": 2}, "measure": {"items": [5, 10]}}
    changes["base"] = {"validation": {"tasks": 50}}  # there are 20
    plan = estimate(tmp_path / "study", agents(**changes))
    # Each base: dialogues, 30 played after its epoch, 10 tasks greedy and twice on the test.
    base = 200 + 30 + 30
    # Each run and epoch: groups, KL's probe, 30 tasks, 40 transcripts, 20 on validation.
    run = 2 * (2 * 4 * 4 + 20 + 30 + 40 + 20) + 30
    assert plan["episodes"] == 2 * base + 4 * run
    assert "study.jobs_agents" in dict(plan["facts"])

    played: list[object] = []

    def counted(call: Any) -> Any:
        def play(*given: Any) -> Any:
            played.append(call)
            return call(*given)

        return play

    monkeypatch.setattr(AgentWorld, "play_one", counted(AgentWorld.play_one))
    dialogue = "kleash.train.agent.example_dialogue"
    monkeypatch.setattr(dialogue, counted(example_dialogue))
    ran, _ = run_agents(tmp_path / "study", **changes)
    assert not ran.failures
    assert len(played) == plan["episodes"]


def test_base_is_the_same_whatever_only_grpo_reads() -> None:
    plain = base_given(agents(), 0)
    more = {"batch": 3, "steps": 9, "group": 2, "collapse": "stop", "part_tokens": 64, "lr": 1.0}
    more["sampler"] = {"cap": 2.0, "staleness": 1}
    assert base_given(agents(base=more | {"credit": {"turn": "em"}}), 0) == plain
    for read in ({"temperature": 0.7}, {"turn_tokens": 9}, {"validation": {"tasks": 30}}):
        assert base_given(agents(base=read), 0) != plain


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"measure": {"baselines": ["random"]}}, "chooses demonstrations, and an agent is shown"),
        ({"compare": {"metric": "accuracy"}}, "an agent is judged by 'eval_reward'"),
        ({"arms": {"wide": {"tiny": {"width": 64}}}}, "arm 'wide' sets its own tiny"),
        ({"arms": {"other": {"gym": {"limit": 9}}}}, "arm 'other' sets its own gym"),
        ({"measure": {"shots": [-1]}}, "measure.shots"),
    ],
)
def test_what_does_not_fit_an_agent_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(KleashError, match=said):
        arms_of(agents(**changes))


def test_more_tasks_than_there_are_is_refused(tmp_path: Path) -> None:
    with pytest.raises(KleashError, match="items of 'test' were asked for and intention has"):
        run_study(Asked(agents(measure={"items": [10**6]}), tmp_path / "big"))


@pytest.mark.parametrize("name", [name for name in bundled() if name.startswith("intention")])
def test_bundled_study_can_be_planned(name: str, tmp_path: Path) -> None:
    file = read_study(name)
    arms = arms_of(file)
    assert file.of_agents
    assert file.compare.margin == 0.05
    assert set(overview(tmp_path, file, arms).counts()) == {"missing"}
    json.dumps(file.model_dump(mode="json"))
