import dataclasses
import math

import numpy as np
import pytest
from pydantic import ValidationError

from kleash.errors import DataError
from kleash.seeds import generator
from kleash.tasks.demos.embeddings import Embeddings, nearest, unit_rows
from kleash.tasks.demos.pool import Pooling, make_pools
from kleash.types import Item

KINDS = ("mixed", "random", "text", "image")


def rows(count, name):
    rng = generator("test", "pool", name)
    made = [rng.standard_normal((count, 8)).astype(np.float32) for _ in range(2)]
    return Embeddings(*(unit_rows(vectors) for vectors in made))


def items(count, name):
    return [Item(f"{name}-{i}", f"{name}-{i}", "q?", ("a",) * 10, "a") for i in range(count)]


QUERIES, SHOWN = items(40, "query"), items(300, "shown")
QUERY_ROWS, SHOWN_ROWS = rows(40, "query"), rows(300, "shown")


def pools(kind="mixed", size=24, seed=0, queries=None, wanted=None):
    wanted = np.arange(40) if wanted is None else wanted
    asked = [(queries or QUERIES)[i] for i in wanted]
    return make_pools(
        Pooling(kind=kind, size=size), seed, asked, QUERY_ROWS.rows(wanted), SHOWN, SHOWN_ROWS
    )


# --- who is near


def test_the_nearest_come_by_falling_product_and_equals_in_order():
    others = np.array([[0, 1], [1, 0], [0.6, 0.8], [1, 0]], dtype=np.float32)
    query = np.array([[1, 0]], dtype=np.float32)
    assert nearest(query, others, 4).tolist() == [[1, 3, 2, 0]]
    assert nearest(query, others, 2).tolist() == [[1, 3]]
    assert nearest(query[:0], others, 2).shape == (0, 2)


def test_who_is_near_does_not_depend_on_what_else_is_asked():
    rng = generator("test", "ties")
    distinct = unit_rows(rng.standard_normal((20, 384)).astype(np.float32))
    others = distinct[rng.integers(0, 20, 999)]  # many equals: their order must not waver
    queries = unit_rows(rng.standard_normal((150, 384)).astype(np.float32))
    together = nearest(queries, others, 60)
    for block in ((7, 1000), (1000, 11), (7, 90), (3, 1)):
        assert (nearest(queries, others, 60, block=block) == together).all()
    for place in range(0, 150, 10):
        assert (nearest(queries[place : place + 1], others, 60)[0] == together[place]).all()


def test_faiss_finds_the_same_in_the_same_order(monkeypatch):
    pytest.importorskip("faiss")
    rng = generator("test", "faiss")
    others = unit_rows(rng.standard_normal((3000, 64)).astype(np.float32))
    others[1000:2000] = others[rng.integers(0, 5, 1000)]  # more equals than are fetched
    queries = np.concatenate([others[:8], unit_rows(rng.standard_normal((40, 64)))])
    own = nearest(queries.astype(np.float32), others, 60)
    monkeypatch.setattr("kleash.tasks.demos.embeddings.MANY", 100)
    assert (nearest(queries.astype(np.float32), others, 60) == own).all()


def test_the_order_of_near_equals_is_that_of_exact_sums():
    """In single precision their order would hang on how the sums are made."""
    rng = generator("test", "near equals")
    query, other = unit_rows(rng.standard_normal((2, 384)).astype(np.float32))[:, None]
    others = unit_rows(other + rng.normal(0, 1e-6, (200, 384)).astype(np.float32))
    products = [
        round(math.fsum(float(a) * float(b) for a, b in zip(query[0], row, strict=True)), 6)
        for row in others
    ]
    exact = sorted(range(200), key=lambda place: -products[place])
    assert nearest(query, others, 200)[0].tolist() == exact


