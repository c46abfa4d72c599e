"""What arms are called where there is little room."""

import pytest

from kleash.compare.comparison import Wish, compare
from kleash.compare.read.run_names import shortly
from kleash.report import markdown_of, of_sources, screen, short_page
from test_compare import run, sources, with_curve

LONG = "TravelGym_Qwen3-4B_n8_"


@pytest.mark.parametrize(
    ("names", "dropped", "short"),
    [
        ((f"{LONG}kl0.001", f"{LONG}nokl"), f"{LONG}…", ["kl0.001", "nokl"]),
        (("kl0.01_qwen3_4b_travel_n8", "nokl_qwen3_4b_travel_n8"), None, ["kl0.01", "nokl"]),
        (("grpo-qwen2.5-b0.1-seeded-x1", "grpo-qwen2.5-b0.2-seeded-x1"), None, ["b0.1", "b0.2"]),
        # A number alone is no name.
        (
            ("grpo_qwen_travel_beta_0.1", "grpo_qwen_travel_beta_0.2"),
            None,
            ["beta_0.1", "beta_0.2"],
        ),
        # One that is short stays, and so does the rest where it would be called the same.
        ((f"{LONG}kl1", f"{LONG}kl2", "base"), None, ["kl1", "kl2", "base"]),
        ((f"{LONG}kl1", f"{LONG}kl2", "kl1"), "", [f"{LONG}kl1", f"{LONG}kl2", "kl1"]),
        # Nothing, or too little, is shared.
        (("one_name_that_is_long_enough", "other_name_that_is_longer"), "", None),
        (("kl_one_name_that_is_long_enough", "kl_other_name_that_is_longer"), "", None),
        (("run_0.1_qwen3_4b_travel_n8", "run_0.2_qwen3_4b_travel_n8"), "", None),
        (("kl0.1", "kl0.2"), "", None),
        (("a_name_that_is_long_enough",), "", None),
    ],
)
def test_names_are_told_by_what_differs(names, dropped, short):
    now, was = shortly(names)
    assert now == (short or list(names))
    assert bool(was) == (dropped != "")
    assert dropped in (None, was)


def two():
    values = [1.0, 1.1, 1.2, 1.1, 1.3, 1.2, 1.4, 1.3]
    runs = [
        with_curve(run(f"{LONG}nokl", config={"beta": 0.0}), values),
        with_curve(run(f"{LONG}kl0.1", config={"beta": 0.1}), values[::-1]),
    ]
    return sources(*runs)


def test_a_page_calls_arms_shortly_and_says_so():
    found = compare(two(), Wish(shortly=True))
    assert found.baseline == "nokl"
    text = screen.terminal(found, "en")
    assert "kl0.1 against nokl" in text
    assert f"called by what differs in their names: {LONG}…" in " ".join(text.split())
    assert f"{LONG}kl0.1" in {name for arm in found.arms for name in arm["also"]}
    page = markdown_of(short_page(of_sources(found, "logs", "zh")))
    assert "kl0.1 对 nokl" in page
    assert f"名称中不同的部分来称呼：{LONG}…" in page


def test_the_baseline_may_be_asked_for_by_its_whole_name_and_programs_get_it():
    found = compare(two(), Wish(baseline=f"{LONG}kl0.1", shortly=True))
    assert found.baseline == "kl0.1"
    assert compare(two()).baseline == f"{LONG}nokl"
