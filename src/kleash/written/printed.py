"""Tables as they are printed: figures with their decimals, and the names by which rows are called.

Sentences quote what is printed: 78.77 under "accuracy (%)" is 78.77 % in a sentence. So figures are
kept here in the scale of the page, whatever they mean, and rows and columns with every name that a
sentence may give them.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from string import ascii_lowercase

from kleash.imports import Number, Table
from kleash.imports.markdown.text import bare
from kleash.written.grids import Grid, Part
from kleash.written.parted import Parts, in_two

MINIMUM = r"(?<![(/a-z])min(?:im(?:um|al))?(?!\s?[)/]|[a-z])"  # "(min)" and "s/min" are minutes
AXES = {
    "step": "step|steps|步|步数|训练步|训练步数|global step|global_step|training step",
    "epoch": "epoch|epochs|ep|轮|轮次|轮数",
    "update": "update|updates|ppo update|更新|更新次数",
    "iteration": "iteration|iterations|iter|iters|迭代|迭代次数",
    "round": "round|rounds|回合",
    "checkpoint": "checkpoint|ckpt|检查点",
    "shot": "shot|shots|范例数",
    "sample": "样本|样本数|样本量|题量|sample|samples|sample size|sample count",
}
AXIS = "|".join(  # any of these words
    sorted({word for words in AXES.values() for word in words.split("|")}, key=len, reverse=True)
)
_TOTAL = re.compile(r"^(?:total|sum|all|overall|合计|总计|总和|总共|共计)(?:\s*\(.*\))?$", re.I)
_LATIN = "A-Za-z0-9_"
NAME = (4, 24)  # letters of a heading that a sentence may call a table by
_STEMS = "甲乙丙丁戊己庚辛"
_NUMBERED = re.compile(r"(?:([^\d]*?)[\s_-]*)?(\d[\d,]*)(k?)[\s_-]*([^\d]*)")
KEPT = 1 << 14  # texts whose reading is remembered: a report tells the same names again and again
JOINED = "\0"  # between the two rows of a header


@dataclass(frozen=True)
class Figure:
    """A number as printed."""

    value: float
    decimals: int
    unit: str = ""
    loose: int = 1
    """How many times its rounding others may be off."""
    true: float | None = None
    """What it was before it was rounded, where a log has it."""

    @cached_property
    def half(self) -> float:
        """Half a unit of its last digit."""
        return 0.5 * self.loose * 10.0**-self.decimals

    @cached_property
    def digits(self) -> int:
        """Its digits from the first that is not 0."""
        return len(str(abs(round(self.value * 10**self.decimals)))) if self.value else 0


@dataclass(frozen=True)
class Cell:
    """A figure with its place: table, line of the page, row and column."""

    figure: Figure
    table: int
    line: int
    row: int
    column: int
    part: Part
    number: Number


@dataclass(eq=False)
class Sheet:
    """A table: its cells, the names of rows and columns, and what its rows count."""

    nth: int
    table: Table
    cells: list[Cell]
    rows: list[tuple[str, ...]]
    columns: list[tuple[str, ...]]
    axis: str = ""
    counts: dict[int, float] = field(default_factory=dict)
    """By row, the step, epoch or the like."""
    across_axis: str = ""
    across: dict[int, float] = field(default_factory=dict)
    """The same by column, if columns are counted."""
    owners: tuple[str, ...] = ()
    """Rows or columns of other tables that its heading names: all its numbers are theirs."""
    parts: dict[int, Parts] = field(default_factory=dict)
    """By column, the two parts of its title, where titles are a grid."""
    keys: dict[tuple[str, int], frozenset[str]] = field(default_factory=dict)
    """What `things` knows rows and columns by, once it has looked."""

    @property
    def line(self) -> int:
        return self.table.lines[0] if self.table.lines else self.table.where.line or 0


def figure_of(number: Number) -> Figure | None:
    """A number in the scale in which it is printed."""
    if number.value is None:
        return None
    share = number.unit == "%"
    decimals = max(0, (number.decimals if number.decimals is not None else 6) - 2 * share)
    return Figure(round(100 * number.value if share else number.value, 9), decimals, number.unit)


def sheets(every: Sequence[Grid]) -> list[Sheet]:
    """Every table as printed."""
    found = []
    names = [{_key(one) for one in (*grid.names, *grid.titles[1:])} for grid in every]
    for nth, grid in enumerate(every):
        others = set[str]().union(*(one for at, one in enumerate(names) if at != nth))
        cells = [
            Cell(figure, nth, grid.table.lines[line], line, slot[0], slot[1], number)
            for (line, slot), number in grid.at.items()
            if (figure := figure_of(number)) is not None
        ]
        heads = [_split(title, others) for title in titles(grid)]
        parts = {} if any(JOINED in one for one in heads) else in_two(heads, others)
        first = heads[0] if heads else ""
        axis, counts = _counted(first, dict(enumerate(grid.names)))
        across = _counted("" if counts else first, dict(enumerate(grid.titles[1:], 1)))
        rows = _apart([_aliases(name, first) for name in grid.names], grid.names)
        columns = [_title_aliases(title) for title in heads]
        for column, two in parts.items():
            own = (one for part in two if "/" not in part for one in _aliases(part, ""))
            columns[column] = (*columns[column], *own)
        found.append(
            Sheet(nth, grid.table, cells, rows, columns, axis, counts, *across, parts=parts)
        )
    for sheet in found:
        sheet.owners = (*_owners(sheet, found), *_heading(sheet))
    return found


def _key(name: str) -> str:
    return squeezed(bare(name)).strip(" :*↑↓")


def _split(title: str, others: set[str]) -> str:
    """A title such as "base EM (%)" in two, if another table has an arm "base"."""
    first, blank, rest = title.strip().partition(" ")
    known = _key(first) in others and JOINED not in title and re.match(r"[^\W\d_]", rest)
    return f"{first}{JOINED}{rest}" if blank and known and len(first) > 1 else title


def _heading(sheet: Sheet) -> tuple[str, ...]:
    """The heading of a table as its name, if it is one: "2. Validation loss"."""
    head = squeezed(bare(sheet.table.headings[-1])) if sheet.table.headings else ""
    name = re.sub(
        r"^[\s\d.、)一二三四五六七八九十#-]+|\s*\(.*\)|\s*(?:对比|比较|变化)$", "", head
    ).strip(" :")
    return (name,) if NAME[0] <= len(name) <= NAME[1] else ()


def _apart(every: list[tuple[str, ...]], names: Sequence[str]) -> list[tuple[str, ...]]:
    """Names of rows without what several share, which have what their brackets hold instead."""
    often = Counter(alias for aliases in every for alias in set(aliases))
    found = []
    for aliases, name in zip(every, names, strict=True):
        parts = _parts(name)
        own = tuple(alias for alias in aliases if often[alias] == 1 or alias in parts)
        inside = re.findall(r"[(\[]([^()\[\]]{2,20})[)\]]", squeezed(bare(name)))
        shared = len(own) < len(aliases)
        found.append((*own, *(one.strip() for one in inside if shared and one.strip() not in own)))
    return found


def _parts(name: str) -> list[str]:
    """The parts of a name such as "7B / β=0"."""
    plain = squeezed(bare(name)).strip(" :*↑↓")
    parts = [part.strip() for part in re.split(r"\s[/|·]\s", plain)]
    return [part for part in parts if _is_name(part)] if len(parts) > 1 else []


def _owners(sheet: Sheet, every: Sequence[Sheet]) -> tuple[str, ...]:
    """Names of other tables' rows and columns in the heading that a table stands under."""
    head = squeezed(sheet.table.headings[-1]) if sheet.table.headings else ""
    own = {alias for aliases in (*sheet.rows, *sheet.columns) for alias in aliases}
    groups = {
        group
        for other in every
        if other is not sheet
        for group in (*other.rows, *other.columns[1:])
        if not own & set(group)
    }
    fits = {group: [one for one in group if any(named(head, one))] for group in groups}
    longest = max((len(one) for found in fits.values() for one in found), default=0)
    best = {one for found in fits.values() for one in found if len(one) == longest}
    if len(best) != 1:
        return ()
    mine = [group for group in groups if best & set(group)]
    return tuple(dict.fromkeys(alias for group in mine for alias in group))


