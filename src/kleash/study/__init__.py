"""Arms, seeds and measurements: from a file to results."""

from kleash.rooms import make_callable

make_callable(__name__)
