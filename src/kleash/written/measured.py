"""Numbers of a report against what was measured: points, bests, settings, and what follows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from kleash.documents.marks import Mark, State, number_mark, written
from kleash.findings.record import canonical
from kleash.imports import Cell, Derived, Number, Source, names
from kleash.imports.markdown.derived import allowed
from kleash.imports.markdown.draft import SEED, Draft
from kleash.imports.markdown.numbers import Place
from kleash.written.logs import Held, Logs, as_printed
from kleash.written.relations import Node, node, oriented

SHARES: dict[str, tuple[Literal["difference", "relative"], ...]] = {
    "difference": ("relative",),
    "relative": ("difference",),
}
MANY = 4  # numbers of a table that logs deny


@dataclass(frozen=True)
class Told:
    """A number of a run with what it claims to measure."""

    number: Number
    arm: str
    seed: int | None
    metric: str
    place: Place
    statistic: str = ""


def numbers_of(draft: Draft) -> Iterator[Told]:
    """Every measured number of a report: points of series and cells, each where it first stands."""
    for (whose, _, axis), told in draft.histories.items():
        arm, seed = _whose(whose)
        for history in told:
            for step, number in history.points.items():
                place = Place(epoch=int(step)) if axis == "epoch" else Place(step=int(step))
                yield Told(number, arm, seed, history.metric, place)
    for (whose, *_), cells in draft.cells.items():
        arm, seed = _whose(whose)
        for cell in cells:
            if cell.number.value is not None:
                yield Told(cell.number, arm, seed, cell.metric, _place(cell), cell.statistic)


def _whose(key: str) -> tuple[str, int | None]:
    arm, _, seed = key.partition(SEED)
    return arm, int(seed) if seed else None


def _place(cell: Cell) -> Place:
    def whole(value: float | None) -> int | None:
        return None if value is None else int(value)

    return Place(whole(cell.epoch), whole(cell.step), cell.shots, cell.items)


def measured_marks(
    source: Source, told: Sequence[Told], truth: dict[Node, Held], logs: Logs
) -> list[Mark]:
    """The marks of all that logs have."""
    found = [
        _against_log(one, truth[node(one.number)]) for one in told if node(one.number) in truth
    ]
    found += _again(source, truth)
    found = _believed(source, found)
    return [*found, *_settings(source, logs), *_steps(told, truth, logs)]


def _believed(source: Source, marks: Sequence[Mark]) -> list[Mark]:
    """Without tables that logs would deny nearly throughout: these are of something else."""
    tables = {line: nth for nth, one in enumerate(source.tables) for line in one.lines}
    states = Counter((tables.get(mark.line), mark.state) for mark in marks)
    others = {
        nth
        for nth in tables.values()
        if states[nth, "wrong"] >= MANY and states[nth, "wrong"] > 2 * states[nth, "right"]
    }
    return [mark for mark in marks if tables.get(mark.line, -1) not in others]


def _meant(told: Sequence[Told], found: Mapping[Node, Held]) -> dict[Node, Held]:
    """Without quantities of which most numbers are not the log's: it calls another thing so."""
    agree: dict[tuple[str, ...], list[bool]] = defaultdict(list)
    for one in told:
        if node(one.number) in found:
            right = _agrees(one.number, found[node(one.number)].value)
            for key in _keys(one):
                agree[key].append(right)
    meant = {key for key, every in agree.items() if 3 * sum(every) >= len(every) - len(key) + 1}
    kept = {node(one.number) for one in told if meant.issuperset(_keys(one))}
    return {key: value for key, value in found.items() if key in kept}


def _keys(one: Told) -> list[tuple[str, ...]]:
    metric, title = canonical(one.metric), one.number.where.spot.partition(" / ")[0]
    return [(metric,), (metric, one.statistic, ""), (metric, one.statistic, title)]


def held(source: Source, told: Sequence[Told], logs: Logs) -> dict[Node, Held]:
    """What the logs have for each number; what is printed again is held against the same."""
    found: dict[Node, Held] = {}
    for one in told:
        best = one.statistic in ("best", "min", "max")
        place = Place() if best else one.place
        measured = logs.look(one.arm, one.metric, place, one.statistic, one.seed)
        if measured is not None:
            value = as_printed(measured.value, one.metric, one.number)
            found[node(one.number)] = replace(measured, value=value)
    found = _meant(told, found)
    for derived in source.derived:
        first = derived.of[0] if derived.kind == "same" else None
        if first is not None and node(first) in found:
            found.setdefault(node(derived.number), found[node(first)])
    return found


def _agrees(number: Number, value: float) -> bool:
    """Whether a number is a value as it would be printed; one called rough may be one off."""
    half = 0.0 if number.decimals is None else 0.5 * 10.0**-number.decimals
    half *= 2 if number.about or number.state == "estimated" else 1
    return abs((number.value or 0.0) - value) <= half + 1e-9 * max(1e-6, abs(value))


