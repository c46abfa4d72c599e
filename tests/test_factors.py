"""A planted effect belongs to the factor it was planted in, and to no other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kleash.cli.summary import summary_table
from kleash.report import markdown_of, study_material
from kleash.results import Results, results
from kleash.results.factors import factor_effects, mains, pairs
from kleash.results.summary import plain
from made_factorial import ASKED, Keys, made_factorial

PLANTED = "entropy_bonus"
GRID: dict[str, list[Any]] = ASKED["grid"]
ON = {key: values[1] for key, values in GRID.items()}


def apart(found: Results) -> dict[tuple[str, ...], float]:
    """The effects with an adjusted p below 0.05, and how large they are."""
    effects = factor_effects(found)
    assert len(effects) == 6  # three keys and three pairs of them
    return {each.keys: each.gap.estimate for each in effects if each.adjusted_p < 0.05}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """A study in which one key has an effect, as several tests tell of it."""
    folder = tmp_path_factory.mktemp("factors") / "made"
    made_factorial(folder, lambda keys: 1.5 + 0.3 * (keys[PLANTED] == ON[PLANTED]))
    return results(folder)


def test_terminal_and_json_have_the_effects(found: Results) -> None:
    titles = [str(table.title) for table in summary_table(found, "en")]
    assert titles[0].startswith("made-agents: test reward")
    assert "mean over greedy and 2 sampled passes, 40 tasks, 6 seeds" in titles[0]
    assert any(title.startswith("effects of the grid's keys") for title in titles)
    effects = plain(found)["factors"]
    assert [each["keys"] for each in effects if each["adjusted_p"] < 0.05] == [(PLANTED,)]
    assert apart(found)[PLANTED,] == pytest.approx(0.3, abs=0.06)


@pytest.mark.parametrize("planted", [key for key in GRID if key != PLANTED])
def test_effect_is_attributed_to_the_factor_that_has_it(planted: str, tmp_path: Path) -> None:
    def worth(keys: Keys) -> float:
        return 1.5 + 0.3 * (keys[planted] == ON[planted])

    made_factorial(tmp_path / "made", worth)
    told = apart(results(tmp_path / "made"))
    assert list(told) == [(planted,)]
    assert told[planted,] == pytest.approx(0.3, abs=0.06)


def test_effect_of_two_together_is_an_interaction(tmp_path: Path) -> None:
    both = ("leash.coefficient", "entropy_bonus")

    def worth(keys: Keys) -> float:
        one, other = (keys[key] == ON[key] for key in both)
        return 1.5 + 0.2 * (1 if one == other else -1)  # neither has an effect on the average

    made_factorial(tmp_path / "made", worth)
    told = apart(results(tmp_path / "made"))
    assert list(told) == [both]
    assert told[both] == pytest.approx(0.8, abs=0.12)


def test_noise_alone_is_attributed_to_nothing(tmp_path: Path) -> None:
    made_factorial(tmp_path / "made", lambda keys: 1.5)
    assert apart(results(tmp_path / "made")) == {}


def test_effects_by_hand() -> None:
    # Two seeds; a: 0 → 1, b: 0 → 1. Scores [seed, a, b].
    scores = np.array([[[0.0, 1.0], [2.0, 5.0]], [[1.0, 2.0], [4.0, 5.0]]])[..., None]
    grid: dict[str, tuple[Any, ...]] = {"a": (0, 1), "b": (0, 1)}
    first, second = mains(grid, scores)
    assert first.gap.estimate == pytest.approx(((2 - 0 + 5 - 1) / 2 + (4 - 1 + 5 - 2) / 2) / 2)
    assert second.gap.estimate == pytest.approx(((1 - 0 + 5 - 2) / 2 + (2 - 1 + 5 - 4) / 2) / 2)
    (joint,) = pairs(grid, scores)
    assert joint.gap.estimate == pytest.approx((((5 - 1) - (2 - 0)) + ((5 - 2) - (4 - 1))) / 2)
    assert joint.values == ((1, 0), (1, 0))


@pytest.mark.parametrize(
    ("language", "said", "never"),
    [
        (
            "en",
            ("What each setting did", "1 of 6 effects are told apart", "entropy coefficient"),
            ("accuracy", "shot", "demonstration", "pointer", "answerer", "questions like"),
        ),
        ("zh", ("各设置的作用", "6 个作用中有 1 个"), ("准确率", "范例", "应答模型")),
    ],
)
def test_report_of_agents_names_the_factor_in_words_of_agents(
    language: str, said: tuple[str, ...], never: tuple[str, ...], found: Results
) -> None:
    text = markdown_of(study_material(found, language), found.folder.parent)
    for words in said:
        assert words in text
    lines = [line for line in text.splitlines() if any(word in line for word in never)]
    assert lines == []


def test_study_without_a_grid_has_no_factors(tmp_path: Path) -> None:
    arms = {"none": {"leash": {"coefficient": 0.0}}, "kl": {"leash": {"coefficient": 0.1}}}
    made_factorial(tmp_path / "made", lambda keys: 1.5, grid={}, arms=arms, seeds=2)
    assert factor_effects(results(tmp_path / "made")) == []
