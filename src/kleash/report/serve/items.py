"""The items on which two arms disagree, and one item: why two arms differ."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from kleash.report.serve.pages import item_choices
from kleash.report.serve.store import Nowhere, Store, lines_about
from kleash.report.serve.visit import ROWS, Visit, cut
from kleash.study.plan import BASELINE, CHOSEN, arm_recipe, base_checkpoint, column_key
from kleash.study.plan.cells import Cell, Column
from kleash.tasks.data import DATASETS, Dataset, dataset
from kleash.train.recipe import SelectorRecipe
from kleash.types import Item

MOST_SIDE = 12  # arms beside each other
SET = ("seed", "shots")
EPISODE = ("score", "stop", "coverage", "kl")
MOST_TURNS = 64
MOST_TOKENS = 2_000  # of a turn
LEVELS = (0.01, 0.1, 0.5, 2.0)  # nats: from each on a token is marked more strongly
STOPS = ("covered", "finished", "limit", "length", "malformed", "broken")


@lru_cache(maxsize=4)
def opened(name: str, seed: int, options: str) -> tuple[Dataset, dict[str, Item]]:
    """A data set and its items by id."""
    data = dataset(name, seed, json.loads(options))
    every = [*data.queries("test"), *data.queries("validation"), *data.demonstrations]
    return data, {item.id: item for item in every}


class Said(NamedTuple):
    """What an arm did with an item: its line among the scores of a run."""

    arm: str
    address: str
    run: Path
    line: dict[str, Any]


class Items:
    """Pages about single items."""

    def __init__(self, store: Store, trusted: Sequence[str]) -> None:
        self.store = store
        # A folder from elsewhere may not name code to run, nor files to show: options hold paths.
        self.trusted, self.named = {*DATASETS, *trusted}, {*trusted}

    def data(self, study: Path) -> tuple[SelectorRecipe, Dataset | None, dict[str, Item]]:
        """What arms share of data; the data set and its items, if it may be loaded."""
        asked = self.store.study(study)
        recipe = arm_recipe(asked.file, asked.arms[0], asked.file.seeds[0], "BASE")
        if not isinstance(recipe, SelectorRecipe):
            raise Nowhere
        if recipe.data not in (self.named if recipe.data_options else self.trusted):
            return recipe, None, {}
        return recipe, *opened(recipe.data, recipe.data_seed, json.dumps(recipe.data_options))

    # --- where arms disagree

    def items(self, request: Request) -> Response:
        """The items on which two arms disagree; with one arm alone, all of its."""
        visit, name = Visit(request), request.path_params["study"]
        path = self.store.find_study(name)
        study = self.store.study(path)
        visit.of_agents = study.file.of_agents
        choices = item_choices(visit, study)
        ours, theirs, seed, shots, kind = (choice[3] for choice in choices)
        arms = [arm for arm in (ours, theirs) if arm]
        tested = [self.tested(path, arm, seed, shots) for arm in arms]
        columns = [each for each in tested if each is not None]
        rows = disagreements(columns, kind)
        query = {"ours": ours, "theirs": theirs, "seed": seed, "shots": shots}
        shown = [
            [
                {"address": visit.study(name, "/item", item=item, **query), "text": item},
                *map(score_text, scores),
            ]
            for item, scores in rows[:ROWS]
        ]
        summary = ""
        if columns and len(columns) == len(arms):
            facts = query | {"count": len(rows), "total": len(columns[0].items)}
            summary = visit.t("disagreeing" if theirs else "of_one", **facts)
        return visit.page(
            "items.html",
            trail=[(name, visit.study(name))],
            choices=choices,
            items_address=request.url.path,
            summary=summary,
            head=[visit.t("item"), *map(visit.arm, arms)],
            rows=shown,
        )

    def tested(self, study: Path, arm: str, seed: int, shots: int) -> Column | None:
        """What the chosen checkpoint of an arm, the start or a baseline did on the test."""
        plan = self.store.plan(study)
        path = self.store.folders(study, plan).get((arm, seed))
        if path is None:
            return None
        file = self.store.study(study).file
        checkpoint = base_checkpoint(file, seed) if arm == "base" else CHOSEN
        cell = Cell(arm, seed, checkpoint, "test", shots, 0)
        return self.store.columns(path).get(column_key(cell, plan.chosen.get(path.name, "")))

    # --- one item

    def item(self, request: Request) -> Response:
        """The query, what each arm chose, what was answered, and the scores."""
        visit, name = Visit(request), request.path_params["study"]
        path, item = self.store.find_study(name), visit.text("item")
        file, arms = self.store.study(path).file, self.store.study(path).arms
        visit.of_agents = file.of_agents
        usual = file.measure.shots[0 if file.of_agents else -1]
        what = item, visit.number("seed", file.seeds[0]), visit.number("shots", usual)
        given = {key: visit.text(key) for key in ("ours", "theirs") if visit.text(key)}
        names = list(dict.fromkeys([*given.values(), *(arm.name for arm in arms)]))[:MOST_SIDE]
        found = [found for arm in names for found in self.lines(visit, path, arm, what)]
        back = visit.study(name, "/items", seed=what[1], shots=what[2], **given)
        sizes = [(n, n) for n in file.measure.shots]
        around: dict[str, Any] = {
            "trail": [(name, visit.study(name)), (visit.t("disagree"), back)],
            "kept": [each for each in request.query_params.multi_items() if each[0] not in SET],
            "choices": [
                ("seed", visit.t("seed"), [(n, n) for n in file.seeds], what[1]),
                ("shots", visit.t("shots"), sizes, what[2]),
            ],
        }
        if file.of_agents:
            return self.episodes(visit, item, found, around)
        recipe, data, known = self.data(path)
        if not found and item not in known:
            raise Nowhere

        def shown(each: str) -> dict[str, Any]:
            return entry(visit, name, each, known.get(each) if data is not None else None)

        pointers = {each.arm: texts(each.line.get("pointer"))[:64] for each in found}
        said = [
            {
                "arm": each.arm,
                "address": each.address,
                "pointer": [shown(one) for one in pointers[each.arm]],
                "answer": cut(each.line.get("answer") or each.line.get("error") or "—"),
                "score": score_text(each.line.get("score")),
            }
            for each in found
        ]
        return visit.page(
            "item.html",
            query=shown(item),
            no_data="" if data is not None else visit.t("no_data", name=recipe.data),
            said=said,
            **around,
        )

    def episodes(
        self, visit: Visit, item: str, found: Sequence[Said], around: dict[str, Any]
    ) -> Response:
        """What each arm said to a task's user, turn by turn."""
        if not found:
            raise Nowhere
        said = []
        for each in found:
            path = transcripts(each.run, each.line.get("checkpoint"))
            facts = {
                "arm": each.arm,
                "address": each.address,
                "score": score_text(each.line.get("score")),
                "stop": stop_text(visit, each.line),
            }
            said.append(episode(each.line, list(lines_about(path, item))) | facts)
        return visit.page(
            "episode.html",
            item=cut(item),
            request=next((each["request"] for each in said if each["request"]), ""),
            said=said,
            facts=[(visit.t(f"of_episode.{key}"), key) for key in EPISODE],
            longest=max(len(each["turns"]) for each in said),
            marked=any(each["kl"] for each in said),
            unmarked=", ".join(each["arm"] for each in said if not each["kl"]),
            legend=legend(),
            **around,
        )

    def lines(
        self, visit: Visit, study: Path, arm: str, what: tuple[str, int, int]
    ) -> Iterator[Said]:
        """The line of an arm about an item, at most one."""
        item, seed, shots = what
        plan = self.store.plan(study)
        path = self.store.folders(study, plan).get((arm, seed))
        if path is None:
            return
        chosen, of_start = plan.chosen.get(path.name, ""), path.name.startswith("base-s")
        for line in lines_about(path / "scores.jsonl", item):
            checkpoint, split = line.get("checkpoint"), line.get("split")
            if arm.startswith(BASELINE):
                fits = checkpoint == arm
            elif of_start:
                fits = not str(checkpoint).startswith(BASELINE)
            else:
                fits = checkpoint == chosen or (split == "validation" and not chosen)
            if fits and (line.get("shots") == shots or split == "validation"):
                address = visit.to("/run", run=self.store.name(path))
                yield Said(visit.arm(arm), address, path, line)
                return

    def image(self, request: Request) -> Response:
        """A picture of the data set, by its name there; no file is read."""
        from PIL import Image

        visit = Visit(request)
        _, data, known = self.data(self.store.find_study(request.path_params["study"]))
        wanted = visit.text("name")
        if data is None or not any(item.image == wanted for item in known.values()):
            raise Nowhere
        file = io.BytesIO()
        Image.fromarray(data.image(wanted)).save(file, "PNG")
        return Response(file.getvalue(), media_type="image/png")


