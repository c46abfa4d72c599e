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
from kleash.dashboard.asking import Asking, cut
from kleash.dashboard.pages import item_choices
from kleash.dashboard.shelf import UNREAD, Nowhere, Plan, Shelf
from kleash.dashboard.worker import Unread, Worker, tell_pools
from kleash.data import DATASETS, Dataset, dataset
from kleash.plan import BASELINE, CHOSEN, arm_recipe, column_key
from kleash.plan.cells import Cell, Column
from kleash.recipe import SelectorRecipe
from kleash.types import Item

ROWS = 100  # on a page
MOST_SIDE = 12  # arms beside each other
LARGEST_LINE = 1 << 20


@lru_cache(maxsize=4)
def opened(name: str, seed: int) -> tuple[Dataset, dict[str, Item]]:
    """A data set and its items by id."""
    data = dataset(name, seed)
    every = [*data.queries("test"), *data.queries("validation"), *data.demonstrations]
    return data, {item.id: item for item in every}


class Items:
    """Pages about single items."""

    def __init__(self, shelf: Shelf, worker: Worker, trusted: Sequence[str]) -> None:
        self.shelf, self.worker = shelf, worker
        # A data set is code: a folder from elsewhere may not name which code to run.
        self.trusted = {*DATASETS, *ANSWERERS, *trusted}

    def recipe(self, study: Path) -> SelectorRecipe:
        """What all arms share of data and pools."""
        file, arms = self.shelf.file(study)
        recipe = arm_recipe(file, arms[0], file.seeds[0], "BASE")
        if not isinstance(recipe, SelectorRecipe):
            raise Nowhere
        return recipe

    def data(self, recipe: SelectorRecipe) -> tuple[Dataset | None, dict[str, Item]]:
        """The data set and its items by id, if it may be loaded."""
        if recipe.data not in self.trusted:
            return None, {}
        return opened(recipe.data, recipe.data_seed)

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
        head = ("arm", "seed", "checkpoint", "split", "shots", "items", "state", "mean")
        arm = wanted.arm.removeprefix(BASELINE)
        link = {"address": ask.study(name, "/arm", arm=wanted.arm), "text": arm}
        shown = key[0] if wanted.checkpoint == CHOSEN and key[0] else wanted.checkpoint
        facts = [link, wanted.seed, shown, wanted.split, wanted.shots, wanted.items]
        job = "baselines" if wanted.arm.startswith(BASELINE) else f"{wanted.arm}-s{wanted.seed}"
        file = path.relative_to(self.shelf.folder) / "scores.jsonl"
        return ask.page(
            "cell.html",
            trail=[(name, ask.study(name)), (arm, link["address"])],
            cell=wanted,
            facts_head=[ask.t(each) for each in head],
            facts=[*facts, ask.t(state), "—" if mean is None else f"{100 * mean:.1f}%"],
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
        choices = item_choices(ask, names, file.seeds, file.measure.shots)
        ours, theirs, seed, shots, kind = (choice[3] for choice in choices)
        facts: dict[str, Any] = {"trail": [(name, ask.study(name))], "choices": choices}
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
        summary = ask.t("disagreeing", count=len(found), total=total, **query)
        head = [ask.t("item"), ours, theirs]
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
        file, arms = self.shelf.file(study)
        recipe = self.recipe(study)
        data, known = self.data(recipe)
        seed = ask.number("seed", file.seeds[0])
        shots = ask.number("shots", file.measure.shots[-1])
        ours, theirs = ask.text("ours"), ask.text("theirs")
        first = [arm for arm in dict.fromkeys((ours, theirs)) if arm]
        names = list(dict.fromkeys([*first, *(arm.name for arm in arms)]))[:MOST_SIDE]
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
        pool, again = self.pool(ask, recipe, wanted)
        taken = {
            one: ", ".join(arm for arm, chosen in pointers.items() if one in chosen)
            for chosen in pointers.values()
            for one in chosen
        }
        kept = [(k, v) for k, v in request.query_params.multi_items() if k not in ("seed", "shots")]
        seeds = [(each, each) for each in file.seeds]
        sizes = [(each, each) for each in file.measure.shots]
        return ask.page(
            "item.html",
            again=again,
            trail=[
                (name, ask.study(name)),
                (ask.t("disagree"), items_address(ask, name, ours, theirs, seed, shots)),
            ],
            query=shown(wanted),
            no_data="" if data is not None else ask.t("no_data", name=recipe.data),
            kept=kept,
            choices=[("seed", ask.t("seed"), seeds, seed), ("shots", ask.t("shots"), sizes, shots)],
            said=said,
            pool=[shown(each) | {"by": taken.get(each, "")} for each in pool.get("ids", ())],
            pool_title=pool["title"],
            pool_note=pool.get("note", ""),
        )

    def said(
        self, ask: Asking, name: str, study: Path, arm: str, what: tuple[str, int, int]
    ) -> list[dict[str, Any]]:
        """What an arm did with an item: its pointer, the answer, the score."""
        item, seed, shots = what
        arms = {each.name for each in self.shelf.file(study)[1]}
        if arm not in arms and arm != "base" and not arm.startswith(BASELINE):
            return []
        try:
            path = self.shelf.place(study, arm, seed)
            chosen = self.chosen(self.shelf.plan(study), path)
            lines = self.lines(path, item)
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
                pointer = line.get("pointer")
                pointer = [str(each) for each in pointer] if isinstance(pointer, list) else []
                return [
                    {
                        "arm": arm.removeprefix(BASELINE),
                        "address": ask.study(name, "/arm", arm=arm),
                        "pointer": pointer[:64],
                        "answer": cut(line.get("answer") or line.get("error") or "—"),
                        "score": score_text(line.get("score")),
                    }
                ]
        return []

    def lines(self, path: Path, item: str) -> list[dict[str, Any]]:
        """The lines of a run's scores about an item, found without parsing the others."""
        scores = path / "scores.jsonl"
        if not scores.is_file():
            return []
        self.shelf.inside(scores)
        needle = b'"item": ' + json.dumps(item, ensure_ascii=False).encode("utf-8", "replace")
        found = []
        with scores.open("rb") as handle:
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

    def pool(self, ask: Asking, recipe: SelectorRecipe, item: str) -> tuple[dict[str, Any], bool]:
        """The candidates of a query; None of them while they are being made."""
        title = ask.t("pool_title")
        for name in (recipe.data, recipe.answerer):
            if name not in self.trusted:
                return {"title": title, "note": ask.t("no_data", name=name)}, False
        split = "validation" if item.startswith("validation") else "test"
        given = (recipe.data, recipe.data_seed, recipe.answerer)
        made = recipe.pool.model_dump(mode="json")
        key = ("pools", *given, recipe.pool.maker, split)
        found = self.worker.ask(key, tell_pools, *given, made, split)
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


def items_address(ask: Asking, name: str, ours: str, theirs: str, seed: int, shots: int) -> str:
    """Back to the items on which two arms disagree."""
    query: dict[str, Any] = {"seed": seed, "shots": shots}
    query |= {k: v for k, v in (("ours", ours), ("theirs", theirs)) if v}
    return ask.study(name, "/items", **query)


def turn(ask: Asking, count: int) -> tuple[int, dict[str, Any]]:
    """The first row of the page that is asked for, and the addresses of those beside it."""
    pages = max(1, -(-count // ROWS))
    page = min(max(1, ask.number("page", 1)), pages)
    query = {k: v for k, v in ask.request.query_params.items() if k not in ("page", "lang")}

    def address(at: int) -> str:
        return ask.to(ask.request.url.path, **query, page=at)

    back = address(page - 1) if page > 1 else ""
    forth = address(page + 1) if page < pages else ""
    return (page - 1) * ROWS, {"page": page, "pages": pages, "back": back, "forth": forth}


def score_text(score: Any) -> str:
    """A score as a number; what broke has none."""
    return f"{score:.3g}" if isinstance(score, int | float) else "—"
