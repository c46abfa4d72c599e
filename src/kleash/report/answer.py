"""The first screen: the question, the decision and why, three cards, one table, how far it goes.

Terminal, Markdown, HTML and the live page say these same parts. Everything else is an appendix.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from kleash.compare.comparison import Comparison, Judged
from kleash.report.charts import whisker
from kleash.report.courses import MOST_COLUMNS, beside
from kleash.report.ending import commands
from kleash.report.material import Material, short
from kleash.report.parts import (
    Card,
    Cards,
    Cell,
    Paragraph,
    Part,
    Stated,
    Styled,
    Table,
)
from kleash.report.words import MOST_NAMED, gap_text, key_name, named, say, term
from kleash.report.words.verdicts import (
    alike,
    decision,
    next_step,
    otherwise,
    together,
    verdict_line,
    word,
)
from kleash.study.plan import arm_recipe, base_checkpoint, dotted
from kleash.study.results import ArmRow, Results, over_seeds, seed_means
from kleash.train.recipe import SelectorRecipe

QUESTION = re.compile(r"[^.!?。！？\n]+[?？]")
COEFFICIENT = "leash.coefficient"
FEW = 3  # verdicts that are told one by one
MOST_KEYS = 2  # with a column of their own
STEPS = 2  # of what to run next


def question(made: Material) -> str:
    """What the author asked, where it is a question in the reader's language; else of its keys."""
    study = made.study
    if study is None:
        return made.say("title", name=made.name)
    asked = QUESTION.match(study.file.about)
    chinese = any("\u4e00" <= each <= "\u9fff" for each in study.file.about)
    if asked is not None and chinese == (made.language == "zh"):
        return made.say("question", name=made.name, question=asked[0].strip())
    keys = _keys(study.rows) or dict.fromkeys(key for arm in study.arms for key in arm.keys)
    names = made.listed([key_name(key, made.language) for key in keys])
    return made.say("question_of", name=made.name, keys=names) if keys else made.name


def facts(made: Material) -> str:
    """What was trained and measured, in a line."""
    study = made.study
    if study is None:
        return ""
    file = study.file
    recipe = arm_recipe(file, study.arms[0], file.seeds[0], "BASE") if study.arms else None
    shots = list(dict.fromkeys((min(file.measure.shots), max(file.measure.shots))))
    counts = {
        "data": getattr(recipe, "data" if isinstance(recipe, SelectorRecipe) else "env", ""),
        "items": file.measure.items[-1],
        "shots": "–".join(map(str, shots)),
        "arms": len(study.arms),
        "seeds": len(file.seeds),
        "done": f"{study.overview.counts().get('done', 0):,}",
        "cells": f"{len(study.measured):,}",
    }
    return made.say("facts_line", **counts)


def verdict(made: Material) -> list[Part]:
    """The whole answer; what diverged stands first."""
    parts: list[Part] = []
    for found in made.comparisons:
        lost = [each for each in found.verdicts if each.question == "diverged"]
        parts += [Paragraph(verdict_line([e], found.factor, made.language)) for e in lost]
        parts.append(Stated(decision(found, made.language), why(made, found)))
        cards = [differ(made, found), leash(made), after(made, found)]
        parts.append(Cards([card for card in cards if card is not None]))
    table = arms_table(made)
    parts = [*(parts or [Paragraph(made.say("nothing_yet"))]), *([table] if table else [])]
    return [*parts, *(Paragraph(far(made, found)) for found in made.comparisons)]


def why(made: Material, found: Comparison) -> str:
    """What became of each arm against its start; where no start was measured, against each other.

    The sentences of the verdict: few arms one by one, many together.
    """
    levels = [each for each in found.verdicts if each.question == "level"]
    if any(each.question == "gain" for each in found.verdicts):
        said = [line for line, _ in together(found, made.language, ("gain",))]
    elif len(levels) > FEW:
        said = [line for line, _ in together(found, made.language, ("level",))]
    else:
        groups = alike(levels)
        said = [verdict_line(group, found.factor, made.language) for group in groups]
    return _sentences(made, said)


def _sentences(made: Material, said: Sequence[str]) -> str:
    return ("" if made.language == "zh" else " ").join(said)


