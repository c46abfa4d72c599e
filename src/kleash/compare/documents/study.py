"""The study that would settle reports: their arms, epochs, shots, sizes, and what is left open.

What all reports agree on becomes a setting with its lines beside it. What they contradict each
other in, or what cannot be had here, becomes a question: a comment at the top that says who says
what, and what was put there until somebody answers. All arms of a seed share one base. Long,
because which names of a report are arms is settled here and nowhere else.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import mode
from typing import Any, NamedTuple

from kleash.compare.arms import Arm, gather
from kleash.compare.documents.logs import coefficient
from kleash.compare.read import Source, in_names, names
from kleash.compare.read.run_names import SEED
from kleash.models.answer import ANSWERERS
from kleash.tasks.data import DATASETS, FROM_FILES
from kleash.tasks.demos.presets import PRESETS
from kleash.tasks.demos.reward import REWARDS
from kleash.tasks.envs import ENVS

SEEDS = 5
SHOWN = 12  # names in a question
Say = Callable[[str, dict[str, Any]], str]
"""A code and its facts as a sentence."""


def study_of(sources: Sequence[Source], name: str, say: Say) -> str:
    """The text of the study file."""
    file = StudyFile(sources)
    arms, others = leashed(contenders(gather(sources), sources))
    # Headings, paths and commands: where versions and gyms are named.
    texts = [fact.text for source in sources for fact in source.facts]
    texts += [text for source in sources for table in source.tables for text in table.headings]
    # Language agents have rewards over steps, and never any shots.
    runs = [run for source in sources for run in source.runs]
    known = {names.metric(series.metric) for run in runs for series in run.series}
    rewards = {one.name for one in known if one} & {"eval_reward", "reward", "performance"}
    if rewards and all(cell.shots is None for run in runs for cell in run.cells):
        _agents(file, sources, " ".join(texts))
    else:
        _selectors(file, sources, " ".join(texts))
    _arms(file, arms, sources)
    if others:
        more = ", …" if len(others) > SHOWN else ""
        file.ask("no-arms", names=", ".join(arm.name for arm in others[:SHOWN]) + more)
    seeds = max(len({one.seed for one in arm.replicates} - {None}) for arm in arms)
    if seeds < 2:
        file.ask("one-run", here=SEEDS)
    return _text(file, sources, name, max(seeds, SEEDS), say)


# --- what is trained, and how


def _agents(file: StudyFile, sources: Sequence[Source], text: str) -> None:
    gym = next((name for name in ENVS if name in text.casefold()), "")
    if not gym:
        gym = "intention"
        file.ask("unsaid", key="env", known=", ".join(ENVS), here=gym)
    file.put("base", "env", gym)
    file.tables["base"] += ['gym = { surface = "tokens" }', "turn_tokens = 4"]
    _known(file, "model", (), "tiny")
    for key, kind in (("batch", int), ("lr", float), ("group", int)):
        _number(file, key, kind)
    series = [one for source in sources for run in source.runs for one in run.series]
    courses = [sorted({int(step) for step in one.steps}) for one in series if one.axis == "step"]
    longest = max(courses, key=len, default=[])
    here = None
    if len(longest) > 2:
        count, every = len(longest), mode(b - a for a, b in pairwise(longest))
        file.put("grpo", "epochs", count)
        file.put("grpo", "steps", every)
        here = f"{count} × {every}"
    file.differs("steps", here)


def _selectors(file: StudyFile, sources: Sequence[Source], text: str) -> None:
    """The start that all arms share, what each has on top of it, and what is measured."""
    datasets = tuple(DATASETS)
    data = _known(file, "dataset", datasets, datasets[0])
    if not file.values("dataset"):
        file.ask("unsaid", key="dataset", known=", ".join(datasets), here=data)
    file.put("base", "data", data)
    if data in FROM_FILES:
        _files(file, data)
    else:
        file.put("base", "answerer", _known(file, "answerer", tuple(ANSWERERS), "embedded"))
    versions = re.findall(r"(?<![a-z0-9])v\d(?:[-_]\d+)?(?![\d.])", text)
    for preset in [one for one in versions if one in PRESETS][:1]:
        file.put("base", "selector", preset)
    _start(file)
    files = [name for own in file.values("data") if "." in (name := shown(own[0].value))]
    _pool(file, files)
    for freeze in file.values("freeze")[:1]:
        file.put("grpo", "like", "lever-plus")
        file.put("grpo", "freeze", ["projections"], freeze)
    if files:
        file.put("grpo", "source", "offline")
    _number(file, "batch", int)
    _number(file, "lr", float)
    cells = [cell for source in sources for run in source.runs for cell in run.cells]
    # As many epochs as a report asks for; at least as many as any cell is of.
    values = file.values("epochs")
    asked = [int(own[0].value) for own in values if isinstance(own[0].value, int)][:1]
    measured = [int(cell.epoch) for cell in cells if cell.epoch is not None and cell.shots]
    count = max([*asked, *measured], default=3)
    file.put("grpo", "epochs", count, next(iter(values), ()))
    file.differs("epochs", count)
    for own in [own for own in file.values("reward") if shown(own[0].value) in REWARDS][:1]:
        file.put("grpo", "reward", own[0].value, own)
    for key in ("shots", "items"):
        if places := sorted({getattr(cell, key) for cell in cells} - {None, 0}):
            file.put("measure", key, places)
    file.put("measure", "test", "all")


def _files(file: StudyFile, data: str) -> None:
    """Real questions and a real model: where both are looked for, which only the author knows."""
    models = [shown(own[0].value) for own in file.values("answerer")]
    model = f"models/{Path(models[0] if models else 'Qwen2.5-VL-3B-Instruct').name}"
    encoder = "models/clip-vit-base-patch32"
    file.put("base", "data_options", {"folder": f"data/{data}"})
    file.put("base", "answerer", "transformers")
    file.put("base", "answerer_options", {"model": model})
    file.put("base", "encoder", "clip")
    file.put("base", "encoder_options", {"model": encoder})
    file.ask("files", data=data, folders=f"data/{data}, {model}, {encoder}")


def _start(file: StudyFile) -> None:
    """How far the start was trained; where reports disagree, what most of them say."""
    values = file.values("start")
    found = [re.search(r"epoch[ _-]?(\d{1,4})", shown(own[0].value), re.I) for own in values]
    epochs = next((int(match[1]) for match in found if match), None)
    if epochs is not None:
        file.put("base", "rce.epochs", epochs, values[0])
    here = None if epochs is None else f"rce.epochs = {epochs}"
    file.differs("start", here, "base checkpoint")


def _pool(file: StudyFile, files: Sequence[str]) -> None:
    samplers = [shown(own[0].value) for own in file.values("sampler")]
    sized = re.search(r"(?<![a-z])k(\d{2,4})(?!\d)", " ".join(files))
    random = any("rand" in one.casefold() for one in (*files, *samplers))
    pool: dict[str, Any] = {"kind": "random"} if random else {}
    pool |= {"size": int(sized[1])} if sized else {}
    if pool:
        file.put("base", "pool", pool)
    file.differs("data", toml(pool)[2:-2] or None, "RL data")


def _known(file: StudyFile, key: str, known: Sequence[str], here: str) -> str:
    """A name that we have, or the one to take in its place with a question."""
    values = file.values(key)
    ours = {names.spelling(name): name for name in known}
    called = (names.spelling(str(own[0].value)) for own in values)
    found = next((ours[name] for name in called if name in ours), None)
    if values and found is None:
        there = ", ".join(known) or here
        file.ask("not-here", key=key, values=quoted(values), known=there, here=here)
    return found or here


def _number(file: StudyFile, key: str, kind: type) -> None:
    """A setting that is a number; the usual one where reports disagree, with a question."""
    for own in [own for own in file.values(key) if type(own[0].value) in (int, float)][:1]:
        file.put("grpo", key, kind(own[0].value), own)
        file.differs(key, shown(own[0].value))


# --- arms


def _arms(file: StudyFile, arms: Sequence[Arm], sources: Sequence[Source]) -> None:
    """One table for each arm: its coefficient, and what else differs between arms."""
    beside = _varied(file, arms)
    values = {arm.name: coefficient(arm) for arm in arms}
    known = {value for value in values.values() if value is not None}
    guesses = {name: 0.01 if in_names.leash(name) else 0.0 for name in values}
    level = {n: guesses[n] if value is None else value for n, value in values.items()}
    unsaid: dict[float, list[str]] = defaultdict(list)
    for name in [name for name, value in values.items() if value is None]:
        unsaid[level[name]].append(name)
    for guess, every in unsaid.items():
        file.ask("coefficient", arm=", ".join(every), here=guess)
    named: dict[str, str] = {}
    for arm in sorted(arms, key=lambda one: level[one.name]):
        said = values[arm.name] is not None or in_names.leash(arm.name) is not None
        name = _arm_name(arm.name, level[arm.name] if said else None, named.values())
        named[arm.name] = name
        table = f'arms."{name}"'
        if not said:
            file.tables[table].append(f"# {' '.join(arm.name.split())}")
        file.put(table, "leash.coefficient", level[arm.name])
        for key, by_arm in beside.items():
            if arm.name in by_arm:
                file.put(table, key, by_arm[arm.name])
    if beside and len(arms) > 1:
        file.ask("together", keys=", ".join(["leash.coefficient", *beside]))
        file.put("#grid", "leash.coefficient", sorted(known))
        for key, by_arm in beside.items():
            file.put("#grid", key, list(dict.fromkeys(by_arm.values())))
    if known and min(known) > 0:
        file.ask("no-none")
        file.put("#none", "leash.coefficient", 0.0)
    baseline = compared_with(sources, arms) or min(arms, key=lambda one: level[one.name])
    file.put("compare", "baselines", [named[baseline.name]])


def _arm_name(written: str, value: float | None, used: Collection[str]) -> str:
    """By its coefficient where one is told, else as it is written; never one that is taken."""
    slug = re.sub(r"[^A-Za-z0-9._+=,-]+", "-", SEED.sub("", written)).strip("-+.,=")
    name = (slug or "arm") if value is None else "none" if value == 0 else f"kl-{value:g}"
    if name in used and slug and value is not None:
        name = f"{name}-{slug}"
    return next(n for n in (name, *(f"{name}-{k}" for k in range(2, 999))) if n not in used)


def _varied(file: StudyFile, arms: Sequence[Arm]) -> dict[str, dict[str, Any]]:
    """Entropy bonuses and schedules, where they differ between arms."""
    found: dict[str, dict[str, Any]] = {}
    for key in ("entropy_bonus", "schedule"):
        by_arm: dict[str, Any] = {}
        for arm in arms:
            for one in [one for one in file.said if one.key == key and one.arm in arm.names][:1]:
                kind = names.schedule(str(one.value)).rsplit(" + ", 1)[-1]
                kind = kind if kind in ("constant", "linear", "cosine") else "constant"
                by_arm[arm.name] = kind if key == "schedule" else float(one.value)
        if len(set(by_arm.values())) > 1:
            found[key] = by_arm
    return found


def _text(file: StudyFile, sources: Sequence[Source], name: str, seeds: int, say: Say) -> str:
    """The file: questions, then the tables in the order in which people read them."""
    about = say("ask.about", {"reports": ", ".join(Path(source.path).name for source in sources)})
    lines = [f"# {about}", f"# {say('ask.questions', {})}"]
    for number, (code, facts) in enumerate(file.questions, 1):
        usual = {"here": say("ask.default", {})} if facts.get("here", "") is None else {}
        lines.append(f"# {number}. {say(code, facts | usual)}")
    lines += ["", f"name = {toml(name)}", f"about = {toml(about)}", f"seeds = {seeds}"]
    arms = (table for table in file.tables if table.startswith("arms"))
    for table in ("base", "grpo", *arms, "measure", "compare"):
        if file.tables.get(table):
            lines += ["", f"[{table}]", *file.tables[table]]
    for table, header in (("#none", "# [arms.none]"), ("#grid", "# [grid]")):
        if table in file.tables:
            lines += ["", header, *(f"# {line}" for line in file.tables[table])]
    return "\n".join(lines) + "\n"


# --- the file in the making


class Said(NamedTuple):
    """One value of a setting, who says it of which arm, and where."""

    key: str
    value: Any
    arm: str
    report: str
    line: int | None


class StudyFile:
    """Tables of lines, and the questions above them; both made of what reports say."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self.said = [
            Said(known.name, one.value, run.arm, Path(source.path).name, one.where.line)
            for source in sources
            for run in source.runs
            for key, setting in run.config.items()
            if (known := names.key(key)) is not None and known.kind not in ("seed", "harmless")
            for one in (setting, *setting.others)
        ]
        self.tables: dict[str, list[str]] = defaultdict(list)
        self.questions: list[tuple[str, dict[str, Any]]] = []
        """Codes with their facts: the sentences are the catalogue's."""

    def ask(self, code: str, **facts: Any) -> None:
        """Something that only the author can answer."""
        self.questions.append((f"ask.{code}", facts))

    def put(self, table: str, key: str, value: Any, said: Sequence[Said] = ()) -> None:
        """A setting, with the lines it was taken from."""
        note = f"  # {places(said)}" if said else ""
        self.tables[table].append(f"{key} = {toml(value)}{note}")

    def values(self, key: str) -> list[list[Said]]:
        """The different values of a setting, the one that most arms have first."""
        found: dict[str, list[Said]] = defaultdict(list)
        for one in self.said:
            if one.key == key:
                found[names.spelling(re.sub(r"\(.*?\)", "", shown(one.value)))].append(one)
        return sorted(found.values(), key=lambda own: -len({(one.report, one.arm) for one in own}))

    def differs(self, key: str, here: Any, called: str = "") -> None:
        """The question which value it is, where reports give several."""
        if len(values := self.values(key)) > 1:
            self.ask("differs", key=called or key, values=quoted(values), here=here)


