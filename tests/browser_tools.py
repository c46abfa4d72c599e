"""A real browser for tests of pages: where it is, a page that must stay silent, a server."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--no-first-run"),
)
HERE = Path(__file__).parent
SOON = 300_000  # milliseconds: also on a machine that does much else
needs_browser = pytest.mark.skipif(
    not CHROMIUM.exists(), reason="no /usr/bin/chromium: apt-get install chromium"
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """The system's Chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as tool:
        opened = tool.chromium.launch(executable_path=str(CHROMIUM), args=list(FLAGS))
        yield opened
        opened.close()


@contextmanager
def silent_page(browser: Any, begins: str, **keys: Any) -> Iterator[Any]:
    """A page that may say nothing wrong and ask nobody but those whose address begins so."""
    wrong: list[str] = []
    opened = browser.new_page(**keys)
    opened.on("console", lambda told: wrong.append(told.text) if told.type == "error" else None)
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    opened.on(
        "request",
        lambda asked: wrong.append(asked.url) if not asked.url.startswith(begins) else None,
    )
    yield opened
    opened.close()
    assert not wrong


def surroundings() -> dict[str, str]:
    """For processes that find the tests' world and take one thread."""
    paths = [str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of `kleash serve`, as a user starts it."""
    command = [str(Path(sys.executable).with_name("kleash")), "serve", str(folder), "--port", "0"]
    command += ["--data", "tiny:Topics", "--data", "tiny:Reader"]
    with subprocess.Popen(
        command, env=surroundings(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        yield server.stdout.readline().strip().rstrip("/")
        server.terminate()
        assert "Traceback" not in server.communicate(timeout=20)[1]
