"""The study that would settle reports: their arms, epochs, shots, sizes, and what is left open.

What all reports agree on becomes a setting with its lines beside it. What they contradict each
other in, or what cannot be had here, becomes a question: a comment at the top that says who says
what, and what was put there until somebody answers. All arms of a seed share one base.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from kleash.answer import ANSWERERS
from kleash.compare.arms import Arm, gather
from kleash.data import DATASETS, FROM_FILES
from kleash.demos.presets import PRESETS
from kleash.demos.reward import REWARDS
from kleash.documents.arms import coefficient, compared_with, contenders, leashed
from kleash.documents.study_file import Asked, Said, places, toml
from kleash.envs import ENVS
from kleash.imports import Source, in_names, names
from kleash.imports.run_names import SEED

SEEDS = 5
SHOWN = 12  # names in a question
Say = Callable[[str, dict[str, Any]], str]
"""A code and its facts as a sentence."""


def study_of(sources: Sequence[Source], name: str, say: Say) -> str:
    """The text of the study file."""
    asked = Asked()
    said = list(_said(sources))
    arms, others = leashed(contenders(gather(sources), sources))
    agents = _are_agents(sources)
    _base(asked, said, sources, agents=agents)
    _grpo(asked, said, sources, agents=agents)
    _arms(asked, arms, said, sources)
    if others:
        more = ", …" if len(others) > SHOWN else ""
        asked.ask("no-arms", names=", ".join(arm.name for arm in others[:SHOWN]) + more)
    _measure(asked, sources, agents=agents)
    seeds = max(len({one.seed for one in arm.replicates} - {None}) for arm in arms)
    if seeds < 2:
        asked.ask("one-run", here=SEEDS)
    return _text(asked, sources, name, max(seeds, SEEDS), say)


def _said(sources: Sequence[Source]) -> Iterator[Said]:
    """Every setting that a report gives, under its known name."""
    for source in sources:
        report = Path(source.path).name
        for run in source.runs:
            for key, setting in run.config.items():
                known = names.key(key)
                if known is None or known.kind in ("seed", "harmless"):
                    continue
                for one in (setting, *setting.others):
                    yield Said(known.name, one.value, run.arm, report, one.where.line)


def _are_agents(sources: Sequence[Source]) -> bool:
    """Whether the reports are on language agents: rewards over steps, and never any shots."""
    runs = [run for source in sources for run in source.runs]
    if any(cell.shots is not None for run in runs for cell in run.cells):
        return False
    measured = {names.metric(series.metric) for run in runs for series in run.series}
    rewards = {"eval_reward", "reward", "performance"}
    return any(metric is not None and metric.name in rewards for metric in measured)


# --- what the reports say


def _values(said: Sequence[Said], key: str) -> dict[str, list[Said]]:
    """The different values of a setting, the one that is said most often first."""
    found: dict[str, list[Said]] = defaultdict(list)
    for one in said:
        if one.key == key:
            found[names.spelling(re.sub(r"\(.*?\)", "", _shown(one.value)))].append(one)
    return dict(sorted(found.items(), key=lambda pair: -len({(s.report, s.arm) for s in pair[1]})))


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _told(values: dict[str, list[Said]]) -> str:
    """Each value with who says it of whom."""
    parts = []
    for every in values.values():
        arms = list(dict.fromkeys(one.arm for one in every if one.arm))
        whose = ", ".join(arms[:5])
        parts.append(f"{_shown(every[0].value)} ({whose}; {places(every)})")
    return " / ".join(parts)


# --- tables of the file


def _base(asked: Asked, said: Sequence[Said], sources: Sequence[Source], *, agents: bool) -> None:
    """The shared start: what is trained on what, and how far before GRPO."""
    if agents:
        text = _everything(sources).casefold()
        gym = next((name for name in ENVS if name in text), "")
        if not gym:
            gym = "intention"
            asked.ask("unsaid", key="env", known=", ".join(ENVS), here=gym)
        asked.put("base", "env", gym)
        asked.tables["base"] += ['gym = { surface = "tokens" }', "turn_tokens = 4"]
        _cannot(asked, said, "model", (), "tiny")
        return
    datasets = tuple(DATASETS)
    data = _cannot(asked, said, "dataset", datasets, datasets[0])
    if not _values(said, "dataset"):
        asked.ask("unsaid", key="dataset", known=", ".join(datasets), here=data)
    asked.put("base", "data", data)
    if data in FROM_FILES:
        _files(asked, said, data)
    else:
        answerer = _cannot(asked, said, "answerer", tuple(ANSWERERS), "embedded")
        asked.put("base", "answerer", answerer)
    text = _everything(sources)
    preset = next(
        (
            name
            for name in re.findall(r"(?<![a-z0-9])v\d(?:[-_]\d+)?(?![\d.])", text)
            if name in PRESETS
        ),
        "",
    )
    if preset:
        asked.put("base", "selector", preset)
    _start(asked, said)
    _pool(asked, said)


def _files(asked: Asked, said: Sequence[Said], data: str) -> None:
    """Real questions and a real model: where both are looked for, which only the author knows."""
    models = [_shown(every[0].value) for every in _values(said, "answerer").values()]
    model = f"models/{Path(models[0] if models else 'Qwen2.5-VL-3B-Instruct').name}"
    encoder = "models/clip-vit-base-patch32"
    asked.put("base", "data_options", {"folder": f"data/{data}"})
    asked.put("base", "answerer", "transformers")
    asked.put("base", "answerer_options", {"model": model})
    asked.put("base", "encoder", "clip")
    asked.put("base", "encoder_options", {"model": encoder})
    asked.ask("files", data=data, folders=f"data/{data}, {model}, {encoder}")


def _start(asked: Asked, said: Sequence[Said]) -> None:
    """How far the start was trained; where reports disagree, what most of them say."""
    values = _values(said, "start")
    epochs = [
        int(match[1])
        for every in values.values()
        if (match := re.search(r"epoch[ _-]?(\d{1,4})", str(every[0].value), re.I))
    ]
    here = f"rce.epochs = {epochs[0]}" if epochs else None
    if epochs:
        asked.put("base", "rce.epochs", epochs[0], next(iter(values.values())))
    if len(values) > 1:
        asked.ask("differs", key="base checkpoint", values=_told(values), here=here)


def _pool(asked: Asked, said: Sequence[Said]) -> None:
    values = _values(said, "data")
    files = {key: every for key, every in values.items() if "." in str(every[0].value)}
    written = " ".join(str(every[0].value) for every in files.values())
    sized = re.search(r"(?<![a-z])k(\d{2,4})(?!\d)", written)
    size = int(sized[1]) if sized else 0
    samplers = _values(said, "sampler")
    random = any("rand" in key for key in samplers) or any("rand" in key for key in files)
    parts = [f"kind = {toml('random')}"] if random else []
    parts += [f"size = {size}"] if size else []
    if parts:
        asked.tables["base"].append("pool = { " + ", ".join(parts) + " }")
    if len(values) > 1:
        here = ", ".join(parts) or None
        asked.ask("differs", key="RL data", values=_told(values), here=here)


def _cannot(
    asked: Asked,
    said: Sequence[Said],
    key: str,
    known: Sequence[str],
    here: str,
) -> str:
    """A name that we have, or the one to take in its place with a question."""
    values = _values(said, key)
    for every in values.values():
        for name in known:
            if names.spelling(name) == names.spelling(str(every[0].value)):
                return name
    if values:
        there = ", ".join(known) or here
        asked.ask("not-here", key=key, values=_told(values), known=there, here=here)
    return here


def _grpo(asked: Asked, said: Sequence[Said], sources: Sequence[Source], *, agents: bool) -> None:
    """What every arm has on top of the base."""
    frozen = _values(said, "freeze")
    offline = not agents and any("." in key for key in _values(said, "data"))
    if frozen and not agents:
        asked.put("grpo", "like", "lever-plus")
        asked.put("grpo", "freeze", ["projections"], next(iter(frozen.values())))
    if offline:
        asked.put("grpo", "source", "offline")
    _number(asked, said, "batch", int)
    _number(asked, said, "lr", float)
    if agents:
        _number(asked, said, "group", int)
        every, count = _evaluations(sources)
        if count:
            asked.put("grpo", "epochs", count)
            asked.put("grpo", "steps", every)
        steps = _values(said, "steps")
        if len(steps) > 1:
            here = f"{count} × {every}"
            asked.ask("differs", key="steps", values=_told(steps), here=here)
        return
    _epochs(asked, said, sources)
    for every_ in _values(said, "reward").values():
        if str(every_[0].value) in REWARDS:
            asked.put("grpo", "reward", str(every_[0].value), every_)
            break


def _number(asked: Asked, said: Sequence[Said], key: str, kind: type) -> None:
    """A setting that is a number; the usual one where reports disagree, with a question."""
    values = {
        text: every
        for text, every in _values(said, key).items()
        if isinstance(every[0].value, int | float) and not isinstance(every[0].value, bool)
    }
    if not values:
        return
    first = next(iter(values.values()))
    asked.put("grpo", key, kind(first[0].value), first)
    if len(values) > 1:
        asked.ask("differs", key=key, values=_told(values), here=_shown(first[0].value))


def _epochs(asked: Asked, said: Sequence[Said], sources: Sequence[Source]) -> None:
    """As many epochs as a report asks for; at least as many as any cell is of."""
    shown = [
        int(cell.epoch)
        for source in sources
        for run in source.runs
        for cell in run.cells
        if cell.epoch is not None and cell.shots is not None
    ]
    values = _values(said, "epochs")
    numbers = [int(every[0].value) for every in values.values() if isinstance(every[0].value, int)]
    count = numbers[0] if numbers else max(shown, default=3)
    count = max([count, *shown])
    asked.put("grpo", "epochs", count, next(iter(values.values()), ()))
    if len(values) > 1:
        asked.ask("differs", key="epochs", values=_told(values), here=count)


def _evaluations(sources: Sequence[Source]) -> tuple[int, int]:
    """How many steps lie between two evaluations, and how many evaluations are shown."""
    every, count = 0, 0
    for run in (run for source in sources for run in source.runs):
        for series in run.series:
            steps = sorted({int(step) for step in series.steps})
            if series.axis == "step" and len(steps) > max(2, count):
                gaps = [b - a for a, b in pairwise(steps)]
                every, count = max(set(gaps), key=gaps.count), len(steps)
    return every, count


def _everything(sources: Sequence[Source]) -> str:
    """Headings, paths and commands: where versions and gyms are named."""
    texts = [fact.text for source in sources for fact in source.facts]
    texts += [
        heading for source in sources for table in source.tables for heading in table.headings
    ]
    return " ".join(texts)


# --- arms


def _arms(
    asked: Asked, arms: Sequence[Arm], said: Sequence[Said], sources: Sequence[Source]
) -> None:
    """One table for each arm: its coefficient, and what else differs between arms."""
    beside = _varied(arms, said)
    coefficients = {arm.name: coefficient(arm) for arm in arms}
    known = [value for value in coefficients.values() if value is not None]
    named: dict[str, str] = {}
    _guess(asked, coefficients)
    for arm in sorted(arms, key=lambda one: coefficients[one.name] or 0.0):
        value = coefficients[arm.name] or 0.0
        told = coefficient(arm) is not None or in_names.leash(arm.name) is not None
        name = named[arm.name] = _arm_name(arm.name, value if told else None, named.values())
        if not told:
            asked.tables[f'arms."{name}"'].append(f"# {' '.join(arm.name.split())}")
        asked.put(f'arms."{name}"', "leash.coefficient", float(value))
        for key, by_arm in beside.items():
            if arm.name in by_arm:
                asked.put(f'arms."{name}"', key, by_arm[arm.name])
    if beside and len(arms) > 1:
        keys = ["leash.coefficient", *beside]
        asked.ask("together", keys=", ".join(keys))
        grid = {"leash.coefficient": sorted(set(known))}
        grid |= {key: list(dict.fromkeys(by_arm.values())) for key, by_arm in beside.items()}
        asked.tables["#grid"] = [f"{key} = {toml(values)}" for key, values in grid.items()]
    if known and min(known) > 0:
        asked.ask("no-none")
        asked.tables["#none"] = ["leash.coefficient = 0.0"]
    least = min(arms, key=lambda one: coefficients[one.name] or 0.0)
    baseline = compared_with(sources, arms) or least
    asked.put("compare", "baselines", [named[baseline.name]])


def _guess(asked: Asked, coefficients: dict[str, float | None]) -> None:
    """A coefficient for each arm that has none, and one question for all of a kind."""
    unsaid: dict[float, list[str]] = defaultdict(list)
    for name, value in coefficients.items():
        if value is None:
            unsaid[0.01 if in_names.leash(name) else 0.0].append(name)
    for value, arms in unsaid.items():
        asked.ask("coefficient", arm=", ".join(arms), here=value)
        coefficients |= dict.fromkeys(arms, value)


def _arm_name(written: str, value: float | None, used: Collection[str]) -> str:
    """By its coefficient where one is told, else as it is written; never one that is taken."""
    slug = re.sub(r"[^A-Za-z0-9._+=,-]+", "-", SEED.sub("", written)).strip("-+.,=")
    name = (slug or "arm") if value is None else "none" if value == 0 else f"kl-{value:g}"
    if name in used and slug and value is not None:
        name = f"{name}-{slug}"
    return next(n for n in (name, *(f"{name}-{k}" for k in range(2, 999))) if n not in used)


def _varied(arms: Sequence[Arm], said: Sequence[Said]) -> dict[str, dict[str, Any]]:
    """Entropy bonuses and schedules, where they differ between arms."""
    found: dict[str, dict[str, Any]] = {}
    for key in ("entropy_bonus", "schedule"):
        by_arm: dict[str, Any] = {}
        for arm in arms:
            values = [one.value for one in said if one.key == key and one.arm in arm.names]
            if values and key == "entropy_bonus":
                by_arm[arm.name] = float(values[0])
            elif values:
                kind = names.schedule(str(values[0])).rsplit(" + ", 1)[-1]
                by_arm[arm.name] = kind if kind in ("constant", "linear", "cosine") else "constant"
        if len(set(map(str, by_arm.values()))) > 1:
            found[key] = by_arm
    return found


# --- what is measured


def _measure(asked: Asked, sources: Sequence[Source], *, agents: bool) -> None:
    """Every shot count and size that a table has a cell for; all epochs see the test."""
    if agents:
        return
    cells = [cell for source in sources for run in source.runs for cell in run.cells]
    shots = sorted({cell.shots for cell in cells if cell.shots})
    items = sorted({cell.items for cell in cells if cell.items})
    if shots:
        asked.put("measure", "shots", shots)
    if items:
        asked.put("measure", "items", items)
    asked.put("measure", "test", "all")


def _text(asked: Asked, sources: Sequence[Source], name: str, seeds: int, say: Say) -> str:
    """The file: questions, then the tables in the order in which people read them."""
    reports = ", ".join(Path(source.path).name for source in sources)
    about = say("ask.about", {"reports": reports})
    lines = [f"# {about}", f"# {say('ask.questions', {})}"]
    for number, (code, facts) in enumerate(asked.questions, 1):
        usual = {"here": say("ask.default", {})} if facts.get("here", "") is None else {}
        lines.append(f"# {number}. {say(code, facts | usual)}")
    lines += ["", f"name = {toml(name)}", f"about = {toml(about)}", f"seeds = {seeds}"]
    order = ("base", "grpo", *(table for table in asked.tables if table.startswith("arms")))
    for table in (*order, "measure", "compare"):
        if asked.tables.get(table):
            lines += ["", f"[{table}]", *asked.tables[table]]
    for table, header in (("#none", "# [arms.none]"), ("#grid", "# [grid]")):
        if table in asked.tables:
            lines += ["", header, *(f"# {line}" for line in asked.tables[table])]
    return "\n".join(lines) + "\n"