def shown(value: Any) -> str:
    """A value as a sentence has it."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def quoted(values: Sequence[Sequence[Said]]) -> str:
    """Each value with who says it of whom."""
    parts = []
    for every in values:
        arms = list(dict.fromkeys(one.arm for one in every if one.arm))
        parts.append(f"{shown(every[0].value)} ({', '.join(arms[:5])}; {places(every)})")
    return " / ".join(parts)


def places(said: Sequence[Said]) -> str:
    """Where things are said: `000.md:9,24`."""
    lines: dict[str, set[int]] = defaultdict(set)
    for one in said:
        if one.line is not None:
            lines[one.report].add(one.line)
    return "; ".join(f"{one}:{','.join(map(str, sorted(at)))}" for one, at in lines.items())


def toml(value: Any) -> str:
    """A value as TOML writes it; numbers, texts and lists are written as in JSON."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(one)}" for key, one in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False)


NO_ARM = re.compile(
    r"total|sum|mean|average|avg|std|gap|diff(?:erence)?|delta|Δ"
    r"|总计|合计|总和|小计|平均值?|均值|标准差|差[异距值]?",
    re.I,
)
BRACKETS = re.compile(r"[(（\[].*?[)）\]]")
NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e-?\d+)?", re.I)
COEFFICIENT = re.compile(r"(?:kl)?[ _-]?(?:beta|β|coeff?(?:icient)?|系数)?[ _=:-]*[\d.e-]+", re.I)


