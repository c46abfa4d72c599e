"""The verb `adopt`: what another project left behind becomes a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from kleash.cli.console import AsJson, Keys, folder_to_write, language_of
from kleash.train.single import need_torch


def adopt(
    path: Annotated[
        Path, typer.Argument(help="A checkpoint, or a folder with all that belongs to one run.")
    ],
    keys: Keys = None,
    out: Annotated[
        Path, typer.Option(help="The folder of runs that it goes into.", callback=folder_to_write)
    ] = Path("runs"),
    lang: Annotated[str, typer.Option(help="zh or en; else the locale's.")] = "",
    as_json: AsJson = False,
) -> None:
    """Import checkpoints and data of another selector project; eval, study and compare take them.

    Checkpoints ({rce,grpo}_epochN.pt, *_v2format.ckpt, Lightning's), training metrics, accuracy
    files, RL data, beams, pools and embeddings. Weights are loaded strictly; no code is run.

    \b
    kleash adopt results/okvqa/model_cpk/kl012
    kleash adopt kl012/grpo_epoch3.pt data_options.folder=data/okvqa --lang zh
    kleash eval runs/kl012 --checkpoint all --shots 1,2
    """
    need_torch()
    language = language_of(lang, ())
    from kleash.config import parse_overrides
    from kleash.report.words import say
    from kleash.train.adopt import adopt as adopted

    made = adopted(path, parse_overrides(keys or []), out)
    said = [say(each.code, each.facts, language) for each in made.said]
    if as_json:
        told = [{"code": each.code, **each.facts} for each in made.said]
        print(json.dumps({"run": str(made.run.path), "said": told, "because": said}))
        return
    for line in said:
        print(line)