def differ(made: Material, found: Comparison) -> Card | None:
    """Whether the settings differ from each other, and where training says otherwise than its end.

    Without a start the levels are the answer itself.
    """
    said: list[str] = []
    if any(each.question == "gain" for each in found.verdicts):
        said = [line for line, _ in together(found, made.language, ("level",))]
    said += folded(made, otherwise(found))
    return Card(made.say("card.differ"), said) if said else None


def folded(made: Material, judged: Sequence[Judged]) -> list[str]:
    """A sentence for each verdict with the arms that have it."""
    words: dict[str, list[Judged]] = {}
    for each in judged:
        question = say(f"question.{each.question}", {}, made.language)
        words.setdefault(f"{question} {word(each, made.language)}", []).append(each)
    said: list[str] = []
    for text, group in words.items():
        facts = {
            "word": text[:1].upper() + text[1:],
            "arms": named([each.arms[0] for each in group], made.language),
        }
        known = [each.estimate for each in group if each.estimate is not None]
        ends = [
            gap_text(end, None, None, group[0].unit, made.language)
            for end in dict.fromkeys((min(known), max(known)) if known else ())
        ]
        code = ("word_only", "word_one", "word_of")[len(ends)]
        ends_said = dict(zip(("low", "high") if len(ends) > 1 else ("gap",), ends, strict=False))
        said.append(made.say(code, **facts, **ends_said))
    return said


def leash(made: Material) -> Card | None:
    """How far each arm went from the reference, from the arm it is compared with on."""
    study = made.study
    if study is None:
        return None
    by_name = {row.name: row for row in study.rows if row.kl is not None}
    groups: dict[str, list[ArmRow]] = {}
    for row in by_name.values():
        if row.against in by_name and COEFFICIENT in row.keys:
            groups.setdefault(row.against, []).append(row)
    said = [_held(made, by_name[name], rows) for name, rows in groups.items()]
    return Card(made.say("card.leash"), said) if said else None


def _held(made: Material, first: ArmRow, rows: Sequence[ArmRow]) -> str:
    """Of one group: it holds where each arm's interval lies below that of the arm before all."""
    order = [first, *sorted(rows, key=lambda row: float(row.keys[COEFFICIENT] or 0.0))]
    kls = [row.kl for row in order if row.kl is not None]
    low, high = min(kl.estimate for kl in kls), max(kl.estimate for kl in kls)
    shown = [f"{made.arm(row.name)} {row.kl.estimate:.2g}" for row in order if row.kl is not None]
    if len(shown) > MOST_NAMED:
        shown = [shown[0], shown[-1]]
    if kls[-1].high < kls[0].low:
        return made.say("leash_holds", course=" → ".join(shown))
    code = "leash_pulls_not" if kls[-1].low > kls[0].high else "leash_open"
    names = made.listed(named([made.arm(row.name) for row in order], made.language))
    return made.say(code, names=names, least=f"{low:.2g}", most=f"{high:.2g}")


def after(made: Material, found: Comparison) -> Card | None:
    """The cheapest steps that would decide, and of a study the command."""
    steps = [next_step(step, made.language, whole=False) for step in found.next[:STEPS]]
    stop = "。" if made.language == "zh" else "."
    said = [f"{step[:1].upper()}{step[1:]}{stop}" for step in steps]
    run = next(iter(commands(made)), "")
    return Card(made.say("card.next"), said, run) if said or run else None


def far(made: Material, found: Comparison) -> str:
    """How far this goes, once."""
    judged = [each for each in found.verdicts if each.question == "gain"]
    judged = judged or [each for each in found.verdicts if each.question == "level"]
    sure = min((each.level for each in judged), default="L1")
    seeds = min((each.n or 0 for each in judged), default=0)
    these = sure == "L3" and any(each.items is None for each in judged)
    code = "sure.L3_these" if these else f"sure.{sure}"
    lines = [made.say(code, n=seeds), made.say("unsaid" if sure == "L3" else "unsaid_setting")]
    return _sentences(made, lines)


# --- the table


