"""Answerers for servers: they load where a server does, and leave a trace of it."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from kleash.errors import DataError
from kleash.models.answer import Images
from kleash.models.answer.asking import Asker
from kleash.runs.ledger import Ledger
from kleash.types import Answer, Prompt
from tiny import Reader

TRACES = "KLEASH_TEST_TRACES"


class Traced(Reader):
    """The tiny answerer; every copy of it that is loaded, and every batch, is a line in a file."""

    def __init__(self, images: Images) -> None:
        super().__init__(images)
        self.key = Asker(self, cast(Ledger, None), images).key  # as in the ledger
        self.trace("loaded")

    def answer(self, prompts: Sequence[Prompt]) -> list[Answer]:
        """As the reader does; some queries are refused, and one is deadly."""
        self.trace(f"answered {len(prompts)} {' '.join(map(self.key, prompts))}")
        for prompt in prompts:
            if prompt.query.question == "refuse me":
                raise DataError(f"{prompt.query.id} is refused")
            if prompt.query.question == "trip over me":
                raise ValueError("a bug")
            if prompt.query.question == "kill me":
                os.kill(os.getpid(), signal.SIGKILL)
        return super().answer(prompts)

    def trace(self, what: str) -> None:
        """Write a line in one go."""
        with Path(os.environ[TRACES]).open("a", encoding="utf-8") as file:
            file.write(f"{os.getpid()} {what}\n")