def _against_log(one: Told, measured: Held) -> Mark:
    number = one.number
    right = _agrees(number, measured.value)
    facts = {
        "value": written(measured.value, number),
        "file": measured.file,
        "runs": measured.runs,
        "arm": one.arm,
    }
    return number_mark(
        number, "right" if right else "wrong", "check.log" if right else "check.not-log", facts
    )


def _again(source: Source, truth: dict[Node, Held]) -> list[Mark]:
    """Numbers that are printed a second time, against the log of the first."""
    marks = []
    for derived in source.derived:
        if derived.kind == "same" and node(derived.number) in truth:
            arm = derived.arms[0] if derived.arms else ""
            told = Told(derived.number, arm, None, derived.metric, Place())
            marks.append(_against_log(told, truth[node(derived.number)]))
    return marks


def derived_from_logs(every: Sequence[Derived], truth: Mapping[Node, Held]) -> list[Mark]:
    """What was worked out, from the numbers of the logs instead of the printed ones."""
    marks = []
    for derived in oriented(every) if truth else ():
        operands = (*derived.of, *derived.minus)
        known = [truth.get(node(one)) for one in operands]
        if derived.kind == "same" or derived.number.value is None or None in known:
            continue
        values = iter([one.value for one in known if one is not None])
        of, minus = (
            tuple(replace(one, value=next(values), decimals=None, state="known") for one in side)
            for side in (derived.of, derived.minus)
        )
        range_ = allowed(replace(derived, of=of, minus=minus))
        if range_ is None:
            continue
        number = derived.number
        signs = (1, -1) if derived.unsigned else (1,)
        # Beside wrong numbers a share may have been read as a difference, or the other way round.
        ranges = [range_]
        for kind in SHARES.get(derived.kind, ()):
            other = allowed(replace(derived, kind=kind, of=of, minus=minus))
            ranges += [other] if other is not None else []
        right = any(_agrees(number, sign * each[0]) for sign in signs for each in ranges)
        facts = {
            "value": written(range_[0], number),
            "file": next(one.file for one in known if one is not None),
            "runs": 1,
            "arm": ", ".join(derived.arms),
        }
        code = "check.log" if right else "check.not-log"
        marks.append(number_mark(number, "right" if right else "wrong", code, facts))
    return marks


def _steps(told: Sequence[Told], truth: Mapping[Node, Held], logs: Logs) -> list[Mark]:
    """Bests at another step than the log has them, and points at steps that it does not have."""
    marks = []
    for one in told:
        at = one.place.step if one.place.step is not None else one.place.epoch
        counted = one.place.shots is not None or one.place.items is not None
        if at is None or counted or one.number.state == "estimated":
            continue
        if one.statistic in ("best", "min", "max") and one.place.step is not None:
            kind = f"{one.statistic} step"
            best = logs.look(one.arm, one.metric, Place(), kind, one.seed)
            right = truth.get(node(one.number))
            same = right is not None and _agrees(one.number, right.value)
            if same and best is not None and best.value != at:
                facts = {"value": f"{best.value:g}", "file": best.file, "runs": best.runs}
                spot = f"{one.number.where.spot} step"
                line = one.number.where.line or 0
                facts |= {"arm": one.arm}
                marks.append(Mark(line, str(at), "wrong", "check.not-log", facts, spot))
        elif not one.statistic and node(one.number) not in truth:
            file = logs.lacks(one.arm, one.metric, one.place)
            if file:
                marks.append(
                    number_mark(one.number, "unsupported", "check.no-step", {"file": file})
                )
    return marks


def _settings(source: Source, logs: Logs) -> list[Mark]:
    """Settings that are numbers, against the configs of the logs."""
    marks: dict[tuple[int, str], Mark] = {}
    for run in source.runs:
        log = logs.match.get(run.arm)
        for key, setting in run.config.items() if log is not None else ():
            name = canonical_key(key)
            values = [] if log is None else configured(log.configs, name)
            value = setting.value
            if not values or isinstance(value, bool) or not isinstance(value, int | float):
                continue
            right = any(abs(float(value) - each) <= 1e-9 * max(1.0, abs(each)) for each in values)
            facts = {
                "value": f"{values[0]:g}",
                "file": log.configs[0][0] if log else "",
                "arm": run.arm,
            }
            state: State = "right" if right else "wrong"
            code = "check.log" if right else "check.not-log"
            line = setting.where.line or 0
            made = Mark(line, f"{key} = {value:g}", state, code, facts | {"runs": 1}, key)
            if (line, key) not in marks or state == "wrong":
                marks[line, key] = made
    return list(marks.values())


def canonical_key(key: str) -> str:
    """A setting under its known name."""
    known = names.key(key)
    return known.name if known else ""


def configured(configs: Sequence[tuple[str, object, object]], name: str) -> list[float]:
    """The numbers that logs have for a setting."""
    found = [getattr(config, "values", {}).get(name) for _, config, _ in configs]
    return [
        float(value)
        for value in found
        if isinstance(value, int | float) and type(value) is not bool
    ]