def test_both_is_the_mean_of_the_two_likenesses():
    both = QUERY_ROWS.part("both") @ SHOWN_ROWS.part("both").T
    image = QUERY_ROWS.part("image") @ SHOWN_ROWS.part("image").T
    text = QUERY_ROWS.part("text") @ SHOWN_ROWS.part("text").T
    assert np.allclose(both, (image + text) / 2, atol=1e-6)
    assert QUERY_ROWS.part("both").dtype == np.float32
    assert np.allclose(np.linalg.norm(unit_rows(np.ones((3, 5), np.float32)), axis=1), 1)


# --- what a pool holds


@pytest.mark.parametrize("kind", KINDS)
def test_a_pool_holds_different_demonstrations_and_as_many_as_asked(kind):
    made = pools(kind)
    assert made.shape == (40, 24)
    assert all(len(set(row)) == 24 for row in made.tolist())


@pytest.mark.parametrize("kind", KINDS)
def test_a_query_never_meets_its_own_image(kind):
    near = nearest(QUERY_ROWS.part("text"), SHOWN_ROWS.part("text"), 1)[:, 0]
    own = [
        dataclasses.replace(query, image=SHOWN[row].image)
        for query, row in zip(QUERIES, near, strict=True)
    ]
    made = pools(kind, queries=own)
    images = [[SHOWN[row].image for row in pool] for pool in made.tolist()]
    assert not any(query.image in pool for query, pool in zip(own, images, strict=True))
    if kind == "text":  # it would have been there
        assert all(row in pool for row, pool in zip(near, pools(kind).tolist(), strict=True))


def test_similar_pools_are_the_nearest_and_mixed_ones_a_third_of_each():
    text = nearest(QUERY_ROWS.part("text"), SHOWN_ROWS.part("text"), 24)
    image = nearest(QUERY_ROWS.part("image"), SHOWN_ROWS.part("image"), 24)
    for query in range(40):
        assert set(pools("text")[query]) == set(text[query])
        assert set(pools("image")[query]) == set(image[query])
        mixed = set(pools("mixed")[query])
        assert mixed >= set(text[query][:8])
        assert mixed >= set(image[query][:8])
        assert not mixed <= {*text[query], *image[query]}


@pytest.mark.parametrize("kind", KINDS)
def test_a_pool_depends_on_seed_and_query_and_on_nothing_else(kind):
    made = pools(kind)
    assert (pools(kind) == made).all()
    order = generator("test", "order").permutation(40)
    assert (pools(kind, wanted=order) == made[order]).all()
    assert (pools(kind, wanted=np.array([17])) == made[[17]]).all()
    assert (pools(kind, seed=1) != made).any()


def test_the_order_in_a_pool_says_nothing():
    """The nearest demonstration stands anywhere, as often early as late."""
    near = nearest(QUERY_ROWS.part("text"), SHOWN_ROWS.part("text"), 1)[:, 0]
    places = [
        made[query].tolist().index(near[query])
        for made in (pools("text", seed=seed) for seed in range(15))
        for query in range(40)
    ]
    counts = np.bincount(places, minlength=24)
    # 600 draws over 24 places: 25 each; chi-square with 23 degrees, 99.9 % below 49.7.
    assert ((counts - 25) ** 2 / 25).sum() < 49.7


# --- what cannot be


def test_too_few_demonstrations_are_refused():
    with pytest.raises(DataError, match="a pool of 300 needs more than 300 demonstrations"):
        pools(size=300)
    assert pools("random", size=299).shape == (40, 299)


def test_too_few_other_images_are_refused():
    same = [dataclasses.replace(item, image="one") for item in SHOWN]
    query = [dataclasses.replace(QUERIES[0], image="one")]
    with pytest.raises(DataError, match="query-0: only 0 demonstrations were found"):
        make_pools(Pooling(size=5), 0, query, QUERY_ROWS.rows(np.array([0])), same, SHOWN_ROWS)


def test_the_maker_names_the_way_a_pool_was_made():
    assert Pooling().maker == "mixed-64"
    assert Pooling(kind="text", size=8).maker == "text-8"
    with pytest.raises(ValidationError):
        Pooling(size=0)
