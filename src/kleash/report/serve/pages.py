"""The pages of a folder: index, study, run, comparison. Items are in `items`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from kleash.config import read_toml
from kleash.report.charts import blocks
from kleash.report.serve.answers import Background, Unread, comparison, run_curves, study_answer
from kleash.report.serve.store import (
    MARKS,
    TORN,
    UNREAD,
    Plan,
    Store,
    Study,
    reading,
    size,
    stamp,
    who,
)
from kleash.report.serve.visit import MOST_RUNS, ROWS, Visit, cut, one_line
from kleash.runs.run import read_json
from kleash.study.estimate import seconds_left
from kleash.study.plan import BASELINE, dotted
from kleash.study.plan.folder import job_of

SPARKS = 100  # on the index
STATES = ("running", "done", "unfinished")


class Pages:
    """Pages of one folder."""

    def __init__(self, store: Store, background: Background) -> None:
        self.store, self.background = store, background

    # --- the index

    def index(self, request: Request) -> Response:
        """Studies and runs that are in none; what is looked for is sought in studies, too."""
        visit = Visit(request)
        wanted = {name: visit.text(name).strip() for name in ("q", "tag", "state")}
        studies, loose = self.store.below()
        found = [self.study_row(visit, path) for path in studies]
        runs = list(loose)
        if any(wanted.values()):
            runs += [run for study in studies for run in self.store.runs(study).values()]
        rows = [self.run_row(visit, path) for path in runs]
        tags = sorted({tag for row in (*found, *rows) for tag in row["tags"]})
        rows = [row for row in rows if fits(row, wanted)]
        for at, row in enumerate(rows[:SPARKS]):
            rows[at] = row | self.spark([row["path"]])
        return visit.page(
            "index.html",
            studies=[row for row in found if fits(row, wanted)],
            runs=rows[:ROWS],
            left=max(0, len(rows) - ROWS),
            tags=tags,
            states={state: visit.t(state) for state in STATES},
            wanted=wanted,
        )

    def study_row(self, visit: Visit, path: Path) -> dict[str, Any]:
        """A study in one line, or why it cannot be read."""
        name = self.store.name(path)
        row: dict[str, Any] = {"name": name, "address": visit.study(name), "tags": []}
        try:
            study, plan = self.store.study(self.store.guard(path)), self.store.plan(path)
        except UNREAD as error:
            return row | {"why": one_line(error), "state": ""}
        arm, word = recommended(visit, path)
        shown = next((each for each in study.arms if each.name == arm), study.arms[0])
        return row | {
            "about": cut(study.file.about)[:300],
            "tags": study.tags,
            "state": plan.state,
            "done": plan.counts.get("done", 0),
            "total": len(plan.cells),
            "word": word,
            **self.spark(
                [path / f"runs/{shown.name}-s{seed}" for seed in study.file.seeds[:SPARKS]]
            ),
        }

    def run_row(self, visit: Visit, path: Path) -> dict[str, Any]:
        """A run in one line."""
        name = self.store.name(path)
        row = {"name": name, "path": path, "address": visit.to("/run", run=name), "tags": []}
        try:
            facts = self.store.facts(path)
        except UNREAD as error:
            return row | {"about": visit.t("unread", why=one_line(error)), "state": ""}
        return row | {"about": facts.leash, "tags": facts.tags, "state": run_state(path)}

    def spark(self, runs: Iterable[Path]) -> dict[str, str]:
        """How validation went over epochs, and where it stands."""
        course = self.store.validation(runs)
        return {"spark": blocks(course), "last": f"{course[-1]:.3f}"} if course else {}

    # --- a study

    def study(self, request: Request) -> Response:
        """The report's blocks, cells done by arm and seed, curves; live while it runs."""
        visit, name = Visit(request), request.path_params["study"]
        path = self.store.find_study(name)
        study, plan = self.store.study(path), self.store.plan(path)
        visit.of_agents = study.file.of_agents
        runs, seeds = self.store.folders(path, plan), sorted({cell.seed for cell, _ in plan.cells})
        return visit.page(
            "study.html",
            live=True,
            name=name,
            about=cut(study.file.about),
            seeds=seeds,
            matrix=self.matrix(visit, plan, seeds, runs),
            failures=[(job, why) for job, why in plan.failures.items()][:ROWS],
            items_address=f"{request.url.path}/items",
            choices=item_choices(visit, study),
            plan=plan,
            left=self.minutes_left(path, plan),
            folder=str(path),
            answer=self.answer(visit, path, plan, runs),
        )

    def minutes_left(self, path: Path, plan: Plan) -> str:
        """How long it will take, by what jobs of a kind took."""
        try:
            seconds = seconds_left(path, plan.todo) if plan.who and plan.todo else None
        except TORN:
            seconds = None
        at_work = {job_of(cell) for cell, state in plan.cells if state == "running"}
        return "" if seconds is None else f"{seconds / 60 / max(1, len(at_work)):.1f}"

    def answer(
        self, visit: Visit, path: Path, plan: Plan, runs: Mapping[tuple[str, int], Path]
    ) -> Any:
        """What the report says, once it is worked out; of a study that runs, as far as it is."""
        done = plan.counts.get("done", 0), plan.counts.get("void", 0), len(plan.cells)
        sizes = () if plan.who else tuple(size(f"{run}/scores.jsonl") for run in runs.values())
        stamps = (stamp(path / "study.toml"), done, sizes)
        key = ("study", path, visit.language)
        return self.background.ask(key, stamps, study_answer, self.store, path, visit.language)

    def matrix(
        self, visit: Visit, plan: Plan, seeds: Sequence[int], runs: Mapping[tuple[str, int], Path]
    ) -> Iterator[tuple[str, list[dict[str, Any]]]]:
        """A row for each arm: how many cells of each seed are done, and its run, to be ticked."""
        words = {state: visit.t(state) for state in MARKS}
        arms = dict.fromkeys(cell.arm for cell, _ in plan.cells)
        for arm in sorted(arms, key=lambda name: name == "base" or name.startswith(BASELINE)):
            row: list[dict[str, Any]] = []
            for seed in seeds:
                places, run = plan.jobs.get((arm, seed), []), runs.get((arm, seed))
                state, done = plan.job_state(places) if places else ("", 0)
                text = f"{MARKS[state]} {done}/{len(places)}" if places else ""
                row.append({"state": state, "word": words.get(state), "text": text})
                if run is not None:
                    name = self.store.name(run)
                    row[-1] |= {"address": visit.to("/run", run=name), "run": run.name}
                    row[-1]["tick"] = "" if run.name.startswith("base-s") else name
            yield visit.arm(arm), row

    # --- a run

    def run(self, request: Request) -> Response:
        """A run: its leash, what was asked, every measurement, its curves."""
        visit = Visit(request)
        path = self.store.find_run(visit.text("run"))
        facts, study = self.store.facts(path), self.store.home(path)
        visit.of_agents = facts.of_agents
        known = "" if study is None else self.store.name(study)
        chosen = "" if study is None else self.store.plan(study).chosen.get(path.name, "")
        name, seed = arm_and_seed(path.name)
        measured = []
        for (checkpoint, split, shots), column in self.store.columns(path).items():
            count, address = len(column.scores), ""
            arm = checkpoint if checkpoint.startswith(BASELINE) else name
            if known and split == "test" and (checkpoint in (chosen, arm) or name == "base"):
                query = {"ours": arm, "seed": seed, "shots": shots}
                address = visit.study(known, "/items", **query, theirs="")
            mean = {"text": mean_text(visit, column.mean(count)), "address": address}
            measured.append((checkpoint, split, shots, count, column.broken(count), mean))
        return visit.page(
            "run.html",
            live=True,
            name=path.name,
            trail=[(known, visit.study(known))] if known else [],
            facts=[facts.leash, ", ".join(facts.tags), visit.t(run_state(path))],
            asked=reading(path / "given.json", asked_keys, path),
            measured=measured,
            answer=self.background.ask(
                ("run", path, visit.language),
                size(path / "metrics.jsonl"),
                *(run_curves, self.store, path, visit.language),
            ),
        )

    # --- comparing

    def compare(self, request: Request) -> Response:
        """What `kleash compare` says of the runs that are ticked."""
        visit = Visit(request)
        names = list(dict.fromkeys(request.query_params.getlist("run")))
        if not 2 <= len(names) <= MOST_RUNS:
            why = Unread(visit.t("tick_two", most=MOST_RUNS))
            return visit.page("compare.html", status=400, answer=why, names=names[:MOST_RUNS])
        paths = [self.store.find_run(name) for name in names]
        stamps = tuple(stamp(f) for p in paths for f in sorted(p.glob("*.json*")))
        key = ("compare", tuple(paths), visit.language)
        made = self.background.ask(key, stamps, comparison, self.store, paths, visit.language)
        return visit.page("compare.html", live=True, answer=made, names=names)


