"""`kleash train` and `kleash eval`: one run, from a recipe to scores."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kleash.cli.console import (
    AsJson,
    Device,
    Keys,
    Lang,
    folder_to_write,
    language_of,
    progress,
    stderr,
    stdout,
    told,
    word,
)
from kleash.cli.teller import Teller
from kleash.errors import KleashError
from kleash.train.single import need_torch, recipe_keys, resolve_run

if TYPE_CHECKING:
    from rich.table import Table

    from kleash.report.words import Language
    from kleash.runs.run import Run
    from kleash.train.recipe import Recipe


def train(  # noqa: PLR0913  every flag of a verb is an argument
    config: Annotated[
        str, typer.Argument(help="A TOML file, `default`, `agent`, or the folder of a run.")
    ],
    keys: Keys = None,
    out: Annotated[
        Path | None,
        typer.Option(help="The run's folder; else runs/NAME-sSEED.", callback=folder_to_write),
    ] = None,
    new: Annotated[
        bool, typer.Option("--new", help="Where a length is part of the run: make a new run.")
    ] = False,
    help_keys: Annotated[bool, typer.Option("--keys", help="List every key and stop.")] = False,
    device: Device = "cpu",
    log_to: Annotated[
        str,
        typer.Option(
            help="Sinks, with commas: wandb, wandb-offline, swanlab, swanlab-offline, mlflow,"
            " tensorboard, trackio."
        ),
    ] = "",
    as_json: AsJson = False,
    lang: Lang = "",
) -> None:
    """Train one run: supervised, then RCE, then GRPO on a leash.

    \b
    kleash train default seed=3 leash.form=k3 leash.coefficient=0.12
    kleash train default phase=grpo from=runs/default-s0/checkpoints/rce-5 epochs=3
    kleash train runs/default-s0 epochs=50  (goes on with a finished run)
    kleash train default like=verl  (the leash of lever-plus, verl, trl or kleash)
    kleash train default --keys  (every key, its default, what it does)
    torchrun --nproc-per-node=2 -m kleash train agent --device cuda  (one agent on two GPUs)
    """
    language = language_of(lang, ())
    if help_keys:
        print_keys(language, agent=config == "agent")
        return
    from kleash.config import parse_overrides

    folder, recipe, given = resolve_run(config, parse_overrides(keys or []), out, new=new)
    folder_to_write(folder)
    need_torch(device)
    from kleash.runs.sinks import sink_names
    from kleash.train import ranks

    sinks = sink_names(log_to)
    with ranks.joined(device) as here:
        ranks.check(recipe)
        run, extra = train_here(folder, recipe, given, here, sinks, language)
        if not ranks.is_first():
            return
    show_epochs(run, language, as_json=as_json, extra=extra)


def train_here(
    folder: Path,
    recipe: Recipe,
    given: Mapping[str, Any],
    device: str,
    sinks: Sequence[str],
    language: Language,
) -> tuple[Run, dict[str, Any]]:
    """The run, trained by this process or by all ranks; what was asked for. Rank 0 tells."""
    from kleash.algo.control import describe
    from kleash.train import ranks
    from kleash.train.single import train_run
    from kleash.train.training import Stopped

    console = stderr()
    console.quiet = not ranks.is_first()
    facts = {"folder": folder, "model": recipe.model_name(), "leash": describe(recipe.leash)}
    line = told(language, "start", **facts)
    line += told(language, "ranks", count=ranks.count()) if ranks.count() > 1 else ""
    console.print(line, highlight=False)
    listen = Teller(console, language)
    with progress(None, told(language, "bar.answers"), console) as advance:
        try:
            run, usage = train_run(
                folder,
                recipe,
                given,
                device=device,
                sinks=sinks,
                listen=listen,
                progress=advance,
            )
        except KeyboardInterrupt as stop:
            listen.stopped(stop.run if isinstance(stop, Stopped) else None)
            raise
    counts = {"asked": usage.asked, "bought": usage.bought, "saved": usage.saved}
    told_counts = {name: f"{count:,}" for name, count in counts.items()}
    console.print(told(language, "answers", **told_counts))
    return run, {"run": str(run.path), "answers": counts}


def show_epochs(run: Run, language: Language, *, as_json: bool, extra: dict[str, Any]) -> None:
    """The lines of a run's epochs."""
    lines = [line for line in run.metrics() if line["kind"] == "epoch"]
    if as_json:
        print(json.dumps(extra | {"epochs": lines}, ensure_ascii=False))
        return
    from rich.table import Table

    table = Table(title=str(run.path))
    agent = any("validation/reward" in line for line in lines)
    scored = ("validation/reward",) if agent else ("validation/loss", "validation/accuracy")
    columns = ("loss", "policy_loss", "leash/penalty", *scored)
    for name in ("phase", "epoch", *columns, "kl"):
        table.add_column(told(language, f"col.{name}"), justify="right")
    for line in lines:
        cells = [f"{line[name]:.4f}" if name in line else "" for name in columns]
        kl = line.get("probe/kl/ref/exact/episode/mean")
        shown = "" if kl is None else f"{kl:.4f}"
        phase = word(language, "at", line["phase"])
        table.add_row(phase, str(line["epoch"]), *cells, shown)
    stdout().print(table)


