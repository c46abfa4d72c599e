"""What `kleash train` says of its run on the console."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from kleash.cli.console import EACH_TIME, noticed, told, word

if TYPE_CHECKING:
    from rich.console import Console

    from kleash.report.words import Language
    from kleash.runs.run import Run
    from kleash.types import Heard


class Teller:
    """Says on the console what a run reports."""

    def __init__(self, console: Console, language: Language = "en") -> None:
        self.console, self.language = console, language
        self.said: set[str] = set()
        self.last: Heard | None = None

    def __call__(self, heard: Heard) -> None:
        record = heard.record
        self.last = heard if heard.epochs else self.last
        if record["kind"] == "step":
            return
        if heard.phase == "finding":
            if record["code"] not in self.said:
                kind = word(self.language, "severity", record["severity"])
                self.console.print(noticed(self.language, kind, record), style="yellow")
            self.said |= {record["code"]} - EACH_TIME
            return
        say = partial(told, self.language)
        epoch = {"epoch": heard.epoch, "epochs": heard.epochs}
        parts = [
            say("epoch", phase=word(self.language, "at", heard.phase), **epoch),
            say("loss", value=f"{record['loss']:.4f}"),
        ]
        if "groups_with_signal" in record:
            kl = record["probe/kl/ref/exact/episode/mean"]
            parts += [
                say("reward", value=f"{record['reward']:.3f}"),
                say("kl", value=f"{kl:.3f}"),
                say("signal", share=f"{record['groups_with_signal']:.0%}"),
            ]
        parts += validated(record, self.language)
        self.console.print(say("comma").join(parts), highlight=False)

    def stopped(self, run: Run | None) -> None:
        """Where Ctrl-C stopped it, and how to go on."""
        say, saved = partial(told, self.language), run.checkpoints() if run else []
        at = say("stopped_early")
        if self.last is not None:
            phase = word(self.language, "at", self.last.phase)
            at = say("stopped_in", phase=phase, epoch=self.last.epoch, epochs=self.last.epochs)
        if run is None or not saved:
            self.console.print(at + say("begins_again"), highlight=False)
        else:
            on = say("goes_on_from", checkpoint=saved[-1], folder=run.path)
            self.console.print(at + on, highlight=False, soft_wrap=True)


def validated(record: Mapping[str, Any], language: Language) -> list[str]:
    """What validation found and how fast the epoch was, as the run's family tells it."""
    say = partial(told, language)
    if "validation/reward" in record:
        rates = {key: record[key] for key in record if key.endswith("tokens_per_second")}
        coverage = record.get("validation/episode/coverage")
        return [
            say("validation_reward", value=f"{record['validation/reward']:.3f}"),
            say("turns", value=f"{record['validation/episode/turns']:.1f}")
            if coverage is None
            else say("coverage", share=f"{coverage:.0%}"),
            *(
                say("tokens", what=word(language, "tokens", key.split("_")[0]), value=f"{rate:.0f}")
                for key, rate in rates.items()
            ),
        ]
    loss, blind = record["validation/loss"], record["validation/uniform_loss"]
    return [
        say("validation_loss", value=f"{loss:.2f}", blind=f"{blind:.2f}"),
        say("accuracy", value=f"{record['validation/accuracy']:.3f}"),
        say("queries", value=f"{record['queries_per_second']:.0f}"),
    ]
