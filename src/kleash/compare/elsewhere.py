"""The same gap elsewhere on the curves: at the end where the level is their mean, else on average.

One evaluation of one run is luck, so one run each is judged by the whole of both curves. Several
runs each are judged by where they end. A leash often costs at first and pays later, so the two need
not agree: whichever is not the level is told beside it.
"""

from __future__ import annotations

from dataclasses import replace

from kleash import stats
from kleash.compare.evidence import Gap, courses_of_pair, left_out, of_ends, shared_means
from kleash.compare.judging import Pair, judge
from kleash.compare.measured import places
from kleash.compare.records import Amount, Because, Judged, Question, Window
from kleash.compare.seeds import gap_of

FEWEST = 2  # steps; of one there is no average


def elsewhere(pair: Pair, level: Gap) -> Judged | None:
    """The answer to `at_end` or to `average`; None where the level is not of curves."""
    if level.counted == "steps":
        gap = of_ends(pair.ours, pair.theirs, pair.metric, pair.known.unit)
        return None if gap is None else _told(pair, gap, "at_end")
    return _average(pair) if level.of_curves else None


def _average(pair: Pair) -> Judged | None:
    """The mean over the steps that all runs share, over seeds."""
    seen = courses_of_pair(pair.ours, pair.theirs, pair.metric, FEWEST)
    if seen is None:
        return None
    means = [side.mean(axis=1) for side in (seen.ours, seen.theirs)]
    found = stats.paired_seeds(means[0], means[1])
    gap = gap_of(found, [float(side.mean()) for side in means], pair.metric)
    gap.over = Window(seen.axis, float(seen.steps[0]), float(seen.steps[-1]))
    gap.because = [each for each in gap.because if each.code == "seed_means"] + left_out(seen)
    return _told(pair, gap, "average")


def _told(pair: Pair, gap: Gap, question: Question) -> Judged:
    """The verdict without the reasons that the level has given already."""
    few = [Because("too_few_steps")] if gap.too_few and gap.counted == "steps" else []
    return replace(judge(pair, gap, question), because=(*gap.because, *few))


def unshared(pair: Pair) -> Judged:
    """Nothing measured at the same place: what whole-run statistics there are, and no verdict."""
    means = [
        cells
        for arm in (pair.ours, pair.theirs)
        for each in arm.replicates
        for (metric, place), cells in each.cells.items()
        if metric == pair.metric and place[4] == "mean"
    ]
    told = "; ".join(f"{arm.name}: {places(arm, pair.metric)}" for arm in (pair.ours, pair.theirs))
    because, estimate, unit = [Because("nothing_shared", {"names": told})], None, pair.known.unit
    seen = shared_means(pair.ours, pair.theirs, pair.metric)
    values = [next(iter(cells.values())).value for cells in means]
    if seen is not None:
        estimate = seen.ours - seen.theirs
        facts = {"ours": Amount(seen.ours, unit), "theirs": Amount(seen.theirs, unit)}
        because = [Because("means_of_unknown_size", facts | {"shots": len(seen.shots)})]
        because += [Because("one_checkpoint")] if seen.moved else []
    elif len(values) == 2 and values[0] is not None and values[1] is not None:
        estimate = values[0] - values[1]
        facts = {"ours": Amount(values[0], unit), "theirs": Amount(values[1], unit)}
        because = [Because("run_means_only", facts)]
    because.append(Because("one_run_per_arm"))
    return Judged(
        question="level",
        metric=pair.metric,
        unit=pair.known.unit,
        arms=pair.names,
        verdict="undecided",
        level="L1",
        estimate=estimate,
        also_changed=pair.also_changed(lengths=True),
        because=tuple(because),
    )
