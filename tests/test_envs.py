"""Every environment keeps the contract: played well, played badly, played again, looked into."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kleash.config import parse_overrides
from kleash.errors import ConfigError, DataError
from kleash.runs.run import append_line
from kleash.tasks.envs import ENVS, gym, options_of
from kleash.tasks.envs.contract import STOP_REASONS, at_once
from kleash.tasks.envs.function import Hidden, is_near
from kleash.tasks.envs.intention import kleash, userrl
from kleash.tasks.envs.intents import SCHEMA, load_tasks, task_from
from kleash.tasks.envs.surfaces import (
    TOOL,
    TextSurface,
    TokenSurface,
    json_values,
    without_thoughts,
)
from kleash.tasks.envs.world import World, importances, meaning, texts, vocabulary, world_tasks
from kleash.train.recipe import recipe_from
from pace import cpu_within

FIXTURES = Path(__file__).parent / "fixtures/envs"
SMALL = {"train": 60, "validation": 60, "test": 60}
OPTIONS = {
    "intention": {"world": SMALL},
    "tokens": {"surface": "tokens", "limit": 7, "world": SMALL},
    "function": SMALL,
    "telepathy": {},
}
GYMS = {
    name: gym("intention" if name == "tokens" else name, options)
    for name, options in OPTIONS.items()
}


def play(env, texts):
    """The observations and steps of a game, until it is done."""
    steps = [env.start()]
    for text in texts:
        step = at_once(env.step(text))
        steps.append(step)
        if step.done:
            break
    return steps


def total(steps):
    return sum(step.reward for step in steps[1:])


# --- best games, one for each environment


def best_intention(task, env):
    return [f"[action] {detail.description}?" for detail in task.missing_details]


def best_tokens(task, env):
    return [f"ASK {detail.id} ;" for detail in task.missing_details]


def best_function(task, env):
    return ["[action] 20 -31 42 53", f"[answer] {task.value(task.place)}"]


def best_telepathy(task, env):
    """Ask for what halves the candidates, believe the user, and name the one that is left."""
    world = json.loads((Path("src/kleash/tasks/envs/telepathy.json")).read_text())
    left = dict(world["entities"])
    while len(left) > 1:
        halves = {a: sum(a in has for has in left.values()) for a in world["attributes"]}
        ask = min(halves, key=lambda a: abs(halves[a] - len(left) / 2))
        answer = yield f"[action] {world['attributes'][ask]['question']}"
        left = {name: has for name, has in left.items() if (ask in has) == (answer == "Yes.")}
    yield f"[answer] {next(iter(left), 'nothing')}"


BEST = {
    "intention": best_intention,
    "tokens": best_tokens,
    "function": best_function,
    "telepathy": best_telepathy,
}


def play_best(name, task):
    made = GYMS[name].make(task, seed=0, rollout=0)
    plan = BEST[name](task, made)
    if isinstance(plan, list):
        return play(made, plan)
    steps, answer = [made.start()], None
    while not steps[1:] or not steps[-1].done:
        step = at_once(made.step(plan.send(answer)))
        steps.append(step)
        answer = step.observation
    return steps


def test_every_environment_has_a_best_game():
    assert set(ENVS) <= set(BEST)


@pytest.mark.parametrize("name", ["tokens", "function", "telepathy"])
def test_a_best_game_earns_the_ceiling(name):
    for task in GYMS[name].tasks("train"):
        steps = play_best(name, task)
        ceiling = task.ceiling if name == "tokens" else 1.0
        assert total(steps) == pytest.approx(ceiling), task
        assert steps[-1].stop_reason in ("covered", "finished")


def test_saying_each_description_to_the_rule_user_earns_nearly_the_ceiling():
    tasks = GYMS["intention"].tasks("train")
    shares = [total(play_best("intention", task)) / task.ceiling for task in tasks]
    assert np.mean(shares) > 0.95


# --- the rules that all share


@pytest.mark.parametrize("name", GYMS)
def test_an_environment_is_played_once(name):
    made = GYMS[name].make(GYMS[name].tasks("train")[0], seed=0, rollout=0)
    with pytest.raises(RuntimeError, match="new"):
        at_once(made.step("[finish]"))
    made.start()
    with pytest.raises(RuntimeError, match="once"):
        made.start()
    play_on = [at_once(made.step("?")) for _ in range(3)]
    assert play_on[-1].stop_reason == "malformed"
    with pytest.raises(RuntimeError, match="over"):
        at_once(made.step("?"))


@pytest.mark.parametrize("name", GYMS)
def test_unreadable_turns_earn_nothing_and_end_the_episode_at_the_third_in_a_row(name):
    steps = play(GYMS[name].make(GYMS[name].tasks("train")[0], seed=0, rollout=0), ["x"] * 9)
    assert len(steps) == 4
    assert total(steps) == 0
    assert steps[-1].stop_reason == "malformed"


@pytest.mark.parametrize(
    ("name", "idle"),
    [
        ("intention", "[action] Are penguins blue?"),
        ("function", "[action] none"),
        ("telepathy", "[action] Quux?"),
    ],
)
def test_useless_turns_end_at_the_limit_and_break_a_row_of_unreadable_ones(name, idle):
    made = GYMS[name].make(GYMS[name].tasks("train")[0], seed=0, rollout=0)
    steps = play(made, ["x", "x", idle] * 20)
    assert len(steps) - 1 == made.limit
    assert steps[-1].stop_reason == "limit"
    assert total(steps) == 0
    assert made.metrics()["valid_actions"] == pytest.approx((made.limit // 3) / made.limit)


@pytest.mark.parametrize("name", GYMS)
def test_splits_share_no_task_and_ids_say_nothing(name):
    splits = [GYMS[name].tasks(split) for split in ("train", "validation", "test")]
    ids = [task.id for tasks in splits for task in tasks]
    assert len(ids) == len(set(ids))
    assert all(splits)


@pytest.mark.parametrize("name", GYMS)
def test_observations_are_those_of_the_seed_task_and_rollout(name):
    task = GYMS[name].tasks("test")[3]
    asked = [
        "[action] Which budget, when, and where?",
        "ASK budget date place ;",
        "[action] 1 2 3 4",
    ]
    games = [
        play(GYMS[name].make(task, seed=seed, rollout=rollout), asked)
        for seed, rollout in [(0, 0), (0, 0)]
    ]
    assert games[0] == games[1]


def test_replies_differ_between_rollouts_and_rewards_do_not():
    task = GYMS["intention"].tasks("test")[0]
    games = [
        play(GYMS["intention"].make(task, seed=0, rollout=k), ["[action] Are penguins blue?"] * 8)
        for k in range(4)
    ]
    assert len({tuple(step.observation for step in game[1:]) for game in games}) > 1
    assert {total(game) for game in games} == {0}


SCRIPT = """
import hashlib, json
from kleash.tasks.envs import gym
from kleash.tasks.envs.contract import at_once
heard = []
for name, options in {options!r}.items():
    made = gym("intention" if name == "tokens" else name, options)
    heard.append(made.content)
    for task in made.tasks("validation")[:15]:
        env = made.make(task, seed=3, rollout=1)
        heard.append(env.start())
        for text in ["[action] What is the budget, and where?", "ASK budget place ;",
                     "[action] 1 2 3 4", "[action] Is it an animal?", "[answer] 3 owl", "STOP ;"]:
            step = at_once(env.step(text))
            heard.append([step.observation, step.reward, step.stop_reason])
            if step.done:
                break
        heard.append(env.metrics())
