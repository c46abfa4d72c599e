"""Every chart as files: SVG with its data as CSV; PNG and a PDF of one page where the extra is."""

from __future__ import annotations

import csv
import io
import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

from kleash.errors import DataError
from kleash.report.charts import Chart
from kleash.report.parts import Document, Figure

TIMES = 2  # pixels of a PNG for each of the SVG
CHINESE = "Noto Sans CJK SC"
MADE = re.compile(rb"(?<=/CreationDate \(D:)\d{14}")


def write_figures(whole: Document, folder: Path) -> tuple[list[Path], str]:
    """What was written, and why PNG and PDF were not; '' if they were."""
    folder.mkdir(parents=True, exist_ok=True)
    cairo, missing = converter()
    written = []
    for section in whole.sections:
        for part in section.parts:
            if isinstance(part, Figure):
                files = {"svg": part.chart.file().encode(), "csv": rows_of(part.chart).encode()}
                files |= {} if cairo is None else pictures(cairo, part.chart)
                for name, content in files.items():
                    path = folder / f"{part.name}.{name}"
                    put(path, content)
                    written.append(path)
    return written, missing


def rows_of(chart: Chart) -> str:
    """The data of a chart as CSV."""
    rows = io.StringIO()
    csv.writer(rows, lineterminator="\n").writerows([chart.head, *chart.rows])
    return rows.getvalue()


def converter() -> tuple[Any, str]:
    """CairoSVG, or what is to be installed."""
    try:
        import cairosvg
    except ImportError:
        return None, "PNG and PDF are not written: pip install 'kleash[figures]'"
    except OSError:  # cairocffi finds no library
        return None, "PNG and PDF are not written: CairoSVG finds no cairo; install libcairo2"
    return cairosvg, ""


def pictures(cairo: Any, chart: Chart) -> dict[str, bytes]:
    """A chart as PNG and PDF, light on white. The PDF tells no time: made twice it is the same."""
    chinese = any("\u4e00" <= each <= "\u9fff" for each in chart.drawing)
    drawing = chart.plain_file(f"'{_chinese_font()}'" if chinese else "sans-serif").encode()
    png = cairo.svg2png(bytestring=drawing, scale=TIMES, background_color="white")
    pdf = cairo.svg2pdf(bytestring=drawing, background_color="white")
    return {"png": png, "pdf": MADE.sub(b"19700101000000", pdf)}


@cache
def _chinese_font() -> str:
    """The installed family nearest to ours that has Chinese letters: cairo looks for no second."""
    match = shutil.which("fc-match")
    words = [match or "", "-f", "%{family[0]}", f"{CHINESE}:lang=zh-cn"]
    found = subprocess.run(words, capture_output=True, text=True, check=False) if match else None
    return (found.stdout if found is not None else "") or CHINESE


def put(path: Path, content: bytes) -> None:
    """Write at once: a reader sees the old file or the new one."""
    passing = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        passing.write_bytes(content)
        passing.replace(path)
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror}") from None