def entry(visit: Visit, study: str, item: str, known: Item | None) -> dict[str, Any]:
    """An item with its picture, or its id alone."""
    if known is None:
        return {"id": cut(item)}
    return {
        "id": item,
        "question": known.question,
        "answer": known.answer,
        "answers": ", ".join(known.answers),
        "image": visit.study(study, "/image", name=known.image),
    }


def disagreements(columns: Sequence[Column], kind: str) -> list[tuple[str, list[float | None]]]:
    """Items whose scores, or whose demonstrations, differ, the furthest apart first; or all."""
    if len(columns) < 2:
        return [(i, [s]) for c in columns for i, s in zip(c.items, c.scores, strict=True)]
    ours, theirs = columns
    other = {item: at for at, item in enumerate(theirs.items)}
    found = []
    for at, item in enumerate(ours.items):
        there = other.get(item)
        if there is None:
            continue
        pair = [ours.scores[at], theirs.scores[there]]
        pointers = ours.pointers[at], theirs.pointers[there]
        if len({*(pointers if kind == "pointer" else pair)}) > 1:
            found.append((item, pair))
    return sorted(found, key=lambda each: -abs((each[1][0] or 0.0) - (each[1][1] or 0.0)))


def score_text(score: Any) -> str:
    """A score as a number; what broke has none."""
    return f"{score:.3g}" if isinstance(score, int | float) else "—"


