"""Effects from unbalanced runs: intervals cover, equal settings stay equal, aliases are found."""

import numpy as np
import pytest

from kleash import stats
from kleash.seeds import generator
from kleash.stats import aliases, design, estimable, fitted, misfit

SEEDS = {
    "all different": list(range(14)),
    "four for all": [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 3, 3, 3],
    "some shared": [0, 0, 0, 0, 0, 0, 1, 1, 2, 2, 3, 4, 5, None],
    "eight runs": [0, 0, 0, 1, 1, 1, 2, 2],
}
STUDIES = [pytest.param(80, id="short"), pytest.param(1000, id="full", marks=pytest.mark.slow)]


def unbalanced(rng, runs):
    """Three factors, each on in a few of the runs and off in the others, none aliased."""
    while True:
        columns = {
            name: (rng.random((runs, 1)) < share).astype(float)
            for name, share in (("a", 0.5), ("b", 0.4), ("c", 0.3))
        }
        counts = [int(each.sum()) for each in columns.values()]
        if not aliases(columns, runs) and min(counts) > 1 and max(counts) < runs - 1:
            return columns


@pytest.mark.parametrize("studies", STUDIES)
@pytest.mark.parametrize("shared", [0.0, 1.0], ids=["seeds alike", "seeds apart"])
@pytest.mark.parametrize("kind", SEEDS)
def test_intervals_cover_and_equal_settings_are_left_alone(kind, shared, studies):
    rng, seeds = generator("effects", kind, shared), SEEDS[kind]
    covered = wrong = 0
    for _ in range(studies):
        columns = unbalanced(rng, len(seeds))
        luck = {seed: rng.normal(0, shared) for seed in seeds}
        drawn = rng.normal(size=len(seeds)) + [luck[seed] for seed in seeds]
        fit = fitted(1.5 * columns["a"][:, 0] + drawn, design(columns, len(seeds)), seeds)
        planted, nothing = fit.effect([0, 1, 0, 0]), fit.effect([0, 0, 1, 0])
        covered += planted.interval.low <= 1.5 <= planted.interval.high
        wrong += nothing.p < 0.05
    room = 2.5 * np.sqrt(0.05 * 0.95 / studies)
    assert covered / studies >= 0.93 - room
    assert wrong / studies <= 0.07 + room


def test_one_factor_without_shared_seeds_is_the_t_test():
    ours, theirs = np.array([1.0, 2.0, 4.0]), np.array([0.0, 1.0, 1.5, 0.5])
    columns = {"a": np.array([[1.0]] * 3 + [[0.0]] * 4)}
    found = fitted(np.append(ours, theirs), design(columns, 7)).effect([0, 1])
    pooled = np.sqrt((ours.var() * 3 + theirs.var() * 4) / 5 * (1 / 3 + 1 / 4))
    assert found.interval.estimate == pytest.approx(ours.mean() - theirs.mean())
    assert found.interval.high - found.interval.estimate == pytest.approx(2.570582 * pooled)
    assert found.interval.n == 7


