"""verl, kept as a run of ours: one call of `keep()` in the trainer's process, two settings.

Every number that verl's trainer logs goes through `verl.utils.tracking.Tracking`, made when
training starts: that class is wrapped. Scores of items come from the dumps that verl writes to
`trainer.validation_data_dir`, in a thread of its own: a dump is read when a later step is logged,
or at the end. No GPU is here to run verl on: the tests hold this against the interfaces that the
sources of verl 0.9.1 state, not against verl itself. docs/watch.md says where to call it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from kleash.compare.read.verl import read_dump
from kleash.compare.recorders import Keeper, hash_files
from kleash.errors import ConfigError, DataError

WEIGHTS = ("*.safetensors", "pytorch_model*.bin")


def keep(folder: Path | str = "") -> None:
    """From now on every run that verl tracks in this process is kept in `folder`, by its name.

    Without a folder it is KLEASH_RUNS, which Ray's workers can be told, or `runs`.
    """
    try:
        from verl.utils import tracking
    except ImportError:
        raise ConfigError(
            "verl is not installed here: pip install verl, then train with it"
        ) from None
    if not getattr(tracking.Tracking, "kept_by_kleash", False):
        place = Path(folder or os.environ.get("KLEASH_RUNS", "runs"))
        tracking.Tracking = keeping(tracking.Tracking, place)


def keeping(tracking: Any, folder: Path) -> Any:
    """verl's `Tracking` that also keeps a run in `folder / experiment_name`."""

    def __init__(
        self: Any,
        project_name: str,
        experiment_name: str,
        default_backend: Any = "console",
        config: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> None:
        tracking.__init__(self, project_name, experiment_name, default_backend, config, **more)
        self.kleash = Kept(folder / experiment_name, dict(config or {}))

    def log(self: Any, data: Mapping[str, Any], step: int, **more: Any) -> None:
        tracking.log(self, data=data, step=step, **more)
        self.kleash.log(data, int(step))

    def finish(self: Any, *words: Any, **more: Any) -> None:
        if hasattr(tracking, "finish"):
            tracking.finish(self, *words, **more)
        if hasattr(self, "kleash"):
            self.kleash.close()

    def __del__(self: Any) -> None:
        if hasattr(tracking, "__del__"):
            tracking.__del__(self)
        if hasattr(self, "kleash"):
            self.kleash.close()

    body: dict[str, Any] = {"__init__": __init__, "log": log, "finish": finish, "__del__": __del__}
    body["kept_by_kleash"] = True
    return type("Tracking", (tracking,), body)


class Kept:
    """A run of verl, as its settings, its lines and its dumps tell of it."""

    def __init__(self, folder: Path, config: dict[str, Any]) -> None:
        data = at(config, "data") or {}
        hashes = {
            "data": hash_files(files(data.get("train_files"))),
            "eval_data": hash_files(files(data.get("val_files"))),
            "start": hash_files(weights(at(config, "actor_rollout_ref.model.path"))),
        }
        self.last = at(config, "trainer.total_training_steps") or at(
            config, "actor_rollout_ref.actor.optim.total_training_steps"
        )
        self.step, self.closed = 0, False
        self.waiting: list[int] = []
        self.dumps = at(config, "trainer.validation_data_dir")
        self.keeper = Keeper(folder, config, hashes)
        self.advise(config)

    def advise(self, config: Mapping[str, Any]) -> None:
        """What a setting keeps from being known."""
        actor = at(config, "actor_rollout_ref.actor") or {}
        if not actor.get("use_kl_loss") and not at(config, "algorithm.use_kl_in_reward"):
            self.keeper.note(
                "no-kl",
                "verl measures no KL in an arm without a leash: set"
                " actor_rollout_ref.actor.use_kl_loss=True actor_rollout_ref.actor.kl_loss_coef=0,"
                " which pulls at nothing and logs actor/kl_loss",
            )
        if not self.dumps:
            self.keeper.note(
                "no-items",
                "verl keeps no scores of items unless asked: set trainer.validation_data_dir=DIR;"
                " without them comparisons stay at level L1",
            )

    def log(self, data: Mapping[str, Any], step: int) -> None:
        """A line of metrics; dumps of earlier steps are whole by now."""
        if not self.step:
            self.keeper.begin(step - 1)
        self.take_dumps(before=step)
        self.step = step
        self.waiting = sorted({*self.waiting, step})
        self.keeper.log(step, {name: plain(value) for name, value in data.items()})

    def close(self) -> None:
        """Training is over: the last dumps, and `done` if it got as far as it was asked to."""
        if self.closed:
            return
        self.closed = True
        self.take_dumps(before=self.step + 1)
        self.keeper.end(finished=self.step > 0 and self.step >= int(self.last or 0))

    def take_dumps(self, *, before: int) -> None:
        """The scores of validations that verl has written."""
        ready = [step for step in self.waiting if step < before]
        self.waiting = [step for step in self.waiting if step >= before]
        for step in ready if self.dumps else ():
            file = Path(str(self.dumps)) / f"{step}.jsonl"
            if file.is_file():
                self.keeper.safely(partial(self.take_dump, file, step))

    def take_dump(self, file: Path, step: int) -> None:
        """The scores in one dump."""
        found = {scores.metric: scores for scores in read_dump(file, [])}
        scores = found.get("score")
        if scores is None:
            raise DataError(f"{file} holds no scores")
        tries = zip(scores.items, scores.values.tolist(), strict=True)
        self.keeper.score(step, "validation", tries)


def at(config: Any, path: str) -> Any:
    """A setting by its dotted name; None where there is none."""
    for part in path.split("."):
        config = config.get(part) if isinstance(config, Mapping) else None
    return config


def files(named: Any) -> list[Path]:
    """Files that a setting names, one or several."""
    several: Iterable[Any] = [named] if isinstance(named, str) else named or []
    return [Path(str(each)).expanduser() for each in several]


def weights(model: Any) -> list[Path]:
    """The weights in a local folder; none of a name that is downloaded."""
    folder = Path(str(model or "")).expanduser()
    found = [path for pattern in WEIGHTS for path in folder.glob(pattern)] if model else []
    return found if folder.is_dir() else []


def plain(value: Any) -> Any:
    """A number as Python has it: numpy's and torch's know how."""
    return value.item() if hasattr(value, "item") and not isinstance(value, float | int) else value
