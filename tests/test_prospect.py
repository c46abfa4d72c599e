"""What hours buy: plans keep their promises in `compare`, and their command can be run."""

import json
import math

import numpy as np
import pytest
from typer.testing import CliRunner

from kleash.cli import app
from kleash.cli.plan import answer, grounds
from kleash.compare.comparison import Wish, compare
from kleash.errors import ConfigError, DataError
from kleash.seeds import generator
from kleash.stats import Crossed, GapSpread
from kleash.study.budget import after_runs, before_runs, comparisons, design
from made_crossed import SHARE, crossed_gaps, crossed_source
from made_study import made_study
from test_compare import sources
from test_compare_ends import FREE, trained

TRUE = GapSpread(0.02, 0.05, 0.3)
WISH = Wish(margin=0.05, units=SHARE)


def runs(gaps=None, seeds=5, items=60, seconds=3600.0, name="runs"):
    gaps = {"0.1": 0.05, "1": 0.0} if gaps is None else gaps
    return crossed_source(crossed_gaps(generator(name), TRUE, gaps, seeds, items), seconds)


def words(found, language="en"):
    return "\n".join([*answer(found, language), *grounds(found, language)])


# --- what is promised is what `compare` does


def kept(made, spread, items, studies):
    """How often `compare` calls a promised gap better, and an equal arm equivalent."""
    rng = generator("kept", made)
    names = [f"{10.0**-at:g}" for at in range(made.arms - 1)]
    seen = equal = 0
    for _ in range(studies):
        gaps = dict.fromkeys(names, 0.0) | {names[0]: made.gap}
        scores = crossed_gaps(rng, spread, gaps, made.seeds, items)
        wish = Wish("accuracy", "kl-none", made.margin, units=SHARE)
        found = compare([crossed_source(scores)], wish)
        told = {e.arms[0]: e.verdict for e in found.verdicts if e.question == "level"}
        seen += told[f"kl-{names[0]}"].startswith("better")
        equal += "within" in told[f"kl-{names[-1]}"] or told[f"kl-{names[-1]}"] == "equivalent"
    return seen / studies, equal / studies


@pytest.mark.parametrize(
    "studies",
    [pytest.param(25, id="short"), pytest.param(800, id="full", marks=pytest.mark.slow)],
)
@pytest.mark.parametrize(
    ("arms", "seeds", "items", "spread"),
    [
        (2, 9, 100, GapSpread(0.02, 0.05, 0.2)),
        (4, 7, 100, GapSpread(0.01, 0.03, 0.1)),
        (3, 11, 100, GapSpread(0.03, 0.0, 0.3)),
    ],
)
def test_designs_have_the_power_they_promise(arms, seeds, items, spread, studies, request):
    if arms == 4 and studies > 100:  # 0.855 of these 800 studies, 0.843 of 2,400: docs/log.md
        promised = "of four arms the power promised is some 4 points too low"
        request.applymarker(pytest.mark.xfail(strict=True, reason=promised))
    seen, equal = kept(design(spread, items, arms, seeds, 0.0), spread, items, studies)
    # Of the statistics alone `test_crossed` holds 3 points; here the draws' own luck is added.
    room = 0.03 + (1.5 if studies > 100 else 2.5) * math.sqrt(0.16 / studies)
    assert seen == pytest.approx(0.8, abs=room)
    if arms > 2:
        assert equal == pytest.approx(0.8, abs=room)


def test_what_is_promised_after_runs_is_kept_on_average():
    # From the spread that few seeds show, the power promised is off; its mean is not far off.
    powers = []
    for study in range(40):
        found = after_runs([runs(name=f"again {study}", gaps={"1": 0.0})], WISH, 30.0)
        then = found.designs[0]
        powers.append(Crossed(TRUE, then.seeds, 60).power(then.gap))
    assert np.mean(powers) == pytest.approx(0.8, abs=0.1)


