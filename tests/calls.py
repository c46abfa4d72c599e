"""Calls for jobs: what a test sends to other processes, imported there by name."""

import errno
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

from kleash.errors import DataError

IMPORTED = time.time_ns()


def double(given, tell):
    return 2 * given.get("x", 0)


def who(given, tell):
    return {"pid": os.getpid(), "imported": IMPORTED, "threads": os.environ["OMP_NUM_THREADS"]}


def talk(given, tell):
    for step in range(given["steps"]):
        tell({"step": step})
    return "said"


def boom(given, tell):
    print("about to fall")  # noqa: T201  # a test looks for it
    raise ValueError("boom")


def user_error(given, tell):
    raise DataError("scores.jsonl is torn: run it again")


def leave(given, tell):
    sys.exit("enough")


def unspeakable(given, tell):
    return {1, 2}


def die(given, tell):
    """Die as often as asked, by a signal or an exit code; a file counts the tries."""
    tries = Path(given["tries"])
    with tries.open("a") as file:
        file.write("x")
    print("last words")  # noqa: T201  # a test looks for it
    if len(tries.read_text()) <= given["deaths"]:
        if given.get("exit"):
            os._exit(given["exit"])
        os.kill(os.getpid(), given.get("signal", signal.SIGKILL))
        time.sleep(600)
    return "lived"


def segfault(given, tell):
    import ctypes

    ctypes.string_at(0)


def child_holds_the_pipe(given, tell):
    """Die while a process forked off lives on with everything this one had open."""
    child = os.fork()
    if not child:
        time.sleep(600)
        os._exit(0)
    tell({"child": child})
    os._exit(7)


def wait(given, tell):
    """Take long, and say so at the end even when interrupted, unless deaf to it."""
    if given.get("deaf"):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    if given.get("child"):
        tell({"child": subprocess.Popen(["sleep", "600"]).pid})
    tell({"waiting": os.getpid()})
    try:
        for _ in range(12_000):  # ten minutes; Ray's interrupt waits for a call into C to end
            time.sleep(0.05)
    except KeyboardInterrupt:
        if given.get("note"):
            Path(given["note"]).write_text("tidied up")
        raise
    return "waited"


def once_slow(given, tell):
    """The first time wait to be killed; the second time be quick."""
    marker = Path(given["marker"])
    if marker.exists():
        return {"pid": os.getpid()}
    marker.write_text(str(os.getpid()))
    tell({"pid": os.getpid()})
    time.sleep(60)
    return None


def spin(given, tell):
    """Processor time, not waiting."""
    end = time.process_time() + given["seconds"]
    turns = 0
    while time.process_time() < end:
        turns += 1
    return turns > 0


def sum_of_ranks(given, tell):
    """What all processes together add up to, and what this one is told of itself."""
    import torch
    import torch.distributed as distributed

    rank = distributed.get_rank()
    total = torch.tensor([float(rank + 1)])
    distributed.all_reduce(total)
    tell({"rank": rank})
    if given.get("fails") == rank:
        raise ValueError(f"rank {rank} is broken")
    if "fails" in given:
        distributed.barrier()  # the others would wait here for ever
    return {"rank": rank, "total": float(total), "size": distributed.get_world_size()}


def once_slow_together(given, tell):
    """As `once_slow`, in several processes: the first waits to be killed, the others for it."""
    import torch.distributed as distributed

    marker = Path(given["marker"])
    again = marker.exists()
    distributed.barrier()
    if again:
        return "together"
    if distributed.get_rank() == 0:
        marker.write_text("seen")
        tell({"pid": os.getpid()})
        time.sleep(60)
    distributed.barrier()
    return "alone"


def full(given, tell):
    """Whoever writes says in its own way that a disk is full."""
    says = given["says"]
    if says == "os":
        raise OSError(errno.ENOSPC, "No space left on device")
    if says == "ledger":
        try:
            raise sqlite3.OperationalError("database or disk is full")
        except sqlite3.OperationalError as error:
            raise DataError(f"cannot use the ledger: {error}") from None
    if says == "behind another":
        try:
            raise OSError(errno.EDQUOT, "Disk quota exceeded")
        except OSError:
            raise ValueError("it cannot be kept") from None
    raise RuntimeError("I/O error: No space left on device (os error 28)")
