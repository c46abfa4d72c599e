"""The command line. Results on stdout, progress on stderr; every verb imports what it needs.

Exit 0: done. 1: a check that was asked for did not hold. 2: your mistake, in one line.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kleash.errors import KleashError

if TYPE_CHECKING:
    from rich.console import Console

    from kleash.recipe import Recipe
    from kleash.rollout import World
    from kleash.runs import Run

app = typer.Typer(
    name="kleash",
    help="Trains policies with GRPO on a KL leash, and finds out what the leash did.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

RUNS = Path("runs")
Keys = Annotated[list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Device = Annotated[str, typer.Option(help="Where the policy computes: cpu, cuda, cuda:1.")]


def main() -> None:
    """Run a verb; an error that is the user's to mend becomes one line."""
    try:
        app()
    except KleashError as error:
        sys.stderr.write(f"kleash: {error}\n")
        sys.exit(2)


def stderr() -> Console:
    """Where progress is shown."""
    from rich.console import Console

    return Console(stderr=True)


def stdout() -> Console:
    """Where results go; wide where no terminal says how wide it is."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 120)


def need_torch() -> None:
    """One line instead of a traceback where the extra `train` is not installed."""
    from importlib.util import find_spec

    if find_spec("torch") is None:
        raise KleashError("this verb needs torch: pip install 'kleash[train]'")
    import torch

    torch.set_num_threads(1)  # two threads under load are many times slower than one


@contextmanager
def progress(total: int | None, what: str) -> Iterator[Any]:
    """A bar with rate and time left, on stderr; yields a function that is told of each advance."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=stderr(), transient=True) as bar:
        task = bar.add_task(what, total=total, rate="")

        def advance(count: int = 1, description: str | None = None) -> None:
            speed = bar.tasks[0].speed
            rate = "" if speed is None else f"{speed:,.0f}/s"
            bar.update(task, advance=count, rate=rate, description=description)

        yield advance


# --- train


@app.command()
def train(  # the verb; the work is in `kleash.train`
    config: Annotated[
        str, typer.Argument(help="A TOML file, `default`, or the folder of a run to go on with.")
    ],
    keys: Keys = None,
    out: Annotated[Path | None, typer.Option(help="The run's folder [runs/NAME-sSEED].")] = None,
    new: Annotated[
        bool, typer.Option("--new", help="Where a length is part of the run: make a new run.")
    ] = False,
    help_keys: Annotated[bool, typer.Option("--keys", help="List every key and stop.")] = False,
    device: Device = "cpu",
    as_json: AsJson = False,
) -> None:
    """Train one run: supervised, then RCE, then GRPO on a leash.

    kleash train default seed=3 leash.form=k3 leash.coefficient=0.12
    kleash train default phase=grpo from=runs/default-s0/checkpoints/rce-5 epochs=3
    kleash train runs/default-s0 epochs=50     goes on with a finished run, bit-equal to 50 at once
    kleash train default like=verl             the leash of lever-plus, verl, trl or kleash
    """
    if help_keys:
        print_keys()
        return
    folder, recipe, given = resolve_run(config, keys or [], out, new=new)
    need_torch()
    from kleash.control import describe
    from kleash.ledger import Ledger
    from kleash.rollout import World
    from kleash.train import train as train_run

    folder.parent.mkdir(parents=True, exist_ok=True)
    console = stderr()
    console.print(f"{folder}: {recipe.selector}, {describe(recipe.leash)}", highlight=False)
    with (
        Ledger(folder.parent / "ledger.sqlite") as ledger,
        progress(None, "answers") as advance,
    ):
        world = World(recipe, ledger, device=device, progress=advance)
        run = train_run(folder, recipe, given, world, listen=Teller(console))
        usage = ledger.usage()
    saved = {"asked": usage.asked, "bought": usage.bought, "saved": usage.saved}
    console.print(
        f"answers: {usage.asked:,} asked for, {usage.bought:,} bought, {usage.saved:,} saved"
    )
    show_epochs(run, as_json=as_json, extra={"run": str(run.path), "answers": saved})