def test_the_family_is_that_of_compare():
    source = runs({"0.1": 0.0, "1": 0.0, "10": 0.0})
    found = compare([source], Wish("accuracy", "kl-none", units=SHARE))
    family = [e for e in found.verdicts if e.question in ("level", "trend")]
    assert len([e for e in family if e.p is not None]) == comparisons(3) == 4
    assert comparisons(1) == 1


# --- before any run


def test_without_runs_gaps_are_in_sds_between_seeds():
    small, large = before_runs(40.0, 2.0), before_runs(80.0, 2.0)
    assert [(each.arms, each.seeds) for each in small.designs] == [(2, 10), (3, 6), (4, 5), (5, 4)]
    for one, other in zip(small.designs, large.designs, strict=False):
        assert one.hours <= 40 and other.hours <= 80 and other.gap < one.gap
    first = small.designs[0]
    assert first.gap == pytest.approx(Crossed(GapSpread(1.0, 0.0, 0.0), 10, 1).smallest_gap())
    nothing = before_runs(15.0, 2.0)
    assert nothing.designs == []
    assert "four seeds of all arms take 16 hours" in words(nothing)


# --- after runs


def test_the_spread_is_what_the_runs_allow():
    told = runs(seeds=6, items=80)
    spread = after_runs([told], WISH).spread
    assert (spread.way, spread.arms, spread.seeds, spread.items) == ("items", 2, 6, 80)
    assert spread.gap.rest == pytest.approx(TRUE.rest, rel=0.15)
    assert spread.cautious.seeds >= spread.gap.seeds
    for run in told.runs:  # means without items
        [scores] = run.scores
        run.scores = [type(scores)("accuracy", ["all"], scores.values[:1], scores.where)]
    assert after_runs([told], WISH).spread.way == "seeds"
    for run in told.runs:
        run.seed = run.seed + 100 * (run.arm == "kl-none")
    assert after_runs([told], WISH).spread.way == "apart"
    one = after_runs([runs(seeds=1)], WISH, 30.0)
    assert one.in_sds and one.designs and not one.chances
    assert "SDs between seeds" in words(one) and "below four nothing is decided" in words(one)


def test_hours_buy_seeds_of_all_arms_or_of_open_ones():
    found = after_runs([runs({"0.1": 0.4, "1": 0.01, "10": 0.01})], WISH, 60.0)
    assert (found.seeds, found.baseline, found.cost.run) == (5, "kl-none", 1.0)
    assert [each.arms[0] for each in found.decided] == ["kl-0.1"]
    assert set(found.chances) == {each.arms[0] for each in found.open} == {"kl-1", "kl-10"}
    assert [(each.arms, each.seeds) for each in found.designs] == [(3, 25), (4, 20)]
    for each in found.designs:
        assert each.hours <= 60 and each.gap < found.now.gap
    assert found.designs[0].gap < found.cautious.gap
    assert "decided already: kl-0.1" in words(found)
    assert "20 more seeds of kl-none, kl-1, kl-10 (60 hours)" in words(found)
    assert "已有结论：kl-0.1" in words(found, "zh")
    # By default as many hours as the runs took: four arms, five seeds, an hour each.
    again = after_runs([runs({"0.1": 0.4, "1": 0.01, "10": 0.01})], WISH)
    assert again.hours == 20 and again.designs[-1].seeds == 10
    found.open, found.designs = [], []
    assert "nothing is open" in words(found) and "best:" not in words(found)


def test_of_means_a_design_has_no_items():
    heights = {0.0: 0.0, 0.1: 0.0, 0.2: 0.3}
    told = sources(
        *(r for beta, up in heights.items() for r in trained(beta, FREE + up, 5, noise=0.02))
    )
    found = after_runs(told, Wish(), 60.0, 2.0)
    assert "now: 5 seeds; a gap of" in words(found) and " items" not in words(found)


