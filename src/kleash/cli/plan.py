"""The verb `plan`: what hours buy, before any run and after some."""

from __future__ import annotations

import itertools
import json
import math
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kleash.cli.compare import _columns as columns
from kleash.cli.compare import _start_lean as start_lean
from kleash.cli.console import AsJson, On, Unit, language_of
from kleash.errors import ConfigError

if TYPE_CHECKING:
    from kleash.report.words import Language
    from kleash.study.budget import Design, Plan

HEADS = ("arms", "seeds", "hours", "gap", "margin")


def plan(  # noqa: PLR0913  every flag of a verb is an argument
    what: Annotated[
        list[Path] | None, typer.Argument(help="A study's folder or other runs, to go on with.")
    ] = None,
    hours: Annotated[
        float | None, typer.Option(help="Hours of one device; else as many as the runs took.")
    ] = None,
    run_hours: Annotated[
        float | None, typer.Option(help="Hours of one run, where no log tells.")
    ] = None,
    margin: Annotated[float | None, typer.Option(help="The gap that would matter.")] = None,
    on: On = "",
    baseline: Annotated[str, typer.Option(help="The arm to compare with.")] = "",
    unit: Unit = None,
    as_json: AsJson = False,
    lang: Annotated[str, typer.Option(help="zh or en; else the locale's, else theirs.")] = "",
) -> None:
    """Say what hours buy: arms and seeds to run, and what would then be decided.

    \b
    kleash plan studies/demos-kl  (what as many hours again would change)
    kleash plan studies/demos-kl --hours 10
    kleash plan --hours 40 --run-hours 2  (before any run)
    kleash plan wandb/run-1 wandb/run-2 --hours 100 --run-hours 6 --margin 0.1 --lang zh
    """
    start_lean()
    from kleash.compare.comparison import Wish
    from kleash.study.budget import after_runs, before_runs
    from kleash.study.results.sources import is_study, read_sources

    for name, value in (("hours", hours), ("run-hours", run_hours), ("margin", margin)):
        if value is not None and not 0 < value < math.inf:
            raise ConfigError(f"--{name} {value:g}: give a number above 0")
    command = ""
    if what:
        sources = read_sources(what)
        found = after_runs(
            sources, Wish(on, baseline, margin, units=tuple(unit or ())), hours, run_hours
        )
        if len(what) == 1 and is_study(what[0]):
            command = _command(found, what[0])
        language = language_of(lang, sources)
    elif hours is None or run_hours is None:
        raise ConfigError("without runs that tell, give --hours and --run-hours")
    else:
        found, language = before_runs(hours, run_hours), language_of(lang, ())
    if as_json:
        print(json.dumps(_finite(_plain(found, command, language)), ensure_ascii=False))
    else:
        print(_screen(found, command, language))


def _command(found: Plan, folder: Path) -> str:
    """How to spend the hours on all arms of a study."""
    from kleash.study.plan import read_study

    whole = next((each for each in found.designs if each.arms == len(found.arms)), None)
    if whole is None:
        return ""
    file = read_study(str(folder))
    used = {*file.seeds, *file.search.seeds, *file.calibrate.seeds}
    fresh = (seed for seed in itertools.count() if seed not in used)
    seeds = [*file.seeds, *itertools.islice(fresh, whole.seeds - found.seeds)]
    return shlex.join(["kleash", "study", str(folder), f"seeds={seeds}"])


def _amount(value: float, found: Plan, language: Language) -> str:
    """A gap in points, in the metric's own unit, or in SDs between seeds."""
    from kleash.compare.comparison import Amount
    from kleash.report.words import say, show

    if not math.isfinite(value):
        return "—"
    if found.in_sds:
        return say("plan_sds", {"size": f"{value:.2f}"}, language)
    return show(Amount(value, found.unit, gap=True), language)


def _hours(hours: float) -> str:
    return f"{hours:.3g}" if hours < 100 else f"{hours:.0f}"


def _decides(each: Design, found: Plan, language: Language) -> dict[str, str]:
    return {
        "arms": str(each.arms),
        "seeds": str(each.seeds),
        "hours": _hours(each.hours),
        "gap": _amount(each.gap, found, language),
        "margin": _amount(each.margin, found, language),
    }


