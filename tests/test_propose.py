import math

import numpy as np
import pytest

from kleash.algo.policy import fingerprint
from kleash.errors import ConfigError
from kleash.models.answer import answerer
from kleash.models.selector import STOP
from kleash.seeds import generator
from kleash.tasks.data.scenes import Scenes
from kleash.tasks.demos.pool import Pooling, make_pools
from kleash.tasks.demos.propose import (
    Pooled,
    Proposal,
    Proposing,
    further,
    gain_beams,
    propose,
    similar,
)
from kleash.tasks.demos.rl_checks import check, counts
from kleash.tasks.demos.rl_data import read_rl_data
from kleash.train.propose import propose_all, shard
from kleash.train.recipe import recipe_from
from kleash.train.rollout import selector as chosen
from kleash.train.rollout.proposed import candidate
from kleash.train.rollout.selector import SelectorWorld, chosen_by, selector_at
from kleash.types import Answer
from tiny import tiny_recipe

PROPOSING = Proposing(random=8, retrieval=4, beams=4, width=12)


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def scenes():
    return Scenes(seed=5)


@pytest.fixture(scope="module")
def embedded(scenes):
    return answerer("embedded", scenes.image)


@pytest.fixture(scope="module")
def pooled(scenes, embedded):
    queries, shown = scenes.queries("train")[:30], scenes.demonstrations
    asked, rows = embedded.embed(queries), embedded.embed(shown)
    pools = make_pools(Pooling(), 0, queries, asked, shown, rows)
    return Pooled(queries, asked, shown, rows, pools)


@pytest.fixture(scope="module")
def proposals(pooled, embedded):
    return propose(PROPOSING, pooled, 2, 0, embedded.answer)


def never(prompts):
    raise AssertionError(f"asked for {len(prompts)} answers")


def reordered(pooled, order):
    return Pooled(
        [pooled.queries[i] for i in order],
        pooled.query_rows.rows(order),
        pooled.demonstrations,
        pooled.demonstration_rows,
        pooled.pools[order],
    )


# --- queries with their pools


def test_a_pointer_becomes_a_prompt_in_its_order(pooled):
    prompt = pooled.prompt(3, (5, 2))
    assert prompt.query is pooled.queries[3]
    assert prompt.demonstrations == (pooled.pool(3)[5], pooled.pool(3)[2])
    assert pooled.prompt(3, ()).demonstrations == ()


def test_taking_the_first_queries_keeps_what_belongs_together(pooled):
    some = pooled.take(7)
    assert len(some) == 7
    assert some.pool(6) == pooled.pool(6)
    assert (some.query_rows.part("both")[6] == pooled.query_rows.part("both")[6]).all()
    assert similar(some, 6, "both", 3) == similar(pooled, 6, "both", 3)


def test_the_most_similar_candidate_stands_next_to_the_query(pooled):
    for kind in ("text", "image", "both"):
        for query in range(10):
            candidates = pooled.demonstration_rows.rows(pooled.pools[query]).part(kind)
            products = candidates @ pooled.query_rows.part(kind)[query]
            pointer = similar(pooled, query, kind, 4)
            likeness = products[list(pointer)]
            assert (np.diff(likeness) >= -1e-5).all()
            assert likeness[-1] == pytest.approx(products.max(), abs=1e-6)
            assert likeness[0] >= np.sort(products)[-4] - 1e-5


# --- proposals


def test_every_method_proposes_and_no_pointer_comes_twice(proposals):
    for row in proposals:
        pointers = [proposal.pointer for proposal in row]
        assert len(set(pointers)) == len(pointers)
        assert all(len(set(pointer)) == 2 for pointer in pointers)
        assert all(0 <= place < 64 for pointer in pointers for place in pointer)
        methods = [proposal.method for proposal in row]
        assert methods.count("beam") == 4
        assert {"beam", "retrieval", "random"} == set(methods)
        assert len(row) <= 4 + 4 + 8


