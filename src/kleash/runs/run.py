"""A run is a folder: readable with `cat`, safe to kill at any byte, resumed bit-exactly.

Nothing here knows what is trained: it stores configs, lines, tensors and scores, and says which of
them are whole. Whatever is read from a clock goes to `meta.json` and `timings.jsonl` alone, so that
the other files of two equal runs have equal bytes. `docs/runs.md` describes every file. It is long
because what one file of a run promises rests on how the others are written.
"""

from __future__ import annotations

import copy
import hashlib
import importlib.metadata
import json
import os
import platform
import re
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BufferedReader, BytesIO, FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from pydantic_core import from_json

from kleash.config import dotted
from kleash.errors import CheckpointError, DataError, KleashError

if TYPE_CHECKING:
    import polars as pl
    from torch import Tensor

FACTS = ("config.json", "given.json", "meta.json")
PACKAGES = ("kleash", "numpy", "torch", "transformers", "safetensors")


# --- files -------------------------------------------------------------------------------------


def canonical(value: Any, *, indent: int | None = None) -> bytes:
    """JSON with one spelling: sorted keys, shortest floats, UTF-8; NaN and infinity are refused."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False, indent=indent)
    return text.encode() + b"\n"


def _encoded(path: Path, value: Any, *, indent: int | None = None) -> bytes:
    try:
        return canonical(value, indent=indent)
    except ValueError as error:
        raise DataError(f"cannot be written to {path}: {error}: {str(value)[:200]}") from None


def write_json(path: Path, value: Any) -> None:
    """Put a value in a file at once: a reader, or a kill, sees the old file or the new one."""
    _write(path, _encoded(path, value, indent=2))


def _write(path: Path, content: bytes) -> None:
    passing = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    passing.write_bytes(content)
    _sync(passing)
    passing.replace(path)
    _sync(path.parent)


def _sync(path: Path) -> None:
    """Have what a file or folder holds reach the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not a value")


TAKEN = 1 << 20  # bytes of lines that are read at once
_DECODER = json.JSONDecoder(parse_constant=_refuse)


def _parsed(content: bytes) -> Any:
    """A JSON value, by the quicker of two readers; what it refuses the other takes or explains."""
    try:
        return from_json(content, allow_inf_nan=False)
    except ValueError:
        return _DECODER.decode(content.decode())


def read_json(path: Path | str) -> Any:
    """The value in a JSON file."""
    try:
        with FileIO(path) as handle:  # a study has thousands of small files: no buffer for each
            return _parsed(handle.readall())
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise DataError(f"{path} is not JSON: {error}") from None


def append_line(path: Path, *records: Mapping[str, Any]) -> None:
    """Add a line for each record, in one write. A line counts once its newline is there."""
    lines = b"".join(_encoded(path, record) for record in records)
    with path.open("ab") as handle:
        handle.write(lines)


def read_lines(path: Path | str, *, torn_tail: bool = True) -> Iterator[dict[str, Any]]:
    """The records of a JSONL file. A last line without its newline is left out, or an error."""
    try:
        handle = FileIO(path)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None
    first = 1
    with handle:
        small = os.fstat(handle.fileno()).st_size <= TAKEN  # as nearly all: taken as one piece
        held = BytesIO(handle.readall()) if small else BufferedReader(handle)
        while lines := held.readlines(TAKEN):
            torn = torn_tail and not lines[-1].endswith(b"\n")
            yield from _records(path, first, lines[:-1] if torn else lines)
            if torn:  # whoever writes it may have ended it by now: what follows is no line's start
                return
            first += len(lines)


def _records(path: Path | str, first: int, lines: list[bytes]) -> Iterable[dict[str, Any]]:
    """Lines all at once; if there is something about one, those before it and then what it is."""
    try:
        records = [from_json(line, allow_inf_nan=False) for line in lines]
    except ValueError:
        return _one_by_one(path, first, lines)
    whole = not lines or lines[-1].endswith(b"\n")
    return (
        records if whole and set(map(type, records)) <= {dict} else _one_by_one(path, first, lines)
    )