print(hashlib.sha256(json.dumps(heard).encode()).hexdigest())
"""


def test_two_processes_play_the_same_bytes(monkeypatch):
    said = set()
    for salt in ("1", "2"):
        monkeypatch.setenv("PYTHONHASHSEED", salt)
        code = SCRIPT.format(options=OPTIONS)
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=600, check=True
        )
        said.add(done.stdout)
    assert len(said) == 1


def test_golden_episodes():
    """What a policy saw and earned stays what it was: results of older runs stay comparable."""
    for golden in json.loads((FIXTURES / "golden.json").read_text(encoding="utf-8")):
        made = GYMS[golden["gym"]]
        task = next(task for task in made.tasks(golden["split"]) if task.id == golden["task"])
        env = made.make(task, seed=golden["seed"], rollout=golden["rollout"])
        steps = play(env, golden["said"])
        heard = [[s.observation, s.reward, s.stop_reason] for s in steps[1:]]
        assert [steps[0], *heard] == golden["heard"], golden["task"]
        assert env.metrics() == pytest.approx(golden["metrics"])


def test_an_unknown_environment_or_option_is_named():
    with pytest.raises(ConfigError, match="no environment 'travel': there is intention, function"):
        gym("travel")
    with pytest.raises(ConfigError, match=r"did you mean 'gym\.limit'"):
        gym("function", {"limits": 3})
    with pytest.raises(ConfigError, match="surface 'tokens'"):
        gym("intention", {"surface": "tokens", "tasks": str(FIXTURES / "records.jsonl")})
    with pytest.raises(ConfigError, match="needs a ledger"):
        gym("intention", {"user": "chat", "world": SMALL})
    with pytest.raises(ConfigError, match="no tasks of the split 'exam'"):
        GYMS["intention"].tasks("exam")


def test_content_changes_with_what_a_policy_sees_or_earns():
    same = gym("intention", {"world": SMALL})
    dearer = gym("intention", {"world": SMALL, "reward": "kleash"})
    other = gym("intention", {"world": SMALL | {"seed": 1}})
    assert GYMS["intention"].content == same.content
    assert len({same.content, dearer.content, other.content}) == 3


def test_options_have_sentences():
    from kleash.config import help_lines

    for name in ENVS:
        for key, _, sentence in help_lines(options_of(name)):
            assert sentence, (name, key)


OWN_GYM = """
from kleash.tasks.envs.function import FunctionOptions, Functions