def test_the_order_within_a_pointer_counts(pooled):
    """(a, b) and (b, a) are two proposals: with two candidates both are found and none twice."""
    two = Pooled(
        pooled.queries,
        pooled.query_rows,
        pooled.demonstrations,
        pooled.demonstration_rows,
        pooled.pools[:, :2],
    )
    rows = propose(Proposing(beams=0, retrieval=2, random=40), two, 2, 0, never)
    assert all(sorted(p.pointer for p in row) == [(0, 1), (1, 0)] for row in rows)


def test_retrieval_goes_down_the_ranks(pooled):
    rows = propose(Proposing(beams=0, random=0, retrieval=6), pooled, 2, 0, never)
    for query, row in enumerate(rows):
        best = similar(pooled, query, "text", 3)
        pointers = [proposal.pointer for proposal in row]
        assert pointers[0] == best[1:]
        assert best[:2] in pointers


def test_beams_find_better_pointers_than_chance(pooled, proposals, embedded):
    best = {"beam": [], "random": []}
    for query, row in enumerate(proposals):
        for method, found in best.items():
            pointers = [p.pointer for p in row if p.method == method][:4]
            answers = embedded.answer([pooled.prompt(query, pointer) for pointer in pointers])
            found.append(np.mean([answer.truth_logp for answer in answers]))
    better = np.array(best["beam"]) > np.array(best["random"])
    assert better.mean() > 0.9
    assert np.mean(best["beam"]) > np.mean(best["random"]) + 1


def test_a_beam_keeps_the_likeliest_of_what_it_tried(pooled):
    """By hand: with all candidates tried, the pointer that a table likes best is found first."""
    worth = generator("test", "worth").standard_normal(len(pooled.demonstrations))

    def ask(prompts):
        return [
            Answer("", -10 + sum(worth[int(d.id.split("-")[1])] for d in prompt.demonstrations))
            for prompt in prompts
        ]

    beams = gain_beams(Proposing(width=64, beams=3), pooled, 2, 0, ask)
    for query, row in enumerate(beams):
        ranked = np.argsort(-worth[pooled.pools[query]])
        assert row[0] in {(ranked[1], ranked[0]), (ranked[0], ranked[1])}
        assert len(row) == 3


def test_proposals_do_not_depend_on_the_order_of_queries(pooled, proposals, embedded):
    order = generator("test", "order").permutation(len(pooled))
    again = propose(PROPOSING, reordered(pooled, order), 2, 0, embedded.answer)
    assert again == [proposals[i] for i in order]
    some = propose(PROPOSING, pooled.take(3), 2, 0, embedded.answer)
    assert some == proposals[:3]
    other = propose(PROPOSING, pooled.take(3), 2, 1, embedded.answer)
    assert other != proposals[:3]


def test_only_beams_cost_answers(pooled):
    rows = propose(Proposing(beams=0), pooled, 2, 0, never)
    assert {proposal.method for row in rows for proposal in row} == {"retrieval", "random"}


def test_a_broken_answer_is_no_reason_to_keep_a_pointer(pooled):
    def ask(prompts):
        return [None if place % 2 else Answer("", -1.0) for place in range(len(prompts))]

    beams = gain_beams(Proposing(width=4, beams=4), pooled.take(2), 1, 0, ask)
    assert [len(row) for row in beams] == [2, 2]
    assert gain_beams(Proposing(), pooled.take(2), 2, 0, lambda p: [None] * len(p)) == [[], []]


# --- budgets, gains, selectors


def counting(answer):
    asked = []

    def ask(prompts):
        asked.extend(prompts)
        return answer(prompts)

    return ask, asked


@pytest.mark.parametrize("limit", [1, 9, 20, 40])
def test_no_query_costs_more_answers_than_its_budget(pooled, embedded, limit):
    some = pooled.take(4)
    ask, asked = counting(embedded.answer)
    rows = propose(PROPOSING, some, 2, 0, ask, limit=limit)
    answered = {(query, p) for query, row in enumerate(rows) for p in row if p.method != "beam"}
    for query, item in enumerate(some.queries):
        searched = sum(prompt.query.id == item.id for prompt in asked)
        later = sum(each[0] == query for each in answered)
        assert 0 < searched + later <= limit
    if limit == 40:
        assert any(p.method == "beam" for row in rows for p in row)


