"""Makes docs/picture.svg from what `kleash eval` prints: the first table, as it stands.

kleash eval RUN --checkpoint rce-5,epoch-3 --baselines | python docs/picture.py docs/picture.svg
"""

import sys
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import DEFAULT_TERMINAL_THEME
from rich.text import Text

# Rich's own template without the window around the text and without fonts from elsewhere.
PAGE = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {terminal_width} {terminal_height}">
<style>
.{unique_id}-matrix {{
  font: {char_height}px "DejaVu Sans Mono", Menlo, Consolas, monospace; white-space: pre
}}
{styles}
</style>
<defs>{lines}</defs>
<rect width="100%" height="100%" fill="#fff"/>
<g class="{unique_id}-matrix">{backgrounds}{matrix}</g>
</svg>
"""


def first_table(lines: list[str]) -> list[str]:
    """The lines down to the lower edge of the first table."""
    return lines[: 1 + next(at for at, line in enumerate(lines) if line.startswith("└"))]


def main() -> None:
    """Table on stdin, picture in the file named."""
    lines = first_table(sys.stdin.read().splitlines())
    console = Console(record=True, file=StringIO(), width=max(map(len, lines)))
    for line in lines:
        bold = line.lstrip("│ ").startswith(("rce-", "epoch-"))
        console.print(Text(line, style="bold" if bold else "", no_wrap=True))
    picture = console.export_svg(
        theme=DEFAULT_TERMINAL_THEME, code_format=PAGE, unique_id="kleash", font_aspect_ratio=0.602
    )
    Path(sys.argv[1]).write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()
