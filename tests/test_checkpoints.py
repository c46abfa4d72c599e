"""Two checkpoints: what differs between their tensors, by hand, and whether they choose alike."""

import json
import math
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from kleash.catalogue import tensor_screen
from kleash.cli import main
from kleash.compare import checkpoints, tensor_files
from kleash.compare.checkpoints import (
    agreement,
    are_checkpoints,
    block,
    compare_checkpoints,
    difference,
)
from kleash.compare.tensor_files import tensors_of
from kleash.errors import CheckpointError, ConfigError, DataError, KleashError
from kleash.runs import Run

pytestmark = pytest.mark.usefixtures("one_thread")

WEIGHTS = {
    "layers.0.weight": torch.tensor([[3.0, 4.0], [0.0, 0.0]]),
    "layers.1.weight": torch.ones(4),
    "head.weight": torch.ones(2, 3),
    "head.bias": torch.zeros(3),
}


def saved(path: Path, tensors: dict[str, torch.Tensor]) -> Path:
    if path.suffix == ".safetensors":
        save_file(tensors, path)
    else:
        torch.save(tensors, path)
    return path


def call(monkeypatch, capsys, *words):
    monkeypatch.setattr(sys, "argv", ["kleash", "compare", *map(str, words)])
    with pytest.raises(SystemExit) as stop:
        main()
    out, err = capsys.readouterr()
    return stop.value.code or 0, out, err


# --- tensors


def test_a_change_by_hand():
    found = difference("w", torch.tensor([3.0, 4.0, 0.0]), torch.tensor([3.0, 4.5, 0.0]))
    assert found is not None
    assert (found.kind, found.parameters, found.differ) == ("changed", 3, 1)
    assert (found.largest, found.relative) == (0.5, 0.1)


def test_bits_decide_what_is_the_same():
    nan, zero = torch.tensor([math.nan, 1.0]), torch.tensor([0.0])
    assert difference("w", nan, nan.clone()) is None
    signed = difference("w", zero, -zero)
    assert signed is not None and (signed.differ, signed.largest, signed.relative) == (1, 0.0, None)
    lost = difference("w", torch.tensor([1.0, 1.0]), nan)
    assert lost is not None and (lost.differ, lost.largest) == (1, 0.0)


@pytest.mark.parametrize(
    "dtype", [torch.float64, torch.bfloat16, torch.int64, torch.uint8, torch.bool, torch.complex64]
)
def test_every_number_type_is_compared(dtype):
    left = torch.tensor([1, 0, 1], dtype=dtype)
    assert difference("w", left, left.clone()) is None
    found = difference("w", left, torch.tensor([1, 1, 1], dtype=dtype))
    assert found is not None
    assert (found.differ, found.largest) == (1, 1.0)
    assert found.relative == pytest.approx(math.sqrt(1 / 2), rel=1e-15)


def test_another_type_is_compared_by_value():
    left = torch.tensor([1.0, 1.001])
    found = difference("w", left, left.bfloat16())
    assert found is not None and (found.kind, found.differ) == ("retyped", 1)
    whole = difference("w", torch.ones(2), torch.ones(2).bfloat16())
    assert whole is not None and (whole.kind, whole.differ) == ("retyped", 0)


def test_tensors_without_values_sparse_ones_and_scalars_are_compared():
    assert difference("w", torch.zeros(0, 3), torch.zeros(0, 3)) is None
    assert difference("w", torch.tensor(1.0), torch.tensor(1.0)) is None
    assert difference("w", torch.eye(2).to_sparse(), torch.eye(2).to_sparse()) is None
    found = difference("w", torch.eye(2).to_sparse(), 2 * torch.eye(2).to_sparse())
    assert found is not None and (found.differ, found.relative) == (2, 1.0)


def test_large_tensors_are_compared_in_parts(monkeypatch):
    left, right = torch.arange(10.0), torch.arange(10.0)
    right[[1, 8]] += torch.tensor([0.5, 0.25])
    whole = difference("w", left, right)
    monkeypatch.setattr(checkpoints, "AT_ONCE", 3)
    assert difference("w", left, right) == whole
    assert whole is not None and (whole.differ, whole.largest) == (2, 0.5)


