"""What one comparison of ten small logs takes: functions and files of ours, and CPU.

`python -m benchmarks.footprint` writes ten CSV logs of 100 rows into a temporary folder. Functions
are those that `kleash compare` enters, counted by `sys.setprofile` in a process that has the verb's
modules loaded; CPU is that of whole processes, imports included, the median of five.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import kleash

OURS = str(Path(kleash.__file__).parent)
LOGS, ROWS, TIMES = 10, 100, 5


def made_logs(folder: Path) -> list[str]:
    """Five settings of the coefficient, two seeds each."""
    rng = np.random.default_rng(0)
    paths = []
    for at in range(LOGS):
        coefficient, seed = 0.05 * (at // 2), at % 2
        path = folder / f"kl{coefficient:g}-s{seed}.csv"
        rows = ["step,reward,kl,val_accuracy"]
        for step in range(1, ROWS + 1):
            noise = rng.normal(size=3)
            reward = 0.5 + 0.3 * step / ROWS + 0.05 * noise[0]
            kl = 0.01 * step * (1 - coefficient) + 0.001 * abs(noise[1])
            accuracy = 0.4 + 0.2 * step / ROWS + 0.01 * noise[2]
            rows.append(f"{step},{reward:.4f},{kl:.5f},{accuracy:.4f}")
        path.write_text("\n".join(rows) + "\n", encoding="utf-8")
        paths.append(str(path))
    return paths


def entered(paths: list[str]) -> Counter[tuple[str, str, int]]:
    """How often each function of ours is entered: (file, name, line)."""
    from kleash.cli.compare import compare
    from kleash.cli.compare import compare as verb

    verb([Path(path) for path in paths], lang="en")  # loads what the verb loads
    found: Counter[tuple[str, str, int]] = Counter()

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(OURS) and code.co_name[0] != "<":
            found[code.co_filename, code.co_qualname, code.co_firstlineno] += 1

    sys.setprofile(note)
    compare([Path(path) for path in paths], lang="en")
    sys.setprofile(None)
    return found


def seconds(command: list[str]) -> float:
    """CPU of a process and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print the counts, the parts they are of, and the CPU."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true", help="name every function")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        paths = made_logs(Path(folder))
        found = entered(paths)
        command = [sys.executable, "-m", "kleash", "compare", *paths, "--lang", "en"]
        took = [seconds(command) for _ in range(TIMES)]
    parts = Counter(Path(file).relative_to(OURS).parts[0] for file, _, _ in found)
    files = {file for file, _, _ in found}
    say = sys.stdout.write
    say(f"{len(found)} functions in {len(files)} files: {dict(parts.most_common())}\n")
    say(f"{statistics.median(took):.2f} s of CPU ({min(took):.2f} to {max(took):.2f})\n")
    if asked.list:
        for (file, name, line), count in sorted(found.items()):
            say(f"{Path(file).relative_to(OURS)}:{line} {name} {count}\n")


if __name__ == "__main__":
    main()