# --- what an agent said, turn by turn; whatever is not of the form it should be is left out


def episode(line: Mapping[str, Any], kept: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """An episode by its line among the scores; tokens and what was covered by its transcript.

    A transcript counts only where it says what was scored: that may be a sampled pass.
    """
    said, heard = texts(line.get("pointer")), texts(line.get("heard"))
    rewards = line.get("rewards")
    rewards = rewards if isinstance(rewards, list) else []
    told = next((turns for each in kept if (turns := turns_of(each, said))), [])
    turns = []
    for at, text in enumerate(said[:MOST_TURNS]):
        more = told[at] if told else {}
        marked = tokens(more.get("tokens"))
        turns.append(
            {
                "said": cut(text),
                "tokens": marked,
                "kl": total(each["kl"] for each in marked) if marked else "",
                "reward": number(rewards[at], "+.3g") if at < len(rewards) else "",
                "covered": cut(", ".join(texts(more.get("covered")))),
                "reply": cut(heard[at + 1]) if at + 1 < len(heard) else "",
            }
        )
    facts = line.get("facts")
    coverage = facts.get("coverage") if isinstance(facts, dict) else None
    return {
        "request": cut(heard[0]) if heard else "",
        "turns": turns,
        "kl": total(each["kl"] for turn in turns for each in turn["tokens"]) if told else "",
        "coverage": number(coverage, ".0%"),
    }


def transcripts(run: Path, checkpoint: Any) -> Path:
    """Where the transcripts of a checkpoint lie, whatever a file says it is called."""
    return run / "transcripts" / f"{Path(str(checkpoint)).name}.jsonl"


def turns_of(kept: Mapping[str, Any], said: Sequence[str]) -> list[dict[str, Any]]:
    """The turns of a transcript, if it says just this."""
    turns = kept.get("turns")
    if not isinstance(turns, list) or not all(isinstance(turn, dict) for turn in turns):
        return []
    return turns if [turn.get("said") for turn in turns] == list(said) else []


def tokens(found: Any) -> list[dict[str, Any]]:
    """Each token with its KL and how strongly it is marked."""
    made = []
    for each in found[:MOST_TOKENS] if isinstance(found, list) else ():
        if not isinstance(each, list) or len(each) != 3:
            continue
        text, logp, kl = each
        if type(text) is not str or not (is_number(logp) and is_number(kl)):
            continue
        level = sum(kl >= least for least in LEVELS)
        made.append({"text": cut(text) or "∎", "logp": f"{logp:.3f}", "kl": kl, "level": level})
    return made


def legend() -> list[dict[str, Any]]:
    """What each way of marking a token means."""
    ranges = [f"< {LEVELS[0]:g}", *(f"{a:g} – {b:g}" for a, b in pairwise(LEVELS))]
    return [{"level": n, "text": t} for n, t in enumerate([*ranges, f"≥ {LEVELS[-1]:g}"])]


def stop_text(visit: Visit, line: Mapping[str, Any]) -> str:
    """Why an episode ended, or the error that broke it."""
    reason = line.get("answer")
    if reason in STOPS:
        return visit.t(f"stop.{reason}")
    return cut(reason or line.get("error") or "—")


def texts(found: Any) -> list[str]:
    """A list of texts; nothing where it is none."""
    return [str(each) for each in found] if isinstance(found, list) else []


def is_number(value: Any) -> bool:
    """Whether it is one, and finite."""
    return type(value) in (int, float) and math.isfinite(value)


def number(value: Any, form: str) -> str:
    """A number as text; nothing where it is none."""
    return format(value, form) if is_number(value) else ""


def total(values: Any) -> str:
    """A sum of nats."""
    return f"{math.fsum(values):.3f}"
