"""Fit the weights by which `kleash check` tells where a number of a sentence comes from.

    python scripts/fit_sources.py tests/planted_by_hand

Takes every `report.md` of folders and of archives in them: reports without errors. The weights are
those with which the numbers that stand in them are likeliest, held small; they go to
`src/kleash/written/sources/weights.json`.
"""

from __future__ import annotations

import json
import sys
import tarfile
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from multiprocessing import Pool
from pathlib import Path

from kleash.imports.markdown.document import drafted
from kleash.written.book import Book
from kleash.written.grids import grids
from kleash.written.listings import with_listings
from kleash.written.page import read_page
from kleash.written.printed import sheets
from kleash.written.prose import sentences
from kleash.written.sources.asks import Ask
from kleash.written.sources.judge import fitting, is_judged, nowhere, origins
from kleash.written.sources.of_tables import Pattern
from kleash.written.sources.views import Reader
from kleash.written.sources.weights import elsewhere, features

HELD = 0.25  # for each weight, times its square: how small weights are held
ROUNDS, RATE = 80, 0.1
LEAST = 0.02  # weights that are smaller are left out
TO = Path(__file__).parents[1] / "src/kleash/written/sources/weights.json"
Told = list[tuple[Pattern, int, float]]
"""Of one number: each pattern, how often it is met, and how much of it gives the number."""


def reports(given: list[str], room: Path) -> Iterator[Path]:
    """Every report of folders, and of archives in them."""
    for name in map(Path, given):
        yield from sorted(name.rglob("report.md"))
        for nth, path in enumerate(sorted(name.rglob("*.tar.xz"))):
            with tarfile.open(path) as archive:
                archive.extractall(room / str(nth), filter="data")
    yield from sorted(room.rglob("report.md"))


def told(path: Path) -> list[Told]:
    """What each number of a report may be."""
    page = read_page(path)
    book = Book.of(sheets(grids(with_listings(drafted(path), page))), page)
    reader, found = Reader(book, page), []
    for sentence in sentences(page, book.sheets) if book.sheets else ():
        for said in filter(lambda one: is_judged(sentence, one), sentence.numbers):
            ask = Ask.of(sentence, said)
            counts, fits = Counter[Pattern](), defaultdict[Pattern, float](float)
            for one in origins(reader, ask):
                counts[one.pattern] += 1
                fits[one.pattern] += fitting(said, one)
            lost = elsewhere(ask.kind, said.figure.digits)
            own = [(pattern, count, fits[pattern]) for pattern, count in counts.items()]
            found.append([*own, (lost, 1, nowhere(said))])
    return found


def fitted(every: list[Told]) -> dict[str, float]:
    """The weights with which all numbers are likeliest."""
    import torch

    patterns = {pattern: nth for nth, pattern in enumerate({p for own in every for p, *_ in own})}
    names: dict[str, int] = {}
    rows = [[names.setdefault(one, len(names)) for one in features(p)] for p in patterns]
    flat = torch.tensor([one for row in rows for one in row])
    starts = torch.tensor([0, *(len(row) for row in rows)]).cumsum(0)[:-1]
    entries = [(nth, *one) for nth, own in enumerate(every) for one in own]
    number = torch.tensor([nth for nth, *_ in entries])
    pattern = torch.tensor([patterns[one] for _, one, _, _ in entries])
    count = torch.tensor([float(met) for _, _, met, _ in entries])
    fits = torch.tensor([given for *_, given in entries])
    weights = torch.zeros(len(names), requires_grad=True)
    steps = torch.optim.Adam([weights], lr=RATE)
    for nth in range(ROUNDS):
        steps.zero_grad()
        sums = torch.nn.functional.embedding_bag(flat, weights[:, None], starts, mode="sum")[:, 0]
        heavy = sums[pattern].clamp(-30, 30).exp()
        zeros = torch.zeros(len(every))
        right = zeros.index_add(0, number, heavy * fits) / zeros.index_add(0, number, heavy * count)
        lost = -right.clamp_min(1e-12).log().sum() + HELD * (weights**2).sum()
        lost.backward()
        steps.step()
        if nth % 20 == 0 or nth == ROUNDS - 1:
            sys.stdout.write(f"round {nth}: {float(lost.detach()) / len(every):.4f} per number\n")
    found = {name: round(float(weights[nth].detach()), 3) for name, nth in names.items()}
    return {name: one for name, one in sorted(found.items()) if abs(one) >= LEAST}


def main() -> None:
    """Read, fit, write."""
    with tempfile.TemporaryDirectory() as room, Pool(2) as pool:
        paths = list(reports(sys.argv[1:], Path(room)))
        every = [one for own in pool.imap_unordered(told, paths) for one in own]
    sys.stdout.write(f"{len(paths)} reports, {len(every)} numbers\n")
    found = fitted(every)
    TO.write_text(json.dumps(found, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