def resolve_run(
    config: str, keys: Sequence[str], out: Path | None, *, new: bool
) -> tuple[Path, Recipe, dict[str, Any]]:
    """The folder, the recipe and what was written, from a config or a run to go on with."""
    from kleash.config import merge, parse_overrides, read_toml
    from kleash.recipe import recipe_from
    from kleash.runs import Run

    changes = parse_overrides(keys)
    path = Path(config)
    if path.is_dir():
        run = Run.open(path)
        given = merge(run.given, changes)
        recipe = recipe_from(given)
        longer = recipe.epochs != run.config["epochs"]
        if longer and not recipe.length_keys() and not new:
            raise KleashError(
                f"{path} was trained with a {recipe.schedule} schedule over"
                f" {run.config['epochs']} epochs: with {recipe.epochs} every step would differ,"
                " so it cannot be extended; add --new to train another run"
            )
        return out or path, recipe, given
    given = merge({} if config == "default" else read_toml(path), changes)
    recipe = recipe_from(given)
    return out or RUNS / f"{path.stem}-s{recipe.seed}", recipe, given


class Teller:
    """Says on the console what a run reports."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.said: set[str] = set()

    def __call__(self, heard: Any) -> None:
        record = heard.record
        if heard.phase == "finding":
            if record["code"] not in self.said:
                self.console.print(f"{record['severity']}: {record['message']}", style="yellow")
            self.said.add(record["code"])
            return
        parts = [f"{heard.phase} {heard.epoch}/{heard.epochs}", f"loss {record['loss']:.4f}"]
        if "groups_with_signal" in record:
            parts += [
                f"reward {record['reward']:.3f}",
                f"KL {record['probe/kl/ref/exact/episode/mean']:.3f} nats/episode",
                f"signal in {record['groups_with_signal']:.0%} of groups",
            ]
        parts += [
            f"validation loss {record['validation/loss']:.2f}"
            f" (blind {record['validation/uniform_loss']:.2f})",
            f"accuracy {record['validation/accuracy']:.3f}",
            f"{record['queries_per_second']:.0f} queries/s",
        ]
        self.console.print(", ".join(parts), highlight=False)


def show_epochs(run: Run, *, as_json: bool, extra: dict[str, Any]) -> None:
    """The lines of a run's epochs."""
    lines = [line for line in run.metrics() if line["kind"] == "epoch"]
    if as_json:
        print(json.dumps(extra | {"epochs": lines}, ensure_ascii=False))
        return
    from rich.table import Table

    table = Table(title=str(run.path))
    columns = ("loss", "policy_loss", "leash/penalty", "validation/loss", "validation/accuracy")
    for name in ("phase", "epoch", *columns, "KL (probe)"):
        table.add_column(name, justify="right")
    for line in lines:
        cells = [f"{line[name]:.4f}" if name in line else "" for name in columns]
        kl = line.get("probe/kl/ref/exact/episode/mean")
        shown = "" if kl is None else f"{kl:.4f}"
        table.add_row(line["phase"], str(line["epoch"]), *cells, shown)
    stdout().print(table)


def print_keys() -> None:
    """Every key of a recipe with its default and its sentence."""
    from rich.table import Table

    from kleash.config import help_lines
    from kleash.recipe import Recipe

    table = Table("key", "default", "what it does", show_lines=False)
    for key, default, sentence in help_lines(Recipe):
        table.add_row(key, default, sentence)
    stdout().print(table)


# --- eval


