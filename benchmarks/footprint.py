"""How many functions and files of ours one comparison, or one step of GRPO, goes through.

`python -m benchmarks.footprint` writes ten CSV logs of 100 rows into a temporary folder. Functions
are those that `kleash compare` enters, counted by `sys.setprofile` in a process that has the verb's
modules loaded; CPU is that of whole processes, imports included, the median of five.
`… selector` and `… agent` train a small policy and count from the end of its second update to the
end of its third: what is logged, the rollout, the update.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import kleash

OURS = str(Path(kleash.__file__).parent)
LOGS, ROWS, TIMES = 10, 100, 5
Calls = Counter[tuple[str, str, int]]
SMALL: dict[str, dict[str, Any]] = {
    "selector": {"queries": 64, "batch": 16, "epochs": 1, "supervised": {"epochs": 1}},
    "agent": {"steps": 4, "batch": 4, "epochs": 1, "supervised": {"epochs": 1, "dialogues": 64}},
}


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


def counting(found: Calls, wanted: Callable[[], bool]) -> Callable[[FrameType, str, Any], None]:
    """Notes how often each function of ours is entered, while that is wanted: file, name, line."""

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        ours = event == "call" and code.co_filename.startswith(OURS) and code.co_name[0] != "<"
        if ours and wanted():
            found[code.co_filename, code.co_qualname, code.co_firstlineno] += 1

    return note


def of_comparison(paths: list[str]) -> Calls:
    """What `kleash compare` enters."""
    from kleash.cli.compare import compare

    compare([Path(path) for path in paths], lang="en")  # loads what the verb loads
    found: Calls = Counter()
    sys.setprofile(counting(found, lambda: True))
    compare([Path(path) for path in paths], lang="en")
    sys.setprofile(None)
    return found


def of_step(family: str, folder: Path) -> Calls:
    """What a step of GRPO enters, in every thread."""
    from kleash.train.update import LeashedPolicy

    found: Calls = Counter()
    updates, update = [0], LeashedPolicy.update_on_batch

    def counted(*given: Any) -> Any:
        made = update(*given)
        updates[0] += 1
        return made

    LeashedPolicy.update_on_batch = counted  # type: ignore[method-assign,assignment]
    note = counting(found, lambda: updates[0] == 2)
    threading.setprofile(note)  # an agent is played in a thread of its own
    sys.setprofile(note)
    kleash.train("default" if family == "selector" else family, out=folder / "run", **SMALL[family])
    sys.setprofile(None)
    return found


def seconds(command: list[str]) -> float:
    """CPU of a process and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print the counts, the parts they are of, and the CPU of a comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="?", choices=["compare", *SMALL], default="compare")
    parser.add_argument("--list", action="store_true", help="name every function")
    asked = parser.parse_args()
    took: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        if asked.what == "compare":
            paths = made_logs(Path(folder))
            found = of_comparison(paths)
            command = [sys.executable, "-m", "kleash", "compare", *paths, "--lang", "en"]
            took = [seconds(command) for _ in range(TIMES)]
        else:
            found = of_step(asked.what, Path(folder))
    parts = Counter(Path(file).relative_to(OURS).parts[0] for file, _, _ in found)
    files = {file for file, _, _ in found}
    say = sys.stdout.write
    say(f"{len(found)} functions in {len(files)} files: {dict(parts.most_common())}\n")
    if took:
        say(f"{statistics.median(took):.2f} s of CPU ({min(took):.2f} to {max(took):.2f})\n")
    if asked.list:
        for (file, name, line), count in sorted(found.items()):
            say(f"{Path(file).relative_to(OURS)}:{line} {name} {count}\n")


if __name__ == "__main__":
    main()