def _title_aliases(title: str) -> tuple[str, ...]:
    """The names of a column; of a header in two rows also each of them."""
    parts = title.split(JOINED)
    whole = _aliases(title.replace(JOINED, " "), "")
    return (*whole, *(one for part in parts[1:] and parts for one in _aliases(part, "")))


def titles(grid: Grid) -> list[str]:
    """Titles of columns; of a header in two rows both."""
    below = grid.table.rows[0] if grid.table.rows else ()
    in_two = (
        len(below) > 2
        and not below[0].strip()
        and not any(line == 0 for line, _ in grid.at)
        and any(not title.strip() for title in grid.titles[1:])
    )
    if not in_two:
        return _in_parts(grid.titles)
    made, above = list[str](), ""
    for title, under in zip(grid.titles, below, strict=True):
        above = title.strip() or above
        made.append(f"{above}{JOINED}{under}" if above and under.strip() else above or under)
    return made


def _in_parts(titles: Sequence[str]) -> list[str]:
    """Titles such as "A: loss" in their two parts, if several begin alike."""
    firsts = Counter(title.partition(": ")[0] for title in titles if ": " in title)
    return [
        title.replace(": ", JOINED, 1) if firsts[title.partition(": ")[0]] > 1 else title
        for title in titles
    ]


def axis_word(text: str) -> str:
    """What a header or a word before a number counts, under one name; '' if nothing known."""
    plain = bare(re.sub(r"\(.*?\)", "", bare(text))).casefold().strip(" :#")
    return next((axis for axis, words in AXES.items() if plain in words.split("|")), "")


def _words_of(head: str) -> list[str]:
    """A header, its parts, and its last word: "β＼epoch", "RCE Epoch"."""
    return [*re.split(r"[\\/|＼]", head), *bare(head).split()[-1:]]


