"""Verbs that look: `runs`, `doctor`, `bench`; and `answerer`, which trains the embedded one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kleash.cli.console import AsJson, Device, Keys, need_torch, place_to_write, progress, stdout
from kleash.cli.train import RUNS
from kleash.errors import KleashError

if TYPE_CHECKING:
    from kleash.doctor import Sheet


def runs(
    folder: Annotated[Path, typer.Argument(help="A folder of runs.")] = RUNS,
    as_json: AsJson = False,
) -> None:
    """List runs: leash, phase, last validation score, whether finished.

    \b
    kleash runs studies/kl/runs --json
    """
    from kleash.control import Leash, describe
    from kleash.runs import list_runs

    rows = []
    for run in list_runs(folder) if folder.is_dir() else ():
        leash = describe(Leash.model_validate(run.config["leash"]))
        policy = run.config["model" if "env" in run.config else "selector"]
        epochs = [line for line in run.metrics() if line["kind"] == "epoch"]
        last = epochs[-1] if epochs else {}
        rows.append(
            {
                "run": run.name,
                "policy": policy,
                "leash": leash,
                "at": f"{last['phase']} {last['epoch']}" if last else "not begun",
                "accuracy": last.get("validation/accuracy"),
                "reward": last.get("validation/reward"),
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
    table = Table("run", "policy", "leash", "at", "validation", "finished")
    for row in rows:
        scored = [
            f"{each} {row[each]:.3f}" for each in ("accuracy", "reward") if row[each] is not None
        ]
        done = "yes" if row["finished"] else "no"
        table.add_row(row["run"], row["policy"], row["leash"], row["at"], *(scored or [""]), done)
    stdout().print(table)


def doctor(
    as_json: AsJson = False,
    fits: Annotated[
        str, typer.Option(metavar="MODEL", help="0.6B to 32B, or a folder: what training it takes.")
    ] = "",
    lang: Annotated[str, typer.Option(help="zh or en; else the locale's.")] = "",
) -> None:
    """What works on this machine, what is missing, and how to get it; what fits which GPU.

    \b
    kleash doctor
    kleash doctor --fits 8B           (GiB of every way to train Qwen3-8B's shape, by part)
    kleash doctor --fits models/mine  (the same of a folder, from its config.json)
    """
    from kleash.cli.console import language_of
    from kleash.doctor import examine, parts_of, what_fits

    language = language_of(lang, ())
    if fits:
        sheet = parts_of(fits, language)
        if as_json:
            rows = [dict(zip(sheet.head, row, strict=True)) for row in sheet.rows]
            print(json.dumps(rows, ensure_ascii=False))
            return
        print_sheet(sheet)
        return
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
    print_sheet(what_fits(language))


def print_sheet(sheet: Sheet) -> None:
    """A table of the doctor, and its note."""
    from rich.table import Table

    table = Table(*sheet.head, title=sheet.title)
    for row in sheet.rows:
        table.add_row(*row)
    console = stdout()
    console.print(table)
    if sheet.note:
        console.print(sheet.note, markup=False, highlight=False)


def bench(
    what: Annotated[
        str,
        typer.Argument(
            help="selector, answerer, compare, study, report, rollouts, leash, staleness, gpu, vlm,"
            " captions."
        ),
    ],
    as_json: AsJson = False,
    device: Device = "cpu",
    part: Annotated[
        str, typer.Option(help="Of gpu: update, reference, rollouts, step, agreement or fits.")
    ] = "update",
    model: Annotated[str, typer.Option(help="Of gpu: the shape, 8b, 4b, 1.7b or tiny.")] = "",
    seconds: Annotated[
        float, typer.Option(help="Of gpu: no part is begun that would end later.")
    ] = 200.0,
    packs: Annotated[
        str, typer.Option(help="Of gpu: packs of a size or two (fixed), or of any (dynamic).")
    ] = "fixed",
) -> None:
    """Measure against plain implementations in the same run, and print ratios.

    \b
    kleash bench selector  (queries trained per second against one query at a time)
    kleash bench answerer  (milliseconds of one core per answer)
    kleash bench compare   (pairs, imports and the verb; needs no torch)
    kleash bench study     (answers measured per second against one prompt at a time)
    kleash bench report    (pages and reports of 1,000 runs; needs no torch)
    kleash bench rollouts  (tokens said per second against model.generate turn by turn)
    kleash bench leash  (whole steps of an agent with KL measured, and without)
    kleash bench staleness  (steps with a slow user, played while the policy learns, and not)
    kleash bench gpu --device cuda --part update --seconds 200  (an 8B update, beside the plain way)
    kleash bench gpu --device cuda --part step  (whole GRPO steps: playing, reference, update)
    kleash bench vlm --device cuda       (seconds per prompt of Qwen2.5-VL-3B's shape)
    kleash bench captions --device cuda  (prompts per second of SmolLM2-135M's shape)
    """
    from kleash.bench import BENCHES, ON_DEVICE

    if what not in BENCHES:
        raise KleashError(f"no bench {what!r}: there is {', '.join(BENCHES)}")
    if device != "cpu" and what not in ON_DEVICE:
        raise KleashError(f"the bench {what!r} computes on the CPU: --device is for {ON_DEVICE}")
    if what not in ("compare", "report"):
        need_torch(device)
    told = {"part": part, "model": model, "seconds": seconds, "packs": packs}
    given = told if what == "gpu" else {}
    found = BENCHES[what](device, **given) if what in ON_DEVICE else BENCHES[what]()
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


def answerer(
    out: Annotated[
        Path, typer.Argument(help="The .safetensors file to write.", callback=place_to_write)
    ],
    keys: Keys = None,
    device: Device = "cpu",
) -> None:
    """Train the embedded answerer anew: minutes on a GPU, a night on a CPU.

    \b
    kleash answerer weights.safetensors --device cuda seed=1 lr=0.001 steps=31000 pictures=1200
    """
    need_torch(device)
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
