"""What an agent said, token by token, beside what was scored."""

import json

import pytest
import torch

from agent_tools import trained
from kleash.train.evaluate import Wanted, evaluate, gaps
from kleash.train.evaluate.agent import keep_transcripts, transcripts, transcripts_file
from kleash.train.recipe import TRANSCRIPTS
from kleash.train.rollout import load_policy
from kleash.types import Episode, Turn


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A base, an arm that starts from it, and the arm's transcripts."""
    folder = tmp_path_factory.mktemp("agents")
    base, world = trained(folder, "base", epochs=0, supervised={"dialogues": 400})
    start = folder / "base/checkpoints/supervised-3"
    run, world = trained(folder, "arm", phase="grpo", **{"from": str(start)})
    first = load_policy(base, world, "supervised-3")
    keep_transcripts(run, world, run.checkpoints(), first)
    return run, world, first


def lines(run, name):
    text = transcripts_file(run.path, name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def test_every_checkpoint_has_the_same_tasks_and_what_it_said_is_what_is_scored(made):
    run, world, _ = made
    evaluate(run, world, Wanted(run.checkpoints(), [0], "test", TRANSCRIPTS))
    scored = {(line["checkpoint"], line["item"]): line for line in run.scores()}
    for name in run.checkpoints():
        kept = lines(run, name)
        assert [line["item"] for line in kept] == world.item_ids("test")[:TRANSCRIPTS]
        for line in kept:
            score = scored[name, line["item"]]
            assert [turn["said"] for turn in line["turns"]] == score["pointer"]
            assert [turn["heard"] for turn in line["turns"]] == score["heard"]
            assert sum(turn["reward"] for turn in line["turns"]) == pytest.approx(score["score"])
            assert (line["answer"], line["facts"]) == (score["answer"], score["facts"])
            assert line["weights"] == score["weights"]


def test_what_was_covered_is_counted_and_nothing_else_is_told(made):
    run, world, _ = made
    known = {task.id: task for task in world.tasks("test")}
    told = 0
    for line in lines(run, run.checkpoints()[-1]):
        details = {detail.description for detail in known[line["item"]].missing_details}
        covered = [each for turn in line["turns"] for each in turn["covered"]]
        assert set(covered) <= details and len(covered) == len(set(covered))
        assert len(covered) / len(details) == pytest.approx(line["facts"]["coverage"])
        assert all(bool(turn["covered"]) == (turn["reward"] > 0) for turn in line["turns"])
        hidden = details - set(covered)
        assert not [each for each in hidden if each in json.dumps(line)]
        told += len(covered)
    assert told


@torch.no_grad()
def test_kl_and_log_probability_of_a_token_are_those_of_the_whole_distributions(made):
    run, world, first = made
    name = run.checkpoints()[-1]
    policy = load_policy(run, world, name)
    line = next(line for line in lines(run, name) if len(line["turns"]) > 1)
    speech = world.speech
    ids: list[int] = []
    for at, turn in enumerate(line["turns"]):
        heard = speech.reply(turn["heard"]) if at else speech.opening("", [], turn["heard"])
        ids += heard
        for word, logp, kl in turn["tokens"]:
            ours, theirs = (
                each.model(torch.tensor([ids])).logits[0, -1].double().log_softmax(-1)
                for each in (policy, first)
            )
            (choice,) = [speech.number[word]]
            assert int(ours.argmax()) == choice
            assert logp == pytest.approx(ours[choice].item(), abs=1e-5)
            assert kl == pytest.approx((ours.exp() * (ours - theirs)).sum().item(), abs=1e-5)
            ids.append(choice)
    assert sum(kl for turn in line["turns"] for _, _, kl in turn["tokens"]) > 1e-4


def test_what_is_there_is_left_alone_and_what_is_missing_is_made_with_the_same_bytes(made):
    run, world, first = made
    one, other = run.checkpoints()[:2]
    before = transcripts_file(run.path, one).read_bytes()
    transcripts_file(run.path, one).unlink()
    kept = transcripts_file(run.path, other)
    kept.write_text("left alone", encoding="utf-8")
    (run.path / ".epoch-1.jsonl.tmp").write_bytes(before[:100])
    with run.lock():
        keep_transcripts(run, world, [one, other], first)
    assert transcripts_file(run.path, one).read_bytes() == before
    assert kept.read_text(encoding="utf-8") == "left alone"
    assert not list(run.path.glob(".*.tmp"))


def test_the_start_itself_has_no_kl_and_what_broke_has_its_error(made):
    _, world, first = made
    turn = Turn(tuple(world.speech.opening("", [], "TASK party ;")), (1, 2), (0.0, 0.0))
    broken = Episode("t", (turn,), None, "broken", "the endpoint answered 500")
    with torch.no_grad():
        (line,) = transcripts(first, first, world, [broken])
    assert line["error"] == "the endpoint answered 500" and "answer" not in line
    assert [kl for _, _, kl in line["turns"][0]["tokens"]] == [0.0, 0.0]


def test_gaps_of_rewards_have_an_interval_although_rewards_are_no_shares(made):
    run, world, _ = made
    wanted = Wanted(run.checkpoints(), [0, 1], "test", TRANSCRIPTS)
    evaluate(run, world, wanted)
    found = gaps(run, wanted)
    assert [(each["against"], each["shots"]) for each in found] == [("epoch-1", 0), ("epoch-1", 1)]
    assert all(each["low"] < each["estimate"] < each["high"] for each in found)
