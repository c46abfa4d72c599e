"""Whether a change to training changed a number: `python -m benchmarks.same_bytes [NAME]`.

Short runs of both families, over the leash's forms, controllers, references and ways to go through
a batch; of each a hash of its metrics, of every tensor in its checkpoints and of its scores. Run it
on two revisions: the same lines say that every run ended with the same bytes. `ranks` is added by
name only, because two processes take as long as all the others together.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parent.parent / "tests"))  # the data set that answers at once

START = "start"
FORMS = ("return_to_go", "exact", "k2", "k3", "k3_ratio", "reward_k1", "none")
GRPO = "phase=grpo queries=16 lr=1e-3"
SELECTOR = {
    "all phases": "",
    "online": GRPO,
    **{f"form {form}": f"{GRPO} updates=2 leash.form={form}" for form in FORMS},
    "offline": f"{GRPO} source=offline",
    "offline exact ema": f"{GRPO} source=offline leash.form=exact leash.reference=ema batch=3",
    "offline one by one": f"{GRPO} source=offline batch=1 leash.form=k3 advantage=standardise",
    "offline reward": f"{GRPO} source=offline leash.form=reward_k1 updates=2 view.keep=mixed",
    "ema adaptive": f"{GRPO} leash.reference=ema leash.controller=adaptive leash.target=0.1",
    "reset": f"{GRPO} leash.reference=reset_every leash.reference_every=3 schedule=cosine warmup=2",
    "path target": f"{GRPO} leash.reference=path leash.controller=target leash.target=0.1",
    "unscaled": f"{GRPO} advantage=standardise leash.form=k3 leash.scaled=false weight=by_episode"
    " leash.clamp=0.001 clip.dual=3 updates=2",
    "rank": f"{GRPO} advantage=rank weight=by_group entropy_bonus=0.01",
    "frozen": f'{GRPO} freeze=["projections"] leash.controller=linear leash.steps=3',
    "early stop": f"{GRPO} early_stop=on epochs=4",
    "goes on": f"{GRPO} leash.reference=ema leash.controller=adaptive leash.target=0.1",
    "scenes": "data=few-scenes answerer=embedded selector=v4-2 queries=8 epochs=1",
}
PACKED = "scale.packed=on scale.pack_tokens=64"
PARTS = "part_tokens=96"
CAP = "sampler.cap=2"
TAUGHT = "supervised.epochs=2 supervised.dialogues=800 supervised.lr=0.01"
AGENT = {
    "all phases": "",
    "packed phases": PACKED,
    **{f"form {form}": f"phase=grpo {PARTS} leash.form={form}" for form in FORMS},
    **{f"packed {form}": f"phase=grpo {PACKED} leash.form={form}" for form in FORMS},
    "twice": f"phase=grpo {PARTS} updates=2 entropy_bonus=0.01",
    "packed twice": f"phase=grpo {PACKED} updates=2 entropy_bonus=0.01 leash.form=exact",
    "stale": f"phase=grpo {CAP} sampler.staleness=1 steps=3",
    "packed stale": f"phase=grpo {CAP} sampler.staleness=1 steps=3 {PACKED} leash.form=exact",
    "capped": f"phase=grpo {CAP} {PARTS} leash.form=k3 updates=2",
    "pinned": f"phase=grpo {PACKED} scale.reference=pinned",
    "ema": f"phase=grpo {PACKED} leash.reference=ema leash.controller=adaptive leash.target=0.1",
    "turns": f"phase=grpo {PARTS} credit.turn=turn_baseline",
    "to go": f"phase=grpo {PACKED} credit.turn=reward_to_go advantage=standardise",
    "lora": "supervised.epochs=0 lora.rank=4 leash.reference=adapter_off",
    "packed lora": f"supervised.epochs=0 lora.rank=4 leash.reference=adapter_off {PACKED}",
    "bfloat16": f"phase=all scale.precision=bfloat16 {PARTS}",
    "packed bfloat16": f"phase=all scale.precision=bfloat16 {PACKED} scale.moments=host",
    "goes on": f"phase=grpo {PACKED} leash.reference=ema scale.precision=bfloat16",
    "passes": "phase=grpo validation.passes=2 collapse=stop early_stop=on epochs=3",
}
RANKS = {
    "ranks": "phase=all",
    "ranks exact": "phase=all updates=2 leash.form=exact leash.reference=ema entropy_bonus=0.01",
    "ranks reward": "phase=all leash.form=reward_k1 scale.precision=bfloat16",
    "ranks lora": "supervised.epochs=0 lora.rank=4 leash.reference=adapter_off sampler.cap=2",
}


def hash_of(run: Any) -> str:
    """Of everything that two equal runs share."""
    from kleash.algo.policy import fingerprint
    from kleash.train.checkpoints import TrainerState

    digest = hashlib.sha256()
    for name in ("metrics.jsonl", "scores.jsonl"):
        path = run.path / name
        digest.update(path.read_bytes() if path.is_file() else b"none")
    for name in run.checkpoints():
        digest.update(fingerprint(run.load(name, trainer=False).weights).encode())
    digest.update(fingerprint(TrainerState(run, run.checkpoints()[-1]).tensors()).encode())
    return digest.hexdigest()[:16]


def trained(folder: Path, ledger: Any, given: Mapping[str, Any], items: int) -> Any:
    """A run of a recipe, with scores of its last checkpoint."""
    from kleash.train.evaluate import Wanted, evaluate
    from kleash.train.recipe import recipe_from
    from kleash.train.rollout import world_of
    from kleash.train.training import train

    recipe = recipe_from(given)
    world = world_of(recipe, ledger)
    run = train(folder, recipe, given, world)
    wanted = Wanted(run.checkpoints()[-1:], [recipe.validated_at()], "test", items)
    evaluate(run, world, wanted)
    return run


def started(keys: str, start: Path, name: str) -> str:
    """The keys of a run that begins where another one ended."""
    checkpoint = start / "checkpoints" / name
    keys += f" from={checkpoint}" if "phase=grpo" in keys else ""
    return keys + (f" leash.reference_path={checkpoint}" if "reference=path" in keys else "")


def runs(folder: Path, ledger: Any, wanted: str) -> Iterator[tuple[str, Any]]:
    """Every run that is wanted, trained."""
    from kleash.config import merge, parse_overrides

    given, short = import_module("tiny").given, import_module("agent_tools").SHORT

    families = (
        ("selector", SELECTOR, lambda keys: given(*keys), "", "rce-1", 6),
        (
            "agent",
            AGENT,
            lambda keys: merge(short, parse_overrides(keys)),
            TAUGHT,
            "supervised-2",
            4,
        ),
    )
    for family, table, recipe, first, base, items in families:
        names = [name for name in table if wanted in f"{family} {name}"]
        start = folder / family / START
        if names:
            trained(start, ledger, recipe(["epochs=0", *first.split()]), items)
        for name in names:
            place, keys = folder / family / name, started(table[name], start, base).split()
            if name == "goes on":
                trained(place, ledger, recipe([*keys, "epochs=1"]), items)
            yield f"{family} {name}", trained(place, ledger, recipe(keys), items)


def ranked(folder: Path, wanted: str) -> Iterator[tuple[str, Any]]:
    """Runs of two processes, where they are wanted by name."""
    from kleash.runs.run import Run

    short = import_module("agent_tools").SHORT

    for name, keys in RANKS.items():
        if "ranks" not in wanted or wanted not in name:
            continue
        place = folder / name.replace(" ", "-")
        command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "-m"]
        command += ["kleash", "train", "agent", *flat(short), *keys.split(), "--out", str(place)]
        env = os.environ | {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
        subprocess.run(command, env=env, check=True, capture_output=True)
        yield name, Run.open(place)


def flat(given: Mapping[str, Any], above: str = "") -> list[str]:
    """A recipe as `key=value`."""
    found = []
    for key, value in given.items():
        inner = isinstance(value, Mapping)
        found += flat(value, f"{above}{key}.") if inner else [f"{above}{key}={value}"]
    return found


def main(wanted: str = "") -> None:
    """Print a line for each run: its hash and its name."""
    from kleash.runs.ledger import Ledger

    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        with Ledger(folder / "ledger.sqlite") as ledger:
            for name, run in chain(runs(folder, ledger, wanted), ranked(folder, wanted)):
                print(hash_of(run), name, flush=True)  # noqa: T201 (what it is for)


if __name__ == "__main__":
    main(*sys.argv[1:])
