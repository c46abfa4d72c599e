"""Facts bought from a model: what it answered to a prompt, kept for ever, never bought twice.

One SQLite file that many processes read and write at once. It only grows: triggers refuse any
change. It does not know what a prompt is: `prompt_key` makes a key of whatever went into one.
Two processes that ask for the same new prompt in the same moment both pay; both then get the answer
that was recorded first.
"""

from __future__ import annotations

import hashlib
import json
import math
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from kleash.errors import DataError
from kleash.runs.run import canonical

APPLICATION = int.from_bytes(b"KLEA", "big")
SCHEMA = 1
PATIENCE = 60.0  # seconds to wait for another process's transaction
CHUNK = 500  # keys per query: builds of SQLite exist that allow only 999 parameters

# The error is part of the key and '' where there is none: an answer stands once, before its errors.
TABLES = (
    """
    CREATE TABLE facts (
        model TEXT NOT NULL,
        prompt TEXT NOT NULL,
        error TEXT NOT NULL,
        text TEXT,
        truth_logp REAL,
        extra TEXT NOT NULL,
        PRIMARY KEY (model, prompt, error),
        CHECK ((error = '') = (text IS NOT NULL))
    ) WITHOUT ROWID
    """,
    """
    CREATE TRIGGER facts_stay_unchanged BEFORE UPDATE ON facts
        BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END
    """,
    """
    CREATE TRIGGER facts_stay BEFORE DELETE ON facts
        BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END
    """,
    f"PRAGMA application_id = {APPLICATION}",
    f"PRAGMA user_version = {SCHEMA}",
)


@dataclass(frozen=True)
class Fact:
    """What a model answered, how likely it found the truth (nats); or the error, if it broke."""

    text: str | None
    truth_logp: float | None = None
    extra: dict[str, Any] = field(default_factory=dict)
    error: str | None = None

    def __post_init__(self) -> None:
        if self.error == "" or (self.error is None) == (self.text is None):
            raise ValueError(f"a fact has either a text or an error: {self}")
        if self.truth_logp is not None and math.isnan(self.truth_logp):
            raise ValueError(f"NaN is not a log-probability, give an error instead: {self}")


@dataclass(frozen=True)
class Usage:
    """What was asked through one open ledger, and what of it had to be paid for."""

    asked: int = 0
    bought: int = 0
    broken: int = 0

    @property
    def saved(self) -> int:
        """Answers that cost nothing."""
        return self.asked - self.bought

    def since(self, before: Usage) -> Usage:
        """What came after an earlier reading."""
        return Usage(
            self.asked - before.asked, self.bought - before.bought, self.broken - before.broken
        )


def prompt_key(*parts: str | bytes) -> str:
    """SHA-256 of all that went into a prompt, each part with its kind and length before it."""
    digest = hashlib.sha256()
    for part in parts:
        content = part.encode() if isinstance(part, str) else part
        digest.update(b"s" if isinstance(part, str) else b"b")
        digest.update(len(content).to_bytes(8, "big") + content)
    return digest.hexdigest()


class Database:
    """An SQLite file that many processes read and write at once; each opens its own.

    Threads may take turns.
    """

    what = "database"

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._clear_errors():
            self._db = sqlite3.connect(
                path, timeout=PATIENCE, isolation_level=None, check_same_thread=False
            )
        try:
            with self._clear_errors():
                self._prepare()
        except BaseException:
            self._db.close()
            raise

    def _prepare(self) -> None:
        """Make the tables of a new file."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()

    def _rows(self, query: str, owner: str, keys: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
        """What a query finds under keys, `{}` standing for some of them at a time."""
        with self._clear_errors():
            for start in range(0, len(keys), CHUNK):
                some = keys[start : start + CHUNK]
                marks = ",".join("?" * len(some))
                yield from self._db.execute(query.format(marks), (owner, *some))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:  # a full disk has ended it already
                self._db.execute("ROLLBACK")
            raise

    @contextmanager
    def _clear_errors(self) -> Iterator[None]:
        """A torn, foreign, locked or unreachable file is the user's to mend; the rest is ours."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            if type(error) in (sqlite3.DatabaseError, sqlite3.OperationalError):
                raise DataError(f"cannot use the {self.what} {self.path}: {error}") from None
            raise


