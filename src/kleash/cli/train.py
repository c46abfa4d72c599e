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
    need_torch,
    progress,
    stderr,
    stdout,
    told,
    word,
)
from kleash.cli.teller import Teller
from kleash.errors import KleashError

if TYPE_CHECKING:
    from rich.table import Table

    from kleash.report.words import Language
    from kleash.runs.run import Run
    from kleash.train.recipe import Recipe

RUNS = Path("runs")
NAMED: dict[str, dict[str, Any]] = {
    "default": {},
    "agent": {
        "env": "intention",
        "gym": {"surface": "tokens", "limit": 7},
        "lr": 2e-3,
        "turn_tokens": 4,
        "credit": {"turn": "turn_baseline", "gamma": 0.5},
    },
}
"""Recipes that need no file: a selector on embedded data, an agent in the embedded world."""


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
    folder, recipe, given = resolve_run(config, keys or [], out, new=new)
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
    from kleash.runs.ledger import Ledger
    from kleash.train import ranks
    from kleash.train.rollout import compute_one_way, world_of
    from kleash.train.training import Stopped
    from kleash.train.training import train as train_run

    compute_one_way()
    folder.parent.mkdir(parents=True, exist_ok=True)
    console = stderr()
    console.quiet = not ranks.is_first()
    facts = {"folder": folder, "model": recipe.model_name(), "leash": describe(recipe.leash)}
    line = told(language, "start", **facts)
    line += told(language, "ranks", count=ranks.count()) if ranks.count() > 1 else ""
    console.print(line, highlight=False)
    with (
        Ledger(folder.parent / "ledger.sqlite", machines=ranks.several_machines()) as ledger,
        progress(None, told(language, "bar.answers"), console) as advance,
    ):
        listen = Teller(console, language)
        try:
            world = world_of(recipe, ledger, device=device, progress=advance)
            run = train_run(folder, recipe, given, world, listen=listen, sinks=sinks)
        except KeyboardInterrupt as stop:
            listen.stopped(stop.run if isinstance(stop, Stopped) else None)
            raise
        usage = ledger.usage()
    counts = {"asked": usage.asked, "bought": usage.bought, "saved": usage.saved}
    told_counts = {name: f"{count:,}" for name, count in counts.items()}
    console.print(told(language, "answers", **told_counts))
    return run, {"run": str(run.path), "answers": counts}


def resolve_run(
    config: str, keys: Sequence[str], out: Path | None, *, new: bool
) -> tuple[Path, Recipe, dict[str, Any]]:
    """The folder, the recipe and what was written, from a config or a run to go on with."""
    from kleash.config import merge, parse_overrides, read_toml
    from kleash.runs.run import Run
    from kleash.train.recipe import placed, recipe_from

    changes = parse_overrides(keys)
    path = Path(config)
    if path.is_dir():
        run = Run.open(path)
        if "adopted" in run.meta and out is None:
            raise KleashError(
                f"{path} was adopted, and its optimiser is not here: start a new run with"
                f" phase=grpo from={path}/checkpoints/NAME --out FOLDER"
            )
        given = merge(run.given, changes)
        recipe = recipe_from(run.given, placed(run), changes)
        longer = recipe.epochs != run.config["epochs"]
        if longer and not recipe.length_keys() and not new:
            raise KleashError(
                f"{path} was trained with a {recipe.schedule} schedule over"
                f" {run.config['epochs']} epochs: with {recipe.epochs} every step would differ,"
                " so it cannot be extended; add --new to train another run"
            )
        return out or path, recipe, given
    named = dict(NAMED[config] if config in NAMED else read_toml(path))
    if config in NAMED and changes.get("env", named.get("env")) != named.get("env"):
        del named["gym"]  # they are another environment's options
    given = merge(named, changes)
    recipe = recipe_from(given)
    return out or RUNS / f"{path.stem}-s{recipe.seed}", recipe, given


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

    from kleash.config import help_lines
    from kleash.tasks.envs import ENVS, options_of
    from kleash.train.recipe import AgentRecipe, SelectorRecipe

    table = Table(*(told(language, f"col.{name}") for name in ("key", "default", "what")))
    for key, default, sentence in help_lines(AgentRecipe if agent else SelectorRecipe):
        table.add_row(key, default, sentence)
    for name in ENVS if agent else ():
        table.add_section()
        for key, default, sentence in help_lines(options_of(name)):
            table.add_row(f"gym.{key} ({name})", default, sentence)
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
    from kleash.runs.ledger import Ledger
    from kleash.runs.run import Run
    from kleash.train.evaluate import Wanted, evaluate, resolve_checkpoints
    from kleash.train.evaluate.selector import baseline_names
    from kleash.train.recipe import SelectorRecipe, placed, recipe_from
    from kleash.train.rollout import compute_one_way, world_of

    compute_one_way()
    language, opened = language_of(lang, ()), Run.open(run)
    recipe = recipe_from(opened.config, placed(opened))
    names = resolve_checkpoints(opened, checkpoint)
    if baselines or best_greedy:
        names = baseline_names(greedy=best_greedy) + names
    pool = recipe.pool.size if isinstance(recipe, SelectorRecipe) else 0
    counts = parse_shots(shots or ("1,2,3,4" if pool else "0"), pool)
    with Ledger(run.parent / "ledger.sqlite") as ledger:
        world = world_of(recipe, ledger, device=device)
        count = len(world.item_ids(split)) if items is None else items
        wanted = Wanted(names, counts, split, count)
        total = len(names) * len(counts) * count
        with progress(total, told(language, "bar.scores")) as advance:
            evaluate(opened, world, wanted, advance)
    show_scores(opened, wanted, language, as_json=as_json)


def parse_shots(text: str, pool: int) -> list[int]:
    """`1,2,4` as numbers that a pool can fill; without a pool they are an agent's passes."""
    try:
        counts = [int(part) for part in text.split(",")]
    except ValueError:
        raise KleashError(f"--shots {text!r}: give numbers with commas, such as 1,2,4") from None
    for count in counts:
        if pool and not 1 <= count <= pool:
            raise KleashError(f"{count} shots from pools of {pool}: ask for 1 to {pool}")
    return counts


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
