"""The pages: each is in the site's navigation, its links lead somewhere, and they are not too many.

`make docs` builds the site and checks the same by MkDocs; here nothing of it is needed.
"""

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
ALL = [*sorted(ROOT.glob("README*.md")), *PAGES]
MOST_WORDS = 33_000


def name_of(path):
    return str(path.relative_to(ROOT))


def prose(path):
    """A page without its blocks of code."""
    return re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.S | re.M)


def anchors(path):
    """The addresses of a page's headings, as GitHub and MkDocs make them."""
    headings = re.findall(r"^#+ (.+)$", prose(path), re.M)
    return {re.sub(r"[^\w\s-]", "", each.lower()).strip().replace(" ", "-") for each in headings}


def pages_of(nav):
    """The files of a navigation, in its order, however deep."""
    if isinstance(nav, str):
        return [nav]
    parts = nav.values() if isinstance(nav, dict) else nav
    return [page for part in parts for page in pages_of(part)]


def test_every_page_stands_once_in_the_navigation():
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    assert [next(iter(part)) for part in nav[1:]] == ["Guide", "Reference", "Log"]
    assert sorted(pages_of(nav)) == [str(page.relative_to(DOCS)) for page in PAGES]


@pytest.mark.parametrize("path", ALL, ids=name_of)
def test_links_lead_to_pages_headings_and_files(path):
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(path)):
        if link.startswith(("http://", "https://")):
            continue
        file, _, heading = link.partition("#")
        target = (path.parent / file).resolve() if file else path
        assert target.is_file(), link
        assert not heading or heading in anchors(target), link
        if path.parent == DOCS:
            assert target.is_relative_to(DOCS), f"{link} is not part of the site"


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_a_page_has_one_title_and_its_lists_and_tables_stand_apart(path):
    """MkDocs reads a list as part of the paragraph above it if no empty line is between."""
    text = prose(path)
    assert text.startswith("# ") and len(re.findall(r"^# ", text, re.M)) == 1
    assert not re.search(r"^(?![-|#> ]|\d+\. )\S.*\n(?:- |\d+\. |\|)", text, re.M)


def test_the_pages_can_be_read():
    words = [word for path in ALL for word in path.read_text(encoding="utf-8").split()]
    assert len([word for word in words if re.search(r"\w", word)]) <= MOST_WORDS
