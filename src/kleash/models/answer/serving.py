"""One copy of a model for many processes: a server holds it, clients ask over a local socket.

A server gathers what waits from all its clients into batches. A prompt that two ask for at the same
time, or that was answered lately, is put to the model once. A client is an answerer like any other,
under the model's own identity: whoever has one cannot tell it from the model. Where there are
several servers every prompt has its own, by its content, so all this holds across them.

A folder that only its owner can enter holds what they share: `secret`, and for each server a socket
`0.socket` or, when it will not come back, `0.gone` with the reason.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
import threading
import time
import traceback
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from itertools import islice
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Literal

from kleash import errors
from kleash.errors import ConfigError, KleashError
from kleash.models.answer import Answerer, answerer, embedded_by, looks_at_images
from kleash.tasks.data import dataset
from kleash.tasks.demos.embeddings import Embeddings
from kleash.types import Answer, Item, Prompt

WAIT = 0.002  # seconds in which others may join a batch
LARGEST = 1024  # prompts in one batch
KEPT = 65_536  # answers a server remembers, until whoever asked has them in the ledger
PATIENCE = 600.0  # seconds for a server to load its model, the first time or again
LOOK = 0.05  # seconds between two tries to reach it
TRIES = 5  # times a question is put before it is given up


@dataclass(frozen=True)
class Model:
    """What is served: an answerer that looks at the images of a data set."""

    answerer: str
    data: str
    data_seed: int
    answerer_options: dict[str, Any] = field(default_factory=dict)
    data_options: dict[str, Any] = field(default_factory=dict)

    def made(self, device: str) -> Answerer:
        """The answerer itself."""
        data = dataset(self.data, self.data_seed, self.data_options)
        return answerer(self.answerer, data.image, device, self.answerer_options)


# --- the server


Key = tuple[int, ...]
"""A prompt by the numbers of its items, the query's last: much faster to look up than items are."""


@dataclass(frozen=True)
class Request:
    """What one client waits for: answers to prompts, or items as vectors."""

    kind: Literal["answer", "embed"]
    what: Sequence[Any]
    said: Future[Any] = field(default_factory=Future)


class Desk:
    """Takes requests from many threads; the one that works answers them, a batch at a time."""

    def __init__(self, model: Answerer, *, wait: float = WAIT, largest: int = LARGEST) -> None:
        self.model, self.wait, self.largest = model, wait, largest
        self.requests: SimpleQueue[Request] = SimpleQueue()
        self.present = 0
        self.turn = threading.Lock()
        self.numbers: dict[Item, int] = {}
        self.items: list[Item] = []
        self.lately: dict[Key, Answer] = {}
        self.counts: Counter[str] = Counter()

    @contextmanager
    def visitor(self) -> Iterator[None]:
        """Somebody who may ask: nobody is waited for when all who are here wait themselves."""
        with self.turn:
            self.present += 1
        try:
            yield
        finally:
            with self.turn:
                self.present -= 1

    def ask(self, kind: Literal["answer", "embed"], what: Sequence[Any]) -> Any:
        """What the model says, when it is this request's turn; what it raises is raised here."""
        request = Request(kind, what)
        self.requests.put(request)
        return request.said.result()

    def work(self) -> None:
        """Answer one batch: all that waits now or within a moment, up to the largest size."""
        batch = [self.requests.get()]
        end = time.monotonic() + self.wait
        while len(batch) < self.present and sum(len(r.what) for r in batch) < self.largest:
            try:
                batch.append(self.requests.get(timeout=max(0.0, end - time.monotonic())))
            except Empty:
                break
        for request in batch:
            if request.kind == "embed":
                self.embed(request)
        self.answer([request for request in batch if request.kind == "answer"])

    def embed(self, request: Request) -> None:
        """Items as vectors."""
        try:
            request.said.set_result(embedded_by(self.model, request.what))
        except Exception as error:  # noqa: BLE001  # whoever asked hears of it; others go on
            request.said.set_exception(error)

    def answer(self, requests: Sequence[Request]) -> None:
        """Answer requests; one that holds a prompt which the model refuses fails alone."""
        wanted: dict[Key, None] = dict.fromkeys(key for request in requests for key in request.what)
        new = [key for key in wanted if key not in self.lately]
        said: dict[Key, Answer | Exception] = {
            key: self.lately[key] for key in wanted if key in self.lately
        }
        for start in range(0, len(new), self.largest):
            said |= self.put(new[start : start + self.largest])
        self.counts["asked"] += sum(len(request.what) for request in requests)
        self.remember({key: said[key] for key in new})
        for request in requests:
            answers = [said[key] for key in request.what]
            wrong = next((each for each in answers if isinstance(each, Exception)), None)
            if wrong is None:
                request.said.set_result(answers)
            else:
                request.said.set_exception(wrong)

    def put(self, keys: Sequence[Key]) -> dict[Key, Answer | Exception]:
        """Answers of the model; where it raises, halves are tried until the cause stands alone."""
        items = self.items
        prompts = [Prompt(tuple(items[n] for n in key[:-1]), items[key[-1]]) for key in keys]
        try:
            answers = self.model.answer(prompts)
        except Exception as error:  # noqa: BLE001  # whoever asked hears of it; others go on
            if len(keys) == 1:
                return {keys[0]: error}
            half = len(keys) // 2
            return self.put(keys[:half]) | self.put(keys[half:])
        self.counts["paid"] += len(keys)
        self.counts["batches"] += 1
        return dict(zip(keys, answers, strict=True))

    def number(self, item: Item) -> int:
        """The number of an item, the same for all clients."""
        with self.turn:
            if item not in self.numbers:
                self.items.append(item)
                self.numbers[item] = len(self.items) - 1
            return self.numbers[item]

    def remember(self, said: dict[Key, Answer | Exception]) -> None:
        """Keep answers for a while; one that broke may be asked for again."""
        for key, answer in said.items():
            if isinstance(answer, Answer) and not math.isnan(answer.truth_logp):
                self.lately[key] = answer
        for key in list(islice(self.lately, max(0, len(self.lately) - KEPT))):
            del self.lately[key]


