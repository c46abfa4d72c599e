"""What the guards of a run noticed while it trained: it stands in the run's own record."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from kleash.findings.record import Found, runs
from kleash.imports import Source, Where

GUARDS = {
    "collapse": "run-collapse",
    "no-signal": "run-no-signal",
    "little-signal": "run-little-signal",
    "near-uniform": "run-near-uniform",
    "no-choice": "run-no-choice",
    "coefficient-unit": "run-coefficient-unit",
    "few-tasks": "run-few-tasks",
    "far-sampler": "run-far-sampler",
}


def noticed_while_training(sources: Sequence[Source]) -> Iterator[Found]:
    """Each kind once, with the arms it concerns and how many of their runs."""
    every = list(runs(sources))
    concerned: dict[str, list[tuple[str, int, Where]]] = defaultdict(list)
    for run in every:
        seen = set()
        for code, step, where in run.noticed:
            if code not in seen:
                concerned[code].append((run.arm, step, where))
            seen.add(code)
    for guard, code in GUARDS.items():
        if told := concerned.get(guard):
            arms = list(dict.fromkeys(arm for arm, _, _ in told))
            facts = {
                "arms": arms,
                "count": len(told),
                "of": sum(run.arm in arms for run in every),
                "at": f"step {min(step for _, step, _ in told)}",
            }
            yield Found(code, "warning", tuple(where for _, _, where in told), facts)


RULES = (noticed_while_training,)
