"""A plan as one screen of text, or as JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from kleash.catalogue import Language, cut, gap_text, pad, say, show, width
from kleash.compare import Amount
from kleash.prospect import Design, Option, Proposal, Prospect, Rest

COLUMNS = ("arms", "seeds", "items", "hours", "gap", "margin", "seen")


def amount(value: float, rest: Rest, language: Language) -> str:
    """A gap in points, in the metric's own unit, or in SDs between seeds."""
    if not math.isfinite(value):
        return "—"
    if rest.in_sds:
        return f"{value:.2f}"
    return show(Amount(value, rest.unit, gap=True), language)


def hours_text(hours: float) -> str:
    """Hours as people say them."""
    return f"{hours:.3g}" if hours < 100 else f"{hours:.0f}"


def title(rest: Rest, hours: float, language: Language) -> str:
    """What is planned for."""
    facts = {
        "hours": hours_text(hours),
        "metric": rest.metric,
        "margin": amount(rest.goal.margin, rest, language),
        "power": f"{rest.goal.power:.0%}",
    }
    return say("plan_title_sds" if rest.in_sds else "plan_title", facts, language)


def decided(design: Design, rest: Rest, language: Language) -> list[str]:
    """What a design decides, and where it errs."""
    facts = {
        "gap": amount(design.gap, rest, language),
        "margin": amount(design.margin, rest, language),
        "power": f"{rest.goal.power:.0%}",
    }
    if rest.in_sds:
        return [say("plan_decides_sds", facts, language)]
    said = [say("plan_decides", facts, language)]
    margin = amount(rest.goal.margin, rest, language)
    at = {"margin": margin, "seen": f"{design.seen:.0%}", "equal": f"{design.equal:.0%}"}
    said.append(say("plan_at_margin", at, language))
    if min(design.gap, design.margin) > rest.goal.margin:
        said.append(say("plan_not_at_margin", facts | {"margin": margin}, language))
    seeds = (rest.spread.gap.of_seed(design.items) ** 2) / design.seeds
    items = rest.spread.gap.of_items(design.items) ** 2
    if items:
        said.append(say("plan_unequal", {"parts": f"{seeds / (seeds + items):.0%}"}, language))
    return said


def rests_on(
    rest: Rest, cautious: Design | None, most: int | None, language: Language
) -> list[str]:
    """Costs, spreads, and the plan with a wider one."""
    cost, spread = rest.cost, rest.spread
    known = {"run": cost.run, "base": cost.base, "item": cost.item}
    costs = {name: "—" if value is None else f"{value:.3g}" for name, value in known.items()}
    said = [say("plan_cost", costs, language)]
    said += [say("plan_cost_machine", {}, language)] if cost.of_machine else []
    said += [say("plan_cost_base", costs, language)] if cost.base is not None else []
    said.append(say("plan_cost_free" if cost.item is None else "plan_cost_item", costs, language))
    if rest.ranks > 1:
        said.append(say("plan_ranks", {"ranks": str(rest.ranks)}, language))
    gap = {
        name: show(Amount(getattr(spread.gap, name), rest.unit, gap=True), language)
        for name in ("seeds", "items", "rest")
    }
    facts = {"seeds": gap["seeds"], "items": gap["items"], "left": gap["rest"]}
    facts |= {"n": str(spread.items), "count": str(spread.seeds)}
    said.append(say(f"spread_{spread.way.replace(' ', '_')}", facts, language))
    if cautious is not None:
        wider = {
            "gap": amount(cautious.gap, rest, language),
            "margin": amount(cautious.margin, rest, language),
        }
        said.append(say("plan_cautious", wider, language))
    if most is not None:
        said.append(say("plan_most_items", {"items": str(most)}, language))
    return [*said, say("plan_stays", {}, language)]


# --- before any run