def test_seeds_that_differ_much_are_taken_out():
    rng = generator("much")
    seeds = [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    columns = {"a": np.array([[0.0], [1.0]] * 5)}
    values = np.repeat(rng.normal(0, 10, 5), 2) + 0.5 * columns["a"][:, 0]
    values += rng.normal(0, 0.1, 10)
    with_seeds = fitted(values, design(columns, 10), seeds)
    without = fitted(values, design(columns, 10))
    assert with_seeds.effect([0, 1]).p < 0.01
    assert without.effect([0, 1]).p > 0.5
    assert with_seeds.shared > 0.9 > without.shared == 0


def test_aliases_are_named():
    on = np.array([0.0, 0, 1, 1, 0, 1, 0, 1])[:, None]
    other = np.array([0.0, 1, 0, 1, 0, 0, 1, 1])[:, None]
    third = np.array([0.0, 0, 0, 0, 1, 1, 1, 1])[:, None]
    assert aliases({"a": on, "b": other, "c": third}, 8) == {}
    assert aliases({"a": on, "b": on.copy(), "c": other}, 8) == {"a": ("b",), "b": ("a",)}
    both = np.maximum(on[:4], other[:4]) + np.minimum(on[:4], other[:4])
    found = aliases({"a": on[:4], "b": other[:4], "c": both}, 4)
    assert found == {"a": ("b", "c"), "b": ("a", "c"), "c": ("a", "b")}
    assert not estimable({"a": np.hstack([on, on])}, 8, "a")


def test_an_alias_of_many_names_all_of_them():
    # One more factor than runs: each needs more of the others gone than are tried.
    columns = {f"f{at}": np.eye(9)[:, [at]] for at in range(9)}
    columns["all"] = np.arange(9.0)[:, None] ** 2
    found = aliases(columns, 9)
    assert found["all"] == tuple(f"f{at}" for at in range(9))


def test_where_no_run_is_left_over_there_is_no_fit():
    columns = {"a": np.array([[0.0], [1.0]])}
    assert fitted([1.0, 2.0], design(columns, 2)) is None
    assert fitted([1.0, 2.0, 2.0], design({"a": np.array([[0.0], [1.0], [1.0]])}, 3)) is None


def test_repeats_that_contradict_adding_up_are_noticed():
    rng = generator("misfit")
    columns = {
        "a": np.repeat([0.0, 1, 0, 1], 4)[:, None],
        "b": np.repeat([0.0, 0, 1, 1], 4)[:, None],
    }
    settings = np.repeat(["--", "a-", "-b", "ab"], 4).tolist()
    whole = design(columns, 16)
    noise = rng.normal(0, 0.1, 16)
    adding = columns["a"][:, 0] + columns["b"][:, 0] + noise
    together = columns["a"][:, 0] * columns["b"][:, 0] + noise
    assert misfit(adding, whole, settings) > 0.05
    assert misfit(together, whole, settings) < 0.001
    assert misfit(adding, whole, list(range(16))) is None
    assert (
        misfit([1.0, 1.0, 2.0, 2.0, 4.0, 4.0], whole[[0, 1, 4, 5, 8, 9]], [0, 0, 1, 1, 2, 2])
        is None
    )
    exact = columns["a"][:, 0] * columns["b"][:, 0]
    assert misfit(exact, whole, settings) is None
    wrong = [misfit(rng.normal(size=16), whole, settings) < 0.05 for _ in range(400)]
    assert np.mean(wrong) == pytest.approx(0.05, abs=0.03)


def test_the_rank_of_nothing_is_0():
    assert stats.rank(np.empty((3, 0))) == 0


def test_each_share_is_generalised_least_squares():
    rng, seeds = generator("dense"), [0, 0, 1, 1, 1, None, 2, None, 2]
    columns = {"a": rng.normal(size=(9, 1)), "b": rng.normal(size=(9, 1))}
    values, wide = rng.normal(size=9), design(columns, 9)
    fit = fitted(values, wide, seeds)
    alike = np.array([[a == b and a is not None for b in seeds] for a in seeds]) | np.eye(
        9, dtype=bool
    )
    logs = []
    for share, estimate, covariance in zip(
        stats.effects.SHARED, fit.estimates, fit.covariances, strict=True
    ):
        spread = share * alike + (1 - share) * np.eye(9)
        weight = np.linalg.inv(spread)
        inner = np.linalg.inv(wide.T @ weight @ wide)
        expected = inner @ wide.T @ weight @ values
        rest = values - wide @ expected
        square = rest @ weight @ rest
        assert fit.basis @ estimate == pytest.approx(expected)
        assert fit.basis @ covariance @ fit.basis.T == pytest.approx(inner * square / 6)
        logs.append(np.linalg.slogdet(inner)[1] - np.linalg.slogdet(spread)[1] - 6 * np.log(square))
    weights = np.exp(np.array(logs) / 2 + stats.effects.STRETCHES)
    assert fit.weights == pytest.approx(weights / weights.sum())


def test_p_of_an_effect_beyond_doubt_is_a_p():
    rng, seeds = generator("beyond doubt"), list(range(10)) * 20
    columns = {"a": (np.arange(200) // 10 % 2)[:, None].astype(float)}
    for side in (1, -1):
        values = side * 50.0 * columns["a"][:, 0] + rng.normal(size=200)
        p = fitted(values, design(columns, 200), seeds).effect([0, 1]).p
        assert 0 <= p < 1e-30
