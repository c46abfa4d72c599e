"""What each key of a study's grid did: a forest of effects, and the table behind it."""

from __future__ import annotations

from kleash.catalogue import key_name
from kleash.charts import whiskers
from kleash.report.choices import dot
from kleash.report.material import Material, short
from kleash.report.parts import Cell, Figure, Linked, Part, Table
from kleash.report.places import first_place, linked
from kleash.results.factors import Effect, factor_effects

MOST_DRAWN = 30  # effects in a picture; the table has all


def factors(made: Material) -> list[Part]:
    """Effects of single keys and of two together; nothing where there is no full grid."""
    found = [] if made.study is None else factor_effects(made.study)
    if made.study is None or not found:
        return []
    where = first_place(made, made.study.arms[-1].name)
    apart = [each for each in found if each.adjusted_p < 0.05]
    names = made.listed([_name(made, each) for each in apart])
    code = "factors_seen" if apart else "factors_none"
    title = made.say(code, apart=len(apart), of=len(found), names=names)
    dots = [
        dot(f"{_name(made, each)}: {_values(each)}", each.gap, made.times, where)
        for each in found[:MOST_DRAWN]
    ]
    head = made.head("effect", "gap", "low", "high")
    chart = whiskers(title, made.say("factors_axis"), dots, head)
    rows: list[list[Cell]] = [
        [
            _name(made, each),
            _values(each),
            Linked(made.gap(each.gap), where),
            Linked(f"{each.adjusted_p:.2g}", where, strong=each.adjusted_p < 0.05),
            Linked(str(each.gap.n), where),
        ]
        for each in found
    ]
    table = Table(
        made.say("factors_of"),
        made.head("effect", "effect_values", "gap", "adjusted", "seeds"),
        rows,
        left=2,
    )
    return [Figure("factors", chart, linked(title, where)), table]


def _name(made: Material, each: Effect) -> str:
    return " × ".join(key_name(key, made.language) for key in each.keys)


def _values(each: Effect) -> str:
    return ", ".join(f"{short(ours)} − {short(theirs)}" for ours, theirs in each.values)