def print_keys(language: Language, *, agent: bool) -> None:
    """Every key of a recipe with its default and its sentence."""
    from rich.table import Table

    table = Table(*(told(language, f"col.{name}") for name in ("key", "default", "what")))
    for key, default, sentence in recipe_keys(agent=agent):
        table.add_row(key, default, sentence)
    stdout().print(table)


def evaluate_run(  # noqa: PLR0913  every flag of a verb is an argument
    run: Annotated[Path, typer.Argument(help="The folder of a run.")],
    checkpoint: Annotated[
        str, typer.Option(help="A name such as epoch-1, several with commas, `last` or `all`.")
    ] = "last",
    shots: Annotated[
        str,
        typer.Option(
            help="Numbers of demonstrations, with commas; 1,2,3,4 if not given."
            " Of an agent, sampled passes: 0 is greedy play."
        ),
    ] = "",
    items: Annotated[
        int | None, typer.Option(help="Items measured; else all of the split.")
    ] = None,
    split: Annotated[str, typer.Option(help="train, validation or test.")] = "test",
    baselines: Annotated[
        bool, typer.Option("--baselines", help="Measure what needs no training, too.")
    ] = False,
    best_greedy: Annotated[
        bool, typer.Option("--best-greedy", help="And the costly, optimistic forward search.")
    ] = False,
    device: Device = "cpu",
    as_json: AsJson = False,
    lang: Lang = "",
) -> None:
    """Measure checkpoints: a score for every item, kept with the pointer and the answer behind it.

    \b
    kleash eval runs/default-s0 --checkpoint all --shots 2 --baselines
    """
    need_torch(device)
    from kleash.runs.run import Run
    from kleash.train.single import measure

    language, opened = language_of(lang, ()), Run.open(run)
    wanted = measure(
        opened,
        checkpoint,
        shots=parse_shots(shots),
        items=items,
        split=split,
        baselines=baselines,
        best_greedy=best_greedy,
        device=device,
        bar=lambda total: progress(total, told(language, "bar.scores")),
    )
    show_scores(opened, wanted, language, as_json=as_json)


def parse_shots(text: str) -> list[int]:
    """`1,2,4` as numbers."""
    try:
        return [int(part) for part in text.split(",")] if text else []
    except ValueError:
        raise KleashError(f"--shots {text!r}: give numbers with commas, such as 1,2,4") from None


def show_scores(run: Run, wanted: Any, language: Language, *, as_json: bool) -> None:
    """A table of scores with intervals, and the last checkpoint's gaps to all the others."""
    from kleash.cli.summary import counted
    from kleash.report.words import term
    from kleash.train.evaluate import gaps, table

    cells = table(run, wanted)
    found = gaps(run, wanted)
    if as_json:
        print(json.dumps({"run": str(run.path), "cells": cells, "gaps": found}))
        return
    from rich.table import Table

    console, say = stdout(), partial(told, language)
    split = term(f"report.place.{wanted.split}", language, wanted.split)
    of_agents = "selector" not in run.config
    called = {n: counted(n, language, of_agents=of_agents) for n in wanted.shots}
    title = "rewards_of" if of_agents else "scores_of"
    shown = Table(title=say(title, items=wanted.items, split=split))
    shown.add_column("", overflow="fold")
    for count in wanted.shots:
        shown.add_column(called[count], justify="right")
    for name in wanted.checkpoints:
        row = [cell for cell in cells if cell["checkpoint"] == name]
        shown.add_row(name, *(cell_text(cell, language) for cell in row))
    console.print(shown)
    if found:
        console.print(gap_table(wanted.checkpoints[-1], found, called, language))
    console.print(say("one_run"))


def gap_table(
    last: str, found: Sequence[dict[str, Any]], called: Mapping[int, str], language: Language
) -> Table:
    """The gaps of one checkpoint to the others."""
    from rich.table import Table

    paired = Table(title=told(language, "gaps_of", last=last))
    for name in ("against", "measured", "gap", "interval", "differ", "p"):
        paired.add_column(told(language, f"col.{name}"), justify="right")
    for gap in found:
        interval = f"[{gap['low']:+.3f}, {gap['high']:+.3f}]"
        paired.add_row(
            gap["against"],
            called[gap["shots"]],
            f"{gap['estimate']:+.3f}",
            interval,
            told(language, "differ", count=gap["differ"], of=gap["n"]),
            f"{gap['p']:.2g}",
        )
    return paired


def cell_text(cell: dict[str, Any], language: Language) -> str:
    """`0.61 [0.58, 0.64]`, with what broke."""
    if cell["n"] == 0:
        return "–"
    broken, say = cell["broken"], partial(told, language)
    if "void" in cell:
        return say("void", broken=broken, of=broken + cell["n"])
    text = f"{cell['mean']:.3f} [{cell['low']:.3f}, {cell['high']:.3f}]"
    text += say("lemmas", value=f"{cell['lemmatised']:.3f}") if "lemmatised" in cell else ""
    return text + (say("broke", broken=broken) if broken else "")
