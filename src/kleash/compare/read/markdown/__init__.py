"""Reports written by hand in Markdown, in Chinese or English: tables, lists, commands.

One source for a document, one run for each arm it compares. General rules only: what a table means
is told by its headers and headings, see docs/imports.md. What is not understood is noted, and no
number of it is used. Nothing is checked here: derived numbers are listed for findings.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kleash.compare.read import Source

MARKDOWN = {".md", ".markdown", ".mdown", ".mkd", ".mdx", ".qmd"}
PERHAPS = {"", ".txt", ".text"}


def fits(path: Path) -> bool:
    """Whether a file is Markdown: by its name, or as plain text with a table or headings."""
    if not path.is_file():
        return False
    if path.suffix.lower() in MARKDOWN:
        return True
    if path.suffix.lower() not in PERHAPS:
        return False
    with path.open("rb") as file:
        start = file.read(65_536)
    from kleash.compare.read.markdown.page import MARKS, Page

    if b"\0" in start and start[:2] not in MARKS:
        return False
    text = Page.of(path, start[: start.rfind(b"\n") + 1] or start).text
    table = re.search(r"^\s{0,3}\|?[ \t]*:?-{2,}:?[ \t]*\|[ \t:|-]*$", text, re.M)
    headings = re.findall(r"^#{1,6} \S", text, re.M)
    return bool(table) or (len(headings) > 1 and bool(re.search(r"^#{2,6} \S", text, re.M)))


def read(path: Path) -> Source:
    """What a document says of each of its arms, and what it derives from that."""
    from kleash.compare.read.markdown import document  # a hundred patterns: only where there is one

    return document.drafted(path).source
