"""What is wrong with a file of RL data: counts first, then one function for each kind of wrong.

Each check says what it noticed as a code with facts; the words are in `words`.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from kleash.tasks.demos.reward import query_health
from kleash.tasks.demos.rl_data import Candidate, RlData, RlGroup
from kleash.tasks.demos.score import vqa_accuracy

NAMED = 5  # queries named as examples
ROUNDING = 0.011  # files keep accuracies to two digits
NO_SIGNAL = 0.5  # of groups, before it is called wrong
UNLIKELY = 1e-6
TRUTHS = 4  # annotators that the official accuracy needs


Test = Callable[[RlGroup, Candidate], bool]


@dataclass(frozen=True)
class Noticed:
    """One thing about a file: wrong, or a note."""

    code: str
    facts: Mapping[str, Any]
    severity: Literal["wrong", "note"] = "wrong"


def counts(data: RlData) -> dict[str, Any]:
    """What is in the file, before anything is said of it."""
    every = [each for group in data.groups for each in group.candidates]
    known = [each for each in every if each.rewarded]
    groups = [[each.worth for each in g.candidates if each.rewarded] for g in data.groups]
    health = query_health([group for group in groups if group], top=1.0) if known else None
    sizes = [len(group.candidates) for group in data.groups]
    pools = Counter(len(group.pool) for group in data.groups)
    return {
        "queries": len(data.groups),
        "pointers": len(every),
        "positive": sum(each.positive for each in known),
        "share": sum(each.positive for each in known) / len(known) if known else None,
        "least": min(sizes),
        "most": max(sizes),
        "sizes": sorted(pools),
        "lengths": sorted({len(each.shown) for each in every}),
        "methods": dict(Counter(each.method or "?" for each in every).most_common()),
        "mixed": health.mixed if health else 0,
        "zero": health.all_zero if health else 0,
        "top": health.all_one if health else 0,
        "equal": health.all_equal if health else 0,
        "convention": convention(every),
    }


def convention(candidates: Sequence[Candidate]) -> str:
    """Whether pointers are numbers of demonstrations, places with numbers beside, or both."""
    places = sum(each.places is not None for each in candidates)
    if not places:
        return "global"
    return "local" if places == len(candidates) else "both"


def check(data: RlData, pools: Mapping[str, Sequence[int]] | None = None) -> list[Noticed]:
    """Everything noticed, what is wrong first; `pools`: those that should have been used."""
    found = [each for one in CHECKS for each in one(data)]
    if pools is not None:
        found += other_pools(data, pools)
    return sorted(found, key=lambda each: each.severity != "wrong")


def told(
    code: str,
    data: RlData,
    wrong: Test,
    of: Test = lambda group, each: True,
    **facts: Any,
) -> Iterator[Noticed]:
    """How many pointers something is wrong with, with some of their queries, if any are."""
    bad = [group.query for group in data.groups for each in group.candidates if wrong(group, each)]
    if bad:
        total = sum(of(group, each) for group in data.groups for each in group.candidates)
        yield Noticed(code, {"count": len(bad), "total": total, "examples": some(bad)} | facts)


def told_of_queries(code: str, data: RlData, bad: Sequence[str], **facts: Any) -> Iterator[Noticed]:
    """How many queries something is wrong with, if any are."""
    if bad:
        base = {"count": len(bad), "total": len(data.groups), "examples": some(bad)}
        yield Noticed(code, base | facts)


def some(names: Iterable[str]) -> list[str]:
    """A few of the names, each once."""
    found = list(dict.fromkeys(names))
    return [*found[:NAMED], *(["…"] if len(found) > NAMED else [])]


# --- facts


def unanswered(data: RlData) -> Iterator[Noticed]:
    """Rewards nobody ran a model for, errors that stand as zeros, pointers without a reward."""
    yield from told(
        "rl.unanswered",
        data,
        lambda group, each: each.rewarded and has_no_answer(group, each),
        lambda _, each: each.rewarded,
    )
    yield from told("rl.failed", data, lambda _, each: each.failed and each.rewarded)
    yield from told("rl.unrewarded", data, lambda _, each: not each.rewarded)


def has_no_answer(group: RlGroup, each: Candidate) -> bool:
    """Whether nobody ran the model for it, other than by failing."""
    return not each.failed and not (each.answer or "").strip()


def copied(data: RlData) -> Iterator[Noticed]:
    """Positives that are copies."""
    yield from told("rl.copied", data, copies_in(data), lambda _, each: each.positive)


def copies_in(data: RlData) -> Test:
    """Tells positives of other queries: said so, or right there and, with this answer, not here."""
    elsewhere: dict[tuple[object, ...], set[str]] = defaultdict(set)
    for group in data.groups:
        for each in group.candidates:
            if each.positive and each.answer:
                elsewhere[each.shown, each.answer].add(group.query)

    def is_copy(group: RlGroup, each: Candidate) -> bool:
        if not each.positive:
            return False
        if set(each.sources) - {group.query}:
            return True
        others = elsewhere.get((each.shown, each.answer), set()) - {group.query}
        return bool(others) and earned(group, each) == 0

    return is_copy


def earned(group: RlGroup, each: Candidate) -> float | None:
    """What the answer earns with this query's own truths, if both are there."""
    if each.answer is None or len(group.answers) < TRUTHS:
        return None
    return vqa_accuracy(each.answer, group.answers)


