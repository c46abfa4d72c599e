"""What a mean over n items can be, and samples that lie inside other samples.

The step of the scores is learnt from the means themselves, so that a few wrong ones stand out;
`stats` has the version that needs all of them to fit.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from kleash.findings.record import Found, Point, canonical, cell_points, runs, shown
from kleash.imports import Imported, Scores, Source
from kleash.stats import block_means, may_be_nested, order_effect
from kleash.stats.lattice import fits

_MEAN = re.compile(r"平均|均值|(?<![a-z])(?:mean|avg|average)(?![a-z])", re.I)
FEWEST = 8  # means that say something, to learn a lattice from
SHARE = 0.8  # of them that must lie on it
CHANCE = 1e-3
FINEST = 20
RANDOM = 0.05
MOST_STRAY = 2  # scores of one value off the lattice; more of them, and it is on it
COARSE = 200  # values that the scores of a lattice take, at most


def off_lattice(sources: Sequence[Source]) -> Iterator[Found]:
    """A mean over n items lies on the lattice that the other means show."""
    by_metric: dict[tuple[str, bool], list[tuple[Imported, Point]]] = defaultdict(list)
    means = _tables_of_means(sources)
    for run in runs(sources):
        for point in cell_points(run):
            if (
                point.known
                and point.items
                and point.number.decimals is not None
                and 0 <= point.value <= 1
                and point.number.text[:1] not in ("+", "-")  # a change, which is no mean of scores
                and (point.number.where.file, point.number.where.line) not in means
                and not _MEAN.search(point.number.where.spot.partition(" / ")[0])
            ):
                # Beside scores of single shots, one without is their mean, on a finer lattice.
                by_metric[point.metric, point.shots is None].append((run, point))
    for found in by_metric.values():
        parts = _parts([point for _, point in found])
        if parts is None:
            continue
        on = _on([point for _, point in found], parts)
        elsewhere = _other_quantities([point for _, point in found], on)
        for (run, point), fine in zip(found, on, strict=True):
            if not fine and id(point) not in elsewhere:
                facts = {
                    "arm": run.arm,
                    "metric": point.written,
                    "at": point.at,
                    "text": point.number.text or f"{point.value:g}",
                    "items": point.items,
                    "step": 1 / parts,
                }
                yield Found("off-lattice", "error", (point.number.where,), facts)


def _tables_of_means(sources: Sequence[Source]) -> set[tuple[str, int | None]]:
    """The lines of tables that stand under "mean over four shots": on finer lattices, if any."""
    return {
        (table.where.file, line)
        for source in sources
        for table in source.tables
        if table.headings and _MEAN.search(table.headings[-1])
        for line in table.lines
    }


def _other_quantities(found: Sequence[Point], on: np.ndarray) -> set[int]:
    """Points of tables most of whose numbers are off: those are no means over items."""
    tables: list[list[tuple[Point, bool]]] = []
    last: tuple[str, int] = ("", 0)
    places = [(point.number.where.file, point.number.where.line or 0) for point in found]
    for place, point, fine in sorted(zip(places, found, on, strict=True), key=lambda one: one[0]):
        if not tables or place[0] != last[0] or place[1] > last[1] + 1:
            tables.append([])
        tables[-1].append((point, bool(fine)))
        last = place
    off = [one for one in tables if sum(not fine for _, fine in one) * 2 > len(one)]
    return {id(point) for table in off for point, _ in table}


def _halves(found: Sequence[Point]) -> tuple[np.ndarray, np.ndarray]:
    sizes = np.array([point.items or 1 for point in found], dtype=np.float64)
    halves = np.array([0.5 * 10.0 ** -(point.number.decimals or 0) for point in found])
    return sizes, halves


def _on(found: Sequence[Point], parts: int) -> np.ndarray:
    sizes, halves = _halves(found)
    sums = np.array([point.value for point in found]) * sizes
    return fits(sums, halves * sizes, 1 / parts)


def _parts(found: Sequence[Point]) -> int | None:
    """Into how many parts the scores divide 1, if most means agree and chance would not do it."""
    sizes, halves = _halves(found)
    for parts in range(1, FINEST + 1):
        widths = 2 * halves * sizes * parts
        telling = widths < 0.5
        count = int(telling.sum())
        if count < FEWEST:
            return None
        on = _on(found, parts)
        misses = count - int((on & telling).sum())
        if misses > (1 - SHARE) * count:
            continue
        if misses > 1 and _finer(found, parts):
            return None  # means of several such means
        luck = math.log(math.comb(count, misses)) + float(np.log(widths[on & telling]).sum())
        return parts if luck < math.log(CHANCE) else None
    return None


def _finer(found: Sequence[Point], parts: int) -> bool:
    """Whether all means lie on a lattice that divides another, where that can be seen."""
    sizes, halves = _halves(found)
    for finer in range(2 * parts, FINEST + 1, parts):
        telling = 2 * halves * sizes * finer < 0.5
        if _on(found, finer).all() and telling.sum() >= FEWEST:
            return True
    return False


def scores_off_lattice(sources: Sequence[Source]) -> Iterator[Found]:
    """Single scores that are no multiples of what nearly all others are multiples of."""
    seen: dict[str, Counter[float]] = defaultdict(Counter)
    # Right and wrong are 1 and 0, multiples of anything: most scores need no look at their values.
    uneven = [(run, scores) for run in runs(sources) for scores in run.scores if _uneven(scores)]
    for _, scores in uneven:
        support, counts = np.unique(scores.values.round(9), return_counts=True)
        if len(support) <= COARSE:
            counted = dict(zip(support.tolist(), counts.tolist(), strict=True))
            seen[scores.metric].update(counted)
    for run, scores in uneven:
        found = _stray(run, scores, seen[scores.metric])
        if found is not None:
            yield found


def _uneven(scores: Scores) -> bool:
    """Whether some score is no whole number."""
    values = scores.values[np.isfinite(scores.values)]
    return bool((values != np.rint(values)).any())


def _stray(run: Imported, scores: Scores, seen: Counter[float]) -> Found | None:
    values = np.asarray(scores.values, dtype=np.float64)
    values = values[np.isfinite(values)]
    if len(values) < FEWEST:
        return None
    support, counts = np.unique(values.round(9), return_counts=True)
    for parts in range(1, FINEST + 1):
        off = np.abs(support * parts - (support * parts).round()) > 1e-6
        share = counts[off].sum() / counts.sum()
        if share == 0:
            return None
        if any(seen[value] > MOST_STRAY for value in support[off].tolist()):
            continue  # seen again and again: part of the lattice
        if share <= 0.05 and len(support[~off]) > 1:
            first = int(np.flatnonzero(np.isin(values.round(9), support[off]))[0])
            facts = {
                "arm": run.arm,
                "metric": scores.metric,
                "count": int(counts[off].sum()),
                "of": len(values),
                "step": 1 / parts,
                "value": float(values[first]),
            }
            return Found("scores-off-lattice", "error", (scores.where,), facts)
    return None


# --- samples inside samples


def nested_samples(sources: Sequence[Source]) -> Iterator[Found]:
    """The first 100, 200, 400 items of one set are one measurement, and no random samples."""
    for run in runs(sources):
        tables: dict[tuple[str, str], dict[int | None, dict[int, Point]]] = defaultdict(dict)
        for point in cell_points(run):
            change = point.number.text[:1] in ("+", "-")
            if point.known and point.items and 0 <= point.value <= 1 and not change:
                at = "" if point.epoch is None else f"epoch {point.epoch:g}"
                at = at or ("" if point.step is None else f"step {point.step:g}")
                by_size = tables[point.metric, at].setdefault(point.shots, {})
                by_size.setdefault(point.items, point)
        for (metric, at), shots in tables.items():
            sizes = sorted(set.intersection(*(set(by_size) for by_size in shots.values())))
            if len(sizes) > 1 and any(
                len({row[n].value for n in sizes}) > 1 for row in shots.values()
            ):
                yield _nested(run, metric, at, sizes, list(shots.values()))


def _nested(
    run: Imported, metric: str, at: str, sizes: list[int], shots: list[dict[int, Point]]
) -> Found:
    rows = [[by_size[n].value for n in sizes] for by_size in shots]
    half = max(0.5 * 10.0 ** -(b[n].number.decimals or 9) for b in shots for n in sizes)
    means = np.mean(rows, axis=0)
    facts = {
        "arm": run.arm,
        "metric": next(iter(shots[0].values())).written or canonical(metric),
        "at": at,
        "sizes": sizes,
        "means": [shown(mean) for mean in means],
    }
    where = tuple(shots[0][n].number.where for n in sizes)
    if not all(may_be_nested(sizes, row, half=half) for row in rows):
        return Found("samples-differ", "note", where, facts)
    facts["blocks"] = [shown(block.mean) for block in block_means(sizes, means)]
    if not 0 < means[-1] < 1:
        return Found("nested-samples", "note", where, facts)
    # The mean over shots varies less than single scores: the test errs towards no effect.
    effect = order_effect(sizes, means)
    if effect.p < RANDOM:
        return Found("order-effect", "warning", where, facts | {"p": shown(effect.p)})
    return Found("nested-samples", "note", where, facts)


RULES = (off_lattice, scores_off_lattice, nested_samples)
