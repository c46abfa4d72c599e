"""The errors that are the user's to mend: one line each. Anything else is a bug of ours.

KleashError
├── ConfigError      a key or a value in a TOML file or on the command line
├── DataError        a file that is missing, torn or not what it should be
├── CheckpointError  tensors that do not fit, or are not those that were trained
└── GuardError       a guard stopped a run: what was seen, why it matters, what to do
"""


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
