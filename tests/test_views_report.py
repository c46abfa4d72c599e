"""What views left is told in a study's report: of the base and of every arm that has one."""

from __future__ import annotations

import re

import pytest

from kleash.report import markdown_of, study_material
from kleash.results import results
from kleash.runs import Run
from study_tools import inline, run_small

__all__ = ["inline"]

pytestmark = pytest.mark.usefixtures("one_thread")

TOLD = {
    "en": r"{arm}: its view leaves ([\d,]+) of ([\d,]+) groups and ([\d,]+) of ([\d,]+) pointers",
    "zh": r"{arm}：视图在 ([\d,]+) 组中保留 ([\d,]+) 组，在 ([\d,]+) 个范例序列中保留 ([\d,]+) 个",
}
MORE = {"en": "{arm}: where all pointers of a query were", "zh": "{arm}：对奖励全部相同的题目"}


@pytest.mark.slow
def test_a_report_counts_what_views_left(tmp_path, inline):
    """RCE's view is the base's; of GRPO only an arm with offline groups has one."""
    folder = tmp_path / "study"
    arms = {"offline": {"source": "offline", "view": {"keep": "mixed", "balance": "equal"}}}
    ran, _ = run_small(
        folder,
        seeds=2,
        base={"view": {"more": 2}},
        arms=arms,
        measure={"baselines": ["random", "base"], "shots": [2], "items": [20]},
    )
    assert not ran.failures
    runs = {
        "base": [Run.open(folder / f"base-s{seed}") for seed in (0, 1)],
        "offline": [Run.open(folder / f"runs/offline-s{seed}") for seed in (0, 1)],
    }
    for language in ("en", "zh"):
        text = markdown_of(study_material(results(folder), language), folder)
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
        for arm, own in runs.items():
            counts = [run.meta["view"] for run in own]
            found = re.findall(TOLD[language].format(arm=arm), plain)
            assert len(found) == 1, "each once, however many baselines lie in the base's folder"
            names = ("kept_groups", "groups", "kept_pointers", "pointers")
            said = [int(number.replace(",", "")) for number in found[0]]
            if language == "zh":
                said = [said[1], said[0], said[3], said[2]]
            assert said == [sum(each[name] for each in counts) for name in names]
            assert said[0] < said[1] or arm == "base"
        assert plain.count(MORE[language].format(arm="base")) == 1
        assert not re.search(TOLD[language].format(arm="baseline:.*"), plain)
        assert not re.search(TOLD[language].format(arm="tight"), plain), "online: it sees none"
