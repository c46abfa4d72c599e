"""The verb `watch`: logs of running jobs, live in the terminal; warnings once, and passed on."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kleash.cli.console import Named, language_of, stderr, stdout
from kleash.errors import ConfigError

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from kleash.algo.collapse import Curve
    from kleash.compare.watch import Told, Warned, Watch
    from kleash.report.words import Language

SHOWN = ("reward", "accuracy", "kl", "entropy", "response_length")
OTHERS = {"kl": "kl_loss", "reward": "eval_reward"}  # where the quantity itself is not logged
LAST = 12  # warnings below the table
LONGEST = 600  # characters of what a run says of itself


def watch(  # noqa: PLR0913  # one for each option
    sources: Annotated[
        list[Path] | None, typer.Argument(help="Logs or folders of running jobs.")
    ] = None,
    name: Named = None,
    once: Annotated[bool, typer.Option("--once", help="Look once and end.")] = False,
    every: Annotated[float, typer.Option(help="Seconds between two looks.")] = 5.0,
    webhook: Annotated[str, typer.Option(help="An address that each warning is sent to.")] = "",
    run: Annotated[str, typer.Option(help="A command for each warning: $KLEASH_TEXT …")] = "",
    as_json: Annotated[
        bool, typer.Option("--json", help="A line of JSON for each warning.")
    ] = False,
    lang: Annotated[str, typer.Option(help="zh or en; else the locale's.")] = "",
) -> None:
    """Follow jobs that run, here or elsewhere, and warn of trouble once and early. It only reads.

    \b
    kleash watch runs/
    kleash watch verl/outputs wandb/ --webhook https://open.feishu.cn/open-apis/bot/v2/hook/…
    kleash watch train.jsonl --once --json
    """
    from kleash.compare.read.given import ordered
    from kleash.compare.watch import Watch

    if not 0 < every < math.inf:
        raise ConfigError(f"--every {every:g}: give seconds, above 0")
    language = language_of(lang, ())
    given = ordered(sources or (), name or ())
    watched = Watch([path for path, _ in given], {path: called for path, called in given if called})
    teller = Teller(webhook, run, language, as_json=as_json)
    if once:
        teller.tell(watched.look())
        if as_json:
            seen = {"runs": [plain(told) for told in watched.runs], "warnings": len(watched.warned)}
            print(json.dumps(seen, ensure_ascii=False))
        else:
            for each in (*view(watched, language), looked(watched, language)):
                stdout().print(each, highlight=False, markup=False)
        return
    with suppress(KeyboardInterrupt):
        follow(watched, teller, every, language)


def follow(watched: Watch, teller: Teller, every: float, language: Language) -> None:
    """Look again and again; where a person looks on, with a table that is drawn anew."""
    from rich.console import Group
    from rich.live import Live
    from rich.text import Text

    shown = nullcontext() if teller.as_json else Live(console=stdout(), auto_refresh=False)
    with shown as screen:
        while True:
            teller.tell(watched.look(), quiet=screen is not None)
            if screen is not None:
                last = [sentence(each, language) for each in watched.warned[-LAST:]]
                lines = [Text(each, style="yellow") for each in last]
                screen.update(Group(*view(watched, language), *lines), refresh=True)
            time.sleep(every)


def view(watched: Watch, language: Language) -> list[Table | Text]:
    """The table, and what it does not show."""
    from rich.text import Text

    from kleash.report.words import say

    lines = list(map(Text, beside(watched, language)))
    if not watched.runs:
        where = ", ".join(map(str, watched.sources))
        return [*lines, Text(say("watch.nothing", {"where": where}, language))]
    return [*([table(watched, language)] if shown(watched) else []), *lines]


def looked(watched: Watch, language: Language) -> str:
    """How much there was to see."""
    from kleash.report.words import say

    points = sum(told.count for told in watched.runs)
    facts = {"runs": len(shown(watched)), "points": points, "n": len(watched.warned)}
    return say("watch.looked", facts, language)


def beside(watched: Watch, language: Language) -> list[str]:
    """What the table does not show: names, logs without curves, lines that could not be read."""
    from kleash.compare.read.run_names import shortly
    from kleash.report.words import say

    runs = shown(watched)
    _, shared = shortly([told.name for told in runs])
    said = [say("watch.shortly", {"names": shared}, language)] if shared else []
    hidden = len(watched.runs) - len(runs)
    said += [say("watch.no_curves", {"n": hidden}, language)] if hidden else []
    return said + [
        say("watch.unread", {"run": told.name, "n": told.unread}, language)
        for told in watched.runs
        if told.unread
    ]


def shown(watched: Watch) -> list[Told]:
    """The runs that have curves, or may have them later: a table of results never will."""
    from kleash.compare.read.tables import TABLES

    return [told for told in watched.runs if told.count or told.format not in TABLES]


# --- warnings ------------------------------------------------------------------------------------


class Teller:
    """Says each warning: on the console, to a webhook, to a command."""

    def __init__(self, webhook: str, command: str, language: Language, *, as_json: bool) -> None:
        self.webhook, self.command, self.language = webhook, command, language
        self.as_json = as_json
        self.failed: set[str] = set()

    def tell(self, warned: list[Warned], *, quiet: bool = False) -> None:
        """All that is new; `quiet` where the screen shows it anyway."""
        from kleash.compare.watch.tell import call, post

        for each in warned:
            told = record(each, self.language)
            if self.as_json:
                print(json.dumps(told, ensure_ascii=False), flush=True)
            elif not quiet:
                stdout().print(told["text"], highlight=False, markup=False, soft_wrap=True)
            wrong = [post(self.webhook, told)] if self.webhook else []
            wrong += [call(self.command, told)] if self.command else []
            for line in filter(None, wrong):
                if line not in self.failed:
                    self.failed.add(line)
                    stderr().print(f"kleash: {line}", highlight=False, markup=False)


def sentence(warned: Warned, language: Language) -> str:
    """What a warning says."""
    from kleash.report.words import say

    facts = dict(warned.facts)
    if warned.sentence in ("watch.dead-groups", "watch.dead-groups-no-gain", "watch.valid-actions"):
        facts |= {name: f"{100 * facts[name]:.0f}%" for name in ("now", "before")}
    if warned.sentence == "watch.run-finding":  # it is a sentence already, and may be long
        joined = "：" if language == "zh" else ": "
        return f"{facts['run']}{joined}{facts['message']}"[:LONGEST]
    return say(warned.sentence, facts, language)


def record(warned: Warned, language: Language) -> dict[str, Any]:
    """A warning as JSON."""
    numbers = {
        name: value
        for name in ("now", "before")
        if isinstance(value := warned.facts.get(name), float) and math.isfinite(value)
    }
    return {
        "run": warned.run,
        "source": warned.source,
        "code": warned.code,
        "step": warned.step,
        **numbers,
        "text": sentence(warned, language),
    }


def plain(told: Told) -> dict[str, Any]:
    """A run as JSON: where it stands."""
    return {"run": told.name, "format": told.format, "source": str(told.path), "step": told.step,
            "finished": told.finished, "points": told.count, "unread": told.unread}  # fmt: skip


# --- the screen ----------------------------------------------------------------------------------


def table(watched: Watch, language: Language) -> Table:
    """A run a line: its step, what it earns, KL, entropy, length, and whether anything is amiss.

    What no run logs has no column.
    """
    from rich.table import Table
    from rich.text import Text

    from kleash.compare.read.run_names import shortly
    from kleash.compare.watch import course
    from kleash.report.words import say

    runs = [(told, course(told)) for told in shown(watched)]
    quantities = [name for name in SHOWN if any(_drawn(name, curves) for _, curves in runs)]
    made = Table()
    for name in ("run", "step", *quantities, "state"):
        left = name in ("run", "state")
        made.add_column(
            say(f"watch.{name}", {}, language), justify="left" if left else "right", overflow="fold"
        )
    names, _ = shortly([told.name for told, _ in runs])
    for name, (told, curves) in zip(names, runs, strict=True):
        cells = [name, _reached(told, language)]
        cells += [_drawn(name, curves) or "—" for name in quantities]
        count = sum(each.is_about(told) for each in watched.warned)
        code = "fine" if not count else "warned.1" if count == 1 else "warned"
        state = Text(
            say(f"watch.{code}", {"n": count}, language), style="red" if count else "green"
        )
        made.add_row(*map(Text, cells), state)
    return made


def _reached(told: Told, language: Language) -> str:
    """The last step of a run, or its last epoch where it tells no steps."""
    from kleash.report.words import say

    if told.step is not None:
        return f"{told.step:g}"
    ends = [points.steps[-1] for points in told.points.values() if points.axis == "epoch"]
    return say("watch.epoch", {"n": f"{max(ends):g}"}, language) if ends else "—"


def _drawn(name: str, curves: Mapping[str, Curve]) -> str:
    """The last value of a quantity behind a sparkline; '' where it has none."""
    from kleash.report.charts import blocks

    curve = curves.get(name) or curves.get(OTHERS.get(name, name))
    values = [] if curve is None else curve.values.tolist()
    return f"{blocks(values)} {values[-1]:.4g}" if values else ""
