"""What TRL and verl train, kept as one of our runs: config, content hashes, KL, scores of items.

With these a comparison of their arms reaches level L2 and beyond; their own logs hold means alone.
`recorders.trl.keep` and `recorders.verl.keep` are the two doors. Whoever keeps is a guest: once a
run is open, what goes wrong here is one line on stderr, and the training goes on.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from kleash.compare.read.gather import number
from kleash.compare.read.names import key
from kleash.errors import KleashError
from kleash.runs.run import Run, identity, machine_facts

BLOCK = 2**22


class Keeper:
    """The run that is kept, from the first step to the last."""

    def __init__(
        self,
        folder: Path,
        config: Mapping[str, Any],
        hashes: Mapping[str, str | None],
        *,
        length: Sequence[str] = (),
        told: Callable[[str], object] | None = None,
    ) -> None:
        """Open the run of this config, data and base, or go on with it.

        `length` names what only says how long to train; it and settings that change no step, such
        as the folder for logs, are no part of what the run is.
        """
        self.told = told or (lambda line: sys.stderr.write(line))
        self.broken = False
        self.known: set[str] = set()
        plain = json.loads(json.dumps(config, default=str))
        shown = {name: value and f"sha256:{value[:16]}" for name, value in hashes.items()}
        whole = _finite(plain | shown)
        data = hashes.get("data") or "unknown"
        content = {name: whole[name] for name in whole if name not in length and matters(name)}
        ours = identity(content, data, hashes.get("start"), length=())
        facts = {"identity": ours, "hashes": dict(hashes), **machine_facts()}
        folder.parent.mkdir(parents=True, exist_ok=True)
        self.run = Run.create(folder, whole, {}, facts)
        self.held = ExitStack()
        self.held.enter_context(self.run.lock())
        self.run.reopen(whole, {}, facts)
        self.clock = time.monotonic()

    def safely(self, act: Callable[[], object]) -> None:
        """Do something to the run; if it fails, say so once and keep no more."""
        if self.broken:
            return
        try:
            act()
        except (OSError, KleashError, ValueError) as error:
            self.broken = True
            self.told(f"kleash: {self.run.path} is kept no more, the training goes on: {error}\n")

    def begin(self, step: int) -> None:
        """Training starts, or goes on behind a step: what was kept of later ones goes."""
        self.safely(lambda: self.run.cut(step))

    def log(self, step: int, row: Mapping[str, Any]) -> None:
        """The numbers of one step. What is not finite is a finding: a failure is never a number."""
        taken = {name: number(value) for name, value in row.items() if name != "step"}
        kept = {name: value for name, value in taken.items() if value is not None}
        bad = sorted(name for name, value in kept.items() if not math.isfinite(value))
        line = {name: value for name, value in kept.items() if name not in bad}
        now = time.monotonic()
        seconds, self.clock = now - self.clock, now
        self.safely(lambda: self.run.log({"kind": "step", "phase": "grpo", "step": step} | line))
        self.safely(lambda: self.run.time({"step": step, "seconds": seconds}))
        if bad:
            self.note("not-finite", f"step {step}: {', '.join(bad)} not finite", step)

    def note(self, code: str, message: str, step: int = 0) -> None:
        """A finding, once."""
        if code in self.known:
            return
        self.known.add(code)
        found = {"code": code, "severity": "warning", "message": message, "step": step}
        self.safely(lambda: self.run.log({"kind": "finding"} | found))
        self.told(f"kleash: {message}\n")

    def score(
        self,
        step: int,
        split: str,
        tries: Iterable[tuple[str, float | None]],
        weights: str | None = None,
    ) -> None:
        """Scores of items at a step, the mean over the tries at each; a try that broke is in none.

        An item of which every try broke is kept with its error and without a score.
        """
        found: dict[str, list[float | None]] = {}
        for item, score in tries:
            found.setdefault(item, []).append(score)
        at = {"checkpoint": f"step-{step}", "step": step, "split": split, "shots": 0}
        lines = [at | {"item": item, "weights": weights} | _mean(s) for item, s in found.items()]
        self.safely(lambda: self._add(lines))

    def _add(self, lines: Sequence[dict[str, Any]]) -> None:
        """Lines that are not there yet: an evaluation may be repeated after a resume."""
        known = {(line["checkpoint"], line["split"], line["item"]) for line in self.run.scores()}
        new = [
            each for each in lines if (each["checkpoint"], each["split"], each["item"]) not in known
        ]
        self.run.add_scores(new)

    def end(self, *, finished: bool) -> None:
        """Training is over."""
        if finished:
            self.safely(self.run.finish)
        self.held.close()


def _mean(tries: Sequence[float | None]) -> dict[str, Any]:
    whole = [score for score in tries if score is not None and math.isfinite(score)]
    broken = {"broken": len(tries) - len(whole)} if len(whole) < len(tries) else {}
    if not whole:
        return {"score": None, "error": "no reward function gave a score", "tries": 0} | broken
    return {"score": sum(whole) / len(whole), "tries": len(whole)} | broken


def _finite(value: Any) -> Any:
    """A config that JSON can hold: NaN and infinity as words."""
    if isinstance(value, dict):
        return {name: _finite(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_finite(inner) for inner in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def matters(setting: str) -> bool:
    """Whether a setting may change a step."""
    known = key(setting)
    return known is None or known.kind != "harmless"


# --- content -------------------------------------------------------------------------------------


def hash_rows(rows: Iterable[Any]) -> str:
    """SHA-256 of a data set by what its rows say, in their order."""
    digest = hashlib.sha256()
    for row in rows:
        text = json.dumps(row, sort_keys=True, ensure_ascii=False, default=_content)
        digest.update(text.encode("utf-8", "surrogatepass") + b"\n")
    return digest.hexdigest()


def _content(value: Any) -> str:
    """Something that JSON cannot hold, by its bytes where it has any: images, arrays."""
    held = value.tobytes() if hasattr(value, "tobytes") else str(value).encode()
    return hashlib.sha256(held).hexdigest()


def hash_files(paths: Iterable[Path]) -> str | None:
    """SHA-256 of the content of files, by their names in order; None where one is not here."""
    digest = hashlib.sha256()
    files = sorted(paths, key=lambda path: path.name)
    if not files or not all(path.is_file() for path in files):
        return None
    for path in files:
        digest.update(path.name.encode() + b"\0" + str(path.stat().st_size).encode() + b"\0")
        with path.open("rb") as handle:
            while block := handle.read(BLOCK):
                digest.update(block)
    return digest.hexdigest()
