"""The tree keeps its own rules: order of parts, stars, configs, commands, sizes and names."""

import ast
import re
import shlex
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest
import typer

from kleash.config import read_toml
from kleash.report.words import CODES

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src/kleash"
FILES = sorted(SOURCE.rglob("*.py"))
ALL_FILES = [*FILES, *sorted((ROOT / "tests").glob("*.py"))]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
VAGUE = {"utils", "common", "helpers", "misc", "base", "manager", "core"}
HEAVY = {"torch", "transformers", "safetensors", "peft", "matplotlib"}


def name_of(path):
    return str(path.relative_to(ROOT))


def picture():
    """The rooms from the bottom up, with the most lines that each may have."""
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    rows = page.split("```layers\n")[1].split("```")[0].splitlines()
    found = [re.match(r"(\w*)/? +([\d,]+) +([\d,]+) ", row) for row in rows]
    return {row[1]: int(row[2].replace(",", "")) for row in reversed(found)}


CEILINGS = picture()
ORDER = list(CEILINGS)  # the hall has no name
FOLDERS = {path.parent.name for path in SOURCE.rglob("__init__.py")} - {"kleash"}
LINT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["ruff"]["lint"]
HOMES = [SOURCE, *(path.parent for path in SOURCE.rglob("__init__.py"))]
STARRED = [name for name, rules in LINT["per-file-ignores"].items() if "TID253" in rules]


def room_of(path):
    inside = path.relative_to(SOURCE).parts
    return inside[0] if len(inside) > 1 else ""


def rooms_of(path):
    """The rooms that a file imports from, wherever in the file it does so."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert not node.level, f"{name_of(path)}:{node.lineno} is relative: write kleash.part"
            whole = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            whole = [alias.name for alias in node.names]
        else:
            continue
        named = [name.split(".")[1] for name in whole if name.startswith("kleash.")]
        found |= {name if name in ORDER else "" for name in named}
    return found


# --- the order of rooms


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_a_room_imports_only_what_stands_below_it(path):
    if path in [SOURCE / f"{name}.py" for name in ("__main__", "__init__", "api")]:
        return  # doors: one calls the command line, the others show what the rooms hold
    room = room_of(path)
    wrong = rooms_of(path) - set(ORDER[: ORDER.index(room) + 1])
    assert not wrong, f"{name_of(path)} imports {sorted(wrong)}, which stands above {room}/"


def test_the_rooms_are_those_of_the_picture():
    assert {room_of(path) for path in FILES} == set(ORDER)
    assert ORDER[:2] == ["", "stats"]
    assert ORDER[-1] == "cli"


@pytest.mark.parametrize("room", ORDER)
def test_no_room_is_larger_than_its_ceiling(room):
    files = [path for path in FILES if room_of(path) == room]
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files)
    assert lines <= CEILINGS[room], "take lines away elsewhere in the room"
    assert lines > CEILINGS[room] * 0.5, "the ceiling is no ceiling any more: lower it"


# --- configs


@pytest.mark.parametrize("path", sorted((ROOT / "configs").rglob("*.toml")), ids=name_of)
def test_every_recipe_loads(path):
    from kleash.train.recipe import Recipe, recipe_from

    assert isinstance(recipe_from(read_toml(path)), Recipe)


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.toml")), ids=name_of)
def test_every_toml_file_of_the_package_loads(path):
    assert read_toml(path)


def test_there_is_a_recipe_to_start_from():
    assert list((ROOT / "configs").glob("*.toml"))


# --- what starts without torch

PROBE = f"""
import sys
from kleash.cli import main
try:
    code = main()
except SystemExit as stop:
    code = stop.code
