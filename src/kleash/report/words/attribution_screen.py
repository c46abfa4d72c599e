"""The effect of one setting, as one screen or as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from kleash.compare.attribution import ALPHA, DOUBLING, Change, Effect
from kleash.report.parts import Document, Lines, Section
from kleash.report.terminal import terminal_of
from kleash.report.words import Language, gap_text, key_name, say
from kleash.report.words.verdicts import placed

NAMED = 8  # settings or pairs named in a sentence


def terminal(found: Effect, language: Language, columns: int = 100) -> str:
    """The answer, then what limits it, in so many columns."""
    title = {
        "key": found.keys[0],
        "metric": placed(found.metric, found.over, language),
        "runs": len(found.rows),
        "seeds": found.seeds,
        "df": found.df,
    }
    lists = [Lines(answer(found, language)), Lines(limits(found, language))]
    sections = [Section(f"part-{nth}", "", [part]) for nth, part in enumerate(lists)]
    return terminal_of(Document(say("effect_title", title, language), language, sections), columns)


def answer(found: Effect, language: Language) -> list[str]:
    """What the setting did, or why these runs cannot say."""
    with_it = found.keys[1:] or found.aliased_with
    facts: dict[str, Any] = {"key": found.keys[0], "others": _keys(with_it, language)}
    said = [say(code, facts, language) for code in found.refusals]
    for each in found.changes:
        inside = each.interval
        low, high = (None, None) if inside is None else (inside.low, inside.high)
        gap = gap_text(each.estimate, low, high, found.unit, language)
        facts |= {"gap": gap, "change": _change(each, language), "p": each.p}
        small = each.p is not None and each.p < ALPHA
        code = "effect_plain" if each.p is None else "effect_named" if small else "effect_none"
        said.append(say("effect_joint" if found.refusals else code, facts, language))
    return said


def _change(each: Change, language: Language) -> str:
    kinds = {DOUBLING: "change_doubling", "0": "change_zero"}
    code = kinds.get(each.ours) if isinstance(each.ours, str) else None
    return say(code or "change_levels", {"ours": each.ours, "theirs": each.theirs}, language)


def limits(found: Effect, language: Language) -> list[str]:
    """What the answer rests on, and what these runs cannot say."""
    return [say(code, facts, language) for code, facts in _limits(found, language)]


def _limits(found: Effect, language: Language) -> Iterator[tuple[str, dict[str, Any]]]:
    yield from ((each.code, dict(each.facts)) for each in found.of_units)
    if found.seeds == 1:
        yield "one_seed_only", {}
    if found.misfit is None:
        yield "misfit_unknown", {}
    elif found.misfit < ALPHA:
        yield "misfit_found", {"p": found.misfit}
    acting = [pair for pair, _ in found.acting]
    for code, pairs in (("pairs_acting", acting), ("pairs_unseen", found.unseen)):
        if pairs:
            named = [" × ".join(key_name(key, language) for key in pair) for pair in pairs]
            yield code, {"pairs": _few(named)}
    for code, keys in (
        ("held_equal", found.others),
        ("not_held_equal", found.outside),
        ("told_by_names", found.by_name),
    ):
        if keys:
            yield code, {"names": _keys(keys, language)}
    for why, left in found.left_out.items():
        if left:
            yield f"left_out_{why}", {"names": _few(left)}


def _keys(keys: Sequence[str], language: Language) -> list[str]:
    return _few([key_name(key, language) for key in keys])


def _few(names: Sequence[str]) -> list[str]:
    """As a list: a long text would be cut where it is quoted."""
    return [*names[:NAMED], *(["…"] if len(names) > NAMED else [])]


def plain(found: Effect, language: Language) -> dict[str, Any]:
    """The answer as JSON: fractions as fractions, and the sentences in the language."""
    runs = [{"run": row.name, "seed": row.seed, "value": row.value} for row in found.rows]
    facts = {name: value for name, value in vars(found).items() if name not in ("rows", "of_units")}
    return facts | {
        "changes": [asdict(each) for each in found.changes],
        "over": None if found.over is None else asdict(found.over),
        "refusals": found.refusals,
        "runs": runs,
        "seeds": found.seeds,
        "because": [*answer(found, language), *limits(found, language)],
    }
