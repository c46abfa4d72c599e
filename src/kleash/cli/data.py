"""The verb `data`: what files of data hold, and what is wrong with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from kleash.cli.console import AsJson, language_of

data = typer.Typer(help="Look at files of data before anything is trained from them.")


@data.callback()
def _verbs() -> None:
    """Look at files of data before anything is trained from them.

    \b
    kleash data check rl_data_k64_v3.json
    """


@data.command("check")
def check_file(
    file: Annotated[Path, typer.Argument(help="RL data, as JSON.")],
    pools: Annotated[
        Path | None, typer.Option(help="The cache of pools that should have been used.")
    ] = None,
    lang: Annotated[str, typer.Option(help="zh or en; else the locale's.")] = "",
    as_json: AsJson = False,
) -> None:
    """Count what a file of RL data holds, then say what is wrong with it. Exit 1: something is.

    \b
    kleash data check rl_data_k64_v3.json
    kleash data check rl_data_k64_v3.json --pools okvqa-RandSampler.json --lang zh
    """
    language = language_of(lang, ())
    from kleash.report.words import say
    from kleash.tasks.demos.rl_checks import check, counts
    from kleash.tasks.demos.rl_data import read_pools, read_rl_data

    read = read_rl_data(file)
    found = check(read, None if pools is None else read_pools(pools))
    held = counts(read)
    wrong = [each for each in found if each.severity == "wrong"]
    if as_json:
        told = [
            {
                "code": each.code,
                "severity": each.severity,
                "facts": each.facts,
                "message": say(each.code, each.facts, language),
            }
            for each in found
        ]
        print(json.dumps({"file": str(file), "counts": held, "noticed": told}, ensure_ascii=False))
    else:
        for code in (
            "rl.counts",
            "rl.sizes",
            "rl.methods",
            "rl.health",
            f"rl.{held['convention']}",
        ):
            print(say(code, held, language))
        for each in found:
            mark = "✗" if each.severity == "wrong" else "·"
            print(f"{mark} {say(each.code, each.facts, language)}")
        if not found:
            print(say("rl.sound", {}, language))
    raise typer.Exit(1 if wrong else 0)
