"""Steps and epochs that nothing else knows: no table, no log and no other line of the report.

"The best is 0.7333 at step 405", where training ended at 400 and was measured every 50 steps. Logs
of training know all steps; if all that a report speaks of is of every 50th, step 395 is a slip.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from math import gcd

from kleash.imports.markdown.text import bare, fold, plain
from kleash.written.fitting import prints
from kleash.written.marks import Mark
from kleash.written.page import Page
from kleash.written.peaks import whole
from kleash.written.prose import At, Sentence
from kleash.written.told.subjects import Records
from kleash.written.told.tracks import families

LEAST = 3  # places of an axis that are known
FEW = 2  # steps beside the grid of all others that may be slips
TWICE = 2  # other sentences that know a step: one may have the same slip
TELLING = 3  # digits of a number that may be known again
BESIDE = 40  # letters between a number and its step
_BREAK = re.compile(r"[;；。]|\.\s|,\s(?:and|while|but|against)|，[而但]")
_COUNTED = {
    "step": re.compile(r"steps?|步|iter|update|更新", re.I),
    "epoch": re.compile(r"epochs?|轮|(?<![a-z])e\d", re.I),
}
_OTHERS = re.compile(
    r"sft|rce|监督|起点|基座|checkpoint|(?<![a-z])(?:base|warm-?up|pretrain\w*)(?![a-z])"
)
_COUNT = re.compile(r"\s?(?:步|steps?|次|分钟|min|h(?![a-z])|小时)")  # "each epoch (200 steps)"
_RESULT = re.compile(r"\d\.\d{2,}\s?%?\s?(?:at|in|@|[(（]|在|于)?\s?$")
_LOGGED = re.compile(
    r"日志|训练|达到|首次|超过|低于|(?<![a-z])(?:log(?:s|ged)?|train\w*|reach\w*|cross\w*)(?![a-z])"
)
EVALUATED = {"reward", "share"}  # what is measured now and then
_PLANNED = re.compile(
    r"建议|继续|续训|下一|计划|后续|延长|加到|补|若|如果|再|将|更长|想|可以|需要|应|假如|外推|预计|"
    r"(?<![a-z])(?:extend\w*|continu\w*|next|plan\w*|would|could|should|if|until|further|resum\w*|"
    r"longer|recommend\w*|suggest\w*|more|will|to see|beyond|budget|todo|expect\w*|about|"
    r"around)(?![a-z])"
)


def unheard_steps(records: Records, every: Sequence[Sentence], page: Page) -> Iterator[Mark]:
    """Steps of sentences that are in no table, in no log and on no other line."""
    lines = [fold(plain(page.text[start:end])) for start, end in page.lines]
    rows = {line for sheet in records.sheets for line in sheet.table.lines}
    own = [one for one in every if not _OTHERS.search(one.plain) and not rows & set(one.lines)]
    for axis, word in _COUNTED.items():
        known = {at for one in records.courses if one.axis == axis for at in one.points}
        if len(known) < LEAST:
            continue
        grid = _grid(known)
        epochs = axis == "epoch"
        logged = [one.points for one in records.threads if (one.axis == "epoch") == epochs]
        now_and_then = set[float]().union(*(one for one in logged if _grid(one) > 1))
        known = known.union(*logged)
        told = [_numbers(line) if word.search(line) else set() for line in lines]
        spoken = {line for sentence in own for line in sentence.lines}
        tables = set[float]().union(*(one for n, one in enumerate(told, 1) if n not in spoken))
        laid = known | tables
        if records.threads and not epochs:
            heard = tables | now_and_then
            yield from (_mark(*one, max(known)) for one in _off_grid(own, axis, grid, heard))
        for sentence in own:
            rest = Counter(at for n in spoken - {*sentence.lines} for at in told[n - 1])
            others = laid | {at for at, count in rest.items() if count >= TWICE}
            for place in (one for one in sentence.places if one.axis == axis):
                inside = not records.threads and place.at <= max(known)
                if inside and (
                    _is_trained(sentence) or not _is_of_another(records, sentence, place)
                ):
                    continue  # a table need not have every step
                counts = _COUNT.match(sentence.plain, place.end) and epochs
                named = _is_step(sentence, place, axis) and not counts
                if named and place.at not in others and not _is_planned(sentence, place):
                    yield _mark(sentence, place, max(known))


def _is_of_another(records: Records, sentence: Sentence, place: At) -> bool:
    """Whether the number beside a step stands in tables, and only at other steps."""
    near = [
        said
        for said in sentence.numbers
        if said.figure.digits >= TELLING
        and said.figure.decimals
        and min(abs(place.start - said.end), abs(said.start - place.end)) <= BESIDE
        and not _BREAK.search(
            sentence.plain[min(said.end, place.end) : max(said.start, place.start)]
        )
    ]
    steps = set[float]()
    for sheet in records.sheets:
        titles = [bare(title) for title in sheet.table.header]
        told = [nth for nth, title in enumerate(titles) if _COUNTED[place.axis].search(title)]
        for cell in sheet.cells:
            if not any(prints(said.figure, cell.figure) for said in near):
                continue
            if sheet.axis == place.axis and cell.row in sheet.counts:
                steps.add(sheet.counts[cell.row])
            if sheet.across_axis == place.axis and cell.column in sheet.across:
                steps.add(sheet.across[cell.column])
            beside = [bare(sheet.table.rows[cell.row][nth]) for nth in told]
            steps.update(float(one) for one in beside if one.isdigit())
    return bool(steps) and place.at not in steps


def _off_grid(
    own: Sequence[Sentence], axis: str, grid: int, heard: set[float]
) -> Iterator[tuple[Sentence, At]]:
    """Steps between those of all evaluations, where a report names one or two such at most."""
    found = [
        (sentence, place) for sentence in own for place in sentence.places
        if _is_step(sentence, place, axis) and place.at % grid and place.at not in heard
    ]  # fmt: skip
    few = len({place.at for _, place in found}) <= FEW
    for sentence, place in found if few else ():
        if not _is_trained(sentence) and not _is_planned(sentence, place):
            yield sentence, place


def _grid(steps: Iterable[float]) -> int:
    """Every how many steps something was measured, the first aside."""
    return gcd(*(int(at) for at in steps if at != 1))


def _is_step(sentence: Sentence, place: At, axis: str) -> bool:
    """Whether a place is on an axis: not "200 steps (16 GPUs)", "each step 32 prompts"."""
    text, before = sentence.plain[place.start : place.end], sentence.plain[: place.start]
    return place.axis == axis and "(" not in text and not before.endswith("每")


def _is_trained(sentence: Sentence) -> bool:
    """Whether a sentence speaks of what training logs at every step."""
    return bool(families(sentence.plain) - EVALUATED or _LOGGED.search(sentence.plain))


def _is_planned(sentence: Sentence, place: At) -> bool:
    """Whether a sentence may speak of a step that is yet to come: none has a result beside it."""
    before = sentence.plain[: place.start]
    return not _RESULT.search(before) and bool(_PLANNED.search(sentence.plain))


def _mark(sentence: Sentence, place: At, last: float) -> Mark:
    text, line = sentence.text[place.start : place.end], sentence.line(place.start)
    facts = {"at": whole(place.at), "last": whole(last)}
    return Mark(line, text, "unsupported", "check.unheard-step", facts, "unheard")


def _numbers(line: str) -> set[float]:
    """All numbers of a line."""
    return {float(one.replace(",", "")) for one in re.findall(r"\d+(?:,\d{3})*(?:\.\d+)?", line)}