@app.command("eval")
def evaluate_run(  # noqa: PLR0913  every flag of a verb is an argument
    run: Annotated[Path, typer.Argument(help="The folder of a run.")],
    checkpoint: Annotated[
        str, typer.Option(help="A name such as epoch-1, several with commas, `last` or `all`.")
    ] = "last",
    shots: Annotated[str, typer.Option(help="Numbers of demonstrations, with commas.")] = "1,2,3,4",
    items: Annotated[int | None, typer.Option(help="Items measured [all of the split].")] = None,
    split: Annotated[str, typer.Option(help="train, validation or test.")] = "test",
    baselines: Annotated[
        bool, typer.Option("--baselines", help="Measure what needs no training, too.")
    ] = False,
    best_greedy: Annotated[
        bool, typer.Option("--best-greedy", help="And the costly, optimistic forward search.")
    ] = False,
    device: Device = "cpu",
    as_json: AsJson = False,
) -> None:
    """Measure checkpoints: a score for every item, kept with the pointer and the answer behind it.

    kleash eval runs/default-s0 --checkpoint all --shots 2 --baselines
    """
    need_torch()
    from kleash.config import build
    from kleash.evaluate import Wanted, baseline_names, evaluate, resolve_checkpoints
    from kleash.ledger import Ledger
    from kleash.recipe import Recipe
    from kleash.rollout import World
    from kleash.runs import Run

    opened = Run.open(run)
    recipe = build(Recipe, opened.config)
    names = resolve_checkpoints(opened, checkpoint)
    if baselines or best_greedy:
        names = baseline_names(greedy=best_greedy) + names
    counts = parse_shots(shots, recipe.pool.size)
    with Ledger(run.parent / "ledger.sqlite") as ledger:
        world = World(recipe, ledger, device=device)
        count = checked_split(world, split) if items is None else items
        wanted = Wanted(names, counts, split, count)
        with progress(len(names) * len(counts) * count, "scores") as advance:
            evaluate(opened, world, wanted, advance)
    show_scores(opened, wanted, as_json=as_json)


def checked_split(world: World, split: str) -> int:
    """How many items a split has."""
    return len(world.pooled(split).queries)


def parse_shots(text: str, pool: int) -> list[int]:
    """`1,2,4` as numbers that a pool can fill."""
    try:
        counts = [int(part) for part in text.split(",")]
    except ValueError:
        raise KleashError(f"--shots {text!r}: give numbers with commas, such as 1,2,4") from None
    for count in counts:
        if not 1 <= count <= pool:
            raise KleashError(f"{count} shots from pools of {pool}: ask for 1 to {pool}")
    return counts


def show_scores(run: Run, wanted: Any, *, as_json: bool) -> None:
    """A table of accuracies with intervals, and the last checkpoint's gaps to all the others."""
    from kleash.evaluate import gaps, table

    cells = table(run, wanted)
    found = gaps(run, wanted)
    if as_json:
        print(json.dumps({"run": str(run.path), "cells": cells, "gaps": found}))
        return
    from rich.table import Table

    console = stdout()
    shown = Table(title=f"accuracy on {wanted.split} (95 % interval)")
    shown.add_column("")
    for count in wanted.shots:
        shown.add_column(f"{count} shot{'s' if count > 1 else ''}", justify="right")
    for name in wanted.checkpoints:
        row = [cell for cell in cells if cell["checkpoint"] == name]
        shown.add_row(name, *(cell_text(cell) for cell in row))
    console.print(shown)
    paired = Table(title=f"{wanted.checkpoints[-1]} against the others, same items")
    for name in ("against", "shots", "gap", "95 % interval", "items that differ", "p"):
        paired.add_column(name, justify="right")
    for gap in found:
        interval = f"[{gap['low']:+.3f}, {gap['high']:+.3f}]"
        paired.add_row(
            gap["against"],
            str(gap["shots"]),
            f"{gap['estimate']:+.3f}",
            interval,
            f"{gap['differ']} of {gap['n']}",
            f"{gap['p']:.2g}",
        )
    console.print(paired)
    console.print(
        "One run: this compares checkpoints on items like these (level L2);"
        " nothing follows about the setting. For that, train more seeds."
    )


def cell_text(cell: dict[str, Any]) -> str:
    """`0.61 [0.58, 0.64]`, with what broke."""
    if cell["n"] == 0:
        return "–"
    broken = f" ({cell['broken']} broke)" if cell["broken"] else ""
    return f"{cell['mean']:.3f} [{cell['low']:.3f}, {cell['high']:.3f}]{broken}"