heavy = sorted({HEAVY} & sys.modules.keys())
sys.exit(f"imported {{heavy}}" if heavy else code)
"""


def run(*command, cwd):
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=600)


def test_importing_the_command_line_imports_nothing_heavy(tmp_path):
    code = f"import sys, kleash.cli; print(sorted({HEAVY} & sys.modules.keys()))"
    done = run(sys.executable, "-c", code, cwd=tmp_path)
    assert (done.stdout, done.returncode) == ("[]\n", 0), done.stderr


@pytest.mark.parametrize("verb", ["--help", "runs"])
def test_looking_around_imports_nothing_heavy(verb, tmp_path):
    done = run(sys.executable, "-c", PROBE, verb, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def lint_lets_torch_in(path):
    return any(fnmatch(name_of(path), pattern) for pattern in STARRED)


def test_files_without_torch_import_nothing_heavy_through_others(tmp_path):
    light = [path for path in FILES if path.stem != "__main__" and not lint_lets_torch_in(path)]
    names = [".".join(path.relative_to(SOURCE.parent).with_suffix("").parts) for path in light]
    lines = [f"import {name}; assert not {HEAVY} & sys.modules.keys(), '{name}'" for name in names]
    done = run(sys.executable, "-c", "\n".join(["import sys", *lines]), cwd=tmp_path)
    assert done.returncode == 0, done.stderr


CORE = Path(sys.prefix) / "core/bin"


def test_the_environment_of_the_core_has_no_torch(tmp_path):
    assert CORE.is_dir(), "there is none yet: make core-env"
    done = run(str(CORE / "python"), "-c", "import torch", cwd=tmp_path)
    assert "No module named 'torch'" in done.stderr


@pytest.mark.parametrize("verb", ["--help", "doctor", "runs"])
def test_the_command_line_works_without_torch(verb, tmp_path):
    assert CORE.is_dir(), "there is none yet: make core-env"
    done = run(str(CORE / "kleash"), verb, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr


# --- sizes and names


def says_why_it_is_long(node):
    """Whether a docstring argues for its length, in the words "long … because"."""
    return re.search(r"\blong(er)?\b.*\bbecause\b", ast.get_docstring(node) or "", re.S | re.I)


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_no_file_is_long_without_a_reason(path):
    # Tests may be: they are a flat list, one file for each module.
    text = path.read_text(encoding="utf-8")
    lines = len(text.splitlines())
    assert lines <= 400 or says_why_it_is_long(ast.parse(text)), f"{lines} lines: split or argue"


@pytest.mark.parametrize("path", ALL_FILES, ids=name_of)
def test_no_function_is_long_without_a_reason(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = node.end_lineno - node.lineno + 1
            assert lines <= 60 or says_why_it_is_long(node), f"{node.name} has {lines} lines"


def test_no_file_has_a_name_under_which_anything_fits():
    names = {part for path in FILES for part in path.relative_to(SOURCE).with_suffix("").parts}
    assert not names & VAGUE


def test_no_name_carries_a_version():
    pattern = re.compile(r"(^|_)(v\d+|new|old|final|fixed|copy|bak)(_|$)")
    assert not [name_of(path) for path in ALL_FILES if pattern.search(path.stem)]


# --- the pages


def commands():
    """Every `kleash …` in a block of a page, with the page it stands in."""
    found = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for language, block in re.findall(r"^```(\w*)\n(.*?)^```", text, re.S | re.M):
            if language not in ("console", "sh", ""):
                continue
            for line in block.replace("\\\n", " ").splitlines():
                line = line.removeprefix("$ ")
                if line.startswith(("kleash ", "python -m benchmarks ")):
                    found.append(pytest.param(line, id=f"{page.name}: {line}"))
    return found


@pytest.mark.parametrize("command", commands())
def test_commands_in_the_pages_are_commands(command):
    from benchmarks import BENCHES
    from kleash.cli import app

    first, *words = shlex.split(command, comments=True)
    if first == "python":
        assert words[2] in BENCHES
        return
    group = typer.main.get_command(app)
    if words and not words[0].startswith("-"):
        verb, *words = words
        assert verb in group.commands, f"the verbs are: {sorted(group.commands)}"
        group = group.commands[verb]
    try:
        group.make_context("kleash", words)
    except SystemExit as stop:
        assert not stop.code
    except typer.Exit as stop:
        assert not stop.exit_code


def test_files_that_a_page_says_to_change_exist():
    page = (ROOT / "docs/adding.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:\w+/)*\w+\.(?:py|toml|md))`", page))
    new = {name for name in named if Path(name).stem in {"foo", "test_foo"}}
    missing = {
        name
        for name in named - new
        if not any((folder / name).exists() for folder in (ROOT, *HOMES))
    }
    assert not missing


@pytest.mark.parametrize("evening", ["Training", "Comparing"])
def test_an_evening_of_reading_is_one(evening):
    page = (ROOT / "docs/reading.md").read_text(encoding="utf-8")
    part = page.split(f"\n## {evening}\n")[1].split("\n## ")[0]
    files = [SOURCE / name for name in re.findall(r"^\| `([^`]+)` \| \w", part, re.M)]
    assert len(files) > 10 and len({*files}) == len(files)
    assert sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files) <= 4_700


def test_the_first_screen_of_the_readme_shows_how_to_start():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    screen = "\n".join(text.splitlines()[:60])
    assert "make study" in screen
    assert "make test" in screen
    assert re.search(r"!\[|<img|<picture", screen)


def test_ci_runs_what_a_developer_runs():
    assert "\nmake test\n" in (ROOT / ".ci/run").read_text(encoding="utf-8")


# --- what prose names


def named_in(path):
    """Modules and files that the docstrings of a file name."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node) or ""
            yield from re.findall(r"\bkleash(?:\.[a-z_]\w*)+", text)
            yield from re.findall(r"\b[a-z_]+/[a-z_/]*[a-z_]+\.(?:py|md|toml)\b", text)
            for name in re.findall(r"`([a-z_]+(?:\.[a-z_]+)+)`", text):
                if name.split(".")[0] in FOLDERS and not name.endswith(
                    (".json", ".jsonl", ".toml")
                ):
                    yield name