def proposal_lines(found: Proposal, language: Language) -> list[str]:
    """What to run, and what it would decide."""
    design = found.design
    if design is None:
        facts = {"hours": hours_text(found.hours), "least": hours_text(found.least)}
        return [say("plan_nothing", facts, language)]
    counts = {name: str(getattr(design, name)) for name in ("arms", "seeds", "items")}
    said = [say("plan_proposed", counts | {"hours": hours_text(design.hours)}, language)]
    if found.coefficients:
        placed = {
            "coefficients": [f"{value:g}" for value in (0.0, *found.coefficients)],
            "kls": [f"{value:.3g}" for value in found.expected_kl],
        }
        said.append(say("plan_arms_placed", placed, language))
    else:
        said.append(say("plan_arms_calibrated", {"hours": hours_text(found.first)}, language))
    return said + decided(design, found.rest, language)


def proposal_text(found: Proposal, command: str, language: Language, columns: int) -> str:
    """The proposal as one screen."""
    parts: list[tuple[str, list[str]]] = [("heading_proposal", proposal_lines(found, language))]
    lines = _screen(title(found.rest, found.hours, language), parts, language, columns)
    if len(found.others) > 1:
        lines += ["", say("heading_designs", {}, language)]
        lines += _table([_row(each, found.rest, language) for each in found.others], language)
    most = found.design.items if found.design else None
    rest = rests_on(found.rest, found.cautious, most, language)
    lines += _listed("heading_rests", rest, language, columns)
    return _joined(lines, command, language)


# --- after runs


def option_line(option: Option, rest: Rest, language: Language) -> str:
    """One way to spend the hours, in a sentence."""
    then = option.then
    facts = {
        "more": str(option.seeds),
        "further": str(option.items),
        "arms": str(len(option.arms)),
        "names": list(option.arms),
        "hours": hours_text(then.hours),
        "gap": amount(then.gap, rest, language),
        "margin": amount(then.margin, rest, language),
    }
    code = f"plan_buy_{option.kind}"
    if option.kind == "open" and not (option.seeds and option.items):
        code += "_seeds" if option.seeds else "_items"
    return say(code, facts, language)


def items_wanting(option: Option, rest: Rest) -> bool:
    """Whether items, and not seeds, are most of the error that an option leaves."""
    then, spread = option.then, rest.spread.gap
    of_items = spread.of_items(then.items) ** 2
    return not rest.in_sds and of_items > spread.of_seed(then.items) ** 2 / then.seeds


def prospect_lines(found: Prospect, language: Language) -> list[str]:
    """What there is, and what the hours would best be spent on."""
    rest, said = found.rest, []
    now = {"seeds": str(found.seeds), "items": str(found.items)}
    if found.now is None:
        said.append(say("plan_now_few", now, language))
    else:
        sizes = {
            "gap": amount(found.now.gap, rest, language),
            "margin": amount(found.now.margin, rest, language),
            "power": f"{rest.goal.power:.0%}",
        }
        code = "plan_now" if found.items > 1 else "plan_now_seeds"
        said.append(say(code, now | sizes, language))
    if found.decided:
        arms = {"arms": [each.arms[0] for each in found.decided]}
        said.append(say("plan_settled", arms, language))
    if not found.open:
        return [*said, say("plan_all_settled", {}, language)]
    if not found.options:
        return [*said, _too_little(found, language)]
    first = found.options[0]
    said.append(option_line(first, rest, language))
    if not rest.in_sds:
        said += decided(first.then, rest, language)[1:]
    if items_wanting(first, rest):
        said.append(say("plan_more_items", {"items": str(first.then.items)}, language))
    for each in found.open:
        if each.arms[0] in found.chances and each.estimate is not None:
            gap = gap_text(each.estimate, each.low, each.high, each.unit, language)
            chance = f"{found.chances[each.arms[0]]:.0%}"
            facts = {"arm": each.arms[0], "gap": gap, "chance": chance}
            # `chance` of a sentence is a p-value elsewhere: it is told as text here.
            said.append(say("plan_chance", facts, language))
    return said


def _too_little(found: Prospect, language: Language) -> str:
    """That the hours buy nothing which would decide, and what would."""
    hours, count = hours_text(found.hours), len(found.arms)
    least, pair = (hours_text(found.hours_to_decide(arms)) for arms in (count, 2))
    if found.hours_to_decide(count) <= found.hours:
        return say("plan_buy_nothing", {"hours": hours}, language)
    facts = {"count": str(count), "least": least, "pair": pair, "baseline": found.baseline}
    return say("plan_buy_few", {"hours": hours} | facts, language)


