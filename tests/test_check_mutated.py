"""`kleash check` on reports that an accident changed: an answer in time, never a traceback."""

import random
import re
import time

import pytest
from typer.testing import CliRunner

from kleash.cli import app
from made_reports import STYLES

ODD = ("1e999", "-1e400", "1e-400", "9" * 400, "∞", "NaN", "|", "||", "|---|", "⟨n1.1⟩", "~", "\0")
ODD += ("𝟙", "0x1F", "1,000,000,000,000,000", "100%%", "(", "?", "`", "**", "e5", "1e308", "²", "٣")
SECONDS = 20


def mutated(seed):
    rng = random.Random(seed)
    made = rng.choice([*STYLES.values()])
    lines = made(seed % 3).split("\n")
    for _ in range(rng.randrange(1, 12)):
        at = rng.randrange(len(lines))
        line, cut = lines[at], rng.randrange(len(lines[at]) + 1)
        lines[at] = rng.choice(
            (
                line[:cut] + rng.choice(ODD) + line[cut:],
                line[:cut],
                " | ".join(rng.choices(ODD, k=5)),
                rng.choice(lines),
                re.sub(r"\d+(\.\d+)?", lambda found: rng.choice((found[0], rng.choice(ODD))), line),
            )
        )
    return "\n".join(lines)


@pytest.mark.parametrize("seeds", [range(30), pytest.param(range(3000), marks=pytest.mark.slow)])
def test_a_mutated_report_is_answered_in_time(tmp_path, seeds):
    report = tmp_path / "r.md"
    for seed in seeds:
        report.write_text(mutated(seed), encoding="utf-8")
        began = time.monotonic()
        told = CliRunner().invoke(app, ["check", str(report)])
        assert isinstance(told.exception, SystemExit | None), (seed, told.exception)
        assert time.monotonic() - began < SECONDS, seed
