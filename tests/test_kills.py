"""A run that is killed again and again ends with the bytes of one that was left in peace.

Children are forked: a fresh interpreter would spend its seconds on importing torch.
"""

import json
import multiprocessing
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from kleash.runs.ledger import Ledger
from kleash.runs.run import Run
from kleash.seeds import generator
from kleash.train.evaluate import Wanted, evaluate
from kleash.train.evaluate.selector import baseline_names
from kleash.train.rollout.selector import SelectorWorld
from tiny import contents, tiny_recipe, train_tiny

KEYS = ("epochs=4", "leash.controller=adaptive", "leash.target=0.1", "leash.reference=ema")
# Python 3.12 warns of any fork beside threads; the children here touch none.
forks = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

pytestmark = pytest.mark.usefixtures("one_thread")


def work(folder: Path) -> None:
    """Train, then measure every checkpoint: whatever of it is not done yet."""
    with Ledger(folder / "ledger.sqlite") as ledger:
        run = train_tiny(folder / "run", ledger, *KEYS)
        names = [*baseline_names(greedy=False), *run.checkpoints()]
        world = SelectorWorld(tiny_recipe(*KEYS), ledger)
        evaluate(run, world, Wanted(names, (2, 3), "test", 60))


def start(folder: Path, *spot: object) -> multiprocessing.process.BaseProcess:
    child = multiprocessing.get_context("fork").Process(target=work_until, args=(folder, *spot))
    child.start()
    return child


def work_until(folder: Path, method: str = "", call: int = 0, when: str = "") -> None:
    """Work; with a spot, until just before or after a certain call of one of the run's methods."""
    if method:
        real, calls = getattr(Run, method), iter(range(1, 10**9))

        def deadly(self: Run, *args: Any, **keys: Any) -> Any:
            last = next(calls) == call
            if last and when == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            result = real(self, *args, **keys)
            if last:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        setattr(Run, method, deadly)
    work(folder)


def written(folder: Path) -> int:
    """Bytes of metrics and scores so far."""
    files = (folder / "run" / name for name in ("metrics.jsonl", "scores.jsonl"))
    return sum(file.stat().st_size for file in files if file.is_file())


def killed_and_restarted(folder: Path, moments: list[int]) -> int:
    """Kill a child when it has written so many bytes more, again and again; then let one finish.

    How many of the kills hit is returned. Seconds would depend on what else the machine does.
    """
    hit = 0
    for moment in moments:
        aim = written(folder) + moment
        child = start(folder)
        while child.exitcode is None and written(folder) < aim:
            time.sleep(0.001)
        if child.exitcode is None:
            os.kill(child.pid or 0, signal.SIGKILL)
            hit += 1
        child.join()
        assert child.exitcode in (0, -signal.SIGKILL)
    child = start(folder)
    child.join()
    assert child.exitcode == 0
    return hit


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, tiny_run: Run) -> tuple[Run, int]:
    """The run in peace, and how many bytes it wrote; `tiny_run` has had all modules imported."""
    folder = tmp_path_factory.mktemp("undisturbed")
    assert killed_and_restarted(folder, []) == 0
    return Run.open(folder / "run"), written(folder)


def same_after(folder: Path, moments: list[int], expected: Run, *, least: int) -> None:
    """The moments are written beside the run, so that a failure can be repeated."""
    (folder / "moments.json").write_text(json.dumps(moments))
    hit = killed_and_restarted(folder, moments)
    said = f"killed after {moments} bytes, see {folder}"
    assert hit >= least, said
    equal(folder, expected, said)


def equal(folder: Path, expected: Run, said: str) -> None:
    """Every tensor, metric line and score."""
    ours, theirs = contents(Run.open(folder / "run")), contents(expected)
    assert sorted(ours) == sorted(theirs), said
    assert [name for name in theirs if ours[name] != theirs[name]] == [], said
    # Nothing was lost, and a step that was trained twice has two lines of time.
    timed = [line["epoch"] for line in Run.open(folder / "run").timings() if "epoch" in line]
    assert len(timed) >= 6, said


def drawn(count: int, size: int, *names: object) -> list[int]:
    """Moments early enough to hit, though each child goes on where the last one was killed."""
    rng = generator("kills", *names)
    return [int(moment) for moment in rng.uniform(1, 0.2 * size, count)]


# Each child goes on from the last checkpoint: in an epoch there are three steps and a line.
SPOTS = (
    ("log", 2, "after"),
    ("save", 2, "before"),
    ("log", 2, "after"),
    ("log", 4, "after"),
    ("save", 2, "after"),
    ("slim", 2, "before"),
    ("finish", 1, "before"),
    ("add_scores", 3, "before"),
    ("add_scores", 3, "after"),
)


@pytest.mark.slow
@forks
def test_kills_at_the_worst_moments_change_nothing(
    tmp_path: Path, undisturbed: tuple[Run, int]
) -> None:
    for spot in SPOTS:
        child = start(tmp_path, *spot)
        child.join()
        assert child.exitcode == -signal.SIGKILL, spot
    assert killed_and_restarted(tmp_path, []) == 0
    equal(tmp_path, undisturbed[0], f"killed at {SPOTS}")


@forks
def test_three_kills_change_nothing(tmp_path: Path, undisturbed: tuple[Run, int]) -> None:
    run, size = undisturbed
    assert {"scores.jsonl", "metrics.jsonl", "done"} <= set(contents(run))
    same_after(tmp_path, drawn(3, size, time.time_ns()), run, least=2)


@forks
@pytest.mark.slow
def test_twenty_kills_change_nothing(tmp_path: Path, undisturbed: tuple[Run, int]) -> None:
    run, size = undisturbed
    folders = [tmp_path / str(part) for part in range(5)]
    for folder in folders:
        folder.mkdir()
        same_after(folder, drawn(4, size, time.time_ns()), run, least=2)
