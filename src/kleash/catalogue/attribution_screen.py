"""What `attribute` found, as one screen or as JSON: what did it, what is refused, what to run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from kleash.attribution import DOUBLING, Addition, Attribution, Effect, Pair
from kleash.catalogue import Language, cut, gap_text, key_name, pad, say, show, width
from kleash.catalogue.lines import placed

NAMED = 8  # settings or pairs named in a sentence


def change(effect: Effect, language: Language) -> str:
    """`0.01 instead of 0`, or what a line's slope is of."""
    if effect.ours == DOUBLING:
        return say("change_doubling", {}, language)
    code = "change_zero" if effect.ours == "0" else "change_levels"
    return say(code, {"ours": effect.ours, "theirs": effect.theirs}, language)


def gap(effect: Effect, unit: str, language: Language) -> str:
    """The effect with its interval."""
    inside = effect.interval
    low, high = (None, None) if inside is None else (inside.low, inside.high)
    return gap_text(effect.estimate, low, high, unit, language)


def p_text(p: float | None) -> str:
    """A p-value, or a dash."""
    return "—" if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}"


def _keys(keys: Sequence[str], language: Language) -> list[str]:
    """As a list: a long text would be cut where it is quoted."""
    named = [key_name(key, language) for key in keys[:NAMED]]
    return [*named, *(["…"] if len(keys) > NAMED else [])]


def verdicts(found: Attribution, language: Language) -> list[str]:
    """What did it, one sentence each; or that nothing can be named."""
    said = [say(code, {}, language) for code in found.doubts]
    for each in sorted(found.effects, key=lambda effect: effect.adjusted_p or 0.0):
        if each.adjusted_p is None or each.adjusted_p >= 0.05:
            continue
        facts = {
            "keys": list(each.keys),
            "gap": gap(each, found.unit, language),
            "change": change(each, language),
            "p": each.adjusted_p,
        }
        said.append(say("effect_named" if each.named else "effect_joint", facts, language))
    if said or any(each.adjusted_p is None for each in found.effects):
        return said
    return [say("effect_none", {}, language)] if found.effects else []


def refusals(found: Attribution, language: Language) -> list[str]:
    """Every factor that is aliased, by name, with whom."""
    return [
        say(
            "refused_always" if each.always else "refused_aliased",
            {"key": each.key, "others": _keys(each.aliased_with, language)},
            language,
        )
        for each in found.refused
    ]


def limits(found: Attribution, language: Language) -> list[str]:
    """What the answer rests on, and what these runs cannot say."""
    return [say(code, facts, language) for code, facts in _limits(found, language)]


def _left_out(found: Attribution) -> Iterator[tuple[str, dict[str, Any]]]:
    kinds = {"void": found.left_out, "aside": found.aside, "broke_off": found.broke_off}
    for kind, names in kinds.items():
        if names:
            more = ["…"] if len(names) > NAMED else []
            yield f"left_out_{kind}", {"names": [*names[:NAMED], *more]}


def _limits(found: Attribution, language: Language) -> Iterator[tuple[str, dict[str, Any]]]:
    if found.df < 1:
        yield "no_interval", {}
    yield from ((each.code, dict(each.facts)) for each in found.of_units)
    yield from _left_out(found)
    if found.by_name:
        yield "told_by_names", {"names": _keys(found.by_name, language)}
    if found.seeds == 1:
        yield "one_seed_only", {}
    elif found.shared > 0:
        yield "seeds_shared_part", {"part": f"{found.shared:.0%}"}
    if found.misfit is None:
        yield "misfit_unknown", {}
    else:
        yield ("misfit_found" if found.misfit < 0.05 else "misfit_none"), {"p": found.misfit}
    yield from _pairs(found, language)
    sorted_out = found.settings
    for code, keys in (
        ("not_asked_for", sorted_out.ignored),
        ("setting_or_result", sorted_out.numbers),
        ("never_varied", sorted_out.constant),
        ("partly_told", sorted_out.untold),
        ("follows_seed", sorted_out.of_seed),
        ("taken_for_label", sorted_out.labels),
    ):
        if keys:
            yield code, {"names": _keys(keys, language)}


