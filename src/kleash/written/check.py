"""Every number and claim of a report: right, wrong, not supported, or not to be checked.

Numbers are held against logs where there are any, and against each other: what was worked out from
what, what is printed twice, what a loss is made of. What a report says in words is the business of
`findings`; here each gets its mark. That a thing means less than it seems is for `compare`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from kleash.findings.record import canonical
from kleash.imports import Cell, Number, Source, names
from kleash.imports.markdown.derived import allowed
from kleash.imports.markdown.draft import SEED, Draft
from kleash.imports.markdown.numbers import Place
from kleash.written.grids import grids
from kleash.written.logs import Held, Logs
from kleash.written.marks import Mark, State, printed_as, written
from kleash.written.page import Page
from kleash.written.places import placed
from kleash.written.relations import Blame, Node, Relation, blamed, node, oriented, relations
from kleash.written.sentences import said
from kleash.written.steps import misplaced
from kleash.written.tables import copies, laid_out

SHARES: dict[str, tuple[Literal["difference", "relative"], ...]] = {
    "difference": ("relative",),
    "relative": ("difference",),
}
# Findings on a step that a table can overrule, whoever's it is.
AT_A_STEP = ("best-step-false", "value-elsewhere")
BESTS = ("best-step-false", "best-false", "extreme-false", "check.star")
RANK: dict[State, int] = {"wrong": 0, "unsupported": 1, "right": 2, "unknown": 3}


@dataclass(frozen=True)
class Told:
    """A number of a run with what it claims to measure."""

    number: Number
    arm: str
    seed: int | None
    metric: str
    place: Place
    statistic: str = ""


def check(draft: Draft, page: Page, logs: Logs | None = None) -> list[Mark]:
    """Every mark, line by line; of several on one number the gravest, and all that are wrong."""
    source = draft.source
    every = relations(draft)
    told = list(numbers_of(draft))
    truth = held(source, told, logs) if logs else {}
    marks = [
        _against_log(one, truth[node(one.number)]) for one in told if node(one.number) in truth
    ]
    marks += _again(source, truth)
    marks += [*_settings(source, logs), *_steps(told, truth, logs)] if logs else []
    fixed = {(mark.line, mark.spot): mark.state for mark in marks}
    right = {one for one in truth if fixed.get(one[:2]) == "right"}
    off = {one for one in truth if fixed.get(one[:2]) == "wrong"}
    kept = [each for each in every if not off & set(each.nodes)]
    quoted = Counter(number.value for claim in source.claims for number in claim.numbers)
    doubtful = {line for pair in copies(grids(draft)) for line in pair}
    marks += _related(kept, right, quoted, doubtful)
    marks += _derived_from_logs(source, truth, every)
    marks += _unfinished(source)
    marks += laid_out(draft, page, marks)
    marks += said(draft, page, marks)
    strayed, agreeing = misplaced(draft, page)
    marks = [m for m in marks if m.code not in AT_A_STEP or m.line not in agreeing]
    marks += [*placed(draft, marks), *strayed]
    marks = _without_echoes(marks)
    marks += _rest(told, marks)
    return _sorted(marks)


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


# --- against logs


def held(source: Source, told: Sequence[Told], logs: Logs) -> dict[Node, Held]:
    """What the logs have for each number; what is printed again is held against the same."""
    found: dict[Node, Held] = {}
    for one in told:
        best = one.statistic in ("best", "min", "max")
        place = Place() if best else one.place
        measured = logs.look(one.arm, one.metric, place, one.statistic, one.seed)
        if measured is not None:
            found[node(one.number)] = measured
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
    return _mark(
        number, "right" if right else "wrong", "check.log" if right else "check.not-log", facts
    )


def _mark(number: Number, state: State, code: str, facts: dict[str, object]) -> Mark:
    line, spot = number.where.line or 0, number.where.spot
    return Mark(line, number.text or f"{number.value:g}", state, code, facts, spot)


def _again(source: Source, truth: dict[Node, Held]) -> list[Mark]:
    """Numbers that are printed a second time, against the log of the first."""
    marks = []
    for derived in source.derived:
        if derived.kind == "same" and node(derived.number) in truth:
            arm = derived.arms[0] if derived.arms else ""
            told = Told(derived.number, arm, None, derived.metric, Place())
            marks.append(_against_log(told, truth[node(derived.number)]))
    return marks


def _derived_from_logs(
    source: Source, truth: Mapping[Node, Held], every: Sequence[Relation]
) -> list[Mark]:
    """What was worked out, from the numbers of the logs instead of the printed ones."""
    marks = []
    for derived in oriented(source.derived) if truth else ():
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
        marks.append(_mark(number, "right" if right else "wrong", code, facts))
    return marks


def _steps(told: Sequence[Told], truth: Mapping[Node, Held], logs: Logs) -> list[Mark]:
    """Bests at another step than the log has them, and points at steps that it does not have."""
    marks = []
    for one in told:
        at = one.place.step if one.place.step is not None else one.place.epoch
        counted = one.place.shots is not None or one.place.items is not None
        if at is None or counted or one.number.state == "estimated":
            continue
        if one.statistic in ("best", "min", "max"):
            kind = f"{one.statistic} step"
            best = logs.look(one.arm, one.metric, Place(), kind, one.seed)
            if best is not None and best.value != at:
                facts = {"value": f"{best.value:g}", "file": best.file, "runs": best.runs}
                spot = f"{one.number.where.spot} step"
                line = one.number.where.line or 0
                facts |= {"arm": one.arm}
                marks.append(Mark(line, str(at), "wrong", "check.not-log", facts, spot))
        elif not one.statistic and node(one.number) not in truth:
            file = logs.lacks(one.arm, one.metric, one.place)
            if file:
                marks.append(_mark(one.number, "unsupported", "check.no-step", {"file": file}))
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


# --- against each other


def _related(
    every: Sequence[Relation],
    right: set[Node],
    quoted: Mapping[float | None, int],
    doubtful: set[int],
) -> list[Mark]:
    """Marks of what fits together and of what does not."""
    said = {value: n for value, n in quoted.items() if value is not None}
    blames = blamed(every, right, said, doubtful)
    marks = [mark for one in blames for mark in _blamed(one)]
    guilty = {one for each in blames for one in (each.node, each.rival) if one is not None}
    shaky = {relation.nodes[0]: one for one in blames for relation in one.consequences}
    for base, one in shaky.items():
        if base not in guilty:
            facts = {"other": one.node[0]}
            text = next(each.text for each in one.consequences if each.nodes[0] == base)
            marks.append(
                Mark(base[0], text or f"{base[2]:g}", "unknown", "check.rests-on", facts, base[1])
            )
    fits: dict[Node, list[Relation]] = defaultdict(list)
    for relation in every:
        for printed in relation.nodes if relation.holds else ():
            fits[printed].append(relation)
    marks += [_fits(printed, about) for printed, about in fits.items() if printed not in guilty]
    return marks


def _blamed(one: Blame) -> Iterator[Mark]:
    """The mark of a number that does not fit; of two where nothing says which of them it is."""
    if one.rival is None:
        yield _wrong(one)
        return
    for ours, theirs in ((one.node, one.rival), (one.rival, one.node)):
        shown = [
            printed_as(each[2], one.relation.unit, one.relation.decimals) for each in (ours, theirs)
        ]
        facts = {"value": shown[1], "lines": [theirs[0]]}
        yield Mark(ours[0], shown[0], "unsupported", "check.told-otherwise", facts, ours[1])


def _wrong(one: Blame) -> Mark:
    relation, (line, spot, value) = one.relation, one.node
    own = relation.nodes[0] == one.node
    text = (
        relation.text
        if own and relation.text
        else printed_as(value, relation.unit, relation.decimals)
    )
    others = sorted({other[0] for other in relation.nodes if other != one.node})
    facts: dict[str, object] = {"lines": others, "kind": relation.kind}
    if one.value is None:
        return Mark(line, text, "wrong", "check.no-fit", facts, spot)
    signed = own and ("+" in relation.text or "-" in relation.text)
    facts["value"] = printed_as(one.value, relation.unit, relation.decimals, signed=signed)
    if facts["value"] == text:  # the last digit was cut off, not rounded
        facts["value"] = f"{one.value:.6g}"
    return Mark(line, text, "wrong", f"check.not-{relation.kind}", facts, spot)


def _fits(one: Node, about: Sequence[Relation]) -> Mark:
    own = [relation for relation in about if relation.nodes[0] == one]
    first = (own or about)[0]
    lines = sorted({other[0] for relation in about for other in relation.nodes if other != one})
    text = first.text if own and first.text else printed_as(one[2], first.unit, first.decimals)
    code = f"check.{first.kind}" if own else "check.fits"
    return Mark(one[0], text, "right", code, {"lines": lines[:6]}, one[1])


def _without_echoes(marks: list[Mark]) -> list[Mark]:
    """Without bests that are false only because another number, which is wrong, is better."""
    wrong = {m.text.split()[0].strip("*%") for m in marks if m.state == "wrong" and m.text.split()}
    return [m for m in marks if m.code not in BESTS or f"{m.facts.get('value')}" not in wrong]


def _unfinished(source: Source) -> list[Mark]:
    """What was worked out from numbers that are missing or guessed."""
    marks = []
    for derived in source.derived:
        operands = (*derived.of, *derived.minus)
        if derived.number.value is None:
            continue
        if any(operand.state == "missing" for operand in operands):
            marks.append(_mark(derived.number, "unsupported", "check.from-missing", {}))
    return marks


def _rest(told: Sequence[Told], marks: Sequence[Mark]) -> list[Mark]:
    """Numbers that nothing speaks of."""
    known = {(mark.line, mark.spot) for mark in marks}
    return [
        _mark(
            one.number,
            "unknown",
            "check.estimate" if one.number.state == "estimated" else "check.nothing",
            {"metric": canonical(one.metric), "arm": one.arm},
        )
        for one in told
        if (one.number.where.line or 0, one.number.where.spot) not in known
    ]


def _sorted(marks: Sequence[Mark]) -> list[Mark]:
    """By line; of one number only the gravest of its kinds, and each wrong thing once."""
    by_number: dict[tuple[int, str, str], Mark] = {}
    for mark in marks:
        key = (mark.line, mark.spot, mark.text)
        other = by_number.get(key)
        if other is None or RANK[mark.state] < RANK[other.state]:
            by_number[key] = mark
    return sorted(by_number.values(), key=lambda mark: (mark.line, RANK[mark.state], mark.spot))