def attend(desk: Desk, client: Connection, hello: dict[str, Any]) -> None:
    """Listen to one client until it leaves. It sends an item once, then says which one it was."""
    numbers: list[int] = []
    with desk.visitor(), client, suppress(EOFError, OSError):
        client.send(hello)
        while True:
            kind, what = client.recv()
            if kind == "answer":
                items, places = what
                numbers += map(desk.number, items)
                what = [tuple(numbers[place] for place in some) for some in places]
            try:
                said = dict(desk.counts) if kind == "counts" else desk.ask(kind, what)
            except Exception as error:  # noqa: BLE001  # it travels to whoever asked
                if not isinstance(error, KleashError):
                    traceback.print_exception(error)
                client.send((type(error).__name__, str(error)))
            else:
                client.send(("", said))


def serve(folder: Path, number: int, device: str, model: Model) -> None:
    """The life of a server: load the model, open the socket, answer until the driver is gone."""
    threading.Thread(target=leave_with_the_driver, args=(folder,), daemon=True).start()
    asked = model.made(device)
    desk = Desk(asked)
    hello = {
        "identity": asked.identity,
        "looks": looks_at_images(asked),
        "model": asdict(model),
        "device": device,
    }
    path = folder / f"{number}.socket"
    path.unlink(missing_ok=True)
    secret = (folder / "secret").read_bytes()
    with Listener(str(path), "AF_UNIX", backlog=128, authkey=secret) as door:

        def receive() -> None:
            while True:
                # One that dies on the threshold, or does not know the secret, keeps nobody out.
                with suppress(EOFError, OSError, AuthenticationError):
                    client = door.accept()
                    threading.Thread(target=attend, args=(desk, client, hello), daemon=True).start()

        threading.Thread(target=receive, daemon=True).start()
        while True:
            desk.work()


def leave_with_the_driver(folder: Path) -> None:
    """Its end of our standard input closes when it lets us go, and also when it is killed."""
    sys.stdin.buffer.read()
    shutil.rmtree(folder, ignore_errors=True)  # a driver that was killed cannot
    os._exit(0)


def main(given: str) -> None:
    """What a driver starts. A mistake of the user's is one line."""
    spec = json.loads(given)
    try:
        serve(Path(spec["folder"]), spec["number"], spec["device"], Model(**spec["model"]))
    except KleashError as error:
        print(error, file=sys.stderr, flush=True)  # noqa: T201  # the driver reads it
        os._exit(2)


# --- the client


