"""The paper plans of docs/scale.md are what the functions say."""

from pathlib import Path

import pytest

from benchmarks.traffic import Cluster, step
from kleash.models.language.shape import QWEN3

PAGE = Path(__file__).parents[1] / "docs/scale.md"
LENGTHS = [3740] * 48  # 48 episodes of the documents' length: 179,520 tokens, half of them said


def test_gathering_by_hand() -> None:
    inside = Cluster(8)
    assert inside.gather(8e9) == pytest.approx(7e9 / 450e9)  # seven eighths over NVLink
    assert Cluster(64).gather(8e9) == pytest.approx(7e9 / 400e9)  # seven machines' share by network
    assert Cluster(1).gather(8e9) == 0
    assert Cluster(1000).nodes == 125


@pytest.mark.parametrize(("gpus", "size"), [(8, "8B"), (64, "8B"), (64, "32B"), (1000, "32B")])
def test_the_page_has_the_computed_figures(gpus: int, size: str) -> None:
    found = step(QWEN3[size], Cluster(gpus), LENGTHS, said=89_760)
    numbers = (
        found.played,
        found.reference,
        found.updated,
        found.gathered,
        found.reduced,
        found.synced,
        found.seconds,
    )
    row = f"| {gpus:,} | {size} | {found.memory / 2**30:.0f} | "
    row += " | ".join(f"{number:.2f}" if number < 10 else f"{number:.0f}" for number in numbers)
    assert row + " |" in PAGE.read_text(encoding="utf-8"), row
