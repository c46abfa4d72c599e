"""Makes tests/fixtures/imports/swanlab with the SwanLab that is installed: a small offline run.

SwanLab wants an older protobuf than the other tools, so it has an environment of its own:
`pip install swanlab==0.10.3` (records in protobuf) or `swanlab==0.7.20` (records in JSON), then
`python scripts/make_swanlab.py FOLDER`. Run it where the path
may be seen: it is in the log.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import swanlab

from make_fixtures import CONFIG, KL, LOSS, NAME, ODD, STEPS


def main() -> None:
    """Log the numbers of the other fixtures, keep the log and the config beside it."""
    place = Path(sys.argv[1])
    logs = Path("swanlog")
    swanlab.init(project="leash", experiment_name=NAME, config=CONFIG, mode="offline", logdir=logs)
    for step, loss, kl, odd in zip(STEPS, LOSS, KL, ODD, strict=True):
        swanlab.log({"train/loss": loss, "kl": kl, "odd": odd}, step=step)
    swanlab.finish()
    [log] = logs.glob("run-*/*.swanlab")
    (place / "run/files").mkdir(parents=True)
    shutil.copy(log, place / "run" / log.name)
    shutil.copy(log.parent / "files/config.yaml", place / "run/files/config.yaml")


if __name__ == "__main__":
    main()
