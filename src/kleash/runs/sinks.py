"""What a run reports, live in another tool: W&B, SwanLab, MLflow, TensorBoard, trackio.

Off by default. A sink is a view: the run's folder stays the record, and nothing of a sink is in it
or in the run's identity. So a sink that breaks is let go, with a finding, and the run goes on.
Weights, scores and artifacts are not sent. `docs/watch.md` says where each tool puts its files and
how it goes on.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from kleash.errors import KleashError
from kleash.runs.run import Run
from kleash.types import Heard, Listener

PROJECT = "kleash"
FIXED = ("kind", "phase", "epoch", "step")


@dataclass(frozen=True)
class About:
    """What a sink is told of a run at its start. `id` is the same when the run goes on."""

    name: str
    arm: str
    id: str
    config: Mapping[str, Any]
    folder: Path
    """Where a tool that keeps files here may put them: beside the run, never inside."""

    @classmethod
    def of(cls, run: Run) -> About:
        """The run as it stands."""
        arm = run.name.removesuffix(f"-s{run.config.get('seed')}")
        return cls(run.name, arm, run.meta["identity"][:16], run.config, run.path.parent)


class Sink(Protocol):
    """A tool that draws curves."""

    needs: str
    """The module it imports, which is also the name of our extra; empty if none."""

    def start(self, about: About) -> None:
        """Begin, or go on with the run of this id where the tool can."""

    def log(self, record: Mapping[str, float | str], step: int) -> None:
        """Numbers are points of curves, texts are findings. Steps never fall within a session."""

    def close(self, *, failed: bool) -> None:
        """The session is over: the run is finished, or it was stopped."""


# --- the tools -----------------------------------------------------------------------------------


class WandB:
    """Weights & Biases; with `mode="offline"` it only writes files, for `wandb sync`."""

    needs = "wandb"

    def __init__(self, mode: str | None = None) -> None:
        self.mode: Any = mode

    def start(self, about: About) -> None:
        """A run with our id, so that W&B goes on with it."""
        import wandb

        self.run = wandb.init(
            project=os.environ.get("WANDB_PROJECT", PROJECT),
            id=about.id,
            name=about.name,
            group=about.arm,
            config=dict(about.config),
            dir=about.folder,
            mode=self.mode,
            resume="allow",
            reinit="create_new",
            settings=wandb.Settings(console="off"),
        )

    def log(self, record: Mapping[str, float | str], step: int) -> None:
        """What comes at one step makes one row."""
        self.run.log(dict(record), step=step)

    def close(self, *, failed: bool) -> None:
        """Waits until all is written or sent."""
        self.run.finish(exit_code=int(failed))


class SwanLab:
    """SwanLab; with `mode="offline"` it only writes files, for `swanlab sync`."""

    needs = "swanlab"

    def __init__(self, mode: str | None = None) -> None:
        self.mode: Any = mode

    def start(self, about: About) -> None:
        """A run with our id, so that the server goes on with it; offline it is one more folder."""
        import swanlab

        self.run: Any = swanlab.init(
            project=os.environ.get("SWANLAB_PROJECT", PROJECT),
            id=about.id,
            experiment_name=about.name,
            group=about.arm,
            config=dict(about.config),
            logdir=str(about.folder / "swanlog"),
            mode=self.mode,
            resume="allow",
        )

    def log(self, record: Mapping[str, float | str], step: int) -> None:
        """Numbers are points; texts are kept as texts."""
        import swanlab

        texts = {
            name: swanlab.Text(value) for name, value in record.items() if isinstance(value, str)
        }
        self.run.log(dict(record) | texts, step=step)

    def close(self, *, failed: bool) -> None:
        """Waits until all is written or sent."""
        self.run.finish(**({"state": "crashed", "error": "stopped"} if failed else {}))


class TensorBoard:
    """Event files in `tensorboard/NAME`, with all 64 bits of a number."""

    needs = "tensorboard"

    def start(self, about: About) -> None:
        """One more event file in the run's folder of them; the config is a text."""
        from torch.utils.tensorboard import SummaryWriter

        folder = about.folder / "tensorboard" / about.name
        self.writer: Any = SummaryWriter(folder, flush_secs=10)
        self.writer.add_text("args", json.dumps(about.config))

    def log(self, record: Mapping[str, float | str], step: int) -> None:
        """Scalars and texts."""
        for name, value in record.items():
            if isinstance(value, str):
                self.writer.add_text(name, value, step)
            else:
                self.writer.add_scalar(name, value, step, new_style=True, double_precision=True)

    def close(self, *, failed: bool) -> None:
        """TensorBoard has no word for how a run ended."""
        self.writer.close()


class MLflow:
    """An MLflow server, or the database `mlflow.db` where MLFLOW_TRACKING_URI names none."""

    needs = "mlflow"

    def start(self, about: About) -> None:
        """The run with our tag, or a new one: MLflow chooses its ids itself."""
        from mlflow import MlflowClient

        beside = f"sqlite:///{about.folder.resolve() / 'mlflow.db'}"
        client = self.client = MlflowClient(os.environ.get("MLFLOW_TRACKING_URI") or beside)
        project = os.environ.get("MLFLOW_EXPERIMENT_NAME", PROJECT)
        found = client.get_experiment_by_name(project)
        experiment = found.experiment_id if found else client.create_experiment(project)
        known = client.search_runs([experiment], f"tags.`kleash.id` = '{about.id}'", max_results=1)
        if known:
            self.run = known[0].info.run_id
            client.update_run(self.run, status="RUNNING")
        else:
            tags = {"kleash.id": about.id, "kleash.arm": about.arm}
            self.run = client.create_run(experiment, tags=tags, run_name=about.name).info.run_id
        self.configure(about.config, known[0].data.params if known else {})

    def configure(self, config: Mapping[str, Any], known: Mapping[str, str]) -> None:
        """Settings as parameters. MLflow changes none: a run made longer says so in a tag."""
        for key, value in dotted(config):
            if key not in known:
                self.client.log_param(self.run, key, value)
            elif known[key] != str(value):
                self.client.set_tag(self.run, f"kleash.{key}", value)

    def log(self, record: Mapping[str, float | str], step: int) -> None:
        """All metrics in one call, since each call is a request or a transaction."""
        from mlflow.entities import Metric, RunTag

        now = int(time.time() * 1000)
        metrics = [Metric(k, v, now, step) for k, v in record.items() if not isinstance(v, str)]
        tags = [RunTag(name, value) for name, value in record.items() if isinstance(value, str)]
        self.client.log_batch(self.run, metrics, tags=tags, synchronous=True)

    def close(self, *, failed: bool) -> None:
        """Finished or failed."""
        self.client.set_terminated(self.run, "FAILED" if failed else "FINISHED")


