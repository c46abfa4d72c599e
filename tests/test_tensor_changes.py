"""What is told of two files of tensors, to the last count: names, blocks, sizes, sentences."""

import json
import math

import pytest
import torch
from safetensors.torch import save_file

from kleash.catalogue import tensor_screen, width
from kleash.compare.checkpoints import (
    Change,
    Checkpoints,
    Choices,
    agreement,
    block,
    compare_checkpoints,
    difference,
    is_checkpoint,
)
from kleash.compare.records import Because
from kleash.compare.tensor_files import DEEPEST, tensors_of, weight_files
from kleash.errors import CheckpointError

pytestmark = pytest.mark.usefixtures("one_thread")


def saved(path, tensors):
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save(tensors, path)
    return path


# --- one tensor


def test_a_tensor_on_one_side_alone_is_told_with_its_size():
    for sides, kind, shapes in (
        ((torch.ones(2, 3), None), "only first", ((2, 3), None)),
        ((None, torch.ones(2, 3)), "only second", (None, (2, 3))),
    ):
        found = difference("w", *sides)
        assert (found.kind, found.parameters, found.shapes) == (kind, 6, shapes)
        assert (found.differ, found.largest, found.relative) == (None, None, None)
        assert set(found.types) == {"float32", None}


def test_another_shape_is_told_with_the_first_ones_size():
    found = difference("w", torch.ones(2, 3), torch.ones(3, 4))
    assert (found.kind, found.parameters, found.shapes) == ("reshaped", 6, ((2, 3), (3, 4)))
    assert found.differ is None


def test_changes_are_measured_against_the_first():
    found = difference("w", torch.tensor([3.0, 4.0]), torch.tensor([3.0, 2.0]))
    assert (found.largest, found.relative) == (2.0, 0.4)
    back = difference("w", torch.tensor([3.0, 2.0]), torch.tensor([3.0, 4.0]))
    assert (back.largest, back.relative) == (2.0, pytest.approx(2 / math.sqrt(13), rel=1e-15))


def test_values_that_are_not_finite_are_in_no_size_on_either_side():
    left, right = torch.tensor([1.0, math.inf, 2.0]), torch.tensor([1.5, 2.0, math.nan])
    for ours, theirs, relative in ((left, right, 0.5), (right, left, 0.5 / 1.5)):
        found = difference("w", ours, theirs)
        assert (found.differ, found.largest) == (3, 0.5)
        assert found.relative == pytest.approx(relative, rel=1e-15)


def test_numbers_of_another_type_are_equal_where_both_are_missing():
    left = torch.tensor([math.nan, 1.0, math.nan])
    found = difference("w", left, torch.tensor([math.nan, 1.0, 3.0], dtype=torch.float64))
    assert (found.kind, found.differ, found.types) == ("retyped", 1, ("float32", "float64"))


def test_complex_numbers_differ_in_either_part():
    left = torch.tensor([3 + 4j, 1 + 1j])
    found = difference("w", left, torch.tensor([3 + 4.5j, 1 + 1j]))
    assert (found.differ, found.largest) == (1, 0.5)
    assert found.relative == pytest.approx(0.5 / math.sqrt(27), rel=1e-15)


@pytest.mark.filterwarnings("ignore:.*quantiz.*")
def test_quantised_numbers_are_compared_by_value():
    left, right = (
        torch.quantize_per_tensor(torch.tensor(values), 0.5, 0, torch.qint8)
        for values in ([1.0, 2.0], [1.0, 3.5])
    )
    assert difference("w", left, left) is None
    found = difference("w", left, right)
    assert (found.differ, found.largest, found.types[0]) == (1, 1.5, "qint8")


@pytest.mark.parametrize(
    ("name", "of"),
    [
        ("encoder.norm.weight", "encoder.norm"),
        ("encoder.layers.3.heads.0.weight", "encoder.layers.3"),
        ("gates.0", "gates"),
        ("0.weight", "0"),
    ],
)
def test_a_block_is_the_outermost_layer(name, of):
    assert block(name) == of


# --- two files


def test_the_first_file_is_named_first_and_names_differ(tmp_path):
    weights = {"w": torch.ones(1)}
    a, b = saved(tmp_path / "a.pt", weights), saved(tmp_path / "b.pt", weights)
    assert compare_checkpoints(a, b).names == ("a.pt", "b.pt")
    c = saved(tmp_path / "other/a.pt", weights)
    assert compare_checkpoints(c, a).names == (str(c), str(a))


