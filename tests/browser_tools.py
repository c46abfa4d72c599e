"""A real browser for tests of pages: where it is, a page that must stay silent, a server."""

from __future__ import annotations

import os
import subprocess
import sys
import time
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
SOON = 600_000  # milliseconds: also on a machine that does much else
needs_browser = pytest.mark.skipif(
    not CHROMIUM.exists(), reason="no /usr/bin/chromium: apt-get install chromium"
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """The system's Chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as tool:
        opened = tool.chromium.launch(executable_path=str(CHROMIUM), args=list(FLAGS), timeout=SOON)
        yield opened
        opened.close()


@contextmanager
def opened_page(browser: Any, **keys: Any) -> Iterator[Any]:
    """A page that is waited for as long as a slow machine takes, and closed whatever happens."""
    with browser.new_context(**keys) as context:
        context.set_default_timeout(SOON)
        yield context.new_page()


def until(page: Any, told: str) -> None:
    """Wait for something to be so; asked from outside, since pages let nothing be evaluated."""
    end = time.monotonic() + SOON / 1000
    while not page.evaluate(told):
        assert time.monotonic() < end, f"never: {told}"
        page.wait_for_timeout(50)


@contextmanager
def silent_page(browser: Any, begins: str, **keys: Any) -> Iterator[Any]:
    """A page that may say nothing wrong and ask nobody but those whose address begins so."""
    wrong: list[str] = []
    with opened_page(browser, **keys) as opened:
        opened.on("console", lambda told: wrong.append(told.text) if told.type == "error" else None)
        opened.on("pageerror", lambda error: wrong.append(str(error)))
        opened.on(
            "request",
            lambda asked: wrong.append(asked.url) if not asked.url.startswith(begins) else None,
        )
        yield opened
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
        try:
            yield server.stdout.readline().strip().rstrip("/")
        finally:
            server.terminate()
            try:
                said = server.communicate(timeout=SOON / 1000)[1]
            finally:
                server.kill()
        assert "Traceback" not in said
