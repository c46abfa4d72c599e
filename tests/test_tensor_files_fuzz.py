"""Damaged files of tensors: the tensors, or one clear line; never a traceback, never a hang."""

import random

import pytest
import torch
from safetensors.torch import save_file

from kleash.compare.checkpoints import difference
from kleash.compare.tensor_files import tensors_of
from kleash.errors import CheckpointError
from pace import cpu_within, within
from test_imports_fuzz import SECONDS, mutate

pytestmark = pytest.mark.usefixtures("one_thread")
WEIGHTS = {
    "layers.0.weight": torch.arange(6000.0).reshape(3, 2000),
    "layers.0.bias": torch.ones(3, dtype=torch.bfloat16),
    "count": torch.tensor(7),
}


def whole_files(folder):
    torch.save({"epoch": 3, "model_state_dict": WEIGHTS}, folder / "zipped.pt")
    torch.save(WEIGHTS, folder / "legacy.bin", _use_new_zipfile_serialization=False)
    save_file(WEIGHTS, folder / "a.safetensors")
    return {path: path.read_bytes() for path in sorted(folder.iterdir())}


def damaged(folder, seed, count):
    """How many of so many damaged files could be read, and compared with the whole tensors."""
    rng = random.Random(seed)
    files = whole_files(folder)
    opened = 0
    for at in range(count):
        path = sorted(files)[at % len(files)]
        path.unlink()  # a new file: the old one may still be mapped
        path.write_bytes(mutate(files[path], rng))
        try:
            with within(SECONDS):
                for name, tensor in tensors_of(path).items():
                    difference(name, WEIGHTS.get(name), tensor())
        except CheckpointError as error:
            message = str(error)
            assert message and "\n" not in message and len(message) < 2000
        else:
            opened += 1
    return opened


def test_150_damaged_files_are_opened_or_refused_in_one_line(tmp_path):
    assert 10 < damaged(tmp_path, seed=0, count=150) < 140


def test_a_class_with_an_endless_name_is_refused_at_once(tmp_path):
    """Torch looks through a refused name in a time that grows with its square."""
    whole = next(c for path, c in whole_files(tmp_path).items() if path.suffix == ".bin")
    name = b"_rebuild_tensor_v2"
    assert name in whole
    (tmp_path / "a.bin").write_bytes(whole.replace(name, name + b"x" * 1_000_000))
    with within(SECONDS), cpu_within(10), pytest.raises(CheckpointError, match="is no checkpoint"):
        tensors_of(tmp_path / "a.bin")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 4))
def test_3000_damaged_files_are_opened_or_refused_in_one_line(tmp_path, seed):
    assert damaged(tmp_path, seed=seed, count=1000) > 50