def _one_by_one(path: Path | str, first: int, lines: list[bytes]) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(lines, first):
        try:
            record = _parsed(line)
        except ValueError:
            record = None
        if not isinstance(record, dict) or not line.endswith(b"\n"):
            raise DataError(f"{path} line {number} cannot be read: {line[:60]!r}")
        yield record


def frame_of(records: Iterable[Mapping[str, Any]], columns: Sequence[str] = ()) -> pl.DataFrame:
    """Records as a frame: nested keys are dotted, lists and mixed values are text."""
    import polars as pl

    rows = [dict(dotted(record)) for record in records]
    names = dict.fromkeys([*columns, *(name for row in rows for name in row)])
    tables = {name.rpartition(".")[0] for name in names}  # null where a record has none
    made = {}
    for name in (name for name in names if name not in tables):
        values = [row.get(name) for row in rows]
        values = [", ".join(map(str, v)) if isinstance(v, list | tuple) else v for v in values]
        kinds = {type(value) for value in values if value is not None}
        if len(kinds) > 1 and not kinds <= {int, float}:
            values = [None if value is None else str(value) for value in values]
        kind = pl.Float64 if kinds == {int, float} else None if rows else pl.String
        made[name] = pl.Series(values, dtype=kind)
    return pl.DataFrame(made)


def trim(path: Path) -> None:
    """Cut off a torn last line, so that the next one does not grow onto it."""
    with path.open("r+b") as handle:
        end = size = handle.seek(0, os.SEEK_END)
        while end:
            start = max(0, end - 65_536)
            handle.seek(start)
            newline = handle.read(end - start).rfind(b"\n")
            if newline >= 0:
                end = start + newline + 1
                break
            end = start
        if end < size:
            handle.truncate(end)


def _remove(folder: Path) -> None:
    """Take a folder away at once: it is whole, or it is gone."""
    passing = folder.with_name(f".{folder.name}.gone.tmp")
    shutil.rmtree(passing, ignore_errors=True)
    folder.rename(passing)
    shutil.rmtree(passing)


@contextmanager
def holding(folder: Path, busy: Callable[[str], str]) -> Iterator[None]:
    """Hold a folder's lock until the block ends or we are killed; else say `busy` of its holder."""
    import fcntl

    with (folder / "lock").open("a+", encoding="utf-8") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            handle.seek(0)
            who = handle.read().strip() or "unknown"
            raise KleashError(busy(who)) from None
        handle.truncate(0)
        handle.write(f"{os.getpid()} on {platform.node()}\n")
        handle.flush()
        try:
            yield
        finally:
            handle.truncate(0)


def holder(folder: Path) -> str:
    """Who holds a folder's lock now, as process and machine; '' if nobody does."""
    import fcntl

    path = folder / "lock"
    if not path.is_file():
        return ""
    with path.open("r+", encoding="utf-8") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return handle.read().strip() or "unknown"
    return ""


# --- identity ----------------------------------------------------------------------------------


def identity(
    config: Mapping[str, Any],
    data: str,
    base: str | None,
    *,
    length: Sequence[str] = ("epochs",),
) -> str:
    """What a run is, as SHA-256 of its content; the (dotted) keys that say how long are no part.

    Only a key that no step depends on is a length: a schedule over all epochs makes it content.
    """
    content = copy.deepcopy(dict(config))
    for name in length:
        spot = content
        *parents, last = name.split(".")
        for parent in parents:
            spot = spot[parent]
        del spot[last]
    whole = {"config": content, "data": data, "base": base}
    return hashlib.sha256(canonical(whole)).hexdigest()


# --- facts about where and with what -----------------------------------------------------------


