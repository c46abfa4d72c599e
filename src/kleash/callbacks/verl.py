"""verl, kept as a run of ours: two lines in the file of the reward function.

    from kleash.callbacks.verl import keep
    keep("runs")

The trainer's process loads that file before it trains, and every number it logs goes through
`verl.utils.tracking.Tracking(project_name, experiment_name, default_backend, config)` and its
`log(data, step)`: that class is wrapped. Scores of items come from the dumps that verl writes to
`trainer.validation_data_dir`. No GPU is here to run verl on: the tests hold this against the
interfaces that its sources state, not against verl itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kleash.callbacks import Keeper, hash_files
from kleash.errors import ConfigError, DataError
from kleash.imports.verl import read_dump

WEIGHTS = ("*.safetensors", "pytorch_model*.bin")


def keep(folder: Path | str = "runs") -> None:
    """From now on every run that verl tracks in this process is kept in `folder`, by its name."""
    try:
        from verl.utils import tracking
    except ImportError:
        raise ConfigError(
            "verl is not installed here: pip install verl, then train with it"
        ) from None
    if not getattr(tracking.Tracking, "kept_by_kleash", False):
        tracking.Tracking = keeping(tracking.Tracking, Path(folder))


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

    body = {"__init__": __init__, "log": log, "kept_by_kleash": True}
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
        self.last = at(config, "trainer.total_training_steps")
        self.dumps = at(config, "trainer.validation_data_dir")
        self.read: set[int] = set()
        self.begun = False
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
        """A line of metrics, and the dump of the step where there is one."""
        if not self.begun:
            self.begun = True
            self.keeper.begin(step - 1)
        self.keeper.log(step, {name: plain(value) for name, value in data.items()})
        self.keeper.safely(lambda: self.take_dump(step))
        if self.last is not None and step >= int(self.last):
            self.keeper.end(finished=True)

    def take_dump(self, step: int) -> None:
        """The scores that verl wrote of a validation at this step."""
        file = Path(str(self.dumps)) / f"{step}.jsonl"
        if not self.dumps or step in self.read or not file.is_file():
            return
        self.read.add(step)
        found = {scores.metric: scores for scores in read_dump(file, [])}
        scores = found.get("score")
        if scores is None:
            raise DataError(f"{file} holds no scores")
        self.keeper.score(
            step, "validation", zip(scores.items, scores.values.tolist(), strict=True)
        )


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