def test_a_budget_in_all_is_shared_evenly():
    assert Proposing(total=100).limit(10) == 10
    assert Proposing(total=100, budget=4).limit(10) == 4
    assert Proposing().limit(10) is None
    assert Proposing(beams=2, width=8).searched(3) == 8 + 2 * 2 * 8
    assert Proposing(beams=2, width=8).within(12, 2).width == 4
    assert Proposing(beams=2, width=8).within(2, 2).beams == 0


def test_a_step_s_own_gain_is_not_the_gain_in_all(pooled):
    """By hand: alone x is best; on top of y anything gains much, so a step's gain prefers y."""
    one = pooled.take(1)
    ids = [one.demonstrations[row].id for row in one.pools[0]]
    x, y = ids[0], ids[1]

    def worth(shown):
        if len(shown) == 1:
            return {x: -1.0, y: -1.5}.get(shown[0], -9.0)
        return {x: -0.9, y: -1.2}.get(shown[-1], -8.0)

    def ask(prompts):
        return [Answer("", worth([d.id for d in p.demonstrations])) for p in prompts]

    both = Proposing(beams=2, width=64)
    assert gain_beams(both, one, 2, 0, ask)[0][0][-1] == 0, "all that was gained: on x"
    step = gain_beams(both.but(gain="step"), one, 2, 0, ask)[0]
    assert step[0][-1] == 1, "the step gained 0.3 on y and 0.1 on x"


def test_a_selector_s_pointers_come_without_repeats_and_are_named(pooled):
    chosen = [[Proposal((3, 4), "policy"), Proposal((4, 3), "sample"), Proposal((3, 4), "sample")]]
    rows = propose(
        Proposing(beams=0, random=0, retrieval=0), pooled.take(1), 2, 0, never, chosen=chosen
    )
    assert rows == [[Proposal((3, 4), "policy"), Proposal((4, 3), "sample")]]


def test_further_pointers_are_new_and_end_when_there_are_no_more(pooled):
    known = [(0, 1), (1, 0)]
    found = further(pooled, 0, known, 6, 0)
    assert len(found) == 6 and not {*found} & {*known}
    two = Pooled(
        pooled.queries,
        pooled.query_rows,
        pooled.demonstrations,
        pooled.demonstration_rows,
        pooled.pools[:, :2],
    )
    assert further(two, 0, known, 6, 0) == []


# --- a selector proposes, processes share the work, a file is written


def test_a_trained_selector_proposes_its_beams_and_samples(tiny_run, ledger):
    keys = (f"propose.policy={tiny_run.path}/checkpoints/rce-1", "propose.beams=0")
    keys += ("propose.policy_beams=3", "propose.samples=2", "propose.random=0", "queries=6")
    world = SelectorWorld(tiny_recipe(*keys), ledger)
    rows = world.proposals("train", 6)
    for row in rows:
        assert [p.method for p in row].count("policy") == 3
        pointers = [p.pointer for p in row]
        assert len({*pointers}) == len(pointers)
    assert any(p.method == "sample" for row in rows for p in row)
    assert rows == SelectorWorld(tiny_recipe(*keys), ledger).proposals("train", 6)
    policy = selector_at(str(tiny_run.path / "checkpoints/rce-1"), world.width)
    likeliest, _ = policy.choose(world.queries("train"), 2)
    # What is likeliest step by step is among the likeliest in all.
    assert all(
        pointer in {p.pointer for p in row}
        for pointer, row in zip(likeliest.lists(), rows, strict=True)
    )
    assert world.by_content()["propose"]["policy"] == fingerprint(policy.state_dict())


