"""Charts: what is drawn is what the table says, without colour too, harmless whatever a name is."""

import math
import re
from xml.etree import ElementTree

import pytest

from kleash.report import charts
from kleash.report.charts import Dot, Line, Spot
from kleash.report.charts.svg import COLOURS, DASHES, Drawing, Scale, at, cut, dash_of, through

HOSTILE = '"><script>alert(1)</script>&'
HEAD = ("a", "b", "c", "d", "e")
DOT = Dot("one", 1.0, 0.5, 1.5, "better")


def every_chart(name):
    dots = [Dot(name, 1.0, 0.5, 1.5, name), Dot("other", -1.0)]
    spots = [Spot(each.name, each, Dot("", 3.0, 2.0, 4.0)) for each in dots]
    return {
        "lines": charts.lines(name, (name, name), [Line(name, [1, 2], [0.1, 0.2])], HEAD),
        "whiskers": charts.whiskers(name, name, dots, HEAD, margin=0.1),
        "frontier": charts.frontier(name, (name, name), spots, HEAD),
    }


@pytest.mark.parametrize("kind", list(every_chart("x")))
def test_a_chart_is_well_formed_whatever_names_hold(kind):
    chart = every_chart(HOSTILE)[kind]
    picture = ElementTree.fromstring(chart.file())
    assert not [each for each in picture.iter() if each.tag.endswith("script")]
    assert picture.get("aria-label") == HOSTILE
    assert picture.get("role") == "img"


@pytest.mark.parametrize("kind", list(every_chart("x")))
def test_a_picture_on_its_own_has_its_colours_in_light_and_dark(kind):
    file = every_chart("x")[kind].file()
    assert "xmlns=" in file
    assert "prefers-color-scheme:dark" in file
    assert "http" not in file.replace("http://www.w3.org/2000/svg", "")


def test_lines_go_through_their_points_and_the_table_has_them():
    chart = charts.lines(
        "t", ("step", "loss"), [Line("a", [0, 10], [1.0, 3.0], [0.5, 2.5], [1.5, 3.5])], HEAD
    )
    assert chart.rows == [["a", "0", "1", "0.5", "1.5"], ["a", "10", "3", "2.5", "3.5"]]
    points = re.search(r'class="line k0" points="([^"]+)"', chart.drawing.split("grid")[-1])[1]
    (x0, y0), (x1, y1) = (tuple(map(float, each.split(","))) for each in points.split())
    assert x0 < x1
    assert y0 > y1  # more is higher up
    assert 'class="band k0"' in chart.drawing


def test_series_differ_in_shape_and_dash_and_not_only_in_colour():
    series = [Line(str(n), [0, 1], [n, n]) for n in range(8)]
    drawing = charts.lines("t", ("x", "y"), series, HEAD).drawing
    assert len(set(DASHES)) == len(DASHES) == len(COLOURS)
    for dash in DASHES[1:]:
        assert f'stroke-dasharray="{dash}"' in drawing
    shapes = {
        n: re.findall(rf'<(\w+) class="mark k{n}" (?:points="([^"]+)")?', drawing) for n in range(8)
    }
    corners = {n: len(found[0][1].split()) for n, found in shapes.items()}
    assert corners[0] == 0  # a circle
    assert len(set(corners.values())) >= 5


def test_no_two_of_many_series_look_alike():
    drawn = Drawing(100)
    looks = []
    for n in range(24):
        drawn.marks.clear()
        drawn.mark(0, 0, n)
        shape = re.sub(' class="[^"]*"', "", drawn.marks[0])
        looks.append((dash_of(n), shape))
    assert len(set(looks)) == 24  # without colour


def test_whiskers_end_where_the_interval_does():
    drawing = charts.whiskers("t", "points", [DOT], HEAD).drawing
    ends = re.search(r'class="whisker k0" points="([\d.]+),[\d.]+ ([\d.]+),', drawing)
    mark = re.search(r'class="mark k0" cx="([\d.]+)"', drawing)
    low, high = float(ends[1]), float(ends[2])
    assert float(mark[1]) == pytest.approx((low + high) / 2, abs=0.01)


def test_long_lines_are_thinned_on_the_page_and_whole_enough_in_the_file():
    line = Line("a", list(range(5000)), [math.sin(n / 100) for n in range(5000)])
    chart = charts.lines("t", ("x", "y"), [line], HEAD)
    assert len(chart.rows) <= 400
    assert len(chart.shown) <= 21
    assert chart.shown[-1] == chart.rows[-1]


def test_ticks_are_round_and_whole_where_steps_are():
    assert Scale(0, 10, 0, 100).ticks() == [0, 2, 4, 6, 8, 10]
    assert Scale(1, 3, 0, 100).ticks(8, whole=True) == [1, 2, 3]
    assert Scale(0.013, 0.021, 0, 1).ticks() == [0.014, 0.016, 0.018, 0.02]


def test_long_names_are_cut_and_chinese_counts_twice():
    assert cut("a" * 40, 10) == "a" * 10 + "…"
    assert cut("有约束的配置", 6) == "有约束…"


def test_a_line_as_small_as_a_word():
    assert charts.blocks([0, 1, 2, 3]) == "▁▃▆█"
    assert charts.blocks([1]) == ""
    assert charts.blocks([math.nan, 1]) == ""


def test_positions_at_once_are_those_one_by_one():
    values = [0.0, -0.001, 0.05, 0.5, 1.0, 10.0, 100.0, 20.05, 100.5, 1200.004, -30.0, 7.999]
    points = list(zip(values, reversed(values), strict=True))
    assert through(points) == " ".join(f"{at(x)},{at(y)}" for x, y in points)
    assert through([(100.0, 0.5)]) == "100,0.5"
    assert through([]) == ""
