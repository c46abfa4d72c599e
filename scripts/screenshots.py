"""Pictures of a study's report: three widths, both themes, both languages.

    .venv/bin/python scripts/screenshots.py studies/demos-kl pictures

For looking at after a change of the page. `--readme` makes the README's two instead, small: the
page at 1000 px down to the end of the verdict, light in English and dark in Chinese.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

from kleash import report
from kleash.study.results import results

CHROMIUM = "/usr/bin/chromium"
WIDTHS = (400, 1000, 1600)
TALLEST = 30_000  # pixels that an image may be high and still be opened everywhere


def take(browser: Any, page_file: Path, out: Path, look: tuple[int, str], height: int) -> None:
    """One picture: the first `height` pixels of the page; with 0 down to the end of the verdict."""
    width, theme = look
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=theme)
    page.goto(page_file.as_uri())
    whole = page.evaluate("document.documentElement.scrollHeight")
    wide = page.evaluate("document.documentElement.scrollWidth")
    if wide > width:
        raise SystemExit(f"{out.name}: the page is {wide} px wide in a window of {width}")
    height = height or int(page.locator("#limits").bounding_box()["y"])
    clip = {"x": 0, "y": 0, "width": width, "height": min(whole, height)}
    page.screenshot(path=str(out), clip=clip, full_page=True)
    page.close()


def smaller(path: Path) -> None:
    """The same picture with 64 colours, which text on paper does not miss."""
    Image.open(path).convert("RGB").quantize(64, dither=Image.Dither.NONE).save(path, optimize=True)


def main() -> None:
    """Make the report in both languages in a folder of its own, and photograph it."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("study", type=Path)
    words.add_argument("out", type=Path)
    words.add_argument("--readme", action="store_true", help="only the README's pictures, small")
    words.add_argument("--height", type=int, default=TALLEST)
    asked = words.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    found = results(asked.study.resolve())
    with TemporaryDirectory() as folder, sync_playwright() as tool:
        browser = tool.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for language in ("en", "zh"):
            page = Path(folder) / f"{language}.html"
            made = report.study_material(found, language)
            page.write_text(report.html_of(report.short_page(made)), encoding="utf-8")
            if asked.readme:
                picture = asked.out / f"report.{language}.png"
                take(browser, page, picture, (1000, "light" if language == "en" else "dark"), 0)
                smaller(picture)
                continue
            for width in WIDTHS:
                for theme in ("light", "dark"):
                    picture = asked.out / f"{language}-{width}-{theme}.png"
                    take(browser, page, picture, (width, theme), asked.height)
        browser.close()


if __name__ == "__main__":
    main()