def machine_facts() -> dict[str, Any]:
    """Versions, platform, processors and the time, for `meta.json`; nothing heavy is imported."""
    versions: dict[str, str | None] = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = None
    return {
        "versions": versions,
        "platform": platform.platform(),
        "cpus": os.cpu_count(),
        "cwd": str(Path.cwd()),
        "started": now(),
    }


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def revision_facts(package: Path | None = None) -> dict[str, str | None]:
    """The git revision of the package's source, and a hash of what differs from it.

    Both are None outside a checkout; `diff` is None where nothing differs.
    """
    folder = package or Path(__file__).parents[1]
    try:
        # An installed package may lie inside somebody else's checkout: it must be tracked there.
        _git(folder, "ls-files", "--error-unmatch", "__init__.py")
        revision = _git(folder, "rev-parse", "HEAD").decode().strip()
    except (OSError, subprocess.CalledProcessError):
        return {"revision": None, "diff": None}
    changed = _git(folder, "diff", "--no-ext-diff", "--no-color", "--binary", "HEAD", "--", ".")
    for name in _git(folder, "ls-files", "-z", "--others", "--exclude-standard").split(b"\0"):
        if name:
            changed += name + b"\0" + (folder / os.fsdecode(name)).read_bytes()
    return {
        "revision": revision,
        "diff": hashlib.sha256(changed).hexdigest() if changed else None,
    }


def _git(folder: Path, *words: str) -> bytes:
    return subprocess.run(["git", *words], cwd=folder, capture_output=True, check=True).stdout


# --- runs --------------------------------------------------------------------------------------


class Checkpoint(NamedTuple):
    """All that training needs to go on. `state` also holds what `Run.save` adds to it."""

    weights: dict[str, Tensor]
    trainer: dict[str, Tensor]
    state: dict[str, Any]


class ScoreKey(NamedTuple):
    """What one line of `scores.jsonl` is about."""

    checkpoint: str
    shots: int
    split: str
    item: str