def prospect_text(found: Prospect, command: str, language: Language, columns: int) -> str:
    """What the hours buy, as one screen."""
    parts = [("heading_proposal", prospect_lines(found, language))]
    lines = _screen(title(found.rest, found.hours, language), parts, language, columns)
    if len(found.options) > 1:
        lines += ["", say("heading_options", {}, language)]
        rows = [_row(each.then, found.rest, language) for each in found.options]
        lines += _table(rows, language)
    rest = rests_on(found.rest, found.cautious, None, language)
    lines += _listed("heading_rests", rest, language, columns)
    return _joined(lines, command, language)


# --- text


def _row(design: Design, rest: Rest, language: Language) -> list[str]:
    return [
        str(design.arms),
        str(design.seeds),
        str(design.items) if design.items > 1 else "—",  # of means nobody knows how many
        hours_text(design.hours),
        amount(design.gap, rest, language),
        amount(design.margin, rest, language),
        "—" if rest.in_sds else f"{design.seen:.0%}",
    ]


def _table(rows: Sequence[Sequence[str]], language: Language) -> list[str]:
    whole = [[say(f"column_{name}", {}, language) for name in COLUMNS], *rows]
    wide = [max(width(row[at]) for row in whole) for at in range(len(COLUMNS))]
    return [
        "  ".join(pad(cell, wide[at], right=True) for at, cell in enumerate(row)) for row in whole
    ]


def _screen(
    first: str, parts: Sequence[tuple[str, list[str]]], language: Language, columns: int
) -> list[str]:
    lines = [first]
    for code, texts in parts:
        lines += _listed(code, texts, language, columns)
    return lines


def _listed(code: str, texts: Sequence[str], language: Language, columns: int) -> list[str]:
    lines = ["", say(code, {}, language)]
    for text in texts:
        first, *rest = cut(text, columns - 2)
        lines += [f"- {first}", *(f"  {each}" for each in rest)]
    return lines


def _joined(lines: list[str], command: str, language: Language) -> str:
    if command:
        lines = [*lines, "", say("heading_command", {}, language), f"  {command}"]
    return "\n".join("".join(c for c in line if c.isprintable()) for line in lines)


# --- JSON


def plain(found: Proposal | Prospect, command: str, language: Language) -> dict[str, Any]:
    """The plan as JSON: fractions and hours, and the sentences in the language."""
    finite: dict[str, Any] = _finite(_plain(found, command, language))
    return finite


def _finite(value: Any) -> Any:
    """The same with null where a number is beyond bounds: JSON has no infinity."""
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _plain(found: Proposal | Prospect, command: str, language: Language) -> dict[str, Any]:
    rest = found.rest
    shared = {
        "hours": found.hours,
        "metric": rest.metric,
        "margin": None if rest.in_sds else rest.goal.margin,
        "power": rest.goal.power,
        "in_sds": rest.in_sds,
        "cost": asdict(rest.cost),
        "ranks": rest.ranks,
        "spread": asdict(rest.spread),
        "cautious": None if found.cautious is None else asdict(found.cautious),
        "command": command,
    }
    if isinstance(found, Proposal):
        return shared | {
            "design": None if found.design is None else asdict(found.design),
            "designs": [asdict(each) for each in found.others],
            "coefficients": list(found.coefficients),
            "expected_kl": list(found.expected_kl),
            "calibration_hours": found.first,
            "because": proposal_lines(found, language),
        }
    return shared | {
        "arms": found.arms,
        "baseline": found.baseline,
        "seeds": found.seeds,
        "items": found.items,
        "now": None if found.now is None else asdict(found.now),
        "decided": [each.arms[0] for each in found.decided],
        "open": [each.arms[0] for each in found.open],
        "options": [asdict(each) for each in found.options],
        "chances": found.chances,
        "because": prospect_lines(found, language),
    }
