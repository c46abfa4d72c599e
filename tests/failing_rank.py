"""The command line of Kleash, in which rank 1 finds something wrong at its first update."""

from __future__ import annotations

import os
from typing import Any

from kleash.algo import guard
from kleash.cli import main
from kleash.errors import GuardError


def enough(*given: Any) -> None:
    raise GuardError("rank 1 has seen enough")


if __name__ == "__main__":
    if os.environ["RANK"] == "1":
        guard.ratio_one_at_start = enough
    main()