@dataclass
class Run:
    """One training, as a folder. Whoever writes to it holds its lock."""

    path: Path
    config: dict[str, Any]
    given: dict[str, Any]
    meta: dict[str, Any]

    @classmethod
    def create(
        cls,
        folder: Path,
        config: Mapping[str, Any],
        given: Mapping[str, Any],
        meta: Mapping[str, Any],
    ) -> Self:
        """The run whose identity is `meta["identity"]`: as it stands in the folder, or new.

        A folder of another identity is left alone: the new one's name gets 8 digits of its own.
        """
        ours = meta["identity"]
        for path in (folder, folder.with_name(f"{folder.name}-{ours[:8]}")):
            if not (path / "meta.json").exists():
                _place(path, dict(zip(FACTS, (config, given, meta), strict=True)))
            run = cls.open(path)
            if run.meta["identity"] == ours:
                return run
        raise DataError(f"{path} holds another run than its name says: move it away")

    @classmethod
    def open(cls, path: Path) -> Self:
        """The run in a folder."""
        try:
            config, given, meta = (read_json(f"{path}{os.sep}{name}") for name in FACTS)
        except DataError:
            if not path.is_dir():
                raise DataError(f"no such run: {path}") from None
            for name in FACTS:
                if not (path / name).is_file():
                    raise DataError(f"{path} is not a run: it holds no {name}") from None
            raise
        if not isinstance(meta, dict) or "identity" not in meta:
            raise DataError(f"{path} is not a run: its meta.json holds no identity")
        return cls(path, config, given, meta)

    @property
    def name(self) -> str:
        """Arm and seed, as the folder is called."""
        return self.path.name

    def placed(self, path: str) -> str:
        """A relative path as it was meant where the run was begun, or above its folder.

        So a run goes on from anywhere, and after all that it needs was moved with it.
        """
        begun = self.meta.get("cwd")
        if not path or Path(path).is_absolute() or begun == str(Path.cwd()):
            return path
        places = [*([Path(begun)] if begun else []), *self.path.resolve().parents]
        return next((str(at / path) for at in places if (at / path).exists()), path)

    @property
    def finished(self) -> bool:
        """Whether all that was asked of the run has been done."""
        return self.has("done")

    def file(self, name: str) -> str:
        """Where a file of the run lies, as places of numbers tell it: a report asks for many."""
        return f"{self.path}{os.sep}{name}"

    def has(self, name: str) -> bool:
        """Whether there is a file or a folder of that name, and no pipe, which would be waited for.

        A report asks often, and needs no paths.
        """
        try:
            mode = os.stat(self.file(name)).st_mode  # noqa: PTH116
        except OSError:
            return False
        return stat.S_ISREG(mode) or stat.S_ISDIR(mode)

    def held(self) -> set[str]:
        """The names of all that lies in the folder, where a look at each would be slow."""
        with os.scandir(self.path) as entries:
            return {entry.name for entry in entries}

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other processes from writing to this run until the block ends or we are killed.

        Taking it clears away what a kill has left: torn last lines and files under passing names.
        """
        busy = f"{self.path} is in use by process"
        with holding(self.path, lambda who: f"{busy} {who}: wait for it, or stop it"):
            for lines in self.path.glob("*.jsonl"):
                trim(lines)
            for left in self.path.glob(".*.tmp"):
                left.unlink()
            for left in self.path.glob("checkpoints/.*.tmp"):
                shutil.rmtree(left)
            yield

    def reopen(
        self, config: Mapping[str, Any], given: Mapping[str, Any], meta: Mapping[str, Any]
    ) -> None:
        """Go on with a run, perhaps for longer: no more `done`, the config as asked for now.

        `meta.json` keeps what the first start said; what later ones say otherwise is added to it.
        """
        if meta["identity"] != self.meta["identity"]:
            raise DataError(f"{self.path} is another run: its identity is not the one asked for")
        (self.path / "done").unlink(missing_ok=True)
        known = json.loads(canonical(meta))
        news = {key: known[key] for key in known if self.meta.get(key) != known[key]}
        if news:
            self.meta = self.meta | {"resumed": [*self.meta.get("resumed", []), news]}
        self.config, self.given = json.loads(canonical(config)), json.loads(canonical(given))
        for name, value in zip(FACTS, (self.config, self.given, self.meta), strict=True):
            if read_json(self.path / name) != value:
                write_json(self.path / name, value)

    def learn(self, **facts: Any) -> None:
        """Add to `meta.json` what is known only now; a fact once written stays."""
        news = {key: value for key, value in facts.items() if key not in self.meta}
        if news:
            self.meta = self.meta | news
            write_json(self.path / "meta.json", self.meta)

    def finish(self) -> None:
        """Say that all is there, after everything else is on the disk."""
        self.time({"finished": now()})
        for path in self.path.glob("*.jsonl"):
            _sync(path)
        write_json(self.path / "done", {"checkpoints": self.checkpoints()})

    def __fspath__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        """What it trains and how far it is, in a line."""
        model = self.config.get("model" if "env" in self.config else "selector")
        end = "finished" if self.finished else "not finished"
        path = str(self.path)[-200:]
        return f"<Run {path}: {str(model)[-40:]}, {len(self.kept())} checkpoints, {end}>"

    # lines

    def log(self, record: Mapping[str, Any]) -> None:
        """Add a line to `metrics.jsonl`: nothing in it may come from a clock."""
        append_line(self.path / "metrics.jsonl", record)

    def time(self, record: Mapping[str, Any]) -> None:
        """Add a line to `timings.jsonl`."""
        append_line(self.path / "timings.jsonl", record)

    def metrics(self) -> Iterator[dict[str, Any]]:
        """The lines of `metrics.jsonl`; of a finished run every one must be whole."""
        return read_lines(self.path / "metrics.jsonl", torn_tail=not self.finished)

    def timings(self) -> Iterator[dict[str, Any]]:
        """The lines of `timings.jsonl`: a step that was repeated after a kill has two."""
        return read_lines(self.path / "timings.jsonl", torn_tail=not self.finished)

    def frame(self, kind: str = "step") -> pl.DataFrame:
        """Lines as a frame: each `step`, `epoch` or `finding`, each item's `score`, or `timing`."""
        lines = {"score": self.scores, "timing": self.timings}
        if kind in lines:
            return frame_of(lines[kind]())
        if kind not in ("step", "epoch", "finding"):
            raise DataError(f"no frame {kind!r}: there is step, epoch, finding, score, timing")
        return frame_of(line for line in self.metrics() if line["kind"] == kind)

    # checkpoints

    def checkpoints(self) -> list[str]:
        """The names of all checkpoints in the order of training."""
        return sorted(
            self.kept(), key=lambda name: (self.state(name)["metrics_bytes"], _natural(name))
        )

    def kept(self) -> set[str]:
        """The names of all checkpoints, in no order: nothing in them is read."""
        try:
            with os.scandir(self.file("checkpoints")) as entries:
                return {each.name for each in entries if each.name[0] != "." and each.is_dir()}
        except (FileNotFoundError, NotADirectoryError):
            return set()

    def state(self, name: str) -> dict[str, Any]:
        """The `state.json` of a checkpoint: cheap, no tensors are read."""
        folder = self.path / "checkpoints" / name
        if not folder.is_dir():
            have = ", ".join(self.checkpoints()) or "none"
            raise CheckpointError(f"{self.path} has no checkpoint {name!r}; it has: {have}")
        state: dict[str, Any] = read_json(folder / "state.json")
        return state

    def save(
        self,
        name: str,
        weights: Mapping[str, Tensor],
        trainer: Mapping[str, Tensor],
        state: Mapping[str, Any],
    ) -> None:
        """Keep a checkpoint: it appears whole, with hashes of its tensors, or not at all."""
        passing = self.begin_checkpoint(name)
        told = {"trainer_hash": self.put_tensors(passing, "trainer", trainer)}
        self.end_checkpoint(passing, weights, {**state, **told})

    def begin_checkpoint(self, name: str) -> Path:
        """A passing folder that whoever trains may fill, until `end_checkpoint`."""
        final = self.path / "checkpoints" / name
        if final.exists():
            raise CheckpointError(f"{final} exists and is never overwritten: drop it first")
        passing = final.with_name(f".{name}.tmp")
        shutil.rmtree(passing, ignore_errors=True)
        passing.mkdir(parents=True)
        _sync(self.path / "metrics.jsonl")
        return passing

    def put_tensors(self, passing: Path, kind: str, tensors: Mapping[str, Tensor]) -> str:
        """Write tensors into a passing folder; their hash."""
        from safetensors.torch import save_file

        from kleash.algo.policy import fingerprint

        file = passing / f"{kind}.safetensors"
        save_file(_apart(tensors), file)
        mode = (self.path / "metrics.jsonl").stat().st_mode
        file.chmod(mode & 0o777)  # safetensors lets nobody else read it
        _sync(file)
        return fingerprint(tensors)

    def end_checkpoint(
        self, passing: Path, weights: Mapping[str, Tensor], state: Mapping[str, Any]
    ) -> None:
        """Let a checkpoint appear under its name, now that all but its weights is in it."""
        ours = {
            "metrics_bytes": (self.path / "metrics.jsonl").stat().st_size,
            "weights_hash": self.put_tensors(passing, "weights", weights),
        }
        write_json(passing / "state.json", {**state, **ours})
        final = passing.with_name(passing.name.removeprefix(".").removesuffix(".tmp"))
        passing.rename(final)
        _sync(final.parent)

    def load(self, name: str, *, trainer: bool = True) -> Checkpoint:
        """A checkpoint on the CPU, with proof that its tensors are those that were saved."""
        state = self.state(name)
        weights = self._tensors(name, "weights", state)
        return Checkpoint(weights, self._tensors(name, "trainer", state) if trainer else {}, state)

    def _tensors(self, name: str, kind: str, state: Mapping[str, Any]) -> dict[str, Tensor]:
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        from kleash.algo.policy import fingerprint

        path = self.path / "checkpoints" / name / f"{kind}.safetensors"
        try:
            tensors: dict[str, Tensor] = load_file(path)
        except (OSError, SafetensorError) as error:
            raise CheckpointError(f"cannot read {path}: {error}") from None
        if fingerprint(tensors) != state[f"{kind}_hash"]:
            raise CheckpointError(f"{path} does not hold the tensors that were saved: train again")
        return tensors

    def slim(self) -> None:
        """Take the trainer's tensors out of all checkpoints but the last: nobody goes on from them.

        They are three quarters of a checkpoint. The weights stay, with their hash.
        """
        for name in self.checkpoints()[:-1]:
            folder = self.path / "checkpoints" / name
            (folder / "trainer.safetensors").unlink(missing_ok=True)
            shutil.rmtree(folder / "trainer", ignore_errors=True)  # what several ranks wrote

    def drop(self, name: str) -> None:
        """Take a checkpoint away."""
        self.state(name)
        _remove(self.path / "checkpoints" / name)

    def rewind(self, to_checkpoint: str | None) -> None:
        """Make the run what it was when a checkpoint was saved (None: before the first step).

        Later metrics, checkpoints and their scores go; `timings.jsonl` stays: the time was spent.
        """
        order = self.checkpoints()
        size = self.state(to_checkpoint)["metrics_bytes"] if to_checkpoint else 0
        later = order[order.index(to_checkpoint) + 1 :] if to_checkpoint else order
        metrics = self.path / "metrics.jsonl"
        if metrics.stat().st_size < size:
            raise DataError(
                f"{metrics} is shorter than {to_checkpoint} saw it: it has been changed"
            )
        (self.path / "done").unlink(missing_ok=True)
        # Scores first: a checkpoint without scores is measured again, the reverse is a ghost.
        if later and (self.path / "scores.jsonl").exists():
            kept = [record for record in self.scores() if record["checkpoint"] not in later]
            _write(self.path / "scores.jsonl", b"".join(map(canonical, kept)))
        for name in later:
            self.drop(name)
        with metrics.open("r+b") as handle:
            handle.truncate(size)

    def cut(self, step: int) -> None:
        """Forget what came after a step, where whoever trains keeps its own checkpoints.

        As with `rewind` scores go first, and `timings.jsonl` stays.
        """
        for name, lines in (("scores.jsonl", self.scores()), ("metrics.jsonl", self.metrics())):
            path = self.path / name
            if path.exists():
                kept = [line for line in lines if line.get("step", 0) <= step]
                _write(path, b"".join(map(canonical, kept)))

    # scores

    def scores(self) -> Iterator[dict[str, Any]]:
        """The lines of `scores.jsonl`, none before the first evaluation."""
        has = self.has("scores.jsonl")
        return read_lines(self.file("scores.jsonl")) if has else iter(())

    def score_cells(self) -> set[ScoreKey]:
        """What has been scored. A second line about the same thing is an error."""
        found: set[ScoreKey] = set()
        for number, record in enumerate(self.scores(), 1):
            key = ScoreKey(*(record[field] for field in ScoreKey._fields))
            if key in found:
                raise DataError(f"{self.path / 'scores.jsonl'} line {number} repeats {key}")
            found.add(key)
        return found

    def missing_scores(self, wanted: Iterable[ScoreKey]) -> list[ScoreKey]:
        """Those still to be scored, in the order given; a torn last line is cut off first.

        Adding them in this order makes the file what it would be had nobody stopped half-way.
        """
        if (self.path / "scores.jsonl").exists():
            trim(self.path / "scores.jsonl")
        found = self.score_cells()
        return [key for key in wanted if key not in found]

    def add_scores(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Add lines to `scores.jsonl`, each with at least the fields of `ScoreKey`."""
        append_line(self.path / "scores.jsonl", *records)


def _place(path: Path, facts: Mapping[str, Any]) -> None:
    """Let a run's folder appear with all that a run must hold, unless one is there already."""
    passing = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    shutil.rmtree(passing, ignore_errors=True)
    (passing / "checkpoints").mkdir(parents=True)
    for name, value in facts.items():
        write_json(passing / name, value)
    for name in ("metrics.jsonl", "timings.jsonl"):
        (passing / name).touch()
    try:
        passing.rename(path)
    except OSError:  # somebody else was quicker, or something foreign lies there: `open` will say
        shutil.rmtree(passing)
    _sync(path.parent)


def _natural(name: str) -> list[tuple[int, str]]:
    """Sorts epoch-2 before epoch-10."""
    return [
        (int(part or 0), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", name)
    ]


def _apart(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors on the CPU, none sharing memory with another: tied weights are written twice."""
    seen: set[int] = set()
    made = {}
    for name, tensor in tensors.items():
        plain = tensor.detach().cpu().contiguous()
        storage = plain.untyped_storage().data_ptr()
        made[name] = plain.clone() if storage in seen else plain
        seen.add(storage)
    return made


def list_runs(folder: Path) -> Iterator[Run]:
    """The runs in a folder by name. Folders that do not look like one are passed over."""
    if not folder.is_dir():
        raise DataError(f"no such folder of runs: {folder}")
    for path in sorted(folder.iterdir()):
        if not path.name.startswith(".") and all((path / name).is_file() for name in FACTS):
            yield Run.open(path)
