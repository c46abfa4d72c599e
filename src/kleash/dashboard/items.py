"""A cell, the items on which two arms disagree, and one item: why two arms differ."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from kleash.answer import ANSWERERS
from kleash.dashboard.asking import ROWS, Asking, cut, items_address, turn
from kleash.dashboard.pages import family, item_choices
from kleash.dashboard.shelf import UNREAD, Nowhere, Plan, Shelf
from kleash.dashboard.talks import legend, stop_text, talk, texts, transcripts
from kleash.dashboard.worker import Unread, Worker, tell_pools
from kleash.data import DATASETS, Dataset, dataset
from kleash.plan import BASELINE, CHOSEN, arm_recipe, column_key
from kleash.plan.cells import Cell, Column
from kleash.recipe import UNSAID, SelectorRecipe
from kleash.types import Item

MOST_SIDE = 12  # arms beside each other
LARGEST_LINE = 1 << 20


@lru_cache(maxsize=4)
def opened(name: str, seed: int, options: str) -> tuple[Dataset, dict[str, Item]]:
    """A data set and its items by id."""
    data = dataset(name, seed, json.loads(options))
    every = [*data.queries("test"), *data.queries("validation"), *data.demonstrations]
    return data, {item.id: item for item in every}


class Items:
    """Pages about single items."""

    def __init__(self, shelf: Shelf, worker: Worker, trusted: Sequence[str]) -> None:
        self.shelf, self.worker = shelf, worker
        # A folder from elsewhere may not name code to run, nor files to show: options hold paths.
        self.trusted, self.named = {*DATASETS, *ANSWERERS, *trusted}, {*trusted}

    def recipe(self, study: Path) -> SelectorRecipe:
        """What all arms share of data and pools."""
        file, arms = self.shelf.file(study)
        recipe = arm_recipe(file, arms[0], file.seeds[0], "BASE")
        if not isinstance(recipe, SelectorRecipe):
            raise Nowhere
        return recipe

    def data(self, recipe: SelectorRecipe) -> tuple[Dataset | None, dict[str, Item]]:
        """The data set and its items by id, if it may be loaded."""
        if recipe.data not in (self.named if recipe.data_options else self.trusted):
            return None, {}
        return opened(recipe.data, recipe.data_seed, json.dumps(recipe.data_options))

    def chosen(self, plan: Plan, path: Path) -> str:
        """The checkpoint of a run that was chosen on validation."""
        return plan.chosen.get(path.name, "")

    # --- a cell

    def cell(self, request: Request) -> Response:
        """One measurement and the items it is of."""
        ask, name = Asking(request), request.path_params["study"]
        study = self.shelf.study(name)
        plan = self.shelf.plan(study)
        arm, checkpoint, split = (ask.text(key) for key in ("arm", "checkpoint", "split"))
        seed, shots, items = (ask.number(key, -1) for key in ("seed", "shots", "items"))
        wanted = Cell(arm, seed, checkpoint, split, shots, items)
        state = next((state for cell, state in plan.cells if cell == wanted), None)
        if state is None:
            raise Nowhere
        path = self.shelf.place(study, wanted.arm, wanted.seed)
        key = column_key(wanted, self.chosen(plan, path))
        column = self.shelf.columns(path).get(key, Column())
        rows, turning = self.cell_items(ask, name, wanted, column)
        mean = column.mean(wanted.items)
        agents = self.shelf.file(study)[0].of_agents
        word = family("shots", agents=agents)
        head = ("arm", "seed", "checkpoint", "split", word, "items", "state", "mean")
        arm = ask.arm(wanted.arm)
        link = {"address": ask.study(name, "/arm", arm=wanted.arm), "text": arm}
        shown = key[0] if wanted.checkpoint == CHOSEN and key[0] else wanted.checkpoint
        facts = [link, wanted.seed, shown, wanted.split, wanted.shots, wanted.items]
        listed = (
            ("task", "of_talk.score", "in.pointer.agent")
            if agents
            else ("item", "score", "pointer")
        )
        job = "baselines" if wanted.arm.startswith(BASELINE) else f"{wanted.arm}-s{wanted.seed}"
        file = path.relative_to(self.shelf.folder) / "scores.jsonl"
        return ask.page(
            "cell.html",
            trail=[(name, ask.study(name)), (arm, link["address"])],
            cell=wanted,
            facts_head=[ask.t(each) for each in head],
            facts=[*facts, ask.t(state), mean_text(mean, agents=agents)],
            items_head=[ask.t(each) for each in listed],
            why=plan.failures.get(job, ""),
            file=f"{file}" if column.lines else "",
            broken=column.broken(wanted.items),
            command="" if state in ("done", "void") else f"kleash study {study}",
            rows=rows,
            live="",
            **turning,
        )

    def cell_items(
        self, ask: Asking, name: str, cell: Cell, column: Column
    ) -> tuple[list[list[Any]], dict[str, Any]]:
        """The items of a cell, a page of them."""
        count = min(cell.items, len(column.items))
        first, turning = turn(ask, count)
        query = {"seed": cell.seed, "shots": cell.shots, "ours": cell.arm}
        rows = []
        for at in range(first, min(first + ROWS, count)):
            item = str(column.items[at])
            link = {"address": ask.study(name, "/item", item=item, **query), "text": item}
            pointer = cut(", ".join(map(str, column.pointers[at])))
            rows.append([link, score_text(column.scores[at]), pointer])
        return rows, turning

    # --- where arms disagree

    def items(self, request: Request) -> Response:
        """The items on which two chosen arms disagree."""
        ask, name = Asking(request), request.path_params["study"]
        study = self.shelf.study(name)
        file, arms = self.shelf.file(study)
        names = [arm.name for arm in arms]
        choices = item_choices(ask, names, file)
        ours, theirs, seed, shots, kind = (choice[3] for choice in choices)
        facts: dict[str, Any] = {"trail": [(name, ask.study(name))], "choices": choices}
        facts["title"] = ask.t(family("disagree", agents=file.of_agents))
        facts["items_address"] = request.url.path
        one, other = (self.tested(study, arm, seed, shots) for arm in (ours, theirs))
        if one is None or other is None:
            return ask.page("items.html", summary="", **facts)
        found = disagreements(one, other, kind)
        first, turning = turn(ask, len(found))
        query = {"ours": ours, "theirs": theirs, "seed": seed, "shots": shots}
        rows = []
        for item, *scores in found[first : first + ROWS]:
            link = {"address": ask.study(name, "/item", item=item, **query), "text": item}
            rows.append([link, *map(score_text, scores)])
        total = len(one.items)
        said = family("disagreeing", agents=file.of_agents)
        summary = ask.t(said, count=len(found), total=total, **query)
        head = [ask.t("task" if file.of_agents else "item"), ours, theirs]
        return ask.page("items.html", summary=summary, head=head, rows=rows, **facts, **turning)

    def tested(self, study: Path, arm: str, seed: int, shots: int) -> Column | None:
        """What the chosen checkpoint of an arm did on the test."""
        if arm not in {each.name for each in self.shelf.file(study)[1]}:
            return None
        path = self.shelf.place(study, arm, seed)
        chosen = self.chosen(self.shelf.plan(study), path)
        return self.shelf.columns(path).get((chosen, "test", shots))

    # --- one item

    def item(self, request: Request) -> Response:
        """The query, the pool, what each arm chose, what was answered, and the scores."""
        ask, name = Asking(request), request.path_params["study"]
        study, wanted = self.shelf.study(name), ask.text("item")
        file, _ = self.shelf.file(study)
        seed, shots, names = self.side(ask, study)
        if file.of_agents:
            return self.talks(ask, name, study, (wanted, seed, shots), names)
        recipe = self.recipe(study)
        data, known = self.data(recipe)
        said = [
            each
            for arm in names
            for each in self.said(ask, name, study, arm, (wanted, seed, shots))
        ]
        if not said and wanted not in known:
            raise Nowhere

        def shown(each: str) -> dict[str, Any]:
            return self.shown(ask, name, each, known, pictures=data is not None)

        pointers = {each["arm"]: each["pointer"] for each in said}
        for each in said:
            each["pointer"] = [shown(one) for one in each["pointer"]]
        pool, again = self.pool(ask, study, recipe, wanted)
        taken = {
            one: ", ".join(arm for arm, chosen in pointers.items() if one in chosen)
            for chosen in pointers.values()
            for one in chosen
        }
        return ask.page(
            "item.html",
            again=again,
            query=shown(wanted),
            no_data="" if data is not None else ask.t("no_data", name=recipe.data),
            said=said,
            pool=[shown(each) | {"by": taken.get(each, "")} for each in pool.get("ids", ())],
            pool_title=pool["title"],
            pool_note=pool.get("note", ""),
            **self.around(ask, name, study, seed, shots),
        )

    def side(self, ask: Asking, study: Path) -> tuple[int, int, list[str]]:
        """The seed and shots that are asked for, and the arms side by side: chosen ones first."""
        file, arms = self.shelf.file(study)
        first = [arm for arm in (ask.text("ours"), ask.text("theirs")) if arm]
        names = list(dict.fromkeys([*first, *(arm.name for arm in arms)]))[:MOST_SIDE]
        shots = file.measure.shots[0 if file.of_agents else -1]
        return ask.number("seed", file.seeds[0]), ask.number("shots", shots), names

    def around(self, ask: Asking, name: str, study: Path, seed: int, shots: int) -> dict[str, Any]:
        """Where an item's page leads to, and what it can be set to."""
        file, _ = self.shelf.file(study)
        back = items_address(ask, name, ask.text("ours"), ask.text("theirs"), seed, shots)
        given = ask.request.query_params.multi_items()
        seeds = [(each, each) for each in file.seeds]
        sizes = [(each, each) for each in file.measure.shots]
        word = family("shots", agents=file.of_agents)
        return {
            "trail": [
                (name, ask.study(name)),
                (ask.t(family("disagree", agents=file.of_agents)), back),
            ],
            "kept": [(k, v) for k, v in given if k not in ("seed", "shots")],
            "choices": [("seed", ask.t("seed"), seeds, seed), ("shots", ask.t(word), sizes, shots)],
        }

    def talks(
        self, ask: Asking, name: str, study: Path, what: tuple[str, int, int], names: list[str]
    ) -> Response:
        """What each arm said to a task's user, turn by turn."""
        said = []
        for arm in names:
            for path, line in self.line_of(study, arm, what):
                kept = self.lines(transcripts(path, line.get("checkpoint")), what[0])
                said.append(
                    talk(line, kept)
                    | {
                        "arm": ask.arm(arm),
                        "address": ask.study(name, "/arm", arm=arm),
                        "score": score_text(line.get("score")),
                        "stop": stop_text(ask, line),
                    }
                )
        if not said:
            raise Nowhere
        keys = ("score", "stop", "coverage", "kl")
        return ask.page(
            "talk.html",
            item=cut(what[0]),
            request=next((each["request"] for each in said if each["request"]), ""),
            said=said,
            facts=[(ask.t(f"of_talk.{key}"), key) for key in keys],
            longest=max(len(each["turns"]) for each in said),
            marked=any(each["kl"] for each in said),
            unmarked=", ".join(each["arm"] for each in said if not each["kl"]),
            legend=legend(),
            **self.around(ask, name, study, *what[1:]),
        )

    def said(
        self, ask: Asking, name: str, study: Path, arm: str, what: tuple[str, int, int]
    ) -> list[dict[str, Any]]:
        """What an arm did with an item: its pointer, the answer, the score."""
        return [
            {
                "arm": ask.arm(arm),
                "address": ask.study(name, "/arm", arm=arm),
                "pointer": texts(line.get("pointer"))[:64],
                "answer": cut(line.get("answer") or line.get("error") or "—"),
                "score": score_text(line.get("score")),
            }
            for _, line in self.line_of(study, arm, what)
        ]

    def line_of(
        self, study: Path, arm: str, what: tuple[str, int, int]
    ) -> list[tuple[Path, dict[str, Any]]]:
        """The line of an arm about an item, at most one, and the run that it stands in."""
        item, seed, shots = what
        arms = {each.name for each in self.shelf.file(study)[1]}
        if arm not in arms and arm != "base" and not arm.startswith(BASELINE):
            return []
        try:
            path = self.shelf.place(study, arm, seed)
            chosen = self.chosen(self.shelf.plan(study), path)
            lines = self.lines(path / "scores.jsonl", item)
        except UNREAD:
            return []
        for line in lines:
            checkpoint, split = line.get("checkpoint"), line.get("split")
            if arm not in arms:
                own = not str(checkpoint).startswith(BASELINE)
                fits = checkpoint == arm if arm.startswith(BASELINE) else own
            else:
                fits = checkpoint == chosen or (split == "validation" and not chosen)
            if fits and (line.get("shots") == shots or split == "validation"):
                return [(path, line)]
        return []

    def lines(self, path: Path, item: str) -> list[dict[str, Any]]:
        """The lines of a run's file about an item, found without parsing the others."""
        if not path.is_file():
            return []
        self.shelf.inside(path)
        needle = b'"item": ' + json.dumps(item, ensure_ascii=False).encode("utf-8", "replace")
        found = []
        with path.open("rb") as handle:
            for line in handle:
                if needle in line and len(line) <= LARGEST_LINE:
                    try:
                        record = json.loads(line)
                    except (ValueError, RecursionError):
                        continue
                    if isinstance(record, dict) and record.get("item") == item:
                        found.append(record)
        return found

    def shown(
        self, ask: Asking, name: str, item: str, known: dict[str, Item], *, pictures: bool
    ) -> dict[str, Any]:
        """An item with its picture, or its id alone."""
        found = known.get(item)
        if found is None or not pictures:
            return {"id": cut(item)}
        return {
            "id": item,
            "question": found.question,
            "answer": found.answer,
            "answers": ", ".join(found.answers),
            "image": ask.study(name, "/image", name=found.image),
        }

    def pool(
        self, ask: Asking, study: Path, recipe: SelectorRecipe, item: str
    ) -> tuple[dict[str, Any], bool]:
        """The candidates of a query; None of them while they are being made."""
        title = ask.t("pool_title")
        plain = not set(UNSAID) & recipe.resolved().keys()
        for name in (recipe.data, recipe.answerer):
            if name not in (self.trusted if plain else self.named):
                return {"title": title, "note": ask.t("no_data", name=name)}, False
        split = "validation" if item.startswith("validation") else "test"
        given = json.dumps(recipe.resolved(), sort_keys=True)
        found = self.worker.ask(("pools", given, split), tell_pools, given, split, study)
        if found is None:
            return {"title": title, "note": ask.t("look_again")}, True
        if isinstance(found, Unread):
            return {"title": title, "note": ask.t("no_pool", why=found.why)}, False
        ids = found.get(item, [])
        return {"title": ask.t("pool", count=len(ids)), "ids": ids}, False

    def image(self, request: Request) -> Response:
        """A picture of the data set, by its name there; no file is read."""
        from PIL import Image

        ask, name = Asking(request), request.path_params["study"]
        data, known = self.data(self.recipe(self.shelf.study(name)))
        wanted = ask.text("name")
        if data is None or not any(item.image == wanted for item in known.values()):
            raise Nowhere
        file = io.BytesIO()
        Image.fromarray(data.image(wanted)).save(file, "PNG")
        return Response(file.getvalue(), media_type="image/png")


def disagreements(
    ours: Column, theirs: Column, kind: str
) -> list[tuple[str, float | None, float | None]]:
    """Items whose scores, or whose demonstrations, differ; the furthest apart first."""
    other = {item: at for at, item in enumerate(theirs.items)}
    found = []
    for at, item in enumerate(ours.items):
        if item not in other:
            continue
        there = other[item]
        one, two = ours.scores[at], theirs.scores[there]
        differ = ours.pointers[at] != theirs.pointers[there] if kind == "pointer" else one != two
        if differ:
            found.append((item, one, two))
    return sorted(found, key=lambda each: -abs((each[1] or 0.0) - (each[2] or 0.0)))


def mean_text(mean: float | None, *, agents: bool) -> str:
    """An accuracy, or an agent's reward, which is no share of anything."""
    if mean is None:
        return "—"
    return f"{mean:.3f}" if agents else f"{100 * mean:.1f}%"


def score_text(score: Any) -> str:
    """A score as a number; what broke has none."""
    return f"{score:.3g}" if isinstance(score, int | float) else "—"
