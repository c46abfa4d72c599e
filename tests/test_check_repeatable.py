"""The same report has the same marks in every process."""

import os
import subprocess
import sys
import tarfile
from pathlib import Path

ARCHIVE = Path(__file__).parent / "planted_by_hand" / "unseen14.tar.xz"


def test_marks_do_not_hang_on_the_order_of_sets(tmp_path):
    with tarfile.open(ARCHIVE) as every:
        text = every.extractfile("ab/zh_six/planted.md").read()
    (tmp_path / "r.md").write_bytes(text)
    asked = [sys.executable, "-m", "kleash", "check", "r.md", "--json"]
    running = [
        subprocess.Popen(
            asked,
            cwd=tmp_path,
            env={**os.environ, "PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
        )
        for seed in ("1", "2")
    ]
    first, second = (one.communicate()[0] for one in running)
    assert first
    assert first == second
