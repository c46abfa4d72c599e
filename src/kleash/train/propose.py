"""The proposals of a recipe, asked for by many processes at once and written as RL data.

Every answer goes into the ledger first, so that whoever is stopped goes on where it was, and
training with the same recipe pays for none of it. What to propose is not decided here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kleash.errors import ConfigError, KleashError
from kleash.runs.jobs import Job, Told, run_jobs
from kleash.runs.ledger import Ledger
from kleash.tasks.demos.rl_data import entry, write_entries
from kleash.train.recipe import SelectorRecipe, recipe_from

SHARDS = 4  # for each worker, so that none waits long for the last one
AT_ONCE = 32  # queries of a shard between two words about how far it is


def propose_all(
    recipe: SelectorRecipe,
    out: Path,
    *,
    workers: int = 1,
    on: str = "local",
    device: str = "cpu",
    progress: Callable[[int], None] = lambda count: None,
) -> dict[str, Any]:
    """Write the training queries' proposals with their answers to a file; what it cost."""
    if recipe.propose.facts:
        raise ConfigError(
            "propose.facts stands in the place of proposals, and these are to be made: leave it out"
        )
    out.parent.mkdir(parents=True, exist_ok=True)
    count = min(recipe.queries, max(1, SHARDS * workers))
    given = {
        "recipe": recipe.resolved(),
        "ledger": str((out.parent / "ledger.sqlite").resolve()),
        "machines": on != "local",
        "device": device,
        "shards": count,
    }
    parts = (
        [shard(given | {"shard": 0, "shards": 1}, lambda told: progress(told["queries"]))]
        if workers == 1 and on == "local"
        else by_jobs(given, workers, on, progress)
    )
    entries = {key: each for part in parts for key, each in part["entries"].items()}
    usage = {name: sum(part[name] for part in parts) for name in ("asked", "bought", "broken")}
    write_entries(out, entries, parts[0]["meta"] | {"broken": usage["broken"]})
    pointers = sum(len(each["pointer_candidates"]) for each in entries.values())
    return {"file": str(out), "queries": len(entries), "pointers": pointers, **usage}


def by_jobs(
    given: Mapping[str, Any], workers: int, on: str, progress: Callable[[int], None]
) -> list[dict[str, Any]]:
    """The shards, each in a process of this machine or on a Ray cluster."""

    def hear(told: Told) -> None:
        if told.kind == "told":
            progress(told.record["queries"])

    gpus = 1 if on != "local" and given["device"].startswith("cuda") else 0
    jobs = [
        Job(f"shard-{n}", "kleash.train.propose:shard", {**given, "shard": n}, gpus=gpus)
        for n in range(given["shards"])
    ]
    ended = run_jobs(jobs, workers=workers, hear=hear, on=on)
    for name, outcome in ended.items():
        if outcome.state != "done":
            why = outcome.error.splitlines()[0] if outcome.error else outcome.state
            raise KleashError(f"{name}: {why}; run it again: no answer is asked for twice")
    return [ended[job.name].result for job in jobs]


def shard(given: Mapping[str, Any], tell: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Every so many-th query with its proposals answered: plain values, as a file has them."""
    from kleash.train.rollout import one_way
    from kleash.train.rollout.proposed import ask_for_some, rl_groups, rl_meta
    from kleash.train.rollout.selector import SelectorWorld

    recipe = recipe_from(given["recipe"])
    assert isinstance(recipe, SelectorRecipe)
    entries: dict[str, Any] = {}
    with one_way(), Ledger(Path(given["ledger"]), machines=given["machines"]) as ledger:
        world = SelectorWorld(recipe, ledger, device=given["device"])
        mine = range(given["shard"], len(world.pooled("train")), given["shards"])
        for start in range(0, len(mine), AT_ONCE):
            places = mine[start : start + AT_ONCE]
            bought = ask_for_some(world, "train", places)
            made = rl_groups(world, "train", places, bought)
            entries |= {group.query: entry(group) for group in made}
            tell({"queries": len(places)})
        usage = ledger.usage()
        return {
            "entries": entries,
            "meta": rl_meta(world),
            "asked": usage.asked,
            "bought": usage.bought,
            "broken": usage.broken,
        }
