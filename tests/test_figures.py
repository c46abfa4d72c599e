"""Charts as files: SVG and CSV always; PNG and PDF where the extra is, right in Chinese too."""

import io
import re
import shutil
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from kleash import report
from kleash.cli import app
from kleash.report.charts import Dot, whiskers
from kleash.report.figures import pictures
from kleash.report.parts import Document, Figure, Section

HEAD = ("配置", "差距", "下限", "上限")


def chart(name="基线配置"):
    return whiskers("标题", "差距（百分点）", [Dot(name, 1.0, 0.5, 1.5)], HEAD)


def document(name="基线配置"):
    return Document("t", "zh", [Section("gaps", "h", [Figure("gaps", chart(name))])])


def test_figures_are_written_with_their_data(tmp_path):
    written, _ = report.write_figures(document(), tmp_path / "made")
    assert {"gaps.svg", "gaps.csv"} <= {path.name for path in written}
    assert (tmp_path / "made/gaps.csv").read_text(encoding="utf-8").splitlines() == [
        "配置,差距,下限,上限",
        "基线配置,1,0.5,1.5",
    ]


def test_without_the_extra_one_line_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "cairosvg", None)
    rows = "step,reward\n" + "".join(f"{n},{0.1 * n}\n" for n in range(1, 12))
    files = [tmp_path / name for name in ("none.csv", "kl0.1.csv")]
    for file in files:
        file.write_text(rows, encoding="utf-8")
    asked = ["report", *map(str, files), "--figures", str(tmp_path / "f")]
    told = CliRunner().invoke(app, asked)
    assert told.exit_code == 0, told.output
    assert told.stderr == "PNG and PDF are not written: pip install 'kleash[figures]'\n"
    assert {path.suffix for path in (tmp_path / "f").iterdir()} == {".svg", ".csv"}


def test_what_knows_no_variables_gets_colours():
    plain = chart("var(--x)").plain_file("serif")
    assert "var(--k" not in plain
    assert "@media" not in plain
    assert "stroke:#0a5c9e" in plain
    assert "var(--x)" in plain  # a name is a name


@pytest.fixture
def cairo():
    return pytest.importorskip("cairosvg", reason="pip install 'kleash[figures]'")


def test_pictures_are_of_the_size_and_the_colours_of_the_chart(cairo):
    from PIL import Image

    image = Image.open(io.BytesIO(pictures(cairo, chart())["png"])).convert("RGB")
    assert image.size == (2 * 720, 2 * 82)
    colours = {colour for _, colour in image.getcolors(100_000)}
    assert (255, 255, 255) in colours
    assert (0x0A, 0x5C, 0x9E) in colours  # the mark and its whisker


def has_chinese_font():
    """Whether this machine has letters to draw Chinese with; without them all are one box."""
    listed = shutil.which("fc-list")
    asked = [listed or "", ":lang=zh", "family"]
    return bool(listed and subprocess.run(asked, capture_output=True, check=True).stdout.strip())


@pytest.mark.skipif(not has_chinese_font(), reason="no Chinese font is installed here")
def test_chinese_letters_are_drawn_and_are_not_all_the_same_box(cairo):
    drawn = [pictures(cairo, chart(name))["png"] for name in ("基线", "有约", "基线")]
    assert drawn[0] == drawn[2]
    assert drawn[0] != drawn[1]


def test_a_pdf_is_one_page_and_the_same_when_made_again(cairo, tmp_path):
    first, missing = report.write_figures(document(), tmp_path)
    assert missing == ""
    before = {path.name: path.read_bytes() for path in first}
    assert before["gaps.pdf"].startswith(b"%PDF")
    assert len(re.findall(rb"/Type /Page\b(?!s)", before["gaps.pdf"])) == 1
    assert b"/CreationDate (D:19700101000000" in before["gaps.pdf"]
    again, _ = report.write_figures(document(), tmp_path)
    assert before == {path.name: path.read_bytes() for path in again}
