import numpy as np
import pytest

from kleash.answer import answerer
from kleash.data.scenes import Scenes
from kleash.demos.pool import Pooling, make_pools
from kleash.demos.propose import Pooled, Proposing, gain_beams, propose, similar
from kleash.seeds import generator
from kleash.types import Answer

PROPOSING = Proposing(random=8, retrieval=4, beams=4, width=12)


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def embedded():
    return answerer("embedded", Scenes(seed=5).image)


@pytest.fixture(scope="module")
def pooled(embedded):
    scenes = Scenes(seed=5)
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
