"""A study's results in short: tables for the terminal, and plain values for `--json`."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from kleash.compare import Judged
from kleash.plan import BASELINE, CHOSEN, StudyFile
from kleash.results import ArmRow, Results
from kleash.results.courses import courses
from kleash.results.factors import factor_effects
from kleash.results.gains import gains
from kleash.results.matched import at_equal_kl, at_equal_updates
from kleash.results.presets import preset_rows
from kleash.results.proxy import proxy_rows
from kleash.results.tuning import searched, signed
from kleash.stats import Interval, mean_interval

if TYPE_CHECKING:
    from rich.table import Table


def summary_table(found: Results) -> list[Table]:
    """An arm a line: how far it went, what it scored, its gap to its baseline; then baselines."""
    from rich.table import Table

    file, score = found.file, "reward" if found.file.of_agents else "accuracy"
    shots = ", ".join(map(str, file.measure.shots)) + " shots"
    if file.of_agents:
        shots = " and ".join(counted(file, n) for n in file.measure.shots)
    size = f"{file.measure.items[-1]} {'tasks' if file.of_agents else 'items'}"
    table = Table(
        title=f"{file.name}: test {score} of the checkpoint chosen on validation, mean over"
        f" {shots}, {size}, {len(file.seeds)} seeds (95 % intervals)"
    )
    for name in ("arm", "KL, nats/episode", score, "against", "gap", "verdict"):
        left = name in ("arm", "against")  # whose names may be long, and differ at their end
        table.add_column(name, justify="left" if left else "right", overflow="fold")
    for row in found.rows:
        name = row.name + (" (added after results were seen)" if row.late else "")
        gap, verdict = gap_text(row.gap)
        table.add_row(name, shown(row.kl), scored(found, row.score), row.against, gap, verdict)
    return [
        table,
        *preset_table(found),
        *factor_table(found),
        *proxy_table(found),
        *matched_table(found),
        baseline_table(found),
        *gain_table(found),
    ]


def counted(file: StudyFile, shots: int) -> str:
    """A number of shots, or how often an agent tries: `2 shots`, `greedy`, `2 sampled passes`."""
    if not file.of_agents:
        return f"{shots} shot{'s' if shots > 1 else ''}"
    return f"{shots} sampled pass{'es' if shots > 1 else ''}" if shots else "greedy"


def preset_table(found: Results) -> list[Table]:
    """Size, time and score by shots of each preset, where arms differ in it."""
    from rich.table import Table

    rows, shots = preset_rows(found), found.file.measure.shots
    table = Table(title="presets: accuracy, and its paired gap (95 % intervals, not adjusted)")
    clocks = ("s/epoch", "CPU s/epoch")
    columns = ("arm", "parameters", *clocks, *(counted(found.file, n) for n in shots))
    for name in columns:
        table.add_column(name, justify="left" if name == "arm" else "right")
    for row in rows:
        size = "–" if row.parameters is None else f"{row.parameters:,}"
        read = (row.seconds, row.cpu_seconds)
        seconds = ["–" if each is None else f"{each:.3g}" for each in read]
        cells = [valued(row.scores[n], row.gaps[n]) for n in shots]
        table.add_row(row.arm, size, *seconds, *cells)
    return [table] if rows else []


def valued(score: Interval | None, gap: Interval | None) -> str:
    """A score, and its gap where there is something to compare it with."""
    text = "–" if score is None else f"{score.estimate:.3f}"
    return text if gap is None else f"{text} {signed(gap)}"


def factor_table(found: Results) -> list[Table]:
    """What each key of a grid did by itself, and which two did something together."""
    from rich.table import Table

    rows = factor_effects(found)
    table = Table(title="effects of the grid's keys, over seeds (95 % intervals, p by Holm)")
    for name in ("effect", "of", "gap", "p"):
        table.add_column(name, justify="left" if name in ("effect", "of") else "right")
    for row in rows:
        table.add_row(row.name, row.levels, signed(row.gap), f"{row.adjusted_p:.2g}")
    return [table] if rows else []


def proxy_table(found: Results) -> list[Table]:
    """What training paid for beside what is measured, where these are not the same."""
    from rich.table import Table

    rows = proxy_rows(found)
    table = Table(title="proxy, gold and retention on the test, over seeds (95 % intervals)")
    for name in ("arm", "proxy", "gold", "retained of what the base had right"):
        table.add_column(name, justify="left" if name == "arm" else "right")
    for row in rows:
        table.add_row(row.arm, shown(row.proxy), shown(row.gold), shown(row.retained))
    return [table] if rows else []


def matched_table(found: Results) -> list[Table]:
    """Settings at equal realised KL and after equally many updates, where there are several."""
    from rich.table import Table

    rows = [*at_equal_kl(found), *at_equal_updates(found)]
    table = Table(title="settings matched: test at equal KL, validation at equal updates")
    for name in ("setting", "against", "matched at", "gap"):
        table.add_column(name, justify="left" if name != "gap" else "right")
    for row in rows:
        at = f"KL {row.at:.3g} nats" if row.on == "kl" else f"{row.at:,.0f} updates"
        table.add_row(row.ours, row.theirs, at, signed(row.gap))
    return [table] if rows else []


def baseline_table(found: Results) -> Table:
    """What needs no training, at each number of shots, at the largest n."""
    from rich.table import Table

    agents = found.file.of_agents
    table = Table(title="before GRPO, same tasks" if agents else "baselines on the same items")
    table.add_column("start" if agents else "baseline")
    for shots in found.file.measure.shots:
        table.add_column(counted(found.file, shots), justify="right")
    for name, by_shots in baselines(found).items():
        cells = [by_shots.get(shots) for shots in found.file.measure.shots]
        table.add_row(name, *(scored(found, cell) for cell in cells))
    return table


def gain_table(found: Results) -> list[Table]:
    """What each arm gained over the start it grew from."""
    from rich.table import Table

    table = Table(title="gained by GRPO over the start, paired (95 % intervals, not adjusted)")
    shots = (counted(found.file, each) for each in found.file.measure.shots)
    for name in ("arm", "seeds", *shots, "all"):
        table.add_column(name, justify="left" if name == "arm" else "right")
    rows = gains(found)
    for row in rows:
        cells = (*row.by_shots.values(), row.mean)
        gaps = ("–" if each is None else signed(each) for each in cells)
        table.add_row(row.arm, str(row.seeds), *gaps)
    return [table] if rows else []


def baselines(found: Results) -> dict[str, dict[int, Interval]]:
    """By name and shots: over items, of `base` over seeds, of random draws over draws."""
    largest: dict[tuple[str, int], list[Any]] = {}
    for each in found.measured:
        cell = each.cell
        if each.mean is None or not (cell.arm == "base" or cell.arm.startswith(BASELINE)):
            continue
        name = cell.arm.removeprefix(BASELINE)
        family = "random" if name.startswith("random-") else name
        fit = largest.setdefault((family, cell.shots), [])
        fit[:] = [one for one in fit if one.cell.items >= cell.items]
        if not fit or fit[0].cell.items == cell.items:
            fit.append(each)
    made: dict[str, dict[int, Interval]] = {}
    for (family, shots), cells in largest.items():
        several = len(cells) > 1
        interval = mean_interval([c.mean for c in cells]) if several else cells[0].interval
        if interval is not None:
            made.setdefault(family, {})[shots] = interval
    return made


def scored(found: Results, interval: Interval | None) -> str:
    """A mean score; where it is an accuracy, its interval as far as that is possible."""
    if interval is not None and not found.file.of_agents:
        interval = replace(interval, low=max(interval.low, 0.0), high=min(interval.high, 1.0))
    return shown(interval)


def shown(interval: Interval | None) -> str:
    """`0.412 [0.398, 0.426]`."""
    if interval is None:
        return "–"
    return f"{interval.estimate:.3f} [{interval.low:.3f}, {interval.high:.3f}]"


def gap_text(gap: Judged | None) -> tuple[str, str]:
    """The gap with its interval, and the verdict with its level."""
    if gap is None or gap.estimate is None:
        return "", ""
    text = f"{gap.estimate:+.3f}"
    if gap.low is not None and gap.high is not None:
        text += f" [{gap.low:+.3f}, {gap.high:+.3f}]"
    adjusted = "" if gap.adjusted_p is None else f", adjusted p {gap.adjusted_p:.2g}"
    return text, f"{gap.verdict.replace('_', ' ')} ({gap.level}{adjusted})"


def plain(found: Results) -> dict[str, Any]:
    """The results as JSON."""
    search = searched(found.folder, found.file, found.overview)
    return {
        "study": found.file.name,
        "folder": str(found.folder),
        "counts": found.overview.counts(),
        "arms": [plain_row(row) for row in found.rows],
        "baselines": {
            name: {str(shots): asdict(each) for shots, each in by_shots.items()}
            for name, by_shots in baselines(found).items()
        },
        "gains": [asdict(each) for each in gains(found)],
        "expectations": [asdict(each) for each in found.expectations],
        "agreements": [asdict(each) for each in found.agreements],
        "mixed": found.mixed,
        "late_arms": found.late,
        "test_uses": found.test_uses,
        "proxy": [asdict(row) for row in proxy_rows(found)],
        "courses": [asdict(row) | {"ahead": row.ahead} for row in courses(found)],
        "presets": [asdict(row) for row in preset_rows(found)],
        "factors": [asdict(row) for row in factor_effects(found)],
        "matched": [asdict(row) for row in (*at_equal_kl(found), *at_equal_updates(found))],
        "spent": found.spent,
        "search": None
        if search is None
        else asdict(search) | {"optimism": plain_interval(search.optimism)},
        "failures": found.failures,
        "cells": [
            {
                **each.cell._asdict(),
                "checkpoint": each.checkpoint or CHOSEN,
                "state": each.state,
                "mean": each.mean,
                "command": each.command,
                "why": each.why,
            }
            for each in found.measured
        ],
    }


def plain_interval(interval: Interval | None) -> dict[str, Any] | None:
    """An interval as JSON."""
    return None if interval is None else asdict(interval)


def plain_row(row: ArmRow) -> dict[str, Any]:
    """One arm."""
    gap = row.gap
    return {
        "arm": row.name,
        "keys": dict(row.keys),
        "against": row.against,
        "late": row.late,
        "kl": None if row.kl is None else asdict(row.kl),
        "score": None if row.score is None else asdict(row.score),
        "scores": list(row.scores),
        "chosen": list(row.chosen),
        "gap": None
        if gap is None
        else {
            "verdict": gap.verdict,
            "level": gap.level,
            "estimate": gap.estimate,
            "low": gap.low,
            "high": gap.high,
            "p": gap.p,
            "adjusted_p": gap.adjusted_p,
            "also_changed": list(gap.also_changed),
        },
    }