# --- runs, doctor, bench, answerer


@app.command()
def runs(
    folder: Annotated[Path, typer.Argument(help="A folder of runs.")] = RUNS,
    as_json: AsJson = False,
) -> None:
    """List runs: leash, phase, epochs, last validation accuracy, whether finished."""
    from kleash.control import Leash, describe
    from kleash.runs import list_runs

    rows = []
    for run in list_runs(folder) if folder.is_dir() else ():
        leash = describe(Leash.model_validate(run.config["leash"]))
        epochs = [line for line in run.metrics() if line["kind"] == "epoch"]
        last = epochs[-1] if epochs else {}
        rows.append(
            {
                "run": run.name,
                "selector": run.config["selector"],
                "leash": leash,
                "at": f"{last['phase']} {last['epoch']}" if last else "not begun",
                "accuracy": last.get("validation/accuracy"),
                "finished": run.finished,
            }
        )
    if as_json:
        print(json.dumps(rows))
        return
    from rich.table import Table

    if not rows:
        print(f"no runs in {folder}: kleash train default makes one")
        return
    table = Table("run", "selector", "leash", "at", "validation accuracy", "finished")
    for row in rows:
        accuracy = "" if row["accuracy"] is None else f"{row['accuracy']:.3f}"
        done = "yes" if row["finished"] else "no"
        table.add_row(row["run"], row["selector"], row["leash"], row["at"], accuracy, done)
    stdout().print(table)


@app.command()
def doctor(as_json: AsJson = False) -> None:
    """What works on this machine, what is missing, and how to get it."""
    from kleash.doctor import examine

    findings = examine()
    if as_json:
        print(json.dumps([finding.__dict__ for finding in findings]))
        return
    from rich.markup import escape
    from rich.table import Table

    table = Table("what", "state", "how to get it")
    for finding in findings:
        table.add_row(finding.what, finding.state, escape(finding.remedy))
    stdout().print(table)


@app.command()
def bench(
    what: Annotated[str, typer.Argument(help="selector or answerer.")],
    as_json: AsJson = False,
) -> None:
    """Measure against plain implementations in the same run, and print ratios.

    kleash bench selector      queries trained per second against one query at a time
    """
    need_torch()
    from kleash.bench import BENCHES

    if what not in BENCHES:
        raise KleashError(f"no bench {what!r}: there is {', '.join(BENCHES)}")
    found = BENCHES[what]()
    if as_json:
        print(json.dumps(found))
        return
    from rich.table import Table

    table = Table(title=f"kleash bench {what}")
    table.add_column("what")
    table.add_column("figure", justify="right")
    for name, value in found.items():
        table.add_row(name, f"{value:,.3g}" if isinstance(value, float) else str(value))
    stdout().print(table)


@app.command()
def answerer(
    out: Annotated[Path, typer.Argument(help="The .safetensors file to write.")],
    keys: Keys = None,
    device: Device = "cpu",
) -> None:
    """Train the embedded answerer anew: minutes on a GPU, a night on a CPU.

    kleash answerer weights.safetensors --device cuda seed=1 lr=0.001 steps=31000 pictures=1200
    """
    need_torch()
    from kleash.answer.fit import Fit, fit, save
    from kleash.config import build, parse_overrides

    config = build(Fit, parse_overrides(keys or []))
    last: dict[str, float] = {}
    with progress(config.steps, "updates") as advance:
        step = 0

        def hear(scores: dict[str, float]) -> None:
            nonlocal step
            last.update(scores)
            advance(int(scores["step"]) - step, f"both told {scores['both']:.3f}")
            step = int(scores["step"])

        network = fit(config, device=device, report=hear, every=max(1, config.steps // 50))
    save(network, config, last, out)
    print(json.dumps(last))


if __name__ == "__main__":
    main()
