"""What `import kleash` offers a notebook. Every function does what the verb of its name does.

Here are no numbers and no sentences: each calls what the command line calls, and what comes back
is a frame of polars or an object that has some. Keys of a recipe or a study are keyword arguments.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kleash.errors import ConfigError, DataError
from kleash.runs import run as folder
from kleash.runs.run import frame_of
from kleash.study.results.reading import Names, Place, Runs, read, sources_at

__all__ = ["Runs", "read"]  # what was read is shown here, and made in its room
if TYPE_CHECKING:
    import polars as pl

    from kleash.compare.comparison import Comparison as Answer
    from kleash.report.parts import Document
    from kleash.report.words import Language
    from kleash.study.plan import StudyFile
    from kleash.types import Heard

LONGEST = 300  # characters of a `repr`: a notebook prints them unasked
ROWS = {
    "verdicts": ("question", "arm", "against", "verdict", "level", "metric", "estimate"),
    "arms": ("name", "role", "runs"),
    "checks": ("severity", "code", "message"),
    "confounds": ("kind", "key", "name", "arms", "values"),
    "next": ("what", "cost", "why"),
}
"""The frames of a comparison, and the columns that each has even without rows."""
OF_ALL = ("trend", "recommend")  # questions about more arms than a pair


def train(
    config: Place = "default",
    *,
    out: Place | None = None,
    new: bool = False,
    device: str = "cpu",
    log_to: str = "",
    listen: Callable[[Heard], None] = lambda heard: None,
    **keys: Any,
) -> Run:
    """Train a run to its end: `default`, `agent`, a TOML file, or a run's folder to go on with.

    `train("default", seed=3, leash={"coefficient": 0.12})`; `keys` lists all that can be given,
    and `from_` is the key `from`. What a run reports while it trains goes to `listen`.
    """
    from kleash.study.plan.file import as_written
    from kleash.train import single

    place = None if out is None else Path(out)
    path, recipe, given = single.resolve_run(os.fspath(config), as_written(keys), place, new=new)
    single.need_torch(device)
    from kleash.runs.sinks import sink_names
    from kleash.train import ranks

    sinks = sink_names(log_to)
    with ranks.joined(device) as here:
        ranks.check(recipe)
        run, _ = single.train_run(path, recipe, given, device=here, sinks=sinks, listen=listen)
    return Run.open(run.path)


def evaluate(
    run: Place,
    checkpoint: str = "last",
    *,
    shots: Sequence[int] = (),
    items: int | None = None,
    split: str = "test",
    baselines: bool = False,
    device: str = "cpu",
) -> pl.DataFrame:
    """Score every item at some checkpoints (names with commas, `last`, `all`): mean and interval.

    The scores of single items are then in `run.frame("score")`.
    """
    from kleash.train import single

    single.need_torch(device)
    from kleash.train.evaluate import table

    opened = Run.open(Path(run))
    wanted = single.measure(
        opened,
        checkpoint,
        shots=shots,
        items=items,
        split=split,
        baselines=baselines,
        device=device,
    )
    return frame_of(table(opened, wanted))


def study(  # noqa: PLR0913  one for each option of the verb
    what: Place = "",
    *,
    out: Place | None = None,
    jobs: int = 0,
    on: str = "local",
    gpus: str = "",
    until: str = "",
    device: str = "cpu",
    log_to: str = "",
    **keys: Any,
) -> Study:
    """Run and report a study: a bundled one, a TOML file, or a study's folder to go on with.

    `study("mine.toml", seeds=3)`; keys are those of the file. Jobs run in processes of their own.
    """
    from kleash.report import write
    from kleash.study.plan.file import as_written
    from kleash.study.results import results
    from kleash.study.whole import asked_of, resolve_study, run_whole

    place = None if out is None else Path(out)
    file, path = resolve_study(os.fspath(what), out=place, changes=as_written(keys))
    asked = asked_of(file, path, jobs=jobs, on=on, gpus=gpus, device=device, log_to=log_to)
    ran, file = run_whole(asked, until=until)
    if not ran.stopped:
        write(results(path, file=file))
    return Study(path)


def load(path: Place) -> Run | Study:
    """The run or the study in a folder."""
    return Study(path) if (Path(path) / "study.toml").is_file() else Run.open(Path(path))


def compare(
    *sources: Place | Runs,
    on: str = "",
    baseline: str = "",
    margin: float | None = None,
    names: Names | None = None,
    unit: Sequence[str] = (),
    lang: Language = "en",
) -> Comparison:
    """Compare runs of any tool, or what was `read`: verdicts, why, and what to run next."""
    from kleash.compare.comparison import Wish
    from kleash.compare.comparison import compare as answer

    found = [each for one in sources if isinstance(one, Runs) for each in one.sources]
    places = [one for one in sources if not isinstance(one, Runs)]
    if places or names or not found:
        found += sources_at(places, names)
    return Comparison(answer(found, Wish(on, baseline, margin, units=tuple(unit))), lang)


def report(
    *sources: Place,
    to: Place | None = None,
    names: Names | None = None,
    unit: Sequence[str] = (),
    tables: bool = False,
    lang: Language | None = None,
) -> Page:
    """The page on a study or any sources; also written to a file, if `to` is .html or .md."""
    from kleash.report import of_sources, short_page, study_material, tables_of

    paths = [Path(source) for source in sources]
    if len(paths) == 1 and not names and (paths[0] / "study.toml").is_file():
        from kleash.study.results import results

        made = study_material(results(paths[0]), lang or "")
    else:
        from kleash.compare.comparison import Wish
        from kleash.compare.comparison import compare as answer

        found = sources_at(sources, names)
        name = ", ".join(each.name or Path(each.path).name for each in found)
        made = of_sources(answer(found, Wish(units=tuple(unit))), name, lang or "en")
    page = Page(tables_of(made) if tables else short_page(made))
    if to is not None:
        page.write(to)
    return page


def keys(config: str = "default") -> pl.DataFrame:
    """Every key of a recipe (`default` or `agent`): its default, and what it does."""
    from kleash.train.single import recipe_keys

    rows = recipe_keys(agent=config == "agent")
    return frame_of(dict(zip(("key", "default", "what"), row, strict=True)) for row in rows)


class Run(folder.Run):
    """A training as a folder; `frame("step")` and the like are its lines."""

    def policy(self, checkpoint: str = "last") -> Any:
        """The policy of a checkpoint, a torch module on the CPU, proven to be the trained one."""
        from kleash.train import single

        single.need_torch()
        return single.policy_of(self, checkpoint)


class Study:
    """Arms × seeds in a folder: `results()` says what they show, `runs` are the trainings."""

    def __init__(self, path: Place) -> None:
        self.path = Path(path)

    def __fspath__(self) -> str:
        return str(self.path)

    @property
    def file(self) -> StudyFile:
        """What was asked for."""
        from kleash.study.plan import read_study

        return read_study(str(self.path))

    @property
    def runs(self) -> list[Run]:
        """Its trainings, by name."""
        place = self.path / "runs"
        return [Run.open(each.path) for each in folder.list_runs(place)] if place.is_dir() else []

    def results(self) -> pl.DataFrame:
        """A row for each arm: keys, score and KL over seeds, gap to another arm, gain on its start.

        A mean is `score.estimate`, its interval `score.low` and `score.high`.
        """
        measured = [f"{of}.{end}" for of in ("score", "kl") for end in ("estimate", "low", "high")]
        judged = [f"{of}.{end}" for of in ("gap", "gain") for end in ("verdict", "estimate")]
        return frame_of(self._plain()["arms"], ["arm", "against", *measured, *judged])

    def cells(self) -> pl.DataFrame:
        """A row for each measurement, and of those that are not there why, and the command."""
        return frame_of(self._plain()["cells"])

    def _plain(self) -> dict[str, Any]:
        from kleash.study.results import results
        from kleash.study.results.summary import plain

        return plain(results(self.path))

    def __repr__(self) -> str:
        return _brief(f"<Study {self.path}: {len(self.file.seeds)} seeds, {len(self.runs)} runs>")


class Comparison:
    """What can be said of arms: `frame` has it as rows, `print` shows the screen of the verb."""

    def __init__(self, record: Answer, lang: Language = "en") -> None:
        self.record, self.lang, self.baseline = record, lang, record.baseline

    def frame(self, kind: str = "verdicts") -> pl.DataFrame:
        """Rows: `verdicts` (of `arm` against another), `arms`, `checks`, `confounds`, `next`."""
        if kind not in ROWS:
            raise DataError(f"no frame {kind!r}: there is {', '.join(ROWS)}")
        from kleash.report.plain import plain

        rows = plain(self.record, self.lang)["findings" if kind == "checks" else kind]
        for row in rows if kind == "verdicts" else ():
            if row["question"] not in OF_ALL:
                row |= zip(("arm", "against"), row["arms"], strict=False)
            row["narrow"] = dict(zip(("low", "high"), row["narrow"] or (), strict=False))
        return frame_of(rows, ROWS[kind])

    @property
    def answer(self) -> str:
        """Which arm to use, in a sentence."""
        from kleash.report.words.verdicts import decision

        return decision(self.record, self.lang)

    def __str__(self) -> str:
        from kleash.report import screen

        return screen.terminal(self.record, self.lang)

    def _repr_markdown_(self) -> str:
        from kleash.report.markdown import markdown_of
        from kleash.report.screen import document

        return markdown_of(document(self.record, self.lang))

    def __repr__(self) -> str:
        arms = [arm["name"] for arm in self.record.arms]
        return _brief(f"<Comparison of {len(arms)} arms: {', '.join(arms)}. {self.answer}>")


class Page:
    """A report: shown as Markdown in a notebook, written as a page or as Markdown."""

    def __init__(self, document: Document) -> None:
        self.document = document

    def write(self, to: Place) -> None:
        """Put it in a file, as its ending says."""
        from kleash.report import html_of, markdown_of, put

        path, writers = Path(to), {".html": html_of, ".md": markdown_of}
        if path.suffix not in writers:
            raise ConfigError(f"{path}: a page is written to a file that ends in .html or .md")
        put(path, writers[path.suffix](self.document).encode())

    def __str__(self) -> str:
        from kleash.report.terminal import terminal_of

        return terminal_of(self.document, 100)

    def _repr_markdown_(self) -> str:
        from kleash.report.markdown import markdown_of

        return markdown_of(self.document)

    def __repr__(self) -> str:
        names = ", ".join(each.heading for each in self.document.sections)
        return _brief(f"<Page {self.document.title!r}: {names}>")


def _brief(text: str) -> str:
    """A `repr` that fits."""
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 2]}…>"
