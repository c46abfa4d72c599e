"""The verb `export`: the policy of a run, for use where there is no Kleash or no run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from kleash.cli.console import folder_to_write
from kleash.errors import KleashError
from kleash.train.single import need_torch


def export(
    run: Annotated[Path, typer.Argument(help="The folder of a run.")],
    checkpoint: Annotated[str, typer.Option(help="Its name, or last.")] = "last",
    out: Annotated[
        Path | None,
        typer.Option(help="The folder; else RUN/exported/NAME.", callback=folder_to_write),
    ] = None,
) -> None:
    """Write a run's policy: an agent as a Hugging Face folder, a selector as safetensors.

    \b
    kleash export runs/agent-s0 --out my-agent        (AutoModelForCausalLM loads it)
    kleash export runs/scenes-s0 --checkpoint rce-5   (kleash.train.export.load_selector loads it)
    """
    need_torch()
    from kleash.runs.run import Run
    from kleash.train.evaluate import resolve_checkpoints
    from kleash.train.export import export as export_policy

    opened = Run.open(run)
    names = resolve_checkpoints(opened, checkpoint)
    if len(names) > 1:
        raise KleashError(f"--checkpoint {checkpoint}: one at a time, such as {names[-1]}")
    folder = out or run / "exported" / names[0]
    facts = export_policy(opened, names[0], folder)
    print(folder)
    if facts["kind"] == "selector":
        sys.stderr.write(
            "from kleash.train.export import load_selector\n"
            f"selector = load_selector({str(folder)!r})\n"
        )
        return
    sys.stderr.write(
        f"log-probabilities differ from the run's by at most {facts['apart']:.1g}\n"
        f"AutoModelForCausalLM.from_pretrained({str(folder)!r})\n"
    )