class Line:
    """A connection to one server; when it breaks it is made again and the question repeated."""

    def __init__(self, folder: Path, number: int, model: Model) -> None:
        self.folder, self.number, self.model = folder, number, model
        self.identity, self.looks = "", True
        self.question: tuple[str, Any] = ("", None)
        self.waiting = False
        self.connect()

    def connect(self) -> None:
        """Wait for the server to be there; one that is gone for good says why."""
        end = time.monotonic() + PATIENCE
        path, gone = (self.folder / f"{self.number}.{ending}" for ending in ("socket", "gone"))
        while True:
            if gone.is_file():
                raise KleashError(gone.read_text(encoding="utf-8"))
            with suppress(OSError, EOFError):
                secret = (self.folder / "secret").read_bytes()
                connection = Client(str(path), "AF_UNIX", authkey=secret)
                self.greet(connection.recv())
                self.connection = connection
                self.sent: dict[Item, int] = {}
                return
            if not self.folder.is_dir() or time.monotonic() > end:
                raise KleashError(f"nobody serves answers at {path}: start the study again")
            time.sleep(LOOK)

    def greet(self, hello: dict[str, Any]) -> None:
        """Be sure that it is the model that was meant, and the same one as before."""
        theirs = Model(**hello["model"])
        if theirs != self.model:
            raise ConfigError(f"the server answers for {theirs}, not for {self.model}")
        if self.identity not in ("", hello["identity"]):
            raise ConfigError(f"the server's model has changed to {hello['identity']}")
        self.identity, self.looks = hello["identity"], hello["looks"]

    def send(self, kind: str, what: Any) -> None:
        """Ask; `receive` notices if nobody heard it."""
        if self.waiting:  # somebody was interrupted, and would now hear what he had asked for
            self.connection.close()
            self.connect()
        self.question, self.waiting = (kind, what), True
        self.put()

    def put(self) -> None:
        """Send the question; of its items those that this server has not seen."""
        kind, what = self.question
        if kind == "answer":
            before = len(self.sent)
            rows = [(*prompt.demonstrations, prompt.query) for prompt in what]
            places = [
                tuple(self.sent.setdefault(item, len(self.sent)) for item in row) for row in rows
            ]
            what = (list(islice(self.sent, before, None)), places)
        with suppress(OSError):
            self.connection.send((kind, what))

    def receive(self) -> Any:
        """What the server says. Answers do not depend on who asks when: asking again is safe."""
        for _ in range(TRIES):
            try:
                wrong, said = self.connection.recv()
                break
            except (EOFError, OSError):
                self.connect()
                self.put()
        else:
            raise KleashError(f"the answerer hung up {TRIES} times: see {self.folder}")
        self.waiting = False
        if not wrong:
            return said
        known = getattr(errors, wrong, None)
        raise known(said) if known else RuntimeError(f"the answerer broke: {wrong}: {said}")


class Served:
    """The answerer that the servers in a folder hold."""

    def __init__(self, folder: Path, model: Model) -> None:
        count = int((folder / "servers").read_text())
        self.lines = [Line(folder, number, model) for number in range(count)]
        found = sorted({line.identity for line in self.lines})
        if len(found) > 1:
            raise ConfigError(
                f"the servers hold different models ({'; '.join(found)}): use devices of one kind"
            )
        self.identity, self.looks = found[0], self.lines[0].looks

    def answer(self, prompts: Sequence[Prompt]) -> list[Answer]:
        """An answer for every prompt; all servers work at the same time."""
        places: dict[int, list[int]] = {}
        for place, prompt in enumerate(prompts):
            places.setdefault(whose(prompt, len(self.lines)), []).append(place)
        for number, some in places.items():
            self.lines[number].send("answer", [prompts[place] for place in some])
        answers: dict[int, Answer] = {}
        for number, some in places.items():
            answers.update(zip(some, self.lines[number].receive(), strict=True))
        return [answers[place] for place in range(len(prompts))]

    def embed(self, items: Sequence[Item]) -> Embeddings:
        """The images and questions of items as vectors."""
        self.lines[0].send("embed", items)
        found: Embeddings = self.lines[0].receive()
        return found

    def counts(self) -> list[dict[str, int]]:
        """Of each server: prompts asked for, those put to the model, and in how many batches."""
        for line in self.lines:
            line.send("counts", None)
        return [line.receive() for line in self.lines]


def whose(prompt: Prompt, servers: int) -> int:
    """The number of the server that answers a prompt, the same in every process."""
    names = "\x1f".join(item.id for item in (*prompt.demonstrations, prompt.query))
    return zlib.crc32(names.encode()) % servers