@pytest.mark.parametrize(
    ("name", "of"),
    [
        ("model.layers.12.mlp.up.weight", "model.layers.12"),
        ("head.bias", "head"),
        ("temperature", "temperature"),
    ],
)
def test_a_block_is_a_layer_or_a_module(name, of):
    assert block(name) == of


# --- files


@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
def test_tensors_that_differ_are_missing_or_reshaped_are_told_apart(suffix, tmp_path):
    other = {name: tensor.clone() for name, tensor in WEIGHTS.items()}
    other["layers.0.weight"][1, 1] = 2.5
    other["head.weight"] = torch.ones(3, 2)
    other["extra"] = other.pop("head.bias")
    first = saved(tmp_path / f"a{suffix}", WEIGHTS)
    found = compare_checkpoints(first, saved(tmp_path / f"b{suffix}", other))
    kinds = {change.name: change.kind for change in found.changes}
    assert kinds == {
        "layers.0.weight": "changed",
        "head.weight": "reshaped",
        "head.bias": "only first",
        "extra": "only second",
    }
    assert (found.shared, found.parameters, found.differ) == (2, 8, 1)
    assert found.changes[0].relative == 0.5
    assert found.equal_blocks == ("layers.1",)
    assert set(found.other_blocks) == {"layers.0", "head", "extra"}
    assert found.choices is None and found.because[0].code == "choices_need_runs"


def test_the_same_weights_in_other_files_are_the_same(tmp_path):
    whole = {"epoch": 3, "optimizer": {"step": torch.ones(1)}, "model_state_dict": WEIGHTS}
    torch.save(whole, tmp_path / "a.pt")
    wrapped = {f"module.{name}": tensor for name, tensor in WEIGHTS.items()}
    folder = tmp_path / "sharded"
    folder.mkdir()
    for at, name in enumerate(wrapped):
        save_file({name: wrapped[name]}, folder / f"model-{at}.safetensors")
    torch.save({"step": torch.ones(1)}, folder / "optimizer.pt")
    (folder / "config.json").write_text('{"width": 2, "eos_token_id": [1, 2]}')
    (folder / "README.md").write_text("# Model\n\n| task | score |\n|---|---|\n| vqa | 61.2 |\n")
    assert are_checkpoints([tmp_path / "a.pt", folder])
    found = compare_checkpoints(tmp_path / "a.pt", folder)
    assert (found.changes, found.shared, found.parameters) == ((), 4, 17)
    assert tensor_screen.sentences(found, "en")[0] == (
        "the weights are the same, bit for bit: 4 tensors, 17 parameters"
    )


class Evil:
    def __reduce__(self):
        return (Path.touch, (Path("ran"),))


def test_no_code_in_a_file_is_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.save({"w": torch.ones(1), "args": Evil()}, "zip.pt")
    Path("plain.pt").write_bytes(pickle.dumps({"w": Evil()}, protocol=2))
    for file in (Path("zip.pt"), Path("plain.pt")):
        with pytest.raises(CheckpointError, match="could run code"):
            tensors_of(file)
    assert not Path("ran").exists()


def test_torn_files_are_one_line(tmp_path):
    whole = saved(tmp_path / "a.pt", WEIGHTS).read_bytes()
    safe = saved(tmp_path / "a.safetensors", WEIGHTS).read_bytes()
    rng = torch.Generator().manual_seed(0)
    for suffix, content in ((".pt", whole), (".safetensors", safe), (".pt", b""), (".pt", b"no")):
        for size in torch.randint(0, len(content) + 1, (20,), generator=rng).tolist():
            file = tmp_path / f"torn{suffix}"
            file.write_bytes(content[: min(size, len(content) - 1)] if content else b"")
            with pytest.raises(CheckpointError) as error:
                tensors_of(file)
            assert "\n" not in str(error.value)