def test_where_items_are_the_error_it_says_so():
    gaps = np.where(np.arange(30) % 2, 0.3, -0.28)  # the same items gain under every seed
    noise = generator("items are the error").normal(0, 0.02, (3, 6, 30))
    arms = {"none": noise[0], "1": gaps + noise[1], "10": 0.5 + noise[2]}
    found = after_runs([crossed_source(arms)], Wish(margin=0.05), 30.0)
    for language, said in (("en", "more items would help"), ("zh", "多测题目比多加种子更有用")):
        assert said in words(found, language) and "百分点 的" not in words(found, language)


def test_runs_that_say_too_little():
    none = after_runs([runs()], WISH, 0.5)
    assert not none.designs
    few = after_runs([runs(seeds=2)], WISH, 30.0)
    assert few.now is None and few.designs[0].seeds >= 4
    with pytest.raises(ConfigError, match="the runs do not tell"):
        after_runs([runs(seconds=None)], WISH)
    same = crossed_source({"none": np.full((4, 5), 0.5), "1": np.full((4, 5), 0.6)})
    with pytest.raises(DataError, match="the same under every seed"):
        after_runs([same], Wish(), 30.0)


# --- studies


def noisy_study(folder, **keys):
    """A study made by hand whose seeds differ, as those of a real one do."""
    file = made_study(folder, **keys)
    rng = generator("noisy study")
    for path in sorted((folder / "runs").glob("*/scores.jsonl")):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        luck = rng.random()
        for line in lines:
            if line["split"] == "test" and rng.random() < 0.1 + 0.2 * luck:
                line["score"] = 1.0 - line["score"]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    seconds = [{"job": f"base-s{seed}", "seconds": 3.0} for seed in file.seeds]
    for path in (folder / "runs").iterdir():
        seconds.append({"job": path.name, "seconds": 60.0, "asked": 1, "bought": 1})
    (folder / "spent.jsonl").write_text("".join(json.dumps(each) + "\n" for each in seconds))
    return file


def asked_verb(*words):
    told = CliRunner().invoke(app, ["plan", *words])
    if told.exception is not None and not isinstance(told.exception, SystemExit):
        raise told.exception
    assert told.exit_code == 0, told.output
    return told.output


def test_a_study_needs_no_further_argument_and_its_command_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    noisy_study(tmp_path / "studies/made", seeds=4)
    plain = json.loads(asked_verb("studies/made", "--json"))
    assert plain["arms"] == ["none", "kl0.15", "kl1.5"] and plain["seeds"] == 4
    # 60 s a job with what it measures; a start takes 3 s.
    assert plain["cost"]["run"] == pytest.approx(1 / 60)
    assert plain["cost"]["start"] == pytest.approx(3 / 3600)
    assert plain["hours"] == pytest.approx(4 * (3 / 3600 + 3 / 60))
    assert plain["decided"] == ["kl0.15"] and plain["open"] == ["kl1.5"]
    assert [each["arms"] for each in plain["designs"]] == [2, 3]
    seeds = list(range(8))
    assert plain["command"] == f"kleash study studies/made 'seeds={seeds}'"
    words = ["study", "studies/made", f"seeds={seeds}", "--dry-run"]
    told = CliRunner().invoke(app, words)
    assert told.exit_code == 0, told.output
    assert plain["command"] in asked_verb("studies/made", "--lang", "zh")


def test_what_no_design_can_show_is_null_in_json(monkeypatch):
    monkeypatch.setattr("kleash.study.budget.POWER", 0.9999)
    told = asked_verb("--hours", "40", "--run-hours", "2", "--json")
    assert "Infinity" not in told and json.loads(told)["designs"]


def test_what_the_verb_refuses(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for words, message in (
        (("--hours", "4"), "give --hours and --run-hours"),
        (("--hours", "0", "--run-hours", "1"), "--hours 0"),
        (("--hours", "4", "--run-hours", "nan"), "--run-hours nan"),
        (("--hours", "4", "--run-hours", "1", "--margin", "-1"), "--margin -1"),
    ):
        with pytest.raises(ConfigError, match=message):
            asked_verb(*words)
