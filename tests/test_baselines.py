"""Baselines: pointers from the same pools, the same whenever asked, and a ladder among them."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kleash.models.selector import Selector
from kleash.runs.ledger import Ledger
from kleash.seeds import torch_generator
from kleash.study.work import keep_start
from kleash.tasks.demos.embeddings import Embeddings
from kleash.tasks.demos.presets import preset
from kleash.tasks.demos.propose import Ask, Pointer, Pooled, similar
from kleash.tasks.demos.retrieval import bm25
from kleash.tasks.demos.score import vqa_accuracy
from kleash.train.evaluate import Wanted, evaluate
from kleash.train.evaluate.selector import BASELINES, best_greedy
from kleash.train.rollout.selector import SelectorWorld
from kleash.types import Item
from tiny import tiny_recipe, train_tiny

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def world(ledger: Ledger) -> SelectorWorld:
    return SelectorWorld(tiny_recipe(), ledger)


def refuse(prompts: object) -> list[None]:
    raise AssertionError("this baseline needs no answers")


def chosen(
    world: SelectorWorld, name: str, shots: int, count: int = 60, ask: Ask = refuse
) -> list[Pointer]:
    made = BASELINES[name](world.pooled("test").take(count), world.data, shots, ask)
    assert made is not None
    return made


@pytest.mark.parametrize("shots", [1, 2, 4])
@pytest.mark.parametrize("name", BASELINES)
def test_a_baseline_points_at_different_places_of_every_pool(
    world: SelectorWorld, name: str, shots: int
) -> None:
    pointers = chosen(world, name, shots)
    assert len(pointers) == 60
    for pointer in pointers:
        assert len(pointer) == (0 if name == "zero-shot" else shots)
        assert len(set(pointer)) == len(pointer)
        assert all(isinstance(place, int) and 0 <= place < 8 for place in pointer)


@pytest.mark.parametrize("name", BASELINES)
def test_a_baseline_chooses_the_same_for_an_item_in_any_company(
    world: SelectorWorld, ledger: Ledger, name: str
) -> None:
    again = SelectorWorld(tiny_recipe("seed=7"), ledger)
    assert chosen(world, name, 2, count=20) == chosen(again, name, 2)[:20]


def test_random_draws_differ_from_each_other_and_first_k_does_not_look(
    world: SelectorWorld,
) -> None:
    draws = [tuple(chosen(world, f"random-{draw}", 2)) for draw in range(5)]
    assert len(set(draws)) == 5
    assert len(set(draws[0])) > 20
    assert set(chosen(world, "first-k", 2)) == {(0, 1)}


def test_the_nearest_demonstration_stands_next_to_the_query(world: SelectorWorld) -> None:
    pooled = world.pooled("test")
    for kind in ("image", "text", "both"):
        for query, pointer in enumerate(chosen(world, f"similar-{kind}", 3)):
            rows = pooled.demonstration_rows.rows(pooled.pools[query]).part(kind)
            near = rows @ pooled.query_rows.part(kind)[query]
            picked = near[list(pointer)]
            assert picked == pytest.approx(np.sort(near)[-3:], abs=1e-5)


def test_where_no_generator_knows_the_best_there_is_no_planted_pointer(
    world: SelectorWorld,
) -> None:
    class Unknowing:
        def planted(self, query: object, pool: object, shots: int) -> None:
            return None

    assert BASELINES["planted"](world.pooled("test"), Unknowing(), 2, refuse) is None


def accuracy(world: SelectorWorld, pooled: Pooled, pointers: list[Pointer]) -> float:
    prompts = [pooled.prompt(query, pointer) for query, pointer in enumerate(pointers)]
    answers = world.ask(prompts)
    scores = [
        vqa_accuracy(answer.text, prompt.query.answers)
        for answer, prompt in zip(answers, prompts, strict=True)
        if answer is not None
    ]
    assert len(scores) == len(pointers)
    return float(np.mean(scores))


def test_the_greedy_search_beats_every_choice_that_does_not_ask(world: SelectorWorld) -> None:
    pooled = world.pooled("test").take(20)
    searched = best_greedy(pooled, world.data, 2, world.ask)
    assert searched is not None
    assert all(len(set(pointer)) == 2 for pointer in searched)
    best = accuracy(world, pooled, searched)
    for name in ("random-0", "first-k", "similar-both"):
        assert best > accuracy(world, pooled, chosen(world, name, 2, count=20))


def test_on_scenes_what_is_planted_beats_what_is_similar(ledger: Ledger) -> None:
    keys = ["data=few-scenes", "answerer=embedded", "pool.kind=mixed", "pool.size=64"]
    world = SelectorWorld(tiny_recipe(*keys), ledger)
    pooled = world.pooled("test")
    scores = {
        name: accuracy(world, pooled, chosen(world, name, 2))
        for name in ("zero-shot", "similar-image", "similar-text", "similar-both", "planted")
    }
    similar = max(scores[name] for name in scores if name.startswith("similar"))
    assert scores["planted"] > similar + 0.1
    assert similar > scores["zero-shot"]


@pytest.mark.parametrize("kind", ["text", "image", "both"])
def test_a_selector_that_begins_as_retrieval_chooses_what_retrieval_does(
    ledger: Ledger, kind: str
) -> None:
    """The nearest first, where the baseline stands it next to the query."""
    world = SelectorWorld(tiny_recipe("selector=retrieval-plus"), ledger)
    blocks = preset("retrieval-plus", retrieval=kind)
    policy = Selector(blocks, world.width, torch_generator("weights", 0))
    for split, shots in (("test", 1), ("test", 4), ("train", 2)):
        queries, pooled = world.queries(split), world.pooled(split)
        nearest = [similar(pooled, q, kind, shots)[::-1] for q in range(len(pooled))]
        assert policy.choose(queries, shots)[0].lists() == nearest
        parts = [policy.choose(queries.take([q]), shots)[0].lists()[0] for q in range(5)]
        assert parts == nearest[:5]


def test_before_training_it_is_measured_as_retrieval_is(ledger: Ledger, tmp_path: Path) -> None:
    """The same prompts: the nearest demonstration stands next to the query."""
    keys = ("selector=retrieval-plus", "supervised.epochs=0", "rce.epochs=0")
    run = train_tiny(tmp_path / "base", ledger, *keys, "epochs=0")
    world = SelectorWorld(tiny_recipe(*keys), ledger)
    keep_start(run, world.recipe, world)
    names = ("start", "baseline:similar-both")
    evaluate(run, world, Wanted(names, (1, 2, 4), "test", 60))
    shown: dict[str, set[tuple[Any, ...]]] = {name: set() for name in names}
    for line in run.scores():
        what = (line["shots"], line["item"], line["prompt"], *line["pointer"])
        shown[line["checkpoint"]].add(what)
    assert len(shown["start"]) == 3 * 60
    assert shown["start"] == shown["baseline:similar-both"]


def test_what_is_learnt_beside_retrieval_moves_from_the_second_update_on(
    ledger: Ledger, tmp_path: Path
) -> None:
    """Its score is zero at first, so nothing reaches what is behind it in the first update."""
    keys = ("selector=retrieval-plus", "supervised.epochs=0", "rce.epochs=0", "epochs=1")
    assert train_tiny(tmp_path / "grown", ledger, *keys).finished


def test_words_are_weighed_as_okapi_weighs_them() -> None:
    """By hand: three demonstrations of two, two and four words; the query shares a rare one."""
    texts = ("red ball", "blue ball", "blue ball blue sky", "red sky")
    *shown, asked = (Item(text, text, text, ("a",), "a") for text in texts)
    none = Embeddings(None, np.zeros((3, 1), np.float32))
    pooled = Pooled([asked], none, shown, none, np.array([[0, 1, 2]]))
    red = math.log(1 + 2.5 / 1.5) / (1 + 1.2 * (0.25 + 0.75 * 2 / (8 / 3)))
    sky = math.log(1 + 2.5 / 1.5) / (1 + 1.2 * (0.25 + 0.75 * 4 / (8 / 3)))
    assert bm25(pooled)[0].tolist() == pytest.approx([1.0, 0.0, sky / red])