def test_containers_in_themselves_and_very_deep_ones_end(tmp_path):
    looped: list = [torch.ones(2)]
    looped.append(looped)
    torch.save(looped, tmp_path / "loop.pt")
    assert list(tensors_of(tmp_path / "loop.pt")) == ["0"]
    deep: list = [torch.ones(2)]
    for _ in range(60):
        deep = [deep]
    torch.save(deep, tmp_path / "deep.pt")
    with pytest.raises(CheckpointError, match="deep"):
        tensors_of(tmp_path / "deep.pt")
    torch.save({"epoch": 3}, tmp_path / "none.pt")
    with pytest.raises(CheckpointError, match="no tensors"):
        tensors_of(tmp_path / "none.pt")
    with pytest.raises(DataError, match="no such file"):
        tensors_of(tmp_path / "gone.pt")


def test_a_folder_with_two_checkpoints_asks_for_one(tmp_path):
    for name in ("one.pt", "two.pt"):
        saved(tmp_path / name, WEIGHTS)
    with pytest.raises(CheckpointError, match="in two files"):
        tensors_of(tmp_path)


def test_checkpoints_are_compared_two_at_a_time_and_not_with_logs(tmp_path):
    a, b = (saved(tmp_path / f"{name}.pt", WEIGHTS) for name in "ab")
    log = tmp_path / "log.csv"
    log.write_text("step,reward\n1,0.5\n2,0.6\n")
    assert not are_checkpoints([log, log])
    for paths in ([a], [a, b, b], [a, log]):
        with pytest.raises(ConfigError, match="two at a time"):
            are_checkpoints(paths)


def test_a_trainers_folder_with_its_log_is_a_log(tmp_path):
    saved(tmp_path / "model.safetensors", WEIGHTS)
    assert checkpoints.is_checkpoint(tmp_path)
    history = [{"step": 1, "loss": 0.5}, {"step": 2, "loss": 0.4}]
    (tmp_path / "trainer_state.json").write_text(json.dumps({"log_history": history}))
    assert not checkpoints.is_checkpoint(tmp_path)


def test_without_torch_there_is_one_line(tmp_path, monkeypatch):
    a, b = (saved(tmp_path / f"{name}.pt", WEIGHTS) for name in "ab")
    monkeypatch.setattr(tensor_files, "find_spec", lambda name: None)
    with pytest.raises(KleashError, match=r"needs torch: pip install 'kleash\[train\]'"):
        compare_checkpoints(a, b)


# --- choices


def test_agreement_by_hand():
    found = agreement([(1, 2), (3, 4), (5,), (6, 7)], [(1, 2), (3, 5), (5,), (7, 6)], shots=2)
    assert (found.n, found.equal, found.differ) == (4, (0.75, 0.5), 2)
    same = agreement([(1,)] * 200, [(1,)] * 200, shots=1)
    assert same.differ == 0 and same.equal == (1.0,)
    assert same.bound == pytest.approx(1 - 0.05 ** (1 / 200))


def test_checkpoints_of_a_run_say_how_often_they_choose_alike(tiny_run):
    names = tiny_run.checkpoints()
    first, last = (tiny_run.path / "checkpoints" / name for name in (names[0], names[-1]))
    assert are_checkpoints([first, last])
    moved = compare_checkpoints(first, last)
    assert moved.changes and moved.names[1] == f"{tiny_run.name}/{names[-1]}"
    assert moved.choices is not None and moved.choices.n == 60
    assert all(0 < share <= 1 for share in moved.choices.equal)
    assert 1 - min(moved.choices.equal) <= moved.choices.differ / 60
    same = compare_checkpoints(last, last)
    assert (same.changes, same.differ) == ((), 0)
    assert same.choices is not None and (same.choices.differ, same.choices.equal) == (0, (1.0, 1.0))


