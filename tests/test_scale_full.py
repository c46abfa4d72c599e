"""The promised size in full: 1,000 runs of 100,000 points, and 10,000,000 scores, within 2 GiB.

Both are compared by the verb itself, in a process of its own that says how much memory it took.
`python tests/test_scale_full.py series 1000 FOLDER` does one of them and prints what it measured.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

POINTS, METRICS = 100_000, 10
SCORES, STEPS, ITEMS = 10_000_000, 10, 50_000
LIMIT = 2 * 2**30
# Not `getrusage`: on Linux a child begins with the peak of the process it was forked from.
VERB = """
import sys
from kleash.cli import main
try:
    main()
except SystemExit as stop:
    if stop.code:
        raise
peak = open("/proc/self/status").read().split("VmHWM:")[1].split()[0]
sys.stderr.write("PEAK " + peak)
"""


def write_series(folder, runs):
    """Five arms of CSV logs, no two alike: rows of the same stock, each run from another row on."""
    rng = random.Random(0)
    rows = POINTS // METRICS
    stock = [",".join(f"{rng.random():.6f}" for _ in range(METRICS)) for _ in range(2 * rows)]
    names = ["eval/reward", "kl", "loss", *(f"group/metric_{n}" for n in range(METRICS - 3))]
    header = ",".join(["step", *names])
    for run in range(runs):
        start = run * rows // runs
        lines = [f"{step},{stock[start + step]}" for step in range(rows)]
        name = f"kl{run % 5 / 10}-s{run // 5}.csv"
        (folder / name).write_text("\n".join([header, *lines, ""]), encoding="utf-8")
    return runs * POINTS


def write_scores(folder, scores):
    """Two arms, runs of ten steps, the same items everywhere."""
    rng = random.Random(1)
    per_run = STEPS * ITEMS
    for run in range(scores // per_run):
        right = 0.5 + 0.1 * (run % 2)
        with (folder / f"kl{run % 2 / 10}-s{run // 2}.csv").open("w", encoding="utf-8") as file:
            file.write("item,step,score\n")
            for step in range(STEPS):
                values = (int(rng.random() < right) for _ in range(ITEMS))
                file.writelines(f"q{n},{step},{value}\n" for n, value in enumerate(values))
    return scores // per_run * per_run


def measured(folder):
    """CPU seconds and bytes that `kleash compare` takes for a folder, and what it answers."""
    command = [sys.executable, "-c", VERB, "compare", str(folder), "--json"]
    before = os.times()
    answer = folder.parent / "answer.json"
    with answer.open("w", encoding="utf-8") as file:
        done = subprocess.run(command, stdout=file, stderr=subprocess.PIPE, text=True, timeout=3000)
    assert done.returncode == 0, done.stderr[-2000:]
    after = os.times()
    seconds = after.children_user + after.children_system
    seconds -= before.children_user + before.children_system
    peak = int(done.stderr.split("PEAK ")[1]) * 1024
    return seconds, peak, json.loads(answer.read_text(encoding="utf-8"))


def go(kind, size, root):
    folder = Path(root) / kind
    folder.mkdir()
    written = {"series": write_series, "scores": write_scores}[kind](folder, size)
    seconds, peak, answer = measured(folder)
    return written, seconds, peak, answer


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "size"), [("series", 1000), ("scores", SCORES)])
def test_the_promised_size_is_compared_within_two_gibibytes(kind, size, tmp_path):
    if not Path("/proc/self/status").exists():
        pytest.skip("no /proc to read a peak from")
    written, _, peak, answer = go(kind, size, tmp_path)
    assert written == {"series": 100_000_000, "scores": 10_000_000}[kind]
    assert len(answer["arms"]) == {"series": 5, "scores": 2}[kind]
    assert answer["verdicts"]
    assert peak < LIMIT, f"{peak / 2**20:,.0f} MiB"


if __name__ == "__main__":
    began = time.monotonic()
    with tempfile.TemporaryDirectory(dir=sys.argv[3]) as root:
        written, seconds, peak, answer = go(sys.argv[1], int(sys.argv[2]), root)
    sys.stdout.write(
        f"{sys.argv[1]}: {written:,} numbers, {seconds:.0f} s of CPU, {peak / 2**20:,.0f} MiB; "
        f"{time.monotonic() - began:.0f} s with the writing\n"
    )
