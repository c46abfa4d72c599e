"""What runs in another process: take a job, make its call, say what came of it, take the next.

Messages are JSON. Nothing is written to disk here but what the called function itself writes.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Iterable
from importlib import import_module
from multiprocessing.connection import Connection
from typing import Any

from kleash.errors import KleashError, is_no_space
from kleash.runs.jobs.job import NO_SPACE

FRAMES = 6  # of a traceback, the ones nearest to the error
# Numbers must not depend on how many cores a machine has, nor may workers fight for them.
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


def message(kind: str, record: Any = None, error: str = "") -> str:
    """One thing to say, as it travels."""
    return json.dumps([kind, record, error])


def started() -> str:
    """Who has started a job."""
    return message("started", {"pid": os.getpid(), "host": socket.gethostname()})


def perform(call: str, given: dict[str, Any], send: Callable[[str], None]) -> str:
    """Make a job's call; whatever it raises is said, and is no business of other jobs."""
    try:
        module, _, function = call.partition(":")
        called = getattr(import_module(module), function)
        if torch := sys.modules.get("torch"):
            torch.set_num_threads(1)
        return message("done", called(given, lambda record: send(message("told", record))))
    except (Exception, SystemExit) as error:  # noqa: BLE001  # a job fails alone, whatever it does
        says = str(error) if isinstance(error, KleashError) else in_short(error)
        return message("failed", NO_SPACE if is_no_space(error) else None, says)


def in_short(error: BaseException) -> str:
    """The error, and below it the way there."""
    says = "".join(traceback.format_exception_only(error)).strip()
    way = "".join(traceback.format_tb(error.__traceback__, limit=-FRAMES)).rstrip()
    return f"{says}\n{way}"


def use_paths(paths: Iterable[str]) -> None:
    """Find modules where the driver finds them, as far as these folders are here."""
    sys.path += [path for path in paths if path not in sys.path and os.path.exists(path)]  # noqa: PTH110  # entries of sys.path are text, "" among them


def serve(handle: int) -> None:
    """The life of a local worker: jobs come over a pipe, and when its driver dies, so does it."""
    os.set_inheritable(handle, False)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background shell ignores it
    pipe = Connection(handle)
    turn = threading.Lock()
    wanted: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def send(text: str) -> None:
        with turn:
            pipe.send_bytes(text.encode())

    def listen() -> None:
        try:
            while job := json.loads(pipe.recv_bytes()):
                wanted.put(job)
            wanted.put(None)
        except (EOFError, OSError):
            # The driver is gone. Whatever the job has started is in this group, and goes too.
            os.killpg(0, signal.SIGKILL)

    threading.Thread(target=listen, daemon=True).start()
    try:
        while job := wanted.get():
            send(started())
            send(perform(job["call"], job["given"], send))
    except KeyboardInterrupt:
        sys.exit(130)
