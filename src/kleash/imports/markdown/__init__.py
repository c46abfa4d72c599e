"""Reports written by hand in Markdown, in Chinese or English: tables, lists, commands.

One source for a document, one run for each arm it compares. General rules only: what a table means
is told by its headers and headings, see docs/markdown.md. What is not understood is noted, and no
number of it is used. Nothing is checked here: derived numbers are listed for findings.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kleash.imports import Source

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
    if b"\0" in start and not start.startswith((b"\xff\xfe", b"\xfe\xff")):
        return False
    text = decoded(start)
    table = re.search(r"^\s{0,3}\|?[ \t]*:?-{2,}:?[ \t]*\|[ \t:|-]*$", text, re.M)
    headings = re.findall(r"^#{1,6} \S", text, re.M)
    return bool(table) or (len(headings) > 1 and bool(re.search(r"^#{2,6} \S", text, re.M)))


def read(path: Path) -> Source:
    """What a document says of each of its arms, and what it derives from that."""
    from kleash.imports.markdown import document  # a hundred patterns: only where there is one

    return document.read(path)


def decoded(raw: bytes) -> str:
    """The text of bytes: UTF-8 or 16, else GB 18030, else what of UTF-8 can be read."""
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        return raw.decode("utf-16", errors="replace")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # A character cut at the end of what was read is no reason to doubt the encoding.
        if error.start > len(raw) - 4:
            return raw.decode("utf-8-sig", errors="replace")
    try:
        return raw.decode("gb18030")
    except UnicodeDecodeError:
        return raw.decode("utf-8", errors="replace")
