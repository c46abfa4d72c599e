"""Colours of pages and charts can be read in both themes: contrast as WCAG 2.2 defines it."""

import re

import pytest

from kleash.report.charts import STYLE

THEMES = dict(zip(("light", "dark"), re.findall(r":root\{(.*?)\}", STYLE), strict=True))


def colours(theme):
    found = re.findall(r"--(\w+):([^;]+);", THEMES[theme])
    return {
        name: tuple(map(int, text.split(","))) if "," in text else tuple(bytes.fromhex(text[1:]))
        for name, text in found
    }


def light(colour):
    """Relative luminance."""
    parts = [part / 255 for part in colour]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(by * p for by, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one, other):
    low, high = sorted((light(one), light(other)))
    return (high + 0.05) / (low + 0.05)


def test_black_on_white_has_the_contrast_it_has():
    assert contrast((0, 0, 0), (255, 255, 255)) == pytest.approx(21)
    assert contrast((119, 119, 119), (255, 255, 255)) == pytest.approx(4.48, abs=0.005)


@pytest.mark.parametrize("theme", THEMES)
def test_text_and_lines_can_be_read(theme):
    seen = colours(theme)
    ratios = {name: contrast(colour, seen["paper"]) for name, colour in seen.items()}
    # Text needs 4.5, lines and marks 3; the first three of their colours are those of words, too.
    for name in ("ink", "quiet", "k0", "k1", "k2"):
        assert ratios[name] >= 4.5
    for at in range(8):
        assert ratios[f"k{at}"] >= 3