class Trackio:
    """trackio's own database, wherever it keeps it, or the Space or server that it is told."""

    needs = "trackio"

    def start(self, about: About) -> None:
        """trackio goes on with a run by its name: the id is in it, so that no other run has it."""
        import trackio

        self.run: Any = trackio.init(
            project=PROJECT,
            name=f"{about.name}-{about.id[:8]}",
            group=about.arm,
            config=dict(about.config),
            resume="allow",
            embed=False,
        )

    def log(self, record: Mapping[str, float | str], step: int) -> None:
        """A row."""
        self.run.log(dict(record), step=step)

    def close(self, *, failed: bool) -> None:
        """trackio has no word for how a run ended."""
        self.run.finish()


SINKS: dict[str, Callable[[], Sink]] = {
    "wandb": WandB,
    "wandb-offline": partial(WandB, mode="offline"),
    "swanlab": SwanLab,
    "swanlab-offline": partial(SwanLab, mode="offline"),
    "mlflow": MLflow,
    "tensorboard": TensorBoard,
    "trackio": Trackio,
}


def dotted(config: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Nested settings under names with dots."""
    for key, value in config.items():
        if isinstance(value, Mapping):
            yield from dotted(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


# --- from a run to its sinks ---------------------------------------------------------------------


def sink_names(text: str) -> tuple[str, ...]:
    """`wandb,tensorboard` as names of sinks whose libraries are there."""
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    for name in names:
        if name not in SINKS:
            near = get_close_matches(name, SINKS, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(SINKS)}"
            raise KleashError(f"no sink {name!r}: {hint}")
        needs = SINKS[name]().needs
        if needs and find_spec(needs) is None:
            raise KleashError(f"the sink {name} needs {needs}: pip install 'kleash[{needs}]'")
    return names


class Telling:
    """Hears what a run reports and passes it on, to a listener and to each sink until it breaks."""

    def __init__(self, listen: Listener) -> None:
        self.listen = listen
        self.sinks: dict[str, Sink] = {}
        self.by_step: set[str] = set()
        self.step = 0

    def __call__(self, heard: Heard) -> None:
        self.listen(heard)
        self.step = heard.step
        record = self.named(heard)
        for name in list(self.sinks):
            self.attempt(name, lambda sink: sink.log(record, heard.step))

    def named(self, heard: Heard) -> dict[str, float | str]:
        """The line under names that one axis of steps can hold.

        Warm-up phases carry their name, as when a run's folder is read. A mean over an epoch of
        GRPO goes under `epoch/` where the steps have a value of that name.
        """
        if heard.record["kind"] == "finding":
            return {f"finding/{heard.record['code']}": heard.record["message"]}
        numbers = {
            name: float(value)
            for name, value in heard.record.items()
            if name not in FIXED and isinstance(value, int | float)
        }
        if heard.record["kind"] == "step":
            self.by_step |= set(numbers)
            return dict(numbers)
        if heard.phase != "grpo":
            return {f"{heard.phase}/{name}": value for name, value in numbers.items()}
        return {
            f"epoch/{name}" if name in self.by_step else name: value
            for name, value in numbers.items()
        }

    def attempt(self, name: str, act: Callable[[Sink], None]) -> None:
        """Do something with a sink; let it go if it breaks."""
        try:
            with redirect_stdout(sys.stderr):  # results alone go to stdout
                act(self.sinks[name])
        except Exception as error:  # noqa: BLE001  a tool may raise anything; no run ends for it
            del self.sinks[name]
            finding = {
                "kind": "finding",
                "code": f"sink-{name}",
                "severity": "warning",
                "message": f"the sink {name} broke at step {self.step} and gets no more of this"
                f" run, which goes on: {one_line(error)}",
            }
            self.listen(Heard("finding", 0, 0, finding, self.step))

    def close(self, *, failed: bool) -> None:
        """End what is still open."""
        for name in list(self.sinks):
            self.attempt(name, lambda sink: sink.close(failed=failed))


@contextmanager
def open_sinks(names: Sequence[str], run: Run, listen: Listener) -> Iterator[Listener]:
    """A listener that also tells the sinks. One that cannot start is the user's to mend."""
    telling = Telling(listen)
    try:
        for name in names:
            sink = SINKS[name]()
            try:
                with redirect_stdout(sys.stderr):
                    sink.start(About.of(run))
            except Exception as error:
                raise KleashError(
                    f"the sink {name} cannot start: {one_line(error)};"
                    f" mend that, or train without it"
                ) from error
            telling.sinks[name] = sink
        yield telling
    except BaseException:
        telling.close(failed=True)
        raise
    telling.close(failed=False)


def one_line(error: Exception) -> str:
    """What an error says, short."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]
