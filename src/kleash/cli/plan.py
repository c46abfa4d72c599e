"""The verb `plan`: what hours buy, before any run and after some."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kleash.cli.compare import _columns as columns
from kleash.cli.compare import _start_lean as start_lean
from kleash.cli.console import AsJson, On, Unit, language_of, place_to_write
from kleash.errors import ConfigError

if TYPE_CHECKING:
    from kleash.plan import StudyFile
    from kleash.prospect import Asked, Option, Prospect
    from kleash.stats import GapSpread

TEMPLATE = "demos-kl-wide"
HELP = "Runs or a study's folder, to go on with; or a study file, to plan one like it."
What = Annotated[
    list[str] | None, typer.Argument(metavar="[WHAT]...", help=HELP, show_default=False)
]
Write = Annotated[
    Path | None,
    typer.Option(help="Write the plan as a study's file.", callback=place_to_write),
]


def plan(  # noqa: PLR0913  every flag of a verb is an argument
    what: What = None,
    hours: Annotated[float, typer.Option(help="Hours of one device that may be spent.")] = 0.0,
    trial: Annotated[
        list[Path] | None,
        typer.Option("--from", help="Runs that tell costs, spreads and KL; may be repeated."),
    ] = None,
    run_hours: Annotated[float | None, typer.Option(help="Hours of one training.")] = None,
    base_hours: Annotated[float | None, typer.Option(help="Hours of a seed's start.")] = None,
    item_seconds: Annotated[
        float | None, typer.Option(help="Seconds to score an item once, all its shots.")
    ] = None,
    seed_sd: Annotated[
        float | None, typer.Option(help="SD of a gap between seeds; fractions for accuracy.")
    ] = None,
    item_sd: Annotated[
        float | None, typer.Option(help="SD of a gap between items; with --seed-sd.")
    ] = None,
    margin: Annotated[float | None, typer.Option(help="The gap that would matter.")] = None,
    power: Annotated[float, typer.Option(help="How often it should be seen.")] = 0.8,
    arms: Annotated[
        int | None, typer.Option(help="So many arms, the one without a leash among them.")
    ] = None,
    most_items: Annotated[int | None, typer.Option(help="How many items there are.")] = None,
    on: On = "",
    baseline: Annotated[str, typer.Option(help="The arm to compare with.")] = "",
    unit: Unit = None,
    write: Write = None,
    as_json: AsJson = False,
    lang: Annotated[str, typer.Option(help="zh or en; else the locale's, else theirs.")] = "",
) -> None:
    """Say what hours buy: arms, seeds and items to run, and what would then be decided.

    \b
    kleash plan --hours 40 --run-hours 0.5 --item-seconds 0.4 --seed-sd 0.01 --item-sd 0.1
    kleash plan demos-kl-wide --hours 5 --from studies/demos-kl --write mine.toml
    kleash plan studies/demos-kl --hours 10  (what 10 more hours would change)
    kleash plan wandb/run-1 wandb/run-2 --hours 100 --run-hours 6 --margin 0.1 --lang zh
    """
    start_lean()
    from kleash.prospect import Asked, Cost

    asked = Asked(
        hours=hours,
        cost=Cost(run_hours, base_hours, item_seconds),
        spread=_spread(seed_sd, item_sd),
        margin=margin,
        power=power,
        arms=arms,
        most_items=most_items,
        on=on,
        baseline=baseline,
        units=tuple(unit or ()),
    )
    if (named := what or []) and all(_holds_runs(each) for each in named):
        if trial:
            raise ConfigError("--from is for a new study: runs to go on with tell for themselves")
        _go_on(asked, [Path(each) for each in named], write, lang, as_json=as_json)
    else:
        _propose(asked, named, trial or [], write, lang, as_json=as_json)


def _spread(seed_sd: float | None, item_sd: float | None) -> GapSpread | None:
    """The spread of a gap as it was given, if it was."""
    from kleash.stats import GapSpread

    if seed_sd is None and item_sd is not None:
        raise ConfigError("--item-sd alone says nothing of seeds: give --seed-sd too")
    return None if seed_sd is None else GapSpread(seed_sd, item_sd or 0.0, 0.0)


def _holds_runs(what: str) -> bool:
    """Whether it is something that was run, not the file or the name of a study."""
    from kleash.plan import bundled

    path = Path(what)
    return what not in bundled() and path.exists() and path.suffix != ".toml"


def _propose(
    asked: Asked,
    named: list[str],
    trial: list[Path],
    write: Path | None,
    lang: str,
    *,
    as_json: bool,
) -> None:
    """A study that was not run yet."""
    from kleash.plan import read_study
    from kleash.prospect import before, screen
    from kleash.prospect.written import proposed_file, write_file
    from kleash.results.sources import is_study, read_sources

    if len(named) > 1:
        raise ConfigError(f"a new study is planned like one: {', '.join(named)} are several")
    file = read_study(named[0] if named else TEMPLATE)
    sources = read_sources(trial) if trial else []
    folder = next((path for path in trial if is_study(path)), None)
    if folder is not None:
        asked = _with_study_cost(asked, folder)
    found = before(asked, file, sources, folder)
    command = ""
    if write is not None:
        write_file(write, proposed_file(found, file, write.stem))
        command = f"kleash study {shlex.quote(str(write))} --dry-run"
    language = language_of(lang, sources)
    if as_json:
        print(json.dumps(screen.plain(found, command, language), ensure_ascii=False))
    else:
        print(screen.proposal_text(found, command, language, columns()))


def _with_study_cost(asked: Asked, folder: Path) -> Asked:
    """What jobs of a study took, where nothing else was given."""
    from dataclasses import replace

    from kleash.compare.arms import gather
    from kleash.plan import read_study
    from kleash.prospect.costs import cost_of_study
    from kleash.results.sources import study_source

    told = cost_of_study(folder, read_study(str(folder)), gather([study_source(folder)]))
    return replace(asked, cost=asked.cost.over(told))


def _go_on(
    asked: Asked, paths: list[Path], write: Path | None, lang: str, *, as_json: bool
) -> None:
    """Runs that are there, and what further ones would change."""
    from kleash.plan import read_study
    from kleash.prospect import after, screen
    from kleash.results.sources import is_study, read_sources

    folder = paths[0] if len(paths) == 1 and is_study(paths[0]) else None
    if write is not None and folder is None:
        raise ConfigError("--write continues one study: name its folder, or plan a new one")
    file = None if folder is None else read_study(str(folder))
    sources = read_sources(paths)
    found = after(asked, sources, folder, file)
    language = language_of(lang, sources)
    command = "" if folder is None or file is None else _command(found, folder, file, write)
    if as_json:
        print(json.dumps(screen.plain(found, command, language), ensure_ascii=False))
    else:
        print(screen.prospect_text(found, command, language, columns()))


def _command(found: Prospect, folder: Path, file: StudyFile, write: Path | None) -> str:
    """How to spend the hours on a study; an option that leaves arms out needs a file."""
    from kleash.plan import arms_of
    from kleash.plan.folder import placed
    from kleash.prospect.written import grown_file, write_file

    if not found.options:
        return ""
    first: Option = found.options[0]
    if write is not None:
        write_file(write, grown_file(first, file, arms_of(file, placed(folder))))
        return f"kleash study {shlex.quote(str(write))} --out {shlex.quote(str(folder))}"
    if first.kind == "open":
        return f"kleash plan {shlex.quote(str(folder))} --hours {found.hours:g} --write FILE.toml"
    return shlex.join(["kleash", "study", str(folder), *_keys(first, file)])


def _keys(option: Option, file: StudyFile) -> list[str]:
    from kleash.prospect.written import items_then, seeds_then

    keys = [f"seeds={seeds_then(option, file)}"] if option.seeds else []
    return keys + ([f"measure.items={items_then(option, file)}"] if option.items else [])
