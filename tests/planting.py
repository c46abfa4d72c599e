"""Errors planted in reports by a seed: seven kinds, one to a line, knowing nothing of the checker.

It works on the lines of a text with a few patterns of its own, so that what is found is not what
the reader of reports happens to understand. Each error contradicts something that stands in the
text: its witness, a line that is then left as it is. A number that stands alone is left alone.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from planting_field import (
    DERIVED,
    NUMBER,
    PURE,
    Field,
    Plant,
    base_of,
    cells,
    comes_out,
    decimals,
    derived_cells,
    numbers,
    shows,
    with_cell,
)

PLACE = re.compile(r"((?:step|epoch)\s*[(（]?\s*|第\s*)(\d+)", re.I)
BEST = re.compile(r"最佳|最小|最优|峰值|达到|best|peak|lowest|minimum|highest", re.I)
MANY = 16
CHINESE = re.compile(r"[\u4e00-\u9fff]")
WORDS = {
    "zh": ("显著", "明显", "大幅", "稳定地", "始终"),
    "en": ("significantly", "clearly", "substantially", "consistently", "dramatically"),
}
ENDS = {
    "zh": (
        "，差异在统计上显著",
        "，说明训练明显更稳定",
        "，证明该配置最优",
        "（p < 0.01）",
        "，收敛更快",
    ),
    "en": (
        ", a statistically significant difference",
        ", which clearly shows better stability",
        ", which proves that it is optimal",
        " (p < 0.01)",
        ", and it converges faster",
    ),
}


def digit_changed(number: str, rng: random.Random, *, last: bool = False) -> str:
    """One digit of a number changed: the last by one, or any of the first three that tell."""
    at = [i for i, letter in enumerate(number) if letter.isdigit()]
    leading = next((k for k, i in enumerate(at) if number[i] != "0"), 0)
    spot = at[-1] if last else rng.choice(at[leading : leading + 3])
    old = int(number[spot])
    new = (
        (old + rng.choice((1, -1))) % 10
        if last
        else rng.choice([d for d in range(1, 10) if d != old])
    )
    if last and abs(new - old) != 1:
        new = old - 1 if old else 1
    return number[:spot] + str(new) + number[spot + 1 :]


def changed_in(text: str, rng: random.Random, *, last: bool) -> str:
    found = [m for m in NUMBER.finditer(text) if len(re.sub(r"\D", "", m.group()).lstrip("0")) > 1]
    if not found:
        return text
    match = rng.choice(found)
    return (
        text[: match.start()] + digit_changed(match.group(), rng, last=last) + text[match.end() :]
    )


def arithmetic(field: Field) -> Plant | None:
    every = derived_cells(field)
    if not every:
        return None
    row, nth = field.rng.choice(every)
    part = cells(field.lines[row])[nth]
    base = base_of(field, row, nth)
    if base in field.planted:
        return None
    kept = () if base is None else (base,)
    signed = re.search(r"[+-](?=\d)", part)
    rows = next(rows for _, rows in field.tables() if row in rows)
    beside = [at for at, n in every if n == nth and at in rows and at not in (row, *field.touched)]
    if signed and field.rng.random() < 0.3 and re.search(r"[1-9]", part) and len(beside) > 1:
        turned = part.replace(signed.group(), "+" if signed.group() == "-" else "-", 1)
        line = with_cell(field.lines[row], nth, turned)
        return field.put(row, line, "arithmetic", *kept, *beside[:2])
    line = with_cell(field.lines[row], nth, changed_in(part, field.rng, last=False))
    seen = [] if shows(field, row, line) else field.witnesses(row, *NUMBER.findall(part))
    shown = seen or shows(field, row, line)
    return field.put(row, line, "arithmetic", *kept, *seen) if shown else None


def rounding(field: Field) -> Plant | None:
    """The last digit of a number that was worked out, or is quoted in a sentence."""
    quotes = [at for at in field.prose() if re.search(r"\d\.\d{2,}", field.lines[at])]
    every = derived_cells(field)
    if quotes and (not every or field.rng.random() < 0.5):
        at = field.rng.choice(quotes)
        found = list(re.finditer(r"(?<![\w.])\d+\.\d{2,}%?(?![\w.])", field.lines[at]))
        if not found:
            return None
        match = field.rng.choice(found)
        text = field.lines[at]
        new = digit_changed(match.group(), field.rng, last=True)
        seen = field.witnesses(at, match.group())
        line = text[: match.start()] + new + text[match.end() :]
        return field.put(at, line, "rounding", *seen) if seen else None
    # Of differences that were taken before rounding a quarter miss the printed ones by a digit:
    # one that does shows nothing, unless there are many that do not.
    exact = [one for one in every if comes_out(field, *one)]
    if len(exact) < MANY * (1 + len(field.planted & {row for row, _ in every})):
        return None
    row, nth = field.rng.choice(exact)
    part = cells(field.lines[row])[nth]
    base = base_of(field, row, nth)
    kept = () if base is None else (base,)
    line = with_cell(field.lines[row], nth, changed_in(part, field.rng, last=True))
    return field.put(row, line, "rounding", *kept)


def numeric(line: str) -> list[int]:
    """The cells of a row, but the first, that hold a number with decimals."""
    return [nth for nth, part in enumerate(cells(line)) if nth and NUMBER.search(part)]


def copied(field: Field) -> Plant | None:
    """A row's numbers put over those of another row of its table."""
    tables = [
        rows
        for _, rows in field.tables()
        if sum(len(numeric(field.lines[r])) > 1 for r in rows) > 1
    ]
    if not tables:
        return None
    rows = [row for row in field.rng.choice(tables) if len(numeric(field.lines[row])) > 1]
    source, target = field.rng.sample(rows, 2)
    if target in field.touched or source in field.touched:
        return None
    if numeric(field.lines[source]) != numeric(field.lines[target]):
        return None
    made = with_cell(field.lines[source], 0, cells(field.lines[target])[0])
    if numbers(made) == numbers(field.lines[target]):
        return None  # they are the same anyway
    return field.put(target, made, "copied", source)


