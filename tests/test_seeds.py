import os
import subprocess
import sys

import numpy as np
import pytest
import torch

from kleash import seeds

GOLDEN = """\
25336418237039548368144377536449958770
[2745921670, 4111458700, 4152584783, 3133992350]
[0.9572735756261588, 0.7296894562819155]
[-0.40462274828768385, 0.6927697575106446, 3.033750788990817]
"""


@pytest.mark.parametrize("hash_seed", ["0", "12345"])
def test_draws_are_the_same_in_every_process(hash_seed: str) -> None:
    code = (
        "from kleash import seeds;"
        "print(seeds.key('task', 3));"
        "print(seeds.generator('pool', 0).integers(0, 2**32, 4).tolist());"
        "print(seeds.generator('pool', 0).random(2).tolist());"
        "print(seeds.gumbel(3, 1, 't', 0, 0).tolist())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONHASHSEED": hash_seed},
        capture_output=True,
        check=True,
        text=True,
    )
    assert done.stdout == GOLDEN


def test_torch_draws_are_golden_too() -> None:
    drawn = torch.randint(0, 1000, (5,), generator=seeds.torch_generator("x", 1))
    assert drawn.tolist() == [236, 156, 284, 125, 423]


def test_a_draw_depends_on_its_names_and_not_on_what_was_drawn_before() -> None:
    first = seeds.generator("pool", 3).random(4)
    seeds.generator("noise", 1).random(1000)
    np.random.default_rng(0).random(10)
    torch.rand(3)
    assert (seeds.generator("pool", 3).random(4) == first).all()
    one, two = seeds.torch_generator("a"), seeds.torch_generator("b")
    mixed = [torch.rand(1, generator=rng).item() for rng in (one, two, one, two)]
    again = seeds.torch_generator("a")
    assert [torch.rand(1, generator=again).item() for _ in range(2)] == mixed[::2]


def test_names_differ_by_value_order_kind_and_count() -> None:
    names = [(), ("a",), ("a", "b"), ("b", "a"), ("ab",), ("a", 1), ("a", "1"), ("a", 1.0), (None,)]
    assert len({seeds.key(*some) for some in names}) == len(names)
    assert all(0 <= seeds.key(*some) < 2**128 for some in names)


def test_streams_of_neighbouring_seeds_have_nothing_in_common() -> None:
    draws = np.stack([seeds.generator("s", seed).standard_normal(4000) for seed in range(8)])
    apart = np.corrcoef(draws) - np.eye(8)
    assert np.abs(apart).max() < 5 / np.sqrt(4000)


def test_arms_that_share_a_seed_share_their_noise_and_draw_by_their_own_logits() -> None:
    logits = np.log([0.7, 0.2, 0.1])
    n = 20_000
    noise = np.stack([seeds.gumbel(3, 0, "task", rollout, 0) for rollout in range(n)])
    assert (noise[7] == seeds.gumbel(3, 0, "task", 7, 0)).all()
    shares = np.bincount((logits + noise).argmax(axis=1), minlength=3) / n
    assert shares == pytest.approx([0.7, 0.2, 0.1], abs=4 * 0.5 / np.sqrt(n))
