"""What the README says of the embedded study, on fresh seeds and under other instructions."""

import json
import os
import subprocess
import sys

import pytest

from kleash.study.results import results

SWEEP = ["none", "kl-0.12", "kl-0.145", "kl-0.15", "kl-0.155", "kl-0.18"]
MOVING = ["moving-none", "moving-kl-0.15", "moving-kl-1.5"]


def kleash(*words, **variables):
    done = subprocess.run(
        [sys.executable, "-m", "kleash", *map(str, words)],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seeds", "instructions"), [("0,1,2,3,4", "avx2"), ("5,6,7,8,9", "")], ids=["avx2", "fresh"]
)
def test_the_embedded_study_says_what_the_readme_says(tmp_path, seeds, instructions):
    variables = {"ATEN_CPU_CAPABILITY": instructions} if instructions else {}
    folder = tmp_path / "demos-kl"
    kleash("study", f"seeds=[{seeds}]", "--out", folder, **variables)
    found = json.loads(kleash("compare", folder, "--json"))
    verdicts = found["verdicts"]
    [use] = [each for each in verdicts if each["question"] == "recommend"]
    assert use["because"][0] == "No arm is better than not training: keep the start."
    gains = {each["arms"][0]: each for each in verdicts if each["question"] == "gain"}
    assert [gains[arm]["verdict"] for arm in SWEEP] == ["equivalent"] * len(SWEEP)
    assert [gains[arm]["verdict"] for arm in MOVING] == ["worse"] * len(MOVING)
    kl = {row.name: row.kl.estimate for row in results(folder).rows}
    assert all(kl[arm] < 0.01 for arm in SWEEP)
    assert 0.05 < kl["moving-kl-1.5"] < kl["moving-kl-0.15"] < kl["moving-none"]