def answer(found: Plan, language: Language) -> list[str]:
    """What there is, and what the hours would best be spent on."""
    from kleash.report.words import gap_text, say

    said: list[tuple[str, dict[str, Any]]] = []
    if found.now is not None:
        said.append(("plan_now", _decides(found.now, found, language)))
    elif found.arms:
        said.append(("plan_now_few", {"seeds": str(found.seeds)}))
    if found.decided:
        said.append(("plan_settled", {"arms": [each.arms[0] for each in found.decided]}))
    if found.arms and not found.open:
        said.append(("plan_all_settled", {}))
    elif not found.designs:
        least = {n: _hours(found.to_decide(n)) for n in (2, max(2, len(found.arms)))}
        facts = {"least": max(least.values(), key=float), "pair": least[2]}
        said.append(("plan_too_little", facts | {"hours": _hours(found.hours)}))
    elif found.arms:
        said += _best(found, language)
    for each in found.open:
        if each.arms[0] in found.chances and each.estimate is not None:
            gap = gap_text(each.estimate, each.low, each.high, each.unit, language)
            share = f"{found.chances[each.arms[0]]:.0%}"
            said.append(("plan_chance", {"arm": each.arms[0], "gap": gap, "share": share}))
    return [say(code, facts, language) for code, facts in said]


def _best(found: Plan, language: Language) -> list[tuple[str, dict[str, Any]]]:
    """The way that sees the smallest gap, and what it does not see."""
    first = found.designs[0]
    names = [found.baseline, *(each.arms[0] for each in found.open)]
    names = found.arms if first.arms == len(found.arms) else names
    more = {"more": str(first.seeds - found.seeds), "names": names}
    said: list[tuple[str, dict[str, Any]]]
    said = [("plan_best", _decides(first, found, language) | more)]
    if found.margin and not found.in_sds and min(first.gap, first.margin) > found.margin:
        said.append(("plan_not_at_margin", {"margin": _amount(found.margin, found, language)}))
    spread, items = found.spread.gap, found.spread.items
    if spread.of_items(items) ** 2 > spread.of_seed(items) ** 2 / first.seeds:
        said.append(("plan_more_items", {"items": str(items)}))
    return said


def grounds(found: Plan, language: Language) -> list[str]:
    """What the plan rests on: costs, and how far gaps spread."""
    from kleash.compare.comparison import Amount
    from kleash.report.words import say, show

    said = [say("plan_cost", {"run": f"{found.cost.run:.3g}"}, language)]
    if found.cost.start:
        said.append(say("plan_cost_start", {"start": f"{found.cost.start:.3g}"}, language))
    if found.cost.of_machine:
        said.append(say("plan_cost_machine", {}, language))
    spread = found.spread
    parts = {
        name: show(Amount(getattr(spread.gap, name), found.unit, gap=True), language)
        for name in ("seeds", "items", "rest")
    }
    facts = {"seeds": parts["seeds"], "items": parts["items"], "left": parts["rest"]}
    facts |= {"n": str(spread.items), "count": str(spread.seeds)}
    said.append(say(f"spread_{spread.way}", facts, language))
    if found.cautious is not None:
        said.append(say("plan_cautious", _decides(found.cautious, found, language), language))
    return said


def _screen(found: Plan, command: str, language: Language) -> str:
    from kleash.report.words import cut, metric_name, pad, say, width

    metric = metric_name(found.metric, language)
    facts = {"hours": _hours(found.hours), "metric": metric, "power": "80%"}
    lines = [say("plan_title" if found.arms else "plan_title_blank", facts, language)]
    for said in (answer(found, language), grounds(found, language)):
        lines += [""] if said else []
        for text in said:
            first, *rest = cut(text, columns() - 2)
            lines += [f"- {first}", *(f"  {each}" for each in rest)]
    if len(found.designs) > 1 or (found.designs and not found.arms):
        heads = [say(f"column_{name}", {}, language) for name in HEADS]
        rows = [heads, *(list(_decides(d, found, language).values()) for d in found.designs)]
        wide = [max(map(width, column)) for column in zip(*rows, strict=True)]
        lines.append("")
        for row in rows:
            cells = zip(row, wide, strict=True)
            lines.append("  ".join(pad(cell, size, right=True) for cell, size in cells))
    if command:
        lines += ["", say("plan_command", {}, language), f"  {command}"]
    return "\n".join("".join(c for c in line if c.isprintable()) for line in lines)


def _plain(found: Plan, command: str, language: Language) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(found) | {
        "in_sds": found.in_sds,
        "decided": [each.arms[0] for each in found.decided],
        "open": [each.arms[0] for each in found.open],
        "command": command,
        "because": [*answer(found, language), *grounds(found, language)],
    }


def _finite(value: Any) -> Any:
    """The same with null where a number is beyond bounds: JSON has no infinity."""
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
