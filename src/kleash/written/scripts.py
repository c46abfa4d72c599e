"""Commands against what stands beside them: their comments, and the headings they stand under.

"eval.sh 1 0 200  # epoch 1, GPU 0, 200 samples": which argument is which, the other commands of the
same script tell. A script that is named after an arm stands under the heading of that arm.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations

from kleash.documents.marks import Mark
from kleash.documents.page import Page
from kleash.imports.markdown.text import bare

LEAST = 2  # commands that show which argument is which
SLOTS = 4  # numbers of a comment that are looked at
_WORDS = r"epochs?|ep|gpus?|cuda|steps?|shots?|seeds?|samples?|items?|样本|题|轮|步|种子"
_SLOT = re.compile(
    rf"(?<![a-z])({_WORDS})\s*[=:#]?\s*(\d+)(?![\d.])|(\d+)\s*(?:个|道)?\s*({_WORDS})(?![a-z])",
    re.I,
)
_ARGUMENT = re.compile(r"(?<=\s)\d+(?=\s|$)")
_COMMAND = re.compile(
    r"^\s*\$?\s*(?:[A-Z_]+=\S+\s+)*(?:bash|sh|python3?|sbatch|accelerate|torchrun|\./)\s*\S+"
)
_SCRIPT = re.compile(r"[\w./-]+\.(?:sh|py)(?!\w)")
_CODED = re.compile(r"(?<![a-z])(?:kl|beta|b)_?(0\d{1,4}|0\.\d+)(?!\d|\.\d)", re.I)
_SAID = re.compile(r"(?:kl(?:[_ ]?(?:beta|coef))?|beta|β)\s?[=＝]?\s?(0\.\d+)", re.I)
_PATH = re.compile(r"`([^`\s]*(?:/|\.json|\.csv|\.log)[^`\s]*)`")


@dataclass(frozen=True)
class Command:
    """A command of a code block, the comment that is its own, and the arms it stands under."""

    line: int
    text: str
    comment: str
    arms: frozenset[str]

    @property
    def form(self) -> str:
        """What it runs, without numbers: commands of one form have the same arguments."""
        script = _SCRIPT.search(self.text)
        return re.sub(r"\d+", "", script.group() if script else self.text)

    @property
    def slots(self) -> list[tuple[str, str, str]]:
        """The numbers of its comment: of what, which, and as written."""
        found = [(m[1] or m[4], m[2] or m[3], m.group()) for m in _SLOT.finditer(self.comment)]
        return [(word.casefold().rstrip("s"), number, text) for word, number, text in found]


def false_commands(page: Page) -> Iterator[Mark]:
    """Arguments that are not what the comment says, and scripts and files of another arm."""
    every = list(_commands(page))
    groups: dict[tuple[object, ...], list[Command]] = defaultdict(list)
    for one in every:
        words = [word for word, *_ in one.slots]
        if words and len(set(words)) == len(words) <= SLOTS:
            groups[(one.form, len(_ARGUMENT.findall(one.text)), *words)].append(one)
    for same in groups.values():
        yield from _arguments(same)
    yield from _of_arms([*_scripts(every), *_files(page)])


def _commands(page: Page) -> Iterator[Command]:
    """The commands of code blocks; a line of comment is that of the command right below it."""
    fenced, above, heading = False, "", ""
    for nth, (start, end) in enumerate(page.lines, 1):
        line = page.text[start:end]
        if line.strip().startswith(("```", "~~~")):
            fenced, above = not fenced, ""
        elif not fenced:
            heading = bare(line.strip("# ")) if line.startswith("#") else heading
        elif line.lstrip().startswith("#") or not line.strip():
            above = line.strip("# ")
        elif _COMMAND.match(line):
            text, _, own = line.partition(" #")
            arms = arms_said(own) or arms_said(above) or arms_said(heading)
            yield Command(nth, text, own or above, arms)
            above = ""


def arms_said(text: str) -> frozenset[str]:
    """The coefficients that a text gives."""
    return frozenset(f"{float(one):g}" for one in _SAID.findall(text))


# --- arguments


def _arguments(same: Sequence[Command]) -> Iterator[Mark]:
    """Commands whose arguments are not the numbers of their comment, as those of most are."""
    rows = [(one, _ARGUMENT.findall(one.text), one.slots) for one in same]
    count, slots = len(rows[0][1]), len(rows[0][2])
    if len(rows) < LEAST + 1 or not slots <= count <= SLOTS + 2:
        return

    def fits(order: Sequence[int]) -> list[int]:
        return [
            sum(numbers[at] == said[nth][1] for _, numbers, said in rows)
            for nth, at in enumerate(order)
        ]

    order = max(permutations(range(count), slots), key=lambda each: sum(fits(each)))
    for nth, (at, fit) in enumerate(zip(order, fits(order), strict=True)):
        if fit < LEAST or 2 * fit < len(rows):
            continue
        for one, numbers, said in rows:
            if numbers[at] != said[nth][1]:
                facts = {"value": numbers[at], "said": said[nth][2]}
                yield Mark(one.line, said[nth][2], "wrong", "check.argument", facts, "argument")


# --- arms


Named = tuple[int, str, str, frozenset[str]]
"""A line, the name in it, the arm that this is coded for, and the arms that it should be of."""


def coded_arm(text: str) -> str:
    """The coefficient that a name is coded with: kl012 and kl0.12 are 0.12."""
    found = {one if "." in one else f"0.{one[1:]}" for one in _CODED.findall(text)}
    return f"{float(found.pop()):g}" if len(found) == 1 else ""


def _scripts(every: Sequence[Command]) -> Iterator[Named]:
    for one in every:
        script = _SCRIPT.search(one.text)
        name = script.group() if script else ""
        yield one.line, name, coded_arm(name), one.arms


def _files(page: Page) -> Iterator[Named]:
    """Files in a line that names one arm before them."""
    for nth, (start, end) in enumerate(page.lines, 1):
        line = page.text[start:end]
        paths = list(_PATH.finditer(line))
        if len(paths) == 1:
            yield nth, paths[0][1], coded_arm(paths[0][1]), arms_said(line[: paths[0].start()])


def _of_arms(every: Sequence[Named]) -> Iterator[Mark]:
    """Names that are coded for another arm than the one they are given for."""
    coded = [one for one in every if one[2]]
    agree = Counter(one[2] for one in coded if one[3] == {one[2]})
    others = Counter(one[2] for one in coded)
    for line, name, code, arms in coded:
        if len(arms) != 1 or code in arms:
            continue
        arm = min(arms)
        if agree or others[arm] >= LEAST:
            facts = {"arm": arm, "value": code}
            yield Mark(
                line, name.rpartition("/")[2] or name, "wrong", "check.other-arm", facts, "name"
            )
