"""One run by itself: from a name, a file or a folder to a trained run and its scores.

The command line and `kleash.train` call the same functions here. A run by itself has its ledger
beside its folder; a study's runs share the study's. Nothing heavy is imported before it is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kleash.errors import ConfigError, KleashError

if TYPE_CHECKING:
    from kleash.runs.ledger import Usage
    from kleash.runs.run import Run
    from kleash.train.evaluate import Wanted
    from kleash.train.recipe import Recipe
    from kleash.types import Listener

RUNS = Path("runs")
NAMED: dict[str, dict[str, Any]] = {
    "default": {},
    "agent": {
        "env": "intention",
        "gym": {"surface": "tokens", "limit": 7},
        "lr": 2e-3,
        "turn_tokens": 4,
        "credit": {"turn": "turn_baseline", "gamma": 0.5},
    },
}
"""Recipes that need no file: a selector on embedded data, an agent in the embedded world."""


@contextmanager
def no_bar(total: int) -> Iterator[Callable[[int], None]]:
    """For whoever shows nothing while it measures."""
    yield lambda count: None


def need_torch(device: str = "cpu") -> None:
    """One line instead of a traceback where torch is not installed, or not for this device."""
    from importlib.util import find_spec

    if find_spec("torch") is None:
        raise KleashError("this verb needs torch: pip install 'kleash[train]'")
    if device == "cpu":
        return
    import torch

    try:
        asked = torch.device(device)
    except RuntimeError:
        raise ConfigError(f"no device {device!r}: there is cpu, cuda, cuda:1") from None
    there = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    count = 0 if there is None or there.type != asked.type else torch.accelerator.device_count()
    if asked.type != "cpu" and not 0 <= (asked.index or 0) < count:
        why = f"torch {torch.__version__} finds {count} of that kind on this machine"
        raise KleashError(f"--device {device} is not there: {why}; see kleash doctor, or use cpu")


def resolve_run(
    config: str | Path, changes: Mapping[str, Any], out: Path | None = None, *, new: bool = False
) -> tuple[Path, Recipe, dict[str, Any]]:
    """The folder, the recipe and what was written, from a config or a run to go on with."""
    from kleash.config import merge, read_toml
    from kleash.runs.run import Run
    from kleash.train.recipe import placed, recipe_from

    path = Path(config)
    if path.is_dir():
        run = Run.open(path)
        if "adopted" in run.meta and out is None:
            raise KleashError(
                f"{path} was adopted, and its optimiser is not here: start a new run with"
                f" phase=grpo from={path}/checkpoints/NAME --out FOLDER"
            )
        given = merge(run.given, changes)
        recipe = recipe_from(run.given, placed(run), changes)
        longer = recipe.epochs != run.config["epochs"]
        if longer and not recipe.length_keys() and not new:
            raise KleashError(
                f"{path} was trained with a {recipe.schedule} schedule over"
                f" {run.config['epochs']} epochs: with {recipe.epochs} every step would differ,"
                " so it cannot be extended; add --new to train another run"
            )
        return out or path, recipe, given
    name = str(config)
    named = dict(NAMED[name] if name in NAMED else read_toml(path))
    if name in NAMED and changes.get("env", named.get("env")) != named.get("env"):
        del named["gym"]  # they are another environment's options
    given = merge(named, changes)
    recipe = recipe_from(given)
    return out or RUNS / f"{path.stem}-s{recipe.seed}", recipe, given


def recipe_keys(*, agent: bool) -> Iterator[tuple[str, str, str]]:
    """Every key of a recipe with its default and its sentence; of agents, each world's own too."""
    from kleash.config import help_lines
    from kleash.tasks.envs import ENVS, options_of
    from kleash.train.recipe import AgentRecipe, SelectorRecipe

    yield from help_lines(AgentRecipe if agent else SelectorRecipe)
    for name in ENVS if agent else ():
        for key, default, sentence in help_lines(options_of(name)):
            yield f"gym.{key} ({name})", default, sentence


def train_run(
    folder: Path,
    recipe: Recipe,
    given: Mapping[str, Any],
    *,
    device: str = "cpu",
    sinks: Sequence[str] = (),
    listen: Listener = lambda heard: None,
    progress: Callable[[int], None] = lambda count: None,
) -> tuple[Run, Usage]:
    """The run, trained by this process or by all ranks; the answers that were asked for."""
    from kleash.runs.ledger import Ledger
    from kleash.train import ranks
    from kleash.train.rollout import one_way, world_of
    from kleash.train.training import train

    folder.parent.mkdir(parents=True, exist_ok=True)
    ledger = Ledger(folder.parent / "ledger.sqlite", machines=ranks.several_machines())
    with one_way(), ledger:
        world = world_of(recipe, ledger, device=device, progress=progress)
        return train(folder, recipe, given, world, listen=listen, sinks=sinks), ledger.usage()


def measure(  # noqa: PLR0913  one for each choice of `kleash eval`
    run: Run,
    checkpoint: str = "last",
    *,
    shots: Sequence[int] = (),
    items: int | None = None,
    split: str = "test",
    baselines: bool = False,
    best_greedy: bool = False,
    device: str = "cpu",
    bar: Callable[[int], AbstractContextManager[Callable[[int], None]]] = no_bar,
) -> Wanted:
    """Score every item at some checkpoints of a run, where it is not there yet; what was measured.

    `bar` is told of how many scores there will be.
    """
    from kleash.runs.ledger import Ledger
    from kleash.train.evaluate import Wanted, evaluate, resolve_checkpoints
    from kleash.train.evaluate.selector import baseline_names
    from kleash.train.recipe import SelectorRecipe, placed, recipe_from
    from kleash.train.rollout import one_way, world_of

    recipe = recipe_from(run.config, placed(run))
    names = resolve_checkpoints(run, checkpoint)
    if baselines or best_greedy:
        names = baseline_names(greedy=best_greedy) + names
    pool = recipe.pool.size if isinstance(recipe, SelectorRecipe) else 0
    counts = tuple(shots) or ((1, 2, 3, 4) if pool else (0,))
    for each in counts:
        if pool and not 1 <= each <= pool:
            raise KleashError(f"{each} shots from pools of {pool}: ask for 1 to {pool}")
    with one_way(), Ledger(run.path.parent / "ledger.sqlite") as ledger:
        world = world_of(recipe, ledger, device=device)
        count = len(world.item_ids(split)) if items is None else items
        wanted = Wanted(names, counts, split, count)
        with bar(len(names) * len(counts) * count) as advance:
            evaluate(run, world, wanted, advance)
    return wanted


def policy_of(run: Run, checkpoint: str = "last") -> Any:
    """The policy of a checkpoint on the CPU, proven to be the one that was trained."""
    from tempfile import TemporaryDirectory

    from kleash.runs.ledger import Ledger
    from kleash.train.evaluate import resolve_checkpoints
    from kleash.train.recipe import placed, recipe_from
    from kleash.train.rollout import load_policy, one_way, world_of

    [name] = resolve_checkpoints(run, checkpoint)
    with (
        TemporaryDirectory() as spare,
        one_way(),
        Ledger(Path(spare) / "ledger.sqlite") as ledger,
    ):
        return load_policy(run, world_of(recipe_from(run.config, placed(run)), ledger), name)
