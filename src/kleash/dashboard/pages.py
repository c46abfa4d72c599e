"""The pages of a folder and of a study: index, study, arm, comparison. Items are in `items`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from kleash.dashboard.asking import Asking, cut
from kleash.dashboard.curves import MOST_CHARTS, MOST_LINES, Points, drawn, epochs
from kleash.dashboard.shelf import TORN, UNREAD, Nowhere, Plan, Shelf, size
from kleash.dashboard.worker import Unread, Worker, tell_comparison, tell_study
from kleash.plan import StudyFile
from kleash.plan.cells import Cell
from kleash.study.estimate import seconds_left

MOST_RUNS = 64
MARKS = {"done": "✓", "missing": "·", "running": "▶", "failed": "✗", "void": "∅"}


class Pages:
    """Pages of one folder."""

    def __init__(self, shelf: Shelf, worker: Worker) -> None:
        self.shelf, self.worker = shelf, worker

    # --- the index

    def index(self, request: Request) -> Response:
        """All studies, and runs that are in none."""
        ask = Asking(request)
        named, loose = self.shelf.below()
        studies = [self.study_row(ask, n, p) for n, p in named.items()]
        words = {True: ask.t("yes"), False: ask.t("no")}
        runs = [self.run_row(ask, path, words) for path in loose]
        names = [path.relative_to(self.shelf.folder).as_posix() for path in loose]
        ticks = [{"value": name, "name": name} for name in names]
        facts: dict[str, Any] = {"runs": runs, "ticks": ticks, "most_runs": MOST_RUNS}
        return ask.page("index.html", studies=studies, **facts)

    def study_row(self, ask: Asking, name: str, path: Path) -> dict[str, Any]:
        """A study in one line, or why it cannot be read."""
        row: dict[str, Any] = {"name": name, "address": ask.study(name)}
        try:
            file, _ = self.shelf.file(path)
            plan = self.shelf.plan(path)
        except UNREAD as error:
            return row | {"why": one_line(error)}
        state = "running" if plan.who else "missing" if plan.todo or not plan.cells else "done"
        done, total = plan.counts.get("done", 0), len(plan.cells)
        about = file.about if len(file.about) < 300 else file.about[:300] + "…"
        return row | {"about": about, "done": done, "total": total, "state": ask.t(state)}

    def run_row(self, ask: Asking, path: Path, words: Mapping[bool, str]) -> list[Any]:
        """A run in one line."""
        try:
            leash = self.shelf.leash(path)
        except TORN as error:
            leash = ask.t("unread", why=one_line(error))
        name = path.relative_to(self.shelf.folder).as_posix()
        link = {"address": ask.to("/run", run=name), "text": name}
        return [link, cut(leash), words[size(f"{path}/done") is not None]]

    # --- a run

    def run(self, request: Request) -> Response:
        """A run: its leash, whether it is finished, its curves."""
        ask = Asking(request)
        path = self.shelf.named_run(ask.text("run"))
        if size(f"{path}/meta.json") is None:
            raise Nowhere
        _, leash, finished = self.run_row(ask, path, {True: ask.t("yes"), False: ask.t("no")})
        charts = drawn([(path.name, [epochs(self.shelf, path)])], ask.language)
        facts = [leash, f"{ask.t('finished')}: {finished}"]
        return ask.page("run.html", name=path.name, facts=facts, charts=charts, fewer="")

    # --- a study

    def study(self, request: Request) -> Response:
        """Verdict, matrix, curves; live while it runs."""
        ask, name = Asking(request), request.path_params["study"]
        path = self.shelf.study(name)
        file, arms = self.shelf.file(path)
        plan = self.shelf.plan(path)
        seeds = sorted({cell.seed for cell, _ in plan.cells})
        base = path.relative_to(self.shelf.folder) / "runs"
        runs = [each.name for each in self.shelf.runs(path / "runs")]
        return ask.page(
            "study.html",
            name=name,
            about=cut(file.about),
            live=live_address(ask, name, plan, page="study"),
            seeds=seeds,
            matrix=self.matrix(ask, name, plan, seeds),
            ticks=[{"value": f"{base}/{run}", "name": run} for run in runs],
            most_runs=MOST_RUNS,
            items_address=f"{request.url.path}/items",
            disagree=ask.t(family("disagree", agents=file.of_agents)),
            choices=item_choices(ask, [a.name for a in arms], file),
            **self.progress(path, plan),
            **self.told(ask, name, path, plan),
            **self.curves(ask, path, [arm.name for arm in arms], file.seeds),
        )

    def progress(self, path: Path, plan: Plan) -> dict[str, Any]:
        """How far it is, and how long it will take by what jobs of a kind took."""
        left = None
        if plan.who and plan.todo:
            self.shelf.inside(path / "spent.jsonl")
            try:
                seconds = seconds_left(path, plan.todo)
            except TORN:
                seconds = None
            left = None if seconds is None else f"{seconds / 60 / max(1, plan.at_work):.1f}"
        return {"plan": plan, "left": left, "folder": str(path)}

    def told(self, ask: Asking, name: str, path: Path, plan: Plan) -> dict[str, Any]:
        """The verdict and a row for each arm, as far as they have been worked out."""
        try:
            stamp = self.result_stamp(path, plan)
            found = self.worker.ask(("study", path, stamp), tell_study, path, self.shelf.folder)
        except UNREAD as error:
            found = Unread(one_line(error))
        whole = found if found is None or isinstance(found, Unread) else found[ask.language]
        known = {} if whole is None or isinstance(whole, Unread) else whole["rows"]
        rows = []
        file, arms = self.shelf.file(path)
        for arm in arms:
            row = known.get(arm.name, {})
            link = {"address": ask.study(name, "/arm", arm=arm.name), "text": ask.arm(arm.name)}
            keys = ("kl", "score", "against", "gap", "word")
            rows.append([link, *(row.get(key, "…") for key in keys)])
        score = ask.t(family("score", agents=file.of_agents))
        return {"told": whole, "rows": rows, "score": score}

    def result_stamp(self, path: Path, plan: Plan) -> tuple[Any, ...]:
        """What the verdict depends on. While a study runs its plan says when cells were filled."""
        asked = self.shelf.stamp(path / "study.toml")
        done = plan.counts.get("done", 0), plan.counts.get("void", 0), len(plan.cells)
        if plan.who:
            return (asked, done)
        runs = self.shelf.runs(path / "runs") + self.shelf.runs(path)
        sizes = [size(f"{run}/scores.jsonl") for run in runs]
        return (asked, done, tuple(each for each in sizes if each is not None))

    def matrix(self, ask: Asking, name: str, plan: Plan, seeds: Sequence[int]) -> list[Any]:
        """A row for each arm: how many cells of each seed are done."""
        ids = {key: at for at, key in enumerate(plan.jobs)}
        rows = []
        for arm in dict.fromkeys(cell.arm for cell, _ in plan.cells):
            address = ask.study(name, "/arm", arm=arm)
            runs = [
                self.run_mark(ask, plan, (arm, seed), ids[arm, seed], address)
                if (arm, seed) in ids
                else None
                for seed in seeds
            ]
            rows.append({"name": ask.arm(arm), "address": address, "runs": runs})
        return rows

    def run_mark(
        self, ask: Asking, plan: Plan, key: tuple[str, int], at: int, address: str
    ) -> dict[str, Any]:
        """A run in the matrix."""
        places = plan.jobs[key]
        state, done = plan.job_state(places)
        text = f"{MARKS[state]} {done}/{len(places)}"
        return mark(f"r{at}", state, text, ask.t(state), address)

    def curves(
        self, ask: Asking, path: Path, names: Sequence[str], seeds: Sequence[int]
    ) -> dict[str, Any]:
        """Charts of all arms, or of as many as a page can hold, and that there are more."""
        most = MOST_LINES * MOST_CHARTS
        named = [(ask.arm(name), self.points(path, name, seeds)) for name in names[:most]]
        fewer = ""
        if len(names) > most:
            fewer = ask.t("first_arms", count=most, total=len(names))
        return {"charts": drawn(named, ask.language), "fewer": fewer}

    def points(self, path: Path, arm: str, seeds: Sequence[int]) -> list[Points]:
        """What the runs of an arm have logged; a run that cannot be read has no curve."""
        found = []
        for seed in seeds:
            try:
                found.append(epochs(self.shelf, self.shelf.place(path, arm, seed)))
            except UNREAD:
                continue
        return found

    # --- an arm

    def arm(self, request: Request) -> Response:
        """An arm: what it differs in, every cell, a curve for each seed."""
        ask, name = Asking(request), request.path_params["study"]
        path, arm = self.shelf.study(name), ask.text("arm")
        file, arms = self.shelf.file(path)
        plan = self.shelf.plan(path)
        cells = [(at, *plan.cells[at]) for at, (c, _) in enumerate(plan.cells) if c.arm == arm]
        known = next((each for each in arms if each.name == arm), None)
        if not cells and known is None:
            raise Nowhere
        shots = family("shots", agents=file.of_agents)
        head, rows = self.cell_rows(ask, name, cells, shots)
        seeds = sorted({cell.seed for _, cell, _ in cells})
        named = []
        if known is not None:
            by_seed = [(seed, self.points(path, arm, [seed])) for seed in seeds]
            named = [(ask.t("seed_n", n=seed), each) for seed, each in by_seed]
        return ask.page(
            "arm.html",
            name=name,
            arm=ask.arm(arm),
            trail=[(name, ask.study(name))],
            live=live_address(ask, name, plan, page="arm", arm=arm),
            keys=[] if known is None else [(k, cut(v)) for k, v in known.keys.items()],
            head=head,
            rows=rows,
            charts=drawn(named, ask.language),
            fewer="",
            **self.progress(path, plan),
        )

    def cell_rows(
        self, ask: Asking, name: str, cells: Sequence[tuple[int, Cell, str]], shots: str
    ) -> tuple[list[str], list[list[Any]]]:
        """Cells as a table: a row for each measurement, a column for each seed."""
        seeds = sorted({cell.seed for _, cell, _ in cells})
        table: dict[tuple[Any, ...], dict[int, Any]] = {}
        for at, cell, state in cells:
            spot = table.setdefault((cell.checkpoint, cell.split, cell.shots, cell.items), {})
            address = ask.study(name, "/cell", **cell._asdict())
            text = f"{MARKS[state]} {ask.t(state)}"
            spot[cell.seed] = mark(f"c{at}", state, text, ask.t(state), address)
        head = [ask.t(each) for each in ("checkpoint", "split", shots, "items")]
        head += [ask.t("seed_n", n=seed) for seed in seeds]
        return head, [[*key, *(by.get(s, "") for s in seeds)] for key, by in table.items()]

    # --- comparing

    def compare(self, request: Request) -> Response:
        """What `kleash compare` says of the runs that are ticked."""
        ask = Asking(request)
        names = list(dict.fromkeys(request.query_params.getlist("run")))
        ticks = [{"value": n, "name": n, "ticked": True} for n in names[:MOST_RUNS]]
        facts: dict[str, Any] = {"ticks": ticks, "most_runs": MOST_RUNS}
        if not 2 <= len(names) <= MOST_RUNS:
            told: Any = Unread(ask.t("tick_two", most=MOST_RUNS))
            return ask.page("compare.html", status=400, told=told, **facts)
        paths = [self.shelf.named_run(name) for name in names]
        stamp = [self.shelf.stamp(f) for p in paths for f in sorted(p.glob("*.json*"))]
        key = ("compare", tuple(paths), ask.language, tuple(stamp))
        told = self.worker.ask(key, tell_comparison, paths, self.shelf.folder, ask.language)
        return ask.page("compare.html", again=told is None, told=told, **facts)


def live_address(ask: Asking, name: str, plan: Plan, **query: str) -> str:
    """Where a page hears what has changed since it was made."""
    return ask.study(name, "/events", seen=plan.stamp, layout=plan.layout, **query)


def mark(at: str, state: str, text: str, label: str, address: str = "") -> dict[str, Any]:
    """A state that can change while the page is open."""
    return {"id": at, "state": state, "text": text, "label": label, "address": address}


def family(code: str, *, agents: bool) -> str:
    """The code of a sentence, for language agents where they have one of their own."""
    return f"{code}.agent" if agents else code


def item_choices(
    ask: Asking, arms: Sequence[str], file: StudyFile
) -> list[tuple[str, str, list[tuple[Any, Any]], Any]]:
    """What the filter of items can be set to, and what it is set to."""
    seeds, shots, agents = file.seeds, file.measure.shots, file.of_agents
    first, second = [*arms[:2], "", ""][:2]
    named = [(name, ask.arm(name)) for name in arms]
    said = family("in.pointer", agents=agents)
    kinds = [("score", ask.t("in.score")), ("pointer", ask.t(said))]
    first_shots = shots[0 if agents else -1]
    word = ask.t(family("shots", agents=agents))
    return [
        ("ours", ask.t("ours"), named, ask.text("ours", first)),
        ("theirs", ask.t("theirs"), named, ask.text("theirs", second)),
        ("seed", ask.t("seed"), [(s, s) for s in seeds], ask.number("seed", seeds[0])),
        ("shots", word, [(s, s) for s in shots], ask.number("shots", first_shots)),
        ("in", ask.t("in"), kinds, ask.text("in", "score")),
    ]


def one_line(error: BaseException) -> str:
    """An error as one line."""
    text = (str(error).splitlines() or [""])[0]
    return cut(text if text else type(error).__name__)
