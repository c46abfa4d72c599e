"""The first screen in two languages: the same commands, figures, pages and messages."""

import re
from pathlib import Path

import pytest

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
