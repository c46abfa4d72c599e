"""What a worker does: the shared start of a seed, or one run with all its measurements.

Each is a job: it gets plain values, tells how far it is, and returns plain values. Everything that
lasts is in the run's folder and the ledger, so a job that was killed is simply done again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kleash.config import build
from kleash.runs.ledger import Ledger
from kleash.study.plan import (
    BASELINE,
    Arm,
    StudyFile,
    arm_given,
    base_checkpoint,
    base_given,
    base_name,
    baseline_names,
    checkpoint_names,
    chosen_of,
    columns,
    own_selector,
    start_of,
)
from kleash.train.recipe import Recipe, SelectorRecipe, recipe_from

if TYPE_CHECKING:
    from kleash.runs.run import Run

Tell = Callable[[dict[str, Any]], None]


def make_base(given: Mapping[str, Any], tell: Tell) -> dict[str, Any]:
    """The shared start of a seed: trained, then measured as a baseline."""
    folder, file, seed = Path(given["folder"]), build(StudyFile, given["file"]), given["seed"]
    asked = base_given(file, seed, given["selector"])
    recipe = recipe_from(asked)
    with Working(folder, recipe, given, tell) as at_work:
        run = at_work.train(folder / base_name(seed, given["selector"]), asked)
        keep_start(run, recipe, at_work.world)
        measure = file.measure
        if "base" in measure.baselines and not given["selector"]:
            at_work.measure(run, [base_checkpoint(file, seed)], measure.shots, measure.items[-1])
    return at_work.result(run)


def make_baselines(given: Mapping[str, Any], tell: Tell) -> dict[str, Any]:
    """What needs no training, beside the base of the first seed: pools do not depend on seeds."""
    from kleash.runs.run import Run

    folder, file = Path(given["folder"]), build(StudyFile, given["file"])
    recipe = recipe_from(base_given(file, file.seeds[0]))
    measure = file.measure
    with Working(folder, recipe, given, tell) as at_work:
        run = Run.open(start_of(folder, file, file.seeds[0]).parent.parent)
        for name in baseline_names(file):
            greedy = name == "best-greedy"
            items = min(measure.greedy_items, measure.items[-1]) if greedy else measure.items[-1]
            at_work.measure(run, [BASELINE + name], measure.shots, items)
    return at_work.result(run)


def make_run(given: Mapping[str, Any], tell: Tell) -> dict[str, Any]:
    """One run of an arm: trained, every checkpoint validated, the chosen one tested."""
    from kleash.runs.run import Run
    from kleash.train.evaluate.agent import keep_transcripts
    from kleash.train.evaluate.selector import keep_choices
    from kleash.train.rollout import load_policy

    folder, file, seed = Path(given["folder"]), build(StudyFile, given["file"]), given["seed"]
    arm = Arm(given["arm"], given["keys"])
    start = start_of(folder, file, seed, own_selector(file, arm))
    asked = arm_given(file, arm, seed, start)
    recipe, measure = recipe_from(asked), file.measure
    with Working(folder, recipe, given, tell) as at_work:
        run = at_work.train(folder / "runs" / f"{arm.name}-s{seed}", asked)
        if not at_work.measures:
            return {}
        names = [name for name in checkpoint_names(recipe) if name in run.checkpoints()]
        base = Run.open(start.parent.parent)
        keep: Any = keep_choices if isinstance(recipe, SelectorRecipe) else keep_transcripts
        with run.lock():  # before the scores: a run whose cells are there is not taken up again
            keep(run, at_work.world, names, load_policy(base, at_work.world, start.name))
        at_work.measure(run, names, (recipe.validated_at(),), measure.validation, "validation")
        scored = columns(run)
        chosen = chosen_of(scored, recipe.validated_at(), measure.validation, names, measure.choose)
        tested = {"all": names, "chosen": [chosen], "none": []}[measure.test]
        if tested:
            at_work.measure(run, tested, measure.shots, measure.items[-1])
    return at_work.result(run) | {"chosen": chosen}


def keep_start(run: Run, recipe: Recipe, world: Any) -> None:
    """Where no phase had anything to do, the start itself is the checkpoint to go on from."""
    from kleash.train.training import base_weights

    if run.checkpoints():
        return
    weights = base_weights(recipe) or world.fresh_policy().state_dict()
    state = {"phase": "start", "epoch": 0, "step": 0}
    with run.lock():
        run.save("start", weights, {}, state | world.state())


_world: dict[tuple[str, str, str], Any] = {}


def world_for(
    ledger: Path, recipe: Recipe, device: str, served: str, *, machines: bool = False
) -> Any:
    """The world of a recipe. A worker takes many jobs: what they share is made once and kept.

    Of one ledger only, the last: answers at hand are not to be mixed, and memory is not for ever.
    """
    from kleash.train.rollout import compute_one_way, world_of

    compute_one_way()
    key = (str(ledger), device, served)
    if key not in _world or not ledger.exists():
        for old in _world.values():
            old.ledger.close()
        _world.clear()
        book = Ledger(ledger, machines=machines)
        _world[key] = world_of(recipe, book, device=device, served=served)
    _world[key] = found = _world[key].with_recipe(recipe)
    return found


class Working:
    """A world while a job is done; tells how far it is.

    Of several ranks that train a run together, the first then measures it.
    """

    def __init__(self, folder: Path, recipe: Recipe, given: Mapping[str, Any], tell: Tell) -> None:
        self.folder, self.recipe, self.tell = folder, recipe, tell
        from kleash.train import ranks

        self.device = ranks.own_device(str(given.get("device", "cpu")))
        self.ranks, self.measures = ranks.count(), ranks.is_first()
        self.served = str(given.get("served", ""))
        self.machines = bool(given.get("machines"))
        self.sinks = tuple(given.get("sinks", ()))
        self.shared = Path(given.get("ledger") or folder / "ledger.sqlite")
        self.began, self.said, self.cpu = time.monotonic(), 0.0, time.process_time()

    def __enter__(self) -> Working:
        self.world = world_for(
            self.shared, self.recipe, self.device, self.served, machines=self.machines
        )
        self.world.progress = self.answered
        self.before = self.world.ledger.usage()
        return self

    def __exit__(self, *failure: object) -> None:
        self.world.progress = lambda count: None

    def train(self, path: Path, asked: Mapping[str, Any]) -> Run:
        """The run of the recipe, to its end."""
        from kleash.train.training import Heard, train

        def hear(heard: Heard) -> None:
            record = heard.record
            if heard.phase == "finding":
                self.tell({"finding": dict(record)})
                return
            if record["kind"] == "epoch":
                told = {"at": f"{heard.phase} {heard.epoch}/{heard.epochs}"}
                score = record.get("validation/accuracy", record.get("validation/reward"))
                self.tell(told | {"validation": score} | self.usage())

        path.parent.mkdir(parents=True, exist_ok=True)
        return train(path, self.recipe, asked, self.world, listen=hear, sinks=self.sinks)

    def measure(
        self, run: Run, names: list[str], shots: tuple[int, ...], items: int, split: str = "test"
    ) -> None:
        """Scores of some checkpoints or baselines."""
        from kleash.train.evaluate import Wanted, evaluate

        self.tell({"at": f"{split}: {', '.join(names)}"} | self.usage())
        evaluate(run, self.world, Wanted(names, shots, split, items))

    def answered(self, count: int) -> None:
        """Say from time to time how many answers there are."""
        if time.monotonic() - self.said > 1:
            self.said = time.monotonic()
            self.tell(self.usage())

    def usage(self) -> dict[str, Any]:
        """What this job asked and paid for so far."""
        usage = self.world.ledger.usage().since(self.before)
        return {"asked": usage.asked, "bought": usage.bought}

    def result(self, run: Run) -> dict[str, Any]:
        """What the driver keeps about a finished job; its seconds are those of all its ranks."""
        spent = {
            "seconds": round((time.monotonic() - self.began) * self.ranks, 3),
            "cpu": round(time.process_time() - self.cpu, 3),
        }
        if self.ranks > 1:
            spent["ranks"] = self.ranks
        return {"run": str(run.path)} | self.usage() | spent