def test_counts_by_hand_and_the_largest_change_first(tmp_path):
    ones = torch.ones(4)
    first = {"a.w": ones, "b.w": ones, "c.w": torch.zeros(2), "d.w": ones, "d.b": ones, "e.w": ones}
    second = {
        "a.w": ones + torch.tensor([0.0, 0.0, 0.0, 0.5]),  # a quarter of its length
        "b.w": 2 * ones,
        "c.w": torch.ones(2),  # from nothing: no relative change
        "d.w": ones,
        "d.b": ones.double(),
        "f.w": torch.ones(7),
    }
    found = compare_checkpoints(saved(tmp_path / "a.pt", first), saved(tmp_path / "b.pt", second))
    assert (found.shared, found.parameters, found.differ) == (5, 18, 7)
    assert [each.name for each in found.changes[:2]] == ["b.w", "a.w"]
    assert [each.relative for each in found.of("changed")] == [1.0, 0.25, None]
    assert [each.name for each in found.of("retyped")] == ["d.b"]
    assert found.equal_blocks == ()  # d holds one tensor that is the same and one that is not
    assert sorted(found.other_blocks) == ["a", "b", "c", "d", "e", "f"]


def test_weights_are_found_beside_what_a_trainer_saves(tmp_path):
    for name in ("optimizer.pt", "scheduler.pt", "rng_state_0.pth", "training_args.bin"):
        saved(tmp_path / name, {"x": torch.ones(1)})
    assert weight_files(tmp_path) == []
    assert not is_checkpoint(tmp_path)
    kept = [saved(tmp_path / name, {name: torch.ones(1)}) for name in ("model-1.PT", "model-2.pt")]
    assert weight_files(tmp_path) == kept
    save_file({"w": torch.ones(1)}, tmp_path / "model.safetensors")
    assert weight_files(tmp_path) == [tmp_path / "model.safetensors"]  # one kind, the safest


@pytest.mark.parametrize("key", ["model_state_dict", "state_dict", "model", "policy"])
def test_weights_are_taken_out_of_what_is_around_them(key, tmp_path):
    held = {"lr": 0.1, "ema": {"w": torch.zeros(1)}, key: {"w": torch.ones(1)}}
    found = tensors_of(saved(tmp_path / "a.pt", held))
    assert {name: tensor().tolist() for name, tensor in found.items()} == {"w": [1.0]}


def test_a_tensor_called_model_is_a_tensor(tmp_path):
    found = tensors_of(saved(tmp_path / "a.pt", {"model": torch.ones(1), "b": torch.ones(1)}))
    assert list(found) == ["model", "b"]


def test_a_wrappers_name_is_dropped_only_where_every_tensor_has_it(tmp_path):
    both = {"module._orig_mod.a": torch.ones(1), "module._orig_mod.b": torch.ones(1)}
    assert list(tensors_of(saved(tmp_path / "a.pt", both))) == ["a", "b"]
    some = {"module.a": torch.ones(1), "b": torch.ones(1)}
    assert list(tensors_of(saved(tmp_path / "b.pt", some))) == ["module.a", "b"]


def test_containers_are_entered_as_deep_as_is_said(tmp_path):
    def nested(depth):
        held = torch.ones(1)
        for _ in range(depth):
            held = [held]
        return saved(tmp_path / f"{depth}.pt", held)

    assert list(tensors_of(nested(DEEPEST + 2))) == [".".join(["0"] * (DEEPEST + 2))]
    with pytest.raises(CheckpointError, match=f"more than {DEEPEST} deep"):
        tensors_of(nested(DEEPEST + 3))


def test_one_container_under_two_names_is_entered_once(tmp_path):
    shared = [torch.ones(1)]
    assert list(tensors_of(saved(tmp_path / "a.pt", {"a": shared, "b": shared}))) == ["a.0"]


# --- choices and sentences


def test_choices_of_other_lengths_differ_where_one_has_stopped():
    found = agreement([(1, 2), (3,)], [(1,), (3,)], shots=3)
    assert (found.equal, found.differ) == ((1.0, 0.5, 1.0), 1)
    with pytest.raises(ValueError, match="zip"):
        agreement([(1,)], [(1,), (2,)], shots=1)


