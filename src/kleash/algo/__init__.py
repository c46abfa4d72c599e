"""KL, advantages, losses, controllers and guards: pure functions. The page to read first."""

from kleash.rooms import files_of

__getattr__ = files_of(__name__)
