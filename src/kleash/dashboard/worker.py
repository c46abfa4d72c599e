"""What takes longer than a page may: made in another process, one thing after the other, and kept.

A page asks, and gets the answer or None; it is then shown without, and looks again.
"""

from __future__ import annotations

import json
import os
import signal
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing import get_context, parent_process
from pathlib import Path
from stat import S_ISDIR, S_ISLNK, S_ISREG
from threading import RLock, Thread
from typing import Any

from kleash.catalogue import LANGUAGES, Language
from kleash.errors import DataError

MOST = 64
MOST_FILES = 200_000


@dataclass(frozen=True)
class Unread:
    """Why there is no answer, in one line."""

    why: str


class Worker:
    """One process for all that is long; it starts when it is first needed."""

    def __init__(self) -> None:
        self.pool: ProcessPoolExecutor | None = None
        self.process: Future[int] | None = None
        self.asked: OrderedDict[Hashable, Future[Any]] = OrderedDict()
        self.lock = RLock()  # pages are made in threads

    def ask(self, name: Hashable, make: Callable[..., Any], *given: Any) -> Any:
        """What `make` says, None while it works; the name holds all that it depends on."""
        with self.lock:
            if name not in self.asked:
                if self.pool is None:
                    spawn = get_context("spawn")  # a fork of threads is no safe place to work in
                    self.pool = ProcessPoolExecutor(1, spawn, initializer=settle)
                    self.process = self.pool.submit(os.getpid)
                self.asked[name] = self.pool.submit(told, make, *given)
            self.asked.move_to_end(name)
            self.forget()
            future = self.asked[name]
        if not future.done():
            return None
        try:
            return future.result()
        except BrokenProcessPool:
            self.close()
            return Unread("the process that worked it out has died: is there enough memory?")

    def forget(self) -> None:
        """Let the oldest go; what nobody waits for any more is not begun."""
        while len(self.asked) > MOST:
            self.asked.popitem(last=False)[1].cancel()

    def close(self) -> None:
        """End the process."""
        if self.pool is not None and self.process is not None:
            if self.process.done() and self.process.exception() is None:
                with suppress(ProcessLookupError):
                    os.kill(self.process.result(), signal.SIGTERM)
            self.pool.shutdown(cancel_futures=True)
        self.pool = None
        self.asked.clear()


def settle() -> None:
    """Pages come first; and when the server is gone, by whatever signal, so are we."""
    os.nice(5)
    server = parent_process()
    assert server is not None  # it started us

    def follow() -> None:
        server.join()
        os._exit(1)

    Thread(target=follow, daemon=True).start()


def told(make: Callable[..., Any], *given: Any) -> Any:
    """The answer, or one line for whatever a torn or foreign file makes readers raise."""
    from kleash.dashboard.shelf import TORN

    try:
        return make(*given)
    except TORN as error:
        text = str(error).splitlines()[0][:300] if str(error) else ""
        return Unread(text if isinstance(error, DataError) else f"{type(error).__name__}: {text}")


def check_links(folder: Path, root: Path) -> None:
    """Refuse a folder with a link that leads out of what is served."""
    count = 0
    for above, folders, files in os.walk(folder):
        count += len(files)
        if count > MOST_FILES:
            raise DataError(f"{folder.name} holds more than {MOST_FILES:,} files")
        for name in (*folders, *files):
            path = Path(above) / name
            mode = path.lstat().st_mode
            if S_ISLNK(mode) and not path.resolve().is_relative_to(root):
                raise DataError(f"{path.relative_to(root)} leads out of the folder that is served")
            if not (S_ISREG(mode) or S_ISDIR(mode) or S_ISLNK(mode)):
                raise DataError(f"{path.relative_to(root)} is no file")


# --- what is made there


def tell_study(folder: Path, root: Path) -> dict[Language, dict[str, Any]]:
    """The verdict, what limits it, and a row for each arm, in both languages."""
    from kleash.catalogue.screen import word
    from kleash.report.answer import verdict
    from kleash.report.material import Material, plain
    from kleash.report.opening import gap_of, limits
    from kleash.results import results

    check_links(folder, root)
    found = results(folder)
    made: dict[Language, dict[str, Any]] = {}
    for language in LANGUAGES:
        material = Material(found.file.name, language, found.comparison, [], [], found)
        rows = {
            row.name: {
                "kl": plain(row.kl),
                "score": material.score(row.score),
                "against": material.arm(row.against),
                "gap": "" if row.gap is None else gap_of(material, row.gap),
                "word": "" if row.gap is None else f"{word(row.gap, language)} [{row.gap.level}]",
                "late": row.late,
            }
            for row in found.rows
        }
        made[language] = {
            "verdict": texts(verdict(material)),
            "limits": texts(limits(material)),
            "rows": rows,
        }
    return made


def texts(parts: Sequence[Any]) -> list[str]:
    """Paragraphs and lists as lines."""
    from kleash.report.markdown import clean
    from kleash.report.parts import Cards, Lines, Paragraph, Stated, cells, text_of

    lines: list[Any] = []
    for part in parts:
        if isinstance(part, Paragraph):
            lines.append(part.line)
        elif isinstance(part, Stated):
            lines += [part.decision, *([part.why] if part.why else [])]
        elif isinstance(part, Cards):
            lines += [" ".join((card.heading, *card.lines)) for card in part.cards]
        elif isinstance(part, Lines):
            lines += part.lines
    return [clean("".join(text_of(cell) for cell in cells(line))) for line in lines]


def tell_comparison(paths: Sequence[Path], root: Path, language: Language) -> dict[str, Any]:
    """What `kleash compare` says of runs, as blocks."""
    from kleash.catalogue import screen
    from kleash.compare import compare
    from kleash.imports import read
    from kleash.report import curves_of, of_sources

    for path in paths:
        check_links(path, root)
    sources = [read(path) for path in paths]
    found = compare(sources)
    charts = curves_of(of_sources(sources, found, "", language))
    blocks = screen.blocks(found, language, whole=True)
    return {
        "title": screen.title(found, language),
        # What makes all rows of a table stays here: a page shows the brief ones.
        "charts": [replace(each, every=tuple, brief=each.shown) for each in charts],
        "blocks": [(b.heading, b.lines, b.numbered, b.table) for b in blocks],
    }


def tell_pools(given: str, split: str, study: Path) -> dict[str, list[str]]:
    """By query the ids of its pool, made by the function that made them for training."""
    from importlib.util import find_spec

    if find_spec("torch") is None:
        raise DataError("it needs torch: pip install 'kleash[train]'")
    from kleash.answer import answerer
    from kleash.data import dataset
    from kleash.demos.pool import make_pools
    from kleash.embed import KEPT_ROWS, encoder
    from kleash.recipe import SelectorRecipe, recipe_from

    recipe = recipe_from(json.loads(given))
    assert isinstance(recipe, SelectorRecipe)
    data = dataset(recipe.data, recipe.data_seed, recipe.data_options)
    embed = encoder(
        recipe.encoder,
        data.image,
        lambda: answerer(recipe.answerer, data.image, options=recipe.answerer_options),
        options=recipe.encoder_options,
        kept=study / KEPT_ROWS,
    ).embed
    items, demonstrations = data.queries(split), data.demonstrations
    rows = make_pools(
        recipe.pool,
        recipe.data_seed,
        items,
        embed(items),
        demonstrations,
        embed(demonstrations),
    )
    return {
        item.id: [demonstrations[place].id for place in row.tolist()]
        for item, row in zip(items, rows, strict=True)
    }
