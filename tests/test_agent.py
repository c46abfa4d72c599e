"""An agent's run: groups that are played, credit, validation, resume, broken users."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from agent_tools import SHORT, Agents, Cut, bytes_of, cut_after, steps_of
from kleash.algo.policy import Reference
from kleash.errors import ConfigError, GuardError
from kleash.models.engine import Said, Talk
from kleash.models.engine.own import OwnEngine
from kleash.models.engine.paged import ON_CPU, PagedEngine
from kleash.models.engine.pages import PAGE
from kleash.runs.ledger import Ledger
from kleash.runs.run import Run
from kleash.tasks.envs.contract import EndpointDown, EpisodeBroken, Step
from kleash.tasks.envs.line import Line, LineOptions
from kleash.tasks.envs.surfaces import TokenSurface
from kleash.train.evaluate import Wanted, evaluate
from kleash.train.optimizer import Optimizer
from kleash.train.rollout.agent import AgentWorld, Attempt, make_groups, measured, play_groups
from kleash.train.training import train
from kleash.train.update import LeashedPolicy
from kleash.types import Episode, Heard, Turn

SMALL = Agents(SHORT)
agent, asked, trained = SMALL.recipe, SMALL.asked, SMALL.trained

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, ledger: Ledger, one_thread: None) -> Run:
    """A run that nobody disturbed."""
    return trained(tmp_path_factory.mktemp("agents") / "whole", ledger)


# --- groups


@pytest.mark.parametrize("temperature", [1.0, 0.6])
def test_every_episode_of_every_task_is_in_its_group(ledger: Ledger, temperature: float) -> None:
    world = AgentWorld(agent(f"temperature={temperature}"), ledger)
    policy = world.fresh_policy()
    tasks = world.tasks("train")[:3]
    engine = world.engine(policy)
    groups = play_groups(engine, policy, world, tasks, ("grpo", 1, 0))
    assert isinstance(engine, OwnEngine) and not engine._rows  # what is over is forgotten
    assert groups.size == 3
    assert groups.group.tolist() == [0] * 4 + [1] * 4 + [2] * 4
    said = [tuple(groups.batch.chosen[groups.episode == each].tolist()) for each in range(12)]
    assert len(set(said)) == 12  # members of a group have draws of their own
    assert groups.logp is not None
    torch.testing.assert_close(groups.logp, policy.judge(groups.batch).logp, atol=1e-4, rtol=0)


def test_the_same_draw_gives_the_same_episodes_whoever_plays_beside_them(ledger: Ledger) -> None:
    world = AgentWorld(agent(), ledger)
    policy = world.fresh_policy()
    tasks = world.tasks("train")[:3]
    together = play_groups(world.engine(policy), policy, world, tasks, ("grpo", 1, 0))
    alone = play_groups(world.engine(policy), policy, world, tasks[1:2], ("grpo", 1, 0))
    chosen = together.batch.chosen[(together.group == 1)[together.episode]]
    assert chosen.tolist() == alone.batch.chosen.tolist()
    other = play_groups(world.engine(policy), policy, world, tasks[1:2], ("grpo", 1, 1))
    assert other.batch.chosen.tolist() != alone.batch.chosen.tolist()


def test_the_first_tasks_of_a_split_are_drawn_once_for_all(ledger: Ledger) -> None:
    one = AgentWorld(agent("seed=0"), ledger)
    other = one.with_recipe(agent("seed=1"))
    listed = [task.id for task in one.gym.tasks("train")]
    assert one.item_ids("train") == other.item_ids("train") != listed
    assert sorted(one.item_ids("train")) == sorted(listed)


def episode(*rewards: float) -> Episode:
    turns = tuple(Turn((0, 1), (2, 3), (-1.0, -1.0)) for _ in rewards)
    return Episode("t", turns, sum(rewards), rewards=rewards, facts={"reward_over_ceiling": 0.5})


def test_credit_reaches_every_token_of_its_turn(ledger: Ledger) -> None:
    policy = AgentWorld(agent(), ledger).fresh_policy()
    members = [[episode(1.0, 0.0), episode(0.0, 0.5)]]
    to_go = make_groups(policy, agent("credit.turn=reward_to_go", "credit.gamma=0.5"), members)
    assert to_go.reward.tolist() == [1.0, 0.5]
    assert to_go.credit is not None
    assert to_go.credit.tolist() == [1, 1, 0, 0, 0.25, 0.25, 0.5, 0.5]
    own = make_groups(policy, agent("credit.turn=turn_baseline", "credit.gamma=0.5"), members).own
    assert own is not None  # leave one out: each turn's own less the other episode's same turn
    assert own.tolist() == [0.75, 0.75, -0.5, -0.5, -0.75, -0.75, 0.5, 0.5]


@pytest.mark.parametrize("advantage", ["leave_one_out", "centre", "standardise"])
def test_with_a_baseline_by_turn_earning_more_never_lowers_a_turn(
    ledger: Ledger, advantage: str
) -> None:
    policy = AgentWorld(agent(), ledger).fresh_policy()
    recipe = agent("credit.turn=turn_baseline", f"advantage={advantage}")
    rng = torch.Generator().manual_seed(0)
    for _ in range(20):
        rewards = torch.rand(4, 3, generator=rng).tolist()
        more = [list(row) for row in rewards]
        more[0][1] += 0.3
        before, after = (
            make_groups(policy, recipe, [[episode(*row) for row in each]]).own
            for each in (rewards, more)
        )
        assert before is not None and after is not None
        assert (after[:4] >= before[:4] - 1e-6).all()  # both tokens of its turns 0 and 1


def test_a_broken_episode_is_in_no_group_and_a_group_of_one_is_dropped(ledger: Ledger) -> None:
    policy = AgentWorld(agent(), ledger).fresh_policy()
    broken = Episode("t", (), None, "broken", "cut connection")
    members = [[episode(1.0), episode(0.5), broken], [episode(1.0), broken, broken]]
    groups = make_groups(policy, agent(), members)
    assert (groups.size, groups.broken, groups.dropped) == (1, 3, 1)
    with pytest.raises(Exception, match="cut connection"):
        make_groups(policy, agent(), [[broken, broken]])


def test_what_is_logged_of_groups_by_hand() -> None:
    dead = [episode(0.5), episode(0.5)]
    done = [replace(episode(1.0), facts={"reward_over_ceiling": 1.0})] * 2
    live = [
        replace(episode(1.0), stop_reason="length"),
        replace(episode(0.0, 0.5), stop_reason="malformed"),
    ]
    found = measured([dead, done, live])
    assert found["dead_groups"] == pytest.approx(1 / 3)  # all alike; at the top is no dead end
    assert found["episode/cut"] == pytest.approx(2 / 6)
    assert found["episode/reward"] == pytest.approx((0.5 + 0.5 + 1 + 1 + 1 + 0.5) / 6)
    assert found["episode/reward_over_ceiling"] == pytest.approx((4 * 0.5 + 2 * 1.0) / 6)
    assert found["response_length"] == pytest.approx(7 * 2 / 6)  # 7 turns of 2 ids, 2 heard
    assert found["sequence_length"] == pytest.approx(7 * 4 / 6) and found["tokens"] == 28


def test_a_conversation_ends_where_the_model_has_no_room_for_another_turn(
    ledger: Ledger, monkeypatch: Any
) -> None:
    world = AgentWorld(agent("gym.limit=16", "turn_tokens=6"), ledger)
    task = world.tasks("train")[0]
    missing = {detail.id for detail in task.missing_details}
    assert isinstance(world.gym.surface, TokenSurface)
    known = next(slot for slot in world.gym.surface.slots if slot not in missing)

    class Asks:
        """An engine that asks for what nobody misses."""

        def talk(self, key: Any, **how: Any) -> Talk:
            return Talk(key, most=how["most"])

        async def say(self, talk: Talk, heard: Sequence[int]) -> Said:
            ids = tuple(world.speech.ids(f"ASK {known} ;"))
            return Said(ids, (0.0,) * len(ids), stopped=True)

        def forget(self, talk: Talk) -> None: ...

    def played() -> Episode:
        (found,) = world.play(Asks(), [Attempt(task, 0, 0, None)])  # type: ignore[list-item]
        return found

    whole = played()
    monkeypatch.setattr("kleash.train.rollout.agent.CONTEXT", 40)
    short = played()
    ids = sum(len(turn.observation) + len(turn.choices) for turn in short.turns)
    assert whole.stop_reason == "limit" and short.stop_reason == "length"
    assert 1 < len(short.turns) < 16 and ids <= 40
    assert short.turns == whole.turns[: len(short.turns)]
    assert len(short.rewards) == len(short.turns)
    monkeypatch.setattr("kleash.train.rollout.agent.CONTEXT", 12)
    with pytest.raises(ConfigError, match=r"room for 12 ids.*lower turn_tokens"):
        played()


def test_as_many_places_are_kept_as_the_recipe_says(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kleash.models.engine.decoder.fits", lambda model: True)  # as on a GPU
    counts = {}
    for places in (0, 5 * PAGE):
        world = AgentWorld(agent(f"scale.places={places}"), ledger)
        engine = world.engine(world.fresh_policy())
        assert isinstance(engine, PagedEngine)
        found = world.play(engine, [Attempt(world.tasks("train")[0], 0, 0, None)])
        assert found[0].reward is not None
        counts[places] = engine.decoder.pages.count
    assert counts == {0: ON_CPU // PAGE, 5 * PAGE: 5}


# --- the loss


@pytest.mark.parametrize("form", ["none", "k3", "return_to_go", "exact", "reward_k1"])
def test_parts_of_any_size_give_the_same_update(ledger: Ledger, form: str) -> None:
    weights, records = [], []
    for tokens in (10**6, 40):
        recipe = agent(f"leash.form={form}", f"part_tokens={tokens}", "entropy_bonus=0.01")
        world = AgentWorld(recipe, ledger)
        policy = world.fresh_policy().double()
        optimizer = Optimizer(policy, 1e-3, 1.0, str)
        held = LeashedPolicy(recipe, policy, Reference(policy), optimizer, 10)
        held.split = partial(policy.parts, tokens=tokens)
        for step in range(2):  # in the second one KL and ratios are at work
            engine = world.engine(policy)
            groups = play_groups(engine, policy, world, world.tasks("train")[:3], ("a", step))
            if tokens == 40:
                assert len(held.split(groups.batch)) > 1
            records.append(held.update_on_batch(groups)[0])
        weights.append(torch.cat([p.detach().flatten() for p in policy.parameters()]))
    torch.testing.assert_close(weights[0], weights[1], rtol=1e-6, atol=1e-9)
    for name, value in records[1].items():
        assert records[3][name] == pytest.approx(value, rel=1e-6, abs=1e-9), name


def test_an_adapter_may_move_too_little_to_be_seen_in_its_first_update(ledger: Ledger) -> None:
    recipe = agent("lora.rank=4", "leash.reference=adapter_off", "leash.form=k3", "lr=1e-6")
    world = AgentWorld(recipe, ledger)
    policy = world.fresh_policy()
    start = {name: tensor.clone() for name, tensor in policy.state_dict().items()}
    optimizer = Optimizer(policy, recipe.lr, 1.0, str)
    leashed = LeashedPolicy(recipe, policy, Reference(policy, "adapter_off"), optimizer, 2)
    leashed.split = lambda batch: policy.parts(batch, 4096)
    engine, tasks = world.engine(policy), world.tasks("train")[:2]
    for step in range(2):
        groups = play_groups(engine, policy, world, tasks, ("grpo", 1, step))
        reward = torch.arange(len(groups.reward), dtype=torch.float32)
        leashed.update_on_batch(replace(groups, reward=reward))  # or its guard says so
        engine.refresh(policy)
        still = {n for n, t in policy.state_dict().items() if torch.equal(t, start[n])}
        assert still == ({name for name in start if ".lora_A." in name} if step == 0 else set())


@pytest.mark.parametrize("keys", [(), ("lora.rank=2",), ("schedule=cosine",)])
def test_what_cannot_move_is_seen_at_the_first_update_with_signal(
    ledger: Ledger, keys: tuple[str, ...]
) -> None:
    recipe = agent(*keys)
    world = AgentWorld(recipe, ledger)
    policy = world.fresh_policy()
    optimizer = Optimizer(policy, recipe.lr, 1.0, str)
    leashed = LeashedPolicy(recipe, policy, Reference(policy), optimizer, 8)
    leashed.split = lambda batch: policy.parts(batch, 4096)
    engine, tasks = world.engine(policy), world.tasks("train")[:2]
    stuck = [p for p in policy.parameters() if p.requires_grad][-1]
    stuck.register_hook(torch.zeros_like)
    optimizer.adamw.param_groups[0]["weight_decay"] = 0.0

    def learn(step: int, rewards: int) -> None:
        engine.refresh(policy)
        groups = play_groups(engine, policy, world, tasks, ("grpo", 1, step))
        reward = torch.arange(len(groups.reward), dtype=torch.float32) % rewards
        leashed.update_on_batch(replace(groups, reward=reward, credit=None, own=None))

    for step in range(3):
        learn(step, rewards=1)  # all alike: no signal, and nothing is said
    with pytest.raises(GuardError, match="did not move"):
        for step in range(3, 5):  # of an adapter half can move at first
            learn(step, rewards=4)


# --- a run


def test_a_run_validates_measures_and_is_the_same_twice(
    tmp_path: Path, ledger: Ledger, whole: Run
) -> None:
    again = trained(tmp_path / "again", ledger)
    assert bytes_of(again) == bytes_of(whole)
    epochs = [line for line in again.metrics() if line["kind"] == "epoch"]
    assert [line["phase"] for line in epochs] == ["supervised", "grpo", "grpo"]
    last = epochs[-1]
    assert last["validation/n"] == 12 and last["validation/broken"] == 0
    assert last["overfit"] == pytest.approx(
        last["training_tasks/reward"] - last["validation/reward"]
    )
    assert last["probe/kl/ref/exact/episode/mean"] > 0
    assert "probe/kl/ref/exact/turn/0/mean" in last
    codes = [line["code"] for line in again.metrics() if line["kind"] == "finding"]
    assert "few-tasks" in codes


def test_evaluating_plays_what_is_asked_for_and_no_more(
    tmp_path: Path, ledger: Ledger, whole: Run, monkeypatch: Any
) -> None:
    world = AgentWorld(agent(), ledger)
    played: list[str] = []
    play_one = AgentWorld.play_one

    async def counted(self: AgentWorld, engine: Any, one: Attempt) -> Episode | None:
        played.append(one.task.id)
        return await play_one(self, engine, one)

    monkeypatch.setattr(AgentWorld, "play_one", counted)
    run = Run.open(Path(shutil.copytree(whole.path, tmp_path / "run")))
    evaluate(run, world, Wanted(["epoch-2"], [0], "test", 5))
    assert played == world.item_ids("test")[:5]
    few = (run.path / "scores.jsonl").read_bytes()
    evaluate(run, world, Wanted(["epoch-2"], [0], "test", 5))
    assert len(played) == 5
    lines = few.splitlines(keepends=True)
    (run.path / "scores.jsonl").write_bytes(b"".join(lines[:2]) + lines[2][:9])  # killed here
    evaluate(run, world, Wanted(["epoch-2"], [0], "test", 5))
    assert (run.path / "scores.jsonl").read_bytes() == few
    evaluate(run, world, Wanted(["epoch-2"], [0], "test", 20))
    assert (run.path / "scores.jsonl").read_bytes().startswith(few)


def test_a_run_in_a_notebook_is_the_same_run(tmp_path: Path, ledger: Ledger, whole: Run) -> None:
    async def cell() -> Run:  # a notebook's cells run in its event loop
        run = trained(tmp_path / "run", ledger)
        evaluate(run, AgentWorld(agent(), ledger), Wanted(["epoch-2"], [1], "test", 2))
        return run

    run = asyncio.run(cell())
    scores = (run.path / "scores.jsonl").read_text(encoding="utf-8").splitlines()
    (run.path / "scores.jsonl").unlink()
    assert bytes_of(run) == bytes_of(whole) and len(scores) == 2
    ahead = ("sampler.cap=2", "sampler.staleness=1")
    plain = trained(tmp_path / "plain", ledger, *ahead)

    async def again() -> Run:
        return trained(tmp_path / "ahead", ledger, *ahead)

    assert bytes_of(asyncio.run(again())) == bytes_of(plain)


def test_what_breaks_in_a_notebook_is_told_there_and_the_world_goes_on(ledger: Ledger) -> None:
    world = AgentWorld(agent(), ledger)
    policy = world.fresh_policy()
    asked = [Attempt(task, 0, 0, None) for task in world.tasks("test")[:3]]

    async def interrupted() -> list[Episode]:
        engine = world.engine(policy)
        signal.signal(signal.SIGINT, signal.default_int_handler)  # as a notebook has it
        told = iter([True])
        world.progress = lambda count: next(told, False) and os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            world.play(engine, asked * 200)
        return world.play(engine, asked)

    alone = world.play(world.engine(policy), asked)
    assert asyncio.run(interrupted()) == alone


@pytest.mark.parametrize("at", ["supervised", "step 1", "step 3"])
def test_stopped_in_the_middle_of_a_step_it_goes_on_bit_exactly(
    tmp_path: Path, ledger: Ledger, at: str, monkeypatch: pytest.MonkeyPatch, whole: Run
) -> None:
    with monkeypatch.context() as patch:
        cut_after(patch, {"supervised": 0, "step 1": 5, "step 3": 29}[at])
        with pytest.raises(Cut):
            trained(tmp_path / "cut", ledger)
    assert bytes_of(trained(tmp_path / "cut", ledger)) == bytes_of(whole)


def test_arms_that_share_a_seed_share_tasks_and_draws(tmp_path: Path, ledger: Ledger) -> None:
    firsts = []
    for form in ("none", "k3"):
        run = trained(tmp_path / form, ledger, f"leash.form={form}", "leash.coefficient=0.5")
        firsts.append({k: v for k, v in steps_of(run)[0].items() if k.startswith("episode/")})
    assert firsts[0] == firsts[1]  # before the first update both are the same policy


def test_collapse_ends_a_run_that_was_told_to_stop(
    tmp_path: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kleash.algo.guard import Finding
    from kleash.train.agent import Collapse

    def signs(self: Collapse) -> list[Finding]:
        return [Finding("collapse", "warning", "signs of collapse")] if self.epochs else []

    monkeypatch.setattr(Collapse, "signs", signs)
    assert "epoch-2" in trained(tmp_path / "warn", ledger).checkpoints()
    stopped = trained(tmp_path / "stop", ledger, "collapse=stop")
    assert "epoch-2" not in stopped.checkpoints() and "epoch-1" in stopped.checkpoints()
    assert [line["code"] for line in stopped.metrics() if line["kind"] == "finding"].count(
        "collapse"
    ) == 1


# --- users that fail


class Asker:
    """An engine that asks for one slot after the other, whoever listens."""

    name = "asker"

    def __init__(self, world: AgentWorld) -> None:
        surface = world.gym.surface
        assert isinstance(surface, TokenSurface)
        self.turns = [world.speech.ids(f"ASK {slot} ;") for slot in surface.slots]

    def talk(self, key: tuple[object, ...] | None, **given: Any) -> Talk:
        return Talk(key)

    async def say(self, talk: Talk, heard: Sequence[int]) -> Said:
        ids = self.turns[talk.turns]
        talk.turns += 1
        return Said(tuple(ids), (-1.0,) * len(ids), stopped=True)

    def forget(self, talk: Talk) -> None:
        pass

    def refresh(self, policy: Any) -> None:
        pass


class Flaky:
    """The real environment behind a line that breaks or is down at first."""

    def __init__(self, env: Any, fail: list[Exception]) -> None:
        self.env, self.fail = env, fail

    def __getattr__(self, name: str) -> Any:
        return getattr(self.env, name)

    async def step(self, text: str) -> Step:
        if self.fail:
            raise self.fail.pop()
        found: Step = await self.env.step(text)
        return found


class Back(Line):
    """An endpoint that is down, and back at the second look."""

    def __init__(self) -> None:
        super().__init__(LineOptions())
        self._down, self.looks = "refused", 0

    async def back(self) -> bool:
        self.looks += 1
        return self.looks > 1


def test_what_breaks_is_no_reward_and_a_dead_endpoint_is_waited_for(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = AgentWorld(agent(), ledger)
    told: list[str] = []
    world.notice = told.append
    tasks = world.tasks("train")[:3]
    wanted = [Attempt(task, 0, 0, (0, task.id)) for task in tasks]
    calm = world.play(Asker(world), wanted)
    real, faults = world.gym.make, [[], [EpisodeBroken("cut")], [EndpointDown("refused")]]
    by_task = {task.id: fault for task, fault in zip(tasks, faults, strict=True)}

    def make(task: Any, *, seed: int, rollout: int) -> Any:
        with monkeypatch.context() as patch:  # the user is still the rule
            patch.setattr(world.gym, "endpoint", None)
            return Flaky(real(task, seed=seed, rollout=rollout), by_task[task.id])

    monkeypatch.setattr(world.gym, "make", make)
    monkeypatch.setattr(world.gym, "endpoint", Back())
    monkeypatch.setattr("kleash.train.rollout.agent.WAIT", 0.01)
    found = world.play(Asker(world), wanted)
    assert found[0] == calm[0] and found[2] == calm[2]
    assert found[1].reward is None and found[1].error == "cut"
    assert len(told) == 2 and "1 episodes wait" in told[0] and "back" in told[1]


def test_episodes_go_on_while_a_user_thinks(ledger: Ledger, monkeypatch: Any) -> None:
    world = AgentWorld(agent(), ledger)
    tasks = world.tasks("train")[:2]
    real, order, over = world.gym.make, [], asyncio.Event()

    class Slow(Flaky):
        async def step(self, text: str) -> Step:
            await asyncio.wait_for(over.wait(), 300)  # in vain where one waits for the other
            order.append("slow")
            return await super().step(text)

    class Quick(Flaky):
        async def step(self, text: str) -> Step:
            order.append("quick")
            found = await super().step(text)
            if found.done:
                over.set()
            return found

    def make(task: Any, *, seed: int, rollout: int) -> Any:
        kind = Slow if task is tasks[0] else Quick
        return kind(real(task, seed=seed, rollout=rollout), [])

    monkeypatch.setattr(world.gym, "make", make)
    world.play(Asker(world), [Attempt(task, 0, 0, (0, task.id)) for task in tasks])
    assert order.index("slow") == order.count("quick")  # the quick one was over by then


def test_a_turn_that_is_cut_counts_as_one_that_cannot_be_read(ledger: Ledger) -> None:
    class Endless(Asker):
        async def say(self, talk: Talk, heard: Sequence[int]) -> Said:
            whole = await super().say(talk, heard)
            return Said(whole.ids, whole.logp, stopped=talk.turns < 2)

    world = AgentWorld(agent(), ledger)
    (found,) = world.play(Endless(world), [Attempt(world.tasks("train")[0], 0, 0, None)])
    assert found.stop_reason == "length" and len(found.turns) == len(found.rewards) == 2
    assert found.facts["turns"] == 2 and found.facts["valid_actions"] == 0.5


# --- recipes


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("gym.surface=text", "surface=tokens"),
        ("gym.nonsense=1", "nonsense"),
        ("env=chess", "no environment 'chess'"),
        ("leash.reference=adapter_off", "lora.rank"),
        ("phase=grpo", "from=RUN"),
    ],
)
def test_what_cannot_be_run_is_refused_in_one_line(key: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        agent(key)


def test_a_listener_hears_every_step_and_how_fast_it_was(
    tmp_path: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kleash.train.agent.peak", lambda device: 1e9)
    heard: list[Heard] = []
    recipe = agent()
    train(tmp_path / "run", recipe, asked(), AgentWorld(recipe, ledger), listen=heard.append)
    assert sum(each.record["kind"] == "step" for each in heard) == 4
    last = heard[-1].record
    assert last["rollout_tokens_per_second"] > 0
    assert 0 < last["rollout_share"] + last["update_share"] <= 1
    for phase in ("rollout", "update", "step"):
        assert 0 < last[f"speed/mfu/{phase}/causal"] < last[f"speed/mfu/{phase}/usual"]
    # Playing is one pass; learning is three, and the reference's.
    played, learnt = (
        last[f"speed/mfu/{phase}/usual"] * last[f"{phase}_seconds"]
        for phase in ("rollout", "update")
    )
    assert learnt == pytest.approx(4 * played)