def swapped(field: Field) -> Plant | None:
    """Two measured numbers of a row, each in the other's column."""
    rows = [
        (head, row)
        for head, rows in field.tables()
        for row in rows
        if len(numeric(field.lines[row])) > 1
    ]
    if not rows:
        return None
    head, row = field.rng.choice(rows)
    titles = cells(field.lines[head])
    nths = [
        n for n in numeric(field.lines[row]) if n < len(titles) and not DERIVED.search(titles[n])
    ]
    if len(nths) < 2:
        return None
    one, other = field.rng.sample(nths, 2)
    parts = cells(field.lines[row])
    both = [PURE.match(parts[nth]) for nth in (one, other)]
    if None in both or len({match[1] for match in both if match}) == 1:
        return None
    line = with_cell(field.lines[row], one, parts[other])
    line = with_cell(line, other, parts[one])
    seen = field.witnesses(row, *(match[1] for match in both if match))
    formats = [len(match[1].strip("%").partition(".")[2]) for match in both if match]
    rows = next(rows for top, rows in field.tables() if top == head)
    alike = [at for at in rows if at != row and at not in field.planted]
    printed = [[decimals(field.lines[at], nth) for at in alike] for nth in (one, other)]
    if formats[0] != formats[1] and printed == [[each] * len(alike) for each in formats]:
        seen += alike[:2] if len(alike) > 1 else []
    return field.put(row, line, "swapped", *seen) if seen or shows(field, row, line) else None


def word(field: Field) -> Plant | None:
    """A word or half a sentence for which nothing in the report speaks."""
    prose = [at for at in field.prose() if not field.lines[at].rstrip().endswith((":", "：", "**"))]
    if not prose:
        return None
    at = field.rng.choice(prose)
    line = field.lines[at].rstrip()
    end = field.rng.choice(ENDS[field.language])
    stop = line[-1] if line[-1] in "。.；;！!" else ""
    return field.put(at, line[: len(line) - len(stop)] + end + stop, "word")


def best_step(field: Field) -> Plant | None:
    """Another step or epoch beside a best, or in a sentence on one."""
    lines = [
        at
        for at, line in enumerate(field.lines)
        if BEST.search(line) and PLACE.search(line) and not line.startswith("#")
    ]
    lines = [at for at in lines if re.search(r"\d\.\d", field.lines[at])]
    if not lines:
        return None
    at = field.rng.choice(lines)
    match = field.rng.choice(list(PLACE.finditer(field.lines[at])))
    old = int(match[2])
    unit = 5 if "step" in match[1].casefold() and old % 5 == 0 else 1
    new = old + unit * field.rng.choice((-3, -2, -1, 1, 2))
    text = field.lines[at]
    values = {one.strip("+-%") for one in NUMBER.findall(text)}
    step = re.compile(rf"(?<![\d.]){old}(?![\d.])")
    seen = [
        line
        for line, other in enumerate(field.lines)
        if line != at and line not in field.planted and step.search(other)
        if any(one in other for one in values if len(one) > 4)
    ]
    if new <= 0 or not seen:
        return None
    line = f"{text[: match.start(2)]}{new}{text[match.end(2) :]}"
    return field.put(at, line, "best step", seen[0])


def typo(field: Field) -> Plant | None:
    """A digit of a measured number that the row works with, or that another line prints."""
    rows = [
        (head, row) for head, rows in field.tables() for row in rows if numeric(field.lines[row])
    ]
    if not rows:
        return None
    head, row = field.rng.choice(rows)
    titles = cells(field.lines[head])
    nths = [
        n for n in numeric(field.lines[row]) if n < len(titles) and not DERIVED.search(titles[n])
    ]
    if not nths:
        return None
    nth = field.rng.choice(nths)
    parts = cells(field.lines[row])
    match = NUMBER.search(parts[nth])
    if match is None or not PURE.match(parts[nth]):
        return None
    new = digit_changed(match.group(), field.rng)
    text = parts[nth][: match.start()] + new + parts[nth][match.end() :]
    line = with_cell(field.lines[row], nth, text)
    seen = [] if shows(field, row, line) else field.witnesses(row, match.group())
    return field.put(row, line, "typo", *seen) if seen or shows(field, row, line) else None


KINDS: dict[str, Callable[[Field], Plant | None]] = {
    "arithmetic": arithmetic,
    "rounding": rounding,
    "copied": copied,
    "swapped": swapped,
    "word": word,
    "best step": best_step,
    "typo": typo,
}


def planted(
    text: str, seed: int, count: int = 20, kinds: tuple[str, ...] = ()
) -> tuple[str, list[Plant]]:
    """A text with so many errors, of all kinds in turn as far as it has places for them."""
    language = "zh" if len(CHINESE.findall(text)) > 50 else "en"
    field = Field(text.split("\n"), language, random.Random(seed), set())
    plants: list[Plant] = []
    every = list(kinds or KINDS)
    tries = 0
    while len(plants) < count and tries < 60 * count:
        kind = every[(len(plants) + tries // 20) % len(every)]
        plant = KINDS[kind](field)
        tries += 1
        if plant is not None:
            plants.append(plant)
    return "\n".join(field.lines), plants
