"""The first screen in two languages: the same commands, figures, pages and messages."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kleash.cli import app

ROOT = Path(__file__).parent.parent


def page(name):
    return (ROOT / name).read_text(encoding="utf-8")


def commands(text):
    """Every command of a block, without the remark behind it."""
    found = []
    for block in re.findall(r"^```(?:sh|console)\n(.*?)^```", text, re.S | re.M):
        lines = block.replace("\\\n", " ").splitlines()
        found += [" ".join(re.sub(r"\s{2,}# .*", "", line).split()) for line in lines]
    return [line for line in found if line]


def plain_commands(text):
    """Commands within a sentence or a table, and names in code."""
    return set(
        re.findall(r"(?<!`)`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.S | re.M))
    )


def pages_linked(text):
    return set(re.findall(r"\]\(((?:docs|src)/[^)]+)\)", text))


def figures(text):
    """Measured numbers: three decimals or more, and counts with commas."""
    return set(re.findall(r"[+−]?\b\d+\.\d{3,}\b|\b\d{1,3}(?:,\d{3})+\b", text))


def errors(text):
    return re.findall(r"^kleash: .*$", text, re.M)


@pytest.mark.parametrize("what", [commands, plain_commands, pages_linked, figures, errors])
def test_both_languages_say_the_same(what):
    english, chinese = what(page("README.md")), what(page("README.zh.md"))
    assert english
    assert chinese == english


def test_each_leads_to_the_other():
    assert "](README.zh.md)" in "".join(page("README.md").splitlines(keepends=True)[:60])
    assert "](README.md)" in "".join(page("README.zh.md").splitlines(keepends=True)[:20])


def test_the_way_from_a_remark_to_a_heading_is_there():
    headings = re.findall(r"^## (.+)$", page("README.zh.md"), re.M)
    addresses = {each.lower().replace(" ", "-") for each in headings}
    for link in re.findall(r"\]\(#([^)]+)\)", page("README.zh.md")):
        assert link in addresses


def test_the_recipe_without_a_resolver_names_every_dependency():
    told = tomllib.loads(page("pyproject.toml"))["project"]["dependencies"]
    needed = {re.match(r"[\w-]+", each)[0] for each in told}
    for name in ("README.md", "README.zh.md"):
        recipe = next(line for line in commands(page(name)) if line.startswith("pip install numpy"))
        assert set(recipe.split()[2:]) == needed


def of_nothing(text):
    """The commands of a page that need no file: what they are about is in their words."""
    found = {each.removeprefix("$ ") for each in {*commands(text), *plain_commands(text)}}
    verbs = ("kleash plan --", "kleash coef ", "kleash doctor", "kleash train default --keys")
    return sorted(each for each in found if each.startswith(verbs) and "demos" not in each)


@pytest.mark.parametrize("command", of_nothing(page("README.md")))
def test_a_command_that_needs_no_file_works_as_it_is_printed(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, shlex.split(command)[1:])
    assert done.exit_code == 0, done.exception
    assert done.output


def test_the_first_table_says_what_may_differ_and_has_the_start():
    table = page("README.md").split("| arm |")[1].split("\n\n")[0]
    assert "the start" in table
    assert not re.search(r"\[\S+, \S+\]|\d\.\d{4}", table)  # nothing that another machine changes
    assert "On another machine" in page("README.md").split("## Installing")[0]
    assert "换一台机器" in page("README.zh.md").split("## 安装")[0]
