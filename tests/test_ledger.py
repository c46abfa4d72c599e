import hashlib
import math
import os
import random
import signal
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from kleash.errors import DataError
from kleash.runs import ledger
from kleash.runs.ledger import Fact, Ledger, Usage, prompt_key
from pace import cpu_within

# Python 3.12 warns of any fork beside threads; the children here touch none.
forks = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def never(places: list[int]) -> list[Fact]:
    raise AssertionError(f"asked to pay for {places}")


def answer(key: str) -> Fact:
    return Fact(f"answer to {key}", -len(key) / 3, {"tokens": len(key)})


def child(work: Callable[[], None]) -> int:
    """The id of a new process that does the work and ends: 0 if all went well, else 1."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return pid


def ending(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def rows(path: Path, query: str) -> list[tuple[object, ...]]:
    db = sqlite3.connect(path)
    try:
        return db.execute(query).fetchall()
    finally:
        db.close()


# --- keys and facts


def test_a_key_depends_on_every_part_its_kind_and_where_it_ends() -> None:
    keys = [
        prompt_key("ab", "c"),
        prompt_key("a", "bc"),
        prompt_key("abc"),
        prompt_key("ab", "c", ""),
        prompt_key("ab", b"c"),
        prompt_key("c", "ab"),
        prompt_key(),
    ]
    assert len(set(keys)) == len(keys)
    by_hand = b"s" + bytes(7) + b"\x03\xe7\xba\xa6" + b"b" + bytes(7) + b"\x01\xff"
    assert prompt_key("约", b"\xff") == hashlib.sha256(by_hand).hexdigest()


def test_a_fact_is_an_answer_or_an_error_and_never_nan() -> None:
    for wrong in (
        lambda: Fact(None),
        lambda: Fact("yes", error="timeout"),
        lambda: Fact(None, error=""),
        lambda: Fact("yes", math.nan),
    ):
        with pytest.raises(ValueError, match=r"a fact has either|NaN is not"):
            wrong()


def test_facts_come_back_exactly(tmp_path: Path) -> None:
    rng = random.Random(0)
    facts = {
        str(n): Fact("é约\n\0" + str(n), -rng.random() * 10.0 ** rng.randint(-300, 300), {"n": [n]})
        for n in range(200)
    } | {
        "tiny": Fact("", 5e-324),
        "never": Fact("no", -math.inf),
        "unknown": Fact("no", None),
        "whole": Fact("no", -3.0),
        "broken": Fact(None, error="timeout", extra={"after": 1.5}),
    }
    with Ledger(tmp_path / "l.sqlite") as book:
        book.record("m", facts)
    with Ledger(tmp_path / "l.sqlite") as book:
        assert book.lookup("m", list(facts)) == facts
        assert book.lookup("another model", list(facts)) == {}
        assert book.lookup("m", ["unheard of"]) == book.lookup("m", []) == {}


# --- buying


def test_each_prompt_is_bought_once_and_answers_stand_in_order(tmp_path: Path) -> None:
    asked: list[list[int]] = []

    def buy(places: list[int]) -> list[Fact]:
        asked.append(places)
        return [answer(keys[place]) for place in places]

    with Ledger(tmp_path / "l.sqlite") as book:
        keys = ["b", "a", "b", "c", "a"]
        assert book.answers("m", keys, buy) == [answer(key) for key in keys]
        assert asked == [[0, 1, 3]]
        keys = ["c", "new", "a", "new"]
        assert book.answers("m", keys, buy) == [answer(key) for key in keys]
        assert asked[1:] == [[1]]
        assert book.answers("m", keys, never) == [answer(key) for key in keys]
        assert book.answers("m", [], never) == []
        assert book.usage() == Usage(asked=13, bought=4, broken=0)
        assert book.usage().saved == 9
        book.answers("another model", ["c"], lambda places: [answer("c")])
        assert book.usage().bought == 5
    with Ledger(tmp_path / "l.sqlite") as book:
        assert book.answers("m", ["c", "b"], never) == [answer("c"), answer("b")]
        assert book.usage() == Usage(asked=2)


def test_who_pays_gets_the_same_bytes_as_who_asks_later(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l.sqlite") as book:
        first = book.answers("m", ["a"], lambda _: [Fact("yes", -0.0, {"pair": (1, 2)})])
        later = book.answers("m", ["a"], never)
    assert repr(first) == repr(later)


def test_what_was_recorded_first_stays(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l.sqlite") as book:

        def slow(places: list[int]) -> list[Fact]:
            with Ledger(tmp_path / "l.sqlite") as other:
                other.record("m", {"a": Fact("first")})
            return [Fact("second")]

        assert book.answers("m", ["a"], slow) == [Fact("first")]
        book.record("m", {"a": Fact("third")})
        assert book.lookup("m", ["a"]) == {"a": Fact("first")}


def test_a_broken_answer_is_kept_counted_and_retried_only_on_request(tmp_path: Path) -> None:
    broken = Fact(None, error="timeout after 60 s")
    with Ledger(tmp_path / "l.sqlite") as book:
        assert book.answers("m", ["a", "b"], lambda _: [broken, Fact("yes")]) == [
            broken,
            Fact("yes"),
        ]
        assert book.answers("m", ["a"], never) == [broken]
        assert book.answers("m", ["a"], lambda _: [broken], retry_broken=True) == [broken]
        assert book.usage() == Usage(asked=4, bought=3, broken=3)
        retried: Sequence[Fact] = book.answers(
            "m", ["b", "a", "a"], lambda places: [Fact(f"at {places}")], retry_broken=True
        )
        assert retried == [Fact("yes"), Fact("at [1]"), Fact("at [1]")]
        assert book.usage() == Usage(asked=7, bought=4, broken=3)
        assert book.answers("m", ["a"], never, retry_broken=True) == [Fact("at [1]")]
    kept = rows(tmp_path / "l.sqlite", "SELECT error FROM facts WHERE prompt = 'a' ORDER BY error")
    assert kept == [("",), ("timeout after 60 s",)]


def test_a_purchase_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l.sqlite") as book:
        with pytest.raises(AssertionError):
            book.answers("m", ["a"], never)
        with pytest.raises(ValueError, match="shorter"):
            book.answers("m", ["a", "b"], lambda _: [Fact("only one")])
        assert book.lookup("m", ["a", "b"]) == {}
        assert book.usage() == Usage()


def test_facts_are_recorded_all_or_none(tmp_path: Path) -> None:
    class Hurried(Fact):
        """Skips the checks of a fact."""

        def __post_init__(self) -> None: ...

    with Ledger(tmp_path / "l.sqlite") as book:
        with pytest.raises(sqlite3.IntegrityError):
            book.record("m", {"a": Fact("yes"), "b": Hurried(None)})
        assert book.lookup("m", ["a"]) == {}
        book.record("m", {"a": Fact("yes")})
        assert book.lookup("m", ["a"]) == {"a": Fact("yes")}


@pytest.mark.parametrize("change", ["UPDATE facts SET text = 'no'", "DELETE FROM facts"])
def test_nothing_in_a_ledger_can_be_changed(tmp_path: Path, change: str) -> None:
    with Ledger(tmp_path / "l.sqlite") as book:
        book.record("m", {"a": Fact("yes")})
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        rows(tmp_path / "l.sqlite", change)


@pytest.mark.slow
def test_a_hundred_thousand_keys_are_looked_up_in_seconds(tmp_path: Path) -> None:
    keys = [prompt_key(str(n)) for n in range(100_000)]
    with Ledger(tmp_path / "l.sqlite") as book:
        book.record("m", {key: Fact("yes", -1.0) for key in keys[::2]})
        with cpu_within(10):
            found = book.lookup("m", keys)
    assert list(found) != keys[::2]
    assert found.keys() == set(keys[::2])


# --- the file


def test_a_foreign_file_is_refused_and_left_alone(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("not a database at all\n" * 100)
    rows(tmp_path / "other.sqlite", "CREATE TABLE songs (name TEXT)")
    rows(tmp_path / "other.sqlite", "PRAGMA application_id = 7")
    for path, why in ((text, "file is not a database"), (tmp_path / "other.sqlite", "another")):
        before = path.read_bytes()
        with pytest.raises(DataError, match=why):
            Ledger(path)
        assert path.read_bytes() == before
    with pytest.raises(DataError, match=r"cannot use the ledger .*unable to open"):
        Ledger(tmp_path / "no" / "such" / "folder" / "l.sqlite")


def test_a_torn_copy_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "l.sqlite"
    with Ledger(path) as book:
        book.record("m", {str(n): answer(str(n)) for n in range(1000)})
    whole = path.read_bytes()
    for size in (50, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(DataError, match="cannot use the ledger"):
            Ledger(path)
    path.write_bytes(whole[:8192] + b"\x55" * (len(whole) - 8192))
    with pytest.raises(DataError, match="malformed"), Ledger(path) as book:
        book.lookup("m", [str(n) for n in range(1000)])


def test_a_ledger_of_a_newer_kleash_is_refused(tmp_path: Path) -> None:
    Ledger(tmp_path / "l.sqlite").close()
    rows(tmp_path / "l.sqlite", f"PRAGMA user_version = {ledger.SCHEMA + 1}")
    with pytest.raises(DataError, match="made by a newer Kleash: upgrade"):
        Ledger(tmp_path / "l.sqlite")


def test_a_ledger_is_in_wal_mode_and_says_whose_it_is(tmp_path: Path) -> None:
    Ledger(tmp_path / "l.sqlite").close()
    assert rows(tmp_path / "l.sqlite", "PRAGMA journal_mode") == [("wal",)]
    assert rows(tmp_path / "l.sqlite", "PRAGMA application_id") == [(0x4B4C4541,)]
    assert not (tmp_path / "l.sqlite-wal").exists()


def test_a_ledger_for_several_machines_does_without_wal_and_goes_back_to_it(tmp_path: Path) -> None:
    path = tmp_path / "l.sqlite"
    Ledger(path).close()
    with Ledger(path, machines=True) as book, Ledger(path, machines=True) as other:
        book.record("m", {"a": Fact("x")})
        assert other.lookup("m", ["a"])["a"].text == "x"
        assert not (tmp_path / "l.sqlite-wal").exists()
        assert rows(path, "PRAGMA journal_mode") == [("delete",)]
    Ledger(path).close()
    assert rows(path, "PRAGMA journal_mode") == [("wal",)]


def before_wal(path: Path) -> sqlite3.Connection:
    """A ledger whose maker has not yet got to WAL mode, and somebody who keeps it locked."""
    Ledger(path).close()
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    db.execute("PRAGMA journal_mode = DELETE")
    db.execute("BEGIN")
    db.execute("SELECT count(*) FROM facts").fetchall()
    return db


@pytest.mark.parametrize("patience", [60, 0])
def test_opening_waits_for_others_also_where_sqlite_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, patience: float
) -> None:
    db = before_wal(tmp_path / "l.sqlite")
    connect, over = sqlite3.connect, threading.Event()

    def leave() -> None:
        over.set()
        db.execute("COMMIT")

    timer = threading.Timer(0.3, leave)

    def connected(path: Path, timeout: float, **more: Any) -> sqlite3.Connection:
        found = connect(path, timeout=patience, **more)
        timer.start()
        return found

    monkeypatch.setattr(sqlite3, "connect", connected)
    Ledger(tmp_path / "l.sqlite").close()
    assert over.is_set()  # not before the other one has left
    timer.join()
    db.close()


def test_but_not_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    db = before_wal(tmp_path / "l.sqlite")
    monkeypatch.setattr(ledger, "PATIENCE", 0.1)
    with pytest.raises(DataError, match="database is locked"):
        Ledger(tmp_path / "l.sqlite")
    db.close()


def test_a_full_disk_is_one_clear_line_and_can_be_mended(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l.sqlite") as book:
        book._db.execute("PRAGMA max_page_count = 5")
        with pytest.raises(DataError, match="database or disk is full"):
            book.record("m", {"a": Fact("x" * 100_000)})
        book._db.execute("PRAGMA max_page_count = 1000000")
        book.record("m", {"a": Fact("x" * 100_000)})
        assert "a" in book.lookup("m", ["a"])


# --- many processes


@forks
@pytest.mark.parametrize("attempts", [5, pytest.param(20, marks=pytest.mark.slow)])
def test_processes_that_make_the_same_ledger_make_one(tmp_path: Path, attempts: int) -> None:
    for attempt in range(attempts):
        path = tmp_path / str(attempt)
        pids = [child(lambda to=path: Ledger(to).close()) for _ in range(6)]
        assert [ending(pid) for pid in pids] == [0] * 6


@forks
def test_many_processes_write_at_once_and_nothing_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "l.sqlite"

    def work(worker: int) -> None:
        with Ledger(path) as book:
            for batch in range(20):
                keys = [f"{worker if n % 2 else 'shared'}-{batch}-{n}" for n in range(10)]
                facts = {key: Fact(f"{key} by {worker}") for key in keys}
                got = book.answers(
                    "m", keys, lambda places, k=keys, f=facts: [f[k[p]] for p in places]
                )
                assert book.lookup("m", keys) == dict(zip(keys, got, strict=True))

    pids = [child(lambda n=n: work(n)) for n in range(4)]
    assert [ending(pid) for pid in pids] == [0] * 4
    assert rows(path, "SELECT count(*) FROM facts") == [(20 * 5 * (4 + 1),)]
    assert rows(path, "PRAGMA integrity_check") == [("ok",)]


BATCH, BATCHES = 20, 15


def shop(path: Path, receipts: Path) -> None:
    """Buy everything, batch by batch; whatever is paid for leaves a receipt."""
    with Ledger(path) as book:
        for batch in range(BATCHES):
            keys = [f"{batch}-{n}" for n in range(BATCH)]

            def buy(places: list[int], keys: list[str] = keys) -> list[Fact]:
                with receipts.open("a") as handle:
                    handle.write("".join(f"{keys[place]}\n" for place in places))
                return [answer(keys[place]) for place in places]

            assert book.answers("m", keys, buy) == [answer(key) for key in keys]


def kill_and_count(folder: Path, kills: int) -> None:
    folder.mkdir()
    path, receipts = folder / "l.sqlite", folder / "receipts"
    began = time.monotonic()
    shop(folder / "whole.sqlite", folder / "whole receipts")
    span = time.monotonic() - began
    rng = random.Random(kills)
    for _ in range(kills):
        pid = child(lambda: shop(path, receipts))
        time.sleep(rng.uniform(0, span / 2))
        os.kill(pid, signal.SIGKILL)
        assert ending(pid) in (0, -signal.SIGKILL)
        if path.exists():
            with Ledger(path):
                pass
            counts = rows(
                path,
                "SELECT count(*) FROM facts GROUP BY substr(prompt, 1, instr(prompt, '-'))",
            )
            assert {count for (count,) in counts} <= {BATCH}, "a batch is there whole or not at all"
            assert rows(path, "PRAGMA integrity_check") == [("ok",)]
    assert ending(child(lambda: shop(path, receipts))) == 0
    assert rows(path, "SELECT * FROM facts") == rows(folder / "whole.sqlite", "SELECT * FROM facts")
    paid = receipts.read_text().split()
    assert len(set(paid)) == BATCH * BATCHES
    assert len(paid) <= BATCH * (BATCHES + kills), "a kill costs at most the batch in flight"
    with Ledger(path) as book:
        book.answers("m", sorted(set(paid)), never)


@forks
def test_a_ledger_survives_kills_at_random_moments(tmp_path: Path) -> None:
    kill_and_count(tmp_path / "a", kills=3)


@forks
@pytest.mark.slow
def test_a_ledger_survives_twenty_kills_again_and_again(tmp_path: Path) -> None:
    for attempt in range(5):
        kill_and_count(tmp_path / str(attempt), kills=20)