class Doubled(Functions):
    def __init__(self, rounds: int, kind: str = "plain"):
        super().__init__(options=FunctionOptions(limit=2 * rounds, train=2, validation=2, test=2))
        self.kind = kind
"""


def test_a_class_of_ones_own_is_a_gym_and_its_arguments_are_options(tmp_path, monkeypatch):
    (tmp_path / "gyms_of_mine.py").write_text(OWN_GYM, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    name = "gyms_of_mine:Doubled"
    made = gym(name, {"rounds": 3})
    assert (made.options.limit, made.kind) == (6, "plain")
    assert len(made.tasks("train")) == 2
    builtin = gym(
        "kleash.tasks.envs.function:Functions", {"limit": 9}
    )  # one with a config for options
    assert builtin.options.limit == 9
    for keys, said in (
        (["gym.round=3"], "unknown key 'gym.round': did you mean 'gym.rounds'"),
        ([], "'gym.rounds' is missing"),
        (["gym.rounds=few"], "bad value for 'gym.rounds'"),
    ):
        with pytest.raises(ConfigError, match=said):
            recipe_from(parse_overrides([f"env={name}", "model=m", *keys]))
    recipe = recipe_from(parse_overrides([f"env={name}", "model=m", "gym.rounds=3"]))
    assert recipe.env == name
    for wrong in ("nothing_of_mine:Doubled", "gyms_of_mine:Tripled", "doubled"):
        with pytest.raises(ConfigError, match="environment"):
            gym(wrong)


def test_the_script_finds_classes_in_the_current_folder(tmp_path):
    (tmp_path / "gyms_of_mine.py").write_text(OWN_GYM, encoding="utf-8")
    script = Path(sys.executable).with_name("kleash")
    keys = ("env=gyms_of_mine:Doubled", "model=m", "gym.foo=1")
    done = subprocess.run(
        [script, "train", "agent", *keys], cwd=tmp_path, capture_output=True, text=True
    )
    assert "unknown key 'gym.foo': the keys are: gym.rounds, gym.kind" in done.stderr
    assert done.returncode == 2


def test_an_option_that_is_not_there_is_named_as_it_was_written():
    with pytest.raises(ConfigError, match=r"unknown key 'gym\.foo': .* gym\."):
        recipe_from(parse_overrides(["env=intention", "model=m", "gym.foo=1"]))
    with pytest.raises(ConfigError, match=r"unknown key 'gym\.limt': did you mean 'gym.limit'"):
        recipe_from(parse_overrides(["env=function", "model=m", "gym.limt=1"]))
    with pytest.raises(ConfigError, match=r"bad value for 'gym\.limit'"):
        recipe_from(parse_overrides(["env=function", "model=m", "gym.limit=many"]))


# --- rewards


@pytest.mark.parametrize(
    ("importances", "reward"),
    [
        ([], 0.0),
        ([3], 1.0),
        ([2], 0.7),
        ([1], 0.4),
        ([1, 3], 0.8),
        ([2, 2, 2], 0.3),
        ([1, 1, 1, 1], 0.0),
        ([3, 3], 0.8),  # what a judge lists twice counts twice with UserRL
    ],
)
def test_rewards_of_a_turn_by_hand(importances, reward):
    assert userrl(importances, 0.02) == pytest.approx(reward)
    assert kleash(importances, 0.02) == pytest.approx(reward - 0.02)


def test_metrics_by_hand():
    task = task_from(
        {
            "task": "Plan something.",
            "missing_details": [
                {"description": "Budget", "importance": "3", "options": ["low"]},
                {"description": "Venue", "importance": 1, "options": ["home"]},
            ],
        }
    )
    made = gym("intention", {"reward": "kleash", "cost": 0.1, "world": SMALL}).make(
        task, seed=0, rollout=0
    )
    says = ["[action] What is the budget?", "[action] Do you like penguins?", "hm", "[finish]"]
    steps = play(made, says)
    assert [round(s.reward, 9) for s in steps[1:]] == [0.9, -0.1, -0.1, 0.0]
    assert steps[-1].stop_reason == "finished"
    assert made.metrics() == pytest.approx(
        {
            "turns": 4,
            "valid_actions": 0.75,
            "reward_over_ceiling": 0.7 / 1.4,
            "coverage": 0.5,
            "questions": 2,
            "wasted_questions": 1,
        }
    )
    assert {s.stop_reason for s in steps[1:] if s.done} <= set(STOP_REASONS)


def test_asking_again_earns_nothing():
    task = GYMS["tokens"].tasks("train")[1]
    ask = f"ASK {task.missing_details[0].id} ;"
    steps = play(GYMS["tokens"].make(task, seed=0, rollout=0), [ask, ask])
    assert steps[1].reward > 0
    assert steps[2:] == [] or (steps[2].reward == 0 and "KNOWN" in steps[2].observation)


# --- surfaces


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("[action] How much?", ("action", "How much?")),
        ("  [ACTION]   How\nmuch? ", ("action", "How much?")),
        ("[finish]", ("finish", "")),
        ("<think>[finish]</think>[action] How much?", ("action", "How much?")),
        ("still thinking</think>\n[finish]", ("finish", "")),
        ("[finish]</think>\n[action] How<think>or not?</think> much?", ("action", "How much?")),
        ("<think>[finish] never closed", None),
        ("How much?", None),
        ("[action]", None),
        ("[search] this", None),
        ("[action] one?\n[action] two?", None),
        ("Well: [action] How much?", None),
        ("", None),
    ],
)
def test_what_the_text_surface_reads(text, read):
    found = TextSurface("Ask.").read(text)
    assert (found and (found.choice, found.content)) == read


@pytest.mark.parametrize(
    ("arguments", "read"),
    [
        ({"choice": "action", "content": "How much?"}, ("action", "How much?")),
        ({"choice": "action", "content": "[action] How much?"}, ("action", "How much?")),
        ('{"choice": "finish", "content": ""}', ("finish", "")),
        ({"choice": "finish"}, ("finish", "")),
        ({"choice": "leave", "content": ""}, None),
        ({"choice": "action", "content": 3}, None),
        ({"choice": "action", "content": ""}, None),
        ([1], None),
    ],
)
def test_what_the_text_surface_reads_of_a_tool_call(arguments, read):
    call = json.dumps({"name": TOOL, "arguments": arguments})
    found = TextSurface("Ask.").read(f"Let me ask.\n<tool_call>\n{call}\n</tool_call>")
    assert (found and (found.choice, found.content)) == read


def test_two_calls_or_a_call_of_something_else_are_no_action():
    call = json.dumps({"name": TOOL, "arguments": {"choice": "finish"}})
    assert TextSurface("Ask.").read(call + call) is None
    assert TextSurface("Ask.").read(call.replace(TOOL, "delete_everything")) is None


def test_the_tool_offers_every_choice():
    (tool,) = TextSurface("Ask.").tools
    assert tool["function"]["name"] == TOOL
    assert tool["function"]["parameters"]["properties"]["choice"]["enum"] == ["action", "finish"]


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("ASK budget ;", ("action", "budget")),
        ("ASK budget date ;", ("action", "budget date")),
        ("STOP ;", ("finish", "")),
        ("ASK ;", None),
        ("ASK budget", None),
        ("ASK penguin ;", None),
        ("STOP", None),
    ],
)
def test_what_the_token_surface_reads(text, read):
    found = TokenSurface(("budget", "date")).read(text)
    assert (found and (found.choice, found.content)) == read


@given(st.text(max_size=300))
def test_no_text_is_too_strange_to_be_read(text):
    for made in GYMS.values():
        made.surface.read(text)
    json_values(text)
    assert "<think>" not in without_thoughts(text).lower()


@pytest.mark.parametrize(
    "text",
    [
        "[action] a" + " " * 50_000 + "\n[action] x",
        "[action] a" + " \n" * 25_000 + "[action] x",
        "[" * 50_000,
        '{"a":' * 10_000,
        "<think>" * 10_000,
        "[action] " + "\n [" * 20_000,
    ],
    ids=range(6),
)
def test_no_text_takes_long_to_read(text):
    with cpu_within(1):
        TextSurface("Ask.").read(text)


def test_the_vocabulary_holds_every_word_that_a_tiny_model_sees():
    words = set(vocabulary())
    assert len(vocabulary()) == len(words)
    for task in GYMS["tokens"].tasks("train"):
        env = GYMS["tokens"].make(task, seed=0, rollout=0)
        asked = [f"ASK {slot} budget ;" for slot in list(texts()["slots"])[:5]]
        steps = play(env, [*asked, "nonsense", "STOP ;"])
        seen = [steps[0], *(step.observation for step in steps[1:])]
        assert set(" ".join(seen).split()) <= words


# --- no secret is told

TOPICS = ["cuisine", "budget", "venue", "transport", "language", "guests"]
MARKED = [
    {
        "description": f"Preferred {topic} dd{n}secret",
        "importance": 1 + n % 3,
        "inquiry": f"Which {topic}? qq{n}secret",
        "options": [f"vv{n}secret"],
    }
    for n, topic in enumerate(TOPICS)
]


def uncovered_marks(covered):
    return [
        mark for n in range(6) if n not in covered for mark in (f"dd{n}s", f"vv{n}s", f"qq{n}s")
    ]


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.one_of(
            st.lists(
                st.sampled_from([*TOPICS, "prefer", "and", "what", "is", "the"]), max_size=7
            ).map(" ".join),
            st.text(max_size=60),
            st.sampled_from(
                ["tell me everything", "list all hidden details", "secret", "dd vv qq"]
            ),
        ),
        max_size=12,
    ),
    st.booleans(),
)
def test_what_is_not_covered_is_never_said(questions, costly):
    task = task_from({"task": "Plan a dinner.", "missing_details": MARKED})
    gym_ = GYMS["intention"]
    env = gym_.make(task, seed=0, rollout=0)
    seen = [env.start()]
    for question in questions:
        step = at_once(env.step(question if costly and question else f"[action] {question}"))
        seen += [step.observation, json.dumps(env.metrics()), str(step)]
        # What is covered has been said in the reply: its value stands there.
        told = {n for n in range(6) if any(f"vv{n}s" in text for text in seen)}
        assert len(told) == round(env.metrics()["coverage"] * 6)
        assert not [m for m in uncovered_marks(told) if any(m in text for text in seen)]
        if step.done:
            break


# --- tasks


def test_records_of_userrl_load_unchanged_and_always_the_same():
    tasks = load_tasks(FIXTURES / "records.jsonl")
    assert len(tasks) == 50
    first = tasks[0]
    assert first.task == "Plan a weekend getaway for me."
    assert [d.importance for d in first.missing_details] == [3, 2, 2, 1]
    assert first.ceiling == pytest.approx(2.8)
    assert all(d.value in d.options for task in tasks for d in task.missing_details)
    golden = (first.id, first.split, first.missing_details[0].id, first.missing_details[0].value)
    assert golden == GOLDEN_RECORD
    assert {task.split for task in tasks} == {"train", "validation", "test"}


GOLDEN_RECORD = ("9c947dc851d5", "train", "fd4d2cdb", "Capital city")


def test_tasks_come_back_from_their_file(tmp_path):
    tasks = world_tasks(World(train=5, validation=5, test=5))
    append_line(tmp_path / "tasks.jsonl", *(task.record() for task in tasks))
    assert load_tasks(tmp_path / "tasks.jsonl") == tasks
    whole = tmp_path / "tasks.json"
    whole.write_text(json.dumps([task.record() for task in tasks]))
    assert load_tasks(whole) == tasks


def test_further_ways_of_writing_records(tmp_path):
    path = tmp_path / "tasks.json"
    record = {"task": "Plan.", "missing_details": [GOOD | {"options": [5, 10], "importance": 3}]}
    path.write_text(json.dumps({"one": record, "two": record | {"id": 7, "task": "Go."}}))
    one, two = load_tasks(path, split="test")
    assert (one.id, two.id, one.split) == ("one", "7", "test")
    assert one.missing_details[0].value in ("5", "10")
    bare = task_from({"task": "Plan.", "missing_details": [{"description": "X", "importance": 1}]})
    assert bare.missing_details[0].value == "no preference"


GOOD = {"description": "Budget", "importance": "2", "inquiry": "How much?", "options": ["low"]}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"missing_details": []}, "missing_details"),
        ({"missing_details": [GOOD | {"importance": "high"}]}, "missing_details.0.importance"),
        ({"missing_details": [GOOD | {"importance": True}]}, "missing_details.0.importance"),
        ({"missing_details": [GOOD, GOOD | {"description": ""}]}, "missing_details.1.description"),
        ({"missing_details": ["Budget"]}, "missing_details.0"),
        ({"missing_details": None}, "missing_details"),
        ({"task": ""}, "'task'"),
        ({"task": None}, "'task'"),
        ({"schema": "intent-task/9"}, "intent-task/9"),
        ({"schema": SCHEMA, "colour": "red"}, "unknown key 'colour'"),
        ({"schema": SCHEMA, "split": "exam"}, "split"),
        ({"missing_details": [GOOD | {"id": "a"}, GOOD | {"id": "a"}]}, "ids are not different"),
        ({"missing_details": [GOOD | {"options": [["low"]]}]}, "options"),
        ({"schema": SCHEMA, "missing_details": [GOOD | {"options": [1]}]}, "options"),
    ],
)
def test_a_bad_record_is_fatal_and_named(change, named, tmp_path):
    path = tmp_path / "tasks.jsonl"
    good = {"category": "c", "task": "Plan.", "missing_details": [GOOD]}
    path.write_text(json.dumps(good) + "\n" + json.dumps(good | {"id": "bad"} | change) + "\n")
    with pytest.raises(DataError) as caught:
        load_tasks(path)
    assert "line 2" in str(caught.value)
    assert "'bad'" in str(caught.value)
    assert named in str(caught.value)


def test_a_file_without_tasks_or_with_one_in_two_splits_is_refused(tmp_path):
    path = tmp_path / "tasks.jsonl"
    path.write_text("\n")
    with pytest.raises(DataError, match="no task"):
        load_tasks(path)
    path.write_text("{\n")
    with pytest.raises(DataError, match="line 1 is not JSON"):
        load_tasks(path)
    task = {"category": "c", "task": "Plan.", "missing_details": [GOOD]}
    twice = [task | {"id": "a", "split": "train"}, task | {"id": "b", "split": "test"}]
    path.write_text("\n".join(map(json.dumps, twice)))
    with pytest.raises(DataError, match="'b' of 'test' is in 'train' too"):
        load_tasks(path)
    path.write_text("\n".join([json.dumps(task | {"id": "a"})] * 2))
    with pytest.raises(DataError, match="'a' stands twice"):
        load_tasks(path)
    path.write_text("\n".join([json.dumps(task)] * 2))
    first, again = load_tasks(path)
    assert again.id == f"{first.id}-2"
    assert again.split == first.split
    with pytest.raises(DataError, match="cannot read"):
        load_tasks(tmp_path / "nothing.jsonl")


# --- the world


@pytest.fixture(scope="module")
def world():
    return world_tasks(World(train=900, validation=300, test=300))


def test_the_world_is_like_the_real_data(world):
    missing = [len(task.missing_details) for task in world]
    assert set(missing) == {1, 2, 3, 4, 5, 6}
    assert np.mean(missing) == pytest.approx(3.5, abs=0.1)
    assert 2.3 < np.mean([task.ceiling for task in world]) < 2.7
    assert len(texts()["slots"]) == 20
    assert {len(domain["slots"]) for domain in texts()["domains"].values()} == {6}
    drawn = [i for seed in range(40) for i in importances(World(seed=seed)).values()]
    shares = [np.mean([i == rank for i in drawn]) for rank in (3, 2, 1)]
    assert shares == pytest.approx([0.17, 0.68, 0.15], abs=0.03)


def test_no_task_of_one_split_is_a_reworded_one_of_another(world):
    assert len({meaning(task) for task in world}) == len(world)


def test_difficulty_has_knobs():
    easy = world_tasks(World(domains=2, relevant=3, train=40, validation=10, test=10))
    assert {task.category for task in easy} == set(list(texts()["domains"])[:2])
    assert max(len(task.missing_details) + len(task.given) for task in easy) == 3
    many = world_tasks(World(fewest=5, train=40, validation=10, test=10))
    assert min(len(task.missing_details) for task in many) == 5
    with pytest.raises(ConfigError, match="too small"):
        world_tasks(World(domains=1, relevant=1, train=9, validation=1, test=1))


# --- function


def test_functions_and_near_copies_by_hand():
    hidden = Hidden("f", "train", "factors", (2, 3, 5, 1), (1, 2, 3, 4))
    assert hidden.value((1, 1, 4, 1)) == (1 + 2) * (4 - 3) + 5
    assert is_near((1, 2, 3, 4), (1, 2, 3, 4))
    assert is_near((1, 2, 3, 900), (1, 2, 3, 4))
    assert is_near((2, 3, 2, 5), (1, 2, 3, 4))
    assert is_near((4, 3, 2, 1), (1, 2, 3, 4))
    assert not is_near((1, 2, 30, 40), (1, 2, 3, 4))


def test_the_place_itself_is_not_answered():
    task = GYMS["function"].tasks("train")[0]
    near = " ".join(str(x) for x in task.place)
    steps = play(GYMS["function"].make(task, seed=0, rollout=0), [f"[action] {near}"])
    assert "too near" in steps[1].observation
    wrong = play(
        GYMS["function"].make(task, seed=0, rollout=0),
        ["[answer] 1 or 2", f"[answer] {task.value(task.place) + 1}"],
    )
    assert "one whole number" in wrong[1].observation
    assert (wrong[2].reward, wrong[2].stop_reason) == (0, "finished")


# --- telepathy


def test_telepathy_answers_what_it_knows_and_nothing_else():
    task = next(
        t
        for split in ("train", "validation", "test")
        for t in GYMS["telepathy"].tasks(split)
        if t.entity == "owl"
    )
    asked = {
        "[action] Is it an animal?": "Yes.",
        "[action] Does it have wheels?": "No.",
        "[action] Is it not an animal?": "Please ask without a negation.",
        "[action] Is it an owl?": "Name it with [answer] if you think you know it.",
        "[action] What is its name?": "I cannot say.",
        "[answer] The owl!": "Yes, that is it.",
    }
    steps = play(GYMS["telepathy"].make(task, seed=0, rollout=0), asked)
    assert [step.observation for step in steps[1:]] == list(asked.values())
    assert total(steps) == 1
    both = play(GYMS["telepathy"].make(task, seed=0, rollout=0), ["[answer] owl or bat"])
    assert total(both) == 0


# --- Gymnasium


@pytest.mark.parametrize("name", GYMS)
def test_gymnasium_accepts_every_environment(name):
    env_checker = pytest.importorskip("gymnasium.utils.env_checker")
    from kleash.tasks.envs.wrapped import WrappedEnv

    wrapped = WrappedEnv(GYMS[name], "train")
    env_checker.check_env(wrapped, skip_render_check=True)
    first, info = wrapped.reset(seed=5, options={"task": GYMS[name].tasks("train")[2].id})
    assert (first, info["task"]) == (
        GYMS[name].make(GYMS[name].tasks("train")[2], seed=5, rollout=0).start(),
        GYMS[name].tasks("train")[2].id,
    )
    ends = [wrapped.step("[action] Quux?")[2:4] for _ in range(3)]
    assert set(ends) <= {(False, False), (True, False)}
    wrapped.close()
