"""The errors that are the user's to mend: one line each. Anything else is a bug of ours.

KleashError
├── ConfigError      a key or a value in a TOML file or on the command line
├── DataError        a file that is missing, torn or not what it should be
├── CheckpointError  tensors that do not fit, or are not those that were trained
├── GuardError       a guard stopped a run: what was seen, why it matters, what to do
└── NoSpace          a disk is full: nothing more can be kept
"""

from __future__ import annotations

import errno

FULL = ("No space left on device", "os error 28", "disk is full", "Disk quota exceeded")


class KleashError(Exception):
    """What is wrong, why, and what to do, in one line."""


class ConfigError(KleashError):
    """A key or value that cannot be used."""


class DataError(KleashError):
    """A file that cannot be used."""


class CheckpointError(KleashError):
    """Weights that do not fit or are not the ones meant."""


class GuardError(KleashError):
    """Something a guard refuses to let pass."""


class NoSpace(KleashError):
    """A disk is full."""

    def __init__(self, where: object) -> None:
        super().__init__(
            f"No space left on device: {where}: free some, then give the same command again; it"
            " goes on from what is whole"
        )


def is_no_space(error: BaseException | None) -> bool:
    """Whether a disk was full, whoever found out: Python, SQLite, or what writes tensors."""
    if error is None:
        return False
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return True
    cause = error.__cause__ or error.__context__
    return any(words in str(error) for words in FULL) or is_no_space(cause)
