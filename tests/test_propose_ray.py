"""Proposals asked for on a Ray cluster are written as one process writes them."""

import pytest

import study_tools
from kleash.runs.jobs import on_ray
from kleash.train.propose import propose_all
from test_propose import ANYWHERE
from tiny import tiny_recipe

if on_ray.ray is None:
    pytest.skip("Ray is not installed: make test-all has it", allow_module_level=True)
pytestmark = [
    pytest.mark.slow,
    # Ray leaves sockets and files to the garbage collector.
    pytest.mark.filterwarnings(
        "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
    ),
]


def test_a_cluster_writes_what_one_process_writes(tmp_path):
    recipe = tiny_recipe(*ANYWHERE)
    alone = propose_all(recipe, tmp_path / "one/rl.json")
    with study_tools.tests_importable():
        both = propose_all(recipe, tmp_path / "two/rl.json", workers=2, on="ray")
    assert (tmp_path / "two/rl.json").read_bytes() == (tmp_path / "one/rl.json").read_bytes()
    assert both["bought"] == alone["bought"]