def is_there(name):
    """Whether a file lies in the tree, or a dotted name is a module or something in one.

    `demos/pool.py` and `stats.holm` stand for the one folder of that name, in whichever room.
    """
    if "/" in name or not name.startswith("kleash."):
        first, _, rest = name.partition("/" if "/" in name else ".")
        if "/" in name:
            return any((folder / name).is_file() for folder in (ROOT, *HOMES))
        folders = [path.parent for path in SOURCE.rglob("__init__.py") if path.parent.name == first]
        return any(holds(folder, rest) for folder in folders)
    return holds(SOURCE, name.removeprefix("kleash."))


def holds(place, name):
    """Whether a folder has a module of a dotted name, or a module something of its end."""
    for part in name.split("."):
        if not (place / part).is_dir():
            inside = place / "__init__.py" if place.is_dir() else place
            module = place / f"{part}.py"
            if place.is_dir() and module.is_file():
                place = module
                continue
            return bool(re.search(rf"\b{part}\b", inside.read_text(encoding="utf-8")))
        place /= part
    return True


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_docstrings_name_modules_and_files_that_are_there(path):
    wrong = [name for name in named_in(path) if not is_there(name)]
    assert not wrong, f"{name_of(path)} names {wrong}: nothing of that name is there"


def test_a_name_of_nothing_would_be_seen():
    for name in (
        "kleash.nowhere",
        "kleash.models.language.not_here",
        "demos/nothing.py",
        "stats.nothing_here",
    ):
        assert not is_there(name)
    for name in (
        "kleash.algo.grpo.grpo_loss",
        "kleash.models.language.flops",
        "kleash.runs.run",
        "demos/pool.py",
    ):
        assert is_there(name)


def test_what_reads_reports_by_hand_does_not_grow():
    """A line more takes one away."""
    files = (SOURCE / "compare/documents").glob("*.py")
    assert sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files) <= 3_360
    words = [code for code in CODES if code.split(".")[0] in ("check", "fill", "ask", "state")]
    assert 50 < len(words) <= 70
    names = ("check*", "fill*", "study_from", "planted_by_hand")
    tests = [path for name in names for path in Path(__file__).parent.glob(f"test_{name}.py")]
    tests = [path for path in tests if path.name != "test_checkpoints.py"]
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in tests)
    assert 1_500 < lines <= 2_500
