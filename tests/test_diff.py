"""`kleash diff`: what differs between the tensors of two files, by hand; and torn files."""

import json
import math
import pickle
import random
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from kleash.cli import main
from kleash.errors import CheckpointError, DataError
from kleash.train.adopt import diff
from kleash.train.adopt.diff import DEEPEST, block, change, differences, tensors_of, weight_files
from pace import cpu_within, within
from test_imports_fuzz import SECONDS, mutate

pytestmark = pytest.mark.usefixtures("one_thread")

WEIGHTS = {
    "layers.0.weight": torch.tensor([[3.0, 4.0], [0.0, 0.0]]),
    "layers.1.weight": torch.ones(4),
    "head.weight": torch.ones(2, 3),
    "head.bias": torch.zeros(3),
}
ONE = torch.ones(1)
NAN, INF = math.nan, math.inf


def saved(path, tensors):
    if path.suffix == ".safetensors":
        save_file(tensors, path)
    else:
        torch.save(tensors, path)
    return path


def call(monkeypatch, capsys, *words):
    monkeypatch.setattr(sys, "argv", ["kleash", "diff", *map(str, words)])
    with pytest.raises(SystemExit) as stop:
        main()
    out, err = capsys.readouterr()
    return stop.value.code or 0, out, err


# --- one tensor


@pytest.mark.parametrize(
    ("left", "right", "differ", "largest", "relative"),
    [
        ([3.0, 4.0, 0.0], [3.0, 4.5, 0.0], 1, 0.5, 0.1),
        ([3.0, 2.0], [3.0, 4.0], 1, 2.0, 2 / math.sqrt(13)),  # against the first
        ([0.0], [-0.0], 1, 0.0, None),  # bits decide
        ([1.0, 1.0], [NAN, 1.0], 1, 0.0, 0.0),
        ([1.0, INF, 2.0], [1.5, 2.0, NAN], 3, 0.5, 0.5),  # what is not finite is in no size
        ([3 + 4j, 1 + 1j], [3 + 4.5j, 1 + 1j], 1, 0.5, 0.5 / math.sqrt(27)),
    ],
)
def test_a_change_by_hand(left, right, differ, largest, relative, monkeypatch):
    left, right = torch.tensor(left), torch.tensor(right)
    found = change("w", left, right)
    assert (found.kind, found.parameters, found.differ) == ("changed", len(left), differ)
    assert (found.largest, found.relative) == (largest, relative and pytest.approx(relative))
    assert change("w", left, left.clone()) is None
    monkeypatch.setattr(diff, "AT_ONCE", 2)
    parts = change("w", left, right)
    assert (parts.differ, parts.largest) == (differ, largest)


@pytest.mark.parametrize(
    "dtype", [torch.float64, torch.bfloat16, torch.int64, torch.uint8, torch.bool, torch.complex64]
)
def test_every_number_type_is_compared(dtype):
    left = torch.tensor([1, 0, 1], dtype=dtype)
    found = change("w", left, torch.tensor([1, 1, 1], dtype=dtype))
    assert (found.differ, found.largest, found.relative) == (1, 1.0, pytest.approx(math.sqrt(0.5)))


def test_another_type_is_compared_by_value():
    for values, differ in (([1.0, 1.001], 1), ([1.0, NAN], 0)):
        left = torch.tensor(values)
        found = change("w", left, left.bfloat16())
        assert (found.kind, found.differ) == ("retyped", differ)


@pytest.mark.filterwarnings("ignore:.*quantiz.*")
def test_empty_sparse_scalar_and_quantised_tensors_are_compared():
    eye = torch.eye(2).to_sparse()
    for same in (torch.zeros(0, 3), torch.tensor(1.0), eye):
        assert change("w", same, same.clone()) is None
    assert (change("w", eye, 2 * eye).differ, change("w", eye, 2 * eye).relative) == (2, 1.0)
    coarse = [
        torch.quantize_per_tensor(torch.tensor(v), 0.5, 0, torch.qint8)
        for v in ([1.0, 2.0], [1.0, 3.5])
    ]
    assert (change("w", *coarse).differ, change("w", *coarse).largest) == (1, 1.5)


@pytest.mark.parametrize(
    ("name", "of"),
    [
        ("model.layers.12.mlp.up.weight", "model.layers.12"),
        ("encoder.layers.3.heads.0.weight", "encoder.layers.3"),
        ("head.bias", "head"),
        ("temperature", "temperature"),
        ("gates.0", "gates"),
        ("0.weight", "0"),
    ],
)
def test_a_block_is_the_outermost_layer_or_a_module(name, of):
    assert block(name) == of


