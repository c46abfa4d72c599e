"""A hundredth of the promised size: 10 runs of 100,000 points and 100,000 scores, in little memory.

The runs are of several formats. This file is also the program that reads them: a process of its own
knows how much memory that took.
"""

import json
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest

from kleash.compare.read import read
from test_imports import event, framed, own_run, part, write

POINTS, METRICS = 100_000, 10
ROWS = POINTS // METRICS
LIMIT = 200 * 2**20
NAMES = [f"group/metric_{number}" for number in range(METRICS)]


def value(run, row, metric):
    return float((run * 31 + row * 7 + metric * 3) % 1009) / 1009


def rows(run):
    for row in range(ROWS):
        yield row, {name: value(run, row, at) for at, name in enumerate(NAMES)}


def as_verl(folder, run):
    lines = (json.dumps({"step": row, "data": data}) for row, data in rows(run))
    return write(folder / f"kl-s{run}.jsonl", "\n".join(lines) + "\n")


def as_csv(folder, run):
    lines = (",".join([str(row), *map(repr, data.values())]) for row, data in rows(run))
    header = ",".join(["step", *NAMES])
    return write(folder / f"kl-s{run}.csv", "\n".join([header, *lines]) + "\n")


def as_console(folder, run):
    lines = (
        f"(Runner pid=1) step:{row} - " + " - ".join(f"{k}:{v!r}" for k, v in data.items())
        for row, data in rows(run)
    )
    return write(folder / f"kl-s{run}.log", "\n".join(lines) + "\n")


def as_own(folder, run):
    own_run(folder / f"kl-s{run}")
    metrics = folder / f"kl-s{run}/metrics.jsonl"
    lines = (json.dumps({"kind": "step", "step": row} | data) for row, data in rows(run))
    return write(metrics, "\n".join(lines) + "\n").parent


def as_events(folder, run):
    def step(row):
        return bytes([row & 0x7F | 0x80, row >> 7]) if row > 127 else bytes([row])

    content = bytearray()
    for row, data in rows(run):
        for name, held in data.items():
            found = part(1, name.encode()) + b"\x15" + struct.pack("<f", held)
            plain = event(0, found)
            content += framed(plain[:10] + step(row) + plain[11:])
    return write(folder / f"kl-s{run}/events.out.tfevents.1.host", bytes(content)).parent


def as_wandb(folder, run):
    def fragment(kind, data):
        check = zlib.crc32(data, zlib.crc32(bytes([kind])))
        return struct.pack("<IHB", check, len(data), kind) + data

    content = bytearray(b":W&B\xe1\xbe\0")
    for row, data in rows(run):
        items = {"_step": row} | data
        history = b"".join(
            part(1, part(1, k.encode()) + b"\x82\x01" + bytes([len(repr(v))]) + repr(v).encode())
            for k, v in items.items()
        )
        record = part(2, history)
        left = -len(content) % 32_768
        if left < 7:
            content += bytes(left)
            left = 32_768
        if len(record) <= left - 7:
            content += fragment(1, record)
        else:
            content += fragment(2, record[: left - 7]) + fragment(4, record[left - 7 :])
    return write(folder / f"run-kl-s{run}.wandb", bytes(content))


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scale")
    makers = [as_verl] * 3 + [as_csv] * 3 + [as_console, as_own, as_events, as_wandb]
    return [make(folder / str(run), run) for run, make in enumerate(makers)]


def peak():
    """The most memory this process has held so far, in bytes."""
    # Not `getrusage`: on Linux a child begins with the peak of the process it was forked from.
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def check_series(runs):
    """Every point of the ten runs, exactly; equal steps are kept once."""
    assert len(runs) == 10
    for number, run in enumerate(runs):
        series = {s.metric: s for s in run.series if s.axis == "step"}
        assert sum(len(series[name].values) for name in NAMES) == POINTS
        for at, name in enumerate(NAMES):
            exact = np.array([value(number, row, at) for row in range(ROWS)])
            found = series[name]
            wanted = exact.astype(np.float32).astype(np.float64) if found.float32 else exact
            np.testing.assert_array_equal(found.values, wanted)
    assert len({id(s.steps) for run in runs for s in run.series if len(s.steps) == ROWS}) == 1


def check_scores(runs):
    """Ten dumps of ten thousand items; the name of an item is kept once."""
    [run] = runs
    assert [scores.step for scores in run.scores] == list(range(10))
    assert sum(len(scores.values) for scores in run.scores) == 100_000
    assert run.scores[0].items[7] is run.scores[9].items[7]


CHECKS = {"series": check_series, "scores": check_scores}


def measured(check, paths):
    """Bytes that reading took beyond what was there, in a process of its own."""
    if not Path("/proc/self/status").exists():
        pytest.skip("no /proc to read a peak from")
    command = [sys.executable, __file__, check, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-2000:]
    return int(done.stdout)


@pytest.mark.slow
def test_a_million_points_of_ten_runs_fit_in_little_memory(sources):
    extra = measured("series", sources)
    assert extra < LIMIT, f"{extra / 2**20:.0f} MiB"


@pytest.mark.slow
def test_a_hundred_thousand_scores_fit_in_little_memory(tmp_path):
    for step in range(10):
        lines = (
            json.dumps({"input": f"question {n}", "output": "x" * 200, "score": n % 3 / 2})
            for n in range(10_000)
        )
        write(tmp_path / f"kl-s1/{step}.jsonl", "\n".join(lines) + "\n")
    extra = measured("scores", [tmp_path / "kl-s1"])
    assert extra < LIMIT, f"{extra / 2**20:.0f} MiB"


if __name__ == "__main__":
    before = peak()
    found = [run for path in sys.argv[2:] for run in read(Path(path)).runs]
    after = peak()
    CHECKS[sys.argv[1]](found)
    sys.stdout.write(str(after - before))
