"""Measure against plain implementations in the same run, and print figures and ratios.

    python -m benchmarks selector   (queries trained per second against one query at a time)
    python -m benchmarks answerer   (milliseconds of one core per answer)
    python -m benchmarks compare    (pairs, imports and the verb; needs no torch)
    python -m benchmarks study      (answers measured per second against one prompt at a time)
    python -m benchmarks report     (pages and reports of 1,000 runs; needs no torch)
    python -m benchmarks rollouts   (tokens said per second against model.generate turn by turn)
    python -m benchmarks leash      (whole steps of an agent with KL measured, and without)
    python -m benchmarks staleness  (steps with a slow user, played while the policy learns)
    python -m benchmarks gpu --device cuda --part update --seconds 200  (an 8B update)
    python -m benchmarks gpu --device cuda --part step  (whole GRPO steps)
    python -m benchmarks vlm --device cuda       (seconds per prompt of Qwen2.5-VL-3B's shape)
    python -m benchmarks captions --device cuda  (prompts per second of SmolLM2-135M's shape)

Where Kleash is not installed, PYTHONPATH=src comes before.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from benchmarks import BENCHES, ON_DEVICE
from kleash.errors import KleashError
from kleash.train.single import need_torch


def main(words: Sequence[str] | None = None) -> None:
    """Run one bench and print what it found."""
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        "python -m benchmarks", description=__doc__, formatter_class=plain
    )
    parser.add_argument("what", choices=BENCHES)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument("--device", default="cpu", help="cpu, cuda or cuda:1")
    parser.add_argument(
        "--part", help="of gpu: update, reference, rollouts, step, agreement or fits"
    )
    parser.add_argument("--model", help="of gpu: the shape, 8b, 4b, 1.7b or tiny")
    parser.add_argument("--seconds", type=float, help="of gpu: no part begins that would end later")
    parser.add_argument(
        "--packs", help="of gpu: packs of a size or two (fixed), or of any (dynamic)"
    )
    asked = vars(parser.parse_args(words))
    what, as_json, device = asked.pop("what"), asked.pop("json"), asked.pop("device")
    if device != "cpu" and what not in ON_DEVICE:
        parser.error(f"the bench {what!r} computes on the CPU: --device is for {ON_DEVICE}")
    given = {key: value for key, value in asked.items() if value is not None}
    if given and what != "gpu":
        parser.error(f"--{next(iter(given))} is for the bench 'gpu' alone")
    if what not in ("compare", "report"):
        need_torch(device)
    found = BENCHES[what](*[device] * (what in ON_DEVICE), **given)
    if as_json:
        sys.stdout.write(json.dumps(found) + "\n")
        return
    width = max(map(len, found))
    for name, value in found.items():
        shown = f"{value:,.3g}" if isinstance(value, float) else str(value)
        sys.stdout.write(f"{name:<{width}}  {shown}\n")


if __name__ == "__main__":
    try:
        main()
    except KleashError as error:
        sys.exit(f"benchmarks: {error}")