def _pairs(found: Attribution, language: Language) -> Iterator[tuple[str, dict[str, Any]]]:
    for each in found.pairs:
        if each.p is not None and each.p < 0.05:
            facts = {"pair": _pair(each, language), "p": each.p}
            code = "pair_acts" if each.effect is None else "pair_found"
            gaps = {"gap": gap(each.effect, found.unit, language)} if each.effect else {}
            yield code, facts | gaps
    quiet = [each for each in found.pairs if each.p is not None and each.p >= 0.05]
    hidden = [each for each in found.pairs if not each.estimable]
    for code, group in (("pairs_seen", quiet), ("pairs_hidden", hidden)):
        if group:
            more = ["…"] if len(group) > NAMED else []
            yield code, {"pairs": [*(_pair(each, language) for each in group[:NAMED]), *more]}


def _pair(pair: Pair, language: Language) -> str:
    return " × ".join(key_name(key, language) for key in pair.keys)


def steps(found: Attribution, language: Language) -> list[str]:
    """Runs to add, with a command where the run is ours."""
    said = [_step(each, language) for each in found.add]
    if found.df + len(found.add) < 1:
        said.append(say("add_repeat", {"like": found.rows[0].name}, language))
    return said


def _step(each: Addition, language: Language) -> str:
    setting = f"{each.written}={show(each.value, language)}"
    facts = {"like": each.like, "change": setting, "parts": _keys(each.parts, language)}
    text = say("add_run" if each.parts else "add_run_step", facts, language)
    return f"{text}\n{each.command}" if each.command else text


def table(found: Attribution, language: Language) -> list[list[str]]:
    """Every effect that can be told, a row each, after the heads."""
    heads = ("column_factor", "column_change", "column_effect", "column_p")
    rows = [[say(code, {}, language) for code in heads]]
    for each in found.effects:
        name = " + ".join(key_name(key, language) for key in each.keys)
        cells = [change(each, language), gap(each, found.unit, language), p_text(each.adjusted_p)]
        rows.append([name, *cells])
    return rows


def terminal(found: Attribution, language: Language, columns: int = 100) -> str:
    """One screen of plain text in so many columns."""
    title = {
        "runs": len(found.rows),
        "seeds": found.seeds,
        "metric": placed(found.metric, found.over, language),
        "factors": sum(len(each.keys) for each in found.settings.factors),
        "df": found.df,
    }
    lines = [say("attribution_title", title, language)]
    if said := verdicts(found, language):
        lines += ["", *_listed(said, columns)]
    if found.effects:
        heading = "heading_effects_alone" if found.settings.ignored else "heading_effects"
        lines += ["", say(heading, {}, language), *_table(table(found, language))]
    for code, texts in (
        ("heading_refused", refusals(found, language)),
        ("heading_add", steps(found, language)),
        ("heading_limits", limits(found, language)),
    ):
        if texts:
            lines += ["", say(code, {}, language), *_listed(texts, columns)]
    return "\n".join("".join(c for c in line if c.isprintable()) for line in lines)


def _listed(texts: Sequence[str], columns: int) -> list[str]:
    """Each with a mark, cut to the width; a command after it stays on a line of its own."""
    lines = []
    for text in texts:
        said, *commands = text.split("\n")
        first, *rest = cut(said, columns - 2)
        lines += [f"- {first}", *(f"  {each}" for each in rest)]
        lines += [f"  {each}" for each in commands]
    return lines


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    wide = [max(width(row[at]) for row in rows) for at in range(len(rows[0]))]
    return ["  ".join(pad(cell, wide[at]) for at, cell in enumerate(row)).rstrip() for row in rows]


def plain(found: Attribution, language: Language) -> dict[str, Any]:
    """The answer as JSON: fractions as fractions, and the sentences in the language."""
    return {
        "metric": found.metric,
        "runs": [{"run": row.name, "seed": row.seed, "value": row.value} for row in found.rows],
        "df": found.df,
        "seeds": found.seeds,
        "shared": found.shared,
        "effects": [asdict(each) | {"named": each.named} for each in found.effects],
        "refused": [asdict(each) for each in found.refused],
        "interactions": [asdict(each) for each in found.pairs],
        "misfit": found.misfit,
        "uneven": found.uneven,
        "doubts": found.doubts,
        "never_varied": found.settings.constant,
        "partly_told": found.settings.untold,
        "follows_seed": found.settings.of_seed,
        "labels": found.settings.labels,
        "not_asked_for": found.settings.ignored,
        "setting_or_result": found.settings.numbers,
        "left_out": [*found.left_out, *found.aside, *found.broke_off],
        "told_by_names": found.by_name,
        "add": [asdict(each) for each in found.add],
        "because": [
            *verdicts(found, language),
            *refusals(found, language),
            *limits(found, language),
        ],
        "next": steps(found, language),
    }