@pytest.mark.parametrize(
    ("recipe", "said"),
    [
        ({"selector": "v3+lora"}, "towers of its own"),
        ({"env": "intention", "gym": {"surface": "tokens"}}, "an agent's checkpoint"),
    ],
)
def test_who_cannot_propose_is_refused(monkeypatch, recipe, said):
    monkeypatch.setattr(chosen, "load_checkpoint", lambda path: (None, recipe_from(recipe)))
    with pytest.raises(ConfigError, match=said):
        selector_at("run/checkpoints/rce-1", 8)


def test_a_cold_sample_is_what_is_likeliest_and_a_hot_one_is_anything(ledger):
    world = SelectorWorld(tiny_recipe("queries=12"), ledger)
    policy, queries = world.fresh_policy(), world.queries("train")
    likeliest = [[Proposal(each, "sample")] for each in policy.choose(queries, 2)[0].lists()]
    proposing = Proposing(samples=1, temperatures=(1e-6,))
    assert chosen_by(policy, queries, proposing, 2, 0) == likeliest
    hot = chosen_by(policy, queries, proposing.but(temperatures=(1e6,), samples=40), 2, 0)
    spread = [len({each.pointer for each in row}) for row in hot]  # of 8 × 7 pointers
    assert min(spread) >= 20, spread


def test_a_truth_that_rounding_makes_likelier_than_sure_is_sure(ledger):
    world = SelectorWorld(tiny_recipe(), ledger)
    item, pool = world.data.demonstrations[0], (5, 3, 4)
    for logp, share in ((1e-6, 1.0), (math.log(0.25), 0.25)):
        found = candidate(world, item, pool, (2, 0, STOP), ("beam", Answer(item.answers[0], logp)))
        assert found.truth_probability == pytest.approx(share, abs=1e-9)
        assert found.shown == (4, 5) and found.correct


def test_proposals_are_written_as_rl_data_and_asked_for_once(tmp_path):
    with pytest.raises(ConfigError, match="leave it out"):
        propose_all(tiny_recipe("propose.facts=rl.json"), tmp_path / "rl.json")
    recipe = tiny_recipe("queries=12")
    told = propose_all(recipe, tmp_path / "rl.json")
    assert told["queries"] == 12 and told["bought"] > 0
    again = propose_all(recipe, tmp_path / "again.json")
    assert (again["bought"], again["asked"]) == (0, told["asked"])
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "rl.json").read_bytes()
    data = read_rl_data(tmp_path / "rl.json")
    wrong = {each.code for each in check(data) if each.severity == "wrong"}
    assert wrong <= {"rl.no_signal"}, "few of so few queries can teach anything"
    assert counts(data)["pointers"] == told["pointers"]
    assert set(counts(data)["methods"]) <= {"beam", "retrieval", "random"}


ANYWHERE = ("queries=12", "data=tiny:Topics", "answerer=tiny:Reader")  # other processes know these


@pytest.mark.slow
def test_several_processes_write_what_one_writes(tmp_path):
    recipe = tiny_recipe(*ANYWHERE)
    alone = propose_all(recipe, tmp_path / "one/rl.json")
    both = propose_all(recipe, tmp_path / "two/rl.json", workers=2)
    assert (tmp_path / "two/rl.json").read_bytes() == (tmp_path / "one/rl.json").read_bytes()
    assert both["bought"] == alone["bought"]


def test_shards_together_are_the_whole(tmp_path):
    """Each process takes its share of the queries: none is left out and none comes twice."""
    given = {"recipe": tiny_recipe("queries=12").resolved(), "machines": False, "device": "cpu"}
    given |= {"ledger": str(tmp_path / "ledger.sqlite")}
    whole = shard(given | {"shard": 0, "shards": 1}, lambda told: None)["entries"]
    parts = [shard(given | {"shard": n, "shards": 5}, lambda told: None) for n in range(5)]
    assert sum(len(part["entries"]) for part in parts) == len(whole) == 12
    assert {k: v for part in parts for k, v in part["entries"].items()} == whole
    assert sum(part["bought"] for part in parts) == 0, "all of it was in the ledger"