def _counted(head: str, names: Mapping[int, str]) -> tuple[str, dict[int, float]]:
    """The axis of a table's rows, or columns, and where on it each of them is."""
    counts, more, words = dict[int, float](), set[int](), Counter[str]()
    axis = next(filter(None, map(axis_word, _words_of(head))), "")
    for row, name in names.items():
        match = _NUMBERED.fullmatch(re.sub(r"^第\s*(?=\d)", "", bare(name)))
        if match is None or re.search(r"[−–/]|vs|最", match[4]):  # "ep5 − best" is no step
            continue
        word = axis_word(match[1] or match[4] or "")
        if word or (axis and not (match[1] or match[4])):
            counts[row] = float(match[2].replace(",", "")) * (1000 if match[3] else 1)
            more |= {row} if match[1] and match[4] else set()
            words[word] += bool(word)
            axis = axis or word
    axis = max(words, key=lambda word: words[word], default="") or axis  # checkpoints by epoch
    plain = {at for row, at in counts.items() if row not in more}
    counts = {row: at for row, at in counts.items() if row not in more or at not in plain}
    return (axis, counts) if len(counts) >= 2 else ("", {})


@lru_cache(maxsize=KEPT)
def differ_in_number(one: str, other: str) -> bool:
    """Whether two titles are the same but for a number: "seed 1" and "seed 2"."""
    plain = [squeezed(bare(title)) for title in (one, other)]
    alike = {re.sub(r"\d+(?:\.\d+)?", "#", title) for title in plain}
    return len(alike) == 1 and plain[0] != plain[1]


def is_total(name: str) -> bool:
    """Whether a row or column is the total of the others."""
    return bool(_TOTAL.match(bare(name).strip(" :*")))


# --- names


@lru_cache(maxsize=KEPT)
def squeezed(text: str) -> str:
    """A text for finding names in it: of the same length, folded, without marks."""
    return "".join(map(_letter, text))


@cache
def _letter(letter: str) -> str:
    if letter in "*`_~\u200b":
        return " "
    if letter in "−–‑﹣":
        return "-"
    plain = unicodedata.normalize("NFKC", letter)
    return plain.casefold() if len(plain) == 1 and len(plain.casefold()) == 1 else letter


def _aliases(name: str, head: str) -> tuple[str, ...]:
    """All that a sentence may call a row or column."""
    plain = squeezed(bare(name)).strip(" :*↑↓")
    found = [plain]
    outside = re.sub(r"\s*[(\[].*?[)\]]", "", plain).strip()
    inside = re.findall(r"[(\[]([^()\[\]]+)[)\]]", plain)
    # "GRPO(β=0.05)" is named by its bracket too, "A (no KL)" by what stands before it.
    if outside and outside != plain and len(re.findall(r"[(\[]", plain)) == 1:
        found += [outside, *(one.strip() for one in inside if "=" in one)]
    value = re.search(r"=\s*(\d+\.\d+)\)?$", plain)
    if value:
        found.append(value[1])
    if "±" in plain:
        found.append(plain.partition("±")[0].strip())
    number = re.fullmatch(r"([\w .α-ω-]*?)\s*=?\s*([\d.]+(?:e-\d+)?)", plain)
    if number and not number[1] and head and not axis_word(head):
        found += [f"{squeezed(bare(head)).strip()}={number[2]}"]
    setting = re.fullmatch(r"((?:kl[ _])?(?:[α-ω]|beta|coef\w*|lr|系数))\s*(\d+\.\d+)", plain)
    if setting:  # "β 0.1" is "β = 0.1" in sentences
        found += [f"{setting[1]}={setting[2]}", setting[2]]
    return tuple(dict.fromkeys(one for one in (*found, *_parts(name)) if _is_name(one)))


def _is_name(text: str) -> bool:
    """Whether a sentence that has a text names something with it: no bare number, no one sign."""
    if re.fullmatch(r"[\d.,%]*", text):
        return bool(re.fullmatch(r"\d+\.\d+", text))  # arms by their coefficient alone
    return len(text) > 1 or text in ascii_lowercase or text in _STEMS


def named(text: str, alias: str) -> Iterator[tuple[int, int]]:
    """Where a squeezed text has a name, blanks aside; not inside longer words and numbers."""
    name = _finder(alias)
    for match in name.finditer(text) if name else ():
        yield match.span()


@lru_cache(maxsize=KEPT)
def _finder(alias: str) -> re.Pattern[str] | None:
    """What finds a name; None if it has no letters."""
    letters = [re.escape(letter) for letter in alias if not letter.isspace()]
    if not letters:
        return None
    body = r"\s*".join(letters)
    before = rf"(?<![{_LATIN}.])" if re.match(rf"[{_LATIN}]", alias) else ""
    behind = rf"(?![{_LATIN}%]|\.\d)" if re.search(rf"[{_LATIN}]$", alias) else ""
    return re.compile(f"{before}{body}{behind}")