def arm_and_seed(run: str) -> tuple[str, str]:
    """Whose run of a study it is, by the name of its folder; eight digits may follow."""
    arm, _, seed = run.rpartition("-s")
    return arm, seed.split("-")[0]


def asked_keys(run: Path) -> list[tuple[str, str]]:
    """The settings that a run was given."""
    return [(key, cut(value)) for key, value in dotted(read_json(run / "given.json"))]


def run_state(run: Path) -> str:
    """How far a run is."""
    return "running" if who(run) else "unfinished" if size(run / "done") is None else "done"


def recommended(visit: Visit, study: Path) -> tuple[str, str]:
    """The arm that the study's last report recommends, and that as a few words."""
    if size(study / "report.md") is None:
        return "", ""
    if size(study / "recommended.toml") is None:
        return "", visit.t("use_none")
    try:
        arm = str(read_toml(study / "recommended.toml")["arm"])
    except TORN:
        return "", ""
    return arm, visit.t("use", arm=visit.arm(arm))


def fits(row: Mapping[str, Any], wanted: Mapping[str, str]) -> bool:
    """Whether a study or a run is what is looked for."""
    text = " ".join((row["name"], row.get("about", ""), *row["tags"])).casefold()
    return (
        all(word in text for word in wanted["q"].casefold().split())
        and (not wanted["tag"] or wanted["tag"] in row["tags"])
        and (not wanted["state"] or wanted["state"] == row["state"])
    )


def item_choices(visit: Visit, study: Study) -> list[tuple[str, str, list[tuple[Any, Any]], Any]]:
    """What the filter of items can be set to, and what it is set to."""
    seeds, shots = study.file.seeds, study.file.measure.shots
    named = [(arm.name, visit.arm(arm.name)) for arm in study.arms]
    first, second = [*(name for name, _ in named[:2]), "", ""][:2]
    kinds = [(kind, visit.t(f"in.{kind}")) for kind in ("score", "pointer")]
    usual = shots[0 if visit.of_agents else -1]
    return [
        ("ours", visit.t("ours"), named, visit.text("ours", first)),
        ("theirs", visit.t("theirs"), [*named, ("", "—")], visit.text("theirs", second)),
        ("seed", visit.t("seed"), [(s, s) for s in seeds], visit.number("seed", seeds[0])),
        ("shots", visit.t("shots"), [(s, s) for s in shots], visit.number("shots", usual)),
        ("in", visit.t("in"), kinds, visit.text("in", "score")),
    ]


def mean_text(visit: Visit, mean: float | None) -> str:
    """An accuracy, or an agent's reward, which is no share of anything."""
    return "—" if mean is None else f"{mean:.3f}" if visit.of_agents else f"{100 * mean:.1f}%"
