"""The bench of a large agent's update at a tiny size: lengths, parts, figures that are there."""

import json

import pytest

from benchmarks import BENCHES
from benchmarks.gpu import Bench, gpu_bench
from benchmarks.shapes import TOKENS, lengths_of_turns
from kleash.errors import KleashError

pytestmark = [
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning"),
]


def test_the_lengths_are_those_of_a_step_of_the_documents():
    turns = lengths_of_turns(TOKENS)
    assert turns == lengths_of_turns(TOKENS)
    assert len(turns) == 48 and all(3 <= len(each) <= 16 for each in turns)
    assert sum(sum(map(sum, each)) for each in turns) == TOKENS == 179_517
    assert sum(said for each in turns for _, said in each) == TOKENS // 2
    assert all(heard > 0 and said > 0 for each in turns for heard, said in each)
    # A task's opening is shared, up to the rounding that makes the sum exact.
    openings = [each[0][0] for each in turns]
    assert all(max(openings[i : i + 8]) - min(openings[i : i + 8]) <= 1 for i in range(0, 48, 8))
    whole = sorted(sum(map(sum, each)) for each in turns)
    assert whole[-1] > 3 * whole[0]


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["", "aot_eager"])
def test_every_part_is_measured(capsys, backend):
    found = gpu_bench("cpu", seconds=1e4, tokens=1200, backend=backend)
    assert not [name for name in found if "failed" in name or "not measured" in name], found
    assert found["packed against padded, largest gap (nats)"] < 1e-4
    assert found["episodes"] == 48 and found["of which said by the policy"] == 600
    assert found["update, times the plain way"] > 0 and found["update, padding"] < 0.2
    ours, theirs = found["update, seconds"], found["reference pass without head, seconds"]
    share = found["share of the reference pass in reference and update"]
    assert share == pytest.approx(theirs / (theirs + ours))
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines() if line[0] == "{"]
    assert {line["what"] for line in lines} >= set(found) - {"setting"}


@pytest.mark.slow
def test_a_part_that_breaks_leaves_its_error_and_the_others_go_on(monkeypatch, capsys):
    def broken(self):
        raise ValueError("as planned")

    monkeypatch.setattr(Bench, "agreement", broken)
    found = gpu_bench("cpu", part="reference", seconds=1e4, tokens=1200)
    assert found["agreement: failed"] == "ValueError: as planned"
    assert found["reference pass without head, tokens per second"] > 0
    late = gpu_bench("cpu", part="reference", seconds=0, tokens=1200)
    assert "reference: not measured" in late and "reference pass, peak GiB" not in late


def test_what_is_not_there_is_named():
    assert "gpu" in BENCHES
    with pytest.raises(KleashError, match="no part 'all': there is update"):
        gpu_bench("cpu", part="all")
    with pytest.raises(KleashError, match=r"no shape '70b': there is 8b, 4b, 1\.7b, tiny"):
        gpu_bench("cpu", model="70b")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:mkldnn_matmul failed:UserWarning")
def test_what_is_rounded_is_held_against_float32(monkeypatch, capsys):
    found = gpu_bench("cpu", part="agreement", seconds=1e4)
    assert not [name for name in found if "failed" in name], found
    for layers in (2, 3):
        assert found[f"{layers} layers, choices"] == 160
        both = f"{layers} layers, packed against padded, both in float32, largest (nats)"
        assert found[both] < 1e-5
        for way in ("sampled", "padded", "packed", "the model's own forward"):
            figures = found[f"{layers} layers, {way} against float32 (nats)"]
            assert 0 < figures["mean size"] < figures["largest"] < 0.01

    unplaced = lambda rotary, like, pack: (like.new_ones(1), like.new_zeros(1))  # noqa: E731
    monkeypatch.setattr("kleash.models.language.packed.rope_of", unplaced)
    found = gpu_bench("cpu", part="agreement", seconds=1e4)
    assert "farther from float32 than padded: packed" in found["3 layers: failed"]


@pytest.mark.slow
def test_what_an_update_takes_stands_beside_what_is_planned(capsys):
    found = gpu_bench("cpu", part="fits", seconds=1e4, tokens=600)
    assert not [name for name in found if "failed" in name], found
    for way in ("tiny LoRA of rank 4", "tiny full"):
        assert found[f"{way}, packs"] > 1 and found[f"{way}, planned GiB in all"] > 0
        assert found[f"{way}, update and reference, tokens per second"] > 0