def not_their_own(data: RlData) -> Iterator[Noticed]:
    """Scores that the answer does not earn, flags that contradict scores, scores in percent."""

    def differs(group: RlGroup, each: Candidate) -> bool:
        ours = earned(group, each)
        return None not in (ours, each.accuracy) and abs(ours - each.accuracy) > ROUNDING  # type: ignore[operator]

    yield from told(
        "rl.not_own", data, differs, lambda g, e: earned(g, e) is not None and e.rewarded
    )
    yield from told(
        "rl.flag",
        data,
        lambda _, e: None not in (e.correct, e.accuracy) and e.correct != ((e.accuracy or 0) > 0),
    )
    yield from told("rl.range", data, lambda _, e: not 0 <= (e.accuracy or 0) <= 1)
    few = [group.query for group in data.groups if len(group.answers) < TRUTHS]
    for noticed in told_of_queries("rl.truths", data, few):
        yield Noticed(noticed.code, noticed.facts, "note")


# --- pools and pointers


def pools_differ(data: RlData) -> Iterator[Noticed]:
    """Pools that are missing, of different sizes, with repeats, or with the query in them."""
    groups = data.groups
    bare = [group.query for group in groups if not group.pool]
    yield from told_of_queries("rl.no_pool", data, bare)
    sizes = Counter(len(group.pool) for group in groups if group.pool)
    if len(sizes) > 1:
        usual = sizes.most_common(1)[0][0]
        odd = [group.query for group in groups if group.pool and len(group.pool) != usual]
        yield from told_of_queries("rl.pool_sizes", data, odd, sizes=sorted(sizes))
    twice = [group.query for group in groups if len({*group.pool}) < len(group.pool)]
    yield from told_of_queries("rl.pool_repeats", data, twice)
    own = [group.query for group in groups if group.query in {str(each) for each in group.pool}]
    yield from told_of_queries("rl.pool_self", data, own)


def made_of_pointers(data: RlData) -> Iterator[Noticed]:
    """Pools in which what the pointers show comes first: then places tell what was chosen."""
    full = [group for group in data.groups if group.pool and group.candidates]
    used = [{number for each in group.candidates for number in each.shown} for group in full]
    first = [
        group.query
        for group, shown in zip(full, used, strict=True)
        if 2 <= len(shown) < len(group.pool) and {*group.pool[: len(shown)]} == shown
    ]
    if first and len(first) > len(full) / 2:
        yield from told_of_queries("rl.pool_order", data, first)


def other_pools(data: RlData, pools: Mapping[str, Sequence[int]]) -> Iterator[Noticed]:
    """Pools that are not those of a cache."""
    other = [
        group.query
        for group in data.groups
        if group.pool and sorted(pools.get(group.query, ())) != sorted(group.pool)
    ]
    yield from told_of_queries("rl.pool_cache", data, other)


def leaves(group: RlGroup, each: Candidate) -> bool:
    """Whether a pointer leads to what is not in the pool."""
    size = len(group.pool)
    if size and each.places is not None and not all(0 <= at < size for at in each.places):
        return True
    return bool(size) and group.local(each) is None


def repeats(group: RlGroup, each: Candidate) -> bool:
    """Whether a pointer shows a demonstration twice."""
    return len({*each.shown}) < len(each.shown)


def shows_itself(group: RlGroup, each: Candidate) -> bool:
    """Whether a pointer shows the query."""
    return group.query in {str(number) for number in each.shown}


def elsewhere_in_pool(group: RlGroup, each: Candidate) -> bool:
    """Whether another demonstration stands at a place than the number beside it says."""
    places = each.places
    return bool(group.pool) and places is not None and group.local(each) not in (None, places)


def outside(data: RlData) -> Iterator[Noticed]:
    """Pointers to what is not in the pool, to one demonstration twice, or to the query itself."""
    yield from told("rl.outside", data, leaves, lambda group, _: bool(group.pool))
    yield from told("rl.repeated", data, repeats)
    yield from told("rl.itself", data, shows_itself)
    lengths = Counter(len(each.shown) for group in data.groups for each in group.candidates)
    if len(lengths) > 1:
        yield Noticed("rl.lengths", {"lengths": sorted(lengths)}, "note")