# --- files


@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
def test_tensors_that_differ_are_missing_or_reshaped_are_told_apart(suffix, tmp_path):
    other = {name: tensor.clone() for name, tensor in WEIGHTS.items()}
    other["layers.0.weight"][1, 1] = 2.5
    other["layers.1.weight"] *= 2
    other["head.weight"] = torch.ones(3, 2)
    other["extra"] = other.pop("head.bias")
    first = saved(tmp_path / f"a{suffix}", WEIGHTS)
    shared, size, changes = differences(first, saved(tmp_path / f"b{suffix}", other))
    assert (shared, size) == (["layers.0.weight", "layers.1.weight"], 8)
    assert [each.relative for each in changes[:2]] == [1.0, 0.5]  # the largest first
    assert {each.name: (each.kind, each.parameters) for each in changes} == {
        "layers.1.weight": ("changed", 4),
        "layers.0.weight": ("changed", 4),
        "head.weight": ("reshaped", 6),
        "head.bias": ("only_first", 3),
        "extra": ("only_second", 3),
    }


def test_the_same_weights_in_other_files_are_the_same(tmp_path):
    whole = {"epoch": 3, "optimizer": {"step": ONE}, "model_state_dict": WEIGHTS}
    torch.save(whole, tmp_path / "a.pt")
    folder = tmp_path / "sharded"
    folder.mkdir()
    for at, name in enumerate(WEIGHTS):
        save_file({f"module.{name}": WEIGHTS[name]}, folder / f"model-{at}.safetensors")
    torch.save({"step": ONE}, folder / "optimizer.pt")
    assert differences(tmp_path / "a.pt", folder) == ([*WEIGHTS], 17, [])


def test_weights_are_found_beside_what_a_trainer_saves(tmp_path):
    for name in ("optimizer.pt", "scheduler.pt", "rng_state_0.pth", "training_args.bin"):
        saved(tmp_path / name, {"x": ONE})
    assert weight_files(tmp_path) == []
    kept = [saved(tmp_path / name, {"w": ONE}) for name in ("model-1.PT", "model-2.pt")]
    assert weight_files(tmp_path) == kept
    with pytest.raises(CheckpointError, match="in two files"):
        tensors_of(tmp_path)
    save_file({"w": ONE}, tmp_path / "model.safetensors")
    assert weight_files(tmp_path) == [tmp_path / "model.safetensors"]  # one kind, the safest


def nested(depth):
    held = ONE
    for _ in range(depth):
        held = [held]
    return held


LOOP: list = [ONE]
LOOP.append(LOOP)
SHARED = [ONE]


@pytest.mark.parametrize(
    ("held", "names"),
    [
        *(({"lr": 0.1, "ema": {"v": ONE}, key: {"w": ONE}}, ["w"]) for key in ("model", "policy")),
        ({"model": ONE, "b": ONE}, ["model", "b"]),  # a tensor called model is a tensor
        ({"module._orig_mod.a": ONE, "module._orig_mod.b": ONE}, ["a", "b"]),
        ({"module.a": ONE, "b": ONE}, ["module.a", "b"]),  # dropped only where all have it
        (nested(DEEPEST + 2), [".".join(["0"] * (DEEPEST + 2))]),
        ({"a": SHARED, "b": SHARED}, ["a.0"]),
        (LOOP, ["0"]),
    ],
)
def test_tensors_are_taken_out_of_what_is_around_them(held, names, tmp_path):
    assert list(tensors_of(saved(tmp_path / "a.pt", held))) == names


def test_what_holds_no_tensors_is_refused(tmp_path):
    for held, message in (
        (nested(DEEPEST + 3), f"more than {DEEPEST} deep"),
        ({"e": 3}, "holds no"),
    ):
        with pytest.raises(CheckpointError, match=message):
            tensors_of(saved(tmp_path / "a.pt", held))
    with pytest.raises(DataError, match="no such file"):
        tensors_of(tmp_path / "gone.pt")


# --- what is broken, or would run code


class Evil:
    def __reduce__(self):
        return (Path.touch, (Path("ran"),))


def test_no_code_in_a_file_is_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.save({"w": ONE, "args": Evil()}, "zip.pt")
    Path("plain.pt").write_bytes(pickle.dumps({"w": Evil()}, protocol=2))
    assert list(tensors_of(Path("zip.pt"))) == ["w"]
    with pytest.raises(CheckpointError, match="nothing in it was run"):
        tensors_of(Path("plain.pt"))
    assert not Path("ran").exists()


