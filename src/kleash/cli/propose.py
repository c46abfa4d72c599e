"""The verb `propose`: pointers worth asking about, answered, as a file of RL data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from kleash.cli.console import AsJson, Device, Keys, place_to_write, progress
from kleash.errors import KleashError
from kleash.train.single import need_torch, resolve_run


def propose(
    config: Annotated[str, typer.Argument(help="A TOML file, `default`, or the folder of a run.")],
    keys: Keys = None,
    out: Annotated[
        Path | None,
        typer.Option(help="The file; else runs/NAME-sSEED.rl.json.", callback=place_to_write),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Processes that ask at the same time.")] = 1,
    on: Annotated[str, typer.Option(help="local, ray, auto or ray://HOST:PORT.")] = "local",
    device: Device = "cpu",
    as_json: AsJson = False,
) -> None:
    """Propose pointers for the training queries, have them answered, write them as RL data.

    Answers are kept in the ledger beside the file: stopped, it goes on; training pays for none.

    \b
    kleash propose default queries=200 propose.beams=5 propose.budget=40
    kleash propose default propose.policy=runs/a/checkpoints/rce-5 propose.samples=2 --jobs 2
    kleash propose runs/default-s0 --out rl_data.json    (what that run was trained on)
    """
    from kleash.config import parse_overrides

    folder, recipe, _ = resolve_run(config, parse_overrides(keys or []), new=True)
    need_torch(device if on == "local" else "cpu")
    from kleash.train.propose import propose_all
    from kleash.train.recipe import SelectorRecipe

    if not isinstance(recipe, SelectorRecipe):
        raise KleashError("an agent proposes no pointers: give the recipe of a selector")
    file = out or folder.with_name(f"{folder.name}.rl.json")
    with progress(recipe.queries, "queries") as advance:
        told = propose_all(recipe, file, workers=jobs, on=on, device=device, progress=advance)
    if as_json:
        print(json.dumps(told))
        return
    print(
        f"{told['file']}: {told['queries']:,} queries, {told['pointers']:,} pointers;"
        f" answers: {told['asked']:,} asked for, {told['bought']:,} bought,"
        f" {told['broken']:,} broke"
    )