def misplaced(data: RlData) -> Iterator[Noticed]:
    """Places that hold another demonstration than the number beside; some are modulo accidents."""

    def modulo(group: RlGroup, each: Candidate) -> bool:
        size = len(group.pool)
        wrong = elsewhere_in_pool(group, each)
        return wrong and each.places == tuple(number % size for number in each.shown)

    def counted(group: RlGroup, each: Candidate) -> bool:
        return bool(group.pool) and each.places is not None

    def other(group: RlGroup, each: Candidate) -> bool:
        return elsewhere_in_pool(group, each) and not modulo(group, each)

    yield from told("rl.misplaced", data, other, counted)
    yield from told("rl.modulo", data, modulo, counted)


def duplicates(data: RlData) -> Iterator[Noticed]:
    """The same ordered pointer twice in a group, the same question twice, the same key twice."""
    twice, contradicting = [], []
    for group in data.groups:
        worth: dict[tuple[int, ...], list[float]] = defaultdict(list)
        for each in group.candidates:
            worth[each.shown].append(each.worth)
        for values in worth.values():
            twice += [group.query] * (len(values) - 1)
            contradicting += [group.query] * (len({*values}) > 1)
    total = sum(len(group.candidates) for group in data.groups)
    for code, bad in (("rl.duplicates", twice), ("rl.contradicts", contradicting)):
        if bad:
            yield Noticed(code, {"count": len(bad), "total": total, "examples": some(bad)})
    asked = Counter(group.question_id for group in data.groups)
    yield from told_of_queries("rl.asked_twice", data, [k for k, n in asked.items() if n > 1])
    yield from told_of_queries("rl.keys_twice", data, data.repeated_keys)


# --- what can be learnt


def no_signal(data: RlData) -> Iterator[Noticed]:
    """Groups in which all pointers are worth the same: none of them teaches anything."""
    known = {
        group.query: [each.worth for each in group.candidates if each.rewarded]
        for group in data.groups
    }
    flat = [query for query, worth in known.items() if worth and len({*worth}) == 1]
    zero = sum(known[query][0] == 0 for query in flat)
    severity: Literal["wrong", "note"] = (
        "wrong" if len(flat) > NO_SIGNAL * len(data.groups) else "note"
    )
    for noticed in told_of_queries("rl.no_signal", data, flat, zero=zero):
        yield Noticed(noticed.code, noticed.facts, severity)


def order_ignored(data: RlData) -> Iterator[Noticed]:
    """Pointers that rise (or fall) far more often than chance: somebody sorted them."""
    several = [
        each.shown
        for group in data.groups
        for each in group.candidates
        if len({*each.shown}) == len(each.shown) > 1
    ]
    if not several:
        return
    chance = sum(1 / math.factorial(len(shown)) for shown in several) / len(several)
    for code, backwards in (("rl.order_rising", False), ("rl.order_falling", True)):
        count = sum(list(shown) == sorted(shown, reverse=backwards) for shown in several)
        if tail(count, len(several), chance) < UNLIKELY:
            facts = {"count": count, "total": len(several), "chance": chance}
            yield Noticed(code, facts)


def tail(count: int, total: int, chance: float) -> float:
    """How likely at least so many are, when each has the same chance."""
    from scipy.stats import binom

    return float(binom.sf(count - 1, total, chance))


def unsound(data: RlData) -> dict[tuple[str, int], str]:
    """Pointers that nobody should train on, by query and place in its group, and why.

    A reward that is wrong or missing is no reason: it is worked out again from the answer.
    """
    tests: dict[str, Test] = {
        "an error": lambda _, each: each.failed,
        "no answer": has_no_answer,
        "copied from another query": copies_in(data),
        "no pool": lambda group, _: not group.pool,
        "outside the pool": leaves,
        "another demonstration at its place": elsewhere_in_pool,
        "a demonstration twice": repeats,
        "the query itself": shows_itself,
    }
    found: dict[tuple[str, int], str] = {}
    for group in data.groups:
        met: set[tuple[int, ...]] = set()
        for at, each in enumerate(group.candidates):
            reasons = (name for name, test in tests.items() if test(group, each))
            reason = next(reasons, "asked before" if each.shown in met else "")
            if reason:
                found[group.query, at] = reason
            met.add(each.shown)
    return found


CHECKS: tuple[Callable[[RlData], Iterable[Noticed]], ...] = (
    unanswered,
    copied,
    not_their_own,
    pools_differ,
    made_of_pointers,
    outside,
    misplaced,
    duplicates,
    no_signal,
    order_ignored,
)