LARGE = {
    "layers.0.weight": torch.arange(6000.0).reshape(3, 2000),
    "layers.0.bias": torch.ones(3, dtype=torch.bfloat16),
    "count": torch.tensor(7),
}


def whole_files(folder):
    torch.save({"epoch": 3, "model_state_dict": LARGE}, folder / "zipped.pt")
    torch.save(LARGE, folder / "legacy.bin", _use_new_zipfile_serialization=False)
    save_file(LARGE, folder / "a.safetensors")
    return {path: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.mark.parametrize(
    ("seed", "count"),
    [(0, 150), *(pytest.param(seed, 1000, marks=pytest.mark.slow) for seed in range(1, 4))],
)
def test_damaged_files_are_opened_or_refused_in_one_line(seed, count, tmp_path):
    rng = random.Random(seed)
    files = whole_files(tmp_path)
    opened = 0
    for at in range(count):
        path = sorted(files)[at % len(files)]
        path.unlink()  # a new file: the old one may still be mapped
        torn = files[path][: rng.randrange(len(files[path]))] if at % 5 == 0 else None
        path.write_bytes(mutate(files[path], rng) if torn is None else torn)
        try:
            with within(SECONDS):
                for name, tensor in tensors_of(path).items():
                    if name in LARGE and tensor.shape == LARGE[name].shape:
                        change(name, LARGE[name], tensor)
        except CheckpointError as error:
            message = str(error)
            assert message and "\n" not in message and len(message) < 2000
        else:
            opened += 1
    assert 0.05 * count < opened < 0.9 * count


def test_a_class_with_an_endless_name_is_refused_at_once(tmp_path):
    """Torch looks through a refused name in a time that grows with its square."""
    whole = next(c for path, c in whole_files(tmp_path).items() if path.suffix == ".bin")
    name = b"_rebuild_tensor_v2"
    assert name in whole
    (tmp_path / "a.bin").write_bytes(whole.replace(name, name + b"x" * 1_000_000))
    with within(SECONDS), cpu_within(10), pytest.raises(CheckpointError, match="is no checkpoint"):
        tensors_of(tmp_path / "a.bin")


# --- the verb


def test_the_verb_tells_both_languages_on_one_screen(tmp_path, monkeypatch, capsys):
    many = {f"layers.{i}.weight": torch.full((10,), 1.0 + i) for i in range(40)}
    moved = {name: t * (1 if name == "layers.3.weight" else 1.5) for name, t in many.items()}
    a, b = saved(tmp_path / "a.pt", many), saved(tmp_path / "b.pt", moved | {"a\n\x1b[31mb": ONE})
    code, out, _ = call(monkeypatch, capsys, a, b, "--lang", "en")
    assert code == 0 and len(out.splitlines()) <= 24 and "\x1b" not in out
    assert "39 of 40 shared tensors differ, in 390 of 400 parameters (97.50%)" in out
    assert "the same bit for bit, of 41 blocks: 1 (layers.3)" in out
    assert "100.00% differ" in out and "… and 25 more (--json)" in out
    _, out, _ = call(monkeypatch, capsys, a, b, "--lang", "zh")
    assert "40 个共有张量中有 39 个不同，涉及 400 个参数中的 390 个（97.50%）" in out


def test_the_verb_gives_json_and_one_line_for_a_mistake(tmp_path, monkeypatch, capsys):
    other = WEIGHTS | {"layers.1.weight": torch.tensor([1.0, 1.0, 1.0, 3.0])}
    a, b = saved(tmp_path / "a.pt", WEIGHTS), saved(tmp_path / "b.safetensors", other)
    code, out, _ = call(monkeypatch, capsys, a, b, "--json", "--lang", "en")
    told = json.loads(out)
    assert code == 0 and told["because"]
    assert (told["tensors"], told["parameters"], told["differ"]) == (4, 17, 1)
    assert told["blocks"] == {"equal": ["layers.0", "head"], "differ": ["layers.1"]}
    assert (told["changes"][0]["largest"], told["changes"][0]["relative"]) == (2.0, 1.0)
    code, out, err = call(monkeypatch, capsys, a, tmp_path / "gone")
    assert (code, out, err.count("\n")) == (2, "", 1)
    _, out, _ = call(monkeypatch, capsys, a, a, "--lang", "en")
    assert "the 4 shared tensors are the same, bit for bit (17 parameters)" in out
    c = saved(tmp_path / "c.pt", {"x": ONE})
    _, out, _ = call(monkeypatch, capsys, a, c, "--lang", "en")
    assert "no tensor has the same name and shape" in out and "4 tensors only in" in out
