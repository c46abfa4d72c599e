"""SQLite files of other tools, opened so that nothing in them can change, and checked.

SQLite keeps no checksums, but its indexes repeat what its tables say: comparing the two finds most
damage. A file too large to compare is read all the same, and that is noted.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from kleash.compare.read.gather import head
from kleash.errors import DataError

MAGIC = b"SQLite format 3\0"
CHECKED = 256 * 2**20


def has_tables(path: Path, *names: str) -> bool:
    """Whether a file is a database with these tables; False where it cannot be read."""
    if not path.is_file() or head(path, 16) != MAGIC:
        return False
    try:
        with closing(_connect(path)) as database:
            return set(names) <= _tables(database)
    except (sqlite3.Error, ValueError):
        return False


@contextmanager
def opened(path: Path, notes: list[str]) -> Iterator[sqlite3.Connection]:
    """A connection that only reads; whatever SQLite finds wrong is one line."""
    try:
        with closing(_connect(path)) as database:
            if path.stat().st_size <= CHECKED:
                found = database.execute("PRAGMA integrity_check(1)").fetchone()[0]
                if found != "ok":
                    raise DataError(f"{path} is damaged: {str(found).splitlines()[0][:200]}")
            else:
                notes.append(f"{path} is too large for its tables and indexes to be compared")
            yield database
    # A column may hold any type, whatever its table says: then it is not the tool's own file.
    except (sqlite3.Error, TypeError, ValueError, OverflowError) as error:
        raise DataError(f"{path} cannot be read as its tool would: {error}") from None


def _connect(path: Path) -> sqlite3.Connection:
    name = f"file:{quote(str(path.resolve()))}?mode=ro"
    # Without a write-ahead log nothing can be pending, and no lock file need be made beside it.
    if not path.with_name(path.name + "-wal").exists():
        name += "&immutable=1"
    return sqlite3.connect(name, uri=True)


def _tables(database: sqlite3.Connection) -> set[str]:
    rows = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    return {str(name) for (name,) in rows}