def made(*changes, shared=2, differ=0, equal=(), other=(), choices=None, because=()):
    return Checkpoints(("a", "b"), shared, 10, differ, changes, equal, other, choices, because)


def change(name, kind="changed", **more):
    return Change(name, kind, ((2,), (2,)), ("float32", "float32"), 5, **more)


def test_sentences_tell_what_is_the_case_and_nothing_else():
    moved = change("w", differ=3, largest=0.5, relative=0.25)
    found = made(moved, differ=3, other=("w",), because=(Because("choices_need_runs"),))
    first, blocks, choices = tensor_screen.sentences(found, "en")
    assert first == "1 of 2 shared tensors differ, in 3 of 10 parameters (30.00%)"
    assert blocks == "no block is the same bit for bit"
    assert choices.startswith("choices are not compared")
    nothing = tensor_screen.sentences(
        made(*(change(n, "only first") for n in "wx"), shared=0), "en"
    )
    assert nothing[0].startswith("no tensor has the same name and shape")
    assert nothing[1] == "2 tensors only in a (10 parameters): w, x"
    assert len(nothing) == 2
    rest = tensor_screen.sentences(
        made(*(change(n, "only second") for n in "wx"), equal=("v",), other=("w",)), "en"
    )
    assert rest == [
        "the 2 shared tensors are the same, bit for bit (10 parameters)",
        "2 tensors only in b (10 parameters): w, x",
        "the same bit for bit, of 2 blocks: 1 (v)",
    ]


def test_at_most_six_names_are_listed():
    for count, end in ((6, "w5"), (7, "…")):
        changes = [change(f"w{at}", "reshaped") for at in range(count)]
        said = tensor_screen.sentences(made(*changes), "en")[1]
        assert said.startswith(f"{count} tensors have another shape: w0")
        assert said.endswith(end)


def test_choices_are_told_with_their_bound_or_by_position():
    same = made(choices=Choices(60, (1.0, 1.0), 0, 0.0487))
    assert (
        "all 60 validation queries; on others at most 4.87%"
        in tensor_screen.sentences(same, "en")[1]
    )
    other = made(choices=Choices(60, (0.75, 0.5), 30, 0.6))
    said = tensor_screen.sentences(other, "en")[1]
    assert "on 30 of 60 validation queries (50.00%); equal by position: 75.0%, 50.0%" in said


def test_the_table_has_a_row_for_each_change_and_columns_that_line_up():
    changes = [
        change("短", differ=5, largest=0.5, relative=0.25),
        change("longer", "retyped", differ=1, largest=1e-9, relative=None),
    ]
    lines = tensor_screen.terminal(made(*changes, differ=6), "zh").splitlines()[-3:]
    assert len({width(line) for line in lines}) == 1
    assert lines[1].split() == ["短", "100.0%", "5.00e-01", "2.50e-01"]
    assert lines[2].split() == ["longer", "20.0%", "1.00e-09", "—"]


def test_fourteen_rows_are_shown_and_the_rest_is_counted():
    for count, last in ((14, "w13"), (15, "… and 1 more (--json)")):
        changes = [change(f"w{at}", differ=1, largest=1.0, relative=1.0) for at in range(count)]
        screen = tensor_screen.terminal(made(*changes, differ=count), "en")
        assert screen.splitlines()[-1].startswith(last)


def test_json_counts_each_kind_apart():
    kinds = ["changed", "retyped", "retyped", *["reshaped"] * 3, *["only first"] * 4]
    kinds += ["only second"] * 5
    found = made(*(change(f"w{at}", kind) for at, kind in enumerate(kinds)), differ=4)
    told = json.loads(json.dumps(tensor_screen.plain(found, "en")))
    assert told["tensors"] == {
        "shared": 2, "differ": 3, "reshaped": 3, "only_first": 4, "only_second": 5,
    }  # fmt: skip
    assert told["parameters"] == {"shared": 10, "differ": 4, "share": 0.4}
    assert told["checkpoints"] == ["a", "b"]
    none = Checkpoints(("a", "b"), 0, 0, 0, (), (), (), None)
    assert tensor_screen.plain(none, "en")["parameters"]["share"] is None