def arms_table(made: Material) -> Table | None:
    """The start, then every arm: what it differs in, score, change from its start, KL, gap."""
    study = made.study
    if study is None or not study.rows:
        return None
    names = {arm.name for arm in beside(made)} or {row.name for row in study.rows[:MOST_COLUMNS]}
    rows = [row for row in study.rows if row.name in names]
    gains = [row.gain for row in rows if row.gain is not None and row.gain.estimate is not None]
    ends = [end for e in gains for end in (e.low, e.estimate, e.high, 0.0) if end is not None]
    span = (min(ends), max(ends)) if ends else (0.0, 0.0)
    keys = _keys(study.rows)
    lines = [_start(made, study, keys, span)] if gains else []
    lines += [_row(made, study, row, keys, span) for row in rows]
    change = "from_start" if made.of_agents else "points_from_start"
    head = made.head("arm") + _heads(made, keys)
    head += made.head("score", change, "forest", "kl_nats", "against_gap")
    left = len(study.rows) - len(rows)
    below = made.say("rows_left", count=left, of=len(study.rows)) if left else ""
    return Table(_caption(made, study), head, lines, left=len(head) - 5, below=below)


def _keys(rows: Sequence[ArmRow]) -> list[str]:
    """The keys in which arms that are compared differ; where these are none, all there are."""
    every = list(dict.fromkeys(key for row in rows for key in row.keys))
    pairs = [(row, other) for row in rows for other in rows if other.name == row.against]
    apart = [key for key in every if any(a.keys.get(key) != b.keys.get(key) for a, b in pairs)]
    return apart or every


def _caption(made: Material, study: Results) -> str:
    measure = study.file.measure
    shots = [made.column(f"shots:{n}") if made.of_agents else str(n) for n in measure.shots]
    counts = {"items": measure.items[-1], "seeds": len(study.file.seeds)}
    return made.say("summary_of", shots=made.listed(shots), **counts)


def _heads(made: Material, keys: Sequence[str]) -> list[str]:
    """A column for each of few keys, one for many."""
    if len(keys) > MOST_KEYS:
        return made.head("differs")
    return [key_name(key, made.language) for key in keys]


def _values(made: Material, study: Results, row: ArmRow, keys: Sequence[str]) -> list[str]:
    """What an arm has for each key, whether it asks for it or not."""
    if len(keys) > MOST_KEYS:
        texts = [f"{key_name(k, made.language)} = {short(v)}" for k, v in row.keys.items()]
        return [made.listed(texts) or "—"]
    recipe = study.overview.told.get(row.name)
    known = {} if recipe is None else dict(dotted(recipe.resolved))
    return [short(row.keys.get(key, known.get(key, "—"))) for key in keys]


def _start(
    made: Material, study: Results, keys: Sequence[str], span: tuple[float, float]
) -> list[Cell]:
    """The start as the first row: what every change is measured from."""
    name = base_checkpoint(study.file, study.file.seeds[0])
    means = list(seed_means(study.overview, study.file, "base", name).values())
    score = made.score(over_seeds(means)) if len(means) > 1 else made.scored(sum(means))
    drawn = Styled("", drawing=whisker(span, 0.0))
    first: list[Cell] = [made.say("start_row", name=name), *("—" for _ in _heads(made, keys))]
    return [*first, score if means else "—", made.say("reference"), drawn, "0", "—"]


def _row(
    made: Material, study: Results, row: ArmRow, keys: Sequence[str], span: tuple[float, float]
) -> list[Cell]:
    gain, drawing = row.gain, ""
    if gain is not None and gain.estimate is not None:
        ends = None if gain.low is None or gain.high is None else (gain.low, gain.high)
        drawing = whisker(span, gain.estimate, ends, lost=gain.verdict.startswith("worse"))
    gap = _judged(made, row.gap)
    against = made.say("to_arm", arm=row.against, gap=gap) if gap != "—" else "—"
    kl = "—" if row.kl is None else f"{row.kl.estimate:.2g}"
    return [
        made.arm(row.name),
        *_values(made, study, row, keys),
        score_of(made, row),
        _judged(made, gain),
        Styled("", drawing=drawing),
        kl,
        against,
    ]


def score_of(made: Material, row: ArmRow) -> str:
    """An arm's score over its seeds; of one seed the score alone."""
    if row.score is None and row.scores:
        return made.scored(row.scores[0])
    return made.score(row.score)


def _judged(made: Material, judged: Judged | None) -> str:
    """A gap with the interval that decides its word, and the word; its unit heads the column."""
    if judged is None:
        return "—"
    sure = "" if judged.level == "L3" else f" [{judged.level}]"
    own = term(f"report.answer.{judged.verdict}", made.language)
    said = own or word(judged, made.language)
    comma = "，" if made.language == "zh" else ", "
    number = made.gap(judged).removesuffix(" points").removesuffix(" 个百分点")
    return f"{number}{comma}{said}{sure}"