class Ledger(Database):
    """An open ledger; made if there is none.

    `machines`: processes of several machines may have it open, on a disk that they share.
    """

    what = "ledger"

    def __init__(self, path: Path, *, machines: bool = False) -> None:
        self._journal = "DELETE" if machines else "WAL"
        self._usage = Usage()
        super().__init__(path)

    def usage(self) -> Usage:
        """What has been asked since this ledger was opened."""
        return self._usage

    def count(self, usage: Usage) -> None:
        """Add what another process asked for the same work."""
        ours = self._usage
        self._usage = Usage(
            ours.asked + usage.asked, ours.bought + usage.bought, ours.broken + usage.broken
        )

    def recall(self, usage: Usage) -> None:
        """Count answers that were asked for again and came from somebody's memory."""
        self._usage = Usage(
            self._usage.asked + usage.asked,
            self._usage.bought,
            self._usage.broken + usage.broken,
        )

    def lookup(self, model: str, keys: Sequence[str]) -> dict[str, Fact]:
        """What is known of these prompts: the answer if there is one, else its error."""
        found: dict[str, Fact] = {}
        query = (
            "SELECT prompt, text, truth_logp, extra, error FROM facts WHERE model = ?"
            " AND prompt IN ({}) ORDER BY prompt, error"
        )
        for prompt, text, truth_logp, extra, error in self._rows(query, model, keys):
            found.setdefault(prompt, Fact(text, truth_logp, json.loads(extra), error or None))
        return found

    def record(self, model: str, facts: Mapping[str, Fact]) -> None:
        """Keep facts, all or none of them; an answer that is there already stays as it is."""
        rows = [
            (model, prompt, fact.error or "", fact.text, fact.truth_logp, _text(fact.extra))
            for prompt, fact in facts.items()
        ]
        with self._clear_errors(), self._transaction():
            self._db.executemany(
                "INSERT INTO facts (model, prompt, error, text, truth_logp, extra)"
                " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                rows,
            )

    def answers(
        self,
        model: str,
        keys: Sequence[str],
        buy: Callable[[list[int]], Sequence[Fact]],
        *,
        retry_broken: bool = False,
    ) -> list[Fact]:
        """A fact for every key, in order. `buy` gets the places of the new ones, each key once.

        What `buy` returns is recorded when it returns: ask in batches, or a kill loses all of it.
        """
        known = self.lookup(model, list(dict.fromkeys(keys)))
        places: dict[str, int] = {}
        for place, key in enumerate(keys):
            if key not in known or (retry_broken and known[key].error):
                places.setdefault(key, place)
        if places:
            bought = buy(list(places.values()))
            self.record(model, dict(zip(places, bought, strict=True)))
            # Read back, not taken from `buy`: every asker gets the same bytes, also the first one.
            known |= self.lookup(model, list(places))
        facts = [known[key] for key in keys]
        self._usage = Usage(
            self._usage.asked + len(keys),
            self._usage.bought + len(places),
            self._usage.broken + sum(fact.error is not None for fact in facts),
        )
        return facts

    def _prepare(self) -> None:
        """Make an empty file into a ledger; of two processes that try, one does it."""
        if not self._is_ledger():
            with self._transaction():
                if not self._is_ledger():
                    for statement in TABLES:
                        self._db.execute(statement)
        self._use_journal()

    def _is_ledger(self) -> bool:
        """Whether the file is a ledger or still empty; anything else is an error."""
        # The tables first: where they are, whoever made them has also set the two numbers.
        if self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
            return False
        application = self._db.execute("PRAGMA application_id").fetchone()[0]
        schema = self._db.execute("PRAGMA user_version").fetchone()[0]
        if application != APPLICATION:
            raise DataError(f"{self.path} is another program's database, not a ledger")
        if schema > SCHEMA:
            raise DataError(
                f"{self.path} was made by a newer Kleash: upgrade to use it"
                f" (schema {schema}, this one knows {SCHEMA})"
            )
        page = self._db.execute("PRAGMA page_size").fetchone()[0]
        ahead = self.path.with_name(f"{self.path.name}-wal")
        # SQLite takes a last page that was cut short for a whole one; pages may wait in the WAL.
        if self.path.stat().st_size % page and not (ahead.exists() and ahead.stat().st_size):
            raise DataError(f"cannot use the ledger {self.path}: its last page is torn")
        return True

    def _use_journal(self) -> None:
        """With WAL readers and a writer work at once, but all on one machine: they share memory.

        SQLite does not wait for the lock that a change of it needs, so we do.
        """
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                self._db.execute(f"PRAGMA journal_mode = {self._journal}")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)


def _text(extra: Mapping[str, Any]) -> str:
    return canonical(extra).decode().rstrip("\n")
