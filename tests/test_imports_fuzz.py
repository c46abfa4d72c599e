"""Damaged files of every format: an import or one clear line, never a traceback, never a hang.

A seeded mutator changes one file of a fixture. Where a format has checksums, every number that
comes out must be one that went in. What this cannot show: a changed digit in text is another
number, and nobody can know.
"""

import gzip
import os
import random
import shutil
from pathlib import Path

import numpy as np
import pytest

from kleash.compare.read import READERS, read
from kleash.errors import DataError
from pace import within
from plain_sources import HANDMADE
from test_imports import FIXTURES, own_run

# What is pointed at, within the folder that is damaged.
UNITS = {
    "wandb": FIXTURES / "wandb",
    "swanlab": FIXTURES / "swanlab",
    "wandb files": HANDMADE / "wandb",
    "tensorboard": FIXTURES / "tensorboard",
    "tensorboardx": FIXTURES / "tensorboardx",
    "mlflow files": FIXTURES / "mlflow/mlruns",
    "mlflow": FIXTURES / "mlflow/mlflow.db.gz",
    "trackio": FIXTURES / "trackio/leash.db.gz",
    "trl": FIXTURES / "trl",
    "lm_eval": FIXTURES / "lm_eval",
    "inspect": FIXTURES / "inspect",
    "selector": HANDMADE / "selector",
    "verl": HANDMADE / "verl",
    "prime-rl": HANDMADE / "prime_rl",
    "tinker": HANDMADE / "tinker",
    "nemo-rl": HANDMADE / "nemo_rl",
    "markdown": HANDMADE / "markdown",
    "reports": FIXTURES.parent / "markdown",
    "tables": HANDMADE / "csv",
    "own": None,
}
CHECKSUMMED = {"wandb", "swanlab", "tensorboard", "tensorboardx"}
SECONDS = 60  # on the clock, of a machine that may do much else: what hangs, hangs for ever
TOKENS = [
    b"NaN", b"-Infinity", b"1e999", b"9" * 5000, b"-0", b"null", b"true", b"{}", b"[]", b'""',
    b"\n", b"\r\n", b"\t", b",", b'"', b"'", b"\\", b"\0", b"\xff" * 9, b"\x80" * 12, b"[" * 3000,
    b'{"a":' * 3000, b"{'a':" * 300, b" " * 500, b"- " * 200, b": ", b"#", b"&a *a", b"!!python/x",
    b"\xef\xbb\xbf", b"\xed\xa0\x80", "步数".encode(), b"step:1 - a:", b"0x10", b"1_0", b"..", b"%",
]  # fmt: skip


def mutate(content, rng):
    """Some bytes changed, cut, doubled, moved or put in, one to four times."""
    content = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(content) + 1)
        size = min(rng.choice([1, 2, 8, 64, 4096]), max(0, len(content) - at))
        match rng.randrange(7):
            case 0 if content:
                content[min(at, len(content) - 1)] ^= 1 << rng.randrange(8)
            case 1:
                content[at : at + size] = rng.randbytes(size)
            case 2:
                del content[at : at + size]
            case 3:
                content[at:at] = content[at : at + size]
            case 4:
                content[at:at] = rng.choice(TOKENS)
            case 5:
                content[at : at + size] = rng.choice(TOKENS)
            case 6:
                del content[at:]
    return bytes(content)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Every unit in a folder of its own, unpacked, with the bytes of its files."""
    root = tmp_path_factory.mktemp("units")
    made = {}
    for name, source in UNITS.items():
        target = root / name
        if source is None:
            own_run(target / "kl0.15-s3")
        elif source.is_dir():
            shutil.copytree(source, target)
        else:
            target.mkdir()
            packed = source.suffix == ".gz"
            content = gzip.decompress(source.read_bytes()) if packed else source.read_bytes()
            (target / (source.stem if packed else source.name)).write_bytes(content)
        files = sorted(path for path in target.rglob("*") if path.is_file())
        made[name] = (target, {path: path.read_bytes() for path in files})
    return made


def points(source):
    """Every (metric, step, value) of a source, NaN as text so that it equals itself."""
    return {
        (series.metric, step, repr(value))
        for run in source.runs
        for series in run.series
        for step, value in zip(series.steps.tolist(), series.values.tolist(), strict=True)
    }


def sound(source):
    """What holds of every import, whatever was imported."""
    for note in source.notes:
        if note.startswith("left out: "):
            assert "\n" not in note and len(note) < 2000
    for run in source.runs:
        for series in run.series:
            assert len(series.steps) == len(series.values) > 0
            assert series.lines is None or len(series.lines) == len(series.values)
            assert series.steps.dtype == series.values.dtype == np.float64
            series.place(len(series.values) - 1)
        for scores in run.scores:
            assert len(scores.items) == len(scores.values)
        for cell in run.cells:
            assert cell.number.value is None or cell.number.state != "missing"


def attempt(place, path, content):
    """Read a file, or a folder, with one file changed: the source, or None where it was refused."""
    path.write_bytes(content)
    try:
        with within(SECONDS):
            source = read(place)
    except DataError as error:
        message = str(error)
        assert message and "\n" not in message and len(message) < 2000
        return None
    sound(source)
    return source


def fuzz(folders, seed, count):
    rng = random.Random(seed)
    names = sorted(folders)
    whole = {name: points(read(folders[name][0])) for name in CHECKSUMMED}
    imported = 0
    for place in range(count):
        name = names[place % len(names)]
        folder, files = folders[name]
        path = rng.choice(sorted(files))
        try:
            # A folder leaves a bad file out with a note; the file alone has to be refused.
            source = attempt(rng.choice([folder, path]), path, mutate(files[path], rng))
        finally:
            path.write_bytes(files[path])
        if source is not None:
            imported += 1
            if name in CHECKSUMMED:
                assert points(source) <= whole[name], f"{path}: a number that was never logged"
    return imported


def test_every_format_is_damaged(folders):
    formats = {run.format for folder, _ in folders.values() for run in read(folder).runs}
    assert formats >= READERS.keys()


def test_300_damaged_files_are_imported_or_refused_in_one_line(folders):
    imported = fuzz(folders, seed=0, count=300)
    assert 30 < imported < 280  # both happen, or the mutator shows nothing


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 11))
def test_10000_damaged_files_are_imported_or_refused_in_one_line(folders, seed):
    assert fuzz(folders, seed=seed, count=1000) > 100


@pytest.mark.slow
def test_every_beginning_of_a_small_file_is_imported_or_refused(folders):
    for name in ("tables", "selector", "wandb files", "mlflow files"):
        folder, files = folders[name]
        for path, content in files.items():
            for size in range(0, min(len(content), 400), 13):
                try:
                    attempt(folder, path, content[:size])
                finally:
                    path.write_bytes(content)


def test_a_pipe_or_a_link_in_a_folder_is_not_waited_for(tmp_path):
    (tmp_path / "a.csv").write_text("step,loss\n1,2\n")
    os.mkfifo(tmp_path / "b.csv")
    (tmp_path / "loop").symlink_to(tmp_path)
    with within(SECONDS):
        assert [run.name for run in read(tmp_path).runs] == ["a"]


def test_folders_without_end_are_not_entered_for_ever(tmp_path):
    deep = tmp_path
    for _ in range(30):
        deep = deep / "d"
        deep.mkdir()
    Path(deep / "a.csv").write_text("step,loss\n1,2\n")
    with pytest.raises(DataError, match="none of the known formats"):
        read(tmp_path)