def test_choices_on_other_data_are_not_compared(tiny_run, trained, tmp_path):
    other = trained("other-s0", "data_seed=1", "phase=supervised")
    ours = tiny_run.path / "checkpoints" / tiny_run.checkpoints()[-1]
    theirs = other.path / "checkpoints" / other.checkpoints()[-1]
    found = compare_checkpoints(ours, theirs)
    assert found.choices is None
    assert found.because[0].facts == {"keys": ["data_seed"]}


def test_tensors_are_compared_where_choices_cannot_be(tiny_run, tmp_path):
    shutil.copytree(tiny_run.path, tmp_path / "run")
    run = Run.open(tmp_path / "run")
    config = json.loads((run.path / "config.json").read_text()) | {"data": "gone"}
    (run.path / "config.json").write_text(json.dumps(config))
    path = run.path / "checkpoints" / run.checkpoints()[-1]
    found = compare_checkpoints(path, path)
    assert found.choices is None and found.because[0].code == "choices_failed"
    assert found.shared > 0


# --- the verb


def test_the_verb_tells_both_languages_on_one_screen(tmp_path, monkeypatch, capsys):
    many = {f"layers.{i}.weight": torch.full((10,), 1.0 + i) for i in range(40)}
    moved = {
        name: tensor * (1 if name == "layers.3.weight" else 1.5) for name, tensor in many.items()
    }
    a, b = saved(tmp_path / "a.pt", many), saved(tmp_path / "b.pt", moved)
    code, out, _ = call(monkeypatch, capsys, a, b, "--lang", "en")
    assert code == 0 and len(out.splitlines()) <= 24
    assert "39 of 40 shared tensors differ, in 390 of 400 parameters (97.50%)" in out
    assert "the same bit for bit, of 40 blocks: 1 (layers.3)" in out
    assert "… and 25 more (--json)" in out
    _, out, _ = call(monkeypatch, capsys, a, b, "--lang", "zh")
    assert "40 个共有张量中有 39 个不同，涉及 400 个参数中的 390 个（97.50%）" in out
    assert "相对变化" in out


def test_the_verb_gives_json(tmp_path, monkeypatch, capsys):
    other = WEIGHTS | {"layers.1.weight": torch.tensor([1.0, 1.0, 1.0, 3.0])}
    a, b = saved(tmp_path / "a.pt", WEIGHTS), saved(tmp_path / "b.safetensors", other)
    code, out, _ = call(monkeypatch, capsys, a, b, "--json", "--lang", "en")
    told = json.loads(out)
    assert code == 0
    assert told["tensors"] == {
        "shared": 4,
        "differ": 1,
        "reshaped": 0,
        "only_first": 0,
        "only_second": 0,
    }
    assert told["parameters"] == {"shared": 17, "differ": 1, "share": 1 / 17}
    assert told["blocks"] == {"equal": ["layers.0", "head"], "differ": ["layers.1"]}
    assert (told["changes"][0]["largest"], told["changes"][0]["relative"]) == (2.0, 1.0)
    assert told["choices"] is None and told["because"]


def test_mistakes_are_one_line(tmp_path, monkeypatch, capsys):
    a, b = (saved(tmp_path / f"{name}.pt", WEIGHTS) for name in "ab")
    for words in ((a, b, "--on", "reward"), (a, b, "--md", tmp_path / "x.md"), (a, tmp_path)):
        code, out, err = call(monkeypatch, capsys, *words)
        assert (code, out, err.count("\n")) == (2, "", 1), err


def test_names_with_control_characters_stay_on_their_line(tmp_path):
    other = {"a\n\x1b[31mb": torch.ones(1)}
    a = saved(tmp_path / "a.pt", {"a\n\x1b[31mb": torch.zeros(1)})
    found = compare_checkpoints(a, saved(tmp_path / "b.pt", other))
    assert "\x1b" not in tensor_screen.terminal(found, "en")


def test_looking_for_checkpoints_imports_no_torch(tmp_path):
    code = (
        "import sys; from pathlib import Path; from kleash.compare.checkpoints import *\n"
        "are_checkpoints([Path('a.csv'), Path('b.csv')]); sys.exit('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, timeout=600)
    assert done.returncode == 0