def contenders(arms: Sequence[Arm], sources: Sequence[Source]) -> list[Arm]:
    """The arms, each once, under all its names; all of them if none would be left."""
    reports = {text for source in sources for text in (Path(source.path).name, source.path)}
    called = {plain(arm.name) for arm in arms}
    found: list[Arm] = []
    for arm in sorted(arms, key=_is_coefficient):
        name, value = plain(arm.name), coefficient(arm) if _is_coefficient(arm) else None
        parts = re.split(r"\s+[-−–/]\s+", name)
        worked_out = len(parts) == 2 and set(parts) <= called
        if NO_ARM.fullmatch(name) or worked_out or arm.name in reports:
            continue
        hosts = [
            other
            for other in found
            if name == plain(other.name) or (value is not None and value == coefficient(other))
        ]
        if len(hosts) == 1:
            hosts[0].names += arm.names
        else:
            found.append(arm)
    return [arm for arm in arms if arm in found] or list(arms)


def _is_coefficient(arm: Arm) -> bool:
    """Whether a coefficient is all that an arm is called."""
    return COEFFICIENT.fullmatch(plain(arm.name)) is not None


def plain(name: str) -> str:
    """A name without what stands in brackets."""
    return BRACKETS.sub("", name).strip() or name


def leashed(arms: Sequence[Arm]) -> tuple[list[Arm], list[Arm]]:
    """The arms that differ in their leash, each once; and the rest: starts, baselines, columns.

    Only where two coefficients are told. Of arms with one coefficient those that a name tells
    apart in a known setting are several; others are told again: a seed, a metric, a difference.
    """
    values = {arm.name: coefficient(arm) for arm in arms}
    alike = {NUMBER.sub("#", plain(name)) for name, value in values.items() if value}
    for name, value in values.items():
        pattern = NUMBER.sub("#", plain(name))
        if value is None and NUMBER.findall(plain(name)) == ["0"] and pattern in alike:
            values[name] = 0.0  # called as the others are: "RL-0", "RL-0.04"
    if len(set(values.values()) - {None}) < 2:
        return list(arms), []
    told = [a for a in arms if values[a.name] is not None or in_names.leash(a.name) is not None]
    found: list[Arm] = []
    for value in dict.fromkeys(values[arm.name] for arm in told):
        same = [arm for arm in told if values[arm.name] == value]
        hosts: dict[object, Arm] = {}
        for arm, settings in zip(same, in_names.settings([a.name for a in same]), strict=True):
            known = frozenset((key, one) for key, one in settings.items() if _is_setting(key))
            host = hosts.setdefault(known, arm)
            if host is not arm:
                host.names += arm.names
                host.replicates += arm.replicates
        found += hosts.values()
    return [arm for arm in arms if arm in found], [arm for arm in arms if arm not in told]


def _is_setting(key: str) -> bool:
    known = names.key(key)
    return key == in_names.SIZE or (known is not None and known.kind in ("must match", "treatment"))


def compared_with(sources: Sequence[Source], arms: Sequence[Arm]) -> Arm | None:
    """The arm that reports take from two others or more; of two arms either may come first."""
    by_name = {name: arm for arm in arms for name in (arm.name, *arm.names)}
    others: dict[str, set[str]] = {arm.name: set() for arm in arms}
    for source in sources:
        owners = {cell.number.where: run.arm for run in source.runs for cell in run.cells}
        means = (one for one in source.derived if one.kind == "mean" and len(one.arms) == 1)
        owners |= {one.number.where: one.arms[0] for one in means}
        for one in source.derived:
            if one.kind in ("difference", "relative") and one.arms:
                named = [*one.arms, *(owners.get(number.where, "") for number in one.minus), ""]
                ours, theirs = (by_name.get(name) for name in named[:2])
                if ours is not None and theirs is not None and ours is not theirs:
                    others[theirs.name].add(ours.name)
    most = max(arms, key=lambda arm: len(others[arm.name]))
    return most if len(others[most.name]) > 1 else None
