"""What a policy would choose on a fixed probe set, kept for every checkpoint of a run.

The histories are the base's own greedy choices, so that all arms of a seed are asked the same:
after these choices, how likely is each candidate? Two such files give the KL between two arms.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from kleash import guard
from kleash.policy import fingerprint
from kleash.rollout import one_way
from kleash.rollout.selector import SelectorWorld
from kleash.runs import Run
from kleash.selector import Pointers, Selector

PROBE_QUERIES = 64


def choices_file(run: Path, checkpoint: str) -> Path:
    """Where the distributions of a checkpoint lie."""
    return run / "choices" / f"{checkpoint}.npy"


@one_way()
@torch.no_grad()
def keep_choices(run: Run, world: SelectorWorld, names: Sequence[str], base: Selector) -> None:
    """Write the log-probabilities [query, step, candidate] of checkpoints that have none yet."""
    missing = [name for name in names if not choices_file(run.path, name).is_file()]
    if not missing:
        return
    whole = world.queries("validation")
    queries = whole.take(range(min(PROBE_QUERIES, len(whole))))
    along, _ = base.choose(queries, world.recipe.shots)
    for name in missing:
        policy = load_policy(run, world, name)
        _write(choices_file(run.path, name), distributions(policy, along))


def load_policy(run: Run, world: Any, name: str) -> Any:
    """The policy of a checkpoint, strictly; of either family."""
    kept = run.load(name, trainer=False)
    policy = world.fresh_policy()
    guard.load_strictly(policy, kept.weights, source=f"{run.path}/checkpoints/{name}")
    guard.same_weights(kept.state["weights_hash"], fingerprint(policy.state_dict()))
    return policy.to(world.device)


def distributions(policy: Selector, along: Pointers) -> NDArray[np.float32]:
    """Log-probabilities of every candidate at every step; −inf where it cannot be chosen."""
    logp_NA = policy.logits(along).log_softmax(-1)
    made_PT = along.made_PT
    whole = logp_NA.new_full((*made_PT.shape, logp_NA.shape[-1]), -torch.inf)
    whole[made_PT] = logp_NA
    found: NDArray[np.float32] = whole.float().cpu().numpy()
    return found


def _write(path: Path, values: NDArray[np.float32]) -> None:
    path.parent.mkdir(exist_ok=True)
    passing = path.parent.with_name(f".{path.name}.tmp")  # whoever locks the run next clears it
    with passing.open("wb") as handle:
        np.save(handle, values)
    passing.replace(path)
